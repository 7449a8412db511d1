/*
 * Listing and checkpoints.
 *
 *   50 entries with sizes     against a plain loop of getdents and statx over the same directory
 *   a glob over 5,000 files   in milliseconds
 *   checkpoint of 10,000 files with 10 changes since the last, in milliseconds
 *
 * CLOISTER_BENCH_DIR names the directory to work in (default /var/tmp).
 */
#include "harness.h"

#include "sys/fs.h"
#include "sys/tree.h"
#include "workspace/history.h"
#include "workspace/list.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>

struct place {
	int dir;
	struct workspace *ws;
	const char *path;
	struct glob *pattern;
	bool details;
	uint64_t seen;
};

static struct err err;

static int by_hand(void *ctx)
{
	struct place *p = ctx;
	struct statx sx;
	int fd = openat(p->dir, p->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	if (!d)
		return -1;
	p->seen = 0;
	for (const struct dirent *e; (e = readdir(d));)
		if (e->d_name[0] != '.' &&
			statx(fd, e->d_name, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, &sx) == 0)
			p->seen++;
	return closedir(d);
}

static int count_entry(void *ctx, const struct list_entry *e, struct err *error)
{
	(void)e, (void)error;
	++((struct place *)ctx)->seen;
	return 0;
}

static int by_list(void *ctx)
{
	struct place *p = ctx;
	struct view *v = NULL;
	struct node n;
	struct list_result res;
	struct list_query q = {.pattern = p->pattern,
		.recursive = p->pattern != NULL,
		.details = p->details,
		.max = LIMIT_LIST_PAGE};
	p->seen = 0;
	int r = view_new(p->ws, &v, &err);
	if (r == 0 && (r = view_resolve(v, str_of(p->path), 0, &n, &err)) == 0) {
		r = list_directory(v, &n, &q, count_entry, p, &res, &err);
		node_done(&n);
	}
	view_free(v);
	return r < 0 ? -1 : 0;
}

static int by_checkpoint(void *ctx)
{
	static unsigned long serial;
	struct place *p = ctx;
	char label[32];
	uint64_t seq;
	(void)snprintf(label, sizeof(label), "c%lu", serial++);
	return checkpoint_create(p->ws, label, &seq, &err) < 0 ? -1 : 0;
}

static int make_files(int dir, const char *prefix, unsigned per_dir, unsigned dirs)
{
	char path[64];
	for (unsigned i = 0; i < dirs; i++) {
		(void)snprintf(path, sizeof(path), "%s%u", prefix, i);
		if (mkdirat(dir, path, 0755) < 0)
			return -1;
		for (unsigned k = 0; k < per_dir; k++) {
			(void)snprintf(path, sizeof(path), "%s%u/f%u.%s", prefix, i, k,
				k % 10 ? "txt" : "c");
			int fd = openat(dir, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
			if (fd < 0 || close(fd) < 0)
				return -1;
		}
	}
	return 0;
}

static int change(struct workspace *ws, unsigned i)
{
	char path[64];
	struct view *v = NULL;
	struct changeset *cs = NULL;
	struct staged *s = NULL;
	struct node n = {.fd = -1};
	struct commit_result res;
	struct commit_info info = {"call", "bench", NULL};
	(void)snprintf(path, sizeof(path), "many0/f%u.txt", i * 10 + 1);
	int r = view_new(ws, &v, &err);
	if (r == 0 && (r = view_resolve(v, str_of(path), 0, &n, &err)) == 0 &&
		(r = staged_new(v, 0, &s, &err)) == 0 && (r = staged_write(s, path, 10, &err)) == 0)
		r = view_put(v, &n, s, PUT_EITHER, 0644, NULL, &err);
	node_done(&n);
	if (r == 0)
		r = view_finish(v, &cs, &err);
	view_free(v);
	return r < 0 ? r : changeset_commit(ws, cs, &info, &res, &err);
}

static int run(int dir, struct workspace *ws)
{
	struct place few = {.dir = dir, .ws = ws, .path = "few0", .details = true};
	struct place glob = {.dir = dir, .ws = ws, .path = "."};
	struct place names = {.dir = dir, .ws = ws, .path = "few0"};
	if (glob_compile(STR("tree*/*.c"), 0, &glob.pattern, &err) < 0)
		return -1;
	struct bench b = bench_begin("workspace_list");
	unsigned floor = bench_add(&b, "50 entries: getdents+statx", by_hand, &few);
	unsigned ours = bench_add(&b, "50 entries: list with sizes", by_list, &few);
	unsigned bare = bench_add(&b, "50 entries: list of names", by_list, &names);
	(void)bench_add(&b, "glob over 5,000 files", by_list, &glob);
	(void)bench_add(&b, "checkpoint of 10,000 files", by_checkpoint, &few);
	for (unsigned i = 0; i < 10; i++)
		if (change(ws, i) < 0)
			return -1;
	bench_run(&b, 200, 1);
	bench_ratio(&b, ours, floor, 2.0);
	bench_ratio(&b, bare, floor, 2.0);
	printf("matched by the glob: %llu\n", (unsigned long long)glob.seen);
	glob_free(glob.pattern);
	return bench_end(&b);
}

int main(void)
{
	const char *base = getenv("CLOISTER_BENCH_DIR");
	char path[256];
	struct workspace *ws = NULL;
	struct workspace_options opt = {.history_bytes = 100 << 20, .lock_wait_ms = 1000};
	(void)snprintf(path, sizeof(path), "%s/cloister-bench-XXXXXX", base ? base : "/var/tmp");
	if (!mkdtemp(path))
		return 1;
	int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = -1;
	struct mount_spec m = {.agent_path = "/workspace", .dir_fd = dir, .store_fd = -1};
	if (make_files(dir, "few", 50, 1) == 0 && make_files(dir, "tree", 50, 100) == 0 &&
		make_files(dir, "many", 5000, 1) == 0 &&
		workspace_open(&m, 1, &opt, &ws, &err) == 0)
		r = run(dir, ws);
	workspace_free(ws);
	char *slash = strrchr(path, '/');
	*slash = '\0';
	int above = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	(void)tree_remove(above, slash + 1);
	if (r < 0)
		fprintf(stderr, "%s\n", err.text);
	return r < 0 ? 1 : r;
}
