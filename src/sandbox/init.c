/* The first process of a fence: see init.h. */
#include "sandbox/init.h"

#include "sandbox/apply.h"
#include "sandbox/upper.h"
#include "sys/process.h"
#include "workspace/workspace.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { KEPT_MAX = FENCE_FDS + 2, HIGH_FD = 64 };

#define PATH_INSIDE "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
#define PATH_VARIABLE "PATH=" PATH_INSIDE

/* --- telling core ----------------------------------------------------------------------------- */

/* Core is gone when this fails, and then nothing is left to do. */
static void report(const struct init *i, const struct fence_report *m)
{
	struct err err;
	if (packet_send(i->fds[FENCE_FD_CONTROL], m, sizeof(*m), NULL, 0, true, &err) < 0)
		_exit(1);
}

_noreturn_ static void give_up(const struct init *i, const struct err *why, bool exec_failed)
{
	struct fence_report m = {
		.type = FENCE_FAILED, .code = (int32_t)why->code, .exec_failed = exec_failed};
	(void)snprintf(m.text, sizeof(m.text), "%s", why->text);
	report(i, &m);
	_exit(1);
}

/* --- descriptors ------------------------------------------------------------------------------ */

/* Keep what the fence needs, above every number that it could be taken for, and nothing else. */
static int keep_descriptors(struct init *i, struct err *err)
{
	int *const kept[KEPT_MAX] = {&i->fds[FENCE_FD_STDIN], &i->fds[FENCE_FD_STDOUT],
		&i->fds[FENCE_FD_STDERR], &i->fds[FENCE_FD_CONTROL], &i->go, &i->lower_tree};
	int high = HIGH_FD;
	while (fcntl(high, F_GETFD) >= 0)
		high += HIGH_FD;
	int first = high;
	for (unsigned k = 0; k < KEPT_MAX && kept[k]; k++) {
		if (*kept[k] < 0)
			continue;
		if ((*kept[k] = fcntl(*kept[k], F_DUPFD_CLOEXEC, high)) < 0)
			return err_sys(err, errno, "arranging descriptors");
		if (*kept[k] != high)
			return err_set(err, ERR_INTERNAL, "descriptors are not where expected");
		high++;
	}
	if (syscall(__NR_close_range, 0, (unsigned)first - 1, 0) < 0 ||
		syscall(__NR_close_range, (unsigned)high, ~0u, 0) < 0)
		return err_sys(err, errno, "closing descriptors");
	return 0;
}

/* --- the command ------------------------------------------------------------------------------ */

static int arrange_streams(const struct init *i)
{
	for (int fd = 0; fd < 3; fd++)
		if (dup2(i->fds[FENCE_FD_STDIN + fd], fd) < 0)
			return -1;
	return 0;
}

static int make_environment(const struct init *i, const char **ret, char home[64], char pwd[4200])
{
	static const char *const always[] = {PATH_VARIABLE, "USER=agent", "LOGNAME=agent",
		"SHELL=/bin/bash", "LANG=C.UTF-8", "TMPDIR=/tmp"};
	unsigned n = 0;
	for (; n < ARRAY_LEN(always); n++)
		ret[n] = always[n];
	(void)snprintf(home, 64, "HOME=%s", i->plan->home);
	(void)snprintf(pwd, 4200, "PWD=%s%s%s", i->plan->workdir, i->request->cwd[0] ? "/" : "",
		i->request->cwd);
	ret[n++] = home;
	ret[n++] = pwd;
	for (unsigned k = 0; i->request->envp[k]; k++)
		ret[n++] = i->request->envp[k];
	ret[n] = NULL;
	return 0;
}

/* As execvp(3) does, with the PATH of the fence. */
static void execute(const struct init *i, char *const *argv, char *const *envp)
{
	char path[LIMIT_PATH_BYTES];
	int worst = ENOENT;
	if (strchr(argv[0], '/')) {
		(void)execve(argv[0], argv, envp);
		return;
	}
	(void)i;
	for (const char *p = PATH_INSIDE; *p;) {
		size_t n = strcspn(p, ":");
		int len = snprintf(path, sizeof(path), "%.*s/%s", (int)n, p, argv[0]);
		if (len > 0 && (size_t)len < sizeof(path))
			(void)execve(path, argv, envp);
		if (errno != ENOENT && errno != ENOTDIR)
			worst = errno;
		p += n + (p[n] == ':');
	}
	errno = worst;
}

