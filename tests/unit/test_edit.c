/* Tests of workspace/edit: what each edit makes of a text, what is refused and what is said. */
#include "testing.h"

#include "workspace/edit.h"

static const struct {
	const char *cell, *text;
	struct edit edit;
	const char *result;
} good[] = {
	{"only occurrence", "a b c\n", {.old_text = {"b", 1}, .new_text = {"x", 1}}, "a x c\n"},
	{"to nothing", "a b c\n", {.old_text = {" b", 2}, .new_text = {"", 0}}, "a c\n"},
	{"all occurrences", "aXbXc", {.old_text = {"X", 1}, .new_text = {"--", 2}, .all = true},
		"a--b--c"},
	{"occurrences do not overlap", "aaaa",
		{.old_text = {"aa", 2}, .new_text = {"b", 1}, .all = true}, "bb"},
	{"the whole text", "abc", {.old_text = {"abc", 3}, .new_text = {"", 0}}, ""},
	{"LF finds CRLF", "a\r\nb\r\nc\r\n", {.old_text = {"a\nb\n", 4}, .new_text = {"x\n", 2}},
		"x\r\nc\r\n"},
	{"CRLF stays CRLF", "a\r\nb\r\n", {.old_text = {"a\r\nb", 4}, .new_text = {"x\r\ny\nz", 6}},
		"x\r\ny\r\nz\r\n"},
	{"mixed ends stay", "a\r\nb\nc\n", {.old_text = {"c", 1}, .new_text = {"x\ny", 3}},
		"a\r\nb\nx\ny\n"},
	{"no final end stays so", "a\nb", {.old_text = {"b", 1}, .new_text = {"c", 1}}, "a\nc"},
	{"replace a line", "1\n2\n3\n",
		{.kind = EDIT_REPLACE_LINES, .start = 2, .end = 2, .new_text = {"x", 1}},
		"1\nx\n3\n"},
	{"replace by several", "1\n2\n3\n",
		{.kind = EDIT_REPLACE_LINES, .start = 1, .end = 2, .new_text = {"x\ny\nz\n", 6}},
		"x\ny\nz\n3\n"},
	{"replace an open last line", "1\n2",
		{.kind = EDIT_REPLACE_LINES, .start = 2, .end = 2, .new_text = {"x", 1}}, "1\nx"},
	{"replace all lines", "1\n2\n",
		{.kind = EDIT_REPLACE_LINES, .start = 1, .end = 2, .new_text = {"x", 1}}, "x\n"},
	{"insert at the top", "1\n", {.kind = EDIT_INSERT_LINES, .start = 0, .new_text = {"x", 1}},
		"x\n1\n"},
	{"insert behind", "1\n2\n", {.kind = EDIT_INSERT_LINES, .start = 1, .new_text = {"x\n", 2}},
		"1\nx\n2\n"},
	{"insert at the end", "1\n2\n",
		{.kind = EDIT_INSERT_LINES, .start = 2, .new_text = {"x", 1}}, "1\n2\nx\n"},
	{"insert behind an open line", "1\n2",
		{.kind = EDIT_INSERT_LINES, .start = 2, .new_text = {"x", 1}}, "1\n2\nx"},
	{"insert into nothing", "", {.kind = EDIT_INSERT_LINES, .start = 0, .new_text = {"x", 1}},
		"x\n"},
	{"insert in CRLF", "1\r\n2\r\n",
		{.kind = EDIT_INSERT_LINES, .start = 1, .new_text = {"x\ny", 3}},
		"1\r\nx\r\ny\r\n2\r\n"},
	{"delete a line", "1\n2\n3\n", {.kind = EDIT_DELETE_LINES, .start = 2, .end = 2}, "1\n3\n"},
	{"delete to the end", "1\n2\n3", {.kind = EDIT_DELETE_LINES, .start = 2, .end = 3}, "1\n"},
};

static void each_edit_makes_what_it_says(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		struct err err;
		struct edit_result got;
		_cleanup_buf_ struct buf out = buf_init(4096);
		int r = edit_apply(str_of(good[i].text), &good[i].edit, &out, &got, &err);
		if (r < 0)
			fail_msg("%s: %s", good[i].cell, err.text);
		if (strcmp(buf_str(&out), good[i].result) != 0)
			fail_msg("%s: got '%s'", good[i].cell, buf_str(&out));
	}
}

