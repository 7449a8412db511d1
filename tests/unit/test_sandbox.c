/* The parts of the fence that need no fence: plan, packets, captured output, changes from an upper
 * layer. */
#include "workspace_fixture.h"

#include "sandbox/effects.h"
#include "sandbox/gitguard.h"
#include "sandbox/output.h"
#include "sandbox/upper.h"
#include "workspace/history.h"

#include <sys/mman.h>
#include <time.h>
#include <sys/xattr.h>

/* --- plan --- */

static void a_request_gets_less_and_never_more(void **state)
{
	(void)state;
	struct fence_plan p;
	const struct fence_config c = {
		.uid = 7, .gid = 8, .most = {.memory_bytes = 100, .processes = 10, .cpu_s = 5}};
	const struct fence_limits asked = {.memory_bytes = 200, .processes = 3};
	plan_make(&c, &asked, 0, 1, &p);
	assert_int_equal(p.limits.memory_bytes, 100);
	assert_int_equal(p.limits.processes, 3);
	assert_int_equal(p.limits.cpu_s, 5);
	assert_int_equal(p.host_uid, 7);
	assert_int_equal(p.inside_gid, 8);
}

static void root_runs_each_command_as_another_user(void **state)
{
	(void)state;
	struct fence_plan a, b, other;
	const struct fence_config c = {.root = true};
	const struct fence_limits none = {0};
	plan_make(&c, &none, 0, 1, &a);
	plan_make(&c, &none, 1, 1, &b);
	plan_make(&c, &none, 0, 4194303, &other);
	assert_true(a.host_uid >= FENCE_HOST_UID_FIRST && a.host_uid != b.host_uid);
	assert_true(other.host_uid != a.host_uid && other.host_uid < INT32_MAX);
	assert_int_equal(a.inside_uid, FENCE_UID);
}

/* --- packets --- */

static const char *words[FENCE_WORDS_MAX + 2];

static void a_request_survives_the_way(void **state)
{
	(void)state;
	struct err e;
	struct fence_request out;
	const char *const argv[] = {"a", "", "b c", NULL}, *const envp[] = {"X=1", NULL};
	const struct fence_request in = {
		.cwd = "sub/dir", .argv = argv, .envp = envp, .limits = {.time_ms = 9}};
	struct buf b = buf_init(FENCE_PACKET_MAX);
	assert_int_equal(fence_request_put(&in, &b, &e), 0);
	assert_int_equal(fence_request_get(b.data, b.len, &out, words, &e), 0);
	assert_string_equal(out.cwd, "sub/dir");
	assert_string_equal(out.argv[1], "");
	assert_string_equal(out.argv[2], "b c");
	assert_null(out.argv[3]);
	assert_string_equal(out.envp[0], "X=1");
	assert_null(out.envp[1]);
	assert_int_equal(out.limits.time_ms, 9);
	for (size_t n = 0; n < b.len; n++) {
		/* Cut anywhere it is refused, and nothing behind the end is read. */
		char *cut = malloc(n + 1);
		memcpy(cut, b.data, n);
		cut[n] = '\0';
		assert_int_equal(fence_request_get(cut, n, &out, words, &e), -ERR_PARSE);
		free(cut);
	}
	buf_done(&b);
}

static int get_path(const char *path, size_t n)
{
	struct err e;
	struct fence_entries in;
	struct fence_entry out;
	struct buf b = buf_init(FENCE_PACKET_MAX);
	const struct fence_entry entry = {
		.kind = FENCE_LINK, .path = {path, n}, .target = STR("t")};
	fence_entries_begin(&b);
	assert_true(fence_entry_put(&b, &entry));
	assert_int_equal(fence_entries_open(b.data, b.len, &in, &e), 0);
	int r = fence_entry_get(&in, &out, &e);
	if (r == 1)
		assert_true(out.path.n == n && memcmp(out.path.p, path, n) == 0);
	buf_done(&b);
	return r;
}

