/* Canonical JSON: see canonical.h. Pure. */
#include "codec/canonical.h"

#include "base/limits.h"

#include <math.h>

enum { EXACT_MAX_BITS = 53 };
#define EXACT_MAX ((INT64_C(1) << EXACT_MAX_BITS) - 1)

struct writer {
	struct buf *out;
	struct err *err;
	bool big_as_string;
};

/* --- strings: RFC 8785 §3.2.2.2
 * --------------------------------------------------------------------- */

static void put_string(struct buf *b, const char *p, size_t n)
{
	static const char short_escapes[] = {
		['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r'};
	buf_putc(b, '"');
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)p[i];
		if (c == '"' || c == '\\')
			buf_printf(b, "\\%c", c);
		else if (c >= 0x20)
			buf_putc(b, (char)c);
		else if (c < sizeof(short_escapes) && short_escapes[c])
			buf_printf(b, "\\%c", short_escapes[c]);
		else
			buf_printf(b, "\\u%04x", c);
	}
	buf_putc(b, '"');
}

/* --- numbers: ECMA-262 §6.1.6.1.20
 * -------------------------------------------------------------------- */

/* The shortest decimal digits that read back as d (d > 0), without the point; *ret_exp is where the
 * point stands. */
static unsigned shortest_digits(double d, char digits[20], int *ret_exp)
{
	char text[40];
	for (int precision = 0; precision <= 17; precision++) {
		(void)snprintf(text, sizeof(text), "%.*e", precision, d);
		if (strtod(text, NULL) == d)
			break;
	}
	unsigned n = 0;
	const char *p = text;
	for (; *p && *p != 'e'; p++)
		if (*p != '.' && n < 20)
			digits[n++] = *p;
	*ret_exp = (int)strtol(p + 1, NULL, 10) + 1;
	while (n > 1 && digits[n - 1] == '0')
		n--;
	return n;
}

static void put_zeros(struct buf *b, int n)
{
	for (int i = 0; i < n; i++)
		buf_putc(b, '0');
}

void canonical_number(struct buf *b, double d)
{
	char digits[20];
	int point;
	if (d == 0) {
		buf_putc(b, '0');
		return;
	}
	if (d < 0) {
		buf_putc(b, '-');
		d = -d;
	}
	unsigned n = shortest_digits(d, digits, &point);
	if (point >= (int)n && point <= 21) {
		buf_put(b, digits, n);
		put_zeros(b, point - (int)n);
	} else if (point > 0 && point <= 21) {
		buf_put(b, digits, (size_t)point);
		buf_putc(b, '.');
		buf_put(b, digits + point, n - (size_t)point);
	} else if (point > -6 && point <= 0) {
		buf_puts(b, "0.");
		put_zeros(b, -point);
		buf_put(b, digits, n);
	} else {
		buf_put(b, digits, 1);
		if (n > 1) {
			buf_putc(b, '.');
			buf_put(b, digits + 1, n - 1);
		}
		buf_printf(b, "e%+d", point - 1);
	}
}

/* Beyond 2^53 an integer may still be what a double is written as. */
static bool same_as_double(int64_t n, const char *text)
{
	_cleanup_buf_ struct buf b = buf_init(64);
	canonical_number(&b, (double)n);
	return strcmp(buf_str(&b), text) == 0;
}

static int put_integer(struct writer *w, int64_t n)
{
	char text[24];
	bool exact = n <= EXACT_MAX && n >= -EXACT_MAX;
	(void)snprintf(text, sizeof(text), "%lld", (long long)n);
	if (!exact && !w->big_as_string && !same_as_double(n, text))
		return err_set(
			w->err, ERR_INVALID_ARGUMENT, "the integer %s has no exact double", text);
	buf_printf(w->out, !exact && w->big_as_string ? "\"%s\"" : "%s", text);
	return 0;
}

/* --- objects: names by UTF-16 code units, RFC 8785 §3.2.3
 * --------------------------------------------- */

struct member {
	const char *key;
	size_t key_len;
	const json_t *value;
};