static const struct {
	const char *cell, *text;
	struct edit edit;
	enum err_code code;
	const char *says;
} bad[] = {
	{"empty old text", "a", {.old_text = {"", 0}}, ERR_INVALID_ARGUMENT, "old_text is empty"},
	{"twice", "a\nb\na\n", {.old_text = {"a", 1}}, ERR_AMBIGUOUS,
		"old_text occurs 2 times, at lines 1, 3"},
	{"many times", "a\na\na\na\na\na\na\n", {.old_text = {"a", 1}}, ERR_AMBIGUOUS,
		"at lines 1, 2, 3, 4, 5, ..."},
	{"white space", "x\n\tif (a) {\n\t\tb;\n", {.old_text = {"    if (a) {\n        b;\n", 24}},
		ERR_NO_MATCH, "at line 2 only white space differs"},
	{"case", "Hello World\n", {.old_text = {"hello world", 11}}, ERR_NO_MATCH,
		"at line 1 only upper and lower case differ"},
	{"quotes", "say \xe2\x80\x9chi\xe2\x80\x9d\n", {.old_text = {"say \"hi\"", 8}},
		ERR_NO_MATCH, "at line 1 only typographic quotes"},
	{"close line", "int main(void)\n{\n\treturn 1;\n}\n", {.old_text = {"\treturn 0;\n", 11}},
		ERR_NO_MATCH, "line 3 comes closest: 'return 1;' instead of 'return 0;'"},
	{"nothing near", "abc\n", {.old_text = {"zzz", 3}}, ERR_NO_MATCH, "no line is close to it"},
	{"line 0", "a\n", {.kind = EDIT_DELETE_LINES, .start = 0, .end = 1}, ERR_INVALID_ARGUMENT,
		"which has 1 lines"},
	{"behind the end", "a\n", {.kind = EDIT_DELETE_LINES, .start = 1, .end = 2},
		ERR_INVALID_ARGUMENT, "lines 1 to 2 are not a range"},
	{"reversed", "a\nb\n", {.kind = EDIT_REPLACE_LINES, .start = 2, .end = 1},
		ERR_INVALID_ARGUMENT, "lines 2 to 1 are not a range"},
	{"insert behind nothing", "a\n", {.kind = EDIT_INSERT_LINES, .start = 2},
		ERR_INVALID_ARGUMENT, "line 2 to insert behind does not exist"},
	{"lines of nothing", "", {.kind = EDIT_DELETE_LINES, .start = 1, .end = 1},
		ERR_INVALID_ARGUMENT, "which has 0 lines"},
};

static void each_refusal_names_what_is_wrong(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct err err;
		struct edit_result got;
		_cleanup_buf_ struct buf out = buf_init(4096);
		int r = edit_apply(str_of(bad[i].text), &bad[i].edit, &out, &got, &err);
		if (r != -(int)bad[i].code || !strstr(err.text, bad[i].says))
			fail_msg("%s: %d %s", bad[i].cell, r, err.text);
	}
}

static void the_result_has_a_limit(void **state)
{
	(void)state;
	struct err err;
	struct edit_result got;
	_cleanup_buf_ struct buf out = buf_init(10);
	struct edit e = {.old_text = STR("a"), .new_text = STR("0123456789"), .all = true};
	assert_int_equal(edit_apply(STR("aa"), &e, &out, &got, &err), -ERR_LIMIT);
	assert_string_equal(err.text, "the edited file is larger than 10 bytes");
}

/* What makes naive searches quadratic: 8 MB in each role must be answered in seconds even under a
 * sanitizer. */
static void no_text_can_hang(void **state)
{
	(void)state;
	enum { N = 1 << 23 };
	struct err err;
	struct edit_result got;
	char *text = malloc(N), *old = malloc(N / 2);
	_cleanup_buf_ struct buf out = buf_init(2 * N);
	memset(text, 'a', N);
	memset(old, 'a', N / 2);
	old[N / 2 - 1] = 'b';
	struct edit e = {.old_text = {old, N / 2}, .new_text = STR("")};
	assert_int_equal(edit_apply((struct str){text, N}, &e, &out, &got, &err), -ERR_NO_MATCH);
	for (size_t i = 1; i < N; i += 2)
		text[i] = '\n';
	for (size_t i = 1; i < N / 2 - 2; i += 2)
		old[i] = '\n';
	assert_int_equal(edit_apply((struct str){text, N}, &e, &out, &got, &err), -ERR_NO_MATCH);
	free(text);
	free(old);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_edit_makes_what_it_says),
		cmocka_unit_test(each_refusal_names_what_is_wrong),
		cmocka_unit_test(the_result_has_a_limit),
		cmocka_unit_test(no_text_can_hang),
	};
	return cmocka_run_group_tests_name("edit", tests, NULL, NULL);
}
