/*
 * Limits of all processes of a command together: memory and their number, by cgroups(7). Version 2
 * where it has the controllers, else version 1; the launcher has to be allowed to make groups
 * there, which an ordinary user is not unless a group was delegated to him.
 */
#ifndef CLOISTER_SANDBOX_CGROUP_H
#define CLOISTER_SANDBOX_CGROUP_H

#include "sandbox/plan.h"

enum { CGROUP_DIRS_MAX = 2 };

struct cgroup {
	int parents[CGROUP_DIRS_MAX]; /* directories in which groups are made */
	unsigned n;                   /* 0: there is nothing that we may use */
	bool v2;
};

/* Look once, by making a group and removing it. */
void cgroup_find(struct cgroup *c);

/* Make the group of a slot with the plan's limits and put a process into it that has not begun.
 * Does nothing without groups. ERR_UNAVAILABLE when there are some and it fails. */
int cgroup_enter(const struct cgroup *c, const struct fence_plan *plan, unsigned slot, pid_t pid,
	struct err *err) _must_check_;

/* Remove it when its processes are gone. */
void cgroup_leave(const struct cgroup *c, unsigned slot);

#endif
