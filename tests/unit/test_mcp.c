/* The MCP door: messages in, messages out, against tools that do nothing (fake_call.h). */
#include "testing.h"

#include "codec/json.h"
#include "fake_call.h"
#include "transport/mcp/jsonrpc.h"
#include "transport/mcp/mcp.h"

#include <time.h>
#include <unistd.h>

#define META                                                                                       \
	"\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","                   \
	"\"io.modelcontextprotocol/clientCapabilities\":{}}"
#define INITIALIZE                                                                                 \
	"{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":" \
	"\"2025-11-25\",\"capabilities\":{},\"clientInfo\":{\"name\":\"t\",\"version\":\"1\"}}}"

struct door {
	struct tool_env env;
	struct principal who;
	struct mcp *mcp;
	unsigned flushes;
};

static void flushed(void *ctx)
{
	((struct door *)ctx)->flushes++;
}

static struct door *door_open_with(unsigned page, size_t output_max)
{
	struct door *d = calloc(1, sizeof(*d));
	struct err err;
	fake_reset();
	d->env.tools = fake_tools;
	d->who = (struct principal){.id = "me", .role = ROLE_DEVELOPER};
	struct mcp_options o = {.env = &d->env,
		.session_id = "s1",
		.principal = &d->who,
		.turn = "t1",
		.version = "9.9",
		.instructions = "Be good.",
		.page = page,
		.output_max = output_max,
		.flush = flushed,
		.flush_ctx = d};
	assert_int_equal(mcp_new(&o, &d->mcp, &err), 0);
	return d;
}

static struct door *door_open(void)
{
	return door_open_with(0, 0);
}

static void door_close(struct door *d)
{
	mcp_free(d->mcp);
	free(d);
}

static void say(struct door *d, const char *text)
{
	mcp_receive(d->mcp, str_of(text));
}

/* The next line of the output as JSON; NULL when there is none. */
static json_t *hear(struct door *d)
{
	struct buf *b = mcp_output(d->mcp);
	char *end = b->len ? memchr(b->data, '\n', b->len) : NULL;
	json_t *v = NULL;
	struct err err;
	if (!end)
		return NULL;
	size_t n = (size_t)(end - b->data);
	assert_int_equal(json_parse((struct str){b->data, n}, 1 << 28, &v, &err), 0);
	memmove(b->data, end + 1, b->len - n - 1);
	b->len -= n + 1;
	return v;
}

static json_t *ask(struct door *d, const char *text)
{
	say(d, text);
	json_t *v = hear(d);
	assert_non_null(v);
	assert_null(hear(d));
	return v;
}

static const json_t *at(const json_t *v, const char *a, const char *b)
{
	v = json_object_get(v, a);
	return b ? json_object_get(v, b) : v;
}

/* The error of an answer, and whether it names this id (-1: no id at all). */
static void assert_error(struct door *d, const char *text, int code, int id)
{
	json_t *v = ask(d, text);
	assert_int_equal(json_integer_value(at(v, "error", "code")), code);
	assert_true(json_string_length(at(v, "error", "message")) > 0);
	if (id < 0)
		assert_null(json_object_get(v, "id"));
	else
		assert_int_equal(json_integer_value(json_object_get(v, "id")), id);
	json_decref(v);
}

static void assert_silent(struct door *d, const char *text)
{
	say(d, text);
	assert_int_equal(mcp_output(d->mcp)->len, 0);
}

static struct door *legacy_door(void)
{
	struct door *d = door_open();
	json_decref(ask(d, INITIALIZE));
	assert_silent(d, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}");
	return d;
}

static void let_progress_be_due(void)
{
	struct timespec t = {.tv_nsec = (MCP_PROGRESS_MS + 10) * 1000000L};
	(void)nanosleep(&t, NULL);
}

/* --- JSON-RPC -----------------------------------------------------------------------------------
 */

