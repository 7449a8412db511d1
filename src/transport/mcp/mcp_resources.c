/*
 * Files of the workspace as resources, and completion of their paths. Each is a call of a file
 * tool, decided and recorded like any other; only the form of its answer is another.
 *
 *     file:///workspace/src/a.c      percent-encoded; the path as agents spell it (name_escape())
 */
#include "codec/json.h"
#include "codec/json_write.h"
#include "transport/mcp/mcp_impl.h"

#define ROOT_URI "file:///workspace/"

enum { URI_MAX = 3 * LIMIT_PATH_BYTES + 64, PAGE = 500, VALUES_MAX = 100 };

static void put_uri(struct buf *b, const char *path)
{
	buf_puts(b, ROOT_URI);
	for (const unsigned char *p = (const unsigned char *)path; *p; p++)
		if ((*p >= '0' && *p <= '9') || ((*p | 0x20) >= 'a' && (*p | 0x20) <= 'z') ||
			strchr("-._~/", *p))
			buf_putc(b, (char)*p);
		else
			buf_printf(b, "%%%02X", *p);
}

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The path of one of our URIs; false when it is none. */
static bool path_of(const json_t *uri, struct buf *path)
{
	struct str s = {json_string_value(uri), json_string_length(uri)};
	if (!json_is_string(uri) || s.n > URI_MAX || !str_starts(s, STR(ROOT_URI)))
		return false;
	for (size_t i = sizeof(ROOT_URI) - 1; i < s.n; i++) {
		char c = s.p[i];
		if (c == '%') {
			if (s.n - i < 3 || hex(s.p[i + 1]) < 0 || hex(s.p[i + 2]) < 0)
				return false;
			c = (char)(hex(s.p[i + 1]) << 4 | hex(s.p[i + 2]));
			i += 2;
		}
		if (c == '\0' || c == '?' || c == '#')
			return false;
		buf_putc(path, c);
	}
	return path->len > 0 && utf8_valid(path->data, path->len);
}

/* --- failures --------------------------------------------------------------------------------- */

/* A resource that is not there; data names it. */
static void not_found(struct mcp *m, const json_t *id, const char *uri)
{
	_cleanup_buf_ struct buf data = buf_init(6 * URI_MAX);
	buf_putc(&data, '{');
	jw_str(&data, "uri", (struct str){uri, utf8_floor(uri, MIN(strlen(uri), (size_t)URI_MAX))});
	buf_putc(&data, '}');
	mcp_put_error(m, id, m->era == MCP_MODERN ? RPC_INVALID_PARAMS : RPC_RESOURCE_NOT_FOUND,
		"Resource not found", buf_str(&data));
}

/* A refused or failed call as the error of a request that is not a tool call. */
static void call_failed(struct flight *f, const json_t *answer)
{
	const json_t *e = json_object_get(answer, "error");
	const char *name = json_string_value(json_object_get(e, "code")),
		   *text = json_string_value(json_object_get(e, "message"));
	enum err_code code = name ? err_from_name(name) : ERR_OK;
	if (f->note && (code == ERR_NOT_FOUND || code == ERR_IS_DIRECTORY))
		not_found(f->m, f->id, f->note);
	else
		mcp_put_error(f->m, f->id,
			err_info(code)->rpc == RPC_INVALID_PARAMS ? RPC_INVALID_PARAMS
								  : RPC_INTERNAL_ERROR,
			text ? text : "the call failed", NULL);
}

static json_t *answer_of(struct flight *f, struct str json, bool failed)
{
	struct err err;
	json_t *v = NULL;
	if (json_parse(json, json.n, &v, &err) < 0) {
		mcp_put_error(f->m, f->id, RPC_INTERNAL_ERROR, err.text, NULL);
		return NULL;
	}
	if (!failed)
		return v;
	call_failed(f, v);
	json_decref(v);
	return NULL;
}

/* --- reading ---------------------------------------------------------------------------------- */

/* By the name; NULL: it does not tell. */
static const char *media_type(const char *uri)
{
	static const char *const types[][2] = {{".json", "application/json"},
		{".md", "text/markdown"}, {".html", "text/html"}, {".csv", "text/csv"},
		{".png", "image/png"}, {".jpg", "image/jpeg"}, {".svg", "image/svg+xml"},
		{".pdf", "application/pdf"}};
	for (unsigned i = 0; i < ARRAY_LEN(types); i++)
		if (str_ends(str_of(uri), str_of(types[i][0])))
			return types[i][1];
	return NULL;
}

static bool is_encoding_error(struct str json)
{
	return memmem(json.p, json.n, "\"code\":\"encoding_error\"", 23) != NULL;
}

