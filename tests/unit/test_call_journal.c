/* The pipeline and its journal: what is recorded before what, and that a journal that takes nothing
 * lets nothing happen. */
#include "testing.h"

#include "fixture/fixture.h"
#include "journal/journal.h"

struct fake {
	struct journal base;
	struct fixture *f;
	unsigned added, committed;
	enum err_code refuses;
	bool there_at_intent; /* the file of the change, when its intent came */
	char kinds[16][16];
	unsigned n_kinds;
};

static void note(struct fake *k, const struct jrecord *r)
{
	assert_true(k->n_kinds < 16 && r->kind.n < 16);
	memcpy(k->kinds[k->n_kinds], r->kind.p, r->kind.n);
	k->kinds[k->n_kinds++][r->kind.n] = '\0';
}

static int fake_add(struct journal *j, const struct jrecord *r, struct err *err)
{
	struct fake *k = (struct fake *)j;
	if (k->refuses)
		return err_set(err, k->refuses, "the journal takes nothing");
	k->added++;
	note(k, r);
	return 0;
}

static int fake_commit(
	struct journal *j, const struct jrecord *r, bool durable _unused_, struct err *err)
{
	struct fake *k = (struct fake *)j;
	if (k->refuses)
		return err_set(err, k->refuses, "the journal takes nothing");
	char *content = fixture_get(k->f, "ws/new");
	k->there_at_intent = content != NULL;
	free(content);
	assert_int_equal(r->changes.n, SHA256_HEX);
	k->committed++;
	note(k, r);
	return 0;
}

static void fake_flush(struct journal *j _unused_) {}

static int fake_position(
	struct journal *j _unused_, struct jposition *ret, struct err *err _unused_)
{
	*ret = (struct jposition){.seq = 42};
	memset(ret->head, 'a', SHA256_HEX);
	return 0;
}

static const struct journal_ops fake_ops = {
	.add = fake_add, .commit = fake_commit, .flush = fake_flush, .position = fake_position};

static int setup(void **state)
{
	struct fake *k = calloc(1, sizeof(*k));
	k->base.ops = &fake_ops;
	k->f = fixture_new(&(struct fixture_options){0});
	fixture_env(k->f)->journal = &k->base;
	*state = k;
	return 0;
}

static int teardown(void **state)
{
	struct fake *k = *state;
	fixture_free(k->f);
	free(k);
	return 0;
}

static const char write_args[] = "{\"path\":\"new\",\"content\":\"text\"}";

static void test_intent_comes_before_the_change(void **state)
{
	struct fake *k = *state;
	enum err_code code;
	json_t *r = fixture_call(k->f, "file_write", write_args, &code);
	assert_int_equal(code, ERR_OK);
	assert_int_equal(k->committed, 1);
	assert_false(k->there_at_intent);
	assert_int_equal(k->n_kinds, 2);
	assert_string_equal(k->kinds[0], JRECORD_KIND_INTENT);
	assert_string_equal(k->kinds[1], JRECORD_KIND_OUTCOME);
	const json_t *at = json_object_get(r, "journal");
	assert_int_equal(json_integer_value(json_object_get(at, "seq")), 42);
	json_decref(r);
}

static void test_what_cannot_be_journaled_does_not_happen(void **state)
{
	struct fake *k = *state;
	enum err_code code;
	struct sha256 before, after;
	fixture_put(k->f, "ws/old", "content");
	fixture_tree_hash(fixture_ws(k->f), &before);
	k->refuses = ERR_NO_SPACE;
	static const char *const calls[][2] = {{"file_write", write_args},
		{"file_delete", "{\"path\":\"old\"}"},
		{"file_move", "{\"from\":\"old\",\"to\":\"new\"}"}};
	for (unsigned i = 0; i < ARRAY_LEN(calls); i++) {
		json_t *r = fixture_call(k->f, calls[i][0], calls[i][1], &code);
		assert_int_equal(code, ERR_NO_SPACE);
		assert_false(json_is_true(json_object_get(r, "executed")));
		const char *message =
			json_string_value(json_object_get(json_object_get(r, "error"), "message"));
		assert_non_null(strstr(message, "nothing was changed"));
		json_decref(r);
	}
	fixture_tree_hash(fixture_ws(k->f), &after);
	assert_memory_equal(&before, &after, sizeof(before));
	/* a read that cannot be recorded gives no answer */
	json_t *r = fixture_call(k->f, "file_read", "{\"path\":\"old\"}", &code);
	assert_int_equal(code, ERR_NO_SPACE);
	assert_null(json_object_get(r, "content"));
	json_decref(r);
}

static void test_reads_refusals_and_dry_runs_are_one_record(void **state)
{
	struct fake *k = *state;
	enum err_code code;
	fixture_put(k->f, "ws/old", "content");
	json_decref(fixture_call(k->f, "file_read", "{\"path\":\"old\"}", &code));
	json_decref(fixture_call(k->f, "file_read", "{\"path\":\"../outside/secret\"}", &code));
	json_decref(fixture_call(k->f, "no_such_tool", "{}", &code));
	json_decref(fixture_call(k->f, "file_write",
		"{\"path\":\"new\",\"content\":\"x\",\"dry_run\":true}", &code));
	assert_int_equal(k->committed, 0);
	assert_int_equal(k->added, 4);
	for (unsigned i = 0; i < 4; i++)
		assert_string_equal(k->kinds[i], JRECORD_KIND_CALL);
}

/* An intent of a process that was killed gets its outcome, by what the history says. */
static void test_abandoned_intents_get_their_outcome(void **state)
{
	struct fake *k = *state;
	enum err_code code;
	struct jopen *o = &k->base.abandoned[0];
	(void)snprintf(o->call, sizeof(o->call), "never-published");
	(void)snprintf(o->session, sizeof(o->session), "%s", fixture_session(k->f));
	(void)snprintf(o->tenant, sizeof(o->tenant), "default");
	k->base.n_abandoned = 1;
	json_decref(fixture_call(k->f, "file_write", write_args, &code));
	assert_int_equal(code, ERR_OK);
	assert_int_equal(k->base.n_abandoned, 0);
	assert_string_equal(k->kinds[0], JRECORD_KIND_OUTCOME);
	assert_string_equal(k->kinds[1], JRECORD_KIND_INTENT);
	assert_int_equal(k->n_kinds, 3);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(test_intent_comes_before_the_change),
		CASE(test_what_cannot_be_journaled_does_not_happen),
		CASE(test_reads_refusals_and_dry_runs_are_one_record),
		CASE(test_abandoned_intents_get_their_outcome),
	};
	return cmocka_run_group_tests_name("call journal", tests, NULL, NULL);
}
