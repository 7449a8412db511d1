/*
 * What the suite @modelcontextprotocol/conformance asks of a server beside the protocol: tools,
 * prompts and resources of fixed names that do nothing but speak (its README lists them). They are
 * there only when `serve.conformance` is set, touch no workspace, and are answered here, without
 * core.
 */
#include "base/sha256.h"
#include "codec/json_write.h"
#include "transport/mcp/mcp_impl.h"

#include <sys/random.h>

#define PNG                                                                                        \
	"iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5"  \
	"ErkJggg=="
#define WAV "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="
#define TEXT(t) "{\"content\":[{\"type\":\"text\",\"text\":\"" t "\"}]"
#define IMAGE "{\"type\":\"image\",\"data\":\"" PNG "\",\"mimeType\":\"image/png\"}"
#define USER(content) "{\"role\":\"user\",\"content\":" content "}"
#define ELICIT(message, property, type)                                                            \
	"{\"method\":\"elicitation/create\",\"params\":{\"message\":\"" message                    \
	"\",\"requestedSchema\":{\"type\":\"object\",\"properties\":{\"" property                  \
	"\":{\"type\":\"" type "\"}},\"required\":[\"" property "\"]}}}"
#define SAMPLE(prompt, n)                                                                          \
	"{\"method\":\"sampling/createMessage\",\"params\":{\"messages\":[" USER(                  \
		"{\"type\":\"text\",\"text\":\"" prompt "\"}") "],\"maxTokens\":" n "}}"
#define ROOTS "{\"method\":\"roots/list\",\"params\":{}}"

/* --- results that never differ ---------------------------------------------------------------- */

/* The result's members, without its closing brace. */
static const struct {
	const char *method, *name, *result;
} fixed[] = {
	{"tools/call", "test_simple_text", TEXT("This is a simple text response for testing.")},
	{"tools/call", "test_image_content", "{\"content\":[" IMAGE "]"},
	{"tools/call", "test_audio_content",
		"{\"content\":[{\"type\":\"audio\",\"data\":\"" WAV
		"\",\"mimeType\":\"audio/wav\"}]"},
	{"tools/call", "test_embedded_resource",
		"{\"content\":[{\"type\":\"resource\",\"resource\":{\"uri\":\"test://"
		"embedded-resource\",\"mimeType\":\"text/plain\",\"text\":\"This is an embedded "
		"resource content.\"}}]"},
	{"tools/call", "test_multiple_content_types",
		"{\"content\":[{\"type\":\"text\",\"text\":\"Multiple content types test:\"}," IMAGE
		",{\"type\":\"resource\",\"resource\":{\"uri\":\"test://mixed-content-resource\","
		"\"mimeType\":\"application/json\",\"text\":\"{\\\"test\\\":\\\"data\\\","
		"\\\"value\\\":123}\"}}]"},
	{"tools/call", "test_error_handling",
		TEXT("This tool intentionally returns an error for testing") ",\"isError\":true"},
	{"prompts/get", "test_simple_prompt",
		"{\"messages\":[" USER("{\"type\":\"text\",\"text\":\"This is a simple prompt for "
				       "testing.\"}") "]"},
	{"prompts/get", "test_prompt_with_image",
		"{\"messages\":[" USER(IMAGE) "," USER(
			"{\"type\":\"text\",\"text\":\"Please analyze the image above.\"}") "]"},
	{"resources/read", "test://static-text",
		"{\"contents\":[{\"uri\":\"test://static-text\",\"mimeType\":\"text/plain\","
		"\"text\":\"This is the content of the static text resource.\"}]"},
	{"resources/read", "test://static-binary",
		"{\"contents\":[{\"uri\":\"test://static-binary\",\"mimeType\":\"image/png\","
		"\"blob\":\"" PNG "\"}]"},
	{"resources/read", "test://watched-resource",
		"{\"contents\":[{\"uri\":\"test://watched-resource\",\"mimeType\":\"text/plain\","
		"\"text\":\"watched\"}]"},
};

