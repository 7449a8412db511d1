/*
 * Tests of the search engine: it agrees with GNU grep on generated trees, with and without the
 * second thread; it opens nothing that is not a file of the tree; budgets end it honestly; no
 * pattern hangs.
 */
#include "testing.h"

#include "workspace/search.h"
#include "workspace/search_match.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct err e;
static char root[64];
static struct search_pool *pool;

static uint64_t seed = 7;
static unsigned rnd(unsigned below)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(seed >> 33) % below;
}

/* --- trees --- */

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static int make_root(void **state)
{
	(void)state;
	strcpy(root, "/tmp/cloister-search-XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
	(void)state;
	return nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static const char *in_root(const char *name)
{
	static char path[4200];
	(void)snprintf(path, sizeof(path), "%s/%s", root, name);
	return path;
}

static void put(const char *name, const void *content, size_t n)
{
	int fd = open(in_root(name), O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, content, n), (ssize_t)n);
	close(fd);
}

static void put_text(const char *name, const char *text)
{
	put(name, text, strlen(text));
}

static void make_dir(const char *name)
{
	assert_int_equal(mkdir(in_root(name), 0755), 0);
}

/* --- running --- */

struct answer {
	struct search_stats stats;
	int r;
	unsigned n, cap;
	char **lines; /* "path:line:text" */
	struct search_hit last;
	uint64_t column, match_len;
};

static void add_line(struct answer *a, char *text)
{
	if (a->n == a->cap) {
		a->cap = a->cap ? 2 * a->cap : 64;
		a->lines = realloc(a->lines, a->cap * sizeof(char *));
	}
	a->lines[a->n++] = text;
}

static void answer_free(struct answer *a)
{
	for (unsigned i = 0; i < a->n; i++)
		free(a->lines[i]);
	free(a->lines);
	*a = (struct answer){0};
}
#define _cleanup_answer_ _cleanup_(answer_free)

static int collect(void *ctx, const struct search_hit *hit, struct err *err)
{
	(void)err;
	struct answer *a = ctx;
	char *text = NULL;
	assert_true(asprintf(&text, "%.*s:%llu:%.*s", (int)hit->path.n, hit->path.p,
			    (unsigned long long)hit->line, (int)hit->text.n, hit->text.p) > 0);
	add_line(a, text);
	a->last = *hit;
	a->column = hit->column;
	a->match_len = hit->match_len;
	return 0;
}

static const struct search_place whole = {0, {"", 0}};

static struct search_query query(const char *pattern)
{
	return (struct search_query){
		.roots = &whole, .n_roots = 1, .pattern = str_of(pattern), .with_hidden = true};
}

static struct answer run_with(const struct search_query *q, struct search_pool *p)
{
	struct answer a = {0};
	int fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	a.r = search_run(p, q, &fd, 1, collect, &a, &a.stats, &e);
	close(fd);
	return a;
}

static struct answer run(const struct search_query *q)
{
	return run_with(q, NULL);
}

/* The pool's thread has its own descriptor table, so it must be made once the mount is open. */
static int pool_fd = -1;
static struct answer run_in_pool(const struct search_query *q)
{
	struct answer a = {0};
	pool_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(search_pool_new(NULL, NULL, &pool, &e), 0);
	a.r = search_run(pool, q, &pool_fd, 1, collect, &a, &a.stats, &e);
	search_pool_free(pool);
	close(pool_fd);
	return a;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void sort_lines(struct answer *a)
{
	if (a->n)
		qsort(a->lines, a->n, sizeof(char *), by_text);
}

/* grep's answer in the same form. */
static struct answer run_grep(const char *options, const char *pattern)
{
	struct answer a = {0};
	FILE *out = tmpfile();
	pid_t pid = fork();
	if (pid == 0) {
		(void)dup2(fileno(out), 1);
		setenv("LC_ALL", "C.UTF-8", 1);
		if (chdir(root) == 0)
			(void)execlp("grep", "grep", options, "-e", pattern, ".", NULL);
		_exit(126);
	}
	int status;
	waitpid(pid, &status, 0);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 2);
	rewind(out);
	char *line = NULL;
	size_t cap = 0;
	ssize_t n;
	while ((n = getline(&line, &cap, out)) > 0) {
		if (line[n - 1] == '\n')
			line[n - 1] = '\0';
		add_line(&a, strdup(line + 2)); /* without "./" */
	}
	free(line);
	fclose(out);
	return a;
}

static void assert_same(struct answer *mine, struct answer *other, const char *what)
{
	assert_int_equal(mine->r, 0);
	sort_lines(mine);
	sort_lines(other);
	for (unsigned i = 0; i < mine->n && i < other->n; i++)
		if (strcmp(mine->lines[i], other->lines[i]) != 0)
			fail_msg("%s: '%s' instead of '%s'", what, mine->lines[i], other->lines[i]);
	if (mine->n != other->n)
		fail_msg("%s: %u lines instead of %u", what, mine->n, other->n);
}

static size_t random_text(char *out, size_t max, unsigned long_line)
{
	static const char *const words[] = {"foo", "Foo", "bar", "foobar", "FOO", "_foo", "foo1",
		"a", "ab", "aab", "-", "(x)", "\xc3\xa4rger", "x.y", "tab\there", ""};
	size_t n = 0;
	while (n + 40 < max) {
		unsigned in_line = rnd(long_line ? 4000 : 8);
		while (in_line-- && n + 40 < max) {
			const char *w = words[rnd(ARRAY_LEN(words))];
			n += (size_t)sprintf(out + n, "%s%s", w, rnd(4) ? " " : "");
		}
		if (rnd(50) || long_line)
			out[n++] = '\n';
	}
	return n;
}

static void grow_tree(void)
{
	static char text[700000];
	char name[128], dir[100];
	for (unsigned d = 0; d < 20; d++) {
		if (d < 4)
			(void)snprintf(dir, sizeof(dir), "d%u", d);
		else
			(void)snprintf(dir, sizeof(dir), "d%u/s%u", d % 4, d);
		make_dir(dir);
		for (unsigned f = 0; f < 12; f++) {
			(void)snprintf(name, sizeof(name), "%s/%sf%u.%s", dir, rnd(10) ? "" : ".",
				f, rnd(2) ? "c" : "md");
			put(name, text, random_text(text, rnd(5) ? rnd(3000) + 50 : 50, 0));
		}
	}
	put("large", text, random_text(text, sizeof(text), 0));
	put("empty", "", 0);
	put("binary", "foo\0foo\n", 8);
	put_text("no newline at the end", "bar\nfoo");
	for (unsigned f = 0; f < 300; f++) {
		(void)snprintf(name, sizeof(name), "d0/many%u", f);
		put(name, text, random_text(text, 200, 0));
	}
	assert_int_equal(symlink("/etc", in_root("out")), 0);
	assert_int_equal(symlink("d1", in_root("inside")), 0);
	assert_int_equal(mkfifo(in_root("pipe"), 0600), 0);
}

static void agrees_with_grep_on_literals_and_expressions(void **state)
{
	(void)state;
	grow_tree();
	static const struct {
		const char *options, *pattern;
		bool regex, icase, word;
	} cases[] = {
		{"-rnIF", "foo", false, false, false},
		{"-rnIF", "foobar", false, false, false},
		{"-rnIF", "x.y", false, false, false},
		{"-rnIF", "\xc3\xa4rger", false, false, false},
		{"-rnIF", " ", false, false, false},
		{"-rnIF", "a", false, false, false},
		{"-rnIFi", "foo", false, true, false},
		{"-rnIFi", "FooBar", false, true, false},
		{"-rnIFi", "\xc3\x84RGER", false, true, false},
		{"-rnIFw", "foo", false, false, true},
		{"-rnIFwi", "foo", false, true, true},
		{"-rnIF", "not there at all", false, false, false},
		{"-rnIE", "fo+b?a?r", true, false, false},
		{"-rnIE", "^foo", true, false, false},
		{"-rnIE", "foo$", true, false, false},
		{"-rnIE", "^$", true, false, false},
		{"-rnIE", "[^a]*bar.*(a|b)+", true, false, false},
		{"-rnIEi", "^(foo|bar) .*x", true, true, false},
		{"-rnIE", "a*", true, false, false},
		{"-rnIE", "b\\b", true, false, false},
		{"-rnIE", "[[:space:]]+foo", true, false, false},
		{"-rnIE", ".\xc3\xa4", true, false, false},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct search_query q = query(cases[i].pattern);
		q.regex = cases[i].regex;
		q.ignore_case = cases[i].icase;
		q.whole_word = cases[i].word;
		for (int with_pool = 0; with_pool < 2; with_pool++) {
			_cleanup_answer_ struct answer mine = with_pool ? run_in_pool(&q) : run(&q);
			_cleanup_answer_ struct answer theirs =
				run_grep(cases[i].options, cases[i].pattern);
			bool cut = theirs.n > SEARCH_RESULTS_MAX;
			if (cut) {
				assert_int_equal(mine.n, SEARCH_RESULTS_MAX);
				assert_int_equal(mine.stats.stop, SEARCH_RESULTS);
				continue;
			}
			assert_same(&mine, &theirs, cases[i].pattern);
			assert_int_equal(mine.stats.stop, SEARCH_COMPLETE);
			assert_int_equal(mine.stats.skipped_binary, 1);
			assert_int_equal(mine.stats.skipped_links, 2);
			assert_int_equal(mine.stats.skipped_special, 1);
		}
	}
}

static void the_answer_does_not_depend_on_the_threads(void **state)
{
	(void)state;
	grow_tree();
	struct search_query q = query("foo");
	_cleanup_answer_ struct answer first = run(&q);
	for (int i = 0; i < 20; i++) {
		q.max_results = i < 10 ? 0 : 100;
		_cleanup_answer_ struct answer again = run_in_pool(&q);
		assert_int_equal(again.n, i < 10 ? first.n : 100);
		for (unsigned k = 0; k < again.n; k++)
			assert_string_equal(again.lines[k], first.lines[k]);
	}
}

static void expressions_stay_within_their_line(void **state)
{
	(void)state;
	put_text("a", "one\ntwo\n\nthree x\n");
	static const struct {
		const char *pattern;
		unsigned n;
	} cases[] = {{"one[^x]*x", 0}, {"one\\s+two", 0}, {"\\s+three", 0}, {"(?s)one.*three", 0},
		{"two\\n", 0}, {"\\Aone", 1}, {"\\Atwo", 1}, {"two\\z", 1}, {"x\\z", 1},
		{"three\\Cx", 1}, {"one\\C", 0}, {"^\\s*$", 1}, {"[^x]*", 4}, {"$", 4}};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct search_query q = query(cases[i].pattern);
		q.regex = true;
		_cleanup_answer_ struct answer a = run(&q);
		if (a.r < 0)
			fail_msg("%s: %s", cases[i].pattern, e.text);
		if (a.n != cases[i].n)
			fail_msg("%s: %u lines", cases[i].pattern, a.n);
	}
}

