/* UTF-8: validating, one character either way. */
#include "cedar/utf8.h"

#include <string.h>

/* The length that a first byte announces, and the range of the byte after it; 0: not a first byte.
 * (Unicode, table 3-7.) */
static size_t sequence(unsigned char first, unsigned char *low, unsigned char *high)
{
	*low = 0x80;
	*high = 0xbf;
	if (first < 0x80)
		return 1;
	if (first < 0xc2 || first > 0xf4)
		return 0;
	if (first < 0xe0)
		return 2;
	if (first == 0xe0)
		*low = 0xa0;
	if (first == 0xed)
		*high = 0x9f;
	if (first == 0xf0)
		*low = 0x90;
	if (first == 0xf4)
		*high = 0x8f;
	return first < 0xf0 ? 3 : 4;
}

/* From `i` over whole words of ASCII, which most text is. */
static size_t skip_ascii(const char *p, size_t i, size_t n)
{
	uint64_t word;
	for (; n - i >= sizeof(word); i += sizeof(word)) {
		memcpy(&word, p + i, sizeof(word));
		if (word & UINT64_C(0x8080808080808080))
			break;
	}
	return i;
}

size_t ced_utf8_valid(const char *p, size_t n)
{
	size_t i = 0;
	while ((i = skip_ascii(p, i, n)) < n) {
		unsigned char low, high;
		size_t length = sequence((unsigned char)p[i], &low, &high);
		if (!length || length > n - i)
			return i;
		for (size_t k = 1; k < length; k++) {
			unsigned char c = (unsigned char)p[i + k];
			if (c < low || c > high)
				return i;
			low = 0x80;
			high = 0xbf;
		}
		i += length;
	}
	return n;
}

uint32_t ced_utf8_decode(const char *p, size_t *ret_length)
{
	unsigned char low, high, first = (unsigned char)p[0];
	size_t length = sequence(first, &low, &high);
	uint32_t c = length < 2 ? first : first & (0x7fu >> length);
	for (size_t k = 1; k < length; k++)
		c = c << 6 | ((unsigned char)p[k] & 0x3f);
	*ret_length = length ? length : 1;
	return c;
}

size_t ced_utf8_encode(uint32_t c, char *to)
{
	if (c < 0x80) {
		to[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		to[0] = (char)(0xc0 | c >> 6);
		to[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		to[0] = (char)(0xe0 | c >> 12);
		to[1] = (char)(0x80 | (c >> 6 & 0x3f));
		to[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	to[0] = (char)(0xf0 | c >> 18);
	to[1] = (char)(0x80 | (c >> 12 & 0x3f));
	to[2] = (char)(0x80 | (c >> 6 & 0x3f));
	to[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}

uint32_t ced_utf8_count(const char *p, size_t n)
{
	uint32_t count = 0;
	for (size_t i = 0; i < n; i++)
		count += ((unsigned char)p[i] & 0xc0) != 0x80;
	return count;
}

int ced_hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}
