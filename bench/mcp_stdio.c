/*
 * MCP over stdio, as a client sees it: start to first result, a read of 1.3 KB, a list of 50
 * entries, memory; against an echo server that answers as many bytes over the same kind of pipes,
 * and against the npm server-filesystem when it is installed.
 *
 *     bench_mcp_stdio build/cloister [tests/e2e/node_modules/@modelcontextprotocol/
 *                                     server-filesystem/dist/index.js]
 *
 * Everything runs pinned to one CPU, in turn, in one run.
 */
#include "harness.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 1 << 20, ENTRIES = 50, ROUNDS = 3000, STARTS = 60 };

#define META                                                                                       \
	"\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","                   \
	"\"io.modelcontextprotocol/clientCapabilities\":{}},"
#define OURS(name, args)                                                                           \
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{" META                \
	"\"name\":\"" name "\",\"arguments\":" args "}}\n"
#define PEER(name, args)                                                                           \
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"" name     \
	"\",\"arguments\":" args "}}\n"
#define OPEN_PEER                                                                                  \
	"{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":" \
	"\"2025-11-25\",\"capabilities\":{},\"clientInfo\":{\"name\":\"b\",\"version\":\"1\"}}}\n" \
	"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n"

struct server {
	pid_t pid;
	int to, from;
};

static char line[LINE_MAX_BYTES];

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static int put_all(int fd, const char *p, size_t n)
{
	while (n > 0) {
		ssize_t done = write(fd, p, n);
		if (done <= 0)
			return -1;
		p += done;
		n -= (size_t)done;
	}
	return 0;
}

/* One line into `line`; its length, or -1. */
static ssize_t get_line(int fd)
{
	size_t n = 0;
	while (n < sizeof(line) - 1) {
		ssize_t got = read(fd, line + n, sizeof(line) - 1 - n);
		if (got <= 0)
			return -1;
		n += (size_t)got;
		if (line[n - 1] == '\n') {
			line[n] = '\0';
			return (ssize_t)n;
		}
	}
	return -1;
}

static struct server start(char *const argv[])
{
	int in[2], out[2];
	if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
		die("pipe");
	pid_t pid = fork();
	if (pid < 0)
		die("fork");
	if (pid == 0) {
		int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
		(void)dup2(in[0], 0);
		(void)dup2(out[1], 1);
		if (strstr(argv[0], "node"))
			(void)dup2(null, 2);
		execvp(argv[0], argv);
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

/* --- the floor: an echo server ---------------------------------------------------------------- */

static int echo(size_t bytes)
{
	static char answer[LINE_MAX_BYTES];
	memset(answer, 'x', bytes);
	answer[bytes - 1] = '\n';
	while (get_line(0) > 0)
		if (put_all(1, answer, bytes) < 0)
			return 1;
	return 0;
}

static struct server start_echo(const char *self, size_t bytes)
{
	char size[32];
	(void)snprintf(size, sizeof(size), "%zu", bytes);
	char *argv[] = {(char *)(uintptr_t)self, (char *)(uintptr_t) "--echo", size, NULL};
	return start(argv);
}

/* --- what is measured ------------------------------------------------------------------------- */

struct exchange {
	struct server *server;
	const char *request;
	size_t answered; /* bytes of the last answer */
};

static int exchange(void *ctx)
{
	struct exchange *e = ctx;
	if (put_all(e->server->to, e->request, strlen(e->request)) < 0)
		return -1;
	ssize_t n = get_line(e->server->from);
	if (n <= 0 || strstr(line, "\"isError\":true") || strstr(line, "\"error\":{")) {
		(void)fprintf(stderr, "no good answer: %.300s\n", n > 0 ? line : "(none)");
		return -1;
	}
	e->answered = (size_t)n;
	return 0;
}

/* What listing costs at least: names and sizes by plain calls. */
static int plain_list(void *ctx)
{
	DIR *d = opendir(ctx);
	struct dirent *e;
	if (!d)
		return -1;
	while ((e = readdir(d))) {
		struct statx st;
		if (e->d_name[0] != '.' &&
			statx(dirfd(d), e->d_name, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, &st) < 0)
			break;
	}
	(void)closedir(d);
	return e ? -1 : 0;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

/* Median of fork -> first answer to `request`, in microseconds. */
static double starts(char *const argv[], const char *request, unsigned n)
{
	double us[STARTS];
	for (unsigned i = 0; i < n; i++) {
		double from = bench_now_ns();
		struct server s = start(argv);
		struct exchange e = {.server = &s, .request = request};
		if (exchange(&e) < 0)
			exit(1);
		us[i] = (bench_now_ns() - from) / 1000;
		stop(&s);
	}
	qsort(us, n, sizeof(us[0]), compare);
	return us[n / 2];
}

/* --- the place -------------------------------------------------------------------------------- */

static char place[] = "/tmp/cloister-bench-XXXXXX", workspace[64], listed[80], state[80];

static void put_file(const char *folder, const char *name, size_t bytes)
{
	char path[256];
	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	FILE *f = fopen(path, "we");
	for (size_t i = 0; f && i < bytes; i++)
		(void)fputc(i % 60 == 59 ? '\n' : 'a' + (int)(i % 26), f);
	if (!f || fclose(f) != 0)
		die(path);
}

static void make_place(void)
{
	if (!mkdtemp(place))
		die(place);
	(void)snprintf(workspace, sizeof(workspace), "%s/ws", place);
	(void)snprintf(listed, sizeof(listed), "%s/many", workspace);
	(void)snprintf(state, sizeof(state), "%s/state", place);
	if (mkdir(workspace, 0755) < 0 || mkdir(listed, 0755) < 0)
		die(workspace);
	put_file(workspace, "file.txt", 1300);
	for (int i = 0; i < ENTRIES; i++) {
		char name[32];
		(void)snprintf(name, sizeof(name), "entry-%02d.txt", i);
		put_file(listed, name, 100);
	}
	(void)setenv("CLOISTER_STATE_DIR", state, 1);
}

static void remove_place(void)
{
	pid_t pid = fork();
	if (pid == 0) {
		execlp("rm", "rm", "-rf", place, (char *)NULL);
		_exit(127);
	}
	(void)waitpid(pid, NULL, 0);
}

/* --- the run ---------------------------------------------------------------------------------- */

struct peer {
	struct server server;
	char read[512], list[512];
};

static struct peer start_peer(const char *script)
{
	struct peer p;
	char *argv[] = {(char *)(uintptr_t) "node", (char *)(uintptr_t)script, workspace, NULL};
	p.server = start(argv);
	struct exchange e = {.server = &p.server, .request = OPEN_PEER};
	if (exchange(&e) < 0)
		exit(1);
	(void)snprintf(p.read, sizeof(p.read), PEER("read_text_file", "{\"path\":\"%s/file.txt\"}"),
		workspace);
	(void)snprintf(p.list, sizeof(p.list), PEER("list_directory", "{\"path\":\"%s\"}"), listed);
	return p;
}

static double start_peer_us(const char *script)
{
	char request[1024];
	char *argv[] = {(char *)(uintptr_t) "node", (char *)(uintptr_t)script, workspace, NULL};
	(void)snprintf(request, sizeof(request), "%s", OPEN_PEER);
	return starts(argv, request, 3);
}

static void measure_starts(
	const char *self, char *const ours[], const char *request, const char *script)
{
	char *floor[] = {(char *)(uintptr_t)self, (char *)(uintptr_t) "--echo",
		(char *)(uintptr_t) "100", NULL};
	double echo_us = starts(floor, request, STARTS), us = starts(ours, request, STARTS);
	printf("start to first result: %.0f us (echo %.0f us; bar 5000 us): %s\n", us, echo_us,
		us <= 5000 ? "met" : "missed");
	if (script)
		printf("  server-filesystem, start to initialize: %.0f us\n",
			start_peer_us(script));
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "--echo") == 0)
		return echo((size_t)strtoul(argv[2], NULL, 10));
	if (argc < 2) {
		(void)fprintf(
			stderr, "usage: %s CLOISTER [server-filesystem/dist/index.js]\n", argv[0]);
		return 2;
	}
	const char *script = argc > 2 && access(argv[2], R_OK) == 0 ? argv[2] : NULL;
	bench_pin();
	make_place();
	char *ours_argv[] = {argv[1], (char *)(uintptr_t) "mcp", (char *)(uintptr_t) "--workspace",
		workspace, NULL};
	static const char read_request[] = OURS("file_read", "{\"path\":\"file.txt\"}");
	static const char list_request[] = OURS("file_list", "{\"path\":\"many\"}");
	measure_starts(argv[0], ours_argv, read_request, script);

	struct server ours = start(ours_argv);
	struct exchange read_ours = {.server = &ours, .request = read_request},
			list_ours = {.server = &ours, .request = list_request};
	if (exchange(&read_ours) < 0 || exchange(&list_ours) < 0)
		return 1;
	struct server echo_read = start_echo(argv[0], read_ours.answered),
		      echo_list = start_echo(argv[0], list_ours.answered);
	struct exchange floor_read = {.server = &echo_read, .request = read_request},
			floor_list = {.server = &echo_list, .request = list_request};

	struct bench b = bench_begin("mcp_stdio");
	unsigned fr = bench_add(&b, "echo, as many bytes as a read", exchange, &floor_read);
	unsigned r = bench_add(&b, "file_read of 1.3 KB", exchange, &read_ours);
	unsigned fl = bench_add(&b, "echo, as many bytes as a list", exchange, &floor_list);
	unsigned l = bench_add(&b, "file_list of 50", exchange, &list_ours);
	unsigned pl = bench_add(&b, "getdents and statx of 50", plain_list, listed);
	struct peer peer = {.server = {.pid = -1}};
	struct exchange peer_read = {.server = &peer.server, .request = peer.read},
			peer_list = {.server = &peer.server, .request = peer.list};
	unsigned pr = 0, pls = 0;
	if (script) {
		peer = start_peer(script);
		pr = bench_add(&b, "server-filesystem read_text_file", exchange, &peer_read);
		pls = bench_add(&b, "server-filesystem list_directory", exchange, &peer_list);
	}
	bench_run(&b, ROUNDS, 1);
	bench_over(&b, r, fr, 0.5, 30);
	bench_over(&b, r, fr, 0.99, 150);
	bench_over(&b, l, fl, 0.5, 2 * bench_ns(&b, pl, 0.5) / 1000);
	if (script) {
		bench_ratio(&b, r, pr, 1.0 / 10);
		bench_ratio(&b, l, pls, 1.0 / 2);
	}
	printf("memory (PSS) of cloister mcp and what it started: %.1f MB (bar 8 MB)\n",
		(double)bench_tree_pss(ours.pid) / 1e6);
	if (script)
		printf("memory (PSS) of server-filesystem: %.1f MB\n",
			(double)bench_tree_pss(peer.server.pid) / 1e6);
	stop(&ours);
	stop(&echo_read);
	stop(&echo_list);
	if (script)
		stop(&peer.server);
	remove_place();
	return bench_end(&b);
}
