/*
 * The tree of processes behind one core: supervisor and workers.
 *
 * core (this process) --socketpair--> cloister-supervisor --fork, exec--> cloister-worker
 *                     <------------- socketpair per worker ------------->
 *
 * The supervisor starts first, while core is still unrestricted; workers start at the first job of
 * their session. Everything below dies with core: the supervisor when its socket closes, workers
 * with the supervisor (and when their own socket closes).
 */
#ifndef CLOISTER_DAEMON_TREE_H
#define CLOISTER_DAEMON_TREE_H

#include "call/worker.h"

#include <stdbool.h>

struct tree_options {
	const char *libexecdir; /* where cloister-supervisor and cloister-worker are; NULL: the
				   environment's CLOISTER_LIBEXECDIR, else beside this executable,
				   else the installed place */
	bool single_user;       /* start also without Landlock; tree_gaps() then says so */
	bool worker_stderr;   /* workers keep stderr (tests); a worker's bytes belong on no terminal
			       */
	unsigned max_workers; /* 0: 256 */
	int64_t worker_memory; /* address space of a worker in bytes; 0: 1 GiB */
	int64_t worker_cpu_s;  /* CPU seconds of a worker; 0: 3600 */
	int landlock_abi;      /* 0: the kernel's; 1..: pretend it is lower; -1: pretend there is
				  none (tests) */
};

struct tree;

/* The Landlock ABI that the processes of a tree would use; 0: none. */
int tree_landlock_usable(const struct tree_options *opt);

/*
 * Start the supervisor. Call it before threads, keys and workspaces are opened. Errors:
 * ERR_UNAVAILABLE (no Landlock of at least ABI 2 or no openat2 and not single_user; an executable
 * is missing), ERR_LIMIT, ERR_IO. Does not wait for the supervisor, which is cloister-later until
 * the first job (programs.h).
 */
int tree_start(const struct tree_options *opt, struct tree **ret, struct err *err) _must_check_;

/* The same over a channel to a supervisor that started this process (a node's); `sock` is owned on
 * success. */
int tree_over(
	const struct tree_options *opt, int sock, struct tree **ret, struct err *err) _must_check_;

/* Ends supervisor and workers and waits (bounded) until they are gone. Accepts NULL. */
void tree_free(struct tree *t);
DEFINE_CLEANUP(struct tree *, tree_free)

/* What is weaker on this machine than the design promises, one sentence, for every result; NULL:
 * nothing. */
const char *tree_gaps(const struct tree *t);

/*
 * The worker of a session: `mount_fds` are its mounts' roots (borrowed, duplicated), in the order
 * that jobs number them. Nothing starts before the first job. The session's name is nobody's
 * business but core's: a worker is known by a number. It must be freed before the tree. Errors:
 * ERR_LIMIT, ERR_NO_MEMORY.
 */
int tree_worker(struct tree *t, const int *mount_fds, unsigned n_mounts, struct worker **ret,
	struct err *err) _must_check_;

/* The Landlock ABI that its processes use; 0: none. */
int tree_landlock_abi(const struct tree *t);

/* The supervisor's pid, for status pages and tests. */
int tree_supervisor_pid(const struct tree *t);

#endif
