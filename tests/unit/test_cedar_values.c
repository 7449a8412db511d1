/* Cedar's leaves: the JSON reader, the lexer, extension types, values. */
#include "testing.h"

#include "cedar/ext.h"
#include "cedar/json.h"
#include "cedar/lex.h"
#include "cedar/utf8.h"
#include "cedar/value.h"

static struct ced_slice slice(const char *text)
{
	return (struct ced_slice){text, strlen(text)};
}

/* -- JSON ----------------------------------------------------------------------------------- */

static int read_json(const char *text, size_t n, uint32_t depth, struct cedar_error *err)
{
	struct ced_arena arena;
	struct ced_json j;
	ced_arena_init(&arena, 1 << 20, "memory_bytes");
	int code = ced_json_read(&arena, text, n, depth, "json_depth", &j, err);
	ced_arena_done(&arena);
	return code;
}

static void json_refuses_what_is_not_json(void **state)
{
	static const char *const bad[] = {"", "{", "[1,]", "{\"a\":1,}", "{a:1}", "01", "1.", ".5",
		"+1", "1e", "\"\\q\"", "\"\\ud800\"", "\"\\ud800\\u0041\"", "\"\\udc00\"", "\"a",
		"\"\n\"", "tru", "nul", "[1 2]", "1 2", "\"\\u12\"", "\xff", "\"\xc0\x80\"",
		"\"\xed\xa0\x80\"", "--1", "{\"a\" 1}", "// x"};
	struct cedar_error err;
	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(read_json(bad[i], strlen(bad[i]), 8, &err), CEDAR_E_SYNTAX);
}

static void json_refuses_a_key_twice(void **state)
{
	char many[2048] = "{";
	struct cedar_error err;
	(void)state;
	const char *few = "{\"a\":1,\n \"b\":{\"c\":1, \"\\u0063\":2}}";
	assert_int_equal(read_json(few, strlen(few), 8, &err), CEDAR_E_DUPLICATE);
	assert_int_equal(err.line, 2);
	assert_int_equal(err.column, 14);
	for (int i = 0; i < 40; i++)
		(void)snprintf(many + strlen(many), 32, "\"k%d\":%d,", i % 39, i);
	(void)snprintf(many + strlen(many), 32, "\"z\":0}");
	assert_int_equal(read_json(many, strlen(many), 8, &err), CEDAR_E_DUPLICATE);
}

static void json_names_the_limit_of_depth(void **state)
{
	struct cedar_error err;
	(void)state;
	assert_int_equal(read_json("[[[1]]]", 7, 3, &err), 0);
	assert_int_equal(read_json("[[[[1]]]]", 9, 3, &err), CEDAR_E_LIMIT);
	assert_non_null(strstr(err.text, "json_depth (3)"));
	assert_int_equal(err.column, 4);
}

static void json_integers_have_one_spelling(void **state)
{
	static const struct {
		const char *text;
		int code;
		int64_t value;
	} cases[] = {{"0", 0, 0}, {"-1", 0, -1}, {"9223372036854775807", 0, INT64_MAX},
		{"-9223372036854775808", 0, INT64_MIN}, {"9223372036854775808", CEDAR_E_VALUE, 0},
		{"-9223372036854775809", CEDAR_E_VALUE, 0}, {"1.0", CEDAR_E_VALUE, 0},
		{"1e2", CEDAR_E_VALUE, 0}, {"-0", CEDAR_E_VALUE, 0}, {"0.0", CEDAR_E_VALUE, 0},
		{"\"1\"", CEDAR_E_SYNTAX, 0}};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ced_arena arena;
		struct ced_json j;
		struct cedar_error err;
		int64_t v = 0;
		ced_arena_init(&arena, 1 << 20, "memory_bytes");
		assert_int_equal(ced_json_read(&arena, cases[i].text, strlen(cases[i].text), 2,
					 "json_depth", &j, &err),
			0);
		assert_int_equal(ced_json_long(&j, &v, &err), cases[i].code);
		assert_true(v == cases[i].value);
		ced_arena_done(&arena);
	}
}

