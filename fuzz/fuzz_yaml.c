/*
 * YAML: what is accepted has a canonical JSON form, which our JSON reader takes (so no
 * document nests deeper than it allows).
 */
#include "codec/canonical.h"
#include "codec/json.h"
#include "codec/yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err err;
	json_t *v = NULL, *again = NULL;
	unsigned documents = 0;
	struct str text = {(const char *)data, size};
	if (yaml_parse(text, 1 << 20, &v, &documents, &err) < 0)
		return 0;
	BUG_ON(documents > 1 && json_array_size(v) != documents);
	_cleanup_buf_ struct buf out = buf_init(1 << 24);
	int r = json_canonical(v, &out, &err);
	BUG_ON(r < 0);
	BUG_ON(json_parse((struct str){out.data, out.len}, 1 << 24, &again, &err) < 0);
	json_decref(again);
	json_decref(v);
	return 0;
}