/* --- windows: a slow and obvious search over the whole text --- */

struct window_check {
	const char *text;
	size_t n, at;
	const char *needle;
	unsigned before, after, hits;
	uint64_t line;
};

static bool next_line(struct window_check *w, struct str *ret)
{
	if (w->at >= w->n)
		return false;
	const char *nl = memchr(w->text + w->at, '\n', w->n - w->at);
	size_t end = nl ? (size_t)(nl - w->text) : w->n;
	*ret = (struct str){w->text + w->at, end - w->at};
	w->at = end + 1;
	w->line++;
	return true;
}

static int check_hit(void *ctx, const struct search_hit *hit, struct err *err)
{
	(void)err;
	struct window_check *w = ctx;
	struct str line, above[SEARCH_CONTEXT_MAX] = {{0}};
	unsigned n_above = 0;
	size_t back = w->at;
	/* go on from the last hit's line, keeping the lines above */
	for (unsigned i = 0; i < w->before && back > 0; i++) {
		const char *nl = back > 1 ? memrchr(w->text, '\n', back - 1) : NULL;
		back = nl ? (size_t)(nl - w->text) + 1 : 0;
	}
	uint64_t skip = 0;
	for (size_t i = back; i < w->at; i++)
		skip += w->text[i] == '\n';
	w->line -= skip;
	w->at = back;
	for (;;) {
		assert_true(next_line(w, &line));
		if (skip) {
			skip--;
		} else if (memmem(line.p, line.n, w->needle, strlen(w->needle))) {
			break;
		}
		if (n_above == w->before && n_above)
			memmove(above, above + 1, --n_above * sizeof(above[0]));
		if (w->before)
			above[n_above++] = line;
	}
	assert_int_equal(hit->line, w->line);
	assert_true(str_eq(hit->text, line));
	assert_int_equal(hit->n_before, n_above);
	for (unsigned i = 0; i < n_above; i++)
		assert_true(str_eq(hit->before[i], above[i]));
	struct window_check ahead = *w;
	for (unsigned i = 0; i < hit->n_after; i++) {
		assert_true(next_line(&ahead, &line));
		assert_true(str_eq(hit->after[i], line));
	}
	assert_true(hit->n_after == w->after || ahead.at >= ahead.n);
	w->hits++;
	return 0;
}

