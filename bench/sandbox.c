/*
 * What a real command costs in the fence, through a running `cloister mcp`: an empty program, bash,
 * Python, a workspace of many files, a commit of many files; against bwrap when it is installed,
 * against plain Python and against cp.
 *
 *     bench_sandbox build/cloister [rounds, 200 when not given]
 *
 * Everything runs pinned to one CPU, in turn, in one run.
 */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	LINE_MAX_BYTES = 1 << 20,
	ROUNDS = 200,
	COPIES = 9,
	FEW = 10,
	MANY = 100000,
	FOLDER_FILES = 1000,
	COPIED = 1000,
	COPIED_BYTES = 10 * 1024,
};

#define PYTHON "/usr/bin/python3"
#define CALL(tool, args)                                                                           \
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"_meta\":{"          \
	"\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","                              \
	"\"io.modelcontextprotocol/clientCapabilities\":{}},"                                      \
	"\"name\":\"" tool "\",\"arguments\":" args "}}\n"

struct server {
	pid_t pid;
	int to, from;
};

static char line[LINE_MAX_BYTES];
static char place[] = "/var/tmp/cloister-bench-XXXXXX";

static void die(const char *what)
{
	perror(what);
	exit(1);
}

/* --- one server a workspace ------------------------------------------------------------------- */

static struct server start(const char *program, const char *workspace)
{
	int in[2], out[2];
	if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
		die("pipe");
	pid_t pid = fork();
	if (pid < 0)
		die("fork");
	if (pid == 0) {
		(void)dup2(in[0], 0);
		(void)dup2(out[1], 1);
		execl(program, program, "mcp", "--workspace", workspace, (char *)NULL);
		_exit(127);
	}
	(void)close(in[0]);
	(void)close(out[1]);
	return (struct server){.pid = pid, .to = in[1], .from = out[0]};
}

static void stop(struct server *s)
{
	(void)close(s->to);
	(void)close(s->from);
	(void)kill(s->pid, SIGTERM);
	while (waitpid(s->pid, NULL, 0) < 0 && errno == EINTR)
		;
}

static ssize_t get_line(int fd)
{
	size_t n = 0;
	while (n < sizeof(line) - 1) {
		ssize_t got = read(fd, line + n, sizeof(line) - 1 - n);
		if (got <= 0)
			return -1;
		n += (size_t)got;
		line[n] = '\0';
		if (line[n - 1] == '\n')
			return (ssize_t)n;
	}
	return -1;
}

struct exchange {
	struct server *server;
	const char *request;
};

/* A command that was refused or failed is no measurement. */
static int exchange(void *ctx)
{
	const struct exchange *e = ctx;
	size_t n = strlen(e->request);
	if (write(e->server->to, e->request, n) != (ssize_t)n)
		return -1;
	if (get_line(e->server->from) > 0 && strstr(line, "\"exit_code\":0"))
		return 0;
	(void)fprintf(stderr, "no good answer: %.300s\n", line);
	return -1;
}

/* --- peers ------------------------------------------------------------------------------------ */

static int run_plain(void *ctx)
{
	char *const *argv = ctx;
	int status;
	pid_t pid = fork();
	if (pid < 0)
		return -1;
	if (pid == 0) {
		int null = open("/dev/null", O_RDWR | O_CLOEXEC);
		(void)dup2(null, 0);
		(void)dup2(null, 1);
		execvp(argv[0], argv);
		_exit(127);
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}

#define WORD(s) ((char *)(uintptr_t)(s))
#define BWRAP                                                                                      \
	WORD("bwrap"), WORD("--unshare-all"), WORD("--die-with-parent"), WORD("--new-session"),    \
		WORD("--ro-bind"), WORD("/"), WORD("/"), WORD("--dev"), WORD("/dev"),              \
		WORD("--proc"), WORD("/proc"), WORD("--tmpfs"), WORD("/tmp")

static char *bwrap_true[] = {BWRAP, WORD("/bin/true"), NULL};
static char *plain_python[] = {WORD(PYTHON), WORD("-c"), WORD("print(1)"), NULL};

/* --- the place -------------------------------------------------------------------------------- */

static void put_file(const char *path, size_t bytes)
{
	static const char block[COPIED_BYTES];
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd < 0 || write(fd, block, bytes) != (ssize_t)bytes || close(fd) < 0)
		die(path);
}

/* `n` files of `bytes` in folders of FOLDER_FILES below place/name, whose path is returned. */
static const char *make_tree(char ret[static 128], const char *name, unsigned n, size_t bytes)
{
	char path[256];
	(void)snprintf(ret, 128, "%s/%s", place, name);
	if (mkdir(ret, 0755) < 0)
		die(ret);
	for (unsigned i = 0; i < n; i++) {
		(void)snprintf(path, sizeof(path), "%s/d%03u", ret, i / FOLDER_FILES);
		if (i % FOLDER_FILES == 0 && mkdir(path, 0755) < 0)
			die(path);
		(void)snprintf(path, sizeof(path), "%s/d%03u/f%06u", ret, i / FOLDER_FILES, i);
		put_file(path, bytes);
	}
	return ret;
}

static void remove_place(void)
{
	char *argv[] = {WORD("rm"), WORD("-rf"), place, NULL};
	if (run_plain(argv) < 0)
		(void)fprintf(stderr, "%s could not be removed\n", place);
}

