/*
 * The rights of core: see rights_core.h. Core is the single authority over the workspaces, so it
 * keeps every way to read and write files, but only below its own directories; it has no need for a
 * network, another program, another process, or the system's settings.
 */
#include "daemon/rights_core.h"
#include "daemon/rights_node.h"
#include "sys/landlock.h"
#include "sys/seccomp.h"

#include <sched.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#define ALLOW(name)                                                                                \
	{                                                                                          \
		.nr = __NR_##name, .act = SECCOMP_ALLOW                                            \
	}

static const struct seccomp_row core_calls[] = {
	/* Files, by descriptor and by name. */
	ALLOW(openat),
	ALLOW(openat2),
	ALLOW(close),
	ALLOW(close_range),
	ALLOW(read),
	ALLOW(write),
	ALLOW(readv),
	ALLOW(writev),
	ALLOW(pread64),
	ALLOW(pwrite64),
	ALLOW(preadv),
	ALLOW(pwritev),
	ALLOW(lseek),
	ALLOW(fstat),
	ALLOW(newfstatat),
	ALLOW(statx),
	ALLOW(fstatfs),
	ALLOW(statfs),
	ALLOW(faccessat),
	ALLOW(faccessat2),
	ALLOW(readlinkat),
	ALLOW(getdents64),
	ALLOW(getcwd),
	ALLOW(ftruncate),
	ALLOW(truncate),
	ALLOW(fallocate),
	ALLOW(fadvise64),
	ALLOW(readahead),
	ALLOW(copy_file_range),
	ALLOW(sendfile),
	ALLOW(splice),
	ALLOW(fsync),
	ALLOW(fdatasync),
	ALLOW(sync_file_range),
	ALLOW(syncfs),
	ALLOW(flock),
	ALLOW(fcntl),
	ALLOW(dup),
	ALLOW(dup3),
	ALLOW(unlinkat),
	ALLOW(renameat),
	ALLOW(renameat2),
	ALLOW(linkat),
	ALLOW(symlinkat),
	ALLOW(mkdirat),
	ALLOW(fchmod),
	ALLOW(fchmodat),
	ALLOW(fchown),
	ALLOW(fchownat),
	ALLOW(utimensat),
	ALLOW(umask),
	ALLOW(getxattr),
	ALLOW(lgetxattr),
	ALLOW(fgetxattr),
	ALLOW(listxattr),
	ALLOW(llistxattr),
	ALLOW(flistxattr),
	ALLOW(setxattr),
	ALLOW(lsetxattr),
	ALLOW(fsetxattr),
	ALLOW(removexattr),
	ALLOW(lremovexattr),
	ALLOW(fremovexattr),
	ALLOW(ioctl),
	ALLOW(inotify_init1),
	ALLOW(inotify_add_watch),
	ALLOW(inotify_rm_watch),
	/* Memory, never executable. */
	{.nr = __NR_mmap, .act = SECCOMP_IF_NONE, .arg = 2, .value = PROT_EXEC},
	{.nr = __NR_mprotect, .act = SECCOMP_IF_NONE, .arg = 2, .value = PROT_EXEC},
	ALLOW(munmap),
	ALLOW(mremap),
	ALLOW(msync),
	ALLOW(brk),
	ALLOW(madvise),
	ALLOW(mlock),
	ALLOW(munlock),
	ALLOW(memfd_create),
	/* Threads, time, events, signals to itself. clone3 hides its flags; libc falls back. */
	{.nr = __NR_clone, .act = SECCOMP_IF_ALL, .arg = 0, .value = CLONE_THREAD | CLONE_VM},
	{.nr = __NR_clone3, .act = SECCOMP_ABSENT},
	ALLOW(futex),
	ALLOW(set_robust_list),
	ALLOW(get_robust_list),
	ALLOW(rseq),
	ALLOW(set_tid_address),
	ALLOW(exit),
	ALLOW(exit_group),
	ALLOW(sched_yield),
	ALLOW(sched_getaffinity),
	ALLOW(clock_gettime),
	ALLOW(clock_getres),
	ALLOW(clock_nanosleep),
	ALLOW(nanosleep),
	ALLOW(gettimeofday),
	ALLOW(times),
	ALLOW(getrusage),
	ALLOW(epoll_create1),
	ALLOW(epoll_ctl),
	ALLOW(epoll_pwait),
	ALLOW(ppoll),
	ALLOW(pselect6),
	ALLOW(timerfd_create),
	ALLOW(timerfd_settime),
	ALLOW(timerfd_gettime),
	ALLOW(eventfd2),
	ALLOW(signalfd4),
	ALLOW(pipe2),
	ALLOW(rt_sigaction),
	ALLOW(rt_sigprocmask),
	ALLOW(rt_sigreturn),
	ALLOW(rt_sigtimedwait),
	ALLOW(rt_sigpending),
	ALLOW(sigaltstack),
	ALLOW(restart_syscall),
	ALLOW(tgkill),
	ALLOW(gettid),
	ALLOW(getpid),
	ALLOW(getppid),
	ALLOW(getuid),
	ALLOW(geteuid),
	ALLOW(getgid),
	ALLOW(getegid),
	ALLOW(getgroups),
	ALLOW(uname),
	ALLOW(sysinfo),
	ALLOW(getrandom),
	ALLOW(prctl),
	ALLOW(getrlimit),
	ALLOW(prlimit64),
	ALLOW(membarrier),
	/* Its own processes: packets, their end. */
	ALLOW(sendmsg),
	ALLOW(recvmsg),
	ALLOW(shutdown),
	ALLOW(getsockopt),
	ALLOW(setsockopt),
	{.nr = __NR_socketpair, .act = SECCOMP_IF_EQ, .arg = 0, .value = AF_UNIX},
	ALLOW(wait4),
	ALLOW(waitid),
	ALLOW(pidfd_send_signal),
#ifdef __NR_open
	ALLOW(open),
	ALLOW(stat),
	ALLOW(lstat),
	ALLOW(access),
	ALLOW(readlink),
	ALLOW(unlink),
	ALLOW(rename),
	ALLOW(mkdir),
	ALLOW(rmdir),
	ALLOW(dup2),
	ALLOW(poll),
	ALLOW(select),
	ALLOW(epoll_wait),
	ALLOW(pipe),
	ALLOW(time),
	ALLOW(arch_prctl),
	ALLOW(chmod),
#endif
};

