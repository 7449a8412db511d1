/*
 * A page that the journal writes and its core reads: where the log ends and whether it takes
 * records, so that the result of a read can say so without asking.
 *
 * A sequence lock: the version is odd while the position is being written.
 */
#ifndef CLOISTER_DAEMON_JOURNAL_PAGE_H
#define CLOISTER_DAEMON_JOURNAL_PAGE_H

#include "journal/jlog.h"

#include <stdatomic.h>

enum { JOURNAL_PAGE_BYTES = 4096 };

struct journal_page {
	_Atomic uint32_t version;
	_Atomic uint32_t refuses; /* enum err_code: why no record is taken now; 0: they are */
	_Atomic uint64_t seq;
	_Atomic uint64_t head[SHA256_HEX / 8];
};

static inline void journal_page_put(struct journal_page *p, const struct jposition *at)
{
	uint64_t words[SHA256_HEX / 8];
	memcpy(words, at->head, sizeof(words));
	atomic_fetch_add(&p->version, 1);
	atomic_store(&p->seq, at->seq);
	for (unsigned i = 0; i < ARRAY_LEN(words); i++)
		atomic_store_explicit(&p->head[i], words[i], memory_order_relaxed);
	atomic_fetch_add(&p->version, 1);
}

/* false: it is being written; *ret is undefined. */
static inline bool journal_page_get(struct journal_page *p, struct jposition *ret)
{
	uint64_t words[SHA256_HEX / 8];
	uint32_t before = atomic_load(&p->version);
	ret->seq = atomic_load(&p->seq);
	for (unsigned i = 0; i < ARRAY_LEN(words); i++)
		words[i] = atomic_load_explicit(&p->head[i], memory_order_relaxed);
	atomic_thread_fence(memory_order_acquire);
	memcpy(ret->head, words, sizeof(words));
	ret->head[SHA256_HEX] = '\0';
	return !(before & 1) && atomic_load(&p->version) == before;
}

#endif
