/*
 * The lease of a session: one small mapped file, shared by the processes that have it open.
 *
 * It says when the session was last used, how many turns it had, and whether it was deleted, each
 * at the cost of a memory access. The registry follows in batches; who deletes for idleness looks
 * here first. The processes trust each other; the directory is closed to everybody else.
 */
#ifndef CLOISTER_SESSION_LEASE_H
#define CLOISTER_SESSION_LEASE_H

#include "base/err.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct lease_page {
	_Atomic int64_t used_ms;
	_Atomic uint64_t turns;
	_Atomic uint32_t dead;
	uint32_t spare[11];
};

/* Map, and make when missing. ERR_NO_SPACE, ERR_DENIED (not a file of ours), ERR_IO. */
int lease_open(
	int dir_fd, const char *incarnation, struct lease_page **ret, struct err *err) _must_check_;

/* Map when it exists; NULL otherwise. */
struct lease_page *lease_peek(int dir_fd, const char *incarnation);

void lease_close(struct lease_page *page); /* accepts NULL */

/* Values only grow. */
void lease_used(struct lease_page *page, int64_t now_ms);
void lease_turns(struct lease_page *page, uint64_t at_least);

#endif
