/* Messages of JSON-RPC 2.0 as MCP narrows them: see jsonrpc.h. Pure. */
#include "transport/mcp/jsonrpc.h"

#include "base/limits.h"
#include "codec/json_write.h"

#include <stdio.h>

bool rpc_is_id(const json_t *v)
{
	return json_is_integer(v) ||
	       (json_is_string(v) && json_string_length(v) <= RPC_ID_BYTES_MAX);
}

static int fault(struct rpc_fault *f, enum rpc_code code, const json_t *id, const char *message)
{
	f->code = code;
	f->id = id ? json_incref((json_t *)(uintptr_t)id) : NULL;
	(void)snprintf(f->message, sizeof(f->message), "%s", message);
	return -1;
}

/* A string without NUL: what may be compared as a C string. */
static const char *c_string(const json_t *v)
{
	const char *s = json_string_value(v);
	return s && strlen(s) == json_string_length(v) ? s : NULL;
}

static int read_request(struct rpc_message *m, struct rpc_fault *f)
{
	const json_t *id = json_object_get(m->root, "id"),
		     *params = json_object_get(m->root, "params");
	if (id && !rpc_is_id(id))
		return fault(f, RPC_INVALID_REQUEST, NULL,
			"Invalid request: id must be a string of at most 256 bytes or an integer");
	m->method = c_string(json_object_get(m->root, "method"));
	if (!m->method)
		return fault(
			f, RPC_INVALID_REQUEST, id, "Invalid request: method must be a string");
	if (id && params && !json_is_object(params))
		return fault(f, RPC_INVALID_PARAMS, id, "Invalid params: params must be an object");
	m->kind = id ? RPC_REQUEST : RPC_NOTIFICATION;
	m->id = id;
	/* A notification is never answered, not even when it is malformed. */
	m->params = json_is_object(params) ? params : NULL;
	return 0;
}

static int read_message(struct rpc_message *m, struct rpc_fault *f)
{
	const char *version;
	if (json_is_array(m->root))
		return fault(f, RPC_INVALID_REQUEST, NULL,
			"Invalid request: batches are not supported; send one message at a time");
	if (!json_is_object(m->root))
		return fault(f, RPC_INVALID_REQUEST, NULL, "Invalid request: not an object");
	version = c_string(json_object_get(m->root, "jsonrpc"));
	if (!version || strcmp(version, "2.0") != 0) {
		const json_t *id = json_object_get(m->root, "id");
		return fault(f, RPC_INVALID_REQUEST, rpc_is_id(id) ? id : NULL,
			"Invalid request: jsonrpc must be \"2.0\"");
	}
	if (!json_object_get(m->root, "method") &&
		(json_object_get(m->root, "result") || json_object_get(m->root, "error"))) {
		m->kind = RPC_RESPONSE;
		m->id = json_object_get(m->root, "id");
		return 0;
	}
	return read_request(m, f);
}

int rpc_read(struct str text, struct rpc_message *ret, struct rpc_fault *ret_fault)
{
	struct rpc_message m = {.kind = RPC_NOTIFICATION};
	struct err err;
	*ret_fault = (struct rpc_fault){.code = RPC_PARSE_ERROR};
	if (json_parse(text, LIMIT_REQUEST_BYTES, &m.root, &err) < 0) {
		char message[sizeof(ret_fault->message)];
		(void)snprintf(message, sizeof(message), "Parse error: %.200s", err.text);
		return fault(ret_fault, RPC_PARSE_ERROR, NULL, message);
	}
	if (read_message(&m, ret_fault) < 0) {
		rpc_message_done(&m);
		return -1;
	}
	*ret = m;
	return 0;
}

void rpc_message_done(struct rpc_message *m)
{
	json_decref(m->root);
	*m = (struct rpc_message){.kind = RPC_NOTIFICATION};
}

void rpc_fault_done(struct rpc_fault *f)
{
	json_decref(take_ptr(f->id));
}

void rpc_put_id(struct buf *out, const json_t *id)
{
	if (json_is_string(id))
		jw_string(out, (struct str){json_string_value(id), json_string_length(id)});
	else
		buf_printf(out, "%lld", (long long)json_integer_value(id));
}

static void put_head(struct buf *out, const json_t *id)
{
	buf_puts(out, "{\"jsonrpc\":\"2.0\"");
	if (!id)
		return;
	buf_puts(out, ",\"id\":");
	rpc_put_id(out, id);
}

void rpc_result_open(struct buf *out, const json_t *id)
{
	put_head(out, id);
	buf_puts(out, ",\"result\":");
}

void rpc_result_close(struct buf *out)
{
	buf_put(out, "}\n", 2);
}

void rpc_error(struct buf *out, const json_t *id, enum rpc_code code, const char *message,
	const char *data)
{
	put_head(out, id);
	jw_key(out, "error");
	jw_open(out, '{');
	jw_int(out, "code", code);
	jw_cstr(out, "message", message);
	if (data)
		jw_raw(out, "data", str_of(data));
	jw_close(out, '}');
	buf_put(out, "}\n", 2);
}
