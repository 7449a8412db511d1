/* What the parts of one MCP connection share. Private to src/transport/mcp. */
#ifndef CLOISTER_TRANSPORT_MCP_MCP_IMPL_H
#define CLOISTER_TRANSPORT_MCP_MCP_IMPL_H

#include "transport/mcp/jsonrpc.h"
#include "transport/mcp/mcp.h"

#define MCP_MODERN_VERSION "2026-07-28"
#define MCP_META_VERSION "io.modelcontextprotocol/protocolVersion"
#define MCP_META_CAPABILITIES "io.modelcontextprotocol/clientCapabilities"

enum mcp_era { MCP_UNDECIDED, MCP_LEGACY, MCP_MODERN };

/* One tools/call that has not been answered. On the heap, since progress reports point at it. */
struct flight {
	struct mcp *m;
	json_t *id, *token; /* owned; token NULL: no progress wanted */
	struct call *call;
	int64_t started_ms, said_ms; /* said: the last progress notification */
	int64_t said;                /* its value; -1: none yet */
};

struct mcp {
	struct mcp_options opt;
	enum mcp_era era;
	struct buf out;
	struct buf tail; /* what ends every result of this era: its _meta and resultType */
	struct flight *flights[MCP_IN_FLIGHT_MAX];
	unsigned n_flights;
};

/* --- mcp_tools.c ------------------------------------------------------------------------------ */

/* The result object of tools/list from `from` on, without its closing brace. */
void mcp_put_tools(struct mcp *m, unsigned from);
/* Where the page of a cursor starts; -1: it is none of ours. */
int mcp_cursor(const struct mcp *m, const json_t *cursor);
/* The result object of a finished call, without its closing brace: its JSON once as
 * structuredContent and once as text. */
void mcp_put_call_result(struct buf *out, struct str json, bool is_error);

/* --- mcp_flight.c ----------------------------------------------------------------------------- */

/* tools/call: start it; answer at once or keep it in flight. Arguments were checked to be an
 * object or NULL. */
void mcp_call(struct mcp *m, const struct rpc_message *msg, const char *tool, const json_t *args);
bool mcp_id_in_flight(const struct mcp *m, const json_t *id);
void mcp_cancel(struct mcp *m, const json_t *id);

/* --- mcp.c ------------------------------------------------------------------------------------ */

/* End a response that starts at `from` in the output: when it did not fit, an error takes its
 * place. */
void mcp_end_result(struct mcp *m, const json_t *id, size_t from);
/* A line that starts at `from` and did not fit is taken back whole, so that lines stay lines. */
void mcp_drop_if_failed(struct mcp *m, size_t from);

#endif
