/*
 * The first process of a fence: builds it, starts the command, outlives it, tells what it changed.
 *
 * It keeps its capabilities within the fence's namespaces (it reads what the command made with any
 * mode), so it must never run anything: the command is its child, which drops everything before it
 * executes. When the init ends the kernel kills whatever is left in its process namespace.
 */
#ifndef CLOISTER_SANDBOX_INIT_H
#define CLOISTER_SANDBOX_INIT_H

#include "sandbox/protocol.h"
#include "sys/seccomp.h"

struct init {
	const struct fence_plan *plan;
	const struct fence_request *request;
	const struct seccomp_program *calls;
	int fds[FENCE_FDS]; /* enum fence_request_fd; the workspace's is not used */
	int go;             /* a pipe: one byte comes when the identity is mapped */
	int lower_tree;     /* as of root_build() */
	bool limited;       /* a cgroup limits all processes together */
};

/* In the cloned child. Closes every descriptor but those above. */
_noreturn_ void init_main(const struct init *i);

#endif
