/*
 * The Model Context Protocol, server side, for one connection: both eras, without I/O.
 *
 *   2026-07-28                     server/discover, every request carries its version in _meta;
 *                                  results have resultType, server and caching hints
 *   2025-11-25, 2025-06-18,        initialize, notifications/initialized, ping
 *   2025-03-26, 2024-11-05
 *
 * The first request decides for the whole connection: `initialize` makes it a legacy one, a
 * request whose _meta names a modern version a modern one.
 *
 * Messages go in with mcp_receive(), one per call; what is to be sent gathers in mcp_output(), one
 * message per line. Calls that wait for the worker stay in flight while other messages are
 * answered: mcp_waits() says what to wait for, mcp_proceed() lets them get on.
 *
 * A cancelled request is never answered. A request whose answer does not fit into the output is
 * answered with an error that says so.
 */
#ifndef CLOISTER_TRANSPORT_MCP_MCP_H
#define CLOISTER_TRANSPORT_MCP_MCP_H

#include "call/call.h"
#include "transport/mcp/jsonrpc.h"

enum {
	MCP_IN_FLIGHT_MAX = 64,  /* calls of one connection that wait for the worker */
	MCP_PROGRESS_MS = 200,   /* between two progress notifications of a request */
	MCP_PAGE_DEFAULT = 100,  /* tools in one page of tools/list */
	MCP_OUTPUT_MAX = 1 << 30 /* bytes waiting to be sent */
};

/* Which of the two protocols a connection speaks. */
enum mcp_era { MCP_UNDECIDED, MCP_LEGACY, MCP_MODERN };

struct mcp;
struct flight;
struct mcp_catalog;

/*
 * Calls that run elsewhere, behind a port. The functions are called from mcp_receive() and
 * mcp_handle(); what they start is answered with mcp_remote_done() or mcp_remote_running(), later
 * or at once.
 */
struct mcp_remote {
	/* Run a tool. `task`: say mcp_remote_running() when it takes long. */
	int (*call)(void *ctx, struct flight *f, const char *tool, const json_t *arguments,
		bool progress, bool task, struct err *err);
	/* The result of a call by its id. */
	int (*result)(void *ctx, struct flight *f, const char *call_id, struct err *err);
	int (*cancel_call)(void *ctx, struct flight *f, const char *call_id, struct err *err);
	/* The flight is over without an answer: its request was cancelled. */
	void (*drop)(void *ctx, struct flight *f);
	void *ctx;
};

/* What HTTP says of a modern message in headers, which must be what the message says. p NULL: the
 * header is not there. */
struct mcp_headers {
	struct str version, method, name;
};

/* What the conformance suite wants beside the protocol (mcp_fixtures.c). */
struct mcp_fixtures;
extern const struct mcp_fixtures mcp_fixtures;

#define MCP_MODERN_VERSION "2026-07-28"
/* Whether this is a version of the legacy era that we speak. */
bool mcp_legacy_version(const char *version);

struct mcp_options {
	const struct tool_env *env; /* NULL: calls run at `remote`, whose tools are `catalog` */
	const struct mcp_remote *remote;
	const struct mcp_catalog *catalog;
	const struct mcp_fixtures *fixtures; /* NULL: none */
	enum mcp_era era;                    /* settled already by other means */
	const struct mcp_headers *headers;   /* to be compared; NULL: there are none */
	const char *session_id;              /* of every call on this connection */
	const struct principal *principal;
	const char *turn;         /* NULL: none */
	const char *version;      /* of this program */
	const char *instructions; /* for the model; NULL: none */
	unsigned page;            /* 0: MCP_PAGE_DEFAULT */
	size_t output_max;        /* 0: MCP_OUTPUT_MAX */
	/* Send what mcp_output() holds if that is possible without waiting: progress of a call
	 * that is running right now. NULL: later. */
	void (*flush)(void *ctx);
	void *flush_ctx;
};

/* The options are copied; what they point to is borrowed. */
int mcp_new(const struct mcp_options *opt, struct mcp **ret, struct err *err) _must_check_;
/* A connection whose calls run at opt->remote. */
int mcp_new_remote(const struct mcp_options *opt, struct mcp **ret, struct err *err) _must_check_;
/* Calls in flight are cancelled without an answer. Accepts NULL. */
void mcp_free(struct mcp *m);
DEFINE_CLEANUP(struct mcp *, mcp_free)

/* One message (a line without its end). Blank ones are ignored. */
void mcp_receive(struct mcp *m, struct str text);

/* The same for a message that was read already; it stays the caller's. */
void mcp_handle(struct mcp *m, const struct rpc_message *msg);

/* The code of the last error answer (enum rpc_code); 0: there was none. */
int mcp_fault(const struct mcp *m);

/* --- flights of a remote --- */

/* The call has ended: answer with its result. The flight is gone. */
void mcp_remote_done(struct flight *f, struct str json, bool failed);
/* It takes longer, and this is the id by which its result can be asked for: the flight ends in a
 * task when one was asked for, else it stays. False: it stays. */
bool mcp_remote_running(struct flight *f, const char *call_id);
void mcp_remote_progress(struct flight *f, int64_t done, int64_t total);
/* Take up the request `id` again, a tools/call whose call has this id. */
void mcp_resume(struct mcp *m, const json_t *id, const char *call_id);

/* Tools as core lists them ({"tools":[..]}), prepared for listing. */
int mcp_catalog_read(struct str json, struct mcp_catalog **ret, struct err *err) _must_check_;
void mcp_catalog_free(struct mcp_catalog *c); /* accepts NULL */
DEFINE_CLEANUP(struct mcp_catalog *, mcp_catalog_free)

/* A message was larger than LIMIT_REQUEST_BYTES and was dropped. */
void mcp_receive_too_large(struct mcp *m);

/* What is to be sent. The caller takes from its start; it may be cleared when all is sent. */
struct buf *mcp_output(struct mcp *m);

/* What the calls in flight wait for. A descriptor of -1 has only its time. */
struct mcp_wait {
	int fd;
	int64_t at_ms; /* CLOCK_MONOTONIC */
};
unsigned mcp_waits(const struct mcp *m, struct mcp_wait ret[MCP_IN_FLIGHT_MAX]);

/* Let calls get on, answer those that are done, say progress that is due. Of calls at a remote
 * only the last. */
void mcp_proceed(struct mcp *m);

unsigned mcp_in_flight(const struct mcp *m);

#endif
