/*
 * Killed at every named point of a commit, in both durabilities: each promise is a case of its own.
 *
 * A child makes one change set with every kind of change and dies at the point. Points that an
 * undisturbed commit does not pass are reached by a second child that recovers (or takes back) what
 * the first has left. Then this process opens the workspace and looks.
 */
#include "../unit/workspace_fixture.h"

#include "workspace/crash.h"
#include "workspace/history_log.h"

#include <sys/wait.h>

static const char *const points[] = {
#define CRASH_POINT(name, what) #name,
#include "workspace/crash_points.def"
#undef CRASH_POINT
};

enum promise {
	ALL_OR_NOTHING,
	ACKNOWLEDGED,
	QUOTA_EXACT,
	HISTORY_WHOLE,
	STILL_WORKS,
	REACHED,
	N_PROMISES
};
static const char *const promise_names[] = {"all or nothing", "an acknowledged change is there",
	"usage is exact", "history is whole and nothing is left over", "the workspace still works",
	"the point is reached"};

struct run {
	const char *point;
	enum durability durability;
	enum promise promise;
	char name[128];
};

/* What a run has shown; made once for all promises of a point. */
static struct outcome {
	const struct run *of;
	bool reached, acked;
	bool before, after; /* the tree is exactly as before, as after */
	bool quota, history, works;
	char why[256];
} seen;

static const struct workspace_options base_opt = {.history_bytes = 11000, .lock_wait_ms = 5000};

static void set_up(struct fixture *f)
{
	struct view *v = fx_view(f);
	char big[4001];
	memset(big, 'o', 4000);
	big[4000] = '\0';
	fx_put(f, v, "replaced", big);
	fx_put(f, v, "appended", "one\n");
	fx_put(f, v, "deleted", "gone soon");
	fx_put_parents(f, v, "tree/a", "A");
	fx_put_parents(f, v, "tree/sub/b", "B");
	fx_put(f, v, "moved", "M");
	fx_put(f, v, "mode", "X");
	fx_put(f, v, "target", "T");
	fx_commit(f, v);
	fx_put(f, v, "replaced", "old"); /* the old content fills the history */
	fx_commit(f, v);
	view_free(v);
	fx_host_link(f, "target", "other-name");
}

static struct changeset *all_kinds(struct fixture *f)
{
	struct view *v = fx_view(f);
	struct node n;
	char big[3001];
	memset(big, 'n', 3000);
	big[3000] = '\0';
	fx_put(f, v, "created", "new file");
	fx_put_parents(f, v, "made/deep/file", big);
	fx_put(f, v, "replaced", "new content");
	fx_append(f, v, "appended", "two\n");
	fx_remove(v, "deleted", false);
	fx_remove(v, "tree", true);
	fx_rename(v, "moved", "made/moved", false);
	n = fx_node(v, "mode", 0);
	FX_OK(view_chmod(v, &n, 0700, &fx_err));
	node_done(&n);
	n = fx_node(v, "link", RESOLVE_NOFOLLOW);
	FX_OK(view_symlink(v, &n, "created", &fx_err));
	node_done(&n);
	fx_put(f, v, "target", "T2"); /* has another name: history keeps a copy */
	struct changeset *cs = fx_finish(v);
	view_free(v);
	return cs;
}

