/*
 * A change set with every allocation failing, one after the other: the workspace is as it was or
 * as it should be, its count is exact, and it goes on working.
 */
#include "fail_alloc.h"
#include "whole_change.h"

/* With the n-th allocation failing; false when the change needs fewer. */
static bool holds_at(unsigned long n)
{
	struct err err;
	struct fixture *f = start();
	err_clear(&err);
	fail_alloc_arm(n);
	int r = change_all(f->ws, &err);
	bool came = fail_alloc_disarm();
	if (r < 0 && r != -ERR_NO_MEMORY)
		fail_msg("allocation %lu failing gives '%s'", n, err.text);
	for (int again = 0; again < 2; again++) {
		if (r < 0)
			expect_before(f);
		else
			expect_after(f);
		fx_reopen(f, &(struct workspace_options){.history_bytes = 100 << 20});
	}
	if (r < 0)
		assert_int_equal(change_all(f->ws, &err), 0);
	expect_after(f);
	void *state = f;
	assert_int_equal(fx_teardown(&state), 0);
	return came;
}

static void a_change_without_memory_is_whole_or_not_at_all(void **state)
{
	(void)state;
	unsigned long n = 1;
	(void)holds_at(0);
	long before = fail_alloc_live();
	while (holds_at(n)) {
		if (fail_alloc_live() != before)
			fail_msg("allocation %lu failing leaves %ld blocks", n,
				fail_alloc_live() - before);
		n++;
	}
	assert_true(n > 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_change_without_memory_is_whole_or_not_at_all),
	};
	return cmocka_run_group_tests_name("workspace_memory", tests, NULL, NULL);
}
