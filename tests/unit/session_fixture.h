/*
 * A registry in a temporary directory with two sessions that have files, and what has to hold
 * whatever happened to it. For tests that let something fail or die in the middle.
 */
#ifndef CLOISTER_TESTS_SESSION_FIXTURE_H
#define CLOISTER_TESTS_SESSION_FIXTURE_H

#include "testing.h"

#include "session/remove_tree.h"
#include "session/session.h"
#include "session/state.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

static char tmp_name[64];
static int64_t fake_ms;
static struct err err;

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

static int try_open_registry(enum durability durability, struct registry **ret)
{
	const struct workspace_options ws = {.quota_bytes = 1 << 20,
		.quota_entries = 100,
		.history_bytes = 1 << 20,
		.lock_wait_ms = 1000,
		.durability = durability};
	struct registry_options opt = {.workspace = &ws, .now_ms = fake_now};
	struct state_paths paths = {.state_dir = below("st")};
	int r = state_open(&paths, &opt.state_fd, &opt.base_fd, &err);
	if (r < 0)
		return r;
	r = registry_open(&opt, ret, &err);
	(void)close(opt.state_fd);
	(void)close(opt.base_fd);
	return r;
}

static struct registry *open_registry(void)
{
	struct registry *reg = NULL;
	if (try_open_registry(DURABLE_PROCESS, &reg) < 0)
		fail_msg("%s", err.text);
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

static _unused_ void prepare(int64_t ttl_s)
{
	struct registry *reg = open_registry();
	make_session(reg, "old", ttl_s, old_incarnation);
	make_session(reg, "kept", 0, kept_incarnation);
	registry_free(reg);
}

static _unused_ int use(struct registry *reg, const char *id)
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

/* The old session is whole, or gone; the other is not hurt; a new one is empty. */
static _unused_ void sx_check(bool sweep_first, const char *what)
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

static int sx_setup(void **state)
{
	(void)state;
	(void)unsetenv("SHANNON_SESSION_WORKSPACES_DIR");
	/* In memory where there is such a place: SIGKILL loses nothing there either, and hundreds
	 * of registries are opened and closed, each with syncs. */
	(void)snprintf(tmp_name, sizeof(tmp_name), "%s/cloister-scrash-XXXXXX",
		access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	return mkdtemp(tmp_name) ? 0 : -1;
}

static int sx_teardown(void **state)
{
	(void)state;
	start_anew();
	return rmdir(tmp_name);
}

#endif
