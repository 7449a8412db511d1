/*
 * Property of the history: whatever a series of change sets does, restoring a checkpoint gives the
 * very tree that was there, undoing step by step gives each tree in turn, and the export's last
 * state is the present one. Trees are compared by everything in them: names, types, permissions,
 * content, targets.
 */
#include "testing.h"

#include "history_fixture.h"

static uint32_t seed, round_seed;

/* More in the long suites, and on request. */
static uint32_t rounds(uint32_t ordinary)
{
	if (getenv("CLOISTER_TEST_FULL"))
		ordinary *= 10;
	const char *more = getenv("CLOISTER_TEST_ROUNDS");
	return more ? (uint32_t)strtoul(more, NULL, 10) : ordinary;
}

static uint32_t rnd(uint32_t n)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % n;
}

/* A short path out of few names, so that operations meet each other. */
static const char *some_path(void)
{
	static char path[4][32];
	static unsigned turn;
	char *p = path[turn++ % 4];
	size_t n = 0;
	for (uint32_t depth = 1 + rnd(3); depth > 0; depth--)
		n += (size_t)snprintf(p + n, 32 - n, "%s%c", n ? "/" : "", 'a' + (int)rnd(4));
	return p;
}

static void try_put(struct view *v)
{
	char text[64];
	struct node n = {.fd = -1};
	if (view_resolve(v, str_of(some_path()), RESOLVE_PARENTS_MAY_LACK, &n, &fx_err) < 0)
		return;
	snprintf(text, sizeof(text), "%u %u %u\n", rnd(1000), rnd(1000), rnd(1000));
	struct staged *s = fx_staged(v, text);
	if (n.kind == NODE_FILE && rnd(3) == 0)
		(void)(view_append(v, &n, s, NULL, &fx_err) < 0);
	else
		(void)(view_put(v, &n, s, PUT_EITHER | PUT_PARENTS, rnd(2) ? 0644 : 0755, NULL,
			       &fx_err) < 0);
	node_done(&n);
}

static void try_rename(struct view *v)
{
	struct node a = {.fd = -1}, b = {.fd = -1};
	if (view_resolve(v, str_of(some_path()), RESOLVE_NOFOLLOW, &a, &fx_err) == 0 &&
		view_resolve(v, str_of(some_path()), RESOLVE_NOFOLLOW, &b, &fx_err) == 0)
		(void)(view_rename(v, &a, &b, true, &fx_err) < 0);
	node_done(&a);
	node_done(&b);
}

static void try_other(struct view *v, uint32_t what)
{
	struct node n = {.fd = -1};
	if (view_resolve(v, str_of(some_path()), RESOLVE_NOFOLLOW, &n, &fx_err) < 0)
		return;
	switch (what) {
	case 0: (void)(view_remove(v, &n, rnd(2), NULL, &fx_err) < 0); break;
	case 1: (void)(view_mkdir(v, &n, 0750, false, &fx_err) < 0); break;
	case 2: (void)(view_symlink(v, &n, "x", &fx_err) < 0); break;
	default: (void)(view_chmod(v, &n, rnd(2) ? 0700 : 0755, &fx_err) < 0); break;
	}
	node_done(&n);
}

static bool show_change(void *ctx, const struct change *c)
{
	print_error("  %llu %s %s%s%s\n", *(const unsigned long long *)ctx,
		change_kind_word(c->kind), c->from_path ? c->from_path : "",
		c->from_path ? " -> " : "", c->agent_path);
	return true;
}

static bool show_entry(void *ctx, const struct history_entry *e)
{
	struct err err;
	unsigned long long seq = e->seq;
	return history_changes(ctx, e->seq, show_change, &seq, &err) == 0;
}

/* What led here, for whoever reads the failure. */
static void show_history(struct fixture *f)
{
	struct err err;
	(void)(history_list(f->ws, 0, 30, show_entry, f->ws, &err) < 0);
}

