/* What the parts of the HTTP server share. Private to src/transport/http. */
#ifndef CLOISTER_TRANSPORT_HTTP_SERVER_IMPL_H
#define CLOISTER_TRANSPORT_HTTP_SERVER_IMPL_H

#include "transport/http/server.h"

#include <microhttpd.h>

/* In which of its phases a connection is; each phase has a deadline. */
enum conn_phase { CONN_IDLE, CONN_HEAD, CONN_BODY, CONN_WORK, CONN_REPLY, CONN_PHASE_MAX_ };

/* One connection. */
struct http_conn {
	struct http_conn *prev, *next;
	struct http_listener *listener;
	int fd; /* MHD's */
	enum conn_phase phase;
	int64_t deadline_ms;
};

struct http_listener {
	struct http_server *server;
	struct MHD_Daemon *mhd;
	struct loop_source *io;
	bool is_unix, tls;
};

enum { HTTP_REPLY_HEADERS_MAX = 8 };

struct http_exchange {
	struct http_exchange *prev, *next; /* of the server */
	struct http_server *server;
	struct http_listener *listener;
	struct http_conn *conn;
	struct MHD_Connection *mhd;
	struct http_request request;
	struct err fault; /* of the request line; answered once the head is there */
	bool refused, begun, is_ready, replied, suspended, queued, close_after;
	void *user;

	struct buf body;
	size_t counted; /* of the body, in server->counts.body_bytes */
	int pipe;       /* where the body goes; -1: to memory */
	struct loop_source *pipe_ready;
	int64_t body_max, body_bytes;

	struct MHD_Response *response; /* made, not queued yet */
	unsigned status;
	unsigned n_headers;
	struct {
		const char *name;
		char value[256];
	} headers[HTTP_REPLY_HEADERS_MAX];

	bool is_stream, ended, broken;
	struct buf stream;
	size_t sent; /* of the stream's buffer */
};

struct http_server {
	struct http_options opt;
	struct http_listener listeners[HTTP_LISTENERS_MAX];
	unsigned n_listeners;
	struct http_exchange *exchanges;
	struct http_conn *conns;
	struct loop_source *pump, *clock;
	struct http_counts counts;
	bool pumping;
};

/* --- server.c --- */
/* MHD has something to do: let it, in this turn of the loop. */
void server_pump_soon(struct http_server *s);

/* --- deadline.c --- */
void conn_phase(struct http_conn *c, enum conn_phase phase, int64_t bytes);
/* End what is out of time, and ask for the next look. */
void server_check_deadlines(struct http_server *s);

/* --- exchange.c --- */
struct http_exchange *exchange_new(
	struct http_listener *l, struct MHD_Connection *c, const char *target);
void exchange_free(struct http_exchange *x);
/* MHD's access handler for this exchange. */
enum MHD_Result exchange_step(
	struct http_exchange *x, const char *method, const char *data, size_t *n);

/* --- reply.c --- */
/* Go on with a connection that was suspended. */
void exchange_wake(struct http_exchange *x);
/* Hand a reply that was made to MHD. Called from exchange_step() only. */
enum MHD_Result reply_queue(struct http_exchange *x);

#endif
