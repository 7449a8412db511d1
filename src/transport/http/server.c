/*
 * Listeners and their turn in the loop: see server.h.
 *
 * Every listening socket has an MHD daemon of its own in external mode, whose epoll descriptor is
 * watched by our loop. MHD takes events edge-triggered from it, so after each run it is asked
 * whether it has work left (MHD_get_timeout), and is run again in the next turn if so. Time-outs
 * are ours (deadline.c): MHD's count inactivity, which a client that sends a byte now and then
 * never reaches.
 */
#include "transport/http/server_impl.h"

#include <errno.h>
#include <sys/socket.h>

enum { CLOCK_MS = 1000 };

/* --- MHD's callbacks -------------------------------------------------------------------------- */

/* The request line is there, and nothing of it has been decoded. */
static void *on_target(void *ctx, const char *target, struct MHD_Connection *c)
{
	return exchange_new(ctx, c, target);
}

/* Decoding is done in request.c, strictly; MHD's copy stays as it was sent. */
static size_t keep_raw(void *ctx _unused_, struct MHD_Connection *c _unused_, char *s)
{
	return strlen(s);
}

static enum MHD_Result on_access(void *ctx _unused_, struct MHD_Connection *c _unused_,
	const char *url _unused_, const char *method, const char *version _unused_,
	const char *data, size_t *n, void **x)
{
	return *x ? exchange_step(*x, method, data, n) : MHD_NO;
}

static void on_completed(void *ctx _unused_, struct MHD_Connection *c _unused_, void **x,
	enum MHD_RequestTerminationCode how _unused_)
{
	exchange_free(take_ptr(*x));
}

static void conn_open(struct http_listener *l, struct MHD_Connection *mhd, void **ret)
{
	struct http_server *s = l->server;
	const union MHD_ConnectionInfo *i =
		MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct http_conn *c = calloc(1, sizeof(*c));
	*ret = c;
	if (!c || !i)
		return;
	c->listener = l;
	c->fd = i->connect_fd;
	c->next = s->conns;
	if (c->next)
		c->next->prev = c;
	s->conns = c;
	s->counts.connections++;
	if (s->counts.open++ == 0)
		loop_timer_set(s->clock, loop_now_ms() + CLOCK_MS);
	conn_phase(c, CONN_IDLE, 0);
}

static void conn_close(struct http_server *s, struct http_conn *c)
{
	if (!c)
		return;
	if (c->listener) {
		*(c->prev ? &c->prev->next : &s->conns) = c->next;
		if (c->next)
			c->next->prev = c->prev;
		s->counts.open--;
	}
	free(c);
}

static void on_connection(void *ctx, struct MHD_Connection *mhd, void **conn,
	enum MHD_ConnectionNotificationCode what)
{
	struct http_listener *l = ctx;
	if (what == MHD_CONNECTION_NOTIFY_STARTED)
		conn_open(l, mhd, conn);
	else
		conn_close(l->server, take_ptr(*conn));
}

/* What clients do wrong is counted, not logged: they could fill the log. */
static void no_log(void *ctx _unused_, const char *fmt _unused_, va_list ap _unused_) {}

/* --- in the loop ------------------------------------------------------------------------------ */

static void run(struct http_server *s)
{
	bool again = false;
	s->pumping = true;
	for (unsigned i = 0; i < s->n_listeners; i++) {
		MHD_UNSIGNED_LONG_LONG ms;
		(void)MHD_run(s->listeners[i].mhd);
		again |= MHD_get_timeout(s->listeners[i].mhd, &ms) == MHD_YES && ms == 0;
	}
	s->pumping = false;
	if (again)
		loop_defer_again(s->pump);
}

static void on_pump(void *ctx)
{
	run(ctx);
}

static void on_io(void *ctx, int fd _unused_, uint32_t events _unused_)
{
	server_pump_soon(((struct http_listener *)ctx)->server);
}

static void on_clock(void *ctx)
{
	struct http_server *s = ctx;
	server_check_deadlines(s);
	if (s->counts.open > 0)
		loop_timer_set(s->clock, loop_now_ms() + CLOCK_MS);
}

void server_pump_soon(struct http_server *s)
{
	loop_defer_again(s->pump);
}

/* --- life ------------------------------------------------------------------------------------- */

