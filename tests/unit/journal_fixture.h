/* A journal in a temporary directory, and small ways to write and look at it. */
#ifndef CLOISTER_TESTS_JOURNAL_FIXTURE_H
#define CLOISTER_TESTS_JOURNAL_FIXTURE_H

#include "testing.h"

#include "journal/jverify.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

struct jfix {
	char dir[64];
	int dir_fd, key_fd, log_fd;
	struct jkey *key;
	struct err err;
};

static inline void jfix_init(struct jfix *f)
{
	const char *tmp = getenv("TMPDIR");
	assert_true((size_t)snprintf(f->dir, sizeof(f->dir), "%s/cloister-journal-XXXXXX",
			    tmp ? tmp : "/tmp") < sizeof(f->dir));
	assert_non_null(mkdtemp(f->dir));
	f->dir_fd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(mkdirat(f->dir_fd, "key", 0700), 0);
	assert_int_equal(mkdirat(f->dir_fd, "log", 0700), 0);
	f->key_fd = openat(f->dir_fd, "key", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	f->log_fd = openat(f->dir_fd, "log", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(jkey_open(f->key_fd, f->log_fd, &f->key, &f->err), 0);
}

static inline void jfix_empty(int fd)
{
	DIR *d = fdopendir(openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	for (struct dirent *e; (e = readdir(d));)
		if (e->d_name[0] != '.')
			(void)unlinkat(fd, e->d_name, 0);
	closedir(d);
}

static inline void jfix_done(struct jfix *f)
{
	jkey_free(f->key);
	jfix_empty(f->key_fd);
	jfix_empty(f->log_fd);
	close(f->key_fd);
	close(f->log_fd);
	assert_int_equal(unlinkat(f->dir_fd, "key", AT_REMOVEDIR), 0);
	assert_int_equal(unlinkat(f->dir_fd, "log", AT_REMOVEDIR), 0);
	close(f->dir_fd);
	assert_int_equal(rmdir(f->dir), 0);
}

static inline struct jlog *jfix_open(struct jfix *f, uint64_t run, int64_t segment_bytes)
{
	struct jlog *l = NULL;
	const struct jlog_options o = {
		.dir_fd = f->log_fd, .key = f->key, .run = run, .segment_bytes = segment_bytes};
	int r = jlog_open(&o, &l, &f->err);
	if (r < 0)
		print_error("%s\n", f->err.text);
	assert_int_equal(r, 0);
	return l;
}

static inline struct jrecord jfix_record(const char *kind, const char *call)
{
	struct jrecord r = {.kind = str_of(kind),
		.call = str_of(call),
		.session = str_of("s1"),
		.tool = str_of("file_read"),
		.code = str_of("ok")};
	r.paths.n = 1;
	r.paths.v[0] = str_of("read:/workspace/a \"b\"\n");
	return r;
}

/* One group of `n` records of a kind. */
static inline int jfix_group(
	struct jfix *f, struct jlog *l, unsigned n, const char *kind, const char *call)
{
	uint64_t seq;
	struct jrecord r = jfix_record(kind, call);
	int e = jlog_begin(l, &f->err);
	if (e < 0)
		return e;
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(jlog_put(l, &r, &seq, &f->err), 0);
	return jlog_end(l, 1, false, &f->err);
}

static inline int jfix_verify(
	struct jfix *f, const struct jposition *expect, struct jverify_result *ret)
{
	const struct jverify_options o = {.dir_fd = f->log_fd, .key = f->key, .expect = expect};
	return jverify(&o, ret, &f->err);
}

#endif
