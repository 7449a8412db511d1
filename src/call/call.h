/*
 * The pipeline: call -> prepare -> decide -> (hold) -> run -> commit -> result. The only place that
 * knows this order.
 *
 * Inside, each stage is a type that only the stage before it makes (stages.h), so code that skips
 * one does not compile. A door uses what is declared here: it makes a core once, starts calls, lets
 * them proceed, and writes the result. Calls are state machines: call_start() runs as far as it
 * can; a call that waits for the worker is pending until call_proceed().
 */
#ifndef CLOISTER_CALL_CALL_H
#define CLOISTER_CALL_CALL_H

#include "call/tool.h"
#include "session/session.h"

struct tree;
struct fence;
struct journal;

/* What calls run with. Borrowed; outlives every call. */
struct tool_env {
	const struct tool *const *tools; /* NULL-terminated */
	struct registry *registry;
	const struct decider *decider;
	const char *profile;
	const struct workspace_options *workspace; /* defaults for sessions */
	struct worker *(*worker_of)(
		void *ctx, struct session *s, struct err *err); /* starts lazily */
	void *worker_ctx;
	struct fence *fence; /* where real commands run; NULL: nowhere */
	int64_t scratch_bytes,
		scratch_entries; /* what one command may write; 0: as the fence says */
	struct journal *journal; /* records every call; NULL: nothing is recorded (tests) */
	int held_fd;             /* directory of held calls (0700), -1: calls cannot be held */
	int64_t held_seconds;    /* how long a held call waits */
	const char *gaps; /* what is weaker on this machine, said in every result; NULL: nothing */
	/* limits and defaults of tools */
	int64_t read_limit_bytes;
	const char *const *exclude; /* default exclusions, NULL-terminated */
	int64_t search_ms, search_bytes;
};

/* What a door knows of one call. Borrowed during call_start() only, except the
 * contexts of callbacks and `input_fd`. */
struct call_input {
	const char *tool;
	const json_t *arguments; /* NULL: none given */
	const char *session_id;
	const struct principal *principal;
	const char *turn; /* NULL: none */
	/* What a tool of tools/bulk.h writes: `content_size` bytes from offset 0. NULL: none.
	 * Borrowed until the call ends. */
	const int *content_fd;
	int64_t content_size;
	int64_t timeout_ms; /* 0: the default, 60 s */
	void (*progress)(void *ctx, int64_t done, int64_t total);
	void *progress_ctx;
	/* What a command prints, as it comes (1: standard output, 2: standard error); NULL: only in
	 * the result. */
	void (*output)(void *ctx, int stream, const char *p, size_t n);
	void *output_ctx;
	bool has_input; /* a command whose call brings no input reads this descriptor */
	int input_fd;
	/* Asked once with the unified diff when a call is about to change something; false: nothing
	 * is changed, as in a dry run. NULL: yes. */
	bool (*agree)(void *ctx, struct str diff);
	void *agree_ctx;
};

struct call;

/*
 * Start a call; *ret is always a call, also when it was refused at once. Never blocks on the
 * worker. ERR_NO_MEMORY is the only failure.
 */
int call_start(const struct tool_env *env, const struct call_input *in, struct call **ret,
	struct err *err) _must_check_;

bool call_pending(const struct call *c); /* waits for the worker or a command */
int call_poll_fd(const struct call *c);  /* readable when call_proceed() may get on */
int64_t call_deadline_ms(
	const struct call *c); /* CLOCK_MONOTONIC ms when call_proceed() must run at the latest */
void call_proceed(struct call *c);
void call_wait(struct call *c); /* proceed until it is no longer pending */
void call_cancel(
	struct call *c); /* from the same thread, between proceeds, or from a progress callback */

/* The finished call. */
const char *call_id(const struct call *c);     /* 26 characters, unguessable */
enum err_code call_code(const struct call *c); /* ERR_OK, or why not */
const struct err *call_err(const struct call *c);
/* The result as JSON text: one object, conforming to the tool's result fields on success; on
 * failure
 * {"executed":false,"error":{"code","message","hint"?,"policies"?,"instead"?},"call_id"}. Borrowed
 * until call_free(). */
struct str call_result(const struct call *c);
/* The file that a tool of tools/bulk.h has opened; the caller owns it. -1: none, or the call was
 * refused. */
int call_take_file(struct call *c);
void call_free(struct call *c);
DEFINE_CLEANUP(struct call *, call_free)

/* A held call by its id, as JSON {"call_id","status":"held"|"expired","expires",...}. ERR_NOT_FOUND
 * when unknown. */
int call_held(const struct tool_env *env, const char *id, const struct principal *who,
	struct buf *out, struct err *err) _must_check_;

const struct tool *tool_find(const struct tool_env *env, const char *name);

#endif
