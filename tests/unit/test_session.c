/* The registry of sessions: denials, edges of time, limits, two processes, damaged databases. */
#include "testing.h"

#include "session/remove_tree.h"
#include "session/session.h"
#include "session/state.h"
#include "session/statements.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <dirent.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char tmp_name[64];
static int64_t fake_ms;
static struct err err; /* of the last refusal */

static const char *below(const char *rest)
{
	static char path[8][256];
	static unsigned turn;
	char *out = path[turn++ % 8];
	(void)snprintf(out, sizeof(path[0]), "%s/%s", tmp_name, rest);
	return out;
}

static int setup(void **state)
{
	(void)state;
	(void)snprintf(tmp_name, sizeof(tmp_name), "/tmp/cloister-session-XXXXXX");
	(void)unsetenv("SHANNON_SESSION_WORKSPACES_DIR");
	fake_ms = 1000000;
	return mkdtemp(tmp_name) ? 0 : -1;
}

static int teardown(void **state)
{
	struct remove_budget b = {.entries = -1};
	(void)state;
	_cleanup_close_ int tmp = open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return remove_tree(tmp, strrchr(tmp_name, '/') + 1, &b, &err);
}

static int64_t fake_now(void *ctx)
{
	(void)ctx;
	return fake_ms;
}

static const struct workspace_options ws_options = {.quota_bytes = 1 << 20,
	.quota_entries = 100,
	.history_bytes = 1 << 20,
	.lock_wait_ms = 1000};

static struct registry_options options(void)
{
	return (struct registry_options){.workspace = &ws_options, .now_ms = fake_now};
}

static struct registry *open_with(struct registry_options opt)
{
	struct state_paths paths = {.state_dir = below("st")};
	struct registry *reg = NULL;
	int state, base;
	if (state_open(&paths, &state, &base, &err) < 0)
		fail_msg("state: %s (%s)", err.text, err.hint);
	opt.state_fd = state;
	opt.base_fd = base;
	if (registry_open(&opt, &reg, &err) < 0)
		fail_msg("registry: %s", err.text);
	(void)close(state);
	(void)close(base);
	return reg;
}

static struct registry *open_registry(void)
{
	return open_with(options());
}

static struct session *get(struct registry *reg, const char *tenant, const char *id)
{
	struct session *s = NULL;
	if (registry_session(reg, tenant, id, &s, &err) < 0)
		fail_msg("session %s: %s", id, err.text);
	return s;
}

static void use_once(struct registry *reg, const char *tenant, const char *id)
{
	session_release(get(reg, tenant, id));
}

#define REFUSED(call, code_, says)                                                                 \
	do {                                                                                       \
		err = (struct err){0};                                                             \
		int r_ = (call);                                                                   \
		if (r_ != -(code_) || !strstr(err.text, says))                                     \
			fail_msg("%d instead of %d: '%s'", r_, -(code_), err.text);                \
	} while (0)

static bool there(const char *path)
{
	struct stat st;
	return lstat(below(path), &st) == 0;
}

static void make_file(const char *path)
{
	int fd = open(below(path), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "old", 3), 3);
	(void)close(fd);
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

static struct sweep_result sweep(struct registry *reg)
{
	struct sweep_budget all = {0};
	struct sweep_result res = {0};
	if (registry_sweep(reg, &all, &res, &err) < 0)
		fail_msg("sweep: %s", err.text);
	if (res.stuck)
		fail_msg("stuck: %s", res.stuck_why);
	return res;
}

/* --- names ---------------------------------------------------------------------------------- */

