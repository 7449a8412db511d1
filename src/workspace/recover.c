/* Ending a commit: see recover.h. */
#include "workspace/recover.h"

#include "workspace/crash.h"

static int add_history(
	const struct workspace *ws, struct store *s, const struct intent *in, struct err *err)
{
	const struct commit_info info = {in->head.call_id, in->head.tool, in->head.turn};
	const struct history_head head = {.seq = in->seq,
		.undoes = in->head.undoes,
		.time_ms = in->head.time_ms,
		.info = &info,
		.keep = in->flags & REDO_KEEP,
		.why_not = in->head.why_not,
		.at = in->history_at,
		.bytes_before = in->history_bytes};
	return history_add(ws, s, &head, in->steps, in->n_steps, err);
}

int recover_outcome(struct workspace *ws, struct store *s, const struct intent *in, struct err *err)
{
	int r;
	bool keep = in->flags & REDO_KEEP;
	struct store_state *st = s->st;
	uint64_t seq =
		MAX(in->seq, atomic_load(&st->done)); /* after a reboot `done` may be ahead */
	if (!(in->flags & REDO_RECORDED) && (r = add_history(ws, s, in, err)) < 0)
		return r;
	const struct later later = later_of(in->steps, in->n_steps);
	for (unsigned i = in->n_steps; i-- > 0;)
		step_settle(ws, &later, &in->steps[i]);
	CRASH_HERE(settled);
	for (unsigned i = 0; i < in->n_steps; i++)
		step_keep(ws, in->seq, &in->steps[i], keep);
	CRASH_HERE(kept);
	atomic_store(&st->bytes, in->bytes_after);
	atomic_store(&st->entries, in->entries_after);
	CRASH_HERE(usage_set);
	if (in->flags & REDO_POWER) {
		atomic_store(&st->log_unsynced, 1);
		atomic_store(&st->log_end, atomic_load(&st->log_start) + in->length);
	}
	atomic_store(&st->intent, seq);
	atomic_store_explicit(&st->done, seq, memory_order_release);
	CRASH_HERE(done_set);
	return 0;
}

/* Something that is neither as before nor as after: it is left as it is, and said. */
void recover_interfered(struct workspace *ws, struct store *s, const struct step *step)
{
	_cleanup_buf_ struct buf b = buf_init(16 * LIMIT_PATH_BYTES);
	struct workspace_recovery *rec = &ws->recovered;
	mount_agent_path(&ws->mounts[step->mount], step->path, &b);
	if (rec->interfered++ == 0) {
		size_t n = utf8_floor(buf_str(&b), MIN(strlen(buf_str(&b)), sizeof(rec->path) - 1));
		memcpy(rec->path, buf_str(&b), n);
		rec->path[n] = '\0';
	}
	atomic_store(&s->st->counted, 0); /* the usage of the record may not fit any more */
}

/* The step that was being published, if it was: whatever else is in its place stays. */
static int back_last(
	const struct workspace *ws, const struct intent *in, unsigned i, bool died, struct err *err)
{
	const struct step *step = &in->steps[i];
	bool in_place = step->kind == CHANGE_APPEND || step->kind == CHANGE_MODE ||
			(step->flags & STEP_IN_PLACE);
	int r = died ? step_is_done(ws, in->seq, step, err) : 0;
	if (r > 0 || (r == 0 && in_place))
		r = step_back(ws, in->seq, step, err);
	CRASH_HERE(back_step);
	return r == -ERR_CONFLICT ? 0 : r;
}

int recover_back(
	struct workspace *ws, struct store *s, const struct intent *in, bool died, struct err *err)
{
	struct store_state *st = s->st;
	atomic_store(&st->direction, STORE_BACK);
	unsigned done = MIN(atomic_load(&st->progress), in->n_steps);
	int r = done < in->n_steps ? back_last(ws, in, done, died, err) : 0;
	for (unsigned i = done; i-- > 0 && r == 0;) {
		r = step_back(ws, in->seq, &in->steps[i], err);
		if (r == -ERR_CONFLICT) {
			recover_interfered(ws, s, &in->steps[i]);
			r = 0;
		}
		CRASH_HERE(back_step);
		if (r == 0)
			atomic_store(&st->progress, i);
	}
	if (r < 0)
		return err_wrap(err, "taking back an interrupted change");
	CRASH_HERE(back_done);
	for (unsigned i = 0; i < in->n_steps; i++)
		step_drop(ws, in->seq, &in->steps[i]);
	r = redo_forget(s, in->flags & REDO_POWER, err);
	if (r == 0)
		atomic_store_explicit(&st->intent, atomic_load(&st->done), memory_order_release);
	return r;
}

