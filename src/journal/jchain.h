/*
 * The hash chain over the lines of the log: head' = SHA-256(head in hexadecimal, the line with its
 * newline). The first head is 64 zeros.
 *
 * Hexadecimal, so that `printf '%s%s\n' "$head" "$line" | sha256sum` does the same.
 */
#ifndef CLOISTER_JOURNAL_JCHAIN_H
#define CLOISTER_JOURNAL_JCHAIN_H

#include "base/sha256.h"
#include "base/text.h"

struct jchain {
	char head[SHA256_HEX + 1];
};

void jchain_init(struct jchain *c);

/* Go on from a head: 64 digits in lower case. -1: it is not that. */
int jchain_set(struct jchain *c, struct str head);

/* `line` with its newline. */
void jchain_add(struct jchain *c, const char *line, size_t n);

#endif
