/* Messages: what, where, and the line with a caret under the place. */
#include "tool.h"

#include <stdarg.h>
#include <stdio.h>

enum { SHOWN = 160 };

void tell_plain(const char *format, ...)
{
	va_list ap;
	va_start(ap, format);
	fputs("error: ", stderr);
	(void)vfprintf(stderr, format, ap);
	fputc('\n', stderr);
	va_end(ap);
}

/* The line around `at`, as [start, end). */
static void line_around(const struct file *f, size_t at, size_t *start, size_t *end)
{
	*start = *end = at;
	while (*start && f->data[*start - 1] != '\n')
		--*start;
	while (*end < f->n && f->data[*end] != '\n' && f->data[*end] != '\r')
		++*end;
}

/* Spaces as wide as the text before the place (a tab stays a tab), then carets. */
static void carets(const struct file *f, size_t start, size_t at, size_t length, size_t end)
{
	for (size_t i = start; i < at; i++)
		if (((unsigned char)f->data[i] & 0xc0) != 0x80)
			fputc(f->data[i] == '\t' ? '\t' : ' ', stderr);
	size_t n = 0;
	for (size_t i = at; i < at + length && i < end; i++)
		n += ((unsigned char)f->data[i] & 0xc0) != 0x80;
	do
		fputc('^', stderr);
	while (n-- > 1);
	fputc('\n', stderr);
}

void tell(const char *severity, const struct file *f, const struct cedar_error *err)
{
	size_t start, end;
	fprintf(stderr, "%s: %s\n", severity, err->text);
	if (!f || !f->data || !err->line || err->offset > f->n)
		return;
	fprintf(stderr, "  --> %s:%u:%u\n", f->name, err->line, err->column);
	line_around(f, err->offset, &start, &end);
	if (end - start > SHOWN)
		return;
	fprintf(stderr, "%5u | %.*s\n      | ", err->line, (int)(end - start), f->data + start);
	carets(f, start, err->offset, err->length, end);
}
