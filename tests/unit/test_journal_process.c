/* The real journal process behind its port: what is acknowledged is there, who dies loses nothing
 * of it, and a core that was taken over gets nowhere. */
#include "journal_fixture.h"

#include "daemon/journal_client.h"
#include "daemon/messages.h"
#include "sys/landlock.h"
#include "sys/process.h"

#include <errno.h>
#include <poll.h>
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

static pid_t test_program;

static struct journal *start(struct jfix *f)
{
	struct journal *j = NULL;
	const struct journal_options o = {
		.log_fd = f->log_fd, .key_fd = f->key_fd, .landlock_abi = landlock_abi()};
	if (journal_start(&o, &j, &f->err) < 0)
		print_error("%s\n", f->err.text);
	if (!j && getpid() != test_program)
		_exit(99); /* a child that goes on would run the other cases, too */
	assert_non_null(j);
	return j;
}

static uint64_t records_in_log(struct jfix *f)
{
	struct jverify_result v;
	int r = jfix_verify(f, NULL, &v);
	if (r == -ERR_NOT_FOUND)
		return 0;
	if (r < 0)
		print_error("%s\n", f->err.text);
	assert_int_equal(r, 0);
	return v.records;
}

static void test_added_is_written_at_the_end(void **state)
{
	struct jfix *f = *state;
	struct journal *j = start(f);
	struct jrecord r = jfix_record(JRECORD_KIND_CALL, "a");
	for (unsigned i = 0; i < 20000; i++)
		assert_int_equal(journal_add(j, &r, &f->err), 0);
	journal_free(j);
	assert_int_equal(records_in_log(f), 20000);
}

static void test_committed_is_in_the_log(void **state)
{
	struct jfix *f = *state;
	struct jposition at;
	struct jverify_result v;
	struct journal *j = start(f);
	struct jrecord r = jfix_record(JRECORD_KIND_INTENT, "a");
	assert_int_equal(journal_position(j, &at, &f->err), 0);
	assert_int_equal(at.seq, 0);
	assert_int_equal(journal_commit(j, &r, false, &f->err), 0);
	assert_int_equal(records_in_log(f), 1);
	r.kind = str_of(JRECORD_KIND_OUTCOME);
	assert_int_equal(journal_commit(j, &r, true, &f->err), 0);
	assert_int_equal(journal_position(j, &at, &f->err), 0);
	assert_int_equal(at.seq, 2);
	assert_int_equal(jfix_verify(f, &at, &v), 0);
	journal_free(j);
}

/* Collected records are written soon, though nobody waits for them. */
static void test_added_is_written_soon(void **state)
{
	struct jfix *f = *state;
	struct journal *j = start(f);
	struct jrecord r = jfix_record(JRECORD_KIND_CALL, "a");
	assert_int_equal(journal_add(j, &r, &f->err), 0);
	journal_flush(j);
	for (unsigned i = 0; i < 500 && !records_in_log(f); i++)
		(void)poll(NULL, 0, 10);
	assert_int_equal(records_in_log(f), 1);
	journal_free(j);
}

static void wait_for_records(struct jfix *f, uint64_t n)
{
	for (unsigned i = 0; i < 500 && records_in_log(f) < n; i++)
		(void)poll(NULL, 0, 10);
	assert_int_equal(records_in_log(f), n);
}

/* The core is killed: what it had sent is written, and its intent is found by the next one. */
static void test_killed_core(void **state)
{
	struct jfix *f = *state;
	struct jposition at;
	pid_t pid = fork();
	if (pid == 0) {
		struct journal *j = start(f);
		struct jrecord r = jfix_record(JRECORD_KIND_INTENT, "left open");
		int bad = journal_commit(j, &r, false, &f->err);
		r = jfix_record(JRECORD_KIND_CALL, "sent");
		bad |= journal_add(j, &r, &f->err);
		journal_flush(j);
		(void)raise(bad ? SIGABRT : SIGKILL);
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WTERMSIG(status), SIGKILL);
	wait_for_records(f, 2);
	struct journal *j = start(f);
	struct jopen open_intent;
	/* it may take a moment until its journal has ended */
	for (unsigned i = 0; i < 500; i++) {
		assert_int_equal(journal_position(j, &at, &f->err), 0);
		if (j->n_abandoned)
			break;
		(void)poll(NULL, 0, 10);
		journal_free(j);
		j = start(f);
	}
	assert_int_equal(at.seq, 2);
	assert_false(journal_take_abandoned(j, "t", "s1", &open_intent));
	assert_true(journal_take_abandoned(j, "", "s1", &open_intent));
	assert_string_equal(open_intent.call, "left open");
	assert_false(journal_take_abandoned(j, "", "s1", &open_intent));
	journal_free(j);
}

