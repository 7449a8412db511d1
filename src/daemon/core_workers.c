/*
 * Workers of the sessions in use: made at their first job, ended when they idle.
 *
 * A worker's process may be replaced whenever its port is used, and its descriptor with it; so the
 * loop watches the descriptor only between uses: active_disarm() before, active_arm() after.
 */
#include "daemon/core_impl.h"

static void on_worker(void *ctx, int fd _unused_, uint32_t events _unused_)
{
	struct active *a = ctx;
	active_disarm(a);
	for (struct ask *ask = a->asks, *next; ask; ask = next) {
		next = ask->active_next;
		core_call_proceed(ask);
	}
	a->used_ms = loop_now_ms();
	active_arm(a);
}

void active_disarm(struct active *a)
{
	if (a)
		loop_remove(&a->io);
}

/* Without a place in the loop the calls get on with the tick. */
void active_arm(struct active *a)
{
	struct err ignored;
	int fd = a->asks && !a->io ? worker_poll_fd(a->worker) : -1;
	if (fd >= 0 && loop_io(a->core->opt.loop, fd, EPOLLIN, on_worker, a, &a->io, &ignored) < 0)
		a->io = NULL;
}

void active_join(struct active *a, struct ask *ask)
{
	BUG_ON(!a); /* only a worker makes a call wait */
	struct ask **end = &a->asks;
	while (*end)
		end = &(*end)->active_next;
	*end = ask;
	ask->active_next = NULL;
	ask->active = a;
}

void active_leave(struct ask *ask)
{
	struct active *a = ask->active;
	if (!a)
		return;
	struct ask **at = &a->asks;
	while (*at != ask)
		at = &(*at)->active_next;
	*at = ask->active_next;
	ask->active = NULL;
	a->used_ms = loop_now_ms();
	active_disarm(a); /* its call may cancel a job now */
}

static struct active *find(struct core *c, const char *incarnation)
{
	for (struct active *a = c->actives; a; a = a->next)
		if (strcmp(a->incarnation, incarnation) == 0)
			return a;
	return NULL;
}

static void end(struct core *c, struct active *a)
{
	struct active **at = &c->actives;
	while (*at != a)
		at = &(*at)->next;
	*at = a->next;
	active_disarm(a);
	worker_free(a->worker);
	free(a);
	c->n_actives--;
}

/* The one that has been idle for longest gives way. */
static bool end_idlest(struct core *c)
{
	struct active *idlest = NULL;
	for (struct active *a = c->actives; a; a = a->next)
		if (!a->asks && (!idlest || a->used_ms < idlest->used_ms))
			idlest = a;
	if (idlest)
		end(c, idlest);
	return idlest != NULL;
}

static int make(struct core *c, struct session *s, struct active *a, struct err *err)
{
	struct workspace *ws;
	int fds[LIMIT_MOUNTS], r = session_workspace(s, &ws, err);
	unsigned n;
	if (r < 0)
		return r;
	for (n = 0; n < workspace_mounts(ws) && n < LIMIT_MOUNTS; n++)
		fds[n] = workspace_mount_fd(ws, n);
	while ((r = tree_worker(c->opt.tree, fds, n, &a->worker, err)) == -ERR_LIMIT &&
		end_idlest(c))
		;
	return r;
}

struct worker *core_worker_of(void *ctx, struct session *s, struct err *err)
{
	struct core *c = ctx;
	struct session_info info;
	session_info(s, &info);
	struct active *a = find(c, info.incarnation);
	if (!a) {
		if (!c->opt.tree) {
			(void)err_set(err, ERR_UNAVAILABLE, "this core has no workers");
			return NULL;
		}
		if (!(a = calloc(1, sizeof(*a)))) {
			(void)err_oom(err);
			return NULL;
		}
		if (make(c, s, a, err) < 0) {
			free(a);
			return NULL;
		}
		a->core = c;
		memcpy(a->incarnation, info.incarnation, sizeof(a->incarnation));
		a->next = c->actives;
		c->actives = a;
		c->n_actives++;
		c->counts.workers_started++;
	}
	active_disarm(a);
	a->used_ms = loop_now_ms();
	c->asked = a;
	return a->worker;
}

static bool due(const struct active *a, int64_t now_ms)
{
	if (!a->io)
		return true;
	for (const struct ask *ask = a->asks; ask; ask = ask->active_next)
		if (now_ms >= call_deadline_ms(ask->call))
			return true;
	return now_ms - a->used_ms >= 500; /* a worker past its job's own deadline */
}

void actives_tick(struct core *c, int64_t now_ms)
{
	for (struct active *a = c->actives, *next; a; a = next) {
		next = a->next;
		if (a->asks && due(a, now_ms))
			on_worker(a, -1, 0);
		else if (!a->asks && now_ms - a->used_ms >= c->opt.worker_idle_ms)
			end(c, a);
	}
}

void actives_end(struct core *c, const char *incarnation)
{
	for (struct active *a = c->actives, *next; a; a = next) {
		next = a->next;
		if (!incarnation || (strcmp(a->incarnation, incarnation) == 0 && !a->asks))
			end(c, a);
	}
}
