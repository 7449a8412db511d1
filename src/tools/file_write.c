/* file_write: make, replace or extend one file. */
#include "tools/common.h"
#include "tools/tools.h"

static const char *const modes[] = {"overwrite", "append", "create", NULL};

static const struct field args[] = {
	ARG_PATH("File to write, relative to the workspace."),
	{.name = "content",
		.type = FIELD_STRING,
		.required = true,
		.nul_ok = true,
		.max = LIMIT_REQUEST_BYTES,
		.help = "What to write."},
	{.name = "mode",
		.type = FIELD_ENUM,
		.words = modes,
		.dflt_str = "overwrite",
		.help = "overwrite replaces, append adds at the end, create refuses a file that is "
			"there."},
	ARG_ENCODING("How the content is to be understood; base64 for bytes."),
	{.name = "create_dirs",
		.type = FIELD_BOOL,
		.has_default = true,
		.help = "Make missing directories above the file."},
	ARG_EXPECTED_HASH,
	ARG_DRY_RUN,
	FIELD_END,
};

static const struct field result[] = {
	{.name = "path", .type = FIELD_STRING, .help = "Path of the file in the workspace."},
	{.name = "bytes_written", .type = FIELD_INT, .help = "Bytes that this call brought."},
	{.name = "size", .type = FIELD_INT, .help = "Size of the file afterwards."},
	{.name = "created", .type = FIELD_BOOL, .help = "Whether the file is new."},
	RESULT_CHANGES,
};

static int prepare(struct tool_call *tc, struct err *err)
{
	unsigned flags = tool_arg_bool(tc, "create_dirs") ? RESOLVE_PARENTS_MAY_LACK : 0;
	return tool_target(tc, tool_arg_str(tc, "path"), ACCESS_WRITE, flags, err);
}

static int put(struct tool_call *tc, const struct node *n, struct staged *take, const char *mode,
	struct err *err)
{
	struct sha256 store;
	const struct sha256 *must;
	int r = expected_hash(tc, &store, &must, err);
	if (r < 0) {
		staged_free(take);
		return r;
	}
	if (strcmp(mode, "append") == 0 && n->kind == NODE_FILE)
		return view_append(tool_view(tc), n, take, must, err);
	unsigned how = PUT_UMASKED | (strcmp(mode, "create") == 0 ? PUT_CREATE : PUT_EITHER);
	if (tool_arg_bool(tc, "create_dirs"))
		how |= PUT_PARENTS;
	return view_put(tool_view(tc), n, take, (enum put_how)how, 0644, must, err);
}

static int run(struct tool_call *tc, struct err *err)
{
	const struct node *n = tool_node(tc, 0);
	const json_t *content = arg_get(tool_args(tc), "content");
	_cleanup_(cleanup_staged_free) struct staged *s = NULL;
	int r = n->kind == NODE_ABSENT ? 0 : need_file(n, err);
	if (r == 0)
		r = staged_new(tool_view(tc), n->mount, &s, err);
	if (r == 0)
		r = stage_text(s,
			(struct str){json_string_value(content), json_string_length(content)},
			tool_arg_str(tc, "encoding"), err);
	if (r < 0)
		return r;
	struct buf *out = tool_result(tc);
	jw_cstr(out, "path", n->resolved);
	jw_int(out, "bytes_written", staged_size(s));
	jw_bool(out, "created", n->kind == NODE_ABSENT);
	return put(tc, n, take_ptr(s), tool_arg_str(tc, "mode"), err);
}

/* The size comes from the change set, which knows it also for an append. */
static int report(struct tool_call *tc, const struct changeset *cs, struct err *err _unused_)
{
	for (unsigned i = 0; i < changeset_count(cs); i++)
		if (!changeset_get(cs, i)->is_dir)
			jw_int(tool_result(tc), "size", changeset_get(cs, i)->size_after);
	return 0;
}

const struct tool tool_file_write = {
	.name = "file_write",
	.title = "Write a file",
	.description = "Make, replace or extend a file in the workspace, atomically and within the "
		       "quota. Every change can be undone.",
	.group = GROUP_WRITE,
	.destructive = true,
	.idempotent = false,
	.args = args,
	.result = result,
	.prepare = prepare,
	.run = run,
	.report = report,
};
