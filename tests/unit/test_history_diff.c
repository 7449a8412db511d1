/* Tests of the difference between then and now, and of the diff of a change set before it is
 * committed. */
#include "testing.h"

#include "history_fixture.h"

static struct buf diff_since(
	struct fixture *f, uint64_t since, const char *label, size_t max, bool *cut)
{
	struct buf out = buf_init(64 << 20);
	struct diff_options opt = {
		.since_seq = since, .since_label = label, .max_bytes = max, .context = 3};
	FX_OK(workspace_diff(f->ws, &opt, &out, cut, NULL, NULL, &fx_err));
	return out;
}

static void expect_diff(struct fixture *f, uint64_t since, const char *text)
{
	bool cut = true;
	struct buf d = diff_since(f, since, NULL, 1 << 20, &cut);
	assert_string_equal(buf_str(&d), text);
	assert_false(cut);
	buf_done(&d);
}

static void a_position_that_history_does_not_reach_is_refused(void **state)
{
	struct fixture *f = *state;
	bool cut;
	struct buf out = buf_init(1 << 20);
	struct diff_options opt = {.since_seq = 9, .max_bytes = 1000};
	assert_int_equal(
		workspace_diff(f->ws, &opt, &out, &cut, NULL, NULL, &fx_err), -ERR_NOT_FOUND);
	opt = (struct diff_options){.since_label = "none", .max_bytes = 1000};
	assert_int_equal(
		workspace_diff(f->ws, &opt, &out, &cut, NULL, NULL, &fx_err), -ERR_NOT_FOUND);
	buf_done(&out);
}

static void what_was_changed_and_changed_back_has_no_diff(void **state)
{
	struct fixture *f = *state;
	write_file(f, "a", "one\n");
	write_file(f, "a", "two\n");
	write_file(f, "a", "one\n");
	write_file(f, "b", "x\n");
	remove_path(f, "b");
	expect_diff(f, 1, "");
}

static void comparing_works_with_a_full_quota_and_changes_nothing(void **state)
{
	struct fixture *f = *state;
	struct workspace_options opt = f->opt;
	opt.quota_bytes = 1000;
	fx_reopen(f, &opt);
	struct view *v = fx_view(f);
	fx_put_size(f, v, "a", 990);
	fx_commit(f, v);
	fx_put_size(f, v, "a", 1000);
	fx_commit(f, v);
	view_free(v);
	bool cut;
	struct buf d = diff_since(f, 1, NULL, 1 << 20, &cut);
	assert_true(d.len > 2000);
	buf_done(&d);
	fx_expect_usage(f, 1000, 1);
	assert_int_equal(workspace_seq(f->ws), 2);
	assert_int_equal(fx_saved_names(f), 1);
}

static void an_outside_edit_is_part_of_the_difference(void **state)
{
	struct fixture *f = *state;
	write_file(f, "a", "one\n");
	write_file(f, "a", "two\n");
	fx_host_write(f, "a", "mine\n");
	expect_diff(f, 1, "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-one\n+mine\n");
	remove_path(f, "a");
	expect_diff(f, 1,
		"diff --git a/a b/a\ndeleted file mode 100644\n--- a/a\n+++ /dev/null\n@@ -1 +0,0 "
		"@@\n-one\n");
}

static void the_diff_is_cut_at_its_limit(void **state)
{
	struct fixture *f = *state;
	bool cut = false;
	write_file(f, "a", "one\n");
	write_file(f, "a", "two\n");
	struct buf all = diff_since(f, 1, NULL, 1000, &cut);
	assert_false(cut);
	for (size_t max = 0; max < all.len; max++) {
		struct buf d = diff_since(f, 1, NULL, max, &cut);
		assert_true(d.len <= max);
		assert_true(cut);
		buf_done(&d);
	}
	buf_done(&all);
}

static void each_kind_of_change_is_shown(void **state)
{
	struct fixture *f = *state;
	fx_host_write(f, "m", "x\n");
	write_file(f, "d/new\tname", "1\n");
	append_file(f, "d/new\tname", "2\n");
	rename_path(f, "m", "n", false);
	change_mode(f, "n", 0755);
	make_link(f, "l", "n");
	expect_diff(f, 0,
		"Created directory d\n"
		"diff --git \"a/d/new\\011name\" \"b/d/new\\011name\"\nnew file mode 100644\n"
		"--- /dev/null\n+++ \"b/d/new\\011name\"\n@@ -0,0 +1,2 @@\n+1\n+2\n"
		"diff --git a/m b/n\nold mode 100644\nnew mode 100755\nrename from m\nrename to n\n"
		"diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 "
		"@@\n+n\n"
		"\\ No newline at end of file\n");
}

static bool put_row(void *ctx, const struct change *c)
{
	buf_printf(ctx, "%s %s %lld %lld;", change_kind_word(c->kind), c->agent_path,
		(long long)c->size_before, (long long)c->size_after);
	return true;
}