static void a_message_that_is_no_json_is_a_parse_error_without_id(void **state _unused_)
{
	struct door *d = legacy_door();
	static const char *const bad[] = {"{", "nope",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":", "{\"a\":1,\"a\":2}", "\xff\xfe",
		"{\"jsonrpc\":\"2.0\",\"id\":1}{}", "\"\xc3\""};
	for (unsigned i = 0; i < ARRAY_LEN(bad); i++)
		assert_error(d, bad[i], -32700, -1);
	door_close(d);
}

static void a_batch_is_refused_and_nothing_in_it_runs(void **state _unused_)
{
	struct door *d = legacy_door();
	assert_error(d,
		"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":"
		"\"echo\",\"arguments\":{\"text\":\"x\"}}}]",
		-32600, -1);
	assert_error(d, "[]", -32600, -1);
	assert_int_equal(fake_seen.started, 0);
	door_close(d);
}

static void ids_are_strings_or_integers(void **state _unused_)
{
	struct door *d = legacy_door();
	static const char *const bad[] = {"null", "1.5", "true", "[]", "{}"};
	for (unsigned i = 0; i < ARRAY_LEN(bad); i++) {
		char text[128];
		(void)snprintf(text, sizeof(text),
			"{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"ping\"}", bad[i]);
		assert_error(d, text, -32600, -1);
	}
	json_t *v = ask(d, "{\"jsonrpc\":\"2.0\",\"id\":\"a\\\"\\u0000b\",\"method\":\"ping\"}");
	assert_int_equal(json_string_length(json_object_get(v, "id")), 4);
	json_decref(v);
	v = ask(d, "{\"jsonrpc\":\"2.0\",\"id\":-9223372036854775808,\"method\":\"ping\"}");
	assert_true(json_integer_value(json_object_get(v, "id")) == INT64_MIN);
	json_decref(v);
	door_close(d);
}

static void an_id_longer_than_256_bytes_is_refused(void **state _unused_)
{
	struct door *d = legacy_door();
	char id[258], text[400];
	memset(id, 'x', sizeof(id) - 1);
	id[sizeof(id) - 1] = '\0';
	(void)snprintf(
		text, sizeof(text), "{\"jsonrpc\":\"2.0\",\"id\":\"%s\",\"method\":\"ping\"}", id);
	assert_error(d, text, -32600, -1);
	door_close(d);
}

static void what_is_no_request_is_an_invalid_request(void **state _unused_)
{
	struct door *d = legacy_door();
	assert_error(d, "1", -32600, -1);
	assert_error(d, "{}", -32600, -1);
	assert_error(d, "{\"jsonrpc\":\"1.0\",\"id\":7,\"method\":\"ping\"}", -32600, 7);
	assert_error(d, "{\"id\":7,\"method\":\"ping\"}", -32600, 7);
	assert_error(d, "{\"jsonrpc\":\"2.0\",\"id\":7}", -32600, 7);
	assert_error(d, "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":5}", -32600, 7);
	assert_error(d, "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"pi\\u0000ng\"}", -32600, 7);
	assert_error(
		d, "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\",\"params\":[]}", -32602, 7);
	door_close(d);
}

static void an_unknown_method_is_not_found(void **state _unused_)
{
	struct door *d = legacy_door();
	assert_error(d, "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"prompts/list\"}", -32601, 3);
	assert_error(d, "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"server/discover\"}", -32601, 3);
	door_close(d);
}

static void notifications_and_responses_are_never_answered(void **state _unused_)
{
	struct door *d = legacy_door();
	assert_silent(d, "{\"jsonrpc\":\"2.0\",\"method\":\"no/such\"}");
	assert_silent(d, "{\"jsonrpc\":\"2.0\",\"method\":\"no/such\",\"params\":[1]}");
	assert_silent(d, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}");
	assert_silent(d, "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":1,\"message\":\"\"}}");
	assert_silent(d, "  \t ");
	door_close(d);
}

static void a_tool_call_without_id_does_not_run(void **state _unused_)
{
	struct door *d = legacy_door();
	assert_silent(d,
		"{\"jsonrpc\":\"2.0\",\"method\":\"tools/call\",\"params\":{\"name\":\"echo\","
		"\"arguments\":{\"text\":\"x\"}}}");
	assert_int_equal(fake_seen.started, 0);
	door_close(d);
}

