/* Killed at every named point of creating, deleting, replacing and sweeping: whole or not at all,
 * and the next process goes on. */
#include "testing.h"

#include "session/crash.h"
#include "session/remove_tree.h"
#include "session/session.h"
#include "session/state.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const point_names[] = {
#define POINT(name) #name,
	SESSION_CRASH_POINTS(POINT)
#undef POINT
};

static char tmp_name[64];
static int64_t fake_ms;
static struct err err;
static int crash_at = -1;
static bool reached[CRASH_MAX_]; /* by any operation */

void session_crash_point(enum session_crash_point at)
{
	if ((int)at == crash_at)
		(void)kill(getpid(), SIGKILL);
}

static const char *below(const char *rest)
{
	static char path[8][256];
	static unsigned turn;
	char *out = path[turn++ % 8];
	(void)snprintf(out, sizeof(path[0]), "%s/%s", tmp_name, rest);
	return out;
}

static int64_t fake_now(void *ctx)
{
	(void)ctx;
	return fake_ms;
}

static struct registry *open_registry(void)
{
	static const struct workspace_options ws = {
		.quota_bytes = 1 << 20, .quota_entries = 100, .history_bytes = 1 << 20};
	struct registry_options opt = {.workspace = &ws, .now_ms = fake_now};
	struct state_paths paths = {.state_dir = below("st")};
	struct registry *reg = NULL;
	if (state_open(&paths, &opt.state_fd, &opt.base_fd, &err) < 0 ||
		registry_open(&opt, &reg, &err) < 0)
		fail_msg("%s", err.text);
	(void)close(opt.state_fd);
	(void)close(opt.base_fd);
	return reg;
}

static unsigned names_in(const char *path)
{
	unsigned n = 0;
	DIR *d = opendir(below(path));
	for (struct dirent *e; d && (e = readdir(d));)
		n += e->d_name[0] != '.';
	if (d)
		(void)closedir(d);
	return n;
}

static bool there(const char *path)
{
	struct stat st;
	return lstat(below(path), &st) == 0;
}

