/* One end of a socket between two processes of a node: see channel.h. */
#include "daemon/channel.h"
#include "sys/process.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#ifndef MFD_NOEXEC_SEAL
#	define MFD_NOEXEC_SEAL 0x0008U
#endif

enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE };

struct waiting {
	struct waiting *next;
	size_t n;
	int fds[CHANNEL_FDS_MAX];
	unsigned n_fds;
	char data[];
};

struct channel {
	struct channel_options opt;
	struct loop_source *io, *later, *end;
	struct waiting *first, **last;
	size_t queued;
	bool paused, dead;
	struct err why;
	struct msg_out out;
};

/* --- the end ---------------------------------------------------------------------------------- */

static void tell_gone(void *ctx)
{
	struct channel *c = ctx;
	struct err why = c->why;
	c->opt.gone(c->opt.ctx, &why);
}

/* Said from the loop, since whoever is using the channel right now does not expect its end. */
static void end(struct channel *c, const struct err *why)
{
	struct err ignored;
	if (c->dead)
		return;
	c->dead = true;
	c->why = *why;
	loop_remove(&c->io);
	if (loop_defer(c->opt.loop, tell_gone, c, &c->end, &ignored) < 0)
		BUG_ON(true); /* the place of `io` is free */
}

void channel_close(struct channel *c)
{
	struct err err;
	(void)err_set(&err, ERR_UNAVAILABLE, "the channel is not needed any more");
	end(c, &err);
}

static void drop(struct waiting *w)
{
	for (unsigned i = 0; i < w->n_fds; i++)
		(void)close(w->fds[i]);
	free(w);
}

void channel_free(struct channel *c)
{
	if (!c)
		return;
	loop_remove(&c->io);
	loop_remove(&c->later);
	loop_remove(&c->end);
	while (c->first) {
		struct waiting *w = c->first;
		c->first = w->next;
		drop(w);
	}
	(void)close(c->opt.sock);
	free(c);
}

/* --- sending ---------------------------------------------------------------------------------- */

static void watch(struct channel *c)
{
	uint32_t events = (c->paused ? 0 : EPOLLIN) | (c->first ? EPOLLOUT : 0);
	if (!c->dead)
		loop_io_set(c->io, events);
}

static int hold_fds(struct waiting *w, const int *fds, unsigned n_fds)
{
	for (; w->n_fds < n_fds; w->n_fds++)
		if ((w->fds[w->n_fds] = fcntl(fds[w->n_fds], F_DUPFD_CLOEXEC, 3)) < 0)
			return -1;
	return 0;
}

static void queue(struct channel *c, const char *p, size_t n, const int *fds, unsigned n_fds)
{
	struct err err;
	struct waiting *w = n <= CHANNEL_QUEUE_MAX - c->queued ? calloc(1, sizeof(*w) + n) : NULL;
	if (!w || hold_fds(w, fds, n_fds) < 0) {
		(void)err_set(
			&err, ERR_LIMIT, "a process of this node does not read what it is sent");
		if (w)
			drop(w);
		end(c, &err);
		return;
	}
	w->n = n;
	memcpy(w->data, p, n);
	*c->last = w;
	c->last = &w->next;
	c->queued += n;
	watch(c);
}

static void send_or_queue(
	struct channel *c, const char *p, size_t n, const int *fds, unsigned n_fds)
{
	struct err err;
	if (c->dead)
		return;
	if (c->first)
		queue(c, p, n, fds, n_fds);
	else if (packet_send(c->opt.sock, p, n, fds, n_fds, false, &err) < 0) {
		if (err.code == ERR_BUSY)
			queue(c, p, n, fds, n_fds);
		else
			end(c, &err);
	}
}

void channel_flush(struct channel *c)
{
	if (c->out.len)
		send_or_queue(c, c->out.data, c->out.len, NULL, 0);
	msg_out_clear(&c->out);
}

static void flush_later(void *ctx)
{
	channel_flush(ctx);
}

struct msg_out *channel_out(struct channel *c, size_t need)
{
	BUG_ON(need > sizeof(c->out.data));
	if (need > sizeof(c->out.data) - c->out.len)
		channel_flush(c);
	if (c->out.len == 0)
		loop_defer_again(c->later);
	return &c->out;
}

void channel_send(struct channel *c, const struct msg_out *one, const int *fds, unsigned n_fds)
{
	BUG_ON(n_fds > CHANNEL_FDS_MAX);
	channel_flush(c);
	send_or_queue(c, one->data, one->len, fds, n_fds);
}

bool channel_full(const struct channel *c)
{
	return c->queued >= CHANNEL_QUEUE_FULL;
}

bool channel_idle(const struct channel *c)
{
	return !c->first && c->out.len == 0;
}

void channel_pause(struct channel *c, bool pause)
{
	if (c->paused == pause)
		return;
	c->paused = pause;
	watch(c);
}