static void context_and_numbers_are_right_across_windows(void **state)
{
	(void)state;
	enum { SIZE = 1500000 };
	char *text = malloc(SIZE);
	for (unsigned round = 0; round < 12; round++) {
		size_t n = 0;
		while (n < SIZE - 400) {
			unsigned len = rnd(round < 6 ? 60 : 300);
			for (unsigned i = 0; i < len; i++)
				text[n++] = (char)('a' + (int)rnd(26));
			if (rnd(round % 2 ? 500 : 20) == 0) {
				memcpy(text + n, "NEEDLE", 6);
				n += 6;
			}
			text[n++] = '\n';
		}
		put("f", text, n);
		struct search_query q = query("NEEDLE");
		q.before = rnd(4) * rnd(6);
		q.after = rnd(4) * rnd(6);
		q.regex = round % 3 == 0;
		struct window_check w = {.text = text,
			.n = n,
			.needle = "NEEDLE",
			.before = q.before,
			.after = q.after};
		struct search_stats st;
		int fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
		assert_int_equal(search_run(NULL, &q, &fd, 1, check_hit, &w, &st, &e), 0);
		close(fd);
		unsigned expected = 0;
		for (const char *p = text; (p = memmem(p, n - (size_t)(p - text), "NEEDLE", 6));
			p++)
			expected++;
		if (st.stop == SEARCH_COMPLETE)
			assert_int_equal(w.hits, expected);
		else
			assert_true(w.hits < expected && w.hits > 0);
		assert_true(st.bytes_scanned <= n);
	}
	free(text);
}

