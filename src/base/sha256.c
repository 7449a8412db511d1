/* SHA-256 by libcrypto: see sha256.h. A failing digest of libcrypto is a broken installation, so a
 * BUG. */
#include "base/sha256.h"

#include <openssl/evp.h>
#include <openssl/sha.h>

struct sha256_ctx *sha256_start(void)
{
	EVP_MD_CTX *c = EVP_MD_CTX_new();
	if (!c)
		return NULL;
	BUG_ON(EVP_DigestInit_ex(c, EVP_sha256(), NULL) != 1);
	return (struct sha256_ctx *)c;
}

void sha256_add(struct sha256_ctx *c, const void *p, size_t n)
{
	BUG_ON(EVP_DigestUpdate((EVP_MD_CTX *)c, p, n) != 1);
}

void sha256_finish(struct sha256_ctx *c, struct sha256 *ret)
{
	BUG_ON(EVP_DigestFinal_ex((EVP_MD_CTX *)c, ret->b, NULL) != 1);
	EVP_MD_CTX_free((EVP_MD_CTX *)c);
}

void sha256_abandon(struct sha256_ctx *c)
{
	EVP_MD_CTX_free((EVP_MD_CTX *)c);
}

void sha256_of(const void *p, size_t n, struct sha256 *ret)
{
	(void)SHA256(p, n, ret->b);
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