static void read_file(struct mcp *m, struct flight *f, const struct rpc_message *msg,
	const char *path, const char *encoding, flight_finish_fn finish, char *note)
{
	_cleanup_(cleanup_json_decref) json_t *args =
		json_pack("{s:s,s:s,s:b}", "path", path, "encoding", encoding, "data", 0);
	if (f)
		mcp_call_next(f, "file_read", args);
	else
		mcp_call(m, msg, "file_read", args, finish, note);
}

/* Bytes that are no text are read a second time, as base64. */
static bool finish_read(struct flight *f, struct str json, bool failed)
{
	_cleanup_(cleanup_json_decref) json_t *v = NULL;
	_cleanup_buf_ struct buf path = buf_init(LIMIT_PATH_BYTES * 4);
	struct mcp *m = f->m;
	size_t from = m->out.len;
	if (failed && is_encoding_error(json)) {
		_cleanup_(cleanup_json_decref) json_t *uri = json_string(f->note);
		if (uri && path_of(uri, &path)) {
			read_file(m, f, NULL, buf_str(&path), "base64", NULL, NULL);
			return false;
		}
	}
	v = answer_of(f, json, failed);
	if (!v)
		return true;
	const char *encoding = json_string_value(json_object_get(v, "encoding"));
	const json_t *content = json_object_get(v, "content");
	bool text = !encoding || strcmp(encoding, "base64") != 0;
	rpc_result_open(&m->out, f->id);
	buf_puts(&m->out, "{\"contents\":[{");
	jw_cstr(&m->out, "uri", f->note);
	const char *type = media_type(f->note);
	jw_cstr(&m->out, "mimeType",
		type   ? type
		: text ? "text/plain"
		       : "application/octet-stream");
	jw_str(&m->out, text ? "text" : "blob",
		(struct str){json_string_value(content), json_string_length(content)});
	buf_puts(&m->out, "}]");
	mcp_put_caching(m, 0);
	mcp_end_result(m, f->id, from);
	return true;
}

void mcp_resources_read(struct mcp *m, const struct rpc_message *msg)
{
	_cleanup_buf_ struct buf path = buf_init(LIMIT_PATH_BYTES * 4);
	const json_t *uri = json_object_get(msg->params, "uri");
	if (!json_is_string(uri))
		mcp_invalid_params(m, msg, "Invalid params: resources/read needs uri, a string");
	else if (!path_of(uri, &path))
		not_found(m, msg->id, json_string_value(uri));
	else
		read_file(m, NULL, msg, buf_str(&path), "utf-8", finish_read,
			strdup(json_string_value(uri)));
}

/* --- listing ---------------------------------------------------------------------------------- */

static void put_resource(struct buf *b, const json_t *e)
{
	_cleanup_buf_ struct buf uri = buf_init(URI_MAX);
	const char *path = json_string_value(json_object_get(e, "path")),
		   *type = json_string_value(json_object_get(e, "type"));
	const json_t *size = json_object_get(e, "size");
	if (!path || !type || strcmp(type, "file") != 0)
		return;
	put_uri(&uri, path);
	jw_open(b, '{');
	jw_cstr(b, "uri", buf_str(&uri));
	jw_cstr(b, "name", path);
	if (media_type(path))
		jw_cstr(b, "mimeType", media_type(path));
	if (json_is_integer(size))
		jw_int(b, "size", json_integer_value(size));
	jw_close(b, '}');
}

static bool finish_list(struct flight *f, struct str json, bool failed)
{
	_cleanup_(cleanup_json_decref) json_t *v = answer_of(f, json, failed);
	struct mcp *m = f->m;
	size_t from = m->out.len, i;
	const json_t *e;
	if (!v)
		return true;
	rpc_result_open(&m->out, f->id);
	buf_puts(&m->out, "{\"resources\":[");
	json_array_foreach(json_object_get(v, "entries"), i, e) put_resource(&m->out, e);
	buf_putc(&m->out, ']');
	const json_t *next = json_object_get(v, "next_offset");
	if (json_is_integer(next)) {
		char cursor[40];
		(void)snprintf(
			cursor, sizeof(cursor), "at.%lld", (long long)json_integer_value(next));
		jw_cstr(&m->out, "nextCursor", cursor);
	}
	mcp_put_caching(m, 0);
	mcp_end_result(m, f->id, from);
	return true;
}

static int64_t offset_of(const json_t *cursor)
{
	const char *s = json_string_value(cursor);
	if (!cursor)
		return 0;
	if (!s || strlen(s) != json_string_length(cursor) || strncmp(s, "at.", 3) != 0 ||
		strlen(s) > 20 || s[3] == '\0' || strspn(s + 3, "0123456789") != strlen(s + 3))
		return -1;
	return strtoll(s + 3, NULL, 10);
}

