/* The hash chain of the log: see jchain.h. */
#include "journal/jchain.h"

void jchain_init(struct jchain *c)
{
	memset(c->head, '0', SHA256_HEX);
	c->head[SHA256_HEX] = '\0';
}

int jchain_set(struct jchain *c, struct str head)
{
	if (head.n != SHA256_HEX)
		return -1;
	for (size_t i = 0; i < head.n; i++)
		if (!((head.p[i] >= '0' && head.p[i] <= '9') ||
			    (head.p[i] >= 'a' && head.p[i] <= 'f')))
			return -1;
	memcpy(c->head, head.p, SHA256_HEX);
	c->head[SHA256_HEX] = '\0';
	return 0;
}

void jchain_add(struct jchain *c, const char *line, size_t n)
{
	struct sha256 h;
	sha256_of_two(c->head, SHA256_HEX, line, n, &h);
	sha256_hex(&h, c->head);
}
