/*
 * The store of a workspace: a directory on the same mount that holds what only Cloister may touch.
 *
 *   lock     open-file-description locks: byte 0 the writer, byte 1 shared by every user
 *   state    one page, mapped by every user: counts, sequence numbers, what is being published
 *   redo     the intents of commits (redo.h)
 *   history  the records of finished commits (record.h), oldest first
 *   saved/   inodes that commits replaced or deleted, and content just before it takes their place
 *   staged/  content of calls under way, where it needs a name; emptied by the first user
 *
 * The page is shared memory between processes that trust each other; every value that is used as an
 * offset or index is checked against the file it points into. Under one boot of the kernel the page
 * survives any kill -9 exactly; after a reboot it may be older than the files, which the boot id in
 * it shows.
 */
#ifndef CLOISTER_WORKSPACE_STORE_H
#define CLOISTER_WORKSPACE_STORE_H

#include "base/err.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { STORE_BOOT_ID = 36, STORE_PAGE = 4096 };

enum store_direction { STORE_FORWARD = 0, STORE_BACK = 1 };

struct store_state {
	uint64_t magic;
	uint32_t version;
	_Atomic uint32_t counted;    /* usage below is known */
	_Atomic uint32_t base_known; /* so is the usage at first open */
	_Atomic uint32_t clean;      /* closed in order, nothing of it only in memory */
	char boot[STORE_BOOT_ID + 4];

	/* seq of the change set that is being published, and of the last that is; equal at rest. */
	_Atomic uint64_t intent, done;
	_Atomic uint32_t progress;  /* operations of the intent that are certainly published */
	_Atomic uint32_t direction; /* enum store_direction: how the intent is being ended */

	/* While content is being prepared: seq and number of steps of what may leave names behind.
	 */
	_Atomic uint64_t preparing;
	_Atomic uint32_t preparing_steps;

	_Atomic int64_t bytes, entries;           /* usage */
	_Atomic int64_t base_bytes, base_entries; /* usage at first open, for quota_is_growth */

	_Atomic uint64_t log_generation; /* records of other generations in `redo` are old */
	_Atomic uint64_t log_start;      /* where the intent's record starts */
	_Atomic uint64_t log_end;        /* where the next record goes */
	_Atomic uint64_t log_unsynced;   /* effects that only the log makes durable */

	_Atomic uint64_t history_start, history_end; /* live part of `history` */
	_Atomic int64_t history_bytes;               /* what the records and what they keep cost */
	_Atomic int64_t history_oldest;              /* seq of the oldest live record */
	/* The oldest record is being forgotten: the values that start and bytes will have. */
	_Atomic uint64_t forget_to;
	_Atomic int64_t forget_bytes;

	/* Records up to this one are of files of which these are copies (history_is_of_copy()). */
	_Atomic uint64_t copied_upto;
};

struct store {
	int dir_fd, lock_fd, state_fd, log_fd, history_fd;
	struct store_state *st;
	pthread_mutex_t
		mutex; /* orders the threads of this process; the file lock orders processes */
	bool first;    /* nobody else had the store open when it was opened */
	bool power;    /* somebody in this process asked for DURABLE_POWER */
};

/* Open or create the store in a directory (duplicated). ERR_CORRUPT when what is there was not made
 * by this user's Cloister. */
int store_open(struct store *s, int dir_fd, struct err *err) _must_check_;
void store_done(struct store *s);

/* A subdirectory of a store, made when missing, 0700, ours. */
int store_subdir(int dir_fd, const char *name, int *ret_fd, struct err *err) _must_check_;

/* Take and give back the writer's lock. ERR_BUSY after wait_ms. */
int store_lock(struct store *s, unsigned wait_ms, struct err *err) _must_check_;
void store_unlock(struct store *s);

/* Is no commit in the middle of publishing? */
static inline bool store_at_rest(const struct store *s)
{
	return atomic_load_explicit(&s->st->intent, memory_order_acquire) ==
	       atomic_load_explicit(&s->st->done, memory_order_acquire);
}

/* Was the page written under this boot of the kernel? */
bool store_same_boot(const struct store *s);
void store_set_boot(struct store *s);

#endif
