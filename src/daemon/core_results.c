/* Results by call id: a bounded memory, the oldest goes first. */
#include "daemon/core_impl.h"

static struct result **bucket_of(struct core *c, const char *id)
{
	/* Ids are random, so any of their bits will do. */
	uint32_t h = 2166136261u;
	for (const char *p = id; *p; p++)
		h = (h ^ (unsigned char)*p) * 16777619u;
	return &c->buckets[h % RESULT_BUCKETS];
}

struct result *result_find(struct core *c, const char *tenant, const char *id)
{
	for (struct result *r = *bucket_of(c, id); r; r = r->bucket_next)
		if (strcmp(r->id, id) == 0)
			return strcmp(r->tenant, tenant) == 0 ? r : NULL;
	return NULL;
}

static void unlink_age(struct core *c, struct result *r)
{
	if (r->older)
		r->older->newer = r->newer;
	else
		c->oldest = r->newer;
	if (r->newer)
		r->newer->older = r->older;
	else
		c->newest = r->older;
}

static void drop(struct core *c, struct result *r)
{
	struct result **at = bucket_of(c, r->id);
	while (*at != r)
		at = &(*at)->bucket_next;
	*at = r->bucket_next;
	unlink_age(c, r);
	c->n_results--;
	c->result_bytes -= r->json ? r->n : 0;
	free(r->json);
	free(r);
}

/* Running calls stay: their number is bounded by the questions in flight. */
static bool make_room(struct core *c, size_t bytes)
{
	struct result *r = c->oldest, *next;
	for (; r && (c->n_results >= CORE_RESULTS_MAX ||
			    c->result_bytes + bytes > CORE_RESULT_BYTES_MAX);
		r = next) {
		next = r->newer;
		if (!r->running && !r->waiters)
			drop(c, r);
	}
	return c->result_bytes + bytes <= CORE_RESULT_BYTES_MAX;
}

struct result *result_add(struct core *c, const char *tenant, const char *id)
{
	(void)make_room(c, 0);
	struct result *r = calloc(1, sizeof(*r)), **bucket = bucket_of(c, id);
	if (!r)
		return NULL;
	(void)snprintf(r->id, sizeof(r->id), "%s", id);
	(void)snprintf(r->tenant, sizeof(r->tenant), "%s", tenant);
	r->bucket_next = *bucket;
	*bucket = r;
	r->older = c->newest;
	if (c->newest)
		c->newest->newer = r;
	else
		c->oldest = r;
	c->newest = r;
	c->n_results++;
	return r;
}

void result_end(struct core *c, struct result *r, enum err_code code, struct str json)
{
	r->running = NULL;
	r->code = code;
	r->ended_ms = loop_now_ms();
	r->waiters++; /* not to be dropped while room is made for it */
	bool room = json.n <= CORE_RESULT_ONE_MAX && make_room(c, json.n);
	r->waiters--;
	if (!room || !(r->json = malloc(json.n)))
		return;
	memcpy(r->json, json.p, json.n);
	r->n = json.n;
	c->result_bytes += json.n;
}

void results_expire(struct core *c, int64_t now_ms)
{
	while (c->oldest && !c->oldest->running && !c->oldest->waiters &&
		now_ms - c->oldest->ended_ms >= CORE_RESULT_MS)
		drop(c, c->oldest);
}

void results_free(struct core *c)
{
	while (c->oldest)
		drop(c, c->oldest);
}
