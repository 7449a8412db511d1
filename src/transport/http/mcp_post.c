/*
 * MCP over Streamable HTTP, both eras on one resource.
 *
 *     POST    one message. A request is answered with one JSON object, or with a stream when there
 * is something to say before the answer or the answer takes long GET     legacy: a stream that
 * stays open; with Last-Event-ID the answer of a call whose stream broke DELETE  legacy: the
 * session ends
 *
 * Every POST has an MCP connection of its own (transport/mcp), settled on its era beforehand. In
 * the legacy era an id of a session shows that it was initialized; in the modern one headers repeat
 * what the message says. The session is that of /mcp/{session}, or `default`, which is created
 * when it is used first.
 */
#include "transport/http/mcp_http.h"

#include "codec/json.h"

#include <strings.h>

static const char instructions[] =
	"Files of one workspace. Paths are relative to its root. Every change is atomic, counts to "
	"a quota and can be taken back with history_undo. A refused call says why and what would "
	"be allowed instead, and has changed nothing.";

/* --- replying --------------------------------------------------------------------------------- */

static void reply_fault(struct mcp_post *p, unsigned status, const json_t *id, enum rpc_code code,
	const char *message)
{
	struct buf b = buf_init(4096);
	p->ended = true;
	rpc_error(&b, id, code, message, NULL);
	http_reply_take(p->a->x, status, "application/json", &b);
}

/* What a fault of the protocol is in HTTP. The legacy era answers requests with 200 always. */
static unsigned status_of(const struct mcp_post *p)
{
	int fault = mcp_fault(p->m);
	if (!p->modern || fault == 0)
		return 200;
	return fault == RPC_METHOD_NOT_FOUND ? 404 : fault == RPC_INTERNAL_ERROR ? 500 : 400;
}

/* The answer is the last line; what was said before it has nowhere to go. */
static void reply_whole(struct mcp_post *p)
{
	struct buf *out = mcp_output(p->m);
	const char *before = out->len > 1 ? memrchr(out->data, '\n', out->len - 1) : NULL;
	size_t from = before ? (size_t)(before - out->data) + 1 : 0;
	p->ended = true;
	if (out->len == 0)
		http_reply(p->a->x, 202, NULL, STR(""));
	else
		http_reply(p->a->x, status_of(p), "application/json",
			(struct str){out->data + from, out->len - from});
}

/* --- streams ---------------------------------------------------------------------------------- */

static void on_alive(void *ctx)
{
	struct mcp_post *p = ctx;
	loop_timer_set(p->alive, loop_now_ms() + MCP_ALIVE_MS);
	(void)http_stream_put(p->a->x, STR(": alive\n\n"));
}

/* Where a broken stream can be taken up: the call and the request, which is all there is to know.
 */
static void put_event_id(struct mcp_post *p, struct buf *b, const char *end)
{
	_cleanup_buf_ struct buf id = buf_init(2 * RPC_ID_BYTES_MAX * 6);
	if (p->modern || !p->call_id[0] || !p->has_msg || !p->msg.id)
		return;
	rpc_put_id(&id, p->msg.id);
	buf_printf(b, "id: %s-", p->call_id);
	for (size_t i = 0; i < id.len; i++)
		buf_printf(b, "%02x", (unsigned char)id.data[i]);
	buf_printf(b, "%s\n", end);
}

bool mcp_post_stream(struct mcp_post *p)
{
	struct err err;
	_cleanup_buf_ struct buf b = buf_init(8192);
	if (p->streaming || !p->accepts_stream)
		return p->streaming;
	p->streaming = true;
	http_reply_header(p->a->x, "X-Accel-Buffering", "no");
	http_stream(p->a->x, 200, "text/event-stream");
	put_event_id(p, &b, "");
	if (b.len > 0)
		buf_puts(&b, "retry: 1000\ndata: \n\n");
	(void)http_stream_put(p->a->x, (struct str){buf_str(&b), b.len});
	if (loop_timer(p->a->api->opt.loop, loop_now_ms() + MCP_ALIVE_MS, on_alive, p, &p->alive,
		    &err) < 0)
		http_stream_end(p->a->x);
	return true;
}

