/* What the parts of one MCP connection share. Private to src/transport/mcp. */
#ifndef CLOISTER_TRANSPORT_MCP_MCP_IMPL_H
#define CLOISTER_TRANSPORT_MCP_MCP_IMPL_H

#include "transport/mcp/jsonrpc.h"
#include "transport/mcp/mcp.h"

#define MCP_META_VERSION "io.modelcontextprotocol/protocolVersion"
#define MCP_META_CAPABILITIES "io.modelcontextprotocol/clientCapabilities"

/* How long a client may keep a listing that is the same for the life of this process. */
enum { MCP_TTL_MS = 300000 };

#define MCP_TASKS "io.modelcontextprotocol/tasks"

/* What the end of a call's flight becomes. False: another call was started in its place. */
typedef bool (*flight_finish_fn)(struct flight *f, struct str json, bool failed);

/* One tools/call that has not been answered. On the heap, since progress reports point at it. */
struct flight {
	struct mcp *m;
	json_t *id, *token; /* owned; token NULL: no progress wanted */
	struct call *call;  /* NULL: it runs at the remote */
	flight_finish_fn finish;
	char *note;                  /* of finish(); owned */
	bool task;                   /* a task may be its answer */
	int64_t started_ms, said_ms; /* said: the last progress notification */
	int64_t said;                /* its value; -1: none yet */
};

/* How calls run in this process: call.h as a table, so that a program whose calls run elsewhere
 * does not hold the engine. */
struct mcp_here {
	int (*start)(const struct tool_env *env, const struct call_input *in, struct call **ret,
		struct err *err);
	bool (*pending)(const struct call *c);
	int (*poll_fd)(const struct call *c);
	int64_t (*deadline_ms)(const struct call *c);
	void (*proceed)(struct call *c);
	void (*cancel)(struct call *c);
	enum err_code (*code)(const struct call *c);
	struct str (*result)(const struct call *c);
	void (*free)(struct call *c);
};

struct mcp_fixtures {
	/* True when the request was one for a fixture, and answered or kept. */
	bool (*request)(struct mcp *m, const struct rpc_message *msg);
	void (*response)(struct mcp *m, const struct rpc_message *msg);
	void (*put_tools)(struct buf *b);
	const char *capabilities;
};

struct mcp {
	struct mcp_options opt;
	const struct mcp_here *here; /* NULL: at the remote */
	enum mcp_era era;
	struct buf out;
	struct buf tail; /* what ends every result of this era: its _meta and resultType */
	struct flight *flights[MCP_IN_FLIGHT_MAX];
	unsigned n_flights;
	int fault;
	bool initialized;
};

/* --- mcp_tools.c ------------------------------------------------------------------------------ */

/* The result object of tools/list from `from` on, without its closing brace. */
void mcp_put_tools(struct mcp *m, unsigned from);
bool mcp_has_tool(const struct mcp *m, const char *name);
/* Where the page of a cursor starts; -1: it is none of ours. */
int mcp_cursor(const struct mcp *m, const json_t *cursor);
/* The result object of a finished call, without its closing brace: its JSON once as
 * structuredContent and once as text. */
void mcp_put_call_result(struct buf *out, struct str json, bool is_error);

/* --- mcp_flight.c ----------------------------------------------------------------------------- */

/* Start a call for a request; answer at once or keep it in flight. `args` is an object or NULL,
 * borrowed. `note` is taken. */
void mcp_call(struct mcp *m, const struct rpc_message *msg, const char *tool, const json_t *args,
	flight_finish_fn finish, char *note);
/* finish() of tools/call. */
bool mcp_finish_tool(struct flight *f, struct str json, bool failed);
/* From finish(): run another call in the place of this one. */
void mcp_call_next(struct flight *f, const char *tool, const json_t *args);
/* tasks/get and tasks/cancel: ask the remote about a call. */
void mcp_call_about(struct mcp *m, const struct rpc_message *msg, const char *call_id, bool cancel,
	flight_finish_fn finish, char *note);
/* Keep a request in flight that no call is running for, until mcp_land(). False: answered that
 * there is no room. */
bool mcp_keep(struct mcp *m, const struct rpc_message *msg, flight_finish_fn finish, char *note);
void mcp_land(struct flight *f);
bool mcp_id_in_flight(const struct mcp *m, const json_t *id);
void mcp_cancel(struct mcp *m, const json_t *id);

/* --- mcp.c ------------------------------------------------------------------------------------ */

/* End a response that starts at `from` in the output: when it did not fit, an error takes its
 * place. */
void mcp_end_result(struct mcp *m, const json_t *id, size_t from);
/* The same with a resultType that is not "complete". */
void mcp_end_result_as(struct mcp *m, const json_t *id, size_t from, const char *type);
void mcp_put_error(
	struct mcp *m, const json_t *id, enum rpc_code code, const char *message, const char *data);
void mcp_invalid_params(struct mcp *m, const struct rpc_message *msg, const char *what);
/* The members of a modern result that may be kept for so long. */
void mcp_put_caching(struct mcp *m, int64_t ttl_ms);
/* A line that starts at `from` and did not fit is taken back whole, so that lines stay lines. */
void mcp_drop_if_failed(struct mcp *m, size_t from);

/* --- mcp_headers.c --- */
/* Answers and returns false when a header is not what the message says. */
bool mcp_headers_match(struct mcp *m, const struct rpc_message *msg, const json_t *version);

/* --- mcp_resources.c: files of the workspace as resources --- */
void mcp_resources_list(struct mcp *m, const struct rpc_message *msg);
void mcp_resource_templates(struct mcp *m, const struct rpc_message *msg);
void mcp_resources_read(struct mcp *m, const struct rpc_message *msg);
void mcp_complete(struct mcp *m, const struct rpc_message *msg);

/* --- mcp_tasks.c --- */
bool mcp_wants_tasks(const struct mcp *m, const struct rpc_message *msg);
/* Answer a call that takes long with a task, and tasks/get of one that still runs. */
void mcp_answer_running(struct flight *f, const char *call_id);
void mcp_tasks_get(struct mcp *m, const struct rpc_message *msg);
void mcp_tasks_cancel(struct mcp *m, const struct rpc_message *msg);
void mcp_tasks_update(struct mcp *m, const struct rpc_message *msg);

#endif
