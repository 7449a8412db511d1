/* Tests of src/base: the error table round-trips, buffers keep their limit, UTF-8 and names are
 * exact. */
#include "testing.h"

#include "base/buf.h"
#include "base/sha256.h"
#include "base/text.h"

#include <errno.h>

static void every_code_has_a_distinct_name(void **state)
{
	(void)state;
	for (int i = 1; i < ERR_CODE_MAX_; i++) {
		const struct err_info *info = err_info((enum err_code)i);
		assert_int_equal(err_from_name(info->name), i);
		assert_in_range(info->http, 200, 599);
		assert_in_range(info->grpc, 1, 16);
		assert_in_range(info->exit, 1, 125);
		assert_true(info->rpc <= -32000);
	}
	assert_int_equal(err_from_name("no such code"), ERR_OK);
}

static void wrapping_keeps_code_and_adds_context(void **state)
{
	(void)state;
	struct err e;
	assert_int_equal(err_sys(&e, ENOENT, "opening '%s'", "x"), -ERR_NOT_FOUND);
	assert_int_equal(e.sys, ENOENT);
	assert_int_equal(err_wrap(&e, "reading the list"), -ERR_NOT_FOUND);
	assert_string_equal(e.text, "reading the list: opening 'x': No such file or directory");
}

static void long_text_is_cut_at_a_character(void **state)
{
	(void)state;
	struct err e;
	char big[1024];
	for (int i = 0; i < 511; i++)
		memcpy(big + i * 2, "\xc3\xa4", 2);
	big[1022] = '\0';
	(void)err_set(&e, ERR_IO, "x%s", big);
	assert_true(utf8_valid(e.text, strlen(e.text)));
	(void)err_set(&e, ERR_IO, "%s", big);
	assert_true(utf8_valid(e.text, strlen(e.text)));
	(void)err_wrap(&e, "%s", big);
	assert_true(utf8_valid(e.text, strlen(e.text)));
}

static void buffer_stops_at_its_maximum_and_says_so(void **state)
{
	(void)state;
	struct err e;
	_cleanup_buf_ struct buf b = buf_init(10);
	buf_puts(&b, "0123456789");
	assert_int_equal(buf_check(&b, "it", &e), 0);
	buf_putc(&b, 'x');
	assert_int_equal(buf_check(&b, "the note", &e), -ERR_LIMIT);
	assert_string_equal(e.text, "the note is larger than 10 bytes");
	assert_string_equal(buf_str(&b), "0123456789");
}

static void utf8_refuses_what_rfc3629_refuses(void **state)
{
	(void)state;
	static const char *bad[] = {"\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80",
		"\x80", "\xff", "\xc3", "\xe2\x82"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_false(utf8_valid(bad[i], strlen(bad[i])));
	assert_true(utf8_valid("a\0b\xf0\x9f\x98\x80", 7));
	assert_int_equal(utf8_error_at("abcdefghij\xff", 11), 10);
	assert_int_equal(utf8_floor("ab\xe2\x82\xac", 4), 2);
	assert_int_equal(utf8_floor("ab\xe2\x82\xac", 5), 5);
}

static void names_have_exactly_one_spelling(void **state)
{
	(void)state;
	char name[512];
	size_t n = 0;
	for (int c = 1; c < 256; c++)
		name[n++] = (char)c;
	_cleanup_buf_ struct buf text = buf_init(4096), back = buf_init(4096);
	name_escape(&text, (struct str){name, n});
	assert_true(utf8_valid(buf_str(&text), text.len));
	assert_true(name_unescape(&back, (struct str){buf_str(&text), text.len}));
	assert_int_equal(back.len, n);
	assert_memory_equal(back.data, name, n);
	static const char *bad[] = {"\\", "\\x", "\\x4", "\\x41", "\\xFF", "\\n", "a\\"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		buf_clear(&back);
		assert_false(name_unescape(&back, str_of(bad[i])));
	}
}

static void text_for_people_hides_nothing(void **state)
{
	(void)state;
	_cleanup_buf_ struct buf b = buf_init(4096);
	text_show(&b,
		STR("a\x1b[2J\xe2\x80\xae"
		    "b\n\xff"),
		false);
	assert_string_equal(buf_str(&b), "a\\x1b[2J\\u{202e}b\\x0a\\xff");
}

static void sha256_known_answers(void **state)
{
	(void)state;
	struct sha256 h, back;
	char hex[SHA256_HEX + 1];
	sha256_of("abc", 3, &h);
	sha256_hex(&h, hex);
	assert_string_equal(
		hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	assert_int_equal(sha256_parse(hex, 64, &back), 0);
	assert_memory_equal(&h, &back, sizeof(h));
	assert_int_equal(sha256_parse(hex, 63, &back), -1);
	hex[3] = 'g';
	assert_int_equal(sha256_parse(hex, 64, &back), -1);
	struct sha256_ctx *c = sha256_start();
	sha256_add(c, "a", 1);
	sha256_add(c, "bc", 2);
	sha256_finish(c, &back);
	assert_memory_equal(&h, &back, sizeof(h));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_code_has_a_distinct_name),
		cmocka_unit_test(wrapping_keeps_code_and_adds_context),
		cmocka_unit_test(long_text_is_cut_at_a_character),
		cmocka_unit_test(buffer_stops_at_its_maximum_and_says_so),
		cmocka_unit_test(utf8_refuses_what_rfc3629_refuses),
		cmocka_unit_test(names_have_exactly_one_spelling),
		cmocka_unit_test(text_for_people_hides_nothing),
		cmocka_unit_test(sha256_known_answers),
	};
	return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
