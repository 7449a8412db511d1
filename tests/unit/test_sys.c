/*
 * Tests of src/sys: the event loop keeps its promises under removal, the filter compiler agrees
 * with a plain reading of its table, processes start closed and die with their parent, packets are
 * whole.
 */
#include "testing.h"

#include "sys/fs.h"
#include "sys/landlock.h"
#include "sys/loop.h"
#include "sys/process.h"
#include "sys/seccomp.h"
#include "sys/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static struct err e;

/* --- loop --- */

struct seen {
	struct loop *loop;
	struct loop_source *a, *b;
	int count, other;
};

static void remove_both(void *ctx, int fd, uint32_t events)
{
	struct seen *s = ctx;
	(void)fd;
	(void)events;
	s->count++;
	loop_remove(&s->a);
	loop_remove(&s->b);
}

static void a_removed_source_is_never_called_again(void **state)
{
	(void)state;
	_cleanup_(cleanup_loop_free) struct loop *l = NULL;
	int p[2];
	struct seen s = {0};
	assert_int_equal(loop_new(8, &l, &e), 0);
	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	int p2 = dup(p[0]);
	assert_int_equal(write(p[1], "x", 1), 1);
	/* both are readable in the same turn; whichever runs first removes the other and itself */
	assert_int_equal(loop_io(l, p[0], EPOLLIN, remove_both, &s, &s.a, &e), 0);
	assert_int_equal(loop_io(l, p2, EPOLLIN, remove_both, &s, &s.b, &e), 0);
	assert_int_equal(loop_turn(l, 0, &e), 0);
	assert_int_equal(loop_turn(l, 0, &e), 0);
	assert_int_equal(s.count, 1);
	close(p[0]);
	close(p[1]);
	close(p2);
}

struct timers {
	struct loop_source *t[50];
	int order[50], n;
};
static struct timers timers;

static void timer_fired(void *ctx)
{
	timers.order[timers.n++] = (int)(intptr_t)ctx;
	if (timers.n == 10)
		loop_remove(&timers.t[30]);
}

static void timers_fire_once_in_order_and_not_when_removed(void **state)
{
	(void)state;
	_cleanup_(cleanup_loop_free) struct loop *l = NULL;
	assert_int_equal(loop_new(50, &l, &e), 0);
	int64_t now = loop_now_ms();
	for (int i = 0; i < 50; i++) {
		int k = (i * 37) % 50; /* every value once, shuffled */
		assert_int_equal(loop_timer(l, now - 100 + k, timer_fired, (void *)(intptr_t)k,
					 &timers.t[k], &e),
			0);
	}
	loop_timer_set(timers.t[20], -1);
	loop_remove(&timers.t[21]);
	assert_int_equal(loop_turn(l, 0, &e), 0);
	assert_int_equal(loop_turn(l, 0, &e), 0);
	assert_int_equal(timers.n, 47);
	for (int i = 1; i < timers.n; i++)
		assert_true(timers.order[i - 1] < timers.order[i]);
	for (int i = 0; i < timers.n; i++)
		assert_true(
			timers.order[i] != 20 && timers.order[i] != 21 && timers.order[i] != 30);
}

static void the_number_of_sources_has_a_limit_that_is_named(void **state)
{
	(void)state;
	_cleanup_(cleanup_loop_free) struct loop *l = NULL;
	struct loop_source *s[3] = {0};
	assert_int_equal(loop_new(2, &l, &e), 0);
	assert_int_equal(loop_timer(l, -1, timer_fired, NULL, &s[0], &e), 0);
	assert_int_equal(loop_timer(l, -1, timer_fired, NULL, &s[1], &e), 0);
	assert_int_equal(loop_timer(l, -1, timer_fired, NULL, &s[2], &e), -ERR_LIMIT);
	assert_non_null(strstr(e.text, "2"));
	loop_remove(&s[0]);
	assert_int_equal(loop_timer(l, -1, timer_fired, NULL, &s[2], &e), 0);
}

static void count_io(void *ctx, int fd, uint32_t events)
{
	struct seen *s = ctx;
	char c;
	(void)events;
	s->count++;
	if (read(fd, &c, 1) <= 0)
		loop_remove(&s->a);
}