static void json_nested_too_deeply_is_a_parse_error(void **state _unused_)
{
	struct door *d = legacy_door();
	char text[1024];
	memset(text, '[', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_error(d, text, -32700, -1);
	door_close(d);
}

/* --- legacy -------------------------------------------------------------------------------------
 */

static void initialize_answers_the_version_that_was_asked(void **state _unused_)
{
	static const char *const pairs[][2] = {{"2025-11-25", "2025-11-25"},
		{"2025-06-18", "2025-06-18"}, {"2025-03-26", "2025-03-26"},
		{"2024-11-05", "2024-11-05"}, {"1999-01-01", "2025-11-25"},
		{"2026-07-28", "2025-11-25"}};
	for (unsigned i = 0; i < ARRAY_LEN(pairs); i++) {
		struct door *d = door_open();
		char text[256];
		(void)snprintf(text, sizeof(text),
			"{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{"
			"\"protocolVersion\":\"%s\",\"capabilities\":{},\"clientInfo\":{\"name\":"
			"\"t\",\"version\":\"1\"}}}",
			pairs[i][0]);
		json_t *v = ask(d, text);
		assert_string_equal(
			json_string_value(at(v, "result", "protocolVersion")), pairs[i][1]);
		assert_non_null(at(at(v, "result", "capabilities"), "tools", NULL));
		assert_string_equal(
			json_string_value(at(at(v, "result", "serverInfo"), "version", NULL)),
			"9.9");
		assert_string_equal(json_string_value(at(v, "result", "instructions")), "Be good.");
		assert_null(at(v, "result", "resultType"));
		json_decref(v);
		door_close(d);
	}
}

static void initialize_twice_is_refused(void **state _unused_)
{
	struct door *d = legacy_door();
	assert_error(d, INITIALIZE, -32600, 0);
	door_close(d);
}

static void initialize_without_its_members_is_refused(void **state _unused_)
{
	struct door *d = door_open();
	assert_error(d, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\"}", -32602, 1);
	assert_error(d,
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{"
		"\"protocolVersion\":1,\"capabilities\":{},\"clientInfo\":{}}}",
		-32602, 1);
	door_close(d);
}

static void ping_is_answered_before_and_after_initialize(void **state _unused_)
{
	struct door *d = door_open();
	json_t *v = ask(d, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}");
	assert_int_equal(json_object_size(json_object_get(v, "result")), 0);
	json_decref(v);
	json_decref(ask(d, INITIALIZE));
	v = ask(d, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}");
	assert_non_null(json_object_get(v, "result"));
	json_decref(v);
	door_close(d);
}

static void nothing_runs_before_the_connection_is_opened(void **state _unused_)
{
	struct door *d = door_open();
	assert_error(d,
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":"
		"\"echo\",\"arguments\":{\"text\":\"x\"}}}",
		-32602, 1);
	assert_int_equal(fake_seen.started, 0);
	door_close(d);
}

static void a_legacy_connection_ignores_modern_meta(void **state _unused_)
{
	struct door *d = legacy_door();
	json_t *v = ask(d,
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{" META "}}");
	assert_null(at(v, "result", "resultType"));
	assert_null(at(v, "result", "ttlMs"));
	json_decref(v);
	door_close(d);
}

/* --- modern -------------------------------------------------------------------------------------
 */

#define DISCOVER                                                                                   \
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"server/discover\",\"params\":{" META "}}"

static void assert_modern_result(const json_t *v)
{
	assert_string_equal(json_string_value(at(v, "result", "resultType")), "complete");
	const json_t *server =
		at(at(v, "result", "_meta"), "io.modelcontextprotocol/serverInfo", NULL);
	assert_string_equal(json_string_value(json_object_get(server, "name")), "cloister");
	assert_string_equal(json_string_value(json_object_get(server, "version")), "9.9");
}

static void discover_names_versions_capabilities_and_server(void **state _unused_)
{
	struct door *d = door_open();
	json_t *v = ask(d, DISCOVER);
	assert_modern_result(v);
	assert_string_equal(
		json_string_value(json_array_get(at(v, "result", "supportedVersions"), 0)),
		"2026-07-28");
	assert_non_null(at(at(v, "result", "capabilities"), "tools", NULL));
	assert_true(json_integer_value(at(v, "result", "ttlMs")) >= 0);
	assert_string_equal(json_string_value(at(v, "result", "cacheScope")), "private");
	assert_string_equal(json_string_value(at(v, "result", "instructions")), "Be good.");
	json_decref(v);
	door_close(d);
}

static void a_modern_request_without_its_meta_is_refused(void **state _unused_)
{
	struct door *d = door_open();
	json_decref(ask(d, DISCOVER));
	assert_error(d, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\"}", -32602, 2);
	assert_error(d,
		"{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\",\"params\":{\"_meta\":{"
		"\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"}}}",
		-32602, 2);
	assert_error(d,
		"{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\",\"params\":{\"_meta\":{"
		"\"io.modelcontextprotocol/clientCapabilities\":{}}}}",
		-32602, 2);
	door_close(d);
}

