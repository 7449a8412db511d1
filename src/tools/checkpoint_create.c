/* checkpoint_create: give the present state a name to come back to. */
#include "tools/common.h"
#include "tools/tools.h"

static const struct field args[] = {
	{.name = "label",
		.type = FIELD_STRING,
		.required = true,
		.min = 1,
		.max = 64,
		.help = "Name of the checkpoint."},
	FIELD_END,
};

static const struct field result[] = {
	{.name = "label", .type = FIELD_STRING, .help = "Name of the checkpoint."},
	{.name = "seq", .type = FIELD_INT, .help = "The position that it names."},
	RESULT_COMMON,
};

static int prepare(struct tool_call *tc, struct err *err)
{
	return tool_target(tc, ".", ACCESS_WRITE, 0, err);
}

static int run(struct tool_call *tc, struct err *err)
{
	uint64_t seq = 0;
	int r = checkpoint_create(tool_workspace(tc), tool_arg_str(tc, "label"), &seq, err);
	if (r < 0)
		return r;
	jw_cstr(tool_result(tc), "label", tool_arg_str(tc, "label"));
	jw_int(tool_result(tc), "seq", (int64_t)seq);
	return 0;
}

const struct tool tool_checkpoint_create = {
	.name = "checkpoint_create",
	.title = "Create a checkpoint",
	.description = "Name the present state of the workspace, so that checkpoint_restore can "
		       "bring it back. Costs nothing that depends on the workspace's size.",
	.group = GROUP_WRITE,
	.destructive = false,
	.idempotent = false,
	.args = args,
	.result = result,
	.prepare = prepare,
	.run = run,
};
