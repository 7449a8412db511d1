/*
 * Landlock (landlock(7)): what a process may do with the file tree, the network and its neighbours.
 *
 * glibc has no wrapper and Debian's headers stop at ABI 2, so numbers and rights are here, by ABI.
 * A ruleset handles every right that its ABI knows: what no rule allows is refused. Rules name
 * descriptors, never paths.
 */
#ifndef CLOISTER_SYS_LANDLOCK_H
#define CLOISTER_SYS_LANDLOCK_H

#include "base/err.h"

#include <stdbool.h>

enum { LANDLOCK_ABI_NEEDED = 2, LANDLOCK_RULES_MAX = 64 };

/* The kernel's ABI; 0 when Landlock is absent or switched off. */
int landlock_abi(void);

enum landlock_access {
	LANDLOCK_ALLOW_READ = 1,  /* read files, list directories */
	LANDLOCK_ALLOW_WRITE = 2, /* write, truncate, create and remove files, directories, links;
				     rename within; never device nodes */
	LANDLOCK_ALLOW_EXEC = 4,
	LANDLOCK_ALLOW_DEVICES = 8,  /* with WRITE: ioctl on device files */
	LANDLOCK_ALLOW_SPECIAL = 16, /* with WRITE: make sockets and FIFOs */
	LANDLOCK_ALLOW_LIST = 32,    /* list directories, which READ includes */
};

struct landlock_rule {
	int fd; /* file or directory, O_PATH will do; borrowed */
	unsigned allow;
};

struct landlock_plan {
	int abi; /* what to use, at most the kernel's; 0: nothing (and landlock_apply does nothing)
		  */
	unsigned handle; /* the kinds of access that are restricted: all, or only some of them;
			    WRITE covers SPECIAL */
	bool no_network; /* ABI 4: refuse TCP bind and connect */
	bool scoped;     /* ABI 6: no signals and no abstract sockets outside the domain */
	const struct landlock_rule *rules;
	unsigned n_rules;
};

/* Restrict the calling thread and its children for good; sets no_new_privs. Call it before there
 * are threads. ERR_UNAVAILABLE when the kernel refuses. */
int landlock_apply(const struct landlock_plan *plan, struct err *err) _must_check_;

#endif
