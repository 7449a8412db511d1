/* Clocks: clock_gettime(2). */
#ifndef CLOISTER_SYS_CLOCK_H
#define CLOISTER_SYS_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Nanoseconds that only go forward. */
static inline int64_t clock_mono_ns(void)
{
	struct timespec t;
	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Unix time in milliseconds. */
static inline int64_t clock_unix_ms(void)
{
	struct timespec t;
	(void)clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

#endif