static void json_unescapes(void **state)
{
	const char *text = "[\"a\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\ud83d\\ude00\\u0000z\"]";
	static const char want[] = "a\"\\/\b\f\n\r\t\xc3\xa9\xf0\x9f\x98\x80\0z";
	struct ced_arena arena;
	struct ced_json j;
	struct cedar_error err;
	(void)state;
	ced_arena_init(&arena, 1 << 20, "memory_bytes");
	assert_int_equal(ced_json_read(&arena, text, strlen(text), 2, "d", &j, &err), 0);
	assert_int_equal(j.u.items[0].u.text.n, sizeof(want) - 1);
	assert_memory_equal(j.u.items[0].u.text.p, want, sizeof(want) - 1);
	ced_arena_done(&arena);
}

/* -- The lexer ------------------------------------------------------------------------------ */

static int lex_all(const char *text, size_t n, struct ced_token *last, unsigned *count,
	struct cedar_error *err)
{
	struct ced_lexer lex;
	int code;
	ced_lex_init(&lex, text, n, err);
	for (*count = 0; (code = ced_lex_next(&lex, last)) == 0; (*count)++)
		if (last->kind == CED_TOKEN_END)
			break;
	return code;
}

static void lexer_takes_unicode_space_and_comments(void **state)
{
	static const char text[] = "a\xc2\xa0\xe2\x80\xa8\xe3\x80\x80"
				   "b // c\rd // e\n ?principal ::";
	struct ced_token t;
	struct cedar_error err;
	unsigned n;
	(void)state;
	assert_int_equal(lex_all(text, sizeof(text) - 1, &t, &n, &err), 0);
	assert_int_equal(n, 5);
	assert_int_equal(t.pos.line, 2);
	assert_int_equal(t.pos.column, 15);
}

static void lexer_refuses(void **state)
{
	static const char *const bad[] = {"\xef\xbb\xbfpermit", "\"a", "\"a\rb\"", "\"a\\\nb\"",
		"18446744073709551616", "#", "'a'", "\xff", "a / b", "a % b", "\xc3\xa9", "a & b"};
	struct ced_token t;
	struct cedar_error err;
	unsigned n;
	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_true(lex_all(bad[i], strlen(bad[i]), &t, &n, &err) < 0);
}

static void strings_stand_for_their_characters(void **state)
{
	static const struct {
		const char *text, *want; /* NULL: refused */
	} cases[] = {{"\"\"", ""}, {"\"a\nb\tc\"", "a\nb\tc"},
		{"\"\\n\\r\\t\\\\\\'\\\"\"", "\n\r\t\\'\""}, {"\"\\x41\\x7f\"", "A\x7f"},
		{"\"\\x80\"", NULL}, {"\"\\x4\"", NULL}, {"\"\\u{1_F600}\"", "\xf0\x9f\x98\x80"},
		{"\"\\u{_1}\"", NULL}, {"\"\\u{}\"", NULL}, {"\"\\u{d800}\"", NULL},
		{"\"\\u{110000}\"", NULL}, {"\"\\u{0000041}\"", NULL}, {"\"\\u{000041}\"", "A"},
		{"\"\\a\"", NULL}, {"\"\\*\"", NULL}, {"\"\\u41\"", NULL}};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ced_arena arena;
		struct ced_lexer lex;
		struct ced_token t;
		struct ced_slice s;
		struct cedar_error err;
		ced_arena_init(&arena, 1 << 20, "memory_bytes");
		ced_lex_init(&lex, cases[i].text, strlen(cases[i].text), &err);
		assert_int_equal(ced_lex_next(&lex, &t), 0);
		int code = ced_unescape(&arena, &t, &s, &err);
		assert_int_equal(code == 0, cases[i].want != NULL);
		if (code == 0)
			assert_true(ced_slice_is(s, cases[i].want));
		ced_arena_done(&arena);
	}
}