static void put_lines(struct mcp_post *p, bool over)
{
	struct buf *out = mcp_output(p->m);
	struct buf b = buf_init(2 * out->len + 8192);
	for (size_t from = 0; from < out->len;) {
		const char *end = memchr(out->data + from, '\n', out->len - from);
		size_t n = (size_t)(end - (out->data + from));
		if (over && from + n + 1 == out->len)
			put_event_id(p, &b, "-end");
		buf_puts(&b, "event: message\ndata: ");
		buf_put(&b, out->data + from, n);
		buf_puts(&b, "\n\n");
		from += n + 1;
	}
	buf_clear(out);
	(void)http_stream_put(p->a->x, (struct str){buf_str(&b), b.len});
	buf_done(&b);
}

/* Is there something before the answer, for a client that can take it? */
static bool says_more(const struct mcp_post *p)
{
	const struct buf *out = mcp_output(p->m);
	return p->accepts_stream && out->len > 1 && memchr(out->data, '\n', out->len - 1);
}

void mcp_post_flush(struct mcp_post *p)
{
	if (p->ended)
		return;
	bool over = mcp_in_flight(p->m) == 0;
	if (over && !p->streaming && !says_more(p)) {
		reply_whole(p);
		return;
	}
	if (mcp_output(p->m)->len > 0 && mcp_post_stream(p))
		put_lines(p, over);
	buf_clear(mcp_output(p->m));
	if (!over)
		return;
	p->ended = true;
	http_stream_end(p->a->x);
}

/* --- requests --------------------------------------------------------------------------------- */

static int connect_mcp(struct mcp_post *p, enum mcp_era era, struct err *err)
{
	struct api_request *a = p->a;
	p->headers = (struct mcp_headers){.version = a->q->mcp_protocol_version,
		.method = a->q->mcp_method,
		.name = a->q->mcp_name};
	p->remote = mcp_door_remote;
	p->remote.ctx = p;
	struct mcp_options o = {.remote = &p->remote,
		.catalog = a->api->catalog,
		.fixtures = a->api->opt.conformance ? &mcp_fixtures : NULL,
		.era = era,
		.headers = &p->headers,
		.version = a->api->opt.version,
		.instructions = instructions};
	return mcp_new_remote(&o, &p->m, err);
}

/* A client that wants progress sees some, also while core has nothing to say. */
static void on_tick(void *ctx)
{
	struct mcp_post *p = ctx;
	if (p->ended)
		return;
	mcp_proceed(p->m);
	loop_timer_set(p->tick, loop_now_ms() + MCP_PROGRESS_MS);
	mcp_post_flush(p);
}

static void start_ticking(struct mcp_post *p)
{
	const json_t *meta = json_object_get(p->msg.params, "_meta");
	struct err err;
	if (!p->flight || !p->accepts_stream || !json_object_get(meta, "progressToken"))
		return;
	if (loop_timer(p->a->api->opt.loop, loop_now_ms() + MCP_PROGRESS_MS, on_tick, p, &p->tick,
		    &err) < 0)
		p->tick = NULL; /* then without */
}

static bool is_initialize(const struct mcp_post *p)
{
	return !p->modern && strcmp(p->msg.method, "initialize") == 0;
}

static void run_request(struct mcp_post *p)
{
	struct err err;
	enum mcp_era era = p->modern ? MCP_MODERN : is_initialize(p) ? MCP_UNDECIDED : MCP_LEGACY;
	if (connect_mcp(p, era, &err) < 0) {
		reply_fault(p, 500, p->msg.id, RPC_INTERNAL_ERROR, err.text);
		return;
	}
	mcp_handle(p->m, &p->msg);
	if (is_initialize(p) && mcp_fault(p->m) == 0) {
		mcp_session_make(p->a->q->token, p->session);
		http_reply_header(p->a->x, "Mcp-Session-Id", p->session);
	}
	start_ticking(p);
	mcp_post_flush(p);
}

static void on_who(void *ctx, struct door_answer *answer)
{
	struct mcp_post *p = ctx;
	p->a->asking = false;
	if (answer->code == ERR_OK)
		run_request(p);
	else
		api_reply_answer(p->a, answer, 200);
}

