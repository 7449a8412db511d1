/*
 * Core as a server: requests in, who they are from, where they go, answers out. See core.h.
 *
 * An ask is answered by ask_answer() and nowhere else. It is freed there too, except that of a call
 * that is still running after its asker was told so.
 */
#include "daemon/core_impl.h"

#include "sys/clock.h"
#include "tools/bulk.h"

enum { FLUSH_MS = 5000, SWEEP_MS = 10000 };

/* --- an ask ----------------------------------------------------------------------------------- */

void ask_leave(struct ask *a)
{
	if (!a->waits)
		return;
	if (a->prev)
		a->prev->next = a->next;
	else
		a->core->waiting = a->next;
	if (a->next)
		a->next->prev = a->prev;
	a->waits = false;
	a->core->n_waiting--;
}

void ask_wait(struct ask *a, int64_t wait_ms)
{
	struct core *c = a->core;
	a->until_ms = wait_ms < 0 ? -1 : loop_now_ms() + wait_ms;
	a->prev = NULL;
	a->next = c->waiting;
	if (c->waiting)
		c->waiting->prev = a;
	c->waiting = a;
	a->waits = true;
	c->n_waiting++;
}

void ask_free(struct ask *a)
{
	ask_leave(a);
	active_leave(a);
	ask_upload_free(a);
	if (a->op == DOOR_CALL_RESULT && a->result)
		a->result->waiters--;
	if (ask_runs_call(a) && a->result && a->result->running == a)
		a->result->running = NULL;
	call_free(a->call);
	if (a->core->asking == a)
		a->core->asking = NULL;
	free(a);
}

void ask_answer(struct ask *a, struct door_answer *answer)
{
	door_done_fn done = a->done;
	a->done = NULL;
	if (answer->code != ERR_OK)
		a->core->counts.refused[answer->code]++;
	if (done)
		done(a->ctx, answer);
	if (answer->fd >= 0)
		(void)close(answer->fd);
	if (!answer->running || !ask_runs_call(a))
		ask_free(a);
}

void ask_json(struct ask *a, const struct buf *json)
{
	struct err err;
	struct door_answer answer = {.fd = -1, .json = {buf_str(json), json->len}};
	if (buf_check(json, "the answer", &err) < 0)
		ask_error(a, &err);
	else
		ask_answer(a, &answer);
}

void ask_error(struct ask *a, const struct err *err)
{
	_cleanup_buf_ struct buf b = buf_init(16 * 1024);
	buf_putc(&b, '{');
	jw_bool(&b, "executed", false);
	jw_key(&b, "error");
	jw_open(&b, '{');
	jw_cstr(&b, "code", err_info(err->code)->name);
	jw_cstr(&b, "message", err->text);
	if (err->hint[0])
		jw_cstr(&b, "hint", err->hint);
	buf_puts(&b, "}}");
	struct door_answer answer = {.code = err->code, .fd = -1, .json = {buf_str(&b), b.len}};
	ask_answer(a, &answer);
}

int ask_arguments(
	const struct door_request *q, const struct field *fields, json_t **ret, struct err *err)
{
	_cleanup_(cleanup_json_decref) json_t *args = NULL;
	int r = 0;
	if (q->arguments.n == 0)
		args = json_object();
	else
		r = json_parse(q->arguments, LIMIT_REQUEST_BYTES, &args, err);
	if (r < 0)
		return r;
	if (!args)
		return err_oom(err);
	if (!json_is_object(args))
		return err_set(err, ERR_INVALID_ARGUMENT, "the arguments are not a JSON object");
	if (fields && (r = fields_check(fields, args, err)) < 0)
		return r;
	*ret = take_ptr(args);
	return 0;
}

/* --- who it is from --------------------------------------------------------------------------- */

static int copy_word(char *out, struct str s, const char *what, struct err *err)
{
	if (s.n && (memchr(s.p, '\0', s.n) || !utf8_valid(s.p, s.n)))
		return err_set(err, ERR_INVALID_ARGUMENT, "%s is not text", what);
	if (s.n)
		memcpy(out, s.p, s.n);
	out[s.n] = '\0';
	return 0;
}

/* door_check() has been through the lengths. */
static int copy_words(struct ask *a, const struct door_request *q, struct err *err)
{
	int r = copy_word(a->session, q->session, "the session id", err);
	if (r == 0)
		r = copy_word(a->tool, q->tool, "the name of the tool", err);
	if (r == 0)
		r = copy_word(a->turn, q->turn, "the turn", err);
	if (r == 0)
		r = copy_word(a->id, q->id, "the call id", err);
	return r;
}

