/*
 * Which resource a request is for: routes.def as data, and matching.
 */
#ifndef CLOISTER_TRANSPORT_HTTP_ROUTES_H
#define CLOISTER_TRANSPORT_HTTP_ROUTES_H

#include "call/schema.h"
#include "transport/door.h"
#include "transport/http/request.h"

struct api_request;

struct route {
	enum http_method method;
	const char *pattern;
	/* Called once the body is there; upload() at the head. */
	void (*handle)(struct api_request *a);
	enum door_op op;
	const struct field *query, *body;
	unsigned status;
	const char *summary, *name;
};

extern const struct route *const routes;
extern const unsigned n_routes;

/* The tables of api_fields.c. The body of a tool has a table that is not known here, and one of
 * `none` may be {} or nothing. */
extern const struct field api_query_none[], api_query_wait[], api_query_page[], api_query_events[],
	api_query_upload[], api_query_remove[];
extern const struct field api_body_none[], api_body_session[], api_body_extend[], api_body_tool[],
	api_body_mcp[];

struct route_match {
	const struct route *route;
	struct str session, tool, call; /* borrowed from the request */
	unsigned path_from;             /* the first segment of {path}; 0: there is none */
};

/* ERR_NOT_FOUND when no pattern fits; ERR_UNSUPPORTED with the methods that would fit in
 * `ret_allow` (of 64 bytes) when only the method does not. */
int route_find(const struct http_request *q, struct route_match *ret, char *ret_allow,
	struct err *err) _must_check_;

#endif
