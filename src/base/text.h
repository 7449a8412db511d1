/*
 * Text as bytes with a length: views, UTF-8 (RFC 3629), reversible names.
 *
 * A `struct view`-like pair is called `struct str` here; it borrows and never owns.
 */
#ifndef CLOISTER_BASE_TEXT_H
#define CLOISTER_BASE_TEXT_H

#include "base/buf.h"

#include <string.h>

/* Borrowed bytes. `p` need not be NUL-terminated. */
struct str {
	const char *p;
	size_t n;
};

#define STR(lit) ((struct str){(lit), sizeof(lit) - 1})

static inline struct str str_of(const char *s)
{
	return (struct str){s, s ? strlen(s) : 0};
}

static inline bool str_eq(struct str a, struct str b)
{
	return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static inline bool str_eq_c(struct str a, const char *b)
{
	return str_eq(a, str_of(b));
}

static inline bool str_starts(struct str s, struct str prefix)
{
	return s.n >= prefix.n && memcmp(s.p, prefix.p, prefix.n) == 0;
}

static inline bool str_ends(struct str s, struct str suffix)
{
	return s.n >= suffix.n && memcmp(s.p + (s.n - suffix.n), suffix.p, suffix.n) == 0;
}

/* Is it well-formed UTF-8? No surrogates, no overlong forms, nothing past U+10FFFF. NUL is allowed.
 */
bool utf8_valid(const char *p, size_t n);

/* Offset of the first byte that is not well-formed UTF-8; `n` when all is. */
size_t utf8_error_at(const char *p, size_t n);

/* Decode one character: its length in bytes (1..4) with *ret set, or 0 when the bytes at p are not
 * well-formed. */
unsigned utf8_decode(const char *p, size_t n, uint32_t *ret);

/* Append the UTF-8 form of a scalar value (BUG on surrogates and above 10FFFF). */
void utf8_put(struct buf *b, uint32_t c);

/* The largest length <= n that does not end inside a character (for well-formed text cut at n). */
size_t utf8_floor(const char *p, size_t n);

/*
 * File names are bytes; in JSON, policy and records they are text. name_escape() is reversible:
 * well-formed UTF-8 stays, except that a backslash is doubled; any other byte becomes \xHH
 * (lower-case). name_unescape() refuses (false) any other escape and a \xHH that stands for a byte
 * that would not have been escaped, so a name has exactly one spelling.
 */
void name_escape(struct buf *b, struct str name);
bool name_unescape(struct buf *b, struct str text);

/*
 * For people's eyes: append `text` with control, bidirectional, invisible and malformed characters
 * made visible as \xHH or \u{HEX}, so that it cannot move a cursor or hide what it says. Newline
 * and tab stay when `keep_lines` is set. (Unicode 15: Cc, Cf, Zl, Zp, and U+2800, U+3164, U+FFA0,
 * U+115F, U+1160.)
 */
void text_show(struct buf *b, struct str text, bool keep_lines);

#endif