static int as_token(struct ask *a, const struct token *t, struct str role, struct err *err)
{
	char asked[DOOR_ROLE_MAX + 1];
	enum role wanted = t->role;
	int r = copy_word(asked, role, "the role", err);
	if (r == 0 && role.n)
		r = role_parse(asked, &wanted, err);
	if (r < 0)
		return r;
	memcpy(a->tenant, t->tenant, sizeof(a->tenant));
	memcpy(a->subject, t->name, sizeof(a->subject));
	a->admin = t->admin;
	a->principal = (struct principal){.kind = PRINCIPAL_AGENT,
		.id = a->subject,
		.tenant = a->tenant,
		.role = role_lesser(t->role, wanted)};
	return 0;
}

static int authenticate(
	struct ask *a, const struct door_request *q, unsigned needs, struct err *err)
{
	struct core *c = a->core;
	/* A file that cannot be read now leaves the tokens as they were; HEALTH tells. */
	if (token_table_refresh(c->tokens, loop_now_ms(), err) < 0)
		err_clear(err);
	const struct token *t = token_table_find(c->tokens, q->token, clock_unix_ms() / 1000);
	if (!t)
		return err_set(err, ERR_UNAUTHENTICATED, "the bearer token is not known");
	int r = as_token(a, t, q->role, err);
	if (r == 0 && (needs & DOOR_ADMIN) && !a->admin)
		return err_set(err, ERR_DENIED, "this is for administrators' tokens");
	return r;
}

/* --- where it goes ---------------------------------------------------------------------------- */

static void dispatch(struct ask *a, const struct door_request *q)
{
	struct err err;
	switch (a->op) {
	case DOOR_CALL: core_call(a, q); return;
	case DOOR_CALL_RESULT: core_call_result(a, q); return;
	case DOOR_CALL_CANCEL: core_call_cancel(a); return;
	case DOOR_SESSION_CREATE: core_session_create(a, q); return;
	case DOOR_SESSION_SHOW: core_session_show(a); return;
	case DOOR_SESSION_LIST: core_session_list(a, q); return;
	case DOOR_SESSION_EXTEND: core_session_extend(a, q); return;
	case DOOR_SESSION_DELETE: core_session_delete(a); return;
	case DOOR_EVENTS: core_events(a, q); return;
	case DOOR_WHOAMI: core_whoami(a); return;
	case DOOR_TOOLS: core_tools(a); return;
	case DOOR_HEALTH: core_health(a); return;
	case DOOR_METRICS: core_metrics(a); return;
	case DOOR_RELOAD: core_reload(a); return;
	case DOOR_UPLOAD: core_upload(a, q); return;
	case DOOR_DOWNLOAD: core_download(a, q); return;
	case DOOR_OP_MAX_: break;
	}
	(void)err_set(&err, ERR_UNSUPPORTED, "core does not know this operation");
	ask_error(a, &err);
}

static struct ask *ask_new(struct core *c, const struct door_request *q, door_done_fn done,
	door_progress_fn progress, void *ctx)
{
	struct ask *a = calloc(1, sizeof(*a));
	if (!a)
		return NULL;
	a->core = c;
	a->op = q->op;
	a->done = done;
	a->progress = progress;
	a->ctx = ctx;
	return a;
}

static void answer_no_memory(door_done_fn done, void *ctx)
{
	static const char text[] =
		"{\"executed\":false,\"error\":{\"code\":\"no_memory\",\"message\":"
		"\"out of memory\"}}";
	struct door_answer answer = {.code = ERR_NO_MEMORY, .fd = -1, .json = STR(text)};
	done(ctx, &answer);
}

void core_ask(struct core *c, const struct door_request *q, door_done_fn done,
	door_progress_fn progress, void *ctx, struct ask **ret_ask)
{
	struct err err;
	struct ask *a = ask_new(c, q, done, progress, ctx);
	_cleanup_close_ int body = door_op_info(q->op)->needs & DOOR_BODY ? q->body_fd : -1;
	*ret_ask = NULL;
	if (!a) {
		answer_no_memory(done, ctx);
		return;
	}
	c->counts.asks[q->op]++;
	unsigned needs = door_op_info(q->op)->needs;
	int r = door_check(q, &err);
	if (r == 0)
		r = copy_words(a, q, &err);
	if (r == 0 && (needs & DOOR_AUTH))
		r = authenticate(a, q, needs, &err);
	if (r < 0) {
		ask_error(a, &err);
		return;
	}
	c->asking = a;
	if (q->op == DOOR_UPLOAD)
		(void)take_fd(body); /* its own from here on */
	dispatch(a, q);
	*ret_ask = c->asking; /* NULL: answered and gone */
}

