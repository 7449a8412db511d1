/*
 * One HTTP request as everything behind the door sees it: made once, checked once, read-only then.
 *
 * What is refused here (RFC 9110, RFC 9112), whatever the library below lets pass:
 *
 *   - a header name that is no token, and with it a folded line, which arrives as part of a name;
 *   - a control character in a value; a header that we interpret and that comes twice;
 *   - Content-Length that is no plain number, or beside Transfer-Encoding; an encoding but chunked;
 *   - no Host, a malformed one, one that is not ours (DNS rebinding); an Origin that is not ours;
 *   - a target that is not origin-form, a wrong percent sequence, an encoded slash or NUL, `.` and
 *     `..`, a parameter twice.
 *
 * Errors: ERR_INVALID_ARGUMENT (400), ERR_DENIED (403, Host and Origin), ERR_UNSUPPORTED (501),
 * ERR_TOO_LARGE, ERR_NO_MEMORY. The header values are borrowed from the caller.
 */
#ifndef CLOISTER_TRANSPORT_HTTP_REQUEST_H
#define CLOISTER_TRANSPORT_HTTP_REQUEST_H

#include "base/limits.h"
#include "base/text.h"

/* HTTP_METHOD(NAME): those that some route has. */
#define HTTP_METHODS(HTTP_METHOD)                                                                  \
	HTTP_METHOD(GET)                                                                           \
	HTTP_METHOD(HEAD)                                                                          \
	HTTP_METHOD(PUT)                                                                           \
	HTTP_METHOD(POST)                                                                          \
	HTTP_METHOD(DELETE)

enum http_method {
#define HTTP_METHOD(name) HTTP_##name,
	HTTP_METHODS(HTTP_METHOD)
#undef HTTP_METHOD
		HTTP_METHOD_MAX_,
};

/* HTTP_HEADER(member, "name"): those that we interpret. Each may come once. */
#define HTTP_HEADERS(HTTP_HEADER)                                                                  \
	HTTP_HEADER(host, "host")                                                                  \
	HTTP_HEADER(accept, "accept")                                                              \
	HTTP_HEADER(origin, "origin")                                                              \
	HTTP_HEADER(authorization, "authorization")                                                \
	HTTP_HEADER(content_length, "content-length")                                              \
	HTTP_HEADER(transfer_encoding, "transfer-encoding")                                        \
	HTTP_HEADER(content_type, "content-type")                                                  \
	HTTP_HEADER(content_encoding, "content-encoding")                                          \
	HTTP_HEADER(range, "range")                                                                \
	HTTP_HEADER(if_range, "if-range")                                                          \
	HTTP_HEADER(if_match, "if-match")                                                          \
	HTTP_HEADER(if_none_match, "if-none-match")                                                \
	HTTP_HEADER(last_event_id, "last-event-id")                                                \
	HTTP_HEADER(turn, "cloister-turn")                                                         \
	HTTP_HEADER(role, "cloister-role")                                                         \
	HTTP_HEADER(mcp_session_id, "mcp-session-id")                                              \
	HTTP_HEADER(mcp_protocol_version, "mcp-protocol-version")                                  \
	HTTP_HEADER(mcp_method, "mcp-method")                                                      \
	HTTP_HEADER(mcp_name, "mcp-name")

enum {
	HTTP_TARGET_MAX = 12 * 1024, /* a path of LIMIT_PATH_BYTES with every byte encoded */
	HTTP_SEGMENTS_MAX = LIMIT_PATH_DEPTH + 8,
	HTTP_PARAMS_MAX = 16,
	HTTP_HEADERS_MAX = 64,
};

struct http_param {
	struct str name, value;
};

struct http_request {
	enum http_method method;
	struct str segments[HTTP_SEGMENTS_MAX]; /* of the path, decoded; may hold any byte but NUL
						   and `/`; the last may be empty */
	unsigned n_segments;
	struct http_param params[HTTP_PARAMS_MAX]; /* of the query, decoded */
	unsigned n_params;
	unsigned n_headers;
	/* NULL: not there */
#define HTTP_HEADER(member, name) struct str member;
	HTTP_HEADERS(HTTP_HEADER)
#undef HTTP_HEADER
	struct str token; /* of `Authorization: Bearer`; p is NULL without one */
	int64_t length;   /* of the body; 0 without one, -1: chunked */
	char *memory;     /* owned: the decoded target */
};

/* Which names and origins are ours. Borrowed. */
struct http_hosts {
	bool any;                 /* a Unix socket, which no browser reaches: every name is ours */
	const char *const *hosts; /* without port, lower case, NULL-terminated */
	const char *const *origins; /* scheme://host[:port], lower case, NULL-terminated */
};

/* Start with a method and the target as it was sent. The request may be _done() in any case. */
int http_request_start(
	struct http_request *q, struct str method, struct str target, struct err *err) _must_check_;

/* Add one header, in the order of arrival. */
int http_request_header(
	struct http_request *q, struct str name, struct str value, struct err *err) _must_check_;

/* All headers are there: check what needs more than one of them. */
int http_request_finish(
	struct http_request *q, const struct http_hosts *ours, struct err *err) _must_check_;

void http_request_done(struct http_request *q);

const char *http_method_name(enum http_method m);

/* A parameter by name; p is NULL when it is not there. */
struct str http_request_param(const struct http_request *q, const char *name);

/* Is the media type of Content-Type this one (parameters aside)? */
bool http_request_is(const struct http_request *q, const char *media_type);

/*
 * One byte range of `Range` over a content of `size` bytes: 1 with *ret_from, *ret_n; 0 when there
 * is none to honour (absent, malformed, several: the whole is due, RFC 9110 14.2); -1 when it lies
 * outside (416).
 */
int http_range(struct str range, int64_t size, int64_t *ret_from, int64_t *ret_n);

/* Does a list of entity tags (If-Match, If-None-Match), or `*`, name this one? Strong comparison;
 * `tag` without quotes. */
bool http_etag_in(struct str list, struct str tag);

/* Decode percent sequences strictly into `to` (room for s.n); false when one is wrong. */
bool http_unpercent(struct str s, bool plus_is_blank, char *to, size_t *ret_n);

#endif
