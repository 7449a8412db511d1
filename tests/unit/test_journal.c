/* The journal's log: records, chain, seals, several writers, recovery, what refuses. */
#include "journal_fixture.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

static int setup(void **state)
{
	struct jfix *f = calloc(1, sizeof(*f));
	jfix_init(f);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	jfix_done(*state);
	free(*state);
	return 0;
}

/* --- records --- */

static const char *written(const struct jrecord *r, struct buf *b)
{
	struct err err;
	buf_clear(b);
	assert_int_equal(jrecord_write(r, b, &err), 0);
	return buf_str(b);
}

static void test_record_one_spelling(void **state _unused_)
{
	_cleanup_buf_ struct buf b = buf_init(1 << 20), again = buf_init(1 << 20);
	static struct jrecord_memory m;
	struct jrecord r = jfix_record(JRECORD_KIND_CALL, "abc"), back;
	struct err err;
	r.seq = 7;
	r.time = 1700000000000;
	r.note = str_of("tab\t bell\a quote\" back\\ \xc3\xa9");
	assert_string_equal(written(&r, &b),
		"{\"call\":\"abc\",\"code\":\"ok\",\"kind\":\"call\",\"note\":\"tab\\t bell\\u0007 "
		"quote\\\" back\\\\ \xc3\xa9\",\"paths\":[\"read:/workspace/a "
		"\\\"b\\\"\\n\"],\"seq\":7,"
		"\"session\":\"s1\",\"time\":1700000000000,\"tool\":\"file_read\"}\n");
	assert_int_equal(jrecord_read((struct str){b.data, b.len - 1}, &m, &back, &err), 0);
	assert_int_equal(back.seq, 7);
	assert_true(str_eq(back.note, r.note));
	assert_true(str_eq(back.paths.v[0], r.paths.v[0]));
	assert_string_equal(written(&back, &again), buf_str(&b));
}

static void refused(const char *line, const char *why)
{
	static struct jrecord_memory m;
	struct jrecord r;
	struct err err;
	int e = jrecord_read(str_of(line), &m, &r, &err);
	if (e != -ERR_CORRUPT)
		print_error("accepted: %s\n", line);
	assert_int_equal(e, -ERR_CORRUPT);
	if (!strstr(err.text, why))
		print_error("%s: %s\n", line, err.text);
	assert_non_null(strstr(err.text, why));
}

#define END "\"seq\":1,\"time\":1}"
static void test_record_refuses_other_spellings(void **state _unused_)
{
	refused("", "no object");
	refused("[]", "no object");
	refused("{}", "lacks");
	refused("{\"kind\":\"call\",\"seq\":1}", "lacks");
	refused("{\"kind\":\"other\"," END, "lacks");
	refused("{ \"kind\":\"call\"," END, "out of order");
	refused("{\"kind\":\"call\", " END, "out of order");
	refused("{\"kind\":\"call\",\"call\":\"a\"," END, "out of order");
	refused("{\"kind\":\"call\",\"kind\":\"call\"," END, "out of order");
	refused("{\"kind\":\"call\",\"unknown\":\"a\"," END, "out of order");
	refused("{\"kind\":\"call\",\"note\":\"\"," END, "empty");
	refused("{\"kind\":\"call\",\"note\":\"\\u0041\"," END, "not canonical");
	refused("{\"kind\":\"call\",\"note\":\"\\u0009\"," END, "not canonical");
	refused("{\"kind\":\"call\",\"note\":\"\\/\"," END, "not canonical");
	refused("{\"kind\":\"call\",\"note\":\"\t\"," END, "not canonical");
	refused("{\"kind\":\"call\",\"note\":\"\\n\t\"," END, "not canonical");
	refused("{\"kind\":\"call\",\"note\":\"\xff\"," END, "UTF-8");
	refused("{\"kind\":\"call\",\"seq\":01,\"time\":1}", "not canonical");
	refused("{\"kind\":\"call\",\"seq\":1,\"time\":-1}", "not canonical");
	refused("{\"count\":0,\"kind\":\"call\"," END, "not canonical");
	refused("{\"kind\":\"call\",\"seq\":9007199254740992,\"time\":1}", "over its limit");
	refused("{\"kind\":\"call\",\"seq\":99999999999999999999,\"time\":1}", "over its limit");
	refused("{\"kind\":\"call\"," END "x", "out of order");
	refused("{\"kind\":\"call\",\"seq\":1,\"time\":1", "out of order");
	refused("{\"kind\":\"call\",\"note\":\"abc", "not canonical");
	refused("{\"kind\":\"call\",\"paths\":[]," END, "lacks a text");
	refused("{\"kind\":\"call\",\"paths\":[\"a\"," END, "without an end");
}

