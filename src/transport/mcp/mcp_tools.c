/*
 * Tools as MCP shows them. Everything is made from the tool table; there is no second description
 * of a tool here.
 */
#include "codec/json_write.h"
#include "transport/mcp/mcp_impl.h"

static const char cursor_prefix[] = "after.";

static void put_schema(struct buf *b, const char *key, const struct field *fields, bool open)
{
	jw_key(b, key);
	fields_schema(fields, open, b);
}

/* Nothing here reaches beyond the workspace, except what runs commands or talks to the network. */
static void put_annotations(struct buf *b, const struct tool *t)
{
	jw_key(b, "annotations");
	jw_open(b, '{');
	jw_cstr(b, "title", t->title);
	jw_bool(b, "readOnlyHint", t->group == GROUP_READ);
	jw_bool(b, "destructiveHint", t->destructive);
	jw_bool(b, "idempotentHint", t->idempotent || t->group == GROUP_READ);
	jw_bool(b, "openWorldHint", t->group == GROUP_EXECUTE || t->group == GROUP_NETWORK);
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
	put_annotations(b, t);
	jw_close(b, '}');
}

void mcp_put_tools(struct mcp *m, unsigned from)
{
	const struct tool *const *tools = m->opt.env->tools;
	unsigned i = from;
	buf_putc(&m->out, '{');
	jw_key(&m->out, "tools");
	jw_open(&m->out, '[');
	for (; tools[i] && i - from < m->opt.page; i++)
		put_tool(&m->out, tools[i]);
	jw_close(&m->out, ']');
	if (!tools[i])
		return;
	char cursor[192];
	(void)snprintf(cursor, sizeof(cursor), "%s%s", cursor_prefix, tools[i - 1]->name);
	jw_cstr(&m->out, "nextCursor", cursor);
}

/* A cursor names the last tool of its page, so it stays right when tools are added. */
int mcp_cursor(const struct mcp *m, const json_t *cursor)
{
	const char *s = json_string_value(cursor);
	if (!s || strlen(s) != json_string_length(cursor) ||
		strncmp(s, cursor_prefix, sizeof(cursor_prefix) - 1) != 0)
		return -1;
	for (int i = 0; m->opt.env->tools[i]; i++)
		if (strcmp(m->opt.env->tools[i]->name, s + sizeof(cursor_prefix) - 1) == 0)
			return i + 1;
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
