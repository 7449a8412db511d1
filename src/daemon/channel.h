/*
 * One end of a socket between two processes of a node, on an event loop: packets of messages both
 * ways, without ever waiting.
 *
 * What is put in one turn of the loop leaves as one packet at its end. Messages with descriptors
 * have a packet of their own. When the peer does not read, packets queue up to CHANNEL_QUEUE_MAX
 * bytes; whoever answers a peer looks at channel_full() and stops reading its questions, so that a
 * slow peer slows itself down. The peer is never trusted: what does not decode ends the channel.
 */
#ifndef CLOISTER_DAEMON_CHANNEL_H
#define CLOISTER_DAEMON_CHANNEL_H

#include "daemon/messages.h"
#include "sys/loop.h"

enum {
	CHANNEL_FDS_MAX = 4,
	CHANNEL_QUEUE_MAX =
		64 * 1024 * 1024,         /* bytes that wait for the peer; more end the channel */
	CHANNEL_QUEUE_FULL = 1024 * 1024, /* from here on channel_full() */
	CHANNEL_PACKETS_A_TURN = 16,
};

struct channel;

struct channel_options {
	struct loop *loop;  /* borrowed */
	int sock;           /* SOCK_SEQPACKET; owned on success */
	enum msg_role role; /* who we are: only messages to this role are taken */
	/* One message. Descriptors not taken (set to -1) are closed afterwards. < 0 ends the
	 * channel. */
	int (*message)(void *ctx, enum msg_type type, struct msg_in body, int *fds, unsigned n_fds,
		struct err *err);
	/* The peer is gone (err->code ERR_UNAVAILABLE) or had to be cut off. Called once, never
	 * from inside a function below; nothing is called after it. The channel may be freed in it.
	 */
	void (*gone)(void *ctx, const struct err *err);
	void *ctx;
};

int channel_new(
	const struct channel_options *opt, struct channel **ret, struct err *err) _must_check_;
void channel_free(struct channel *c); /* what waits is dropped; accepts NULL */

/* End it: gone() comes from the loop. */
void channel_close(struct channel *c);

/* Where to put messages without descriptors: room for at least `need` bytes. They leave at the end
 * of this turn. */
struct msg_out *channel_out(struct channel *c, size_t need);
/* The same for one message with descriptors: put it into an empty msg_out, then send it. They are
 * duplicated. */
void channel_send(struct channel *c, const struct msg_out *one, const int *fds, unsigned n_fds);
/* Do not wait for the end of the turn. */
void channel_flush(struct channel *c);

bool channel_full(const struct channel *c);        /* the peer has much to read */
void channel_pause(struct channel *c, bool pause); /* read nothing for the time being */
bool channel_idle(const struct channel *c);        /* nothing waits to be sent */

/* A sealed memfd with these bytes, offset 0. */
int channel_memfd(struct str bytes, int *ret_fd, struct err *err) _must_check_;
/* Map a memfd of the peer's; it must be sealed against writing and shrinking and hold at most `max`
 * bytes. */
struct mapped {
	void *p;
	size_t n;
};
int channel_map(int fd, size_t max, struct mapped *ret, struct err *err) _must_check_;
void mapped_done(struct mapped *m);

#endif
