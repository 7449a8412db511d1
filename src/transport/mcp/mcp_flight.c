/*
 * Calls in flight: started, waited for, reported on, cancelled, answered once or never.
 *
 * A call is answered in the turn in which it stops waiting, so a cancellation either finds it
 * waiting (then it is really cancelled and never answered) or comes after its answer (then it is
 * ignored).
 */
#include "codec/json_write.h"
#include "sys/loop.h"
#include "transport/mcp/mcp_impl.h"

static void flight_free(struct flight *f)
{
	if (!f)
		return;
	if (f->call)
		f->m->here->free(f->call);
	free(f->note);
	json_decref(f->id);
	json_decref(f->token);
	free(f);
}

/* --- progress -----------------------------------------------------------------------------------
 */

static void put_progress(struct flight *f, int64_t done, int64_t total)
{
	struct buf *b = &f->m->out;
	size_t from = b->len;
	buf_puts(b, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{"
		    "\"progressToken\":");
	rpc_put_id(b, f->token);
	jw_int(b, "progress", done);
	if (total > 0)
		jw_int(b, "total", total);
	buf_puts(b, "}}\n");
	mcp_drop_if_failed(f->m, from);
	f->said = done;
}

/* Values only ever grow, and no more than one notification goes out in MCP_PROGRESS_MS. */
static bool progress_due(struct flight *f, int64_t done)
{
	int64_t now = loop_now_ms();
	if (done <= f->said || now - f->said_ms < MCP_PROGRESS_MS)
		return false;
	f->said_ms = now;
	return true;
}

static void on_progress(void *ctx, int64_t done, int64_t total)
{
	struct flight *f = ctx;
	if (!progress_due(f, done))
		return;
	put_progress(f, done, total);
	if (f->m->opt.flush)
		f->m->opt.flush(f->m->opt.flush_ctx);
}

/* The worker says nothing until it is done: then progress is the time, so that a client that
 * waits for signs of life sees them. */
static void say_alive(struct flight *f)
{
	int64_t done = MAX(loop_now_ms() - f->started_ms, f->said + 1);
	if (f->token && progress_due(f, done))
		put_progress(f, done, 0);
}

/* --- answers ------------------------------------------------------------------------------------
 */

bool mcp_finish_tool(struct flight *f, struct str json, bool failed)
{
	struct mcp *m = f->m;
	size_t from = m->out.len;
	rpc_result_open(&m->out, f->id);
	mcp_put_call_result(&m->out, json, failed);
	mcp_end_result(m, f->id, from);
	return true;
}

/* Answer a call of this process that has ended. False: finish() went on with another. */
static bool answer(struct flight *f)
{
	const struct mcp_here *h = f->m->here;
	return f->finish(f, h->result(f->call), h->code(f->call) != ERR_OK);
}

static void answer_refused(struct mcp *m, const json_t *id, const struct err *err)
{
	_cleanup_buf_ struct buf json = buf_init(4096);
	size_t from = m->out.len;
	buf_putc(&json, '{');
	jw_bool(&json, "executed", false);
	jw_cstr(&json, "call_id", "");
	jw_key(&json, "error");
	jw_open(&json, '{');
	jw_cstr(&json, "code", err_info(err->code)->name);
	jw_cstr(&json, "message", err->text);
	buf_puts(&json, "}}");
	rpc_result_open(&m->out, id);
	mcp_put_call_result(&m->out, (struct str){buf_str(&json), json.len}, true);
	mcp_end_result(m, id, from);
}

/* --- in flight ----------------------------------------------------------------------------------
 */

static struct flight *flight_new(struct mcp *m, const struct rpc_message *msg)
{
	const json_t *meta = json_object_get(msg->params, "_meta"),
		     *token = json_object_get(meta, "progressToken");
	struct flight *f = calloc(1, sizeof(*f));
	if (!f)
		return NULL;
	f->m = m;
	f->id = json_incref((json_t *)(uintptr_t)msg->id);
	f->token = rpc_is_id(token) ? json_incref((json_t *)(uintptr_t)token) : NULL;
	f->started_ms = f->said_ms = loop_now_ms();
	return f;
}

static int start(struct flight *f, const char *tool, const json_t *args, struct err *err)
{
	const struct mcp_options *o = &f->m->opt;
	if (o->remote)
		return o->remote->call(
			o->remote->ctx, f, tool, args, f->token != NULL, f->task, err);
	struct call_input in = {.tool = tool,
		.arguments = args,
		.session_id = o->session_id,
		.principal = o->principal,
		.turn = o->turn,
		.progress = f->token ? on_progress : NULL,
		.progress_ctx = f};
	return f->m->here->start(o->env, &in, &f->call, err);
}

/* Take a place for it in the table, or answer that there is none. */
static struct flight *take_off(
	struct mcp *m, const struct rpc_message *msg, flight_finish_fn finish, char *note)
{
	struct err err;
	struct flight *f = m->n_flights < MCP_IN_FLIGHT_MAX ? flight_new(m, msg) : NULL;
	if (f) {
		f->finish = finish;
		f->note = note;
		m->flights[m->n_flights++] = f;
		return f;
	}
	free(note);
	if (m->n_flights < MCP_IN_FLIGHT_MAX)
		(void)err_oom(&err);
	else
		err_set(&err, ERR_LIMIT,
			"%d calls of this connection are waiting; no more are taken until one ends",
			MCP_IN_FLIGHT_MAX);
	answer_refused(m, msg->id, &err);
	return NULL;
}

/* Out of the table; order among the others is kept, since it is the order of answers. */
static void land(struct flight *f)
{
	struct mcp *m = f->m;
	unsigned i = 0;
	while (m->flights[i] != f)
		i++;
	m->n_flights--;
	memmove(&m->flights[i], &m->flights[i + 1], (m->n_flights - i) * sizeof(m->flights[0]));
	flight_free(f);
}

/* Start what a flight is for. What ends at once is answered at once; a remote answers itself. */
static void go(struct flight *f, const char *tool, const json_t *args)
{
	struct err err = {.code = ERR_OK};
	if (start(f, tool, args, &err) < 0) {
		answer_refused(f->m, f->id, &err);
		land(f);
	} else if (f->call && !f->m->here->pending(f->call) && answer(f)) {
		land(f);
	}
}

void mcp_call(struct mcp *m, const struct rpc_message *msg, const char *tool, const json_t *args,
	flight_finish_fn finish, char *note)
{
	struct flight *f = take_off(m, msg, finish, note);
	if (!f)
		return;
	f->task = finish == mcp_finish_tool && mcp_wants_tasks(m, msg);
	go(f, tool, args);
}

void mcp_call_next(struct flight *f, const char *tool, const json_t *args)
{
	if (f->call)
		f->m->here->free(take_ptr(f->call));
	go(f, tool, args);
}

/* --- at a remote ------------------------------------------------------------------------------ */

void mcp_call_about(struct mcp *m, const struct rpc_message *msg, const char *call_id, bool cancel,
	flight_finish_fn finish, char *note)
{
	struct err err;
	const struct mcp_remote *r = m->opt.remote;
	struct flight *f = take_off(m, msg, finish, note);
	if (!f)
		return;
	if ((cancel ? r->cancel_call : r->result)(r->ctx, f, call_id, &err) < 0) {
		answer_refused(m, f->id, &err);
		land(f);
	}
}

void mcp_resume(struct mcp *m, const json_t *id, const char *call_id)
{
	struct rpc_message msg = {.kind = RPC_REQUEST, .method = "tools/call", .id = id};
	mcp_call_about(m, &msg, call_id, false, mcp_finish_tool, NULL);
}

void mcp_remote_done(struct flight *f, struct str json, bool failed)
{
	if (f->finish(f, json, failed))
		land(f);
}

bool mcp_remote_running(struct flight *f, const char *call_id)
{
	if (!f->task)
		return false;
	mcp_answer_running(f, call_id);
	land(f);
	return true;
}

void mcp_remote_progress(struct flight *f, int64_t done, int64_t total)
{
	if (f->token)
		on_progress(f, done, total);
}

/* --- the table -------------------------------------------------------------------------------- */

static int find(const struct mcp *m, const json_t *id)
{
	for (unsigned i = 0; i < m->n_flights; i++)
		if (json_equal(m->flights[i]->id, id))
			return (int)i;
	return -1;
}

bool mcp_keep(struct mcp *m, const struct rpc_message *msg, flight_finish_fn finish, char *note)
{
	return take_off(m, msg, finish, note) != NULL;
}

void mcp_land(struct flight *f)
{
	land(f);
}

bool mcp_id_in_flight(const struct mcp *m, const json_t *id)
{
	return find(m, id) >= 0;
}

void mcp_cancel(struct mcp *m, const json_t *id)
{
	int i = find(m, id);
	if (i < 0)
		return;
	struct flight *f = m->flights[i];
	if (f->call)
		m->here->cancel(f->call);
	else
		m->opt.remote->drop(m->opt.remote->ctx, f);
	land(f);
}

unsigned mcp_waits(const struct mcp *m, struct mcp_wait ret[MCP_IN_FLIGHT_MAX])
{
	for (unsigned i = 0; i < m->n_flights; i++) {
		const struct flight *f = m->flights[i];
		int64_t at = m->here->deadline_ms(f->call);
		ret[i].fd = m->here->poll_fd(f->call);
		ret[i].at_ms = f->token ? MIN(at, f->said_ms + MCP_PROGRESS_MS) : at;
	}
	return m->n_flights;
}

void mcp_proceed(struct mcp *m)
{
	unsigned i = 0;
	while (i < m->n_flights) {
		struct flight *f = m->flights[i];
		if (f->call)
			m->here->proceed(f->call);
		if (!f->call || m->here->pending(f->call)) {
			say_alive(f);
			i++;
			continue;
		}
		/* finish() may go on with another call, which may even have ended by now. */
		unsigned n = m->n_flights;
		if (answer(f))
			land(f);
		else if (m->n_flights == n)
			i++;
	}
}

unsigned mcp_in_flight(const struct mcp *m)
{
	return m->n_flights;
}
