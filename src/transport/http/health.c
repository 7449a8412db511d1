/* Whether it is alive, whether it is ready, and what it counts. */
#include "transport/http/api_impl.h"

void api_alive(struct api_request *a)
{
	http_reply(a->x, 200, "application/json", STR("{\"status\":\"ok\"}\n"));
}

static void on_health(void *ctx, struct door_answer *answer)
{
	struct api_request *a = ctx;
	a->asking = false;
	bool up = answer->code == ERR_OK &&
		  memmem(answer->json.p, answer->json.n, "\"ready\":true", 12) != NULL;
	http_reply(a->x, up ? 200 : 503, "application/json", answer->json);
}

void api_ready(struct api_request *a)
{
	struct door_request d = {.op = DOOR_HEALTH, .body_fd = -1};
	(void)api_submit(a, &d, on_health);
}

static void put_metric(
	struct buf *b, const char *name, const char *type, const char *help, uint64_t v)
{
	buf_printf(b, "# HELP cloister_http_%s %s\n# TYPE cloister_http_%s %s\n", name, help, name,
		type);
	buf_printf(b, "cloister_http_%s %llu\n", name, (unsigned long long)v);
}

static void put_counts(struct buf *b, const struct http_counts *c)
{
	put_metric(b, "connections_total", "counter", "Connections accepted.", c->connections);
	put_metric(b, "connections", "gauge", "Connections open now.", c->open);
	put_metric(b, "requests_total", "counter", "Requests begun.", c->requests);
	put_metric(b, "requests_active", "gauge", "Requests being served now.", c->exchanges);
	put_metric(b, "refused_total", "counter",
		"Requests refused for their form, their host or their slowness.", c->refused);
	put_metric(b, "body_bytes", "gauge", "Bytes of request bodies in memory.",
		(uint64_t)c->body_bytes);
	buf_puts(b, "# HELP cloister_http_replies_total Replies by class of status.\n"
		    "# TYPE cloister_http_replies_total counter\n");
	for (unsigned i = 1; i < ARRAY_LEN(c->status); i++)
		buf_printf(b, "cloister_http_replies_total{class=\"%uxx\"} %llu\n", i,
			(unsigned long long)c->status[i]);
}

static void on_metrics(void *ctx, struct door_answer *answer)
{
	struct api_request *a = ctx;
	struct http_counts c;
	a->asking = false;
	if (answer->code != ERR_OK) {
		api_reply_answer(a, answer, 200);
		return;
	}
	struct buf b = buf_init(answer->json.n + 16384);
	buf_put(&b, answer->json.p, answer->json.n);
	http_server_counts(a->api->server, &c);
	put_counts(&b, &c);
	http_reply_take(a->x, 200, "text/plain; version=0.0.4; charset=utf-8", &b);
}

void api_metrics(struct api_request *a)
{
	struct door_request d = api_door_request(a);
	d.arguments = (struct str){NULL, 0};
	(void)api_submit(a, &d, on_metrics);
}
