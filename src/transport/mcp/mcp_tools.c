/*
 * Tools as MCP shows them. Everything is made from the tool table; there is no second description
 * of a tool here.
 */
#include "codec/json.h"
#include "codec/json_write.h"
#include "transport/mcp/mcp_impl.h"

static const char cursor_prefix[] = "after.";

enum { CATALOG_TEXT_MAX = 4 * 1024 * 1024 };

static void put_schema(struct buf *b, const char *key, const struct field *fields, bool open)
{
	jw_key(b, key);
	fields_schema(fields, open, b);
}

/* Nothing here reaches beyond the workspace, except what runs commands or talks to the network. */
static void put_annotations(struct buf *b, const char *title, bool read_only, bool destructive,
	bool idempotent, bool open)
{
	jw_key(b, "annotations");
	jw_open(b, '{');
	jw_cstr(b, "title", title);
	jw_bool(b, "readOnlyHint", read_only);
	jw_bool(b, "destructiveHint", destructive);
	jw_bool(b, "idempotentHint", idempotent || read_only);
	jw_bool(b, "openWorldHint", open);
	jw_close(b, '}');
}

static void put_tool(struct buf *b, const struct tool *t)
{
	jw_open(b, '{');
	jw_cstr(b, "name", t->name);
	jw_cstr(b, "title", t->title);
	jw_cstr(b, "description", t->description);
	put_schema(b, "inputSchema", t->args, false);
	put_schema(b, "outputSchema", t->result, true);
	put_annotations(b, t->title, t->group == GROUP_READ, t->destructive, t->idempotent,
		t->group == GROUP_EXECUTE || t->group == GROUP_NETWORK);
	jw_close(b, '}');
}

/* --- the catalog of a remote --- */

struct mcp_catalog {
	unsigned n;
	struct {
		char *name, *text;
	} tools[];
};

void mcp_catalog_free(struct mcp_catalog *c)
{
	if (!c)
		return;
	for (unsigned i = 0; i < c->n; i++) {
		free(c->tools[i].name);
		free(c->tools[i].text);
	}
	free(c);
}

static void copy_member(struct buf *b, const json_t *t, const char *key)
{
	_cleanup_free_ char *text =
		json_dumps(json_object_get(t, key), JSON_COMPACT | JSON_ENCODE_ANY);
	if (text)
		jw_raw(b, key, str_of(text));
}

static char *text_of(const json_t *t)
{
	struct buf b = buf_init(CATALOG_TEXT_MAX);
	const char *group = json_string_value(json_object_get(t, "group")),
		   *title = json_string_value(json_object_get(t, "title"));
	jw_open(&b, '{');
	static const char *const keys[] = {
		"name", "title", "description", "inputSchema", "outputSchema"};
	for (unsigned i = 0; i < ARRAY_LEN(keys); i++)
		copy_member(&b, t, keys[i]);
	put_annotations(&b, title ? title : "", group && strcmp(group, "read") == 0,
		json_is_true(json_object_get(t, "destructive")),
		json_is_true(json_object_get(t, "idempotent")),
		group && (strcmp(group, "execute") == 0 || strcmp(group, "network") == 0));
	jw_close(&b, '}');
	size_t n;
	return buf_take(&b, &n);
}

int mcp_catalog_read(struct str json, struct mcp_catalog **ret, struct err *err)
{
	_cleanup_(cleanup_json_decref) json_t *v = NULL;
	_cleanup_(cleanup_mcp_catalog_free) struct mcp_catalog *c = NULL;
	int r = json_parse(json, CATALOG_TEXT_MAX, &v, err);
	if (r < 0)
		return r;
	const json_t *tools = json_object_get(v, "tools");
	size_t n = json_array_size(tools);
	c = calloc(1, sizeof(*c) + n * sizeof(c->tools[0]));
	if (!c)
		return err_oom(err);
	for (; c->n < n; c->n++) {
		const json_t *t = json_array_get(tools, c->n);
		const char *name = json_string_value(json_object_get(t, "name"));
		c->tools[c->n].name = strdup(name ? name : "");
		c->tools[c->n].text = text_of(t);
		if (!c->tools[c->n].name || !c->tools[c->n].text) {
			c->n++;
			return err_oom(err);
		}
	}
	*ret = take_ptr(c);
	return 0;
}

/* --- whichever there is --- */

/* NULL behind the last. */
static const char *nth_name(const struct mcp *m, unsigned i)
{
	const struct mcp_catalog *c = m->opt.catalog;
	if (c)
		return i < c->n ? c->tools[i].name : NULL;
	return m->opt.env->tools[i] ? m->opt.env->tools[i]->name : NULL;
}

static void put_nth(struct mcp *m, unsigned i)
{
	const struct mcp_catalog *c = m->opt.catalog;
	if (!c) {
		put_tool(&m->out, m->opt.env->tools[i]);
		return;
	}
	jw_comma(&m->out);
	buf_puts(&m->out, c->tools[i].text);
}

bool mcp_has_tool(const struct mcp *m, const char *name)
{
	for (unsigned i = 0; nth_name(m, i); i++)
		if (strcmp(nth_name(m, i), name) == 0)
			return true;
	return false;
}

void mcp_put_tools(struct mcp *m, unsigned from)
{
	unsigned i = from;
	buf_putc(&m->out, '{');
	jw_key(&m->out, "tools");
	jw_open(&m->out, '[');
	for (; nth_name(m, i) && i - from < m->opt.page; i++)
		put_nth(m, i);
	if (!nth_name(m, i) && m->opt.fixtures)
		m->opt.fixtures->put_tools(&m->out);
	jw_close(&m->out, ']');
	if (!nth_name(m, i))
		return;
	char cursor[192];
	(void)snprintf(cursor, sizeof(cursor), "%s%s", cursor_prefix, nth_name(m, i - 1));
	jw_cstr(&m->out, "nextCursor", cursor);
}

/* A cursor names the last tool of its page, so it stays right when tools are added. */
int mcp_cursor(const struct mcp *m, const json_t *cursor)
{
	const char *s = json_string_value(cursor);
	if (!s || strlen(s) != json_string_length(cursor) ||
		strncmp(s, cursor_prefix, sizeof(cursor_prefix) - 1) != 0)
		return -1;
	for (unsigned i = 0; nth_name(m, i); i++)
		if (strcmp(nth_name(m, i), s + sizeof(cursor_prefix) - 1) == 0)
			return (int)i + 1;
	return -1;
}

/* The result is already JSON, so the first copy is a memcpy and the second an escape. */
void mcp_put_call_result(struct buf *out, struct str json, bool is_error)
{
	buf_puts(out, "{\"content\":[{\"type\":\"text\",\"text\":");
	jw_string(out, json);
	buf_puts(out, "}],\"structuredContent\":");
	buf_put(out, json.p, json.n);
	if (is_error)
		buf_puts(out, ",\"isError\":true");
}
