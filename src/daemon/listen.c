/* The listening sockets of a node: see listen.h. */
#include "daemon/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

enum { BACKLOG = 4096 };

static int bad(const char *where, struct err *err)
{
	(void)err_set(err, ERR_CONFIG, "serve.listen: '%.100s' is no address to listen on", where);
	return err_hint(err, "127.0.0.1:8350, [::1]:8350, unix, or unix:/run/cloister/http.sock");
}

/* --- TCP -------------------------------------------------------------------------------------- */

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static bool read_port(const char *text, in_port_t *ret)
{
	unsigned long v = 0;
	if (!*text || strlen(text) > 5)
		return false;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return false;
		v = v * 10 + (unsigned long)(*text - '0');
	}
	*ret = htons((in_port_t)v);
	return v <= 65535;
}

static bool read_address(const char *where, union address *ret, socklen_t *ret_len)
{
	char host[64];
	const char *colon = strrchr(where, ':');
	bool v6 = where[0] == '[';
	size_t n = colon ? (size_t)(colon - where) : 0;
	memset(ret, 0, sizeof(*ret));
	if (v6 && (n < 2 || where[n - 1] != ']'))
		return false;
	size_t len = v6 ? n - 2 : n;
	if (!colon || len >= sizeof(host))
		return false;
	memcpy(host, where + v6, len);
	host[len] = '\0';
	if (v6) {
		ret->v6.sin6_family = AF_INET6;
		*ret_len = sizeof(ret->v6);
		return inet_pton(AF_INET6, host, &ret->v6.sin6_addr) == 1 &&
		       read_port(colon + 1, &ret->v6.sin6_port);
	}
	ret->v4.sin_family = AF_INET;
	*ret_len = sizeof(ret->v4);
	return inet_pton(AF_INET, host, &ret->v4.sin_addr) == 1 &&
	       read_port(colon + 1, &ret->v4.sin_port);
}

static void describe(struct listener *l, const union address *a)
{
	char host[INET6_ADDRSTRLEN] = "";
	if (a->any.sa_family == AF_INET) {
		(void)inet_ntop(AF_INET, &a->v4.sin_addr, host, sizeof(host));
		(void)snprintf(l->name, sizeof(l->name), "%s:%u", host, ntohs(a->v4.sin_port));
		l->loopback = ntohl(a->v4.sin_addr.s_addr) >> 24 == 127;
	} else {
		(void)inet_ntop(AF_INET6, &a->v6.sin6_addr, host, sizeof(host));
		(void)snprintf(l->name, sizeof(l->name), "[%s]:%u", host, ntohs(a->v6.sin6_port));
		l->loopback = IN6_IS_ADDR_LOOPBACK(&a->v6.sin6_addr);
	}
}

static int tcp(const char *where, struct listener *ret, struct err *err)
{
	static const int on = 1;
	union address a;
	socklen_t len = 0;
	if (!read_address(where, &a, &len))
		return bad(where, err);
	_cleanup_close_ int fd =
		socket(a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return err_sys(err, errno, "making a socket for %.100s", where);
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (a.any.sa_family == AF_INET6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
	if (bind(fd, &a.any, len) < 0 || listen(fd, BACKLOG) < 0 ||
		getsockname(fd, &a.any, &len) < 0)
		return err_sys(err, errno, "listening on %.100s", where);
	describe(ret, &a);
	ret->is_unix = false;
	ret->fd = take_fd(fd);
	return 0;
}

/* --- Unix ------------------------------------------------------------------------------------- */

/* A socket that nobody serves any more is in the way. */
static int clear_stale(const struct sockaddr_un *a, struct err *err)
{
	_cleanup_close_ int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct stat st;
	if (lstat(a->sun_path, &st) < 0)
		return 0;
	if (!S_ISSOCK(st.st_mode))
		return err_set(
			err, ERR_EXISTS, "what is at the place of the Unix socket is no socket");
	if (probe >= 0 && connect(probe, (const struct sockaddr *)a, sizeof(*a)) == 0)
		return err_set(err, ERR_EXISTS, "another server listens on the Unix socket");
	if (unlink(a->sun_path) < 0)
		return err_sys(err, errno, "removing the Unix socket of a dead server");
	return 0;
}

static int unix_socket(const char *path, const char *shown, struct listener *ret, struct err *err)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int n = snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	if (n < 0 || (size_t)n >= sizeof(a.sun_path))
		return err_set(
			err, ERR_CONFIG, "serve.listen: the path of the Unix socket is too long");
	int r = clear_stale(&a, err);
	if (r < 0)
		return r;
	_cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	mode_t before = umask(0177);
	int failed = fd < 0 || bind(fd, (const struct sockaddr *)&a, sizeof(a)) < 0 ||
		     listen(fd, BACKLOG) < 0;
	int e = errno;
	(void)umask(before);
	if (failed)
		return err_sys(err, e, "listening on the Unix socket");
	(void)snprintf(ret->name, sizeof(ret->name), "%s", shown);
	ret->is_unix = ret->loopback = true;
	ret->fd = take_fd(fd);
	return 0;
}

int listen_on(const char *where, int state_fd, struct listener *ret, struct err *err)
{
	char path[64];
	if (strncmp(where, "unix:/", 6) == 0)
		return unix_socket(where + 5, where, ret, err);
	if (strcmp(where, "unix") != 0)
		return tcp(where, ret, err);
	/* By its descriptor the path is short and leads to the directory that was trusted. */
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d/http.sock", state_fd);
	return unix_socket(path, "unix (http.sock in the state directory)", ret, err);
}
