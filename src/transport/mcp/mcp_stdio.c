/*
 * The loop of an MCP connection over stdio: see mcp_stdio.h.
 *
 * It is poll(2) over three kinds of descriptors (input, output, what calls wait for) and not the
 * epoll loop: several calls wait for one worker's descriptor, which epoll would not take twice.
 * When nothing is in flight and nothing unsent, it reads without asking first, which saves a system
 * call per message.
 */
#include "transport/mcp/mcp_stdio.h"

#include "journal/journal.h"
#include "sys/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>

enum {
	READ_CHUNK = 64 * 1024,
	KEEP_BYTES = 1024 * 1024, /* a buffer that is larger is given back when it is empty */
};

struct stdio {
	struct journal *journal; /* gets its records once the answers are written; NULL: none */
	struct mcp *mcp;
	struct mcp_output_fd *out;
	int in_fd;
	struct buf in;
	size_t from, scanned; /* in `in`: start of the next line; up to where it has no end */
	bool skipping;        /* the rest of a line that is too long */
	bool ended;           /* no more input */
	bool broken;          /* nobody reads the output */
	bool asks;            /* the input does not wait, so it is polled always */
	size_t sent;          /* of mcp_output() */
};

/* --- output -------------------------------------------------------------------------------------
 */

/* A pipe, terminal or file opened anew has flags of its own, so that whoever shares the old
 * description is not surprised by writes that do not wait. */
static bool reopen(int fd, struct mcp_output_fd *ret)
{
	char path[32];
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ret->fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY | O_APPEND);
	ret->reopened = ret->fd >= 0;
	return ret->reopened;
}

int mcp_output_open(int fd, struct mcp_output_fd *ret, struct err *err)
{
	struct stat st;
	*ret = (struct mcp_output_fd){.fd = fd, .flags = -1};
	if (fstat(fd, &st) < 0)
		return err_sys(err, errno, "looking at the output");
	ret->socket = S_ISSOCK(st.st_mode);
	if (ret->socket || reopen(fd, ret))
		return 0;
	ret->fd = fd;
	ret->flags = fcntl(fd, F_GETFL);
	if (ret->flags < 0 || fcntl(fd, F_SETFL, ret->flags | O_NONBLOCK) < 0)
		return err_sys(err, errno, "preparing the output");
	return 0;
}

void mcp_output_close(struct mcp_output_fd *o)
{
	if (o->flags >= 0)
		(void)fcntl(o->fd, F_SETFL, o->flags);
	if (o->reopened)
		(void)close(o->fd);
	*o = (struct mcp_output_fd){.fd = -1, .flags = -1};
}

static size_t unsent(struct stdio *s)
{
	return mcp_output(s->mcp)->len - s->sent;
}

static void forget_sent(struct stdio *s)
{
	struct buf *b = mcp_output(s->mcp);
	if (s->sent == b->len) {
		if (b->cap > KEEP_BYTES)
			buf_done(b);
		else
			buf_clear(b);
		s->sent = 0;
	} else if (s->sent > KEEP_BYTES && s->sent > b->len / 2) {
		memmove(b->data, b->data + s->sent, b->len - s->sent);
		b->len -= s->sent;
		s->sent = 0;
	}
}

