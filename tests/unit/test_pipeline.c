/*
 * Tests of the pipeline: what each decider and role lets through, held calls, and what answers must
 * never tell. Every cell of a matrix is named in the failure message.
 */
#include "testing.h"

#include "fixture/fixture.h"
#include "tools/tools.h"

#include <unistd.h>

/* One harmless but effective call per tool. */
static const struct {
	const char *tool, *args;
	bool reading; /* allowed to the reading roles */
} calls[] = {
	{"file_read", "{\"path\":\"there\"}", true},
	{"file_list", "{}", true},
	{"file_search", "{\"query\":\"text\"}", true},
	{"file_info", "{\"path\":\"there\"}", true},
	{"workspace_info", "{}", true},
	{"system_info", "{}", true},
	{"file_write", "{\"path\":\"new\",\"content\":\"x\"}", false},
	{"file_edit", "{\"path\":\"there\",\"old_text\":\"text\",\"new_text\":\"x\"}", false},
	{"file_delete", "{\"path\":\"there\"}", false},
	{"file_move", "{\"from\":\"there\",\"to\":\"moved\"}", false},
	{"history_list", "{}", false},
	{"history_undo", "{}", false},
	{"workspace_diff", "{}", false},
	{"checkpoint_create", "{\"label\":\"c\"}", false},
	{"checkpoint_restore", "{\"label\":\"c\"}", false},
	{"shell_run", "{\"command\":\"echo x > made\"}", false},
	{"python_run", "{\"code\":\"open('made', 'w')\"}", false},
};

static struct fixture *fixture_with(const struct decider *d, int64_t held_seconds)
{
	struct fixture *f = fixture_new(&(struct fixture_options){
		.decider = d, .with_worker = true, .held_seconds = held_seconds});
	fixture_put(f, "ws/there", "some text\n");
	return f;
}

static const char *error_of(const json_t *result, const char *what)
{
	return json_string_value(json_object_get(json_object_get(result, "error"), what));
}

static void every_tool_is_in_the_matrix(void **state)
{
	(void)state;
	for (unsigned i = 0; tools_all[i]; i++) {
		bool found = false;
		for (size_t j = 0; j < ARRAY_LEN(calls); j++)
			found |= strcmp(calls[j].tool, tools_all[i]->name) == 0;
		if (!found)
			fail_msg("%s is in no cell", tools_all[i]->name);
	}
}

/* A refused call answers with its code and reason, carries nothing out and changes nothing. */
static void check_refused(struct fixture *f, enum role role, size_t i, enum err_code want)
{
	struct sha256 before, after;
	enum err_code code;
	fixture_tree_hash(fixture_ws(f), &before);
	json_t *r = fixture_call_as(f, role, calls[i].tool, calls[i].args, &code);
	fixture_tree_hash(fixture_ws(f), &after);
	if (code != want || !json_is_false(json_object_get(r, "executed")))
		fail_msg("%s as %s: code %s", calls[i].tool, role_word(role), err_info(code)->name);
	if (memcmp(&before, &after, sizeof(before)) != 0)
		fail_msg("%s as %s: the workspace changed", calls[i].tool, role_word(role));
	assert_string_equal(error_of(r, "code"), err_info(want)->name);
	assert_non_null(error_of(r, "message"));
	assert_int_equal(
		json_array_size(json_object_get(json_object_get(r, "error"), "policies")), 1);
	json_decref(r);
}

static void deny_all_refuses_every_tool_without_effect(void **state)
{
	(void)state;
	struct fixture *f = fixture_with(&decider_deny_all, 0);
	for (size_t i = 0; i < ARRAY_LEN(calls); i++)
		check_refused(f, ROLE_DEVELOPER, i, ERR_DENIED);
	fixture_free(f);
}

static void hold_all_holds_every_tool_without_effect(void **state)
{
	(void)state;
	struct fixture *f = fixture_with(&decider_hold_all, 60);
	for (size_t i = 0; i < ARRAY_LEN(calls); i++)
		check_refused(f, ROLE_DEVELOPER, i, ERR_HELD);
	fixture_free(f);
}

static void reading_roles_may_only_read(void **state)
{
	(void)state;
	struct fixture *f = fixture_with(NULL, 0);
	for (int role = ROLE_GENERALIST; role <= ROLE_CRITIC; role++)
		for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
			enum err_code code;
			if (!calls[i].reading) {
				check_refused(f, (enum role)role, i, ERR_DENIED);
				continue;
			}
			json_t *r = fixture_call_as(
				f, (enum role)role, calls[i].tool, calls[i].args, &code);
			if (code != ERR_OK)
				fail_msg("%s as %s: %s", calls[i].tool, role_word((enum role)role),
					error_of(r, "message"));
			assert_true(json_is_true(json_object_get(r, "executed")));
			json_decref(r);
		}
	fixture_free(f);
}

/* A refusal must not tell whether something is there: the answers differ in nothing but the call's
 * id. */
