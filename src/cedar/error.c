/* Errors and places; the defaults of all limits. */
#include "cedar/error.h"
#include "cedar/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#undef ced_fail
#undef ced_fail_memory
#undef ced_fail_limit

struct cedar_limits cedar_limits_default(void)
{
	return (struct cedar_limits){
		.text_bytes = 16u << 20,
		.memory_bytes = 512u << 20,
		.scratch_bytes = 4u << 20,
		.policies = 100000,
		.nesting = 200,
		.height = 1000,
		.json_depth = 200,
		.entities = 1000000,
		.ancestors = 4000000,
	};
}

struct ced_pos ced_pos_join(struct ced_pos a, struct ced_pos b)
{
	a.length = b.offset + b.length - a.offset;
	return a;
}

int ced_fail(
	struct cedar_error *err, enum cedar_code code, struct ced_pos pos, const char *format, ...)
{
	if (!err)
		return code;
	*err = (struct cedar_error){.code = code,
		.line = pos.line,
		.column = pos.column,
		.offset = pos.offset,
		.length = pos.length};
	va_list ap;
	va_start(ap, format);
	int n = vsnprintf(err->text, sizeof(err->text), format, ap);
	va_end(ap);
	if (n >= (int)sizeof(err->text)) {
		/* Cut before a character, never inside of one. */
		size_t end = sizeof(err->text) - 4;
		while (end && ((unsigned char)err->text[end] & 0xc0) == 0x80)
			end--;
		memcpy(err->text + end, "...", 4);
	}
	return code;
}

int ced_fail_memory(struct cedar_error *err)
{
	return ced_fail(err, CEDAR_E_MEMORY, (struct ced_pos){0}, "out of memory");
}

int ced_fail_limit(struct cedar_error *err, struct ced_pos pos, const char *name, uint64_t value)
{
	return ced_fail(err, CEDAR_E_LIMIT, pos, "over the limit %s (%llu)", name,
		(unsigned long long)value);
}

void ced_place(struct cedar_error *err, const char *text, size_t n)
{
	if (!err || err->line != CED_LINE_LATER)
		return;
	size_t at = err->offset < n ? err->offset : n, line_start = 0;
	err->line = 1;
	for (size_t i = 0; i < at; i++)
		if (text[i] == '\n') {
			err->line++;
			line_start = i + 1;
		}
	err->column = ced_utf8_count(text + line_start, at - line_start) + 1;
}
