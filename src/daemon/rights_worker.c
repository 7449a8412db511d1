/*
 * The worker's rights. After them it can read below its mounts, answer core, and write into memfds
 * that core hands it. It must never be able to change a file, reach a network, start anything, or
 * touch another process.
 */
#include "daemon/rights.h"
#include "sys/landlock.h"
#include "sys/seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#if defined(__has_feature)
#	if __has_feature(address_sanitizer)
#		define ADDRESS_SANITIZED
#	endif
#elif defined(__SANITIZE_ADDRESS__)
#	define ADDRESS_SANITIZED
#endif

/* Flags of an open that is more than reading. O_TMPFILE's own bit, since the macro also holds
 * O_DIRECTORY. */
#define OPEN_WRITES (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND | (O_TMPFILE & ~O_DIRECTORY))

#define ALLOW(name)                                                                                \
	{                                                                                          \
		.nr = __NR_##name, .act = SECCOMP_ALLOW                                            \
	}

static const struct seccomp_row worker_calls[] = {
	/* Reading. openat is the only call that takes a path: no stat, no readlink, no access by
	 * name. Its path is bounded by Landlock, its purpose by this row, which also holds where
	 * Landlock lets a file opened for reading be truncated (ABI 2). */
	{.nr = __NR_openat, .act = SECCOMP_IF_NONE, .arg = 2, .value = OPEN_WRITES},
	ALLOW(read),
	ALLOW(pread64),
	ALLOW(lseek),
	ALLOW(getdents64),
	ALLOW(fstat),
	ALLOW(fstatfs),
	ALLOW(close),
	ALLOW(close_range),
	/* Answering: the channel, and memfds from core. */
	ALLOW(recvmsg),
	ALLOW(sendmsg),
	ALLOW(write),
	ALLOW(pwrite64),
	/* Memory that is never executable. */
	{.nr = __NR_mmap, .act = SECCOMP_IF_NONE, .arg = 2, .value = PROT_EXEC},
	{.nr = __NR_mprotect, .act = SECCOMP_IF_NONE, .arg = 2, .value = PROT_EXEC},
	ALLOW(munmap),
	ALLOW(mremap),
	ALLOW(brk),
	ALLOW(madvise),
	/* The two threads and their end. */
	ALLOW(futex),
	ALLOW(sched_yield),
	ALLOW(rt_sigprocmask),
	ALLOW(rt_sigreturn),
	ALLOW(sigaltstack),
	ALLOW(restart_syscall),
	ALLOW(exit),
	ALLOW(exit_group),
	ALLOW(clock_gettime),
	ALLOW(clock_nanosleep),
	ALLOW(gettid),
	ALLOW(getpid),
	ALLOW(getrandom),
	ALLOW(rseq),
};

/* A change of identity makes the kernel forget that we die with the supervisor. */
static int die_with(pid_t parent, struct err *err)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return err_sys(err, errno, "binding our life to the supervisor's");
	if (getppid() != parent)
		return err_set(err, ERR_UNAVAILABLE, "the supervisor is gone");
	return 0;
}

int worker_drop_identity(bool *ret_own_user, struct err *err)
{
	pid_t parent = getppid();
	*ret_own_user = false;
	if (geteuid() != 0)
		return rights_capabilities(0, err);
	rights_empty_bounding_set();
	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0)
		return err_sys(err, errno, "keeping one capability");
	/* In a user namespace that maps only root there is nobody else to be. */
	if (setgroups(0, NULL) == 0 && setresgid(WORKER_GID, WORKER_GID, WORKER_GID) == 0)
		*ret_own_user = setresuid(WORKER_UID, WORKER_UID, WORKER_UID) == 0;
	int r = rights_capabilities(1u << CAP_DAC_READ_SEARCH, err);
	return r < 0 ? r : die_with(parent, err);
}

int worker_limit(const struct worker_rights *r, struct err *err)
{
	const struct {
		int which;
		int64_t value;
		bool wanted;
	} limits[] = {
		{RLIMIT_CORE, 0, true},
		{RLIMIT_NOFILE, 1024, true},
		{RLIMIT_NPROC, 0, true},
		{RLIMIT_MEMLOCK, 0, true},
		{RLIMIT_MSGQUEUE, 0, true},
		{RLIMIT_FSIZE, r->output, true},
		{RLIMIT_CPU, r->cpu_s, r->cpu_s > 0},
#ifndef ADDRESS_SANITIZED /* its shadow is terabytes of address space */
		{RLIMIT_AS, r->memory, r->memory > 0},
#endif
	};
	for (size_t i = 0; i < ARRAY_LEN(limits); i++)
		if (limits[i].wanted) {
			int e = rights_limit(limits[i].which, limits[i].value, err);
			if (e < 0)
				return e;
		}
	return 0;
}

int worker_restrict(const struct worker_rights *r, struct err *err)
{
	struct landlock_rule rules[LANDLOCK_RULES_MAX];
	for (unsigned i = 0; i < r->n_mounts; i++)
		rules[i] = (struct landlock_rule){WORKER_FD_MOUNTS + (int)i, LANDLOCK_ALLOW_READ};
	const struct landlock_plan plan = {
		.abi = r->landlock_abi,
		.handle = LANDLOCK_ALLOW_READ | LANDLOCK_ALLOW_WRITE | LANDLOCK_ALLOW_EXEC |
			  LANDLOCK_ALLOW_DEVICES,
		.no_network = true,
		.scoped = true,
		.rules = rules,
		.n_rules = r->n_mounts,
	};
	int e = landlock_apply(&plan, err);
	return e < 0 ? e : seccomp_apply(worker_calls, ARRAY_LEN(worker_calls), err);
}
