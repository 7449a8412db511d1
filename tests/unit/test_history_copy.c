/* Tests of what leaves a workspace: a fork, and the export that real git reads. */
#include "testing.h"

#include "history_fixture.h"

struct target {
	char dir[64];
	int fd;
};

static struct target new_target(void)
{
	struct target t;
	make_dir(t.dir);
	t.fd = open(t.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(t.fd >= 0);
	return t;
}

static void target_done(struct target *t)
{
	close(t->fd);
	remove_dir(t->dir);
}

static struct stat stat_in(int dir, const char *path)
{
	struct stat st;
	assert_int_equal(fs_lstat(dir, path, &st), 0);
	return st;
}

/* --- fork --- */

static void a_fork_into_a_directory_that_is_not_empty_is_refused(void **state)
{
	struct fixture *f = *state;
	struct fork_result res;
	struct target t = new_target();
	write_file(f, "a", "one");
	assert_int_equal(mkdirat(t.fd, "there", 0755), 0);
	assert_int_equal(workspace_fork(f->ws, t.fd, &res, &fx_err), -ERR_NOT_EMPTY);
	struct stat st;
	assert_int_equal(fs_lstat(t.fd, "a", &st), -1);
	target_done(&t);
}

static void a_fork_follows_no_link_and_says_what_it_skips(void **state)
{
	struct fixture *f = *state;
	struct fork_result res;
	struct target t = new_target();
	struct stat st;
	fx_host_mkdir(f, "d");
	fx_host_symlink(f, "/etc", "d/etc");
	assert_int_equal(mkfifoat(f->fd, "d/fifo", 0600), 0);
	FX_OK(workspace_fork(f->ws, t.fd, &res, &fx_err));
	st = stat_in(t.fd, "d/etc");
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(fs_lstat(t.fd, "d/fifo", &st), -1);
	assert_int_equal(res.skipped, 1);
	assert_string_equal(res.first_skipped, "/workspace/d/fifo");
	assert_int_equal(res.links, 1);
	assert_int_equal(fs_lstat(t.fd, ".cloister", &st), -1);
	target_done(&t);
}

static void a_fork_drops_set_user_id(void **state)
{
	struct fixture *f = *state;
	struct fork_result res;
	struct target t = new_target();
	fx_host_write(f, "su", "x");
	fx_host_chmod(f, "su", 04755);
	FX_OK(workspace_fork(f->ws, t.fd, &res, &fx_err));
	assert_int_equal(stat_in(t.fd, "su").st_mode & 07777, 0755);
	target_done(&t);
}

static void a_fork_keeps_content_modes_times_and_names(void **state)
{
	struct fixture *f = *state;
	struct fork_result res;
	struct target t = new_target();
	const struct timespec past[2] = {{1000000000, 123}, {1100000000, 456}};
	write_file(f, "a", "one");
	write_file(f, "locked/b", "two");
	fx_host_mkdir(f, "empty");
	fx_host_link(f, "a", "locked/again");
	fx_host_symlink(f, "../a", "locked/l");
	fx_host_chmod(f, "locked/b", 0640);
	assert_int_equal(utimensat(f->fd, "a", past, 0), 0);
	assert_int_equal(utimensat(f->fd, "locked/l", past, AT_SYMLINK_NOFOLLOW), 0);
	assert_int_equal(utimensat(f->fd, "locked", past, 0), 0);
	fx_host_chmod(f, "locked", 0500);
	FX_OK(workspace_fork(f->ws, t.fd, &res, &fx_err));
	expect_same_trees(f->dir, t.dir);
	assert_int_equal(stat_in(t.fd, "a").st_mtim.tv_nsec, 456);
	assert_int_equal(stat_in(t.fd, "a").st_nlink, 2);
	assert_int_equal(stat_in(t.fd, "a").st_ino, stat_in(t.fd, "locked/again").st_ino);
	assert_int_not_equal(stat_in(t.fd, "a").st_ino, stat_in(f->fd, "a").st_ino);
	assert_int_equal(stat_in(t.fd, "locked").st_mode & 07777, 0500);
	assert_int_equal(stat_in(t.fd, "locked").st_mtim.tv_sec, 1100000000);
	assert_int_equal(stat_in(t.fd, "locked/l").st_mtim.tv_sec, 1100000000);
	assert_int_equal(stat_in(t.fd, "locked/b").st_mode & 07777, 0640);
	assert_int_equal(res.files, 3);
	assert_int_equal(res.dirs, 2);
	fx_host_chmod(f, "locked", 0700);
	assert_int_equal(fchmodat(t.fd, "locked", 0700, 0), 0);
	target_done(&t);
}

static void a_fork_lives_on_its_own(void **state)
{
	struct fixture *f = *state;
	struct fork_result res;
	struct target t = new_target();
	write_file(f, "a", "one");
	FX_OK(workspace_fork(f->ws, t.fd, &res, &fx_err));
	struct fixture g = {.fd = t.fd};
	fx_reopen(&g, &f->opt);
	write_file(&g, "a", "two");
	fx_expect_host(f, "a", "one");
	fx_expect_usage(&g, 3, 1);
	assert_int_equal(workspace_seq(g.ws), 1);
	workspace_free(g.ws);
	target_done(&t);
}

/* --- export --- */

static void import(const char *dir, int fd)
{
	const char *const init[] = {"git", "init", "-q", ".", NULL};
	/* It repeats what the stream says about its progress, and standard output is for TAP. */
	const char *const import_[] = {"sh", "-c", "exec git fast-import --quiet >&2", NULL};
	const char *const fsck[] = {"git", "fsck", "--strict", NULL};
	assert_int_equal(run_in(dir, -1, init), 0);
	assert_int_equal(run_in(dir, fd, import_), 0);
	assert_int_equal(run_in(dir, -1, fsck), 0);
}

static void checkout(const char *dir, const char *what)
{
	const char *const argv[] = {
		"git", "-c", "advice.detachedHead=false", "checkout", "-q", "-f", what, NULL};
	assert_int_equal(run_in(dir, -1, argv), 0);
}

static int exported(struct fixture *f)
{
	int fd = memfd_create("export", MFD_CLOEXEC);
	FX_OK(history_export(f->ws, fd, &fx_err));
	return fd;
}

static void copy_state(struct fixture *f, struct target *to)
{
	struct fork_result res;
	*to = new_target();
	FX_OK(workspace_fork(f->ws, to->fd, &res, &fx_err));
}

/* git keeps no empty directories; files and links are what is compared. */
static void remove_empty(const char *dir)
{
	const char *const argv[] = {
		"find", dir, "-type", "d", "-empty", "-not", "-path", "*/.git/*", "-delete", NULL};
	assert_int_equal(run_in("/", -1, argv), 0);
}

static void every_state_of_the_history_is_a_commit_that_git_reads(void **state)
{
	struct fixture *f = *state;
	enum { STATES = 13 };
	struct target states[STATES + 1], t = new_target();
	unsigned n = 0;
	fx_host_write(f, "before", "there already\n");
	fx_host_mkdir(f, "tree");
	fx_host_write(f, "tree/x", "x");
	fx_host_symlink(f, "x", "tree/l");
	copy_state(f, &states[n++]);
	write_file(f, "a", "one\n");
	copy_state(f, &states[n++]);
	write_file(f, "d/e/b", "two\n");
	copy_state(f, &states[n++]);
	append_file(f, "a", "more\n");
	copy_state(f, &states[n++]);
	change_mode(f, "a", 0755);
	copy_state(f, &states[n++]);
	rename_path(f, "d", "moved", false);
	copy_state(f, &states[n++]);
	write_file(f, "moved/e/b", "three\n");
	copy_state(f, &states[n++]);
	write_file(f, "\"q\"\\ \xc3\xa4\xff\x01 end", "odd name\n");
	copy_state(f, &states[n++]);
	remove_path(f, "tree");
	copy_state(f, &states[n++]);
	make_link(f, "moved/l", "../a");
	copy_state(f, &states[n++]);
	undo(f, 8);
	copy_state(f, &states[n++]);
	rename_path(f, "a", "before", true);
	copy_state(f, &states[n++]);
	remove_path(f, "moved/e/b");
	copy_state(f, &states[n++]);
	write_file(f, "last", "");
	copy_state(f, &states[n++]);
	assert_int_equal(n, STATES + 1);
	int fd = exported(f);
	import(t.dir, fd);
	close(fd);
	for (unsigned i = 0; i < n; i++) {
		char what[64];
		snprintf(what, sizeof(what), "refs/heads/cloister~%u", n - 1 - i);
		checkout(t.dir, what);
		remove_empty(states[i].dir);
		remove_empty(t.dir);
		expect_same_trees(states[i].dir, t.dir);
		if (i >= 4 && i < 11) {
			struct stat st = stat_in(t.fd, "a");
			assert_true(st.st_mode & 0100);
		}
	}
	for (unsigned i = 0; i < n; i++)
		target_done(&states[i]);
	target_done(&t);
}

static void what_git_cannot_hold_is_left_out(void **state)
{
	struct fixture *f = *state;
	struct target t = new_target();
	struct stat st;
	write_file(f, "a", "one\n");
	write_file(f, "sub/.Git/config", "x");
	write_file(f, "sub/b", "y");
	assert_int_equal(mkfifoat(f->fd, "fifo", 0600), 0);
	int fd = exported(f);
	import(t.dir, fd);
	close(fd);
	checkout(t.dir, "cloister");
	assert_int_equal(fs_lstat(t.fd, "sub/.Git", &st), -1);
	assert_int_equal(fs_lstat(t.fd, "fifo", &st), -1);
	stat_in(t.fd, "sub/b");
	target_done(&t);
}

static void a_cut_export_is_refused_by_git(void **state)
{
	struct fixture *f = *state;
	struct target t = new_target();
	const char *const init[] = {"git", "init", "-q", ".", NULL};
	const char *const import_[] = {"sh", "-c", "git fast-import --quiet 2>/dev/null", NULL};
	write_file(f, "a", "one\n");
	int fd = exported(f);
	struct stat st;
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(ftruncate(fd, st.st_size - 5), 0);
	assert_int_equal(run_in(t.dir, -1, init), 0);
	assert_int_not_equal(run_in(t.dir, fd, import_), 0);
	close(fd);
	target_done(&t);
}

static void an_export_starts_at_the_oldest_known_state(void **state)
{
	struct fixture *f = *state;
	struct workspace_options opt = f->opt;
	struct target t = new_target(), now;
	opt.history_bytes = 9000;
	fx_reopen(f, &opt);
	for (unsigned i = 0; i < 12; i++) {
		struct view *v = fx_view(f);
		fx_put_size(f, v, "a", 2000 + i);
		fx_commit(f, v);
		view_free(v);
	}
	copy_state(f, &now);
	int fd = exported(f);
	import(t.dir, fd);
	close(fd);
	checkout(t.dir, "cloister");
	expect_same_trees(now.dir, t.dir);
	checkout(t.dir, "cloister~1");
	assert_int_equal(stat_in(t.fd, "a").st_size, 2010);
	target_done(&now);
	target_done(&t);
}

static void an_export_without_changes_is_one_commit(void **state)
{
	struct fixture *f = *state;
	struct target t = new_target();
	fx_host_write(f, "a", "one");
	int fd = exported(f);
	import(t.dir, fd);
	close(fd);
	checkout(t.dir, "cloister");
	expect_same_trees(f->dir, t.dir);
	target_done(&t);
}

#define T(name) cmocka_unit_test_setup_teardown(name, fx_setup, fx_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_fork_into_a_directory_that_is_not_empty_is_refused),
		T(a_fork_follows_no_link_and_says_what_it_skips),
		T(a_fork_drops_set_user_id),
		T(a_fork_keeps_content_modes_times_and_names),
		T(a_fork_lives_on_its_own),
		T(every_state_of_the_history_is_a_commit_that_git_reads),
		T(what_git_cannot_hold_is_left_out),
		T(a_cut_export_is_refused_by_git),
		T(an_export_starts_at_the_oldest_known_state),
		T(an_export_without_changes_is_one_commit),
	};
	return cmocka_run_group_tests_name("history_copy", tests, NULL, NULL);
}