static const char prompts[] =
	"{\"prompts\":[{\"name\":\"test_simple_prompt\",\"description\":\"A prompt\"},"
	"{\"name\":\"test_prompt_with_arguments\",\"description\":\"With arguments\","
	"\"arguments\":[{\"name\":\"arg1\",\"description\":\"First\",\"required\":true},"
	"{\"name\":\"arg2\",\"description\":\"Second\",\"required\":true}]},"
	"{\"name\":\"test_prompt_with_embedded_resource\",\"description\":\"With a resource\","
	"\"arguments\":[{\"name\":\"resourceUri\",\"description\":\"URI\",\"required\":true}]},"
	"{\"name\":\"test_prompt_with_image\",\"description\":\"With an image\"},"
	"{\"name\":\"test_input_required_result_prompt\",\"description\":\"Asks first\"}]";

static const char *const tools[] = {"test_simple_text", "test_image_content", "test_audio_content",
	"test_embedded_resource", "test_multiple_content_types", "test_error_handling",
	"test_tool_with_logging", "test_tool_with_progress", "test_sampling", "test_elicitation",
	"test_elicitation_sep1034_defaults", "test_elicitation_sep1330_enums",
	"test_missing_capability", "test_logging_tool", "test_streaming_elicitation",
	"test_input_required_result_elicitation", "test_input_required_result_sampling",
	"test_input_required_result_list_roots", "test_input_required_result_request_state",
	"test_input_required_result_multiple_inputs", "test_input_required_result_multi_round",
	"test_input_required_result_tampered_state", "test_input_required_result_capabilities"};

static void put_result(struct mcp *m, const json_t *id, const char *members)
{
	size_t from = m->out.len;
	rpc_result_open(&m->out, id);
	buf_puts(&m->out, members);
	mcp_end_result(m, id, from);
}

static void put_cached(struct mcp *m, const json_t *id, const char *members)
{
	size_t from = m->out.len;
	rpc_result_open(&m->out, id);
	buf_puts(&m->out, members);
	mcp_put_caching(m, MCP_TTL_MS);
	mcp_end_result(m, id, from);
}

static void put_text(struct mcp *m, const json_t *id, const char *format, const char *value)
{
	_cleanup_buf_ struct buf text = buf_init(65536), b = buf_init(256 * 1024);
	for (const char *p = format; *p; p++)
		if (*p == '@')
			buf_puts(&text, value);
		else
			buf_putc(&text, *p);
	buf_puts(&b, "{\"content\":[{\"type\":\"text\",\"text\":");
	jw_string(&b, (struct str){buf_str(&text), text.len});
	buf_puts(&b, "}]");
	put_result(m, id, buf_str(&b));
}

/* --- what is said before an answer ------------------------------------------------------------ */

static void put_log(struct mcp *m, const char *text)
{
	buf_printf(&m->out,
		"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":"
		"\"info\",\"logger\":\"fixture\",\"data\":\"%s\"}}\n",
		text);
}

/* A modern client is logged to only when its request asks for it. */
static void with_logging(struct mcp *m, const struct rpc_message *msg)
{
	const json_t *meta = json_object_get(msg->params, "_meta");
	if (m->era != MCP_MODERN || json_object_get(meta, "io.modelcontextprotocol/logLevel")) {
		put_log(m, "Tool execution started");
		put_log(m, "Tool processing data");
		put_log(m, "Tool execution completed");
	}
	put_result(m, msg->id, TEXT("Logged."));
}

static void with_progress(struct mcp *m, const struct rpc_message *msg)
{
	const json_t *meta = json_object_get(msg->params, "_meta"),
		     *token = json_object_get(meta, "progressToken");
	for (int done = 0; rpc_is_id(token) && done <= 100; done += 50) {
		buf_puts(&m->out, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\","
				  "\"params\":{\"progressToken\":");
		rpc_put_id(&m->out, token);
		buf_printf(&m->out, ",\"progress\":%d,\"total\":100}}\n", done);
	}
	put_result(m, msg->id, TEXT("Done."));
}

/* --- asking the client in the legacy era ------------------------------------------------------ */

