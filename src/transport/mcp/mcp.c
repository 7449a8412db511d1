/* The state machine of one MCP connection: see mcp.h. */
#include "codec/json_write.h"
#include "transport/mcp/mcp_impl.h"

/* Newest first: what `initialize` may ask for. */
static const char *const legacy_versions[] = {
	"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"};

/* What a method may be used in, as bits of 1 << era. */
enum { IN_LEGACY = 1 << MCP_LEGACY, IN_MODERN = 1 << MCP_MODERN, IN_BOTH = IN_LEGACY | IN_MODERN };

struct method {
	const char *name;
	unsigned eras;
	void (*handle)(struct mcp *m, const struct rpc_message *msg);
};

/* --- results ------------------------------------------------------------------------------------
 */

void mcp_drop_if_failed(struct mcp *m, size_t from)
{
	if (!m->out.failed)
		return;
	m->out.failed = false;
	m->out.len = from;
}

void mcp_put_error(
	struct mcp *m, const json_t *id, enum rpc_code code, const char *message, const char *data)
{
	size_t from = m->out.len;
	m->fault = code;
	rpc_error(&m->out, id, code, message, data);
	mcp_drop_if_failed(m, from);
}

void mcp_end_result(struct mcp *m, const json_t *id, size_t from)
{
	mcp_end_result_as(m, id, from, "complete");
}

void mcp_end_result_as(struct mcp *m, const json_t *id, size_t from, const char *type)
{
	if (m->era == MCP_MODERN)
		jw_cstr(&m->out, "resultType", type);
	buf_put(&m->out, m->tail.data, m->tail.len);
	buf_putc(&m->out, '}');
	rpc_result_close(&m->out);
	if (!m->out.failed)
		return;
	/* What stands before `from` is whole lines and stays. */
	m->out.failed = false;
	m->out.len = from;
	mcp_put_error(m, id, RPC_INTERNAL_ERROR,
		"The answer is too large to be sent; ask for less (a smaller range, fewer results)",
		NULL);
}

/* Tasks are results by call id, which only a remote keeps. */
static void put_capabilities(struct mcp *m)
{
	jw_key(&m->out, "capabilities");
	buf_puts(&m->out, "{\"tools\":{},\"resources\":{},\"completions\":{}");
	if (m->era == MCP_MODERN && m->opt.remote)
		buf_puts(&m->out, ",\"extensions\":{\"" MCP_TASKS "\":{}}");
	if (m->opt.fixtures)
		buf_puts(&m->out, m->opt.fixtures->capabilities);
	buf_putc(&m->out, '}');
}

static void put_server(struct buf *b, const char *version)
{
	jw_open(b, '{');
	jw_cstr(b, "name", "cloister");
	jw_cstr(b, "version", version);
	jw_close(b, '}');
}

void mcp_put_caching(struct mcp *m, int64_t ttl_ms)
{
	if (m->era != MCP_MODERN)
		return;
	jw_int(&m->out, "ttlMs", ttl_ms);
	jw_cstr(&m->out, "cacheScope", "private");
}

static void set_era(struct mcp *m, enum mcp_era era)
{
	m->era = era;
	if (era != MCP_MODERN)
		return;
	buf_puts(&m->tail, ",\"_meta\":{\"io.modelcontextprotocol/serverInfo\":");
	put_server(&m->tail, m->opt.version);
	buf_putc(&m->tail, '}');
}

void mcp_invalid_params(struct mcp *m, const struct rpc_message *msg, const char *what)
{
	mcp_put_error(m, msg->id, RPC_INVALID_PARAMS, what, NULL);
}

/* --- methods ------------------------------------------------------------------------------------
 */

bool mcp_legacy_version(const char *version)
{
	for (unsigned i = 0; i < ARRAY_LEN(legacy_versions); i++)
		if (strcmp(legacy_versions[i], version) == 0)
			return true;
	return false;
}

static const char *known_version(const char *asked)
{
	for (unsigned i = 0; i < ARRAY_LEN(legacy_versions); i++)
		if (strcmp(legacy_versions[i], asked) == 0)
			return legacy_versions[i];
	return legacy_versions[0];
}

static void initialize(struct mcp *m, const struct rpc_message *msg)
{
	const char *asked = json_string_value(json_object_get(msg->params, "protocolVersion"));
	size_t from = m->out.len;
	if (m->initialized) {
		mcp_put_error(m, msg->id, RPC_INVALID_REQUEST,
			"Invalid request: this connection is initialized already", NULL);
		return;
	}
	if (!asked || !json_is_object(json_object_get(msg->params, "capabilities")) ||
		!json_is_object(json_object_get(msg->params, "clientInfo"))) {
		mcp_invalid_params(m, msg,
			"Invalid params: initialize needs protocolVersion, capabilities and "
			"clientInfo");
		return;
	}
	m->initialized = true;
	set_era(m, MCP_LEGACY);
	rpc_result_open(&m->out, msg->id);
	buf_putc(&m->out, '{');
	jw_cstr(&m->out, "protocolVersion", known_version(asked));
	put_capabilities(m);
	jw_key(&m->out, "serverInfo");
	put_server(&m->out, m->opt.version);
	if (m->opt.instructions)
		jw_cstr(&m->out, "instructions", m->opt.instructions);
	mcp_end_result(m, msg->id, from);
}

