/* Following a command: see command.h. */
#include "sandbox/command.h"

#include "sys/clock.h"
#include "sys/process.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>

enum {
	CHUNK = 64 * 1024,
	END_GRACE_MS = 5000, /* from the order to end until the fence counts as broken */
	STEPS_MAX = 64,      /* chunks that are read before others get their turn */
};

struct fence {
	int sock;
};

enum source { FROM_CONTROL, FROM_STDOUT, FROM_STDERR, FROM_TIMER, FROM_INPUT, TO_INPUT };

struct command {
	int control, streams[COMMAND_STREAMS], timer, epoll;
	int input_to;   /* our end of standard input; -1: closed */
	int input_from; /* borrowed; -1: none */
	bool input_always_ready;
	struct str input;  /* still to be written */
	char *input_chunk; /* what `input` points into when it comes from a descriptor; owned */
	struct output outputs[COMMAND_STREAMS];
	struct command_result result;
	void (*output)(void *ctx, enum command_stream s, const char *p, size_t n);
	void *output_ctx;
	int64_t started_ns;
	bool exited, killed, all_taken, asked;
	char *packet; /* FENCE_PACKET_MAX bytes; owned */
};

int fence_new(int take, struct fence **ret, struct err *err)
{
	struct fence *f = calloc(1, sizeof(*f));
	if (!f) {
		(void)close(take);
		return err_oom(err);
	}
	f->sock = take;
	*ret = f;
	return 0;
}

void fence_free(struct fence *f)
{
	if (!f)
		return;
	(void)close(f->sock);
	free(f);
}

/* --- starting --------------------------------------------------------------------------------- */

/* Descriptors that the fence gets: theirs are closed when the request is sent. */
struct theirs {
	int fds[FENCE_FDS];
};

static void theirs_done(struct theirs *t)
{
	for (unsigned i = FENCE_FD_STDIN; i < FENCE_FDS; i++)
		cleanup_close(&t->fds[i]);
}

static int new_pipe(int *ret_read, int *ret_write, struct err *err)
{
	int p[2];
	if (pipe2(p, O_CLOEXEC) < 0)
		return err_sys(err, errno, "making a pipe");
	*ret_read = p[0];
	*ret_write = p[1];
	return 0;
}

static int make_channels(struct command *c, struct theirs *t, struct err *err)
{
	int pair[2];
	int r = packet_pair(pair, err);
	if (r < 0)
		return r;
	c->control = pair[0];
	t->fds[FENCE_FD_CONTROL] = pair[1];
	if ((r = new_pipe(&t->fds[FENCE_FD_STDIN], &c->input_to, err)) < 0 ||
		(r = new_pipe(&c->streams[0], &t->fds[FENCE_FD_STDOUT], err)) < 0 ||
		(r = new_pipe(&c->streams[1], &t->fds[FENCE_FD_STDERR], err)) < 0)
		return r;
	for (unsigned i = 0; i < COMMAND_STREAMS; i++)
		if (fcntl(c->streams[i], F_SETFL, O_NONBLOCK) < 0)
			return err_sys(err, errno, "preparing a pipe");
	if (fcntl(c->input_to, F_SETFL, O_NONBLOCK) < 0)
		return err_sys(err, errno, "preparing a pipe");
	return 0;
}

static int watch(struct command *c, int fd, uint32_t events, enum source what)
{
	struct epoll_event e = {.events = events, .data.u32 = what};
	return epoll_ctl(c->epoll, EPOLL_CTL_ADD, fd, &e);
}

static int set_timer(struct command *c, int64_t ms)
{
	const struct itimerspec at = {
		.it_value = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}};
	return timerfd_settime(c->timer, 0, &at, NULL);
}

