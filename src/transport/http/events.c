/*
 * Events as Server-Sent Events (WHATWG HTML 9.2): core is asked for what comes after the last event
 * sent, waits until there is something or EVENTS_WAIT_MS are over, and is asked again. Nothing is
 * kept here but the last id, so a stream can be taken up anywhere, also after a restart.
 */
#include "codec/json.h"
#include "transport/http/api_impl.h"

enum { EVENTS_WAIT_MS = 15000, EVENTS_RETRY_MS = 1000 };

struct events {
	int64_t after; /* the last id that was sent; -1: what comes from now on */
	bool streaming;
	struct loop_source *retry; /* core is being restarted */
};

void events_free(struct events *e)
{
	if (!e)
		return;
	loop_remove(&e->retry);
	free(e);
}

static void ask(struct api_request *a);

static void on_retry(void *ctx)
{
	ask(ctx);
}

static void retry_later(struct api_request *a)
{
	struct err err;
	int64_t at = loop_now_ms() + EVENTS_RETRY_MS;
	struct events *e = a->events;
	if (e->retry)
		loop_timer_set(e->retry, at);
	else if (loop_timer(a->api->opt.loop, at, on_retry, a, &e->retry, &err) < 0)
		http_stream_end(a->x);
}

static bool put_event(struct api_request *a, struct buf *b, const json_t *v)
{
	_cleanup_free_ char *data = json_dumps(v, JSON_COMPACT);
	if (!data)
		return false;
	a->events->after = json_integer_value(json_object_get(v, "id"));
	buf_printf(b, "id: %lld\ndata: %s\n\n", (long long)a->events->after, data);
	return true;
}

/* What core said becomes events; nothing new becomes a comment, so that both ends see that the
 * other is alive. */
static bool put_events(struct api_request *a, struct str json)
{
	_cleanup_(cleanup_json_decref) json_t *v = NULL;
	_cleanup_buf_ struct buf b = buf_init(HTTP_STREAM_MAX);
	struct err err;
	size_t i;
	const json_t *e;
	if (json_parse(json, DOOR_ANSWER_MAX, &v, &err) < 0)
		return false;
	const json_t *list = json_object_get(v, "events"), *last = json_object_get(v, "last");
	if (json_is_true(json_object_get(v, "gap")))
		buf_puts(&b, "event: gap\ndata: {}\n\n");
	json_array_foreach((json_t *)(uintptr_t)list, i, e) if (!put_event(a, &b, e)) return false;
	if (json_array_size(list) == 0)
		buf_puts(&b, ": nothing new\n\n");
	if (json_is_integer(last))
		a->events->after = json_integer_value(last);
	return buf_check(&b, "the events", &err) == 0 &&
	       http_stream_put(a->x, (struct str){buf_str(&b), b.len});
}

static void on_events(void *ctx, struct door_answer *answer)
{
	struct api_request *a = ctx;
	a->asking = false;
	if (!a->events->streaming && answer->code != ERR_OK) {
		api_reply_answer(a, answer, 200);
		return;
	}
	if (answer->code == ERR_UNAVAILABLE) {
		retry_later(a);
		return;
	}
	if (!a->events->streaming)
		http_stream(a->x, 200, "text/event-stream");
	a->events->streaming = true;
	if (answer->code == ERR_OK && put_events(a, answer->json))
		ask(a);
	else
		http_stream_end(a->x);
}

/* The first question does not wait, so that a refusal is a status and the stream opens at once. */
static void ask(struct api_request *a)
{
	struct err err;
	buf_clear(&a->arguments);
	jw_open(&a->arguments, '{');
	if (a->events->after >= 0)
		jw_int(&a->arguments, "after", a->events->after);
	jw_close(&a->arguments, '}');
	struct door_request d = api_door_request(a);
	d.wait_ms = a->events->streaming ? EVENTS_WAIT_MS : 0;
	if (!a->events->streaming) {
		(void)api_submit(a, &d, on_events);
		return;
	}
	a->asking = door_submit(a->api->opt.door, &d, on_events, NULL, a, &a->ask, &err) == 0;
	if (!a->asking && err.code == ERR_UNAVAILABLE)
		retry_later(a);
	else if (!a->asking)
		http_stream_end(a->x);
}

/* Digits alone; -1: it is none. */
static int64_t event_id(struct str s)
{
	int64_t v = 0;
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] < '0' || s.p[i] > '9' || v > (INT64_MAX - 9) / 10)
			return -1;
		v = v * 10 + (s.p[i] - '0');
	}
	return s.n > 0 ? v : -1;
}

void api_events(struct api_request *a)
{
	struct err err;
	struct str after = http_request_param(a->q, "after");
	if (a->q->last_event_id.p)
		after = a->q->last_event_id;
	a->events = calloc(1, sizeof(*a->events));
	if (!a->events) {
		(void)err_oom(&err);
		api_reply_error(a, &err);
		return;
	}
	a->events->after = after.p ? event_id(after) : -1;
	if (after.p && a->events->after < 0) {
		err_set(&err, ERR_INVALID_ARGUMENT, "Last-Event-ID is not one that a stream gave");
		api_reply_error(a, &err);
		return;
	}
	ask(a);
}
