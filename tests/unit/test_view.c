/* Tests of views and commits on a real directory: what a call sees, what a commit makes of it. */
#include "testing.h"

#include "workspace_fixture.h"

static void a_call_sees_its_own_writes_and_nobody_else_does(void **state)
{
	struct fixture *f = *state;
	struct view *v = fx_view(f), *other = fx_view(f);
	fx_put(f, v, "a.txt", "one");
	fx_expect_content(v, "a.txt", "one");
	fx_expect_absent(other, "a.txt");
	assert_false(fx_host_exists(f, "a.txt"));
	fx_commit(f, v);
	fx_expect_content(other, "a.txt", "one");
	fx_expect_host(f, "a.txt", "one");
	view_free(v);
	view_free(other);
}

static void dropping_a_view_leaves_no_trace(void **state)
{
	struct fixture *f = *state;
	struct view *v = fx_view(f);
	fx_put(f, v, "a.txt", "one");
	fx_mkdir(v, "d/e");
	view_free(v);
	assert_false(fx_host_exists(f, "a.txt"));
	assert_false(fx_host_exists(f, "d"));
	assert_int_equal(fx_saved_names(f), 0);
}

static void replacing_keeps_the_mode(void **state)
{
	struct fixture *f = *state;
	fx_host_write(f, "run.sh", "old");
	fx_host_chmod(f, "run.sh", 0750);
	struct view *v = fx_view(f);
	fx_put(f, v, "run.sh", "new");
	fx_commit(f, v);
	fx_expect_host(f, "run.sh", "new");
	assert_int_equal(fx_host_mode(f, "run.sh"), 0750);
	view_free(v);
}

static void appending_writes_behind_the_old_content(void **state)
{
	struct fixture *f = *state;
	fx_host_write(f, "log", "one\n");
	ino_t before = fx_host_ino(f, "log");
	struct view *v = fx_view(f);
	fx_append(f, v, "log", "two\n");
	fx_expect_content(v, "log", "one\ntwo\n");
	fx_append(f, v, "log", "three\n");
	fx_expect_content(v, "log", "one\ntwo\nthree\n");
	fx_commit(f, v);
	fx_expect_host(f, "log", "one\ntwo\nthree\n");
	assert_int_equal(fx_host_ino(f, "log"), before);
	view_free(v);
}

static void appending_to_a_file_with_two_names_leaves_the_other_alone(void **state)
{
	struct fixture *f = *state;
	fx_host_write(f, "outside", "one\n");
	fx_host_link(f, "outside", "in");
	struct view *v = fx_view(f);
	fx_append(f, v, "in", "two\n");
	fx_commit(f, v);
	fx_expect_host(f, "in", "one\ntwo\n");
	fx_expect_host(f, "outside", "one\n");
	view_free(v);
}

static void made_directories_hold_files(void **state)
{
	struct fixture *f = *state;
	struct view *v = fx_view(f);
	fx_mkdir(v, "a/b");
	fx_put(f, v, "a/b/c", "x");
	fx_put_parents(f, v, "p/q/r", "y");
	assert_string_equal(fx_list(v, "."), "a/ p/");
	assert_string_equal(fx_list(v, "a/b"), "c");
	fx_commit(f, v);
	fx_expect_host(f, "a/b/c", "x");
	fx_expect_host(f, "p/q/r", "y");
	view_free(v);
}

static void removing_what_the_call_made_is_no_change(void **state)
{
	struct fixture *f = *state;
	struct view *v = fx_view(f);
	fx_mkdir(v, "a");
	fx_put(f, v, "a/x", "1");
	fx_remove(v, "a", true);
	fx_expect_absent(v, "a");
	assert_int_equal(fx_finish_count(v), 0);
	view_free(v);
}

