/*
 * A workspace in a fresh temporary directory, and words for what tests do with it. Everything that
 * is not a refusal must succeed; fx_host_* act on the real tree behind the engine's back.
 */
#ifndef CLOISTER_TESTS_WORKSPACE_FIXTURE_H
#define CLOISTER_TESTS_WORKSPACE_FIXTURE_H

#include "testing.h"

#include "sys/fs.h"
#include "sys/tree.h"
#include "workspace/commit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>

struct fixture {
	char dir[64];
	int fd;
	struct workspace *ws;
	struct workspace_options opt;
	pid_t owner;
};

/* A child whose check fails comes back into cmocka's loop. It must end there: else it takes away
 * its parent's directory and runs the tests that follow, with children of its own. */
static _unused_ void fx_only(pid_t owner)
{
	if (owner != getpid())
		_exit(99);
}

#define FX_OK(call)                                                                                \
	do {                                                                                       \
		if ((call) < 0)                                                                    \
			fail_msg("%s: %s", #call, fx_err.text);                                    \
	} while (0)

static struct err fx_err;

static _unused_ void fx_reopen(struct fixture *f, const struct workspace_options *opt)
{
	struct mount_spec m = {.agent_path = "/workspace", .dir_fd = f->fd, .store_fd = -1};
	workspace_free(f->ws);
	f->opt = *opt;
	FX_OK(workspace_open(&m, 1, &f->opt, &f->ws, &fx_err));
}

static _unused_ int fx_setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	f->owner = getpid();
	const char *base = getenv("CLOISTER_TEST_DIR");
	snprintf(f->dir, sizeof(f->dir), "%s/cloister-test-XXXXXX", base ? base : "/tmp");
	assert_non_null(mkdtemp(f->dir));
	f->fd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(f->fd >= 0);
	struct workspace_options opt = {
		.history_bytes = 100 << 20, .durability = DURABLE_PROCESS, .lock_wait_ms = 2000};
	fx_reopen(f, &opt);
	*state = f;
	return 0;
}

static _unused_ int fx_teardown(void **state)
{
	struct fixture *f = *state;
	fx_only(f->owner);
	workspace_free(f->ws);
	close(f->fd);
	char *slash = strrchr(f->dir, '/');
	*slash = '\0';
	int base = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(tree_remove(base, slash + 1), 0);
	close(base);
	free(f);
	return 0;
}

static _unused_ struct view *fx_view(struct fixture *f)
{
	struct view *v = NULL;
	FX_OK(view_new(f->ws, &v, &fx_err));
	return v;
}

static _unused_ struct node fx_node(struct view *v, const char *path, unsigned flags)
{
	struct node n = {.fd = -1};
	if (view_resolve(v, str_of(path), flags, &n, &fx_err) < 0)
		fail_msg("resolving %s: %s", path, fx_err.text);
	return n;
}

static _unused_ struct staged *fx_staged(struct view *v, const char *text)
{
	struct staged *s = NULL;
	FX_OK(staged_new(v, 0, &s, &fx_err));
	FX_OK(staged_write(s, text, strlen(text), &fx_err));
	return s;
}

static _unused_ void fx_put_how(struct view *v, const char *path, struct staged *s, unsigned how)
{
	struct node n = fx_node(v, path, how & PUT_PARENTS ? RESOLVE_PARENTS_MAY_LACK : 0);
	FX_OK(view_put(v, &n, s, (enum put_how)how, 0644, NULL, &fx_err));
	node_done(&n);
}

static _unused_ void fx_put(struct fixture *f, struct view *v, const char *path, const char *text)
{
	(void)f;
	fx_put_how(v, path, fx_staged(v, text), PUT_EITHER);
}

static _unused_ void fx_put_parents(
	struct fixture *f, struct view *v, const char *path, const char *text)
{
	(void)f;
	fx_put_how(v, path, fx_staged(v, text), PUT_EITHER | PUT_PARENTS);
}

static _unused_ void fx_put_size(struct fixture *f, struct view *v, const char *path, size_t n)
{
	(void)f;
	struct staged *s = NULL;
	char *p = calloc(1, n);
	memset(p, 'x', n);
	FX_OK(staged_new(v, 0, &s, &fx_err));
	FX_OK(staged_write(s, p, n, &fx_err));
	free(p);
	fx_put_how(v, path, s, PUT_EITHER);
}

