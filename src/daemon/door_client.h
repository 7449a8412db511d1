/*
 * The port of transport/door.h over channels to core, in the process front.
 *
 * A core may be replaced while the front runs: door_client_attach() with the channel to a new one
 * sends new questions there, while the one before answers what it was asked. When a core dies its
 * questions are answered with ERR_UNAVAILABLE. Between a core's death and the next attach questions
 * wait up to DOOR_CLIENT_WAIT_MS.
 */
#ifndef CLOISTER_DAEMON_DOOR_CLIENT_H
#define CLOISTER_DAEMON_DOOR_CLIENT_H

#include "sys/loop.h"
#include "transport/door.h"

enum {
	DOOR_CLIENT_CHANNELS = 4, /* cores at once; one more ends the oldest */
};

struct door_client;

int door_client_new(struct loop *loop, struct door_client **ret, struct err *err) _must_check_;
void door_client_free(struct door_client *c); /* nobody is told; accepts NULL */
DEFINE_CLEANUP(struct door_client *, door_client_free)

struct door *door_client_door(struct door_client *c);
/* `sock` is owned on success. */
int door_client_attach(struct door_client *c, int sock, struct err *err) _must_check_;
bool door_client_attached(const struct door_client *c);
unsigned door_client_in_flight(const struct door_client *c);

#endif
