/* Between tree.c and worker_client.c: what a worker's client needs from its tree. */
#ifndef CLOISTER_DAEMON_TREE_INTERNAL_H
#define CLOISTER_DAEMON_TREE_INTERNAL_H

#include "daemon/messages.h"
#include "daemon/tree.h"
#include "sys/process.h"

/* How a lease ended. */
struct lease_end {
	bool known;
	int error;  /* errno: it could not be started */
	int status; /* as of wait(2), when error is 0 */
};

/* Ask for a worker: *ret_channel is core's end of its channel. Does not wait. */
int tree_spawn(struct tree *t, const int *mount_fds, unsigned n_mounts, uint64_t *ret_lease,
	int *ret_channel, struct err *err) _must_check_;
void tree_kill(struct tree *t, uint64_t lease);
/* Forget a lease that nobody asks about any more. */
void tree_forget(struct tree *t, uint64_t lease);
/* How it ended; waits up to `wait_ms` for the supervisor to say. */
struct lease_end tree_lease_end(struct tree *t, uint64_t lease, int wait_ms);

int client_new(struct tree *t, const int *mount_fds, unsigned n_mounts, struct worker **ret,
	struct err *err) _must_check_;

/* A client over a channel that somebody else serves, for tests of what a bad worker can do. */
int client_over(int channel, int landlock_abi, struct worker **ret, struct err *err) _must_check_;

#endif
