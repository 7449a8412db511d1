/* The driver of the pipeline: see call.h. It knows the order of the stages; stages.h makes any
 * other order not compile. */
#include "call/stages.h"

#include "codec/json_write.h"
#include "journal/journal.h"

#include <errno.h>
#include <poll.h>
#include <sys/random.h>

struct call {
	struct tool_call tc;
	struct allowed *running; /* set while the handler waits for the worker */
	struct decision decision;
	struct err err;
	int64_t held_expires;
	bool pending;
	unsigned retries;
};

/*
 * 130 random bits in lower-case base 32 (RFC 4648's alphabet): unguessable, and safe in names and
 * URLs. The bits of several ids are drawn at once, since a system call for each is a part of what a
 * small read costs; those that were used are wiped.
 */
static int make_id(char ret[CALL_ID_CHARS + 1], struct err *err)
{
	static _Thread_local struct {
		unsigned char bytes[8 * CALL_ID_CHARS]; /* getrandom(2) gives up to 256 at once */
		unsigned left;
	} drawn;
	if (drawn.left == 0) {
		if (getrandom(drawn.bytes, sizeof(drawn.bytes), 0) != (ssize_t)sizeof(drawn.bytes))
			return err_sys(err, errno, "drawing a call id");
		drawn.left = sizeof(drawn.bytes) / CALL_ID_CHARS;
	}
	unsigned char *mine = drawn.bytes + (size_t)--drawn.left * CALL_ID_CHARS;
	for (unsigned i = 0; i < CALL_ID_CHARS; i++)
		ret[i] = "abcdefghijklmnopqrstuvwxyz234567"[mine[i] & 31];
	ret[CALL_ID_CHARS] = '\0';
	explicit_bzero(mine, CALL_ID_CHARS);
	return 0;
}

const struct tool *tool_find(const struct tool_env *env, const char *name)
{
	for (unsigned i = 0; env->tools[i]; i++)
		if (strcmp(env->tools[i]->name, name) == 0)
			return env->tools[i];
	return NULL;
}

/* --- results ------------------------------------------------------------------------------------
 */

static void put_strings(struct buf *b, const char *key, const char *const *list, unsigned n)
{
	jw_key(b, key);
	jw_open(b, '[');
	for (unsigned i = 0; i < n; i++)
		jw_elem_str(b, str_of(list[i]));
	jw_close(b, ']');
}

static void put_error(struct call *c)
{
	struct buf *b = &c->tc.result;
	jw_key(b, "error");
	jw_open(b, '{');
	jw_cstr(b, "code", err_info(c->err.code)->name);
	jw_cstr(b, "message", c->err.text);
	if (c->err.hint[0])
		jw_cstr(b, "hint", c->err.hint);
	if (c->err.code == ERR_DENIED || c->err.code == ERR_HELD)
		put_strings(b, "policies", c->decision.policies, c->decision.n_policies);
	if (c->err.code == ERR_HELD)
		jw_int(b, "expires", c->held_expires);
	jw_close(b, '}');
}

/* A place in the journal that is there for good: behind the intent of a change, for a read as it is
 * known now. */
static void put_journal(struct call *c)
{
	struct buf *b = &c->tc.result;
	struct jposition at;
	struct err err;
	if (!c->tc.env->journal || journal_position(c->tc.env->journal, &at, &err) < 0)
		return;
	jw_key(b, "journal");
	jw_open(b, '{');
	jw_int(b, "seq", (int64_t)at.seq);
	jw_str(b, "head", (struct str){at.head, SHA256_HEX});
	jw_close(b, '}');
}

static void put_end(struct call *c)
{
	struct buf *b = &c->tc.result;
	jw_cstr(b, "call_id", c->tc.id);
	put_journal(c);
	if (c->tc.env->gaps)
		jw_cstr(b, "weaker", c->tc.env->gaps);
	buf_putc(b, '}');
}

/* A refusal says nothing but the refusal: what the handler had written so far goes. Its room was
 * taken when the call began. */
