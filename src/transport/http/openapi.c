/*
 * /openapi.json, made from routes.def, the field tables and the table of tools (OpenAPI 3.1, whose
 * schemas are JSON Schema 2020-12). There is no second description of anything here.
 */
#include "codec/json.h"
#include "transport/http/api_impl.h"

enum { OPENAPI_MAX = 8 * 1024 * 1024 };

/* An object schema, but for its braces of `$schema`, is what fields_schema() writes. */
static void put_schema(struct buf *b, const char *key, const struct field *table)
{
	jw_key(b, key);
	fields_schema(table, false, b);
}

static void put_ref(struct buf *b, const char *name)
{
	jw_open(b, '{');
	buf_printf(b, "\"$ref\":\"#/components/responses/%s\"", name);
	jw_close(b, '}');
}

static void put_responses(struct buf *b, const struct route *r, const json_t *output)
{
	char status[8];
	jw_key(b, "responses");
	jw_open(b, '{');
	(void)snprintf(status, sizeof(status), "%u", r->status);
	jw_key(b, status);
	jw_open(b, '{');
	jw_cstr(b, "description", "It was done.");
	if (output) {
		_cleanup_free_ char *text = json_dumps(output, JSON_COMPACT);
		jw_key(b, "content");
		buf_puts(b, "{\"application/json\":{\"schema\":");
		buf_puts(b, text ? text : "{}");
		buf_puts(b, "}}");
	}
	jw_close(b, '}');
	jw_key(b, "default");
	put_ref(b, "error");
	jw_close(b, '}');
}

static void put_parameter(struct buf *b, struct str name, const char *in, const struct field *f)
{
	jw_comma(b);
	buf_putc(b, '{');
	jw_str(b, "name", name);
	jw_cstr(b, "in", in);
	jw_bool(b, "required", !f);
	if (f)
		jw_cstr(b, "description", f->help);
	jw_key(b, "schema");
	jw_open(b, '{');
	jw_cstr(b, "type",
		f && f->type == FIELD_INT    ? "integer"
		: f && f->type == FIELD_BOOL ? "boolean"
					     : "string");
	if (f && f->type == FIELD_INT) {
		jw_int(b, "minimum", f->min);
		if (f->max)
			jw_int(b, "maximum", f->max);
	} else if (f && f->max) {
		jw_int(b, "maxLength", f->max);
	}
	jw_close(b, '}');
	jw_close(b, '}');
}

static void put_parameters(struct buf *b, const struct route *r, bool has_tool)
{
	jw_key(b, "parameters");
	jw_open(b, '[');
	for (const char *p = strchr(r->pattern, '{'); p; p = strchr(p + 1, '{')) {
		struct str name = {p + 1, strcspn(p + 1, "}")};
		if (!has_tool || !str_eq(name, STR("tool")))
			put_parameter(b, name, "path", NULL);
	}
	for (const struct field *f = r->query; f->name; f++)
		put_parameter(b, str_of(f->name), "query", f);
	jw_close(b, ']');
}

static void put_body(struct buf *b, const struct route *r, const json_t *input)
{
	if (r->op == DOOR_UPLOAD) {
		jw_key(b, "requestBody");
		buf_puts(b, "{\"required\":true,\"content\":{\"application/octet-stream\":{}}}");
		return;
	}
	if (r->body == api_body_none)
		return;
	jw_key(b, "requestBody");
	buf_puts(b, "{\"required\":true,\"content\":{\"application/json\":");
	jw_open(b, '{');
	if (input) {
		_cleanup_free_ char *text = json_dumps(input, JSON_COMPACT);
		jw_raw(b, "schema", str_of(text ? text : "{}"));
	} else {
		put_schema(b, "schema", r->body);
	}
	jw_close(b, '}');
	buf_puts(b, "}}");
}

static void put_operation(struct buf *b, const struct route *r, const char *id, const json_t *tool)
{
	const char *method = http_method_name(r->method);
	char lower[8] = "";
	for (unsigned i = 0; method[i] && i < sizeof(lower) - 1; i++)
		lower[i] = (char)(method[i] | 0x20);
	jw_key(b, lower);
	jw_open(b, '{');
	jw_cstr(b, "operationId", id);
	jw_cstr(b, "summary",
		tool ? json_string_value(json_object_get(tool, "description")) : r->summary);
	if (!(door_op_info(r->op)->needs & DOOR_AUTH)) {
		jw_key(b, "security");
		buf_puts(b, "[]");
	}
	put_parameters(b, r, tool != NULL);
	put_body(b, r, json_object_get(tool, "inputSchema"));
	put_responses(b, r, json_object_get(tool, "outputSchema"));
	jw_close(b, '}');
}

