/* The workers of one core: see leases.h. */
#include "daemon/leases.h"
#include "daemon/messages.h"
#include "daemon/rights.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/syscall.h>

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
	struct leases *l, int *fds, unsigned n, struct process *ret, struct err *err)
{
	char abi[16], mounts[16];
	(void)snprintf(abi, sizeof(abi), "%d", l->landlock_abi);
	(void)snprintf(mounts, sizeof(mounts), "%u", n - 1);
	for (unsigned i = 1; i < n; i++)
		fds[i] = read_only_clone(fds[i]);
	const char *const argv[] = {"cloister-worker", abi, mounts, l->memory, l->cpu_s, NULL};
	static const char *const envp[] = {NULL};
	const struct process_spec spec = {.exec_fd = l->worker_exe,
		.argv = argv,
		.envp = envp,
		.fds = fds,
		.n_fds = n,
		.null_fd = l->null_fd,
		.keep_stderr = l->keep_stderr};
	return process_start(&spec, ret, err);
}

static int tell_ended(struct leases *l, uint64_t lease, int error, int status, struct err *err)
{
	static struct msg_out out;
	const struct msg_ended m = {
		.lease = lease, .error = (uint32_t)error, .status = (uint32_t)status};
	msg_out_clear(&out);
	BUG_ON(!msg_ended_put(&out, &m));
	return packet_send(l->sock, out.data, out.len, NULL, 0, l->block, err);
}

static int handle_spawn(
	struct leases *l, const struct msg_spawn *m, int *fds, unsigned n_fds, struct err *err)
{
	if (n_fds < 1)
		return err_set(err, ERR_PARSE, "a worker without a channel was asked for");
	if (l->n >= l->max)
		return tell_ended(l, m->lease, EAGAIN, 0, err);
	struct lease *next = &l->v[l->n];
	if (start_worker(l, fds, n_fds, &next->process, err) < 0)
		return tell_ended(l, m->lease, err->sys ? err->sys : EIO, 0, err);
	next->id = m->lease;
	l->n++;
	return 0;
}

static void handle_kill(struct leases *l, uint64_t lease)
{
	for (unsigned i = 0; i < l->n; i++)
		if (l->v[i].id == lease)
			process_kill(&l->v[i].process, SIGKILL);
}

/* One message a packet, since its descriptors belong to it. */
static int handle_packet(
	struct leases *l, struct msg_in in, int *fds, unsigned n_fds, struct err *err)
{
	enum msg_type type;
	struct msg_in body;
	int r = msg_next(&in, MSG_SUPERVISOR, &type, &body, err);
	if (r <= 0 || in.left || n_fds > msg_fds_max(type))
		return r < 0 ? r : err_set(err, ERR_PARSE, "a packet is not one message");
	if (type == MSG_T_SPAWN) {
		struct msg_spawn m;
		r = msg_spawn_get(body, &m, err);
		return r < 0 ? r : handle_spawn(l, &m, fds, n_fds, err);
	}
	if (type != MSG_T_KILL)
		return err_set(err, ERR_PARSE, "core does not say '%s' here", msg_name(type));
	struct msg_kill m;
	r = msg_kill_get(body, &m, err);
	if (r == 0)
		handle_kill(l, m.lease);
	return r;
}

int leases_receive(struct leases *l, struct err *err)
{
	static char packet[4096];
	int fds[1 + LIMIT_MOUNTS];
	unsigned n_fds = ARRAY_LEN(fds);
	int n = packet_recv(l->sock, packet, sizeof(packet), fds, &n_fds, true, err);
	if (n < 0)
		return n;
	if (n == 0)
		return err_set(err, ERR_UNAVAILABLE, "core is gone");
	int r = handle_packet(l, (struct msg_in){packet, (size_t)n}, fds, n_fds, err);
	while (n_fds)
		(void)close(fds[--n_fds]);
	return r;
}

static int reap(struct leases *l, unsigned i, struct err *err)
{
	struct lease ended = l->v[i];
	int status = 0;
	if (!process_wait(&ended.process, 0, &status))
		return 0;
	process_done(&ended.process);
	l->v[i] = l->v[--l->n];
	return tell_ended(l, ended.id, 0, status, err);
}

void leases_poll(const struct leases *l, struct pollfd *p)
{
	for (unsigned i = 0; i < l->n; i++)
		p[i] = (struct pollfd){.fd = l->v[i].process.pidfd, .events = POLLIN};
}

/* From the end, since reaping moves the last lease into the gap. */
int leases_reap(struct leases *l, const struct pollfd *p, unsigned n, struct err *err)
{
	for (unsigned i = n; i-- > 0;) {
		int r = p[i].revents ? reap(l, i, err) : 0;
		if (r < 0)
			return r;
	}
	return 0;
}

void leases_end(struct leases *l)
{
	int status;
	for (unsigned i = 0; i < l->n; i++)
		process_kill(&l->v[i].process, SIGKILL);
	for (unsigned i = 0; i < l->n; i++)
		(void)process_wait(&l->v[i].process, 2000, &status);
}
