/* Reading the history: its records, newest first, and what each of them changed. */
#include "workspace/history_impl.h"
#include "workspace/recover.h"

#include <inttypes.h>
#include <stdio.h>

int history_store(const struct workspace *ws, struct store **ret, struct err *err)
{
	if (ws->mounts[0].read_only || !ws->stores[0])
		return err_set(err, ERR_READ_ONLY, "a read-only workspace has no history");
	*ret = ws->stores[0];
	return 0;
}

int history_hold(struct workspace *ws, struct store *s, struct err *err)
{
	int r = store_lock(s, ws->opt.lock_wait_ms, err);
	if (r < 0 || store_at_rest(s))
		return r;
	if ((r = recover(ws, s, err)) < 0)
		store_unlock(s);
	return r;
}

int history_is_of_copy(struct workspace *ws, struct err *err)
{
	struct store *s;
	int r = history_store(ws, &s, err);
	if (r == 0)
		r = history_hold(ws, s, err);
	if (r < 0)
		return r;
	atomic_store(&s->st->copied_upto, atomic_load(&s->st->done));
	store_unlock(s);
	return 0;
}

/* The newest checkpoint at a position. */
static const char *label_at(const struct checkpoint *all, size_t n, uint64_t seq)
{
	for (size_t i = n; i-- > 0;)
		if (all[i].seq == seq)
			return all[i].label;
	return "";
}

static void fill(struct history_entry *e, const struct record *r, bool undone, const char *label)
{
	*e = (struct history_entry){.seq = r->seq,
		.time_ms = r->time_ms,
		.changes = r->n_changes,
		.undoable = r->undoable && !undone,
		.undone = undone};
	(void)snprintf(e->call_id, sizeof(e->call_id), "%s", r->call_id);
	(void)snprintf(e->tool, sizeof(e->tool), "%s", r->tool);
	(void)snprintf(e->turn, sizeof(e->turn), "%s", r->turn);
	(void)snprintf(e->checkpoint, sizeof(e->checkpoint), "%s", label);
}

int history_list(struct workspace *ws, uint64_t before, unsigned max,
	bool (*each)(void *ctx, const struct history_entry *e), void *ctx, struct err *err)
{
	int r;
	struct store *s;
	struct record_reader rec;
	struct history_entry e;
	size_t n_labels = 0;
	bool undone;
	_cleanup_free_ struct checkpoint *labels = NULL;
	_cleanup_(undone_done) struct undone u = {0};
	_cleanup_history_place_ struct history_place p = {0};
	if ((r = history_store(ws, &s, err)) < 0 ||
		(r = checkpoints_read(s, &labels, &n_labels, err)) < 0)
		return r;
	history_at_end(&p, s);
	while (max > 0 && (r = history_back(&p, &rec, err)) == 1) {
		if ((r = undone_meet(&u, &rec.head, &undone, err)) < 0)
			return r;
		if (before != 0 && rec.head.seq >= before)
			continue;
		fill(&e, &rec.head, undone, label_at(labels, n_labels, rec.head.seq));
		max--;
		if (!each(ctx, &e))
			break;
	}
	return r < 0 ? r : 0;
}

static int show_change(const struct workspace *ws, const struct record *head,
	const struct record_change *c, bool (*each)(void *ctx, const struct change *c), void *ctx,
	struct err *err)
{
	_cleanup_buf_ struct buf agent = buf_init(8 * LIMIT_PATH_BYTES);
	int m = history_mount(ws, head, c->mount);
	name_escape(&agent, str_of(head->mounts[c->mount]));
	buf_putc(&agent, '/');
	name_escape(&agent, str_of(c->path));
	int r = buf_check(&agent, "a path", err);
	if (r < 0)
		return r;
	struct change out = {.kind = c->kind,
		.mount = m < 0 ? 0 : (unsigned)m,
		.path = c->path,
		.from_path = c->from[0] ? c->from : NULL,
		.agent_path = buf_str(&agent),
		.size_before = c->size_before,
		.size_after = c->size_after,
		.entries_delta = c->entries_delta,
		.bytes_delta = c->bytes_delta,
		.mode_before = c->mode_before,
		.mode_after = c->mode_after,
		.is_dir = (c->flags & RECORD_IS_DIR) != 0};
	return each(ctx, &out) ? 1 : 0;
}

int history_changes(struct workspace *ws, uint64_t seq,
	bool (*each)(void *ctx, const struct change *c), void *ctx, struct err *err)
{
	int r;
	struct store *s;
	struct record_reader rec;
	struct record_change c;
	_cleanup_history_place_ struct history_place p = {0};
	if ((r = history_store(ws, &s, err)) < 0)
		return r;
	history_at_end(&p, s);
	do
		r = history_back(&p, &rec, err);
	while (r == 1 && rec.head.seq > seq);
	if (r < 0)
		return r;
	if (r == 0 || rec.head.seq != seq)
		return err_set(
			err, ERR_NOT_FOUND, "the history does not hold change %" PRIu64, seq);
	while ((r = record_next(&rec, &c, err)) == 1)
		if ((r = show_change(ws, &rec.head, &c, each, ctx, err)) <= 0)
			return r;
	return r;
}