/* Publish from `progress` on. ERR_CONFLICT: something is in the way. */
static int go_forward(
	struct workspace *ws, struct store *s, const struct intent *in, struct err *err)
{
	int r;
	struct store_state *st = s->st;
	for (unsigned i = atomic_load(&st->progress); i < in->n_steps; i++) {
		struct step *step = &in->steps[i];
		if ((r = step_is_done(ws, in->seq, step, err)) < 0)
			return r;
		if (r == 0 && (r = step_forward(ws, in->seq, step, err)) < 0)
			return r;
		CRASH_HERE(recovered_step);
		atomic_store(&st->progress, i + 1);
	}
	return 0;
}

/* Is the content of everything that is missing still there? */
static int can_go_forward(
	struct workspace *ws, struct store *s, const struct intent *in, struct err *err)
{
	unsigned first = atomic_load(&s->st->progress);
	for (unsigned i = first; i < in->n_steps; i++) {
		int r = i == first ? step_is_done(ws, in->seq, &in->steps[i], err) : 0;
		if (r < 0)
			return r;
		if (r == 0 && !step_is_possible(ws, in->seq, &in->steps[i]))
			return 0;
	}
	return 1;
}

int recover(struct workspace *ws, struct store *s, struct err *err)
{
	int r;
	struct store_state *st = s->st;
	_cleanup_(intent_done) struct intent in = {0};
	CRASH_HERE(recovering);
	if ((r = intent_read(ws, s, atomic_load(&st->log_start), &in, err)) < 0)
		return err_wrap(err, "recovering an interrupted change");
	if (in.seq != atomic_load(&st->intent))
		return err_set(err, ERR_CORRUPT, "the store's log and state do not agree");
	if (atomic_load(&st->progress) > in.n_steps)
		return err_set(err, ERR_CORRUPT, "the store's state counts too many steps");
	bool forward = atomic_load(&st->direction) == STORE_FORWARD;
	if (forward) {
		if ((r = can_go_forward(ws, s, &in, err)) < 0)
			return r;
		forward = r > 0;
	}
	if (forward) {
		r = go_forward(ws, s, &in, err);
		if (r < 0 && r != -ERR_CONFLICT)
			return r;
		forward = r == 0;
	}
	if (!forward) {
		ws->recovered.rolled_back++;
		return recover_back(ws, s, &in, true, err);
	}
	ws->recovered.finished++;
	return recover_outcome(ws, s, &in, err);
}

void recover_unprepared(struct workspace *ws, struct store *s)
{
	struct store_state *st = s->st;
	uint64_t seq = atomic_load(&st->preparing);
	uint32_t n = MIN(atomic_load(&st->preparing_steps), (uint32_t)LIMIT_CHANGES);
	/* Once the intent stands, recovery knows better what is to become of them. */
	if (seq <= atomic_load(&st->done) || !store_at_rest(s))
		return;
	for (unsigned i = 0; i < n; i++)
		for (unsigned m = 0; m < ws->n_mounts; m++)
			if (ws->mounts[m].store == s)
				step_drop(ws, seq,
					&(struct step){.mount = m,
						.index = i,
						.flags = STEP_NAMED | STEP_COPIED});
	atomic_store(&st->preparing, 0);
}

int workspace_settle(struct workspace *ws, struct err *err)
{
	for (unsigned i = 0; i < ws->n_stores; i++) {
		struct store *s = ws->stores[i];
		int r;
		if (store_at_rest(s))
			continue;
		/* The lock is free as soon as the writer is done, or dead. */
		if ((r = store_lock(s, ws->opt.lock_wait_ms, err)) < 0)
			return r;
		if (!store_at_rest(s))
			r = recover(ws, s, err);
		store_unlock(s);
		if (r < 0)
			return r;
	}
	return 0;
}
