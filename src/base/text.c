/* Text as bytes with a length: see text.h. Pure. */
#include "base/text.h"

unsigned utf8_decode(const char *s, size_t n, uint32_t *ret)
{
	const unsigned char *p = (const unsigned char *)s;
	uint32_t c, min;
	unsigned len;
	if (n == 0)
		return 0;
	if (p[0] < 0x80) {
		*ret = p[0];
		return 1;
	}
	if (p[0] >= 0xC2 && p[0] <= 0xDF)
		len = 2, c = p[0] & 0x1F, min = 0x80;
	else if (p[0] >= 0xE0 && p[0] <= 0xEF)
		len = 3, c = p[0] & 0x0F, min = 0x800;
	else if (p[0] >= 0xF0 && p[0] <= 0xF4)
		len = 4, c = p[0] & 0x07, min = 0x10000;
	else
		return 0;
	if (n < len)
		return 0;
	for (unsigned i = 1; i < len; i++) {
		if ((p[i] & 0xC0) != 0x80)
			return 0;
		c = c << 6 | (p[i] & 0x3F);
	}
	if (c < min || c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF))
		return 0;
	*ret = c;
	return len;
}

/* Length of the run of ASCII bytes at p: eight at a time, since most text is ASCII. */
static size_t ascii_run(const char *p, size_t n)
{
	size_t i = 0;
	uint64_t w;
	for (; n - i >= sizeof(w); i += sizeof(w)) {
		memcpy(&w, p + i, sizeof(w));
		if (w & 0x8080808080808080u)
			break;
	}
	while (i < n && (unsigned char)p[i] < 0x80)
		i++;
	return i;
}

size_t utf8_error_at(const char *p, size_t n)
{
	size_t i = 0;
	uint32_t c;
	while (i < n) {
		i += ascii_run(p + i, n - i);
		if (i == n)
			break;
		unsigned len = utf8_decode(p + i, n - i, &c);
		if (len == 0)
			return i;
		i += len;
	}
	return n;
}

bool utf8_valid(const char *p, size_t n)
{
	return utf8_error_at(p, n) == n;
}

void utf8_put(struct buf *b, uint32_t c)
{
	char out[4];
	BUG_ON(c > 0x10FFFF);
	BUG_ON(c >= 0xD800 && c <= 0xDFFF);
	if (c < 0x80) {
		buf_putc(b, (char)c);
	} else if (c < 0x800) {
		out[0] = (char)(0xC0 | c >> 6), out[1] = (char)(0x80 | (c & 0x3F));
		buf_put(b, out, 2);
	} else if (c < 0x10000) {
		out[0] = (char)(0xE0 | c >> 12), out[1] = (char)(0x80 | (c >> 6 & 0x3F));
		out[2] = (char)(0x80 | (c & 0x3F));
		buf_put(b, out, 3);
	} else {
		out[0] = (char)(0xF0 | c >> 18), out[1] = (char)(0x80 | (c >> 12 & 0x3F));
		out[2] = (char)(0x80 | (c >> 6 & 0x3F)), out[3] = (char)(0x80 | (c & 0x3F));
		buf_put(b, out, 4);
	}
}

size_t utf8_floor(const char *p, size_t n)
{
	for (size_t back = 1; back <= 4 && back <= n; back++) {
		unsigned char lead = (unsigned char)p[n - back];
		if ((lead & 0xC0) == 0x80)
			continue;
		size_t want = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
		return want > back ? n - back : n;
	}
	return n;
}

void name_escape(struct buf *b, struct str name)
{
	size_t i = 0;
	uint32_t c;
	while (i < name.n) {
		unsigned len = utf8_decode(name.p + i, name.n - i, &c);
		if (len == 0) {
			buf_printf(b, "\\x%02x", (unsigned char)name.p[i]);
			len = 1;
		} else if (c == '\\') {
			buf_puts(b, "\\\\");
		} else {
			buf_put(b, name.p + i, len);
		}
		i += len;
	}
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool name_unescape(struct buf *b, struct str text)
{
	size_t start = b->len;
	if (text.n == 0 || !memchr(text.p, '\\', text.n)) {
		if (text.n)
			buf_put(b, text.p, text.n);
		return !b->failed && utf8_valid(text.p, text.n);
	}
	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] != '\\') {
			buf_putc(b, text.p[i]);
		} else if (text.n - i >= 2 && text.p[i + 1] == '\\') {
			buf_putc(b, '\\');
			i += 1;
		} else if (text.n - i >= 4 && text.p[i + 1] == 'x' &&
			   hex_digit(text.p[i + 2]) >= 0 && hex_digit(text.p[i + 3]) >= 0) {
			buf_putc(b,
				(char)(hex_digit(text.p[i + 2]) * 16 + hex_digit(text.p[i + 3])));
			i += 3;
		} else {
			return false;
		}
	}
	/* One spelling per name: escaping the result again must give the text back. */
	_cleanup_buf_ struct buf again = buf_init(text.n + 1);
	if (b->failed)
		return false;
	name_escape(&again, (struct str){buf_str(b) + start, b->len - start});
	if (again.no_memory)
		b->failed = b->no_memory = true;
	return !again.failed && str_eq((struct str){buf_str(&again), again.len}, text);
}

struct range {
	uint32_t first, last;
};

/* Characters that move, reorder or hide: Unicode 15 Cc, Cf, Zl, Zp and the blank letters. */
static const struct range unseen[] = {
	{0x00, 0x1F},
	{0x7F, 0x9F},
	{0xAD, 0xAD},
	{0x34F, 0x34F},
	{0x600, 0x605},
	{0x61C, 0x61C},
	{0x6DD, 0x6DD},
	{0x70F, 0x70F},
	{0x890, 0x891},
	{0x8E2, 0x8E2},
	{0x115F, 0x1160},
	{0x17B4, 0x17B5},
	{0x180B, 0x180F},
	{0x200B, 0x200F},
	{0x2028, 0x202E},
	{0x2060, 0x206F},
	{0x2800, 0x2800},
	{0x3164, 0x3164},
	{0xFE00, 0xFE0F},
	{0xFEFF, 0xFEFF},
	{0xFFA0, 0xFFA0},
	{0xFFF0, 0xFFFB},
	{0x110BD, 0x110BD},
	{0x110CD, 0x110CD},
	{0x13430, 0x1343F},
	{0x1BCA0, 0x1BCA3},
	{0x1D173, 0x1D17A},
	{0xE0000, 0xE0FFF},
};

static bool is_unseen(uint32_t c)
{
	for (size_t i = 0; i < ARRAY_LEN(unseen); i++)
		if (c >= unseen[i].first && c <= unseen[i].last)
			return true;
	return false;
}

void text_show(struct buf *b, struct str text, bool keep_lines)
{
	size_t i = 0;
	uint32_t c;
	while (i < text.n) {
		unsigned len = utf8_decode(text.p + i, text.n - i, &c);
		if (len == 0) {
			buf_printf(b, "\\x%02x", (unsigned char)text.p[i]);
			i++;
			continue;
		}
		if (keep_lines && (c == '\n' || c == '\t'))
			buf_put(b, text.p + i, len);
		else if (!is_unseen(c))
			buf_put(b, text.p + i, len);
		else if (c < 0x80)
			buf_printf(b, "\\x%02x", c);
		else
			buf_printf(b, "\\u{%x}", c);
		i += len;
	}
}
