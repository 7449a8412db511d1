/*
 * The n-th allocation fails; the n-th system call fails. For every n until nothing fails any more:
 * the call either succeeds or is refused with a code, the tree is exactly as before or as after,
 * usage is exact, and the next call works.
 *
 * The linker puts the __wrap_ functions below between the engine and libc (--wrap).
 */
#include "../unit/workspace_fixture.h"

#include "workspace/engine.h"

#include <sys/syscall.h>
#include <unistd.h>

static int allocations_left = -1, calls_left = -1; /* -1: never */
static int fail_with;

static bool fail_now(int *left)
{
	return *left >= 0 && (*left)-- == 0;
}

#define WRAP_ALLOC(name, args, ...)                                                                \
	void *__real_##name args;                                                                  \
	void *__wrap_##name args;                                                                  \
	void *__wrap_##name args                                                                   \
	{                                                                                          \
		if (fail_now(&allocations_left))                                                   \
			return NULL;                                                               \
		return __real_##name(__VA_ARGS__);                                                 \
	}
WRAP_ALLOC(malloc, (size_t n), n)
WRAP_ALLOC(calloc, (size_t n, size_t m), n, m)
WRAP_ALLOC(realloc, (void *p, size_t n), p, n)
WRAP_ALLOC(strdup, (const char *s), s)

#define WRAP_CALL(type, name, args, ...)                                                           \
	type __real_##name args;                                                                   \
	type __wrap_##name args;                                                                   \
	type __wrap_##name args                                                                    \
	{                                                                                          \
		if (fail_now(&calls_left)) {                                                       \
			errno = fail_with;                                                         \
			return -1;                                                                 \
		}                                                                                  \
		return __real_##name(__VA_ARGS__);                                                 \
	}
WRAP_CALL(ssize_t, pwrite, (int fd, const void *p, size_t n, off_t o), fd, p, n, o)
WRAP_CALL(ssize_t, pread, (int fd, void *p, size_t n, off_t o), fd, p, n, o)
WRAP_CALL(int, linkat, (int a, const char *b, int c, const char *d, int f), a, b, c, d, f)
WRAP_CALL(int, renameat2, (int a, const char *b, int c, const char *d, unsigned f), a, b, c, d, f)
WRAP_CALL(int, renameat, (int a, const char *b, int c, const char *d), a, b, c, d)
WRAP_CALL(int, mkdirat, (int a, const char *b, mode_t m), a, b, m)
WRAP_CALL(int, symlinkat, (const char *a, int b, const char *c), a, b, c)
WRAP_CALL(int, unlinkat, (int a, const char *b, int f), a, b, f)
WRAP_CALL(int, fchmod, (int fd, mode_t m), fd, m)
WRAP_CALL(int, chmod, (const char *p, mode_t m), p, m)
WRAP_CALL(int, fdatasync, (int fd), fd)
WRAP_CALL(int, fsync, (int fd), fd)
WRAP_CALL(int, ftruncate, (int fd, off_t n), fd, n)
WRAP_CALL(int, fstat, (int fd, struct stat *st), fd, st)
WRAP_CALL(ssize_t, copy_file_range, (int a, off64_t *b, int c, off64_t *d, size_t n, unsigned f), a,
	b, c, d, n, f)

long __real_syscall(long nr, int dir, const char *path, const void *how, size_t n);
long __wrap_syscall(long nr, int dir, const char *path, const void *how, size_t n);
long __wrap_syscall(long nr, int dir, const char *path, const void *how, size_t n)
{
	if (fail_now(&calls_left)) {
		errno = fail_with;
		return -1;
	}
	return __real_syscall(nr, dir, path, how, n);
}

static void set_up_tree(struct fixture *f)
{
	fx_host_write(f, "replaced", "old");
	fx_host_write(f, "appended", "one\n");
	fx_host_write(f, "deleted", "gone");
	fx_host_mkdir(f, "tree");
	fx_host_write(f, "tree/a", "A");
	fx_host_write(f, "moved", "M");
	fx_host_write(f, "mode", "X");
	fx_host_write(f, "twin", "T");
	fx_host_link(f, "twin", "twin2");
}

#define TRY(call)                                                                                  \
	do {                                                                                       \
		if (r == 0)                                                                        \
			r = (call);                                                                \
	} while (0)

static int with_node(
	struct view *v, const char *path, unsigned flags, struct node *n, struct err *e)
{
	*n = (struct node){.fd = -1};
	return view_resolve(v, str_of(path), flags, n, e);
}

static int put(struct view *v, const char *path, const char *text, bool append, struct err *e)
{
	struct node n;
	struct staged *s = NULL;
	int r = with_node(v, path, RESOLVE_PARENTS_MAY_LACK, &n, e);
	TRY(staged_new(v, 0, &s, e));
	TRY(staged_write(s, text, strlen(text), e));
	if (r < 0)
		staged_free(s);
	else if (append)
		r = view_append(v, &n, s, NULL, e);
	else
		r = view_put(v, &n, s, (enum put_how)(PUT_EITHER | PUT_PARENTS), 0644, NULL, e);
	node_done(&n);
	return r;
}

