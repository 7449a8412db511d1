/* The port of doors over channels to core: see door_client.h. */
#include "daemon/door_client.h"

#include "daemon/channel.h"

#include <string.h>

/* A question in flight. Its number is its place and how often the place was used. */
struct flight {
	door_done_fn done; /* NULL: the place is free, or nobody wants the answer */
	door_progress_fn progress;
	void *ctx;
	uint32_t uses;
	uint16_t next_free;
	uint8_t link;
	bool used;
};

struct link {
	struct door_client *client;
	struct channel *channel; /* NULL: none */
	unsigned n;              /* in flight */
};

struct door_client {
	struct door base;
	struct loop *loop;
	struct link links[DOOR_CLIENT_CHANNELS];
	int current; /* -1: no core */
	struct flight *flights;
	unsigned n, n_made;
	int free_place; /* -1: none of those made */
	struct msg_out one;
};

enum { NO_PLACE = 0xffff };

/* --- places ----------------------------------------------------------------------------------- */

static uint64_t number_of(const struct door_client *c, const struct flight *f)
{
	return (uint64_t)f->uses << 16 | (uint64_t)(f - c->flights);
}

static struct flight *flight_of(struct door_client *c, uint64_t id)
{
	unsigned place = (unsigned)(id & 0xffff);
	struct flight *f = place < c->n_made ? &c->flights[place] : NULL;
	return f && f->used && f->uses == id >> 16 ? f : NULL;
}

static struct flight *take_place(struct door_client *c)
{
	struct flight *f;
	if (c->free_place >= 0) {
		f = &c->flights[c->free_place];
		c->free_place = f->next_free == NO_PLACE ? -1 : f->next_free;
	} else if (c->n_made < DOOR_IN_FLIGHT_MAX) {
		f = &c->flights[c->n_made++];
	} else {
		return NULL;
	}
	f->used = true;
	f->uses++;
	c->n++;
	return f;
}

static void free_place(struct door_client *c, struct flight *f)
{
	f->used = false;
	f->done = NULL;
	f->next_free = c->free_place < 0 ? NO_PLACE : (uint16_t)c->free_place;
	c->free_place = (int)(f - c->flights);
	c->n--;
	c->links[f->link].n--;
}

/* --- answers ---------------------------------------------------------------------------------- */

/* A core that was replaced has answered everything: its channel has done its work. */
static void retire_if_done(struct link *l)
{
	if (l->n == 0 && l->channel && l->client->current != l - l->client->links)
		channel_close(l->channel);
}

static void answered(struct door_client *c, struct flight *f, struct door_answer *answer)
{
	door_done_fn done = f->done;
	void *ctx = f->ctx;
	free_place(c, f);
	if (done)
		done(ctx, answer);
	if (answer->fd >= 0)
		(void)close(answer->fd);
}

static int on_answer(struct link *l, struct msg_in body, int *fds, unsigned n_fds, struct err *err)
{
	struct msg_answer m;
	_cleanup_(mapped_done) struct mapped big = {NULL, 0};
	int r = msg_answer_get(body, &m, err);
	if (r < 0)
		return r;
	struct flight *f = flight_of(l->client, m.id);
	if (!f || &l->client->links[f->link] != l || n_fds != (unsigned)m.big + m.file)
		return err_set(err, ERR_PARSE, "core answered what was not asked");
	if (m.big && (r = channel_map(fds[0], DOOR_ANSWER_MAX, &big, err)) < 0)
		return r;
	struct door_answer answer = {.code = (enum err_code)m.code,
		.json = m.big ? (struct str){big.p, big.n} : m.json,
		.running = m.running,
		.fd = m.file ? take_fd(fds[n_fds - 1]) : -1,
		.size = m.size,
		.modified_ms = m.modified_ms};
	memcpy(answer.etag, m.etag.p, m.etag.n);
	answered(l->client, f, &answer);
	retire_if_done(l);
	return 0;
}