static void long_lines_are_cut_around_the_match(void **state)
{
	(void)state;
	char *text = malloc(400001);
	memset(text, 'x', 400000);
	memcpy(text + 5000, "needle", 6);
	text[400000] = '\n';
	put("long", text, 400001);
	struct search_query q = query("needle");
	int fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct answer a = {0};
	assert_int_equal(search_run(NULL, &q, &fd, 1, collect, &a, &a.stats, &e), 0);
	close(fd);
	assert_int_equal(a.n, 1);
	assert_int_equal(a.column, 5001);
	assert_int_equal(a.last.line, 1);
	assert_true(a.last.text_cut);
	assert_int_equal(a.last.text.n, SEARCH_LINE_BYTES);
	assert_true(a.last.text_skip <= 5000 && a.last.text_skip + SEARCH_LINE_BYTES > 5006);
	answer_free(&a);
	free(text);
}

/* --- matching --- */

static bool never(void *ctx)
{
	(void)ctx;
	return false;
}

static void literals_are_found_where_memmem_finds_them(void **state)
{
	(void)state;
	char text[300 + MATCH_SLACK], needle[40];
	for (int round = 0; round < 20000; round++) {
		unsigned alphabet = 1 + rnd(4);
		size_t n = rnd(300), k = 1 + rnd(round % 3 ? 6 : 39);
		for (size_t i = 0; i < sizeof(text); i++)
			text[i] = (char)("abcd"[rnd(alphabet)]);
		for (size_t i = 0; i < k; i++)
			needle[i] = (char)("abcd"[rnd(alphabet)]);
		struct search_query q = {.pattern = {needle, k}};
		q.ignore_case = rnd(2);
		if (q.ignore_case)
			for (size_t i = 0; i < n; i++)
				if (rnd(2))
					text[i] = (char)(text[i] & ~0x20);
		char lower[300];
		for (size_t i = 0; i < n; i++)
			lower[i] = q.ignore_case ? (char)(text[i] | 0x20) : text[i];
		struct matcher *m = NULL;
		assert_int_equal(matcher_new(&q, &m, &e), 0);
		size_t from = n ? rnd((unsigned)n) : 0;
		const char *at = memmem(lower + from, n - from, needle, k);
		struct match_span s;
		bool found = matcher_find(m, text, n, from, never, NULL, &s);
		assert_int_equal(found, at != NULL);
		if (found)
			assert_int_equal(s.from, at - lower);
		matcher_free(m);
	}
}