static void a_regular_file_is_read_to_its_end(void **state)
{
	(void)state;
	_cleanup_(cleanup_loop_free) struct loop *l = NULL;
	struct seen s = {0};
	FILE *f = tmpfile();
	assert_non_null(f);
	fputs("abc", f);
	fflush(f);
	rewind(f);
	assert_int_equal(loop_new(4, &l, &e), 0);
	assert_int_equal(loop_io(l, fileno(f), EPOLLIN, count_io, &s, &s.a, &e), 0);
	for (int i = 0; i < 10; i++)
		assert_int_equal(loop_turn(l, 0, &e), 0);
	assert_int_equal(s.count, 4);
	assert_null(s.a);
	fclose(f);
}

static void count_signal(void *ctx, int signo)
{
	struct seen *s = ctx;
	s->count++;
	s->other = signo;
}

static void count_plain(void *ctx)
{
	((struct seen *)ctx)->count++;
}

static void signals_deferred_work_and_children_are_reported(void **state)
{
	(void)state;
	_cleanup_(cleanup_loop_free) struct loop *l = NULL;
	struct seen sig = {0}, defer = {0}, child = {0};
	assert_int_equal(loop_new(4, &l, &e), 0);
	assert_int_equal(loop_signal(l, SIGUSR1, count_signal, &sig, &sig.a, &e), 0);
	assert_int_equal(loop_defer(l, count_plain, &defer, &defer.a, &e), 0);
	pid_t pid = fork();
	if (pid == 0)
		_exit(0);
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	assert_int_equal(loop_child(l, pidfd, count_plain, &child, &child.a, &e), 0);
	raise(SIGUSR1);
	for (int i = 0; i < 50 && !child.count; i++)
		assert_int_equal(loop_turn(l, 100, &e), 0);
	assert_int_equal(loop_turn(l, 0, &e), 0);
	assert_int_equal(sig.count, 1);
	assert_int_equal(sig.other, SIGUSR1);
	assert_int_equal(defer.count, 1);
	assert_int_equal(child.count, 1);
	loop_defer_again(defer.a);
	assert_int_equal(loop_turn(l, -1, &e), 0);
	assert_int_equal(defer.count, 2);
	waitpid(pid, NULL, 0);
	close(pidfd);
}

/* --- seccomp --- */

/* What classic BPF would do, for the instructions that the compiler uses. */
static uint32_t run_filter(const struct seccomp_program *p, const struct seccomp_data *d)
{
	uint32_t acc = 0;
	for (unsigned pc = 0; pc < p->len; pc++) {
		const struct sock_filter *f = &p->code[pc];
		switch (f->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			memcpy(&acc, (const char *)d + f->k, sizeof(acc));
			break;
		case BPF_ALU | BPF_AND | BPF_K: acc &= f->k; break;
		case BPF_JMP | BPF_JA: pc += f->k; break;
		case BPF_JMP | BPF_JEQ | BPF_K: pc += acc == f->k ? f->jt : f->jf; break;
		case BPF_JMP | BPF_JGE | BPF_K: pc += acc >= f->k ? f->jt : f->jf; break;
		case BPF_JMP | BPF_JSET | BPF_K: pc += (acc & f->k) ? f->jt : f->jf; break;
		case BPF_RET | BPF_K: return f->k;
		default: fail_msg("unexpected instruction %x", f->code);
		}
	}
	fail_msg("ran off the end");
	return 0;
}

static uint32_t plain_reading(
	const struct seccomp_row *rows, unsigned n, uint32_t nr, const uint64_t *args)
{
	for (unsigned i = 0; i < n; i++) {
		if (rows[i].nr != nr)
			continue;
		uint64_t a = args[rows[i].arg], v = rows[i].value;
		bool ok = true;
		switch ((enum seccomp_do)rows[i].act) {
		case SECCOMP_ALLOW: return SECCOMP_RET_ALLOW;
		case SECCOMP_REFUSE: return SECCOMP_RET_ERRNO | EPERM;
		case SECCOMP_KILL: return SECCOMP_RET_KILL_PROCESS;
		case SECCOMP_ABSENT: return SECCOMP_RET_ERRNO | ENOSYS;
		case SECCOMP_IF_EQ: ok = a == v; break;
		case SECCOMP_IF_NONE: ok = (a & v) == 0; break;
		case SECCOMP_IF_ONLY: ok = (a & ~v) == 0; break;
		case SECCOMP_IF_ALL: ok = (a & v) == v; break;
		case SECCOMP_IF_LISTED:
		case SECCOMP_UNLESS_LISTED:
			ok = rows[i].act == SECCOMP_UNLESS_LISTED;
			for (unsigned k = 0; k < rows[i].n_list; k++)
				if (rows[i].list[k] == (uint32_t)a)
					ok = rows[i].act == SECCOMP_IF_LISTED;
			break;
		}
		return ok ? SECCOMP_RET_ALLOW : SECCOMP_RET_ERRNO | EPERM;
	}
	return SECCOMP_RET_ERRNO | (nr <= SECCOMP_KNOWN_MAX ? EPERM : ENOSYS);
}

