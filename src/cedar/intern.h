/*
 * Names: every string of policies and data, hashed once.
 *
 * A name is a counted string with its hash. Within one table equal strings are one pointer; between
 * tables (policies against entities, say) equality is the hash, the length and the bytes, so that
 * no table is shared and nothing is locked. The hash is keyed per process, so that nobody can
 * choose strings that collide.
 */
#ifndef CEDAR_INTERN_H
#define CEDAR_INTERN_H

#include "cedar/arena.h"

#include <string.h>

struct ced_name {
	uint32_t hash, length;
	char text[]; /* `length` bytes and a NUL; may contain NULs */
};

struct ced_names {
	struct ced_arena *arena; /* where the names are */
	const struct ced_name **table;
	uint32_t capacity, count;
};

void ced_names_init(struct ced_names *names, struct ced_arena *arena);
/* Release the table; the names stay in their arena. */
void ced_names_done(struct ced_names *names);

/* NULL: as ced_arena_alloc(). */
const struct ced_name *ced_intern(struct ced_names *names, const char *p, size_t n);
const struct ced_name *ced_intern_text(struct ced_names *names, const char *text);

/* A name of its own without a table, for what is looked up once. */
const struct ced_name *ced_name_make(struct ced_arena *arena, const char *p, size_t n);

uint32_t ced_hash(const char *p, size_t n);
/* Mix two hashes. */
static inline uint32_t ced_hash_pair(uint32_t a, uint32_t b)
{
	uint64_t x = ((uint64_t)a << 32 | b) * 0x9e3779b97f4a7c15u;
	return (uint32_t)(x >> 32) ^ (uint32_t)x;
}

static inline bool ced_name_eq(const struct ced_name *a, const struct ced_name *b)
{
	return a == b || (a->hash == b->hash && a->length == b->length &&
				 memcmp(a->text, b->text, a->length) == 0);
}

static inline bool ced_name_is(const struct ced_name *a, const char *text)
{
	return strlen(text) == a->length && memcmp(a->text, text, a->length) == 0;
}

/* By bytes, the order in which everything is printed. */
int ced_name_cmp(const struct ced_name *a, const struct ced_name *b);

#endif