/* sendmsg(2), since core's rights do not include sendto(2). */
static ssize_t send_now(int fd, const char *p, size_t n)
{
	struct iovec v = {.iov_base = (char *)(uintptr_t)p, .iov_len = n};
	struct msghdr h = {.msg_iov = &v, .msg_iovlen = 1};
	return sendmsg(fd, &h, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void try_write(void *ctx)
{
	struct stdio *s = ctx;
	while (unsent(s) > 0 && !s->broken) {
		const char *p = mcp_output(s->mcp)->data + s->sent;
		ssize_t n = s->out->socket ? send_now(s->out->fd, p, unsent(s))
					   : write(s->out->fd, p, unsent(s));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			break;
		if (n < 0)
			s->broken = true;
		else
			s->sent += (size_t)n;
	}
	forget_sent(s);
}

/* --- input --------------------------------------------------------------------------------------
 */

static void forget_lines(struct stdio *s)
{
	struct buf *b = &s->in;
	if (s->from == b->len) {
		if (b->cap > KEEP_BYTES)
			buf_done(b);
		else
			buf_clear(b);
	} else if (s->from > 0) {
		memmove(b->data, b->data + s->from, b->len - s->from);
		b->len -= s->from;
	}
	s->scanned -= s->from;
	s->from = 0;
}

/* The next whole line, or at the end of input what is left. */
static bool next_line(struct stdio *s, struct str *ret)
{
	struct buf *b = &s->in;
	const char *start = b->data + s->from;
	const char *end = b->len > s->scanned
				  ? memchr(b->data + s->scanned, '\n', b->len - s->scanned)
				  : NULL;
	if (!end && !(s->ended && b->len > s->from)) {
		s->scanned = b->len;
		return false;
	}
	*ret = (struct str){start, end ? (size_t)(end - start) : b->len - s->from};
	s->from = s->scanned = end ? (size_t)(end - b->data) + 1 : b->len;
	return true;
}

/* Work lines off until there are no more, or the client has enough to read. */
static void take_lines(struct stdio *s)
{
	struct str line;
	while (unsent(s) < MCP_STDIO_HIGH && !s->broken && next_line(s, &line)) {
		if (!s->skipping)
			mcp_receive(s->mcp, line);
		s->skipping = false;
	}
}

/* Is there a line that had to wait until the client had read? */
static bool has_line(const struct stdio *s)
{
	const struct buf *b = &s->in;
	return b->len > s->from &&
	       (s->ended || (b->len > s->scanned &&
				    memchr(b->data + s->scanned, '\n', b->len - s->scanned)));
}

static void drop_long_line(struct stdio *s)
{
	if (s->in.len - s->from <= LIMIT_REQUEST_BYTES && !s->skipping)
		return;
	if (!s->skipping)
		mcp_receive_too_large(s->mcp);
	s->skipping = true;
	s->from = s->scanned = s->in.len;
}

static int read_more(struct stdio *s, struct err *err)
{
	char *room;
	forget_lines(s);
	room = buf_room(&s->in, READ_CHUNK);
	if (!room)
		return err_oom(err);
	ssize_t n = read(s->in_fd, room, READ_CHUNK);
	if (n < 0 && (errno == EINTR || errno == EAGAIN)) {
		/* Somebody made the input non-blocking: ask before reading from now on. */
		s->asks |= errno == EAGAIN;
		return 0;
	}
	if (n < 0)
		return err_sys(err, errno, "reading the input");
	buf_grew(&s->in, (size_t)n);
	s->ended = n == 0;
	take_lines(s);
	/* What take_lines() left is either waiting for the client or one unfinished line. */
	if (!s->ended && !has_line(s))
		drop_long_line(s);
	return 0;
}

/* --- the loop -----------------------------------------------------------------------------------
 */

static int wait_ms(const struct mcp_wait *waits, unsigned n)
{
	int64_t now = loop_now_ms(), least = INT32_MAX;
	for (unsigned i = 0; i < n; i++)
		least = MIN(least, waits[i].at_ms - now);
	return n == 0 ? -1 : (int)MAX(least, (int64_t)0);
}

/* Wait for whatever comes next and do it. */
static int turn(struct stdio *s, struct err *err)
{
	struct mcp_wait waits[MCP_IN_FLIGHT_MAX];
	struct pollfd p[MCP_IN_FLIGHT_MAX + 2];
	unsigned n = mcp_waits(s->mcp, waits);
	bool reading = !s->ended && !has_line(s) && unsent(s) < MCP_STDIO_HIGH;
	p[0] = (struct pollfd){.fd = reading ? s->in_fd : -1, .events = POLLIN};
	p[1] = (struct pollfd){.fd = s->out->fd, .events = unsent(s) > 0 ? POLLOUT : 0};
	for (unsigned i = 0; i < n; i++)
		p[2 + i] = (struct pollfd){.fd = waits[i].fd, .events = POLLIN};
	if (poll(p, 2 + n, wait_ms(waits, n)) < 0 && errno != EINTR)
		return err_sys(err, errno, "waiting");
	/* A pipe whose reader is gone says so at once and for ever. */
	if (p[1].revents & (POLLERR | POLLHUP | POLLNVAL))
		s->broken = true;
	if (n > 0)
		mcp_proceed(s->mcp);
	if (reading && p[0].revents)
		return read_more(s, err);
	return 0;
}

static int serve(struct stdio *s, struct err *err)
{
	int r = 0;
	while (r == 0 && !s->broken) {
		bool idle = mcp_in_flight(s->mcp) == 0 && unsent(s) == 0;
		if (idle && !has_line(s)) {
			if (s->ended)
				return 0;
			r = s->asks ? turn(s, err) : read_more(s, err);
		} else if (!idle) {
			r = turn(s, err);
		}
		take_lines(s);
		try_write(s);
		journal_flush(s->journal);
	}
	if (s->broken && r == 0)
		r = err_set(err, ERR_IO, "the client has closed its end of the output");
	return r;
}

int mcp_stdio_serve(
	const struct mcp_options *opt, int in_fd, struct mcp_output_fd *out, struct err *err)
{
	struct stdio s = {
		.journal = opt->env ? opt->env->journal : NULL, .out = out, .in_fd = in_fd};
	struct mcp_options o = *opt;
	o.flush = try_write;
	o.flush_ctx = &s;
	int r = mcp_new(&o, &s.mcp, err);
	if (r < 0)
		return r;
	s.in = buf_init((size_t)LIMIT_REQUEST_BYTES + 2 * READ_CHUNK);
	r = serve(&s, err);
	buf_done(&s.in);
	mcp_free(s.mcp);
	return r;
}
