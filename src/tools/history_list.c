/* history_list: what was changed, newest first. */
#include "tools/common.h"
#include "tools/tools.h"

static const struct field args[] = {
	{.name = "limit",
		.type = FIELD_INT,
		.min = 1,
		.max = 1000,
		.dflt = 20,
		.has_default = true,
		.help = "How many changes to list."},
	{.name = "before",
		.type = FIELD_INT,
		.min = 0,
		.has_default = true,
		.help = "List changes older than this number; 0: from the newest."},
	{.name = "changes",
		.type = FIELD_BOOL,
		.has_default = true,
		.help = "Also list the paths of each change."},
	FIELD_END,
};

static const struct field entry_fields[] = {
	{.name = "seq", .type = FIELD_INT, .required = true, .help = "Number of the change."},
	{.name = "time", .type = FIELD_STRING, .required = true, .help = "When, RFC 3339."},
	{.name = "tool", .type = FIELD_STRING, .required = true, .help = "The tool that made it."},
	{.name = "call_id",
		.type = FIELD_STRING,
		.required = true,
		.help = "The call that made it."},
	{.name = "turn", .type = FIELD_STRING, .help = "The turn in which it was made."},
	{.name = "count",
		.type = FIELD_INT,
		.required = true,
		.help = "How many paths it touched."},
	{.name = "undoable",
		.type = FIELD_BOOL,
		.required = true,
		.help = "Whether it can be undone."},
	{.name = "undone",
		.type = FIELD_BOOL,
		.required = true,
		.help = "Whether it has been undone."},
	{.name = "checkpoint", .type = FIELD_STRING, .help = "Label, when this is a checkpoint."},
	{.name = "changes",
		.type = FIELD_ARRAY,
		.items = &(const struct field){.type = FIELD_OBJECT, .items = change_fields},
		.help = "The paths."},
	FIELD_END,
};

static const struct field result[] = {
	{.name = "entries",
		.type = FIELD_ARRAY,
		.items = &(const struct field){.type = FIELD_OBJECT, .items = entry_fields},
		.help = "Newest first."},
	{.name = "next_before",
		.type = FIELD_INT,
		.help = "Give this as `before` for the next page; absent at the end."},
	RESULT_COMMON,
};

struct page {
	struct tool_call *tc;
	struct err *err;
	unsigned limit, n;
	uint64_t last;
	bool more;
	int failed;
};

static int prepare(struct tool_call *tc, struct err *err)
{
	return tool_target(tc, ".", ACCESS_READ, 0, err);
}

static bool put_one_change(void *ctx, const struct change *c)
{
	struct buf *out = ctx;
	put_change(out, c);
	return true;
}

static bool put_entry(void *ctx, const struct history_entry *e)
{
	struct page *p = ctx;
	struct buf *out = tool_result(p->tc);
	if (p->n == p->limit) {
		p->more = true;
		return false;
	}
	p->n++;
	p->last = e->seq;
	jw_open(out, '{');
	jw_int(out, "seq", (int64_t)e->seq);
	jw_time_ms(out, "time", e->time_ms);
	jw_cstr(out, "tool", e->tool);
	jw_cstr(out, "call_id", e->call_id);
	if (e->turn[0])
		jw_cstr(out, "turn", e->turn);
	jw_int(out, "count", e->changes);
	jw_bool(out, "undoable", e->undoable);
	jw_bool(out, "undone", e->undone);
	if (e->checkpoint[0])
		jw_cstr(out, "checkpoint", e->checkpoint);
	if (tool_arg_bool(p->tc, "changes")) {
		jw_key(out, "changes");
		jw_open(out, '[');
		p->failed =
			history_changes(tool_workspace(p->tc), e->seq, put_one_change, out, p->err);
		jw_close(out, ']');
	}
	jw_close(out, '}');
	return p->failed == 0;
}

static int run(struct tool_call *tc, struct err *err)
{
	struct page p = {.tc = tc, .err = err, .limit = (unsigned)tool_arg_int(tc, "limit")};
	struct buf *out = tool_result(tc);
	jw_key(out, "entries");
	jw_open(out, '[');
	int r = history_list(tool_workspace(tc), (uint64_t)tool_arg_int(tc, "before"), p.limit + 1,
		put_entry, &p, err);
	jw_close(out, ']');
	if (p.more)
		jw_int(out, "next_before", (int64_t)p.last);
	return r < 0 ? r : p.failed;
}

const struct tool tool_history_list = {
	.name = "history_list",
	.title = "List changes",
	.description = "The changes made in this workspace, newest first, with what can be undone.",
	.group = GROUP_READ,
	.idempotent = true,
	.args = args,
	.result = result,
	.prepare = prepare,
	.run = run,
};
