/* workspace_diff: the net difference between an earlier position and now. */
#include "tools/common.h"
#include "tools/tools.h"

static const struct field args[] = {
	{.name = "since",
		.type = FIELD_INT,
		.min = 0,
		.has_default = true,
		.help = "Compare with the state after this change; 0: the oldest known state."},
	{.name = "checkpoint",
		.type = FIELD_STRING,
		.min = 1,
		.max = 64,
		.help = "Compare with this checkpoint instead."},
	{.name = "context",
		.type = FIELD_INT,
		.min = 0,
		.max = 100,
		.dflt = 3,
		.has_default = true,
		.help = "Unchanged lines around each change."},
	{.name = "max_bytes",
		.type = FIELD_INT,
		.min = 1,
		.max = 16 * 1024 * 1024,
		.dflt = 256 * 1024,
		.has_default = true,
		.help = "Most bytes of diff."},
	FIELD_END,
};

static const struct field result[] = {
	{.name = "changes",
		.type = FIELD_ARRAY,
		.items = &(const struct field){.type = FIELD_OBJECT, .items = change_fields},
		.help = "One row per path that differs."},
	{.name = "diff", .type = FIELD_STRING, .help = "Unified diff."},
	{.name = "diff_truncated",
		.type = FIELD_BOOL,
		.help = "True when the diff was cut at max_bytes."},
	RESULT_COMMON,
};

static int prepare(struct tool_call *tc, struct err *err)
{
	return tool_target(tc, ".", ACCESS_READ, 0, err);
}

static bool put_one(void *ctx, const struct change *c)
{
	put_change(ctx, c);
	return true;
}

static int run(struct tool_call *tc, struct err *err)
{
	bool truncated = false;
	size_t max = (size_t)tool_arg_int(tc, "max_bytes");
	struct buf *out = tool_result(tc);
	_cleanup_buf_ struct buf diff = buf_init(max + 4096);
	struct diff_options opt = {.since_seq = (uint64_t)tool_arg_int(tc, "since"),
		.since_label = tool_arg_str(tc, "checkpoint"),
		.max_bytes = max,
		.context = (unsigned)tool_arg_int(tc, "context")};
	jw_key(out, "changes");
	jw_open(out, '[');
	int r = workspace_diff(tool_workspace(tc), &opt, &diff, &truncated, put_one, out, err);
	jw_close(out, ']');
	jw_str(out, "diff", (struct str){buf_str(&diff), diff.len});
	jw_bool(out, "diff_truncated", truncated);
	return r;
}

const struct tool tool_workspace_diff = {
	.name = "workspace_diff",
	.title = "Show what changed",
	.description = "The net difference between an earlier state (a change number or a "
		       "checkpoint) and now, as rows and a unified diff.",
	.group = GROUP_READ,
	.idempotent = true,
	.args = args,
	.result = result,
	.prepare = prepare,
	.run = run,
};
