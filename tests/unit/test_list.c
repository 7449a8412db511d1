/* Tests of workspace/list: what a listing never does, what it says when it stops, and its order. */
#include "testing.h"

#include "workspace_fixture.h"

#include "workspace/list.h"

struct listing {
	struct buf out;
	struct list_result res;
};

static int put_entry(void *ctx, const struct list_entry *e, struct err *err)
{
	(void)err;
	struct buf *b = ctx;
	buf_printf(b, "%s%.*s%s", b->len ? " " : "", (int)e->path.n, e->path.p,
		e->kind == NODE_DIR    ? "/"
		: e->kind == NODE_LINK ? "@"
				       : "");
	return 0;
}

static struct listing list_in(struct view *v, const char *path, const struct list_query *q)
{
	struct listing l = {.out = buf_init(64 << 20)};
	struct node n = fx_node(v, path, 0);
	struct list_query all = *q;
	if (!all.max)
		all.max = 100000;
	FX_OK(list_directory(v, &n, &all, put_entry, &l.out, &l.res, &fx_err));
	node_done(&n);
	return l;
}

static void expect_list(struct fixture *f, const struct list_query *q, const char *text)
{
	struct view *v = fx_view(f);
	struct listing l = list_in(v, ".", q);
	assert_string_equal(buf_str(&l.out), text);
	assert_false(l.res.truncated);
	buf_done(&l.out);
	view_free(v);
}

static struct glob *compiled(const char *pattern)
{
	struct glob *g = NULL;
	FX_OK(glob_compile(str_of(pattern), GLOB_BASENAME, &g, &fx_err));
	return g;
}

/* --- what it never does --- */

static void a_listing_follows_no_link_and_shows_no_store(void **state)
{
	struct fixture *f = *state;
	fx_host_mkdir(f, "d");
	fx_host_write(f, "d/x", "x");
	fx_host_symlink(f, "d", "inside");
	fx_host_symlink(f, "/etc", "outside");
	expect_list(f, &(struct list_query){.recursive = true, .hidden = true},
		"d/ d/x inside@ outside@");
}

/* Ten thousand levels in the long suites. */
static void a_very_deep_directory_is_cut_and_said(void **state)
{
	struct fixture *f = *state;
	int fd = fcntl(f->fd, F_DUPFD_CLOEXEC, 0);
	const int levels = getenv("CLOISTER_TEST_FULL") ? 10000 : 600;
	for (int i = 0; i < levels; i++) {
		assert_int_equal(mkdirat(fd, "d", 0755), 0);
		int next = openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(next >= 0);
		close(fd);
		fd = next;
	}
	close(fd);
	struct view *v = fx_view(f);
	struct listing l = list_in(v, ".", &(struct list_query){.recursive = true});
	assert_true(l.res.truncated);
	assert_int_equal(l.res.dirs, LIST_DEPTH_MAX);
	buf_done(&l.out);
	view_free(v);
}

static int stop_at_once(void *ctx, struct err *err)
{
	(void)ctx;
	return err_set(err, ERR_CANCELLED, "stopped");
}

static void a_listing_of_many_names_can_be_stopped(void **state)
{
	struct fixture *f = *state;
	char name[32];
	struct err err;
	struct list_result res = {.files = 77};
	struct buf out = buf_init(1 << 20);
	struct list_query q = {.max = 10, .check = stop_at_once};
	for (int i = 0; i < 600; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		fx_host_write(f, name, "");
	}
	struct view *v = fx_view(f);
	struct node n = fx_node(v, ".", 0);
	assert_int_equal(list_directory(v, &n, &q, put_entry, &out, &res, &err), -ERR_CANCELLED);
	assert_int_equal(res.files, 77);
	node_done(&n);
	view_free(v);
	buf_done(&out);
}

/* --- what it shows --- */

static void names_are_in_the_order_of_their_bytes_each_directory_before_its_own(void **state)
{
	struct fixture *f = *state;
	fx_host_mkdir(f, "b");
	fx_host_write(f, "b/z", "");
	fx_host_write(f, "b/A", "");
	fx_host_write(f, "b.c", "");
	fx_host_write(f, "a", "");
	fx_host_write(f, "\xc3\xa4", "");
	expect_list(f, &(struct list_query){.recursive = true}, "a b/ b/A b/z b.c \xc3\xa4");
	expect_list(f, &(struct list_query){0}, "a b/ b.c \xc3\xa4");
}

static void hidden_names_come_on_request(void **state)
{
	struct fixture *f = *state;
	fx_host_mkdir(f, ".h");
	fx_host_write(f, ".h/x", "");
	fx_host_write(f, "a", "");
	expect_list(f, &(struct list_query){.recursive = true}, "a");
	expect_list(f, &(struct list_query){.recursive = true, .hidden = true}, ".h/ .h/x a");
}

