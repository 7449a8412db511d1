/* Tests of codec/json, canonical and json_write beside the public suites: limits, places of errors,
 * and what is written reads back. */
#include "testing.h"

#include "base/limits.h"
#include "codec/canonical.h"
#include "codec/json.h"
#include "codec/json_write.h"

static int parse(const char *text, struct err *err)
{
	json_t *v = NULL;
	int r = json_parse(str_of(text), 1 << 20, &v, err);
	json_decref(v);
	return r;
}

static const struct {
	const char *text, *says;
} refused[] = {
	{"", "JSON, line 1, column 1: the text ends too early"},
	{"{\"a\":1,\n \"a\":2}", "JSON, line 2, column 2: this name is already there"},
	{"[1,]", "JSON, line 1, column 4: no value starts like this"},
	{"[1 2]", "JSON, line 1, column 4: a comma or ] belongs here"},
	{"{\"a\" 1}", "JSON, line 1, column 6: a colon belongs here"},
	{"{a:1}", "JSON, line 1, column 2: a name in quotes belongs here"},
	{"\"\\ud800\"", "JSON, line 1, column 2: half of a surrogate pair"},
	{"\"\xff\"", "JSON, line 1, column 2: the bytes are not UTF-8"},
	{"\"a\nb\"", "JSON, line 1, column 3: a control character in a string must be escaped"},
	{"9223372036854775808", "JSON, line 1, column 1: the integer does not fit 64 bits"},
	{"1e999", "JSON, line 1, column 1: the number is too large for a double"},
	{"01", "JSON, line 1, column 2: something follows the value"},
	{"1.", "JSON, line 1, column 3: the text ends too early"},
	{"tru", "JSON, line 1, column 1: no value starts like this"},
	{"1 1", "JSON, line 1, column 3: something follows the value"},
};

static void errors_name_their_place(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
		struct err err;
		assert_int_equal(parse(refused[i].text, &err), -ERR_PARSE);
		assert_string_equal(err.text, refused[i].says);
	}
}

static void depth_and_size_have_limits(void **state)
{
	(void)state;
	struct err err;
	char deep[2 * LIMIT_JSON_DEPTH + 4] = {0};
	memset(deep, '[', LIMIT_JSON_DEPTH);
	memset(deep + LIMIT_JSON_DEPTH, ']', LIMIT_JSON_DEPTH);
	assert_int_equal(parse(deep, &err), 0);
	memset(deep, '[', LIMIT_JSON_DEPTH + 1);
	memset(deep + LIMIT_JSON_DEPTH + 1, ']', LIMIT_JSON_DEPTH + 1);
	assert_int_equal(parse(deep, &err), -ERR_PARSE);
	assert_non_null(strstr(err.text, "nested too deeply"));
	json_t *v = NULL;
	assert_int_equal(json_parse(STR("[1,2,3]"), 6, &v, &err), -ERR_LIMIT);
	assert_string_equal(err.text, "the JSON text has 7 bytes; at most 6 are allowed");
}

static void what_is_written_reads_back(void **state)
{
	(void)state;
	struct err err;
	char all[256 + 8];
	size_t n = 0;
	for (int c = 0; c < 128; c++)
		all[n++] = (char)c;
	memcpy(all + n, "\xc3\xa4\xf0\x9f\x98\x80", 6);
	_cleanup_buf_ struct buf b = buf_init(1 << 16);
	jw_open(&b, '{');
	jw_str(&b, "s", (struct str){all, n + 6});
	jw_int(&b, "min", INT64_MIN);
	jw_int(&b, "max", INT64_MAX);
	jw_bool(&b, "t", true);
	jw_null(&b, "n");
	jw_name(&b, "name", STR("a\\b\xff"));
	jw_key(&b, "list");
	jw_open(&b, '[');
	jw_elem_int(&b, 0);
	jw_elem_str(&b, STR("x"));
	jw_open(&b, '{');
	jw_close(&b, '}');
	jw_close(&b, ']');
	jw_close(&b, '}');
	json_t *v = NULL;
	if (json_parse((struct str){b.data, b.len}, b.len, &v, &err) < 0)
		fail_msg("%s in %s", err.text, b.data);
	const json_t *s = json_object_get(v, "s");
	assert_int_equal(json_string_length(s), n + 6);
	assert_memory_equal(json_string_value(s), all, n + 6);
	assert_true(json_integer_value(json_object_get(v, "min")) == INT64_MIN);
	assert_true(json_integer_value(json_object_get(v, "max")) == INT64_MAX);
	assert_string_equal(json_string_value(json_object_get(v, "name")), "a\\\\b\\xff");
	assert_int_equal(json_array_size(json_object_get(v, "list")), 3);
	json_decref(v);
}

static void our_records_write_large_integers_as_text(void **state)
{
	(void)state;
	struct err err;
	json_t *v = json_pack("{s:I,s:I}", "big", (json_int_t)9007199254740993, "small",
		(json_int_t)-9007199254740991);
	_cleanup_buf_ struct buf b = buf_init(1 << 16), none = buf_init(1 << 16);
	assert_int_equal(json_canonical(v, &b, &err), 0);
	assert_string_equal(
		buf_str(&b), "{\"big\":\"9007199254740993\",\"small\":-9007199254740991}");
	assert_int_equal(json_canonical_exact(v, &none, &err), -ERR_INVALID_ARGUMENT);
	json_decref(v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(errors_name_their_place),
		cmocka_unit_test(depth_and_size_have_limits),
		cmocka_unit_test(what_is_written_reads_back),
		cmocka_unit_test(our_records_write_large_integers_as_text),
	};
	return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
