/*
 * What an intruder in one of our processes would try. Each attempt is tried three times: without
 * any fence, where it has to work (or the case proves nothing), and in the real process with its
 * rights.
 */
#ifndef CLOISTER_TESTS_RIGHTS_ATTEMPTS_H
#define CLOISTER_TESTS_RIGHTS_ATTEMPTS_H

#include <stdbool.h>
#include <sys/types.h>

struct attempt_env {
	int mount_fd;      /* the workspace, as the process got it */
	const char *host;  /* its path on the host */
	pid_t foreign_pid; /* a process that is not ours */
	int channel;       /* a socket that the process has */
};

enum attempt_flags {
	NEEDS_ROOT = 1,           /* works without a fence only as root */
	NOT_HERE = 2,             /* needs what this kernel may lack: without a fence it may fail */
	READS_OUTSIDE = 4,        /* what only Landlock refuses */
	CORE_MAY = 8,             /* core keeps this right */
	SUPERVISOR_MAY = 16,      /* and the supervisor this one */
	SUPERVISOR_LANDLOCK = 32, /* what only Landlock refuses to the supervisor */
	CORE_LANDLOCK = 128,      /* and to core */
	NODE_LANDLOCK = 256,      /* and to the supervisor of a node */
	KILLS = 64,               /* ends the process that tries */
};

struct attempt {
	const char *name;
	int (*run)(const struct attempt_env *env); /* 0: it worked; else the errno */
	unsigned flags;
};

extern const struct attempt attempts[];
extern const unsigned n_attempts;

#endif
