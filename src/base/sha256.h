/* SHA-256 (FIPS 180-4) over memory and descriptors, by libcrypto, which uses the CPU's
 * instructions. */
#ifndef CLOISTER_BASE_SHA256_H
#define CLOISTER_BASE_SHA256_H

#include "base/err.h"

#include <stdint.h>

enum { SHA256_LEN = 32, SHA256_HEX = 64 };

struct sha256 {
	uint8_t b[SHA256_LEN];
};

struct sha256_ctx;

/* Incremental form. sha256_finish() frees the context; sha256_abandon() frees it without an answer.
 */
struct sha256_ctx *sha256_start(void); /* NULL when out of memory */
void sha256_add(struct sha256_ctx *c, const void *p, size_t n);
void sha256_finish(struct sha256_ctx *c, struct sha256 *ret);
void sha256_abandon(struct sha256_ctx *c);

/* One call over memory. */
void sha256_of(const void *p, size_t n, struct sha256 *ret);

/* Over two pieces, one behind the other. Needs no memory, so it cannot fail. */
void sha256_of_two(const void *a, size_t na, const void *b, size_t nb, struct sha256 *ret);

/* Lower-case hexadecimal, NUL-terminated. */
void sha256_hex(const struct sha256 *h, char ret[SHA256_HEX + 1]);

/* Read 64 hexadecimal digits, either case; -1 on anything else. */
int sha256_parse(const char *text, size_t n, struct sha256 *ret);

#endif
