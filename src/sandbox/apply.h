/*
 * The steps that turn a plan into a fence; one kernel feature a file. Each either does the whole of
 * its step or says why not; nothing is skipped silently. All but the first two and idmapped_tree()
 * are called by the init of the fence, in the order of declaration.
 */
#ifndef CLOISTER_SANDBOX_APPLY_H
#define CLOISTER_SANDBOX_APPLY_H

#include "sandbox/plan.h"

/*
 * namespaces.c. Clone this process into new user, mount, pid, ipc, uts, cgroup and network
 * namespaces. In the child it returns 0 with *ret_go to be read: one byte comes when its identity
 * has been mapped; in the parent it returns the pid, with *ret_pidfd, and the caller then calls
 * namespaces_map(). The child sees the present directory in its own mount namespace.
 */
int namespaces_clone(pid_t *ret_pid, int *ret_pidfd, struct err *err) _must_check_;
int namespaces_map(const struct fence_plan *plan, pid_t pid, struct err *err) _must_check_;
/* The child's side: take the mapped identity. */
int identity_take(const struct fence_plan *plan, struct err *err) _must_check_;

/*
 * A detached read-only mount of a directory whose owner's files belong to the plan's host uid
 * (mount_setattr(2) MOUNT_ATTR_IDMAP). Needs root; *ret_fd is for root_build().
 */
int idmapped_tree(
	const struct fence_plan *plan, int dir_fd, int *ret_fd, struct err *err) _must_check_;

/* root.c: the file tree; `lower_tree` is that of idmapped_tree(), or -1: the present directory.
 * *ret_upper is where changes to the workspace land. */
int root_build(const struct fence_plan *plan, int lower_tree, int *ret_upper,
	struct err *err) _must_check_;

/* network.c: the loopback device. */
int network_up(struct err *err) _must_check_;

/* limits.c: setrlimit(2) for the command. */
int limits_apply(const struct fence_plan *plan, struct err *err) _must_check_;

/* capabilities.c: none, and none to come by; read back. */
int capabilities_drop(struct err *err) _must_check_;

/* places.c: Landlock for the tree that root_build() has made. */
int places_restrict(const struct fence_plan *plan, struct err *err) _must_check_;

#endif
