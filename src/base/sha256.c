/*
 * SHA-256 by libcrypto: see sha256.h.
 *
 * This is the low-level interface on purpose. The provider machinery behind EVP costs 2 ms when it
 * is first used and, linked statically, all of libcrypto; the first answer of a command-line
 * process is due within 5 ms. The code that runs is the same assembler with the processor's SHA
 * instructions.
 */
#define OPENSSL_API_COMPAT 10100
#include "base/sha256.h"

#include <openssl/sha.h>

struct sha256_ctx {
	SHA256_CTX c;
};

struct sha256_ctx *sha256_start(void)
{
	struct sha256_ctx *ctx = malloc(sizeof(*ctx));
	if (ctx)
		(void)SHA256_Init(&ctx->c);
	return ctx;
}

void sha256_add(struct sha256_ctx *ctx, const void *p, size_t n)
{
	(void)SHA256_Update(&ctx->c, p, n);
}

void sha256_finish(struct sha256_ctx *ctx, struct sha256 *ret)
{
	(void)SHA256_Final(ret->b, &ctx->c);
	free(ctx);
}

void sha256_abandon(struct sha256_ctx *ctx)
{
	free(ctx);
}

void sha256_of_two(const void *a, size_t na, const void *b, size_t nb, struct sha256 *ret)
{
	SHA256_CTX c;
	(void)SHA256_Init(&c);
	(void)SHA256_Update(&c, a, na);
	(void)SHA256_Update(&c, b, nb);
	(void)SHA256_Final(ret->b, &c);
}

void sha256_of(const void *p, size_t n, struct sha256 *ret)
{
	sha256_of_two(p, n, "", 0, ret);
}

void sha256_hex(const struct sha256 *h, char ret[SHA256_HEX + 1])
{
	static const char digits[] = "0123456789abcdef";
	for (unsigned i = 0; i < SHA256_LEN; i++) {
		ret[2 * i] = digits[h->b[i] >> 4];
		ret[2 * i + 1] = digits[h->b[i] & 15];
	}
	ret[SHA256_HEX] = '\0';
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

int sha256_parse(const char *text, size_t n, struct sha256 *ret)
{
	struct sha256 h;
	if (n != SHA256_HEX)
		return -1;
	for (unsigned i = 0; i < SHA256_LEN; i++) {
		int hi = digit(text[2 * i]), lo = digit(text[2 * i + 1]);
		if (hi < 0 || lo < 0)
			return -1;
		h.b[i] = (uint8_t)(hi << 4 | lo);
	}
	*ret = h;
	return 0;
}
