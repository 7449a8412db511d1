/* A door to a core in the same process: what the socket between front and core does, without it. */
#include "daemon/core_impl.h"

struct local {
	struct local *next;
	struct local_door *of;
	uint64_t id;
	door_done_fn done;
	door_progress_fn progress;
	void *ctx;
	struct ask *ask; /* NULL: answered */
	bool abandoned, in_submit, answered;
	/* The answer, kept until the loop tells it. */
	struct door_answer answer;
	char *json;
};

struct local_door {
	struct door base;
	struct core *core;
	struct loop_source *later;
	struct local *all;
	unsigned n;
	uint64_t last_id;
};

static void local_free(struct local *l)
{
	if (l->answer.fd >= 0)
		(void)close(l->answer.fd);
	free(l->json);
	free(l);
}

static void keep_answer(void *ctx, struct door_answer *answer)
{
	struct local *l = ctx;
	l->answer = *answer;
	l->answer.fd = take_fd(answer->fd);
	l->answered = true;
	l->ask = NULL;
	l->json = malloc(answer->json.n + 1);
	if (!l->json) {
		l->answer.code = ERR_NO_MEMORY;
		l->answer.json = STR("{\"executed\":false,\"error\":{\"code\":\"no_memory\"}}");
	} else {
		memcpy(l->json, answer->json.p, answer->json.n);
		l->answer.json.p = l->json;
	}
	loop_defer_again(l->of->later);
}

static void tell_progress(void *ctx, int64_t done, int64_t total)
{
	struct local *l = ctx;
	if (!l->abandoned && !l->in_submit && l->progress)
		l->progress(l->ctx, done, total);
}

static struct local *take_answered(struct local_door *d)
{
	struct local **at = &d->all;
	while (*at && !(*at)->answered)
		at = &(*at)->next;
	struct local *l = *at;
	if (l) {
		*at = l->next;
		d->n--;
	}
	return l;
}

static void tell(void *ctx)
{
	struct local_door *d = ctx;
	struct local *l;
	while ((l = take_answered(d))) {
		if (!l->abandoned)
			l->done(l->ctx, &l->answer);
		local_free(l);
	}
}

static int submit(struct door *base, const struct door_request *q, door_done_fn done,
	door_progress_fn progress, void *ctx, uint64_t *ret_id, struct err *err)
{
	struct local_door *d = (struct local_door *)base;
	int r = door_check(q, err);
	if (r < 0)
		return r;
	if (d->n == DOOR_IN_FLIGHT_MAX)
		return err_set(
			err, ERR_LIMIT, "%d requests wait for their answers", DOOR_IN_FLIGHT_MAX);
	struct local *l = calloc(1, sizeof(*l));
	if (!l)
		return err_oom(err);
	*l = (struct local){.next = d->all,
		.of = d,
		.id = ++d->last_id,
		.done = done,
		.progress = progress,
		.ctx = ctx,
		.in_submit = true,
		.answer.fd = -1};
	d->all = l;
	d->n++;
	*ret_id = l->id;
	struct ask *ask;
	core_ask(d->core, q, keep_answer, progress ? tell_progress : NULL, l, &ask);
	l->in_submit = false;
	l->ask = ask;
	return 0;
}

static struct local *find(struct door *base, uint64_t id)
{
	struct local_door *d = (struct local_door *)base;
	for (struct local *l = d->all; l; l = l->next)
		if (l->id == id)
			return l;
	return NULL;
}

static void cancel(struct door *base, uint64_t id)
{
	struct local *l = find(base, id);
	if (l && l->ask)
		core_stop(l->ask);
}

static void abandon(struct door *base, uint64_t id)
{
	struct local *l = find(base, id);
	if (!l || l->abandoned)
		return;
	l->abandoned = true;
	if (l->ask)
		core_forget(take_ptr(l->ask));
	l->answered = true; /* nothing comes any more */
	loop_defer_again(l->of->later);
}

struct door *core_door(struct core *c)
{
	static const struct door_ops ops = {submit, cancel, abandon};
	struct err ignored;
	struct local_door *d = c->door;
	if (d)
		return &d->base;
	d = calloc(1, sizeof(*d));
	if (!d)
		return NULL;
	d->base.ops = &ops;
	d->core = c;
	if (loop_defer(c->opt.loop, tell, d, &d->later, &ignored) < 0) {
		free(d);
		return NULL;
	}
	c->door = d;
	return &d->base;
}

void local_door_free(struct local_door *d)
{
	if (!d)
		return;
	loop_remove(&d->later);
	while (d->all) {
		struct local *l = d->all;
		d->all = l->next;
		local_free(l);
	}
	free(d);
}
