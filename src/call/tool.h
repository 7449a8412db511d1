/*
 * A tool: a named operation with declared arguments, and what its handler may use.
 *
 * The pipeline (call.h) drives a handler through fixed steps. A handler never decides, never
 * commits and never touches a path that it did not declare as a target in prepare().
 */
#ifndef CLOISTER_CALL_TOOL_H
#define CLOISTER_CALL_TOOL_H

#include "call/schema.h"
#include "call/worker.h"
#include "govern/decide.h"
#include "workspace/history.h"

struct tool_call;
struct tool_env;
struct session;

/* What run() and resume() return beside errors. */
enum tool_step { TOOL_DONE = 0, TOOL_PENDING = 1 /* waits for tool_submit() or tool_follow() */ };

struct tool {
	const char *name, *title, *description;
	enum action_group group;
	bool destructive, idempotent; /* MCP annotations; readOnlyHint follows from the group */
	const struct field *args, *result;

	/* Read arguments, declare targets (tool_target). Must not open content and must not put
	 * what it learns into an answer. */
	int (*prepare)(struct tool_call *tc, struct err *err);
	/* After allow: do the work. Reading tools write their result; writing tools change
	 * tool_call_view(). */
	int (*run)(struct tool_call *tc, struct err *err);
	/* The submitted job has an answer, or `answer` is NULL and `err` says why not: return that,
	 * or go on without. May submit the next job. Of a tool that follows a descriptor: `answer`
	 * is NULL, and there may be nothing new. NULL when the tool never waits. */
	int (*resume)(struct tool_call *tc, struct worker_answer *answer, struct err *err);
	/* Members of the result that follow from the finished change set (also of a dry run). NULL
	 * when there are none. */
	int (*report)(struct tool_call *tc, const struct changeset *cs, struct err *err);
	/* Free what hangs on tool_call_state(). NULL when nothing does. */
	void (*done)(struct tool_call *tc);
};

/* --- what a handler may ask of its call
 * ------------------------------------------------------------------------------ */

const json_t *tool_args(const struct tool_call *tc);
const char *tool_arg_str(const struct tool_call *tc, const char *name);
int64_t tool_arg_int(const struct tool_call *tc, const char *name);
bool tool_arg_bool(const struct tool_call *tc, const char *name);

/* Declare a target. What resolving it finds wrong is kept and becomes the call's error only after
 * policy allowed the spelled path. The node is borrowed and valid until the call ends; index counts
 * from 0 in order of declaration. */
int tool_target(struct tool_call *tc, const char *path, enum access access, unsigned resolve_flags,
	struct err *err) _must_check_;
struct node *tool_node(struct tool_call *tc, unsigned index);
unsigned tool_targets(const struct tool_call *tc);

struct view *tool_view(struct tool_call *tc);
struct workspace *tool_workspace(struct tool_call *tc);
struct session *tool_session(struct tool_call *tc);
struct worker *tool_worker(
	struct tool_call *tc, struct err *err); /* NULL with err when it cannot be had */

/* Hand a job to the worker; run() or resume() then returns TOOL_PENDING. One at a time. */
int tool_submit(struct tool_call *tc, const struct worker_job *job, struct err *err) _must_check_;

/* Wait for a descriptor (borrowed) to become readable instead of a job; -1: no longer. */
void tool_follow(struct tool_call *tc, int fd);
/* The handler keeps a time limit of its own, which ends in `ms` from now: the call's lies behind.
 */
void tool_allow_time(struct tool_call *tc, int64_t ms);
/* Hand on what a command prints, and the descriptor that its input comes from (-1: none). */
void tool_output(struct tool_call *tc, int stream, const char *p, size_t n);
int tool_input_fd(const struct tool_call *tc);

/* The result object under construction: the inside of a JSON object, written by json_write
 * (codec/json_write.h). Members must be those of tool->result. */
struct buf *tool_result(struct tool_call *tc);

/* The content that came with the call, or -1; borrowed. */
int tool_content(const struct tool_call *tc, int64_t *ret_size);
/* A file for the caller to read; owned by the call from now on. */
void tool_give_file(struct tool_call *tc, int fd);

/* A place for the handler's own state; zeroed memory of this size on first use, freed by the
 * pipeline after done(). */
void *tool_state(struct tool_call *tc, size_t size);

/* Say how far it is (rate-limited by the door) and learn whether to stop: ERR_CANCELLED or
 * ERR_TIMEOUT. Call it in loops. */
int tool_progress(struct tool_call *tc, int64_t done, int64_t total, struct err *err) _must_check_;

const struct principal *tool_principal(const struct tool_call *tc);
const struct tool_env *tool_env(const struct tool_call *tc);

#endif
