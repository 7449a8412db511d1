/* Limits of each process of a command: setrlimit(2). */
#include "sandbox/apply.h"

#include <errno.h>
#include <sys/resource.h>

enum { OPEN_FILES_MAX = 4096, LOCKED_BYTES_MAX = 64 * 1024, STACK_BYTES = 8 * 1024 * 1024 };

/* Never more than what the launcher itself may have. */
static int limit(int what, int64_t n)
{
	struct rlimit now;
	if (getrlimit((__rlimit_resource_t)what, &now) < 0)
		return -1;
	rlim_t most = now.rlim_max == RLIM_INFINITY ? (rlim_t)n : MIN((rlim_t)n, now.rlim_max);
	const struct rlimit to = {most, most};
	return setrlimit((__rlimit_resource_t)what, &to);
}

/* The number of processes is counted within the command's own user namespace. */
int limits_apply(const struct fence_plan *plan, struct err *err)
{
	const struct fence_limits *l = &plan->limits;
	if (limit(RLIMIT_CORE, 0) < 0 || limit(RLIMIT_NOFILE, OPEN_FILES_MAX) < 0 ||
		limit(RLIMIT_MEMLOCK, LOCKED_BYTES_MAX) < 0 || limit(RLIMIT_MSGQUEUE, 0) < 0 ||
		limit(RLIMIT_RTPRIO, 0) < 0 || limit(RLIMIT_STACK, STACK_BYTES) < 0 ||
		(l->scratch_bytes && limit(RLIMIT_FSIZE, l->scratch_bytes) < 0) ||
		(l->cpu_s && limit(RLIMIT_CPU, l->cpu_s) < 0) ||
		(l->processes && limit(RLIMIT_NPROC, l->processes) < 0))
		return err_sys(err, errno, "limiting the command");
	return 0;
}
