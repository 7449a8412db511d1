/*
 * The rights of core: what `cloister` keeps once its descriptors are open.
 *
 * Afterwards core reads and writes below the given directories and nowhere else (Landlock), opens
 * no socket and executes nothing (seccomp). Started processes (the supervisor) are not touched.
 */
#ifndef CLOISTER_DAEMON_RIGHTS_CORE_H
#define CLOISTER_DAEMON_RIGHTS_CORE_H

#include "base/err.h"

#include <stdbool.h>

struct core_rights {
	const int
		*write_fds; /* workspace mounts read-write, state and store directories; borrowed */
	unsigned n_write_fds;
	const int *read_fds; /* read-only mounts */
	unsigned n_read_fds;
	bool single_user; /* without Landlock only seccomp is applied instead of refusing */
	int landlock_abi; /* 0: the kernel's; see struct tree_options */
};

/* Drop for good. Call it after tree_start() and before the first call, while there is one thread;
 * threads made later inherit it. Errors: ERR_UNAVAILABLE. */
int core_restrict(const struct core_rights *rights, struct err *err) _must_check_;

#endif
