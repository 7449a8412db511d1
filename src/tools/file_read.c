/* file_read: the content of a file, whole or in windows of lines or bytes; JSON and YAML also as
 * data. */
#include "tools/common.h"
#include "tools/tools.h"

#include "codec/json.h"
#include "workspace/text_read.h"

#include <errno.h>
#include <sys/mman.h>

static const struct field args[] = {
	ARG_PATH("File to read, relative to the workspace."),
	ARG_ENCODING("How the bytes are to be shown; base64 shows any file."),
	{.name = "offset",
		.type = FIELD_INT,
		.min = 1,
		.max = INT64_MAX,
		.help = "First line, from 1. With offset or limit the answer counts lines."},
	{.name = "limit", .type = FIELD_INT, .min = 1, .max = INT64_MAX, .help = "Most lines."},
	{.name = "byte_offset",
		.type = FIELD_INT,
		.min = 0,
		.max = INT64_MAX,
		.help = "First byte, from 0, instead of lines."},
	{.name = "byte_limit",
		.type = FIELD_INT,
		.min = 1,
		.max = INT64_MAX,
		.help = "Most bytes."},
	{.name = "max_size_mb",
		.type = FIELD_INT,
		.min = 1,
		.max = LIMIT_READ_MAX_MB,
		.help = "Refuse a larger file; default 10."},
	{.name = "data",
		.type = FIELD_BOOL,
		.dflt = 1,
		.has_default = true,
		.help = "Give a whole .json, .yaml or .yml file also as data."},
	FIELD_END,
};

static const struct field result[] = {
	{.name = "path", .type = FIELD_STRING, .help = "Path of the file in the workspace."},
	{.name = "content", .type = FIELD_STRING, .help = "The content, or the window of it."},
	{.name = "encoding", .type = FIELD_STRING, .help = "How the content is written here."},
	{.name = "size", .type = FIELD_INT, .help = "Bytes of the whole file."},
	{.name = "total_lines",
		.type = FIELD_INT,
		.help = "Lines of the whole file, when lines were counted."},
	{.name = "lines", .type = FIELD_INT, .help = "Lines in this window."},
	{.name = "next_offset",
		.type = FIELD_INT,
		.help = "Line or byte where the next window begins; absent at the end."},
	{.name = "data", .type = FIELD_ANY, .help = "The parsed value of a JSON or YAML file."},
	{.name = "data_error",
		.type = FIELD_STRING,
		.help = "Why a JSON or YAML file could not be parsed."},
	RESULT_COMMON,
};

enum { DATA_BYTES_MAX = 1024 * 1024 };

static int prepare(struct tool_call *tc, struct err *err)
{
	return tool_target(tc, tool_arg_str(tc, "path"), ACCESS_READ, 0, err);
}

static bool given(const struct tool_call *tc, const char *name)
{
	return arg_get(tool_args(tc), name) != NULL;
}

static int window_of(const struct tool_call *tc, struct text_window *ret, struct err *err)
{
	bool lines = given(tc, "offset") || given(tc, "limit");
	bool bytes = given(tc, "byte_offset") || given(tc, "byte_limit");
	int64_t max_mb = tool_arg_int(tc, "max_size_mb");
	if (lines && bytes)
		return err_set(err, ERR_INVALID_ARGUMENT,
			"a window counts lines (offset, limit) or bytes (byte_offset, byte_limit), "
			"not both");
	*ret = (struct text_window){.encoding = encoding_parse(tool_arg_str(tc, "encoding")),
		.by_line = lines,
		.offset = (uint64_t)tool_arg_int(tc, lines ? "offset" : "byte_offset"),
		.limit = (uint64_t)tool_arg_int(tc, lines ? "limit" : "byte_limit"),
		.max_bytes = UINT64_MAX,
		.max_file = max_mb ? max_mb * 1024 * 1024 : tool_env(tc)->read_limit_bytes};
	if (lines && ret->encoding == ENCODING_BASE64)
		return err_set(err, ERR_INVALID_ARGUMENT,
			"base64 has no lines; use byte_offset and byte_limit");
	return 0;
}

/* --- data
 * ------------------------------------------------------------------------------------------- */

enum data_kind { DATA_NONE, DATA_JSON, DATA_YAML };