static const char defaults[] =
	"{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\",\"default\":\"John "
	"Doe\"},\"age\":{\"type\":\"integer\",\"default\":30},\"score\":{\"type\":\"number\","
	"\"default\":95.5},\"status\":{\"type\":\"string\",\"enum\":[\"active\",\"inactive\","
	"\"pending\"],\"default\":\"active\"},\"verified\":{\"type\":\"boolean\",\"default\":"
	"true}},\"required\":[]}";
static const char enums[] =
	"{\"type\":\"object\",\"properties\":{\"untitledSingle\":{\"type\":\"string\",\"enum\":["
	"\"option1\",\"option2\",\"option3\"]},\"titledSingle\":{\"type\":\"string\",\"oneOf\":[{"
	"\"const\":\"value1\",\"title\":\"First Option\"},{\"const\":\"value2\",\"title\":"
	"\"Second Option\"},{\"const\":\"value3\",\"title\":\"Third Option\"}]},\"legacyEnum\":{"
	"\"type\":\"string\",\"enum\":[\"opt1\",\"opt2\",\"opt3\"],\"enumNames\":[\"Option One\","
	"\"Option Two\",\"Option Three\"]},\"untitledMulti\":{\"type\":\"array\",\"items\":{"
	"\"type\":\"string\",\"enum\":[\"option1\",\"option2\",\"option3\"]}},\"titledMulti\":{"
	"\"type\":\"array\",\"items\":{\"anyOf\":[{\"const\":\"value1\",\"title\":\"First Choice\""
	"},{\"const\":\"value2\",\"title\":\"Second Choice\"},{\"const\":\"value3\",\"title\":"
	"\"Third Choice\"}]}}},\"required\":[]}";
static const char user_schema[] =
	"{\"type\":\"object\",\"properties\":{\"username\":{\"type\":\"string\",\"description\":"
	"\"User's response\"},\"email\":{\"type\":\"string\",\"description\":\"User's email "
	"address\"}},\"required\":[\"username\",\"email\"]}";

static bool never_called(struct flight *f _unused_, struct str json _unused_, bool failed _unused_)
{
	return true;
}

static void put_question(
	struct mcp *m, const char *id, const char *method, const char *message, const char *schema)
{
	struct buf *b = &m->out;
	buf_printf(
		b, "{\"jsonrpc\":\"2.0\",\"id\":\"%s\",\"method\":\"%s\",\"params\":", id, method);
	if (schema) {
		buf_puts(b, "{\"message\":");
		jw_string(b, str_of(message));
		buf_printf(b, ",\"requestedSchema\":%s}}\n", schema);
	} else {
		buf_puts(b, "{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\","
			    "\"text\":");
		jw_string(b, str_of(message));
		buf_puts(b, "}}],\"maxTokens\":100}}\n");
	}
}

/* The request stays in flight until the client has answered. */
static void ask_client(struct mcp *m, const struct rpc_message *msg, const char *method,
	const char *message, const char *schema)
{
	static unsigned n;
	char id[32];
	(void)snprintf(id, sizeof(id), "fixture-%u", ++n);
	if (mcp_keep(m, msg, never_called, strdup(id)))
		put_question(m, id, method, message, schema);
}

static void take_response(struct mcp *m, const struct rpc_message *msg)
{
	const char *id = json_string_value(json_object_get(msg->root, "id"));
	const json_t *result = json_object_get(msg->root, "result");
	for (unsigned i = 0; id && i < m->n_flights; i++) {
		struct flight *f = m->flights[i];
		if (!f->note || strcmp(f->note, id) != 0)
			continue;
		const json_t *content = json_object_get(result, "content");
		const char *said = json_string_value(json_object_get(content, "text"));
		_cleanup_free_ char *whole = json_dumps(result, JSON_COMPACT | JSON_ENCODE_ANY);
		if (said)
			put_text(m, f->id, "LLM response: @", said);
		else
			put_text(m, f->id, "Elicitation completed: @", whole ? whole : "nothing");
		mcp_land(f);
		return;
	}
}

/* --- asking the client in the modern era ------------------------------------------------------ */

