/* The doctor's frame: the table of probes, scratch directories, children. See doctor.h. */
#include "session/doctor_impl.h"

#include "base/text.h"
#include "session/remove_tree.h"
#include "sys/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { CHILD_MS = 5000 };

const char *doctor_word(enum doctor_outcome outcome)
{
	static const char *const words[] = {
		[DOCTOR_OK] = "ok",
		[DOCTOR_MISSING] = "missing",
		[DOCTOR_FAILED] = "failed",
		[DOCTOR_SKIPPED] = "skipped",
	};
	return words[outcome];
}

void doctor_ok(struct doctor_check *c, const char *fmt, ...)
{
	va_list ap;
	c->outcome = DOCTOR_OK;
	va_start(ap, fmt);
	(void)vsnprintf(c->detail, sizeof(c->detail), fmt, ap);
	va_end(ap);
}

void doctor_not(struct doctor_check *c, int errnum, const char *fmt, ...)
{
	va_list ap;
	c->outcome = c->required ? DOCTOR_FAILED : DOCTOR_MISSING;
	va_start(ap, fmt);
	int n = vsnprintf(c->detail, sizeof(c->detail), fmt, ap);
	va_end(ap);
	if (errnum != 0 && n >= 0 && (size_t)n < sizeof(c->detail))
		(void)snprintf(
			c->detail + n, sizeof(c->detail) - (size_t)n, ": %s", strerror(errnum));
}

void doctor_skip(struct doctor_check *c, const char *why)
{
	c->outcome = DOCTOR_SKIPPED;
	(void)snprintf(c->detail, sizeof(c->detail), "%s", why);
}

/* Wait for a child, at most CHILD_MS. */
static int wait_bounded(pid_t pid)
{
	int64_t end = clock_mono_ns() + (int64_t)CHILD_MS * 1000000;
	int status;
	for (;;) {
		pid_t got = waitpid(pid, &status, WNOHANG);
		if (got == pid)
			break;
		if (got < 0 && errno != EINTR)
			return EPROTO;
		if (clock_mono_ns() >= end) {
			(void)kill(pid, SIGKILL);
			(void)waitpid(pid, NULL, 0);
			return ETIME;
		}
		(void)poll(NULL, 0, 1);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : EPROTO;
}

int doctor_in_child(int (*fn)(void *ctx), void *ctx)
{
	pid_t pid = fork();
	if (pid < 0)
		return errno;
	if (pid == 0)
		_exit(fn(ctx) & 0xff);
	return wait_bounded(pid);
}

/* A fresh directory to try things in. */
static void scratch_name(char out[32])
{
	(void)snprintf(out, 32, ".doctor-%d", (int)getpid());
}

static void scratch_remove(int dir_fd)
{
	struct remove_budget all = {.entries = -1};
	struct err ignored;
	char name[32];
	scratch_name(name);
	if (dir_fd >= 0)
		(void)!remove_tree(dir_fd, name, &all, &ignored);
}

static int scratch_make(int dir_fd)
{
	char name[32];
	scratch_name(name);
	scratch_remove(dir_fd);
	if (dir_fd < 0 || mkdirat(dir_fd, name, 0700) < 0)
		return -1;
	return openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

unsigned doctor_run(const struct state_paths *paths, struct doctor_check ret[DOCTOR_CHECKS_MAX])
{
	static const struct doctor_check table[] = {
#define PROBE(fn, name_, required_, needed_by_, advice_)                                           \
	{.name = name_, .required = required_, .needed_by = needed_by_, .advice = advice_},
		DOCTOR_PROBES(PROBE)
#undef PROBE
	};
	static const doctor_probe probes[] = {
#define PROBE(fn, name_, required_, needed_by_, advice_) probe_##fn,
		DOCTOR_PROBES(PROBE)
#undef PROBE
	};
	_Static_assert(ARRAY_LEN(table) <= DOCTOR_CHECKS_MAX, "room for every probe");
	struct doctor d = {.state_fd = -1, .base_fd = -1};
	(void)!state_open(paths, &d.state_fd, &d.base_fd, &d.state_err); /* a probe reports it */
	d.state_scratch = scratch_make(d.state_fd);
	d.base_scratch = scratch_make(d.base_fd);
	for (unsigned i = 0; i < ARRAY_LEN(table); i++) {
		ret[i] = table[i];
		probes[i](&d, &ret[i]);
		ret[i].detail[utf8_error_at(ret[i].detail, strlen(ret[i].detail))] = 0;
	}
	scratch_remove(d.state_fd);
	scratch_remove(d.base_fd);
	cleanup_close(&d.state_scratch);
	cleanup_close(&d.base_scratch);
	cleanup_close(&d.state_fd);
	cleanup_close(&d.base_fd);
	return ARRAY_LEN(table);
}

bool doctor_healthy(const struct doctor_check *checks, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (checks[i].outcome == DOCTOR_FAILED)
			return false;
	return true;
}