static int on_progress(struct link *l, struct msg_in body, struct err *err)
{
	struct msg_progress m;
	int r = msg_progress_get(body, &m, err);
	if (r < 0)
		return r;
	struct flight *f = flight_of(l->client, m.id);
	if (f && f->done && f->progress)
		f->progress(f->ctx, m.done, m.total);
	return 0;
}

static int on_message(void *ctx, enum msg_type type, struct msg_in body, int *fds, unsigned n_fds,
	struct err *err)
{
	if (type == MSG_T_ANSWER)
		return on_answer(ctx, body, fds, n_fds, err);
	if (type == MSG_T_PROGRESS)
		return on_progress(ctx, body, err);
	return err_set(err, ERR_PARSE, "core does not say '%s' to a front", msg_name(type));
}

static void lost(struct door_client *c, struct flight *f)
{
	static const char text[] =
		"{\"executed\":false,\"error\":{\"code\":\"unavailable\",\"message\":"
		"\"core was restarted; whether the call was made is not known\"}}";
	struct door_answer answer = {.code = ERR_UNAVAILABLE, .fd = -1, .json = STR(text)};
	answered(c, f, &answer);
}

/* Its channel is closed first, so that what the answers lead to goes elsewhere. */
static void on_gone(void *ctx, const struct err *why _unused_)
{
	struct link *l = ctx;
	struct door_client *c = l->client;
	channel_free(l->channel);
	l->channel = NULL;
	if (c->current == l - c->links)
		c->current = -1;
	for (unsigned i = 0; i < c->n_made; i++)
		if (c->flights[i].used && &c->links[c->flights[i].link] == l)
			lost(c, &c->flights[i]);
}

/* --- questions -------------------------------------------------------------------------------- */

static void put_request(const struct door_request *q, uint64_t id, bool progress, struct msg_ask *m)
{
	*m = (struct msg_ask){.id = id,
		.op = (uint8_t)q->op,
		.big = q->arguments.n > DOOR_INLINE_MAX,
		.body = door_op_info(q->op)->needs & DOOR_BODY ? 1 : 0,
		.progress = progress,
		.wait_ms = (uint32_t)q->wait_ms,
		.body_size = q->body_size < 0 ? UINT64_MAX : (uint64_t)q->body_size,
		.token = q->token,
		.session = q->session,
		.tool = q->tool,
		.turn = q->turn,
		.call = q->id,
		.role = q->role};
	if (!m->big)
		m->arguments = q->arguments;
}

static int send_with_fds(struct door_client *c, const struct door_request *q,
	const struct msg_ask *m, struct err *err)
{
	int fds[2];
	unsigned n = 0;
	_cleanup_close_ int big = -1;
	int r = m->big ? channel_memfd(q->arguments, &big, err) : 0;
	if (r < 0)
		return r;
	if (m->big)
		fds[n++] = big;
	if (m->body)
		fds[n++] = q->body_fd;
	msg_out_clear(&c->one);
	BUG_ON(!msg_ask_put(&c->one, m));
	channel_send(c->links[c->current].channel, &c->one, fds, n);
	if (m->body)
		(void)close(q->body_fd);
	return 0;
}

static int send_question(struct door_client *c, const struct door_request *q, uint64_t id,
	bool progress, struct err *err)
{
	struct msg_ask m;
	put_request(q, id, progress, &m);
	if (m.big || m.body)
		return send_with_fds(c, q, &m, err);
	size_t need = m.arguments.n + DOOR_TOKEN_MAX + LIMIT_SESSION_ID + DOOR_TOOL_MAX +
		      DOOR_TURN_MAX + DOOR_ID_MAX + DOOR_ROLE_MAX + 256;
	BUG_ON(!msg_ask_put(channel_out(c->links[c->current].channel, need), &m));
	return 0;
}

