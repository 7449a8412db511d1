/*
 * The HTTP server over real sockets: what a hostile client sends is refused or bounded, and an
 * exchange goes through its life whatever the client does.
 */
#include "testing.h"

#include "transport/http/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

struct world {
	struct loop *loop;
	struct http_server *server;
	unsigned short port;
	unsigned begun, ready, done;
	bool hold; /* do not reply */
	struct http_exchange *held;
	int64_t memory_max;
	int body_fd; /* -1: bodies go to memory */
	bool stream;
};

static void on_begin(void *ctx, struct http_exchange *x)
{
	struct world *w = ctx;
	w->begun++;
	if (w->body_fd >= 0)
		http_body_wait(x);
	else
		http_body_memory(x, (size_t)w->memory_max);
	if (w->body_fd >= 0)
		w->held = x;
}

static void on_ready(void *ctx, struct http_exchange *x)
{
	struct world *w = ctx;
	char text[256];
	w->ready++;
	if (w->hold || w->stream) {
		w->held = x;
		if (w->stream)
			http_stream(x, 200, "text/event-stream");
		return;
	}
	(void)snprintf(text, sizeof(text), "%s %s %lld\n",
		http_method_name(http_request_of(x)->method), http_request_of(x)->segments[0].p,
		(long long)http_body_bytes(x));
	http_reply(x, 200, "text/plain", str_of(text));
}

static void on_done(void *ctx, struct http_exchange *x)
{
	struct world *w = ctx;
	w->done++;
	if (w->held == x)
		w->held = NULL;
}

static int listen_tcp(unsigned short *ret_port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(fd, 64), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &n), 0);
	*ret_port = ntohs(a.sin_port);
	return fd;
}

static struct world *world_with(const struct http_options *more)
{
	struct world *w = calloc(1, sizeof(*w));
	struct http_options o = more ? *more : (struct http_options){0};
	struct err err;
	static const char *const hosts[] = {"localhost", NULL};
	w->memory_max = 1000;
	w->body_fd = -1;
	assert_int_equal(loop_new(64, &w->loop, &err), 0);
	o.loop = w->loop;
	o.hosts = hosts;
	o.handler = (struct http_handler){on_begin, on_ready, on_done, w};
	assert_int_equal(http_server_new(&o, &w->server, &err), 0);
	assert_int_equal(http_server_listen(w->server, listen_tcp(&w->port), &err), 0);
	return w;
}

static void world_end(struct world *w)
{
	http_server_free(w->server);
	loop_free(w->loop);
	assert_int_equal(w->begun, w->done);
	free(w);
}

static int dial(struct world *w)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
		.sin_port = htons(w->port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	return fd;
}

static void turn(struct world *w, int64_t ms)
{
	struct err err;
	int64_t until = loop_now_ms() + ms;
	do
		assert_int_equal(loop_turn(w->loop, 2, &err), 0);
	while (loop_now_ms() < until);
}

/* Send, and turn until the peer closes, `want` is in what came, or `ms` have passed. The status; 0:
 * no answer; *ret_closed says whether the server closed. */
static char heard[64 * 1024];
static unsigned hear(struct world *w, int fd, const char *want, int64_t ms, bool *ret_closed)
{
	size_t n = 0;
	int64_t until = loop_now_ms() + ms;
	*ret_closed = false;
	heard[0] = '\0';
	while (loop_now_ms() < until) {
		turn(w, 0);
		ssize_t got = recv(fd, heard + n, sizeof(heard) - 1 - n, 0);
		if (got == 0 || (got < 0 && errno == ECONNRESET)) {
			*ret_closed = true;
			break;
		}
		n += got > 0 ? (size_t)got : 0;
		heard[n] = '\0';
		if (want && strstr(heard, want))
			break;
	}
	return strncmp(heard, "HTTP/1.1 ", 9) == 0 ? (unsigned)strtoul(heard + 9, NULL, 10) : 0;
}

static void say(int fd, const char *p, size_t n)
{
	assert_int_equal(send(fd, p, n, MSG_NOSIGNAL), n);
}

