/* file_move: rename a file or directory. */
#include "tools/common.h"
#include "tools/tools.h"

static const struct field args[] = {
	{.name = "from",
		.type = FIELD_STRING,
		.required = true,
		.min = 1,
		.max = LIMIT_PATH_BYTES,
		.help = "What to move."},
	{.name = "to",
		.type = FIELD_STRING,
		.required = true,
		.min = 1,
		.max = LIMIT_PATH_BYTES,
		.help = "Its new path; an existing directory takes it inside."},
	{.name = "replace",
		.type = FIELD_BOOL,
		.has_default = true,
		.help = "Replace a file that is in the way."},
	{.name = "create_dirs",
		.type = FIELD_BOOL,
		.has_default = true,
		.help = "Make missing directories above the new path."},
	ARG_DRY_RUN,
	FIELD_END,
};

static const struct field result[] = {
	{.name = "from", .type = FIELD_STRING, .help = "Where it was."},
	{.name = "to", .type = FIELD_STRING, .help = "Where it is."},
	RESULT_CHANGES,
};

static int prepare(struct tool_call *tc, struct err *err)
{
	unsigned flags = tool_arg_bool(tc, "create_dirs") ? RESOLVE_PARENTS_MAY_LACK : 0;
	int r = tool_target(tc, tool_arg_str(tc, "from"), ACCESS_DELETE, RESOLVE_NOFOLLOW, err);
	return r < 0 ? r
		     : tool_target(tc, tool_arg_str(tc, "to"), ACCESS_WRITE,
			       flags | RESOLVE_NOFOLLOW, err);
}

/* A path below a mount as an absolute agent path, resolved in the call's view as it is now. */
static int resolve_below(struct tool_call *tc, unsigned mount, const char *dir, const char *name,
	struct node *ret, struct err *err)
{
	_cleanup_buf_ struct buf path = buf_init(2 * LIMIT_PATH_BYTES);
	buf_printf(&path, "%s/%s%s%s", workspace_mount_path(tool_workspace(tc), mount), dir,
		dir[0] && name[0] ? "/" : "", name);
	int r = buf_check(&path, "the new path", err);
	return r < 0 ? r
		     : view_resolve(tool_view(tc), (struct str){buf_str(&path), path.len},
			       RESOLVE_NOFOLLOW, ret, err);
}

static int move(
	struct tool_call *tc, const struct node *from, const struct node *to, struct err *err)
{
	if (to->kind != NODE_ABSENT && !tool_arg_bool(tc, "replace")) {
		(void)err_set(err, ERR_EXISTS, "'%s' is already there", to->spelled);
		return err_hint(err, "set replace to true to replace it");
	}
	int r = view_rename(tool_view(tc), from, to, tool_arg_bool(tc, "replace"), err);
	if (r < 0)
		return r;
	jw_cstr(tool_result(tc), "from", from->resolved);
	jw_cstr(tool_result(tc), "to", to->resolved);
	return 0;
}

static int run(struct tool_call *tc, struct err *err)
{
	const struct node *from = tool_node(tc, 0), *to = tool_node(tc, 1);
	_cleanup_node_ struct node now = {.fd = -1};
	int r = need_present(from, err);
	if (r < 0)
		return r;
	if (to->kind == NODE_DIR)
		r = resolve_below(tc, to->mount, to->path, from->name, &now, err);
	else if (!to->lacks_parent)
		return move(tc, from, to, err);
	else if ((r = make_parents(tc, to, err)) == 0)
		r = resolve_below(tc, to->mount, to->path, "", &now, err);
	return r < 0 ? r : move(tc, from, &now, err);
}

const struct tool tool_file_move = {
	.name = "file_move",
	.title = "Move or rename",
	.description = "Move or rename a file or directory inside the workspace, atomically.",
	.group = GROUP_WRITE,
	.destructive = true,
	.idempotent = false,
	.args = args,
	.result = result,
	.prepare = prepare,
	.run = run,
};
