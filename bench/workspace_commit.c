/*
 * What a commit costs beside what anybody would do by hand.
 *
 *   synced atomic write    against a temporary file + fdatasync + rename
 *   synced 1 MiB overwrite with history, against the same by hand
 *   unsynced write         against a temporary file + rename
 *   22 bytes with 50,000 files in the workspace against 10
 *   reading 1 KiB          against openat + read + close
 *
 * CLOISTER_BENCH_DIR names the directory to work in (default /var/tmp); it must be on the file
 * system that is to be measured.
 */
#include "harness.h"

#include "sys/fs.h"
#include "sys/tree.h"
#include "workspace/commit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

struct place {
	int dir;
	struct workspace *ws;
	const char *path;
	const char *data;
	size_t n;
	bool sync;
};

static char big[1024 * 1024], small[4096];
static struct err err;

static int by_hand(void *ctx)
{
	const struct place *p = ctx;
	int fd = openat(p->dir, "tmp-file", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	int r = fd < 0 || fs_write(fd, p->data, p->n, 0) < 0 || (p->sync && fdatasync(fd) < 0) ||
				close(fd) < 0 || renameat(p->dir, "tmp-file", p->dir, p->path) < 0
			? -1
			: 0;
	return r;
}

static int put(struct view *v, const struct place *p)
{
	struct node n;
	struct staged *s = NULL;
	int r = view_resolve(v, str_of(p->path), 0, &n, &err);
	if (r < 0)
		return r;
	if ((r = staged_new(v, 0, &s, &err)) == 0) {
		if ((r = staged_write(s, p->data, p->n, &err)) == 0)
			r = view_put(v, &n, s, PUT_EITHER, 0644, NULL, &err);
		else
			staged_free(s);
	}
	node_done(&n);
	return r;
}

static int by_commit(void *ctx)
{
	const struct place *p = ctx;
	struct view *v = NULL;
	struct changeset *cs = NULL;
	struct commit_result res;
	struct commit_info info = {"call", "bench", NULL};
	int r = view_new(p->ws, &v, &err);
	if (r == 0)
		r = put(v, p);
	if (r == 0)
		r = view_finish(v, &cs, &err);
	view_free(v);
	if (r == 0)
		r = changeset_commit(p->ws, cs, &info, &res, &err);
	if (r < 0)
		fprintf(stderr, "commit: %s\n", err.text);
	return r < 0 ? -1 : 0;
}

static int read_by_hand(void *ctx)
{
	const struct place *p = ctx;
	char text[4096];
	int fd = openat(p->dir, p->path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));
	if (fd >= 0)
		close(fd);
	return n == 1024 ? 0 : -1;
}

static int read_by_view(void *ctx)
{
	const struct place *p = ctx;
	char text[4096];
	struct view *v = NULL;
	struct node n = {.fd = -1};
	int fd = -1;
	int r = view_new(p->ws, &v, &err);
	if (r == 0 && (r = view_resolve(v, str_of(p->path), 0, &n, &err)) == 0)
		r = view_open(v, &n, &fd, &err);
	if (r == 0)
		r = read(fd, text, sizeof(text)) == 1024 ? 0 : -1;
	cleanup_close(&fd);
	node_done(&n);
	view_free(v);
	return r < 0 ? -1 : 0;
}

