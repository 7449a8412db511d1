/* Tests of workspace/textdiff: a diff is bounded in time and size, and applying it to one text
 * gives the other. */
#include "testing.h"

#include "apply.h"
#include "workspace/textdiff.h"

#include <time.h>

static const struct textdiff_options whole = {"a/f", "b/f", TEXTDIFF_CONTEXT, SIZE_MAX};

static struct buf diff_of(struct str a, struct str b, const struct textdiff_options *opt, bool *cut)
{
	struct err err;
	struct buf out = buf_init(256 << 20);
	int r = textdiff(a, b, opt, &out, cut, &err);
	if (r < 0)
		fail_msg("%s", err.text);
	return out;
}

static void assert_applies(struct str a, struct str b, struct str diff)
{
	struct buf back = buf_init(256 << 20);
	bool ok = diff.n == 0 ? str_eq(a, b) : diff_apply(a, diff, &back);
	if (!ok || (diff.n && !str_eq((struct str){buf_str(&back), back.len}, b)))
		fail_msg("does not apply:\n%.*s", (int)MIN(diff.n, (size_t)2000), diff.p);
	buf_done(&back);
}

static double seconds(void)
{
	struct timespec t;
	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static uint32_t rnd_state = 1;
static uint32_t rnd(uint32_t n)
{
	rnd_state = rnd_state * 1664525 + 1013904223;
	return (rnd_state >> 8) % n;
}

/* Lines out of an alphabet of `kinds`; sometimes without a newline at the end. */
static struct buf random_text(uint32_t lines, uint32_t kinds)
{
	struct buf b = buf_init(64 << 20);
	for (uint32_t i = 0; i < lines; i++)
		buf_printf(&b, "%s%u\n", rnd(9) ? "" : "\r", rnd(kinds));
	if (b.len && rnd(4) == 0)
		b.data[--b.len] = 0;
	return b;
}

static struct str str_buf(const struct buf *b)
{
	return (struct str){buf_str(b), b->len};
}

static void two_long_texts_without_order_take_bounded_time(void **state)
{
	(void)state;
	bool cut;
	struct buf a = random_text(300000, 50), b = random_text(300000, 50);
	double t = seconds();
	struct buf d = diff_of(str_buf(&a), str_buf(&b), &whole, &cut);
	t = seconds() - t;
	assert_applies(str_buf(&a), str_buf(&b), str_buf(&d));
	if (t > 10)
		fail_msg("%.1f s", t);
	buf_done(&a), buf_done(&b), buf_done(&d);
}

static void reversed_unique_lines_take_bounded_time(void **state)
{
	(void)state;
	bool cut;
	enum { N = 200000 };
	struct buf a = buf_init(64 << 20), b = buf_init(64 << 20);
	for (int i = 0; i < N; i++) {
		buf_printf(&a, "%d\n", i);
		buf_printf(&b, "%d\n", N - i);
	}
	double t = seconds();
	struct buf d = diff_of(str_buf(&a), str_buf(&b), &whole, &cut);
	t = seconds() - t;
	assert_applies(str_buf(&a), str_buf(&b), str_buf(&d));
	if (t > 10)
		fail_msg("%.1f s", t);
	buf_done(&a), buf_done(&b), buf_done(&d);
}

static void what_is_too_large_is_said_in_one_line(void **state)
{
	(void)state;
	bool cut;
	size_t n = TEXTDIFF_LINES_MAX + 1;
	char *many = malloc(n);
	memset(many, '\n', n);
	struct buf d = diff_of((struct str){many, n}, STR("a\n"), &whole, &cut);
	assert_string_equal(buf_str(&d), "Files a/f and b/f differ (too large to compare)\n");
	buf_done(&d);
	free(many);
}

static void binary_content_is_not_shown(void **state)
{
	(void)state;
	bool cut;
	static const struct str binary[] = {
		{"a\0b\n", 4}, {"\xff\xfe\n", 3}, {"\xed\xa0\x80\n", 4}};
	for (size_t i = 0; i < ARRAY_LEN(binary); i++) {
		struct buf d = diff_of(binary[i], STR("a\n"), &whole, &cut);
		assert_string_equal(buf_str(&d), "Binary files a/f and b/f differ\n");
		buf_done(&d);
	}
}

static void a_cut_diff_ends_after_a_whole_line_and_says_so(void **state)
{
	(void)state;
	struct buf a = random_text(60, 20), b = random_text(60, 20);
	bool cut;
	struct buf all = diff_of(str_buf(&a), str_buf(&b), &whole, &cut);
	assert_false(cut);
	for (size_t max = 0; max <= all.len; max++) {
		struct textdiff_options opt = whole;
		opt.max_bytes = max;
		struct buf d = diff_of(str_buf(&a), str_buf(&b), &opt, &cut);
		assert_true(d.len <= max);
		assert_int_equal(cut, max < all.len);
		assert_memory_equal(buf_str(&d), all.data, d.len);
		assert_true(d.len == 0 || d.data[d.len - 1] == '\n');
		buf_done(&d);
	}
	buf_done(&a), buf_done(&b), buf_done(&all);
}

static void equal_texts_have_no_diff(void **state)
{
	(void)state;
	bool cut = true;
	struct buf d = diff_of(STR("a\nb"), STR("a\nb"), &whole, &cut);
	assert_int_equal(d.len, 0);
	assert_false(cut);
	buf_done(&d);
}

static const struct {
	const char *a, *b, *diff;
} cells[] = {
	{"", "x\n", "--- a/f\n+++ b/f\n@@ -0,0 +1 @@\n+x\n"},
	{"x\n", "", "--- a/f\n+++ b/f\n@@ -1 +0,0 @@\n-x\n"},
	{"x", "x\n", "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-x\n\\ No newline at end of file\n+x\n"},
	{"1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nV\n6\n7\n8\n9\n",
		"--- a/f\n+++ b/f\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+V\n 6\n 7\n 8\n"},
	{"a\r\n", "a\n", "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\r\n+a\n"},
};

static void small_diffs_are_as_gnu_diff_writes_them(void **state)
{
	(void)state;
	bool cut;
	for (size_t i = 0; i < ARRAY_LEN(cells); i++) {
		struct buf d = diff_of(str_of(cells[i].a), str_of(cells[i].b), &whole, &cut);
		assert_string_equal(buf_str(&d), cells[i].diff);
		buf_done(&d);
	}
}

static void applying_a_diff_to_one_text_gives_the_other(void **state)
{
	(void)state;
	bool cut;
	for (int i = 0; i < 20000; i++) {
		struct buf a = random_text(rnd(30), 1 + rnd(12)),
			   b = random_text(rnd(30), 1 + rnd(12));
		struct textdiff_options opt = whole;
		opt.context = rnd(5);
		struct buf d = diff_of(str_buf(&a), str_buf(&b), &opt, &cut);
		assert_applies(str_buf(&a), str_buf(&b), str_buf(&d));
		buf_done(&a), buf_done(&b), buf_done(&d);
	}
}

/* Number of changed lines of a shortest script, the slow way. */
static unsigned shortest(struct str a, struct str b)
{
	struct str la[64], lb[64];
	unsigned n = 0, m = 0, lcs[65][65] = {{0}};
	for (size_t off = 0; off < a.n; off += la[n++].n)
		la[n] = apply_line(a, off);
	for (size_t off = 0; off < b.n; off += lb[m++].n)
		lb[m] = apply_line(b, off);
	for (unsigned i = n; i-- > 0;)
		for (unsigned j = m; j-- > 0;)
			lcs[i][j] = str_eq(la[i], lb[j]) ? lcs[i + 1][j + 1] + 1
							 : MAX(lcs[i + 1][j], lcs[i][j + 1]);
	return n + m - 2 * lcs[0][0];
}

static void an_ordinary_diff_is_a_shortest_one(void **state)
{
	(void)state;
	bool cut;
	for (int i = 0; i < 20000; i++) {
		struct buf a = random_text(rnd(25), 1 + rnd(8)),
			   b = random_text(rnd(25), 1 + rnd(8));
		struct buf d = diff_of(str_buf(&a), str_buf(&b), &whole, &cut);
		unsigned changed = 0, head = 0;
		for (size_t off = 0; off < d.len; head++) {
			struct str l = apply_line(str_buf(&d), off);
			changed += head >= 2 && (l.p[0] == '+' || l.p[0] == '-');
			off += l.n;
		}
		assert_int_equal(changed, shortest(str_buf(&a), str_buf(&b)));
		buf_done(&a), buf_done(&b), buf_done(&d);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_long_texts_without_order_take_bounded_time),
		cmocka_unit_test(reversed_unique_lines_take_bounded_time),
		cmocka_unit_test(what_is_too_large_is_said_in_one_line),
		cmocka_unit_test(binary_content_is_not_shown),
		cmocka_unit_test(a_cut_diff_ends_after_a_whole_line_and_says_so),
		cmocka_unit_test(equal_texts_have_no_diff),
		cmocka_unit_test(small_diffs_are_as_gnu_diff_writes_them),
		cmocka_unit_test(applying_a_diff_to_one_text_gives_the_other),
		cmocka_unit_test(an_ordinary_diff_is_a_shortest_one),
	};
	return cmocka_run_group_tests_name("textdiff", tests, NULL, NULL);
}
