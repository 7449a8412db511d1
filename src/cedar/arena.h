/*
 * Memory that is given back all at once.
 *
 * Every object of the library lives in one arena, which therefore also is the place where its size
 * is limited. A pointer lives until ced_arena_done(), or until ced_arena_reset() for the arenas
 * that decisions work in.
 */
#ifndef CEDAR_ARENA_H
#define CEDAR_ARENA_H

#include "cedar/error.h"

struct ced_block;

struct ced_arena {
	struct ced_block *blocks; /* newest first */
	char *next, *end;         /* the free part of the newest block */
	size_t bytes, bytes_max;  /* taken from the system; limit */
	const char *limit_name;   /* the field of struct cedar_limits that the limit is */
	bool over_limit;          /* why the last failed allocation failed */
};

void ced_arena_init(struct ced_arena *a, size_t bytes_max, const char *limit_name);
void ced_arena_done(struct ced_arena *a);

/* Free everything but the largest block, which is used again. */
void ced_arena_reset(struct ced_arena *a);

/* Zeroed and aligned to 8 bytes; NULL when the limit or the system's memory ends. */
void *ced_arena_alloc(struct ced_arena *a, size_t n);
void *ced_arena_array(struct ced_arena *a, size_t count, size_t size);
void *ced_arena_copy(struct ced_arena *a, const void *p, size_t n);

/* The error for the NULL just returned. */
int ced_arena_fail(const struct ced_arena *a, struct cedar_error *err, struct ced_pos pos);
#ifdef CLOISTER_ANALYZED
#	define ced_arena_fail(...) ced_is_negative(ced_arena_fail(__VA_ARGS__))
#endif

#define ced_new(arena, type) ((type *)ced_arena_alloc((arena), sizeof(type)))
#define ced_new_array(arena, n, type) ((type *)ced_arena_array((arena), (n), sizeof(type)))

#endif
