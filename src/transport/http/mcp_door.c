/*
 * Tool calls of an MCP request through the port.
 *
 * A call is waited for MCP_RUN_MS. One that takes longer is known by its id from then on: it
 * becomes a task where the client knows tasks; else its result is asked for again and again, with a
 * sign of life for the client each time. A call whose progress is wanted is waited for to its end,
 * since progress comes with the first question only.
 */
#include "transport/http/mcp_http.h"

#include "codec/json.h"

static void nobody_waits(void *ctx _unused_, struct door_answer *answer _unused_) {}

static struct door_request question(struct mcp_post *p, enum door_op op)
{
	struct door_request d = api_door_request(p->a);
	d.op = op;
	d.arguments = (struct str){NULL, 0};
	if (!d.session.p)
		d.session = STR(MCP_DEFAULT_SESSION);
	return d;
}

static int submit(struct mcp_post *p, const struct door_request *d, door_done_fn done,
	door_progress_fn progress, struct err *err)
{
	struct api_request *a = p->a;
	int r = door_submit(a->api->opt.door, d, done, progress, p, &a->ask, err);
	a->asking = r == 0;
	return r;
}

/* --- answers ---------------------------------------------------------------------------------- */

static void end_flight(struct mcp_post *p, struct str json, bool failed)
{
	struct flight *f = p->flight;
	p->flight = NULL;
	mcp_remote_done(f, json, failed);
	mcp_post_flush(p);
}

static void failed(struct mcp_post *p, const struct err *err)
{
	_cleanup_buf_ struct buf b = buf_init(2048);
	http_put_error(&b, err);
	end_flight(p, (struct str){buf_str(&b), b.len}, true);
}

static void keep_call_id(struct mcp_post *p, struct str json)
{
	_cleanup_(cleanup_json_decref) json_t *v = NULL;
	struct err err;
	if (json_parse(json, json.n, &v, &err) < 0)
		return;
	const char *id = json_string_value(json_object_get(v, "call_id"));
	(void)snprintf(p->call_id, sizeof(p->call_id), "%s", id ? id : "");
}

static void still_running(struct mcp_post *p, struct str json)
{
	struct err err;
	struct flight *f = p->flight;
	if (!p->call_id[0])
		keep_call_id(p, json);
	if (mcp_remote_running(f, p->call_id)) {
		p->flight = NULL;
		mcp_post_flush(p);
		return;
	}
	if (mcp_post_stream(p))
		(void)http_stream_put(p->a->x, STR(": still running\n\n"));
	if (mcp_door_poll(p, &err) < 0)
		failed(p, &err);
}

static int call(struct mcp_post *p, struct err *err);

/* Whether there was one already does not matter. */
static void on_created(void *ctx, struct door_answer *answer _unused_)
{
	struct mcp_post *p = ctx;
	struct err err;
	p->a->asking = false;
	if (call(p, &err) < 0)
		failed(p, &err);
}

/* A client of /mcp has no other way to come by its session than by using it. */
static bool create_default(struct mcp_post *p)
{
	struct err err;
	struct door_request d = question(p, DOOR_SESSION_CREATE);
	if (p->created || !p->tool || p->a->match.session.p)
		return false;
	p->created = true;
	d.session = (struct str){NULL, 0};
	d.arguments = STR("{\"id\":\"" MCP_DEFAULT_SESSION "\"}");
	return submit(p, &d, on_created, NULL, &err) == 0;
}

static void on_answer(void *ctx, struct door_answer *answer)
{
	struct mcp_post *p = ctx;
	p->a->asking = false;
	if (answer->code == ERR_SESSION_NOT_FOUND && create_default(p))
		return;
	if (answer->code == ERR_UNAUTHENTICATED && !p->streaming) {
		p->ended = true;
		api_reply_answer(p->a, answer, 200);
	} else if (answer->running) {
		still_running(p, answer->json);
	} else {
		end_flight(p, answer->json, answer->code != ERR_OK);
	}
}

static void on_progress(void *ctx, int64_t done, int64_t total)
{
	struct mcp_post *p = ctx;
	if (!p->flight || !p->accepts_stream)
		return;
	mcp_remote_progress(p->flight, done, total);
	mcp_post_flush(p);
}

/* --- the port of an MCP connection ------------------------------------------------------------ */

static int call(struct mcp_post *p, struct err *err)
{
	struct door_request d = question(p, DOOR_CALL);
	d.tool = str_of(p->tool);
	d.arguments = str_of(p->arguments);
	d.wait_ms = p->progress && !p->task ? 0 : MCP_RUN_MS;
	return submit(p, &d, on_answer, p->progress ? on_progress : NULL, err);
}

static int run(void *ctx, struct flight *f, const char *tool, const json_t *arguments,
	bool progress, bool task, struct err *err)
{
	struct mcp_post *p = ctx;
	free(p->tool);
	free(p->arguments);
	p->tool = strdup(tool);
	p->arguments = arguments ? json_dumps(arguments, JSON_COMPACT) : NULL;
	if (!p->tool || (arguments && !p->arguments))
		return err_oom(err);
	p->progress = progress;
	p->task = task;
	p->flight = f;
	int r = call(p, err);
	if (r < 0)
		p->flight = NULL;
	return r;
}

static int ask_about(
	struct mcp_post *p, enum door_op op, const char *call_id, int64_t wait_ms, struct err *err)
{
	struct door_request d = question(p, op);
	d.session = (struct str){NULL, 0};
	d.id = str_of(call_id);
	d.wait_ms = wait_ms;
	return submit(p, &d, on_answer, NULL, err);
}

int mcp_door_poll(struct mcp_post *p, struct err *err)
{
	return ask_about(p, DOOR_CALL_RESULT, p->call_id, MCP_ALIVE_MS, err);
}

static int result(void *ctx, struct flight *f, const char *call_id, struct err *err)
{
	struct mcp_post *p = ctx;
	p->flight = f;
	(void)snprintf(p->call_id, sizeof(p->call_id), "%s", call_id);
	return ask_about(p, DOOR_CALL_RESULT, call_id, 0, err);
}

static int cancel_call(void *ctx, struct flight *f, const char *call_id, struct err *err)
{
	struct mcp_post *p = ctx;
	p->flight = f;
	return ask_about(p, DOOR_CALL_CANCEL, call_id, 0, err);
}

/* The request is over without an answer. In the modern era, and when the client said so, that
 * cancels the call. */
static void drop(void *ctx, struct flight *f _unused_)
{
	struct mcp_post *p = ctx;
	struct door *door = p->a->api->opt.door;
	struct door_request d = question(p, DOOR_CALL_CANCEL);
	uint64_t id;
	struct err err;
	p->flight = NULL;
	if (p->a->asking && !p->call_id[0])
		door_cancel(door, p->a->ask);
	if (p->a->asking)
		door_abandon(door, p->a->ask);
	p->a->asking = false;
	d.session = (struct str){NULL, 0};
	d.id = str_of(p->call_id);
	if (p->call_id[0] && door_submit(door, &d, nobody_waits, NULL, NULL, &id, &err) < 0)
		return; /* it runs into its own deadline */
}

const struct mcp_remote mcp_door_remote = {
	.call = run, .result = result, .cancel_call = cancel_call, .drop = drop};