static void reserved_words_are_no_names(void **state)
{
	(void)state;
	assert_true(ced_is_attribute(slice("__cedarr")));
	assert_true(ced_is_attribute(slice("principal")));
	assert_false(ced_is_attribute(slice("__cedar")));
	assert_false(ced_is_attribute(slice("if")));
	assert_false(ced_is_attribute(slice("")));
	assert_false(ced_is_attribute(slice("1a")));
	assert_false(ced_is_attribute(slice("caf\xc3\xa9")));
	assert_true(ced_is_type_name(slice("A::permit::_1")));
	assert_false(ced_is_type_name(slice("A::if")));
	assert_false(ced_is_type_name(slice("A ::B")));
	assert_false(ced_is_type_name(slice("A::")));
	assert_false(ced_is_type_name(slice("::A")));
}

/* -- Extension types ------------------------------------------------------------------------ */

struct ext_case {
	const char *text;
	bool ok;
	int64_t value;
};

static void check_ext(
	bool (*parse)(struct ced_slice, int64_t *), const struct ext_case *cases, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int64_t v = 0;
		bool ok = parse(slice(cases[i].text), &v);
		if (ok != cases[i].ok || (ok && v != cases[i].value))
			fail_msg("%s: %s, %lld", cases[i].text, ok ? "taken" : "refused",
				(long long)v);
	}
}

static void decimals(void **state)
{
	static const struct ext_case cases[] = {{"1.0", true, 10000}, {"-0.5", true, -5000},
		{"0.0001", true, 1}, {"-0.0001", true, -1}, {"00.10", true, 1000},
		{"922337203685477.5807", true, INT64_MAX},
		{"-922337203685477.5808", true, INT64_MIN}, {"922337203685477.5808", false, 0},
		{"-922337203685477.5809", false, 0}, {"1", false, 0}, {"1.", false, 0},
		{".5", false, 0}, {"1.00000", false, 0}, {"+1.0", false, 0}, {"1.0\n", false, 0},
		{" 1.0", false, 0}, {"", false, 0}, {"-", false, 0}, {"1.0e1", false, 0},
		{"--1.0", false, 0}, {"1.-5", false, 0}};
	(void)state;
	check_ext(ced_decimal_parse, cases, sizeof(cases) / sizeof(cases[0]));
}

static void datetimes(void **state)
{
	static const struct ext_case cases[] = {{"1970-01-01", true, 0},
		{"1970-01-02T00:00:00Z", true, 86400000}, {"1969-12-31T23:59:59.999Z", true, -1},
		{"2000-02-29", true, 951782400000}, {"1900-02-29", false, 0},
		{"0000-02-29", true, -62162121600000}, {"0000-01-01", true, -62167219200000},
		{"9999-12-31T23:59:59.999Z", true, 253402300799999},
		{"1970-01-01T00:00:00+0100", true, -3600000}, {"1970-01-01T00:00:00.5Z", false, 0},
		{"1970-01-01T00:00:00-2359", true, 86340000},
		{"1970-01-01T00:00:00+2400", false, 0}, {"1970-01-01T00:00:00+0060", false, 0},
		{"1970-01-01T24:00:00Z", false, 0}, {"1970-01-01T00:00:60Z", false, 0},
		{"1970-01-01T00:00:00", false, 0}, {"1970-01-01t00:00:00Z", false, 0},
		{"1970-01-01T00:00:00z", false, 0}, {"1970-01-01T00:00:00+01:00", false, 0},
		{"1970-13-01", false, 0}, {"1970-00-01", false, 0}, {"1970-01-00", false, 0},
		{"1970-04-31", false, 0}, {"70-01-01", false, 0}, {"+10000-01-01", false, 0},
		{"1970-01-01\n", false, 0}, {"1970-01-01 ", false, 0}, {"", false, 0}};
	(void)state;
	check_ext(ced_datetime_parse, cases, sizeof(cases) / sizeof(cases[0]));
}

