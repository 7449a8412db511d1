/* Starting the launcher of commands: see sandbox_start.h. */
#include "daemon/sandbox_start.h"

#include "daemon/programs.h"
#include "sys/landlock.h"
#include "sys/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>

enum { END_WAIT_MS = 3000, PROCESSES = 512, CPU_S = 3600, TIME_MS = 3600 * 1000 };
#define MEMORY (2LL * 1024 * 1024 * 1024)
/* /tmp and home come on top of what the workspace's quota lets through. */
#define SCRATCH (2 * QUOTA_BYTES_DEFAULT)
#define SCRATCH_ENTRIES (2 * QUOTA_ENTRIES_DEFAULT)

struct sandbox {
	struct process process;
	struct fence *fence;
};

static int64_t or_else(int64_t n, int64_t dflt)
{
	return n > 0 ? n : dflt;
}

void sandbox_config(const struct sandbox_options *opt, struct fence_config *ret)
{
	int abi = landlock_abi();
	if (opt->landlock_abi)
		abi = MIN(abi, MAX(opt->landlock_abi, 0));
	*ret = (struct fence_config){.root = geteuid() == 0,
		.uid = geteuid(),
		.gid = getegid(),
		.landlock_abi = abi,
		.most = {.memory_bytes = or_else(opt->most.memory_bytes, MEMORY),
			.scratch_bytes = or_else(opt->most.scratch_bytes, SCRATCH),
			.scratch_entries = or_else(opt->most.scratch_entries, SCRATCH_ENTRIES),
			.processes = or_else(opt->most.processes, PROCESSES),
			.cpu_s = or_else(opt->most.cpu_s, CPU_S),
			.time_ms = or_else(opt->most.time_ms, TIME_MS)}};
}

enum { NUMBERS = 7, DIGITS = 24 };

static int start_launcher(
	struct sandbox *s, const struct sandbox_options *opt, int theirs, struct err *err)
{
	struct fence_config c;
	char text[NUMBERS][DIGITS];
	const char *argv[NUMBERS + 2] = {"cloister-sandbox"};
	static const char *const envp[] = {NULL};
	_cleanup_close_ int program = program_open(opt->libexecdir, "cloister-sandbox", err);
	if (program < 0)
		return program;
	_cleanup_close_ int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null_fd < 0)
		return err_sys(err, errno, "opening the null device");
	sandbox_config(opt, &c);
	const int64_t numbers[NUMBERS] = {c.landlock_abi, c.most.memory_bytes, c.most.scratch_bytes,
		c.most.scratch_entries, c.most.processes, c.most.cpu_s, c.most.time_ms};
	for (unsigned i = 0; i < NUMBERS; i++) {
		(void)snprintf(text[i], DIGITS, "%lld", (long long)numbers[i]);
		argv[1 + i] = text[i];
	}
	const struct process_spec spec = {.exec_fd = program,
		.argv = argv,
		.envp = envp,
		.fds = &theirs,
		.n_fds = 1,
		.null_fd = null_fd,
		.keep_stderr = true};
	return program_start_later(opt->libexecdir, &spec, &s->process, err);
}

int sandbox_start(const struct sandbox_options *opt, struct sandbox **ret, struct err *err)
{
	int pair[2];
	_cleanup_(cleanup_sandbox_free) struct sandbox *s = calloc(1, sizeof(*s));
	if (!s)
		return err_oom(err);
	s->process.pidfd = -1;
	int r = packet_pair(pair, err);
	if (r < 0)
		return r;
	_cleanup_close_ int theirs = pair[1];
	if ((r = fence_new(pair[0], &s->fence, err)) < 0 ||
		(r = start_launcher(s, opt, theirs, err)) < 0)
		return r;
	*ret = take_ptr(s);
	return 0;
}

void sandbox_free(struct sandbox *s)
{
	int status;
	if (!s)
		return;
	fence_free(s->fence);
	if (s->process.pidfd >= 0) {
		if (!process_wait(&s->process, END_WAIT_MS, &status)) {
			process_kill(&s->process, SIGKILL);
			(void)process_wait(&s->process, END_WAIT_MS, &status);
		}
		process_done(&s->process);
	}
	free(s);
}

struct fence *sandbox_fence(struct sandbox *s)
{
	return s->fence;
}
