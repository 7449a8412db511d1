/*
 * Core as a server: the single authority behind every door of a node.
 *
 * Requests of transport/door.h come in, from a front (core_link.h) or from the same process
 * (core_door()), and each is answered exactly once, unless nobody wants its answer any more.
 * Nothing here waits: a call whose worker is busy is kept and gets on when the worker answers.
 *
 * What is decided here and nowhere else: who a token is, which tenant's sessions it can see (those
 * of others do not exist for it), as which role it acts (the least of the token's, the session's
 * and the one that was asked for).
 *
 * What is serialised: calls run on the loop's thread one after the other; what they wait for is
 * only the file system. So the time of one call's changes, with durability `power` the disk's sync,
 * is time of all.
 */
#ifndef CLOISTER_DAEMON_CORE_H
#define CLOISTER_DAEMON_CORE_H

#include "call/call.h"
#include "daemon/tree.h"
#include "sys/loop.h"
#include "transport/door.h"

enum {
	CORE_TICK_MS = 50,
	CORE_RESULTS_MAX = 8192,                  /* results kept by call id */
	CORE_RESULT_BYTES_MAX = 16 * 1024 * 1024, /* of all of them */
	CORE_RESULT_ONE_MAX = 4 * 1024 * 1024,    /* a larger one is told once and not kept */
	CORE_RESULT_MS = 3600 * 1000,
	CORE_EVENTS_MAX = 4096,
	CORE_EVENTS_PAGE = 256,
	CORE_TENANTS_COUNTED = 64, /* tenants with counters of their own; the others share one */
	CORE_WORKER_IDLE_MS = 30 * 1000,
	CORE_UPLOADS_MAX = 256, /* at once */
};

struct core_options {
	struct loop *loop;
	struct tool_env env; /* worker_of is set here */
	struct tree *tree;   /* NULL: no workers */
	int state_fd;        /* tokens; borrowed */
	const char *version;
	int64_t worker_idle_ms; /* 0: CORE_WORKER_IDLE_MS */
};

struct core;

int core_new(const struct core_options *opt, struct core **ret, struct err *err) _must_check_;
/* Calls in flight are cancelled, nobody is answered. Accepts NULL. */
void core_free(struct core *c);
DEFINE_CLEANUP(struct core *, core_free)

struct ask;

/*
 * One request. `done` may be called before this returns; then *ret_ask is NULL. After `done` the
 * ask is gone. The request's descriptor is consumed.
 */
void core_ask(struct core *c, const struct door_request *q, door_done_fn done,
	door_progress_fn progress, void *ctx, struct ask **ret_ask);
void core_stop(struct ask *a); /* cancel; `done` still comes, perhaps before this returns */
void core_forget(
	struct ask *a); /* nobody wants the answer; a call goes on and its result is kept */

/* Another core takes over: who waits for events is answered now. */
void core_drain(struct core *c);

/* How many asks wait for something. */
unsigned core_waiting(const struct core *c);

/* A door to this core in the same process. Freed with core. */
struct door *core_door(struct core *c);

#endif