static int watch_all(struct command *c, int64_t time_ms, struct err *err)
{
	c->epoll = epoll_create1(EPOLL_CLOEXEC);
	c->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (c->epoll < 0 || c->timer < 0 || watch(c, c->control, EPOLLIN, FROM_CONTROL) < 0 ||
		watch(c, c->streams[0], EPOLLIN, FROM_STDOUT) < 0 ||
		watch(c, c->streams[1], EPOLLIN, FROM_STDERR) < 0 ||
		watch(c, c->timer, EPOLLIN, FROM_TIMER) < 0 ||
		watch(c, c->input_to, c->input.n ? EPOLLOUT : 0, TO_INPUT) < 0 ||
		(time_ms > 0 && set_timer(c, time_ms) < 0))
		return err_sys(err, errno, "following the command");
	/* A regular file cannot be waited for: it is always ready. */
	if (c->input_from >= 0 && watch(c, c->input_from, EPOLLIN, FROM_INPUT) < 0) {
		if (errno != EPERM)
			return err_sys(err, errno, "following the input");
		c->input_always_ready = true;
	}
	return 0;
}

static int make_buffers(struct command *c, size_t keep, struct err *err)
{
	c->packet = malloc(FENCE_PACKET_MAX);
	c->input_chunk = c->input_from >= 0 ? malloc(CHUNK) : NULL;
	if (!c->packet || (c->input_from >= 0 && !c->input_chunk))
		return err_oom(err);
	for (unsigned i = 0; i < COMMAND_STREAMS; i++) {
		int r = output_init(&c->outputs[i], keep, err);
		if (r < 0)
			return r;
	}
	c->result.streams = c->outputs;
	return 0;
}

static int send_request(
	struct fence *f, const struct command_options *o, struct theirs *t, struct err *err)
{
	_cleanup_buf_ struct buf packet = buf_init(FENCE_PACKET_MAX + 1);
	t->fds[FENCE_FD_WORKSPACE] = o->workspace_fd;
	int r = fence_request_put(&o->request, &packet, err);
	if (r == 0)
		r = packet_send(f->sock, packet.data, packet.len, t->fds, FENCE_FDS, true, err);
	if (r == -ERR_UNAVAILABLE)
		return err_set(err, ERR_UNAVAILABLE, "the process that starts commands has ended");
	return r;
}

static void input_feed(struct command *c);

int command_start(
	struct fence *f, const struct command_options *o, struct command **ret, struct err *err)
{
	_cleanup_(cleanup_command_free) struct command *c = calloc(1, sizeof(*c));
	_cleanup_(theirs_done) struct theirs t = {.fds = {-1, -1, -1, -1, -1}};
	if (!c)
		return err_oom(err);
	c->control = c->streams[0] = c->streams[1] = c->timer = c->epoll = c->input_to = -1;
	c->input_from = o->input.n ? -1 : o->input_fd;
	c->input = o->input;
	c->output = o->output;
	c->output_ctx = o->output_ctx;
	int r = make_buffers(c, o->keep, err);
	if (r < 0 || (r = make_channels(c, &t, err)) < 0 ||
		(r = watch_all(c, o->request.limits.time_ms, err)) < 0)
		return r;
	(void)clock_gettime(CLOCK_REALTIME, &c->result.started);
	c->started_ns = clock_mono_ns();
	if ((r = send_request(f, o, &t, err)) < 0)
		return r;
	input_feed(c);
	*ret = take_ptr(c);
	return 0;
}

void command_free(struct command *c)
{
	if (!c)
		return;
	cleanup_close(&c->control); /* ends the fence */
	for (unsigned i = 0; i < COMMAND_STREAMS; i++) {
		cleanup_close(&c->streams[i]);
		output_done(&c->outputs[i]);
	}
	cleanup_close(&c->input_to);
	cleanup_close(&c->timer);
	cleanup_close(&c->epoll);
	free(c->input_chunk);
	free(c->packet);
	free(c);
}

int command_poll_fd(const struct command *c)
{
	return c->epoll;
}

const struct command_result *command_result(const struct command *c)
{
	return &c->result;
}

/* --- standard input --------------------------------------------------------------------------- */

static void input_close(struct command *c)
{
	cleanup_close(&c->input_to);
	c->input_to = -1;
	if (c->input_from >= 0 && !c->input_always_ready)
		(void)epoll_ctl(c->epoll, EPOLL_CTL_DEL, c->input_from, NULL);
	c->input_from = -1;
}