/* CPU time, since the machine may be busy with something else. */
static double seconds_since(const struct timespec *t)
{
	struct timespec now;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)(now.tv_sec - t->tv_sec) + (double)(now.tv_nsec - t->tv_nsec) / 1e9;
}

static void no_pattern_takes_more_than_linear_time(void **state)
{
	(void)state;
	enum { SIZE = 4 * 1024 * 1024 };
	char *text = malloc(SIZE);
	memset(text, 'a', SIZE);
	for (size_t i = 999; i < SIZE; i += 1000)
		text[i] = '\n';
	put("f", text, SIZE);
	char many[800];
	memset(many, 'a', sizeof(many) - 1);
	many[sizeof(many) - 1] = '\0';
	many[400] = 'b'; /* nearly matches everywhere, and its rare byte is rare */
	char twice[800];
	memcpy(twice, many, sizeof(many));
	twice[400] = 'a';
	twice[798] = 'A';
	static const char *const expressions[] = {"^(a+)+$b", "(a|aa)*c", "(a*)*(a*)*(a*)*b",
		"(((a{1,30}){1,30}){1,1})b", "a{500}b", "(x+x+)+y", "(.*)(.*)(.*)(.*)(.*)[^a]",
		"(?i)((a|A)?){20}(a|A){20}b"};
	struct timespec t;
	for (int icase = 0; icase < 2; icase++) {
		const char *const literals[] = {many, twice};
		for (size_t i = 0; i < ARRAY_LEN(literals); i++) {
			struct search_query q = query(literals[i]);
			q.ignore_case = icase;
			q.max_ms = 20000;
			clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
			_cleanup_answer_ struct answer a = run(&q);
			assert_int_equal(a.stats.stop, a.n ? SEARCH_ANSWER : SEARCH_COMPLETE);
			assert_true(seconds_since(&t) < 10);
		}
	}
	for (size_t i = 0; i < ARRAY_LEN(expressions); i++) {
		struct search_query q = query(expressions[i]);
		q.regex = true;
		q.max_ms = 1000;
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
		_cleanup_answer_ struct answer a = run(&q);
		assert_true(a.r == 0 || e.code == ERR_INVALID_ARGUMENT);
		assert_true(seconds_since(&t) < 5);
	}
	free(text);
}

static void bad_queries_are_refused_by_name(void **state)
{
	(void)state;
	static const char *const bad[] = {"(", "a)(b", "[z-a]", "a{2000}", "\\8", "(?<n>x)", "*a"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct search_query q = query(bad[i]);
		q.regex = true;
		q.whole_word = i & 1;
		struct answer a = run(&q);
		assert_int_equal(a.r, -ERR_INVALID_ARGUMENT);
		assert_non_null(strstr(e.text, "invalid pattern: "));
	}
	struct search_query q = query("");
	assert_int_equal(run(&q).r, -ERR_INVALID_ARGUMENT);
	q = query("x");
	static const char *const unclosed[] = {"[a", NULL};
	q.include = unclosed;
	assert_int_equal(run(&q).r, -ERR_INVALID_ARGUMENT);
	static const struct search_place wrong[] = {{0, {"..", 2}}, {0, {"/etc", 4}},
		{0, {"a/../b", 6}}, {0, {"a//b", 4}}, {0, {"a/", 2}}};
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		q = query("x");
		q.roots = &wrong[i];
		assert_int_equal(run(&q).r, -ERR_PATH_INVALID);
	}
	static const struct search_place no_mount = {1, {"", 0}};
	q = query("x");
	q.roots = &no_mount;
	assert_int_equal(run(&q).r, -ERR_INVALID_ARGUMENT);
	static const struct search_place missing = {0, {"nothing", 7}};
	q.roots = &missing;
	assert_int_equal(run(&q).r, -ERR_NOT_FOUND);
}