static void a_refusal_does_not_tell_what_exists(void **state)
{
	(void)state;
	static const char *const tools[] = {"file_read", "file_info", "file_delete"};
	struct fixture *f = fixture_with(&decider_deny_all, 0);
	fixture_put(f, "ws/dir/file", "x");
	for (size_t i = 0; i < ARRAY_LEN(tools); i++) {
		static const char *const paths[] = {"{\"path\":\"there\"}", "{\"path\":\"none\"}",
			"{\"path\":\"dir\"}", "{\"path\":\"none/none\"}",
			"{\"path\":\"../outside/secret\"}"};
		char *first = NULL;
		for (size_t p = 0; p < ARRAY_LEN(paths); p++) {
			enum err_code code;
			json_t *r = fixture_call(f, tools[i], paths[p], &code);
			(void)json_object_del(r, "call_id");
			char *text = json_dumps(r, JSON_COMPACT | JSON_SORT_KEYS);
			if (first)
				assert_string_equal(text, first);
			else
				first = strdup(text);
			free(text);
			json_decref(r);
		}
		free(first);
	}
	fixture_free(f);
}

/* Allows every call and no effect. */
static int allow_without_effects(const struct decider *d, const struct decide_request *q,
	struct decision *ret, struct err *err)
{
	(void)d, (void)err;
	*ret = (struct decision){.verdict = q->context.effects ? VERDICT_DENY : VERDICT_ALLOW,
		.policies = {"no-effects"},
		.n_policies = 1,
		.reason = "nothing may change"};
	return 0;
}

/* What a call would change is decided apart from the call, and a refusal then leaves nothing. */
static void effects_are_decided_before_they_are_published(void **state)
{
	(void)state;
	const struct decider no_effects = {.name = "no-effects", .decide = allow_without_effects};
	struct fixture *f = fixture_with(&no_effects, 0);
	for (size_t i = 0; i < ARRAY_LEN(calls); i++)
		if (strncmp(calls[i].tool, "file_", 5) == 0 && !calls[i].reading)
			check_refused(f, ROLE_DEVELOPER, i, ERR_DENIED);
	fixture_free(f);
}

/* Allows every call, and effects when they are approved. */
static int hold_effects(const struct decider *d, const struct decide_request *q,
	struct decision *ret, struct err *err)
{
	bool allowed = !q->context.effects || q->context.approved;
	(void)d, (void)err;
	*ret = (struct decision){.verdict = allowed ? VERDICT_ALLOW : VERDICT_DENY,
		.policies = {"ask-for-effects"},
		.n_policies = 1,
		.reason = "changes wait"};
	return 0;
}

static void effects_that_wait_for_approval_are_not_published(void **state)
{
	(void)state;
	const struct decider d = {.name = "ask-for-effects", .decide = hold_effects};
	struct fixture *f = fixture_with(&d, 0);
	for (size_t i = 0; i < ARRAY_LEN(calls); i++)
		if (strncmp(calls[i].tool, "file_", 5) == 0 && !calls[i].reading)
			check_refused(f, ROLE_DEVELOPER, i, ERR_HELD);
	fixture_free(f);
}

static void a_held_call_can_be_read_by_its_tenant_until_it_expires(void **state)
{
	(void)state;
	enum err_code code;
	struct err err;
	struct fixture *f = fixture_with(&decider_hold_all, 1);
	json_t *r = fixture_call(f, "file_write", "{\"path\":\"new\",\"content\":\"x\"}", &code);
	const char *id = json_string_value(json_object_get(r, "call_id"));
	struct principal who = {.id = "agent", .tenant = "default", .role = ROLE_DEVELOPER},
			 other = {.id = "x", .tenant = "other"};
	_cleanup_buf_ struct buf out = buf_init(1 << 20), none = buf_init(1 << 20),
				 late = buf_init(1 << 20);
	assert_int_equal(call_held(fixture_env(f), id, &who, &out, &err), 0);
	json_t *held = json_loads(buf_str(&out), 0, NULL);
	assert_string_equal(json_string_value(json_object_get(held, "status")), "held");
	assert_string_equal(json_string_value(json_object_get(held, "tool")), "file_write");
	assert_int_equal(json_string_length(json_object_get(held, "contract_sha256")), 64);
	assert_string_equal(
		json_string_value(json_object_get(
			json_object_get(json_object_get(held, "contract"), "arguments"), "path")),
		"new");
	json_decref(held);
	assert_int_equal(call_held(fixture_env(f), id, &other, &none, &err), -ERR_NOT_FOUND);
	assert_int_equal(
		call_held(fixture_env(f), "../registry.db", &who, &none, &err), -ERR_NOT_FOUND);
	assert_int_equal(call_held(fixture_env(f), "aaaaaaaaaaaaaaaaaaaaaaaaaa", &who, &none, &err),
		-ERR_NOT_FOUND);
	assert_int_equal(none.len, 0);
	(void)sleep(2);
	assert_int_equal(call_held(fixture_env(f), id, &who, &late, &err), 0);
	assert_non_null(strstr(buf_str(&late), "\"status\":\"expired\""));
	assert_int_equal(call_held(fixture_env(f), id, &who, &none, &err), -ERR_NOT_FOUND);
	json_decref(r);
	fixture_free(f);
}

