/* One request and its body on the way in: see server.h. */
#include "transport/http/server_impl.h"

#include <errno.h>

enum { BODY_DEFAULT_MAX = 1024 * 1024, CHUNKED_GUESS = 1024 * 1024 };

/* --- life ------------------------------------------------------------------------------------- */

struct http_exchange *exchange_new(
	struct http_listener *l, struct MHD_Connection *mhd, const char *target)
{
	struct http_server *s = l->server;
	const union MHD_ConnectionInfo *i =
		MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct http_exchange *x = calloc(1, sizeof(*x));
	if (!x || !i || !i->socket_context) {
		free(x);
		return NULL;
	}
	x->server = s;
	x->listener = l;
	x->mhd = mhd;
	x->pipe = -1;
	x->conn = i->socket_context;
	x->next = s->exchanges;
	if (x->next)
		x->next->prev = x;
	s->exchanges = x;
	s->counts.exchanges++;
	s->counts.requests++;
	/* The method is not told yet; the target is decoded now, while it is as it was sent. */
	x->refused = http_request_start(&x->request, STR("GET"), str_of(target), &x->fault) < 0;
	conn_phase(x->conn, CONN_HEAD, 0);
	return x;
}

static void drop_body(struct http_exchange *x)
{
	x->server->counts.body_bytes -= (int64_t)x->counted;
	x->counted = 0;
	buf_done(&x->body);
}

void exchange_free(struct http_exchange *x)
{
	if (!x)
		return;
	struct http_server *s = x->server;
	loop_remove(&x->pipe_ready);
	if (x->begun)
		s->opt.handler.done(s->opt.handler.ctx, x);
	*(x->prev ? &x->prev->next : &s->exchanges) = x->next;
	if (x->next)
		x->next->prev = x->prev;
	s->counts.exchanges--;
	drop_body(x);
	buf_done(&x->stream);
	if (x->response)
		MHD_destroy_response(x->response);
	http_request_done(&x->request);
	conn_phase(x->conn, CONN_IDLE, 0);
	free(x);
}

/* --- the head --------------------------------------------------------------------------------- */

static enum MHD_Result each_header(void *ctx, enum MHD_ValueKind kind _unused_, const char *name,
	size_t name_n, const char *value, size_t value_n)
{
	struct http_exchange *x = ctx;
	if (http_request_header(&x->request, (struct str){name, name_n},
		    (struct str){value ? value : "", value ? value_n : 0}, &x->fault) < 0)
		x->refused = true;
	return x->refused ? MHD_NO : MHD_YES;
}

static bool read_method(struct http_request *q, const char *method)
{
	for (unsigned i = 0; i < HTTP_METHOD_MAX_; i++)
		if (strcmp(method, http_method_name((enum http_method)i)) == 0) {
			q->method = (enum http_method)i;
			return true;
		}
	return false;
}

static void check_head(struct http_exchange *x, const char *method)
{
	const struct http_options *o = &x->server->opt;
	struct http_hosts ours = {
		.any = x->listener->is_unix, .hosts = o->hosts, .origins = o->origins};
	if (!x->refused && !read_method(&x->request, method)) {
		err_set(&x->fault, ERR_UNSUPPORTED, "this method is not known here");
		x->refused = true;
	}
	if (!x->refused)
		(void)MHD_get_connection_values_n(x->mhd, MHD_HEADER_KIND, each_header, x);
	if (!x->refused)
		x->refused = http_request_finish(&x->request, &ours, &x->fault) < 0;
}

/* The head is there. After a fault of framing nobody knows where the next request starts, so the
 * connection ends. */
static void begin(struct http_exchange *x, const char *method)
{
	struct http_server *s = x->server;
	x->body = buf_init(BODY_DEFAULT_MAX);
	x->body_max = BODY_DEFAULT_MAX;
	check_head(x, method);
	conn_phase(x->conn, CONN_BODY, x->request.length < 0 ? CHUNKED_GUESS : x->request.length);
	x->begun = !x->refused;
	if (x->begun) {
		s->opt.handler.begin(s->opt.handler.ctx, x);
	} else {
		s->counts.refused++;
		x->close_after = true;
		http_reply_error(x, &x->fault);
	}
	if (x->replied || x->request.length <= x->body_max)
		return;
	struct err err;
	err_set(&err, ERR_TOO_LARGE, "the body is larger than %lld bytes", (long long)x->body_max);
	x->close_after = true;
	http_reply_error(x, &err);
}

