/*
 * The HTTP server over real sockets: what a hostile client sends is refused or bounded, and an
 * exchange goes through its life whatever the client does.
 */
#include "testing.h"

#include "transport/http/server.h"

#include "http_world.h"

#include <signal.h>

struct world {
	struct loop *loop;
	struct http_server *server;
	unsigned short port;
	unsigned begun, ready, done;
	bool hold; /* do not reply */
	struct http_exchange *held;
	int64_t memory_max;
	int body_fd; /* a pipe; -1: bodies go to memory */
	bool stream;
};

static void on_begin(void *ctx, struct http_exchange *x)
{
	struct world *w = ctx;
	w->begun++;
	if (w->body_fd >= 0)
		http_body_pipe(x, w->body_fd);
	else
		http_body_memory(x, (size_t)w->memory_max);
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

static unsigned ask_n(struct world *w, const char *p, size_t n, bool *ret_closed)
{
	int fd = dial(w->port);
	say(fd, p, n);
	unsigned status = hear(w->loop, fd, NULL, 300, ret_closed);
	(void)close(fd);
	turn(w->loop, 5);
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
	int fd = dial(w->port);
	static const char two[] = "POST /a HTTP/1.1\r\n" H "Content-Length: 3\r\n\r\nabc"
				  "GET /b HTTP/1.1\r\n" H "\r\n";
	say(fd, two, sizeof(two) - 1);
	assert_int_equal(hear(w->loop, fd, "GET b 0\n", 1000, &closed), 200);
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
	int fd = dial(w->port);
	bool closed = false;
	say(fd, "GET /a HTTP/1.1\r\n", 17);
	int64_t start = loop_now_ms();
	while (!closed && loop_now_ms() - start < 5000) {
		(void)send(fd, "A", 1, MSG_NOSIGNAL);
		(void)hear(w->loop, fd, NULL, 50, &closed);
	}
	assert_true(closed);
	(void)close(fd);
	world_end(w);
}

static void test_idle_is_ended(void **state)
{
	(void)state;
	struct world *w = world_with(&(struct http_options){.idle_ms = 300});
	int fd = dial(w->port);
	bool closed;
	(void)hear(w->loop, fd, NULL, 5000, &closed);
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
		fds[i] = dial(w->port);
		turn(w->loop, 5);
	}
	for (unsigned i = 0; i < 6; i++) {
		bool closed;
		(void)hear(w->loop, fds[i], NULL, 20, &closed);
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
	int fd = dial(w->port);
	say(fd, "GET /a HTTP/1.1\r\n" H "\r\n", 36);
	turn(w->loop, 50);
	assert_non_null(w->held);
	(void)close(fd);
	turn(w->loop, 50);
	http_reply(w->held, 200, "text/plain", STR("late"));
	turn(w->loop, 50);
	assert_int_equal(w->done, 1);
	world_end(w);
}

static void test_server_ends_with_work_open(void **state)
{
	(void)state;
	struct world *w = world_with(NULL);
	w->hold = true;
	int fd = dial(w->port);
	say(fd, "GET /a HTTP/1.1\r\n" H "\r\n", 36);
	turn(w->loop, 50);
	assert_non_null(w->held);
	http_server_free(w->server);
	w->server = NULL;
	assert_int_equal(w->done, 1);
	(void)close(fd);
	world_end(w);
}

static const char put_head[] = "PUT /a HTTP/1.1\r\n" H "Content-Length: 1000000\r\n\r\n";

/* A megabyte through a pipe of a page: the client waits while nobody reads, and nothing is lost. */
static void test_body_through_a_pipe(void **state)
{
	(void)state;
	struct world *w = world_with(NULL);
	static char block[8192];
	int fds[2];
	bool closed;
	size_t sent = 0, got = 0;
	unsigned long sum = 0, expected = 0;
	assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
	(void)fcntl(fds[1], F_SETPIPE_SZ, 4096);
	w->body_fd = fds[1];
	int fd = dial(w->port);
	say(fd, put_head, sizeof(put_head) - 1);
	while (got < 1000000) {
		for (size_t i = 0; i < sizeof(block); i++)
			block[i] = (char)((sent + i) * 31);
		size_t n = sent < 1000000 ? MIN(sizeof(block), 1000000 - sent) : 0;
		ssize_t r = n ? send(fd, block, n, MSG_NOSIGNAL) : 0;
		for (ssize_t i = 0; i < r; i++)
			expected += (unsigned char)block[i] * (sent + (size_t)i);
		sent += r > 0 ? (size_t)r : 0;
		turn(w->loop, 0);
		r = read(fds[0], block, sizeof(block));
		for (ssize_t i = 0; i < r; i++)
			sum += (unsigned char)block[i] * (got + (size_t)i);
		got += r > 0 ? (size_t)r : 0;
	}
	assert_int_equal(sum, expected);
	assert_int_equal(hear(w->loop, fd, "PUT a 1000000\n", 1000, &closed), 200);
	(void)close(fd);
	world_end(w);
	(void)close(fds[0]);
	(void)close(fds[1]);
}

/* Core refuses in the middle of a body: the rest is dropped and the reply comes. */
static void test_pipe_without_reader(void **state)
{
	(void)state;
	struct world *w = world_with(NULL);
	static char block[50000];
	int fds[2];
	bool closed;
	(void)signal(SIGPIPE, SIG_IGN);
	assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
	w->body_fd = fds[1];
	int fd = dial(w->port);
	say(fd, put_head, sizeof(put_head) - 1);
	(void)close(fds[0]);
	for (unsigned i = 0; i < 20; i++) {
		for (size_t n = 0; n < sizeof(block);) {
			ssize_t r = send(fd, block + n, sizeof(block) - n, MSG_NOSIGNAL);
			n += r > 0 ? (size_t)r : 0;
			turn(w->loop, 0);
		}
	}
	assert_int_equal(hear(w->loop, fd, "PUT a ", 1000, &closed), 200);
	(void)close(fd);
	world_end(w);
	(void)close(fds[1]);
}

static void test_stream(void **state)
{
	(void)state;
	struct world *w = world_with(NULL);
	bool closed;
	w->stream = true;
	int fd = dial(w->port);
	say(fd, "GET /a HTTP/1.1\r\n" H "\r\n", 36);
	turn(w->loop, 50);
	assert_true(http_stream_put(w->held, STR("data: 1\n\n")));
	assert_int_equal(hear(w->loop, fd, "data: 1\n\n", 1000, &closed), 200);
	assert_true(http_stream_put(w->held, STR("data: 2\n\n")));
	assert_int_equal(hear(w->loop, fd, "data: 2\n\n", 1000, &closed), 0);
	http_stream_end(w->held);
	(void)hear(w->loop, fd, "0\r\n\r\n", 1000, &closed);
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
	int fd = dial(w->port);
	say(fd, "GET /a HTTP/1.1\r\n" H "\r\n", 36);
	turn(w->loop, 50);
	bool fits = true;
	memset(block, 'x', sizeof(block));
	for (unsigned i = 0; fits && w->held && i < 4096; i++) {
		fits = http_stream_put(w->held, (struct str){block, sizeof(block)});
		turn(w->loop, 0);
	}
	assert_false(fits);
	turn(w->loop, 50);
	assert_int_equal(w->done, 0 + (w->held == NULL));
	(void)close(fd);
	turn(w->loop, 50);
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
		int fd = dial(w->port);
		(void)send(fd, noise, sizeof(noise), MSG_NOSIGNAL);
		turn(w->loop, 0);
		(void)close(fd);
		turn(w->loop, 0);
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
		cmocka_unit_test(test_body_through_a_pipe),
		cmocka_unit_test(test_pipe_without_reader),
		cmocka_unit_test(test_stream),
		cmocka_unit_test(test_stream_that_nobody_reads),
		cmocka_unit_test(test_garbage),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
