/*
 * The HTTP/1.1 server: connections in, exchanges out. libmicrohttpd below, one thread, our loop.
 *
 * An exchange is one request and its reply. Its life, as the handler sees it:
 *
 *   begin()   the head is there and well formed (request.h has been through it). Reply at once, or
 *             say where the body goes (http_body_*); with neither it is kept in memory.
 *   ready()   the body is complete. Reply now or later; until then the connection is suspended and
 *             costs no time.
 *   done()    the reply is sent or the client is gone. Forget the exchange. Comes once for every
 *             begin(), also when no reply was made.
 *
 * Requests that request.h refuses are answered here and never reach the handler. A reply is made
 * once; what is due after it (an error in a stream) closes the connection.
 *
 * Bounds: connections in all and by address, the head (HTTP_HEAD_MAX bytes, HTTP_HEAD_MS), how long
 * a connection may idle, the slowest rate of a body and of a reply, the bytes of bodies in memory
 * of all clients together, and what may wait for a client that does not read its stream.
 */
#ifndef CLOISTER_TRANSPORT_HTTP_SERVER_H
#define CLOISTER_TRANSPORT_HTTP_SERVER_H

#include "sys/loop.h"
#include "transport/http/request.h"

enum {
	HTTP_HEAD_MAX = 24 * 1024,         /* request line and headers */
	HTTP_HEAD_MS = 10 * 1000,          /* from the request line to the last header */
	HTTP_IDLE_MS = 120 * 1000,         /* from the last reply to the next request line */
	HTTP_STALL_MS = 30 * 1000,         /* grace of bodies and replies before the rate counts */
	HTTP_RATE_MIN = 16 * 1024,         /* bytes a second of bodies and replies */
	HTTP_STREAM_MAX = 4 * 1024 * 1024, /* waiting for the client of a stream */
	HTTP_CONNECTIONS = 20000,
	HTTP_LISTENERS_MAX = 8,
};
#define HTTP_BODIES_MAX (256LL * 1024 * 1024) /* bodies in memory, all clients together */

struct http_server;
struct http_exchange;

struct http_handler {
	void (*begin)(void *ctx, struct http_exchange *x);
	void (*ready)(void *ctx, struct http_exchange *x);
	void (*done)(void *ctx, struct http_exchange *x);
	void *ctx;
};

struct http_options {
	struct loop *loop;           /* borrowed; outlives the server */
	struct http_handler handler; /* copied */
	const char *const *hosts;    /* see struct http_hosts; borrowed */
	const char *const *origins;
	const char *tls_key, *tls_cert;     /* PEM; copied by the library; NULL: no TLS */
	unsigned connections_max;           /* of one listener; 0: HTTP_CONNECTIONS */
	unsigned per_address_max;           /* 0: no limit of its own */
	int64_t head_ms, idle_ms, stall_ms; /* 0: the defaults above */
};

int http_server_new(
	const struct http_options *opt, struct http_server **ret, struct err *err) _must_check_;

/* Serve a listening socket (consumed; TCP or Unix). TLS is spoken on TCP when there is a key.
 * ERR_LIMIT (HTTP_LISTENERS_MAX), ERR_CONFIG (key or certificate), ERR_IO. */
int http_server_listen(struct http_server *s, int fd, struct err *err) _must_check_;

/* Accept nothing more; what runs goes on. */
void http_server_quiesce(struct http_server *s);

struct http_counts {
	uint64_t connections, requests, refused; /* refused: by request.h or a bound */
	unsigned open, exchanges;                /* now */
	int64_t body_bytes;                      /* bodies in memory now */
	uint64_t status[6];                      /* replies by hundred */
};
void http_server_counts(const struct http_server *s, struct http_counts *ret);

/* Ends every connection; done() comes for every exchange. Accepts NULL. */
void http_server_free(struct http_server *s);
DEFINE_CLEANUP(struct http_server *, http_server_free)

/* --- an exchange ------------------------------------------------------------------------------ */

const struct http_request *http_request_of(const struct http_exchange *x);
void *http_user(const struct http_exchange *x); /* what http_set_user() set; NULL at first */
void http_set_user(struct http_exchange *x, void *user);
bool http_over_unix(const struct http_exchange *x);

/* From begin(): keep the body in memory, at most `max` bytes (413 beyond). */
void http_body_memory(struct http_exchange *x, size_t max);
/* From begin(): write the body to this pipe, which does not block (borrowed until done()); the
 * client waits while it is full. When its reader is gone the rest of the body is dropped. */
void http_body_pipe(struct http_exchange *x, int fd);
struct str http_body(const struct http_exchange *x); /* from ready() on, when in memory */
int64_t http_body_bytes(const struct http_exchange *x);

/* --- replying --------------------------------------------------------------------------------- */

/* A header of the reply, before the reply is made. Names and values are ours: a value that cannot
 * be sent is a BUG. At most 8. */
void http_reply_header(struct http_exchange *x, const char *name, const char *value);

/* The whole reply. `body` is copied. */
void http_reply(struct http_exchange *x, unsigned status, const char *type, struct str body);
/* As above; the content of the buffer is taken (and the buffer empty). */
void http_reply_take(struct http_exchange *x, unsigned status, const char *type, struct buf *body);
/* {"error":{"code","message","hint"?}} with the status of the code. */
void http_reply_error(struct http_exchange *x, const struct err *err);
/* `n` bytes of a file from `from` on. The descriptor is consumed. */
void http_reply_fd(struct http_exchange *x, unsigned status, const char *type, int fd, int64_t from,
	int64_t n);

/* A reply without known end. Bytes put wait until they are sent; when more than HTTP_STREAM_MAX
 * wait, or the client is gone, put returns false and the stream is broken off. */
void http_stream(struct http_exchange *x, unsigned status, const char *type);
bool http_stream_put(struct http_exchange *x, struct str bytes);
void http_stream_end(struct http_exchange *x);

/* Append an error as JSON, as http_reply_error() sends it. */
void http_put_error(struct buf *b, const struct err *err);

#endif
