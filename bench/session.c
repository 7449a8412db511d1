/*
 * Sessions: creating them against bare directories and rows; sweeping 1,000 expired among 100,000;
 * a page of 100,000.
 *
 *     bench_session [SESSIONS]      (default 100,000)
 *
 * The directories are made below TMPDIR (default /tmp) and removed at the end.
 */
#include "harness.h"

#include "session/remove_tree.h"
#include "session/session.h"
#include "session/state.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { CREATES = 4000, FLOOR_BATCH = 100, EXPIRED = 1000 };

static char tmp_name[256];
static int64_t fake_ms = 1700000000000;

static int64_t fake_now(void *ctx)
{
	(void)ctx;
	return fake_ms;
}

static void die(const char *what, const struct err *err)
{
	(void)fprintf(stderr, "%s: %s\n", what, err ? err->text : "failed");
	exit(1);
}

static const char *below(const char *rest)
{
	static char path[512];
	(void)snprintf(path, sizeof(path), "%s/%s", tmp_name, rest);
	return path;
}

static struct registry *open_registry(const char *name)
{
	static const struct workspace_options ws = {
		.quota_bytes = QUOTA_BYTES_DEFAULT, .quota_entries = QUOTA_ENTRIES_DEFAULT};
	struct registry_options opt = {.workspace = &ws, .now_ms = fake_now};
	struct state_paths paths = {.state_dir = below(name)};
	struct registry *reg = NULL;
	struct err err;
	if (state_open(&paths, &opt.state_fd, &opt.base_fd, &err) < 0 ||
		registry_open(&opt, &reg, &err) < 0)
		die("opening the registry", &err);
	(void)close(opt.state_fd);
	(void)close(opt.base_fd);
	return reg;
}

static void create(struct registry *reg, unsigned i, int64_t ttl_s)
{
	char id[32];
	struct session_spec spec = {.tenant = "bench", .id = id, .ttl_s = ttl_s};
	struct session *s = NULL;
	struct err err;
	(void)snprintf(id, sizeof(id), "session-%06u", i);
	if (registry_create(reg, &spec, &s, &err) < 0)
		die("creating a session", &err);
	session_release(s);
}

/* What no registry can do without: two directories and a row, with the rows in large transactions.
 */
struct bare {
	sqlite3 *db;
	sqlite3_stmt *insert;
	int dir_fd;
	unsigned n;
};

