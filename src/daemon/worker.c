/*
 * cloister-worker: reads one workspace and interprets patterns and YAML for core.
 *
 * fd 3: packets from and to core     fd 4...: the roots of the workspace's mounts
 *
 * Its rights (rights_worker.c), dropped before the first job: as root an owner of nothing; files
 * can only be read and only below the mounts; no network, no program, no process, no signal;
 * memory, CPU time and output are limited. What it answers is checked by core (worker_client.c).
 */
#include "daemon/worker_role.h"

int main(int argc, char **argv)
{
	worker_role(argc, argv, worker_serve);
}