static int restrict_command(const struct init *i, struct err *err)
{
	int r = limits_apply(i->plan, err);
	if (r == 0)
		r = capabilities_drop(err);
	if (r == 0)
		r = places_restrict(i->plan, err);
	if (r == 0)
		r = seccomp_install(i->calls, err);
	return r;
}

/* What the child tells its parent before it executes. */
struct last_words {
	bool exec_failed;
	struct err err;
};

_noreturn_ static void command_main(const struct init *i, int tell)
{
	struct last_words words = {0};
	static const char *envp[FENCE_WORDS_MAX + 16];
	char home[64], pwd[4200];
	sigset_t none;
	(void)sigemptyset(&none);
	(void)umask(022);
	(void)make_environment(i, envp, home, pwd);
	if (setsid() < 0 || arrange_streams(i) < 0 || chdir(pwd + 4) < 0 ||
		sigprocmask(SIG_SETMASK, &none, NULL) < 0) {
		(void)err_sys(&words.err, errno, "the working directory");
	} else if (restrict_command(i, &words.err) == 0) {
		/* The way back closes with the exec; everything else closes now. */
		(void)dup2(tell, 3);
		(void)fcntl(3, F_SETFD, FD_CLOEXEC);
		tell = 3;
		(void)syscall(__NR_close_range, 4u, ~0u, 0);
		execute(i, (char *const *)(uintptr_t)i->request->argv,
			(char *const *)(uintptr_t)envp);
		words.exec_failed = true;
		(void)err_sys(&words.err, errno, "%.100s", i->request->argv[0]);
	}
	(void)!write(tell, &words, sizeof(words));
	_exit(127);
}

static pid_t start_command(const struct init *i)
{
	int tell[2];
	struct err err;
	struct last_words words;
	if (pipe2(tell, O_CLOEXEC) < 0) {
		(void)err_sys(&err, errno, "making a pipe");
		give_up(i, &err, false);
	}
	pid_t pid = fork();
	if (pid == 0)
		command_main(i, tell[1]);
	if (pid < 0) {
		(void)err_sys(&err, errno, "starting the command");
		give_up(i, &err, false);
	}
	(void)close(tell[1]);
	ssize_t n;
	while ((n = read(tell[0], &words, sizeof(words))) < 0 && errno == EINTR)
		;
	(void)close(tell[0]);
	if (n == (ssize_t)sizeof(words))
		give_up(i, &words.err, words.exec_failed);
	for (int fd = FENCE_FD_STDIN; fd <= FENCE_FD_STDERR; fd++)
		(void)close(i->fds[fd]);
	const struct fence_report m = {.type = FENCE_STARTED, .limited = i->limited};
	report(i, &m);
	return pid;
}

/* --- until it ends ---------------------------------------------------------------------------- */

/* An order of core; its end ends us, and the kernel whatever runs here. */
static enum fence_order order(const struct init *i)
{
	char byte;
	ssize_t n;
	while ((n = recv(i->fds[FENCE_FD_CONTROL], &byte, 1, 0)) < 0 && errno == EINTR)
		;
	if (n != 1)
		_exit(0);
	return (enum fence_order)byte;
}

/* Reap whatever has ended; true when the command itself has. */
static bool reap(pid_t command, int *ret_status)
{
	int status;
	pid_t pid;
	bool ended = false;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		if (pid == command) {
			*ret_status = status;
			ended = true;
		}
	return ended;
}

static int wait_for(const struct init *i, pid_t command, int signals)
{
	int status = 0;
	struct signalfd_siginfo info;
	struct pollfd p[] = {{.fd = signals, .events = POLLIN},
		{.fd = i->fds[FENCE_FD_CONTROL], .events = POLLIN}};
	while (!reap(command, &status)) {
		(void)poll(p, ARRAY_LEN(p), -1);
		if (p[0].revents)
			(void)!read(signals, &info, sizeof(info));
		if (p[1].revents && order(i) == FENCE_KILL)
			(void)kill(-1, SIGKILL);
	}
	return status;
}