static void an_unsupported_version_is_told_which_are(void **state _unused_)
{
	struct door *d = door_open();
	json_t *v = ask(d, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"server/"
			   "discover\",\"params\":{\"_meta\":"
			   "{\"io.modelcontextprotocol/protocolVersion\":\"2027-01-01\","
			   "\"io.modelcontextprotocol/clientCapabilities\":{}}}}");
	const json_t *data = at(v, "error", "data");
	assert_int_equal(json_integer_value(at(v, "error", "code")), -32022);
	assert_string_equal(json_string_value(json_object_get(data, "requested")), "2027-01-01");
	assert_string_equal(
		json_string_value(json_array_get(json_object_get(data, "supported"), 0)),
		"2026-07-28");
	json_decref(v);
	/* It did not decide the era: the client may still open as a legacy one. */
	v = ask(d, INITIALIZE);
	assert_non_null(json_object_get(v, "result"));
	json_decref(v);
	door_close(d);
}

static void a_modern_connection_has_neither_initialize_nor_ping(void **state _unused_)
{
	struct door *d = door_open();
	json_decref(ask(d, DISCOVER));
	assert_error(d, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\",\"params\":{" META "}}",
		-32601, 2);
	assert_error(d,
		"{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"initialize\",\"params\":{" META "}}",
		-32601, 2);
	door_close(d);
}

