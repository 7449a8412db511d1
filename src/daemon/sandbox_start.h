/*
 * Starting the process that starts commands (sandbox.c), from core while core may still execute.
 */
#ifndef CLOISTER_DAEMON_SANDBOX_START_H
#define CLOISTER_DAEMON_SANDBOX_START_H

#include "sandbox/command.h"

struct sandbox_options {
	const char *libexecdir;   /* as in struct tree_options */
	int landlock_abi;         /* as in struct tree_options */
	struct fence_limits most; /* 0: the defaults of sandbox_start.c */
};

struct sandbox;

/* ERR_UNAVAILABLE when the program is missing. Does not wait for it: start-up is a fork and an
 * exec. */
int sandbox_start(
	const struct sandbox_options *opt, struct sandbox **ret, struct err *err) _must_check_;
void sandbox_free(struct sandbox *s); /* ends every command; accepts NULL */
DEFINE_CLEANUP(struct sandbox *, sandbox_free)

struct fence *sandbox_fence(struct sandbox *s); /* borrowed */

/* The configuration that the launcher gets, for printing a plan. */
void sandbox_config(const struct sandbox_options *opt, struct fence_config *ret);

#endif
