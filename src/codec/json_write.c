/* Writing JSON text straight into a buffer: see json_write.h. Pure. */
#include "codec/json_write.h"

/* What the escape of a byte is: 0 as it is, 'u' \u00XX, else the letter after the backslash. */
static const char escapes[256] = {
	['"'] = '"',
	['\\'] = '\\',
	['\b'] = 'b',
	['\f'] = 'f',
	['\n'] = 'n',
	['\r'] = 'r',
	['\t'] = 't',
	[0x00] = 'u',
	[0x01] = 'u',
	[0x02] = 'u',
	[0x03] = 'u',
	[0x04] = 'u',
	[0x05] = 'u',
	[0x06] = 'u',
	[0x07] = 'u',
	[0x0b] = 'u',
	[0x0e] = 'u',
	[0x0f] = 'u',
	[0x10] = 'u',
	[0x11] = 'u',
	[0x12] = 'u',
	[0x13] = 'u',
	[0x14] = 'u',
	[0x15] = 'u',
	[0x16] = 'u',
	[0x17] = 'u',
	[0x18] = 'u',
	[0x19] = 'u',
	[0x1a] = 'u',
	[0x1b] = 'u',
	[0x1c] = 'u',
	[0x1d] = 'u',
	[0x1e] = 'u',
	[0x1f] = 'u',
};

/* In each byte of w: the high bit is set where the byte is below 0x20, a quote or a backslash
 * (exact for the lowest such byte). */
static uint64_t needs_escape(uint64_t w)
{
	const uint64_t ones = 0x0101010101010101u, high = 0x8080808080808080u;
	uint64_t quote = w ^ (ones * '"'), slash = w ^ (ones * '\\');
	return (((w - ones * 0x20) & ~w) | ((quote - ones) & ~quote) | ((slash - ones) & ~slash)) &
	       high;
}

/* Length of the run that needs no escape: eight bytes at a time. */
static size_t plain_run(const char *p, size_t n)
{
	size_t i = 0;
	uint64_t w;
	for (; n - i >= sizeof(w); i += sizeof(w)) {
		memcpy(&w, p + i, sizeof(w));
		uint64_t hit = needs_escape(w);
		if (hit)
			return i + (size_t)__builtin_ctzll(hit) / 8;
	}
	while (i < n && !escapes[(unsigned char)p[i]])
		i++;
	return i;
}

static void put_escape(struct buf *b, unsigned char c)
{
	static const char hex[] = "0123456789abcdef";
	char out[6] = {'\\', escapes[c], '0', '0', hex[c >> 4], hex[c & 15]};
	buf_put(b, out, escapes[c] == 'u' ? 6 : 2);
}

void jw_escaped(struct buf *b, struct str s)
{
	size_t i = 0;
	while (i < s.n) {
		size_t run = plain_run(s.p + i, s.n - i);
		buf_put(b, s.p + i, run);
		i += run;
		if (i < s.n)
			put_escape(b, (unsigned char)s.p[i++]);
	}
}

void jw_string(struct buf *b, struct str s)
{
	buf_putc(b, '"');
	jw_escaped(b, s);
	buf_putc(b, '"');
}

void jw_comma(struct buf *b)
{
	char last = b->len ? b->data[b->len - 1] : '{';
	if (last != '{' && last != '[' && last != ':')
		buf_putc(b, ',');
}

void jw_open(struct buf *b, char bracket)
{
	if (b->len)
		jw_comma(b);
	buf_putc(b, bracket);
}

void jw_close(struct buf *b, char bracket)
{
	buf_putc(b, bracket);
}

void jw_key(struct buf *b, const char *key)
{
	jw_comma(b);
	buf_putc(b, '"');
	buf_puts(b, key);
	buf_put(b, "\":", 2);
}

void jw_str(struct buf *b, const char *key, struct str value)
{
	jw_key(b, key);
	jw_string(b, value);
}

void jw_cstr(struct buf *b, const char *key, const char *value)
{
	jw_str(b, key, str_of(value));
}

/* Decimal digits without printf, which costs more than the rest of a small answer. */
static void put_int(struct buf *b, int64_t value)
{
	char digits[20];
	unsigned n = 0;
	uint64_t u = value < 0 ? (uint64_t)0 - (uint64_t)value : (uint64_t)value;
	do
		digits[sizeof(digits) - ++n] = (char)('0' + u % 10);
	while ((u /= 10) != 0);
	if (value < 0)
		buf_putc(b, '-');
	buf_put(b, digits + sizeof(digits) - n, n);
}

void jw_int(struct buf *b, const char *key, int64_t value)
{
	jw_key(b, key);
	put_int(b, value);
}

void jw_bool(struct buf *b, const char *key, bool value)
{
	jw_key(b, key);
	buf_puts(b, value ? "true" : "false");
}

void jw_null(struct buf *b, const char *key)
{
	jw_key(b, key);
	buf_puts(b, "null");
}

void jw_raw(struct buf *b, const char *key, struct str json)
{
	jw_key(b, key);
	buf_put(b, json.p, json.n);
}

void jw_name(struct buf *b, const char *key, struct str name)
{
	jw_key(b, key);
	/* Most names are plain UTF-8 without a backslash and need no second buffer. */
	if (utf8_valid(name.p, name.n) && !memchr(name.p, '\\', name.n)) {
		jw_string(b, name);
		return;
	}
	_cleanup_buf_ struct buf text = buf_init(name.n * 4 + 1);
	name_escape(&text, name);
	jw_string(b, (struct str){buf_str(&text), text.len});
}

void jw_elem_str(struct buf *b, struct str value)
{
	jw_comma(b);
	jw_string(b, value);
}

void jw_elem_int(struct buf *b, int64_t value)
{
	jw_comma(b);
	put_int(b, value);
}
