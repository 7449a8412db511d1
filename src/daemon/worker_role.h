/*
 * The life of a worker process: drop rights, say hello, serve. The program itself and the one that
 * the rights are tried in share it, so both have the very same rights.
 */
#ifndef CLOISTER_DAEMON_WORKER_ROLE_H
#define CLOISTER_DAEMON_WORKER_ROLE_H

#include "daemon/worker_jobs.h"

typedef int (*worker_serve_fn)(struct worker_host *h, struct msg_in packet, const int *fds,
	unsigned n_fds, struct err *err);

/* argv: LANDLOCK-ABI MOUNTS MEMORY CPU-SECONDS. Does not return. */
_noreturn_ void worker_role(int argc, char **argv, worker_serve_fn serve);

#endif
