/*
 * The lease of a session: one small file, shared by the processes that have it open.
 *
 * It says when the session was last used, how many turns it had, and whether it was deleted. The
 * registry follows in batches; who deletes for idleness looks here first. The processes trust each
 * other; the directory is closed to everybody else.
 *
 * A session that only was created or looked at reads and writes the file; one that is worked with
 * maps it, and each of these then costs a memory access. (Mapping for one access would cost far
 * more than the access: unmapping interrupts other CPUs.)
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

struct lease {
	int fd;                  /* -1 when mapped or closed */
	struct lease_page *page; /* NULL until mapped */
};

#define LEASE_NONE ((struct lease){.fd = -1})

/*
 * Open: 1, or 0 when there is none and `make` is false. Only who holds the registry's write lock
 * may make one: a lease without a row would stay for ever. ERR_NO_SPACE, ERR_DENIED (not a file of
 * ours), ERR_IO.
 */
int lease_open(
	int dir_fd, const char *name, bool make, struct lease *ret, struct err *err) _must_check_;

/* Open when it exists; false otherwise. */
bool lease_peek(int dir_fd, const char *name, struct lease *ret);

int lease_map(struct lease *l, struct err *err) _must_check_; /* repeatable */
void lease_done(struct lease *l);

/* A lease that cannot be read says: dead, never used. */
bool lease_dead(const struct lease *l);
int64_t lease_last_use(const struct lease *l);
uint64_t lease_turns(const struct lease *l);

/* Times and turns only grow. */
void lease_use(struct lease *l, int64_t now_ms);
void lease_mark(struct lease *l, bool dead);
void lease_raise_turns(struct lease *l, uint64_t at_least);

/* One more turn; maps. */
int lease_next_turn(struct lease *l, uint64_t *ret, struct err *err) _must_check_;

#endif