/* --- a process that the test itself holds --- */

struct raw {
	int sock, page;
	struct process process;
};

static void raw_start(struct jfix *f, struct raw *ret)
{
	int pair[2];
	char path[400];
	assert_int_equal(packet_pair(pair, &f->err), 0);
	assert_int_equal(journal_page_new(&ret->page, &f->err), 0);
	(void)snprintf(path, sizeof(path), "%s/cloister-journal", getenv("CLOISTER_LIBEXECDIR"));
	int exe = open(path, O_PATH | O_CLOEXEC), null = open("/dev/null", O_RDWR | O_CLOEXEC);
	char abi[16];
	(void)snprintf(abi, sizeof(abi), "%d", landlock_abi());
	const char *const argv[] = {"cloister-journal", abi, NULL}, *const envp[] = {NULL};
	const int fds[] = {pair[1], f->log_fd, f->key_fd, ret->page};
	const struct process_spec spec = {.exec_fd = exe,
		.argv = argv,
		.envp = envp,
		.fds = fds,
		.n_fds = 4,
		.null_fd = null};
	assert_int_equal(process_start(&spec, &ret->process, &f->err), 0);
	close(exe);
	close(null);
	close(pair[1]);
	ret->sock = pair[0];
}

static void test_killed_journal_refuses(void **state)
{
	struct jfix *f = *state;
	struct raw p;
	struct journal *j;
	struct jrecord r = jfix_record(JRECORD_KIND_INTENT, "a");
	raw_start(f, &p);
	assert_int_equal(journal_over(p.sock, p.page, &j, &f->err), 0);
	assert_int_equal(journal_commit(j, &r, false, &f->err), 0);
	process_kill(&p.process, SIGKILL);
	int status;
	assert_int_equal(process_wait(&p.process, 5000, &status), 1);
	assert_int_equal(journal_commit(j, &r, false, &f->err), -ERR_UNAVAILABLE);
	assert_non_null(strstr(f->err.text, "nothing can be recorded"));
	assert_int_equal(journal_add(j, &r, &f->err), -ERR_UNAVAILABLE);
	assert_int_equal(journal_commit(j, &r, false, &f->err), -ERR_UNAVAILABLE);
	journal_free(j);
	process_done(&p.process);
	assert_int_equal(records_in_log(f), 1);
}

static void test_full_disk_refuses_before(void **state)
{
	struct jfix *f = *state;
	struct rlimit old, small;
	struct jrecord intent = jfix_record(JRECORD_KIND_INTENT, "a"),
		       call = jfix_record(JRECORD_KIND_CALL, "b");
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	/* room for the page of 4,096 bytes and some groups */
	small = (struct rlimit){5000, old.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	struct journal *j = start(f);
	unsigned n = 0;
	while (n < 100 && journal_commit(j, &intent, false, &f->err) == 0)
		n++;
	assert_in_range(n, 2, 30);
	assert_int_equal(f->err.code, ERR_NO_SPACE);
	/* and it refuses again */
	assert_int_equal(journal_commit(j, &intent, false, &f->err), -ERR_NO_SPACE);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	/* records of what has happened wait for room, until there are too many */
	unsigned kept = 0;
	while (kept < 100000 && journal_add(j, &call, &f->err) == 0) {
		kept++;
		if (kept % 100 == 0)
			journal_flush(j);
	}
	assert_int_equal(f->err.code, ERR_NO_SPACE);
	assert_in_range(kept, 1000, 50000);
	journal_free(j);
	assert_int_equal(records_in_log(f), n);
}

static void test_starts_with_a_damaged_log(void **state)
{
	struct jfix *f = *state;
	struct jrecord r = jfix_record(JRECORD_KIND_INTENT, "a");
	struct jposition at;
	int fd = openat(f->log_fd, "00000002.log", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, "what is this?\n", 14), 14);
	close(fd);
	struct journal *j = start(f);
	assert_int_equal(journal_position(j, &at, &f->err), -ERR_CORRUPT);
	assert_int_equal(journal_commit(j, &r, false, &f->err), -ERR_CORRUPT);
	assert_int_equal(journal_add(j, &r, &f->err), -ERR_CORRUPT);
	journal_free(j);
}

