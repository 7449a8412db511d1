/*
 * The journal's rights. After them it can append to its log and answer core. It must never be able
 * to touch another file, reach a network or start anything: the key that it holds signs what it is
 * told, and nothing else can be done with it from here.
 */
#include "daemon/rights.h"
#include "sys/landlock.h"
#include "sys/seccomp.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#define ALLOW(name)                                                                                \
	{                                                                                          \
		.nr = __NR_##name, .act = SECCOMP_ALLOW                                            \
	}

static const struct seccomp_row journal_calls[] = {
	/* Segments, by name below the log's directory (Landlock bounds the path). */
	ALLOW(openat),
	ALLOW(read),
	ALLOW(pread64),
	ALLOW(write),
	ALLOW(pwrite64),
	ALLOW(lseek),
	ALLOW(ftruncate),
	ALLOW(fdatasync),
	ALLOW(fsync),
	ALLOW(fstat),
	/* What libc makes of fstat. */
	{.nr = __NR_newfstatat, .act = SECCOMP_IF_EQ, .arg = 3, .value = AT_EMPTY_PATH},
	ALLOW(getdents64),
	ALLOW(fcntl),
	ALLOW(close),
	/* Core: packets, when there are some. */
	ALLOW(recvmsg),
	ALLOW(sendmsg),
	ALLOW(poll),
	ALLOW(ppoll),
	/* Memory that is never executable. */
	{.nr = __NR_mmap, .act = SECCOMP_IF_NONE, .arg = 2, .value = PROT_EXEC},
	{.nr = __NR_mprotect, .act = SECCOMP_IF_NONE, .arg = 2, .value = PROT_EXEC},
	ALLOW(munmap),
	ALLOW(mremap),
	ALLOW(brk),
	ALLOW(madvise),
	ALLOW(futex),
	ALLOW(clock_gettime),
	ALLOW(clock_nanosleep),
	ALLOW(nanosleep),
	ALLOW(restart_syscall),
	ALLOW(getrandom),
	ALLOW(getpid),
	ALLOW(gettid),
	ALLOW(geteuid),
	ALLOW(rt_sigprocmask),
	ALLOW(rt_sigreturn),
	ALLOW(sigaltstack),
	ALLOW(exit),
	ALLOW(exit_group),
};

static int restrict_process(struct err *err)
{
	static const struct {
		int which;
		int64_t value;
	} limits[] = {
		{RLIMIT_CORE, 0},
		{RLIMIT_NOFILE, 64},
		{RLIMIT_NPROC, 0},
		{RLIMIT_MSGQUEUE, 0},
	};
	for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
		int r = rights_limit(limits[i].which, limits[i].value, err);
		if (r < 0)
			return r;
	}
	rights_empty_bounding_set();
	return rights_capabilities(0, err);
}

int journal_restrict(const struct journal_rights *rights, struct err *err)
{
	const struct landlock_rule rule = {
		JOURNAL_FD_LOG, LANDLOCK_ALLOW_READ | LANDLOCK_ALLOW_WRITE};
	const struct landlock_plan plan = {
		.abi = rights->landlock_abi,
		.handle = LANDLOCK_ALLOW_READ | LANDLOCK_ALLOW_WRITE | LANDLOCK_ALLOW_EXEC |
			  LANDLOCK_ALLOW_DEVICES,
		.no_network = true,
		.scoped = true,
		.rules = &rule,
		.n_rules = 1,
	};
	int r = restrict_process(err);
	if (r < 0 || (r = landlock_apply(&plan, err)) < 0)
		return r;
	return seccomp_apply(journal_calls, ARRAY_LEN(journal_calls), err);
}
