/* Cedar schemas in JSON: a schema or an error with a place, and what is accepted survives printing.
 */
#include "cedar_schema.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cedar_error err;
	cedar_schema *s;

	if (cedar_schema_from_json((const char *)data, size, NULL, &s, &err) < 0) {
		demand(err.code < 0 && err.text[0] != '\0' && err.line <= size + 1);
		return 0;
	}
	check_schema(s);
	cedar_schema_free(s);
	return 0;
}
