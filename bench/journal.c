/*
 * The journal.
 *
 *   verifying                  >= 200,000 records a second on one core
 *   32 durable records at once >= 10 x one fdatasync for each
 *
 * CLOISTER_BENCH_DIR names the directory to work in (default /var/tmp); it must be on the file
 * system that is to be measured.
 */
#include "harness.h"

#include "journal/jverify.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

enum { RECORDS = 400000, GROUP = 32, AT_ONCE = 32 };

struct place {
	char dir[256];
	int dir_fd, key_fd, log_fd, plain_fd;
	struct jkey *key;
	struct jlog *log;
	struct err err;
};

static struct jrecord record(void)
{
	struct jrecord r = {.kind = str_of(JRECORD_KIND_CALL),
		.call = str_of("abcdefghijklmnopqrstuvwxyz"),
		.session = str_of("0197c5e0a3b17f31a8e1c0d2b4f6a8c0"),
		.tenant = str_of("default"),
		.principal = str_of("local"),
		.role = str_of("developer"),
		.turn = str_of("12"),
		.tool = str_of("file_read"),
		.code = str_of("ok")};
	r.args.n = 2;
	r.args.v[0] = str_of("path=src/module/file.c");
	r.args.v[1] = str_of("limit=100");
	r.paths.n = 1;
	r.paths.v[0] = str_of("read:/workspace/src/module/file.c");
	return r;
}

static void die(const char *what, const struct err *err)
{
	(void)fprintf(stderr, "%s: %s\n", what, err->text);
	exit(1);
}

static void group(struct place *p, unsigned n, bool sync)
{
	struct jrecord r = record();
	uint64_t seq;
	if (jlog_begin(p->log, &p->err) < 0)
		die("beginning a group", &p->err);
	for (unsigned i = 0; i < n; i++)
		if (jlog_put(p->log, &r, &seq, &p->err) < 0)
			die("a record", &p->err);
	if (jlog_end(p->log, n, sync, &p->err) < 0)
		die("ending a group", &p->err);
}

static int sub(const struct place *p, const char *name)
{
	(void)mkdirat(p->dir_fd, name, 0700);
	return openat(p->dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void arrange(struct place *p)
{
	const char *base = getenv("CLOISTER_BENCH_DIR");
	(void)snprintf(
		p->dir, sizeof(p->dir), "%s/cloister-bench-XXXXXX", base ? base : "/var/tmp");
	if (!mkdtemp(p->dir)) {
		perror(p->dir);
		exit(1);
	}
	p->dir_fd = open(p->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	p->key_fd = sub(p, "key");
	p->log_fd = sub(p, "log");
	p->plain_fd = openat(p->dir_fd, "plain", O_CREAT | O_RDWR | O_APPEND | O_CLOEXEC, 0600);
	if (jkey_open(p->key_fd, p->log_fd, &p->key, &p->err) < 0)
		die("the key", &p->err);
	const struct jlog_options o = {.dir_fd = p->log_fd, .key = p->key, .run = 1};
	if (jlog_open(&o, &p->log, &p->err) < 0)
		die("the log", &p->err);
}

static void clear(struct place *p)
{
	for (uint32_t s = 1; s < 1000; s++) {
		char name[JWALK_NAME];
		jwalk_name(s, name);
		(void)unlinkat(p->log_fd, name, 0);
	}
	(void)unlinkat(p->log_fd, "lock", 0);
	(void)unlinkat(p->log_fd, JSEAL_PUBLIC_FILE, 0);
	(void)unlinkat(p->key_fd, JSEAL_KEY_FILE, 0);
	(void)unlinkat(p->dir_fd, "plain", 0);
	(void)unlinkat(p->dir_fd, "key", AT_REMOVEDIR);
	(void)unlinkat(p->dir_fd, "log", AT_REMOVEDIR);
	(void)rmdir(p->dir);
}

static void verifying(struct place *p, bool every_seal)
{
	struct jverify_result v;
	const struct jverify_options o = {
		.dir_fd = p->log_fd, .key = p->key, .every_seal = every_seal};
	double start = bench_now_ns();
	if (jverify(&o, &v, &p->err) < 0)
		die("verifying", &p->err);
	double rate = (double)v.records / (bench_now_ns() - start) * 1e9;
	printf("verifying %llu records in groups of %d, %s: %.0f records/s, %.0f MB/s",
		(unsigned long long)v.records, GROUP, every_seal ? "every seal" : "the chain", rate,
		rate * (double)v.bytes / (double)v.records / 1e6);
	if (every_seal)
		printf("\n");
	else
		printf(" (bar >= 200000): %s\n", rate >= 200000 ? "met" : "missed");
}

static int each_synced(void *ctx)
{
	struct place *p = ctx;
	struct jrecord r = record();
	_cleanup_buf_ struct buf line = buf_init(65536);
	r.seq = r.time = 1;
	if (jrecord_write(&r, &line, &p->err) < 0)
		return -1;
	for (unsigned i = 0; i < AT_ONCE; i++)
		if (write(p->plain_fd, line.data, line.len) < 0 || fdatasync(p->plain_fd) < 0)
			return -1;
	return 0;
}

static int together(void *ctx)
{
	group(ctx, AT_ONCE, true);
	return 0;
}

static int one_synced(void *ctx)
{
	group(ctx, 1, true);
	return 0;
}

static int one(void *ctx)
{
	group(ctx, 1, false);
	return 0;
}

int main(void)
{
	static struct place p;
	bench_pin();
	arrange(&p);
	for (unsigned i = 0; i < RECORDS / GROUP; i++)
		group(&p, GROUP, false);
	verifying(&p, false);
	verifying(&p, true);
	struct bench b = bench_begin("appending to the journal");
	unsigned by_hand = bench_add(&b, "32 x write + fdatasync", each_synced, &p),
		 ours = bench_add(&b, "a group of 32, synced", together, &p);
	(void)bench_add(&b, "a group of 1, synced", one_synced, &p);
	(void)bench_add(&b, "a group of 1", one, &p);
	bench_run(&b, 100, 1);
	bench_ratio(&b, ours, by_hand, 0.1);
	int r = bench_end(&b);
	jlog_free(p.log);
	jkey_free(p.key);
	clear(&p);
	return r;
}