static unsigned ask_n(struct world *w, const char *p, size_t n, bool *ret_closed)
{
	int fd = dial(w);
	say(fd, p, n);
	unsigned status = hear(w, fd, NULL, 300, ret_closed);
	(void)close(fd);
	turn(w, 5);
	return status;
}

static unsigned ask(struct world *w, const char *text, bool *ret_closed)
{
	return ask_n(w, text, strlen(text), ret_closed);
}

#define H "Host: localhost\r\n"

/* Every row that c-style calls malformed and that the library's callbacks let us see: refused,
 * and the connection ended, so nothing behind it is taken for a request. */
static void test_malformed_is_refused(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		unsigned status;
	} rows[] = {
		{"POST /a HTTP/1.1\r\n" H "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
			400},
		{"GET /a HTTP/1.1\r\n" H H "\r\n", 400},
		{"GET /a HTTP/1.1\r\n\r\n", 400},
		{"GET /a HTTP/1.1\r\nHost: evil.example\r\n\r\n", 403},
		{"GET /a HTTP/1.1\r\n" H "Origin: http://evil.example\r\n\r\n", 403},
		{"GET /a HTTP/1.1\r\n" H "A : 1\r\n\r\n", 400},
		{"POST /a HTTP/1.1\r\n" H "Content-Length: +1\r\n\r\na", 400},
		{"POST /a HTTP/1.1\r\n" H "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501},
		{"POST /a HTTP/1.1\r\n" H
		 "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
			400},
		{"GET /a HTTP/1.1\r\n" H "A: 1\r\n folded: yes\r\n\r\n", 400},
		{"GET /a/../b HTTP/1.1\r\n" H "\r\n", 400},
		{"BREW /a HTTP/1.1\r\n" H "\r\n", 501},
		{"GET http://localhost/a HTTP/1.1\r\n" H "\r\n", 400},
	};
	struct world *w = world_with(NULL);
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		bool closed;
		unsigned status = ask(w, rows[i].text, &closed);
		if (status != rows[i].status || !closed)
			print_error("row %u: %u%s: %s\n", i, status, closed ? "" : " open",
				rows[i].text);
		assert_int_equal(status, rows[i].status);
		assert_true(closed);
	}
	assert_int_equal(w->begun, 0);
	world_end(w);
}

static void test_malformed_chunk_is_never_a_body(void **state)
{
	(void)state;
	struct world *w = world_with(NULL);
	bool closed;
	unsigned status = ask(w,
		"POST /a HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n0x1\r\na\r\n0\r\n\r\n",
		&closed);
	assert_true(status == 0 || status == 400);
	assert_true(closed);
	assert_int_equal(w->ready, 0);
	world_end(w);
}

static void test_keeps_alive_and_pipelines(void **state)
{
	(void)state;
	struct world *w = world_with(NULL);
	bool closed;
	int fd = dial(w);
	static const char two[] = "POST /a HTTP/1.1\r\n" H "Content-Length: 3\r\n\r\nabc"
				  "GET /b HTTP/1.1\r\n" H "\r\n";
	say(fd, two, sizeof(two) - 1);
	assert_int_equal(hear(w, fd, "GET b 0\n", 1000, &closed), 200);
	assert_non_null(strstr(heard, "POST a 3\n"));
	assert_false(closed);
	(void)close(fd);
	world_end(w);
}

static void test_body_over_its_limit(void **state)
{
	(void)state;
	struct world *w = world_with(NULL);
	bool closed;
	assert_int_equal(
		ask(w, "POST /a HTTP/1.1\r\n" H "Content-Length: 1001\r\n\r\n", &closed), 413);
	assert_true(closed);
	static char big[8192];
	int n = snprintf(big, sizeof(big),
		"POST /a HTTP/1.1\r\n" H
		"Transfer-Encoding: chunked\r\n\r\n7d0\r\n%02000d\r\n0\r\n\r\n",
		0);
	unsigned status = ask_n(w, big, (size_t)n, &closed);
	assert_true(status == 413 || (status == 0 && closed));
	assert_int_equal(w->ready, 0);
	world_end(w);
}

