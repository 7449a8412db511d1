/*
 * cloister-supervisor: starts, kills and reaps the workers of one core.
 *
 *   argv: LANDLOCK-ABI MAX-WORKERS WORKER-MEMORY WORKER-CPU-SECONDS KEEP-STDERR
 *   fd 3: packets from and to core     fd 4: the worker's executable
 *
 * With the argument `serve` it is the supervisor of a node instead: node.h.
 *
 * No deputy: core names a lease and hands descriptors over; what is started, with which limits and
 * with which identity, stands in the arguments above. It sees no byte of a client. It ends, with
 * all workers, when core does.
 */
#include "daemon/leases.h"
#include "daemon/node.h"
#include "daemon/rights.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum { ARGUMENTS = 5 };

static int turn(struct leases *l, struct err *err)
{
	static struct pollfd p[1 + LEASES_MAX];
	unsigned n = l->n;
	p[0] = (struct pollfd){.fd = l->sock, .events = POLLIN};
	leases_poll(l, p + 1);
	if (poll(p, 1 + n, -1) < 0 && errno != EINTR)
		return err_sys(err, errno, "waiting");
	int r = leases_reap(l, p + 1, n, err);
	return r == 0 && p[0].revents ? leases_receive(l, err) : r;
}

static int run(struct leases *l, struct err *err)
{
	const struct supervisor_rights rights = {.landlock_abi = l->landlock_abi};
	int r = process_undumpable(err);
	l->null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (r < 0 || l->null_fd < 0 || (r = supervisor_restrict(&rights, err)) < 0)
		return r < 0 ? r : err_sys(err, errno, "opening /dev/null");
	while (r >= 0)
		r = turn(l, err);
	leases_end(l);
	return err->code == ERR_UNAVAILABLE && err->sys == 0 ? 0 : r;
}

static bool take_arguments(struct leases *l, int argc, char **argv)
{
	if (argc != 1 + ARGUMENTS)
		return false;
	int64_t abi = process_argument(argv[1], 1000);
	int64_t workers = process_argument(argv[2], LEASES_MAX);
	int64_t keep_stderr = process_argument(argv[5], 1);
	*l = (struct leases){.sock = SUPERVISOR_FD_CORE,
		.worker_exe = SUPERVISOR_FD_WORKER_EXE,
		.landlock_abi = (int)abi,
		.max = (unsigned)workers,
		.memory = argv[3],
		.cpu_s = argv[4],
		.keep_stderr = keep_stderr == 1,
		.block = true};
	return abi >= 0 && workers >= 0 && keep_stderr >= 0;
}

int main(int argc, char **argv)
{
	static struct leases l;
	struct err err;
	if (argc > 1 && strcmp(argv[1], "serve") == 0)
		return node_main(argc - 1, argv + 1);
	if (!take_arguments(&l, argc, argv))
		return 2;
	int r = run(&l, &err);
	if (r < 0)
		(void)fprintf(stderr, "cloister-supervisor: %s\n", err.text);
	_exit(r < 0); /* nothing is left to do, and what libraries do at exit is not allowed */
}
