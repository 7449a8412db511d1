/*
 * From a request to an operation of the port and back: see api.h.
 *
 * A request object lives as long as its exchange. Its client may go before core answers: then the
 * operation is abandoned (a call goes on, and its result can be read by its id), so no callback
 * meets a request that is gone.
 */
#include "transport/http/api_impl.h"
#include "transport/mcp/mcp.h"

#include "codec/json.h"

#include <signal.h>

enum { ARGUMENTS_MAX = 4 * LIMIT_PATH_BYTES + 4096 };

/* --- replying --------------------------------------------------------------------------------- */

/* Challenges and hints that go with a status (RFC 6750 3, RFC 9728 5.1). */
static void add_status_headers(struct api_request *a, enum err_code code)
{
	char text[256];
	if (code == ERR_UNAUTHENTICATED) {
		const char *resource = a->api->opt.resource;
		(void)snprintf(text, sizeof(text),
			resource ? "Bearer realm=\"cloister\", resource_metadata=\"%.160s"
				   "/.well-known/oauth-protected-resource\""
				 : "Bearer realm=\"cloister\"",
			resource);
		http_reply_header(a->x, "WWW-Authenticate", text);
	}
	if (code == ERR_LIMIT || code == ERR_UNAVAILABLE || code == ERR_BUSY)
		http_reply_header(a->x, "Retry-After", "1");
}

void api_reply_error(struct api_request *a, const struct err *err)
{
	add_status_headers(a, err->code);
	http_reply_error(a->x, err);
}

void api_reply_answer(struct api_request *a, const struct door_answer *answer, unsigned ok)
{
	unsigned status = (unsigned)err_info(answer->code)->http;
	if (answer->code == ERR_OK)
		status = answer->running ? 202 : ok;
	add_status_headers(a, answer->code);
	http_reply(a->x, status, "application/json", answer->json);
}

void api_answer(void *ctx, struct door_answer *answer)
{
	struct api_request *a = ctx;
	a->asking = false;
	api_reply_answer(a, answer, a->match.route->status);
}

/* --- asking ----------------------------------------------------------------------------------- */

void api_put_path(struct api_request *a, struct buf *b)
{
	_cleanup_buf_ struct buf raw = buf_init(HTTP_TARGET_MAX),
				 text = buf_init(4 * HTTP_TARGET_MAX);
	for (unsigned i = a->match.path_from; i < a->q->n_segments; i++) {
		if (i > a->match.path_from)
			buf_putc(&raw, '/');
		buf_put(&raw, a->q->segments[i].p, a->q->segments[i].n);
	}
	name_escape(&text, (struct str){buf_str(&raw), raw.len});
	jw_str(b, "path", (struct str){buf_str(&text), text.len});
}

struct door_request api_door_request(struct api_request *a)
{
	return (struct door_request){.op = a->match.route->op,
		.token = a->q->token,
		.session = a->match.session,
		.tool = a->match.tool,
		.id = a->match.call,
		.turn = a->q->turn,
		.role = a->q->role,
		.wait_ms = a->wait_ms,
		.body_fd = -1,
		.arguments = {buf_str(&a->arguments), a->arguments.len}};
}

bool api_submit(struct api_request *a, const struct door_request *d, door_done_fn done)
{
	struct err err;
	int r = buf_check(&a->arguments, "the arguments", &err);
	if (r == 0)
		r = door_submit(a->api->opt.door, d, done, NULL, a, &a->ask, &err);
	if (r < 0)
		api_reply_error(a, &err);
	a->asking = r == 0;
	return r == 0;
}

/* A body that is no JSON object by its label is refused before it is looked at, so that a form of
 * a web page cannot send one. */
static int check_body(struct api_request *a, struct err *err)
{
	_cleanup_(cleanup_json_decref) json_t *v = NULL;
	if (http_body(a->x).n == 0)
		return 0;
	if (!http_request_is(a->q, "application/json"))
		return err_set(err, ERR_INVALID_ARGUMENT, "the body must be application/json");
	if (a->match.route->body != api_body_none)
		return 0;
	int r = json_parse(http_body(a->x), LIMIT_REQUEST_BYTES, &v, err);
	return r < 0 ? r : fields_check(api_body_none, v, err);
}

void api_ask(struct api_request *a)
{
	struct err err;
	if (check_body(a, &err) < 0) {
		api_reply_error(a, &err);
		return;
	}
	jw_close(&a->arguments, '}');
	struct door_request d = api_door_request(a);
	if (a->match.route->body != api_body_none)
		d.arguments = http_body(a->x);
	(void)api_submit(a, &d, api_answer);
}

