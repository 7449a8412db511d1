/*
 * The event loop: see loop.h.
 *
 * A removed source may still stand in the batch of events that is being dispatched, so it is only
 * marked and moved to the graveyard; the end of the turn buries it.
 */
#include "sys/loop.h"

#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <time.h>

enum { BATCH = 64, SIGNALS = 65 };

enum source_kind { SOURCE_IO, SOURCE_TIMER, SOURCE_SIGNAL, SOURCE_CHILD, SOURCE_DEFER };

struct loop_source {
	struct loop *loop;
	struct loop_source *prev, *next; /* in loop->live, or next only in loop->graveyard */
	enum source_kind kind;
	bool dead;
	bool always_ready; /* SOURCE_IO on a regular file */
	bool armed;        /* SOURCE_DEFER, SOURCE_CHILD */
	int fd;            /* SOURCE_IO, SOURCE_CHILD; the number of a SOURCE_SIGNAL */
	uint32_t events;
	int64_t at_ms;     /* SOURCE_TIMER */
	unsigned heap_pos; /* SOURCE_TIMER: index + 1 in the heap, 0 when disarmed */
	union {
		loop_io_fn io;
		loop_fn plain;
		loop_signal_fn signal;
	} fn;
	void *ctx;
};

struct loop {
	int epoll_fd, signal_fd;
	unsigned n_sources, max_sources;
	struct loop_source *live, *graveyard;
	struct loop_source **heap; /* the earliest timer first; room for max_sources */
	unsigned n_heap;
	unsigned n_always_ready, n_deferred;
	struct loop_source *signals[SIGNALS];
	sigset_t mask;
	unsigned dispatching;
	bool stop;
};

int64_t loop_now_ms(void)
{
	struct timespec ts;
	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * INT64_C(1000) + ts.tv_nsec / 1000000;
}

int loop_new(unsigned max_sources, struct loop **ret, struct err *err)
{
	struct loop *l = calloc(1, sizeof(*l));
	if (!l)
		return err_oom(err);
	l->epoll_fd = l->signal_fd = -1;
	l->max_sources = max_sources;
	(void)sigemptyset(&l->mask);
	l->heap = calloc(max_sources ? max_sources : 1, sizeof(struct loop_source *));
	if (!l->heap) {
		loop_free(l);
		return err_oom(err);
	}
	l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (l->epoll_fd < 0) {
		int r = err_sys(err, errno, "making an event loop");
		loop_free(l);
		return r;
	}
	*ret = l;
	return 0;
}

static void free_list(struct loop_source *s)
{
	while (s) {
		struct loop_source *next = s->next;
		free(s);
		s = next;
	}
}

void loop_free(struct loop *l)
{
	if (!l)
		return;
	free_list(l->live);
	free_list(l->graveyard);
	cleanup_close(&l->epoll_fd);
	cleanup_close(&l->signal_fd);
	free(l->heap);
	free(l);
}

/* NULL with err when there is no room for another. */
static struct loop_source *source_new(
	struct loop *l, enum source_kind kind, void *ctx, struct err *err)
{
	if (l->n_sources >= l->max_sources) {
		(void)err_set(
			err, ERR_LIMIT, "the event loop holds at most %u sources", l->max_sources);
		return NULL;
	}
	struct loop_source *s = calloc(1, sizeof(*s));
	if (!s) {
		(void)err_oom(err);
		return NULL;
	}
	s->loop = l;
	s->kind = kind;
	s->ctx = ctx;
	s->fd = -1;
	s->at_ms = -1;
	s->next = l->live;
	if (l->live)
		l->live->prev = s;
	l->live = s;
	l->n_sources++;
	return s;
}

/* --- timers: a binary heap, each source knows its place --- */

static void heap_put(struct loop *l, unsigned i, struct loop_source *s)
{
	l->heap[i] = s;
	s->heap_pos = i + 1;
}

static void heap_up(struct loop *l, unsigned i)
{
	struct loop_source *s = l->heap[i];
	while (i > 0 && l->heap[(i - 1) / 2]->at_ms > s->at_ms) {
		heap_put(l, i, l->heap[(i - 1) / 2]);
		i = (i - 1) / 2;
	}
	heap_put(l, i, s);
}

static void heap_down(struct loop *l, unsigned i)
{
	struct loop_source *s = l->heap[i];
	for (;;) {
		unsigned c = 2 * i + 1;
		if (c >= l->n_heap)
			break;
		if (c + 1 < l->n_heap && l->heap[c + 1]->at_ms < l->heap[c]->at_ms)
			c++;
		if (l->heap[c]->at_ms >= s->at_ms)
			break;
		heap_put(l, i, l->heap[c]);
		i = c;
	}
	heap_put(l, i, s);
}

static void heap_remove(struct loop *l, struct loop_source *s)
{
	if (!s->heap_pos)
		return;
	unsigned i = s->heap_pos - 1;
	s->heap_pos = 0;
	struct loop_source *last = l->heap[--l->n_heap];
	if (last == s)
		return;
	heap_put(l, i, last);
	heap_up(l, i);
	heap_down(l, last->heap_pos - 1);
}

