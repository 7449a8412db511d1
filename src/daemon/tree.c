/* The tree of processes behind core: see tree.h. */
#include "daemon/programs.h"
#include "daemon/rights.h"
#include "daemon/tree_internal.h"
#include "sys/landlock.h"
#include "sys/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

enum {
	WORKERS_DEFAULT = 256,
	WORKERS_MAX = 1024, /* as the supervisor has it */
	WORKER_MEMORY_DEFAULT = 1024 * 1024 * 1024,
	WORKER_CPU_DEFAULT = 3600,
	END_WAIT_MS = 3000,
};

struct tree {
	int sock;
	struct process supervisor;
	int landlock_abi;
	const char *gaps;
	unsigned max_workers, n_leases;
	uint64_t last_lease;
	struct {
		uint64_t id;
		struct lease_end end;
	} * leases; /* max_workers of them */
	bool dead;  /* the supervisor is gone */
};

/* --- what this machine has --- */

static bool has_openat2(void)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_BENEATH};
	int fd = (int)syscall(__NR_openat2, AT_FDCWD, ".", &how, sizeof(how));
	if (fd >= 0)
		(void)close(fd);
	return fd >= 0 || errno != ENOSYS;
}

int tree_landlock_usable(const struct tree_options *opt)
{
	int abi = landlock_abi();
	if (opt->landlock_abi)
		abi = MIN(abi, MAX(opt->landlock_abi, 0));
	return abi >= LANDLOCK_ABI_NEEDED ? abi : 0;
}

static int look_for_gaps(struct tree *t, const struct tree_options *opt, struct err *err)
{
	bool openat2 = has_openat2();
	t->landlock_abi = tree_landlock_usable(opt);
	if (!t->landlock_abi)
		t->gaps = openat2 ? "no Landlock of ABI 2 or newer: the worker is held by its "
				    "user, its system calls and its descriptors only"
				  : "neither Landlock of ABI 2 nor openat2: the worker is held by "
				    "its user and its system calls only";
	else if (!openat2)
		t->gaps = "no openat2: paths cannot be kept below the workspace by the kernel";
	if (!t->gaps || opt->single_user)
		return 0;
	(void)err_set(err, ERR_UNAVAILABLE, "this machine has %s", t->gaps);
	return err_hint(err, "Linux 6.1 with Landlock, or single_user to start with this gap");
}

/* --- the supervisor --- */

static int start_supervisor(
	struct tree *t, const struct tree_options *opt, int sock, struct err *err)
{
	_cleanup_close_ int supervisor = program_open(opt->libexecdir, "cloister-supervisor", err);
	if (supervisor < 0)
		return supervisor;
	_cleanup_close_ int worker = program_open(opt->libexecdir, "cloister-worker", err);
	if (worker < 0)
		return worker;
	_cleanup_close_ int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null_fd < 0)
		return err_sys(err, errno, "opening the null device");
	char abi[16], workers[16], memory[32], cpu[32];
	(void)snprintf(abi, sizeof(abi), "%d", t->landlock_abi);
	(void)snprintf(workers, sizeof(workers), "%u", t->max_workers);
	(void)snprintf(memory, sizeof(memory), "%lld",
		(long long)(opt->worker_memory ? opt->worker_memory : WORKER_MEMORY_DEFAULT));
	(void)snprintf(cpu, sizeof(cpu), "%lld",
		(long long)(opt->worker_cpu_s ? opt->worker_cpu_s : WORKER_CPU_DEFAULT));
	const char *const argv[] = {"cloister-supervisor", abi, workers, memory, cpu,
		opt->worker_stderr ? "1" : "0", NULL};
	static const char *const envp[] = {NULL};
	const int fds[] = {sock, worker};
	const struct process_spec spec = {.exec_fd = supervisor,
		.argv = argv,
		.envp = envp,
		.fds = fds,
		.n_fds = ARRAY_LEN(fds),
		.null_fd = null_fd,
		.keep_stderr = true};
	return program_start_later(opt->libexecdir, &spec, &t->supervisor, err);
}

static int tree_new(const struct tree_options *opt, struct tree **ret, struct err *err)
{
	_cleanup_(cleanup_tree_free) struct tree *t = calloc(1, sizeof(*t));
	if (!t)
		return err_oom(err);
	t->sock = t->supervisor.pidfd = -1;
	t->max_workers = opt->max_workers ? opt->max_workers : WORKERS_DEFAULT;
	if (t->max_workers > WORKERS_MAX)
		return err_set(err, ERR_LIMIT, "at most %d workers", WORKERS_MAX);
	t->leases = calloc(t->max_workers, sizeof(*t->leases));
	if (!t->leases)
		return err_oom(err);
	int r = look_for_gaps(t, opt, err);
	if (r == 0)
		*ret = take_ptr(t);
	return r;
}

int tree_start(const struct tree_options *opt, struct tree **ret, struct err *err)
{
	_cleanup_(cleanup_tree_free) struct tree *t = NULL;
	int pair[2], r = tree_new(opt, &t, err);
	if (r < 0 || (r = packet_pair(pair, err)) < 0)
		return r;
	t->sock = pair[0];
	r = start_supervisor(t, opt, pair[1], err);
	(void)close(pair[1]);
	if (r < 0)
		return r;
	*ret = take_ptr(t);
	return 0;
}

