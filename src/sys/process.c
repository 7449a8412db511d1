/*
 * Starting processes and passing descriptors: see process.h.
 *
 * The child shares this process's memory until its exec, as with vfork(2), since copying page
 * tables is most of the price of a fork. So it runs on a stack of its own with all signals blocked,
 * calls only functions that touch nothing shared, and reports a failure by writing to `struct
 * launch`.
 */
#include "sys/process.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { CHILD_STACK = 64 * 1024 };

/* The child leaves its stack without returning, so what AddressSanitizer marked on it stays marked
 * when the parent uses the same addresses for the next child. */
#define ON_CHILD_STACK __attribute__((no_sanitize("address")))

struct launch {
	const struct process_spec *spec;
	pid_t parent;
	int failed; /* errno of the child's failure; written by the child */
};

/* Move `fd` above every number that is about to be assigned. */
ON_CHILD_STACK static int lift(int fd, int above)
{
	return fcntl(fd, F_DUPFD_CLOEXEC, above);
}

ON_CHILD_STACK static int arrange_descriptors(const struct process_spec *spec, int *exec_fd)
{
	int lifted[PROCESS_FDS_MAX];
	int above = 3 + (int)spec->n_fds;
	for (unsigned i = 0; i < spec->n_fds; i++)
		if ((lifted[i] = lift(spec->fds[i], above)) < 0)
			return -1;
	if ((*exec_fd = lift(spec->exec_fd, above)) < 0)
		return -1;
	int null_fd = lift(spec->null_fd, above);
	if (null_fd < 0)
		return -1;
	for (int fd = 0; fd < (spec->keep_stderr ? 2 : 3); fd++)
		if (dup2(null_fd, fd) < 0)
			return -1;
	for (unsigned i = 0; i < spec->n_fds; i++)
		if (dup2(lifted[i], 3 + (int)i) < 0)
			return -1;
	return (int)syscall(__NR_close_range, (unsigned)above, ~0u, CLOSE_RANGE_CLOEXEC);
}

ON_CHILD_STACK static int child_main(void *arg)
{
	struct launch *l = arg;
	int exec_fd;
	sigset_t none;
	/* The parent may have died before the request took effect. */
	if (!l->spec->survives && (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != l->parent))
		goto failed;
	if (arrange_descriptors(l->spec, &exec_fd) < 0)
		goto failed;
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)syscall(__NR_execveat, exec_fd, "", l->spec->argv, l->spec->envp, AT_EMPTY_PATH);
failed:
	l->failed = errno ? errno : EIO;
	_exit(127);
}

static int launch(struct launch *l, struct process *ret, struct err *err)
{
	sigset_t all, before;
	char *stack = mmap(NULL, CHILD_STACK, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
	if (stack == MAP_FAILED)
		return err_oom(err);
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, &before);
	ret->pidfd = -1;
	ret->pid = clone(child_main, stack + CHILD_STACK,
		CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD, l, &ret->pidfd);
	int failed = errno;
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	(void)munmap(stack, CHILD_STACK);
	if (ret->pid < 0)
		return err_sys(err, failed, "starting a process");
	return 0;
}

int process_start(const struct process_spec *spec, struct process *ret, struct err *err)
{
	BUG_ON(spec->n_fds > PROCESS_FDS_MAX);
	struct launch l = {.spec = spec, .parent = getpid()};
	struct process p;
	int r = launch(&l, &p, err);
	if (r < 0)
		return r;
	if (l.failed) {
		int status;
		(void)process_wait(&p, -1, &status);
		process_done(&p);
		return err_sys(err, l.failed, "executing '%s'", spec->argv[0]);
	}
	*ret = p;
	return 0;
}

void process_kill(const struct process *p, int signo)
{
	if (p->pidfd >= 0)
		(void)syscall(__NR_pidfd_send_signal, p->pidfd, signo, NULL, 0);
}

int process_wait(struct process *p, int timeout_ms, int *ret_status)
{
	struct pollfd pfd = {.fd = p->pidfd, .events = POLLIN};
	int r;
	do
		r = poll(&pfd, 1, timeout_ms);
	while (r < 0 && errno == EINTR && timeout_ms < 0);
	if (r <= 0)
		return 0;
	while ((r = waitpid(p->pid, ret_status, 0)) < 0 && errno == EINTR)
		;
	if (r < 0)
		*ret_status = 0; /* somebody else has reaped it: ended, and that is all we know */
	return 1;
}

