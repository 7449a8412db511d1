/*
 * The registry with every call on files failing, one after the other, those of SQLite too: sessions
 * are whole or not there, no descriptor is left, and the next process goes on.
 */
#include "fail_io.h"
#include "session_life.h"

#include <errno.h>

static unsigned open_descriptors(void)
{
	unsigned n = 0;
	DIR *d = opendir("/proc/self/fd");
	assert_non_null(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

/* With the n-th call failing; false when there are fewer. */
static bool holds_at(unsigned long n, int errnum, enum durability durability)
{
	char what[96];
	const char *call = NULL;
	fake_ms = 1000000;
	start_anew();
	prepare(0);
	unsigned before = open_descriptors();
	fail_io_arm(n, errnum);
	struct life l = live(durability);
	bool came = fail_io_disarm(&call);
	(void)snprintf(what, sizeof(what), "call %lu, %s", n, came ? call : "none");
	if (came)
		print_message("# %s: %s\n", what, l.r < 0 ? err.text : "done");
	if (open_descriptors() != before)
		fail_msg("%s failing leaves a descriptor", what);
	live_check(&l, what);
	return came;
}

static void every_call_fails(int errnum, enum durability durability)
{
	unsigned long n = 1;
	assert_false(holds_at(0, errnum, durability));
	while (holds_at(n, errnum, durability))
		n++;
	assert_true(n > 50);
}

static void input_output_errors_leave_sessions_whole(void **state)
{
	(void)state;
	every_call_fails(EIO, DURABLE_PROCESS);
}

static void a_full_disk_leaves_sessions_whole(void **state)
{
	(void)state;
	every_call_fails(ENOSPC, DURABLE_PROCESS);
}

static void syncs_that_fail_leave_sessions_whole(void **state)
{
	(void)state;
	every_call_fails(EIO, DURABLE_POWER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(input_output_errors_leave_sessions_whole),
		cmocka_unit_test(a_full_disk_leaves_sessions_whole),
		cmocka_unit_test(syncs_that_fail_leave_sessions_whole),
	};
	return cmocka_run_group_tests_name("session_io", tests, sx_setup, sx_teardown);
}
