/*
 * A small event loop: descriptors (epoll), timers, signals (signalfd), children (pidfd), deferred
 * work.
 *
 * One thread. A source calls back with its context until it is removed; removing any source from
 * any callback is allowed, also the one that is running, and no callback of a removed source runs
 * afterwards. The number of sources has a maximum from birth (ERR_LIMIT). Sources still present are
 * freed with the loop; descriptors stay the caller's, except what the loop made itself (signalfd).
 *
 * epoll(7), signalfd(2), pidfd_open(2).
 */
#ifndef CLOISTER_SYS_LOOP_H
#define CLOISTER_SYS_LOOP_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

struct loop;
struct loop_source;

typedef void (*loop_io_fn)(void *ctx, int fd, uint32_t events); /* EPOLLIN, EPOLLOUT, EPOLLHUP.. */
typedef void (*loop_fn)(void *ctx);
typedef void (*loop_signal_fn)(void *ctx, int signo);

int loop_new(unsigned max_sources, struct loop **ret, struct err *err) _must_check_;
void loop_free(struct loop *l); /* accepts NULL */
DEFINE_CLEANUP(struct loop *, loop_free)

/* Watch a descriptor, level-triggered. Regular files, which epoll does not take, count as always
 * ready (so that `cloister mcp < file` works). events 0: paused, errors are still reported. */
int loop_io(struct loop *l, int fd, uint32_t events, loop_io_fn fn, void *ctx,
	struct loop_source **ret, struct err *err) _must_check_;
void loop_io_set(struct loop_source *s, uint32_t events);

/* Call once at CLOCK_MONOTONIC `at_ms`, then stay disarmed until set again. at_ms < 0: disarmed. */
int loop_timer(struct loop *l, int64_t at_ms, loop_fn fn, void *ctx, struct loop_source **ret,
	struct err *err) _must_check_;
void loop_timer_set(struct loop_source *s, int64_t at_ms);

/* Blocks the signal for the thread and calls back when it comes. One source per signal. */
int loop_signal(struct loop *l, int signo, loop_signal_fn fn, void *ctx, struct loop_source **ret,
	struct err *err) _must_check_;

/* Call once when the process of a pidfd has ended (borrowed; the caller reaps). */
int loop_child(struct loop *l, int pidfd, loop_fn fn, void *ctx, struct loop_source **ret,
	struct err *err) _must_check_;

/* Call once in this turn, after the descriptors; then disarmed until loop_defer_again(). */
int loop_defer(struct loop *l, loop_fn fn, void *ctx, struct loop_source **ret,
	struct err *err) _must_check_;
void loop_defer_again(struct loop_source *s);

/* Remove a source and set the pointer to NULL. Accepts a pointer to NULL. */
void loop_remove(struct loop_source **s);

/* Wait for and dispatch one batch; timeout_ms < 0: until something happens. */
int loop_turn(struct loop *l, int timeout_ms, struct err *err) _must_check_;
/* Turns until loop_stop(). */
int loop_run(struct loop *l, struct err *err) _must_check_;
void loop_stop(struct loop *l);

/* CLOCK_MONOTONIC in milliseconds, read now. */
int64_t loop_now_ms(void);

#endif
