/* Tests of src/call/schema: what is checked, what is said, and that the JSON Schema tells the same.
 */
#include "testing.h"

#include "call/schema.h"

static const char *const colours[] = {"red", "green", NULL};

static const struct field point[] = {
	{.name = "x", .type = FIELD_INT, .required = true, .min = -5, .max = 5, .help = "Across."},
	FIELD_END,
};

static const struct field table[] = {
	{.name = "path",
		.type = FIELD_STRING,
		.required = true,
		.min = 1,
		.max = 5,
		.help = "Where."},
	{.name = "count",
		.type = FIELD_INT,
		.min = 1,
		.max = 10,
		.dflt = 3,
		.has_default = true,
		.help = "How many."},
	{.name = "deep", .type = FIELD_BOOL, .has_default = true, .help = "Also below."},
	{.name = "colour",
		.type = FIELD_ENUM,
		.words = colours,
		.dflt_str = "red",
		.help = "Which."},
	{.name = "points",
		.type = FIELD_ARRAY,
		.max = 2,
		.items = &(const struct field){.type = FIELD_OBJECT, .items = point},
		.help = "Where else."},
	{.name = "content", .type = FIELD_STRING, .nul_ok = true, .help = "What."},
	FIELD_END,
};

/* Each row: the arguments, and what the error must say ("" for accepted). */
static const struct {
	const char *cell, *args, *says;
} cells[] = {
	{"minimal", "{\"path\":\"a\"}", ""},
	{"everything",
		"{\"path\":\"a\",\"count\":10,\"deep\":true,\"colour\":\"green\",\"points\":[{"
		"\"x\":5}]}",
		""},
	{"integral real", "{\"path\":\"a\",\"count\":5.0}", ""},
	{"five characters, not bytes", "{\"path\":\"\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\"}",
		""},
	{"NUL where allowed", "{\"path\":\"a\",\"content\":\"x\\u0000y\"}", ""},
	{"not an object", "[1]", "the arguments are an array; they must be an object"},
	{"missing", "{}", "argument 'path' is missing"},
	{"unknown", "{\"path\":\"a\",\"colr\":1}", "argument 'colr' is not known here"},
	{"unknown in an element", "{\"path\":\"a\",\"points\":[{\"x\":1},{\"x\":1,\"y\":2}]}",
		"argument 'points[1].y' is not known here"},
	{"missing in an element", "{\"path\":\"a\",\"points\":[{}]}",
		"argument 'points[0].x' is missing"},
	{"null", "{\"path\":null}", "argument 'path' is null; it must be a string"},
	{"number for text", "{\"path\":1}", "argument 'path' is an integer; it must be a string"},
	{"text for number", "{\"path\":\"a\",\"count\":\"5\"}",
		"argument 'count' is a string; it must be an integer"},
	{"fraction", "{\"path\":\"a\",\"count\":1.5}", "argument 'count' must be an integer"},
	{"huge real", "{\"path\":\"a\",\"count\":1e300}", "argument 'count' must be an integer"},
	{"too small", "{\"path\":\"a\",\"count\":0}",
		"argument 'count' is 0; it must be between 1 and 10"},
	{"too big", "{\"path\":\"a\",\"count\":11}",
		"argument 'count' is 11; it must be between 1 and 10"},
	{"number for truth", "{\"path\":\"a\",\"deep\":1}",
		"argument 'deep' is an integer; it must be true or false"},
	{"unknown word", "{\"path\":\"a\",\"colour\":\"blue\"}",
		"argument 'colour' is none of the known words"},
	{"word with NUL", "{\"path\":\"a\",\"colour\":\"red\\u0000\"}",
		"argument 'colour' has a NUL character, which is not allowed here"},
	{"path with NUL", "{\"path\":\"a\\u0000b\"}",
		"argument 'path' has a NUL character, which is not allowed here"},
	{"empty text", "{\"path\":\"\"}",
		"argument 'path' has 0 characters; at least 1 are needed"},
	{"long text", "{\"path\":\"abcdef\"}",
		"argument 'path' has 6 characters; at most 5 are allowed"},
	{"many items", "{\"path\":\"a\",\"points\":[{\"x\":1},{\"x\":1},{\"x\":1}]}",
		"argument 'points' has 3 items; at most 2 are allowed"},
};

static void arguments_are_accepted_or_refused_by_name(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cells); i++) {
		struct err err;
		err_clear(&err);
		json_t *args = json_loads(cells[i].args, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
		assert_non_null(args);
		int r = fields_check(table, args, &err);
		if (strcmp(err.text, cells[i].says) != 0)
			print_error("cell '%s': %s\n", cells[i].cell, err.text);
		assert_string_equal(err.text, cells[i].says);
		assert_int_equal(r, cells[i].says[0] ? -ERR_INVALID_ARGUMENT : 0);
		json_decref(args);
	}
}

static void defaults_stand_in_for_absent_arguments(void **state)
{
	(void)state;
	json_t *args = json_loads("{\"path\":\"p\",\"count\":7.0}", 0, NULL);
	assert_string_equal(arg_str(args, table, "path"), "p");
	assert_int_equal(arg_int(args, table, "count"), 7);
	assert_string_equal(arg_str(args, table, "colour"), "red");
	assert_false(arg_bool(args, table, "deep"));
	assert_null(arg_get(args, "points"));
	json_decref(args);
}

static void the_schema_says_what_the_check_does(void **state)
{
	(void)state;
	_cleanup_buf_ struct buf b = buf_init(65536);
	fields_schema(table, false, &b);
	json_t *s = json_loads(buf_str(&b), 0, NULL), *p = json_object_get(s, "properties");
	assert_non_null(s);
	assert_true(json_is_false(json_object_get(s, "additionalProperties")));
	assert_int_equal(json_array_size(json_object_get(s, "required")), 1);
	assert_int_equal(json_object_size(p), 6);
	json_t *count = json_object_get(p, "count");
	assert_int_equal(json_integer_value(json_object_get(count, "minimum")), 1);
	assert_int_equal(json_integer_value(json_object_get(count, "maximum")), 10);
	assert_int_equal(json_integer_value(json_object_get(count, "default")), 3);
	json_t *item = json_object_get(json_object_get(p, "points"), "items");
	assert_string_equal(json_string_value(json_object_get(item, "type")), "object");
	assert_true(json_is_false(json_object_get(item, "additionalProperties")));
	json_decref(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arguments_are_accepted_or_refused_by_name),
		cmocka_unit_test(defaults_stand_in_for_absent_arguments),
		cmocka_unit_test(the_schema_says_what_the_check_does),
	};
	return cmocka_run_group_tests_name("schema", tests, NULL, NULL);
}
