/* cloister-later: a program that begins when something is sent to it. */
#include "testing.h"

#include "daemon/programs.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum { WAIT_MS = 20000 };

struct later {
	int sock, out; /* our ends of its descriptors 3 and 4 */
	struct process process;
	struct err err;
};

/* What the program does with what was sent is in a script for sh(1). */
static int start(struct later *l, const char *program, const char *script)
{
	int pair[2], out[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	int exe = open(program, O_PATH | O_CLOEXEC),
	    null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	assert_true(exe >= 0 && null_fd >= 0);
	const int fds[] = {pair[1], out[1]};
	const char *const argv[] = {"late", "-c", script, "late", "with spaces", "", NULL};
	static const char *const envp[] = {"WHO=cloister", NULL};
	const struct process_spec spec = {.exec_fd = exe,
		.argv = argv,
		.envp = envp,
		.fds = fds,
		.n_fds = 2,
		.null_fd = null_fd};
	l->sock = pair[0];
	l->out = out[0];
	int r = program_start_later(NULL, &spec, &l->process, &l->err);
	close(exe);
	close(null_fd);
	close(pair[1]);
	close(out[1]);
	return r;
}

static int end(struct later *l)
{
	int status = -1;
	cleanup_close(&l->sock);
	assert_int_equal(process_wait(&l->process, WAIT_MS, &status), 1);
	process_done(&l->process);
	close(l->out);
	return status;
}

static void is_called(const struct later *l, const char *want)
{
	char path[64], name[64] = "";
	(void)snprintf(path, sizeof(path), "/proc/%d/comm", (int)l->process.pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(read(fd, name, sizeof(name) - 1) > 0);
	close(fd);
	name[strcspn(name, "\n")] = '\0';
	assert_string_equal(name, want);
}

static void nothing_begins_before_something_is_sent(void **state)
{
	struct later l = {.sock = -1};
	char got[200] = "";
	(void)state;
	assert_int_equal(
		start(&l, "/bin/sh",
			"printf '%s|%s|%s|%s' \"$WHO\" \"$1\" \"$#\" \"$(cat <&3)\" >&4; exit 7"),
		0);
	struct pollfd p = {.fd = l.out, .events = POLLIN};
	assert_int_equal(poll(&p, 1, 100), 0);
	is_called(&l, "cloister-later");
	assert_int_equal(send(l.sock, "first second", 12, 0), 12);
	assert_int_equal(shutdown(l.sock, SHUT_WR), 0);
	assert_int_equal(poll(&p, 1, WAIT_MS), 1);
	assert_true(read(l.out, got, sizeof(got) - 1) > 0);
	assert_string_equal(got, "cloister|with spaces|2|first second");
	int status = end(&l);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

static void it_ends_when_nothing_ever_is(void **state)
{
	struct later l = {.sock = -1};
	char got;
	(void)state;
	assert_int_equal(start(&l, "/bin/sh", "echo ran >&4"), 0);
	cleanup_close(&l.sock);
	assert_int_equal(read(l.out, &got, 1), 0);
	int status = end(&l);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* Descriptors: the channel, what the program was given, and no way to the program itself. */
static void the_program_gets_its_descriptors_and_no_other(void **state)
{
	struct later l = {.sock = -1};
	char got[200] = "";
	(void)state;
	assert_int_equal(start(&l, "/bin/bash", "ls /proc/$$/fd >&4; true"), 0);
	assert_int_equal(send(l.sock, "x", 1, 0), 1);
	assert_true(read(l.out, got, sizeof(got) - 1) > 0);
	assert_string_equal(got, "0\n1\n2\n3\n4\n");
	(void)end(&l);
}

static void what_cannot_be_executed_ends(void **state)
{
	struct later l = {.sock = -1};
	char got;
	(void)state;
	assert_int_equal(start(&l, "/etc/passwd", ""), 0);
	assert_int_equal(send(l.sock, "x", 1, 0), 1);
	assert_int_equal(read(l.out, &got, 1), 0);
	int status = end(&l);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 127);
}

static void a_missing_program_is_said(void **state)
{
	struct later l = {.sock = -1};
	(void)state;
	const struct process_spec spec = {.exec_fd = -1};
	assert_int_equal(
		program_start_later("/nowhere", &spec, &l.process, &l.err), -ERR_UNAVAILABLE);
	assert_non_null(strstr(l.err.text, "cloister-later"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_begins_before_something_is_sent),
		cmocka_unit_test(it_ends_when_nothing_ever_is),
		cmocka_unit_test(the_program_gets_its_descriptors_and_no_other),
		cmocka_unit_test(what_cannot_be_executed_ends),
		cmocka_unit_test(a_missing_program_is_said),
	};
	return cmocka_run_group_tests_name("later", tests, NULL, NULL);
}
