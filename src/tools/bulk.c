/* Files as descriptors: see bulk.h. */
#include "tools/bulk.h"

#include "tools/common.h"

/* --- file_read -------------------------------------------------------------------------------- */

static const struct field read_args[] = {
	ARG_PATH("File to read, relative to the workspace."),
	FIELD_END,
};

static const struct field read_result[] = {
	{.name = "path", .type = FIELD_STRING, .help = "Path of the file in the workspace."},
	{.name = "size", .type = FIELD_INT, .help = "Bytes of the file."},
	{.name = "modified", .type = FIELD_INT, .help = "Unix time of its last change."},
	RESULT_COMMON,
};

static int read_prepare(struct tool_call *tc, struct err *err)
{
	return tool_target(tc, tool_arg_str(tc, "path"), ACCESS_READ, 0, err);
}

static int read_run(struct tool_call *tc, struct err *err)
{
	const struct node *n = tool_node(tc, 0);
	int fd = -1, r = need_file(n, err);
	if (r == 0)
		r = view_open(tool_view(tc), n, &fd, err);
	if (r < 0)
		return r;
	jw_cstr(tool_result(tc), "path", n->resolved);
	jw_int(tool_result(tc), "size", n->st.st_size);
	jw_int(tool_result(tc), "modified", n->st.st_mtim.tv_sec);
	tool_give_file(tc, fd);
	return 0;
}

static const struct tool bulk_read = {
	.name = "file_read",
	.title = "Read a file",
	.description = "Read a file of the workspace as it is.",
	.group = GROUP_READ,
	.idempotent = true,
	.args = read_args,
	.result = read_result,
	.prepare = read_prepare,
	.run = read_run,
};

/* --- file_write ------------------------------------------------------------------------------- */

static const struct field write_args[] = {
	ARG_PATH("File to write, relative to the workspace."),
	{.name = "create_parents",
		.type = FIELD_BOOL,
		.has_default = true,
		.help = "Make missing directories above the file."},
	{.name = "overwrite",
		.type = FIELD_BOOL,
		.has_default = true,
		.dflt = 1,
		.help = "Replace a file that is there."},
	ARG_EXPECTED_HASH,
	FIELD_END,
};

static const struct field write_result[] = {
	{.name = "path", .type = FIELD_STRING, .help = "Path of the file in the workspace."},
	{.name = "bytes_written", .type = FIELD_INT, .help = "Bytes that this call brought."},
	{.name = "created", .type = FIELD_BOOL, .help = "Whether the file is new."},
	RESULT_CHANGES,
};

static int write_prepare(struct tool_call *tc, struct err *err)
{
	unsigned flags = tool_arg_bool(tc, "create_parents") ? RESOLVE_PARENTS_MAY_LACK : 0;
	return tool_target(tc, tool_arg_str(tc, "path"), ACCESS_WRITE, flags, err);
}

static int stage_content(
	struct tool_call *tc, const struct node *n, struct staged **ret, struct err *err)
{
	int64_t size = 0;
	int fd = tool_content(tc, &size);
	_cleanup_(cleanup_staged_free) struct staged *s = NULL;
	if (fd < 0)
		return err_set(err, ERR_INVALID_ARGUMENT, "there is no content to write");
	int r = staged_new(tool_view(tc), n->mount, &s, err);
	if (r == 0)
		r = staged_copy(s, fd, 0, size, err);
	if (r == 0)
		*ret = take_ptr(s);
	return r;
}

static int write_run(struct tool_call *tc, struct err *err)
{
	const struct node *n = tool_node(tc, 0);
	struct staged *s = NULL;
	struct sha256 store;
	const struct sha256 *must;
	unsigned how = tool_arg_bool(tc, "overwrite") ? PUT_EITHER : PUT_CREATE;
	int r;
	if ((n->kind != NODE_ABSENT && (r = need_file(n, err)) < 0) ||
		(r = expected_hash(tc, &store, &must, err)) < 0 ||
		(r = stage_content(tc, n, &s, err)) < 0)
		return r;
	jw_cstr(tool_result(tc), "path", n->resolved);
	jw_int(tool_result(tc), "bytes_written", staged_size(s));
	jw_bool(tool_result(tc), "created", n->kind == NODE_ABSENT);
	if (tool_arg_bool(tc, "create_parents"))
		how |= PUT_PARENTS;
	return view_put(tool_view(tc), n, s, (enum put_how)how, 0644, must, err);
}

static const struct tool bulk_write = {
	.name = "file_write",
	.title = "Write a file",
	.description = "Make or replace a file of the workspace from a stream.",
	.group = GROUP_WRITE,
	.destructive = true,
	.args = write_args,
	.result = write_result,
	.prepare = write_prepare,
	.run = write_run,
};

const struct tool *const tools_bulk[] = {&bulk_read, &bulk_write, NULL};