void loop_timer_set(struct loop_source *s, int64_t at_ms)
{
	BUG_ON(s->kind != SOURCE_TIMER);
	struct loop *l = s->loop;
	heap_remove(l, s);
	s->at_ms = at_ms;
	if (at_ms < 0 || s->dead)
		return;
	heap_put(l, l->n_heap, s);
	heap_up(l, l->n_heap++);
}

int loop_timer(struct loop *l, int64_t at_ms, loop_fn fn, void *ctx, struct loop_source **ret,
	struct err *err)
{
	struct loop_source *s = source_new(l, SOURCE_TIMER, ctx, err);
	if (!s)
		return -(int)err->code;
	s->fn.plain = fn;
	loop_timer_set(s, at_ms);
	*ret = s;
	return 0;
}

/* --- descriptors --- */

static int epoll_do(struct loop_source *s, int op, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data = {.ptr = s}};
	return epoll_ctl(s->loop->epoll_fd, op, s->fd, &ev);
}

static int source_watch(struct loop_source *s, int fd, uint32_t events, struct err *err)
{
	s->fd = fd;
	s->events = events;
	if (epoll_do(s, EPOLL_CTL_ADD, events) == 0)
		return 0;
	if (errno != EPERM)
		return err_sys(err, errno, "watching a descriptor");
	s->always_ready = true;
	s->loop->n_always_ready++;
	return 0;
}

int loop_io(struct loop *l, int fd, uint32_t events, loop_io_fn fn, void *ctx,
	struct loop_source **ret, struct err *err)
{
	struct loop_source *s = source_new(l, SOURCE_IO, ctx, err);
	if (!s)
		return -(int)err->code;
	s->fn.io = fn;
	int r = source_watch(s, fd, events, err);
	if (r < 0) {
		s->fd = -1;
		loop_remove(&s);
		return r;
	}
	*ret = s;
	return 0;
}

void loop_io_set(struct loop_source *s, uint32_t events)
{
	BUG_ON(s->kind != SOURCE_IO);
	if (s->dead || s->events == events)
		return;
	s->events = events;
	if (!s->always_ready)
		(void)epoll_do(s, EPOLL_CTL_MOD, events);
}

int loop_child(
	struct loop *l, int pidfd, loop_fn fn, void *ctx, struct loop_source **ret, struct err *err)
{
	struct loop_source *s = source_new(l, SOURCE_CHILD, ctx, err);
	if (!s)
		return -(int)err->code;
	s->fn.plain = fn;
	s->armed = true;
	int r = source_watch(s, pidfd, EPOLLIN, err);
	if (r < 0) {
		s->fd = -1;
		loop_remove(&s);
		return r;
	}
	*ret = s;
	return 0;
}

/* --- signals --- */

