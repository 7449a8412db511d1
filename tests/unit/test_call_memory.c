/*
 * Tool calls with every allocation failing, one after the other: a call succeeds or says that
 * memory is missing; what says that it was not executed has changed nothing; nothing is left
 * behind.
 */
#include "testing.h"

#include "codec/json.h"
#include "fail_alloc.h"
#include "fixture/fixture.h"

static const struct row {
	const char *tool, *args;
	bool undo;          /* changes files */
	enum err_code code; /* with all memory that there is */
} rows[] = {
	{"file_read", "{\"path\":\"there\"}", false, ERR_OK},
	{"file_read", "{\"path\":\"data.json\",\"offset\":2,\"limit\":1}", false, ERR_OK},
	{"file_read", "{\"path\":\"data.json\",\"data\":true}", false, ERR_OK},
	{"file_list", "{\"recursive\":true,\"pattern\":\"*\"}", false, ERR_OK},
	{"file_info", "{\"path\":\"dir\"}", false, ERR_OK},
	{"workspace_info", "{}", false, ERR_OK},
	{"system_info", "{}", false, ERR_OK},
	{"history_list", "{}", false, ERR_OK},
	{"workspace_diff", "{}", false, ERR_OK},
	{"file_write", "{\"path\":\"a/new\",\"content\":\"x\",\"create_dirs\":true}", true, ERR_OK},
	{"file_write", "{\"path\":\"there\",\"content\":\"other\",\"mode\":\"overwrite\"}", true,
		ERR_OK},
	{"file_write", "{\"path\":\"there\",\"content\":\"more\",\"mode\":\"append\"}", true,
		ERR_OK},
	{"file_edit", "{\"path\":\"there\",\"old_text\":\"text\",\"new_text\":\"x\"}", true,
		ERR_OK},
	{"file_edit",
		"{\"path\":\"there\",\"old_text\":\"text\",\"new_text\":\"x\",\"dry_run\":true}",
		false, ERR_OK},
	{"file_delete", "{\"path\":\"dir\",\"recursive\":true}", true, ERR_OK},
	{"file_move", "{\"from\":\"there\",\"to\":\"moved\"}", true, ERR_OK},
	{"no_such_tool", "{}", false, ERR_UNKNOWN_TOOL},
	{"file_read", "{\"path\":\"../outside/secret\"}", false, ERR_PATH_ESCAPE},
	{"file_read", "{\"path\":\"there\",\"line\":2}", false, ERR_INVALID_ARGUMENT},
};

struct answer {
	enum err_code code;
	bool executed;
	char text[ERR_TEXT_MAX];
};

/* All faults are told, not only the first. */
static unsigned faults;
#define FAULT(...)                                                                                 \
	do {                                                                                       \
		faults++;                                                                          \
		print_message("# " __VA_ARGS__);                                                   \
		print_message("\n");                                                               \
	} while (0)

/* The call as a door makes it. The answer is read after the allocator works again. */
static struct answer call_failing(
	struct fixture *f, const struct row *row, unsigned long n, bool *ret_came)
{
	struct err err;
	struct call *c = NULL;
	json_t *arguments = NULL, *result = NULL;
	struct answer a = {.code = ERR_OK};
	const struct principal who = {.kind = PRINCIPAL_AGENT,
		.id = "agent",
		.tenant = "default",
		.role = ROLE_DEVELOPER};
	assert_int_equal(json_parse(str_of(row->args), 1 << 20, &arguments, &err), 0);
	const struct call_input in = {.tool = row->tool,
		.arguments = arguments,
		.session_id = fixture_session(f),
		.principal = &who};
	fail_alloc_arm(n);
	int r = call_start(fixture_env(f), &in, &c, &err);
	if (r == 0)
		call_wait(c);
	*ret_came = fail_alloc_disarm();
	if (r < 0) {
		a.code = err.code;
		memcpy(a.text, err.text, sizeof(a.text));
	} else {
		struct str text = call_result(c);
		a.code = call_code(c);
		memcpy(a.text, call_err(c)->text, sizeof(a.text));
		if (json_parse(text, 1 << 20, &result, &err) < 0)
			FAULT("%s, allocation %lu: '%.*s' is no JSON: %s", row->tool, n,
				(int)text.n, text.p, err.text);
		a.executed = json_is_true(json_object_get(result, "executed"));
	}
	call_free(c);
	json_decref(arguments);
	json_decref(result);
	return a;
}

static bool same_tree(struct fixture *f, const struct sha256 *before)
{
	struct sha256 now;
	fixture_tree_hash(fixture_ws(f), &now);
	return memcmp(&now, before, sizeof(now)) == 0;
}

static void check(struct fixture *f, const struct row *row, unsigned long n, const struct answer *a,
	const struct sha256 *before)
{
	if (a->code != row->code && (n == 0 || a->code != ERR_NO_MEMORY))
		FAULT("%s, allocation %lu: %s (%s)", row->tool, n, err_info(a->code)->name,
			a->text);
	if (a->executed != (a->code == ERR_OK))
		FAULT("%s, allocation %lu: code %s but executed is %d", row->tool, n,
			err_info(a->code)->name, a->executed);
	bool changed = row->undo && a->code == ERR_OK;
	if (same_tree(f, before) == changed)
		FAULT("%s, allocation %lu: code %s, but the workspace %s", row->tool, n,
			err_info(a->code)->name, changed ? "did not change" : "changed");
	if (changed)
		json_decref(fixture_ok(f, "history_undo", "{}"));
	if (!same_tree(f, before))
		FAULT("%s, allocation %lu: undoing did not bring it back", row->tool, n);
}

static void sweep(struct fixture *f, const struct row *row)
{
	bool came = true;
	struct sha256 before;
	fixture_tree_hash(fixture_ws(f), &before);
	struct answer warm = call_failing(f, row, 0, &came);
	check(f, row, 0, &warm, &before);
	warm = call_failing(f, row, 0, &came);
	check(f, row, 0, &warm, &before);
	long live = fail_alloc_live();
	came = true;
	unsigned long n = 0;
	while (came) {
		struct answer a = call_failing(f, row, ++n, &came);
		check(f, row, n, &a, &before);
		if (fail_alloc_live() != live)
			FAULT("%s, allocation %lu: %ld blocks are left", row->tool, n,
				fail_alloc_live() - live);
		live = fail_alloc_live();
	}
	print_message("# %s: %lu allocations\n", row->tool, n - 1);
}

static void calls_without_memory_say_so_and_change_nothing(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct fixture *f = fixture_new(&(struct fixture_options){0});
		fixture_put(f, "ws/there", "some text\n");
		fixture_put(f, "ws/data.json", "[1,\n2]\n");
		fixture_put(f, "ws/dir/a", "a");
		sweep(f, &rows[i]);
		fixture_free(f);
	}
	assert_int_equal(faults, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_without_memory_say_so_and_change_nothing),
	};
	return cmocka_run_group_tests_name("call_memory", tests, NULL, NULL);
}
