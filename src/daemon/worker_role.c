/* The life of a worker process: see worker_role.h. */
#include "daemon/worker_role.h"
#include "daemon/rights.h"
#include "sys/process.h"

#include <malloc.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

enum { ARGUMENTS = 4 };

static struct msg_out out;
static char packet[MSG_PACKET_MAX];

/* The second thread does not keep the channel open in its own table, so core sees the end at once.
 */
static int restrict_thread(void *ctx, struct err *err)
{
	(void)close(WORKER_FD_CORE);
	return worker_restrict(ctx, err);
}

/* A second thread only where it can run beside the first. */
static bool has_two_cpus(void)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	return sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) > 1;
}

/* The identity first, since it takes a privilege; then the second thread, which cannot be made
 * later; then the limits of the process and the fence of this thread. */
static int drop_rights(
	struct worker_rights *r, struct search_pool **ret_pool, bool *ret_own_user, struct err *err)
{
	int e = worker_drop_identity(ret_own_user, err);
	if (e < 0 || (e = process_undumpable(err)) < 0)
		return e;
	if (has_two_cpus() && (e = search_pool_new(restrict_thread, r, ret_pool, err)) < 0)
		return e;
	if ((e = worker_limit(r, err)) < 0)
		return e;
	return worker_restrict(r, err);
}

static int say_hello(struct worker_host *h, int abi, bool own_user, struct err *err)
{
	const struct msg_hello m = {.landlock_abi = (uint32_t)abi, .own_user = own_user};
	BUG_ON(!msg_hello_put(h->out, &m));
	return worker_flush(h, err);
}

static int receive(struct worker_host *h, worker_serve_fn serve, struct err *err)
{
	int fds[4];
	unsigned n_fds = ARRAY_LEN(fds);
	int n = packet_recv(h->sock, packet, sizeof(packet), fds, &n_fds, true, err);
	if (n <= 0)
		return n < 0 ? n : err_set(err, ERR_UNAVAILABLE, "core is gone");
	int r = serve(h, (struct msg_in){packet, (size_t)n}, fds, n_fds, err);
	while (n_fds)
		(void)close(fds[--n_fds]);
	return r;
}

_noreturn_ static void end(const struct err *err)
{
	if (err->code == ERR_UNAVAILABLE && !err->sys)
		_exit(0); /* core is gone: nothing to say, nobody to say it to */
	(void)dprintf(2, "cloister-worker: %s\n", err->text);
	_exit(1);
}

static bool take_arguments(struct worker_rights *r, int argc, char **argv)
{
	if (argc != 1 + ARGUMENTS)
		return false;
	int64_t abi = process_argument(argv[1], 1000);
	int64_t mounts = process_argument(argv[2], LIMIT_MOUNTS);
	*r = (struct worker_rights){
		.landlock_abi = (int)abi,
		.n_mounts = (unsigned)mounts,
		.memory = process_argument(argv[3], INT64_MAX),
		.cpu_s = process_argument(argv[4], INT64_MAX),
		.output = WORKER_OUTPUT_MAX,
	};
	return abi >= 0 && mounts >= 0 && r->memory >= 0 && r->cpu_s >= 0;
}

void worker_role(int argc, char **argv, worker_serve_fn serve)
{
	struct err err = {0};
	int mount_fds[LIMIT_MOUNTS];
	bool own_user = false;
	struct worker_rights rights;
	if (!take_arguments(&rights, argc, argv))
		_exit(2);
	for (unsigned i = 0; i < rights.n_mounts; i++)
		mount_fds[i] = WORKER_FD_MOUNTS + (int)i;
	struct worker_host host = {.sock = WORKER_FD_CORE,
		.mount_fds = mount_fds,
		.n_mounts = rights.n_mounts,
		.out = &out};
	(void)mallopt(
		M_ARENA_MAX, 2); /* else malloc asks the file system how many CPUs there are */
	if (drop_rights(&rights, &host.pool, &own_user, &err) < 0 ||
		say_hello(&host, rights.landlock_abi, own_user, &err) < 0)
		end(&err);
	while (receive(&host, serve, &err) >= 0)
		;
	end(&err);
}
