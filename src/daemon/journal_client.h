/*
 * Core's side of the journal process: the port of journal/journal.h over a channel.
 *
 * The process starts while core does other things; nothing here waits for it before the first
 * result is due. It outlives core by the time that writing takes: what was sent is written.
 */
#ifndef CLOISTER_DAEMON_JOURNAL_CLIENT_H
#define CLOISTER_DAEMON_JOURNAL_CLIENT_H

#include "journal/journal.h"

struct journal_options {
	const char *libexecdir; /* as in struct tree_options */
	int log_fd, key_fd;     /* directories; borrowed */
	int landlock_abi;       /* what to use; tree_landlock_abi() knows. 0: none */
};

/* Start cloister-journal. Call it before core_restrict(). ERR_UNAVAILABLE, ERR_LIMIT, ERR_IO. */
int journal_start(
	const struct journal_options *opt, struct journal **ret, struct err *err) _must_check_;

/* The same over a process that somebody else has started: `channel` and `page_fd` are taken over,
 * also on failure. */
int journal_over(int channel, int page_fd, struct journal **ret, struct err *err) _must_check_;

/* Sends what was added and waits (bounded) until a process that was started here has written it.
 * Accepts NULL.
 */
void journal_free(struct journal *j);
/* Of the process that journal_start() made, for watching; borrowed. */
int journal_pidfd(const struct journal *j);
DEFINE_CLEANUP(struct journal *, journal_free)

/* A page for journal_over() and fd 6 of the process. */
int journal_page_new(int *ret_fd, struct err *err) _must_check_;

#endif