/* --- the commit of many files ----------------------------------------------------------------- */

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static double timed(bench_fn fn, void *ctx)
{
	double from = bench_now_ns();
	if (fn(ctx) < 0)
		exit(1);
	return bench_now_ns() - from;
}

/* The whole call is timed, also the copying inside of the fence. What was copied is taken away
 * between the rounds, untimed, so that every round makes new files. */
static void measure_commit(struct server *server, const char *workspace)
{
	char script[512];
	double ours[COPIES], peer[COPIES];
	struct exchange copy = {
		server, CALL("shell_run", "{\"argv\":[\"cp\",\"-r\",\"d000\",\"copy\"]}")};
	struct exchange clear = {server, CALL("shell_run", "{\"argv\":[\"rm\",\"-r\",\"copy\"]}")};
	(void)snprintf(script, sizeof(script), "cp -r %s/d000 %s/plain && sync -f %s/plain",
		workspace, place, place);
	char *cp[] = {WORD("sh"), WORD("-c"), script, NULL};
	char drop[512];
	(void)snprintf(drop, sizeof(drop), "%s/plain", place);
	char *rm[] = {WORD("rm"), WORD("-r"), drop, NULL};
	for (unsigned i = 0; i < COPIES; i++) {
		peer[i] = timed(run_plain, cp);
		(void)timed(run_plain, rm);
		ours[i] = timed(exchange, &copy);
		(void)timed(exchange, &clear);
	}
	qsort(ours, COPIES, sizeof(ours[0]), by_value);
	qsort(peer, COPIES, sizeof(peer[0]), by_value);
	double ratio = ours[COPIES / 2] / peer[COPIES / 2];
	printf("cp -r of %d files of %d bytes, committed: %.1f ms; plain with one sync: %.1f ms; "
	       "= %.2f (bar <= 2.00): %s\n",
		COPIED, COPIED_BYTES, ours[COPIES / 2] / 1e6, peer[COPIES / 2] / 1e6, ratio,
		ratio <= 2 ? "met" : "missed");
}

/* --- the run ---------------------------------------------------------------------------------- */

static void measure_commands(struct server *few, struct server *many, unsigned rounds)
{
	static const char true_request[] = CALL("shell_run", "{\"argv\":[\"/bin/true\"]}"),
			  bash_request[] = CALL("shell_run", "{\"command\":\"true\"}"),
			  python_request[] = CALL("python_run", "{\"code\":\"print(1)\"}"),
			  change_request[] =
				  CALL("shell_run", "{\"command\":\"echo $$ >changed\"}");
	struct exchange run_true = {few, true_request}, run_bash = {few, bash_request},
			run_python = {few, python_request}, change_few = {few, change_request},
			change_many = {many, change_request};
	bool has_bwrap = run_plain(bwrap_true) == 0;
	struct bench b = bench_begin("sandbox");
	unsigned peer = has_bwrap ? bench_add(&b, "bwrap /bin/true", run_plain, bwrap_true) : 0;
	unsigned t = bench_add(&b, "shell_run /bin/true", exchange, &run_true);
	unsigned sh = bench_add(&b, "shell_run bash -c true", exchange, &run_bash);
	unsigned pp = bench_add(&b, "plain python3 -c print(1)", run_plain, plain_python);
	unsigned py = bench_add(&b, "python_run print(1)", exchange, &run_python);
	unsigned cf = bench_add(&b, "one changed file of 10", exchange, &change_few);
	unsigned cm = bench_add(&b, "one changed file of 100,000", exchange, &change_many);
	bench_run(&b, rounds, 1);
	if (has_bwrap) {
		bench_ratio(&b, t, peer, 0.6);
		bench_ratio(&b, sh, peer, 0.6);
	} else {
		printf("skipped: bwrap does not run here\n");
	}
	bench_ratio(&b, py, pp, 1.0);
	bench_ratio(&b, cm, cf, 1.2);
	if (bench_end(&b) != 0)
		exit(1);
}

int main(int argc, char **argv)
{
	char few_path[128], many_path[128], copied_path[128], state[128];
	unsigned rounds = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : ROUNDS;
	if (argc < 2 || rounds == 0 || rounds > BENCH_ROUNDS_MAX) {
		(void)fprintf(stderr, "usage: %s CLOISTER [ROUNDS]\n", argv[0]);
		return 2;
	}
	(void)signal(SIGPIPE, SIG_IGN);
	bench_pin();
	if (!mkdtemp(place))
		die(place);
	(void)snprintf(state, sizeof(state), "%s/state", place);
	(void)setenv("CLOISTER_STATE_DIR", state, 1);
	(void)atexit(remove_place);
	struct server few = start(argv[1], make_tree(few_path, "few", FEW, 100));
	struct server many = start(argv[1], make_tree(many_path, "many", MANY, 1));
	struct server copied =
		start(argv[1], make_tree(copied_path, "copied", COPIED, COPIED_BYTES));
	measure_commands(&few, &many, rounds);
	measure_commit(&copied, copied_path);
	printf("memory (PSS) of cloister mcp and what it started: %.1f MB\n",
		(double)bench_tree_pss(few.pid) / 1e6);
	stop(&few);
	stop(&many);
	stop(&copied);
	return 0;
}
