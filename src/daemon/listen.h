/* The listening sockets of a node, opened before its rights are dropped. */
#ifndef CLOISTER_DAEMON_LISTEN_H
#define CLOISTER_DAEMON_LISTEN_H

#include "base/err.h"

#include <stdbool.h>

enum { LISTEN_MAX = 8, LISTEN_NAME_MAX = 160 };

struct listener {
	int fd;
	bool is_unix, loopback;
	char name[LISTEN_NAME_MAX]; /* "http://127.0.0.1:8350", "unix:/..." */
};

/*
 * One address of serve.listen. A Unix socket is for this user only (0600); one that a dead server
 * left is removed, one that somebody serves is ERR_EXISTS. `state_fd`: where `unix` is made.
 * ERR_CONFIG (address), ERR_IO.
 */
int listen_on(const char *where, int state_fd, struct listener *ret, struct err *err) _must_check_;

#endif
