/*
 * What a fence is made of, as plain data: the plan of one command.
 *
 * Planning decides everything and touches nothing; applying (launcher.h, init.h) decides nothing.
 * So the plan can be printed (`cloister run --print-plan`), compared and tested without a kernel.
 *
 * The launcher's own configuration (struct fence_config) says which system trees a command may see,
 * which identity it gets and how much it may use at most; a request can ask for less, never for
 * more, and for nothing else.
 */
#ifndef CLOISTER_SANDBOX_PLAN_H
#define CLOISTER_SANDBOX_PLAN_H

#include "base/buf.h"
#include "base/limits.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
	FENCE_UID = 1000, /* who the command is inside, when the fence was made by root */
	FENCE_HOST_UID_FIRST = 0x70000000, /* and outside: from here on, one a command */
	FENCE_SLOTS_MAX = 64,              /* commands of one launcher at once */
	FENCE_TREES_MAX = 64,
};

/* What a command may use. 0: as the configuration says. */
struct fence_limits {
	int64_t memory_bytes; /* of all its processes, where there is a memory cgroup */
	int64_t scratch_bytes, scratch_entries; /* changes to the workspace, /tmp and /dev/shm */
	int64_t processes;
	int64_t cpu_s;   /* of one process */
	int64_t time_ms; /* from start to end */
};

/* A tree or file of the system that the command sees read-only at the same place. A link is made
 * again as a link; what is absent is left out. */
struct fence_tree {
	const char *path;
};
extern const struct fence_tree fence_trees[];
extern const unsigned fence_trees_n;

/* The launcher's. */
struct fence_config {
	bool root; /* made by root: commands run as a host uid of their own */
	uid_t uid; /* of the launcher */
	gid_t gid;
	int landlock_abi;         /* 0: no Landlock */
	struct fence_limits most; /* maxima, and what a request that says nothing gets */
};

struct fence_plan {
	bool root;
	uid_t inside_uid, host_uid;
	gid_t inside_gid, host_gid;
	int landlock_abi;
	struct fence_limits limits;
	const char *hostname, *workdir, *home;
};

/* Fill a plan for a slot (a number below FENCE_SLOTS_MAX that no other running command has). */
void plan_make(const struct fence_config *config, const struct fence_limits *asked, unsigned slot,
	uint32_t launcher, struct fence_plan *ret);

/* The plan as text for people, one line a decision, in the order in which it is applied. */
void plan_print(const struct fence_plan *plan, struct buf *out);

#endif