static void make_file(const char *path)
{
	int fd = open(below(path), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	(void)close(fd);
}

/* A session with a file, a store and a lease. */
static void make_session(struct registry *reg, const char *id, int64_t ttl_s, char *incarnation)
{
	struct session_spec spec = {.id = id, .ttl_s = ttl_s};
	struct session *s = NULL;
	struct session_info info;
	struct workspace *ws = NULL;
	char path[64];
	if (registry_create(reg, &spec, &s, &err) < 0 || session_workspace(s, &ws, &err) < 0)
		fail_msg("%s", err.text);
	session_info(s, &info);
	memcpy(incarnation, info.incarnation, sizeof(info.incarnation));
	session_release(s);
	(void)snprintf(path, sizeof(path), "st/sessions/%s/precious", id);
	make_file(path);
}

static char old_incarnation[INCARNATION_LEN + 1], kept_incarnation[INCARNATION_LEN + 1];

static void prepare(int64_t ttl_s)
{
	struct registry *reg = open_registry();
	make_session(reg, "old", ttl_s, old_incarnation);
	make_session(reg, "kept", 0, kept_incarnation);
	registry_free(reg);
}

static int use(struct registry *reg, const char *id)
{
	struct session *s = NULL;
	int r = registry_session(reg, NULL, id, &s, &err);
	if (r == 0)
		session_release(s);
	return r;
}

static int sweep(struct registry *reg)
{
	struct sweep_budget all = {0};
	struct sweep_result res = {0};
	int r = registry_sweep(reg, &all, &res, &err);
	return r < 0 ? r : (int)res.stuck;
}

/* --- what is killed ------------------------------------------------------------------------- */

static int op_create(struct registry *reg)
{
	return use(reg, "fresh");
}

static int op_delete(struct registry *reg)
{
	return registry_delete(reg, NULL, "old", &err);
}

static int op_delete_and_sweep(struct registry *reg)
{
	int r = registry_delete(reg, NULL, "old", &err);
	return r < 0 ? r : sweep(reg);
}

static int op_replace(struct registry *reg)
{
	fake_ms += 10000;
	return use(reg, "old");
}

static int op_sweep(struct registry *reg)
{
	fake_ms += 10000;
	return sweep(reg);
}

/* --- what has to hold afterwards ------------------------------------------------------------ */

static bool same_session(struct registry *reg, const char *id, const char *incarnation)
{
	struct session_info info;
	struct session *s = NULL;
	struct workspace *ws = NULL;
	if (registry_session(reg, NULL, id, &s, &err) < 0 || session_workspace(s, &ws, &err) < 0)
		fail_msg("%s: %s", id, err.text);
	session_info(s, &info);
	session_release(s);
	return strcmp(info.incarnation, incarnation) == 0;
}

static bool count_row(void *ctx, const struct session_info *info)
{
	(void)info;
	(*(unsigned *)ctx)++;
	return true;
}

/* Rows, directories, stores and leases agree, and the trash is empty. */
static void all_in_order(struct registry *reg)
{
	unsigned rows = 0;
	bool more;
	assert_int_equal(sweep(reg), 0);
	assert_int_equal(registry_page(reg, NULL, NULL, 100, count_row, &rows, &more, &err), 0);
	assert_int_equal(names_in("st/sessions"), rows);
	assert_int_equal(names_in("st/store"), rows);
	assert_int_equal(names_in("st/lease"), rows);
	assert_int_equal(names_in("st/trash"), 0);
	assert_int_equal(names_in("st/sessions/.trash"), 0);
}

static void check(bool sweep_first, const char *what)
{
	struct registry *reg = open_registry();
	if (sweep_first && sweep(reg) != 0)
		fail_msg("%s: sweep: %s", what, err.text);
	/* The old one is whole, or it is gone and a new one is empty. */
	if (same_session(reg, "old", old_incarnation) != there("st/sessions/old/precious"))
		fail_msg("%s: a session inherits files, or has lost them", what);
	if (!same_session(reg, "kept", kept_incarnation) || !there("st/sessions/kept/precious"))
		fail_msg("%s: another session is hurt", what);
	(void)same_session(reg, "fresh", "");
	if (names_in("st/sessions/fresh") != 0)
		fail_msg("%s: a new session is not empty", what);
	all_in_order(reg);
	registry_free(reg);
}

static void start_anew(void)
{
	struct remove_budget b = {.entries = -1};
	_cleanup_close_ int tmp = open(tmp_name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(remove_content(tmp, "", &b, &err), 0);
}

static void kill_at(int point, int64_t ttl_s, int (*op)(struct registry *), bool sweep_first)
{
	char what[64];
	int status;
	(void)snprintf(
		what, sizeof(what), "%s%s", point_names[point], sweep_first ? ", sweep first" : "");
	fake_ms = 1000000;
	start_anew();
	prepare(ttl_s);
	pid_t pid = fork();
	if (pid == 0) {
		crash_at = point;
		struct registry *reg = open_registry();
		int r = op(reg);
		registry_free(reg);
		_exit(r == 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
		fail_msg("%s: the operation fails", what);
	reached[point] |= WIFSIGNALED(status);
	check(sweep_first, what);
}

static void kill_everywhere(int64_t ttl_s, int (*op)(struct registry *))
{
	for (int point = 0; point < CRASH_MAX_; point++) {
		kill_at(point, ttl_s, op, false);
		kill_at(point, ttl_s, op, true);
	}
}

static void creating_is_whole_or_not_at_all(void **state)
{
	(void)state;
	kill_everywhere(0, op_create);
}

static void deleting_is_whole_or_not_at_all(void **state)
{
	(void)state;
	kill_everywhere(0, op_delete);
}

static void deleting_and_sweeping_goes_on(void **state)
{
	(void)state;
	kill_everywhere(0, op_delete_and_sweep);
}

static void replacing_what_has_expired_inherits_nothing(void **state)
{
	(void)state;
	kill_everywhere(10, op_replace);
}

static void sweeping_what_has_expired_goes_on(void **state)
{
	(void)state;
	kill_everywhere(10, op_sweep);
}

static void every_point_was_reached(void **state)
{
	(void)state;
	for (int i = 0; i < CRASH_MAX_; i++)
		if (!reached[i])
			fail_msg("%s was never reached", point_names[i]);
}

static void at_any_moment_it_is_whole_or_not_at_all(void **state)
{
	(void)state;
	for (unsigned round = 0; round < 80; round++) {
		fake_ms = 1000000;
		start_anew();
		prepare(0);
		pid_t pid = fork();
		if (pid == 0) {
			struct registry *reg = open_registry();
			for (int i = 0; i < 1000; i++) {
				(void)op_delete_and_sweep(reg);
				(void)use(reg, "old");
				(void)use(reg, "fresh");
				(void)!registry_delete(reg, NULL, "fresh", &err);
			}
			_exit(0);
		}
		(void)usleep(500 + round * 41);
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
		check(round % 2, "any moment");
	}
}

static int setup(void **state)
{
	(void)state;
	(void)unsetenv("SHANNON_SESSION_WORKSPACES_DIR");
	/* In memory where there is such a place: SIGKILL loses nothing there either, and hundreds
	 * of registries are opened and closed, each with syncs. */
	(void)snprintf(tmp_name, sizeof(tmp_name), "%s/cloister-scrash-XXXXXX",
		access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	return mkdtemp(tmp_name) ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	start_anew();
	return rmdir(tmp_name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(creating_is_whole_or_not_at_all),
		cmocka_unit_test(deleting_is_whole_or_not_at_all),
		cmocka_unit_test(deleting_and_sweeping_goes_on),
		cmocka_unit_test(replacing_what_has_expired_inherits_nothing),
		cmocka_unit_test(sweeping_what_has_expired_goes_on),
		cmocka_unit_test(every_point_was_reached),
		cmocka_unit_test(at_any_moment_it_is_whole_or_not_at_all),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