static void test_record_limits(void **state _unused_)
{
	_cleanup_buf_ struct buf b = buf_init(1 << 20);
	static char text[JRECORD_BYTES_MAX + 2];
	static struct jrecord_memory m;
	struct jrecord r = jfix_record(JRECORD_KIND_CALL, "abc");
	struct err err;
	memset(text, 'x', sizeof(text));
	r.note = (struct str){text, JRECORD_TEXT_MAX + 1};
	assert_int_equal(jrecord_write(&r, &b, &err), -ERR_INVALID_ARGUMENT);
	r.note.n = 1;
	text[0] = '\xff';
	assert_int_equal(jrecord_write(&r, &b, &err), -ERR_INVALID_ARGUMENT);
	memset(text, 1, sizeof(text)); /* every byte needs an escape of six */
	r.note.n = 0;
	r.args.n = 7;
	for (unsigned i = 0; i < 7; i++)
		r.args.v[i] = (struct str){text, JRECORD_TEXT_MAX};
	r.seq = r.time = 1;
	assert_int_equal(jrecord_write(&r, &b, &err), 0);
	assert_true(b.len < JRECORD_LINE_MAX);
	assert_int_equal(jrecord_read((struct str){b.data, b.len - 1}, &m, &r, &err), 0);
	r.args.n = 9;
	for (unsigned i = 0; i < 9; i++)
		r.args.v[i] = (struct str){text, JRECORD_TEXT_MAX};
	assert_int_equal(jrecord_write(&r, &b, &err), -ERR_LIMIT);
}

/* --- the log --- */

/* By field: padding is not copied with them. */
static void assert_same_position(const struct jposition *a, const struct jposition *b)
{
	assert_int_equal(a->seq, b->seq);
	assert_string_equal(a->head, b->head);
}

static void test_log_goes_on(void **state)
{
	struct jfix *f = *state;
	struct jverify_result v;
	struct jposition p, q;
	struct jposition none;
	struct jlog *l = jfix_open(f, 1, 0);
	jlog_position(l, &none);
	assert_int_equal(none.seq, 0);
	assert_int_equal(jfix_group(f, l, 3, JRECORD_KIND_CALL, "a"), 0);
	assert_int_equal(jfix_group(f, l, 1, JRECORD_KIND_CALL, "b"), 0);
	jlog_position(l, &p);
	assert_int_equal(p.seq, 4);
	jlog_free(l);
	l = jfix_open(f, 2, 0);
	jlog_position(l, &q);
	assert_same_position(&p, &q);
	assert_int_equal(jfix_group(f, l, 2, JRECORD_KIND_CALL, "c"), 0);
	jlog_position(l, &q);
	jlog_free(l);
	assert_int_equal(jfix_verify(f, &p, &v), 0);
	assert_int_equal(v.records, 6);
	assert_int_equal(v.groups, 3);
	assert_int_equal(jfix_verify(f, &q, &v), 0);
	assert_int_equal(jfix_verify(f, &none, &v), 0);
	none.head[0] = '1';
	assert_int_equal(jfix_verify(f, &none, &v), -ERR_CONFLICT);
	q.head[5] ^= 1;
	assert_int_equal(jfix_verify(f, &q, &v), -ERR_CONFLICT);
	q.seq = 7;
	assert_int_equal(jfix_verify(f, &q, &v), -ERR_CONFLICT);
	assert_non_null(strstr(f->err.text, "ends at record 6, before record 7"));
}

/* A position in the middle of a group is one as well. */
static void test_position_within_a_group(void **state)
{
	struct jfix *f = *state;
	struct jverify_result v;
	struct jchain c;
	char text[8192];
	struct jlog *l = jfix_open(f, 1, 0);
	assert_int_equal(jfix_group(f, l, 3, JRECORD_KIND_CALL, "a"), 0);
	jlog_free(l);
	int fd = openat(f->log_fd, "00000001.log", O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n] = '\0';
	jchain_init(&c);
	char *second = strchr(strchr(text, '\n') + 1, '\n') + 1;
	for (char *p = text; p < second;) {
		size_t len = strcspn(p, "\n") + 1;
		jchain_add(&c, p, len);
		p += len;
	}
	struct jposition p = {.seq = 1};
	memcpy(p.head, c.head, sizeof(p.head));
	assert_int_equal(jfix_verify(f, &p, &v), 0);
	p.seq = 2;
	assert_int_equal(jfix_verify(f, &p, &v), -ERR_CONFLICT);
}