void process_done(struct process *p)
{
	cleanup_close(&p->pidfd);
	p->pidfd = -1;
}

void process_describe(int status, char *out, size_t cap)
{
	if (WIFSIGNALED(status))
		(void)snprintf(out, cap, "was killed by signal %d (%s)", WTERMSIG(status),
			sigdescr_np(WTERMSIG(status)) ? sigdescr_np(WTERMSIG(status)) : "unknown");
	else
		(void)snprintf(out, cap, "exited with status %d", WEXITSTATUS(status));
}

/* --- packets --- */

union control {
	struct cmsghdr align;
	char room[CMSG_SPACE(PROCESS_FDS_MAX * sizeof(int))];
};

int packet_pair(int ret[2], struct err *err)
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ret) < 0)
		return err_sys(err, errno, "making a socket pair");
	return 0;
}

int packet_send(int sock, const void *p, size_t n, const int *fds, unsigned n_fds, bool block,
	struct err *err)
{
	BUG_ON(n_fds > PROCESS_FDS_MAX);
	union control control;
	struct iovec iov = {.iov_base = (void *)(uintptr_t)p, .iov_len = n};
	struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};
	if (n_fds) {
		mh.msg_control = control.room;
		mh.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		memset(control.room, 0, mh.msg_controllen);
		struct cmsghdr *c = CMSG_FIRSTHDR(&mh);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, n_fds * sizeof(int));
	}
	ssize_t sent;
	do
		sent = sendmsg(sock, &mh, MSG_NOSIGNAL | (block ? 0 : MSG_DONTWAIT));
	while (sent < 0 && errno == EINTR);
	if (sent >= 0)
		return 0;
	if (errno == EPIPE || errno == ECONNRESET)
		return err_set(err, ERR_UNAVAILABLE, "the process at the other end is gone");
	return err_sys(err, errno, "sending a packet of %zu bytes", n);
}

/* Move received descriptors out; those without room are closed. */
static bool collect_descriptors(struct msghdr *mh, int *fds, unsigned room, unsigned *got)
{
	bool fits = !(mh->msg_flags & MSG_CTRUNC);
	*got = 0;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(mh); c; c = CMSG_NXTHDR(mh, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < n; i++) {
			int fd;
			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
			if (*got < room) {
				fds[(*got)++] = fd;
			} else {
				(void)close(fd);
				fits = false;
			}
		}
	}
	return fits;
}

int packet_recv(
	int sock, void *p, size_t cap, int *fds, unsigned *n_fds, bool block, struct err *err)
{
	union control control;
	struct iovec iov = {.iov_base = p, .iov_len = cap};
	struct msghdr mh = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.room,
		.msg_controllen = sizeof(control.room)};
	ssize_t n;
	do
		n = recvmsg(sock, &mh, MSG_CMSG_CLOEXEC | (block ? 0 : MSG_DONTWAIT));
	/* A peer that ended without reading all from us is reported once, before what it sent. */
	while (n < 0 && (errno == EINTR || errno == ECONNRESET));
	if (n < 0)
		return err_sys(err, errno, "receiving a packet");
	unsigned got;
	bool fits = collect_descriptors(&mh, fds, n_fds ? *n_fds : 0, &got);
	if (!fits || (mh.msg_flags & MSG_TRUNC)) {
		while (got)
			(void)close(fds[--got]);
		return err_set(err, ERR_PARSE,
			"a packet or its descriptors are larger than %zu bytes", cap);
	}
	if (n_fds)
		*n_fds = got;
	return (int)n;
}

int process_undumpable(struct err *err)
{
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		return err_sys(err, errno, "forbidding dumps");
	return 0;
}

int64_t process_argument(const char *text, int64_t max)
{
	int64_t n = 0;
	if (!*text)
		return -1;
	for (; *text; text++) {
		if (*text < '0' || *text > '9' || n > (max - (*text - '0')) / 10)
			return -1;
		n = 10 * n + (*text - '0');
	}
	return n;
}
