/* Calls: started, waited for, answered, looked up by id. */
#include "daemon/core_impl.h"

#include "sys/clock.h"

#include <sys/stat.h>

enum { PROGRESS_MS = 200 };

static void on_progress(void *ctx, int64_t done, int64_t total)
{
	struct ask *a = ctx;
	int64_t now = loop_now_ms();
	if (!a->progress || now - a->said_ms < PROGRESS_MS)
		return;
	a->said_ms = now;
	a->progress(a->ctx, done, total);
}

/* --- ends ------------------------------------------------------------------------------------- */

static void answer_result(struct ask *a, enum err_code code, struct str json)
{
	struct door_answer answer = {.code = code, .fd = -1, .json = json};
	ask_answer(a, &answer);
}

/* Of a file: what tells whether it is still the same, without reading it. */
static void describe_file(struct door_answer *answer)
{
	struct stat st;
	struct sha256 hash;
	char hex[SHA256_HEX + 1];
	if (fstat(answer->fd, &st) < 0)
		return;
	const int64_t identity[] = {(int64_t)st.st_dev, (int64_t)st.st_ino, st.st_size,
		st.st_mtim.tv_sec, st.st_mtim.tv_nsec, st.st_ctim.tv_sec, st.st_ctim.tv_nsec};
	sha256_of(identity, sizeof(identity), &hash);
	sha256_hex(&hash, hex);
	memcpy(answer->etag, hex, DOOR_ETAG_LEN);
	answer->size = st.st_size;
	answer->modified_ms = st.st_mtim.tv_sec * INT64_C(1000) + st.st_mtim.tv_nsec / 1000000;
}

static void answer_call(struct ask *a, enum err_code code, struct str json)
{
	struct door_answer answer = {.code = code, .fd = call_take_file(a->call), .json = json};
	if (answer.fd >= 0)
		describe_file(&answer);
	ask_answer(a, &answer);
}

static void answer_too_large_to_keep(struct ask *a)
{
	struct err err;
	(void)err_set(
		&err, ERR_EXPIRED, "the result was larger than what is kept and was told once");
	ask_error(a, &err);
}

static void answer_from(struct ask *a, const struct result *r)
{
	if (r->json)
		answer_result(a, r->code, (struct str){r->json, r->n});
	else
		answer_too_large_to_keep(a);
}

/* Those that asked for the result by id while the call ran. */
static void tell_waiters(struct core *c, struct result *r)
{
	for (struct ask *a = c->waiting, *next; a && r->waiters; a = next) {
		next = a->next;
		if (a->op == DOOR_CALL_RESULT && a->result == r)
			answer_from(a, r);
	}
}

static void finished(struct ask *a)
{
	struct core *c = a->core;
	enum err_code code = call_code(a->call);
	struct str json = call_result(a->call);
	struct result *r = a->result ? a->result : result_add(c, a->tenant, call_id(a->call));
	a->result = NULL;
	count_call(c, a, code);
	if (code != ERR_OK || (a->called && a->called->group != GROUP_READ))
		event_add(c, "call", a, call_id(a->call), code);
	if (r) {
		result_end(c, r, code, json);
		if (r->waiters)
			tell_waiters(c, r);
	}
	answer_call(a, code, json);
}

/* --- starting --------------------------------------------------------------------------------- */

/* The session's own role bounds what may be done in it, whoever asks. */
static int bound_by_session(struct ask *a, struct err *err)
{
	struct session *s;
	enum role owned;
	int r = registry_session(a->core->env.registry, a->tenant, a->session, &s, err);
	if (r < 0)
		return r;
	r = role_parse(session_role(s), &owned, err);
	session_release(s);
	if (r == 0)
		a->principal.role = role_lesser(a->principal.role, owned);
	return r;
}

