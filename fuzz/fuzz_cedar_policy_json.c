/* Cedar policy sets in JSON: what is accepted can be written, and reads again as the same. */
#include "cedar/cedar.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cedar_policies *policies, *again;
	struct cedar_text json, twice, text;
	struct cedar_error err;
	if (cedar_policies_from_json((const char *)data, size, NULL, &policies, &err) < 0) {
		if (err.line > size + 1)
			abort();
		return 0;
	}
	if (cedar_policies_to_json(policies, &json, &err) < 0 ||
		cedar_policies_from_json(json.data, json.length, NULL, &again, &err) < 0 ||
		cedar_policies_to_json(again, &twice, &err) < 0)
		abort();
	if (json.length != twice.length || memcmp(json.data, twice.data, json.length) != 0)
		abort();
	if (cedar_policies_to_text(policies, &text, &err) == 0)
		cedar_text_free(&text);
	cedar_text_free(&json);
	cedar_text_free(&twice);
	cedar_policies_free(again);
	cedar_policies_free(policies);
	return 0;
}
