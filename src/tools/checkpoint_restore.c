/* checkpoint_restore: bring a named state back, as one change that can be undone. */
#include "tools/common.h"
#include "tools/tools.h"

static const struct field args[] = {
	{.name = "label",
		.type = FIELD_STRING,
		.required = true,
		.min = 1,
		.max = 64,
		.help = "Name of the checkpoint."},
	ARG_DRY_RUN,
	FIELD_END,
};

static const struct field result[] = {
	{.name = "label", .type = FIELD_STRING, .help = "Name of the checkpoint."},
	{.name = "restored", .type = FIELD_INT, .help = "The position that was brought back."},
	{.name = "changes",
		.type = FIELD_ARRAY,
		.items = &(const struct field){.type = FIELD_OBJECT, .items = change_fields},
		.help = "What bringing it back changed."},
	RESULT_CHANGES,
};

static int prepare(struct tool_call *tc, struct err *err)
{
	return tool_target(tc, ".", ACCESS_WRITE, 0, err);
}

static int run(struct tool_call *tc, struct err *err)
{
	uint64_t seq = 0;
	int r = checkpoint_restore(
		tool_workspace(tc), tool_view(tc), tool_arg_str(tc, "label"), &seq, err);
	if (r < 0)
		return r;
	jw_cstr(tool_result(tc), "label", tool_arg_str(tc, "label"));
	jw_int(tool_result(tc), "restored", (int64_t)seq);
	return 0;
}

const struct tool tool_checkpoint_restore = {
	.name = "checkpoint_restore",
	.title = "Restore a checkpoint",
	.description =
		"Take back everything that changed since a checkpoint, as one change. Refuses with "
		"conflict when something outside Cloister changed the same paths.",
	.group = GROUP_WRITE,
	.destructive = true,
	.idempotent = false,
	.args = args,
	.result = result,
	.prepare = prepare,
	.run = run,
	.report = report_changes,
};
