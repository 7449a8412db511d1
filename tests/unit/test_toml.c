/* Tests of src/codec/toml.h beyond the public suite: places, limits, what messages say. */
#include "testing.h"

#include "base/limits.h"
#include "codec/toml.h"

enum { TEXT_MAX = 1 << 20 };

static void what_is_refused_names_its_place(void **state)
{
	(void)state;
	static const struct {
		const char *toml, *want;
	} rows[] = {
		{"a = 1\nb = \n", "line 2, column 5: a value belongs here"},
		{"a = 1\na = 2\n", "line 2, column 1: this key is already there"},
		{"a.b = 1\na.b.c = 2\n",
			"line 2, column 3: this name is already there; nothing can "
			"be added to it here"},
		{"[a]\nx = 1\n[b]\n[a]\n",
			"line 4, column 2: this name is already there; a table is defined once"},
		{"a = [1]\n[[a]]\n",
			"line 2, column 3: this name is already there and is no array of tables"},
		{"a = yes\n", "line 1, column 5: no value is written like this (text belongs in "
			      "quotes)"},
		{"a = 010\n", "line 1, column 5: a number has no leading zeros"},
		{"a = 9223372036854775808\n", "line 1, column 5: the integer does not fit 64 bits"},
		{"a = 1e400\n", "line 1, column 5: the number is too large for a double"},
		{"a = 2001-02-29\n", "line 1, column 5: this is no date or time: write "
				     "1979-05-27T07:32:00Z, 1979-05-27 or 07:32:00"},
		{"a = \"x\n", "line 1, column 7: a line end or control character in a string must "
			      "be escaped"},
		{"a = \"\\q\"\n", "line 1, column 7: no such escape"},
		{"a = \"\\ud800\"\n", "line 1, column 6: this is no character of Unicode"},
		{"a = 1 b = 2\n", "line 1, column 7: the line should end here"},
		{"a = [1 2]\n", "line 1, column 8: a comma or ] belongs here"},
		{"a = {b = 1,}\n", "line 1, column 12: a key belongs here"},
		{"a\n", "line 1, column 2: an equals sign belongs after a key"},
		{"[a\n", "line 1, column 3: ] belongs here"},
		{"a = [", "line 1, column 6: the text ends too early"},
		{"a = 1\r\nb = \xff\r\n", "line 2, column 5: the bytes are not UTF-8"},
		{"# \x7f\n", "line 1, column 3: a comment cannot hold control characters"},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct err err;
		struct toml *root = NULL;
		assert_int_equal(
			toml_parse(str_of(rows[i].toml), TEXT_MAX, &root, &err), -ERR_PARSE);
		assert_null(root);
		if (strncmp(err.text, "TOML, ", 6) != 0 || strcmp(err.text + 6, rows[i].want) != 0)
			fail_msg("'%s' gave '%s', not '%s'", rows[i].toml, err.text, rows[i].want);
	}
}

static void values_know_their_place_and_order(void **state)
{
	(void)state;
	struct err err;
	_cleanup_(cleanup_toml_free) struct toml *root = NULL;
	assert_int_equal(toml_parse(STR("\xef\xbb\xbf# first\n[files]\n  exclude = [\n    'a',\n"
					"\t\"b\",\n]\nx.y = 1\n"),
				 TEXT_MAX, &root, &err),
		0);
	const struct toml *files = toml_get(root, STR("files"));
	assert_int_equal(files->line, 2);
	assert_int_equal(files->column, 2);
	const struct toml *exclude = files->list.first, *b = exclude->list.last;
	assert_true(str_eq(exclude->key, STR("exclude")));
	assert_int_equal(exclude->line, 3);
	assert_int_equal(exclude->column, 3);
	assert_int_equal(exclude->list.n, 2);
	assert_true(str_eq(b->string, STR("b")));
	assert_int_equal(b->line, 5);
	assert_int_equal(b->column, 2);
	assert_true(str_eq(exclude->next->key, STR("x")));
	assert_int_equal(toml_get(exclude->next, STR("y"))->integer, 1);
	assert_null(toml_get(files, STR("x.y")));
}

/* A text of `n` times `piece`, with %u in it the number. */
static int parse_repeated(const char *piece, unsigned n, struct err *err)
{
	_cleanup_buf_ struct buf b = buf_init(TEXT_MAX);
	_cleanup_(cleanup_toml_free) struct toml *root = NULL;
	const char *number = strchr(piece, '#');
	for (unsigned i = 0; i < n; i++) {
		buf_put(&b, piece, number ? (size_t)(number - piece) : strlen(piece));
		if (number)
			buf_printf(&b, "%u%s", i, number + 1);
	}
	assert_false(b.failed);
	return toml_parse((struct str){b.data, b.len}, TEXT_MAX, &root, err);
}

static void depth_keys_and_size_are_bounded(void **state)
{
	(void)state;
	struct err err;
	struct toml *root = NULL;
	assert_int_equal(parse_repeated("a#=1\n", TOML_KEYS_MAX, &err), 0);
	assert_int_equal(parse_repeated("a#=1\n", TOML_KEYS_MAX + 1, &err), -ERR_PARSE);
	assert_string_equal(
		err.text, "TOML, line 2001, column 1: the table has more than 2000 keys");
	assert_int_equal(parse_repeated("[[a]]\n", 50000, &err), 0);
	assert_int_equal(parse_repeated("[a#]\n", TOML_KEYS_MAX + 1, &err), -ERR_PARSE);
	assert_int_equal(parse_repeated("a.", LIMIT_JSON_DEPTH + 1, &err), -ERR_PARSE);
	assert_non_null(strstr(err.text, "nested too deeply"));
	assert_int_equal(
		parse_repeated("a=[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["
			       "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["
			       "[[[[[[[[[[[[[[[[[[[[[[",
			1, &err),
		-ERR_PARSE);
	assert_non_null(strstr(err.text, "nested too deeply"));
	assert_int_equal(toml_parse(STR("a = 1"), 4, &root, &err), -ERR_LIMIT);
	assert_string_equal(err.text, "the TOML text has 5 bytes; at most 4 are allowed");
	assert_null(root);
}

static void an_empty_text_is_an_empty_table(void **state)
{
	(void)state;
	struct err err;
	_cleanup_(cleanup_toml_free) struct toml *root = NULL;
	assert_int_equal(toml_parse((struct str){NULL, 0}, TEXT_MAX, &root, &err), 0);
	assert_int_equal(root->type, TOML_TABLE);
	assert_int_equal(root->list.n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_refused_names_its_place),
		cmocka_unit_test(values_know_their_place_and_order),
		cmocka_unit_test(depth_keys_and_size_are_bounded),
		cmocka_unit_test(an_empty_text_is_an_empty_table),
	};
	return cmocka_run_group_tests_name("toml", tests, NULL, NULL);
}
