/*
 * The supervisor's rights. Its workers inherit them, so they hold what a program needs from its
 * exec until it has dropped the rest itself; what they lack is lost to the whole tree: writing,
 * making and removing files, network, mounts, tracing, modules.
 */
#include "daemon/rights.h"
#include "daemon/rights_node.h"
#include "sys/landlock.h"
#include "sys/seccomp.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/syscall.h>

#define OPEN_WRITES (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND | (O_TMPFILE & ~O_DIRECTORY))

#define ALLOW(name)                                                                                \
	{                                                                                          \
		.nr = __NR_##name, .act = SECCOMP_ALLOW                                            \
	}

static const struct seccomp_row supervisor_calls[] = {
	/* Its own loop: the packets of core, its children by pidfd. */
	ALLOW(recvmsg),
	ALLOW(sendmsg),
	ALLOW(poll),
	ALLOW(ppoll),
	ALLOW(pidfd_send_signal),
	ALLOW(wait4),
	ALLOW(waitid),
	ALLOW(close),
	ALLOW(close_range),
	ALLOW(dup2),
	ALLOW(dup3),
	ALLOW(fcntl),
	ALLOW(exit),
	ALLOW(exit_group),
	ALLOW(getppid),
	ALLOW(getpid),
	ALLOW(gettid),
	/* A read-only clone of a mount; privileges decide whether the kernel agrees. */
	ALLOW(open_tree),
	ALLOW(mount_setattr),
	/* Starting: processes without namespace flags (clone3 hides its flags from a filter, libc
	 * falls back), threads of the worker. */
	{.nr = __NR_clone,
		.act = SECCOMP_IF_NONE,
		.arg = 0,
		.value = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC |
			 CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET},
	{.nr = __NR_clone3, .act = SECCOMP_ABSENT},
	ALLOW(execveat),
	/* What a program does until its main(). */
	{.nr = __NR_openat, .act = SECCOMP_IF_NONE, .arg = 2, .value = OPEN_WRITES},
	ALLOW(read),
	ALLOW(pread64),
	ALLOW(lseek),
	ALLOW(getdents64),
	ALLOW(fstat),
	ALLOW(newfstatat),
	ALLOW(readlinkat),
	ALLOW(faccessat),
	ALLOW(mmap),
	ALLOW(mprotect),
	ALLOW(munmap),
	ALLOW(mremap),
	ALLOW(brk),
	ALLOW(madvise),
	ALLOW(set_tid_address),
	ALLOW(set_robust_list),
	ALLOW(rseq),
	ALLOW(futex),
	ALLOW(getrandom),
	ALLOW(uname),
	ALLOW(rt_sigaction),
	ALLOW(rt_sigprocmask),
	ALLOW(rt_sigreturn),
	ALLOW(sigaltstack),
	ALLOW(restart_syscall),
	ALLOW(sched_yield),
	ALLOW(sched_getaffinity),
	ALLOW(clock_gettime),
	ALLOW(clock_nanosleep),
	ALLOW(getuid),
	ALLOW(geteuid),
	ALLOW(getgid),
	ALLOW(getegid),
	ALLOW(write),
	ALLOW(pwrite64),
	ALLOW(tgkill),
#ifdef __NR_arch_prctl
	ALLOW(arch_prctl),
	ALLOW(access),
	ALLOW(readlink),
#endif
	/* What a worker needs to drop the rest. */
	ALLOW(prctl),
	ALLOW(capget),
	ALLOW(capset),
	ALLOW(setresuid),
	ALLOW(setresgid),
	ALLOW(setgroups),
	ALLOW(prlimit64),
	ALLOW(getrlimit),
	ALLOW(setrlimit),
	ALLOW(seccomp),
	{.nr = 444, .act = SECCOMP_ALLOW}, /* landlock_create_ruleset, _add_rule, _restrict_self */
	{.nr = 445, .act = SECCOMP_ALLOW},
	{.nr = 446, .act = SECCOMP_ALLOW},
	/* A thread of the worker takes a descriptor table of its own; nothing else is unshared. */
	{.nr = __NR_unshare, .act = SECCOMP_IF_EQ, .arg = 0, .value = CLONE_FILES},
};

const struct seccomp_row *supervisor_seccomp(unsigned *ret_n)
{
	*ret_n = ARRAY_LEN(supervisor_calls);
	return supervisor_calls;
}

/* The loader of this very program, which is the worker's too; NULL when linked statically. */
const char *supervisor_loader(void)
{
	const ElfW(Phdr) *ph = (const ElfW(Phdr) *)getauxval(AT_PHDR);
	unsigned long n = getauxval(AT_PHNUM);
	uintptr_t base = 0;
	for (unsigned long i = 0; i < n; i++)
		if (ph[i].p_type == PT_PHDR)
			base = (uintptr_t)ph - ph[i].p_vaddr;
	for (unsigned long i = 0; i < n; i++)
		if (ph[i].p_type == PT_INTERP)
			return (const char *)(base + ph[i].p_vaddr);
	return NULL;
}

static int fence_files(int abi, struct err *err)
{
	struct landlock_rule rules[2] = {{SUPERVISOR_FD_WORKER_EXE, LANDLOCK_ALLOW_EXEC}};
	unsigned n = 1;
	_cleanup_close_ int loader =
		supervisor_loader() ? open(supervisor_loader(), O_PATH | O_CLOEXEC) : -1;
	if (loader >= 0)
		rules[n++] = (struct landlock_rule){loader, LANDLOCK_ALLOW_EXEC};
	const struct landlock_plan plan = {
		.abi = abi,
		.handle = LANDLOCK_ALLOW_WRITE | LANDLOCK_ALLOW_EXEC,
		.no_network = true,
		.rules = rules,
		.n_rules = n,
	};
	return landlock_apply(&plan, err);
}

int supervisor_restrict(const struct supervisor_rights *r, struct err *err)
{
	int e = fence_files(r->landlock_abi, err);
	return e < 0 ? e : seccomp_apply(supervisor_calls, ARRAY_LEN(supervisor_calls), err);
}
