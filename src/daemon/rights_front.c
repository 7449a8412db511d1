/*
 * The rights of front: what a process that reads bytes of anybody in the world keeps. It accepts
 * from the sockets it was given, talks to those it accepted and to core, and holds content in
 * memory and pipes. It opens nothing by name, not even for reading, makes no socket, executes
 * nothing and signals nobody.
 */
#include "daemon/rights_node.h"
#include "sys/landlock.h"

#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define ALLOW(name)                                                                                \
	{                                                                                          \
		.nr = __NR_##name, .act = SECCOMP_ALLOW                                            \
	}

static const struct seccomp_row front_calls[] = {
	/* Clients. */
	ALLOW(accept4),
	ALLOW(recvfrom),
	ALLOW(recvmsg),
	ALLOW(sendto),
	ALLOW(sendmsg),
	ALLOW(shutdown),
	ALLOW(getsockname),
	ALLOW(getpeername),
	ALLOW(getsockopt),
	ALLOW(setsockopt),
	/* Content: descriptors from core, sealed memory and pipes to it. */
	ALLOW(read),
	ALLOW(readv),
	ALLOW(write),
	ALLOW(writev),
	ALLOW(pread64),
	ALLOW(lseek),
	ALLOW(sendfile),
	ALLOW(fstat),
	ALLOW(memfd_create),
	ALLOW(ftruncate),
	ALLOW(pipe2),
	ALLOW(fcntl),
	ALLOW(close),
	ALLOW(close_range),
	/* The loop. */
	ALLOW(epoll_create1),
	ALLOW(epoll_ctl),
	ALLOW(epoll_pwait),
	ALLOW(ppoll),
	ALLOW(eventfd2),
	ALLOW(signalfd4),
	ALLOW(timerfd_create),
	ALLOW(timerfd_settime),
	/* Memory, never executable. */
	{.nr = __NR_mmap, .act = SECCOMP_IF_NONE, .arg = 2, .value = PROT_EXEC},
	{.nr = __NR_mprotect, .act = SECCOMP_IF_NONE, .arg = 2, .value = PROT_EXEC},
	ALLOW(munmap),
	ALLOW(mremap),
	ALLOW(brk),
	ALLOW(madvise),
	/* What libc does everywhere. */
	ALLOW(futex),
	ALLOW(clock_gettime),
	ALLOW(clock_nanosleep),
	ALLOW(gettimeofday),
	ALLOW(getrandom),
	ALLOW(getpid),
	ALLOW(gettid),
	ALLOW(sched_yield),
	ALLOW(rt_sigaction),
	ALLOW(rt_sigprocmask),
	ALLOW(rt_sigreturn),
	ALLOW(sigaltstack),
	ALLOW(restart_syscall),
	ALLOW(rseq),
	ALLOW(exit),
	ALLOW(exit_group),
#ifdef __NR_epoll_wait
	ALLOW(epoll_wait),
	ALLOW(poll),
	ALLOW(time),
#endif
};

const struct seccomp_row *front_seccomp(unsigned *ret_n)
{
	*ret_n = ARRAY_LEN(front_calls);
	return front_calls;
}

int front_restrict(int landlock_abi, struct err *err)
{
	const struct landlock_plan plan = {
		.abi = landlock_abi,
		.handle = LANDLOCK_ALLOW_READ | LANDLOCK_ALLOW_WRITE | LANDLOCK_ALLOW_EXEC |
			  LANDLOCK_ALLOW_DEVICES,
		.no_network = true,
		.scoped = true,
	};
	int r = landlock_apply(&plan, err);
	return r < 0 ? r : seccomp_apply(front_calls, ARRAY_LEN(front_calls), err);
}