static void commit_view(struct fixture *f, struct view *v)
{
	struct commit_result res;
	struct changeset *cs = fx_finish(v);
	struct buf ops = buf_init(1 << 20);
	for (unsigned i = 0; i < changeset_count(cs); i++) {
		const struct change *c = changeset_get(cs, i);
		buf_printf(&ops, "  %s %s%s%s\n", change_kind_word(c->kind),
			c->from_path ? c->from_path : "", c->from_path ? " -> " : "", c->path);
	}
	if (changeset_commit(f->ws, cs, &fx_info, &res, &fx_err) < 0) {
		show_history(f);
		fail_msg("seed %u: %s in\n%s", round_seed, fx_err.text, buf_str(&ops));
	}
	buf_done(&ops);
}

/* One change set of a few operations; whether it has changed anything. */
static bool some_change(struct fixture *f)
{
	uint64_t before = workspace_seq(f->ws);
	struct view *v = fx_view(f);
	for (uint32_t ops = 1 + rnd(5); ops > 0; ops--) {
		uint32_t what = rnd(10);
		if (what < 4)
			try_put(v);
		else if (what < 6)
			try_rename(v);
		else
			try_other(v, what - 6);
	}
	commit_view(f, v);
	view_free(v);
	return workspace_seq(f->ws) > before;
}

/* --- the tree as text --- */

struct lines {
	struct buf b;
	size_t skip; /* bytes of the root's own path */
};

