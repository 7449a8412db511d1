/* UTF-8 (RFC 3629): no overlong forms, no surrogates, nothing over U+10FFFF. */
#ifndef CEDAR_UTF8_H
#define CEDAR_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* The bytes of the longest valid beginning: `n` when all is valid. */
size_t ced_utf8_valid(const char *p, size_t n);

/* The character that begins at valid `p`, and its length. */
uint32_t ced_utf8_decode(const char *p, size_t *ret_length);

/* Write a character (not a surrogate, at most U+10FFFF): up to 4 bytes, returns how many. */
size_t ced_utf8_encode(uint32_t c, char *to);

/* Characters in valid text. */
uint32_t ced_utf8_count(const char *p, size_t n);

/* The value of a hexadecimal digit, -1: it is none. */
int ced_hex_digit(char c);

#endif