/* What becomes a call is refused with it when the token is none; all else asks first. */
static bool becomes_call(const char *method)
{
	static const char *const calls[] = {"tools/call", "resources/read", "resources/list"};
	for (unsigned i = 0; i < ARRAY_LEN(calls); i++)
		if (strcmp(calls[i], method) == 0)
			return true;
	return false;
}

static void ask_who(struct mcp_post *p, door_done_fn done)
{
	struct err err;
	struct api_request *a = p->a;
	struct door_request d = {.op = DOOR_WHOAMI, .token = a->q->token, .body_fd = -1};
	a->asking = door_submit(a->api->opt.door, &d, done, NULL, p, &a->ask, &err) == 0;
	if (!a->asking)
		api_reply_error(a, &err);
}

/* --- which era -------------------------------------------------------------------------------- */

static bool is_modern(const struct mcp_post *p)
{
	const json_t *meta = json_object_get(p->msg.params, "_meta");
	struct str v = p->a->q->mcp_protocol_version;
	if (json_object_get(meta, "io.modelcontextprotocol/protocolVersion"))
		return true;
	return str_eq(v, STR(MCP_MODERN_VERSION));
}

/* Header and session of the legacy era; a request without either may only be `initialize`. */
static bool legacy_envelope(struct mcp_post *p, bool needs_session)
{
	const struct http_request *q = p->a->q;
	char version[32] = "";
	if (q->mcp_protocol_version.n < sizeof(version))
		memcpy(version, q->mcp_protocol_version.p ? q->mcp_protocol_version.p : "",
			q->mcp_protocol_version.n);
	if (q->mcp_protocol_version.p && !mcp_legacy_version(version)) {
		reply_fault(p, 400, p->msg.id, RPC_INVALID_REQUEST,
			"Bad Request: MCP-Protocol-Version is not supported");
		return false;
	}
	if (!needs_session)
		return true;
	if (!q->mcp_session_id.p) {
		reply_fault(p, 400, p->msg.id, RPC_INVALID_REQUEST,
			"Bad Request: Mcp-Session-Id is missing; open with initialize");
		return false;
	}
	if (!mcp_session_known(p->a->api, q->token, q->mcp_session_id)) {
		reply_fault(p, 404, p->msg.id, RPC_INVALID_REQUEST, "Session not found");
		return false;
	}
	memcpy(p->session, q->mcp_session_id.p, MCP_SESSION_ID_LEN);
	return true;
}

static void take_request(struct mcp_post *p)
{
	p->modern = is_modern(p);
	if (!p->modern && !legacy_envelope(p, !is_initialize(p)))
		return;
	if (becomes_call(p->msg.method))
		run_request(p);
	else
		ask_who(p, on_who);
}

/* A cancellation finds its request among those of the same session. */
static void take_notification(struct mcp_post *p)
{
	p->modern = is_modern(p);
	if (!p->modern && !legacy_envelope(p, true))
		return;
	for (struct mcp_post *o = p->a->api->posts, *next; o; o = next) {
		next = o->next;
		if (o == p || !o->m || o->modern || strcmp(o->session, p->session) != 0)
			continue;
		mcp_handle(o->m, &p->msg);
		if (mcp_in_flight(o->m) == 0)
			mcp_post_flush(o);
	}
	p->ended = true;
	http_reply(p->a->x, 202, NULL, STR(""));
}

static void take_message(struct mcp_post *p)
{
	struct rpc_fault fault;
	if (rpc_read(http_body(p->a->x), &p->msg, &fault) < 0) {
		reply_fault(p, 400, fault.id, fault.code, fault.message);
		rpc_fault_done(&fault);
		return;
	}
	p->has_msg = true;
	if (p->msg.kind == RPC_REQUEST)
		take_request(p);
	else
		take_notification(p);
}

/* --- the table of tools ----------------------------------------------------------------------- */