static int make_dir(int base, const char *name)
{
	(void)tree_remove(base, name);
	if (mkdirat(base, name, 0755) < 0)
		return -1;
	return openat(base, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static struct workspace *open_ws(int dir, enum durability d)
{
	struct mount_spec m = {.agent_path = "/workspace", .dir_fd = dir, .store_fd = -1};
	struct workspace_options opt = {.quota_bytes = 4LL << 30,
		.quota_entries = 1000000,
		.history_bytes = 1LL << 30,
		.durability = d,
		.lock_wait_ms = 1000};
	struct workspace *ws = NULL;
	if (workspace_open(&m, 1, &opt, &ws, &err) < 0)
		fprintf(stderr, "open: %s\n", err.text);
	return ws;
}

static int fill(int dir, int files)
{
	char name[32];
	for (int i = 0; i < files; i++) {
		snprintf(name, sizeof(name), "f%06d", i);
		int fd = openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
		if (fd < 0)
			return -1;
		close(fd);
	}
	return 0;
}

static void synced(int hand, int ours)
{
	struct workspace *ws = open_ws(ours, DURABLE_POWER);
	struct place a = {hand, NULL, "small", small, 1024, true};
	struct place b = {ours, ws, "small", small, 1024, true};
	struct place c = {hand, NULL, "big", big, sizeof(big), true};
	struct place d = {ours, ws, "big", big, sizeof(big), true};
	struct bench x = bench_begin("synced writes");
	unsigned i = bench_add(&x, "1 KiB, by hand", by_hand, &a);
	unsigned j = bench_add(&x, "1 KiB, commit", by_commit, &b);
	bench_run(&x, 150, 1);
	bench_ratio(&x, j, i, 1.3);
	(void)bench_end(&x);
	x = bench_begin("synced overwrites of 1 MiB");
	i = bench_add(&x, "by hand", by_hand, &c);
	j = bench_add(&x, "commit with history", by_commit, &d);
	bench_run(&x, 60, 1);
	bench_ratio(&x, j, i, 1.3);
	(void)bench_end(&x);
	workspace_free(ws);
}

static void unsynced(int hand, int ours)
{
	struct workspace *ws = open_ws(ours, DURABLE_PROCESS);
	struct place a = {hand, NULL, "small", small, 1024, false};
	struct place b = {ours, ws, "small", small, 1024, false};
	struct bench x = bench_begin("writes that survive kill -9");
	unsigned i = bench_add(&x, "1 KiB, by hand", by_hand, &a);
	unsigned j = bench_add(&x, "1 KiB, commit with history", by_commit, &b);
	bench_run(&x, 300, 10);
	bench_ratio(&x, j, i, 4);
	(void)bench_end(&x);
	x = bench_begin("reads");
	i = bench_add(&x, "1 KiB, openat+read+close", read_by_hand, &a);
	j = bench_add(&x, "1 KiB, view", read_by_view, &b);
	bench_run(&x, 1000, 100);
	bench_ratio(&x, j, i, 4);
	(void)bench_end(&x);
	workspace_free(ws);
}

static void many_files(int few, int many)
{
	struct workspace *a = open_ws(few, DURABLE_PROCESS), *b = open_ws(many, DURABLE_PROCESS);
	struct place pa = {few, a, "note", small, 22, false};
	struct place pb = {many, b, "note", small, 22, false};
	struct bench x = bench_begin("22 bytes among many files");
	unsigned i = bench_add(&x, "among 10 files", by_commit, &pa);
	unsigned j = bench_add(&x, "among 50,000 files", by_commit, &pb);
	bench_run(&x, 300, 10);
	bench_ratio(&x, j, i, 1.2);
	(void)bench_end(&x);
	workspace_free(a);
	workspace_free(b);
}

int main(void)
{
	const char *base_path = getenv("CLOISTER_BENCH_DIR");
	int base = open(base_path ? base_path : "/var/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int hand = make_dir(base, "cloister-bench-hand"), ours = make_dir(base, "cloister-bench");
	if (hand < 0 || ours < 0 || fill(hand, 10) < 0 || fill(ours, 10) < 0) {
		perror("bench directory");
		return 1;
	}
	memset(big, 'b', sizeof(big));
	memset(small, 's', sizeof(small));
	bench_pin();
	synced(hand, ours);
	unsynced(hand, ours);
	int many = make_dir(base, "cloister-bench-many");
	int few = make_dir(base, "cloister-bench-few");
	if (many < 0 || few < 0 || fill(many, 50000) < 0 || fill(few, 10) < 0)
		return 1;
	many_files(few, many);
	(void)tree_remove(base, "cloister-bench-many");
	(void)tree_remove(base, "cloister-bench-few");
	(void)tree_remove(base, "cloister-bench-hand");
	(void)tree_remove(base, "cloister-bench");
	return 0;
}