void mcp_resources_list(struct mcp *m, const struct rpc_message *msg)
{
	int64_t from = offset_of(json_object_get(msg->params, "cursor"));
	if (from < 0) {
		mcp_invalid_params(
			m, msg, "Invalid params: cursor is not one that resources/list gave");
		return;
	}
	_cleanup_(cleanup_json_decref) json_t *args = json_pack("{s:b,s:b,s:i,s:I}", "recursive", 1,
		"details", 1, "limit", PAGE, "offset", (json_int_t)from);
	mcp_call(m, msg, "file_list", args, finish_list, NULL);
}

void mcp_resource_templates(struct mcp *m, const struct rpc_message *msg)
{
	size_t from = m->out.len;
	rpc_result_open(&m->out, msg->id);
	buf_puts(&m->out, "{\"resourceTemplates\":[{\"uriTemplate\":\"" ROOT_URI "{+path}\","
			  "\"name\":\"file\",\"title\":\"A file of the workspace\"}]");
	mcp_put_caching(m, MCP_TTL_MS);
	mcp_end_result(m, msg->id, from);
}

/* --- completion ------------------------------------------------------------------------------- */

/* The directory part of what was typed, with its slash. */
static size_t dir_length(const char *typed)
{
	const char *slash = strrchr(typed, '/');
	return slash ? (size_t)(slash - typed) + 1 : 0;
}

static void put_values(struct mcp *m, const char *typed, const json_t *entries)
{
	size_t dir = dir_length(typed), i, n = 0;
	const json_t *e;
	jw_key(&m->out, "values");
	jw_open(&m->out, '[');
	json_array_foreach((json_t *)(uintptr_t)entries, i, e)
	{
		const char *name = json_string_value(json_object_get(e, "name")),
			   *type = json_string_value(json_object_get(e, "type"));
		_cleanup_buf_ struct buf b = buf_init(8 * LIMIT_PATH_BYTES);
		if (!name || !type || strncmp(name, typed + dir, strlen(typed + dir)) != 0)
			continue;
		if (n++ >= VALUES_MAX)
			continue;
		buf_put(&b, typed, dir);
		buf_puts(&b, name);
		if (strcmp(type, "directory") == 0)
			buf_putc(&b, '/');
		jw_elem_str(&m->out, (struct str){buf_str(&b), b.len});
	}
	jw_close(&m->out, ']');
	jw_int(&m->out, "total", (int64_t)n);
	jw_bool(&m->out, "hasMore", n > VALUES_MAX);
}

static void answer_completion(
	struct mcp *m, const json_t *id, const char *typed, const json_t *entries)
{
	size_t from = m->out.len;
	rpc_result_open(&m->out, id);
	buf_putc(&m->out, '{');
	jw_key(&m->out, "completion");
	jw_open(&m->out, '{');
	put_values(m, typed, entries);
	jw_close(&m->out, '}');
	mcp_end_result(m, id, from);
}

/* What cannot be listed completes to nothing. */
static bool finish_complete(struct flight *f, struct str json, bool failed)
{
	_cleanup_(cleanup_json_decref) json_t *v = NULL;
	struct err err;
	if (failed || json_parse(json, json.n, &v, &err) < 0)
		v = NULL;
	answer_completion(f->m, f->id, f->note, json_object_get(v, "entries"));
	return true;
}

static void complete_path(struct mcp *m, const struct rpc_message *msg, const char *typed)
{
	char dir[LIMIT_PATH_BYTES];
	size_t n = dir_length(typed);
	if (strlen(typed) >= sizeof(dir)) {
		mcp_invalid_params(m, msg, "Invalid params: the value is longer than a path");
		return;
	}
	(void)snprintf(dir, sizeof(dir), "%.*s", (int)n, typed);
	_cleanup_(cleanup_json_decref) json_t *args =
		json_pack("{s:s,s:i}", "path", n ? dir : ".", "limit", LIMIT_LIST_PAGE);
	mcp_call(m, msg, "file_list", args, finish_complete, strdup(typed));
}

void mcp_complete(struct mcp *m, const struct rpc_message *msg)
{
	const json_t *ref = json_object_get(msg->params, "ref"),
		     *argument = json_object_get(msg->params, "argument"),
		     *value = json_object_get(argument, "value");
	const char *type = json_string_value(json_object_get(ref, "type")),
		   *uri = json_string_value(json_object_get(ref, "uri")),
		   *name = json_string_value(json_object_get(argument, "name")),
		   *typed = json_string_value(value);
	if (!type || !name || !typed || strlen(typed) != json_string_length(value))
		mcp_invalid_params(m, msg,
			"Invalid params: completion/complete needs ref and argument, with name and "
			"value");
	else if (strcmp(type, "ref/resource") == 0 && uri && strcmp(uri, ROOT_URI "{+path}") == 0 &&
		 strcmp(name, "path") == 0)
		complete_path(m, msg, typed);
	else
		answer_completion(m, msg->id, "", NULL);
}