static void discover(struct mcp *m, const struct rpc_message *msg)
{
	size_t from = m->out.len;
	rpc_result_open(&m->out, msg->id);
	buf_puts(&m->out, "{\"supportedVersions\":[\"" MCP_MODERN_VERSION "\"]");
	put_capabilities(m);
	if (m->opt.instructions)
		jw_cstr(&m->out, "instructions", m->opt.instructions);
	mcp_put_caching(m, MCP_TTL_MS);
	mcp_end_result(m, msg->id, from);
}

static void ping(struct mcp *m, const struct rpc_message *msg)
{
	rpc_result_open(&m->out, msg->id);
	buf_puts(&m->out, "{}");
	rpc_result_close(&m->out);
}

static void tools_list(struct mcp *m, const struct rpc_message *msg)
{
	const json_t *cursor = json_object_get(msg->params, "cursor");
	int start = cursor ? mcp_cursor(m, cursor) : 0;
	size_t from = m->out.len;
	if (start < 0) {
		mcp_invalid_params(
			m, msg, "Invalid params: cursor is not one that tools/list gave");
		return;
	}
	rpc_result_open(&m->out, msg->id);
	mcp_put_tools(m, (unsigned)start);
	mcp_put_caching(m, MCP_TTL_MS);
	mcp_end_result(m, msg->id, from);
}

static void tools_call(struct mcp *m, const struct rpc_message *msg)
{
	const json_t *name = json_object_get(msg->params, "name"),
		     *args = json_object_get(msg->params, "arguments");
	const char *tool = json_string_value(name);
	if (!tool || (args && !json_is_object(args))) {
		mcp_invalid_params(m, msg,
			"Invalid params: tools/call needs name, a string, and takes arguments, an "
			"object");
		return;
	}
	if (strlen(tool) != json_string_length(name) || !mcp_has_tool(m, tool)) {
		char what[160];
		(void)snprintf(what, sizeof(what), "Unknown tool: %.*s",
			(int)utf8_floor(tool, MIN(strlen(tool), (size_t)96)), tool);
		mcp_invalid_params(m, msg, what);
		return;
	}
	mcp_call(m, msg, tool, args, mcp_finish_tool, NULL);
}

static const struct method methods[] = {
	{"tools/call", IN_BOTH, tools_call},
	{"tools/list", IN_BOTH, tools_list},
	{"ping", IN_LEGACY, ping},
	{"initialize", IN_LEGACY, initialize},
	{"server/discover", IN_MODERN, discover},
	{"resources/list", IN_BOTH, mcp_resources_list},
	{"resources/templates/list", IN_BOTH, mcp_resource_templates},
	{"resources/read", IN_BOTH, mcp_resources_read},
	{"completion/complete", IN_BOTH, mcp_complete},
	{"tasks/get", IN_MODERN, mcp_tasks_get},
	{"tasks/update", IN_MODERN, mcp_tasks_update},
	{"tasks/cancel", IN_MODERN, mcp_tasks_cancel},
};

/* --- which era ----------------------------------------------------------------------------------
 */

static void unsupported_version(
	struct mcp *m, const struct rpc_message *msg, const json_t *requested)
{
	_cleanup_buf_ struct buf data = buf_init(4 * RPC_ID_BYTES_MAX + 256);
	buf_puts(&data, "{\"supported\":[\"" MCP_MODERN_VERSION "\"]");
	jw_str(&data, "requested",
		(struct str){json_string_value(requested),
			utf8_floor(json_string_value(requested),
				MIN(json_string_length(requested), (size_t)RPC_ID_BYTES_MAX))});
	jw_close(&data, '}');
	mcp_put_error(m, msg->id, RPC_UNSUPPORTED_VERSION, "Unsupported protocol version",
		buf_str(&data));
}

/* What every modern request must say of itself. Answers and returns false when it does not. */
static bool modern_envelope(struct mcp *m, const struct rpc_message *msg)
{
	const json_t *meta = json_object_get(msg->params, "_meta"),
		     *version = json_object_get(meta, MCP_META_VERSION);
	if (!json_is_string(version)) {
		mcp_invalid_params(m, msg,
			m->era == MCP_MODERN
				? "Invalid params: _meta must hold " MCP_META_VERSION
				: "Invalid params: open with initialize, or with a request whose "
				  "_meta holds " MCP_META_VERSION);
		return false;
	}
	if (!json_is_object(json_object_get(meta, MCP_META_CAPABILITIES))) {
		mcp_invalid_params(
			m, msg, "Invalid params: _meta must hold " MCP_META_CAPABILITIES);
		return false;
	}
	if (!mcp_headers_match(m, msg, version))
		return false;
	if (json_string_length(version) != sizeof(MCP_MODERN_VERSION) - 1 ||
		strcmp(json_string_value(version), MCP_MODERN_VERSION) != 0) {
		unsupported_version(m, msg, version);
		return false;
	}
	if (m->era == MCP_UNDECIDED)
		set_era(m, MCP_MODERN);
	return true;
}

