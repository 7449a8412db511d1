/*
 * How long a connection may take for what it is doing. Every phase has a time in all, not between
 * two bytes, so a client that sends a byte now and then gains nothing; bodies and replies get time
 * in proportion to their size.
 */
#include "transport/http/server_impl.h"

#include <sys/socket.h>

void conn_phase(struct http_conn *c, enum conn_phase phase, int64_t bytes)
{
	const struct http_options *o = &c->listener->server->opt;
	int64_t now = loop_now_ms();
	c->phase = phase;
	if (phase == CONN_IDLE)
		c->deadline_ms = now + o->idle_ms;
	else if (phase == CONN_HEAD)
		c->deadline_ms = now + o->head_ms;
	else if (phase == CONN_WORK)
		c->deadline_ms = INT64_MAX;
	else
		c->deadline_ms =
			now + o->stall_ms + MAX(bytes, (int64_t)0) / (HTTP_RATE_MIN / 1000);
}

/* The library finds the socket ended and lets go of the connection in its own order. */
void server_check_deadlines(struct http_server *s)
{
	int64_t now = loop_now_ms();
	for (struct http_conn *c = s->conns; c; c = c->next) {
		if (c->deadline_ms > now)
			continue;
		if (c->phase != CONN_IDLE)
			s->counts.refused++;
		c->deadline_ms = INT64_MAX;
		(void)shutdown(c->fd, SHUT_RDWR);
	}
}
