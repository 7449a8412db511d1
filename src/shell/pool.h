/* Memory that is given back all at once: zeroed pieces, at most `max` bytes together. */
#ifndef CLOISTER_SHELL_POOL_H
#define CLOISTER_SHELL_POOL_H

#include <stddef.h>

struct sh_pool {
	struct sh_block *blocks; /* the newest first */
	size_t left;             /* free bytes at the end of the newest */
	size_t used, max;
};

/* Zeroed memory aligned for any type, or NULL when the limit or the machine says no. */
void *sh_pool_get(struct sh_pool *pool, size_t size);
void sh_pool_done(struct sh_pool *pool);

#endif
