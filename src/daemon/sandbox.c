/*
 * cloister-sandbox: starts the fences of real commands for one core.
 *
 *   argv: LANDLOCK-ABI MEMORY SCRATCH-BYTES SCRATCH-ENTRIES PROCESSES CPU-SECONDS TIME-MS
 *   fd 3: requests of core
 *
 * No deputy: a request brings descriptors, words and lower limits; identities, maxima and what is
 * seen of the system stand in the arguments above and in sandbox/trees.def. It holds no key, no
 * client's bytes but a command's own words, and ends with everything that it started when core
 * does. It keeps the right to make namespaces, which every other process of the tree gives up.
 */
#include "sandbox/launcher.h"
#include "sys/process.h"

#include <signal.h>
#include <stdio.h>

enum { FD_CORE = 3, ARGUMENTS = 7 };

static bool take_arguments(struct fence_config *c, int argc, char **argv)
{
	int64_t n[ARGUMENTS];
	if (argc != 1 + ARGUMENTS)
		return false;
	for (int i = 0; i < ARGUMENTS; i++)
		if ((n[i] = process_argument(argv[1 + i], INT64_MAX)) < 0)
			return false;
	*c = (struct fence_config){.root = geteuid() == 0,
		.uid = geteuid(),
		.gid = getegid(),
		.landlock_abi = (int)n[0],
		.most = {.memory_bytes = n[1],
			.scratch_bytes = n[2],
			.scratch_entries = n[3],
			.processes = n[4],
			.cpu_s = n[5],
			.time_ms = n[6]}};
	return true;
}

int main(int argc, char **argv)
{
	struct fence_config config;
	struct err err = {.code = ERR_OK};
	(void)signal(SIGPIPE, SIG_IGN);
	if (!take_arguments(&config, argc, argv))
		return 2;
	int r = process_undumpable(&err);
	if (r == 0)
		r = launcher_serve(FD_CORE, &config, &err);
	if (r < 0)
		(void)fprintf(stderr, "cloister-sandbox: %s\n", err.text);
	return r < 0;
}