static const struct round {
	const char *name, *requests;
	const char *keys[4];
	int round; /* 0: without a state */
} rounds[] = {
	{"test_input_required_result_elicitation",
		"\"user_name\":" ELICIT("What is your name?", "name", "string"), {"user_name"}, 0},
	{"test_streaming_elicitation",
		"\"user_name\":" ELICIT("What is your name?", "name", "string"), {"user_name"}, 0},
	{"test_input_required_result_sampling",
		"\"capital_question\":" SAMPLE("What is the capital of France?", "100"),
		{"capital_question"}, 0},
	{"test_input_required_result_list_roots", "\"client_roots\":" ROOTS, {"client_roots"}, 0},
	{"test_input_required_result_request_state",
		"\"confirm\":" ELICIT("Please confirm", "ok", "boolean"), {"confirm"}, 1},
	{"test_input_required_result_tampered_state",
		"\"confirm\":" ELICIT("Please confirm", "ok", "boolean"), {"confirm"}, 1},
	{"test_input_required_result_multiple_inputs",
		"\"user_name\":" ELICIT("What is your name?", "name",
			"string") ",\"greeting\":" SAMPLE("Generate a greeting",
			"50") ",\"client_roots\":" ROOTS,
		{"user_name", "greeting", "client_roots"}, 1},
	{"test_input_required_result_multi_round",
		"\"step1\":" ELICIT("Step 1: What is your name?", "name", "string"), {"step1"}, 1},
	{"test_input_required_result_multi_round",
		"\"step2\":" ELICIT("Step 2: What is your favorite color?", "color", "string"),
		{"step2"}, 2},
	{"test_input_required_result_prompt",
		"\"user_context\":" ELICIT(
			"What context should the prompt use?", "context", "string"),
		{"user_context"}, 0},
};

/* A state that only this process can have made: what it says, and a proof. */
static void make_state(int round, const char *name, char ret[80])
{
	static unsigned char secret[32];
	static bool made;
	char text[128];
	struct sha256 h;
	if (!made)
		BUG_ON(getrandom(secret, sizeof(secret), 0) != sizeof(secret));
	made = true;
	int n = snprintf(text, sizeof(text), "%d %s", round, name);
	sha256_of_two(secret, sizeof(secret), text, (size_t)n, &h);
	ret[0] = (char)('0' + round);
	sha256_hex(&h, ret + 1);
}

static bool answered(const struct round *r, const json_t *responses)
{
	for (const char *const *k = r->keys; *k; k++)
		if (!json_is_object(json_object_get(responses, *k)))
			return false;
	return true;
}

static void ask_round(struct mcp *m, const json_t *id, const struct round *r)
{
	size_t from = m->out.len;
	char state[80];
	rpc_result_open(&m->out, id);
	buf_printf(&m->out, "{\"inputRequests\":{%s}", r->requests);
	if (r->round) {
		make_state(r->round, r->name, state);
		jw_cstr(&m->out, "requestState", state);
	}
	mcp_end_result_as(m, id, from, "input_required");
}

/* Which round of its fixture a request is in; NULL: its state was not made here. */
static const struct round *round_of(const struct round *first, const json_t *state)
{
	const char *s = json_string_value(state);
	char made[80];
	if (!state)
		return first;
	for (const struct round *r = first;
		r < rounds + ARRAY_LEN(rounds) && strcmp(r->name, first->name) == 0; r++) {
		make_state(r->round, r->name, made);
		if (s && r->round && strcmp(made, s) == 0)
			return r;
	}
	return first->round ? NULL : first;
}

static void complete(struct mcp *m, const struct rpc_message *msg, const struct round *r)
{
	if (strcmp(msg->method, "prompts/get") == 0)
		put_result(m, msg->id,
			"{\"messages\":[" USER(
				"{\"type\":\"text\",\"text\":\"With context.\"}") "]");
	else
		put_result(m, msg->id, r->round ? TEXT("state-ok") : TEXT("Hello, you!"));
}