void core_stop(struct ask *a)
{
	struct err err;
	if (a->call) {
		struct active *worker = a->active;
		active_disarm(worker);
		call_cancel(a->call);
		core_call_proceed(a);
		active_arm(worker);
		return;
	}
	(void)err_set(&err, ERR_CANCELLED, "the caller cancelled this");
	ask_error(a, &err);
}

void core_forget(struct ask *a)
{
	a->done = NULL;
	a->progress = NULL;
	if (!a->call) /* an upload that is not complete is nothing yet */
		ask_free(a);
}

void core_drain(struct core *c)
{
	for (struct ask *a = c->waiting, *next; a; a = next) {
		next = a->next;
		if (a->op == DOOR_EVENTS)
			core_events_timed_out(a);
	}
}

unsigned core_waiting(const struct core *c)
{
	return c->n_waiting;
}

/* --- time ------------------------------------------------------------------------------------- */

static void timed_out(struct ask *a)
{
	a->until_ms = -1;
	if (a->op == DOOR_EVENTS)
		core_events_timed_out(a);
	else if (a->upload)
		core_upload_timed_out(a);
	else
		core_call_timed_out(a);
}

static void look_at_asks(struct core *c, int64_t now)
{
	for (struct ask *a = c->waiting, *next; a; a = next) {
		next = a->next;
		if (a->until_ms >= 0 && now >= a->until_ms)
			timed_out(a);
	}
}

/* What the registry only has in memory, and what has expired. A failure is tried again; HEALTH and
 * the next call tell. */
static void keep_house(struct core *c, int64_t now)
{
	struct err ignored;
	struct sweep_result swept;
	const struct sweep_budget budget = {.sessions = 64, .entries = 2000, .ms = 20};
	if (!c->env.registry)
		return;
	if (now - c->flushed_ms >= FLUSH_MS) {
		c->flushed_ms = now;
		c->counts.flush_failed += registry_flush(c->env.registry, &ignored) < 0;
	}
	if (now - c->swept_ms < SWEEP_MS)
		return;
	bool more = registry_sweep(c->env.registry, &budget, &swept, &ignored) == 0 && swept.more;
	c->swept_ms = more ? c->swept_ms + 1000 : now;
}

static void tick(void *ctx)
{
	struct core *c = ctx;
	int64_t now = loop_now_ms();
	look_at_asks(c, now);
	actives_tick(c, now);
	events_tell(c);
	results_expire(c, now);
	keep_house(c, now);
	loop_timer_set(c->tick, now + CORE_TICK_MS);
}

/* --- life ------------------------------------------------------------------------------------- */

int core_new(const struct core_options *opt, struct core **ret, struct err *err)
{
	_cleanup_(cleanup_core_free) struct core *c = calloc(1, sizeof(*c));
	if (!c)
		return err_oom(err);
	c->opt = *opt;
	if (!c->opt.worker_idle_ms)
		c->opt.worker_idle_ms = CORE_WORKER_IDLE_MS;
	c->env = opt->env;
	c->env.worker_of = core_worker_of;
	c->env.worker_ctx = c;
	c->bulk = c->env;
	c->bulk.tools = tools_bulk;
	c->started_ms = c->flushed_ms = c->swept_ms = loop_now_ms();
	int r = token_table_new(opt->state_fd, &c->tokens, err);
	if (r == 0)
		r = token_table_load(c->tokens, err);
	if (r == 0)
		r = events_new(c, err);
	if (r == 0)
		r = loop_timer(opt->loop, c->started_ms + CORE_TICK_MS, tick, c, &c->tick, err);
	if (r == 0)
		*ret = take_ptr(c);
	return r;
}

void core_free(struct core *c)
{
	if (!c)
		return;
	loop_remove(&c->tick);
	local_door_free(c->door);
	while (c->waiting) {
		c->waiting->done = NULL;
		ask_free(c->waiting);
	}
	actives_end(c, NULL);
	results_free(c);
	free(c->events);
	token_table_free(c->tokens);
	free(c);
}
