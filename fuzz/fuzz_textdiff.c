/* Diffs: the input is two texts, divided at its first 0xff; the diff applied to one gives the
 * other. */
#include "../tests/unit/apply.h"
#include "workspace/textdiff.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err err;
	bool cut = false;
	const char *text = (const char *)data;
	const char *middle = size ? memchr(text, 0xff, size) : NULL;
	if (!middle)
		return 0;
	struct str a = {text, (size_t)(middle - text)}, b = {middle + 1, size - a.n - 1};
	struct textdiff_options opt = {"a", "b", (unsigned)(size % 5), SIZE_MAX};
	_cleanup_buf_ struct buf out = buf_init(64 << 20), back = buf_init(64 << 20);
	if (textdiff(a, b, &opt, &out, &cut, &err) < 0 || cut)
		abort();
	if (text_is_binary(a) || text_is_binary(b) || str_eq(a, b))
		return 0;
	if (!diff_apply(a, (struct str){buf_str(&out), out.len}, &back) || back.len != b.n ||
		memcmp(buf_str(&back), b.p, b.n) != 0)
		abort();
	return 0;
}
