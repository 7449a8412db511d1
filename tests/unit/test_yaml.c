/* Tests of src/codec/yaml.h: what a text means, and what is refused with its place. */
#include "testing.h"

#include "base/limits.h"
#include "codec/canonical.h"
#include "codec/json.h"
#include "codec/yaml.h"

enum { TEXT_MAX = 1 << 20 };

/* The canonical form of the value, or the error's text. Valid until the next call. */
static const char *read_yaml_n(struct str text, unsigned *ret_documents)
{
	static char answer[4096];
	struct err err;
	json_t *v = NULL;
	unsigned documents = 99;
	_cleanup_buf_ struct buf out = buf_init(sizeof(answer) - 1);
	if (yaml_parse(text, TEXT_MAX, &v, &documents, &err) < 0) {
		assert_null(v);
		assert_int_equal(documents, 99);
		return memcpy(answer, err.text, sizeof(err.text));
	}
	assert_int_equal(json_canonical(v, &out, &err), 0);
	json_decref(v);
	*ret_documents = documents;
	return memcpy(answer, buf_str(&out), out.len + 1);
}

static const char *read_yaml(const char *text)
{
	unsigned documents;
	return read_yaml_n(str_of(text), &documents);
}

struct row {
	const char *yaml, *want;
};

static void each_is(const struct row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const char *got = read_yaml(rows[i].yaml);
		if (strcmp(got, rows[i].want) != 0)
			fail_msg("'%s' gave '%s', not '%s'", rows[i].yaml, got, rows[i].want);
	}
}

static void plain_scalars_follow_the_core_schema(void **state)
{
	(void)state;
	static const struct row rows[] = {
		{"true", "true"},
		{"False", "false"},
		{"TRUE", "true"},
		{"tRUE", "\"tRUE\""},
		{"yes", "\"yes\""},
		{"no", "\"no\""},
		{"on", "\"on\""},
		{"y", "\"y\""},
		{"null", "null"},
		{"~", "null"},
		{"nULL", "\"nULL\""},
		{"a:", "{\"a\":null}"},
		{"12", "12"},
		{"-7", "-7"},
		{"+7", "7"},
		{"010", "10"},
		{"0o17", "15"},
		{"0x1F", "31"},
		{"-0x1F", "\"-0x1F\""},
		{"0o8", "\"0o8\""},
		{"1_000", "\"1_000\""},
		{"1.5", "1.5"},
		{".5", "0.5"},
		{"5.", "5"},
		{"1e3", "1000"},
		{"-.5E-1", "-0.05"},
		{".", "\".\""},
		{"1e", "\"1e\""},
		{"-", "[null]"},
		{"+", "\"+\""},
		{"1.2.3", "\"1.2.3\""},
		{"12:30", "\"12:30\""},
		{"2001-01-01", "\"2001-01-01\""},
	};
	each_is(rows, ARRAY_LEN(rows));
}

static void what_json_cannot_hold_stays_the_text(void **state)
{
	(void)state;
	static const struct row rows[] = {
		{".inf", "\".inf\""},
		{"-.inf", "\"-.inf\""},
		{".nan", "\".nan\""},
		{"9223372036854775808", "\"9223372036854775808\""},
		{"1e999", "\"1e999\""},
		{"0xffffffffffffffffff", "\"0xffffffffffffffffff\""},
	};
	each_is(rows, ARRAY_LEN(rows));
}

static void quotes_blocks_and_tags_decide_the_type(void **state)
{
	(void)state;
	static const struct row rows[] = {
		{"'12'", "\"12\""},
		{"\"true\"", "\"true\""},
		{"|\n  12\n", "\"12\\n\""},
		{">-\n  a\n  b\n", "\"a b\""},
		{"!!str 12", "\"12\""},
		{"! 12", "\"12\""},
		{"!!int 12", "12"},
		{"!!map {}", "{}"},
		{"!!seq []", "[]"},
		{"!!null", "null"},
		{"\"\\0\"", "\"\\u0000\""},
		{"\"\\u00e4\"", "\"\xc3\xa4\""},
		{"\xef\xbb\xbf"
		 "a: 1",
			"{\"a\":1}"},
	};
	each_is(rows, ARRAY_LEN(rows));
}

static void collections_become_objects_and_arrays(void **state)
{
	(void)state;
	static const struct row rows[] = {
		{"a: 1\nb: [x, {c: d}]\n", "{\"a\":1,\"b\":[\"x\",{\"c\":\"d\"}]}"},
		{"- 1\n- - 2\n  - 3\n", "[1,[2,3]]"},
		{"1: x\nnull: y\ntrue: z\n", "{\"1\":\"x\",\"null\":\"y\",\"true\":\"z\"}"},
		{"<<: {a: 1}\n", "{\"<<\":{\"a\":1}}"},
		{"? a\n: b\n", "{\"a\":\"b\"}"},
		{"a: &amp", "YAML, line 1, column 4: anchors are not allowed"},
		{"%YAML 1.1\n---\na: 1\n", "{\"a\":1}"},
	};
	each_is(rows, ARRAY_LEN(rows));
}

