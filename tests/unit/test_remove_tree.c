/* Removing trees: nothing outside is touched, odd trees go, and it can be stopped anywhere. */
#include "testing.h"

#include "session/remove_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int tmp_fd;
static char tmp_name[64];

static int setup(void **state)
{
	(void)state;
	(void)snprintf(tmp_name, sizeof(tmp_name), "/tmp/cloister-remove-XXXXXX");
	if (!mkdtemp(tmp_name))
		return -1;
	tmp_fd = open(tmp_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return tmp_fd < 0 ? -1 : 0;
}

static int teardown(void **state)
{
	struct remove_budget b = {.entries = -1};
	struct err err;
	(void)state;
	int r = remove_content(tmp_fd, "", &b, &err);
	(void)close(tmp_fd);
	return r == 0 && rmdir(tmp_name) == 0 ? 0 : -1;
}

static void make_file(int dir, const char *name)
{
	int fd = openat(dir, name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "x", 1), 1);
	(void)close(fd);
}

static bool there(const char *name)
{
	struct stat st;
	return fstatat(tmp_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static int64_t remove_all(const char *name)
{
	struct remove_budget b = {.entries = -1};
	struct err err;
	assert_int_equal(remove_tree(tmp_fd, name, &b, &err), 0);
	assert_false(there(name));
	return b.removed;
}

static void links_are_removed_and_never_followed(void **state)
{
	(void)state;
	assert_int_equal(mkdirat(tmp_fd, "keep", 0700), 0);
	make_file(tmp_fd, "keep/precious");
	assert_int_equal(mkdirat(tmp_fd, "t", 0700), 0);
	assert_int_equal(mkdirat(tmp_fd, "t/sub", 0700), 0);
	assert_int_equal(symlinkat("../keep", tmp_fd, "t/a"), 0);
	assert_int_equal(symlinkat("../../keep", tmp_fd, "t/sub/b"), 0);
	assert_int_equal(symlinkat("/etc", tmp_fd, "t/sub/etc"), 0);
	assert_int_equal(remove_all("t"), 5);
	assert_true(there("keep/precious"));
	/* The top itself being a link. */
	assert_int_equal(symlinkat("keep", tmp_fd, "link"), 0);
	assert_int_equal(remove_all("link"), 1);
	assert_true(there("keep/precious"));
}

static void content_of_a_linked_top_is_refused(void **state)
{
	struct remove_budget b = {.entries = -1};
	struct err err;
	(void)state;
	assert_int_equal(mkdirat(tmp_fd, "keep", 0700), 0);
	make_file(tmp_fd, "keep/precious");
	assert_int_equal(symlinkat("keep", tmp_fd, "link"), 0);
	assert_true(remove_content(tmp_fd, "link", &b, &err) < 0);
	assert_true(there("keep/precious"));
}

static void a_missing_tree_is_removed_already(void **state)
{
	(void)state;
	assert_int_equal(remove_all("nothing"), 0);
}

static void make_deep(const char *name, unsigned depth)
{
	int dir = dup(tmp_fd);
	for (unsigned i = 0; i < depth; i++) {
		const char *sub = i == 0 ? name : "d";
		assert_int_equal(mkdirat(dir, sub, 0700), 0);
		int next = openat(dir, sub, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(next >= 0);
		(void)close(dir);
		dir = next;
		if (i % 100 == 0)
			make_file(dir, "f");
	}
	(void)close(dir);
}

static void a_tree_10000_deep_goes_with_few_descriptors(void **state)
{
	struct rlimit old, few;
	(void)state;
	make_deep("t", 10000);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	few = (struct rlimit){.rlim_cur = (rlim_t)tmp_fd + 4, .rlim_max = old.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	int64_t n = remove_all("t");
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_int_equal(n, 10100);
}

static void odd_modes_are_no_hindrance(void **state)
{
	(void)state;
	assert_int_equal(mkdirat(tmp_fd, "t", 0700), 0);
	assert_int_equal(mkdirat(tmp_fd, "t/a", 0700), 0);
	assert_int_equal(mkdirat(tmp_fd, "t/a/b", 0700), 0);
	make_file(tmp_fd, "t/a/b/f");
	assert_int_equal(mkfifoat(tmp_fd, "t/a/fifo", 0), 0);
	assert_int_equal(mkdirat(tmp_fd, "t/ro", 0700), 0);
	make_file(tmp_fd, "t/ro/f");
	assert_int_equal(fchmodat(tmp_fd, "t/a/b", 0, 0), 0);
	assert_int_equal(fchmodat(tmp_fd, "t/a", 0500, 0), 0);
	assert_int_equal(fchmodat(tmp_fd, "t/ro", 0111, 0), 0);
	assert_int_equal(fchmodat(tmp_fd, "t", 0, 0), 0);
	assert_int_equal(remove_all("t"), 7);
}

/* The same as somebody whom permissions bind. */
static void odd_modes_are_no_hindrance_for_an_ordinary_uid(void **state)
{
	if (geteuid() != 0) {
		odd_modes_are_no_hindrance(state);
		return;
	}
	assert_int_equal(fchown(tmp_fd, 65534, 65534), 0);
	pid_t pid = fork();
	if (pid == 0) {
		if (setresgid(65534, 65534, 65534) < 0 || setresuid(65534, 65534, 65534) < 0)
			_exit(77);
		int r = mkdirat(tmp_fd, "t", 0700) | mkdirat(tmp_fd, "t/a", 0700) |
			mkdirat(tmp_fd, "t/a/b", 0700) | mkdirat(tmp_fd, "t/a/b/c", 0700) |
			fchmodat(tmp_fd, "t/a/b/c", 0, 0) | fchmodat(tmp_fd, "t/a/b", 0, 0) |
			fchmodat(tmp_fd, "t/a", 0500, 0) | fchmodat(tmp_fd, "t", 0, 0);
		struct remove_budget b = {.entries = -1};
		struct err err;
		_exit(r ? 2 : remove_tree(tmp_fd, "t", &b, &err) != 0 ? 3 : b.removed != 4 ? 4 : 0);
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_false(there("t"));
}

static void a_budget_stops_it_and_it_goes_on(void **state)
{
	struct err err;
	unsigned calls = 0;
	int64_t total = 0;
	int r;
	(void)state;
	assert_int_equal(mkdirat(tmp_fd, "t", 0700), 0);
	for (int i = 0; i < 30; i++) {
		char name[32];
		(void)snprintf(name, sizeof(name), "t/d%d", i);
		assert_int_equal(mkdirat(tmp_fd, name, 0700), 0);
		(void)snprintf(name, sizeof(name), "t/d%d/e", i);
		assert_int_equal(mkdirat(tmp_fd, name, 0700), 0);
		(void)snprintf(name, sizeof(name), "t/d%d/e/f", i);
		make_file(tmp_fd, name);
	}
	do {
		struct remove_budget b = {.entries = 7};
		r = remove_tree(tmp_fd, "t", &b, &err);
		assert_true(b.removed <= 7);
		total += b.removed;
		assert_true(++calls < 100);
	} while (r == 1);
	assert_int_equal(r, 0);
	assert_int_equal(total, 91);
	assert_int_equal(calls, 13);
	struct remove_budget none = {.entries = 0};
	make_file(tmp_fd, "f");
	assert_int_equal(remove_tree(tmp_fd, "f", &none, &err), 1);
	assert_true(there("f"));
}

static void a_time_limit_stops_it(void **state)
{
	struct remove_budget b = {.entries = -1, .deadline_ns = 1};
	struct err err;
	(void)state;
	make_file(tmp_fd, "f");
	assert_int_equal(remove_tree(tmp_fd, "f", &b, &err), 1);
	assert_true(there("f"));
}

static int mount_and_try(void)
{
	struct remove_budget b = {.entries = -1};
	struct err err;
	char path[128];
	if (unshare(CLONE_NEWNS) < 0 || mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return 77;
	(void)snprintf(path, sizeof(path), "%s/t/deep/m", tmp_name);
	if (mount("tmpfs", path, "tmpfs", 0, "size=64k") < 0)
		return 77;
	/* Descriptors from before see the tree without the mount. */
	tmp_fd = open(tmp_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (tmp_fd < 0)
		return 5;
	make_file(tmp_fd, "t/deep/m/inside");
	int r = remove_tree(tmp_fd, "t", &b, &err);
	if (r != -ERR_BUSY || !strstr(err.text, "mounted"))
		return 2;
	/* What was not mounted is gone, what was mounted is whole. */
	if (there("t/f") || there("t/deep/g"))
		return 3;
	(void)snprintf(path, sizeof(path), "%s/t/deep/m/inside", tmp_name);
	return access(path, F_OK) == 0 ? 0 : 4;
}

static void what_is_mounted_inside_stays_and_is_named(void **state)
{
	int status;
	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(mkdirat(tmp_fd, "t", 0700), 0);
	assert_int_equal(mkdirat(tmp_fd, "t/deep", 0700), 0);
	assert_int_equal(mkdirat(tmp_fd, "t/deep/m", 0700), 0);
	make_file(tmp_fd, "t/f");
	make_file(tmp_fd, "t/deep/g");
	pid_t pid = fork();
	if (pid == 0)
		_exit(mount_and_try());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(status, 0);
}

/* Killed at any moment, what is left is removed by the next try, and nothing else is. */
static void killed_at_any_moment_the_next_try_goes_on(void **state)
{
	(void)state;
	assert_int_equal(mkdirat(tmp_fd, "keep", 0700), 0);
	for (unsigned round = 0; round < 20; round++) {
		make_deep("t", 300);
		pid_t pid = fork();
		if (pid == 0) {
			struct remove_budget b = {.entries = -1};
			struct err err;
			_exit(remove_tree(tmp_fd, "t", &b, &err) != 0);
		}
		(void)usleep(round * 150);
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
		(void)remove_all("t");
		assert_true(there("keep"));
	}
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(links_are_removed_and_never_followed),
		CASE(content_of_a_linked_top_is_refused),
		CASE(a_missing_tree_is_removed_already),
		CASE(a_tree_10000_deep_goes_with_few_descriptors),
		CASE(odd_modes_are_no_hindrance),
		CASE(odd_modes_are_no_hindrance_for_an_ordinary_uid),
		CASE(a_budget_stops_it_and_it_goes_on),
		CASE(a_time_limit_stops_it),
		CASE(what_is_mounted_inside_stays_and_is_named),
		CASE(killed_at_any_moment_the_next_try_goes_on),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