/* Nothing but the chain says so: the record stays well formed, and nobody expects a position. */
static void test_changed_letter_is_found(void **state)
{
	struct jfix *f = *state;
	struct jverify_result v;
	static char text[8192];
	struct jlog *l = jfix_open(f, 1, 0);
	assert_int_equal(jfix_group(f, l, 3, JRECORD_KIND_CALL, "abc"), 0);
	jlog_free(l);
	int fd = openat(f->log_fd, "00000001.log", O_RDWR | O_CLOEXEC);
	assert_true(read(fd, text, sizeof(text) - 1) >= 0);
	long at = strstr(text, "abc") - text;
	assert_int_equal(pwrite(fd, "x", 1, at), 1);
	assert_int_equal(jfix_verify(f, NULL, &v), -ERR_CORRUPT);
	assert_int_equal(pwrite(fd, "a", 1, at), 1);
	assert_int_equal(jfix_verify(f, NULL, &v), 0);
	close(fd);
}

static void test_log_rotates(void **state)
{
	struct jfix *f = *state;
	struct jverify_result v;
	struct jlog *l = jfix_open(f, 1, 2000), *other = jfix_open(f, 2, 2000);
	for (unsigned i = 0; i < 40; i++)
		assert_int_equal(
			jfix_group(f, i % 3 ? l : other, 1 + i % 4, JRECORD_KIND_CALL, "a"), 0);
	jlog_free(l);
	jlog_free(other);
	assert_int_equal(jfix_verify(f, NULL, &v), 0);
	assert_true(v.segments > 5);
	assert_int_equal(v.records, 10 * (1 + 2 + 3 + 4));
	/* a segment in the middle is missing */
	assert_int_equal(unlinkat(f->log_fd, "00000003.log", 0), 0);
	assert_int_equal(jfix_verify(f, NULL, &v), -ERR_CORRUPT);
	assert_non_null(strstr(f->err.text, "segment 3"));
	assert_int_equal(unlinkat(f->log_fd, "00000001.log", 0), 0);
	assert_int_equal(jfix_verify(f, NULL, &v), -ERR_CORRUPT);
	assert_non_null(strstr(f->err.text, "first segment"));
}