static void documents_are_counted(void **state)
{
	(void)state;
	unsigned n = 0;
	assert_string_equal(read_yaml_n(STR(""), &n), "null");
	assert_int_equal(n, 0);
	assert_string_equal(read_yaml_n(STR("# nothing\n"), &n), "null");
	assert_int_equal(n, 0);
	assert_string_equal(read_yaml_n(STR("---\n[1]\n...\n"), &n), "[1]");
	assert_int_equal(n, 1);
	assert_string_equal(
		read_yaml_n(STR("---\na\n---\n---\n[b]\n"), &n), "[\"a\",null,[\"b\"]]");
	assert_int_equal(n, 3);
}

static void what_is_refused_names_its_place(void **state)
{
	(void)state;
	static const struct row rows[] = {
		{"a: &x [1]\nb: 2\n", "YAML, line 1, column 4: anchors are not allowed"},
		{"&x a: 1\n", "YAML, line 1, column 1: anchors are not allowed"},
		{"a: *x\n", "YAML, line 1, column 4: aliases are not allowed"},
		{"a: 1\nb: 2\na: 3\n", "YAML, line 3, column 1: this key is already there"},
		{"{a: 1, 'a': 2}", "YAML, line 1, column 8: this key is already there"},
		{"[a]: 1\n", "YAML, line 1, column 1: a key must be a scalar"},
		{"? {a: b}\n: 1\n", "YAML, line 1, column 3: a key must be a scalar"},
		{"!!int a", "YAML, line 1, column 1: the value does not fit its tag"},
		{"!!map []", "YAML, line 1, column 1: the value does not fit its tag"},
		{"!!python/object:os.system x",
			"YAML, line 1, column 1: the value does not fit its tag"},
		{"!custom {}", "YAML, line 1, column 1: the value does not fit its tag"},
		{"!!int 1: x", "YAML, line 1, column 1: a key cannot have this tag"},
		{"a: [1\n", "YAML, line 2, column 1: did not find expected ',' or ']'"},
		{"a: \"x", "YAML, line 1, column 6: found unexpected end of stream"},
		{"ok: 1\nx: \xff\n", "YAML, line 2, column 4: invalid leading UTF-8 octet"},
		{"a\x01", "YAML, line 1, column 2: control characters are not allowed"},
		{"\"\\ud800\"",
			"YAML, line 1, column 4: found invalid Unicode character escape code"},
	};
	each_is(rows, ARRAY_LEN(rows));
}

static void nul_bytes_are_refused_outside_escapes(void **state)
{
	(void)state;
	unsigned n;
	assert_string_equal(read_yaml_n(STR("a\0b"), &n),
		"YAML, line 1, column 2: control characters are not allowed");
}

/* A text of `n` times `piece`. */
static const char *repeated(const char *piece, size_t n, unsigned *documents)
{
	_cleanup_buf_ struct buf b = buf_init(TEXT_MAX);
	for (size_t i = 0; i < n; i++)
		buf_puts(&b, piece);
	assert_false(b.failed);
	return read_yaml_n((struct str){b.data, b.len}, documents);
}

static void depth_size_and_directives_are_bounded(void **state)
{
	(void)state;
	struct err err;
	json_t *v = NULL;
	unsigned n;
	enum { DEEP = LIMIT_JSON_DEPTH - 1 };
	char text[2 * DEEP + 1];
	memset(text, '[', DEEP);
	memset(text + DEEP, ']', DEEP);
	text[2 * DEEP] = '\0';
	assert_true(strstr(read_yaml(text), "[[[") != NULL);
	assert_non_null(strstr(repeated("[", DEEP + 1, &n), "nested too deeply"));
	assert_non_null(strstr(repeated("- ", DEEP + 1, &n), "nested too deeply"));
	assert_non_null(strstr(repeated("{a: ", 100000, &n), "nested too deeply"));
	assert_non_null(strstr(repeated("%TAG !a! b\n", YAML_TAGS_MAX + 1, &n), "65 %TAG"));
	assert_int_equal(yaml_parse(STR("abcd"), 3, &v, &n, &err), -ERR_LIMIT);
	assert_string_equal(err.text, "the YAML text has 4 bytes; at most 3 are allowed");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_scalars_follow_the_core_schema),
		cmocka_unit_test(what_json_cannot_hold_stays_the_text),
		cmocka_unit_test(quotes_blocks_and_tags_decide_the_type),
		cmocka_unit_test(collections_become_objects_and_arrays),
		cmocka_unit_test(documents_are_counted),
		cmocka_unit_test(what_is_refused_names_its_place),
		cmocka_unit_test(nul_bytes_are_refused_outside_escapes),
		cmocka_unit_test(depth_size_and_directives_are_bounded),
	};
	return cmocka_run_group_tests_name("yaml", tests, NULL, NULL);
}
