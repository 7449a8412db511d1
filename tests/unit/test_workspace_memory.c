/*
 * A change set with every allocation failing, one after the other: the workspace is as it was or
 * as it should be, its count is exact, and it goes on working.
 */
#include "fail_alloc.h"
#include "workspace_fixture.h"

static int put(struct view *v, const char *path, const char *text, bool append, struct err *err)
{
	struct node n = {.fd = -1};
	struct staged *s = NULL;
	int r = view_resolve(v, str_of(path), RESOLVE_PARENTS_MAY_LACK, &n, err);
	if (r == 0 && (r = staged_new(v, 0, &s, err)) == 0)
		r = staged_write(s, text, strlen(text), err);
	if (r == 0 && append)
		r = view_append(v, &n, take_ptr(s), NULL, err);
	else if (r == 0)
		r = view_put(v, &n, take_ptr(s), PUT_EITHER | PUT_PARENTS, 0644, NULL, err);
	staged_free(s);
	node_done(&n);
	return r;
}

static int drop(struct view *v, const char *path, struct err *err)
{
	struct node n = {.fd = -1};
	int r = view_resolve(v, str_of(path), RESOLVE_NOFOLLOW, &n, err);
	if (r == 0)
		r = view_remove(v, &n, true, NULL, err);
	node_done(&n);
	return r;
}

static int move(struct view *v, const char *from, const char *to, struct err *err)
{
	struct node a = {.fd = -1}, b = {.fd = -1};
	int r = view_resolve(v, str_of(from), RESOLVE_NOFOLLOW, &a, err);
	if (r == 0)
		r = view_resolve(v, str_of(to), RESOLVE_NOFOLLOW, &b, err);
	if (r == 0)
		r = view_rename(v, &a, &b, false, err);
	node_done(&a);
	node_done(&b);
	return r;
}

/* Every kind of change in one set. */
static int change_all(struct workspace *ws, struct err *err)
{
	struct commit_result res;
	struct changeset *cs = NULL;
	_cleanup_(cleanup_view_free) struct view *v = NULL;
	int r = view_new(ws, &v, err);
	if (r < 0 || (r = put(v, "made/deep/new", "new", false, err)) < 0 ||
		(r = put(v, "old", "replaced", false, err)) < 0 ||
		(r = put(v, "log", " more", true, err)) < 0 || (r = drop(v, "gone", err)) < 0 ||
		(r = drop(v, "tree", err)) < 0 || (r = move(v, "dir", "moved", err)) < 0)
		return r;
	r = view_finish(v, &cs, err);
	return r < 0 ? r : changeset_commit(ws, take_ptr(cs), &fx_info, &res, err);
}

static struct fixture *start(void)
{
	void *state;
	assert_int_equal(fx_setup(&state), 0);
	struct fixture *f = state;
	struct view *v = fx_view(f);
	static const char *const paths[] = {"old", "log", "gone", "tree/a", "tree/b/c", "dir/x"};
	for (size_t i = 0; i < ARRAY_LEN(paths); i++)
		fx_put_parents(f, v, paths[i], "12345");
	(void)fx_commit(f, v);
	view_free(v);
	return f;
}

static void expect_before(struct fixture *f)
{
	fx_expect_host(f, "old", "12345");
	fx_expect_host(f, "log", "12345");
	fx_expect_host(f, "gone", "12345");
	fx_expect_host(f, "tree/b/c", "12345");
	fx_expect_host(f, "dir/x", "12345");
	assert_false(fx_host_exists(f, "made"));
	assert_false(fx_host_exists(f, "moved"));
	fx_expect_usage(f, 30, 9);
}

static void expect_after(struct fixture *f)
{
	fx_expect_host(f, "old", "replaced");
	fx_expect_host(f, "log", "12345 more");
	fx_expect_host(f, "made/deep/new", "new");
	fx_expect_host(f, "moved/x", "12345");
	assert_false(fx_host_exists(f, "gone"));
	assert_false(fx_host_exists(f, "tree"));
	assert_false(fx_host_exists(f, "dir"));
	fx_expect_usage(f, 26, 7);
}

/* With the n-th allocation failing; false when the change needs fewer. */
static bool holds_at(unsigned long n)
{
	struct err err;
	struct fixture *f = start();
	err_clear(&err);
	fail_alloc_arm(n);
	int r = change_all(f->ws, &err);
	bool came = fail_alloc_disarm();
	if (r < 0 && r != -ERR_NO_MEMORY)
		fail_msg("allocation %lu failing gives '%s'", n, err.text);
	for (int again = 0; again < 2; again++) {
		if (r < 0)
			expect_before(f);
		else
			expect_after(f);
		fx_reopen(f, &(struct workspace_options){.history_bytes = 100 << 20});
	}
	if (r < 0)
		assert_int_equal(change_all(f->ws, &err), 0);
	expect_after(f);
	void *state = f;
	assert_int_equal(fx_teardown(&state), 0);
	return came;
}

static void a_change_without_memory_is_whole_or_not_at_all(void **state)
{
	(void)state;
	unsigned long n = 1;
	(void)holds_at(0);
	long before = fail_alloc_live();
	while (holds_at(n)) {
		if (fail_alloc_live() != before)
			fail_msg("allocation %lu failing leaves %ld blocks", n,
				fail_alloc_live() - before);
		n++;
	}
	assert_true(n > 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_change_without_memory_is_whole_or_not_at_all),
	};
	return cmocka_run_group_tests_name("workspace_memory", tests, NULL, NULL);
}