int http_server_new(const struct http_options *opt, struct http_server **ret, struct err *err)
{
	_cleanup_(cleanup_http_server_free) struct http_server *s = calloc(1, sizeof(*s));
	if (!s)
		return err_oom(err);
	s->opt = *opt;
	if (!s->opt.connections_max)
		s->opt.connections_max = HTTP_CONNECTIONS;
	if (!s->opt.head_ms)
		s->opt.head_ms = HTTP_HEAD_MS;
	if (!s->opt.idle_ms)
		s->opt.idle_ms = HTTP_IDLE_MS;
	if (!s->opt.stall_ms)
		s->opt.stall_ms = HTTP_STALL_MS;
	int r = loop_defer(opt->loop, on_pump, s, &s->pump, err);
	if (r == 0)
		r = loop_timer(opt->loop, -1, on_clock, s, &s->clock, err);
	if (r == 0)
		*ret = take_ptr(s);
	return r;
}

static struct MHD_Daemon *start(struct http_server *s, struct http_listener *l, int fd)
{
	bool tls = l->tls;
	unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_TURBO |
			 MHD_USE_ERROR_LOG | (tls ? MHD_USE_TLS : 0);
	struct MHD_OptionItem more[] = {
		{MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)s->opt.tls_key},
		{MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)(uintptr_t)s->opt.tls_cert},
		{MHD_OPTION_END, 0, NULL}};
	return MHD_start_daemon(flags, 0, NULL, NULL, on_access, l, MHD_OPTION_EXTERNAL_LOGGER,
		no_log, NULL, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_URI_LOG_CALLBACK, on_target,
		l, MHD_OPTION_UNESCAPE_CALLBACK, keep_raw, NULL, MHD_OPTION_NOTIFY_COMPLETED,
		on_completed, l, MHD_OPTION_NOTIFY_CONNECTION, on_connection, l,
		MHD_OPTION_CONNECTION_LIMIT, s->opt.connections_max,
		MHD_OPTION_PER_IP_CONNECTION_LIMIT, s->opt.per_address_max,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HTTP_HEAD_MAX,
		MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_ARRAY, tls ? more : more + 2,
		MHD_OPTION_END);
}

int http_server_listen(struct http_server *s, int take, struct err *err)
{
	_cleanup_close_ int fd = take;
	struct http_listener *l = &s->listeners[s->n_listeners];
	struct sockaddr_storage a;
	socklen_t n = sizeof(a);
	if (s->n_listeners == HTTP_LISTENERS_MAX)
		return err_set(err, ERR_LIMIT, "at most %d sockets can be listened on",
			HTTP_LISTENERS_MAX);
	if (getsockname(fd, (struct sockaddr *)&a, &n) < 0)
		return err_sys(err, errno, "a listening socket");
	*l = (struct http_listener){.server = s, .is_unix = a.ss_family == AF_UNIX};
	l->tls = s->opt.tls_key && !l->is_unix;
	l->mhd = start(s, l, fd);
	if (!l->mhd)
		return err_set(err, l->tls ? ERR_CONFIG : ERR_IO,
			l->tls ? "the TLS key and certificate cannot be used"
			       : "the HTTP server cannot be started");
	(void)take_fd(fd); /* MHD closes it */
	int epoll_fd = MHD_get_daemon_info(l->mhd, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
	int r = loop_io(s->opt.loop, epoll_fd, EPOLLIN, on_io, l, &l->io, err);
	if (r < 0)
		MHD_stop_daemon(take_ptr(l->mhd));
	else
		s->n_listeners++;
	return r;
}

void http_server_quiesce(struct http_server *s)
{
	for (unsigned i = 0; i < s->n_listeners; i++) {
		int fd = MHD_quiesce_daemon(s->listeners[i].mhd);
		if (fd >= 0)
			(void)close(fd);
	}
}

void http_server_counts(const struct http_server *s, struct http_counts *ret)
{
	*ret = s->counts;
}

/* MHD may not be stopped while a connection is suspended, so every exchange is replied to first. */
void http_server_free(struct http_server *s)
{
	struct err err;
	if (!s)
		return;
	err_set(&err, ERR_UNAVAILABLE, "the server is ending");
	for (struct http_exchange *x = s->exchanges; x; x = x->next) {
		if (x->is_stream)
			http_stream_end(x);
		else if (!x->replied)
			http_reply_error(x, &err);
	}
	if (s->n_listeners > 0)
		run(s);
	for (unsigned i = 0; i < s->n_listeners; i++) {
		loop_remove(&s->listeners[i].io);
		MHD_stop_daemon(s->listeners[i].mhd);
	}
	loop_remove(&s->pump);
	loop_remove(&s->clock);
	free(s);
}