/* Before the era is decided, `initialize` and `ping` are legacy; all else has to be modern. */
static bool settle_era(struct mcp *m, const struct rpc_message *msg)
{
	if (m->era == MCP_LEGACY)
		return true;
	if (m->era == MCP_UNDECIDED &&
		!json_object_get(json_object_get(msg->params, "_meta"), MCP_META_VERSION) &&
		(strcmp(msg->method, "initialize") == 0 || strcmp(msg->method, "ping") == 0))
		return true;
	return modern_envelope(m, msg);
}

static void handle_request(struct mcp *m, const struct rpc_message *msg)
{
	if (mcp_id_in_flight(m, msg->id)) {
		mcp_put_error(m, msg->id, RPC_INVALID_REQUEST,
			"Invalid request: a request with this id is in flight", NULL);
		return;
	}
	if (!settle_era(m, msg))
		return;
	if (m->opt.fixtures && m->opt.fixtures->request(m, msg))
		return;
	unsigned era = 1u << (m->era == MCP_UNDECIDED ? MCP_LEGACY : m->era);
	for (unsigned i = 0; i < ARRAY_LEN(methods); i++)
		if (strcmp(methods[i].name, msg->method) == 0 && (methods[i].eras & era)) {
			methods[i].handle(m, msg);
			return;
		}
	char what[160];
	(void)snprintf(what, sizeof(what), "Method not found: %.*s",
		(int)utf8_floor(msg->method, MIN(strlen(msg->method), (size_t)96)), msg->method);
	mcp_put_error(m, msg->id, RPC_METHOD_NOT_FOUND, what, NULL);
}

/* notifications/initialized asks for nothing, and an unknown notification is to be ignored. */
static void handle_notification(struct mcp *m, const struct rpc_message *msg)
{
	const json_t *id = json_object_get(msg->params, "requestId");
	if (strcmp(msg->method, "notifications/cancelled") == 0 && rpc_is_id(id))
		mcp_cancel(m, id);
}

/* --- the connection -----------------------------------------------------------------------------
 */

static bool is_blank(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] != ' ' && s.p[i] != '\t' && s.p[i] != '\r')
			return false;
	return true;
}

void mcp_receive(struct mcp *m, struct str text)
{
	struct rpc_message msg;
	struct rpc_fault fault;
	if (is_blank(text))
		return;
	if (rpc_read(text, &msg, &fault) < 0) {
		mcp_put_error(m, fault.id, fault.code, fault.message, NULL);
		rpc_fault_done(&fault);
		return;
	}
	mcp_handle(m, &msg);
	rpc_message_done(&msg);
}

/* A response answers nothing: but for fixtures this server never asks. */
void mcp_handle(struct mcp *m, const struct rpc_message *msg)
{
	if (msg->kind == RPC_REQUEST)
		handle_request(m, msg);
	else if (msg->kind == RPC_NOTIFICATION)
		handle_notification(m, msg);
	else if (m->opt.fixtures)
		m->opt.fixtures->response(m, msg);
}

int mcp_fault(const struct mcp *m)
{
	return m->fault;
}

void mcp_receive_too_large(struct mcp *m)
{
	char what[96];
	(void)snprintf(what, sizeof(what), "Invalid request: a message has at most %d bytes",
		LIMIT_REQUEST_BYTES);
	mcp_put_error(m, NULL, RPC_INVALID_REQUEST, what, NULL);
}

struct buf *mcp_output(struct mcp *m)
{
	return &m->out;
}

int mcp_new_remote(const struct mcp_options *opt, struct mcp **ret, struct err *err)
{
	struct mcp *m = calloc(1, sizeof(*m));
	if (!m)
		return err_oom(err);
	m->opt = *opt;
	if (!m->opt.page)
		m->opt.page = MCP_PAGE_DEFAULT;
	m->out = buf_init(opt->output_max ? opt->output_max : MCP_OUTPUT_MAX);
	m->tail = buf_init(1024);
	set_era(m, opt->era);
	*ret = m;
	return 0;
}

void mcp_free(struct mcp *m)
{
	if (!m)
		return;
	while (m->n_flights > 0)
		mcp_cancel(m, m->flights[0]->id);
	buf_done(&m->out);
	buf_done(&m->tail);
	free(m);
}
