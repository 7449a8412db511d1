/* Core's end of the channel to a front: see core_link.h. */
#include "daemon/core_link.h"

#include "daemon/channel.h"

enum { SLOTS = 4096 }; /* of the table of questions by number */

/* One question that waits. */
struct question {
	struct question *slot_next;
	struct core_link *link;
	uint64_t id;
	struct ask *ask; /* NULL: it is being asked right now */
	bool answered;
};

struct core_link {
	struct core *core;
	struct channel *channel;
	void (*ended)(void *ctx, struct core_link *l);
	void *ctx;
	struct question *slots[SLOTS];
	unsigned n;
	struct loop_source *resume; /* looks whether a front that read too little has caught up */
	bool held;
};

/* --- questions -------------------------------------------------------------------------------- */

static struct question **slot_of(struct core_link *l, uint64_t id)
{
	return &l->slots[id % SLOTS];
}

static struct question *find(struct core_link *l, uint64_t id)
{
	struct question *q = *slot_of(l, id);
	while (q && q->id != id)
		q = q->slot_next;
	return q;
}

static struct question *add(struct core_link *l, uint64_t id)
{
	struct question *q = calloc(1, sizeof(*q)), **slot = slot_of(l, id);
	if (!q)
		return NULL;
	*q = (struct question){.slot_next = *slot, .link = l, .id = id};
	*slot = q;
	l->n++;
	return q;
}

static void drop(struct question *q)
{
	struct question **at = slot_of(q->link, q->id);
	while (*at != q)
		at = &(*at)->slot_next;
	*at = q->slot_next;
	q->link->n--;
	free(q);
}

/* --- answers ---------------------------------------------------------------------------------- */

/* A front that does not read its answers is not asked from either. */
static void look_at_queue(struct core_link *l)
{
	bool full = channel_full(l->channel);
	if (full == l->held)
		return;
	l->held = full;
	channel_pause(l->channel, full);
	loop_timer_set(l->resume, full ? loop_now_ms() + 10 : -1);
}

static void look_again(void *ctx)
{
	struct core_link *l = ctx;
	look_at_queue(l);
	if (l->held)
		loop_timer_set(l->resume, loop_now_ms() + 10);
}

/* With descriptors a message has a packet of its own. */
static void send_with_fds(struct core_link *l, struct msg_answer *m, struct str json, int file)
{
	static struct msg_out one;
	struct err err;
	int fds[2];
	unsigned n = 0;
	_cleanup_close_ int big = -1;
	if (m->big && channel_memfd(json, &big, &err) < 0) {
		m->big = m->file = 0;
		m->code = err.code;
		m->json = STR("{\"executed\":false,\"error\":{\"code\":\"no_memory\",\"message\":"
			      "\"no room for the answer\"}}");
	}
	if (m->big)
		fds[n++] = big;
	if (m->file)
		fds[n++] = file;
	msg_out_clear(&one);
	BUG_ON(!msg_answer_put(&one, m));
	channel_send(l->channel, &one, fds, n);
}

static void send_answer(struct core_link *l, uint64_t id, const struct door_answer *a)
{
	struct msg_answer m = {.id = id,
		.code = a->code,
		.running = a->running,
		.big = a->json.n > DOOR_INLINE_MAX,
		.file = a->fd >= 0,
		.size = a->size,
		.modified_ms = MAX(a->modified_ms, (int64_t)0),
		.etag = str_of(a->etag)};
	if (!m.big)
		m.json = a->json;
	if (m.big || m.file)
		send_with_fds(l, &m, a->json, a->fd);
	else
		BUG_ON(!msg_answer_put(channel_out(l->channel, m.json.n + 256), &m));
	look_at_queue(l);
}

static void on_done(void *ctx, struct door_answer *answer)
{
	struct question *q = ctx;
	send_answer(q->link, q->id, answer);
	if (q->ask)
		drop(q);
	else
		q->answered = true; /* on_ask() drops it */
}

static void on_progress(void *ctx, int64_t done, int64_t total)
{
	struct question *q = ctx;
	const struct msg_progress m = {
		.id = q->id, .done = MAX(done, (int64_t)0), .total = MAX(total, (int64_t)0)};
	BUG_ON(!msg_progress_put(channel_out(q->link->channel, 256), &m));
	/* A call may run for long on this very thread: what it says must not wait for its end. */
	channel_flush(q->link->channel);
}