static void test_head_over_its_limit(void **state)
{
	(void)state;
	struct world *w = world_with(NULL);
	static char big[64 * 1024];
	bool closed;
	int n = snprintf(big, sizeof(big), "GET /a HTTP/1.1\r\n" H "A: %040000d\r\n\r\n", 0);
	unsigned status = ask_n(w, big, (size_t)n, &closed);
	assert_true(status == 431 || status == 413 || (status == 0 && closed));
	n = snprintf(big, sizeof(big), "GET /%040000d HTTP/1.1\r\n" H "\r\n", 0);
	status = ask_n(w, big, (size_t)n, &closed);
	assert_true(status == 414 || status == 413 || (status == 0 && closed));
	n = snprintf(big, sizeof(big), "GET /a HTTP/1.1\r\n" H);
	for (unsigned i = 0; i < 100; i++)
		n += snprintf(big + n, sizeof(big) - (size_t)n, "A%u: 1\r\n", i);
	n += snprintf(big + n, sizeof(big) - (size_t)n, "\r\n");
	assert_int_equal(ask_n(w, big, (size_t)n, &closed), 413);
	assert_int_equal(w->begun, 0);
	world_end(w);
}

/* A byte now and then keeps no connection open. */
static void test_slow_head_is_ended(void **state)
{
	(void)state;
	struct world *w = world_with(&(struct http_options){.head_ms = 300, .idle_ms = 60000});
	int fd = dial(w);
	bool closed = false;
	say(fd, "GET /a HTTP/1.1\r\n", 17);
	int64_t start = loop_now_ms();
	while (!closed && loop_now_ms() - start < 5000) {
		(void)send(fd, "A", 1, MSG_NOSIGNAL);
		(void)hear(w, fd, NULL, 50, &closed);
	}
	assert_true(closed);
	(void)close(fd);
	world_end(w);
}

static void test_idle_is_ended(void **state)
{
	(void)state;
	struct world *w = world_with(&(struct http_options){.idle_ms = 300});
	int fd = dial(w);
	bool closed;
	(void)hear(w, fd, NULL, 5000, &closed);
	assert_true(closed);
	(void)close(fd);
	world_end(w);
}

static void test_connections_of_an_address(void **state)
{
	(void)state;
	struct world *w = world_with(&(struct http_options){.per_address_max = 4});
	int fds[6];
	unsigned refused = 0;
	for (unsigned i = 0; i < 6; i++) {
		fds[i] = dial(w);
		turn(w, 5);
	}
	for (unsigned i = 0; i < 6; i++) {
		bool closed;
		(void)hear(w, fds[i], NULL, 20, &closed);
		refused += closed;
		(void)close(fds[i]);
	}
	assert_int_equal(refused, 2);
	world_end(w);
}

static void test_client_leaves_while_core_works(void **state)
{
	(void)state;
	struct world *w = world_with(NULL);
	w->hold = true;
	int fd = dial(w);
	say(fd, "GET /a HTTP/1.1\r\n" H "\r\n", 36);
	turn(w, 50);
	assert_non_null(w->held);
	(void)close(fd);
	turn(w, 50);
	http_reply(w->held, 200, "text/plain", STR("late"));
	turn(w, 50);
	assert_int_equal(w->done, 1);
	world_end(w);
}

static void test_server_ends_with_work_open(void **state)
{
	(void)state;
	struct world *w = world_with(NULL);
	w->hold = true;
	int fd = dial(w);
	say(fd, "GET /a HTTP/1.1\r\n" H "\r\n", 36);
	turn(w, 50);
	assert_non_null(w->held);
	http_server_free(w->server);
	w->server = NULL;
	assert_int_equal(w->done, 1);
	(void)close(fd);
	world_end(w);
}