static void refuse(struct call *c)
{
	struct buf *b = &c->tc.result;
	buf_clear(b);
	buf_putc(b, '{');
	jw_bool(b, "executed", false);
	put_error(c);
	put_end(c);
}

/* A call that cannot be recorded gives no answer. Changes were recorded before they were made. */
static void record(struct call *c)
{
	struct err err;
	if (!c->tc.env->journal || c->tc.journaled)
		return;
	if ((call_journal_record(&c->tc, &c->err, &c->decision, &err) < 0 ||
		    call_journal_recover(&c->tc, &err) < 0) &&
		c->err.code == ERR_OK) {
		(void)err_wrap(&err, "the call could not be recorded");
		c->err = err;
	}
}

/* A commit has made sure that its answer finds room, so one that fails here has changed nothing. */
static void finish(struct call *c)
{
	struct buf *b = &c->tc.result;
	c->pending = false;
	record(c);
	if (c->err.code == ERR_OK) {
		jw_bool(b, "executed", true);
		put_end(c);
		if (buf_check(b, "the result", &c->err) == 0)
			return;
	}
	refuse(c);
}

/* --- the order of the stages --------------------------------------------------------------------
 */

static int publish_changes(struct call *c, struct allowed *take)
{
	struct changed *changed = NULL;
	struct publishable *publishable = NULL;
	int r = stage_finish(take, &changed, &c->err);
	if (r == 0)
		r = stage_effects(changed, &publishable, &c->decision, &c->err);
	if (r == 0)
		r = stage_commit(publishable, &c->decision, &c->err);
	return r;
}

static int decided(struct call *c)
{
	struct prepared *prepared = NULL;
	int r = stage_prepare(&c->tc, &prepared, &c->err);
	if (r < 0)
		return r;
	buf_putc(&c->tc.result, '{');
	return stage_decide(prepared, &c->running, &c->decision, &c->err);
}

/* Let the handler run as far as it gets without blocking; commit when it is done. */
static int run_on(struct call *c)
{
	int r = tool_progress(&c->tc, 0, 0, &c->err);
	if (r == 0)
		r = stage_run(c->running, &c->err);
	if (r == TOOL_PENDING)
		return r;
	struct allowed *a = take_ptr(c->running);
	if (r < 0) {
		allowed_free(a);
		return r;
	}
	return publish_changes(c, a);
}

/* A commit that lost a race against another writer is prepared anew on what is there now; a caller
 * who named the content that he expects (expected_hash) is told by the handler instead, and a
 * command is not run again by itself. */
static bool worth_retrying(struct call *c, int r)
{
	return r == -ERR_CONFLICT && c->tc.tool->group != GROUP_EXECUTE && !c->tc.cancelled &&
	       !arg_get(c->tc.args, "expected_hash") && c->retries++ < CALL_CONFLICT_RETRIES &&
	       call_clock_ms() < c->tc.deadline_ms;
}

static void advance(struct call *c)
{
	int r;
	do {
		err_clear(&c->err);
		r = c->running ? 0 : decided(c);
		if (r == 0)
			r = run_on(c);
	} while (worth_retrying(c, r));
	if (r == TOOL_PENDING) {
		c->pending = true;
		return;
	}
	/* A handler may have gone on without what failed. */
	if (r == 0)
		err_clear(&c->err);
	if (r == -ERR_HELD) {
		struct err why;
		if (held_store(&c->tc, &c->decision, &c->held_expires, &why) < 0)
			c->err = why;
	}
	finish(c);
}

/* --- the door's side ----------------------------------------------------------------------------
 */

static int find_session(struct call *c, const struct call_input *in)
{
	int r = registry_session(c->tc.env->registry, in->principal->tenant, in->session_id,
		&c->tc.session, &c->err);
	if (r < 0)
		return r;
	return session_workspace(c->tc.session, &c->tc.ws, &c->err);
}

static int accept_input(struct call *c, const struct call_input *in)
{
	c->tc.tool = tool_find(c->tc.env, in->tool);
	if (!c->tc.tool) {
		(void)err_set(&c->err, ERR_UNKNOWN_TOOL, "no tool is called '%.80s'", in->tool);
		return -ERR_UNKNOWN_TOOL;
	}
	c->tc.args =
		in->arguments ? json_incref((json_t *)(uintptr_t)in->arguments) : json_object();
	if (!c->tc.args)
		return err_oom(&c->err);
	return find_session(c, in);
}

