/* What the parts of the HTTP door share. Private to src/transport/http. */
#ifndef CLOISTER_TRANSPORT_HTTP_API_IMPL_H
#define CLOISTER_TRANSPORT_HTTP_API_IMPL_H

#include "codec/json_write.h"
#include "transport/http/api.h"
#include "transport/http/routes.h"

struct http_api {
	struct http_api_options opt;
	struct http_server *server;
	const char **hosts; /* owned array */
	int64_t started_ms;
	/* MCP */
	struct mcp_catalog *catalog;
	int64_t catalog_ms;
	struct mcp_post *posts;
	char mcp_ended[1024][65]; /* see mcp_session.c */
	unsigned mcp_ended_next;
};

/* One request on its way through the port; the exchange's user. */
struct api_request {
	struct http_api *api;
	struct http_exchange *x;
	const struct http_request *q;
	struct route_match match;
	struct buf arguments; /* of the operation */
	int64_t wait_ms;      /* of the query */
	uint64_t ask;
	bool asking;
	struct upload *upload; /* upload.c; owned */
	struct events *events; /* events.c; owned */
	struct mcp_post *post; /* mcp_post.c; owned */
};

/* --- api.c --- */

/* Fill what follows from path, query and headers. `arguments` is a->arguments. */
struct door_request api_door_request(struct api_request *a);
/* Submit it; a refusal is replied to. False: replied. */
bool api_submit(struct api_request *a, const struct door_request *d, door_done_fn done);
/* The ordinary callback: the answer's JSON with the status of its code. */
void api_answer(void *ctx, struct door_answer *answer);
/* The answer is an error, or success has this status. */
void api_reply_answer(struct api_request *a, const struct door_answer *answer, unsigned ok);
void api_reply_error(struct api_request *a, const struct err *err);
/* {path} as agents spell it (name_escape()d), as a member of a JSON object. */
void api_put_path(struct api_request *a, struct buf *b);

/* --- query.c --- */

/* Check the query against the route's table; what the port is to know goes into a->arguments as
 * members, wait_ms into a->wait_ms. */
int api_read_query(struct api_request *a, struct err *err) _must_check_;

/* --- handlers, by their names in routes.def --- */
void api_ask(struct api_request *a);
void api_alive(struct api_request *a);
void api_ready(struct api_request *a);
void api_metrics(struct api_request *a);
void api_openapi(struct api_request *a);
void api_remove(struct api_request *a);
void api_download(struct api_request *a);
void api_upload(struct api_request *a); /* at the head */
void api_events(struct api_request *a);
void api_mcp_post(struct api_request *a);
void api_mcp_get(struct api_request *a);
void api_mcp_delete(struct api_request *a);
void api_resource_metadata(struct api_request *a);

/* The body of an upload is complete, or will not be. */
void upload_ready(struct api_request *a);
void upload_free(struct upload *u);
void events_free(struct events *e);
void mcp_post_free(struct mcp_post *p);

#endif
