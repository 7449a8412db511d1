/* file_info: what is known about one name, without reading its content unless the hash is asked
 * for. */
#include "tools/common.h"
#include "tools/tools.h"

#include <errno.h>

static const struct field args[] = {
	ARG_PATH("File or directory, relative to the workspace."),
	{.name = "hash",
		.type = FIELD_BOOL,
		.has_default = true,
		.help = "Also give the SHA-256 of a file's content, for expected_hash."},
	FIELD_END,
};

static const struct field result[] = {
	{.name = "path",
		.type = FIELD_STRING,
		.help = "Path in the workspace, links resolved in all but the last component."},
	{.name = "type", .type = FIELD_STRING, .help = "file, directory, link or other."},
	{.name = "size", .type = FIELD_INT, .help = "Bytes, for files."},
	{.name = "modified", .type = FIELD_STRING, .help = "Time of the last change, RFC 3339."},
	{.name = "mode", .type = FIELD_STRING, .help = "Permission bits in octal."},
	{.name = "links", .type = FIELD_INT, .help = "How many names the file has."},
	{.name = "target", .type = FIELD_STRING, .help = "Where a symbolic link points."},
	{.name = "read_only",
		.type = FIELD_BOOL,
		.help = "Whether this part of the workspace is read-only."},
	{.name = "hash", .type = FIELD_STRING, .help = "SHA-256 of the content."},
	RESULT_COMMON,
};

static int prepare(struct tool_call *tc, struct err *err)
{
	return tool_target(tc, tool_arg_str(tc, "path"), ACCESS_READ, RESOLVE_NOFOLLOW, err);
}

static int put_hash(struct tool_call *tc, const struct node *n, struct err *err)
{
	char hex[SHA256_HEX + 1];
	struct sha256 h;
	_cleanup_close_ int fd = -1;
	int r = view_open(tool_view(tc), n, &fd, err);
	if (r == 0)
		r = hash_fd(tc, fd, &h, err);
	if (r < 0)
		return r;
	sha256_hex(&h, hex);
	jw_cstr(tool_result(tc), "hash", hex);
	return 0;
}

static int put_target(struct tool_call *tc, const struct node *n, struct err *err)
{
	_cleanup_free_ char *target = NULL;
	int r = view_readlink(tool_view(tc), n, &target, err);
	if (r == 0)
		jw_name(tool_result(tc), "target", str_of(target));
	return r;
}

static int run(struct tool_call *tc, struct err *err)
{
	const struct node *n = tool_node(tc, 0);
	struct buf *out = tool_result(tc);
	int r = need_present(n, err);
	if (r < 0)
		return r;
	jw_cstr(out, "path", n->resolved);
	jw_cstr(out, "type", node_kind_word(n->kind));
	if (n->kind == NODE_FILE)
		jw_int(out, "size", n->st.st_size);
	jw_time_ms(out, "modified",
		(int64_t)n->st.st_mtim.tv_sec * 1000 + n->st.st_mtim.tv_nsec / 1000000);
	char mode[8];
	(void)snprintf(mode, sizeof(mode), "%04o", n->st.st_mode & 07777);
	jw_cstr(out, "mode", mode);
	jw_int(out, "links", (int64_t)n->st.st_nlink);
	jw_bool(out, "read_only", n->read_only);
	if (n->kind == NODE_LINK)
		return put_target(tc, n, err);
	if (n->kind == NODE_FILE && tool_arg_bool(tc, "hash"))
		return put_hash(tc, n, err);
	return 0;
}

const struct tool tool_file_info = {
	.name = "file_info",
	.title = "File information",
	.description = "Type, size, time, mode and (on request) SHA-256 of a file or directory.",
	.group = GROUP_READ,
	.idempotent = true,
	.args = args,
	.result = result,
	.prepare = prepare,
	.run = run,
};