/* Every answer, good or refused, is an object of the tool's declared result, and names no host
 * path. */
static void answers_conform_to_their_schema_and_leak_nothing(void **state)
{
	(void)state;
	struct fixture *f = fixture_with(NULL, 0);
	for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
		static const char *const broken[] = {NULL, "{}", "{\"path\":5}", "{\"nothing\":1}",
			"[]", "{\"path\":\"../x\",\"from\":\"../x\",\"to\":\"/x\"}"};
		for (size_t b = 0; b < ARRAY_LEN(broken); b++) {
			enum err_code code;
			struct err err;
			json_t *r = fixture_call(
				f, calls[i].tool, broken[b] ? broken[b] : calls[i].args, &code);
			char *text = json_dumps(r, JSON_COMPACT);
			if (fields_check(
				    tool_find(fixture_env(f), calls[i].tool)->result, r, &err) < 0)
				fail_msg("%s: %s in %s", calls[i].tool, err.text, text);
			if (strstr(text, fixture_base(f)) || strstr(text, "/proc/"))
				fail_msg("%s leaks a host path: %s", calls[i].tool, text);
			free(text);
			json_decref(r);
		}
	}
	fixture_free(f);
}

static void an_unknown_tool_and_an_unknown_argument_are_named(void **state)
{
	(void)state;
	enum err_code code;
	struct fixture *f = fixture_with(NULL, 0);
	json_t *r = fixture_call(f, "file_raed", "{}", &code);
	assert_int_equal(code, ERR_UNKNOWN_TOOL);
	assert_string_equal(error_of(r, "message"), "no tool is called 'file_raed'");
	json_decref(r);
	r = fixture_call(f, "file_read", "{\"path\":\"there\",\"lenght\":1}", &code);
	assert_int_equal(code, ERR_INVALID_ARGUMENT);
	assert_string_equal(error_of(r, "message"), "argument 'lenght' is not known here");
	assert_non_null(strstr(error_of(r, "hint"), "path, encoding"));
	json_decref(r);
	fixture_free(f);
}

static void a_dry_run_changes_nothing_and_shows_the_diff(void **state)
{
	(void)state;
	struct sha256 before, after;
	struct fixture *f = fixture_with(NULL, 0);
	fixture_tree_hash(fixture_ws(f), &before);
	json_t *r = fixture_ok(f, "file_edit",
		"{\"path\":\"there\",\"old_text\":\"some\",\"new_text\":\"no\",\"dry_run\":true}");
	fixture_tree_hash(fixture_ws(f), &after);
	assert_memory_equal(&before, &after, sizeof(before));
	assert_true(json_is_true(json_object_get(r, "dry_run")));
	const char *diff = json_string_value(json_object_get(r, "diff"));
	assert_non_null(strstr(diff, "-some text\n"));
	assert_non_null(strstr(diff, "+no text\n"));
	json_decref(r);
	fixture_free(f);
}

static void a_wrong_expected_hash_is_a_conflict_and_changes_nothing(void **state)
{
	(void)state;
	static const char zeros[] =
		"0000000000000000000000000000000000000000000000000000000000000000";
	static const char *const modes[] = {"overwrite", "append"};
	struct fixture *f = fixture_with(NULL, 0);
	json_t *info = fixture_ok(f, "file_info", "{\"path\":\"there\",\"hash\":true}");
	for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
		char args[256];
		enum err_code code;
		(void)snprintf(args, sizeof(args),
			"{\"path\":\"there\",\"content\":\"x\",\"mode\":\"%s\",\"expected_hash\":"
			"\"%s\"}",
			modes[i], zeros);
		json_decref(fixture_call(f, "file_write", args, &code));
		assert_int_equal(code, ERR_CONFLICT);
		char *now = fixture_get(f, "ws/there");
		assert_string_equal(now, "some text\n");
		free(now);
	}
	json_decref(fixture_ok(f, "file_write",
		"{\"path\":\"there\",\"content\":\"x\",\"expected_hash\":\"%s\"}",
		json_string_value(json_object_get(info, "hash"))));
	json_decref(info);
	fixture_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_tool_is_in_the_matrix),
		cmocka_unit_test(deny_all_refuses_every_tool_without_effect),
		cmocka_unit_test(hold_all_holds_every_tool_without_effect),
		cmocka_unit_test(reading_roles_may_only_read),
		cmocka_unit_test(a_refusal_does_not_tell_what_exists),
		cmocka_unit_test(effects_are_decided_before_they_are_published),
		cmocka_unit_test(effects_that_wait_for_approval_are_not_published),
		cmocka_unit_test(a_held_call_can_be_read_by_its_tenant_until_it_expires),
		cmocka_unit_test(answers_conform_to_their_schema_and_leak_nothing),
		cmocka_unit_test(an_unknown_tool_and_an_unknown_argument_are_named),
		cmocka_unit_test(a_dry_run_changes_nothing_and_shows_the_diff),
		cmocka_unit_test(a_wrong_expected_hash_is_a_conflict_and_changes_nothing),
	};
	return cmocka_run_group_tests_name("pipeline", tests, NULL, NULL);
}
