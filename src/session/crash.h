/*
 * Named points at which the tests kill the process: between any two steps of creating, deleting and
 * sweeping. The library itself has none of this; the tests link a second build of it.
 */
#ifndef CLOISTER_SESSION_CRASH_H
#define CLOISTER_SESSION_CRASH_H

#define SESSION_CRASH_POINTS(POINT)                                                                \
	POINT(CREATE_MADE)      /* directory made, row not committed */                            \
	POINT(CREATE_ANNOUNCED) /* lease announced, row not committed */                           \
	POINT(CREATE_ADDED)     /* row added, not committed */                                     \
	POINT(CREATE_LEASED)    /* lease made, row not committed */                                \
	POINT(CREATE_COMMITTED) /* no store yet, lease still announced */                          \
	POINT(BURY_MARKED)      /* others are told, nothing moved */                               \
	POINT(BURY_DIRECTORY)   /* workspace in the trash */                                       \
	POINT(BURY_STORE)       /* store in the trash */                                           \
	POINT(BURY_LEASE)       /* lease in the trash */                                           \
	POINT(BURY_DROPPED)     /* row dropped, not committed */                                   \
	POINT(BURY_COMMITTED)   /* only the trash is left */                                       \
	POINT(SWEEP_FOUND)      /* one tree of the trash found */                                  \
	POINT(SWEEP_EMPTIED)    /* its content removed */                                          \
	POINT(SWEEP_REMOVED)    /* itself removed */

enum session_crash_point {
#define POINT(name) CRASH_##name,
	SESSION_CRASH_POINTS(POINT)
#undef POINT
		CRASH_MAX_,
};

#ifdef SESSION_CRASH_TESTS
void session_crash_point(enum session_crash_point at); /* the test's */
#	define CRASH_POINT(name) session_crash_point(CRASH_##name)
#else
#	define CRASH_POINT(name) ((void)0)
#endif

#endif