void api_remove(struct api_request *a)
{
	api_put_path(a, &a->arguments);
	jw_close(&a->arguments, '}');
	struct door_request d = api_door_request(a);
	d.tool = STR("file_delete");
	(void)api_submit(a, &d, api_answer);
}

/* --- an exchange ------------------------------------------------------------------------------ */

static void request_free(struct api_request *a)
{
	if (!a)
		return;
	mcp_post_free(a->post);
	if (a->asking)
		door_abandon(a->api->opt.door, a->ask);
	upload_free(a->upload);
	events_free(a->events);
	buf_done(&a->arguments);
	free(a);
}

static struct api_request *request_new(struct http_api *api, struct http_exchange *x)
{
	struct api_request *a = calloc(1, sizeof(*a));
	if (!a)
		return NULL;
	a->api = api;
	a->x = x;
	a->q = http_request_of(x);
	a->arguments = buf_init(ARGUMENTS_MAX);
	jw_open(&a->arguments, '{');
	http_set_user(x, a);
	return a;
}

static void on_begin(void *ctx, struct http_exchange *x)
{
	struct err err;
	char allow[64] = "";
	struct api_request *a = request_new(ctx, x);
	if (!a) {
		(void)err_oom(&err);
		http_reply_error(x, &err);
		return;
	}
	int r = route_find(a->q, &a->match, allow, &err);
	if (allow[0]) {
		http_reply_header(x, "Allow", allow);
		struct buf b = buf_init(1024);
		http_put_error(&b, &err);
		http_reply_take(x, 405, "application/json", &b);
		return;
	}
	if (r == 0)
		r = api_read_query(a, &err);
	if (r < 0)
		api_reply_error(a, &err);
	else if (a->match.route->handle == api_upload)
		api_upload(a);
	else
		http_body_memory(x, a->match.route->method == HTTP_POST ? LIMIT_REQUEST_BYTES : 0);
}

static void on_ready(void *ctx _unused_, struct http_exchange *x)
{
	struct api_request *a = http_user(x);
	if (a->upload)
		upload_ready(a);
	else
		a->match.route->handle(a);
}

static void on_done(void *ctx _unused_, struct http_exchange *x)
{
	request_free(http_user(x));
}

/* --- life ------------------------------------------------------------------------------------- */

/* The names under which a client on this machine reaches us, and those of the configuration. */
static int own_hosts(struct http_api *a, struct err *err)
{
	static const char *const local[] = {"localhost", "127.0.0.1", "[::1]"};
	unsigned n = 0;
	for (const char *const *p = a->opt.hosts; p && *p; p++)
		n++;
	a->hosts = calloc(n + ARRAY_LEN(local) + 1, sizeof(*a->hosts));
	if (!a->hosts)
		return err_oom(err);
	memcpy(a->hosts, local, sizeof(local));
	for (unsigned i = 0; i < n; i++)
		a->hosts[ARRAY_LEN(local) + i] = a->opt.hosts[i];
	return 0;
}

int http_api_new(const struct http_api_options *opt, struct http_api **ret, struct err *err)
{
	_cleanup_(cleanup_http_api_free) struct http_api *a = calloc(1, sizeof(*a));
	if (!a)
		return err_oom(err);
	a->opt = *opt;
	a->started_ms = loop_now_ms();
	int r = own_hosts(a, err);
	if (r < 0)
		return r;
	(void)signal(SIGPIPE, SIG_IGN);
	struct http_options o = {.loop = opt->loop,
		.handler = {on_begin, on_ready, on_done, a},
		.hosts = a->hosts,
		.origins = opt->origins,
		.tls_key = opt->tls_key,
		.tls_cert = opt->tls_cert,
		.connections_max = opt->connections_max,
		.per_address_max = opt->per_address_max};
	r = http_server_new(&o, &a->server, err);
	if (r == 0)
		*ret = take_ptr(a);
	return r;
}

int http_api_listen(struct http_api *a, int fd, struct err *err)
{
	return http_server_listen(a->server, fd, err);
}

void http_api_quiesce(struct http_api *a)
{
	http_server_quiesce(a->server);
}

unsigned http_api_busy(const struct http_api *a)
{
	struct http_counts c;
	http_server_counts(a->server, &c);
	return c.exchanges;
}

void http_api_free(struct http_api *a)
{
	if (!a)
		return;
	http_server_free(a->server);
	mcp_catalog_free(a->catalog);
	free(a->hosts);
	free(a);
}