static void removing_a_tree_is_one_change_with_exact_sums(void **state)
{
	struct fixture *f = *state;
	fx_host_mkdir(f, "t");
	fx_host_mkdir(f, "t/u");
	fx_host_write(f, "t/a", "12345");
	fx_host_write(f, "t/u/b", "123");
	struct view *v = fx_view(f);
	fx_put(f, v, "t/a", "1234567");
	fx_put(f, v, "t/new", "zz");
	assert_int_equal(fx_remove(v, "t", true), 5);
	struct changeset *cs = fx_finish(v);
	assert_int_equal(changeset_count(cs), 1);
	assert_int_equal(changeset_bytes_delta(cs), -8);
	assert_int_equal(changeset_entries_delta(cs), -4);
	fx_commit_set(f, cs);
	assert_false(fx_host_exists(f, "t"));
	view_free(v);
}

static void a_directory_that_is_not_empty_stays(void **state)
{
	struct fixture *f = *state;
	fx_host_mkdir(f, "t");
	fx_host_write(f, "t/a", "1");
	struct view *v = fx_view(f);
	fx_refuse_remove(v, "t", ERR_NOT_EMPTY);
	fx_remove(v, "t/a", false);
	fx_remove(v, "t", false);
	fx_commit(f, v);
	assert_false(fx_host_exists(f, "t"));
	view_free(v);
}

static void a_removed_and_rewritten_file_counts_as_replaced(void **state)
{
	struct fixture *f = *state;
	fx_host_write(f, "a", "old");
	struct view *v = fx_view(f);
	fx_remove(v, "a", false);
	fx_expect_absent(v, "a");
	fx_put(f, v, "a", "newer");
	struct changeset *cs = fx_finish(v);
	assert_int_equal(changeset_count(cs), 1);
	assert_int_equal(changeset_get(cs, 0)->kind, CHANGE_REPLACE);
	assert_int_equal(changeset_bytes_delta(cs), 2);
	fx_commit_set(f, cs);
	fx_expect_host(f, "a", "newer");
	view_free(v);
}

static void renamed_directories_show_their_content_at_the_new_place(void **state)
{
	struct fixture *f = *state;
	fx_host_mkdir(f, "d");
	fx_host_write(f, "d/x", "real");
	struct view *v = fx_view(f);
	fx_put(f, v, "d/y", "staged");
	fx_rename(v, "d", "e", false);
	fx_expect_absent(v, "d");
	fx_refuse_resolve(v, "d/x", 0, ERR_NOT_FOUND);
	fx_expect_content(v, "e/x", "real");
	fx_expect_content(v, "e/y", "staged");
	assert_string_equal(fx_list(v, "e"), "x y");
	fx_put(f, v, "e/x", "changed");
	fx_put(f, v, "d", "a file now");
	fx_commit(f, v);
	fx_expect_host(f, "e/x", "changed");
	fx_expect_host(f, "e/y", "staged");
	fx_expect_host(f, "d", "a file now");
	view_free(v);
}

static void two_names_can_be_swapped(void **state)
{
	struct fixture *f = *state;
	fx_host_write(f, "a", "A");
	fx_host_write(f, "b", "B");
	struct view *v = fx_view(f);
	fx_rename(v, "a", "tmp", false);
	fx_rename(v, "b", "a", false);
	fx_rename(v, "tmp", "b", false);
	fx_expect_content(v, "a", "B");
	fx_expect_content(v, "b", "A");
	fx_commit(f, v);
	fx_expect_host(f, "a", "B");
	fx_expect_host(f, "b", "A");
	assert_false(fx_host_exists(f, "tmp"));
	view_free(v);
}

static void a_directory_never_moves_into_itself(void **state)
{
	struct fixture *f = *state;
	fx_host_mkdir(f, "d");
	struct view *v = fx_view(f);
	fx_refuse_rename(v, "d", "d/e", false, ERR_INVALID_ARGUMENT);
	view_free(v);
}