/* Processes at the same time share one chain. */
static void test_many_writers(void **state)
{
	struct jfix *f = *state;
	struct jverify_result v;
	enum { WRITERS = 6, GROUPS = 50 };
	for (unsigned w = 0; w < WRITERS; w++)
		if (fork() == 0) {
			struct jlog *l = jfix_open(f, 100 + 4 * w, 20000);
			int bad = 0;
			for (unsigned i = 0; i < GROUPS; i++)
				bad |= jfix_group(f, l, 2, JRECORD_KIND_CALL, "a");
			_exit(bad != 0);
		}
	for (unsigned w = 0; w < WRITERS; w++) {
		int status = 1;
		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	assert_int_equal(jfix_verify(f, NULL, &v), 0);
	assert_int_equal(v.records, 2 * WRITERS * GROUPS);
}

/* A writer that is killed at any byte: what was acknowledged stays, the rest goes and is said. */
static void test_torn_end_is_cut(void **state)
{
	struct jfix *f = *state;
	struct jverify_result v;
	struct stat st;
	struct jposition kept;
	struct jlog *l = jfix_open(f, 1, 0);
	assert_int_equal(jfix_group(f, l, 2, JRECORD_KIND_CALL, "a"), 0);
	jlog_position(l, &kept);
	int fd = openat(f->log_fd, "00000001.log", O_RDWR | O_CLOEXEC);
	assert_int_equal(fstat(fd, &st), 0);
	int64_t good = st.st_size;
	assert_int_equal(jfix_group(f, l, 2, JRECORD_KIND_CALL, "b"), 0);
	jlog_free(l);
	assert_int_equal(fstat(fd, &st), 0);
	static char whole[16384];
	ssize_t size = pread(fd, whole, sizeof(whole), 0);
	for (ssize_t n = 0; n < size; n += n < good ? 37 : 1) {
		assert_int_equal(ftruncate(fd, 0), 0);
		assert_int_equal(pwrite(fd, whole, (size_t)n, 0), n);
		int r = jfix_verify(f, NULL, &v);
		assert_int_equal(r, n == good ? 0 : -ERR_CORRUPT);
		l = jfix_open(f, 3, 0);
		assert_int_equal(jfix_group(f, l, 1, JRECORD_KIND_CALL, "c"), 0);
		jlog_free(l);
		assert_int_equal(jfix_verify(f, n >= good ? &kept : NULL, &v), 0);
		/* the record of it: one note, unless nothing was cut */
		assert_int_equal(v.records, (n >= good ? 2u : 0u) + (n != good && n != 0) + 1);
	}
	close(fd);
}

/* The same under a writer that is running: another one died in its group. */
static void test_torn_end_of_another(void **state)
{
	struct jfix *f = *state;
	struct jverify_result v;
	struct jlog *l = jfix_open(f, 1, 0);
	assert_int_equal(jfix_group(f, l, 1, JRECORD_KIND_INTENT, "open"), 0);
	struct jlog *other = jfix_open(f, 2, 0);
	assert_int_equal(jfix_group(f, other, 2, JRECORD_KIND_OUTCOME, "open"), 0);
	jlog_free(other);
	struct stat st;
	int fd = openat(f->log_fd, "00000001.log", O_RDWR | O_CLOEXEC);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(ftruncate(fd, st.st_size - 1), 0);
	close(fd);
	assert_int_equal(jfix_group(f, l, 1, JRECORD_KIND_CALL, "a"), 0);
	jlog_free(l);
	assert_int_equal(jfix_verify(f, NULL, &v), 0);
	assert_int_equal(v.records, 3);
	/* the outcome has not happened */
	const struct jopen *open_intents;
	l = jfix_open(f, 9, 0);
	assert_int_equal(jlog_abandoned(l, &open_intents), 1);
	assert_string_equal(open_intents[0].call, "open");
	jlog_free(l);
}

static void test_intents_of_the_dead(void **state)
{
	struct jfix *f = *state;
	const struct jopen *found;
	struct jlog *a = jfix_open(f, 4, 1500), *b = jfix_open(f, 8, 1500);
	assert_int_equal(jfix_group(f, a, 1, JRECORD_KIND_INTENT, "first"), 0);
	assert_int_equal(jfix_group(f, a, 1, JRECORD_KIND_INTENT, "second"), 0);
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(jfix_group(f, b, 1, JRECORD_KIND_CALL, "x"), 0);
	assert_int_equal(jfix_group(f, b, 1, JRECORD_KIND_INTENT, "mine"), 0);
	/* whose writer lives is being carried out */
	assert_int_equal(jlog_abandoned(b, &found), 0);
	assert_int_equal(jfix_group(f, a, 1, JRECORD_KIND_OUTCOME, "first"), 0);
	jlog_free(a);
	assert_int_equal(jfix_group(f, b, 1, JRECORD_KIND_CALL, "x"), 0);
	assert_int_equal(jlog_abandoned(b, &found), 1);
	assert_string_equal(found[0].call, "second");
	assert_string_equal(found[0].session, "s1");
	assert_int_equal(found[0].seq, 2);
	jlog_free(b);
	/* a new writer finds them, segments back */
	b = jfix_open(f, 12, 1500);
	assert_int_equal(jlog_abandoned(b, &found), 2);
	assert_string_equal(found[1].call, "mine");
	assert_int_equal(jfix_group(f, b, 1, JRECORD_KIND_OUTCOME, "second"), 0);
	assert_int_equal(jfix_group(f, b, 1, JRECORD_KIND_OUTCOME, "mine"), 0);
	assert_int_equal(jlog_abandoned(b, &found), 0);
	jlog_free(b);
}

/* --- what refuses --- */

static void test_full_disk_leaves_whole_groups(void **state)
{
	struct jfix *f = *state;
	struct jverify_result v;
	struct rlimit old, small;
	struct jposition kept, after;
	(void)signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	struct jlog *l = jfix_open(f, 1, 0);
	assert_int_equal(jfix_group(f, l, 2, JRECORD_KIND_CALL, "a"), 0);
	jlog_position(l, &kept);
	small = (struct rlimit){1000, old.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	assert_int_equal(jfix_group(f, l, 20, JRECORD_KIND_CALL, "b"), -ERR_NO_SPACE);
	assert_int_equal(jfix_group(f, l, 20, JRECORD_KIND_INTENT, "b"), -ERR_NO_SPACE);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	jlog_position(l, &after);
	assert_same_position(&kept, &after);
	assert_int_equal(jfix_verify(f, &kept, &v), 0);
	/* there is room again */
	assert_int_equal(jfix_group(f, l, 1, JRECORD_KIND_CALL, "c"), 0);
	jlog_free(l);
	assert_int_equal(jfix_verify(f, &kept, &v), 0);
	assert_int_equal(v.records, 3);
}

static int sync_fails(int fd _unused_)
{
	errno = EIO;
	return -1;
}

static void test_failed_sync_breaks_for_good(void **state)
{
	struct jfix *f = *state;
	uint64_t seq;
	struct jlog *l;
	struct jrecord r = jfix_record(JRECORD_KIND_INTENT, "a");
	const struct jlog_options o = {
		.dir_fd = f->log_fd, .key = f->key, .run = 1, .sync = sync_fails};
	assert_int_equal(jlog_open(&o, &l, &f->err), 0);
	assert_int_equal(jfix_group(f, l, 1, JRECORD_KIND_CALL, "not synced"), 0);
	assert_int_equal(jlog_begin(l, &f->err), 0);
	assert_int_equal(jlog_put(l, &r, &seq, &f->err), 0);
	assert_int_equal(jlog_end(l, 1, true, &f->err), -ERR_IO);
	assert_non_null(jlog_broken(l));
	assert_int_equal(jlog_begin(l, &f->err), -ERR_IO);
	assert_int_equal(jlog_begin(l, &f->err), -ERR_IO);
	jlog_free(l);
}

static void test_another_key_is_refused(void **state)
{
	struct jfix *f = *state;
	struct jverify_result v;
	struct jlog *l = jfix_open(f, 1, 0);
	assert_int_equal(jfix_group(f, l, 1, JRECORD_KIND_CALL, "a"), 0);
	jlog_free(l);
	struct jkey *first = f->key;
	assert_int_equal(unlinkat(f->key_fd, JSEAL_KEY_FILE, 0), 0);
	assert_int_equal(jkey_open(f->key_fd, f->log_fd, &f->key, &f->err), 0);
	const struct jlog_options o = {.dir_fd = f->log_fd, .key = f->key, .run = 1};
	assert_int_equal(jlog_open(&o, &l, &f->err), 0);
	assert_int_equal(jfix_group(f, l, 1, JRECORD_KIND_CALL, "b"), -ERR_CORRUPT);
	assert_int_equal(jfix_group(f, l, 1, JRECORD_KIND_CALL, "b"), -ERR_CORRUPT);
	jlog_free(l);
	assert_int_equal(jfix_verify(f, NULL, &v), -ERR_CORRUPT);
	assert_non_null(strstr(f->err.text, "not of this key"));
	jkey_free(f->key);
	f->key = first;
	assert_int_equal(jfix_verify(f, NULL, &v), 0);
}

static void test_key_is_private(void **state)
{
	struct jfix *f = *state;
	struct stat st;
	struct jkey *k;
	assert_int_equal(fstatat(f->key_fd, JSEAL_KEY_FILE, &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(fchmodat(f->key_fd, JSEAL_KEY_FILE, 0640, 0), 0);
	assert_int_equal(jkey_open(f->key_fd, f->log_fd, &k, &f->err), -ERR_DENIED);
}

static void put_file(int dir, const char *name, const char *text)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(close(fd), 0);
}

static void assert_file(int dir, const char *name, const char *want)
{
	char text[4096] = "";
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_true(read(fd, text, sizeof(text) - 1) >= 0);
	assert_string_equal(text, want);
	close(fd);
}

/* The pair of RFC 8410, 10.1 and 10.3. */
#define RFC_PRIVATE "MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC"
#define RFC_PUBLIC "MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE="
#define PEM(WHAT, TEXT) "-----BEGIN " WHAT " KEY-----\n" TEXT "\n-----END " WHAT " KEY-----\n"

static void test_key_of_the_rfc(void **state)
{
	struct jfix *f = *state;
	struct jkey *k = NULL;
	jfix_empty(f->log_fd);
	put_file(f->key_fd, JSEAL_KEY_FILE, PEM("PRIVATE", RFC_PRIVATE));
	assert_int_equal(jkey_open(f->key_fd, f->log_fd, &k, &f->err), 0);
	jkey_free(k);
	assert_file(f->log_fd, JSEAL_PUBLIC_FILE, PEM("PUBLIC", RFC_PUBLIC));
}

static void test_what_is_no_key(void **state)
{
	static const char *const bad[] = {"", "x", RFC_PRIVATE, PEM("PUBLIC", RFC_PUBLIC),
		PEM("RSA PRIVATE", RFC_PRIVATE), PEM("PRIVATE", RFC_PUBLIC), PEM("PRIVATE", ""),
		PEM("PRIVATE", "MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVh"),
		PEM("PRIVATE", RFC_PRIVATE "AAAA"), PEM("PRIVATE", RFC_PRIVATE "="),
		/* X25519 (1.3.101.110), and a version with attributes */
		PEM("PRIVATE", "MC4CAQAwBQYDK2VuBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC"),
		PEM("PRIVATE", "MC4CAQEwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC"),
		"-----BEGIN PRIVATE KEY-----\n" RFC_PRIVATE,
		"-----BEGIN PRIVATE KEY-----\n" RFC_PRIVATE "\n-----END PUBLIC KEY-----\n"};
	struct jfix *f = *state;
	struct jkey *k = NULL;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		put_file(f->key_fd, JSEAL_KEY_FILE, bad[i]);
		assert_int_equal(jkey_open(f->key_fd, f->log_fd, &k, &f->err), -ERR_CORRUPT);
		assert_non_null(strstr(f->err.text, "private key"));
		assert_file(f->key_fd, JSEAL_KEY_FILE, bad[i]);
	}
	put_file(f->log_fd, JSEAL_PUBLIC_FILE, PEM("PRIVATE", RFC_PRIVATE));
	assert_int_equal(jkey_published(f->log_fd, &k, &f->err), -ERR_CORRUPT);
	assert_non_null(strstr(f->err.text, "public key"));
	assert_null(k);
}

static void test_writers_agree_on_a_key(void **state)
{
	struct jfix *f = *state;
	struct jkey *k;
	struct sha256 a, b;
	jkey_free(f->key);
	jfix_empty(f->key_fd);
	jfix_empty(f->log_fd);
	for (unsigned i = 0; i < 4; i++)
		if (fork() == 0)
			_exit(jkey_open(f->key_fd, f->log_fd, &k, &f->err) < 0);
	for (unsigned i = 0; i < 4; i++) {
		int status = 1;
		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	assert_int_equal(jkey_open(f->key_fd, f->log_fd, &f->key, &f->err), 0);
	assert_int_equal(jkey_published(f->log_fd, &k, &f->err), 0);
	jkey_fingerprint(k, &a);
	jkey_fingerprint(f->key, &b);
	assert_memory_equal(&a, &b, sizeof(a));
	jkey_free(k);
}

static void test_group_is_bounded(void **state)
{
	struct jfix *f = *state;
	uint64_t seq;
	struct jlog *l = jfix_open(f, 1, 0);
	struct jrecord r = jfix_record(JRECORD_KIND_CALL, "a");
	assert_int_equal(jlog_begin(l, &f->err), 0);
	unsigned n = 0;
	while (n < 20000 && jlog_put(l, &r, &seq, &f->err) == 0)
		n++;
	assert_true(n >= JLOG_GROUP_RECORDS && n < 20000);
	assert_int_equal(f->err.code, ERR_LIMIT);
	assert_int_equal(jlog_end(l, 1, false, &f->err), 0);
	jlog_free(l);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_record_one_spelling),
		cmocka_unit_test(test_record_refuses_other_spellings),
		cmocka_unit_test(test_record_limits),
		CASE(test_log_goes_on),
		CASE(test_position_within_a_group),
		CASE(test_changed_letter_is_found),
		CASE(test_log_rotates),
		CASE(test_many_writers),
		CASE(test_torn_end_is_cut),
		CASE(test_torn_end_of_another),
		CASE(test_intents_of_the_dead),
		CASE(test_full_disk_leaves_whole_groups),
		CASE(test_failed_sync_breaks_for_good),
		CASE(test_another_key_is_refused),
		CASE(test_key_is_private),
		CASE(test_key_of_the_rfc),
		CASE(test_what_is_no_key),
		CASE(test_writers_agree_on_a_key),
		CASE(test_group_is_bounded),
	};
	return cmocka_run_group_tests_name("journal", tests, NULL, NULL);
}
