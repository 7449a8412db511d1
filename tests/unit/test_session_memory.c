/*
 * The registry with every allocation failing, one after the other, those of SQLite too: sessions
 * are whole or not there, nothing leaks, and the next process goes on.
 */
#include "fail_alloc.h"
#include "session_life.h"

/* With the n-th allocation failing; false when there are fewer. */
static bool holds_at(unsigned long n)
{
	char what[64];
	(void)snprintf(what, sizeof(what), "allocation %lu", n);
	fake_ms = 1000000;
	start_anew();
	prepare(0);
	long before = fail_alloc_live();
	fail_alloc_arm(n);
	struct life l = live(DURABLE_PROCESS);
	bool came = fail_alloc_disarm();
	if (l.r < 0 && l.r != -ERR_NO_MEMORY)
		fail_msg("%s failing gives '%s'", what, err.text);
	if (n > 0 && fail_alloc_live() != before)
		fail_msg("%s failing leaves %ld blocks", what, fail_alloc_live() - before);
	live_check(&l, what);
	return came;
}

static void a_registry_without_memory_stays_whole(void **state)
{
	(void)state;
	unsigned long n = 1;
	assert_false(holds_at(0));
	while (holds_at(n))
		n++;
	print_message("# %lu allocations\n", n - 1);
	assert_true(n > 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_registry_without_memory_stays_whole),
	};
	return cmocka_run_group_tests_name("session_memory", tests, sx_setup, sx_teardown);
}