static void a_modern_call_needs_no_discover_first(void **state _unused_)
{
	struct door *d = door_open();
	json_t *v =
		ask(d, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{" META
		       ",\"name\":\"echo\",\"arguments\":{\"text\":\"hi\"}}}");
	assert_modern_result(v);
	assert_string_equal(
		json_string_value(at(at(v, "result", "structuredContent"), "text", NULL)), "hi");
	json_decref(v);
	door_close(d);
}

static void a_modern_listing_may_be_cached(void **state _unused_)
{
	struct door *d = door_open();
	json_t *v = ask(d,
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":{" META "}}");
	assert_modern_result(v);
	assert_true(json_integer_value(at(v, "result", "ttlMs")) > 0);
	assert_string_equal(json_string_value(at(v, "result", "cacheScope")), "private");
	json_decref(v);
	door_close(d);
}

/* --- tools --------------------------------------------------------------------------------------
 */

#define CALL(id, tool, args)                                                                       \
	"{\"jsonrpc\":\"2.0\",\"id\":" id                                                          \
	",\"method\":\"tools/call\",\"params\":{\"name\":\"" tool "\",\"arguments\":" args "}}"
#define CALL_TOKEN(id, tool, token)                                                                \
	"{\"jsonrpc\":\"2.0\",\"id\":" id                                                          \
	",\"method\":\"tools/call\",\"params\":{\"name\":\"" tool                                  \
	"\",\"_meta\":{\"progressToken\":" token "}}}"

static void the_listing_is_the_tool_table_in_its_order(void **state _unused_)
{
	struct door *d = legacy_door();
	json_t *v = ask(d, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}");
	const json_t *tools = at(v, "result", "tools");
	unsigned i = 0;
	for (; fake_tools[i]; i++) {
		const json_t *t = json_array_get(tools, i), *in = json_object_get(t, "inputSchema");
		assert_string_equal(
			json_string_value(json_object_get(t, "name")), fake_tools[i]->name);
		assert_string_equal(
			json_string_value(json_object_get(t, "title")), fake_tools[i]->title);
		assert_string_equal(json_string_value(json_object_get(t, "description")),
			fake_tools[i]->description);
		assert_string_equal(json_string_value(json_object_get(in, "type")), "object");
		assert_true(json_is_false(json_object_get(in, "additionalProperties")));
		assert_string_equal(json_string_value(at(t, "outputSchema", "type")), "object");
	}
	assert_int_equal(json_array_size(tools), i);
	assert_null(at(v, "result", "nextCursor"));
	json_decref(v);
	door_close(d);
}

static void assert_hints(const json_t *tool, bool read_only, bool destructive, bool idempotent)
{
	const json_t *a = json_object_get(tool, "annotations");
	assert_int_equal(json_is_true(json_object_get(a, "readOnlyHint")), read_only);
	assert_int_equal(json_is_true(json_object_get(a, "destructiveHint")), destructive);
	assert_int_equal(json_is_true(json_object_get(a, "idempotentHint")), idempotent);
	assert_true(json_is_false(json_object_get(a, "openWorldHint")));
}

static void annotations_follow_the_group_of_the_tool(void **state _unused_)
{
	struct door *d = legacy_door();
	json_t *v = ask(d, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}");
	const json_t *tools = at(v, "result", "tools");
	assert_hints(json_array_get(tools, 0), true, false, true);
	assert_hints(json_array_get(tools, 1), false, true, false);
	assert_hints(json_array_get(tools, 3), false, false, true);
	json_decref(v);
	door_close(d);
}

static void pages_of_the_listing_cover_each_tool_once(void **state _unused_)
{
	struct door *d = door_open_with(2, 0);
	json_decref(ask(d, INITIALIZE));
	char text[256] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}";
	unsigned seen = 0, pages = 0;
	for (bool more = true; more; pages++) {
		json_t *v = ask(d, text);
		const json_t *tools = at(v, "result", "tools"),
			     *next = at(v, "result", "nextCursor");
		for (size_t i = 0; i < json_array_size(tools); i++)
			assert_string_equal(json_string_value(json_object_get(
						    json_array_get(tools, i), "name")),
				fake_tools[seen++]->name);
		more = next != NULL;
		if (more)
			(void)snprintf(text, sizeof(text),
				"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/"
				"list\",\"params\":{"
				"\"cursor\":\"%s\"}}",
				json_string_value(next));
		json_decref(v);
	}
	assert_int_equal(pages, 3);
	assert_null(fake_tools[seen]);
	door_close(d);
}

static void a_cursor_that_is_none_of_ours_is_refused(void **state _unused_)
{
	struct door *d = legacy_door();
	static const char *const bad[] = {
		"\"\"", "\"x\"", "\"after.nothing\"", "1", "null", "\"after.echo\\u0000\""};
	for (unsigned i = 0; i < ARRAY_LEN(bad); i++) {
		char text[128];
		(void)snprintf(text, sizeof(text),
			"{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"tools/list\",\"params\":{"
			"\"cursor\":%s}}",
			bad[i]);
		assert_error(d, text, -32602, 4);
	}
	door_close(d);
}

static void a_result_is_structured_and_the_same_json_as_text(void **state _unused_)
{
	struct door *d = legacy_door();
	json_t *v = ask(d, CALL("5", "echo", "{\"text\":\"a\\\"\\\\\\n\\u0001é\"}"));
	const json_t *block = json_array_get(at(v, "result", "content"), 0);
	struct err err;
	json_t *again = NULL;
	assert_string_equal(json_string_value(json_object_get(block, "type")), "text");
	const json_t *text = json_object_get(block, "text");
	assert_int_equal(json_parse((struct str){json_string_value(text), json_string_length(text)},
				 1 << 20, &again, &err),
		0);
	assert_true(json_equal(again, at(v, "result", "structuredContent")));
	assert_null(at(v, "result", "isError"));
	json_decref(again);
	json_decref(v);
	assert_string_equal(fake_seen.session, "s1");
	assert_string_equal(fake_seen.principal, "me");
	assert_string_equal(fake_seen.turn, "t1");
	door_close(d);
}