static int submit(struct door *base, const struct door_request *q, door_done_fn done,
	door_progress_fn progress, void *ctx, uint64_t *ret_id, struct err *err)
{
	struct door_client *c = (struct door_client *)base;
	int r = door_check(q, err);
	if (r < 0)
		return r;
	if (c->current < 0)
		return err_set(err, ERR_UNAVAILABLE, "core is being restarted");
	struct flight *f = take_place(c);
	if (!f)
		return err_set(
			err, ERR_LIMIT, "%d requests wait for their answers", DOOR_IN_FLIGHT_MAX);
	f->done = done;
	f->progress = progress;
	f->ctx = ctx;
	f->link = (uint8_t)c->current;
	c->links[f->link].n++;
	uint64_t id = number_of(c, f);
	if ((r = send_question(c, q, id, progress != NULL, err)) < 0) {
		free_place(c, f);
		return r;
	}
	*ret_id = id;
	return 0;
}

static void stop(struct door *base, uint64_t id, bool forget)
{
	struct door_client *c = (struct door_client *)base;
	struct flight *f = flight_of(c, id);
	if (!f || !f->done)
		return;
	struct link *l = &c->links[f->link];
	const struct msg_stop m = {.id = id, .forget = forget};
	BUG_ON(!msg_stop_put(channel_out(l->channel, 256), &m));
}

static void cancel(struct door *base, uint64_t id)
{
	stop(base, id, false);
}

/* The place stays in use until core has confirmed that it forgot: a number is not given out while
 * core may use it. */
static void abandon(struct door *base, uint64_t id)
{
	struct door_client *c = (struct door_client *)base;
	struct flight *f = flight_of(c, id);
	if (!f || !f->done)
		return;
	stop(base, id, true);
	f->done = NULL;
	f->progress = NULL;
}

/* --- life ------------------------------------------------------------------------------------- */

int door_client_new(struct loop *loop, struct door_client **ret, struct err *err)
{
	static const struct door_ops ops = {submit, cancel, abandon};
	struct door_client *c = calloc(1, sizeof(*c));
	if (!c)
		return err_oom(err);
	c->flights = calloc(DOOR_IN_FLIGHT_MAX, sizeof(*c->flights));
	if (!c->flights) {
		free(c);
		return err_oom(err);
	}
	c->base.ops = &ops;
	c->loop = loop;
	c->current = c->free_place = -1;
	for (unsigned i = 0; i < DOOR_CLIENT_CHANNELS; i++)
		c->links[i].client = c;
	*ret = c;
	return 0;
}

void door_client_free(struct door_client *c)
{
	if (!c)
		return;
	for (unsigned i = 0; i < DOOR_CLIENT_CHANNELS; i++)
		channel_free(c->links[i].channel);
	free(c->flights);
	free(c);
}

struct door *door_client_door(struct door_client *c)
{
	return &c->base;
}

/* A place for one more channel: a free one, else that of the one with the fewest questions. */
static struct link *link_for_new(struct door_client *c)
{
	struct link *least = NULL;
	for (unsigned i = 0; i < DOOR_CLIENT_CHANNELS; i++) {
		struct link *l = &c->links[i];
		if (!l->channel)
			return l;
		if ((int)i != c->current && (!least || l->n < least->n))
			least = l;
	}
	BUG_ON(!least); /* there is more than one channel, and at most one is the current one */
	on_gone(least, NULL);
	return least;
}

int door_client_attach(struct door_client *c, int sock, struct err *err)
{
	struct link *l = link_for_new(c), *before = c->current >= 0 ? &c->links[c->current] : NULL;
	const struct channel_options o = {.loop = c->loop,
		.sock = sock,
		.role = MSG_FRONT,
		.message = on_message,
		.gone = on_gone,
		.ctx = l};
	int r = channel_new(&o, &l->channel, err);
	if (r < 0)
		return r;
	c->current = (int)(l - c->links);
	if (before)
		retire_if_done(before);
	return 0;
}

bool door_client_attached(const struct door_client *c)
{
	return c->current >= 0;
}

unsigned door_client_in_flight(const struct door_client *c)
{
	return c->n;
}
