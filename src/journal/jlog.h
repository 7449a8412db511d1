/*
 * The log of a node: appending groups of records, in whichever process, durable on request.
 *
 * One log per state directory. Every core has a journal process of its own, and all of them append
 * to the same log: a group is written under an open-file-description lock, and whoever takes the
 * lock first reads what others have appended (its chain checked) and cuts what a dead one left half
 * written. So numbers are consecutive and there is one chain, whoever writes.
 *
 * Files in the directory: segments (jwalk.h), `public-key.pem`, `lock`. Byte 0 of the lock file is
 * the lock of writers; byte 1 + RUN is held as long as the writer RUN lives, which is how an intent
 * without an outcome is told from one that is being carried out.
 *
 * A group whose writing fails has not happened: the file is cut back. A failed sync, or a failed
 * cut, breaks the log for this process for good, since what the disk holds is then not known.
 */
#ifndef CLOISTER_JOURNAL_JLOG_H
#define CLOISTER_JOURNAL_JLOG_H

#include "journal/jwalk.h"

enum {
	JLOG_SEGMENT_BYTES = 16 * 1024 * 1024,
	JLOG_GROUP_RECORDS = 16384,
	JLOG_GROUP_BYTES = 32 * 1024 * 1024,
	JLOG_OPEN_MAX = 4096, /* intents without an outcome */
	JLOG_LOCK_MS = 10000, /* for another writer's group */
};

struct jlog_options {
	int dir_fd;            /* duplicated */
	struct jkey *key;      /* borrowed */
	uint64_t run;          /* names this writer: random, not 0 */
	int64_t segment_bytes; /* 0: JLOG_SEGMENT_BYTES */
	int (*sync)(int fd);   /* NULL: fdatasync(2) */
};

/* A place in the log that results carry: the head of the chain behind record `seq`. */
struct jposition {
	uint64_t seq; /* 0: the log has no record yet */
	char head[SHA256_HEX + 1];
};

/* An intent without an outcome. */
struct jopen {
	uint64_t seq, run;
	char call[65], session[129], tenant[129];
};

struct jlog;

/*
 * Open, or begin when there is none. Cuts a torn tail and says so in a record. That the last seal
 * is of this key is checked with the first group. Errors: ERR_CORRUPT (no segment has a seal),
 * ERR_BUSY, ERR_NO_SPACE, ERR_IO.
 */
int jlog_open(const struct jlog_options *opt, struct jlog **ret, struct err *err) _must_check_;
void jlog_free(struct jlog *l); /* accepts NULL */
DEFINE_CLEANUP(struct jlog *, jlog_free)

/* A group: begin, put, end. jlog_begin() takes the lock and catches up. */
int jlog_begin(struct jlog *l, struct err *err) _must_check_;
/* `seq` and `time` are the journal's to give. ERR_INVALID_ARGUMENT, ERR_LIMIT: this record is not
 * in the group. */
int jlog_put(
	struct jlog *l, const struct jrecord *r, uint64_t *ret_seq, struct err *err) _must_check_;
/* Seal, write, and with `sync` make durable. An error: nothing of the group is there (but see
 * above). A group without a record is none. */
int jlog_end(struct jlog *l, uint64_t upto, bool sync, struct err *err) _must_check_;

/* Behind the last group that this process has written or seen. */
void jlog_position(const struct jlog *l, struct jposition *ret);

/* Is the log broken for this process? The error that broke it, or NULL. */
const struct err *jlog_broken(const struct jlog *l);

/* Intents whose writer has ended without an outcome. Borrowed until the next call. */
unsigned jlog_abandoned(struct jlog *l, const struct jopen **ret);

#endif