const struct seccomp_row *core_seccomp(unsigned *ret_n)
{
	*ret_n = ARRAY_LEN(core_calls);
	return core_calls;
}

static int abi_to_use(const struct core_rights *rights)
{
	int abi = landlock_abi();
	if (rights->landlock_abi)
		abi = MIN(abi, MAX(rights->landlock_abi, 0));
	return abi >= LANDLOCK_ABI_NEEDED ? abi : 0;
}

int core_restrict(const struct core_rights *rights, struct err *err)
{
	struct landlock_rule rules[LANDLOCK_RULES_MAX];
	unsigned n = 0;
	if (rights->n_write_fds + rights->n_read_fds > LANDLOCK_RULES_MAX)
		return err_set(
			err, ERR_LIMIT, "core keeps at most %d directories", LANDLOCK_RULES_MAX);
	for (unsigned i = 0; i < rights->n_write_fds; i++)
		rules[n++] = (struct landlock_rule){
			rights->write_fds[i], LANDLOCK_ALLOW_READ | LANDLOCK_ALLOW_WRITE};
	for (unsigned i = 0; i < rights->n_read_fds; i++)
		rules[n++] = (struct landlock_rule){rights->read_fds[i], LANDLOCK_ALLOW_READ};
	const struct landlock_plan plan = {
		.abi = abi_to_use(rights),
		.handle = LANDLOCK_ALLOW_READ | LANDLOCK_ALLOW_WRITE | LANDLOCK_ALLOW_EXEC |
			  LANDLOCK_ALLOW_DEVICES,
		.no_network = true,
		.rules = rules,
		.n_rules = n,
	};
	if (!plan.abi && !rights->single_user)
		return err_set(
			err, ERR_UNAVAILABLE, "this machine has no Landlock of ABI 2 or newer");
	int r = landlock_apply(&plan, err);
	return r < 0 ? r : seccomp_apply(core_calls, ARRAY_LEN(core_calls), err);
}