static void rows_say_what_became_of_each_path(void **state)
{
	struct fixture *f = *state;
	bool cut;
	struct buf out = buf_init(1 << 20), rows = buf_init(1 << 20);
	fx_host_write(f, "gone", "123");
	write_file(f, "a", "one\n");
	write_file(f, "b", "two\n");
	write_file(f, "a", "longer\n");
	remove_path(f, "gone");
	struct diff_options opt = {.since_seq = 1, .max_bytes = 1 << 20};
	FX_OK(workspace_diff(f->ws, &opt, &out, &cut, put_row, &rows, &fx_err));
	assert_string_equal(buf_str(&rows), "created /workspace/b -1 4;replaced /workspace/a 4 "
					    "7;deleted /workspace/gone 3 -1;");
	buf_done(&out), buf_done(&rows);
}

static void a_dry_run_shows_what_would_change(void **state)
{
	struct fixture *f = *state;
	bool cut;
	struct buf out = buf_init(1 << 20);
	fx_host_write(f, "a", "one\n");
	fx_host_write(f, "log", "1\n");
	fx_host_write(f, "bin", "x");
	fx_host_symlink(f, "a", "l");
	struct view *v = fx_view(f);
	fx_put(f, v, "a", "two\n");
	fx_append(f, v, "log", "2\n");
	fx_put_parents(f, v, "d/n", "new");
	fx_put(f, v, "bin", "\xff\xfe");
	fx_remove(v, "l", false);
	struct changeset *cs = fx_finish(v);
	FX_OK(changeset_diff(cs, &out, 1 << 20, &cut, &fx_err));
	assert_string_equal(buf_str(&out),
		"diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-one\n+two\n"
		"diff --git a/log b/log\n--- a/log\n+++ b/log\n@@ -1 +1,2 @@\n 1\n+2\n"
		"Created directory d\n"
		"diff --git a/d/n b/d/n\nnew file mode 100644\n--- /dev/null\n+++ b/d/n\n@@ -0,0 "
		"+1 "
		"@@\n+new\n\\ No newline at end of file\n"
		"diff --git a/bin b/bin\nBinary files a/bin and b/bin differ\n"
		"diff --git a/l b/l\ndeleted file mode 120000\n--- a/l\n+++ /dev/null\n@@ -1 +0,0 "
		"@@\n"
		"-a\n\\ No newline at end of file\n");
	assert_false(cut);
	changeset_free(cs);
	view_free(v);
	buf_done(&out);
	fx_expect_host(f, "a", "one\n");
}

/* The diff from a checkpoint to now, applied by git to the tree as it was, gives the tree as it is.
 */
static void git_can_apply_the_difference(void **state)
{
	struct fixture *f = *state;
	uint64_t seq;
	bool cut;
	char other[64], self[80];
	write_file(f, "a", "one\ntwo\nthree\n");
	write_file(f, "d/b", "x\n");
	write_file(f, "d/c", "no newline");
	write_file(f, "\"quoted\" \\ \xc3\xa4\x01", "1\n");
	write_file(f, "gone", "2\n");
	make_dir(other);
	FX_OK(checkpoint_create(f->ws, "x", &seq, &fx_err));
	snprintf(self, sizeof(self), "%s/.", f->dir);
	const char *const copy[] = {"cp", "-a", self, other, NULL};
	assert_int_equal(run_in("/", -1, copy), 0);
	write_file(f, "a", "one\nTWO\nthree\n");
	append_file(f, "d/c", "\nmore\n");
	write_file(f, "\"quoted\" \\ \xc3\xa4\x01", "3\n");
	rename_path(f, "d/b", "e", false);
	write_file(f, "e", "y\n");
	remove_path(f, "gone");
	write_file(f, "deep/er/f", "f\n");
	make_link(f, "l", "deep/er");
	change_mode(f, "a", 0755);
	struct buf d = diff_since(f, 0, "x", 1 << 20, &cut);
	int fd = memory_file(&d);
	const char *const apply[] = {"git", "apply", "--whitespace=nowarn", "-", NULL};
	if (run_in(other, fd, apply) != 0)
		fail_msg("git apply refused:\n%s", buf_str(&d));
	close(fd);
	expect_same_trees(f->dir, other);
	remove_dir(other);
	buf_done(&d);
}

#define T(name) cmocka_unit_test_setup_teardown(name, fx_setup, fx_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_position_that_history_does_not_reach_is_refused),
		T(what_was_changed_and_changed_back_has_no_diff),
		T(comparing_works_with_a_full_quota_and_changes_nothing),
		T(an_outside_edit_is_part_of_the_difference),
		T(the_diff_is_cut_at_its_limit),
		T(each_kind_of_change_is_shown),
		T(rows_say_what_became_of_each_path),
		T(a_dry_run_shows_what_would_change),
		T(git_can_apply_the_difference),
	};
	return cmocka_run_group_tests_name("history_diff", tests, NULL, NULL);
}
