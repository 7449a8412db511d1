/* history_undo: take one change back. The undoing is a change like any other, so it can be undone
 * too. */
#include "tools/common.h"
#include "tools/tools.h"

static const struct field args[] = {
	{.name = "seq",
		.type = FIELD_INT,
		.min = 0,
		.has_default = true,
		.help = "Number of the change to take back (see history_list); 0: the newest that "
			"is not yet undone."},
	ARG_DRY_RUN,
	FIELD_END,
};

static const struct field result[] = {
	{.name = "undone", .type = FIELD_INT, .help = "Number of the change that was taken back."},
	{.name = "changes",
		.type = FIELD_ARRAY,
		.items = &(const struct field){.type = FIELD_OBJECT, .items = change_fields},
		.help = "What taking it back changed."},
	RESULT_CHANGES,
};

static int prepare(struct tool_call *tc, struct err *err)
{
	return tool_target(tc, ".", ACCESS_WRITE, 0, err);
}

static int run(struct tool_call *tc, struct err *err)
{
	uint64_t seq = 0;
	int r = history_undo(
		tool_workspace(tc), tool_view(tc), (uint64_t)tool_arg_int(tc, "seq"), &seq, err);
	if (r == 0)
		jw_int(tool_result(tc), "undone", (int64_t)seq);
	return r;
}

const struct tool tool_history_undo = {
	.name = "history_undo",
	.title = "Undo a change",
	.description = "Take back one change of this workspace as a whole. Refuses with conflict "
		       "when a later change touched the same paths.",
	.group = GROUP_WRITE,
	.destructive = true,
	.idempotent = false,
	.args = args,
	.result = result,
	.prepare = prepare,
	.run = run,
	.report = report_changes,
};