static int change_names(struct view *v, struct err *e)
{
	struct node n, m;
	int r = with_node(v, "deleted", RESOLVE_NOFOLLOW, &n, e);
	TRY(view_remove(v, &n, false, NULL, e));
	node_done(&n);
	TRY(with_node(v, "tree", RESOLVE_NOFOLLOW, &n, e));
	TRY(view_remove(v, &n, true, NULL, e));
	node_done(&n);
	m = (struct node){.fd = -1};
	TRY(with_node(v, "moved", RESOLVE_NOFOLLOW, &n, e));
	TRY(with_node(v, "made/moved", RESOLVE_NOFOLLOW, &m, e));
	TRY(view_rename(v, &n, &m, false, e));
	node_done(&n);
	node_done(&m);
	TRY(with_node(v, "mode", 0, &n, e));
	TRY(view_chmod(v, &n, 0700, e));
	node_done(&n);
	TRY(with_node(v, "link", RESOLVE_NOFOLLOW, &n, e));
	TRY(view_symlink(v, &n, "created", e));
	node_done(&n);
	return r;
}

static int change_all(struct workspace *ws, struct err *e)
{
	struct view *v = NULL;
	struct changeset *cs = NULL;
	struct commit_result res;
	int r = view_new(ws, &v, e);
	TRY(put(v, "created", "new", false, e));
	TRY(put(v, "made/deep/file", "deep", false, e));
	TRY(put(v, "replaced", "newer", false, e));
	TRY(put(v, "appended", "two\n", true, e));
	TRY(put(v, "twin", "T2", false, e));
	TRY(change_names(v, e));
	TRY(view_finish(v, &cs, e));
	view_free(v);
	TRY(changeset_commit(ws, cs, &fx_info, &res, e));
	return r;
}

static bool is_after(struct fixture *f)
{
	return fx_host_exists(f, "created");
}

static void expect_before(struct fixture *f)
{
	assert_false(fx_host_exists(f, "made"));
	assert_false(fx_host_exists(f, "link"));
	fx_expect_host(f, "replaced", "old");
	fx_expect_host(f, "appended", "one\n");
	fx_expect_host(f, "deleted", "gone");
	fx_expect_host(f, "tree/a", "A");
	fx_expect_host(f, "moved", "M");
	fx_expect_host(f, "twin", "T");
	assert_int_equal(fx_host_mode(f, "mode") & 0777, 0644);
	fx_expect_usage(f, 16, 9);
}

static void expect_after(struct fixture *f)
{
	fx_expect_host(f, "created", "new");
	fx_expect_host(f, "made/deep/file", "deep");
	fx_expect_host(f, "replaced", "newer");
	fx_expect_host(f, "appended", "one\ntwo\n");
	assert_false(fx_host_exists(f, "deleted"));
	assert_false(fx_host_exists(f, "tree"));
	fx_expect_host(f, "made/moved", "M");
	fx_expect_host(f, "twin", "T2");
	fx_expect_host(f, "twin2", "T");
	assert_int_equal(fx_host_mode(f, "mode"), 0700);
	assert_true(fx_host_exists(f, "link"));
	fx_expect_usage(f, 25, 11);
}

/* One attempt with the n-th of something failing. False: there is no n-th. */
static bool attempt(enum durability d, int *left, int n)
{
	void *fx;
	struct err e = {0};
	fx_setup(&fx);
	struct fixture *f = fx;
	set_up_tree(f);
	fx_reopen(f, &(struct workspace_options){.quota_bytes = 1 << 20,
			     .history_bytes = 1 << 20,
			     .durability = d,
			     .lock_wait_ms = 2000});
	struct workspace_usage u;
	FX_OK(workspace_usage(f->ws, &u, &fx_err)); /* counted already */
	*left = n;
	int r = change_all(f->ws, &e);
	bool failed = *left < 0;
	*left = -1;
	if (r < 0 && (r != -(int)e.code || e.text[0] == '\0'))
		fail_msg("failing %d: %d without a word", n, r);
	/* Whatever is left to be taken back or finished is so at the next call. */
	view_free(fx_view(f));
	if (r == 0 && !is_after(f))
		fail_msg("failing %d: acknowledged and not there", n);
	if (is_after(f))
		expect_after(f);
	else
		expect_before(f);
	if (r < 0 && is_after(f))
		print_message("# %d: '%s', and made nevertheless\n", n, e.text);
	if (!is_after(f))
		FX_OK(change_all(f->ws, &fx_err));
	expect_after(f);
	fx_teardown(&fx);
	return failed;
}

static void run_all(enum durability d, int *left, int errnum)
{
	int n = 0;
	fail_with = errnum;
	while (attempt(d, left, n))
		n++;
	print_message("# %d failures\n", n);
	assert_true(n > 50);
}

static void every_allocation_may_fail(void **state)
{
	(void)state;
	run_all(DURABLE_PROCESS, &allocations_left, 0);
}

static void every_call_may_fail_with_an_io_error(void **state)
{
	(void)state;
	run_all(DURABLE_PROCESS, &calls_left, EIO);
}

static void every_call_may_fail_with_a_full_disk(void **state)
{
	(void)state;
	run_all(DURABLE_POWER, &calls_left, ENOSPC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_allocation_may_fail),
		cmocka_unit_test(every_call_may_fail_with_an_io_error),
		cmocka_unit_test(every_call_may_fail_with_a_full_disk),
	};
	return cmocka_run_group_tests_name("faults", tests, NULL, NULL);
}
