/*
 * Events: what happened to the sessions of a tenant, in a ring. Who asks names the last id that he
 * has seen and waits for later ones; when those he needs have been overwritten, or core was
 * restarted since, the answer says so ("gap").
 *
 * Ids only grow, also over a restart: they start at the time in microseconds.
 */
#include "daemon/core_impl.h"

#include "sys/clock.h"

static const struct field event_fields[] = {
	{.name = "after",
		.type = FIELD_INT,
		.min = 0,
		.max = INT64_MAX,
		.help = "The last id that was seen."},
	{.name = "limit",
		.type = FIELD_INT,
		.min = 1,
		.max = CORE_EVENTS_PAGE,
		.dflt = CORE_EVENTS_PAGE,
		.has_default = true,
		.help = "Most events."},
	FIELD_END,
};

int events_new(struct core *c, struct err *err)
{
	c->events = calloc(CORE_EVENTS_MAX, sizeof(*c->events));
	if (!c->events)
		return err_oom(err);
	c->first_event = c->next_event = (uint64_t)clock_unix_ms() * 1000;
	return 0;
}

static struct event *at(struct core *c, uint64_t id)
{
	return &c->events[id % CORE_EVENTS_MAX];
}

void event_add(struct core *c, const char *type, const struct ask *of, const char *call,
	enum err_code code)
{
	struct event *e = at(c, c->next_event);
	e->id = c->next_event++;
	if (c->next_event - c->first_event > CORE_EVENTS_MAX)
		c->first_event = c->next_event - CORE_EVENTS_MAX;
	e->time_ms = clock_unix_ms();
	e->type = type;
	e->code = code;
	memcpy(e->tenant, of->tenant, sizeof(e->tenant));
	memcpy(e->session, of->session, sizeof(e->session));
	memcpy(e->tool, of->tool, sizeof(e->tool));
	memcpy(e->subject, of->subject, sizeof(e->subject));
	(void)snprintf(e->call, sizeof(e->call), "%s", call);
	c->events_new = true;
}

static bool concerns(const struct event *e, const struct ask *a)
{
	return strcmp(e->tenant, a->tenant) == 0 &&
	       (!a->session[0] || strcmp(e->session, a->session) == 0);
}

static void put_event(struct buf *b, const struct event *e)
{
	jw_open(b, '{');
	jw_int(b, "id", (int64_t)e->id);
	jw_int(b, "time_ms", e->time_ms);
	jw_cstr(b, "type", e->type);
	jw_cstr(b, "session", e->session);
	jw_cstr(b, "by", e->subject);
	if (e->call[0]) {
		jw_cstr(b, "call_id", e->call);
		jw_cstr(b, "tool", e->tool);
		jw_cstr(b, "code", e->code == ERR_OK ? "ok" : err_info(e->code)->name);
	}
	jw_close(b, '}');
}

/* What there is for an ask; `last` is the last id that was looked at. */
static unsigned put_events(struct core *c, const struct ask *a, struct buf *b, uint64_t *ret_last)
{
	unsigned n = 0;
	uint64_t id = MAX(a->after + 1, c->first_event);
	for (; id < c->next_event && n < a->limit; id++)
		if (concerns(at(c, id), a)) {
			put_event(b, at(c, id));
			n++;
		}
	*ret_last = MAX(a->after, id - 1);
	return n;
}

/* False when there is nothing to say and the ask may wait. */
static bool tell(struct ask *a, bool at_once)
{
	struct core *c = a->core;
	_cleanup_buf_ struct buf b = buf_init(CORE_EVENTS_PAGE * 2048);
	bool gap = a->after + 1 < c->first_event;
	uint64_t last;
	jw_open(&b, '{');
	jw_key(&b, "events");
	jw_open(&b, '[');
	unsigned n = put_events(c, a, &b, &last);
	if (n == 0 && !gap && !at_once) {
		a->after = last; /* these need not be looked at again */
		return false;
	}
	jw_close(&b, ']');
	jw_int(&b, "last", (int64_t)last);
	if (gap)
		jw_bool(&b, "gap", true);
	jw_close(&b, '}');
	ask_json(a, &b);
	return true;
}

static int read_arguments(struct ask *a, const struct door_request *q, struct err *err)
{
	_cleanup_(cleanup_json_decref) json_t *args = NULL;
	int r = ask_arguments(q, event_fields, &args, err);
	if (r < 0)
		return r;
	a->limit = (unsigned)arg_int(args, event_fields, "limit");
	/* Without a last id: what comes from now on. */
	a->after = arg_get(args, "after") ? (uint64_t)arg_int(args, event_fields, "after")
					  : a->core->next_event - 1;
	return 0;
}

void core_events(struct ask *a, const struct door_request *q)
{
	struct err err;
	struct session_info info;
	int r = read_arguments(a, q, &err);
	if (r == 0 && a->session[0])
		r = registry_show(a->core->env.registry, a->tenant, a->session, &info, &err);
	if (r < 0)
		ask_error(a, &err);
	else if (!tell(a, q->wait_ms == 0))
		ask_wait(a, q->wait_ms);
}

void events_tell(struct core *c)
{
	if (!c->events_new)
		return;
	c->events_new = false;
	for (struct ask *a = c->waiting, *next; a; a = next) {
		next = a->next;
		if (a->op == DOOR_EVENTS)
			(void)tell(a, false);
	}
}

void core_events_timed_out(struct ask *a)
{
	(void)tell(a, true);
}
