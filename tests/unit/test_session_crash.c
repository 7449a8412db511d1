/* Killed at every named point of creating, deleting, replacing and sweeping: whole or not at all,
 * and the next process goes on. */
#include "session_fixture.h"

#include "session/crash.h"

#include <signal.h>
#include <sys/wait.h>

static const char *const point_names[] = {
#define POINT(name) #name,
	SESSION_CRASH_POINTS(POINT)
#undef POINT
};

static int crash_at = -1;
static bool reached[CRASH_MAX_]; /* by any operation */

void session_crash_point(enum session_crash_point at)
{
	if ((int)at == crash_at)
		(void)kill(getpid(), SIGKILL);
}

/* --- what is killed ------------------------------------------------------------------------- */

static int op_create(struct registry *reg)
{
	return use(reg, "fresh");
}

static int op_delete(struct registry *reg)
{
	return registry_delete(reg, NULL, "old", &err);
}

static int op_delete_and_sweep(struct registry *reg)
{
	int r = registry_delete(reg, NULL, "old", &err);
	return r < 0 ? r : sweep(reg);
}

static int op_replace(struct registry *reg)
{
	fake_ms += 10000;
	return use(reg, "old");
}

static int op_sweep(struct registry *reg)
{
	fake_ms += 10000;
	return sweep(reg);
}

static void kill_at(int point, int64_t ttl_s, int (*op)(struct registry *), bool sweep_first)
{
	char what[64];
	int status;
	(void)snprintf(
		what, sizeof(what), "%s%s", point_names[point], sweep_first ? ", sweep first" : "");
	fake_ms = 1000000;
	start_anew();
	prepare(ttl_s);
	pid_t pid = fork();
	if (pid == 0) {
		crash_at = point;
		struct registry *reg = open_registry();
		int r = op(reg);
		registry_free(reg);
		_exit(r == 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
		fail_msg("%s: the operation fails", what);
	reached[point] |= WIFSIGNALED(status);
	sx_check(sweep_first, what);
}

static void kill_everywhere(int64_t ttl_s, int (*op)(struct registry *))
{
	for (int point = 0; point < CRASH_MAX_; point++) {
		kill_at(point, ttl_s, op, false);
		kill_at(point, ttl_s, op, true);
	}
}

static void creating_is_whole_or_not_at_all(void **state)
{
	(void)state;
	kill_everywhere(0, op_create);
}

static void deleting_is_whole_or_not_at_all(void **state)
{
	(void)state;
	kill_everywhere(0, op_delete);
}

static void deleting_and_sweeping_goes_on(void **state)
{
	(void)state;
	kill_everywhere(0, op_delete_and_sweep);
}

static void replacing_what_has_expired_inherits_nothing(void **state)
{
	(void)state;
	kill_everywhere(10, op_replace);
}

static void sweeping_what_has_expired_goes_on(void **state)
{
	(void)state;
	kill_everywhere(10, op_sweep);
}

static void every_point_was_reached(void **state)
{
	(void)state;
	for (int i = 0; i < CRASH_MAX_; i++)
		if (!reached[i])
			fail_msg("%s was never reached", point_names[i]);
}

static void at_any_moment_it_is_whole_or_not_at_all(void **state)
{
	(void)state;
	for (unsigned round = 0; round < 80; round++) {
		fake_ms = 1000000;
		start_anew();
		prepare(0);
		pid_t pid = fork();
		if (pid == 0) {
			struct registry *reg = open_registry();
			for (int i = 0; i < 1000; i++) {
				(void)op_delete_and_sweep(reg);
				(void)use(reg, "old");
				(void)use(reg, "fresh");
				(void)!registry_delete(reg, NULL, "fresh", &err);
			}
			_exit(0);
		}
		(void)usleep(500 + round * 41);
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
		sx_check(round % 2, "any moment");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(creating_is_whole_or_not_at_all),
		cmocka_unit_test(deleting_is_whole_or_not_at_all),
		cmocka_unit_test(deleting_and_sweeping_goes_on),
		cmocka_unit_test(replacing_what_has_expired_inherits_nothing),
		cmocka_unit_test(sweeping_what_has_expired_goes_on),
		cmocka_unit_test(every_point_was_reached),
		cmocka_unit_test(at_any_moment_it_is_whole_or_not_at_all),
	};
	return cmocka_run_group_tests(tests, sx_setup, sx_teardown);
}