static void a_refusal_is_an_ordinary_result_marked_as_error(void **state _unused_)
{
	struct door *d = legacy_door();
	json_t *v = ask(d, CALL("5", "refuse", "{}"));
	assert_true(json_is_true(at(v, "result", "isError")));
	assert_true(json_is_false(at(at(v, "result", "structuredContent"), "executed", NULL)));
	assert_null(json_object_get(v, "error"));
	json_decref(v);
	door_close(d);
}

static void an_unknown_tool_is_a_protocol_error(void **state _unused_)
{
	struct door *d = legacy_door();
	assert_error(d, CALL("5", "nothing", "{}"), -32602, 5);
	assert_error(d, CALL("5", "echo\\u0000", "{}"), -32602, 5);
	assert_error(d, CALL("5", "", "{}"), -32602, 5);
	assert_int_equal(fake_seen.started, 0);
	door_close(d);
}

static void a_malformed_call_is_a_protocol_error(void **state _unused_)
{
	struct door *d = legacy_door();
	assert_error(d, "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"tools/call\"}", -32602, 5);
	assert_error(d,
		"{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"tools/call\",\"params\":{\"name\":1}}",
		-32602, 5);
	assert_error(d, CALL("5", "echo", "[]"), -32602, 5);
	assert_error(d, CALL("5", "echo", "\"x\""), -32602, 5);
	assert_error(d, CALL("5", "echo", "null"), -32602, 5);
	assert_int_equal(fake_seen.started, 0);
	door_close(d);
}

static void an_answer_that_does_not_fit_becomes_an_error(void **state _unused_)
{
	struct door *d = door_open_with(0, 64 * 1024);
	json_decref(ask(d, INITIALIZE));
	fake_big_bytes = 64 * 1024;
	assert_error(d, CALL("5", "big", "{}"), -32603, 5);
	fake_big_bytes = 100;
	json_t *v = ask(d, CALL("6", "big", "{}"));
	assert_non_null(json_object_get(v, "result"));
	json_decref(v);
	door_close(d);
}

/* --- in flight ----------------------------------------------------------------------------------
 */

static void others_are_answered_while_a_call_waits(void **state _unused_)
{
	struct door *d = legacy_door();
	assert_silent(d, CALL("1", "wait", "{}"));
	assert_int_equal(mcp_in_flight(d->mcp), 1);
	json_t *v = ask(d, CALL("2", "echo", "{\"text\":\"x\"}"));
	assert_int_equal(json_integer_value(json_object_get(v, "id")), 2);
	json_decref(v);
	mcp_proceed(d->mcp);
	assert_null(hear(d));
	fake_finish();
	mcp_proceed(d->mcp);
	v = hear(d);
	assert_int_equal(json_integer_value(json_object_get(v, "id")), 1);
	json_decref(v);
	assert_int_equal(mcp_in_flight(d->mcp), 0);
	assert_int_equal(fake_seen.freed, fake_seen.started);
	door_close(d);
}