/* --- which files --- */

static void assert_paths(struct answer *a, const char *expected)
{
	char got[1000] = "";
	for (unsigned i = 0; i < a->n; i++) {
		*strchr(a->lines[i], ':') = '\0';
		strcat(got, a->lines[i]);
		strcat(got, " ");
	}
	assert_string_equal(got, expected);
}

static void globs_hidden_places_and_roots_choose_the_files(void **state)
{
	(void)state;
	static const char *const dirs[] = {"src", "src/deep", "node_modules", ".git", "shared"};
	static const char *const files[] = {"a.c", "src/b.c", "src/b.h", "src/deep/c.c",
		"node_modules/d.c", ".git/e.c", ".hidden.c", "shared/f.c"};
	for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
		make_dir(dirs[i]);
	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		put_text(files[i], "x\n");
	struct search_query q = query("x");
	_cleanup_answer_ struct answer all = run(&q);
	assert_paths(&all, ".hidden.c a.c .git/e.c node_modules/d.c shared/f.c src/b.c src/b.h "
			   "src/deep/c.c ");

	static const char *const defaults[] = {".git", "node_modules", NULL};
	static const char *const includes[] = {"*.c", NULL}, *const excludes[] = {"src/d*", NULL};
	static const struct search_place hidden[] = {{0, {"shared", 6}}, {1, {"src", 3}}};
	q.with_hidden = false;
	q.default_exclude = defaults;
	q.include = includes;
	q.exclude = excludes;
	q.hidden_places = hidden;
	q.n_hidden_places = 2;
	_cleanup_answer_ struct answer some = run(&q);
	assert_paths(&some, "a.c src/b.c ");

	static const struct search_place roots[] = {
		{0, {"src/deep", 8}}, {0, {"a.c", 3}}, {0, {"src/b.h", 7}}};
	struct search_query r = query("x");
	r.roots = roots;
	r.n_roots = 3;
	_cleanup_answer_ struct answer chosen = run(&r);
	assert_paths(&chosen, "c.c   ");
	assert_int_equal(chosen.last.root, 2);
}

static void links_and_special_files_are_never_opened(void **state)
{
	(void)state;
	make_dir("d");
	put_text("d/one", "secret\n");
	put_text("two", "secret\n");
	char from[128];
	strcpy(from, in_root("two"));
	assert_int_equal(link(from, in_root("three")), 0);
	assert_int_equal(symlink("d", in_root("link")), 0);
	assert_int_equal(symlink("/etc/passwd", in_root("passwd")), 0);
	assert_int_equal(mkfifo(in_root("fifo"), 0666), 0);
	struct search_query q = query("secret");
	q.strict_links = true;
	_cleanup_answer_ struct answer a = run(&q);
	assert_paths(&a, "d/one ");
	assert_int_equal(a.stats.skipped_links, 4);
	assert_int_equal(a.stats.skipped_special, 1);
	static const struct search_place by_link[] = {
		{0, {"link", 4}}, {0, {"link/one", 8}}, {0, {"passwd", 6}}, {0, {"fifo", 4}}};
	static const int codes[] = {
		-ERR_LINK_REFUSED, -ERR_NOT_FOUND, -ERR_LINK_REFUSED, -ERR_NOT_REGULAR};
	for (size_t i = 0; i < ARRAY_LEN(by_link); i++) {
		q = query("secret");
		q.roots = &by_link[i];
		struct answer refused = run(&q);
		assert_int_equal(refused.r, codes[i]);
		assert_int_equal(refused.n, 0);
	}
}

static void another_mount_inside_is_not_entered(void **state)
{
	(void)state;
	make_dir("outside");
	make_dir("tree");
	make_dir("tree/inner");
	put_text("outside/f", "secret\n");
	put_text("tree/g", "secret\n");
	char from[128];
	strcpy(from, in_root("outside"));
	if (geteuid() != 0 || unshare(CLONE_NEWNS) < 0 ||
		mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		mount(from, in_root("tree/inner"), NULL, MS_BIND, NULL) < 0) {
		print_message("# SKIP another mount: needs root\n");
		skip();
	}
	static const struct search_place tree = {0, {"tree", 4}};
	struct search_query q = query("secret");
	q.roots = &tree;
	_cleanup_answer_ struct answer a = run(&q);
	umount2(in_root("tree/inner"), MNT_DETACH);
	assert_paths(&a, "g ");
	assert_int_equal(a.stats.skipped_unreadable, 1);
}

