/*
 * The port to the journal: who writes the records of calls.
 *
 * The pipeline sees this port only; behind it (daemon/journal_client.h) is a process that holds the
 * log and the key. A record that is added is on its way and not waited for; a record that is
 * committed is in the log when the call returns, and with `durable` on the disk. Records keep their
 * order. All functions are used from one thread.
 *
 * When the journal cannot take records (disk full, failed sync, its process gone) both refuse, and
 * what they were to record must not happen.
 */
#ifndef CLOISTER_JOURNAL_JOURNAL_H
#define CLOISTER_JOURNAL_JOURNAL_H

#include "journal/jlog.h"

enum { JOURNAL_ABANDONED_MAX = 256 };

struct journal;

struct journal_ops {
	int (*add)(struct journal *j, const struct jrecord *r, struct err *err);
	int (*commit)(struct journal *j, const struct jrecord *r, bool durable, struct err *err);
	void (*flush)(struct journal *j);
	int (*position)(struct journal *j, struct jposition *ret, struct err *err);
};

struct journal {
	const struct journal_ops *ops;
	/* Intents whose writer ended without saying what became of them, found at the start.
	 * Whoever opens their session says it. Known once position() has answered. */
	struct jopen abandoned[JOURNAL_ABANDONED_MAX];
	unsigned n_abandoned;
};

/* ERR_NO_SPACE, ERR_IO, ERR_CORRUPT, ERR_UNAVAILABLE: the journal takes no records.
 * ERR_INVALID_ARGUMENT, ERR_LIMIT: not this one. */
static inline int _must_check_ journal_add(
	struct journal *j, const struct jrecord *r, struct err *err)
{
	return j->ops->add(j, r, err);
}

static inline int _must_check_ journal_commit(
	struct journal *j, const struct jrecord *r, bool durable, struct err *err)
{
	return j->ops->commit(j, r, durable, err);
}

/* Send what was added. A door calls it before it waits for its clients. */
static inline void journal_flush(struct journal *j)
{
	if (j)
		j->ops->flush(j);
}

/* A place in the log that is there for good: at least behind what was committed last. Waits only
 * until the journal has started. */
static inline int _must_check_ journal_position(
	struct journal *j, struct jposition *ret, struct err *err)
{
	return j->ops->position(j, ret, err);
}

/* Take an abandoned intent of a session out of the list; false: there is none. */
bool journal_take_abandoned(
	struct journal *j, const char *tenant, const char *session, struct jopen *ret);

#endif