int tree_over(const struct tree_options *opt, int sock, struct tree **ret, struct err *err)
{
	struct tree *t;
	int r = tree_new(opt, &t, err);
	if (r < 0)
		return r;
	t->sock = sock;
	*ret = t;
	return 0;
}

void tree_free(struct tree *t)
{
	int status;
	if (!t)
		return;
	cleanup_close(&t->sock);
	if (t->supervisor.pidfd >= 0) {
		if (!process_wait(&t->supervisor, END_WAIT_MS, &status)) {
			process_kill(&t->supervisor, SIGKILL);
			(void)process_wait(&t->supervisor, END_WAIT_MS, &status);
		}
		process_done(&t->supervisor);
	}
	free(t->leases);
	free(t);
}

const char *tree_gaps(const struct tree *t)
{
	return t->gaps;
}

int tree_supervisor_pid(const struct tree *t)
{
	return (int)t->supervisor.pid;
}

int tree_landlock_abi(const struct tree *t)
{
	return t->landlock_abi;
}

int tree_worker(struct tree *t, const int *mount_fds, unsigned n_mounts, struct worker **ret,
	struct err *err)
{
	return client_new(t, mount_fds, n_mounts, ret, err);
}

/* --- leases --- */

static int supervisor_gone(struct tree *t, struct err *err)
{
	t->dead = true;
	return err_set(
		err, ERR_UNAVAILABLE, "the supervisor has ended, so no worker can be started");
}

int tree_spawn(struct tree *t, const int *mount_fds, unsigned n_mounts, uint64_t *ret_lease,
	int *ret_channel, struct err *err)
{
	static struct msg_out out;
	int pair[2], fds[1 + LIMIT_MOUNTS];
	if (t->dead)
		return supervisor_gone(t, err);
	if (t->n_leases == t->max_workers)
		return err_set(err, ERR_LIMIT, "at most %u workers", t->max_workers);
	int r = packet_pair(pair, err);
	if (r < 0)
		return r;
	_cleanup_close_ int ours = pair[0];
	_cleanup_close_ int theirs = pair[1];
	const struct msg_spawn m = {.lease = ++t->last_lease};
	msg_out_clear(&out);
	BUG_ON(!msg_spawn_put(&out, &m));
	fds[0] = theirs;
	memcpy(fds + 1, mount_fds, n_mounts * sizeof(fds[0]));
	r = packet_send(t->sock, out.data, out.len, fds, 1 + n_mounts, false, err);
	if (r < 0)
		return err->code == ERR_UNAVAILABLE ? supervisor_gone(t, err) : r;
	t->leases[t->n_leases].id = m.lease;
	t->leases[t->n_leases++].end = (struct lease_end){0};
	*ret_lease = m.lease;
	*ret_channel = take_fd(ours);
	return 0;
}

void tree_kill(struct tree *t, uint64_t lease)
{
	static struct msg_out out;
	struct err err;
	const struct msg_kill m = {.lease = lease};
	msg_out_clear(&out);
	BUG_ON(!msg_kill_put(&out, &m));
	if (t->dead)
		return;
	/* Where the socket is full, closing the channel ends the worker as well, only later. */
	if (packet_send(t->sock, out.data, out.len, NULL, 0, false, &err) == -ERR_UNAVAILABLE)
		t->dead = true;
}

void tree_forget(struct tree *t, uint64_t lease)
{
	for (unsigned i = 0; i < t->n_leases; i++)
		if (t->leases[i].id == lease) {
			t->leases[i] = t->leases[--t->n_leases];
			return;
		}
}

static void note_end(struct tree *t, const struct msg_ended *m)
{
	for (unsigned i = 0; i < t->n_leases; i++)
		if (t->leases[i].id == m->lease)
			t->leases[i].end = (struct lease_end){
				.known = true, .error = (int)m->error, .status = (int)m->status};
}

/* One packet of the supervisor: 1 handled, 0 none there, < 0 it is gone. */
static int hear_supervisor(struct tree *t)
{
	char packet[256];
	struct err err;
	enum msg_type type;
	struct msg_in body;
	struct msg_ended m;
	int n = packet_recv(t->sock, packet, sizeof(packet), NULL, NULL, false, &err);
	if (n < 0 && err.code == ERR_BUSY)
		return 0;
	struct msg_in in = {packet, n > 0 ? (size_t)n : 0};
	if (n <= 0 || msg_next(&in, MSG_CORE, &type, &body, &err) <= 0 || in.left ||
		type != MSG_T_ENDED || msg_ended_get(body, &m, &err) < 0) {
		t->dead = true;
		return -1;
	}
	note_end(t, &m);
	return 1;
}

static struct lease_end end_of(const struct tree *t, uint64_t lease)
{
	for (unsigned i = 0; i < t->n_leases; i++)
		if (t->leases[i].id == lease)
			return t->leases[i].end;
	return (struct lease_end){0};
}

struct lease_end tree_lease_end(struct tree *t, uint64_t lease, int wait_ms)
{
	int64_t until = loop_now_ms() + wait_ms;
	for (;;) {
		while (!t->dead && hear_supervisor(t) > 0)
			;
		struct lease_end end = end_of(t, lease);
		int64_t left = until - loop_now_ms();
		if (end.known || t->dead || left <= 0)
			return end;
		struct pollfd p = {.fd = t->sock, .events = POLLIN};
		(void)poll(&p, 1, (int)left);
	}
}
