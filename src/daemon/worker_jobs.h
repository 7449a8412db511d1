/*
 * What a worker does with a packet from core: decode it, do the job, answer. Needs no rights beyond
 * the descriptors that it is given, so tests and fuzzers drive it in their own process.
 */
#ifndef CLOISTER_DAEMON_WORKER_JOBS_H
#define CLOISTER_DAEMON_WORKER_JOBS_H

#include "daemon/messages.h"

/* The largest content that is held in memory for replacing or parsing. */
#define WORKER_CONTENT_MAX (128LL * 1024 * 1024)

struct worker_host {
	int sock; /* to core */
	const int *mount_fds;
	unsigned n_mounts;
	struct search_pool *pool; /* NULL: one thread */
	struct msg_out *out;      /* for answers */
};

/* What has to be done while files can still be opened. */
void worker_warm_up(void);

/* Handle one packet. Descriptors stay the caller's. An ordinary failure of the job is an answer,
 * not an error; < 0: core is gone or sent something that is no job. */
int worker_serve(struct worker_host *h, struct msg_in packet, const int *fds, unsigned n_fds,
	struct err *err) _must_check_;

/* Send what is in h->out, if anything. */
int worker_flush(struct worker_host *h, struct err *err) _must_check_;

#endif