/* No process of the command is left after this. */
static void end_all(void)
{
	int status;
	(void)kill(-1, SIGKILL);
	while (waitpid(-1, &status, 0) > 0 || errno == EINTR)
		;
}

static int64_t microseconds(const struct timeval *t)
{
	return (int64_t)t->tv_sec * 1000000 + t->tv_usec;
}

static void report_exit(const struct init *i, int status)
{
	struct rusage use;
	(void)getrusage(RUSAGE_CHILDREN, &use);
	const struct fence_report m = {.type = FENCE_EXITED,
		.status = status,
		.user_us = microseconds(&use.ru_utime),
		.system_us = microseconds(&use.ru_stime),
		.max_rss_kb = use.ru_maxrss};
	report(i, &m);
}

/* --- what it changed -------------------------------------------------------------------------- */

struct export
{
	const struct init *init;
	struct buf packet;
	int fds[FENCE_ENTRIES_FDS_MAX];
	unsigned n_fds;
};

/* Send what has come together and wait until core has taken it. */
static int flush(struct export *x, struct err *err)
{
	if (x->packet.len <= sizeof(uint32_t))
		return 0;
	int r = packet_send(x->init->fds[FENCE_FD_CONTROL], x->packet.data, x->packet.len, x->fds,
		x->n_fds, true, err);
	while (x->n_fds)
		(void)close(x->fds[--x->n_fds]);
	fence_entries_begin(&x->packet);
	while (r == 0 && order(x->init) != FENCE_EXPORT)
		;
	return r;
}

static int give(void *ctx, const struct fence_entry *e, int fd, struct err *err)
{
	struct export *x = ctx;
	int r = fd >= 0 && x->n_fds == FENCE_ENTRIES_FDS_MAX ? flush(x, err) : 0;
	if (r == 0 && !fence_entry_put(&x->packet, e)) {
		if ((r = flush(x, err)) == 0 && !fence_entry_put(&x->packet, e))
			r = err_oom(err);
	}
	if (r < 0 || fd < 0)
		return r;
	int kept = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (kept < 0)
		return err_sys(err, errno, "keeping a changed file");
	x->fds[x->n_fds++] = kept;
	return 0;
}

_noreturn_ static void export_changes(const struct init *i, int upper)
{
	struct err err;
	struct export x = {.init = i, .packet = buf_init(FENCE_PACKET_MAX)};
	const struct fence_report end = {.type = FENCE_END};
	while (order(i) != FENCE_EXPORT)
		;
	fence_entries_begin(&x.packet);
	int r = upper_walk(upper, WORKSPACE_STORE_NAME, give, &x, &err);
	if (r == 0)
		r = flush(&x, &err);
	if (r < 0)
		give_up(i, &err, false);
	report(i, &end);
	_exit(0);
}

/* --- all of it -------------------------------------------------------------------------------- */

static int watch_children(struct err *err)
{
	sigset_t set;
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGCHLD);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	int fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? err_sys(err, errno, "watching the command") : fd;
}

static int build(struct init *i, int *ret_upper, struct err *err)
{
	char go;
	if (read(i->go, &go, 1) != 1)
		return err_set(err, ERR_UNAVAILABLE, "the fence's identity was not mapped");
	(void)close(take_fd(i->go));
	int r = identity_take(i->plan, err);
	if (r == 0)
		r = process_undumpable(err);
	if (r == 0 && sethostname(i->plan->hostname, strlen(i->plan->hostname)) < 0)
		r = err_sys(err, errno, "naming the fence's host");
	if (r == 0)
		r = network_up(err);
	if (r == 0)
		r = root_build(i->plan, i->lower_tree, ret_upper, err);
	cleanup_close(&i->lower_tree);
	return r;
}

void init_main(const struct init *given)
{
	struct init i = *given;
	struct err err;
	int upper = -1, signals = -1;
	i.fds[FENCE_FD_WORKSPACE] = -1;
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || keep_descriptors(&i, &err) < 0)
		_exit(1);
	if (build(&i, &upper, &err) < 0 || (signals = watch_children(&err)) < 0)
		give_up(&i, &err, false);
	int status = wait_for(&i, start_command(&i), signals);
	end_all();
	report_exit(&i, status);
	export_changes(&i, upper);
}
