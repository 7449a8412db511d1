/*
 * JSON: what is accepted has one canonical form, which is accepted again and is its own canonical
 * form; jansson's own reader agrees about every text that it can represent.
 */
#include "codec/canonical.h"
#include "codec/json.h"

static void canonical_of(struct str text, struct buf *out)
{
	struct err err;
	json_t *v = NULL;
	BUG_ON(json_parse(text, 1 << 20, &v, &err) < 0);
	BUG_ON(json_canonical_exact(v, out, &err) < 0);
	json_decref(v);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err err;
	json_t *v = NULL;
	struct str text = {(const char *)data, size};
	int r = json_parse(text, 1 << 20, &v, &err);
	json_error_t why;
	json_t *other = json_loadb(
		text.p, text.n, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &why);
	/* jansson refuses U+0000 in names and takes what we call too deep; everything else must
	 * agree. */
	if (other && r < 0 && !memchr(text.p, 0, text.n))
		BUG_ON(!strstr(err.text, "nested too deeply") &&
			!strstr(err.text, "1024 characters"));
	if (!other && r == 0)
		BUG_ON(!strstr(why.text, "NUL byte in object key") && !strstr(why.text, "too big"));
	if (other && r == 0)
		BUG_ON(!json_equal(v, other));
	json_decref(other);
	if (r < 0)
		return 0;
	_cleanup_buf_ struct buf once = buf_init(1 << 24), twice = buf_init(1 << 24);
	r = json_canonical_exact(v, &once, &err);
	json_decref(v);
	if (r < 0)
		return 0;
	canonical_of((struct str){once.data, once.len}, &twice);
	BUG_ON(!str_eq((struct str){once.data, once.len}, (struct str){twice.data, twice.len}));
	return 0;
}