static int signals_changed(struct loop *l, struct err *err)
{
	int fd = signalfd(l->signal_fd, &l->mask, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return err_sys(err, errno, "watching signals");
	if (l->signal_fd >= 0)
		return 0;
	l->signal_fd = fd;
	struct epoll_event ev = {.events = EPOLLIN, .data = {.ptr = NULL}};
	if (epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0)
		return err_sys(err, errno, "watching signals");
	return 0;
}

int loop_signal(struct loop *l, int signo, loop_signal_fn fn, void *ctx, struct loop_source **ret,
	struct err *err)
{
	BUG_ON(signo < 1 || signo >= SIGNALS || l->signals[signo]);
	sigset_t one;
	struct loop_source *s = source_new(l, SOURCE_SIGNAL, ctx, err);
	if (!s)
		return -(int)err->code;
	s->fn.signal = fn;
	(void)sigemptyset(&one);
	(void)sigaddset(&one, signo);
	(void)sigaddset(&l->mask, signo);
	(void)sigprocmask(SIG_BLOCK, &one, NULL);
	int r = signals_changed(l, err);
	if (r < 0) {
		loop_remove(&s);
		return r;
	}
	s->fd = signo;
	l->signals[signo] = s;
	*ret = s;
	return 0;
}

/* --- deferred work --- */

int loop_defer(struct loop *l, loop_fn fn, void *ctx, struct loop_source **ret, struct err *err)
{
	struct loop_source *s = source_new(l, SOURCE_DEFER, ctx, err);
	if (!s)
		return -(int)err->code;
	s->fn.plain = fn;
	loop_defer_again(s);
	*ret = s;
	return 0;
}

void loop_defer_again(struct loop_source *s)
{
	BUG_ON(s->kind != SOURCE_DEFER);
	if (s->dead || s->armed)
		return;
	s->armed = true;
	s->loop->n_deferred++;
}

/* --- removal --- */

static void unregister(struct loop *l, struct loop_source *s)
{
	switch (s->kind) {
	case SOURCE_IO:
	case SOURCE_CHILD:
		if (s->always_ready)
			l->n_always_ready--;
		else if (s->fd >= 0)
			(void)epoll_do(s, EPOLL_CTL_DEL, 0);
		break;
	case SOURCE_TIMER: heap_remove(l, s); break;
	case SOURCE_SIGNAL:
		if (s->fd >= 0)
			l->signals[s->fd] = NULL;
		break;
	case SOURCE_DEFER:
		if (s->armed)
			l->n_deferred--;
		break;
	}
}

void loop_remove(struct loop_source **sp)
{
	struct loop_source *s = *sp;
	*sp = NULL;
	if (!s || s->dead)
		return;
	struct loop *l = s->loop;
	unregister(l, s);
	s->dead = true;
	if (s->prev)
		s->prev->next = s->next;
	else
		l->live = s->next;
	if (s->next)
		s->next->prev = s->prev;
	l->n_sources--;
	s->prev = NULL;
	s->next = l->graveyard;
	l->graveyard = s;
	if (!l->dispatching) {
		free_list(l->graveyard);
		l->graveyard = NULL;
	}
}

/* --- dispatch --- */

static void dispatch_signals(struct loop *l)
{
	struct signalfd_siginfo si[8];
	ssize_t n = read(l->signal_fd, si, sizeof(si));
	for (size_t i = 0; n > 0 && i < (size_t)n / sizeof(si[0]); i++) {
		unsigned signo = si[i].ssi_signo;
		struct loop_source *s = signo < SIGNALS ? l->signals[signo] : NULL;
		if (s)
			s->fn.signal(s->ctx, (int)signo);
	}
}

static void dispatch_event(struct loop *l, const struct epoll_event *ev)
{
	struct loop_source *s = ev->data.ptr;
	if (!s) {
		dispatch_signals(l);
	} else if (!s->dead && s->kind == SOURCE_IO) {
		s->fn.io(s->ctx, s->fd, ev->events);
	} else if (!s->dead && s->armed) {
		s->armed = false;
		(void)epoll_do(s, EPOLL_CTL_MOD, 0);
		s->fn.plain(s->ctx);
	}
}

static void dispatch_timers(struct loop *l)
{
	if (!l->n_heap)
		return;
	int64_t now = loop_now_ms();
	while (l->n_heap && l->heap[0]->at_ms <= now) {
		struct loop_source *s = l->heap[0];
		heap_remove(l, s);
		s->fn.plain(s->ctx);
	}
}

/* Sources that a pass has to find among all: a callback may remove the next one, so every call
 * starts over at the first that is marked. */
static void dispatch_marked(struct loop *l, enum source_kind kind)
{
	unsigned budget = l->max_sources;
	for (struct loop_source *s = l->live; s && budget; s = s->next) {
		if (s->kind != kind || s->dead)
			continue;
		if (kind == SOURCE_IO && s->always_ready && (s->events & (EPOLLIN | EPOLLOUT))) {
			budget--;
			s->fn.io(s->ctx, s->fd, s->events & (EPOLLIN | EPOLLOUT));
		} else if (kind == SOURCE_DEFER && s->armed) {
			budget--;
			s->armed = false;
			l->n_deferred--;
			s->fn.plain(s->ctx);
		}
		if (s->dead)
			return; /* its links are the graveyard's now; the rest waits for the next
				   turn */
	}
}

static int wait_ms(const struct loop *l, int timeout_ms)
{
	if (l->n_deferred)
		return 0;
	for (const struct loop_source *s = l->n_always_ready ? l->live : NULL; s; s = s->next)
		if (s->always_ready && (s->events & (EPOLLIN | EPOLLOUT)))
			return 0;
	if (!l->n_heap)
		return timeout_ms;
	int64_t left = MAX(l->heap[0]->at_ms - loop_now_ms(), INT64_C(0));
	left = MIN(left, INT64_C(3600000));
	return timeout_ms < 0 || left < timeout_ms ? (int)left : timeout_ms;
}

int loop_turn(struct loop *l, int timeout_ms, struct err *err)
{
	struct epoll_event ev[BATCH];
	int n = epoll_wait(l->epoll_fd, ev, BATCH, wait_ms(l, timeout_ms));
	if (n < 0 && errno != EINTR)
		return err_sys(err, errno, "waiting for events");
	l->dispatching++;
	for (int i = 0; i < n; i++)
		dispatch_event(l, &ev[i]);
	if (l->n_always_ready)
		dispatch_marked(l, SOURCE_IO);
	dispatch_timers(l);
	if (l->n_deferred)
		dispatch_marked(l, SOURCE_DEFER);
	if (--l->dispatching == 0) {
		free_list(l->graveyard);
		l->graveyard = NULL;
	}
	return 0;
}

int loop_run(struct loop *l, struct err *err)
{
	l->stop = false;
	while (!l->stop) {
		int r = loop_turn(l, -1, err);
		if (r < 0)
			return r;
	}
	return 0;
}

void loop_stop(struct loop *l)
{
	l->stop = true;
}