static void test_body_waits_for_its_descriptor(void **state)
{
	(void)state;
	struct world *w = world_with(NULL);
	bool closed;
	w->body_fd = memfd_create("body", MFD_CLOEXEC);
	int fd = dial(w);
	static const char put[] = "PUT /a HTTP/1.1\r\n" H "Content-Length: 5\r\n\r\nhello";
	say(fd, put, sizeof(put) - 1);
	turn(w, 50);
	assert_int_equal(w->ready, 0);
	assert_int_equal(lseek(w->body_fd, 0, SEEK_END), 0);
	http_body_fd(w->held, w->body_fd, 100);
	assert_int_equal(hear(w, fd, "PUT a 5\n", 1000, &closed), 200);
	char text[8] = "";
	assert_int_equal(pread(w->body_fd, text, 7, 0), 5);
	assert_string_equal(text, "hello");
	(void)close(fd);
	(void)close(w->body_fd);
	world_end(w);
}

static void test_stream(void **state)
{
	(void)state;
	struct world *w = world_with(NULL);
	bool closed;
	w->stream = true;
	int fd = dial(w);
	say(fd, "GET /a HTTP/1.1\r\n" H "\r\n", 36);
	turn(w, 50);
	assert_true(http_stream_put(w->held, STR("data: 1\n\n")));
	assert_int_equal(hear(w, fd, "data: 1\n\n", 1000, &closed), 200);
	assert_true(http_stream_put(w->held, STR("data: 2\n\n")));
	assert_int_equal(hear(w, fd, "data: 2\n\n", 1000, &closed), 0);
	http_stream_end(w->held);
	(void)hear(w, fd, "0\r\n\r\n", 1000, &closed);
	assert_non_null(strstr(heard, "0\r\n\r\n"));
	(void)close(fd);
	world_end(w);
}

/* A client that does not read its stream cannot make us keep more than HTTP_STREAM_MAX. */
static void test_stream_that_nobody_reads(void **state)
{
	(void)state;
	struct world *w = world_with(NULL);
	static char block[64 * 1024];
	w->stream = true;
	int fd = dial(w);
	say(fd, "GET /a HTTP/1.1\r\n" H "\r\n", 36);
	turn(w, 50);
	bool fits = true;
	memset(block, 'x', sizeof(block));
	for (unsigned i = 0; fits && w->held && i < 4096; i++) {
		fits = http_stream_put(w->held, (struct str){block, sizeof(block)});
		turn(w, 0);
	}
	assert_false(fits);
	turn(w, 50);
	assert_int_equal(w->done, 0 + (w->held == NULL));
	(void)close(fd);
	turn(w, 50);
	assert_int_equal(w->done, 1);
	world_end(w);
}

/* Nothing that is sent as a request makes the server do anything but refuse or close. */
static void test_garbage(void **state)
{
	(void)state;
	struct world *w = world_with(NULL);
	static char noise[4096];
	unsigned seed = 1;
	for (unsigned i = 0; i < 200; i++) {
		for (size_t k = 0; k < sizeof(noise); k++) {
			seed = seed * 1103515245u + 12345u;
			noise[k] = (char)(seed >> 16);
		}
		int fd = dial(w);
		(void)send(fd, noise, sizeof(noise), MSG_NOSIGNAL);
		turn(w, 0);
		(void)close(fd);
		turn(w, 0);
	}
	assert_int_equal(w->begun, 0);
	bool closed;
	w->held = NULL;
	assert_int_equal(ask(w, "GET /a HTTP/1.1\r\n" H "Connection: close\r\n\r\n", &closed), 200);
	world_end(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_malformed_is_refused),
		cmocka_unit_test(test_malformed_chunk_is_never_a_body),
		cmocka_unit_test(test_keeps_alive_and_pipelines),
		cmocka_unit_test(test_body_over_its_limit),
		cmocka_unit_test(test_head_over_its_limit),
		cmocka_unit_test(test_slow_head_is_ended),
		cmocka_unit_test(test_idle_is_ended),
		cmocka_unit_test(test_connections_of_an_address),
		cmocka_unit_test(test_client_leaves_while_core_works),
		cmocka_unit_test(test_server_ends_with_work_open),
		cmocka_unit_test(test_body_waits_for_its_descriptor),
		cmocka_unit_test(test_stream),
		cmocka_unit_test(test_stream_that_nobody_reads),
		cmocka_unit_test(test_garbage),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
