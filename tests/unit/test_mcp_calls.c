/*
 * The MCP door before the real pipeline: a call that comes in as a message is decided like any
 * other, for the principal of the connection, in both eras. What is denied or held has no effect.
 */
#include "testing.h"

#include "codec/json.h"
#include "fixture/fixture.h"
#include "tools/tools.h"
#include "transport/mcp/mcp.h"

#define META                                                                                       \
	"\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","                   \
	"\"io.modelcontextprotocol/clientCapabilities\":{}},"
#define INITIALIZE                                                                                 \
	"{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":" \
	"\"2025-11-25\",\"capabilities\":{},\"clientInfo\":{\"name\":\"t\",\"version\":\"1\"}}}"

/* Reading, and one effective call per tool that can change something. */
static const struct {
	const char *tool, *args;
} calls[] = {
	{"file_read", "{\"path\":\"there\"}"},
	{"file_write", "{\"path\":\"new\",\"content\":\"x\"}"},
	{"file_write", "{\"path\":\"there\",\"content\":\"x\",\"mode\":\"append\"}"},
	{"file_edit", "{\"path\":\"there\",\"old_text\":\"text\",\"new_text\":\"x\"}"},
	{"file_delete", "{\"path\":\"there\"}"},
	{"file_move", "{\"from\":\"there\",\"to\":\"moved\"}"},
};

static const char *const eras[] = {"", META};

struct door {
	struct fixture *f;
	struct principal who;
	struct mcp *mcp;
	const char *meta;
};

static void door_open(
	struct door *d, const struct decider *decider, enum role role, const char *era)
{
	struct err err;
	d->f = fixture_new(&(struct fixture_options){.decider = decider});
	fixture_put(d->f, "ws/there", "some text\n");
	d->who = (struct principal){
		.kind = PRINCIPAL_AGENT, .id = "agent", .tenant = TENANT_DEFAULT, .role = role};
	struct mcp_options o = {.env = fixture_env(d->f),
		.session_id = fixture_session(d->f),
		.principal = &d->who,
		.version = "0"};
	assert_int_equal(mcp_new(&o, &d->mcp, &err), 0);
	d->meta = era;
	if (!*era)
		mcp_receive(d->mcp, STR(INITIALIZE));
	buf_clear(mcp_output(d->mcp));
}

static void door_close(struct door *d)
{
	mcp_free(d->mcp);
	fixture_free(d->f);
}

/* The MCP result of one call; owned by the caller. */
static json_t *call(struct door *d, const char *tool, const char *args)
{
	struct err err;
	json_t *answer = NULL;
	_cleanup_buf_ struct buf b = buf_init(1 << 16);
	buf_printf(&b,
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{%s"
		"\"name\":\"%s\",\"arguments\":%s}}",
		d->meta, tool, args);
	mcp_receive(d->mcp, (struct str){buf_str(&b), b.len});
	struct buf *out = mcp_output(d->mcp);
	if (json_parse((struct str){buf_str(out), out->len}, 1 << 20, &answer, &err) < 0)
		fail_msg("%s: %s", tool, buf_str(out));
	buf_clear(out);
	json_t *result = json_incref(json_object_get(answer, "result"));
	json_decref(answer);
	assert_non_null(result);
	return result;
}

static void check_refused(struct door *d, size_t i, enum err_code want)
{
	struct sha256 before, after;
	fixture_tree_hash(fixture_ws(d->f), &before);
	json_t *r = call(d, calls[i].tool, calls[i].args);
	fixture_tree_hash(fixture_ws(d->f), &after);
	const json_t *s = json_object_get(r, "structuredContent"),
		     *error = json_object_get(s, "error");
	const char *code = json_string_value(json_object_get(error, "code"));
	if (!json_is_true(json_object_get(r, "isError")) ||
		!json_is_false(json_object_get(s, "executed")) || !code ||
		strcmp(code, err_info(want)->name) != 0)
		fail_msg("%s%s: code %s", calls[i].tool, *d->meta ? ", modern" : "", code);
	if (memcmp(&before, &after, sizeof(before)) != 0)
		fail_msg("%s: the workspace changed", calls[i].tool);
	json_decref(r);
}

static void refused_in_every_era(
	const struct decider *decider, enum role role, enum err_code want, size_t first)
{
	for (size_t e = 0; e < ARRAY_LEN(eras); e++) {
		struct door d;
		door_open(&d, decider, role, eras[e]);
		for (size_t i = first; i < ARRAY_LEN(calls); i++)
			check_refused(&d, i, want);
		door_close(&d);
	}
}

static void what_is_denied_has_no_effect(void **state _unused_)
{
	refused_in_every_era(&decider_deny_all, ROLE_DEVELOPER, ERR_DENIED, 0);
}

static void what_is_held_has_no_effect(void **state _unused_)
{
	refused_in_every_era(&decider_hold_all, ROLE_DEVELOPER, ERR_HELD, 0);
}

static void the_role_of_the_connection_decides(void **state _unused_)
{
	refused_in_every_era(&decider_roles, ROLE_CRITIC, ERR_DENIED, 1);
}

/* Or all of the above would be green with a door that never calls anything. */
static void what_is_allowed_is_carried_out(void **state _unused_)
{
	for (size_t e = 0; e < ARRAY_LEN(eras); e++) {
		struct door d;
		door_open(&d, &decider_roles, ROLE_DEVELOPER, eras[e]);
		json_t *r = call(&d, calls[1].tool, calls[1].args);
		assert_null(json_object_get(r, "isError"));
		_cleanup_free_ char *text = fixture_get(d.f, "ws/new");
		assert_string_equal(text, "x");
		json_decref(r);
		door_close(&d);
	}
}

/* A held call is kept until somebody approves it; asking again does not. */
static void a_held_call_stays_held_however_often_it_comes(void **state _unused_)
{
	struct door d;
	struct err err;
	_cleanup_buf_ struct buf held = buf_init(1 << 20);
	door_open(&d, &decider_hold_all, ROLE_DEVELOPER, META);
	for (unsigned i = 0; i < 3; i++)
		check_refused(&d, 1, ERR_HELD);
	json_t *r = call(&d, calls[1].tool, calls[1].args);
	const char *id = json_string_value(
		json_object_get(json_object_get(r, "structuredContent"), "call_id"));
	assert_non_null(id);
	assert_int_equal(call_held(fixture_env(d.f), id, &d.who, &held, &err), 0);
	assert_non_null(strstr(buf_str(&held), "\"status\":\"held\""));
	json_decref(r);
	door_close(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_denied_has_no_effect),
		cmocka_unit_test(what_is_held_has_no_effect),
		cmocka_unit_test(the_role_of_the_connection_decides),
		cmocka_unit_test(what_is_allowed_is_carried_out),
		cmocka_unit_test(a_held_call_stays_held_however_often_it_comes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