int call_start(
	const struct tool_env *env, const struct call_input *in, struct call **ret, struct err *err)
{
	struct call *c = calloc(1, sizeof(*c));
	if (!c)
		return err_oom(err);
	c->tc.env = env;
	c->tc.principal = in->principal;
	c->tc.turn = in->turn;
	c->tc.asked_tool = in->tool;
	c->tc.asked_session = in->session_id;
	c->tc.progress = in->progress;
	c->tc.progress_ctx = in->progress_ctx;
	c->tc.content_fd = in->content_fd ? *in->content_fd : -1;
	c->tc.content_size = in->content_size;
	c->tc.file_fd = -1;
	c->tc.output = in->output;
	c->tc.output_ctx = in->output_ctx;
	c->tc.input_fd = in->has_input ? in->input_fd : -1;
	c->tc.agree = in->agree;
	c->tc.agree_ctx = in->agree_ctx;
	c->tc.follow_fd = -1;
	c->tc.result = buf_init(CALL_RESULT_MAX);
	c->tc.deadline_ms =
		call_clock_ms() + (in->timeout_ms > 0 ? in->timeout_ms : CALL_TIMEOUT_MS);
	if (!buf_room(&c->tc.result, CALL_RESULT_TAIL)) {
		free(c);
		return err_oom(err);
	}
	*ret = c;
	if (make_id(c->tc.id, &c->err) < 0 || accept_input(c, in) < 0)
		finish(c);
	else
		advance(c);
	return 0;
}

bool call_pending(const struct call *c)
{
	return c->pending;
}

int call_poll_fd(const struct call *c)
{
	if (c->pending && c->tc.follow_fd >= 0)
		return c->tc.follow_fd;
	return c->pending ? worker_poll_fd(c->tc.worker) : -1;
}

int64_t call_deadline_ms(const struct call *c)
{
	return c->tc.deadline_ms;
}

void call_proceed(struct call *c)
{
	if (c->pending)
		advance(c);
}

void call_wait(struct call *c)
{
	while (c->pending) {
		struct pollfd p = {.fd = call_poll_fd(c), .events = POLLIN};
		int64_t left = c->tc.deadline_ms - call_clock_ms();
		(void)poll(&p, 1, (int)MAX((int64_t)0, MIN(left, (int64_t)1000)));
		advance(c);
	}
}

void call_cancel(struct call *c)
{
	c->tc.cancelled = true;
	if (c->pending)
		advance(c);
}

const char *call_id(const struct call *c)
{
	return c->tc.id;
}

enum err_code call_code(const struct call *c)
{
	return c->err.code;
}

const struct err *call_err(const struct call *c)
{
	return &c->err;
}

struct str call_result(const struct call *c)
{
	return (struct str){buf_str(&c->tc.result), c->tc.result.len};
}

int call_take_file(struct call *c)
{
	return c->err.code == ERR_OK ? take_fd(c->tc.file_fd) : -1;
}

static void release_targets(struct tool_call *tc)
{
	for (unsigned i = 0; i < tc->n_targets; i++) {
		if (tc->targets[i]->failed == 0)
			node_done(&tc->targets[i]->node);
		free(tc->targets[i]);
	}
	free(tc->targets);
}

void call_free(struct call *c)
{
	if (!c)
		return;
	if (c->tc.job_running)
		worker_cancel(c->tc.worker, c->tc.job);
	allowed_free(c->running);
	if (c->tc.tool && c->tc.tool->done && c->tc.state)
		c->tc.tool->done(&c->tc);
	free(c->tc.state);
	release_targets(&c->tc);
	view_free(c->tc.view);
	if (c->tc.session)
		session_release(c->tc.session);
	cleanup_close(&c->tc.file_fd);
	json_decref(c->tc.args);
	buf_done(&c->tc.result);
	free(c);
}