static void renaming_over_a_file_needs_to_be_asked_for(void **state)
{
	struct fixture *f = *state;
	fx_host_write(f, "a", "A");
	fx_host_write(f, "b", "B");
	struct view *v = fx_view(f);
	fx_refuse_rename(v, "a", "b", false, ERR_EXISTS);
	fx_rename(v, "a", "b", true);
	fx_commit(f, v);
	fx_expect_host(f, "b", "A");
	assert_false(fx_host_exists(f, "a"));
	view_free(v);
}

static void a_temporary_renamed_over_a_file_replaces_it(void **state)
{
	struct fixture *f = *state;
	fx_host_write(f, "a", "A");
	struct view *v = fx_view(f);
	fx_put(f, v, "a.tmp", "new");
	fx_rename(v, "a.tmp", "a", true);
	struct changeset *cs = fx_finish(v);
	assert_int_equal(changeset_count(cs), 1);
	assert_int_equal(changeset_get(cs, 0)->kind, CHANGE_REPLACE);
	fx_commit_set(f, cs);
	fx_expect_host(f, "a", "new");
	assert_false(fx_host_exists(f, "a.tmp"));
	view_free(v);
}

static void modes_change_and_dangerous_bits_are_refused(void **state)
{
	struct fixture *f = *state;
	struct node n;
	struct err e;
	fx_host_write(f, "a", "A");
	struct view *v = fx_view(f);
	assert_int_equal(view_resolve(v, STR("a"), 0, &n, &e), 0);
	assert_int_equal(view_chmod(v, &n, 04755, &e), -ERR_INVALID_ARGUMENT);
	assert_int_equal(view_chmod(v, &n, 0700, &e), 0);
	node_done(&n);
	fx_put(f, v, "a", "B");
	fx_commit(f, v);
	assert_int_equal(fx_host_mode(f, "a"), 0700);
	fx_expect_host(f, "a", "B");
	view_free(v);
}

static void a_file_changed_behind_the_view_is_a_conflict(void **state)
{
	struct fixture *f = *state;
	fx_host_write(f, "a", "A");
	fx_host_write(f, "b", "B");
	struct view *v = fx_view(f);
	fx_put(f, v, "b", "mine");
	fx_put(f, v, "a", "mine");
	fx_host_write(f, "a", "theirs, longer");
	fx_refuse_commit(f, v, ERR_CONFLICT);
	fx_expect_host(f, "a", "theirs, longer");
	fx_expect_host(f, "b", "B");
	assert_int_equal(fx_saved_names(f), 0);
	view_free(v);
}

static void a_name_taken_behind_the_view_is_a_conflict_and_all_is_taken_back(void **state)
{
	struct fixture *f = *state;
	fx_host_write(f, "old", "O");
	struct view *v = fx_view(f);
	fx_put(f, v, "old", "N");
	fx_mkdir(v, "d");
	fx_put(f, v, "d/x", "1");
	fx_put(f, v, "taken", "mine");
	fx_host_write(f, "taken", "theirs");
	fx_refuse_commit(f, v, ERR_CONFLICT);
	fx_expect_host(f, "old", "O");
	fx_expect_host(f, "taken", "theirs");
	assert_false(fx_host_exists(f, "d"));
	assert_int_equal(fx_saved_names(f), 0);
	view_free(v);
}

static void expected_content_is_compared(void **state)
{
	struct fixture *f = *state;
	struct node n;
	struct err e;
	struct staged *s;
	struct sha256 good, bad;
	sha256_of("A", 1, &good);
	sha256_of("B", 1, &bad);
	fx_host_write(f, "a", "A");
	struct view *v = fx_view(f);
	assert_int_equal(view_resolve(v, STR("a"), 0, &n, &e), 0);
	s = fx_staged(v, "new");
	assert_int_equal(view_put(v, &n, s, PUT_EITHER, 0644, &bad, &e), -ERR_CONFLICT);
	fx_expect_content(v, "a", "A");
	s = fx_staged(v, "new");
	assert_int_equal(view_put(v, &n, s, PUT_EITHER, 0644, &good, &e), 0);
	node_done(&n);
	fx_commit(f, v);
	fx_expect_host(f, "a", "new");
	view_free(v);
}