/* --- a core that was taken over --- */

static struct msg_out out;

static void put_record(uint64_t n, const char *kind, struct str note)
{
	static struct msg_record m;
	memset(&m, 0, sizeof(m));
	m.n = n;
	m.wait = 1;
	m.kind = str_of(kind);
	m.note = note;
	assert_true(msg_record_put(&out, &m));
}

static void ends_without_writing(struct jfix *f, const char *what)
{
	struct raw p;
	int status;
	raw_start(f, &p);
	assert_int_equal(packet_send(p.sock, out.data, out.len, NULL, 0, true, &f->err), 0);
	if (!process_wait(&p.process, 5000, &status)) {
		process_kill(&p.process, SIGKILL);
		fail_msg("the journal lives: %s", what);
	}
	assert_true(WIFEXITED(status));
	close(p.sock);
	close(p.page);
	process_done(&p.process);
	assert_int_equal(records_in_log(f), 0);
	msg_out_clear(&out);
}

static void test_nonsense_ends_it(void **state)
{
	struct jfix *f = *state;
	msg_out_clear(&out);
	put_record(2, "call", str_of("its number is not the next"));
	ends_without_writing(f, "number");
	put_record(1, "call", str_of("once"));
	put_record(1, "call", str_of("twice"));
	ends_without_writing(f, "number twice");
	put_record(1, "call", (struct str){"\xff\xfe", 2});
	ends_without_writing(f, "not UTF-8");
	put_record(1, "seal", str_of("no such kind"));
	ends_without_writing(f, "kind");
	put_record(1, "call", str_of("cut short"));
	out.len--;
	ends_without_writing(f, "cut short");
	put_record(1, "call", str_of("another role's message"));
	out.data[0]++;
	ends_without_writing(f, "type");
	memset(out.data, 0xff, 64);
	out.len = 64;
	ends_without_writing(f, "no message");
}

/* A line break in a text is no line of the log. */
static void test_texts_stay_texts(void **state)
{
	struct jfix *f = *state;
	struct journal *j = start(f);
	struct jrecord r = jfix_record(JRECORD_KIND_CALL, "a");
	r.note = str_of("x\"}\n= 1 0000 1 1 1 0 AAAA\n{\"kind\":\"note\",\"seq\":2,\"time\":1}\n");
	assert_int_equal(journal_commit(j, &r, false, &f->err), 0);
	journal_free(j);
	assert_int_equal(records_in_log(f), 1);
}

static void test_many_cores_share_a_log(void **state)
{
	struct jfix *f = *state;
	enum { CORES = 4, CHANGES = 40 };
	for (unsigned i = 0; i < CORES; i++)
		if (fork() == 0) {
			struct journal *j = start(f);
			struct jrecord r = jfix_record(JRECORD_KIND_INTENT, "a");
			int bad = 0;
			for (unsigned k = 0; k < CHANGES; k++) {
				r.kind = str_of(JRECORD_KIND_INTENT);
				bad |= journal_commit(j, &r, k % 2, &f->err);
				r.kind = str_of(JRECORD_KIND_OUTCOME);
				bad |= journal_add(j, &r, &f->err);
			}
			journal_free(j);
			_exit(bad != 0);
		}
	for (unsigned i = 0; i < CORES; i++) {
		int status = 1;
		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	assert_int_equal(records_in_log(f), 2 * CORES * CHANGES);
}

int main(void)
{
	test_program = getpid();
	(void)signal(SIGXFSZ, SIG_IGN);
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(test_added_is_written_at_the_end),
		CASE(test_committed_is_in_the_log),
		CASE(test_added_is_written_soon),
		CASE(test_killed_core),
		CASE(test_killed_journal_refuses),
		CASE(test_full_disk_refuses_before),
		CASE(test_starts_with_a_damaged_log),
		CASE(test_nonsense_ends_it),
		CASE(test_texts_stay_texts),
		CASE(test_many_cores_share_a_log),
	};
	return cmocka_run_group_tests_name("journal process", tests, NULL, NULL);
}
