/* Connections whose calls run in this process. */
#include "transport/mcp/mcp_impl.h"

static const struct mcp_here here = {.start = call_start,
	.pending = call_pending,
	.poll_fd = call_poll_fd,
	.deadline_ms = call_deadline_ms,
	.proceed = call_proceed,
	.cancel = call_cancel,
	.code = call_code,
	.result = call_result,
	.free = call_free};

int mcp_new(const struct mcp_options *opt, struct mcp **ret, struct err *err)
{
	int r = mcp_new_remote(opt, ret, err);
	if (r == 0)
		(*ret)->here = &here;
	return r;
}
