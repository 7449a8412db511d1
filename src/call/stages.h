/*
 * The stages of the pipeline as types. Private to src/call.
 *
 *   prepared --decide--> allowed --run--> changed --decide--> publishable --journal--> journaled
 * --commit--> published
 *
 * Each struct is opaque outside the file of the stage that makes it, and each function consumes the
 * stage before it (also on failure). There is no other way to come by an `allowed`, so a handler
 * cannot run undecided, and no other way to come by a `publishable`, so effects cannot be published
 * undecided.
 */
#ifndef CLOISTER_CALL_STAGES_H
#define CLOISTER_CALL_STAGES_H

#include "call/call.h"

enum {
	CALL_TARGETS_MAX = LIMIT_EDITS,
	CALL_ID_CHARS = 26,
	CALL_TIMEOUT_MS = 60 * 1000,
	CALL_RESULT_MAX = 256 * 1024 * 1024,
	CALL_RESULT_TAIL = 4096,    /* more than an error, or what is said after a commit, takes */
	CALL_CONFLICT_RETRIES = 64, /* a commit that lost a race is prepared anew, until the
				       deadline at the latest */
};

struct target {
	struct decide_target asked;
	struct node node;
	int failed; /* what resolving gave; told only after policy allowed the spelled path */
	struct err why;
};

/* One call as its handler and the stages see it. */
struct tool_call {
	const struct tool_env *env;
	const struct tool *tool;
	json_t *args; /* owned */
	struct session *session;
	struct workspace *ws;
	struct view *view;       /* made on first use */
	struct target **targets; /* pointers stay valid while the list grows */
	unsigned n_targets, cap_targets;
	struct worker *worker;
	uint64_t job;
	int follow_fd; /* -1: waits for no descriptor */
	bool job_running, cancelled;
	int64_t deadline_ms; /* CLOCK_MONOTONIC */
	void *state;
	struct buf result;
	int content_fd, file_fd; /* -1: none; file_fd is owned */
	int64_t content_size;
	char id[CALL_ID_CHARS + 1];
	const char *turn;
	const char *asked_tool, *asked_session; /* as spelled; during call_start() only */
	bool journaled;                         /* intent and outcome are recorded */
	const struct principal *principal;
	void (*progress)(void *ctx, int64_t done, int64_t total);
	void *progress_ctx;
	void (*output)(void *ctx, int stream, const char *p, size_t n);
	void *output_ctx;
	int input_fd;
	bool (*agree)(void *ctx, struct str diff);
	void *agree_ctx;
};

struct prepared;
struct allowed;
struct changed;
struct publishable;
struct journaled;

void prepared_free(struct prepared *p);
void allowed_free(struct allowed *a);
void changed_free(struct changed *c);
void publishable_free(struct publishable *p);
void journaled_free(struct journaled *j);
DEFINE_CLEANUP(struct prepared *, prepared_free)
DEFINE_CLEANUP(struct allowed *, allowed_free)
DEFINE_CLEANUP(struct changed *, changed_free)
DEFINE_CLEANUP(struct publishable *, publishable_free)
DEFINE_CLEANUP(struct journaled *, journaled_free)

/* Check the arguments against the tool's table and let the handler declare its targets. */
int stage_prepare(struct tool_call *tc, struct prepared **ret, struct err *err) _must_check_;
struct tool_call *prepared_call(struct prepared *p);

/* Ask policy about the call contract. ERR_DENIED or ERR_HELD with *ret_decision filled; what
 * resolving found wrong comes after. */
int stage_decide(struct prepared *take, struct allowed **ret, struct decision *ret_decision,
	struct err *err) _must_check_;
struct tool_call *allowed_call(struct allowed *a);

/* Run the handler, or go on after its job. TOOL_PENDING: call again when the worker has answered.
 */
int stage_run(struct allowed *a, struct err *err) _must_check_;

/* The handler is done: what it changed becomes a change set (possibly empty). */
int stage_finish(struct allowed *take, struct changed **ret, struct err *err) _must_check_;
struct tool_call *changed_call(struct changed *c);
struct changeset *changed_set(struct changed *c);

/* Ask policy about the effects contract; nothing is asked for an empty change set. */
int stage_effects(struct changed *take, struct publishable **ret, struct decision *ret_decision,
	struct err *err) _must_check_;

/*
 * The intent: recorded, and with DURABLE_POWER on the disk, before anything is published. `take` is
 * consumed also on failure; then nothing has happened. Without a journal (tool_env) nothing is
 * recorded.
 */
int stage_journal(struct tool_call *tc, struct changeset *take, const struct decision *d,
	struct journaled **ret, struct err *err) _must_check_;
/* Publish what was journaled, and record the outcome. Errors of changeset_commit(). */
int journaled_commit(
	struct journaled *take, struct commit_result *ret, struct err *err) _must_check_;

/* The one record of a call that changed nothing: read, refused, dry run. */
int call_journal_record(struct tool_call *tc, const struct err *why, const struct decision *d,
	struct err *err) _must_check_;
/* Outcomes of intents of this call's session that an earlier process left open. */
int call_journal_recover(struct tool_call *tc, struct err *err) _must_check_;

/* Publish, all or nothing. An empty change set publishes nothing and *ret_seq is 0. */
int stage_commit(struct publishable *take, const struct decision *d, struct err *err) _must_check_;

/* The question for policy about a call; `effects` may be NULL. Borrows from tc. `asked` has room
 * for every target. */
void question_of(struct tool_call *tc, struct decide_target *asked, const struct changeset *effects,
	struct decide_request *ret);

/* Turn a decision that is not allow into its error. */
int refusal_of(const struct decision *d, struct err *err);

/* The call contract: what is asked, as canonical JSON, and its SHA-256. */
int contract_of(
	struct tool_call *tc, struct buf *out, struct sha256 *ret, struct err *err) _must_check_;

/* Keep a held call so that it can be read by id until it expires. */
int held_store(struct tool_call *tc, const struct decision *d, int64_t *ret_expires,
	struct err *err) _must_check_;

/* CLOCK_MONOTONIC in milliseconds. */
int64_t call_clock_ms(void);

#endif
