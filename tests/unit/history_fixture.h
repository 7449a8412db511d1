/* What the tests of the history share: one change a commit, and running git. */
#ifndef CLOISTER_TESTS_HISTORY_FIXTURE_H
#define CLOISTER_TESTS_HISTORY_FIXTURE_H

#include "workspace_fixture.h"

#include "workspace/history.h"

#include <sys/mman.h>
#include <sys/wait.h>

static _unused_ void write_file(struct fixture *f, const char *path, const char *text)
{
	struct view *v = fx_view(f);
	fx_put_parents(f, v, path, text);
	fx_commit(f, v);
	view_free(v);
}

static _unused_ void append_file(struct fixture *f, const char *path, const char *text)
{
	struct view *v = fx_view(f);
	fx_append(f, v, path, text);
	fx_commit(f, v);
	view_free(v);
}

static _unused_ void remove_path(struct fixture *f, const char *path)
{
	struct view *v = fx_view(f);
	fx_remove(v, path, true);
	fx_commit(f, v);
	view_free(v);
}

static _unused_ void rename_path(struct fixture *f, const char *from, const char *to, bool replace)
{
	struct view *v = fx_view(f);
	fx_rename(v, from, to, replace);
	fx_commit(f, v);
	view_free(v);
}

static _unused_ void make_link(struct fixture *f, const char *path, const char *target)
{
	struct view *v = fx_view(f);
	struct node n = fx_node(v, path, RESOLVE_NOFOLLOW);
	FX_OK(view_symlink(v, &n, target, &fx_err));
	node_done(&n);
	fx_commit(f, v);
	view_free(v);
}

static _unused_ void change_mode(struct fixture *f, const char *path, mode_t mode)
{
	struct view *v = fx_view(f);
	struct node n = fx_node(v, path, 0);
	FX_OK(view_chmod(v, &n, mode, &fx_err));
	node_done(&n);
	fx_commit(f, v);
	view_free(v);
}

static _unused_ uint64_t undo(struct fixture *f, uint64_t seq)
{
	uint64_t done = 0;
	struct view *v = fx_view(f);
	FX_OK(history_undo(f->ws, v, seq, &done, &fx_err));
	fx_commit(f, v);
	view_free(v);
	return done;
}

/* Run a program in a directory with a file as standard input; its exit status. */
static _unused_ int run_in(const char *dir, int in_fd, const char *const *argv)
{
	int status = 0;
	pid_t pid = fork();
	if (pid == 0) {
		if (chdir(dir) < 0 ||
			(in_fd >= 0 && (lseek(in_fd, 0, SEEK_SET) < 0 || dup2(in_fd, 0) < 0)))
			_exit(126);
		(void)setenv("GIT_CONFIG_NOSYSTEM", "1", 1);
		(void)setenv("HOME", "/nonexistent", 1);
		(void)execvp(argv[0], (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/* A directory of its own for what is compared. */
static _unused_ void make_dir(char path[64])
{
	const char *base = getenv("CLOISTER_TEST_DIR");
	snprintf(path, 64, "%s/cloister-other-XXXXXX", base ? base : "/tmp");
	assert_non_null(mkdtemp(path));
}

static _unused_ void remove_dir(const char *path)
{
	const char *slash = strrchr(path, '/');
	char parent[64];
	snprintf(parent, sizeof(parent), "%.*s", (int)(slash - path), path);
	int fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(tree_remove(fd, slash + 1), 0);
	close(fd);
}

/* Files and links below two directories are the same (without the store and git's own). */
static _unused_ void expect_same_trees(const char *a, const char *b)
{
	const char *const argv[] = {
		"diff", "-r", "--no-dereference", "-x", ".cloister", "-x", ".git", a, b, NULL};
	if (run_in("/", -1, argv) != 0)
		fail_msg("%s and %s differ", a, b);
}

static _unused_ int memory_file(const struct buf *b)
{
	int fd = memfd_create("test", MFD_CLOEXEC);
	assert_int_equal(fs_write(fd, buf_str(b), b->len, 0), 0);
	return fd;
}

#endif