/* A tool is a resource of its own here, since its arguments have a schema of their own. */
static void put_tools(struct buf *b, const struct route *r, const json_t *tools)
{
	static const char before[] = "/api/v1/sessions/{session}/tools/";
	size_t i;
	const json_t *t;
	json_array_foreach((json_t *)(uintptr_t)tools, i, t)
	{
		const char *name = json_string_value(json_object_get(t, "name"));
		char path[256];
		if (!name)
			continue;
		(void)snprintf(path, sizeof(path), "%s%.64s/execute", before, name);
		jw_key(b, path);
		jw_open(b, '{');
		put_operation(b, r, name, t);
		jw_close(b, '}');
	}
}

/* MCP and OAuth describe themselves in their own ways. */
static bool described(const struct route *r)
{
	return strncmp(r->pattern, "/mcp", 4) != 0 && strncmp(r->pattern, "/.", 2) != 0;
}

static void put_paths(struct buf *b, const json_t *tools)
{
	jw_key(b, "paths");
	jw_open(b, '{');
	for (unsigned i = 0; i < n_routes; i++) {
		const struct route *r = &routes[i];
		bool first = described(r);
		char id[96];
		for (unsigned k = 0; k < i; k++)
			first &= strcmp(routes[k].pattern, r->pattern) != 0;
		if (r->body == api_body_tool)
			put_tools(b, r, tools);
		if (!first || r->body == api_body_tool)
			continue;
		jw_key(b, r->pattern);
		jw_open(b, '{');
		for (unsigned k = i; k < n_routes; k++) {
			if (strcmp(routes[k].pattern, r->pattern) != 0)
				continue;
			(void)snprintf(id, sizeof(id), "%s_%u", routes[k].name, k);
			put_operation(b, &routes[k], id, NULL);
		}
		jw_close(b, '}');
	}
	jw_close(b, '}');
}

static void put_components(struct buf *b)
{
	jw_key(b, "components");
	buf_puts(b,
		"{\"securitySchemes\":{\"token\":{\"type\":\"http\",\"scheme\":\"bearer\"}},"
		"\"responses\":{\"error\":{\"description\":\"It was refused or failed; nothing "
		"was changed unless the call says so.\",\"content\":{\"application/json\":{"
		"\"schema\":{\"type\":\"object\",\"properties\":{\"error\":{\"type\":\"object\","
		"\"properties\":{\"code\":{\"type\":\"string\",\"enum\":[");
	for (int c = ERR_OK + 1; c < ERR_CODE_MAX_; c++)
		jw_elem_str(b, str_of(err_info((enum err_code)c)->name));
	buf_puts(b, "]},\"message\":{\"type\":\"string\"},\"hint\":{\"type\":\"string\"}},"
		    "\"required\":[\"code\",\"message\"]}},\"required\":[\"error\"]}}}}}}");
}

static void on_tools(void *ctx, struct door_answer *answer)
{
	struct api_request *a = ctx;
	_cleanup_(cleanup_json_decref) json_t *v = NULL;
	struct err err;
	a->asking = false;
	if (answer->code != ERR_OK) {
		api_reply_answer(a, answer, 200);
		return;
	}
	struct buf b = buf_init(OPENAPI_MAX);
	int r = json_parse(answer->json, DOOR_ANSWER_MAX, &v, &err);
	buf_puts(&b, "{\"openapi\":\"3.1.0\",\"info\":{\"title\":\"Cloister\"");
	jw_cstr(&b, "version", a->api->opt.version);
	buf_puts(&b, "},\"security\":[{\"token\":[]}]");
	put_paths(&b, json_object_get(v, "tools"));
	put_components(&b);
	jw_close(&b, '}');
	if (r == 0)
		r = buf_check(&b, "the description", &err);
	if (r < 0)
		api_reply_error(a, &err);
	else
		http_reply_take(a->x, 200, "application/json", &b);
	buf_done(&b);
}

void api_openapi(struct api_request *a)
{
	struct door_request d = {.op = DOOR_TOOLS, .body_fd = -1};
	(void)api_submit(a, &d, on_tools);
}
