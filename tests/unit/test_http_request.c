/* Requests as HTTP brings them: what is refused, and what decoding gives (RFC 9110, RFC 9112). */
#include "testing.h"

#include "transport/http/request.h"

static const char *const hosts[] = {"localhost", "127.0.0.1", "[::1]", NULL};
static const char *const origins[] = {"https://app.example", NULL};
static const struct http_hosts ours = {.hosts = hosts, .origins = origins};

/* A request with `lines`, "name: value" with newlines between; the code of the first refusal. */
static int read_one(struct http_request *q, const char *target, const char *lines, struct err *err)
{
	*err = (struct err){.code = ERR_OK};
	int r = http_request_start(q, STR("GET"), str_of(target), err);
	for (const char *p = lines; r == 0 && *p;) {
		const char *end = strchrnul(p, '\n'), *colon = memchr(p, ':', (size_t)(end - p));
		assert_non_null(colon);
		r = http_request_header(q, (struct str){p, (size_t)(colon - p)},
			(struct str){colon + 1, (size_t)(end - colon - 1)}, err);
		p = *end ? end + 1 : end;
	}
	return r < 0 ? r : http_request_finish(q, &ours, err);
}

static enum err_code code_of(const char *target, const char *lines)
{
	static struct http_request q;
	struct err err;
	int r = read_one(&q, target, lines, &err);
	http_request_done(&q);
	assert_int_equal(r, -(int)err.code);
	return err.code;
}

#define H "Host: localhost\n"

static void test_framing(void **state)
{
	(void)state;
	static const struct {
		const char *lines;
		enum err_code code;
	} rows[] = {
		{H, ERR_OK},
		{H "Content-Length: 5", ERR_OK},
		{H "Content-Length: 5\nContent-Length: 6", ERR_INVALID_ARGUMENT},
		{H "Content-Length: 5\nContent-Length: 5", ERR_INVALID_ARGUMENT},
		{H "Content-Length: +1", ERR_INVALID_ARGUMENT},
		{H "Content-Length: 0x1", ERR_INVALID_ARGUMENT},
		{H "Content-Length: 1, 1", ERR_INVALID_ARGUMENT},
		{H "Content-Length: ", ERR_INVALID_ARGUMENT},
		{H "Content-Length: 99999999999999999999", ERR_TOO_LARGE},
		{H "Content-Length: 5\nTransfer-Encoding: chunked", ERR_INVALID_ARGUMENT},
		{H "Transfer-Encoding: chunked", ERR_OK},
		{H "Transfer-Encoding: gzip, chunked", ERR_UNSUPPORTED},
		{H "Transfer-Encoding: chunked\nTransfer-Encoding: chunked", ERR_INVALID_ARGUMENT},
		{H "Transfer-Encoding: identity", ERR_UNSUPPORTED},
		{H "Content-Encoding: gzip", ERR_UNSUPPORTED},
		{H "A b: folded", ERR_INVALID_ARGUMENT},
		{H "A : 1", ERR_INVALID_ARGUMENT},
		{H ": 1", ERR_INVALID_ARGUMENT},
		{H "A: x\ry", ERR_INVALID_ARGUMENT},
		{H "A: x\001y", ERR_INVALID_ARGUMENT},
		{H "A: t\tab", ERR_OK},
		{H "Range: bytes=0-1\nRange: bytes=2-3", ERR_INVALID_ARGUMENT},
	};
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		if (code_of("/", rows[i].lines) != rows[i].code)
			print_error("row: %s\n", rows[i].lines);
		assert_int_equal(code_of("/", rows[i].lines), rows[i].code);
	}
}

static void test_hosts(void **state)
{
	(void)state;
	assert_int_equal(code_of("/", ""), ERR_INVALID_ARGUMENT);
	assert_int_equal(code_of("/", H H), ERR_INVALID_ARGUMENT);
	assert_int_equal(code_of("/", "Host: LOCALHOST:8080"), ERR_OK);
	assert_int_equal(code_of("/", "Host: [::1]:80"), ERR_OK);
	assert_int_equal(code_of("/", "Host: evil.example"), ERR_DENIED);
	assert_int_equal(code_of("/", "Host: localhost.evil.example"), ERR_DENIED);
	assert_int_equal(code_of("/", "Host: 127.0.0.1@evil.example"), ERR_INVALID_ARGUMENT);
	assert_int_equal(code_of("/", "Host: localhost:80:80"), ERR_INVALID_ARGUMENT);
	assert_int_equal(code_of("/", "Host: localhost:x"), ERR_INVALID_ARGUMENT);
	assert_int_equal(code_of("/", "Host: "), ERR_INVALID_ARGUMENT);
	assert_int_equal(code_of("/", "Host: [::1"), ERR_INVALID_ARGUMENT);
}

static void test_origins(void **state)
{
	(void)state;
	assert_int_equal(code_of("/", H "Origin: https://app.example"), ERR_OK);
	assert_int_equal(code_of("/", H "Origin: https://app.example.evil.example"), ERR_DENIED);
	assert_int_equal(code_of("/", H "Origin: http://evil.example"), ERR_DENIED);
	assert_int_equal(code_of("/", H "Origin: null"), ERR_DENIED);
	assert_int_equal(code_of("/", "Host: localhost:1\nOrigin: http://localhost:1"), ERR_OK);
	assert_int_equal(code_of("/", "Host: localhost:1\nOrigin: http://localhost:2"), ERR_DENIED);
}