static void durations(void **state)
{
	static const struct ext_case cases[] = {{"1d2h3m4s5ms", true, 93784005}, {"0ms", true, 0},
		{"-1s", true, -1000}, {"5m", true, 300000}, {"5ms", true, 5},
		{"1d5ms", true, 86400005}, {"007d", true, 604800000},
		{"9223372036854775807ms", true, INT64_MAX},
		{"-9223372036854775808ms", true, INT64_MIN}, {"9223372036854775808ms", false, 0},
		{"-106751991167d7h12m55s808ms", true, INT64_MIN},
		{"-106751991167d7h12m55s809ms", false, 0}, {"", false, 0}, {"-", false, 0},
		{"1", false, 0}, {"ms", false, 0}, {"1h1d", false, 0}, {"1d1d", false, 0},
		{"1ms1s", false, 0}, {"+1s", false, 0}, {"1s-1ms", false, 0}, {"1 s", false, 0},
		{"1s\n", false, 0}, {"1D", false, 0}, {"1.5s", false, 0}};
	(void)state;
	check_ext(ced_duration_parse, cases, sizeof(cases) / sizeof(cases[0]));
}

static void addresses(void **state)
{
	static const char *const good[] = {"1.2.3.4", "0.0.0.0/0", "255.255.255.255/32",
		"::", "::1", "1::", "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7::", "::2:3:4:5:6:7:8",
		"ABCD:ef01::/128", "1::8/0", "0001::"};
	static const char *const bad[] = {"", "1.2.3", "1.2.3.4.5", "01.2.3.4", "256.1.1.1",
		"1.2.3.4/33", "1.2.3.4/", "1.2.3.4/01", "1.2.3.4/+1", "1.2.3.4/-1", " 1.2.3.4",
		"1.2.3.4 ", "1.2.3.4\n", "1::2::3", "1::2:3:4:5:6:7:8", ":::", ":1",
		"1:", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "12345::", "::1.2.3.4",
		"::ffff:1.2.3.4", "fe80::1%eth0", "[::1]", "::/129", "::/0128", "g::", "1.2.3.4/3 ",
		"0000:0000:0000:0000:0000:0000:0000:0001/00128"};
	struct ced_ip ip;
	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		if (!ced_ip_parse(slice(good[i]), &ip))
			fail_msg("%s refused", good[i]);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (ced_ip_parse(slice(bad[i]), &ip))
			fail_msg("%s taken", bad[i]);
	assert_true(ced_ip_parse(slice("1::8"), &ip));
	static const uint8_t want[16] = {0, 1, [15] = 8};
	assert_memory_equal(ip.bytes, want, 16);
	assert_int_equal(ip.prefix, 128);
}

/* -- Values --------------------------------------------------------------------------------- */

static void sets_are_canonical(void **state)
{
	struct ced_arena arena;
	(void)state;
	ced_arena_init(&arena, 1 << 20, "memory_bytes");
	struct ced_value a[] = {ced_number(CED_LONG, 2), ced_bool(true), ced_number(CED_LONG, 1),
		ced_number(CED_LONG, 2), ced_number(CED_DECIMAL, 2)};
	struct ced_value b[] = {ced_number(CED_DECIMAL, 2), ced_number(CED_LONG, 1),
		ced_number(CED_LONG, 2), ced_bool(true)};
	struct ced_value x = {.kind = CED_SET, .u.set = ced_set_make(&arena, a, 5)};
	struct ced_value y = {.kind = CED_SET, .u.set = ced_set_make(&arena, b, 4)};
	assert_int_equal(x.u.set->count, 4);
	assert_true(ced_value_eq(x, y));
	assert_true(ced_set_contains(x.u.set, ced_bool(true)));
	assert_false(ced_set_contains(x.u.set, ced_bool(false)));
	assert_true(ced_set_contains_all(x.u.set, y.u.set));
	struct ced_value c[] = {ced_number(CED_LONG, 1), ced_number(CED_LONG, 3)};
	const struct ced_set *z = ced_set_make(&arena, c, 2);
	assert_false(ced_set_contains_all(x.u.set, z));
	assert_true(ced_set_contains_any(x.u.set, z));
	const struct ced_set *none = ced_set_make(&arena, c, 0);
	assert_true(ced_set_contains_all(none, none));
	assert_false(ced_set_contains_any(x.u.set, none));
	ced_arena_done(&arena);
}

