/*
 * A change set with every kind of change in it, that reports instead of failing the test, and what
 * the workspace holds before and after it. For tests that let something fail in the middle.
 */
#ifndef CLOISTER_TESTS_WHOLE_CHANGE_H
#define CLOISTER_TESTS_WHOLE_CHANGE_H

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

#endif