static uint64_t seed = 1;
static uint32_t rnd(void)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed >> 33);
}

static void the_filter_says_what_its_table_says(void **state)
{
	(void)state;
	static struct seccomp_program p;
	static uint32_t lists[4][SECCOMP_LIST_MAX];
	for (unsigned i = 0; i < ARRAY_LEN(lists) * SECCOMP_LIST_MAX; i++)
		lists[i / SECCOMP_LIST_MAX][i % SECCOMP_LIST_MAX] = (uint32_t)rnd();
	for (int round = 0; round < 60; round++) {
		struct seccomp_row rows[SECCOMP_ROWS_MAX];
		bool used[512] = {0};
		unsigned n = rnd() % (round < 30 ? 20 : 120);
		for (unsigned i = 0; i < n; i++) {
			uint32_t nr;
			do
				nr = rnd() % 512;
			while (used[nr]);
			used[nr] = true;
			uint64_t v = (uint64_t)rnd() << (rnd() % 33);
			rows[i] = (struct seccomp_row){.nr = nr,
				.act = (uint8_t)(rnd() % 10),
				.arg = (uint8_t)(rnd() % 6),
				.value = v};
			if (rows[i].act >= SECCOMP_IF_LISTED) {
				rows[i].list = lists[rnd() % ARRAY_LEN(lists)];
				rows[i].n_list = (uint8_t)(rnd() % (SECCOMP_LIST_MAX + 1));
			}
		}
		assert_int_equal(seccomp_compile(rows, n, &p, &e), 0);
		for (uint32_t nr = 0; nr < 600; nr++) {
			for (int k = 0; k < 4; k++) {
				struct seccomp_data d = {
					.nr = (int)(nr < 590 ? nr : nr | 0x40000000u)};
				d.arch = AUDIT_ARCH_X86_64;
				for (int a = 0; a < 6; a++)
					d.args[a] = k == 0 ? 0 : ((uint64_t)rnd() << 32 | rnd());
				for (unsigned i = 0; k == 3 && i < n; i++)
					if (rows[i].nr == nr)
						d.args[rows[i].arg] =
							rows[i].n_list
								? rows[i].list[rnd() %
									       rows[i].n_list]
								: rows[i].value;
				uint64_t args[6];
				memcpy(args, d.args, sizeof(args));
				assert_int_equal(run_filter(&p, &d),
					plain_reading(rows, n, (uint32_t)d.nr, args));
			}
		}
		struct seccomp_data foreign = {.nr = 1, .arch = AUDIT_ARCH_I386};
		assert_int_equal(run_filter(&p, &foreign), SECCOMP_RET_KILL_PROCESS);
	}
}

static void a_number_listed_twice_is_refused(void **state)
{
	(void)state;
	static struct seccomp_program p;
	const struct seccomp_row rows[] = {{.nr = 7}, {.nr = 9}, {.nr = 7, .act = SECCOMP_KILL}};
	assert_int_equal(seccomp_compile(rows, 3, &p, &e), -ERR_INVALID_ARGUMENT);
}

/* --- processes and packets --- */

static int null_fd, sh_fd;

static struct process start_shell(const char *script, const int *fds, unsigned n_fds)
{
	const char *const argv[] = {"sh", "-c", script, NULL};
	const char *const envp[] = {"PATH=/usr/bin:/bin", NULL};
	struct process_spec spec = {.exec_fd = sh_fd,
		.argv = argv,
		.envp = envp,
		.fds = fds,
		.n_fds = n_fds,
		.null_fd = null_fd};
	struct process p;
	if (process_start(&spec, &p, &e) < 0)
		fail_msg("%s", e.text);
	return p;
}

