/*
 * Core's end of the channel to a front: questions in, answers out (daemon/messages.def ASK, STOP,
 * ANSWER, PROGRESS).
 *
 * The front is not trusted: it may ask anything a client may ask with a token that it has, and what
 * does not decode, a number that is in use, more than DOOR_IN_FLIGHT_MAX questions, ends the
 * channel. What it asked then goes on unanswered.
 */
#ifndef CLOISTER_DAEMON_CORE_LINK_H
#define CLOISTER_DAEMON_CORE_LINK_H

#include "daemon/core.h"

struct core_link;

/* `sock` is owned on success. `ended` is called once, from the loop, when the channel has ended;
 * free the link there. */
int core_link_new(struct core *core, struct loop *loop, int sock,
	void (*ended)(void *ctx, struct core_link *l), void *ctx, struct core_link **ret,
	struct err *err) _must_check_;
void core_link_free(struct core_link *l); /* accepts NULL */
/* Nothing was asked that is not answered, and all answers are sent. */
bool core_link_idle(const struct core_link *l);

#endif