static void ids_that_break_a_rule_are_refused_naming_it(void **state)
{
	static const struct {
		const char *id, *says;
	} bad[] = {
		{"", "1 to 128"},
		{NULL, "1 to 128"},
		{".", "start with '.'"},
		{"..", "start with '.'"},
		{".hidden", "start with '.'"},
		{"a..b", "'..'"},
		{"a..", "'..'"},
		{"../v", "only letters"},
		{"a/b", "only letters"},
		{"/etc", "only letters"},
		{"a b", "only letters"},
		{"a\n", "only letters"},
		{"a\x01", "only letters"},
		{"s\xc3\xa9", "only letters"},
		{"a\\b", "only letters"},
		{"a:b", "only letters"},
		{"~", "only letters"},
		{"a*", "only letters"},
		{"a%2f", "only letters"},
	};
	char longest[130], mask[256];
	(void)state;
	struct registry *reg = open_registry();
	struct session *s = NULL;
	for (unsigned i = 0; i < ARRAY_LEN(bad); i++) {
		struct session_info info;
		REFUSED(session_id_check("session id", bad[i].id, &err), ERR_INVALID_ARGUMENT,
			bad[i].says);
		REFUSED(registry_session(reg, NULL, bad[i].id, &s, &err), ERR_INVALID_ARGUMENT,
			bad[i].says);
		REFUSED(registry_show(reg, NULL, bad[i].id, &info, &err), ERR_INVALID_ARGUMENT,
			bad[i].says);
		REFUSED(registry_delete(reg, NULL, bad[i].id, &err), ERR_INVALID_ARGUMENT,
			bad[i].says);
		if (bad[i].id && *bad[i].id) {
			REFUSED(registry_session(reg, bad[i].id, "x", &s, &err),
				ERR_INVALID_ARGUMENT, bad[i].says);
		}
	}
	memset(longest, 'a', 129);
	longest[129] = 0;
	REFUSED(registry_session(reg, NULL, longest, &s, &err), ERR_INVALID_ARGUMENT, "1 to 128");
	assert_null(s);
	assert_int_equal(names_in("st/sessions"), 0);
	/* What the rule allows, also at its edges. */
	longest[128] = 0;
	use_once(reg, NULL, longest);
	use_once(reg, NULL, "session.1");
	use_once(reg, NULL, "A-z_0.9");
	use_once(reg, NULL, "-");
	for (int c = 1; c < 256; c++) {
		char id[] = {'x', (char)c, 0};
		mask[c] = session_id_check("session id", id, &err) == 0;
		bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
			      (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
		assert_int_equal(mask[c], letter);
	}
	registry_free(reg);
}

static void tenants_do_not_meet(void **state)
{
	struct session_info info;
	(void)state;
	struct registry *reg = open_registry();
	use_once(reg, "acme", "note");
	make_file("st/sessions/acme/note/secret");
	/* Another tenant's id is not found, and the same id is another session. */
	REFUSED(registry_show(reg, "other", "note", &info, &err), ERR_SESSION_NOT_FOUND, "'note'");
	REFUSED(registry_delete(reg, "other", "note", &err), ERR_SESSION_NOT_FOUND, "'note'");
	REFUSED(registry_extend(reg, NULL, "note", 5, &info, &err), ERR_SESSION_NOT_FOUND,
		"'note'");
	use_once(reg, "other", "note");
	assert_int_equal(names_in("st/sessions/other/note"), 0);
	assert_true(there("st/sessions/acme/note/secret"));
	registry_free(reg);
}

static void a_session_is_never_the_directory_of_a_tenant(void **state)
{
	struct session *s = NULL;
	(void)state;
	struct registry *reg = open_registry();
	use_once(reg, "acme", "note");
	REFUSED(registry_session(reg, NULL, "acme", &s, &err), ERR_EXISTS, "'acme'");
	use_once(reg, NULL, "mine");
	REFUSED(registry_session(reg, "mine", "note", &s, &err), ERR_EXISTS, "'mine'");
	assert_false(there("st/sessions/mine/note"));
	use_once(reg, NULL, "default");
	use_once(reg, "default", "again");
	assert_true(there("st/sessions/again"));
	registry_free(reg);
}

/* --- directories that are not what they were ------------------------------------------------- */

static void a_session_directory_that_became_a_link_is_refused(void **state)
{
	struct session *s = NULL;
	(void)state;
	struct registry *reg = open_registry();
	use_once(reg, NULL, "s");
	registry_free(reg);
	assert_int_equal(mkdir(below("elsewhere"), 0700), 0);
	make_file("elsewhere/secret");
	assert_int_equal(rmdir(below("st/sessions/s")), 0);
	assert_int_equal(symlink(below("elsewhere"), below("st/sessions/s")), 0);
	reg = open_registry();
	REFUSED(registry_session(reg, NULL, "s", &s, &err), ERR_CONFLICT, "link");
	/* Deleting takes the session, not what the link leads to, and not the link. */
	assert_int_equal(registry_delete(reg, NULL, "s", &err), 0);
	(void)sweep(reg);
	assert_true(there("elsewhere/secret"));
	REFUSED(registry_session(reg, NULL, "s", &s, &err), ERR_EXISTS, "belongs to no session");
	registry_free(reg);
}

static void a_session_directory_that_was_swapped_is_refused(void **state)
{
	struct session *s = NULL;
	(void)state;
	struct registry *reg = open_registry();
	use_once(reg, NULL, "s");
	registry_free(reg);
	assert_int_equal(rename(below("st/sessions/s"), below("kept")), 0);
	assert_int_equal(mkdir(below("st/sessions/s"), 0700), 0);
	make_file("st/sessions/s/planted");
	reg = open_registry();
	REFUSED(registry_session(reg, NULL, "s", &s, &err), ERR_CONFLICT, "not the one");
	assert_int_equal(registry_delete(reg, NULL, "s", &err), 0);
	(void)sweep(reg);
	assert_true(there("st/sessions/s/planted"));
	registry_free(reg);
}

static void a_session_directory_of_another_user_is_refused(void **state)
{
	struct session *s = NULL;
	(void)state;
	if (geteuid() != 0)
		skip();
	struct registry *reg = open_registry();
	use_once(reg, NULL, "s");
	use_once(reg, "acme", "s");
	registry_free(reg);
	assert_int_equal(chown(below("st/sessions/s"), 65534, 65534), 0);
	assert_int_equal(chown(below("st/sessions/acme"), 65534, 65534), 0);
	reg = open_registry();
	REFUSED(registry_session(reg, NULL, "s", &s, &err), ERR_CONFLICT, "another user");
	REFUSED(registry_session(reg, "acme", "s", &s, &err), ERR_DENIED, "alone");
	registry_free(reg);
}

static void a_missing_session_directory_is_damage_and_not_made_anew(void **state)
{
	struct session *s = NULL;
	(void)state;
	struct registry *reg = open_registry();
	use_once(reg, NULL, "s");
	registry_free(reg);
	assert_int_equal(rmdir(below("st/sessions/s")), 0);
	reg = open_registry();
	REFUSED(registry_session(reg, NULL, "s", &s, &err), ERR_CORRUPT, "missing");
	assert_false(there("st/sessions/s"));
	assert_int_equal(registry_delete(reg, NULL, "s", &err), 0);
	use_once(reg, NULL, "s");
	registry_free(reg);
}

static void files_of_no_session_are_neither_inherited_nor_removed(void **state)
{
	struct session *s = NULL;
	(void)state;
	struct registry *reg = open_registry();
	assert_int_equal(mkdir(below("st/sessions/s"), 0700), 0);
	make_file("st/sessions/s/precious");
	REFUSED(registry_session(reg, NULL, "s", &s, &err), ERR_EXISTS, "belongs to no session");
	make_file("st/sessions/f");
	REFUSED(registry_session(reg, NULL, "f", &s, &err), ERR_EXISTS, "belongs to no session");
	(void)sweep(reg);
	assert_true(there("st/sessions/s/precious"));
	/* An empty one is what a killed creation leaves. */
	assert_int_equal(mkdir(below("st/sessions/e"), 0755), 0);
	use_once(reg, NULL, "e");
	struct stat st;
	assert_int_equal(stat(below("st/sessions/e"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(registry_show(reg, NULL, "s", &(struct session_info){0}, &err),
		-ERR_SESSION_NOT_FOUND);
	registry_free(reg);
}

/* --- deleting ------------------------------------------------------------------------------- */

static void write_file(struct session *s, const char *name)
{
	char path[300];
	(void)snprintf(path, sizeof(path), "st/sessions/%s/%s", session_id(s), name);
	make_file(path);
}

static void a_deleted_id_never_inherits(void **state)
{
	struct session_info before, after;
	struct workspace *ws;
	(void)state;
	struct registry *reg = open_registry();
	struct session *s = get(reg, NULL, "s");
	assert_int_equal(session_workspace(s, &ws, &err), 0);
	write_file(s, "secret");
	assert_int_equal(session_next_turn(s), 1);
	assert_int_equal(session_next_turn(s), 2);
	session_info(s, &before);
	session_release(s);
	assert_int_equal(names_in("st/store"), 1);
	assert_int_equal(registry_delete(reg, NULL, "s", &err), 0);
	REFUSED(registry_show(reg, NULL, "s", &after, &err), ERR_SESSION_NOT_FOUND, "'s'");
	assert_int_equal(names_in("st/store"), 0);
	assert_int_equal(names_in("st/lease"), 0);
	/* Before and after the sweep. */
	for (int i = 0; i < 2; i++) {
		s = get(reg, NULL, "s");
		session_info(s, &after);
		assert_string_not_equal(before.incarnation, after.incarnation);
		assert_int_equal(after.turns, 0);
		assert_int_equal(names_in("st/sessions/s"), 0);
		assert_int_equal(session_workspace(s, &ws, &err), 0);
		assert_int_equal(workspace_seq(ws), 0);
		session_release(s);
		assert_int_equal(registry_delete(reg, NULL, "s", &err), 0);
		(void)sweep(reg);
		assert_int_equal(names_in("st/trash"), 0);
		assert_int_equal(names_in("st/sessions/.trash"), 0);
	}
	registry_free(reg);
}

static void a_session_in_use_is_not_deleted(void **state)
{
	(void)state;
	struct registry *reg = open_registry();
	struct session *s = get(reg, NULL, "s");
	REFUSED(registry_delete(reg, NULL, "s", &err), ERR_BUSY, "in use");
	assert_true(there("st/sessions/s"));
	session_release(s);
	assert_int_equal(registry_delete(reg, NULL, "s", &err), 0);
	registry_free(reg);
}

static void what_another_process_deletes_is_noticed_at_the_next_use(void **state)
{
	struct session_info old, new;
	(void)state;
	struct registry *a = open_registry(), *b = open_registry();
	struct session *s = get(a, NULL, "s");
	session_info(s, &old);
	session_release(s);
	assert_int_equal(registry_delete(b, NULL, "s", &err), 0);
	s = get(a, NULL, "s");
	session_info(s, &new);
	assert_string_not_equal(old.incarnation, new.incarnation);
	assert_true(there("st/sessions/s"));
	session_release(s);
	registry_free(a);
	registry_free(b);
}

static void deleting_a_missing_session_says_so(void **state)
{
	(void)state;
	struct registry *reg = open_registry();
	REFUSED(registry_delete(reg, NULL, "nobody", &err), ERR_SESSION_NOT_FOUND, "'nobody'");
	registry_free(reg);
}

/* --- time ----------------------------------------------------------------------------------- */

static void it_expires_at_its_time_and_not_before(void **state)
{
	struct session_info info, again;
	struct session *s = NULL;
	(void)state;
	struct registry *reg = open_registry();
	struct session_spec spec = {.id = "s", .ttl_s = 10};
	assert_int_equal(registry_create(reg, &spec, &s, &err), 0);
	session_info(s, &info);
	assert_int_equal(info.expires_ms, fake_ms + 10000);
	assert_int_equal(session_expires(s), (fake_ms + 10000) / 1000);
	write_file(s, "f");
	session_release(s);
	fake_ms += 9999;
	assert_int_equal(sweep(reg).expired, 0);
	s = get(reg, NULL, "s");
	session_info(s, &again);
	assert_string_equal(info.incarnation, again.incarnation);
	session_release(s);
	fake_ms += 1;
	assert_int_equal(registry_show(reg, NULL, "s", &again, &err), 0);
	assert_true(again.expired);
	REFUSED(registry_extend(reg, NULL, "s", 10, &again, &err), ERR_EXPIRED, "'s'");
	assert_true(there("st/sessions/s/f"));
	struct sweep_result r = sweep(reg);
	assert_int_equal(r.expired, 1);
	assert_false(there("st/sessions/s"));
	REFUSED(registry_show(reg, NULL, "s", &again, &err), ERR_SESSION_NOT_FOUND, "'s'");
	registry_free(reg);
}

static void an_expired_session_is_gone_also_before_the_sweep(void **state)
{
	struct session_info info;
	struct session *s = NULL;
	(void)state;
	struct registry_options opt = options();
	opt.ttl_s = 10;
	struct registry *reg = open_with(opt);
	s = get(reg, NULL, "s");
	write_file(s, "secret");
	session_release(s);
	fake_ms += 10000;
	s = get(reg, NULL, "s");
	session_info(s, &info);
	assert_int_equal(info.created_ms, fake_ms);
	assert_int_equal(names_in("st/sessions/s"), 0);
	session_release(s);
	registry_free(reg);
	/* And where sessions are not created, it is simply not there. */
	opt.no_create = true;
	reg = open_with(opt);
	fake_ms += 10000;
	REFUSED(registry_session(reg, NULL, "s", &s, &err), ERR_SESSION_NOT_FOUND, "'s'");
	assert_false(there("st/sessions/s"));
	registry_free(reg);
}

static void idle_time_counts_from_the_last_use_of_any_process(void **state)
{
	struct session_info info;
	(void)state;
	struct registry_options opt = options();
	opt.idle_s = 10;
	struct registry *a = open_with(opt), *b = open_with(opt);
	use_once(a, NULL, "s");
	for (int i = 0; i < 4; i++) {
		fake_ms += 4000;
		use_once(a, NULL, "s"); /* not saved at every use; b must know all the same */
		fake_ms += 4000;
		assert_int_equal(sweep(b).expired, 0);
		fake_ms -= 4000;
	}
	assert_int_equal(registry_show(b, NULL, "s", &info, &err), 0);
	assert_int_equal(info.used_ms, fake_ms);
	fake_ms += 9999;
	assert_int_equal(sweep(b).expired, 0);
	fake_ms += 1;
	assert_int_equal(sweep(b).expired, 1);
	registry_free(a);
	registry_free(b);
}

static void last_use_is_saved_at_the_end(void **state)
{
	struct session_info info;
	(void)state;
	struct registry *reg = open_registry();
	use_once(reg, NULL, "s");
	fake_ms += 1234;
	struct session *s = get(reg, NULL, "s");
	assert_int_equal(session_next_turn(s), 1);
	session_release(s);
	registry_free(reg);
	assert_int_equal(unlink(below("st/lease/nothing")), -1);
	reg = open_registry();
	assert_int_equal(registry_show(reg, NULL, "s", &info, &err), 0);
	assert_int_equal(info.used_ms, fake_ms);
	assert_int_equal(info.turns, 1);
	registry_free(reg);
}

static void extending_moves_the_end_also_for_others(void **state)
{
	struct session_info info;
	(void)state;
	struct registry_options opt = options();
	opt.ttl_s = 10;
	struct registry *a = open_with(opt), *b = open_with(opt);
	use_once(a, NULL, "s");
	make_file("st/sessions/s/f");
	assert_int_equal(registry_extend(b, NULL, "s", 100, &info, &err), 0);
	assert_int_equal(info.expires_ms, fake_ms + 100000);
	fake_ms += 50000; /* a still believes in the old end */
	use_once(a, NULL, "s");
	assert_true(there("st/sessions/s/f"));
	assert_int_equal(registry_extend(b, NULL, "s", 0, &info, &err), 0);
	assert_int_equal(info.expires_ms, 0);
	fake_ms += INT64_C(1000) * 86400 * 36500;
	assert_int_equal(sweep(b).expired, 0);
	use_once(a, NULL, "s");
	assert_true(there("st/sessions/s/f"));
	REFUSED(registry_extend(b, NULL, "s", -1, &info, &err), ERR_INVALID_ARGUMENT, "negative");
	registry_free(a);
	registry_free(b);
}

/* --- limits --------------------------------------------------------------------------------- */

static void a_tenant_has_no_more_sessions_than_its_limit(void **state)
{
	struct session *s = NULL;
	(void)state;
	struct registry_options opt = options();
	opt.tenant_sessions = 3;
	struct registry *reg = open_with(opt);
	use_once(reg, "t", "a");
	use_once(reg, "t", "b");
	use_once(reg, "t", "c");
	REFUSED(registry_session(reg, "t", "d", &s, &err), ERR_LIMIT, "3");
	assert_false(there("st/sessions/t/d"));
	use_once(reg, "t", "a");
	use_once(reg, "u", "d"); /* others have their own */
	assert_int_equal(registry_delete(reg, "t", "b", &err), 0);
	use_once(reg, "t", "d");
	REFUSED(registry_session(reg, "t", "e", &s, &err), ERR_LIMIT, "3");
	registry_free(reg);
}

static void only_so_many_are_open_and_the_oldest_gives_way(void **state)
{
	struct session *held[2], *s = NULL;
	(void)state;
	struct registry_options opt = options();
	opt.open_max = 2;
	struct registry *reg = open_with(opt);
	for (int i = 0; i < 20; i++) {
		char id[8];
		(void)snprintf(id, sizeof(id), "s%d", i);
		use_once(reg, NULL, id);
	}
	held[0] = get(reg, NULL, "s1");
	held[1] = get(reg, NULL, "s2");
	REFUSED(registry_session(reg, NULL, "s3", &s, &err), ERR_LIMIT, "2 sessions");
	REFUSED(registry_session(reg, NULL, "new", &s, &err), ERR_LIMIT, "2 sessions");
	assert_false(there("st/sessions/new"));
	session_release(held[0]);
	use_once(reg, NULL, "s3");
	session_release(held[1]);
	registry_free(reg);
}

static void creating_on_purpose_refuses_a_taken_id(void **state)
{
	struct session *s = NULL;
	struct session_info info;
	(void)state;
	struct registry *reg = open_registry();
	struct session_spec spec = {.tenant = "t",
		.id = "s",
		.owner = "ann",
		.role = "critic",
		.quota_bytes = 77,
		.quota_entries = 7};
	assert_int_equal(registry_create(reg, &spec, &s, &err), 0);
	session_info(s, &info);
	assert_string_equal(info.owner, "ann");
	assert_string_equal(session_role(s), "critic");
	assert_int_equal(info.quota_bytes, 77);
	session_release(s);
	REFUSED(registry_create(reg, &spec, &s, &err), ERR_EXISTS, "'s'");
	spec.id = NULL;
	assert_int_equal(registry_create(reg, &spec, &s, &err), 0);
	assert_int_equal(strlen(session_id(s)), 32);
	session_release(s);
	spec.owner = "";
	REFUSED(registry_create(reg, &spec, &s, &err), ERR_INVALID_ARGUMENT, "owner");
	spec.owner = "\xff";
	REFUSED(registry_create(reg, &spec, &s, &err), ERR_INVALID_ARGUMENT, "owner");
	registry_free(reg);
	reg = open_registry();
	REFUSED(registry_create(reg, &(struct session_spec){.tenant = "t", .id = "s"}, &s, &err),
		ERR_EXISTS, "'s'");
	registry_free(reg);
}

static void without_create_on_use_an_unknown_id_is_refused(void **state)
{
	struct session *s = NULL;
	(void)state;
	struct registry_options opt = options();
	opt.no_create = true;
	struct registry *reg = open_with(opt);
	REFUSED(registry_session(reg, NULL, "s", &s, &err), ERR_SESSION_NOT_FOUND, "'s'");
	assert_false(there("st/sessions/s"));
	registry_free(reg);
}

/* --- pages ---------------------------------------------------------------------------------- */

struct seen {
	unsigned n;
	char first[16], last[16];
	bool ordered;
};

static bool see(void *ctx, const struct session_info *info)
{
	struct seen *seen = ctx;
	if (seen->n++ == 0)
		(void)snprintf(seen->first, sizeof(seen->first), "%.15s", info->id);
	else
		seen->ordered &= strcmp(seen->last, info->id) < 0;
	(void)snprintf(seen->last, sizeof(seen->last), "%.15s", info->id);
	return true;
}

static void pages_are_stable_while_others_come_and_go(void **state)
{
	struct seen seen = {.ordered = true};
	bool more;
	(void)state;
	struct registry *reg = open_registry();
	for (int i = 0; i < 25; i++) {
		char id[16];
		(void)snprintf(id, sizeof(id), "s%02d", i * 2);
		use_once(reg, "t", id);
	}
	use_once(reg, "other", "s01");
	assert_int_equal(registry_page(reg, "t", NULL, 10, see, &seen, &more, &err), 0);
	assert_int_equal(seen.n, 10);
	assert_true(more && seen.ordered);
	assert_string_equal(seen.last, "s18");
	/* The last one of the page goes, another comes before it. */
	assert_int_equal(registry_delete(reg, "t", "s18", &err), 0);
	use_once(reg, "t", "s03");
	seen = (struct seen){.ordered = true};
	assert_int_equal(registry_page(reg, "t", "s18", 10, see, &seen, &more, &err), 0);
	assert_string_equal(seen.first, "s20");
	assert_string_equal(seen.last, "s38");
	seen = (struct seen){.ordered = true};
	assert_int_equal(registry_page(reg, "t", "s38", 10, see, &seen, &more, &err), 0);
	assert_int_equal(seen.n, 5);
	assert_false(more);
	assert_int_equal(registry_page(reg, "nobody", NULL, 10, see, &seen, &more, &err), 0);
	assert_false(more);
	REFUSED(registry_page(reg, "t", NULL, 0, see, &seen, &more, &err), ERR_INVALID_ARGUMENT,
		"1 to");
	REFUSED(registry_page(reg, "t", NULL, 1001, see, &seen, &more, &err), ERR_INVALID_ARGUMENT,
		"1 to");
	registry_free(reg);
}

/* --- what was restored from a back-up --------------------------------------------------------- */

/* The files of a session in another directory, as a copy leaves them. */
static void replace_directory(const char *id)
{
	char place[64], file[80], aside[80];
	(void)snprintf(place, sizeof(place), "st/sessions/%s", id);
	(void)snprintf(file, sizeof(file), "%s/f", place);
	(void)snprintf(aside, sizeof(aside), "aside");
	assert_int_equal(rename(below(place), below(aside)), 0);
	assert_int_equal(mkdir(below(place), 0700), 0);
	make_file(file);
}

static void a_restored_directory_is_refused_until_it_is_adopted(void **state)
{
	struct registry *reg = open_registry();
	struct session_info before, after;
	struct session *s = NULL;
	(void)state;
	use_once(reg, NULL, "s");
	assert_int_equal(registry_show(reg, NULL, "s", &before, &err), 0);
	registry_free(reg);
	replace_directory("s");
	reg = open_registry();
	REFUSED(registry_session(reg, NULL, "s", &s, &err), ERR_CONFLICT, "not the one");
	assert_non_null(strstr(err.hint, "session adopt s"));
	assert_int_equal(registry_adopt(reg, NULL, "s", &after, &err), 0);
	assert_string_equal(before.incarnation, after.incarnation);
	s = get(reg, NULL, "s");
	session_release(s);
	assert_true(there("st/sessions/s/f"));
	registry_free(reg);
}

static void only_a_directory_of_this_user_is_adopted(void **state)
{
	struct registry *reg = open_registry();
	struct session_info info;
	struct session *s = NULL;
	(void)state;
	use_once(reg, NULL, "s");
	s = get(reg, NULL, "s");
	REFUSED(registry_adopt(reg, NULL, "s", &info, &err), ERR_BUSY, "in use");
	session_release(s);
	replace_directory("s");
	REFUSED(registry_adopt(reg, NULL, "other", &info, &err), ERR_SESSION_NOT_FOUND, "other");
	assert_int_equal(chmod(below("st/sessions/s"), 0777), 0);
	REFUSED(registry_adopt(reg, NULL, "s", &info, &err), ERR_CONFLICT, "alone");
	assert_int_equal(unlink(below("st/sessions/s/f")), 0);
	assert_int_equal(rmdir(below("st/sessions/s")), 0);
	REFUSED(registry_adopt(reg, NULL, "s", &info, &err), ERR_NOT_FOUND, "no directory");
	assert_int_equal(symlink("../../aside", below("st/sessions/s")), 0);
	REFUSED(registry_adopt(reg, NULL, "s", &info, &err), ERR_CONFLICT, "link");
	REFUSED(registry_session(reg, NULL, "s", &s, &err), ERR_CONFLICT, "link");
	registry_free(reg);
}

/* --- a person's own directory ---------------------------------------------------------------- */

static struct session *attach(struct registry *reg, const char *path)
{
	struct session *s = NULL;
	_cleanup_close_ int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	if (registry_attach(reg, fd, path, &s, &err) < 0)
		fail_msg("attach: %s", err.text);
	return s;
}

static void an_attached_directory_is_recognised_and_never_deleted(void **state)
{
	struct session_info first, again;
	struct workspace *ws;
	(void)state;
	assert_int_equal(mkdir(below("project"), 0755), 0);
	make_file("project/code.c");
	struct registry *reg = open_registry();
	struct session *s = attach(reg, below("project"));
	session_info(s, &first);
	assert_int_equal(first.kind, SESSION_ATTACHED);
	assert_int_equal(session_workspace(s, &ws, &err), 0);
	struct session *same = attach(reg, below("project"));
	assert_ptr_equal(s, same);
	session_release(same);
	session_release(s);
	registry_free(reg);
	/* Another process, also when the directory has another name by now. */
	assert_int_equal(rename(below("project"), below("renamed")), 0);
	reg = open_registry();
	s = attach(reg, below("renamed"));
	session_info(s, &again);
	assert_string_equal(first.incarnation, again.incarnation);
	/* By its id, as a call names it. */
	struct session *by_id = get(reg, NULL, session_id(s));
	assert_ptr_equal(by_id, s);
	session_release(by_id);
	session_release(s);
	assert_int_equal(registry_delete(reg, NULL, first.id, &err), 0);
	(void)sweep(reg);
	assert_true(there("renamed/code.c"));
	assert_int_equal(names_in("st/store"), 0);
	assert_int_equal(names_in("st/trash"), 0);
	/* A new directory of the old name is another one. */
	assert_int_equal(mkdir(below("project"), 0755), 0);
	s = attach(reg, below("project"));
	session_info(s, &again);
	assert_string_not_equal(first.incarnation, again.incarnation);
	session_release(s);
	registry_free(reg);
}

static void the_state_itself_cannot_be_attached(void **state)
{
	static const char *const dirs[] = {"", "st", "st/sessions", "st/store", "st/sessions/s"};
	(void)state;
	struct registry *reg = open_registry();
	use_once(reg, NULL, "s");
	for (unsigned i = 0; i < ARRAY_LEN(dirs); i++) {
		struct session *s = NULL;
		_cleanup_close_ int fd = open(below(dirs[i]), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(fd >= 0);
		REFUSED(registry_attach(reg, fd, below(dirs[i]), &s, &err), ERR_DENIED, "sessions");
	}
	registry_free(reg);
}

static void a_file_cannot_be_attached(void **state)
{
	struct session *s = NULL;
	(void)state;
	make_file("f");
	struct registry *reg = open_registry();
	_cleanup_close_ int fd = open(below("f"), O_RDONLY | O_CLOEXEC);
	REFUSED(registry_attach(reg, fd, "f", &s, &err), ERR_NOT_DIRECTORY, "directory");
	registry_free(reg);
}

/* --- several processes ---------------------------------------------------------------------- */

static int create_many(unsigned rounds, char out[][INCARNATION_LEN + 1])
{
	struct registry *reg = open_registry();
	for (unsigned i = 0; i < rounds; i++) {
		char id[16];
		struct session *s = NULL;
		struct session_info info;
		(void)snprintf(id, sizeof(id), "s%u", i);
		if (registry_session(reg, NULL, id, &s, &err) < 0) {
			(void)fprintf(stderr, "# %s\n", err.text);
			return 1;
		}
		session_info(s, &info);
		memcpy(out[i], info.incarnation, sizeof(out[i]));
		session_release(s);
	}
	registry_free(reg);
	return 0;
}

enum { RACERS = 4, RACE_ROUNDS = 100 };

static void processes_that_create_the_same_id_get_the_same_session(void **state)
{
	typedef char incarnations[RACE_ROUNDS][INCARNATION_LEN + 1];
	(void)state;
	incarnations *seen = mmap(NULL, sizeof(incarnations) * RACERS, PROT_READ | PROT_WRITE,
		MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(seen != MAP_FAILED);
	pid_t pids[RACERS];
	for (int i = 0; i < RACERS; i++) {
		pids[i] = fork();
		if (pids[i] == 0)
			_exit(create_many(RACE_ROUNDS, seen[i]));
	}
	for (int i = 0; i < RACERS; i++) {
		int status;
		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_int_equal(status, 0);
	}
	for (int i = 1; i < RACERS; i++)
		for (int j = 0; j < RACE_ROUNDS; j++)
			assert_string_equal(seen[0][j], seen[i][j]);
	assert_int_equal(names_in("st/sessions"), RACE_ROUNDS);
	(void)munmap(seen, sizeof(incarnations) * RACERS);
}

static int churn(unsigned seed)
{
	struct registry *reg = open_registry();
	struct sweep_budget budget = {.entries = 20};
	struct sweep_result res;
	for (unsigned i = 0; i < 150; i++) {
		struct session *s = NULL;
		char id[16];
		int r;
		(void)snprintf(id, sizeof(id), "s%u", (i * 7 + seed) % 5);
		r = registry_session(reg, NULL, id, &s, &err);
		if (r == 0) {
			session_release(s);
			r = i % 3 == seed % 3 ? registry_delete(reg, NULL, id, &err) : 0;
		}
		if (r == 0 && i % 10 == seed)
			r = registry_sweep(reg, &budget, &res, &err);
		if (r < 0 && r != -ERR_SESSION_NOT_FOUND && r != -ERR_BUSY &&
			!(r == -ERR_CORRUPT && strstr(err.text, "missing"))) {
			(void)fprintf(stderr, "# %d: %s\n", r, err.text);
			return 1;
		}
	}
	registry_free(reg);
	return 0;
}

static void creating_deleting_and_sweeping_at_once_lose_nothing(void **state)
{
	pid_t pids[RACERS];
	(void)state;
	for (int i = 0; i < RACERS; i++) {
		pids[i] = fork();
		if (pids[i] == 0)
			_exit(churn((unsigned)i));
	}
	for (int i = 0; i < RACERS; i++) {
		int status;
		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_int_equal(status, 0);
	}
	/* Rows and directories agree. */
	struct registry *reg = open_registry();
	struct seen seen = {.ordered = true};
	bool more;
	(void)sweep(reg);
	assert_int_equal(registry_page(reg, NULL, NULL, 100, see, &seen, &more, &err), 0);
	assert_int_equal(seen.n, names_in("st/sessions"));
	assert_int_equal(names_in("st/trash"), 0);
	for (int i = 0; i < 5; i++) {
		char id[16];
		(void)snprintf(id, sizeof(id), "s%d", i);
		use_once(reg, NULL, id);
	}
	registry_free(reg);
}

/* --- the database --------------------------------------------------------------------------- */

static sqlite3 *raw_database(void)
{
	sqlite3 *db = NULL;
	assert_int_equal(sqlite3_open(below("st/registry.db"), &db), SQLITE_OK);
	return db;
}

static void raw_sql(const char *sql)
{
	sqlite3 *db = raw_database();
	char *why = NULL;
	if (sqlite3_exec(db, sql, NULL, NULL, &why) != SQLITE_OK)
		fail_msg("%s: %s", sql, why);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* Everything into the database file itself: a short log is left for the next process, and heals. */
static void fold_log(void)
{
	raw_sql("PRAGMA wal_checkpoint(TRUNCATE)");
	assert_false(there("st/registry.db-wal"));
}

static void nobody_scans(void **state)
{
#define STATEMENT(name, sql) sql,
	static const char *const all[] = {STATEMENTS(STATEMENT)};
#undef STATEMENT
	unsigned searched = 0;
	(void)state;
	struct registry *reg = open_registry();
	use_once(reg, NULL, "s");
	sqlite3 *db = raw_database();
	for (unsigned i = 0; i < ARRAY_LEN(all); i++) {
		sqlite3_stmt *st;
		char sql[2048];
		(void)snprintf(sql, sizeof(sql), "EXPLAIN QUERY PLAN %s", all[i]);
		if (sqlite3_prepare_v2(db, sql, -1, &st, NULL) != SQLITE_OK)
			fail_msg("%s: %s", all[i], sqlite3_errmsg(db));
		while (sqlite3_step(st) == SQLITE_ROW) {
			const char *plan = (const char *)sqlite3_column_text(st, 3);
			if (strstr(plan, "SCAN") || strstr(plan, "TEMP B-TREE"))
				fail_msg("%s: %s", all[i], plan);
			searched += strstr(plan, "SEARCH") != NULL;
		}
		(void)sqlite3_finalize(st);
	}
	assert_true(searched >= 10);
	(void)sqlite3_close(db);
	registry_free(reg);
}

static void overwrite(const char *path, off_t at, const char *bytes, size_t n)
{
	int fd = open(below(path), O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, bytes, n, at), n);
	(void)close(fd);
}

static void a_damaged_registry_is_said_clearly_and_left_alone(void **state)
{
	struct session *s = NULL;
	struct stat before, after;
	(void)state;
	struct registry *reg = open_registry();
	use_once(reg, NULL, "s");
	make_file("st/sessions/s/precious");
	registry_free(reg);
	fold_log();
	overwrite("st/registry.db", 0, "this was a database", 19);
	assert_int_equal(stat(below("st/registry.db"), &before), 0);
	reg = open_registry();
	REFUSED(registry_session(reg, NULL, "s", &s, &err), ERR_CORRUPT, "damaged");
	REFUSED(registry_session(reg, NULL, "t", &s, &err), ERR_CORRUPT, "damaged");
	registry_free(reg);
	assert_int_equal(stat(below("st/registry.db"), &after), 0);
	assert_int_equal(before.st_ino, after.st_ino);
	assert_int_equal(before.st_size, after.st_size);
	assert_true(there("st/sessions/s/precious"));
	assert_false(there("st/sessions/t"));
}

static void damage_in_its_pages_is_found(void **state)
{
	char junk[4096];
	struct session *s = NULL;
	(void)state;
	struct registry *reg = open_registry();
	for (int i = 0; i < 50; i++) {
		char id[16];
		(void)snprintf(id, sizeof(id), "s%d", i);
		use_once(reg, NULL, id);
	}
	registry_free(reg);
	fold_log();
	memset(junk, 0x5a, sizeof(junk));
	struct stat st;
	assert_int_equal(stat(below("st/registry.db"), &st), 0);
	for (off_t at = 4096; at < st.st_size; at += 4096)
		overwrite("st/registry.db", at, junk, sizeof(junk));
	reg = open_registry();
	REFUSED(registry_session(reg, NULL, "s7", &s, &err), ERR_CORRUPT, "damaged");
	registry_free(reg);
	assert_true(there("st/sessions/s7"));
}

static void rows_that_we_never_wrote_become_no_paths(void **state)
{
	struct session *s = NULL;
	(void)state;
	struct registry *reg = open_registry();
	use_once(reg, NULL, "s");
	registry_free(reg);
	assert_int_equal(mkdir(below("st/victim"), 0700), 0);
	raw_sql("UPDATE session SET incarnation = '../victim' || printf('%.23c', 'x')");
	reg = open_registry();
	REFUSED(registry_session(reg, NULL, "s", &s, &err), ERR_CORRUPT, "damaged");
	REFUSED(registry_delete(reg, NULL, "s", &err), ERR_CORRUPT, "damaged");
	registry_free(reg);
	raw_sql("PRAGMA foreign_keys = OFF; UPDATE session SET tenant = '../..'");
	reg = open_registry();
	fake_ms += 1;
	struct sweep_budget all = {0};
	struct sweep_result res;
	raw_sql("UPDATE session SET expires_ms = 1");
	REFUSED(registry_sweep(reg, &all, &res, &err), ERR_CORRUPT, "damaged");
	registry_free(reg);
	assert_true(there("st/victim"));
}

static void another_programs_database_is_left_alone(void **state)
{
	struct session *s = NULL;
	(void)state;
	struct registry *reg = open_registry();
	registry_free(reg);
	raw_sql("CREATE TABLE theirs (x)");
	reg = open_registry();
	REFUSED(registry_session(reg, NULL, "s", &s, &err), ERR_CORRUPT, "damaged");
	registry_free(reg);
	raw_sql("INSERT INTO theirs VALUES (1)");
}

static void a_newer_version_is_refused(void **state)
{
	struct session *s = NULL;
	(void)state;
	struct registry *reg = open_registry();
	use_once(reg, NULL, "s");
	registry_free(reg);
	raw_sql("PRAGMA user_version = 99");
	reg = open_registry();
	REFUSED(registry_session(reg, NULL, "s", &s, &err), ERR_UNSUPPORTED, "newer");
	registry_free(reg);
}

static void a_linked_registry_is_refused(void **state)
{
	struct session *s = NULL;
	(void)state;
	struct registry *reg = open_registry();
	use_once(reg, NULL, "s");
	registry_free(reg);
	assert_int_equal(rename(below("st/registry.db"), below("moved.db")), 0);
	assert_int_equal(symlink(below("moved.db"), below("st/registry.db")), 0);
	reg = open_registry();
	REFUSED(registry_session(reg, NULL, "s", &s, &err), ERR_DENIED, "plain file");
	registry_free(reg);
	assert_int_equal(unlink(below("st/registry.db")), 0);
	assert_int_equal(link(below("moved.db"), below("st/registry.db")), 0);
	reg = open_registry();
	REFUSED(registry_session(reg, NULL, "s", &s, &err), ERR_DENIED, "plain file");
	registry_free(reg);
}

static void a_busy_registry_answers_within_its_time(void **state)
{
	struct session *s = NULL;
	(void)state;
	struct registry_options opt = options();
	opt.busy_ms = 50;
	struct registry *reg = open_with(opt);
	use_once(reg, NULL, "s");
	sqlite3 *db = raw_database();
	assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	REFUSED(registry_session(reg, NULL, "t", &s, &err), ERR_BUSY, "another process");
	assert_false(there("st/sessions/t"));
	fake_ms += 10000;
	use_once(reg, NULL,
		"s"); /* what is open needs no database, also when it is due for saving */
	(void)sqlite3_close(db);
	use_once(reg, NULL, "t");
	registry_free(reg);
}

/* Run `fn` with the state on a small tmpfs of its own, or read-only after `prepare`. */
static int on_small_disk(int (*fn)(void))
{
	if (geteuid() != 0)
		return 77;
	pid_t pid = fork();
	if (pid == 0) {
		if (unshare(CLONE_NEWNS) < 0 ||
			mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
			mount("tmpfs", tmp_name, "tmpfs", 0, "size=400k,mode=700") < 0)
			_exit(77);
		_exit(fn());
	}
	int status;
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return 99;
	return WEXITSTATUS(status);
}

#define CHECK(cond)                                                                                \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			(void)fprintf(stderr, "# line %d: %s: %s\n", __LINE__, #cond, err.text);   \
			return 1;                                                                  \
		}                                                                                  \
	} while (0)

static int fill_disk(void)
{
	char chunk[4096] = {1};
	int fd = open(below("filler"), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	while (write(fd, chunk, sizeof(chunk)) > 0)
		;
	return close(fd);
}

static int full_disk(void)
{
	struct session *s = NULL;
	struct sweep_budget all = {0};
	struct sweep_result res;
	struct registry_options opt = options();
	opt.ttl_s = 10;
	struct registry *reg = open_with(opt);
	for (int i = 0; i < 8; i++) {
		char id[8];
		(void)snprintf(id, sizeof(id), "s%d", i);
		CHECK(registry_session(reg, NULL, id, &s, &err) == 0);
		session_release(s);
	}
	(void)fill_disk();
	int r = 0;
	for (int i = 0; r == 0 && i < 1000; i++) {
		char id[8];
		(void)snprintf(id, sizeof(id), "n%d", i);
		r = registry_session(reg, NULL, id, &s, &err);
		if (r == 0)
			session_release(s);
	}
	CHECK(r == -ERR_NO_SPACE);
	CHECK(strstr(err.text, "space") != NULL);
	/* Nothing is lost: all are still there, and go on being used. */
	struct session_info info;
	for (int i = 0; i < 8; i++) {
		char id[8], path[32];
		(void)snprintf(id, sizeof(id), "s%d", i);
		(void)snprintf(path, sizeof(path), "st/sessions/%s", id);
		CHECK(registry_show(reg, NULL, id, &info, &err) == 0);
		CHECK(there(path));
	}
	/* The sweep removes files all the same, which makes the room to forget the rows. */
	fake_ms += 10000;
	(void)unlink(below("filler"));
	r = registry_sweep(reg, &all, &res, &err);
	CHECK(r == 0);
	CHECK(names_in("st/sessions") == 0);
	registry_free(reg);
	return 0;
}

static void a_full_disk_loses_nothing(void **state)
{
	(void)state;
	int r = on_small_disk(full_disk);
	if (r == 77)
		skip();
	assert_int_equal(r, 0);
}

static int read_only_disk(void)
{
	struct session *s = NULL;
	struct registry *reg = open_registry();
	CHECK(registry_session(reg, NULL, "s", &s, &err) == 0);
	session_release(s);
	registry_free(reg);
	CHECK(mount(NULL, tmp_name, NULL, MS_REMOUNT | MS_RDONLY, NULL) == 0);
	struct state_paths paths = {.state_dir = below("st")};
	struct registry_options opt = options();
	int r = state_open(&paths, &opt.state_fd, &opt.base_fd, &err);
	if (r == 0)
		r = registry_open(&opt, &reg, &err);
	if (r == 0)
		r = registry_session(reg, NULL, "t", &s, &err);
	CHECK(r == -ERR_READ_ONLY);
	return 0;
}

static void a_read_only_disk_is_said(void **state)
{
	(void)state;
	int r = on_small_disk(read_only_disk);
	if (r == 77)
		skip();
	assert_int_equal(r, 0);
}

/* --- the sweep ------------------------------------------------------------------------------ */

static void a_sweep_keeps_to_its_budget_and_goes_on(void **state)
{
	(void)state;
	struct registry_options opt = options();
	opt.ttl_s = 10;
	struct registry *reg = open_with(opt);
	for (int i = 0; i < 30; i++) {
		char id[16], path[64];
		(void)snprintf(id, sizeof(id), "s%02d", i);
		use_once(reg, NULL, id);
		(void)snprintf(path, sizeof(path), "st/sessions/%s/f", id);
		make_file(path);
	}
	fake_ms += 10000;
	unsigned expired = 0, calls = 0;
	int64_t entries = 0;
	struct sweep_result res;
	do {
		struct sweep_budget few = {.sessions = 4, .entries = 9};
		assert_int_equal(registry_sweep(reg, &few, &res, &err), 0);
		assert_true(res.expired <= 4 && res.entries <= 9);
		expired += res.expired;
		entries += res.entries;
		assert_true(++calls < 50);
	} while (res.more);
	assert_int_equal(expired, 30);
	assert_true(entries >= 60);
	assert_int_equal(names_in("st/sessions"), 0);
	assert_int_equal(names_in("st/sessions/.trash"), 0);
	assert_int_equal(names_in("st/trash"), 0);
	registry_free(reg);
}

static void a_tree_that_resists_does_not_stop_the_others(void **state)
{
	struct sweep_budget all = {0};
	struct sweep_result res;
	(void)state;
	if (geteuid() != 0)
		skip();
	struct registry *reg = open_registry();
	for (int i = 0; i < 3; i++) {
		char id[16];
		(void)snprintf(id, sizeof(id), "s%d", i);
		use_once(reg, NULL, id);
	}
	registry_free(reg);
	/* A mount inside, in a namespace of its own. */
	pid_t pid = fork();
	if (pid == 0) {
		if (unshare(CLONE_NEWNS) < 0 ||
			mount("", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
			mkdir(below("st/sessions/s1/m"), 0700) < 0 ||
			mount("tmpfs", below("st/sessions/s1/m"), "tmpfs", 0, "size=64k") < 0)
			_exit(77);
		make_file("st/sessions/s1/m/precious");
		reg = open_registry();
		for (int i = 0; i < 3; i++) {
			char id[16];
			(void)snprintf(id, sizeof(id), "s%d", i);
			if (registry_delete(reg, NULL, id, &err) < 0)
				_exit(2);
		}
		if (registry_sweep(reg, &all, &res, &err) < 0)
			_exit(3);
		if (res.stuck != 1 || !strstr(res.stuck_why, "mounted"))
			_exit(4);
		_exit(names_in("st/sessions/.trash") == 1 ? 0 : 5);
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(status, 0);
	/* The mount is gone with its namespace; the next sweep goes on. */
	reg = open_registry();
	(void)sweep(reg);
	assert_int_equal(names_in("st/sessions/.trash"), 0);
	registry_free(reg);
}

static void a_session_in_use_here_is_not_swept(void **state)
{
	(void)state;
	struct registry_options opt = options();
	opt.ttl_s = 10;
	struct registry *reg = open_with(opt);
	struct session *s = get(reg, NULL, "s");
	fake_ms += 10000;
	assert_int_equal(sweep(reg).expired, 0);
	assert_true(there("st/sessions/s"));
	session_release(s);
	assert_int_equal(sweep(reg).expired, 1);
	registry_free(reg);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

static const struct CMUnitTest tests[] = {
	CASE(ids_that_break_a_rule_are_refused_naming_it),
	CASE(tenants_do_not_meet),
	CASE(a_session_is_never_the_directory_of_a_tenant),
	CASE(a_session_directory_that_became_a_link_is_refused),
	CASE(a_session_directory_that_was_swapped_is_refused),
	CASE(a_session_directory_of_another_user_is_refused),
	CASE(a_missing_session_directory_is_damage_and_not_made_anew),
	CASE(files_of_no_session_are_neither_inherited_nor_removed),
	CASE(a_deleted_id_never_inherits),
	CASE(a_session_in_use_is_not_deleted),
	CASE(what_another_process_deletes_is_noticed_at_the_next_use),
	CASE(deleting_a_missing_session_says_so),
	CASE(it_expires_at_its_time_and_not_before),
	CASE(an_expired_session_is_gone_also_before_the_sweep),
	CASE(idle_time_counts_from_the_last_use_of_any_process),
	CASE(last_use_is_saved_at_the_end),
	CASE(extending_moves_the_end_also_for_others),
	CASE(a_tenant_has_no_more_sessions_than_its_limit),
	CASE(only_so_many_are_open_and_the_oldest_gives_way),
	CASE(creating_on_purpose_refuses_a_taken_id),
	CASE(without_create_on_use_an_unknown_id_is_refused),
	CASE(pages_are_stable_while_others_come_and_go),
	CASE(a_restored_directory_is_refused_until_it_is_adopted),
	CASE(only_a_directory_of_this_user_is_adopted),
	CASE(an_attached_directory_is_recognised_and_never_deleted),
	CASE(the_state_itself_cannot_be_attached),
	CASE(a_file_cannot_be_attached),
	CASE(processes_that_create_the_same_id_get_the_same_session),
	CASE(creating_deleting_and_sweeping_at_once_lose_nothing),
	CASE(nobody_scans),
	CASE(a_damaged_registry_is_said_clearly_and_left_alone),
	CASE(damage_in_its_pages_is_found),
	CASE(rows_that_we_never_wrote_become_no_paths),
	CASE(another_programs_database_is_left_alone),
	CASE(a_newer_version_is_refused),
	CASE(a_linked_registry_is_refused),
	CASE(a_busy_registry_answers_within_its_time),
	CASE(a_full_disk_loses_nothing),
	CASE(a_read_only_disk_is_said),
	CASE(a_sweep_keeps_to_its_budget_and_goes_on),
	CASE(a_tree_that_resists_does_not_stop_the_others),
	CASE(a_session_in_use_here_is_not_swept),
};

int main(void)
{
	return cmocka_run_group_tests(tests, NULL, NULL);
}