static void a_started_process_has_only_the_given_descriptors_and_environment(void **state)
{
	(void)state;
	int out[2], leak = open("/etc/passwd", O_RDONLY); /* not close-on-exec */
	int far = fcntl(leak, F_DUPFD, 251);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	setenv("CLOISTER_SECRET", "s", 1);
	struct process p = start_shell("{ ls /proc/$$/fd; echo env; env; } >&3", &out[1], 1);
	close(out[1]);
	char text[4096];
	size_t n = 0;
	ssize_t got;
	while ((got = read(out[0], text + n, sizeof(text) - 1 - n)) > 0)
		n += (size_t)got;
	text[n] = '\0';
	int status = -1;
	assert_int_equal(process_wait(&p, -1, &status), 1);
	process_done(&p);
	assert_true(WIFEXITED(status));
	char *env = strstr(text, "env\n");
	assert_non_null(env);
	*env = '\0';
	assert_null(strstr(env + 1, "SECRET"));
	/* 0, 1, 2, 3 and what the shell itself opened at 10 or above for its redirections */
	assert_non_null(strstr(text, "3\n"));
	assert_null(strstr(text, "251"));
	char line[16];
	(void)snprintf(line, sizeof(line), "\n%d\n", leak);
	assert_true(leak == 3 || !strstr(text, line));
	close(leak);
	close(far);
	close(out[0]);
}

static void a_missing_executable_is_an_error_of_the_start(void **state)
{
	(void)state;
	const char *const argv[] = {"passwd", NULL};
	const char *const envp[] = {NULL};
	_cleanup_close_ int fd = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
	struct process_spec spec = {.exec_fd = fd, .argv = argv, .envp = envp, .null_fd = null_fd};
	struct process p;
	assert_true(process_start(&spec, &p, &e) < 0);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no zombie is left */
	assert_int_equal(errno, ECHILD);
}

static void a_process_dies_when_its_starter_does(void **state)
{
	(void)state;
	int life[2];
	char byte;
	assert_int_equal(pipe2(life, O_CLOEXEC), 0);
	pid_t middle = fork();
	if (middle == 0) {
		(void)start_shell("exec sleep 1000", &life[1], 1);
		(void)kill(getpid(), SIGKILL);
	}
	close(life[1]);
	waitpid(middle, NULL, 0);
	/* the pipe ends when the last holder is gone */
	struct pollfd pfd = {.fd = life[0], .events = POLLIN};
	assert_int_equal(poll(&pfd, 1, 5000), 1);
	assert_int_equal(read(life[0], &byte, 1), 0);
	close(life[0]);
}

static void packets_are_whole_and_too_many_descriptors_are_closed(void **state)
{
	(void)state;
	int s[2], fds[4] = {0, 1, 2, null_fd}, got[4];
	char b[16];
	unsigned n = 2;
	assert_int_equal(packet_pair(s, &e), 0);
	int before = dup(0);
	close(before);
	assert_int_equal(packet_send(s[0], "hello", 5, fds, 4, false, &e), 0);
	assert_int_equal(packet_recv(s[1], b, sizeof(b), got, &n, false, &e), -ERR_PARSE);
	int after = dup(0);
	close(after);
	assert_int_equal(before, after); /* nothing leaked */
	n = 4;
	assert_int_equal(packet_recv(s[1], b, sizeof(b), got, &n, false, &e), -ERR_BUSY);
	assert_int_equal(packet_send(s[0], "a packet of more than 16", 24, NULL, 0, false, &e), 0);
	assert_int_equal(packet_recv(s[1], b, sizeof(b), NULL, NULL, false, &e), -ERR_PARSE);
	n = 4;
	assert_int_equal(packet_send(s[0], "x", 1, fds, 2, false, &e), 0);
	assert_int_equal(packet_recv(s[1], b, sizeof(b), got, &n, false, &e), 1);
	assert_int_equal(n, 2);
	assert_true(fcntl(got[0], F_GETFD) & FD_CLOEXEC);
	close(got[0]);
	close(got[1]);
	close(s[0]);
	assert_int_equal(packet_recv(s[1], b, sizeof(b), NULL, NULL, false, &e), 0);
	assert_int_equal(packet_send(s[1], "x", 1, NULL, 0, false, &e), -ERR_UNAVAILABLE);
	close(s[1]);
}