static void paths_of_entries_are_plain(void **state)
{
	(void)state;
	static const char *const good[] = {"a", "a/b", "..a/b..", ".a", "a/...", "\xff\n"};
	static const char *const bad[] = {
		"", "/", "/a", "a/", "a//b", ".", "..", "../a", "a/..", "a/../b", "a/./b"};
	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		assert_int_equal(get_path(good[i], strlen(good[i])), 1);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(get_path(bad[i], strlen(bad[i])), -ERR_PARSE);
	assert_int_equal(get_path("a\0b", 3), -ERR_PARSE);
}

/* --- output --- */

static char *captured(size_t keep, const char *text, size_t step, int64_t *omitted)
{
	struct err e;
	struct output o;
	struct buf b = buf_init(1 << 20);
	assert_int_equal(output_init(&o, keep, &e), 0);
	for (size_t at = 0, n = strlen(text); at < n; at += step)
		output_put(&o, text + at, MIN(step, n - at));
	*omitted = output_text(&o, &b);
	output_done(&o);
	return buf_take(&b, NULL);
}

static void output_keeps_head_and_tail(void **state)
{
	(void)state;
	int64_t omitted;
	for (size_t step = 1; step < 30; step++) {
		char *t = captured(20, "0123456789abcdefghij", step, &omitted);
		assert_string_equal(t, "0123456789abcdefghij");
		assert_int_equal(omitted, 0);
		free(t);
		t = captured(8, "0123456789abcdefghij", step, &omitted);
		assert_non_null(strstr(t, "0123\n[... 12 bytes are left out here ...]\nghij"));
		assert_int_equal(omitted, 12);
		free(t);
	}
	char *t = captured(0, "abc", 1, &omitted);
	assert_int_equal(omitted, 3);
	free(t);
}

static void output_is_cut_at_characters(void **state)
{
	(void)state;
	int64_t omitted;
	char *t = captured(6, "\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac", 5, &omitted);
	assert_true(utf8_valid(t, strlen(t)));
	free(t);
	t = captured(8, "\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac", 5, &omitted);
	assert_true(utf8_valid(t, strlen(t)));
	assert_int_equal(omitted, 6);
	free(t);
}

/* --- changes ---
 * A layer as overlayfs leaves it is made by hand in `upper`, beside the workspace. */

struct layer {
	struct fixture *f;
	char dir[64];
	int fd;
};

