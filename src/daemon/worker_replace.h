/* Replacing what a regular expression matches in a whole content. Used by worker_jobs.c. */
#ifndef CLOISTER_DAEMON_WORKER_REPLACE_H
#define CLOISTER_DAEMON_WORKER_REPLACE_H

#include "daemon/messages.h"

/* Bytes to a descriptor, through a buffer, up to a limit. */
struct output {
	int fd;
	int64_t size, max;
	size_t n;
	char buffer[64 * 1024];
};
int output_put(struct output *o, const void *p, size_t n, struct err *err) _must_check_;
int output_end(struct output *o, struct err *err) _must_check_;

/* Errors: ERR_INVALID_ARGUMENT (pattern, replacement), ERR_TOO_LARGE, ERR_IO, ERR_NO_MEMORY. Sets
 * all of `ret` but the id. */
int replace_all(const struct msg_replace *m, const char *text, size_t n, struct output *out,
	struct msg_replaced *ret, struct err *err) _must_check_;

#endif
