/*
 * The rights of a node's own processes (`cloister serve`): front, and what supervisor and core need
 * beside what rights.h and rights_core.h say. Each table of system calls stands in the file of its
 * role.
 */
#ifndef CLOISTER_DAEMON_RIGHTS_NODE_H
#define CLOISTER_DAEMON_RIGHTS_NODE_H

#include "base/err.h"
#include "sys/seccomp.h"

#include <stdbool.h>
#include <sys/types.h>

/* Where things are at a program's start. */
enum {
	CORE_FD_LEASES = 3, /* packets to the supervisor about workers */
	CORE_FD_CONTROL = 4,
	FRONT_FD_CONTROL = 3,
	FRONT_FD_LISTEN = 4, /* and the ones after it */
};

/*
 * The identity of a process that the supervisor started: as root the uid and gid `uid` (0: stays
 * root) without any other group, and of root's capabilities only `keep`; an ordinary user loses all
 * capabilities. Afterwards the process dies with `parent` and cannot be traced by others of its
 * user. *ret_own_user: the uid was changed. ERR_IO.
 */
int identity_drop(
	uid_t uid, uint32_t keep, pid_t parent, bool *ret_own_user, struct err *err) _must_check_;

/* What core keeps as root: owners, modes and files of other owners below its directories. */
#define CORE_CAPABILITIES                                                                          \
	(1u << 0 | 1u << 1 | 1u << 3 | 1u << 4) /* CHOWN DAC_OVERRIDE FOWNER FSETID */

/* Front: no file, no program, no process, no socket but those it has and accepts from them. */
int front_restrict(int landlock_abi, struct err *err) _must_check_;

/* The supervisor of a node: it writes only below `write_fds`, executes only `exec_fds`, makes no
 * socket. What its children need is in its system calls, since they inherit them. */
struct node_rights {
	int landlock_abi; /* 0: none */
	const int *write_fds, *exec_fds;
	unsigned n_write_fds, n_exec_fds;
};
int node_restrict(const struct node_rights *r, struct err *err) _must_check_;

/* The tables, for the union above and for tests. */
const struct seccomp_row *core_seccomp(unsigned *ret_n);
const struct seccomp_row *front_seccomp(unsigned *ret_n);
const struct seccomp_row *supervisor_seccomp(unsigned *ret_n);

#endif