/* --- messages --------------------------------------------------------------------------------- */

static void ask(struct core_link *l, struct question *q, const struct msg_ask *m,
	struct str arguments, int body)
{
	const struct door_request request = {.op = (enum door_op)m->op,
		.token = m->token,
		.session = m->session,
		.tool = m->tool,
		.arguments = arguments,
		.turn = m->turn,
		.id = m->call,
		.role = m->role,
		.wait_ms = m->wait_ms,
		.body_fd = body,
		.body_size = m->body_size > INT64_MAX ? -1 : (int64_t)m->body_size};
	struct ask *waits;
	core_ask(l->core, &request, on_done, m->progress ? on_progress : NULL, q, &waits);
	if (q->answered)
		drop(q);
	else
		q->ask = waits;
}

static int on_ask(
	struct core_link *l, struct msg_in body, int *fds, unsigned n_fds, struct err *err)
{
	struct msg_ask m;
	_cleanup_(mapped_done) struct mapped big = {NULL, 0};
	int r = msg_ask_get(body, &m, err);
	if (r < 0)
		return r;
	if (n_fds != (unsigned)m.big + m.body || (m.big && m.arguments.n))
		return err_set(err, ERR_PARSE, "a question came without its descriptors");
	if (find(l, m.id) || l->n >= DOOR_IN_FLIGHT_MAX)
		return err_set(
			err, ERR_PARSE, "a question has a number in use, or there are too many");
	if (m.big && (r = channel_map(fds[0], LIMIT_REQUEST_BYTES, &big, err)) < 0)
		return r;
	struct question *q = add(l, m.id);
	if (!q)
		return err_oom(err);
	ask(l, q, &m, m.big ? (struct str){big.p, big.n} : m.arguments,
		m.body ? take_fd(fds[n_fds - 1]) : -1);
	return 0;
}

static int on_stop(struct core_link *l, struct msg_in body, struct err *err)
{
	struct msg_stop m;
	int r = msg_stop_get(body, &m, err);
	struct question *q = r == 0 ? find(l, m.id) : NULL;
	if (!q)
		return r; /* answered meanwhile */
	if (m.forget) {
		const struct door_answer forgotten = {.code = ERR_CANCELLED, .fd = -1};
		core_forget(q->ask);
		send_answer(l, q->id, &forgotten);
		drop(q);
	} else {
		core_stop(q->ask);
	}
	return 0;
}

static int on_message(void *ctx, enum msg_type type, struct msg_in body, int *fds, unsigned n_fds,
	struct err *err)
{
	if (type == MSG_T_ASK)
		return on_ask(ctx, body, fds, n_fds, err);
	if (type == MSG_T_STOP)
		return on_stop(ctx, body, err);
	return err_set(err, ERR_PARSE, "a front does not say '%s'", msg_name(type));
}

/* --- life ------------------------------------------------------------------------------------- */

static void on_gone(void *ctx, const struct err *why _unused_)
{
	struct core_link *l = ctx;
	l->ended(l->ctx, l);
}

int core_link_new(struct core *core, struct loop *loop, int sock,
	void (*ended)(void *ctx, struct core_link *l), void *ctx, struct core_link **ret,
	struct err *err)
{
	struct core_link *l = calloc(1, sizeof(*l));
	if (!l)
		return err_oom(err);
	*l = (struct core_link){.core = core, .ended = ended, .ctx = ctx};
	const struct channel_options o = {.loop = loop,
		.sock = sock,
		.role = MSG_CORE,
		.message = on_message,
		.gone = on_gone,
		.ctx = l};
	int r = loop_timer(loop, -1, look_again, l, &l->resume, err);
	if (r == 0)
		r = channel_new(&o, &l->channel, err);
	if (r < 0) {
		loop_remove(&l->resume);
		free(l);
		return r;
	}
	*ret = l;
	return 0;
}

void core_link_free(struct core_link *l)
{
	if (!l)
		return;
	for (unsigned i = 0; i < SLOTS; i++)
		while (l->slots[i]) {
			core_forget(l->slots[i]->ask);
			drop(l->slots[i]);
		}
	loop_remove(&l->resume);
	channel_free(l->channel);
	free(l);
}

bool core_link_idle(const struct core_link *l)
{
	return l->n == 0 && channel_idle(l->channel);
}