/* --- budgets --- */

static void truncation_is_said_only_when_it_is_true(void **state)
{
	(void)state;
	put_text("a", "x\nx\n");
	put_text("b", "x\ny\n");
	struct search_query q = query("x");
	q.max_results = 3;
	_cleanup_answer_ struct answer exact = run(&q);
	assert_int_equal(exact.n, 3);
	assert_int_equal(exact.stats.stop, SEARCH_COMPLETE);
	q.max_results = 2;
	_cleanup_answer_ struct answer cut = run(&q);
	assert_int_equal(cut.n, 2);
	assert_int_equal(cut.stats.hits, 2);
	assert_int_equal(cut.stats.stop, SEARCH_RESULTS);
}

static void budgets_of_bytes_time_and_size_are_kept(void **state)
{
	(void)state;
	char name[32], *text = malloc(200000);
	for (size_t i = 0; i < 200000; i++)
		text[i] = i % 50 ? 'y' : '\n';
	for (int i = 0; i < 50; i++) {
		(void)snprintf(name, sizeof(name), "f%02d", i);
		put(name, text, 200000);
	}
	struct search_query q = query("x");
	q.max_bytes = 1000000;
	_cleanup_answer_ struct answer bytes = run(&q);
	assert_int_equal(bytes.stats.stop, SEARCH_BYTES);
	assert_in_range(bytes.stats.bytes_scanned, 1000000, 1400000);
	q.max_bytes = 0;
	q.max_file_bytes = 150000;
	_cleanup_answer_ struct answer size = run(&q);
	assert_int_equal(size.stats.skipped_large, 50);
	assert_int_equal(size.stats.files_scanned, 0);
	q.max_file_bytes = 0;
	q.pattern = STR("((y*)*z)*|([y-z]{0,50}[^y]){1,9}q");
	q.regex = true;
	q.max_ms = 1;
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	_cleanup_answer_ struct answer timed = run(&q);
	assert_true(seconds_since(&t) < 3);
	(void)timed;
	q = query("y");
	q.before = q.after = SEARCH_CONTEXT_MAX;
	_cleanup_answer_ struct answer big = run(&q);
	assert_int_equal(big.stats.stop, SEARCH_ANSWER);
	free(text);
}

static void a_very_deep_tree_is_searched_to_its_limit(void **state)
{
	(void)state;
	int at = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (int i = 0; i < 400; i++) {
		assert_int_equal(mkdirat(at, "d", 0755), 0);
		int next = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		close(at);
		at = next;
	}
	int f = openat(at, "f", O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
	assert_int_equal(write(f, "x\n", 2), 2);
	close(f);
	close(at);
	put_text("z", "x\n");
	struct search_query q = query("x");
	_cleanup_answer_ struct answer a = run(&q);
	assert_int_equal(a.n, 1);
	assert_int_equal(a.stats.stop, SEARCH_DEPTH);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, make_root, remove_root)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(agrees_with_grep_on_literals_and_expressions),
		CASE(the_answer_does_not_depend_on_the_threads),
		CASE(expressions_stay_within_their_line),
		CASE(context_and_numbers_are_right_across_windows),
		CASE(long_lines_are_cut_around_the_match),
		CASE(literals_are_found_where_memmem_finds_them),
		CASE(no_pattern_takes_more_than_linear_time),
		CASE(bad_queries_are_refused_by_name),
		CASE(globs_hidden_places_and_roots_choose_the_files),
		CASE(links_and_special_files_are_never_opened),
		CASE(another_mount_inside_is_not_entered),
		CASE(truncation_is_said_only_when_it_is_true),
		CASE(budgets_of_bytes_time_and_size_are_kept),
		CASE(a_very_deep_tree_is_searched_to_its_limit),
	};
	return cmocka_run_group_tests_name("search", tests, NULL, NULL);
}
