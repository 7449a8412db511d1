/*
 * The supervisor of a node (`cloister serve`): it starts front and core and their workers, and
 * starts again what has ended.
 *
 *   cloister-supervisor serve OPTIONS      (the options of the configuration, --config FILE,
 * --single-user)
 *
 * It holds the listening sockets, so that a front that ended loses its connections and not its
 * addresses, and it makes every channel between its children, so that none of them can reach
 * another otherwise. It sees no byte of a client and no token. Mounts, user numbers and maxima are
 * from its own reading of the configuration.
 *
 *   SIGTERM, SIGINT   front answers what it has begun, then core ends
 *   SIGHUP            a new core with the configuration as it is now takes over; when that one does
 * not start, all stays as it was
 */
#ifndef CLOISTER_DAEMON_NODE_H
#define CLOISTER_DAEMON_NODE_H

#include "codec/config.h"

/* argv[0] is the word `serve`. The exit status of the process. */
int node_main(int argc, char **argv);

/* How supervisor, core and front read the same words. */
struct node_words {
	struct config config; /* config_done() it */
	bool single_user;
};
/* words: NULL-terminated. The daemon's default durability is `power`. ERR_CONFIG,
 * ERR_INVALID_ARGUMENT. */
int node_config(const char *const *words, struct node_words *ret, struct err *err) _must_check_;

/* One line to standard error, as the configuration says; texts are made visible. `who`: the
 * process. */
struct node_log {
	const char *who;
	bool json;
};
void node_say(const struct node_log *l, const char *level, const char *fmt, ...) _printf_(3, 4);

#endif