static bool with_rounds(struct mcp *m, const struct rpc_message *msg, const char *name)
{
	const json_t *responses = json_object_get(msg->params, "inputResponses");
	const struct round *first = NULL, *r;
	for (unsigned i = 0; !first && i < ARRAY_LEN(rounds); i++)
		if (strcmp(rounds[i].name, name) == 0)
			first = &rounds[i];
	if (!first || m->era != MCP_MODERN)
		return false;
	r = round_of(first, json_object_get(msg->params, "requestState"));
	if (!r || (responses && !json_is_object(responses)))
		mcp_invalid_params(m, msg, "Invalid params: requestState or inputResponses");
	else if (!responses || !answered(r, responses))
		ask_round(m, msg->id, r);
	else if (r + 1 < rounds + ARRAY_LEN(rounds) && strcmp(r[1].name, name) == 0)
		ask_round(m, msg->id, r + 1);
	else
		complete(m, msg, r);
	return true;
}

static const json_t *capability(const struct rpc_message *msg, const char *name)
{
	const json_t *meta = json_object_get(msg->params, "_meta");
	return json_object_get(json_object_get(meta, MCP_META_CAPABILITIES), name);
}

static void with_capabilities(struct mcp *m, const struct rpc_message *msg)
{
	struct round r = {.name = "capabilities", .requests = ""};
	if (capability(msg, "sampling"))
		r.requests = "\"q\":" SAMPLE("What is the capital of France?", "100");
	else if (capability(msg, "elicitation"))
		r.requests = "\"q\":" ELICIT("What is your name?", "name", "string");
	if (json_object_get(msg->params, "inputResponses") || !r.requests[0])
		put_result(m, msg->id, TEXT("Done."));
	else
		ask_round(m, msg->id, &r);
}

static void needs_sampling(struct mcp *m, const struct rpc_message *msg)
{
	if (capability(msg, "sampling"))
		put_result(m, msg->id, TEXT("Sampling is there."));
	else
		mcp_put_error(m, msg->id, RPC_MISSING_CAPABILITY,
			"Missing required client capability: sampling",
			"{\"requiredCapabilities\":{\"sampling\":{}}}");
}

/* --- requests --------------------------------------------------------------------------------- */

static const char *argument(const struct rpc_message *msg, const char *name)
{
	const json_t *v = json_object_get(json_object_get(msg->params, "arguments"), name);
	return json_is_string(v) ? json_string_value(v) : "";
}

static bool call_tool(struct mcp *m, const struct rpc_message *msg, const char *name)
{
	if (strcmp(name, "test_tool_with_logging") == 0 || strcmp(name, "test_logging_tool") == 0)
		with_logging(m, msg);
	else if (strcmp(name, "test_tool_with_progress") == 0)
		with_progress(m, msg);
	else if (strcmp(name, "test_sampling") == 0)
		ask_client(m, msg, "sampling/createMessage", argument(msg, "prompt"), NULL);
	else if (strcmp(name, "test_elicitation") == 0)
		ask_client(m, msg, "elicitation/create", argument(msg, "message"), user_schema);
	else if (strcmp(name, "test_elicitation_sep1034_defaults") == 0)
		ask_client(m, msg, "elicitation/create", "Please check", defaults);
	else if (strcmp(name, "test_elicitation_sep1330_enums") == 0)
		ask_client(m, msg, "elicitation/create", "Please choose", enums);
	else if (strcmp(name, "test_input_required_result_capabilities") == 0)
		with_capabilities(m, msg);
	else if (strcmp(name, "test_missing_capability") == 0)
		needs_sampling(m, msg);
	else
		return false;
	return true;
}

