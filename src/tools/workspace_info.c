/* workspace_info: usage, limits and mounts of the session's workspace. */
#include "tools/common.h"
#include "tools/tools.h"

static const struct field args[] = {FIELD_END};

static const struct field mount_fields[] = {
	{.name = "path", .type = FIELD_STRING, .required = true, .help = "Where it is seen."},
	{.name = "read_only",
		.type = FIELD_BOOL,
		.required = true,
		.help = "Whether it can only be read."},
	FIELD_END,
};

static const struct field result[] = {
	{.name = "root", .type = FIELD_STRING, .help = "Path under which the workspace is seen."},
	{.name = "session", .type = FIELD_STRING, .help = "Id of the session."},
	{.name = "bytes", .type = FIELD_INT, .help = "Bytes in use."},
	{.name = "bytes_limit", .type = FIELD_INT, .help = "Quota in bytes; 0: none."},
	{.name = "entries", .type = FIELD_INT, .help = "Files and directories in use."},
	{.name = "entries_limit", .type = FIELD_INT, .help = "Quota in entries; 0: none."},
	{.name = "history_bytes",
		.type = FIELD_INT,
		.help = "Bytes that the history holds for undo."},
	{.name = "seq", .type = FIELD_INT, .help = "Number of the last change."},
	{.name = "mounts",
		.type = FIELD_ARRAY,
		.items = &(const struct field){.type = FIELD_OBJECT, .items = mount_fields},
		.help = "The mount table."},
	{.name = "default_exclusions",
		.type = FIELD_ARRAY,
		.items = &(const struct field){.type = FIELD_STRING},
		.help = "Names that listing and search leave out unless asked."},
	{.name = "expires",
		.type = FIELD_INT,
		.help = "When the session expires, Unix time in seconds; 0: never."},
	{.name = "role", .type = FIELD_STRING, .help = "Role of the caller."},
	RESULT_COMMON,
};

static int prepare(struct tool_call *tc, struct err *err)
{
	return tool_target(tc, ".", ACCESS_READ, 0, err);
}

static void put_mounts(struct buf *out, const struct workspace *ws)
{
	jw_key(out, "mounts");
	jw_open(out, '[');
	for (unsigned i = 0; i < workspace_mounts(ws); i++) {
		jw_open(out, '{');
		jw_cstr(out, "path", workspace_mount_path(ws, i));
		jw_bool(out, "read_only", workspace_mount_read_only(ws, i));
		jw_close(out, '}');
	}
	jw_close(out, ']');
}

static void put_exclusions(struct buf *out, const char *const *exclude)
{
	jw_key(out, "default_exclusions");
	jw_open(out, '[');
	for (unsigned i = 0; exclude && exclude[i]; i++)
		jw_elem_str(out, str_of(exclude[i]));
	jw_close(out, ']');
}

static int run(struct tool_call *tc, struct err *err)
{
	struct workspace_usage u;
	struct buf *out = tool_result(tc);
	struct workspace *ws = tool_workspace(tc);
	int r = workspace_usage(ws, &u, err);
	if (r < 0)
		return r;
	jw_cstr(out, "root", workspace_mount_path(ws, 0));
	jw_cstr(out, "session", session_id(tool_session(tc)));
	jw_int(out, "bytes", u.bytes);
	jw_int(out, "bytes_limit", u.limit_bytes);
	jw_int(out, "entries", u.entries);
	jw_int(out, "entries_limit", u.limit_entries);
	jw_int(out, "history_bytes", u.history_bytes);
	jw_int(out, "seq", (int64_t)workspace_seq(ws));
	put_mounts(out, ws);
	put_exclusions(out, tool_env(tc)->exclude);
	jw_int(out, "expires", session_expires(tool_session(tc)));
	jw_cstr(out, "role", role_word(tool_principal(tc)->role));
	return 0;
}

const struct tool tool_workspace_info = {
	.name = "workspace_info",
	.title = "Workspace information",
	.description = "Usage and quota, mounts, default exclusions, expiry and the caller's role.",
	.group = GROUP_READ,
	.idempotent = true,
	.args = args,
	.result = result,
	.prepare = prepare,
	.run = run,
};
