/*
 * The HTTP door: the REST interface /api/v1 and MCP over Streamable HTTP, on one server.
 *
 * It knows HTTP and the port (transport/door.h) and nothing else: who may do what is decided
 * behind the port. Every request becomes at most one operation, except streams of events, which ask
 * again and again.
 */
#ifndef CLOISTER_TRANSPORT_HTTP_API_H
#define CLOISTER_TRANSPORT_HTTP_API_H

#include "transport/door.h"
#include "transport/http/server.h"

struct http_api;

struct http_api_options {
	struct loop *loop; /* borrowed, as is all below */
	struct door *door;
	const char *version;        /* of this program */
	const char *const *hosts;   /* beside localhost, 127.0.0.1 and [::1]; NULL: none */
	const char *const *origins; /* NULL: none */
	const char *tls_key, *tls_cert;
	unsigned connections_max, per_address_max; /* 0: the server's defaults */
	/* OAuth (RFC 9728): who gives tokens for this server, and its public URL; NULL: the
	 * metadata says only how a token is sent. */
	const char *const *authorization_servers;
	const char *resource;
	bool conformance; /* MCP also has the fixtures of its conformance suite */
};

/* Ignores SIGPIPE, which a body that core stopped reading would raise. */
int http_api_new(
	const struct http_api_options *opt, struct http_api **ret, struct err *err) _must_check_;
int http_api_listen(struct http_api *a, int fd, struct err *err) _must_check_; /* consumed */
void http_api_quiesce(struct http_api *a);
/* Exchanges that run now; 0 after http_api_quiesce(): nothing is lost by ending. */
unsigned http_api_busy(const struct http_api *a);
void http_api_free(struct http_api *a); /* accepts NULL; what was asked is abandoned */
DEFINE_CLEANUP(struct http_api *, http_api_free)

#endif