static void on_catalog(void *ctx, struct door_answer *answer)
{
	struct mcp_post *p = ctx;
	struct http_api *api = p->a->api;
	struct mcp_catalog *c = NULL;
	struct err err = {.code = answer->code};
	p->a->asking = false;
	if (answer->code != ERR_OK) {
		api_reply_answer(p->a, answer, 200);
		return;
	}
	if (mcp_catalog_read(answer->json, &c, &err) < 0) {
		api_reply_error(p->a, &err);
		return;
	}
	/* Connections look at it only while they take their message, which is over for all others.
	 */
	mcp_catalog_free(api->catalog);
	api->catalog = c;
	api->catalog_ms = loop_now_ms();
	take_message(p);
}

static void with_catalog(struct mcp_post *p)
{
	struct api_request *a = p->a;
	struct err err;
	struct door_request d = {.op = DOOR_TOOLS, .body_fd = -1};
	if (a->api->catalog && loop_now_ms() - a->api->catalog_ms < MCP_CATALOG_MS) {
		take_message(p);
		return;
	}
	a->asking = door_submit(a->api->opt.door, &d, on_catalog, NULL, p, &a->ask, &err) == 0;
	if (!a->asking)
		api_reply_error(a, &err);
}

/* --- entry ------------------------------------------------------------------------------------ */

static bool mentions(struct str list, const char *what)
{
	size_t n = strlen(what);
	for (size_t i = 0; i + n <= list.n; i++)
		if (strncasecmp(list.p + i, what, n) == 0)
			return true;
	return false;
}

static struct mcp_post *post_new(struct api_request *a)
{
	struct mcp_post *p = calloc(1, sizeof(*p));
	struct err err;
	if (!p) {
		(void)err_oom(&err);
		api_reply_error(a, &err);
		return NULL;
	}
	p->a = a;
	p->accepts_stream = mentions(a->q->accept, "text/event-stream");
	p->next = a->api->posts;
	if (p->next)
		p->next->prev = p;
	a->api->posts = p;
	a->post = p;
	return p;
}

void mcp_post_free(struct mcp_post *p)
{
	if (!p)
		return;
	*(p->prev ? &p->prev->next : &p->a->api->posts) = p->next;
	if (p->next)
		p->next->prev = p->prev;
	loop_remove(&p->alive);
	loop_remove(&p->tick);
	/* A legacy client that has gone may come back for the answer; a modern one has cancelled.
	 */
	if (!p->modern && p->a->asking) {
		door_abandon(p->a->api->opt.door, p->a->ask);
		p->a->asking = false;
	}
	if (!p->modern)
		p->call_id[0] = '\0';
	mcp_free(p->m);
	free(p->tool);
	free(p->arguments);
	if (p->has_msg)
		rpc_message_done(&p->msg);
	free(p);
}

static bool has_token(struct api_request *a)
{
	struct err err;
	if (a->q->token.p)
		return true;
	err_set(&err, ERR_UNAUTHENTICATED, "a bearer token is needed");
	api_reply_error(a, &err);
	return false;
}

void api_mcp_post(struct api_request *a)
{
	struct mcp_post *p = has_token(a) ? post_new(a) : NULL;
	if (!p)
		return;
	if (!http_request_is(a->q, "application/json"))
		reply_fault(p, 415, NULL, RPC_INVALID_REQUEST,
			"Unsupported Media Type: the message must be application/json");
	else if (a->q->accept.p && !mentions(a->q->accept, "application/json") &&
		 !mentions(a->q->accept, "*/*"))
		reply_fault(p, 406, NULL, RPC_INVALID_REQUEST,
			"Not Acceptable: answers are application/json or text/event-stream");
	else
		with_catalog(p);
}

/* --- GET and DELETE --------------------------------------------------------------------------- */

static bool refuse_modern(struct api_request *a)
{
	if (!str_eq(a->q->mcp_protocol_version, STR(MCP_MODERN_VERSION)))
		return false;
	http_reply_header(a->x, "Allow", "POST");
	http_reply(a->x, 405, NULL, STR(""));
	return true;
}