static const char *host_text(struct fixture *f, const char *path)
{
	int fd = openat(f->fd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return "";
	const char *text = fx_read(fd);
	close(fd);
	return text;
}

static bool host_is(struct fixture *f, const char *path, const char *text)
{
	bool is = fx_host_exists(f, path) && strcmp(host_text(f, path), text) == 0;
	if (!is)
		snprintf(seen.why + strlen(seen.why), sizeof(seen.why) - strlen(seen.why), " %s",
			path);
	return is;
}

static bool is_before(struct fixture *f)
{
	return !fx_host_exists(f, "created") && !fx_host_exists(f, "made") &&
	       host_is(f, "replaced", "old") && host_is(f, "appended", "one\n") &&
	       host_is(f, "deleted", "gone soon") && host_is(f, "tree/a", "A") &&
	       host_is(f, "tree/sub/b", "B") && host_is(f, "moved", "M") &&
	       (fx_host_mode(f, "mode") & 0100) == 0 && !fx_host_exists(f, "link") &&
	       host_is(f, "target", "T") && host_is(f, "other-name", "T");
}

static bool is_after(struct fixture *f)
{
	return host_is(f, "created", "new file") && host_is(f, "made/moved", "M") &&
	       strlen(host_text(f, "made/deep/file")) == 3000 &&
	       host_is(f, "replaced", "new content") && host_is(f, "appended", "one\ntwo\n") &&
	       !fx_host_exists(f, "deleted") && !fx_host_exists(f, "tree") &&
	       !fx_host_exists(f, "moved") && fx_host_mode(f, "mode") == 0700 &&
	       fx_host_exists(f, "link") && host_is(f, "target", "T2") &&
	       host_is(f, "other-name", "T");
}

/* Every record reads, they are as many as there were commits, each saved name is there and no
 * other. */
static bool history_is_whole(struct fixture *f)
{
	const struct store *s = f->ws->stores[0];
	struct history_place p;
	struct record_reader rr;
	struct record_change c;
	uint64_t last = 0;
	int64_t cost = 0;
	unsigned kept = 0;
	int r;
	history_at_start(&p, s);
	while ((r = history_forth(&p, &rr, &fx_err)) > 0) {
		if (last && rr.head.seq != last + 1)
			return false;
		last = rr.head.seq;
		cost += history_cost(rr, p.frame.len);
		while ((r = record_next(&rr, &c, &fx_err)) > 0) {
			struct stat st;
			kept += *c.saved != '\0';
			if (*c.saved && fs_lstat(f->ws->mounts[0].saved_fd, c.saved, &st) < 0)
				return false;
		}
		if (r < 0)
			return false;
	}
	history_place_done(&p);
	if (cost != atomic_load(&s->st->history_bytes)) {
		snprintf(seen.why, sizeof(seen.why), "history counts %lld, not %lld",
			(long long)atomic_load(&s->st->history_bytes), (long long)cost);
		return false;
	}
	int saved = openat(f->fd, ".cloister/saved", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fdopendir(saved);
	unsigned names = 0;
	for (const struct dirent *e; (e = readdir(d));)
		names += e->d_name[0] != '.';
	closedir(d);
	if (names != kept)
		snprintf(seen.why, sizeof(seen.why), "%u names for %u saved", names, kept);
	return r == 0 && last == workspace_seq(f->ws) && names == kept;
}

static bool usage_is_exact(struct fixture *f)
{
	struct workspace_usage u;
	struct tree_sum sum;
	FX_OK(workspace_usage(f->ws, &u, &fx_err));
	assert_int_equal(tree_count(f->fd, ".cloister", &sum), 0);
	struct workspace_recovery rec;
	workspace_recovered(f->ws, &rec);
	/* +1: "other-name" was linked behind the engine's back. */
	return !rec.recounted && u.bytes + 1 == sum.bytes && u.entries + 1 == sum.entries;
}

static void open_again(struct fixture *f, enum durability d)
{
	struct workspace_options opt = base_opt;
	opt.durability = d;
	fx_reopen(f, &opt);
}

/* A child that opens the workspace, makes the change (or only a view) and dies at `point`. */
static bool die_at(struct fixture *f, enum durability d, const char *point, bool change)
{
	int pipe_fds[2], status;
	char byte;
	assert_int_equal(pipe(pipe_fds), 0);
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		f->ws = NULL;
		struct workspace_options opt = base_opt;
		opt.durability = d;
		setenv("CLOISTER_CRASH_AT", point, 1);
		fx_reopen(f, &opt);
		if (change) {
			fx_commit_set(f, all_kinds(f));
			if (write(pipe_fds[1], "y", 1) != 1)
				_exit(9);
		} else {
			view_free(fx_view(f));
		}
		workspace_free(f->ws);
		_exit(0);
	}
	close(pipe_fds[1]);
	seen.acked |= read(pipe_fds[0], &byte, 1) == 1;
	close(pipe_fds[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

static void crash(struct fixture *f, const struct run *run)
{
	seen = (struct outcome){.of = run};
	open_again(f, run->durability);
	set_up(f);
	workspace_free(f->ws);
	f->ws = NULL;
	bool recovery = strncmp(run->point, "recover", 7) == 0;
	bool back = strncmp(run->point, "back", 4) == 0;
	if (!recovery && !back)
		seen.reached = die_at(f, run->durability, run->point, true);
	else
		/* Step 1 creates a file without a name in DURABLE_PROCESS: killed before it, the
		 * content is lost and the rest is taken back; killed late, it can be finished. */
		seen.reached =
			die_at(f, run->durability, back ? "intent_set" : "step_counted:9", true) &&
			die_at(f, run->durability, run->point, false);
}

static void look(struct fixture *f, const struct run *run)
{
	open_again(f, run->durability);
	view_free(fx_view(f));
	seen.before = is_before(f);
	seen.after = is_after(f);
	seen.quota = usage_is_exact(f);
	seen.history = history_is_whole(f);
	struct view *v = fx_view(f);
	fx_put(f, v, "afterwards", "works");
	fx_put(f, v, "replaced", "again");
	fx_commit(f, v);
	view_free(v);
	seen.works = host_is(f, "afterwards", "works") && host_is(f, "replaced", "again") &&
		     usage_is_exact(f) && history_is_whole(f);
}

static void check(void **state)
{
	const struct run *run = *state;
	if (run->promise == 0) {
		void *fx;
		fx_setup(&fx);
		crash(fx, run);
		look(fx, run);
		fx_teardown(&fx);
	}
	bool ok[N_PROMISES] = {
		[ALL_OR_NOTHING] = seen.before != seen.after,
		[ACKNOWLEDGED] = !seen.acked || seen.after,
		[QUOTA_EXACT] = seen.quota,
		[HISTORY_WHOLE] = seen.history,
		[STILL_WORKS] = seen.works,
		[REACHED] = seen.reached,
	};
	if (!ok[run->promise])
		fail_msg("%s is broken (%s)", run->name, seen.why);
}

int main(void)
{
	enum { MAX = ARRAY_LEN(points) * 2 * N_PROMISES };
	static struct run runs[MAX];
	static struct CMUnitTest tests[MAX];
	size_t n = 0;
	for (size_t d = 0; d < 2; d++)
		for (size_t p = 0; p < ARRAY_LEN(points); p++) {
			bool power_only = strncmp(points[p], "checkpoint", 10) == 0;
			bool process_only = strncmp(points[p], "back", 4) == 0;
			if ((d == 0 && power_only) || (d == 1 && process_only))
				continue;
			for (size_t k = 0; k < N_PROMISES; k++) {
				struct run *r = &runs[n];
				*r = (struct run){.point = points[p],
					.durability = (enum durability)d,
					.promise = (enum promise)k};
				snprintf(r->name, sizeof(r->name), "%s, %s: %s", points[p],
					d ? "power" : "process", promise_names[k]);
				tests[n++] = (struct CMUnitTest){
					.name = r->name, .test_func = check, .initial_state = r};
			}
		}
	return _cmocka_run_group_tests("killed at every point", tests, n, NULL, NULL);
}
