/* The shell's parser: takes any bytes; what it accepts prints to what it reads the same. */
#include "shell/script.h"

#include <stdlib.h>
#include <string.h>

static void check_again(const struct buf *once)
{
	_cleanup_buf_ struct buf twice = buf_init(1 << 20);
	struct sh_script *again = NULL;
	struct err err = {0};
	if (sh_parse(once->data, once->len, &again, &err) < 0) {
		if (err.code != ERR_LIMIT)
			abort();
		return;
	}
	sh_print(sh_script_list(again), &twice);
	if (!twice.failed &&
		(once->len != twice.len || memcmp(once->data, twice.data, once->len) != 0))
		abort();
	sh_script_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_buf_ struct buf out = buf_init(1 << 20);
	struct sh_script *script = NULL;
	struct err err = {0};
	if (sh_parse((const char *)data, size, &script, &err) < 0) {
		if (script || !err.text[0])
			abort();
		return 0;
	}
	sh_print(sh_script_list(script), &out);
	if (!out.failed && out.len)
		check_again(&out);
	sh_script_free(script);
	return 0;
}
