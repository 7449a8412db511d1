/*
 * cloister-supervisor: starts, kills and reaps the workers of one core.
 *
 *   argv: LANDLOCK-ABI MAX-WORKERS WORKER-MEMORY WORKER-CPU-SECONDS KEEP-STDERR
 *   fd 3: packets from and to core     fd 4: the worker's executable
 *
 * No deputy: core names a lease and hands descriptors over; what is started, with which limits and
 * with which identity, stands in the arguments above. It sees no byte of a client. It ends, with
 * all workers, when core does.
 */
#include "daemon/messages.h"
#include "daemon/rights.h"
#include "sys/process.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/syscall.h>

enum { WORKERS_MAX = 1024, ARGUMENTS = 5 };

struct lease {
	uint64_t id;
	struct process process;
};

struct supervisor {
	int landlock_abi;
	unsigned max_workers, n;
	const char *memory, *cpu_s;
	bool keep_stderr;
	int null_fd;
	struct lease leases[WORKERS_MAX];
};

/* A read-only, no-exec, no-device view of a mount, where the kernel lets us; else the descriptor
 * itself, whose worker still cannot write (rights_worker.c). */
static int read_only_clone(int fd)
{
	int tree = (int)syscall(
		__NR_open_tree, fd, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (tree < 0)
		return fd;
	struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID |
					      MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC};
	if (syscall(__NR_mount_setattr, tree, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0) {
		(void)close(tree);
		return fd;
	}
	(void)close(fd);
	return tree;
}

static int start_worker(
	struct supervisor *s, int *fds, unsigned n, struct process *ret, struct err *err)
{
	char abi[16], mounts[16];
	(void)snprintf(abi, sizeof(abi), "%d", s->landlock_abi);
	(void)snprintf(mounts, sizeof(mounts), "%u", n - 1);
	for (unsigned i = 1; i < n; i++)
		fds[i] = read_only_clone(fds[i]);
	const char *const argv[] = {"cloister-worker", abi, mounts, s->memory, s->cpu_s, NULL};
	static const char *const envp[] = {NULL};
	const struct process_spec spec = {.exec_fd = SUPERVISOR_FD_WORKER_EXE,
		.argv = argv,
		.envp = envp,
		.fds = fds,
		.n_fds = n,
		.null_fd = s->null_fd,
		.keep_stderr = s->keep_stderr};
	return process_start(&spec, ret, err);
}

static int tell_ended(uint64_t lease, int error, int status, struct err *err)
{
	static struct msg_out out;
	const struct msg_ended m = {
		.lease = lease, .error = (uint32_t)error, .status = (uint32_t)status};
	msg_out_clear(&out);
	BUG_ON(!msg_ended_put(&out, &m));
	return packet_send(SUPERVISOR_FD_CORE, out.data, out.len, NULL, 0, true, err);
}

static int handle_spawn(
	struct supervisor *s, const struct msg_spawn *m, int *fds, unsigned n_fds, struct err *err)
{
	if (n_fds < 1)
		return err_set(err, ERR_PARSE, "a worker without a channel was asked for");
	if (s->n >= s->max_workers)
		return tell_ended(m->lease, EAGAIN, 0, err);
	struct lease *l = &s->leases[s->n];
	if (start_worker(s, fds, n_fds, &l->process, err) < 0)
		return tell_ended(m->lease, err->sys ? err->sys : EIO, 0, err);
	l->id = m->lease;
	s->n++;
	return 0;
}

static void handle_kill(struct supervisor *s, uint64_t lease)
{
	for (unsigned i = 0; i < s->n; i++)
		if (s->leases[i].id == lease)
			process_kill(&s->leases[i].process, SIGKILL);
}

/* One message a packet, since its descriptors belong to it. */
static int handle_packet(
	struct supervisor *s, struct msg_in in, int *fds, unsigned n_fds, struct err *err)
{
	enum msg_type type;
	struct msg_in body;
	int r = msg_next(&in, MSG_SUPERVISOR, &type, &body, err);
	if (r <= 0 || in.left || n_fds > msg_fds_max(type))
		return r < 0 ? r : err_set(err, ERR_PARSE, "a packet is not one message");
	if (type == MSG_T_SPAWN) {
		struct msg_spawn m;
		r = msg_spawn_get(body, &m, err);
		return r < 0 ? r : handle_spawn(s, &m, fds, n_fds, err);
	}
	struct msg_kill m;
	r = msg_kill_get(body, &m, err);
	if (r == 0)
		handle_kill(s, m.lease);
	return r;
}

/* < 0: core is gone or talks nonsense, which ends us either way. */
static int receive(struct supervisor *s, struct err *err)
{
	static char packet[4096];
	int fds[1 + LIMIT_MOUNTS];
	unsigned n_fds = ARRAY_LEN(fds);
	int n = packet_recv(SUPERVISOR_FD_CORE, packet, sizeof(packet), fds, &n_fds, true, err);
	if (n < 0)
		return n;
	if (n == 0)
		return err_set(err, ERR_UNAVAILABLE, "core is gone");
	int r = handle_packet(s, (struct msg_in){packet, (size_t)n}, fds, n_fds, err);
	while (n_fds)
		(void)close(fds[--n_fds]);
	return r;
}

static int reap(struct supervisor *s, unsigned i, struct err *err)
{
	struct lease ended = s->leases[i];
	int status = 0;
	if (!process_wait(&ended.process, 0, &status))
		return 0;
	process_done(&ended.process);
	s->leases[i] = s->leases[--s->n];
	return tell_ended(ended.id, 0, status, err);
}

static int turn(struct supervisor *s, struct err *err)
{
	static struct pollfd p[1 + WORKERS_MAX];
	unsigned n = s->n;
	p[0] = (struct pollfd){.fd = SUPERVISOR_FD_CORE, .events = POLLIN};
	for (unsigned i = 0; i < n; i++)
		p[1 + i] = (struct pollfd){.fd = s->leases[i].process.pidfd, .events = POLLIN};
	if (poll(p, 1 + n, -1) < 0 && errno != EINTR)
		return err_sys(err, errno, "waiting");
	/* from the end, since reaping moves the last lease into the gap */
	for (unsigned i = n; i-- > 0;) {
		int r = p[1 + i].revents ? reap(s, i, err) : 0;
		if (r < 0)
			return r;
	}
	return p[0].revents ? receive(s, err) : 0;
}

static void end_workers(struct supervisor *s)
{
	int status;
	for (unsigned i = 0; i < s->n; i++)
		process_kill(&s->leases[i].process, SIGKILL);
	for (unsigned i = 0; i < s->n; i++)
		(void)process_wait(&s->leases[i].process, 2000, &status);
}

static int run(struct supervisor *s, struct err *err)
{
	const struct supervisor_rights rights = {.landlock_abi = s->landlock_abi};
	int r = process_undumpable(err);
	s->null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (r < 0 || s->null_fd < 0 || (r = supervisor_restrict(&rights, err)) < 0)
		return r < 0 ? r : err_sys(err, errno, "opening /dev/null");
	while (r >= 0)
		r = turn(s, err);
	end_workers(s);
	return err->code == ERR_UNAVAILABLE && err->sys == 0 ? 0 : r;
}

static bool take_arguments(struct supervisor *s, int argc, char **argv)
{
	if (argc != 1 + ARGUMENTS)
		return false;
	int64_t abi = process_argument(argv[1], 1000);
	int64_t workers = process_argument(argv[2], WORKERS_MAX);
	int64_t keep_stderr = process_argument(argv[5], 1);
	s->landlock_abi = (int)abi;
	s->max_workers = (unsigned)workers;
	s->memory = argv[3];
	s->cpu_s = argv[4];
	s->keep_stderr = keep_stderr == 1;
	return abi >= 0 && workers >= 0 && keep_stderr >= 0;
}

int main(int argc, char **argv)
{
	static struct supervisor s;
	struct err err;
	if (!take_arguments(&s, argc, argv))
		return 2;
	int r = run(&s, &err);
	if (r < 0)
		(void)fprintf(stderr, "cloister-supervisor: %s\n", err.text);
	_exit(r < 0); /* nothing is left to do, and what libraries do at exit is not allowed */
}