static void exclusions_hold_at_the_top_and_below(void **state)
{
	struct fixture *f = *state;
	struct glob *exclude[] = {compiled("node_modules"), compiled("build"), NULL};
	fx_host_mkdir(f, "node_modules");
	fx_host_write(f, "node_modules/x", "");
	fx_host_mkdir(f, "src");
	fx_host_mkdir(f, "src/build");
	fx_host_write(f, "src/build/y", "");
	fx_host_write(f, "src/z", "");
	expect_list(f, &(struct list_query){.recursive = true, .exclude = exclude}, "src/ src/z");
	glob_free(exclude[0]), glob_free(exclude[1]);
}

static void a_pattern_filters_and_does_not_stop_the_walk(void **state)
{
	struct fixture *f = *state;
	struct glob *g = compiled("*.c");
	fx_host_mkdir(f, "d");
	fx_host_write(f, "d/a.c", "");
	fx_host_write(f, "d/a.h", "");
	fx_host_write(f, "b.c", "");
	expect_list(f, &(struct list_query){.recursive = true, .pattern = g}, "b.c d/a.c");
	expect_list(
		f, &(struct list_query){.recursive = true, .pattern = g, .max_depth = 1}, "b.c");
	glob_free(g);
}

static void pages_put_together_are_the_listing(void **state)
{
	struct fixture *f = *state;
	char path[64];
	for (int d = 0; d < 5; d++) {
		snprintf(path, sizeof(path), "d%d", d);
		fx_host_mkdir(f, path);
		for (int i = 0; i < 7; i++) {
			snprintf(path, sizeof(path), "d%d/f%d", d, i);
			fx_host_write(f, path, "");
		}
	}
	struct view *v = fx_view(f);
	struct listing all = list_in(v, ".", &(struct list_query){.recursive = true});
	assert_int_equal(all.res.files, 35);
	assert_int_equal(all.res.dirs, 5);
	assert_false(all.res.more);
	for (unsigned page = 1; page <= 41; page++) {
		struct buf out = buf_init(1 << 20);
		for (uint64_t skip = 0; skip < 40; skip += page) {
			struct listing one = list_in(v, ".",
				&(struct list_query){.recursive = true, .skip = skip, .max = page});
			assert_int_equal(one.res.more, skip + page < 40);
			assert_int_equal(one.res.files + one.res.dirs, 40);
			buf_printf(&out, "%s%s", out.len ? " " : "", buf_str(&one.out));
			buf_done(&one.out);
		}
		assert_string_equal(buf_str(&out), buf_str(&all.out));
		buf_done(&out);
	}
	buf_done(&all.out);
	view_free(v);
}

static void a_call_lists_its_own_changes(void **state)
{
	struct fixture *f = *state;
	fx_host_mkdir(f, "d");
	fx_host_write(f, "d/old", "");
	fx_host_write(f, "gone", "");
	struct view *v = fx_view(f);
	fx_put_parents(f, v, "new/deep/file", "x");
	fx_remove(v, "gone", false);
	fx_rename(v, "d", "e", false);
	struct listing l = list_in(v, ".", &(struct list_query){.recursive = true});
	assert_string_equal(buf_str(&l.out), "e/ e/old new/ new/deep/ new/deep/file");
	buf_done(&l.out);
	view_free(v);
}

/* A hundred thousand in the long suites. */
static void a_directory_of_very_many_names_is_listed(void **state)
{
	struct fixture *f = *state;
	const int many = getenv("CLOISTER_TEST_FULL") ? 100000 : 11000;
	char name[32];
	for (int i = 0; i < many; i++) {
		snprintf(name, sizeof(name), "l%d", i);
		assert_int_equal(mknodat(f->fd, name, S_IFREG | 0644, 0), 0);
	}
	struct view *v = fx_view(f);
	struct listing l = list_in(v, ".", &(struct list_query){.max = 10});
	assert_int_equal(l.res.files, many);
	assert_true(l.res.more);
	assert_string_equal(
		buf_str(&l.out), "l0 l1 l10 l100 l1000 l10000 l10001 l10002 l10003 l10004");
	buf_done(&l.out);
	view_free(v);
}

#define T(name) cmocka_unit_test_setup_teardown(name, fx_setup, fx_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_listing_follows_no_link_and_shows_no_store),
		T(a_very_deep_directory_is_cut_and_said),
		T(a_listing_of_many_names_can_be_stopped),
		T(names_are_in_the_order_of_their_bytes_each_directory_before_its_own),
		T(hidden_names_come_on_request),
		T(exclusions_hold_at_the_top_and_below),
		T(a_pattern_filters_and_does_not_stop_the_walk),
		T(pages_put_together_are_the_listing),
		T(a_call_lists_its_own_changes),
		T(a_directory_of_very_many_names_is_listed),
	};
	return cmocka_run_group_tests_name("list", tests, NULL, NULL);
}
