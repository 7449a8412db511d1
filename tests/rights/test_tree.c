/*
 * The tree of processes as it really runs: jobs are answered, and whatever dies or hangs, the next
 * job is served, core does not wait, and nothing outlives core.
 *
 *   CLOISTER_LIBEXECDIR names the folder of the programs.
 */
#include "../unit/testing.h"

#include "daemon/tree.h"
#include "sys/loop.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__has_feature)
#	if __has_feature(address_sanitizer)
#		define SANITIZED 1
#	endif
#elif defined(__SANITIZE_ADDRESS__)
#	define SANITIZED 1
#endif
#ifndef SANITIZED
#	define SANITIZED 0
#endif

static struct err e;
static char root[64];
static int root_fd;
static struct tree *tree;
static struct worker *w;

static const struct search_place place = {0, {"", 0}};

/* --- processes, from /proc --- */

static pid_t parent_of(pid_t pid, char *ret_state)
{
	char path[64], text[512];
	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC), parent = -1;
	if (fd < 0)
		return -1;
	ssize_t n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	const char *p = strrchr(text, ')');
	if (!p || sscanf(p + 1, " %c %d", ret_state, &parent) != 2)
		return -1;
	return parent;
}

static bool is_gone(pid_t pid)
{
	char state = 0;
	return parent_of(pid, &state) < 0 || state == 'Z' || state == 'X';
}

static bool gone_within(pid_t pid, int ms)
{
	for (int64_t until = loop_now_ms() + ms; loop_now_ms() < until;) {
		if (is_gone(pid))
			return true;
		(void)usleep(1000);
	}
	return is_gone(pid);
}

/* Children of a process that still live; the last one's pid in *ret. */
static unsigned children_of(pid_t parent, pid_t *ret)
{
	unsigned n = 0;
	DIR *d = opendir("/proc");
	for (struct dirent *de; (de = readdir(d));) {
		char state = 0;
		pid_t pid = atoi(de->d_name);
		if (pid > 0 && parent_of(pid, &state) == parent && state != 'Z') {
			*ret = pid;
			n++;
		}
	}
	closedir(d);
	return n;
}

static pid_t worker_pid(void)
{
	pid_t pid = -1;
	assert_int_equal(children_of(tree_supervisor_pid(tree), &pid), 1);
	return pid;
}

/* --- a workspace and a tree --- */

