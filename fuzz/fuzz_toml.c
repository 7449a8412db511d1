/*
 * TOML: what is accepted can be written again, with every table and array inline, and read back as
 * the same tree; every key finds its own value.
 */
#include "codec/toml.h"

#include <math.h>

static void put_string(struct buf *b, struct str s)
{
	uint32_t c;
	buf_putc(b, '"');
	for (size_t i = 0; i < s.n;) {
		unsigned n = utf8_decode(s.p + i, s.n - i, &c);
		BUG_ON(n == 0);
		buf_printf(b, "\\U%08x", c);
		i += n;
	}
	buf_putc(b, '"');
}

static void put_time(struct buf *b, const struct toml *t)
{
	const struct toml_time *w = &t->time;
	if (t->type != TOML_TIME_LOCAL)
		buf_printf(b, "%04d-%02d-%02d", w->year, w->month, w->day);
	if (t->type == TOML_DATETIME || t->type == TOML_DATETIME_LOCAL)
		buf_putc(b, ' ');
	if (t->type != TOML_DATE_LOCAL)
		buf_printf(b, "%02d:%02d:%02d.%09d", w->hour, w->minute, w->second, w->nanosecond);
	if (t->type == TOML_DATETIME)
		buf_printf(b, "%c%02d:%02d", w->offset_minutes < 0 ? '-' : '+',
			abs(w->offset_minutes) / 60, abs(w->offset_minutes) % 60);
}

static void put_float(struct buf *b, double d)
{
	if (isnan(d))
		buf_puts(b, "nan");
	else if (isinf(d))
		buf_puts(b, d < 0 ? "-inf" : "+inf");
	else
		buf_printf(b, "%.17e", d);
}

static void put_value(struct buf *b, const struct toml *t);

static void put_list(struct buf *b, const struct toml *t)
{
	bool table = t->type == TOML_TABLE;
	buf_putc(b, table ? '{' : '[');
	for (const struct toml *c = t->list.first; c; c = c->next) {
		BUG_ON(table && toml_get(t, c->key) != c);
		if (table) {
			put_string(b, c->key);
			buf_putc(b, '=');
		}
		put_value(b, c);
		if (c->next)
			buf_putc(b, ',');
	}
	buf_putc(b, table ? '}' : ']');
}

static void put_value(struct buf *b, const struct toml *t)
{
	switch (t->type) {
	case TOML_TABLE:
	case TOML_ARRAY: put_list(b, t); break;
	case TOML_STRING: put_string(b, t->string); break;
	case TOML_INTEGER: buf_printf(b, "%lld", (long long)t->integer); break;
	case TOML_FLOAT: put_float(b, t->real); break;
	case TOML_BOOL: buf_puts(b, t->boolean ? "true" : "false"); break;
	case TOML_DATETIME:
	case TOML_DATETIME_LOCAL:
	case TOML_DATE_LOCAL:
	case TOML_TIME_LOCAL: put_time(b, t); break;
	case TOML_TYPE_MAX_: BUG_ON(true);
	}
}

static void put_root(struct buf *b, const struct toml *root)
{
	for (const struct toml *c = root->list.first; c; c = c->next) {
		BUG_ON(toml_get(root, c->key) != c);
		put_string(b, c->key);
		buf_putc(b, '=');
		put_value(b, c);
		buf_putc(b, '\n');
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err err;
	struct toml *root = NULL, *again = NULL;
	if (toml_parse((struct str){(const char *)data, size}, 1 << 20, &root, &err) < 0)
		return 0;
	_cleanup_buf_ struct buf once = buf_init(1 << 24), twice = buf_init(1 << 24);
	put_root(&once, root);
	BUG_ON(toml_parse((struct str){once.data, once.len}, 1 << 24, &again, &err) < 0);
	put_root(&twice, again);
	BUG_ON(!str_eq((struct str){once.data, once.len}, (struct str){twice.data, twice.len}));
	toml_free(root);
	toml_free(again);
	return 0;
}