static void input_wait(struct command *c, bool for_room)
{
	struct epoll_event room = {.events = for_room ? EPOLLOUT : 0, .data.u32 = TO_INPUT};
	struct epoll_event more = {.events = for_room ? 0 : EPOLLIN, .data.u32 = FROM_INPUT};
	(void)epoll_ctl(c->epoll, EPOLL_CTL_MOD, c->input_to, &room);
	if (c->input_from >= 0 && !c->input_always_ready)
		(void)epoll_ctl(c->epoll, EPOLL_CTL_MOD, c->input_from, &more);
}

/* True when there is something to write. */
static bool input_refill(struct command *c)
{
	if (c->input.n > 0)
		return true;
	ssize_t n = c->input_from >= 0 ? read(c->input_from, c->input_chunk, CHUNK) : 0;
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return false;
	if (n <= 0) {
		input_close(c);
		return false;
	}
	c->input = (struct str){c->input_chunk, (size_t)n};
	return true;
}

/* Write until the command takes no more or nothing is there; its end of the pipe may be closed. */
static void input_feed(struct command *c)
{
	bool may_read = c->input_always_ready || c->input.n > 0 || c->input_from < 0;
	while (c->input_to >= 0 && may_read && input_refill(c)) {
		ssize_t n = write(c->input_to, c->input.p, c->input.n);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno != EAGAIN) {
			input_close(c);
			return;
		}
		if (n < 0) {
			input_wait(c, true);
			return;
		}
		c->input.p += n;
		c->input.n -= (size_t)n;
		may_read = c->input_always_ready || c->input.n > 0 || c->input_from < 0;
	}
	if (c->input_to >= 0)
		input_wait(c, false);
}

static void input_ready(struct command *c)
{
	if (c->input_to >= 0 && input_refill(c))
		input_feed(c);
}

/* --- following -------------------------------------------------------------------------------- */

static void read_stream(struct command *c, enum command_stream s)
{
	static char chunk[CHUNK];
	for (unsigned i = 0; i < STEPS_MAX && c->streams[s] >= 0; i++) {
		ssize_t n = read(c->streams[s], chunk, sizeof(chunk));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0) {
			cleanup_close(&c->streams[s]);
			c->streams[s] = -1;
			return;
		}
		output_put(&c->outputs[s], chunk, (size_t)n);
		if (c->output)
			c->output(c->output_ctx, s, chunk, (size_t)n);
	}
}

static int send_order(struct command *c, enum fence_order order)
{
	char byte = (char)order;
	struct err err;
	return packet_send(c->control, &byte, 1, NULL, 0, false, &err);
}

void command_kill(struct command *c)
{
	if (c->killed || c->exited)
		return;
	c->killed = true;
	(void)send_order(c, FENCE_KILL);
	(void)set_timer(c, END_GRACE_MS);
}

static int timer_fired(struct command *c, struct err *err)
{
	uint64_t times;
	if (read(c->timer, &times, sizeof(times)) != (ssize_t)sizeof(times) || c->exited)
		return 0;
	if (c->killed)
		return err_set(err, ERR_UNAVAILABLE, "the command could not be ended in time");
	c->result.timed_out = true;
	command_kill(c);
	return 0;
}

static int failed_report(const struct fence_report *m, struct err *err)
{
	enum err_code code = m->code > ERR_OK ? (enum err_code)m->code : ERR_UNAVAILABLE;
	(void)err_set(err, code, "%s", m->text);
	if (!m->exec_failed && code == ERR_UNAVAILABLE)
		return err_hint(err, "cloister doctor says what this machine lacks");
	return -(int)code;
}

static int heard(struct command *c, const struct fence_report *m, struct err *err)
{
	switch ((enum fence_report_type)m->type) {
	case FENCE_STARTED: c->result.limited = m->limited; return 0;
	case FENCE_FAILED: return failed_report(m, err);
	case FENCE_EXITED:
		c->exited = true;
		c->result.status = m->status;
		c->result.cpu_us = m->user_us + m->system_us;
		c->result.max_rss_kb = m->max_rss_kb;
		c->result.duration_ms = (clock_mono_ns() - c->started_ns) / 1000000;
		return 0;
	case FENCE_END:
	case FENCE_ENTRIES:
	case FENCE_REPORT_MAX_: break;
	}
	return err_set(err, ERR_INTERNAL, "the fence spoke out of turn");
}