static int describe(void *ctx, int dir, const char *name, const struct stat *st)
{
	struct lines *l = ctx;
	char text[4096] = "", path[64], full[4096] = "";
	snprintf(path, sizeof(path), "/proc/self/fd/%d", dir);
	ssize_t n = readlink(path, full, sizeof(full) - 1);
	full[n > 0 ? n : 0] = '\0';
	const char *below = full + MIN(l->skip, strlen(full));
	if (S_ISLNK(st->st_mode))
		text[readlinkat(dir, name, text, sizeof(text) - 1)] = '\0';
	if (S_ISREG(st->st_mode)) {
		int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
		assert_true(fd >= 0);
		ssize_t got = read(fd, text, sizeof(text) - 1);
		assert_true(got >= 0);
		text[got] = '\0';
		close(fd);
	}
	buf_printf(&l->b, "%s/%s %o %s%c", below, name, (unsigned)st->st_mode, text, '\0');
	return 0;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static char *tree_text(struct fixture *f)
{
	struct lines l = {.b = buf_init(16 << 20), .skip = strlen(f->dir)};
	const char *all[4096];
	size_t n = 0;
	assert_int_equal(tree_walk(f->fd, ".cloister", describe, &l), 0);
	for (size_t i = 0; i < l.b.len; i += strlen(l.b.data + i) + 1)
		all[n++] = l.b.data + i;
	qsort(all, n, sizeof(all[0]), by_text);
	struct buf out = buf_init(16 << 20);
	for (size_t i = 0; i < n; i++)
		buf_printf(&out, "%s\n", all[i]);
	buf_done(&l.b);
	char *text = strdup(buf_str(&out));
	buf_done(&out);
	return text;
}

static void expect_tree(struct fixture *f, const char *text, const char *what)
{
	char *now = tree_text(f);
	if (strcmp(now, text) != 0)
		show_history(f);
	if (strcmp(now, text) != 0)
		fail_msg("%s: the tree is\n%s\nand not\n%s", what, now, text);
	free(now);
}

static void start_tree(struct fixture *f, uint32_t with)
{
	seed = round_seed = with;
	fx_host_mkdir(f, "a");
	fx_host_mkdir(f, "a/b");
	fx_host_write(f, "a/b/c", "there\n");
	fx_host_write(f, "b", "before\n");
	fx_host_symlink(f, "/absolute", "a/d");
	fx_host_chmod(f, "a/b/c", 0640);
	for (int i = 0; i < 3; i++)
		some_change(f);
}

static void clear_tree(struct fixture *f)
{
	static const char *const names[] = {"a", "b", "c", "d", "x", ".cloister"};
	workspace_free(f->ws);
	f->ws = NULL;
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		assert_int_equal(tree_remove(f->fd, names[i]), 0);
	fx_reopen(f, &f->opt);
}

static void restoring_gives_the_very_tree(void **state)
{
	struct fixture *f = *state;
	for (uint32_t round = 1; round <= rounds(120); round++) {
		char what[32];
		uint64_t seq;
		start_tree(f, round);
		char *then = tree_text(f);
		FX_OK(checkpoint_create(f->ws, "x", &seq, &fx_err));
		for (uint32_t n = 1 + rnd(12); n > 0; n--)
			some_change(f);
		char *later = tree_text(f);
		snprintf(what, sizeof(what), "restoring, seed %u", round);
		struct view *v = fx_view(f);
		FX_OK(checkpoint_restore(f->ws, v, "x", &seq, &fx_err));
		commit_view(f, v);
		view_free(v);
		expect_tree(f, then, what);
		if (workspace_seq(f->ws) > seq && strcmp(then, later) != 0) {
			uint64_t taken;
			v = fx_view(f);
			FX_OK(history_undo(f->ws, v, 0, &taken, &fx_err));
			commit_view(f, v);
			view_free(v);
			expect_tree(f, later, what);
		}
		free(then);
		free(later);
		clear_tree(f);
	}
}

static void undoing_gives_each_tree_in_turn(void **state)
{
	struct fixture *f = *state;
	enum { STEPS = 8 };
	for (uint32_t round = 1; round <= rounds(120); round++) {
		char what[48];
		char *trees[STEPS + 1];
		unsigned n = 0;
		start_tree(f, round + 1000000);
		trees[n++] = tree_text(f);
		while (n <= STEPS)
			if (some_change(f))
				trees[n++] = tree_text(f);
		for (unsigned i = n - 1; i-- > 0;) {
			snprintf(what, sizeof(what), "undoing to %u, seed %u", i, round + 1000000);
			struct view *v = fx_view(f);
			uint64_t seq;
			if (history_undo(f->ws, v, 0, &seq, &fx_err) < 0) {
				show_history(f);
				fail_msg("%s: %s", what, fx_err.text);
			}
			commit_view(f, v);
			view_free(v);
			expect_tree(f, trees[i], what);
		}
		for (unsigned i = 0; i < n; i++)
			free(trees[i]);
		clear_tree(f);
	}
}

/* Nothing of comparing reaches the tree, and it never fails. */
static void comparing_never_fails_and_changes_nothing(void **state)
{
	struct fixture *f = *state;
	for (uint32_t round = 1; round <= rounds(40); round++) {
		bool cut;
		start_tree(f, round + 2000000);
		for (uint32_t n = rnd(10); n > 0; n--)
			some_change(f);
		if (rnd(2))
			fx_host_write(f, "zz", "outside");
		char *now = tree_text(f);
		for (uint64_t since = 0; since <= workspace_seq(f->ws); since++) {
			struct buf out = buf_init(1 << 20);
			struct diff_options opt = {.since_seq = since, .max_bytes = 1 << 19};
			FX_OK(workspace_diff(f->ws, &opt, &out, &cut, NULL, NULL, &fx_err));
			buf_done(&out);
		}
		expect_tree(f, now, "comparing");
		free(now);
		(void)unlinkat(f->fd, "zz", 0);
		clear_tree(f);
	}
}

#define T(name) cmocka_unit_test_setup_teardown(name, fx_setup, fx_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(restoring_gives_the_very_tree),
		T(undoing_gives_each_tree_in_turn),
		T(comparing_never_fails_and_changes_nothing),
	};
	return cmocka_run_group_tests_name("history_random", tests, NULL, NULL);
}