static void usage_follows_every_commit_exactly(void **state)
{
	struct fixture *f = *state;
	struct view *v = fx_view(f);
	fx_put(f, v, "a", "12345");
	fx_commit(f, v);
	fx_expect_usage(f, 5, 1);
	fx_put(f, v, "a", "123");
	fx_mkdir(v, "d");
	fx_commit(f, v);
	fx_expect_usage(f, 3, 2);
	fx_append(f, v, "a", "4567");
	fx_rename(v, "a", "d/b", false);
	fx_commit(f, v);
	fx_expect_usage(f, 7, 2);
	fx_expect_host(f, "d/b", "1234567");
	fx_remove(v, "d", true);
	fx_commit(f, v);
	fx_expect_usage(f, 0, 0);
	view_free(v);
}

static void the_quota_message_has_both_figures(void **state)
{
	struct fixture *f = *state;
	struct err e;
	fx_reopen(f, &(struct workspace_options){.quota_bytes = 2 << 20, .lock_wait_ms = 1000});
	struct view *v = fx_view(f);
	fx_put_size(f, v, "a", 1 << 20);
	fx_commit(f, v);
	fx_put_size(f, v, "b", (1 << 20) + (1 << 19));
	fx_refuse_commit_err(f, v, ERR_QUOTA, &e);
	assert_string_equal(e.text, "Workspace quota exceeded: 2.5MB > 2MB limit");
	assert_false(fx_host_exists(f, "b"));
	fx_expect_usage(f, 1 << 20, 1);
	fx_put_size(f, v, "a", 2 << 20);
	fx_commit(f, v);
	fx_expect_usage(f, 2 << 20, 1);
	view_free(v);
}

static void entries_have_a_quota_too(void **state)
{
	struct fixture *f = *state;
	struct err e;
	fx_reopen(f, &(struct workspace_options){.quota_entries = 2, .lock_wait_ms = 1000});
	struct view *v = fx_view(f);
	fx_put_parents(f, v, "d/a", "1");
	fx_commit(f, v);
	fx_put(f, v, "b", "1");
	fx_refuse_commit_err(f, v, ERR_QUOTA, &e);
	assert_string_equal(e.text, "Workspace quota exceeded: 3 entries > 2 entries limit");
	assert_false(fx_host_exists(f, "b"));
	view_free(v);
}

int main(void)
{
#define CASE(fn) cmocka_unit_test_setup_teardown(fn, fx_setup, fx_teardown)
	const struct CMUnitTest tests[] = {
		CASE(a_call_sees_its_own_writes_and_nobody_else_does),
		CASE(dropping_a_view_leaves_no_trace),
		CASE(replacing_keeps_the_mode),
		CASE(appending_writes_behind_the_old_content),
		CASE(appending_to_a_file_with_two_names_leaves_the_other_alone),
		CASE(made_directories_hold_files),
		CASE(removing_what_the_call_made_is_no_change),
		CASE(removing_a_tree_is_one_change_with_exact_sums),
		CASE(a_directory_that_is_not_empty_stays),
		CASE(a_removed_and_rewritten_file_counts_as_replaced),
		CASE(renamed_directories_show_their_content_at_the_new_place),
		CASE(two_names_can_be_swapped),
		CASE(a_directory_never_moves_into_itself),
		CASE(renaming_over_a_file_needs_to_be_asked_for),
		CASE(a_temporary_renamed_over_a_file_replaces_it),
		CASE(modes_change_and_dangerous_bits_are_refused),
		CASE(a_file_changed_behind_the_view_is_a_conflict),
		CASE(a_name_taken_behind_the_view_is_a_conflict_and_all_is_taken_back),
		CASE(expected_content_is_compared),
		CASE(usage_follows_every_commit_exactly),
		CASE(the_quota_message_has_both_figures),
		CASE(entries_have_a_quota_too),
	};
	return cmocka_run_group_tests_name("view", tests, NULL, NULL);
}