static void arguments_are_plain_numbers_within_their_limit(void **state)
{
	(void)state;
	assert_int_equal(process_argument("0", 10), 0);
	assert_int_equal(process_argument("10", 10), 10);
	assert_int_equal(process_argument("9223372036854775807", INT64_MAX), INT64_MAX);
	static const char *const bad[] = {
		"", "11", "-1", "+1", " 1", "1x", "0x1", "99999999999999999999"};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(process_argument(bad[i], 10), -1);
	assert_int_equal(process_argument("9223372036854775808", INT64_MAX), -1);
}

/* --- files --- */

static void refuse_open(int dir, const char *path, int flags, int errnum)
{
	int fd = fs_open(dir, path, flags, flags & O_CREAT ? 0600 : 0);
	int got = errno;
	if (fd >= 0 || got != errnum)
		fail_msg("opening '%s' gave %d, %s", path, fd, fd < 0 ? strerror(got) : "");
}

static void an_open_stays_beneath_its_directory_and_follows_no_link(void **state)
{
	(void)state;
	char top[] = "/tmp/cloister-sys-XXXXXX";
	assert_non_null(mkdtemp(top));
	_cleanup_close_ int base = open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);
	_cleanup_close_ int dir = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(mkdirat(dir, "in", 0700), 0);
	assert_int_equal(symlinkat("../out", dir, "in/link"), 0);
	assert_int_equal(symlinkat(".", dir, "in/self"), 0);
	_cleanup_close_ int out = fs_open(dir, "out", O_WRONLY | O_CREAT | O_EXCL, 0600);
	_cleanup_close_ int in = fs_open(dir, "in", O_PATH | O_DIRECTORY, 0);
	assert_true(out >= 0 && in >= 0);
	refuse_open(in, "../out", O_RDONLY, EXDEV);
	refuse_open(in, "..", O_PATH, EXDEV);
	refuse_open(in, "../in/../out", O_WRONLY | O_TRUNC, EXDEV);
	refuse_open(in, "../made", O_WRONLY | O_CREAT, EXDEV);
	refuse_open(in, "/tmp", O_PATH, EXDEV);
	refuse_open(in, "link", O_RDONLY, ELOOP);
	refuse_open(in, "link", O_WRONLY | O_CREAT, ELOOP);
	refuse_open(in, "self/link", O_PATH | O_NOFOLLOW, ELOOP);
	assert_int_equal(faccessat(dir, "made", F_OK, 0), -1);
	_cleanup_close_ int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	refuse_open(root, "proc/self/status", O_RDONLY, EXDEV);
	_cleanup_close_ int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	refuse_open(proc, "self/root", O_PATH | O_DIRECTORY, ELOOP);
	assert_int_equal(tree_remove(base, strrchr(top, '/') + 1), 0);
}

int main(void)
{
	null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	sh_fd = open("/bin/sh", O_PATH | O_CLOEXEC);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_removed_source_is_never_called_again),
		cmocka_unit_test(timers_fire_once_in_order_and_not_when_removed),
		cmocka_unit_test(the_number_of_sources_has_a_limit_that_is_named),
		cmocka_unit_test(a_regular_file_is_read_to_its_end),
		cmocka_unit_test(signals_deferred_work_and_children_are_reported),
		cmocka_unit_test(the_filter_says_what_its_table_says),
		cmocka_unit_test(a_number_listed_twice_is_refused),
		cmocka_unit_test(a_started_process_has_only_the_given_descriptors_and_environment),
		cmocka_unit_test(a_missing_executable_is_an_error_of_the_start),
		cmocka_unit_test(a_process_dies_when_its_starter_does),
		cmocka_unit_test(arguments_are_plain_numbers_within_their_limit),
		cmocka_unit_test(packets_are_whole_and_too_many_descriptors_are_closed),
		cmocka_unit_test(an_open_stays_beneath_its_directory_and_follows_no_link),
	};
	return cmocka_run_group_tests_name("sys", tests, NULL, NULL);
}