static bool get_prompt(struct mcp *m, const struct rpc_message *msg, const char *name)
{
	_cleanup_buf_ struct buf b = buf_init(65536);
	if (strcmp(name, "test_prompt_with_arguments") == 0) {
		buf_printf(&b, "Prompt with arguments: arg1='%.1000s', arg2='%.1000s'",
			argument(msg, "arg1"), argument(msg, "arg2"));
		_cleanup_buf_ struct buf r = buf_init(65536);
		buf_puts(&r, "{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"text\","
			     "\"text\":");
		jw_string(&r, (struct str){buf_str(&b), b.len});
		buf_puts(&r, "}}]");
		put_result(m, msg->id, buf_str(&r));
		return true;
	}
	if (strcmp(name, "test_prompt_with_embedded_resource") != 0)
		return false;
	buf_puts(&b, "{\"messages\":[{\"role\":\"user\",\"content\":{\"type\":\"resource\","
		     "\"resource\":{\"uri\":");
	jw_string(&b, str_of(argument(msg, "resourceUri")));
	buf_puts(&b,
		",\"mimeType\":\"text/plain\",\"text\":\"Embedded resource content for testing."
		"\"}}}," USER("{\"type\":\"text\",\"text\":\"Please process the embedded resource "
			      "above.\"}") "]");
	put_result(m, msg->id, buf_str(&b));
	return true;
}

static bool read_template(struct mcp *m, const struct rpc_message *msg, const char *uri)
{
	_cleanup_buf_ struct buf b = buf_init(4096);
	size_t n;
	if (strncmp(uri, "test://template/", 16) != 0)
		return false;
	n = strspn(uri + 16, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_");
	if (n == 0 || n > 64 || strcmp(uri + 16 + n, "/data") != 0)
		return false;
	buf_printf(&b,
		"{\"contents\":[{\"uri\":\"test://template/%.*s/data\",\"mimeType\":"
		"\"application/"
		"json\",\"text\":\"{\\\"id\\\":\\\"%.*s\\\",\\\"templateTest\\\":true,"
		"\\\"data\\\":\\\"Data for ID: %.*s\\\"}\"}]",
		(int)n, uri + 16, (int)n, uri + 16, (int)n, uri + 16);
	put_cached(m, msg->id, buf_str(&b));
	return true;
}

static bool take_named(struct mcp *m, const struct rpc_message *msg, const char *name)
{
	for (unsigned i = 0; i < ARRAY_LEN(fixed); i++)
		if (strcmp(fixed[i].method, msg->method) == 0 && strcmp(fixed[i].name, name) == 0) {
			(msg->method[0] == 'r' ? put_cached : put_result)(
				m, msg->id, fixed[i].result);
			return true;
		}
	if (with_rounds(m, msg, name))
		return true;
	return msg->method[0] == 't'   ? call_tool(m, msg, name)
	       : msg->method[0] == 'p' ? get_prompt(m, msg, name)
				       : read_template(m, msg, name);
}

static bool take_request(struct mcp *m, const struct rpc_message *msg)
{
	static const char *const empty[] = {
		"resources/subscribe", "resources/unsubscribe", "logging/setLevel"};
	const json_t *name = json_object_get(msg->params, "name");
	if (strcmp(msg->method, "resources/read") == 0)
		name = json_object_get(msg->params, "uri");
	for (unsigned i = 0; m->era == MCP_LEGACY && i < ARRAY_LEN(empty); i++)
		if (strcmp(empty[i], msg->method) == 0) {
			put_result(m, msg->id, "{");
			return true;
		}
	if (strcmp(msg->method, "prompts/list") == 0)
		put_cached(m, msg->id, prompts);
	else if (!json_is_string(name) || (strcmp(msg->method, "tools/call") != 0 &&
						  strcmp(msg->method, "prompts/get") != 0 &&
						  strcmp(msg->method, "resources/read") != 0))
		return false;
	else
		return take_named(m, msg, json_string_value(name));
	return true;
}

static void put_tools(struct buf *b)
{
	for (unsigned i = 0; i < ARRAY_LEN(tools); i++) {
		jw_open(b, '{');
		jw_cstr(b, "name", tools[i]);
		jw_cstr(b, "description", "A fixture of the conformance suite.");
		jw_key(b, "inputSchema");
		buf_puts(b, "{\"type\":\"object\",\"properties\":{}}");
		jw_close(b, '}');
	}
}

const struct mcp_fixtures mcp_fixtures = {.request = take_request,
	.response = take_response,
	.put_tools = put_tools,
	.capabilities = ",\"prompts\":{},\"logging\":{}"};
