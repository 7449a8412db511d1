/* The message path of the MCP door: lines of the input are messages; what comes out must be lines
 * of JSON, whatever came in. */
#include "codec/json.h"
#include "transport/mcp/mcp.h"
#include "unit/fake_call.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_output(struct buf *out)
{
	size_t from = 0;
	while (from < out->len) {
		const char *end = memchr(out->data + from, '\n', out->len - from);
		struct err err;
		json_t *v = NULL;
		BUG_ON(!end);
		size_t n = (size_t)(end - (out->data + from));
		BUG_ON(json_parse((struct str){out->data + from, n}, n, &v, &err) < 0);
		BUG_ON(!json_is_object(v));
		json_decref(v);
		from += n + 1;
	}
	buf_clear(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tool_env env = {.tools = fake_tools};
	struct principal who = {.id = "fuzz"};
	struct mcp_options o = {.env = &env,
		.session_id = "s",
		.principal = &who,
		.version = "0",
		.output_max = 65536};
	struct mcp *m = NULL;
	struct err err;
	const char *p = (const char *)data, *end = p + size;
	fake_reset();
	if (mcp_new(&o, &m, &err) < 0)
		return 0;
	for (unsigned lines = 0; p < end; lines++) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		size_t n = nl ? (size_t)(nl - p) : (size_t)(end - p);
		mcp_receive(m, (struct str){p, n});
		if (lines % 4 == 3)
			mcp_proceed(m);
		p += nl ? n + 1 : n;
	}
	check_output(mcp_output(m));
	fake_finish();
	mcp_proceed(m);
	check_output(mcp_output(m));
	BUG_ON(mcp_in_flight(m) != 0);
	mcp_free(m);
	BUG_ON(fake_seen.freed != fake_seen.started);
	return 0;
}
