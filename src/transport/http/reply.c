/* Replies on the way out: see server.h. */
#include "codec/json_write.h"
#include "transport/http/server_impl.h"

enum { STREAM_BLOCK = 64 * 1024, ERROR_MAX = 4096 };

/* --- making ----------------------------------------------------------------------------------- */

void http_reply_header(struct http_exchange *x, const char *name, const char *value)
{
	BUG_ON(x->n_headers == HTTP_REPLY_HEADERS_MAX);
	BUG_ON(strlen(value) >= sizeof(x->headers[0].value) || strpbrk(value, "\r\n"));
	x->headers[x->n_headers].name = name;
	(void)snprintf(x->headers[x->n_headers++].value, sizeof(x->headers[0].value), "%s", value);
}

void exchange_wake(struct http_exchange *x)
{
	if (!x->suspended)
		return;
	x->suspended = false;
	MHD_resume_connection(x->mhd);
	server_pump_soon(x->server);
}

/* Every reply is about one principal and one moment, and none is meant to be shown by a browser
 * as anything but what it says. */
static void add_headers(struct http_exchange *x, const char *type)
{
	struct MHD_Response *r = x->response;
	if (type)
		(void)MHD_add_response_header(r, "Content-Type", type);
	(void)MHD_add_response_header(r, "Cache-Control", "no-store");
	(void)MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
	for (unsigned i = 0; i < x->n_headers; i++)
		(void)MHD_add_response_header(r, x->headers[i].name, x->headers[i].value);
	if (x->close_after)
		(void)MHD_add_response_header(r, "Connection", "close");
}

/* Without memory for a response there is none, and reply_queue() ends the connection. */
static void made(struct http_exchange *x, unsigned status, const char *type, struct MHD_Response *r)
{
	BUG_ON(x->replied);
	x->replied = true;
	x->status = status;
	x->response = r;
	if (r)
		add_headers(x, type);
	x->server->counts.status[status / 100]++;
	exchange_wake(x);
}

void http_reply(struct http_exchange *x, unsigned status, const char *type, struct str body)
{
	made(x, status, type,
		MHD_create_response_from_buffer(
			body.n, (void *)(uintptr_t)body.p, MHD_RESPMEM_MUST_COPY));
}

void http_reply_take(struct http_exchange *x, unsigned status, const char *type, struct buf *body)
{
	size_t n;
	char *p = buf_take(body, &n);
	struct MHD_Response *r = MHD_create_response_from_buffer(n, p, MHD_RESPMEM_MUST_FREE);
	if (!r)
		free(p);
	made(x, status, type, r);
}

void http_put_error(struct buf *b, const struct err *err)
{
	jw_open(b, '{');
	jw_key(b, "error");
	jw_open(b, '{');
	jw_cstr(b, "code", err_info(err->code)->name);
	jw_cstr(b, "message", err->text);
	if (err->hint[0])
		jw_cstr(b, "hint", err->hint);
	jw_close(b, '}');
	jw_close(b, '}');
}

void http_reply_error(struct http_exchange *x, const struct err *err)
{
	struct buf b = buf_init(ERROR_MAX);
	http_put_error(&b, err);
	buf_putc(&b, '\n');
	http_reply_take(x, (unsigned)err_info(err->code)->http, "application/json", &b);
}

void http_reply_fd(
	struct http_exchange *x, unsigned status, const char *type, int fd, int64_t from, int64_t n)
{
	struct MHD_Response *r =
		MHD_create_response_from_fd_at_offset64((uint64_t)n, fd, (uint64_t)from);
	if (!r)
		(void)close(fd);
	made(x, status, type, r);
}

/* --- queueing --------------------------------------------------------------------------------- */

static int64_t reply_bytes(const struct http_exchange *x)
{
	return x->is_stream ? 0 : (int64_t)1024 * 1024;
}

enum MHD_Result reply_queue(struct http_exchange *x)
{
	if (!x->response || x->queued)
		return x->response ? MHD_YES : MHD_NO;
	x->queued = true;
	conn_phase(x->conn, x->is_stream ? CONN_WORK : CONN_REPLY, reply_bytes(x));
	return MHD_queue_response(x->mhd, x->status, x->response);
}

/* --- streams ---------------------------------------------------------------------------------- */

/* MHD wants more to send. Nothing there: suspend until there is. */
static ssize_t more(void *ctx, uint64_t pos _unused_, char *to, size_t max)
{
	struct http_exchange *x = ctx;
	size_t left = x->stream.len - x->sent;
	if (x->broken)
		return MHD_CONTENT_READER_END_WITH_ERROR;
	if (left == 0 && x->ended)
		return MHD_CONTENT_READER_END_OF_STREAM;
	if (left == 0) {
		buf_clear(&x->stream);
		x->sent = 0;
		x->suspended = true;
		conn_phase(x->conn, CONN_WORK, 0);
		MHD_suspend_connection(x->mhd);
		return 0;
	}
	size_t n = MIN(left, max);
	memcpy(to, x->stream.data + x->sent, n);
	x->sent += n;
	return (ssize_t)n;
}

void http_stream(struct http_exchange *x, unsigned status, const char *type)
{
	x->is_stream = true;
	x->stream = buf_init(HTTP_STREAM_MAX);
	made(x, status, type,
		MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK, more, x, NULL));
}

/* The memory of what was sent is used again once it is half of the buffer. */
static void forget_sent(struct http_exchange *x)
{
	struct buf *b = &x->stream;
	if (x->sent < b->len / 2 || x->sent == 0)
		return;
	memmove(b->data, b->data + x->sent, b->len - x->sent);
	b->len -= x->sent;
	x->sent = 0;
}

bool http_stream_put(struct http_exchange *x, struct str bytes)
{
	forget_sent(x);
	buf_put(&x->stream, bytes.p, bytes.n);
	if (x->stream.failed)
		x->broken = true;
	if (x->suspended)
		conn_phase(x->conn, CONN_REPLY, (int64_t)bytes.n);
	exchange_wake(x);
	return !x->broken;
}

void http_stream_end(struct http_exchange *x)
{
	x->ended = true;
	exchange_wake(x);
}