static int start(struct ask *a, const struct tool_env *env, const json_t *args, int content_fd,
	int64_t size, struct err *err)
{
	int r = bound_by_session(a, err);
	if (r < 0)
		return r;
	a->called = tool_find(env, a->tool);
	const struct call_input in = {.tool = a->tool,
		.arguments = args,
		.session_id = a->session,
		.principal = &a->principal,
		.turn = a->turn[0] ? a->turn : NULL,
		.content_fd = content_fd >= 0 ? &content_fd : NULL,
		.content_size = size,
		.progress = a->progress ? on_progress : NULL,
		.progress_ctx = a};
	return call_start(env, &in, &a->call, err);
}

static void keep_running(struct ask *a, int64_t wait_ms)
{
	struct core *c = a->core;
	a->result = result_add(c, a->tenant, call_id(a->call));
	if (a->result)
		a->result->running = a;
	ask_wait(a, wait_ms > 0 ? wait_ms : -1);
	active_join(c->asked, a);
}

void core_start_call(struct ask *a, const struct tool_env *env, json_t *args, int content_fd,
	int64_t size, int64_t wait_ms)
{
	struct err err;
	struct core *c = a->core;
	a->started_ns = clock_mono_ns();
	a->said_ms = loop_now_ms();
	c->asked = NULL;
	if (start(a, env, args, content_fd, size, &err) < 0)
		ask_error(a, &err);
	else if (call_pending(a->call))
		keep_running(a, wait_ms);
	else
		finished(a);
	if (c->asked)
		active_arm(c->asked);
}

void core_call(struct ask *a, const struct door_request *q)
{
	struct err err;
	_cleanup_(cleanup_json_decref) json_t *args = NULL;
	if (ask_arguments(q, NULL, &args, &err) < 0)
		ask_error(a, &err);
	else
		core_start_call(a, &a->core->env, args, -1, 0, q->wait_ms);
}

/* The worker is disarmed by who calls this. */
void core_call_proceed(struct ask *a)
{
	call_proceed(a->call);
	if (!call_pending(a->call))
		finished(a);
}

static void answer_running(struct ask *a, const char *id)
{
	_cleanup_buf_ struct buf b = buf_init(256);
	jw_open(&b, '{');
	jw_cstr(&b, "call_id", id);
	jw_cstr(&b, "status", "running");
	jw_close(&b, '}');
	struct door_answer answer = {.fd = -1, .running = true, .json = {buf_str(&b), b.len}};
	ask_answer(a, &answer);
}

bool ask_runs_call(const struct ask *a)
{
	return a->op == DOOR_CALL || a->op == DOOR_UPLOAD || a->op == DOOR_DOWNLOAD;
}

void core_call_timed_out(struct ask *a)
{
	answer_running(a, ask_runs_call(a) ? call_id(a->call) : a->id);
}

/* --- by id ------------------------------------------------------------------------------------ */

static struct result *find(struct ask *a)
{
	struct err err;
	struct result *r = result_find(a->core, a->tenant, a->id);
	if (r)
		return r;
	(void)err_set(&err, ERR_NOT_FOUND, "no call with this id is known");
	ask_error(a, &err);
	return NULL;
}

void core_call_result(struct ask *a, const struct door_request *q)
{
	struct result *r = find(a);
	if (!r)
		return;
	if (!r->running) {
		answer_from(a, r);
	} else if (q->wait_ms == 0) {
		answer_running(a, a->id);
	} else {
		a->result = r;
		r->waiters++;
		ask_wait(a, q->wait_ms);
	}
}

void core_call_cancel(struct ask *a)
{
	struct result *r = find(a);
	if (!r)
		return;
	bool running = r->running != NULL;
	_cleanup_buf_ struct buf b = buf_init(256);
	jw_open(&b, '{');
	jw_cstr(&b, "call_id", a->id);
	jw_bool(&b, "cancelled", running);
	jw_close(&b, '}');
	if (running)
		core_stop(r->running);
	ask_json(a, &b);
}
