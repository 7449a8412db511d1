/* Messages: what is wrong, where, and the line with a mark under the place. */
#include <stdarg.h>
#include <string.h>

#include "tool.h"

enum { SHOWN_MAX = 120 };

static size_t line_start(const struct file *f, size_t at)
{
	while (at > 0 && f->data[at - 1] != '\n')
		at--;
	return at;
}

static bool starts_character(char c)
{
	return ((unsigned char)c & 0xc0) != 0x80;
}

/* Control characters would move the mark, or the terminal; tabs are shown as one space. */
static void put_shown(const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		(void)fputc((unsigned char)p[i] < 0x20 || p[i] == 0x7f ? ' ' : p[i], stderr);
}

/* Long lines are cut around the place. */
static void show_place(const struct file *f, const struct cedar_error *err)
{
	size_t from, n, at = err->offset < f->n ? err->offset : f->n, marks;

	from = line_start(f, at);
	if (at - from > SHOWN_MAX / 2) {
		from = at - SHOWN_MAX / 2;
		while (from < at && !starts_character(f->data[from]))
			from++;
	}
	for (n = 0; from + n < f->n && f->data[from + n] != '\n' && n < SHOWN_MAX; n++)
		;
	while (n > 0 && from + n < f->n && !starts_character(f->data[from + n]))
		n--;
	(void)fprintf(stderr, "%6u | ", (unsigned)err->line);
	put_shown(f->data + from, n);
	(void)fprintf(stderr, "\n       | ");
	for (size_t i = from; i < at; i++)
		if (starts_character(f->data[i]))
			(void)fputc(' ', stderr);
	marks = 0;
	for (size_t i = at; i < at + err->length && i < from + n; i++)
		marks += starts_character(f->data[i]);
	for (size_t i = 0; i < (marks ? marks : 1); i++)
		(void)fputc('^', stderr);
	(void)fputc('\n', stderr);
}

void diag_error(const char *what, const struct file *f, const struct cedar_error *err)
{
	const char *name = f && f->name ? f->name : "-";

	if (!f || err->line == 0) {
		(void)fprintf(
			stderr, "%s: %s%s%s\n", what, f ? name : "", f ? ": " : "", err->text);
		return;
	}
	(void)fprintf(stderr, "%s: %s:%u:%u: %s\n", what, name, (unsigned)err->line,
		(unsigned)err->column, err->text);
	show_place(f, err);
}

void diag_say(const char *what, const char *fmt, ...)
{
	va_list ap;

	(void)fprintf(stderr, "%s: ", what);
	va_start(ap, fmt);
	(void)vfprintf(stderr, fmt, ap);
	va_end(ap);
	(void)fputc('\n', stderr);
}

int print_text(struct cedar_text *text)
{
	size_t n = fwrite(text->data, 1, text->length, stdout);
	bool newline = text->length > 0 && text->data[text->length - 1] != '\n';
	int r = n == text->length && (!newline || putchar('\n') != EOF) ? TOOL_OK : TOOL_FAILURE;

	cedar_text_free(text);
	if (r != TOOL_OK)
		diag_say("error", "cannot write");
	return r;
}