/* Order of two code points as UTF-16: a surrogate pair (first unit D800..DBFF) comes before
 * U+E000..U+FFFF. */
static int utf16_order(uint32_t a, uint32_t b)
{
	uint32_t first_a = a >= 0x10000 ? 0xD800 + ((a - 0x10000) >> 10) : a;
	uint32_t first_b = b >= 0x10000 ? 0xD800 + ((b - 0x10000) >> 10) : b;
	if (first_a != first_b)
		return first_a < first_b ? -1 : 1;
	return a < b ? -1 : a > b;
}

static int by_key(const void *x, const void *y)
{
	const struct member *a = x, *b = y;
	size_t i = 0, j = 0;
	while (i < a->key_len && j < b->key_len) {
		uint32_t ca = 0, cb = 0;
		i += utf8_decode(a->key + i, a->key_len - i, &ca);
		j += utf8_decode(b->key + j, b->key_len - j, &cb);
		if (ca != cb)
			return utf16_order(ca, cb);
	}
	return (i < a->key_len) - (j < b->key_len);
}

static int put_value(struct writer *w, const json_t *v, unsigned depth);

static int put_object(struct writer *w, const json_t *v, unsigned depth)
{
	size_t n = 0, count = json_object_size(v);
	_cleanup_free_ struct member *members = calloc(count + 1, sizeof(*members));
	if (!members)
		return err_oom(w->err);
	json_t *obj = (json_t *)(uintptr_t)v;
	for (void *it = json_object_iter(obj); it; it = json_object_iter_next(obj, it))
		members[n++] = (struct member){json_object_iter_key(it),
			json_object_iter_key_len(it), json_object_iter_value(it)};
	qsort(members, n, sizeof(*members), by_key);
	buf_putc(w->out, '{');
	for (size_t i = 0; i < n; i++) {
		if (i)
			buf_putc(w->out, ',');
		put_string(w->out, members[i].key, members[i].key_len);
		buf_putc(w->out, ':');
		int r = put_value(w, members[i].value, depth + 1);
		if (r < 0)
			return r;
	}
	buf_putc(w->out, '}');
	return 0;
}

static int put_array(struct writer *w, const json_t *v, unsigned depth)
{
	buf_putc(w->out, '[');
	for (size_t i = 0; i < json_array_size(v); i++) {
		if (i)
			buf_putc(w->out, ',');
		int r = put_value(w, json_array_get(v, i), depth + 1);
		if (r < 0)
			return r;
	}
	buf_putc(w->out, ']');
	return 0;
}

static int put_value(struct writer *w, const json_t *v, unsigned depth)
{
	if (depth > LIMIT_JSON_DEPTH)
		return err_set(w->err, ERR_LIMIT, "the value is nested more than %d deep",
			LIMIT_JSON_DEPTH);
	switch (json_typeof(v)) {
	case JSON_OBJECT: return put_object(w, v, depth);
	case JSON_ARRAY: return put_array(w, v, depth);
	case JSON_STRING: put_string(w->out, json_string_value(v), json_string_length(v)); return 0;
	case JSON_INTEGER: return put_integer(w, json_integer_value(v));
	case JSON_REAL: canonical_number(w->out, json_real_value(v)); return 0;
	case JSON_TRUE: buf_puts(w->out, "true"); return 0;
	case JSON_FALSE: buf_puts(w->out, "false"); return 0;
	case JSON_NULL: buf_puts(w->out, "null"); return 0;
	default: return err_set(w->err, ERR_INTERNAL, "a JSON value without a type");
	}
}

static int canonical(const json_t *v, bool big_as_string, struct buf *out, struct err *err)
{
	struct writer w = {.out = out, .err = err, .big_as_string = big_as_string};
	int r = put_value(&w, v, 0);
	return r < 0 ? r : buf_check(out, "the canonical form", err);
}

int json_canonical(const json_t *v, struct buf *out, struct err *err)
{
	return canonical(v, true, out, err);
}

int json_canonical_exact(const json_t *v, struct buf *out, struct err *err)
{
	return canonical(v, false, out, err);
}
