/* Tests of views and commits on a real directory: what a call sees, what a commit makes of it. */
#include "testing.h"

#include "workspace_fixture.h"

#include <sys/wait.h>
#include <sys/xattr.h>

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

static void attributes_survive_a_replacement(void **state)
{
	struct fixture *f = *state;
	char value[8] = {0};
	fx_host_write(f, "a", "old");
	int fd = openat(f->fd, "a", O_RDONLY | O_CLOEXEC);
	assert_int_equal(fsetxattr(fd, "user.note", "kept", 4, 0), 0);
	close(fd);
	if (geteuid() == 0)
		assert_int_equal(fchownat(f->fd, "a", 12345, 54321, 0), 0);
	struct view *v = fx_view(f);
	fx_put(f, v, "a", "new");
	assert_int_equal(fx_commit(f, v).in_place, 0);
	fd = openat(f->fd, "a", O_RDONLY | O_CLOEXEC);
	assert_int_equal(fgetxattr(fd, "user.note", value, sizeof(value)), 4);
	assert_string_equal(value, "kept");
	close(fd);
	if (geteuid() == 0) {
		assert_int_equal(fx_host_stat(f, "a").st_uid, 12345);
		assert_int_equal(fx_host_stat(f, "a").st_gid, 54321);
	}
	view_free(v);
}

/* As an ordinary user, with a file of root's that everybody may write. */
static int change_roots_file(struct fixture *f)
{
	struct changeset *cs;
	struct commit_result res;
	if (setresgid(65534, 65534, 65534) < 0 || setresuid(65534, 65534, 65534) < 0)
		return 1;
	f->ws = NULL;
	fx_reopen(f, &(struct workspace_options){.history_bytes = 1 << 20, .lock_wait_ms = 1000});
	struct view *v = fx_view(f);
	fx_put(f, v, "roots", "changed by nobody");
	cs = fx_finish(v);
	if (changeset_commit(f->ws, cs, &fx_info, &res, &fx_err) < 0 || res.in_place != 1)
		return 2;
	/* Taken back as well when a later step fails. */
	fx_put(f, v, "roots", "never");
	fx_put(f, v, "taken", "mine");
	fx_host_write(f, "taken", "theirs");
	cs = fx_finish(v);
	if (changeset_commit(f->ws, cs, &fx_info, &res, &fx_err) != -ERR_CONFLICT)
		return 3;
	struct workspace_usage u;
	if (workspace_usage(f->ws, &u, &fx_err) < 0 || u.bytes != 17 || u.entries != 1)
		return 4;
	return 0;
}

static void an_owner_that_cannot_be_kept_is_kept_in_place(void **state)
{
	struct fixture *f = *state;
	int status;
	if (geteuid() != 0) {
		print_message("# only root can make a file of somebody else\n");
		return;
	}
	workspace_free(f->ws);
	f->ws = NULL;
	assert_int_equal(tree_remove(f->fd, ".cloister"), 0);
	assert_int_equal(fchown(f->fd, 65534, 65534), 0);
	fx_host_write(f, "roots", "old");
	fx_host_chmod(f, "roots", 0666);
	ino_t ino = fx_host_ino(f, "roots");
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0)
		_exit(change_roots_file(f));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(fx_host_stat(f, "roots").st_uid, 0);
	assert_int_equal(fx_host_ino(f, "roots"), ino);
	fx_expect_host(f, "roots", "changed by nobody");
	fx_expect_host(f, "taken", "theirs");
}

static void a_change_set_may_hold_more_files_than_descriptors(void **state)
{
	struct fixture *f = *state;
	char name[32];
	struct view *v = fx_view(f);
	for (int i = 0; i < LIMIT_STAGED_OPEN + 100; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		fx_put(f, v, name, name);
	}
	fx_expect_content(v, "f1099", "f1099");
	fx_put(f, v, "f1099", "again");
	fx_commit(f, v);
	fx_expect_host(f, "f0", "f0");
	fx_expect_host(f, "f1098", "f1098");
	fx_expect_host(f, "f1099", "again");
	struct tree_sum sum;
	int fd = openat(f->fd, ".cloister/staged", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(tree_count(fd, NULL, &sum), 0);
	close(fd);
	assert_int_equal(sum.entries, 0);
	view_free(v);
}

static void a_shared_volume_has_a_count_of_its_own(void **state)
{
	struct fixture *f = *state;
	struct workspace *other = NULL;
	struct err e;
	fx_host_mkdir(f, "mine");
	fx_host_mkdir(f, "yours");
	fx_host_mkdir(f, "volume");
	int dirs[3] = {openat(f->fd, "mine", O_RDONLY | O_DIRECTORY | O_CLOEXEC),
		openat(f->fd, "yours", O_RDONLY | O_DIRECTORY | O_CLOEXEC),
		openat(f->fd, "volume", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
	struct mount_spec m[] = {{.agent_path = "/workspace", .dir_fd = dirs[0], .store_fd = -1},
		{.agent_path = "/workspace/shared",
			.dir_fd = dirs[2],
			.store_fd = -1,
			.shared = true,
			.quota_bytes = 10}};
	workspace_free(f->ws);
	f->ws = NULL;
	FX_OK(workspace_open(m, 2, &f->opt, &f->ws, &fx_err));
	m[0].dir_fd = dirs[1];
	FX_OK(workspace_open(m, 2, &f->opt, &other, &fx_err));
	struct view *v = fx_view(f), *w = NULL;
	FX_OK(view_new(other, &w, &fx_err));
	struct node n = fx_node(v, "shared/a", 0);
	struct staged *s = NULL;
	FX_OK(staged_new(v, n.mount, &s, &fx_err));
	FX_OK(staged_write(s, "1234567", 7, &fx_err));
	FX_OK(view_put(v, &n, s, PUT_CREATE, 0644, NULL, &fx_err));
	node_done(&n);
	assert_false(fx_commit(f, v).undo);
	fx_expect_content(w, "shared/a", "1234567");
	n = fx_node(w, "shared/b", 0);
	FX_OK(staged_new(w, n.mount, &s, &fx_err));
	FX_OK(staged_write(s, "12345", 5, &fx_err));
	FX_OK(view_put(w, &n, s, PUT_CREATE, 0644, NULL, &fx_err));
	node_done(&n);
	struct commit_result res;
	assert_int_equal(changeset_commit(other, fx_finish(w), &fx_info, &res, &e), -ERR_QUOTA);
	assert_string_equal(e.text, "Workspace quota exceeded: 12B > 10B limit");
	fx_put(f, v, "own", "x");
	fx_rename(v, "shared/a", "moved", false);
	fx_refuse_commit(f, v, ERR_UNSUPPORTED);
	fx_expect_content(w, "shared/a", "1234567");
	view_free(v);
	view_free(w);
	workspace_free(other);
	for (int i = 0; i < 3; i++)
		close(dirs[i]);
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
		CASE(attributes_survive_a_replacement),
		CASE(an_owner_that_cannot_be_kept_is_kept_in_place),
		CASE(a_change_set_may_hold_more_files_than_descriptors),
		CASE(a_shared_volume_has_a_count_of_its_own),
	};
	return cmocka_run_group_tests_name("view", tests, NULL, NULL);
}