static int layer_setup(void **state)
{
	void *inner = NULL;
	struct layer *l = calloc(1, sizeof(*l));
	fx_setup(&inner);
	l->f = inner;
	strcpy(l->dir, "/dev/shm/cloister-upper-XXXXXX");
	assert_non_null(mkdtemp(l->dir));
	l->fd = open(l->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*state = l;
	return 0;
}

static int layer_teardown(void **state)
{
	struct layer *l = *state;
	void *inner = l->f;
	tree_clear(l->fd);
	close(l->fd);
	rmdir(l->dir);
	fx_teardown(&inner);
	free(l);
	return 0;
}

static void put(struct layer *l, const char *path, const char *text)
{
	int fd = openat(l->fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

static void white(struct layer *l, const char *path)
{
	assert_int_equal(mknodat(l->fd, path, S_IFCHR, 0), 0);
}

static void dir(struct layer *l, const char *path, bool opaque)
{
	assert_int_equal(mkdirat(l->fd, path, 0755), 0);
	int fd = openat(l->fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (opaque)
		assert_int_equal(fsetxattr(fd, "user.overlay.opaque", "y", 1, 0), 0);
	close(fd);
}

/* Take the layer into a new view; `since` is now when NULL. */
static int take_since(
	struct layer *l, struct view **ret, unsigned *ret_left, const struct timespec *since)
{
	const char *first;
	struct effects *e = NULL;
	struct timespec now = {.tv_sec = INT32_MAX};
	struct view *v = fx_view(l->f);
	FX_OK(effects_new(v, since ? since : &now, &e, &fx_err));
	int r = upper_walk(l->fd, ".cloister", effects_take, e, &fx_err);
	if (r == 0)
		r = effects_finish(e, &fx_err);
	if (ret_left)
		*ret_left = effects_left_out(e, &first);
	effects_free(e);
	if (r == 0)
		*ret = v;
	else
		view_free(v);
	return r;
}

static struct changeset *take(struct layer *l)
{
	struct view *v = NULL;
	FX_OK(take_since(l, &v, NULL, NULL));
	struct changeset *cs = fx_finish(v);
	view_free(v);
	return cs;
}

/* "created a; replaced b": sorted by nothing but the order of publishing. */
static void expect(struct layer *l, const char *text)
{
	char got[1024];
	size_t n = 0;
	struct changeset *cs = take(l);
	got[0] = '\0';
	for (unsigned i = 0; i < changeset_count(cs); i++)
		n += (size_t)snprintf(got + n, sizeof(got) - n, "%s%s %s", i ? "; " : "",
			change_kind_word(changeset_get(cs, i)->kind), changeset_get(cs, i)->path);
	assert_string_equal(got, text);
	fx_commit_set(l->f, cs);
}

static void new_files_are_created_with_their_mode_and_time(void **state)
{
	struct layer *l = *state;
	const struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 2000, .tv_nsec = 5}};
	put(l, "a", "text");
	assert_int_equal(fchmodat(l->fd, "a", 0755, 0), 0);
	assert_int_equal(utimensat(l->fd, "a", old, 0), 0);
	expect(l, "created a");
	fx_expect_host(l->f, "a", "text");
	struct stat st = fx_host_stat(l->f, "a");
	assert_int_equal(st.st_mode & 07777, 0755);
	assert_int_equal(st.st_mtim.tv_sec, 2000);
	assert_int_equal(st.st_mtim.tv_nsec, 5);
}

static void what_is_the_same_is_no_change(void **state)
{
	struct layer *l = *state;
	fx_host_write(l->f, "a", "same");
	fx_host_mkdir(l->f, "d");
	fx_host_symlink(l->f, "a", "l");
	put(l, "a", "same");
	dir(l, "d", false);
	assert_int_equal(symlinkat("a", l->fd, "l"), 0);
	white(l, "never_was");
	expect(l, "");
}

static void growth_is_an_append_and_a_mode_only_a_mode(void **state)
{
	struct layer *l = *state;
	fx_host_write(l->f, "grown", "one\n");
	fx_host_write(l->f, "mode", "m");
	fx_host_write(l->f, "other", "old content");
	put(l, "grown", "one\ntwo\n");
	put(l, "mode", "m");
	assert_int_equal(fchmodat(l->fd, "mode", 0600, 0), 0);
	put(l, "other", "new");
	struct changeset *cs = take(l);
	unsigned seen = 0;
	for (unsigned i = 0; i < changeset_count(cs); i++)
		seen |= 1u << changeset_get(cs, i)->kind;
	assert_int_equal(changeset_count(cs), 3);
	assert_int_equal(seen, 1u << CHANGE_APPEND | 1u << CHANGE_MODE | 1u << CHANGE_REPLACE);
	fx_commit_set(l->f, cs);
	fx_expect_host(l->f, "grown", "one\ntwo\n");
	fx_expect_host(l->f, "other", "new");
	assert_int_equal(fx_host_mode(l->f, "mode"), 0600);
}

static void whiteouts_delete(void **state)
{
	struct layer *l = *state;
	fx_host_write(l->f, "gone", "x");
	fx_host_mkdir(l->f, "tree");
	fx_host_write(l->f, "tree/x", "x");
	white(l, "gone");
	white(l, "tree");
	struct changeset *cs = take(l);
	assert_int_equal(changeset_count(cs), 2);
	fx_commit_set(l->f, cs);
	assert_false(fx_host_exists(l->f, "gone"));
	assert_false(fx_host_exists(l->f, "tree"));
}

static void opaque_directories_hide_what_was_below(void **state)
{
	struct layer *l = *state;
	fx_host_mkdir(l->f, "d");
	fx_host_write(l->f, "d/old", "x");
	dir(l, "d", true);
	put(l, "d/new", "y");
	fx_commit_set(l->f, take(l));
	assert_false(fx_host_exists(l->f, "d/old"));
	fx_expect_host(l->f, "d/new", "y");
}

static void merged_directories_keep_what_was_below(void **state)
{
	struct layer *l = *state;
	fx_host_mkdir(l->f, "d");
	fx_host_write(l->f, "d/old", "x");
	dir(l, "d", false);
	put(l, "d/new", "y");
	expect(l, "created d/new");
	fx_expect_host(l->f, "d/old", "x");
}

static void kinds_change_into_each_other(void **state)
{
	struct layer *l = *state;
	fx_host_write(l->f, "file", "x");
	fx_host_mkdir(l->f, "dir");
	fx_host_write(l->f, "dir/in", "x");
	fx_host_symlink(l->f, "file", "link");
	dir(l, "file", true);
	put(l, "file/in", "y");
	put(l, "dir", "now a file");
	put(l, "link", "now a file");
	fx_commit_set(l->f, take(l));
	fx_expect_host(l->f, "file/in", "y");
	fx_expect_host(l->f, "dir", "now a file");
	assert_true(S_ISREG(fx_host_stat(l->f, "link").st_mode));
}

static void a_new_directory_stays_workable_for_its_owner(void **state)
{
	struct layer *l = *state;
	dir(l, "ro", true);
	put(l, "ro/x", "x");
	assert_int_equal(fchmodat(l->fd, "ro", 0555, 0), 0);
	fx_commit_set(l->f, take(l));
	fx_expect_host(l->f, "ro/x", "x");
	assert_int_equal(fx_host_mode(l->f, "ro"), 0755);
	assert_int_equal(fchmodat(l->fd, "ro", 0755, 0), 0);
	fx_host_chmod(l->f, "ro", 0755);
}

static void an_old_directory_gets_any_mode_after_its_files(void **state)
{
	struct layer *l = *state;
	fx_host_mkdir(l->f, "old");
	dir(l, "old", false);
	put(l, "old/x", "x");
	assert_int_equal(fchmodat(l->fd, "old", 0555, 0), 0);
	fx_commit_set(l->f, take(l));
	fx_expect_host(l->f, "old/x", "x");
	assert_int_equal(fx_host_mode(l->f, "old"), 0555);
	fx_host_chmod(l->f, "old", 0755);
	assert_int_equal(fchmodat(l->fd, "old", 0755, 0), 0);
}

static const struct {
	const char *target, *becomes; /* NULL: left out */
} links[] = {{"a", "a"}, {"/workspace/a/b", "../a/b"}, {"/workspace", "../."},
	{"/usr/bin/python3", "/usr/bin/python3"}, {"/etc/passwd", NULL}, {"../../x", NULL},
	{"/usr/../etc/passwd", NULL}, {"/usrlocal", NULL}, {"/workspace_evil/x", NULL},
	{"/workspace/../etc", NULL}, {"/proc/self/root", NULL}};

static void links_lead_inside_or_to_the_system(void **state)
{
	struct layer *l = *state;
	for (size_t i = 0; i < ARRAY_LEN(links); i++) {
		char now[256] = {0}, path[16];
		unsigned left = 0;
		struct view *v = NULL;
		snprintf(path, sizeof(path), "d/l%zu", i);
		if (i == 0)
			dir(l, "d", false);
		assert_int_equal(symlinkat(links[i].target, l->fd, path), 0);
		FX_OK(take_since(l, &v, &left, NULL));
		fx_commit(l->f, v);
		view_free(v);
		assert_int_equal(left, links[i].becomes ? 0 : 1);
		assert_int_equal(fx_host_exists(l->f, path), links[i].becomes != NULL);
		if (links[i].becomes) {
			assert_true(readlinkat(l->f->fd, path, now, sizeof(now) - 1) > 0);
			assert_string_equal(now, links[i].becomes);
		}
		assert_int_equal(unlinkat(l->fd, path, 0), 0);
	}
}

static void sockets_and_fifos_are_left_out(void **state)
{
	struct layer *l = *state;
	unsigned left = 0;
	struct view *v = NULL;
	assert_int_equal(mkfifoat(l->fd, "fifo", 0644), 0);
	FX_OK(take_since(l, &v, &left, NULL));
	assert_int_equal(left, 1);
	assert_int_equal(fx_finish_count(v), 0);
	view_free(v);
}

static void expect_refused(struct layer *l, enum err_code code, const char *word)
{
	struct view *v = NULL;
	assert_int_equal(take_since(l, &v, NULL, NULL), -(int)code);
	if (!strstr(fx_err.text, word))
		fail_msg("'%s' does not say '%s'", fx_err.text, word);
}

static void bits_that_change_identity_are_refused(void **state)
{
	struct layer *l = *state;
	put(l, "suid", "x");
	assert_int_equal(fchmodat(l->fd, "suid", 04755, 0), 0);
	expect_refused(l, ERR_DENIED, "/workspace/suid");
	assert_int_equal(fchmodat(l->fd, "suid", 02755, 0), 0);
	expect_refused(l, ERR_DENIED, "run as its owner");
}

static void devices_are_refused(void **state)
{
	struct layer *l = *state;
	if (mknodat(l->fd, "null", S_IFCHR | 0666, 0x103) < 0) {
		skip();
		return;
	}
	expect_refused(l, ERR_DENIED, "a device");
}

static void set_mark(struct layer *l, const char *path, const char *name, const char *value)
{
	int fd = openat(l->fd, path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(fsetxattr(fd, name, value, strlen(value), 0), 0);
	close(fd);
}

static void marks_of_other_places_are_refused(void **state)
{
	struct layer *l = *state;
	dir(l, "d", false);
	set_mark(l, "d", "user.overlay.redirect", "/outside");
	expect_refused(l, ERR_DENIED, "content is elsewhere");
	assert_int_equal(unlinkat(l->fd, "d", AT_REMOVEDIR), 0);
	put(l, "m", "");
	set_mark(l, "m", "user.overlay.metacopy", "");
	expect_refused(l, ERR_DENIED, "content is elsewhere");
}

static void an_empty_file_can_be_a_whiteout(void **state)
{
	struct layer *l = *state;
	fx_host_write(l->f, "gone", "x");
	put(l, "gone", "");
	set_mark(l, "gone", "user.overlay.whiteout", "");
	expect(l, "deleted gone");
}

static void the_store_is_out_of_reach(void **state)
{
	struct layer *l = *state;
	dir(l, ".cloister", true);
	put(l, ".cloister/state", "hostile");
	expect(l, "");
}

static void what_others_changed_meanwhile_is_a_conflict(void **state)
{
	struct layer *l = *state;
	struct view *v = NULL;
	struct timespec start;
	fx_host_write(l->f, "before", "x");
	usleep(20000);
	clock_gettime(CLOCK_REALTIME, &start);
	usleep(20000);
	put(l, "before", "mine");
	FX_OK(take_since(l, &v, NULL, &start));
	view_free(v);
	fx_host_write(l->f, "before", "theirs");
	assert_int_equal(take_since(l, &v, NULL, &start), -ERR_CONFLICT);
	assert_non_null(strstr(fx_err.text, "/workspace/before"));
	assert_int_equal(unlinkat(l->fd, "before", 0), 0);
	white(l, "before");
	assert_int_equal(take_since(l, &v, NULL, &start), -ERR_CONFLICT);
	fx_expect_host(l->f, "before", "theirs");
}

static void a_lying_init_cannot_name_another_place(void **state)
{
	struct layer *l = *state;
	struct timespec now = {0};
	struct view *v = fx_view(l->f);
	struct effects *e = NULL;
	int fd = memfd_create("content", MFD_CLOEXEC);
	fx_host_mkdir(l->f, "real");
	fx_host_symlink(l->f, "real", "link");
	FX_OK(effects_new(v, &now, &e, &fx_err));
	const struct fence_entry through = {
		.kind = FENCE_FILE, .mode = 0644, .path = STR("link/x")};
	const struct fence_entry nowhere = {.kind = FENCE_FILE, .mode = 0644, .path = STR("no/x")};
	const struct fence_entry store = {
		.kind = FENCE_FILE, .mode = 0644, .path = STR(".cloister/x")};
	const struct fence_entry empty = {.kind = FENCE_FILE, .mode = 0644, .path = STR("x")};
	assert_int_equal(effects_take(e, &through, fd, &fx_err), -ERR_CORRUPT);
	assert_true(effects_take(e, &nowhere, fd, &fx_err) < 0);
	assert_true(effects_take(e, &store, fd, &fx_err) < 0);
	assert_int_equal(effects_take(e, &empty, -1, &fx_err), -ERR_CORRUPT);
	assert_int_equal(effects_take(e, &empty, l->fd, &fx_err), -ERR_CORRUPT);
	assert_int_equal(fx_finish_count(v), 0);
	effects_free(e);
	view_free(v);
	close(fd);
}

static void an_undo_takes_a_command_back(void **state)
{
	struct layer *l = *state;
	uint64_t seq;
	fx_host_write(l->f, "a", "old");
	fx_host_write(l->f, "b", "stays");
	put(l, "a", "new");
	white(l, "b");
	put(l, "c", "made");
	fx_commit_set(l->f, take(l));
	assert_false(fx_host_exists(l->f, "b"));
	struct view *v = fx_view(l->f);
	FX_OK(history_undo(l->f->ws, v, 0, &seq, &fx_err));
	fx_commit(l->f, v);
	view_free(v);
	fx_expect_host(l->f, "a", "old");
	fx_expect_host(l->f, "b", "stays");
	assert_false(fx_host_exists(l->f, "c"));
}

/* --- git --- */

static void paths_are_known_to_git(void **state)
{
	(void)state;
	static const struct {
		const char *path;
		enum git_part part;
	} paths[] = {{".git", GIT_DIR}, {"a/.GIT", GIT_DIR}, {".git/hooks", GIT_DIR},
		{".git/hooks/pre-commit", GIT_NEVER}, {".git/hooks/pre-commit.sample", GIT_NOTHING},
		{"a/b/c/d/e/f/.git/hooks/x", GIT_NEVER}, {".git/modules/m/hooks/x", GIT_NEVER},
		{".git/hooks/x.sample/y", GIT_NEVER}, {".git/config", GIT_CONFIG},
		{".Git/Config", GIT_CONFIG}, {".git/modules/a/b/config", GIT_CONFIG},
		{".git/config.worktree", GIT_CONFIG},
		{".git/worktrees/w/config.worktree", GIT_CONFIG},
		{".git/worktrees/w/gitdir", GIT_POINTER}, {".git/commondir", GIT_POINTER},
		{".git/info/attributes", GIT_NEVER}, {".git/objects/info/alternates", GIT_NEVER},
		{".git/index", GIT_NOTHING}, {".git/refs/heads/main", GIT_NOTHING},
		{".git/refs/heads/config", GIT_BARE_CONFIG}, {".gitignore", GIT_NOTHING},
		{"src/config", GIT_BARE_CONFIG}, {"x/hooks/post-checkout", GIT_BARE_HOOK},
		{"x/HEAD", GIT_BARE_MARK}, {"config.c", GIT_NOTHING},
		{"x.git/HEAD", GIT_BARE_MARK}};
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		size_t n;
		enum git_part got = git_part_of(str_of(paths[i].path), &n);
		if (got != paths[i].part)
			fail_msg("%s is %d, not %d", paths[i].path, got, paths[i].part);
	}
}

static void only_harmless_keys_pass(void **state)
{
	(void)state;
	static const char *const good[] = {"", "[core]\n\tbare = false\n\tfilemode = true\n",
		"[user]\n\tname = A B\n\temail = a@b\n",
		"[remote \"origin\"]\n\turl = /workspace/x\n\tfetch = +refs/*\n",
		"[branch \"m\"]\n\tmerge = refs/heads/m\n", "# [core]\n; fsmonitor = x\n",
		"[advice]\n\tanything = false\n"};
	static const char *const bad[] = {"[core]\n\tfsmonitor = x\n", "[CORE]\nFsMonitor=x\n",
		"[core]\n\tsshCommand = x\n", "[core]\n\thooksPath = x\n", "[core] fsmonitor = x\n",
		"[core]\n\tpager = x\n", "[alias]\n\tx = !y\n", "[include]\n\tpath = x\n",
		"[includeIf \"gitdir:/\"]\n\tpath = x\n", "[filter \"f\"]\n\tclean = x\n",
		"[diff \"d\"]\n\ttextconv = x\n", "[credential]\n\thelper = x\n",
		"[remote \"o\"]\n\turl = ext::sh -c x\n", "[remote \"o\"]\n\turl = \"ext::sh\"\n",
		"[remote \"o\"]\n\turl = -x\n", "[remote \"o\"]\n\tuploadpack = x\n",
		"[remote \"o\"]\n\tvcs = x\n", "[submodule \"s\"]\n\tupdate = !x\n",
		"[core]\n\tbare = false\\\n\tfsmonitor = x\n", "[core]\r\n\tbare = x\n",
		"[core.x]\n\ty = z\n", "fsmonitor = x\n", "[core]\n\tworktree = /\n",
		"[advice \"x\"]\n\ty = z\n", "[core\n", "\xef\xbb\xbf[core]\n\tfsmonitor = x\n",
		"[gpg]\n\tprogram = x\n", "[init]\n\ttemplatedir = x\n",
		"[core]\n\tattributesfile = x\n", "[merge \"m\"]\n\tdriver = x\n",
		"[protocol \"ext\"]\n\tallow = always\n", "[uploadpack]\n\tpackObjectsHook = x\n"};
	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		if (!git_config_harmless(STR(""), str_of(good[i])))
			fail_msg("refused: %s", good[i]);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		if (git_config_harmless(STR(""), str_of(bad[i])))
			fail_msg("passed: %s", bad[i]);
	}
	/* What was there may stay, with its value and nowhere else. */
	const struct str old = STR("[core]\n\tpager = less\n");
	assert_true(git_config_harmless(old, STR("[core]\n\tpager = less\n\tbare = true\n")));
	assert_false(git_config_harmless(old, STR("[core]\n\tpager = evil\n")));
	assert_false(git_config_harmless(old, STR("[core \"x\"]\n\tpager = less\n")));
	assert_false(git_config_harmless(STR(""), (struct str){"[core]\n\tbare = t\0rue\n", 21}));
}

static void pointers_stay_inside(void **state)
{
	(void)state;
	assert_true(
		git_pointer_inside(STR("w/.git"), STR("gitdir: /workspace/.git/worktrees/w\n")));
	assert_true(git_pointer_inside(STR("sub/.git"), STR("gitdir: ../.git/modules/sub\n")));
	assert_true(git_pointer_inside(STR(".git/worktrees/w/commondir"), STR("../..\n")));
	assert_false(git_pointer_inside(STR("w/.git"), STR("gitdir: /home/x/.git\n")));
	assert_false(git_pointer_inside(STR("w/.git"), STR("gitdir: ../../x\n")));
	assert_false(git_pointer_inside(STR("w/.git"), STR("gitdir: /workspace/../x\n")));
	assert_false(git_pointer_inside(STR("w/.git"), STR("gitdir: /workspace_evil/x\n")));
	assert_false(git_pointer_inside(STR("w/.git"), STR("a\n/x\n")));
	assert_false(git_pointer_inside(STR("w/.git"), STR("")));
}

/* Takes the layer and commits; how much was held back, or the refusal. */
static int take_git(struct layer *l)
{
	const char *first;
	struct effects *e = NULL;
	const struct timespec now = {.tv_sec = INT32_MAX};
	struct view *v = fx_view(l->f);
	FX_OK(effects_new(v, &now, &e, &fx_err));
	int r = upper_walk(l->fd, ".cloister", effects_take, e, &fx_err);
	if (r == 0)
		r = effects_finish(e, &fx_err);
	if (r == 0) {
		r = (int)effects_held_back(e, &first);
		fx_commit(l->f, v);
	}
	effects_free(e);
	view_free(v);
	return r;
}

static void what_git_would_execute_is_held_back(void **state)
{
	struct layer *l = *state;
	fx_host_mkdir(l->f, ".git");
	fx_host_write(l->f, ".git/config", "[core]\n\tbare = false\n");
	dir(l, ".git", false);
	dir(l, ".git/hooks", true);
	put(l, ".git/hooks/pre-commit", "evil");
	put(l, ".git/hooks/pre-commit.sample", "fine");
	put(l, ".git/config", "[core]\n\tbare = false\n\tfsmonitor = evil\n");
	put(l, ".git/index", "fine");
	dir(l, "deep", true);
	dir(l, "deep/.git", true);
	put(l, "deep/.git/config", "[core]\n\tbare = false\n");
	assert_int_equal(symlinkat("../../x", l->fd, "deep/.git/hooks"), 0);
	put(l, "ordinary", "fine");
	/* The link named hooks counts as well. */
	assert_int_equal(take_git(l), 3);
	assert_false(fx_host_exists(l->f, ".git/hooks/pre-commit"));
	assert_false(fx_host_exists(l->f, "deep/.git/hooks"));
	fx_expect_host(l->f, ".git/config", "[core]\n\tbare = false\n");
	fx_expect_host(l->f, ".git/hooks/pre-commit.sample", "fine");
	fx_expect_host(l->f, "deep/.git/config", "[core]\n\tbare = false\n");
	fx_expect_host(l->f, "ordinary", "fine");
}

static void make_bare(struct layer *l, const char *config, const char *hook)
{
	dir(l, "x", true);
	put(l, "x/HEAD", "ref: refs/heads/main\n");
	dir(l, "x/objects", true);
	dir(l, "x/refs", true);
	put(l, "x/config", config);
	if (hook) {
		dir(l, "x/hooks", true);
		put(l, hook, "x");
	}
}

static void a_repository_without_a_git_directory_is_judged_too(void **state)
{
	struct layer *l = *state;
	make_bare(l, "[core]\n\tbare = true\n\tfsmonitor = evil\n", NULL);
	assert_int_equal(take_git(l), -ERR_DENIED);
	assert_false(fx_host_exists(l->f, "x"));
	tree_clear(l->fd);
	make_bare(l, "[core]\n\tbare = true\n", "x/hooks/update");
	assert_int_equal(take_git(l), -ERR_DENIED);
	tree_clear(l->fd);
	make_bare(l, "[core]\n\tbare = true\n", "x/hooks/update.sample");
	assert_int_equal(take_git(l), 0);
	assert_true(fx_host_exists(l->f, "x/HEAD"));
}

static void a_repository_cannot_be_put_around_what_lies_there(void **state)
{
	struct layer *l = *state;
	dir(l, "x", true);
	put(l, "x/config", "[core]\n\tfsmonitor = evil\n");
	assert_int_equal(take_git(l), 0); /* an ordinary file so far */
	tree_clear(l->fd);
	dir(l, "x", false);
	put(l, "x/HEAD", "ref: refs/heads/main\n");
	dir(l, "x/objects", true);
	dir(l, "x/refs", true);
	assert_int_equal(take_git(l), -ERR_DENIED);
	assert_false(fx_host_exists(l->f, "x/HEAD"));
}

#define LAYER(f) cmocka_unit_test_setup_teardown(f, layer_setup, layer_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_gets_less_and_never_more),
		cmocka_unit_test(root_runs_each_command_as_another_user),
		cmocka_unit_test(a_request_survives_the_way),
		cmocka_unit_test(paths_of_entries_are_plain),
		cmocka_unit_test(output_keeps_head_and_tail),
		cmocka_unit_test(output_is_cut_at_characters),
		cmocka_unit_test(paths_are_known_to_git),
		cmocka_unit_test(only_harmless_keys_pass),
		cmocka_unit_test(pointers_stay_inside),
		LAYER(what_git_would_execute_is_held_back),
		LAYER(a_repository_without_a_git_directory_is_judged_too),
		LAYER(a_repository_cannot_be_put_around_what_lies_there),
		LAYER(new_files_are_created_with_their_mode_and_time),
		LAYER(what_is_the_same_is_no_change),
		LAYER(growth_is_an_append_and_a_mode_only_a_mode),
		LAYER(whiteouts_delete),
		LAYER(opaque_directories_hide_what_was_below),
		LAYER(merged_directories_keep_what_was_below),
		LAYER(kinds_change_into_each_other),
		LAYER(a_new_directory_stays_workable_for_its_owner),
		LAYER(an_old_directory_gets_any_mode_after_its_files),
		LAYER(links_lead_inside_or_to_the_system),
		LAYER(sockets_and_fifos_are_left_out),
		LAYER(bits_that_change_identity_are_refused),
		LAYER(devices_are_refused),
		LAYER(marks_of_other_places_are_refused),
		LAYER(an_empty_file_can_be_a_whiteout),
		LAYER(the_store_is_out_of_reach),
		LAYER(what_others_changed_meanwhile_is_a_conflict),
		LAYER(a_lying_init_cannot_name_another_place),
		LAYER(an_undo_takes_a_command_back),
	};
	return cmocka_run_group_tests_name("sandbox", tests, NULL, NULL);
}
