/* Tests of base/glob: what matches, what is refused, and that no pattern can take long. */
#include "testing.h"

#include "base/glob.h"
#include "base/limits.h"

static bool matches(const char *pattern, unsigned flags, const char *path)
{
	struct err err;
	struct glob *g = NULL;
	int r = glob_compile(str_of(pattern), flags, &g, &err);
	if (r < 0)
		fail_msg("%s: %s", pattern, err.text);
	bool m = glob_match(g, str_of(path));
	glob_free(g);
	return m;
}

static const struct {
	const char *pattern;
	unsigned flags;
	const char *path;
	bool matches;
} cells[] = {
	{"*.c", 0, "a.c", true},
	{"*.c", 0, ".c", true},
	{"*.c", 0, "d/a.c", false},
	{"*.c", GLOB_BASENAME, "d/e/a.c", true},
	{"*.c", GLOB_BASENAME, "a.cc", false},
	{"*", 0, "", true},
	{"*", 0, "a/b", false},
	{"**", 0, "a/b", true},
	{"a?c", 0, "abc", true},
	{"a?c", 0, "a/c", false},
	{"a?c", 0,
		"a\xc3\xa4"
		"c",
		true},
	{"a?c", 0,
		"a\xff"
		"c",
		true},
	{"a??c", 0,
		"a\xc3\xa4"
		"c",
		false},
	{"[abc]", 0, "b", true},
	{"[!abc]", 0, "b", false},
	{"[^abc]", 0, "d", true},
	{"[]]", 0, "]", true},
	{"[!]]", 0, "]", false},
	{"[a-c]x", 0, "bx", true},
	{"[a-]", 0, "-", true},
	{"[a-c]", 0, "-", false},
	{"[[:digit:]]*", 0, "7up", true},
	{"[[:digit:]]*", 0, "up", false},
	{"[\xc3\xa0-\xc3\xaf]", 0, "\xc3\xa4", true},
	{"[!a]", 0, "/", false},
	{"{a,b}", 0, "a", true},
	{"{a,b}", 0, "b", true},
	{"{a,b}", 0, "c", false},
	{"{a,b}", 0, "", false},
	{"x{,y}z", 0, "xz", true},
	{"x{,y}z", 0, "xyz", true},
	{"*.{c,h{,h}}", 0, "a.hh", true},
	{"*.{c,h{,h}}", 0, "a.cc", false},
	{"{a/*,b}/c", 0, "a/x/c", true},
	{"{a/*,b}/c", 0, "b/c", true},
	{"**/a", 0, "a", true},
	{"**/a", 0, "x/y/a", true},
	{"**/a", 0, "xa", false},
	{"a/**/b", 0, "a/b", true},
	{"a/**/b", 0, "a/x/y/b", true},
	{"a/**/b", 0, "axb", false},
	{"a/**", 0, "a/b/c", true},
	{"a/**", 0, "a", false},
	{"a/**", 0, "ab", false},
	{"a**b", 0, "a/x/b", true},
	{"**/*.c", 0, "m.c", true},
	{"**/*.c", 0, "x/m.c", true},
	{"\\*", 0, "*", true},
	{"\\*", 0, "a", false},
	{"a\\/b", 0, "a/b", true},
	{"./a", 0, "a", true},
	{"/a", GLOB_BASENAME, "a", true},
	{"/a", GLOB_BASENAME, "b/a", false},
	{"A*", GLOB_ICASE, "abc", true},
	{"[A-C]", GLOB_ICASE, "b", true},
	{"A", 0, "a", false},
	{"a/b", GLOB_BASENAME, "x/a/b", false},
	{"", 0, "", true},
	{"", 0, "a", false},
	{"*a*b", 0, "xaxb", true},
	{"*a*b", 0, "xaxbx", false},
	{"[a\\]]", 0, "]", true},
};

static void each_pattern_matches_what_it_says(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cells); i++)
		if (matches(cells[i].pattern, cells[i].flags, cells[i].path) != cells[i].matches)
			fail_msg("pattern '%s' on '%s'", cells[i].pattern, cells[i].path);
}

static const struct {
	const char *pattern, *says;
} refused[] = {
	{"a[b", "pattern, byte 4: the set is not closed by ]"},
	{"{a,b", "pattern, byte 5: the group is not closed by }"},
	{"[c-a]", "pattern, byte 5: the range is reversed"},
	{"[[:nope:]]", "pattern, byte 2: no such character class"},
	{"a\\", "pattern, byte 2: a backslash at the end"},
	{"{{{{{{{{{a}}}}}}}}}", "pattern, byte 10: braces are nested too deeply"},
};

static void broken_patterns_are_refused_with_their_place(void **state)
{
	(void)state;
	struct err err;
	struct glob *g = NULL;
	for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
		assert_int_equal(glob_compile(str_of(refused[i].pattern), 0, &g, &err),
			-ERR_INVALID_ARGUMENT);
		assert_string_equal(err.text, refused[i].says);
	}
	char big[LIMIT_GLOB_BYTES + 1];
	memset(big, 'a', sizeof(big));
	assert_int_equal(glob_compile((struct str){big, sizeof(big)}, 0, &g, &err), -ERR_LIMIT);
	assert_null(g);
}

/* What makes backtracking matchers exponential, at the largest size that is allowed. */
static void no_pattern_can_hang(void **state)
{
	(void)state;
	char pattern[LIMIT_GLOB_BYTES + 1], path[4097];
	for (size_t i = 0; i + 1 < sizeof(pattern); i += 2)
		memcpy(pattern + i, "*a", 2);
	pattern[LIMIT_GLOB_BYTES] = '\0';
	memset(path, 'a', sizeof(path));
	path[4095] = 'b';
	path[4096] = '\0';
	assert_false(matches(pattern, 0, path));
	for (size_t i = 0; i + 1 < sizeof(pattern); i += 4)
		memcpy(pattern + i, "**/a", 4);
	assert_false(matches(pattern, 0, path));
	for (size_t i = 0; i + 1 < sizeof(pattern); i += 8)
		memcpy(pattern + i, "{a,aa,*}", 8);
	assert_true(matches(pattern, 0, path));
}

static void directories_are_left_out_only_when_nothing_below_can_match(void **state)
{
	(void)state;
	static const struct {
		const char *pattern, *dir;
		unsigned flags;
		bool may;
	} rows[] = {{"src/*.c", "src", 0, true}, {"src/*.c", "lib", 0, false},
		{"src/*.c", "src/x", 0, false}, {"**/*.c", "x/y", 0, true},
		{"*.c", "x", GLOB_BASENAME, true}, {"*.c", "x", 0, false},
		{"a/**/b", "a/q", 0, true}, {"a/**/b", "b", 0, false}, {"{a,b}/c", "b", 0, true},
		{"{a,b}/c", "c", 0, false}, {"x", "", 0, true}};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct err err;
		struct glob *g = NULL;
		assert_int_equal(glob_compile(str_of(rows[i].pattern), rows[i].flags, &g, &err), 0);
		if (glob_may_match_below(g, str_of(rows[i].dir)) != rows[i].may)
			fail_msg("pattern '%s' below '%s'", rows[i].pattern, rows[i].dir);
		glob_free(g);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_pattern_matches_what_it_says),
		cmocka_unit_test(broken_patterns_are_refused_with_their_place),
		cmocka_unit_test(no_pattern_can_hang),
		cmocka_unit_test(directories_are_left_out_only_when_nothing_below_can_match),
	};
	return cmocka_run_group_tests_name("glob", tests, NULL, NULL);
}