static void send_queued(struct channel *c)
{
	struct err err;
	while (c->first) {
		struct waiting *w = c->first;
		if (packet_send(c->opt.sock, w->data, w->n, w->fds, w->n_fds, false, &err) < 0) {
			if (err.code != ERR_BUSY)
				end(c, &err);
			return;
		}
		c->first = w->next;
		if (!c->first)
			c->last = &c->first;
		c->queued -= w->n;
		drop(w);
	}
	watch(c);
}

/* --- receiving -------------------------------------------------------------------------------- */

/* A packet with descriptors is one message, since they belong to it. */
static int handle(struct channel *c, struct msg_in in, int *fds, unsigned n_fds, struct err *err)
{
	enum msg_type type;
	struct msg_in body;
	int r;
	while ((r = msg_next(&in, c->opt.role, &type, &body, err)) > 0 && !c->dead) {
		if (n_fds && (in.left || n_fds > msg_fds_max(type)))
			return err_set(err, ERR_PARSE, "descriptors came with the wrong message");
		if ((r = c->opt.message(c->opt.ctx, type, body, fds, n_fds, err)) < 0)
			return r;
	}
	return r;
}

/* 1: handled, 0: nothing there or the channel has ended. */
static int receive(struct channel *c, char *packet)
{
	struct err err;
	int fds[CHANNEL_FDS_MAX];
	unsigned n_fds = ARRAY_LEN(fds);
	int n = packet_recv(c->opt.sock, packet, MSG_PACKET_MAX, fds, &n_fds, false, &err);
	if (n < 0 && err.code == ERR_BUSY)
		return 0;
	if (n <= 0) {
		if (n == 0)
			(void)err_set(&err, ERR_UNAVAILABLE, "the other process is gone");
		end(c, &err);
		return 0;
	}
	int r = handle(c, (struct msg_in){packet, (size_t)n}, fds, n_fds, &err);
	while (n_fds)
		cleanup_close(&fds[--n_fds]);
	if (r < 0)
		end(c, &err);
	return !c->dead;
}

static void on_io(void *ctx, int fd _unused_, uint32_t events)
{
	static char packet[MSG_PACKET_MAX]; /* of the one thread that runs the loop */
	struct channel *c = ctx;
	if (events & EPOLLOUT)
		send_queued(c);
	if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR)) || c->dead)
		return;
	for (unsigned i = 0; i < CHANNEL_PACKETS_A_TURN && !c->paused; i++)
		if (!receive(c, packet))
			return;
}

int channel_new(const struct channel_options *opt, struct channel **ret, struct err *err)
{
	struct channel *c = malloc(sizeof(*c));
	if (!c)
		return err_oom(err);
	memset(c, 0, offsetof(struct channel, out));
	msg_out_clear(&c->out);
	c->opt = *opt;
	c->last = &c->first;
	int r = loop_io(opt->loop, opt->sock, EPOLLIN, on_io, c, &c->io, err);
	if (r == 0)
		r = loop_defer(opt->loop, flush_later, c, &c->later, err);
	if (r < 0) {
		loop_remove(&c->io);
		free(c);
		return r;
	}
	*ret = c;
	return 0;
}

/* --- large content ---------------------------------------------------------------------------- */

static int fill(int fd, struct str bytes)
{
	while (bytes.n) {
		ssize_t n = write(fd, bytes.p, bytes.n);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		bytes.p += n;
		bytes.n -= (size_t)n;
	}
	return fcntl(fd, F_ADD_SEALS, SEALS | F_SEAL_SEAL);
}

int channel_memfd(struct str bytes, int *ret_fd, struct err *err)
{
	_cleanup_close_ int fd =
		memfd_create("message", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
	if (fd < 0 && errno == EINVAL) /* before Linux 6.3 */
		fd = memfd_create("message", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0 || fill(fd, bytes) < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return err_sys(err, errno, "making room for a large message");
	*ret_fd = take_fd(fd);
	return 0;
}

int channel_map(int fd, size_t max, struct mapped *ret, struct err *err)
{
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);
	if (seals < 0 || (seals & SEALS) != SEALS || fstat(fd, &st) < 0)
		return err_set(err, ERR_PARSE, "the content of a message is not sealed memory");
	if (st.st_size < 0 || (uint64_t)st.st_size > max)
		return err_set(err, ERR_TOO_LARGE,
			"the content of a message is larger than %zu bytes", max);
	*ret = (struct mapped){NULL, 0};
	if (st.st_size == 0)
		return 0;
	void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return err_sys(err, errno, "mapping the content of a message");
	*ret = (struct mapped){p, (size_t)st.st_size};
	return 0;
}

void mapped_done(struct mapped *m)
{
	if (m->p)
		(void)munmap(m->p, m->n);
	*m = (struct mapped){NULL, 0};
}
