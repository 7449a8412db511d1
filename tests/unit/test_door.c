/* The port between doors and core: what is refused before core is asked. */
#include "testing.h"

#include "transport/door.h"

static struct str repeat(char *to, size_t n)
{
	memset(to, 'a', n);
	return (struct str){to, n};
}

static struct door_request call_of(void)
{
	return (struct door_request){.op = DOOR_CALL,
		.token = str_of("t"),
		.session = str_of("s"),
		.tool = str_of("file_read"),
		.body_fd = -1};
}

static void refused(const struct door_request *q, enum err_code code, const char *text)
{
	struct err err;
	assert_int_equal(door_check(q, &err), -(int)code);
	assert_string_equal(err.text, text);
}

static void who_is_not_known_learns_nothing_else(void **state)
{
	struct door_request q = {.op = DOOR_CALL, .wait_ms = -1, .body_fd = -1};
	(void)state;
	refused(&q, ERR_UNAUTHENTICATED, "a bearer token is needed");
}

static void a_complete_request_passes(void **state)
{
	struct err err;
	struct door_request q = call_of();
	(void)state;
	assert_int_equal(door_check(&q, &err), 0);
	q = (struct door_request){.op = DOOR_HEALTH, .body_fd = -1};
	assert_int_equal(door_check(&q, &err), 0);
}

static void what_is_missing_is_named(void **state)
{
	struct door_request q = call_of();
	(void)state;
	q.session = (struct str){NULL, 0};
	refused(&q, ERR_INVALID_ARGUMENT, "which session is not said");
	q = call_of();
	q.tool = (struct str){NULL, 0};
	refused(&q, ERR_INVALID_ARGUMENT, "which tool is not said");
	q = call_of();
	q.op = DOOR_CALL_RESULT;
	refused(&q, ERR_INVALID_ARGUMENT, "which call is not said");
	q = call_of();
	q.op = DOOR_UPLOAD;
	refused(&q, ERR_INVALID_ARGUMENT, "there is no content to write");
}

static void limits_are_named(void **state)
{
	static char big[LIMIT_REQUEST_BYTES + 1];
	struct err err;
	struct door_request q = call_of();
	(void)state;
	q.token = repeat(big, DOOR_TOKEN_MAX);
	assert_int_equal(door_check(&q, &err), 0);
	q.token = repeat(big, DOOR_TOKEN_MAX + 1);
	refused(&q, ERR_INVALID_ARGUMENT, "the bearer token is longer than 512 bytes");
	q = call_of();
	q.session = repeat(big, LIMIT_SESSION_ID + 1);
	refused(&q, ERR_INVALID_ARGUMENT, "the session id is longer than 128 bytes");
	q = call_of();
	q.arguments = repeat(big, sizeof(big));
	refused(&q, ERR_TOO_LARGE, "the arguments are larger than 67108864 bytes");
	q = call_of();
	q.wait_ms = DOOR_WAIT_MS_MAX + 1;
	refused(&q, ERR_INVALID_ARGUMENT, "wait_ms is not between 0 and 50000");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_is_not_known_learns_nothing_else),
		cmocka_unit_test(a_complete_request_passes),
		cmocka_unit_test(what_is_missing_is_named),
		cmocka_unit_test(limits_are_named),
	};
	return cmocka_run_group_tests_name("door", tests, NULL, NULL);
}