static void put(const char *name, const char *text)
{
	char path[200];
	(void)snprintf(path, sizeof(path), "%s/%s", root, name);
	int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

static int start(const struct tree_options *opt)
{
	if (tree_start(opt, &tree, &e) < 0 || tree_worker(tree, &root_fd, 1, &w, &e) < 0) {
		print_message("# %s\n", e.text);
		return -1;
	}
	return 0;
}

static int set_up(void **state)
{
	(void)state;
	static const struct tree_options plain = {.worker_stderr = true};
	strcpy(root, "/tmp/cloister-tree-XXXXXX");
	if (!mkdtemp(root))
		return -1;
	put("file", "one\ntwo x\n");
	root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return start(&plain);
}

static int tear_down(void **state)
{
	char path[200];
	(void)state;
	worker_free(w);
	tree_free(tree);
	close(root_fd);
	(void)snprintf(path, sizeof(path), "%s/file", root);
	(void)unlink(path);
	return rmdir(root);
}

static int content_of(const char *text, size_t n)
{
	int fd = memfd_create("content", MFD_CLOEXEC);
	assert_int_equal(write(fd, text, n), (ssize_t)n);
	return fd;
}

static struct worker_job search_job(const char *pattern)
{
	return (struct worker_job){.kind = WORK_SEARCH,
		.search = {.roots = &place, .n_roots = 1, .pattern = str_of(pattern)}};
}

static int run(const struct worker_job *job, struct worker_answer **ret)
{
	uint64_t id;
	int r = worker_submit(w, job, &id, &e);
	return r < 0 ? r : worker_wait(w, id, ret, &e);
}

static void assert_search_works(void)
{
	struct worker_answer *a = NULL;
	const struct worker_job job = search_job("two");
	if (run(&job, &a) != 1)
		fail_msg("%s", e.text);
	assert_int_equal(a->search.stats.hits, 1);
	assert_true(str_eq_c(a->search.hits[0].path, "file"));
	assert_int_equal(a->search.hits[0].line, 2);
	worker_answer_free(a);
}

/* A job that takes far longer than any test waits: linear, but over much text. */
static struct worker_job endless_job(int *ret_fd)
{
	enum { SIZE = 100 * 1024 * 1024 };
	int fd = memfd_create("much", MFD_CLOEXEC);
	assert_int_equal(ftruncate(fd, SIZE), 0);
	*ret_fd = fd;
	return (struct worker_job){.kind = WORK_REGEX_REPLACE,
		.replace = {.content_fd = fd,
			.pattern = STR("(?s)((.{0,60}\\x00){0,60}|(.?.?x){30})+y"),
			.replacement = STR("")}};
}

/* --- what jobs answer --- */

static void no_worker_runs_before_the_first_job(void **state)
{
	(void)state;
	pid_t pid;
	assert_int_equal(children_of(tree_supervisor_pid(tree), &pid), 0);
	assert_int_equal(worker_poll_fd(w), -1);
	assert_search_works();
	assert_int_equal(children_of(tree_supervisor_pid(tree), &pid), 1);
	pid_t first = pid;
	assert_search_works();
	assert_int_equal(worker_pid(), first);
}

static void assert_replaces(const char *text, const char *pattern, const char *replacement,
	const char *flags, uint64_t max, const char *expected, uint64_t count, uint64_t lines)
{
	struct worker_answer *a = NULL;
	char got[1000] = "";
	_cleanup_close_ int fd = content_of(text, strlen(text));
	const struct worker_job job = {.kind = WORK_REGEX_REPLACE,
		.replace = {.content_fd = fd,
			.pattern = str_of(pattern),
			.replacement = str_of(replacement),
			.max_count = max,
			.ignore_case = strchr(flags, 'i') != NULL,
			.multi_line = strchr(flags, 'm') != NULL,
			.dot_all = strchr(flags, 's') != NULL}};
	if (run(&job, &a) != 1)
		fail_msg("%s: %s", pattern, e.text);
	assert_int_equal(pread(a->replace.content_fd, got, sizeof(got) - 1, 0), strlen(expected));
	assert_string_equal(got, expected);
	assert_int_equal(a->replace.size, strlen(expected));
	assert_int_equal(a->replace.replacements, count);
	assert_int_equal(a->replace.lines_changed, lines);
	assert_int_equal(pwrite(a->replace.content_fd, "x", 1, 0), -1);
	worker_answer_free(a);
}

static void expressions_are_replaced(void **state)
{
	(void)state;
	assert_replaces("a1b22c", "[0-9]+", "<\\0>", "", 0, "a<1>b<22>c", 2, 1);
	assert_replaces("a1b22c", "[0-9]+", "", "", 1, "ab22c", 1, 1);
	assert_replaces(
		"key = value\n", "(\\w+) = (\\w+)", "\\2 = \\1", "", 0, "value = key\n", 1, 1);
	assert_replaces("a\nb\nA\n", "^a$", "x", "im", 0, "x\nb\nx\n", 2, 2);
	assert_replaces("a\nb\nA\n", "^a$", "x", "i", 0, "a\nb\nA\n", 0, 0);
	assert_replaces("a\nb\n", "a.b", "c", "s", 0, "c\n", 1, 2);
	assert_replaces("a\nb\n", "a.b", "c", "", 0, "a\nb\n", 0, 0);
	assert_replaces("aab\xc3\xa4", "x*", "-", "", 0, "-a-a-b-\xc3\xa4-", 5, 1);
	assert_replaces("baaac", "a*", "x", "", 0, "xbxcx", 3, 1);
	assert_replaces("one\ntwo\n", "\n", "", "", 0, "onetwo", 2, 2);
	assert_replaces("x", "x", "\\\\\\0\\\\", "", 0, "\\x\\", 1, 1);
	assert_replaces("ab", "(a)|(b)", "[\\1\\2]", "", 0, "[a][b]", 2, 1);
	assert_replaces("", "^", "x", "", 0, "x", 1, 1);
}

static void bad_replaces_are_refused_by_name(void **state)
{
	(void)state;
	static const struct {
		const char *pattern, *replacement, *text;
		int64_t max;
		int code;
	} cases[] = {
		{"(", "", "invalid pattern", 0, -ERR_INVALID_ARGUMENT},
		{"a(", "\\1", "invalid pattern", 0, -ERR_INVALID_ARGUMENT},
		{"a", "\\1", "group 1", 0, -ERR_INVALID_ARGUMENT},
		{"a", "\\n", "backslash", 0, -ERR_INVALID_ARGUMENT},
		{"a", "\\", "backslash", 0, -ERR_INVALID_ARGUMENT},
		{"", "", "1 to", 0, -ERR_INVALID_ARGUMENT},
		{"a", "0123456789", "larger than 20 bytes", 20, -ERR_TOO_LARGE},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct worker_answer *a = NULL;
		_cleanup_close_ int fd = content_of("aaaa", 4);
		const struct worker_job job = {.kind = WORK_REGEX_REPLACE,
			.replace = {.content_fd = fd,
				.pattern = str_of(cases[i].pattern),
				.replacement = str_of(cases[i].replacement),
				.max_output = cases[i].max}};
		assert_int_equal(run(&job, &a), cases[i].code);
		assert_non_null(strstr(e.text, cases[i].text));
		assert_null(a);
	}
	assert_search_works();
}

static void yaml_becomes_json(void **state)
{
	(void)state;
	struct worker_answer *a = NULL;
	char got[200] = "";
	struct worker_job job = {.kind = WORK_YAML,
		.yaml = {.content_fd = -1, .bytes = STR("b: [1, two]\na: {c: null}\n")}};
	for (int by_fd = 0; by_fd < 2; by_fd++) {
		if (run(&job, &a) != 1)
			fail_msg("%s", e.text);
		memset(got, 0, sizeof(got));
		assert_true(pread(a->yaml.json_fd, got, sizeof(got) - 1, 0) > 0);
		assert_string_equal(got, "{\"a\":{\"c\":null},\"b\":[1,\"two\"]}");
		assert_int_equal(a->yaml.documents, 1);
		worker_answer_free(a);
		job.yaml.content_fd = content_of(job.yaml.bytes.p, job.yaml.bytes.n);
	}
	close(job.yaml.content_fd);
	job.yaml.content_fd = -1;
	job.yaml.bytes = STR("a: 1\nb: [\n");
	assert_int_equal(run(&job, &a), -ERR_PARSE);
	assert_non_null(strstr(e.text, "line"));
	job.yaml.bytes = STR("a: &x 1\nb: *x\n");
	assert_int_equal(run(&job, &a), -ERR_PARSE);
}

/* --- what happens when something dies or hangs --- */

static void a_killed_worker_fails_its_job_and_is_replaced(void **state)
{
	(void)state;
	struct worker_answer *a = NULL;
	uint64_t id;
	_cleanup_close_ int fd = -1;
	const struct worker_job job = endless_job(&fd);
	for (int i = 0; i < 5; i++) {
		assert_search_works();
		assert_int_equal(worker_submit(w, &job, &id, &e), 0);
		(void)usleep((useconds_t)(i * 3000));
		assert_int_equal(kill(worker_pid(), SIGKILL), 0);
		assert_int_equal(worker_wait(w, id, &a, &e), -ERR_UNAVAILABLE);
		assert_non_null(strstr(e.text, "was killed by signal 9"));
		assert_search_works();
	}
}

static void a_worker_killed_while_idle_is_replaced_without_a_word(void **state)
{
	(void)state;
	for (int i = 0; i < 5; i++) {
		assert_search_works();
		pid_t pid = worker_pid();
		assert_int_equal(kill(pid, SIGKILL), 0);
		assert_true(gone_within(pid, 10000));
		assert_search_works();
	}
}

static void a_job_past_its_deadline_is_ended(void **state)
{
	(void)state;
	struct worker_answer *a = NULL;
	_cleanup_close_ int fd = -1;
	struct worker_job job = endless_job(&fd);
	job.deadline_ms = 150;
	assert_search_works();
	pid_t pid = worker_pid();
	int64_t begin = loop_now_ms();
	assert_int_equal(run(&job, &a), -ERR_TIMEOUT);
	assert_in_range(loop_now_ms() - begin, 149, 5000);
	assert_true(gone_within(pid, 10000));
	assert_search_works();
}

static void a_cancelled_job_stops_at_once(void **state)
{
	(void)state;
	struct worker_answer *a = NULL;
	uint64_t running, queued;
	_cleanup_close_ int fd = -1;
	const struct worker_job job = endless_job(&fd), next = search_job("one");
	assert_search_works();
	pid_t pid = worker_pid();
	assert_int_equal(worker_submit(w, &job, &running, &e), 0);
	assert_int_equal(worker_submit(w, &next, &queued, &e), 0);
	(void)usleep(20000);
	int64_t begin = loop_now_ms();
	worker_cancel(w, running);
	assert_true(loop_now_ms() - begin < 1000);
	assert_true(gone_within(pid, 10000));
	assert_int_equal(worker_wait(w, queued, &a, &e), 1);
	worker_answer_free(a);
	assert_int_equal(worker_take(w, running, &a, &e), -ERR_INVALID_ARGUMENT);
}

static void memory_beyond_the_limit_fails_the_job_only(void **state)
{
	(void)state;
	struct worker_answer *a = NULL;
	if (SANITIZED) {
		print_message("# SKIP memory limit: a sanitizer needs all the address space\n");
		skip();
	}
	worker_free(w);
	tree_free(tree);
	static const struct tree_options small = {.worker_memory = 48 * 1024 * 1024};
	assert_int_equal(start(&small), 0);
	_cleanup_close_ int fd = -1;
	struct worker_job job = endless_job(&fd);
	assert_search_works();
	int r = run(&job, &a);
	assert_true(r == -ERR_NO_MEMORY || r == -ERR_UNAVAILABLE);
	assert_search_works();
}

static void workers_are_limited_in_number(void **state)
{
	(void)state;
	struct worker *more[3] = {0};
	struct worker_answer *a = NULL;
	const struct worker_job job = search_job("one");
	uint64_t id;
	worker_free(w);
	tree_free(tree);
	static const struct tree_options two = {.max_workers = 2};
	assert_int_equal(start(&two), 0);
	assert_search_works();
	for (int i = 0; i < 2; i++)
		assert_int_equal(tree_worker(tree, &root_fd, 1, &more[i], &e), 0);
	assert_int_equal(worker_submit(more[0], &job, &id, &e), 0);
	assert_int_equal(worker_wait(more[0], id, &a, &e), 1);
	worker_answer_free(a);
	assert_int_equal(worker_submit(more[1], &job, &id, &e), 0);
	assert_int_equal(worker_wait(more[1], id, &a, &e), -ERR_LIMIT);
	assert_non_null(strstr(e.text, "2"));
	worker_free(more[0]); /* makes room */
	int r = 0;
	for (int i = 0; i < 100 && r != 1; i++) {
		assert_int_equal(worker_submit(more[1], &job, &id, &e), 0);
		r = worker_wait(more[1], id, &a, &e);
		(void)usleep(10000);
	}
	assert_int_equal(r, 1);
	worker_answer_free(a);
	worker_free(more[1]);
}

static void without_its_supervisor_nothing_runs_and_core_is_told(void **state)
{
	(void)state;
	struct worker_answer *a = NULL;
	const struct worker_job job = search_job("one");
	assert_search_works();
	pid_t pid = worker_pid();
	assert_int_equal(kill(tree_supervisor_pid(tree), SIGKILL), 0);
	assert_true(gone_within(pid, 10000));
	assert_int_equal(run(&job, &a), -ERR_UNAVAILABLE);
	assert_non_null(strstr(e.text, "supervisor"));
	assert_int_equal(run(&job, &a), -ERR_UNAVAILABLE);
}

static void root_gives_its_workers_a_read_only_mount(void **state)
{
	(void)state;
	char path[64];
	struct statvfs fs;
	if (geteuid() != 0) {
		print_message("# SKIP read-only mount: needs root\n");
		skip();
	}
	assert_search_works();
	(void)snprintf(path, sizeof(path), "/proc/%d/fd/4", (int)worker_pid());
	assert_int_equal(statvfs(path, &fs), 0);
	assert_int_equal(fs.f_flag & (ST_RDONLY | ST_NOSUID | ST_NODEV | ST_NOEXEC),
		ST_RDONLY | ST_NOSUID | ST_NODEV | ST_NOEXEC);
}

/* --- the end of core --- */

struct pids {
	pid_t supervisor, worker;
};

/* A core of its own, in a child: it reports its tree, then works on until it is killed. */
static pid_t start_core(int to, unsigned ms)
{
	pid_t core = fork();
	if (core)
		return core;
	struct pids p;
	struct tree *t;
	struct worker *own;
	struct worker_answer *a;
	uint64_t id;
	_cleanup_close_ int fd = -1;
	const struct worker_job first = search_job("one"), long_job = endless_job(&fd);
	static const struct tree_options plain = {0};
	if (tree_start(&plain, &t, &e) < 0 || tree_worker(t, &root_fd, 1, &own, &e) < 0 ||
		worker_submit(own, &first, &id, &e) < 0 || worker_wait(own, id, &a, &e) < 0)
		_exit(1);
	p.supervisor = tree_supervisor_pid(t);
	(void)children_of(p.supervisor, &p.worker);
	if (ms % 2 && worker_submit(own, &long_job, &id, &e) < 0)
		_exit(1);
	if (write(to, &p, sizeof(p)) != sizeof(p))
		_exit(1);
	for (;;)
		(void)pause();
}

static void nothing_outlives_a_killed_core(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 10; i++) {
		int pipes[2];
		struct pids p;
		assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
		pid_t core = start_core(pipes[1], i);
		close(pipes[1]);
		assert_int_equal(read(pipes[0], &p, sizeof(p)), sizeof(p));
		close(pipes[0]);
		assert_false(is_gone(p.worker));
		(void)usleep(i * 1000);
		assert_int_equal(kill(core, SIGKILL), 0);
		waitpid(core, NULL, 0);
		assert_true(gone_within(p.supervisor, 10000));
		assert_true(gone_within(p.worker, 10000));
	}
}

static void an_orderly_end_leaves_nothing_either(void **state)
{
	(void)state;
	assert_search_works();
	pid_t pid = worker_pid(), supervisor = tree_supervisor_pid(tree);
	worker_free(w);
	w = NULL;
	assert_true(gone_within(pid, 10000));
	tree_free(tree);
	tree = NULL;
	assert_true(is_gone(supervisor));
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(no_worker_runs_before_the_first_job),
		CASE(expressions_are_replaced),
		CASE(bad_replaces_are_refused_by_name),
		CASE(yaml_becomes_json),
		CASE(a_killed_worker_fails_its_job_and_is_replaced),
		CASE(a_worker_killed_while_idle_is_replaced_without_a_word),
		CASE(a_job_past_its_deadline_is_ended),
		CASE(a_cancelled_job_stops_at_once),
		CASE(memory_beyond_the_limit_fails_the_job_only),
		CASE(workers_are_limited_in_number),
		CASE(without_its_supervisor_nothing_runs_and_core_is_told),
		CASE(root_gives_its_workers_a_read_only_mount),
		CASE(nothing_outlives_a_killed_core),
		CASE(an_orderly_end_leaves_nothing_either),
	};
	return cmocka_run_group_tests_name("tree", tests, NULL, NULL);
}
