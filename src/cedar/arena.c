/* Arenas: blocks that double up to a size, each allocation a bump of a pointer. Nothing that lives
 * in an arena needs more than eight bytes of alignment. */
#include "cedar/arena.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_BLOCK = 4096, LARGEST_BLOCK = 1 << 20, ALIGN = 8 };

struct ced_block {
	struct ced_block *older;
	size_t size; /* of `data` */
	_Alignas(ALIGN) char data[];
};

void ced_arena_init(struct ced_arena *a, size_t bytes_max, const char *limit_name)
{
	*a = (struct ced_arena){.bytes_max = bytes_max, .limit_name = limit_name};
}

static void free_blocks(struct ced_block *b)
{
	while (b) {
		struct ced_block *older = b->older;
		free(b);
		b = older;
	}
}

void ced_arena_done(struct ced_arena *a)
{
	free_blocks(a->blocks);
	ced_arena_init(a, a->bytes_max, a->limit_name);
}

void ced_arena_reset(struct ced_arena *a)
{
	struct ced_block *b = a->blocks;
	if (!b)
		return;
	/* The newest is the largest, except after one allocation of unusual size: good enough. */
	free_blocks(b->older);
	b->older = NULL;
	a->next = b->data;
	a->end = b->data + b->size;
	a->bytes = b->size;
}

static bool add_block(struct ced_arena *a, size_t n)
{
	size_t size = a->blocks ? a->blocks->size * 2 : FIRST_BLOCK;
	if (size > LARGEST_BLOCK)
		size = LARGEST_BLOCK;
	if (size < n)
		size = n;
	if (size > a->bytes_max - a->bytes)
		size = n;
	a->over_limit = size > a->bytes_max - a->bytes;
	if (a->over_limit)
		return false;
	struct ced_block *b = malloc(sizeof(*b) + size);
	if (!b)
		return false;
	b->older = a->blocks;
	b->size = size;
	a->blocks = b;
	a->next = b->data;
	a->end = b->data + size;
	a->bytes += size;
	return true;
}

static void *take(struct ced_arena *a, size_t n)
{
	if (n > SIZE_MAX - ALIGN) {
		a->over_limit = true;
		return NULL;
	}
	n = (n + ALIGN - 1) & ~(size_t)(ALIGN - 1);
	if (n > (size_t)(a->end - a->next) && !add_block(a, n))
		return NULL;
	void *p = a->next;
	a->next += n;
	return p;
}

void *ced_arena_alloc(struct ced_arena *a, size_t n)
{
	void *p = take(a, n ? n : 1);
	return p ? memset(p, 0, n) : NULL;
}

void *ced_arena_array(struct ced_arena *a, size_t count, size_t size)
{
	size_t n;
	if (__builtin_mul_overflow(count, size, &n)) {
		a->over_limit = true;
		return NULL;
	}
	return ced_arena_alloc(a, n);
}

void *ced_arena_copy(struct ced_arena *a, const void *p, size_t n)
{
	void *copy = take(a, n ? n : 1);
	if (copy && n)
		memcpy(copy, p, n);
	return copy;
}

#undef ced_arena_fail
int ced_arena_fail(const struct ced_arena *a, struct cedar_error *err, struct ced_pos pos)
{
	if (!a->over_limit)
		return ced_fail_memory(err);
	return ced_fail_limit(err, pos, a->limit_name, a->bytes_max);
}
