/*
 * Compiler attributes and scope cleanup.
 *
 * One cleanup idiom in the whole tree: a variable that owns something carries
 * `_cleanup_(fn)`, and ownership leaves it only through take_ptr() or take_fd(),
 * so a moved pointer is NULL (a moved descriptor is -1) from that statement on.
 */
#ifndef CLOISTER_BASE_ATTR_H
#define CLOISTER_BASE_ATTR_H

#ifndef CLOISTER_ALLOW_BANNED /* tests and benchmarks may be careless with what they made          \
				 themselves */
#	include "base/banned.h"
#endif

#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#define _cleanup_(fn) __attribute__((cleanup(fn)))
#define _printf_(f, a) __attribute__((format(printf, f, a)))
#define _must_check_ __attribute__((warn_unused_result))
#define _noreturn_ __attribute__((noreturn))
#define _unused_ __attribute__((unused))
/* A large local that is written before it is read, on a hot path: not worth being zeroed. */
#define _uninitialized_ __attribute__((uninitialized))
#define _public_ __attribute__((visibility("default")))

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b)                                                                                  \
	({                                                                                         \
		__typeof__(a) min_a_ = (a);                                                        \
		__typeof__(b) min_b_ = (b);                                                        \
		min_a_ < min_b_ ? min_a_ : min_b_;                                                 \
	})
#define MAX(a, b)                                                                                  \
	({                                                                                         \
		__typeof__(a) max_a_ = (a);                                                        \
		__typeof__(b) max_b_ = (b);                                                        \
		max_a_ > max_b_ ? max_a_ : max_b_;                                                 \
	})

/* Move a pointer out of its owner: the owner is NULL afterwards. */
#define take_ptr(p)                                                                                \
	({                                                                                         \
		__typeof__(p) taken_ = (p);                                                        \
		(p) = NULL;                                                                        \
		taken_;                                                                            \
	})

/* Move a descriptor out of its owner: the owner is -1 afterwards. */
#define take_fd(fd)                                                                                \
	({                                                                                         \
		int taken_fd_ = (fd);                                                              \
		(fd) = -1;                                                                         \
		taken_fd_;                                                                         \
	})

static inline void cleanup_free(void *p)
{
	free(*(void **)p);
}

static inline void cleanup_close(const int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
}

#define _cleanup_free_ _cleanup_(cleanup_free)
#define _cleanup_close_ _cleanup_(cleanup_close)

/*
 * Declare `cleanup_NAME` for a type whose destructor takes a pointer and accepts NULL:
 *   DEFINE_CLEANUP(struct view *, view_free)  ->  _cleanup_(cleanup_view_free) struct view *v =
 * NULL;
 */
#define DEFINE_CLEANUP(type, fn)                                                                   \
	static inline void cleanup_##fn(type *p)                                                   \
	{                                                                                          \
		if (*p)                                                                            \
			fn(*p);                                                                    \
	}

/* An invariant of our own code. It stays on in release builds; never use it for peers' mistakes. */
#define BUG_ON(cond)                                                                               \
	do {                                                                                       \
		if (__builtin_expect(!!(cond), 0))                                                 \
			bug_found(__FILE__, __LINE__, #cond);                                      \
	} while (0)

_noreturn_ void bug_found(const char *file, int line, const char *cond);

#endif
