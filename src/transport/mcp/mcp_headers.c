/* Headers of HTTP that repeat what a modern message says, so that proxies can route by them: they
 * must be true, else two readers of one request would see two requests. */
#include "transport/mcp/mcp_impl.h"

static int digit(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* RFC 4648 4, with padding and without leftovers. */
static bool unbase64(struct buf *b, struct str s)
{
	if (s.n % 4 != 0)
		return false;
	for (size_t i = 0; i < s.n; i += 4) {
		uint32_t v = 0;
		unsigned pad = 0;
		for (unsigned k = 0; k < 4; k++) {
			char c = s.p[i + k];
			pad += c == '=';
			if (c == '=' ? k < 2 || i + 4 < s.n : pad > 0 || digit(c) < 0)
				return false;
			v = v << 6 | (uint32_t)(c == '=' ? 0 : digit(c));
		}
		char bytes[3] = {(char)(v >> 16), (char)(v >> 8), (char)v};
		buf_put(b, bytes, 3 - pad);
	}
	return !b->failed;
}

/* The value of a header that mirrors text of the message: blanks around it are none of it, and text
 * that a header cannot hold is written =?base64?...?=. */
static bool mirrors(struct str header, const json_t *v)
{
	_cleanup_buf_ struct buf plain = buf_init(8192);
	struct str text = {json_string_value(v), json_string_length(v)};
	if (!header.p || !json_is_string(v))
		return header.p == NULL && v == NULL;
	if (!str_starts(header, STR("=?base64?")) || !str_ends(header, STR("?=")))
		return str_eq(header, text);
	return unbase64(&plain, (struct str){header.p + 9, header.n - 11}) &&
	       str_eq((struct str){buf_str(&plain), plain.len}, text);
}

/* Which parameter Mcp-Name repeats; NULL: none. */
static const json_t *named(const struct rpc_message *msg)
{
	static const struct {
		const char *method, *key;
	} rows[] = {{"tools/call", "name"}, {"prompts/get", "name"}, {"resources/read", "uri"},
		{"tasks/get", "taskId"}, {"tasks/update", "taskId"}, {"tasks/cancel", "taskId"}};
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++)
		if (strcmp(rows[i].method, msg->method) == 0)
			return json_object_get(msg->params, rows[i].key);
	return NULL;
}

bool mcp_headers_match(struct mcp *m, const struct rpc_message *msg, const json_t *version)
{
	const struct mcp_headers *h = m->opt.headers;
	const json_t *name = named(msg);
	const char *what = NULL;
	if (!h)
		return true;
	if (!mirrors(h->version, version))
		what = "Header mismatch: MCP-Protocol-Version is not the version in _meta";
	else if (!h->method.p || !str_eq_c(h->method, msg->method))
		what = "Header mismatch: Mcp-Method is not the method of the message";
	else if (json_is_string(name) && !mirrors(h->name, name))
		what = "Header mismatch: Mcp-Name is not the name in the message";
	if (what)
		mcp_put_error(m, msg->id, RPC_HEADER_MISMATCH, what, NULL);
	return what == NULL;
}