static enum data_kind data_kind_of(const struct tool_call *tc, const struct node *n)
{
	struct str name = str_of(n->name);
	if (!tool_arg_bool(tc, "data") || n->st.st_size > DATA_BYTES_MAX || given(tc, "offset") ||
		given(tc, "limit") || given(tc, "byte_offset") || given(tc, "byte_limit"))
		return DATA_NONE;
	if (str_ends(name, STR(".json")))
		return DATA_JSON;
	return str_ends(name, STR(".yaml")) || str_ends(name, STR(".yml")) ? DATA_YAML : DATA_NONE;
}

static void put_data_error(struct tool_call *tc, const struct err *why)
{
	jw_cstr(tool_result(tc), "data_error", why->text);
}

/* A file that does not parse is still text: that is said beside the content, not instead of it. */
static int put_json_data(struct tool_call *tc, int fd, struct err *err)
{
	struct err why;
	_cleanup_(cleanup_json_decref) json_t *v = NULL;
	_cleanup_buf_ struct buf text = buf_init(DATA_BYTES_MAX + 65536);
	int r = read_whole(fd, &text, err);
	if (r < 0)
		return r;
	if (json_parse((struct str){buf_str(&text), text.len}, text.max, &v, &why) < 0)
		put_data_error(tc, &why);
	else
		jw_raw(tool_result(tc), "data", (struct str){text.data, text.len});
	return 0;
}

static int submit_yaml(struct tool_call *tc, int fd, struct err *err)
{
	struct worker_job job = {
		.kind = WORK_YAML, .yaml = {.content_fd = fd, .max_output = 4 * DATA_BYTES_MAX}};
	int r = tool_submit(tc, &job, err);
	return r < 0 ? r : TOOL_PENDING;
}

static int resume(struct tool_call *tc, struct worker_answer *answer, struct err *err)
{
	_cleanup_buf_ struct buf text = buf_init(4 * DATA_BYTES_MAX + 65536);
	_cleanup_(cleanup_json_decref) json_t *v = NULL;
	if (!answer) {
		put_data_error(tc, err);
		return TOOL_DONE;
	}
	int r = read_whole(answer->yaml.json_fd, &text, err);
	if (r < 0)
		return r;
	/* The worker's word is checked like anybody's before it becomes part of an answer. */
	if (json_parse((struct str){buf_str(&text), text.len}, text.max, &v, err) < 0)
		return err_wrap(err, "the worker's answer");
	jw_raw(tool_result(tc), "data", (struct str){text.data, text.len});
	return TOOL_DONE;
}

/* --- content
 * ---------------------------------------------------------------------------------------- */

static int put_content(struct tool_call *tc, const struct node *n, const struct text_window *w,
	int fd, struct err *err)
{
	struct text_read got;
	struct buf *out = tool_result(tc);
	jw_cstr(out, "path", n->resolved);
	jw_int(out, "size", n->st.st_size);
	jw_cstr(out, "encoding", tool_arg_str(tc, "encoding"));
	jw_key(out, "content");
	buf_putc(out, '"');
	int r = text_read(fd, n->st.st_size, w, out, &got, err);
	if (r < 0)
		return err_wrap(err, "'%s'", n->spelled);
	buf_putc(out, '"');
	if (w->by_line) {
		jw_int(out, "total_lines", (int64_t)got.total_lines);
		jw_int(out, "lines", (int64_t)got.lines);
	}
	if (got.next_offset)
		jw_int(out, "next_offset", (int64_t)got.next_offset);
	return 0;
}

static int run(struct tool_call *tc, struct err *err)
{
	struct text_window w;
	_cleanup_close_ int fd = -1;
	const struct node *n = tool_node(tc, 0);
	int r = need_file(n, err);
	if (r == 0)
		r = window_of(tc, &w, err);
	if (r == 0)
		r = view_open(tool_view(tc), n, &fd, err);
	if (r == 0)
		r = put_content(tc, n, &w, fd, err);
	if (r < 0)
		return r;
	switch (data_kind_of(tc, n)) {
	case DATA_JSON: return put_json_data(tc, fd, err);
	case DATA_YAML: return submit_yaml(tc, fd, err);
	case DATA_NONE: break;
	}
	return TOOL_DONE;
}

const struct tool tool_file_read = {
	.name = "file_read",
	.title = "Read a file",
	.description = "Read a file of the workspace, whole or in windows of lines or bytes.",
	.group = GROUP_READ,
	.idempotent = true,
	.args = args,
	.result = result,
	.prepare = prepare,
	.run = run,
	.resume = resume,
};
