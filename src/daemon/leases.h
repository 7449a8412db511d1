/*
 * The workers of one core, as its supervisor has them: started, killed and reaped on that core's
 * request.
 *
 * No deputy: core names a lease and hands descriptors over; what is started, with which limits and
 * which identity, stands here. A core that says what does not decode, or reads no answers, is an
 * error, and its supervisor ends it.
 */
#ifndef CLOISTER_DAEMON_LEASES_H
#define CLOISTER_DAEMON_LEASES_H

#include "sys/process.h"

#include <poll.h>

enum { LEASES_MAX = 1024 };

struct lease {
	uint64_t id;
	struct process process;
};

struct leases {
	int sock;       /* packets from and to core; borrowed */
	int worker_exe; /* and so are these */
	int null_fd;
	int landlock_abi;
	unsigned max, n;
	const char *memory, *cpu_s; /* the worker's limits, as its arguments */
	bool keep_stderr;
	bool block; /* wait for core to read how workers ended */
	struct lease v[LEASES_MAX];
};

/* One packet of core's. ERR_UNAVAILABLE with `sys` 0: core is gone. Anything else: it misbehaves.
 */
int leases_receive(struct leases *l, struct err *err) _must_check_;
/* Fill poll entries for the processes; at most leases.n of them. */
void leases_poll(const struct leases *l, struct pollfd *p);
/* Reap those whose entry, of the `n` filled before, says so. */
int leases_reap(struct leases *l, const struct pollfd *p, unsigned n, struct err *err) _must_check_;
/* Kill all and wait (bounded). */
void leases_end(struct leases *l);

#endif
