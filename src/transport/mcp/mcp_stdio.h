/*
 * MCP over stdio: one message per line in each direction, nothing else on the output.
 *
 * Serves until the input ends, then until what is in flight is answered and sent. A client that
 * does not read is not read from either: no more than MCP_STDIO_HIGH bytes wait for it before the
 * next message is looked at. A line longer than LIMIT_REQUEST_BYTES is answered with an error and
 * skipped.
 */
#ifndef CLOISTER_TRANSPORT_MCP_STDIO_H
#define CLOISTER_TRANSPORT_MCP_STDIO_H

#include "transport/mcp/mcp.h"

enum { MCP_STDIO_HIGH = 4 * 1024 * 1024 };

struct mcp_output_fd {
	int fd;
	bool socket;   /* written with MSG_DONTWAIT */
	bool reopened; /* `fd` is ours: a description of its own that does not block */
	int flags;     /* file status flags to put back, -1: none */
};

/* Prepare the output so that writing to it never waits. Call it before core_restrict(), since it
 * may open the same pipe anew. */
int mcp_output_open(int fd, struct mcp_output_fd *ret, struct err *err) _must_check_;
void mcp_output_close(struct mcp_output_fd *o);

/* Serve one connection. `opt->flush` is set here. Errors: ERR_IO (the client reads no more), and
 * those of mcp_new(). */
int mcp_stdio_serve(const struct mcp_options *opt, int in_fd, struct mcp_output_fd *out,
	struct err *err) _must_check_;

#endif
