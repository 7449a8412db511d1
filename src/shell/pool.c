/* Blocks double up to a bound, so that a one-line command costs one small allocation. */
#include "shell/pool.h"

#include "base/attr.h"

#include <stdalign.h>

enum { BLOCK_MIN = 4096, BLOCK_MAX = 256 * 1024 };

struct sh_block {
	struct sh_block *older;
	size_t size;
	alignas(max_align_t) char data[];
};

void *sh_pool_get(struct sh_pool *pool, size_t size)
{
	if (size > pool->max - sizeof(struct sh_block))
		return NULL;
	size = (size + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
	if (size > pool->left) {
		size_t want = pool->blocks ? MIN(pool->blocks->size * 2, (size_t)BLOCK_MAX)
					   : (size_t)BLOCK_MIN;
		want = MAX(want, size);
		if (want > pool->max - pool->used)
			return NULL;
		struct sh_block *b = calloc(1, sizeof(*b) + want);
		if (!b)
			return NULL;
		*b = (struct sh_block){.older = pool->blocks, .size = want};
		pool->blocks = b;
		pool->left = want;
		pool->used += want;
	}
	char *p = pool->blocks->data + (pool->blocks->size - pool->left);
	pool->left -= size;
	return p;
}

void sh_pool_done(struct sh_pool *pool)
{
	for (struct sh_block *b = pool->blocks, *older; b; b = older) {
		older = b->older;
		free(b);
	}
	*pool = (struct sh_pool){.max = pool->max};
}