/* --- the body --------------------------------------------------------------------------------- */

static bool keep(struct http_exchange *x, const char *p, size_t n, struct err *err)
{
	struct http_counts *c = &x->server->counts;
	if ((int64_t)n > x->body_max - x->body_bytes)
		return err_set(err, ERR_TOO_LARGE, "the body is larger than %lld bytes",
			       (long long)x->body_max) == 0;
	if (c->body_bytes + (int64_t)n > HTTP_BODIES_MAX)
		return err_set(err, ERR_LIMIT,
			       "the bodies of all requests together fill %lld bytes",
			       HTTP_BODIES_MAX) == 0;
	x->body_bytes += (int64_t)n;
	c->body_bytes += (int64_t)n;
	x->counted += n;
	buf_put(&x->body, p, n);
	return buf_check(&x->body, "the body", err) == 0;
}

static void suspend(struct http_exchange *x)
{
	x->suspended = true;
	MHD_suspend_connection(x->mhd);
}

static void on_pipe(void *ctx, int fd _unused_, uint32_t events _unused_)
{
	struct http_exchange *x = ctx;
	loop_remove(&x->pipe_ready);
	exchange_wake(x);
}

/* What the pipe does not take now stays with the library until the pipe has room. A reader that
 * is gone has an answer on its way, and wants no more. */
static bool keep_piped(struct http_exchange *x, const char *p, size_t *n, struct err *err)
{
	ssize_t w = write(x->pipe, p, *n);
	if (w < 0 && errno == EPIPE) {
		*n = 0;
		return true;
	}
	if (w < 0 && errno != EAGAIN && errno != EINTR)
		return err_sys(err, errno, "the body cannot be passed on") == 0;
	x->body_bytes += MAX(w, (ssize_t)0);
	*n -= (size_t)MAX(w, (ssize_t)0);
	if (*n == 0)
		return true;
	if (loop_io(x->server->opt.loop, x->pipe, EPOLLOUT, on_pipe, x, &x->pipe_ready, err) < 0)
		return false;
	suspend(x);
	return true;
}

/* What comes after a reply was made is dropped: the library can send it only when the body is
 * over. A body without known length is not waited for. */
static enum MHD_Result take_body(struct http_exchange *x, const char *data, size_t *n)
{
	struct err err;
	bool kept = true;
	if (!x->replied && x->pipe >= 0)
		kept = keep_piped(x, data, n, &err);
	else if (!x->replied)
		kept = keep(x, data, *n, &err);
	if (!kept) {
		drop_body(x);
		x->close_after = true;
		http_reply_error(x, &err);
	}
	if (x->replied || x->pipe < 0)
		*n = 0;
	return x->replied && x->request.length < 0 ? MHD_NO : MHD_YES;
}

static enum MHD_Result complete(struct http_exchange *x)
{
	struct http_server *s = x->server;
	if (!x->is_ready && !x->replied) {
		x->is_ready = true;
		conn_phase(x->conn, CONN_WORK, 0);
		s->opt.handler.ready(s->opt.handler.ctx, x);
	}
	if (x->replied)
		return reply_queue(x);
	suspend(x);
	return MHD_YES;
}

/* Called for the head, for each piece of the body, at its end, and again when resumed. */
enum MHD_Result exchange_step(
	struct http_exchange *x, const char *method, const char *data, size_t *n)
{
	if (!x->begun && !x->replied) {
		begin(x, method);
		return x->replied ? reply_queue(x) : MHD_YES;
	}
	return *n > 0 ? take_body(x, data, n) : complete(x);
}

/* --- what a handler asks ---------------------------------------------------------------------- */

const struct http_request *http_request_of(const struct http_exchange *x)
{
	return &x->request;
}

void *http_user(const struct http_exchange *x)
{
	return x->user;
}

void http_set_user(struct http_exchange *x, void *user)
{
	x->user = user;
}

bool http_over_unix(const struct http_exchange *x)
{
	return x->listener->is_unix;
}

void http_body_memory(struct http_exchange *x, size_t max)
{
	x->body.max = max;
	x->body_max = (int64_t)max;
}

void http_body_pipe(struct http_exchange *x, int fd)
{
	x->pipe = fd;
	x->body_max = INT64_MAX;
}

struct str http_body(const struct http_exchange *x)
{
	return (struct str){buf_str(&x->body), x->body.len};
}

int64_t http_body_bytes(const struct http_exchange *x)
{
	return x->body_bytes;
}
