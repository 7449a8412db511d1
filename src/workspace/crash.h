/*
 * Named points at which the tests kill the process: CLOISTER_CRASH_AT=name or name:N (the N-th time
 * it is reached) sends SIGKILL. Outside of the test build a point is nothing at all.
 */
#ifndef CLOISTER_WORKSPACE_CRASH_H
#define CLOISTER_WORKSPACE_CRASH_H

enum crash_point {
#define CRASH_POINT(name, what) CRASH_AT_##name,
#include "workspace/crash_points.def"
#undef CRASH_POINT
	CRASH_AT_MAX_,
};

#ifdef CLOISTER_CRASH_POINTS
void crash_point(enum crash_point p);
#	define CRASH_HERE(name) crash_point(CRASH_AT_##name)
#else
#	define CRASH_HERE(name) ((void)0)
#endif

#endif