static void a_cancelled_call_is_cancelled_and_never_answered(void **state _unused_)
{
	struct door *d = legacy_door();
	assert_silent(d, CALL("\"a\"", "wait", "{}"));
	assert_silent(d, CALL("1", "wait", "{}"));
	assert_silent(d, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{"
			 "\"requestId\":\"a\",\"reason\":\"no need\"}}");
	assert_int_equal(fake_seen.cancelled, 1);
	assert_int_equal(mcp_in_flight(d->mcp), 1);
	fake_finish();
	mcp_proceed(d->mcp);
	json_t *v = hear(d);
	assert_int_equal(json_integer_value(json_object_get(v, "id")), 1);
	assert_null(hear(d));
	json_decref(v);
	door_close(d);
}

static void a_cancellation_that_comes_late_or_names_nothing_is_ignored(void **state _unused_)
{
	struct door *d = legacy_door();
	json_decref(ask(d, CALL("1", "echo", "{\"text\":\"x\"}")));
	assert_silent(d, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{"
			 "\"requestId\":1}}");
	assert_silent(d, CALL("1", "wait", "{}"));
	/* The integer 1 is in flight, not the string. */
	assert_silent(d, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{"
			 "\"requestId\":\"1\"}}");
	assert_silent(d, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{"
			 "\"requestId\":null}}");
	assert_silent(d, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\"}");
	assert_int_equal(fake_seen.cancelled, 0);
	assert_int_equal(mcp_in_flight(d->mcp), 1);
	door_close(d);
}

static void an_id_in_flight_cannot_be_used_again(void **state _unused_)
{
	struct door *d = legacy_door();
	assert_silent(d, CALL("1", "wait", "{}"));
	assert_error(d, CALL("1", "wait", "{}"), -32600, 1);
	assert_int_equal(fake_seen.started, 1);
	door_close(d);
}

static void calls_in_flight_have_a_limit_that_is_named(void **state _unused_)
{
	struct door *d = legacy_door();
	char text[160];
	for (int i = 0; i < MCP_IN_FLIGHT_MAX; i++) {
		(void)snprintf(text, sizeof(text),
			"{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"tools/call\",\"params\":{"
			"\"name\":\"wait\"}}",
			i);
		assert_silent(d, text);
	}
	json_t *v = ask(d, CALL("99", "wait", "{}"));
	assert_true(json_is_true(at(v, "result", "isError")));
	const json_t *why = at(at(v, "result", "structuredContent"), "error", NULL);
	assert_string_equal(json_string_value(json_object_get(why, "code")), "limit_exceeded");
	json_decref(v);
	assert_int_equal(fake_seen.started, MCP_IN_FLIGHT_MAX);
	door_close(d);
}

static void closing_cancels_what_is_in_flight(void **state _unused_)
{
	struct door *d = legacy_door();
	assert_silent(d, CALL("1", "wait", "{}"));
	door_close(d);
	assert_int_equal(fake_seen.cancelled, 1);
	assert_int_equal(fake_seen.freed, 1);
}

/* --- progress -----------------------------------------------------------------------------------
 */

static void without_a_token_there_is_no_progress(void **state _unused_)
{
	struct door *d = legacy_door();
	assert_silent(d, CALL("1", "wait", "{}"));
	let_progress_be_due();
	fake_report(5);
	mcp_proceed(d->mcp);
	assert_null(hear(d));
	door_close(d);
}

static void progress_carries_token_and_strictly_grows(void **state _unused_)
{
	struct door *d = legacy_door();
	int64_t last = -1;
	assert_silent(d, CALL_TOKEN("1", "wait", "\"tok\""));
	static const int64_t reports[] = {5, 5, 3, 9};
	for (unsigned i = 0; i < ARRAY_LEN(reports); i++) {
		let_progress_be_due();
		fake_report(reports[i]);
		mcp_proceed(d->mcp);
		json_t *v = hear(d);
		assert_non_null(v);
		assert_string_equal(
			json_string_value(json_object_get(v, "method")), "notifications/progress");
		assert_string_equal(json_string_value(at(v, "params", "progressToken")), "tok");
		int64_t now = json_integer_value(at(v, "params", "progress"));
		assert_true(now > last);
		last = now;
		json_decref(v);
		assert_null(hear(d));
	}
	door_close(d);
}

static void progress_is_limited_in_rate(void **state _unused_)
{
	struct door *d = legacy_door();
	assert_silent(d, CALL_TOKEN("1", "wait", "7"));
	let_progress_be_due();
	for (int i = 1; i < 100; i++) {
		fake_report(i);
		mcp_proceed(d->mcp);
	}
	json_decref(hear(d));
	assert_null(hear(d));
	door_close(d);
}

static void a_call_that_runs_at_once_sends_its_progress_before_its_end(void **state _unused_)
{
	struct door *d = legacy_door();
	fake_reports[0] = 1;
	say(d, CALL_TOKEN("1", "report", "7"));
	/* Too early to be due: only the answer. */
	json_t *v = hear(d);
	assert_non_null(json_object_get(v, "result"));
	assert_null(hear(d));
	json_decref(v);
	assert_int_equal(d->flushes, 0);
	door_close(d);
}

static void there_is_no_progress_after_the_end(void **state _unused_)
{
	struct door *d = legacy_door();
	assert_silent(d, CALL_TOKEN("1", "wait", "7"));
	fake_finish();
	mcp_proceed(d->mcp);
	json_t *v = hear(d);
	assert_non_null(json_object_get(v, "result"));
	json_decref(v);
	let_progress_be_due();
	fake_report(50);
	mcp_proceed(d->mcp);
	assert_null(hear(d));
	door_close(d);
}

static void a_wait_wakes_for_progress_only_with_a_token(void **state _unused_)
{
	struct door *d = legacy_door();
	struct mcp_wait w[MCP_IN_FLIGHT_MAX];
	assert_silent(d, CALL("1", "wait", "{}"));
	assert_silent(d, CALL_TOKEN("2", "wait", "7"));
	assert_int_equal(mcp_waits(d->mcp, w), 2);
	assert_true(w[0].at_ms == INT64_MAX / 2);
	assert_true(w[1].at_ms < INT64_MAX / 2);
	door_close(d);
}

int main(void)
{
#define CASE(f) cmocka_unit_test(f)
	const struct CMUnitTest tests[] = {
		CASE(a_message_that_is_no_json_is_a_parse_error_without_id),
		CASE(a_batch_is_refused_and_nothing_in_it_runs),
		CASE(ids_are_strings_or_integers),
		CASE(an_id_longer_than_256_bytes_is_refused),
		CASE(what_is_no_request_is_an_invalid_request),
		CASE(an_unknown_method_is_not_found),
		CASE(notifications_and_responses_are_never_answered),
		CASE(a_tool_call_without_id_does_not_run),
		CASE(json_nested_too_deeply_is_a_parse_error),
		CASE(initialize_answers_the_version_that_was_asked),
		CASE(initialize_twice_is_refused),
		CASE(initialize_without_its_members_is_refused),
		CASE(ping_is_answered_before_and_after_initialize),
		CASE(nothing_runs_before_the_connection_is_opened),
		CASE(a_legacy_connection_ignores_modern_meta),
		CASE(discover_names_versions_capabilities_and_server),
		CASE(a_modern_request_without_its_meta_is_refused),
		CASE(an_unsupported_version_is_told_which_are),
		CASE(a_modern_connection_has_neither_initialize_nor_ping),
		CASE(a_modern_call_needs_no_discover_first),
		CASE(a_modern_listing_may_be_cached),
		CASE(the_listing_is_the_tool_table_in_its_order),
		CASE(annotations_follow_the_group_of_the_tool),
		CASE(pages_of_the_listing_cover_each_tool_once),
		CASE(a_cursor_that_is_none_of_ours_is_refused),
		CASE(a_result_is_structured_and_the_same_json_as_text),
		CASE(a_refusal_is_an_ordinary_result_marked_as_error),
		CASE(an_unknown_tool_is_a_protocol_error),
		CASE(a_malformed_call_is_a_protocol_error),
		CASE(an_answer_that_does_not_fit_becomes_an_error),
		CASE(others_are_answered_while_a_call_waits),
		CASE(a_cancelled_call_is_cancelled_and_never_answered),
		CASE(a_cancellation_that_comes_late_or_names_nothing_is_ignored),
		CASE(an_id_in_flight_cannot_be_used_again),
		CASE(calls_in_flight_have_a_limit_that_is_named),
		CASE(closing_cancels_what_is_in_flight),
		CASE(without_a_token_there_is_no_progress),
		CASE(progress_carries_token_and_strictly_grows),
		CASE(progress_is_limited_in_rate),
		CASE(a_call_that_runs_at_once_sends_its_progress_before_its_end),
		CASE(there_is_no_progress_after_the_end),
		CASE(a_wait_wakes_for_progress_only_with_a_token),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
