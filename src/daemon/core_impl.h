/* What the parts of core share. Private to src/daemon/core*.c. */
#ifndef CLOISTER_DAEMON_CORE_IMPL_H
#define CLOISTER_DAEMON_CORE_IMPL_H

#include "base/sha256.h"
#include "codec/json.h"
#include "codec/json_write.h"
#include "daemon/core.h"
#include "govern/token.h"

enum { CALL_ID_MAX = 32, RESULT_BUCKETS = 4096 };

struct active;
struct result;

/* One request on its way. Principal and turn are here since its call borrows them. */
struct ask {
	struct core *core;
	struct ask *prev, *next; /* core->waiting; not in it: both NULL and not its first */
	enum door_op op;
	bool waits;
	door_done_fn done; /* NULL: nobody is told any more */
	door_progress_fn progress;
	void *ctx;
	int64_t until_ms; /* CLOCK_MONOTONIC; -1: for ever */
	int64_t said_ms;  /* the last progress */
	struct principal principal;
	bool admin;
	char tenant[LIMIT_SESSION_ID + 1], subject[TOKEN_NAME_MAX + 1];
	char session[LIMIT_SESSION_ID + 1], tool[DOOR_TOOL_MAX + 1];
	char turn[DOOR_TURN_MAX + 1], id[DOOR_ID_MAX + 1];
	/* CALL */
	struct call *call;
	const struct tool *called; /* NULL: no such tool */
	int64_t started_ns;
	struct active *active;
	struct ask *active_next;
	struct result *result; /* CALL: where its result goes; CALL_RESULT: what it waits for */
	/* UPLOAD */
	struct upload *upload;
	/* EVENTS */
	uint64_t after;
	unsigned limit;
};

/* What a call gave, or that it runs. */
struct result {
	struct result *bucket_next, *older, *newer;
	char id[CALL_ID_MAX], tenant[LIMIT_SESSION_ID + 1];
	struct ask *running; /* NULL: it has ended */
	unsigned waiters;
	enum err_code code;
	char *json; /* NULL: too large to be kept */
	size_t n;
	int64_t ended_ms;
};

struct event {
	uint64_t id;
	int64_t time_ms;
	const char *type; /* static */
	enum err_code code;
	char tenant[LIMIT_SESSION_ID + 1], session[LIMIT_SESSION_ID + 1];
	char tool[DOOR_TOOL_MAX + 1], call[CALL_ID_MAX], subject[TOKEN_NAME_MAX + 1];
};

/* The worker of a session that is in use. */
struct active {
	struct active *next;
	struct core *core;
	char incarnation[INCARNATION_LEN + 1];
	struct worker *worker;
	struct loop_source *io;
	struct ask *asks; /* whose calls wait for it */
	int64_t used_ms;
};

struct counts {
	uint64_t asks[DOOR_OP_MAX_], refused[ERR_CODE_MAX_], calls, changes;
	uint64_t call_ns;
	struct {
		char name[LIMIT_SESSION_ID + 1];
		uint64_t calls, refused;
	} tenants[CORE_TENANTS_COUNTED];
	unsigned n_tenants;
	uint64_t workers_started, flush_failed;
};

struct core {
	struct core_options opt;
	struct tool_env env, bulk; /* bulk: tools that read and write descriptors */
	unsigned n_uploads;
	struct token_table *tokens;
	struct loop_source *tick;
	struct ask *waiting, *asking; /* asking: the one that is being dispatched */
	unsigned n_waiting;
	struct active *actives, *asked; /* asked: by the call that is being started */
	unsigned n_actives;
	struct result *buckets[RESULT_BUCKETS], *oldest, *newest;
	unsigned n_results;
	size_t result_bytes;
	struct event *events;             /* a ring of CORE_EVENTS_MAX */
	uint64_t first_event, next_event; /* ids: first_event is the oldest in the ring */
	bool events_new;
	int64_t flushed_ms, swept_ms, started_ms;
	struct counts counts;
	struct local_door *door;
};

/* --- core.c ----------------------------------------------------------------------------------- */

/* Answer and, unless its call is still running, free. */
void ask_answer(struct ask *a, struct door_answer *answer);
void ask_json(struct ask *a, const struct buf *json);
void ask_error(struct ask *a, const struct err *err); /* as a refusal */
void ask_wait(struct ask *a, int64_t wait_ms);        /* keep it; wait_ms < 0: for ever */
void ask_leave(struct ask *a);                        /* no longer in the list */
void ask_free(struct ask *a);
/* The arguments of an operation, checked against its table. */
int ask_arguments(const struct door_request *q, const struct field *fields, json_t **ret,
	struct err *err) _must_check_;

/* --- core_calls.c ----------------------------------------------------------------------------- */

void core_call(struct ask *a, const struct door_request *q);
void core_call_proceed(struct ask *a);   /* may free it */
void core_call_timed_out(struct ask *a); /* wait_ms has passed */
void core_call_result(struct ask *a, const struct door_request *q);
void core_call_cancel(struct ask *a);

/* Start a call of `env`'s tool a->tool with these arguments; answers or keeps it. */
void core_start_call(struct ask *a, const struct tool_env *env, json_t *args, int content_fd,
	int64_t size, int64_t wait_ms);
bool ask_runs_call(const struct ask *a);

/* --- core_bulk.c ------------------------------------------------------------------------------ */

void core_download(struct ask *a, const struct door_request *q);
void core_upload(struct ask *a, const struct door_request *q); /* takes q->body_fd */
void core_upload_timed_out(struct ask *a);
void ask_upload_free(struct ask *a);

/* --- core_results.c --------------------------------------------------------------------------- */

struct result *result_find(struct core *c, const char *tenant, const char *id);
/* NULL: no memory. */
struct result *result_add(struct core *c, const char *tenant, const char *id);
void result_end(struct core *c, struct result *r, enum err_code code, struct str json);
void results_expire(struct core *c, int64_t now_ms);
void results_free(struct core *c);

/* --- core_sessions.c -------------------------------------------------------------------------- */

void core_session_create(struct ask *a, const struct door_request *q);
void core_session_show(struct ask *a);
void core_session_list(struct ask *a, const struct door_request *q);
void core_session_extend(struct ask *a, const struct door_request *q);
void core_session_delete(struct ask *a);

/* --- core_events.c ---------------------------------------------------------------------------- */

int events_new(struct core *c, struct err *err) _must_check_;
void event_add(struct core *c, const char *type, const struct ask *of, const char *call,
	enum err_code code);
void core_events(struct ask *a, const struct door_request *q);
void events_tell(struct core *c); /* those that wait */
void core_events_timed_out(struct ask *a);

/* --- core_workers.c --------------------------------------------------------------------------- */

struct worker *core_worker_of(void *ctx, struct session *s, struct err *err);
void active_disarm(struct active *a);
void active_arm(struct active *a);
void active_join(struct active *a, struct ask *ask);
void active_leave(struct ask *ask);
void actives_tick(struct core *c, int64_t now_ms);
void actives_end(struct core *c, const char *incarnation); /* NULL: all */

/* --- core_status.c ---------------------------------------------------------------------------- */

void core_whoami(struct ask *a);
void core_tools(struct ask *a);
void core_health(struct ask *a);
void core_metrics(struct ask *a);
void core_reload(struct ask *a);
void count_call(struct core *c, const struct ask *a, enum err_code code);

/* --- core_door.c ------------------------------------------------------------------------------ */

void local_door_free(struct local_door *d);

#endif