static _unused_ void fx_append(
	struct fixture *f, struct view *v, const char *path, const char *text)
{
	(void)f;
	struct node n = fx_node(v, path, 0);
	FX_OK(view_append(v, &n, fx_staged(v, text), NULL, &fx_err));
	node_done(&n);
}

static _unused_ void fx_mkdir(struct view *v, const char *path)
{
	struct node n = fx_node(v, path, RESOLVE_PARENTS_MAY_LACK);
	FX_OK(view_mkdir(v, &n, 0755, true, &fx_err));
	node_done(&n);
}

static _unused_ int64_t fx_remove(struct view *v, const char *path, bool recursive)
{
	int64_t removed = 0;
	struct node n = fx_node(v, path, RESOLVE_NOFOLLOW);
	FX_OK(view_remove(v, &n, recursive, &removed, &fx_err));
	node_done(&n);
	return removed;
}

static _unused_ void fx_refuse_remove(struct view *v, const char *path, enum err_code code)
{
	struct node n = fx_node(v, path, RESOLVE_NOFOLLOW);
	assert_int_equal(view_remove(v, &n, false, NULL, &fx_err), -(int)code);
	node_done(&n);
}

static _unused_ int fx_try_rename(struct view *v, const char *from, const char *to, bool replace)
{
	struct node a = fx_node(v, from, RESOLVE_NOFOLLOW), b = fx_node(v, to, RESOLVE_NOFOLLOW);
	int r = view_rename(v, &a, &b, replace, &fx_err);
	node_done(&a);
	node_done(&b);
	return r;
}

static _unused_ void fx_rename(struct view *v, const char *from, const char *to, bool replace)
{
	FX_OK(fx_try_rename(v, from, to, replace));
}

static _unused_ void fx_refuse_rename(
	struct view *v, const char *from, const char *to, bool replace, enum err_code code)
{
	assert_int_equal(fx_try_rename(v, from, to, replace), -(int)code);
}

static _unused_ void fx_refuse_resolve(
	struct view *v, const char *path, unsigned flags, enum err_code code)
{
	struct node n = {.fd = -1};
	int r = view_resolve(v, str_of(path), flags, &n, &fx_err);
	if (r != -(int)code)
		fail_msg("%s: got %s, not %s", path, r < 0 ? err_info(-r)->name : "success",
			err_info(code)->name);
}

static _unused_ void fx_expect_absent(struct view *v, const char *path)
{
	struct node n = fx_node(v, path, RESOLVE_NOFOLLOW);
	assert_int_equal(n.kind, NODE_ABSENT);
	node_done(&n);
}

static _unused_ char *fx_read(int fd)
{
	static char text[65536];
	ssize_t n = fs_read(fd, text, sizeof(text) - 1, 0);
	assert_true(n >= 0);
	text[n] = '\0';
	return text;
}

static _unused_ void fx_expect_content(struct view *v, const char *path, const char *text)
{
	int fd;
	struct node n = fx_node(v, path, 0);
	assert_int_equal(n.kind, NODE_FILE);
	assert_int_equal(n.st.st_size, strlen(text));
	FX_OK(view_open(v, &n, &fd, &fx_err));
	assert_string_equal(fx_read(fd), text);
	close(fd);
	node_done(&n);
}

static _unused_ int fx_compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Sorted names, directories with a slash, separated by a blank. */
static _unused_ const char *fx_list(struct view *v, const char *path)
{
	static char out[4096];
	char *names[256];
	size_t n = 0, at = 0;
	struct dir_entry e;
	struct view_dir *d;
	struct node dir = fx_node(v, path, 0);
	FX_OK(view_opendir(v, &dir, &d, &fx_err));
	while (view_readdir(d, &e, &fx_err) == 1)
		assert_true(
			asprintf(&names[n++], "%s%s", e.name, e.kind == NODE_DIR ? "/" : "") > 0);
	view_closedir(d);
	node_done(&dir);
	qsort(names, n, sizeof(char *), fx_compare);
	out[0] = '\0';
	for (size_t i = 0; i < n; i++) {
		at += (size_t)snprintf(out + at, sizeof(out) - at, "%s%s", i ? " " : "", names[i]);
		free(names[i]);
	}
	return out;
}