static void test_tokens(void **state)
{
	(void)state;
	struct http_request q;
	struct err err;
	assert_int_equal(read_one(&q, "/", H "Authorization: bearer abc.DEF", &err), 0);
	assert_true(str_eq(q.token, STR("abc.DEF")));
	http_request_done(&q);
	assert_int_equal(code_of("/", H "Authorization: Basic eDp5"), ERR_UNAUTHENTICATED);
	assert_int_equal(code_of("/", H "Authorization: Bearer "), ERR_UNAUTHENTICATED);
	assert_int_equal(code_of("/", H "Authorization: Bearer a b"), ERR_UNAUTHENTICATED);
	assert_int_equal(code_of("/", H "Authorization: Bearer a\nAuthorization: Bearer b"),
		ERR_INVALID_ARGUMENT);
}

static void test_targets_refused(void **state)
{
	(void)state;
	static const char *const rows[] = {"", "a", "*", "http://localhost/", "//a", "/a//b",
		"/../a", "/a/..", "/a/./b", "/%2e%2e/a", "/a%2fb", "/a%2Fb", "/a%00b", "/a%",
		"/a%2", "/a%zz", "/a b", "/a\\b", "/a\177", "/a#b", "/?a=1&a=2", "/?a=%", "/?a=%ff",
		"/?a=%00", "/?1&2&3&4&5&6&7&8&9&10&11&12&13&14&15&16&17"};
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		if (code_of(rows[i], H) != ERR_INVALID_ARGUMENT)
			print_error("target: %s\n", rows[i]);
		assert_int_equal(code_of(rows[i], H), ERR_INVALID_ARGUMENT);
	}
	char *deep = calloc(1, HTTP_SEGMENTS_MAX * 2 + 8);
	for (unsigned i = 0; i <= HTTP_SEGMENTS_MAX; i++)
		memcpy(deep + 2 * i, "/a", 2);
	assert_int_equal(code_of(deep, H), ERR_TOO_LARGE);
	free(deep);
	char *long_one = calloc(1, HTTP_TARGET_MAX + 2);
	memset(long_one, 'a', HTTP_TARGET_MAX + 1);
	long_one[0] = '/';
	assert_int_equal(code_of(long_one, H), ERR_TOO_LARGE);
	free(long_one);
}

static void test_targets_decoded(void **state)
{
	(void)state;
	struct http_request q;
	struct err err;
	assert_int_equal(read_one(&q, "/a/%c3%a4%ff/x+y/?p=1+2%2B3&q&r=", H, &err), 0);
	assert_int_equal(q.n_segments, 4);
	assert_string_equal(q.segments[0].p, "a");
	assert_string_equal(q.segments[1].p, "\xc3\xa4\xff");
	assert_string_equal(q.segments[2].p, "x+y");
	assert_int_equal(q.segments[3].n, 0);
	assert_true(str_eq(http_request_param(&q, "p"), STR("1 2+3")));
	assert_int_equal(http_request_param(&q, "q").n, 0);
	assert_non_null(http_request_param(&q, "r").p);
	assert_null(http_request_param(&q, "s").p);
	http_request_done(&q);
	assert_int_equal(read_one(&q, "/", H, &err), 0);
	assert_int_equal(q.n_segments, 1);
	http_request_done(&q);
}

static void test_ranges(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		int r;
		int64_t from, n;
	} rows[] = {{"bytes=0-0", 1, 0, 1}, {"bytes=0-", 1, 0, 100}, {"bytes=90-200", 1, 90, 10},
		{"bytes=-10", 1, 90, 10}, {"bytes=-1000", 1, 0, 100}, {"bytes=99-99", 1, 99, 1},
		{"bytes=100-", -1, 0, 0}, {"bytes=-0", -1, 0, 0}, {"bytes=5-4", 0, 0, 0},
		{"bytes=", 0, 0, 0}, {"bytes=-", 0, 0, 0}, {"bytes=a-", 0, 0, 0},
		{"bytes=1-2,4-5", 0, 0, 0}, {"lines=1-2", 0, 0, 0}, {"", 0, 0, 0},
		{"bytes=0-99999999999999999999", 0, 0, 0}};
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		int64_t from = 0, n = 0;
		assert_int_equal(http_range(str_of(rows[i].text), 100, &from, &n), rows[i].r);
		assert_int_equal(from, rows[i].from);
		assert_int_equal(n, rows[i].n);
	}
	int64_t from, n;
	assert_int_equal(http_range(STR("bytes=0-"), 0, &from, &n), -1);
	assert_int_equal(http_range(STR("bytes=-1"), 0, &from, &n), -1);
}

static void test_etags(void **state)
{
	(void)state;
	assert_true(http_etag_in(STR("\"a\", \"b\""), STR("b")));
	assert_true(http_etag_in(STR(" * "), STR("b")));
	assert_false(http_etag_in(STR("W/\"b\""), STR("b")));
	assert_false(http_etag_in(STR("\"b"), STR("b")));
	assert_false(http_etag_in(STR("b"), STR("b")));
	assert_false(http_etag_in(STR("\"ab\""), STR("b")));
	assert_false(http_etag_in(STR(""), STR("b")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_framing),
		cmocka_unit_test(test_hosts),
		cmocka_unit_test(test_origins),
		cmocka_unit_test(test_tokens),
		cmocka_unit_test(test_targets_refused),
		cmocka_unit_test(test_targets_decoded),
		cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_etags),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
