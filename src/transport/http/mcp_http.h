/* MCP over Streamable HTTP: what its parts share. Private to src/transport/http. */
#ifndef CLOISTER_TRANSPORT_HTTP_MCP_HTTP_H
#define CLOISTER_TRANSPORT_HTTP_MCP_HTTP_H

#include "transport/http/api_impl.h"
#include "transport/mcp/mcp.h"

#define MCP_DEFAULT_SESSION "default"

enum {
	MCP_SESSION_ID_LEN = 32 + 1 + 32, /* nonce, dot, proof; hexadecimal */
	MCP_ENDED_MAX = 1024,             /* ended sessions that are remembered */
	MCP_CALL_ID_LEN = 26,
	MCP_RUN_MS = 2000,    /* a call that takes longer becomes a task or a stream */
	MCP_ALIVE_MS = 15000, /* between two signs of life in a stream */
	MCP_CATALOG_MS = 60000
};

/* One POST, or one GET that takes a stream up again; owned by its request. */
struct mcp_post {
	struct api_request *a;
	struct mcp_post *prev, *next; /* of the door, while it lives */
	struct rpc_message msg;
	bool has_msg;
	struct mcp *m;
	struct mcp_headers headers;
	struct mcp_remote remote;
	bool modern, accepts_stream, streaming, ended;
	char session[MCP_SESSION_ID_LEN + 1]; /* of the legacy era; "" */

	struct flight *flight; /* the one that waits for the door */
	char call_id[MCP_CALL_ID_LEN + 1];
	/* What was asked, until it is known that there is a session. */
	char *tool, *arguments;
	bool progress, task, created;
	struct loop_source *alive, *tick; /* signs of life: of the stream, as progress */
};

/* --- mcp_session.c --- */

/* A session id that this token, and no other, can come back with. Nothing of it is kept, so it
 * outlives every restart. */
void mcp_session_make(struct str token, char ret[MCP_SESSION_ID_LEN + 1]);
bool mcp_session_known(const struct http_api *api, struct str token, struct str id);
void mcp_session_end(struct http_api *api, struct str id);

/* --- mcp_door.c: calls through the port --- */
extern const struct mcp_remote mcp_door_remote;
/* Ask for the result of p->call_id, again and again. */
int mcp_door_poll(struct mcp_post *p, struct err *err) _must_check_;

/* --- mcp_post.c --- */

/* Send what there is: a reply, pieces of a stream, or nothing yet. */
void mcp_post_flush(struct mcp_post *p);
/* From now on it is a stream. False: the client does not take one. */
bool mcp_post_stream(struct mcp_post *p);

#endif