static int hear(struct command *c, struct err *err)
{
	struct fence_report m;
	int n = packet_recv(c->control, c->packet, FENCE_PACKET_MAX, NULL, NULL, false, err);
	if (n == -ERR_BUSY)
		return 0;
	if (n == 0)
		return err_set(err, ERR_UNAVAILABLE, "the fence of the command has ended early");
	int r = n < 0 ? n : fence_report_get(c->packet, (size_t)n, &m, err);
	return r < 0 ? r : heard(c, &m, err);
}

static int one_event(struct command *c, enum source what, struct err *err)
{
	switch (what) {
	case FROM_STDOUT: read_stream(c, COMMAND_STDOUT); return 0;
	case FROM_STDERR: read_stream(c, COMMAND_STDERR); return 0;
	case FROM_TIMER: return timer_fired(c, err);
	case FROM_INPUT: input_ready(c); return 0;
	case TO_INPUT: input_feed(c); return 0;
	case FROM_CONTROL: break;
	}
	return c->exited ? 0 : hear(c, err);
}

int command_proceed(struct command *c, struct err *err)
{
	struct epoll_event events[8];
	int n = epoll_wait(c->epoll, events, (int)ARRAY_LEN(events), 0);
	for (int i = 0; i < n; i++) {
		int r = one_event(c, (enum source)events[i].data.u32, err);
		if (r < 0)
			return r;
	}
	bool over = c->exited && c->streams[COMMAND_STDOUT] < 0 && c->streams[COMMAND_STDERR] < 0;
	if (over && c->input_to >= 0)
		input_close(c);
	return over ? 0 : 1;
}

/* --- its changes ------------------------------------------------------------------------------ */

static int hand_over(const char *p, size_t n, const int *fds, unsigned n_fds, upper_fn fn,
	void *ctx, struct err *err)
{
	struct fence_entries in;
	struct fence_entry e;
	unsigned used = 0;
	int r = fence_entries_open(p, n, &in, err);
	while (r >= 0 && (r = fence_entry_get(&in, &e, err)) > 0) {
		bool content = e.kind == FENCE_FILE;
		if (content && used == n_fds)
			return err_set(err, ERR_PARSE, "the fence sent a file without its content");
		r = fn(ctx, &e, content ? fds[used++] : -1, err);
	}
	return r;
}

/* 1: a packet was handed over; 0: none is there; TAKEN_ALL: that was the last. */
enum { TAKEN_ALL = 2 };

static int take_packet(struct command *c, upper_fn fn, void *ctx, struct err *err)
{
	struct fence_report m;
	int fds[FENCE_ENTRIES_FDS_MAX];
	unsigned n_fds = ARRAY_LEN(fds);
	int n = packet_recv(c->control, c->packet, FENCE_PACKET_MAX, fds, &n_fds, false, err);
	if (n == -ERR_BUSY)
		return 0;
	if (n == 0)
		return err_set(err, ERR_UNAVAILABLE, "the fence ended before telling its changes");
	if (n < 0)
		return n;
	int r;
	if (fence_report_type_of(c->packet, (size_t)n) == FENCE_ENTRIES) {
		r = hand_over(c->packet, (size_t)n, fds, n_fds, fn, ctx, err);
		if (r >= 0)
			r = send_order(c, FENCE_EXPORT) < 0 ? 0 : 1;
	} else if ((r = fence_report_get(c->packet, (size_t)n, &m, err)) == 0) {
		r = m.type == FENCE_END ? TAKEN_ALL
		    : m.type == FENCE_FAILED
			    ? failed_report(&m, err)
			    : err_set(err, ERR_INTERNAL, "the fence spoke out of turn");
	}
	while (n_fds)
		(void)close(fds[--n_fds]);
	return r;
}

int command_take(struct command *c, upper_fn fn, void *ctx, struct err *err)
{
	int r = 1;
	if (!c->asked) {
		c->asked = true;
		if (send_order(c, FENCE_EXPORT) < 0)
			return err_set(err, ERR_UNAVAILABLE, "the fence has ended early");
	}
	for (unsigned i = 0; i < STEPS_MAX && r == 1 && !c->all_taken; i++) {
		r = take_packet(c, fn, ctx, err);
		c->all_taken = r == TAKEN_ALL;
	}
	return r < 0 ? r : !c->all_taken;
}
