/*
 * A load generator for the HTTP door: keep-alive connections, one request at a time on each, in one
 * thread on epoll.
 *
 *     http_load [-c CONNECTIONS] [-t SECONDS] [-r RATE] [-p PID]... [-i IDLE] PORT < REQUEST
 *
 * REQUEST is one whole HTTP request as it goes over the wire (docs/benchmarks.md has examples).
 * Without a rate the next request follows the answer (closed loop). With one, requests are due at
 * fixed times, and the latency counts from when one was due, so that a stall is seen by all that
 * had to wait for it (open loop). -i opens so many connections more that never say anything. -p
 * names processes whose CPU time is told by request. Prints one JSON object.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { ANSWER_MAX = 256 * 1024, SAMPLES_MAX = 4 * 1024 * 1024, PIDS_MAX = 16 };

struct conn {
	int fd;
	bool waits;
	int64_t due_ns;
	size_t n;
	char answer[ANSWER_MAX];
};

static struct {
	unsigned connections, idle, n_pids;
	double seconds, rate;
	int pids[PIDS_MAX];
	unsigned short port;
	char *request;
	size_t request_n;
} opt = {.connections = 16, .seconds = 5};

static uint32_t *samples; /* microseconds */
static size_t n_samples, failures;

static int64_t now_ns(void)
{
	struct timespec t;
	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static int dial(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
		.sin_port = htons(opt.port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0)
		die("connect");
	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return fd;
}

/* Microseconds of CPU that the named processes have used. */
static int64_t cpu_us(void)
{
	int64_t sum = 0;
	for (unsigned i = 0; i < opt.n_pids; i++) {
		char path[64], text[1024];
		unsigned long user, system;
		(void)snprintf(path, sizeof(path), "/proc/%d/stat", opt.pids[i]);
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
		if (n <= 0)
			die(path);
		text[n] = '\0';
		(void)close(fd);
		const char *p = strrchr(text, ')');
		if (!p || sscanf(p + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
				  &user, &system) != 2)
			die(path);
		sum += (int64_t)(user + system) * 1000000 / sysconf(_SC_CLK_TCK);
	}
	return sum;
}

static void ask(struct conn *c, int64_t due_ns)
{
	if (send(c->fd, opt.request, opt.request_n, MSG_NOSIGNAL) != (ssize_t)opt.request_n)
		die("send");
	c->waits = true;
	c->n = 0;
	c->due_ns = due_ns;
}

/* Is the answer whole? Its length is in its head. */
static bool whole(struct conn *c)
{
	c->answer[c->n] = '\0';
	const char *end = strstr(c->answer, "\r\n\r\n"),
		   *length = strcasestr(c->answer, "\r\ncontent-length:");
	if (!end || !length || length > end)
		return false;
	return c->n >= (size_t)(end + 4 - c->answer) + strtoul(length + 17, NULL, 10);
}

static bool hear(struct conn *c)
{
	ssize_t n = recv(c->fd, c->answer + c->n, ANSWER_MAX - 1 - c->n, 0);
	if (n <= 0)
		die("recv");
	c->n += (size_t)n;
	if (!whole(c))
		return false;
	c->waits = false;
	if (strncmp(c->answer, "HTTP/1.1 2", 10) != 0)
		failures++;
	if (n_samples < SAMPLES_MAX)
		samples[n_samples++] = (uint32_t)((now_ns() - c->due_ns) / 1000);
	return true;
}

static int by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return x < y ? -1 : x > y;
}

static double at(double part)
{
	return n_samples ? samples[(size_t)((double)(n_samples - 1) * part)] / 1000.0 : 0;
}

/* Requests that are due go to connections that are free; without a rate one is always due. */
static int64_t send_due(struct conn *conns, int64_t next)
{
	int64_t now = now_ns(), step = opt.rate > 0 ? (int64_t)(1e9 / opt.rate) : 0;
	for (unsigned i = 0; i < opt.connections; i++) {
		if (conns[i].waits || (step && next > now))
			continue;
		ask(&conns[i], step ? next : now);
		next += step;
	}
	return next;
}

static void run(struct conn *conns, int ep)
{
	struct epoll_event ready[64];
	int64_t start = now_ns(), end = start + (int64_t)(opt.seconds * 1e9), next = start;
	do {
		next = send_due(conns, next);
		int n = epoll_wait(ep, ready, 64, opt.rate > 0 ? 0 : 1000);
		for (int i = 0; i < n; i++)
			(void)hear(ready[i].data.ptr);
	} while (now_ns() < end);
}

static void read_options(int argc, char **argv)
{
	int c;
	while ((c = getopt(argc, argv, "c:t:r:p:i:")) != -1) {
		if (c == 'c')
			opt.connections = (unsigned)strtoul(optarg, NULL, 10);
		else if (c == 't')
			opt.seconds = strtod(optarg, NULL);
		else if (c == 'r')
			opt.rate = strtod(optarg, NULL);
		else if (c == 'i')
			opt.idle = (unsigned)strtoul(optarg, NULL, 10);
		else if (c == 'p' && opt.n_pids < PIDS_MAX)
			opt.pids[opt.n_pids++] = (int)strtol(optarg, NULL, 10);
		else
			exit(2);
	}
	if (optind + 1 != argc)
		exit(2);
	opt.port = (unsigned short)strtoul(argv[optind], NULL, 10);
	opt.request = calloc(1, ANSWER_MAX);
	opt.request_n = fread(opt.request, 1, ANSWER_MAX, stdin);
}

int main(int argc, char **argv)
{
	struct rlimit files = {65536, 65536};
	read_options(argc, argv);
	(void)setrlimit(RLIMIT_NOFILE, &files);
	struct conn *conns = calloc(opt.connections, sizeof(*conns));
	samples = calloc(SAMPLES_MAX, sizeof(*samples));
	int ep = epoll_create1(EPOLL_CLOEXEC);
	for (unsigned i = 0; i < opt.connections; i++) {
		struct epoll_event e = {.events = EPOLLIN, .data.ptr = &conns[i]};
		conns[i].fd = dial();
		(void)epoll_ctl(ep, EPOLL_CTL_ADD, conns[i].fd, &e);
	}
	for (unsigned i = 0; i < opt.idle; i++)
		(void)dial();
	int64_t cpu = cpu_us(), start = now_ns();
	run(conns, ep);
	double took = (double)(now_ns() - start) / 1e9;
	cpu = cpu_us() - cpu;
	qsort(samples, n_samples, sizeof(*samples), by_value);
	printf("{\"requests\":%zu,\"per_second\":%.0f,\"failures\":%zu,\"p50_ms\":%.3f,\"p99_ms\":%"
	       ".3f,"
	       "\"max_ms\":%.3f,\"cpu_us_per_request\":%.1f}\n",
		n_samples, (double)n_samples / took, failures, at(0.5), at(0.99), at(1),
		n_samples ? (double)cpu / (double)n_samples : 0);
	return failures > 0;
}