/* "CALL-HEX": the call and the JSON of the id of its request. */
static json_t *read_event_id(struct str s, char call_id[MCP_CALL_ID_LEN + 1])
{
	char text[RPC_ID_BYTES_MAX * 6 + 2];
	size_t n = 0;
	json_t *id = NULL;
	struct err err;
	if (s.n < MCP_CALL_ID_LEN + 3 || s.p[MCP_CALL_ID_LEN] != '-')
		return NULL;
	for (size_t i = MCP_CALL_ID_LEN + 1; i + 1 < s.n && n < sizeof(text); i += 2) {
		char pair[3] = {s.p[i], s.p[i + 1], '\0'};
		if (strspn(pair, "0123456789abcdef") != 2)
			return NULL;
		text[n++] = (char)strtol(pair, NULL, 16);
	}
	if (json_parse((struct str){text, n}, sizeof(text), &id, &err) < 0)
		return NULL;
	if (!rpc_is_id(id)) {
		json_decref(id);
		return NULL;
	}
	memcpy(call_id, s.p, MCP_CALL_ID_LEN);
	call_id[MCP_CALL_ID_LEN] = '\0';
	return id;
}

/* The answer of a call whose stream broke off. */
static void resume(struct mcp_post *p, json_t *take_id, const char *call_id)
{
	_cleanup_(cleanup_json_decref) json_t *id = take_id;
	struct err err;
	if (connect_mcp(p, MCP_LEGACY, &err) < 0) {
		api_reply_error(p->a, &err);
		return;
	}
	p->msg = (struct rpc_message){.kind = RPC_REQUEST, .root = json_incref(id), .id = id};
	p->has_msg = true;
	(void)snprintf(p->call_id, sizeof(p->call_id), "%s", call_id);
	mcp_resume(p->m, id, call_id);
	mcp_post_flush(p);
}

static void on_get(void *ctx, struct door_answer *answer)
{
	struct mcp_post *p = ctx;
	char call_id[MCP_CALL_ID_LEN + 1];
	p->a->asking = false;
	if (answer->code != ERR_OK) {
		api_reply_answer(p->a, answer, 200);
		return;
	}
	(void)mcp_post_stream(p);
	json_t *id = read_event_id(p->a->q->last_event_id, call_id);
	if (id)
		resume(p, id, call_id);
}

void api_mcp_get(struct api_request *a)
{
	if (refuse_modern(a) || !has_token(a))
		return;
	struct mcp_post *p = post_new(a);
	if (!p || !legacy_envelope(p, true))
		return;
	if (!p->accepts_stream)
		reply_fault(p, 406, NULL, RPC_INVALID_REQUEST,
			"Not Acceptable: GET gives text/event-stream");
	else
		ask_who(p, on_get);
}

void api_mcp_delete(struct api_request *a)
{
	if (refuse_modern(a) || !has_token(a))
		return;
	struct mcp_post *p = post_new(a);
	if (!p || !legacy_envelope(p, true))
		return;
	mcp_session_end(a->api, a->q->mcp_session_id);
	http_reply(a->x, 204, NULL, STR(""));
}

/* --- OAuth ------------------------------------------------------------------------------------ */

/* RFC 9728: where tokens for this server come from. */
void api_resource_metadata(struct api_request *a)
{
	struct buf b = buf_init(8192);
	const char *const *servers = a->api->opt.authorization_servers;
	jw_open(&b, '{');
	if (a->api->opt.resource) {
		jw_cstr(&b, "resource", a->api->opt.resource);
	} else {
		_cleanup_buf_ struct buf url = buf_init(1024);
		buf_printf(&url, "%s://", a->api->opt.tls_key ? "https" : "http");
		buf_put(&url, a->q->host.p, a->q->host.n);
		buf_puts(&url, "/mcp");
		jw_cstr(&b, "resource", buf_str(&url));
	}
	jw_key(&b, "authorization_servers");
	jw_open(&b, '[');
	for (; servers && *servers; servers++)
		jw_elem_str(&b, str_of(*servers));
	jw_close(&b, ']');
	jw_key(&b, "bearer_methods_supported");
	buf_puts(&b, "[\"header\"]");
	jw_cstr(&b, "resource_name", "Cloister");
	jw_close(&b, '}');
	http_reply_take(a->x, 200, "application/json", &b);
}