static _unused_ struct changeset *fx_finish(struct view *v)
{
	struct changeset *cs = NULL;
	FX_OK(view_finish(v, &cs, &fx_err));
	return cs;
}

static _unused_ unsigned fx_finish_count(struct view *v)
{
	struct changeset *cs = fx_finish(v);
	unsigned n = changeset_count(cs);
	changeset_free(cs);
	return n;
}

static const struct commit_info fx_info = {.call_id = "call-1", .tool = "test", .turn = NULL};

static _unused_ struct commit_result fx_commit_set(struct fixture *f, struct changeset *cs)
{
	struct commit_result res;
	FX_OK(changeset_commit(f->ws, cs, &fx_info, &res, &fx_err));
	return res;
}

static _unused_ struct commit_result fx_commit(struct fixture *f, struct view *v)
{
	return fx_commit_set(f, fx_finish(v));
}

static _unused_ void fx_refuse_commit_err(
	struct fixture *f, struct view *v, enum err_code code, struct err *e)
{
	struct commit_result res;
	assert_int_equal(changeset_commit(f->ws, fx_finish(v), &fx_info, &res, e), -(int)code);
}

static _unused_ void fx_refuse_commit(struct fixture *f, struct view *v, enum err_code code)
{
	fx_refuse_commit_err(f, v, code, &fx_err);
}

static _unused_ void fx_expect_usage(struct fixture *f, int64_t bytes, int64_t entries)
{
	struct workspace_usage u;
	FX_OK(workspace_usage(f->ws, &u, &fx_err));
	assert_int_equal(u.bytes, bytes);
	assert_int_equal(u.entries, entries);
	struct tree_sum sum;
	assert_int_equal(tree_count(f->fd, ".cloister", &sum), 0);
	assert_int_equal(sum.bytes, bytes);
	assert_int_equal(sum.entries, entries);
}

/* --- behind the engine's back --- */

static _unused_ void fx_host_write(struct fixture *f, const char *path, const char *text)
{
	int fd = openat(f->fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(fs_write(fd, text, strlen(text), 0), 0);
	close(fd);
}

static _unused_ void fx_host_mkdir(struct fixture *f, const char *path)
{
	assert_int_equal(mkdirat(f->fd, path, 0755), 0);
}

static _unused_ void fx_host_link(struct fixture *f, const char *from, const char *to)
{
	assert_int_equal(linkat(f->fd, from, f->fd, to, 0), 0);
}

static _unused_ void fx_host_symlink(struct fixture *f, const char *target, const char *path)
{
	assert_int_equal(symlinkat(target, f->fd, path), 0);
}

static _unused_ void fx_host_chmod(struct fixture *f, const char *path, mode_t mode)
{
	assert_int_equal(fchmodat(f->fd, path, mode, 0), 0);
}

static _unused_ bool fx_host_exists(struct fixture *f, const char *path)
{
	struct stat st;
	return fs_lstat(f->fd, path, &st) == 0;
}

static _unused_ struct stat fx_host_stat(struct fixture *f, const char *path)
{
	struct stat st;
	assert_int_equal(fs_lstat(f->fd, path, &st), 0);
	return st;
}

static _unused_ mode_t fx_host_mode(struct fixture *f, const char *path)
{
	return fx_host_stat(f, path).st_mode & 07777;
}

static _unused_ ino_t fx_host_ino(struct fixture *f, const char *path)
{
	return fx_host_stat(f, path).st_ino;
}

static _unused_ void fx_expect_host(struct fixture *f, const char *path, const char *text)
{
	int fd = openat(f->fd, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		fail_msg("%s: %s", path, strerror(errno));
	assert_string_equal(fx_read(fd), text);
	close(fd);
}

/* Names in the store's `saved`. */
static _unused_ unsigned fx_saved_names(struct fixture *f)
{
	struct tree_sum sum;
	int fd = openat(f->fd, ".cloister/saved", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(tree_count(fd, NULL, &sum), 0);
	close(fd);
	return (unsigned)sum.entries;
}

#endif
