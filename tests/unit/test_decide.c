/* Tests of src/govern: the two-step question and the built-in deciders, role by tool. */
#include "testing.h"

#include "govern/decide.h"

static struct decide_request question(
	const struct principal *p, const char *action, enum action_group g)
{
	return (struct decide_request){
		.principal = p, .action = action, .group = g, .session = "s"};
}

static enum verdict verdict_of(
	const struct decider *d, enum role role, const char *action, const void *effects)
{
	struct decision got;
	struct principal p = {.kind = PRINCIPAL_AGENT, .id = "a", .tenant = "t", .role = role};
	struct decide_request q = question(&p, action, GROUP_READ);
	q.context.effects = effects;
	decide(d, &q, &got);
	assert_false(q.context.approved);
	assert_true(got.n_policies > 0);
	return got.verdict;
}

static void the_developer_may_use_every_tool(void **state)
{
	(void)state;
	assert_int_equal(
		verdict_of(&decider_roles, ROLE_DEVELOPER, "file_delete", ""), VERDICT_ALLOW);
}

/* Role by tool: what may be used and what not, each cell. */
static void reading_roles_read_and_nothing_else(void **state)
{
	(void)state;
	static const char *const may[] = {"file_read", "file_list", "file_search", "file_info",
		"workspace_info", "system_info"};
	static const char *const not [] = {"file_write", "file_edit", "file_delete", "file_move",
		"history_undo", "checkpoint_create", "checkpoint_restore", "no_such_tool", "",
		"file_read2"};
	for (int role = ROLE_GENERALIST; role <= ROLE_CRITIC; role++) {
		for (size_t i = 0; i < ARRAY_LEN(may); i++)
			assert_int_equal(verdict_of(&decider_roles, (enum role)role, may[i], NULL),
				VERDICT_ALLOW);
		for (size_t i = 0; i < ARRAY_LEN(not ); i++)
			assert_int_equal(verdict_of(&decider_roles, (enum role)role, not [i], NULL),
				VERDICT_DENY);
		assert_int_equal(
			verdict_of(&decider_roles, (enum role)role, "file_read", ""), VERDICT_DENY);
	}
}

static void a_refusal_says_why_and_what_instead(void **state)
{
	(void)state;
	struct decision got;
	struct principal p = {.id = "a", .tenant = "t", .role = ROLE_CRITIC};
	struct decide_request q = question(&p, "file_write", GROUP_WRITE);
	decide(&decider_roles, &q, &got);
	assert_string_equal(got.reason, "the role 'critic' may not use file_write");
	assert_string_equal(got.policies[0], "role.critic");
	assert_non_null(strstr(got.instead, "file_read"));
}

static void deny_all_denies_even_the_developer(void **state)
{
	(void)state;
	assert_int_equal(
		verdict_of(&decider_deny_all, ROLE_DEVELOPER, "file_read", NULL), VERDICT_DENY);
}

static void hold_all_holds(void **state)
{
	(void)state;
	assert_int_equal(
		verdict_of(&decider_hold_all, ROLE_DEVELOPER, "file_read", NULL), VERDICT_HOLD);
}

static int fail_to_decide(const struct decider *d, const struct decide_request *q,
	struct decision *ret, struct err *err)
{
	(void)d, (void)q;
	*ret = (struct decision){.verdict = VERDICT_ALLOW};
	return err_set(err, ERR_IO, "the policy store is gone");
}

static int answer_hold(const struct decider *d, const struct decide_request *q,
	struct decision *ret, struct err *err)
{
	(void)d, (void)q, (void)err;
	*ret = (struct decision){.verdict = VERDICT_HOLD, .policies = {"x"}, .n_policies = 1};
	return 0;
}

static void a_decider_that_fails_has_denied(void **state)
{
	(void)state;
	const struct decider broken = {.name = "broken", .decide = fail_to_decide};
	assert_int_equal(verdict_of(&broken, ROLE_DEVELOPER, "file_read", NULL), VERDICT_DENY);
	const struct decider odd = {.name = "odd", .decide = answer_hold};
	assert_int_equal(verdict_of(&odd, ROLE_DEVELOPER, "file_read", NULL), VERDICT_DENY);
}

static void roles_round_trip_and_the_lesser_wins(void **state)
{
	(void)state;
	struct err err;
	enum role got;
	for (int i = 0; i < ROLE_MAX_; i++) {
		assert_int_equal(role_parse(role_word((enum role)i), &got, &err), 0);
		assert_int_equal(got, i);
	}
	assert_int_equal(role_parse("admin", &got, &err), -ERR_INVALID_ARGUMENT);
	assert_int_equal(role_lesser(ROLE_DEVELOPER, ROLE_CRITIC), ROLE_CRITIC);
	assert_int_equal(role_lesser(ROLE_CRITIC, ROLE_DEVELOPER), ROLE_CRITIC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_developer_may_use_every_tool),
		cmocka_unit_test(reading_roles_read_and_nothing_else),
		cmocka_unit_test(a_refusal_says_why_and_what_instead),
		cmocka_unit_test(deny_all_denies_even_the_developer),
		cmocka_unit_test(hold_all_holds),
		cmocka_unit_test(a_decider_that_fails_has_denied),
		cmocka_unit_test(roles_round_trip_and_the_lesser_wins),
	};
	return cmocka_run_group_tests_name("decide", tests, NULL, NULL);
}
