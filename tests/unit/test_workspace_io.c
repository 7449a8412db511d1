/*
 * A change set with every call on files failing, one after the other: the workspace is as it was or
 * as it should be, its count is exact, no descriptor is left, and it goes on working.
 */
#include "fail_io.h"
#include "whole_change.h"

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

struct outcome {
	bool came;
	int r;
	const char *call;
	struct err err;
};

static void expect(struct fixture *f, const struct outcome *o)
{
	if (o->r < 0)
		expect_before(f);
	else
		expect_after(f);
}

/* With the n-th call failing; false when the change needs fewer. */
static bool holds_at(unsigned long n, int errnum, const struct workspace_options *opt)
{
	struct fixture *f = start();
	struct outcome o = {0};
	fx_reopen(f, opt);
	unsigned before = open_descriptors();
	fail_io_arm(n, errnum);
	o.r = change_all(f->ws, &o.err);
	o.came = fail_io_disarm(&o.call);
	assert_int_equal(open_descriptors(), before);
	/* What fails below names itself, not the call that caused it. */
	if (o.came)
		print_message("# call %lu, %s: %s\n", n, o.call, o.r < 0 ? o.err.text : "done");
	for (int again = 0; again < 2; again++) {
		expect(f, &o);
		fx_reopen(f, opt);
	}
	if (o.r < 0 && change_all(f->ws, &o.err) < 0)
		fail_msg("call %lu, %s: then '%s'", n, o.call, o.err.text);
	expect_after(f);
	void *state = f;
	assert_int_equal(fx_teardown(&state), 0);
	return o.came;
}

static void sweep(int errnum, enum durability durability)
{
	unsigned long n = 1;
	struct workspace_options opt = {
		.history_bytes = 100 << 20, .durability = durability, .lock_wait_ms = 2000};
	assert_false(holds_at(0, errnum, &opt));
	while (holds_at(n, errnum, &opt))
		n++;
	assert_true(n > 50);
}

static void input_output_errors_leave_a_change_whole_or_undone(void **state)
{
	(void)state;
	sweep(EIO, DURABLE_PROCESS);
}

static void a_full_disk_leaves_a_change_whole_or_undone(void **state)
{
	(void)state;
	sweep(ENOSPC, DURABLE_PROCESS);
}

static void syncs_that_fail_leave_a_change_whole_or_undone(void **state)
{
	(void)state;
	sweep(EIO, DURABLE_POWER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(input_output_errors_leave_a_change_whole_or_undone),
		cmocka_unit_test(a_full_disk_leaves_a_change_whole_or_undone),
		cmocka_unit_test(syncs_that_fail_leave_a_change_whole_or_undone),
	};
	return cmocka_run_group_tests_name("workspace_io", tests, NULL, NULL);
}
