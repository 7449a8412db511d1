/*
 * Searching 5,000 files of 7 MB: the worker against `grep -r`, in turn, and against the bare system
 * calls of reading them.
 *
 *   bench_search [ROUNDS]       CLOISTER_LIBEXECDIR names the folder of the programs
 *
 * The peer's figure (npm @modelcontextprotocol/server-filesystem, search_files over the same tree)
 * was 369 ms on the reference machine, so the bar there is 18.5 ms.
 */
#include "harness.h"

#include "daemon/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DIRS = 100, FILES = 50, HITS_EVERY = 61, PEER_US = 369000 };

static char root[64];
static struct err err;

static uint64_t seed = 1;
static unsigned rnd(unsigned below)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(seed >> 33) % below;
}

/* --- the tree --- */

static void write_file(const char *path, bool hit)
{
	static const char letters[] = "etaoinshrdlucmfwypvbgkjqxz";
	char text[4096];
	size_t n = 0, size = 400 + rnd(2100);
	while (n < size) {
		unsigned words = 3 + rnd(10);
		while (words--) {
			for (unsigned l = 2 + rnd(8); l; l--)
				text[n++] = letters[rnd(rnd(26) + 1)];
			text[n++] = words ? ' ' : '\n';
		}
		if (hit && n > size / 2) {
			n += (size_t)sprintf(text + n, "here is a NEEDLE_word in text\n");
			hit = false;
		}
	}
	FILE *f = fopen(path, "we");
	if (!f || fwrite(text, 1, n, f) != n || fclose(f) != 0)
		abort();
}

static void make_tree(void)
{
	char path[128];
	strcpy(root, "/tmp/cloister-bench-XXXXXX");
	if (!mkdtemp(root))
		abort();
	for (unsigned d = 0; d < DIRS; d++) {
		(void)snprintf(path, sizeof(path), "%s/d%u", root, d / 10);
		(void)mkdir(path, 0755);
		(void)snprintf(path, sizeof(path), "%s/d%u/s%u", root, d / 10, d % 10);
		if (mkdir(path, 0755) < 0)
			abort();
		for (unsigned f = 0; f < FILES; f++) {
			(void)snprintf(path, sizeof(path), "%s/d%u/s%u/f%u.%s", root, d / 10,
				d % 10, f, f % 4 ? "c" : "md");
			write_file(path, (d * FILES + f) % HITS_EVERY == 0);
		}
	}
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

/* --- the cases --- */

static int run_grep(void *ctx)
{
	int status;
	pid_t pid = vfork();
	if (pid == 0) {
		int null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
		(void)dup2(null_fd, 1);
		(void)execlp("grep", "grep", "-rnF", ctx, root, NULL);
		_exit(127);
	}
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0
		       ? 0
		       : -1;
}

static long read_all(int dir)
{
	static char buffer[65536];
	char entries[32768];
	long n, files = 0;
	while ((n = syscall(SYS_getdents64, dir, entries, sizeof(entries))) > 0)
		for (long at = 0; at < n;) {
			const char *e = entries + at;
			unsigned short len;
			memcpy(&len, e + 16, sizeof(len));
			unsigned char type = (unsigned char)e[18];
			at += len;
			if (e[19] == '.')
				continue;
			int fd = openat(dir, e + 19, O_RDONLY | O_CLOEXEC);
			if (type == DT_DIR)
				files += read_all(fd);
			else
				files += read(fd, buffer, sizeof(buffer)) > 0;
			(void)close(fd);
		}
	return files;
}

static int run_plain(void *ctx)
{
	(void)ctx;
	int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	long files = read_all(fd);
	(void)close(fd);
	return files == (long)DIRS * FILES ? 0 : -1;
}

struct ours {
	struct worker *w;
	struct worker_job job;
};

static const struct search_place place = {0, {"", 0}};

static int run_ours(void *ctx)
{
	struct ours *o = ctx;
	uint64_t id;
	struct worker_answer *a;
	if (worker_submit(o->w, &o->job, &id, &err) < 0 || worker_wait(o->w, id, &a, &err) < 0)
		return -1;
	bool complete = a->search.stats.stop == SEARCH_COMPLETE &&
			a->search.stats.files_scanned == (uint64_t)DIRS * FILES;
	worker_answer_free(a);
	return complete ? 0 : -1;
}

static struct ours ours_for(struct worker *w, const char *pattern, bool regex, bool ignore_case)
{
	return (struct ours){.w = w,
		.job = {.kind = WORK_SEARCH,
			.search = {.roots = &place,
				.n_roots = 1,
				.pattern = str_of(pattern),
				.regex = regex,
				.ignore_case = ignore_case}}};
}

/* --- the start: supervisor, worker, first answer --- */

struct start {
	int fd;
};

static int run_start(void *ctx)
{
	struct start *s = ctx;
	struct tree *t;
	struct worker *w;
	static const struct tree_options opt = {0};
	static const struct search_place file = {0, {"d0/s0/f0.md", 11}};
	if (tree_start(&opt, &t, &err) < 0 || tree_worker(t, &s->fd, 1, &w, &err) < 0)
		return -1;
	struct worker_job job = {
		.kind = WORK_SEARCH, .search = {.roots = &file, .n_roots = 1, .pattern = STR("x")}};
	uint64_t id;
	struct worker_answer *a;
	int r = worker_submit(w, &job, &id, &err);
	if (r == 0)
		r = worker_wait(w, id, &a, &err);
	if (r == 1)
		worker_answer_free(a);
	worker_free(w);
	tree_free(t);
	return r == 1 ? 0 : -1;
}

int main(int argc, char **argv)
{
	unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 20;
	struct tree *t;
	struct worker *w;
	static const struct tree_options opt = {0};
	make_tree();
	int fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (tree_start(&opt, &t, &err) < 0 || tree_worker(t, &fd, 1, &w, &err) < 0) {
		printf("%s\n", err.text);
		return 1;
	}
	struct ours literal = ours_for(w, "NEEDLE_word", false, false);
	struct ours folded = ours_for(w, "needle_WORD", false, true);
	struct ours regex = ours_for(w, "NEEDLE_[a-z]+ in", true, false);
	struct start s = {fd};
	struct bench b = bench_begin("search");
	unsigned plain = bench_add(&b, "openat, read, close of every file", run_plain, NULL);
	unsigned grep = bench_add(&b, "grep -rnF", run_grep, (void *)(uintptr_t) "NEEDLE_word");
	unsigned ours = bench_add(&b, "worker, literal", run_ours, &literal);
	unsigned icase = bench_add(&b, "worker, literal in any case", run_ours, &folded);
	unsigned expr = bench_add(&b, "worker, expression", run_ours, &regex);
	unsigned start = bench_add(&b, "start of tree and worker to answer", run_start, &s);
	bench_run(&b, rounds, 1);
	bench_ratio(&b, ours, grep, 1.0);
	bench_ratio(&b, icase, grep, 1.0);
	bench_ratio(&b, expr, grep, 1.0);
	bench_ratio(&b, ours, plain, 1.0);
	printf("search: literal %.1f ms at best, start %.2f ms at best; bar for literal %.1f ms\n",
		bench_ns(&b, ours, 0) / 1e6, bench_ns(&b, start, 0) / 1e6, PEER_US / 20000.0);
	printf("search: memory of supervisor and worker %.2f MB\n",
		(double)bench_tree_pss(tree_supervisor_pid(t)) / 1e6);
	worker_free(w);
	tree_free(t);
	(void)nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return bench_end(&b);
}