static double cpu_ns(void)
{
	struct timespec t;
	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void run_sql(sqlite3 *db, const char *sql)
{
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
		die(sqlite3_errmsg(db), NULL);
}

static void bare_open(struct bare *b)
{
	if (mkdir(below("bare"), 0700) < 0)
		die("mkdir", NULL);
	b->dir_fd = open(below("bare"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (sqlite3_open(below("bare/rows.db"), &b->db) != SQLITE_OK)
		die("sqlite3_open", NULL);
	run_sql(b->db,
		"PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"
		"CREATE TABLE t (id TEXT PRIMARY KEY, owner TEXT, made INTEGER) WITHOUT ROWID");
	if (sqlite3_prepare_v2(b->db, "INSERT INTO t VALUES (?1, 'owner', 0)", -1, &b->insert,
		    NULL) != SQLITE_OK)
		die("prepare", NULL);
}

static void bare_create(struct bare *b)
{
	char id[32], store[32];
	(void)snprintf(id, sizeof(id), "session-%06u", b->n);
	(void)snprintf(store, sizeof(store), "store-%06u", b->n);
	if (b->n % FLOOR_BATCH == 0)
		run_sql(b->db, "BEGIN IMMEDIATE");
	(void)sqlite3_bind_text(b->insert, 1, id, -1, SQLITE_STATIC);
	if (mkdirat(b->dir_fd, id, 0700) < 0 || mkdirat(b->dir_fd, store, 0700) < 0 ||
		sqlite3_step(b->insert) != SQLITE_DONE)
		die("the floor", NULL);
	(void)sqlite3_reset(b->insert);
	if (++b->n % FLOOR_BATCH == 0)
		run_sql(b->db, "COMMIT");
}

static void bare_close(struct bare *b)
{
	(void)sqlite3_finalize(b->insert);
	(void)sqlite3_close(b->db);
	(void)close(b->dir_fd);
}

struct creating {
	struct registry *reg;
	unsigned n;
};

static int one_create(void *ctx)
{
	struct creating *c = ctx;
	create(c->reg, c->n++, 0);
	return 0;
}

static int one_bare(void *ctx)
{
	bare_create(ctx);
	return 0;
}

static int compare_creates(void)
{
	struct bare bare = {0};
	bare_open(&bare);
	struct creating c = {.reg = open_registry("creates")};
	struct bench b = bench_begin("session create");
	unsigned floor = bench_add(&b, "2 mkdir + batched insert", one_bare, &bare);
	unsigned ours = bench_add(&b, "session create", one_create, &c);
	bench_run(&b, CREATES / FLOOR_BATCH, FLOOR_BATCH);
	double rate = 1e9 / bench_ns(&b, ours, 0.5);
	(void)printf("create: %.0f /s (bar >= 2000 /s): %s; the floor %.0f /s\n", rate,
		rate >= 2000 ? "met" : "missed", 1e9 / bench_ns(&b, floor, 0.5));
	bench_over(&b, ours, floor, 0.5, 500);
	registry_free(c.reg);
	bare_close(&bare);
	return bench_end(&b);
}

static bool count_row(void *ctx, const struct session_info *info)
{
	(void)info;
	(*(unsigned *)ctx)++;
	return true;
}

static double page_us(struct registry *reg, const char *after)
{
	enum { TIMES = 50 };
	unsigned rows = 0;
	struct err err;
	bool more;
	double start = bench_now_ns();
	for (int i = 0; i < TIMES; i++)
		if (registry_page(reg, "bench", after, 100, count_row, &rows, &more, &err) < 0)
			die("a page", &err);
	if (rows != TIMES * 100)
		die("a page is short", NULL);
	return (bench_now_ns() - start) / TIMES / 1e3;
}

static void pages(struct registry *reg, unsigned n)
{
	char middle[32], late[32];
	(void)snprintf(middle, sizeof(middle), "session-%06u", n / 2);
	(void)snprintf(late, sizeof(late), "session-%06u", n - 200);
	(void)page_us(reg, middle);
	double first = page_us(reg, NULL), mid = page_us(reg, middle), last = page_us(reg, late);
	(void)printf("page of 100 among %u: first %.0f us, middle %.0f us, last %.0f us\n", n,
		first, mid, last);
}

static double sweep_ms(struct registry *reg, unsigned expect)
{
	struct sweep_budget all = {0};
	struct sweep_result res;
	struct err err;
	double start = bench_now_ns();
	if (registry_sweep(reg, &all, &res, &err) < 0)
		die("the sweep", &err);
	if (res.expired != expect)
		die("the sweep took another number of sessions", NULL);
	return (bench_now_ns() - start) / 1e6;
}

/* The same number of expired sessions, among few and among many. */
static void sweeps(unsigned n)
{
	double among[2];
	for (int big = 0; big < 2; big++) {
		struct registry *reg = open_registry(big ? "many" : "few");
		unsigned total = big ? n : EXPIRED * 2;
		double start = bench_now_ns(), cpu = cpu_ns();
		for (unsigned i = 0; i < total; i++)
			create(reg, i, i % (total / EXPIRED) == 0 ? 10 : 1000000);
		(void)printf("created %u: %.0f /s by the clock, %.0f us of CPU each\n", total,
			total / (bench_now_ns() - start) * 1e9, (cpu_ns() - cpu) / total / 1e3);
		if (big)
			pages(reg, total);
		fake_ms += 20000;
		among[big] = sweep_ms(reg, EXPIRED);
		(void)printf("sweep of nothing due among %u: %.3f ms\n", total, sweep_ms(reg, 0));
		registry_free(reg);
	}
	(void)printf("sweep of %d expired: %.1f ms among %d, %.1f ms among %u\n", EXPIRED, among[0],
		EXPIRED * 2, among[1], n);
}

int main(int argc, char **argv)
{
	const char *tmp = getenv("TMPDIR");
	unsigned n = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 100000;
	struct remove_budget all = {.entries = -1};
	struct err err;
	if (n < 2 * EXPIRED)
		n = 2 * EXPIRED;
	(void)snprintf(tmp_name, sizeof(tmp_name), "%s/cloister-bench-XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(tmp_name))
		die("mkdtemp", NULL);
	int status = compare_creates();
	sweeps(n);
	int fd = open(tmp_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	double start = bench_now_ns();
	if (remove_content(fd, "", &all, &err) < 0)
		die("cleaning up", &err);
	(void)printf("removing %lld names: %.0f /s\n", (long long)all.removed,
		(double)all.removed / (bench_now_ns() - start) * 1e9);
	(void)close(fd);
	return rmdir(tmp_name) < 0 ? 1 : status;
}
