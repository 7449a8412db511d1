/* A client of the HTTP server in the thread of the server: talks over real sockets while turning
 * the loop. */
#ifndef CLOISTER_TESTS_HTTP_WORLD_H
#define CLOISTER_TESTS_HTTP_WORLD_H

#include "sys/loop.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

static inline int listen_tcp(unsigned short *ret_port)
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

static inline int dial(unsigned short port)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	return fd;
}

static inline void turn(struct loop *l, int64_t ms)
{
	struct err err;
	int64_t until = loop_now_ms() + ms;
	do
		assert_int_equal(loop_turn(l, 2, &err), 0);
	while (loop_now_ms() < until);
}

/* What came, and whether it is over. */
static char heard[256 * 1024];

/* Turn until the peer closes, `want` is in what came, or `ms` have passed. The status; 0: no answer
 * that starts like one. */
static inline unsigned hear(struct loop *l, int fd, const char *want, int64_t ms, bool *ret_closed)
{
	size_t n = 0;
	int64_t until = loop_now_ms() + ms;
	*ret_closed = false;
	heard[0] = '\0';
	while (loop_now_ms() < until) {
		turn(l, 0);
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

static inline void say(int fd, const char *p, size_t n)
{
	assert_int_equal(send(fd, p, n, MSG_NOSIGNAL), n);
}

#endif