static void records_find_their_keys_and_refuse_doubles(void **state)
{
	struct ced_arena arena;
	struct ced_names names;
	struct ced_field f[64];
	const struct ced_name *twice = NULL;
	char key[16];
	(void)state;
	ced_arena_init(&arena, 1 << 20, "memory_bytes");
	ced_names_init(&names, &arena);
	for (int i = 0; i < 64; i++) {
		(void)snprintf(key, sizeof(key), "k%d", (i * 37) % 64);
		f[i] = (struct ced_field){
			ced_intern_text(&names, key), ced_number(CED_LONG, (i * 37) % 64)};
	}
	const struct ced_record *r = ced_record_make(&arena, f, 64, &twice);
	assert_non_null(r);
	for (int i = 0; i < 64; i++) {
		(void)snprintf(key, sizeof(key), "k%d", i);
		/* A name of another table: equality is by content. */
		const struct ced_value *v =
			ced_record_get(r, ced_name_make(&arena, key, strlen(key)));
		assert_non_null(v);
		assert_int_equal(v->u.number, i);
	}
	assert_null(ced_record_get(r, ced_intern_text(&names, "k64")));
	f[3].key = f[60].key;
	assert_null(ced_record_make(&arena, f, 64, &twice));
	assert_ptr_equal(twice, f[60].key);
	ced_names_done(&names);
	ced_arena_done(&arena);
}

static void an_arena_names_its_limit(void **state)
{
	struct ced_arena arena;
	struct cedar_error err;
	(void)state;
	ced_arena_init(&arena, 10000, "scratch_bytes");
	for (int i = 0; i < 9; i++)
		assert_non_null(ced_arena_alloc(&arena, 1000));
	assert_null(ced_arena_alloc(&arena, 4000));
	assert_int_equal(ced_arena_fail(&arena, &err, (struct ced_pos){0}), CEDAR_E_LIMIT);
	assert_string_equal(err.text, "over the limit scratch_bytes (10000)");
	assert_null(ced_arena_alloc(&arena, SIZE_MAX));
	assert_null(ced_arena_array(&arena, SIZE_MAX / 2, 4));
	ced_arena_done(&arena);
}

static void utf8_is_exact(void **state)
{
	static const char *const bad[] = {"\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xed\xa0\x80",
		"\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xc3", "\xe2\x82"};
	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(ced_utf8_valid(bad[i], strlen(bad[i])), 0);
	for (uint32_t c = 0; c <= 0x10ffff; c += c < 0x900 ? 1 : 0x101) {
		char text[4];
		size_t n, length;
		if (c >= 0xd800 && c <= 0xdfff)
			continue;
		n = ced_utf8_encode(c, text);
		assert_int_equal(ced_utf8_valid(text, n), n);
		assert_int_equal(ced_utf8_decode(text, &length), c);
		assert_int_equal(length, n);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(json_refuses_what_is_not_json),
		cmocka_unit_test(json_refuses_a_key_twice),
		cmocka_unit_test(json_names_the_limit_of_depth),
		cmocka_unit_test(json_integers_have_one_spelling),
		cmocka_unit_test(json_unescapes),
		cmocka_unit_test(lexer_takes_unicode_space_and_comments),
		cmocka_unit_test(lexer_refuses),
		cmocka_unit_test(strings_stand_for_their_characters),
		cmocka_unit_test(reserved_words_are_no_names),
		cmocka_unit_test(decimals),
		cmocka_unit_test(datetimes),
		cmocka_unit_test(durations),
		cmocka_unit_test(addresses),
		cmocka_unit_test(sets_are_canonical),
		cmocka_unit_test(records_find_their_keys_and_refuse_doubles),
		cmocka_unit_test(an_arena_names_its_limit),
		cmocka_unit_test(utf8_is_exact),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
