/*
 * After a power cut: what the log promises and the disk may lack.
 *
 * The log holds the intents since the last checkpoint, each synced before its first step. The file
 * systems that we know (ext4, xfs, btrfs) make changes of names durable in the order in which they
 * were made, so the disk holds those of the first intents, perhaps a part of one, and none of the
 * rest; the content of small files comes in any order and may be missing altogether. So:
 *
 *   find the last step that is certainly there (by its inode number);
 *   before it, only content is looked after;
 *   from it on, every step is published again.
 *
 * What is neither as before nor as after was changed by somebody else after the change and before
 * the cut: it stays, and is reported.
 */
#include "workspace/recover.h"

#include "sys/fs.h"

#include <errno.h>

#include <fcntl.h>

enum { REPLAY_MAX = 100000 };

struct replay {
	struct workspace *ws;
	struct store *s;
	struct intent *all;
	unsigned n, cap;
};

static void replay_done(struct replay *rp)
{
	for (unsigned i = 0; i < rp->n; i++)
		intent_done(&rp->all[i]);
	free(rp->all);
}

static int add(struct replay *rp, struct intent *take, struct err *err)
{
	if (rp->n == rp->cap) {
		unsigned cap = rp->cap ? rp->cap * 2 : 16;
		struct intent *p = realloc(rp->all, cap * sizeof(*p));
		if (!p || cap > REPLAY_MAX) {
			intent_done(take);
			return err_oom(err);
		}
		rp->all = p, rp->cap = cap;
	}
	rp->all[rp->n++] = *take;
	return 0;
}

/* The intents of this generation, up to the first that is not whole. */
static int read_log(struct replay *rp, struct err *err)
{
	uint64_t at = 0, generation = atomic_load(&rp->s->st->log_generation);
	for (;;) {
		struct intent in = {0};
		int r = intent_read(rp->ws, rp->s, at, &in, err);
		if (r == -ERR_CORRUPT)
			return 0;
		if (r < 0)
			return r;
		bool next = in.generation == generation && (in.flags & REDO_POWER) &&
			    (rp->n == 0 || in.seq == rp->all[rp->n - 1].seq + 1);
		if (!next) {
			intent_done(&in);
			return 0;
		}
		at += in.length;
		if ((r = add(rp, &in, err)) < 0)
			return r;
	}
}

/* Certainly published? A directory or a mode says nothing: anybody could have made it. */
static bool is_evident(const struct replay *rp, const struct intent *in, const struct step *s)
{
	struct err ignored;
	if (s->kind == CHANGE_MKDIR || s->kind == CHANGE_MODE || s->kind == CHANGE_APPEND)
		return false;
	if (s->kind == CHANGE_RENAME && !(s->flags & STEP_BASE))
		return false;
	return step_is_done(rp->ws, in->seq, s, &ignored) == 1;
}

/* A later step saw this content under another inode number than it has now. */
static void renumber(struct replay *rp, unsigned from, uint64_t was, uint64_t is)
{
	for (unsigned i = from; i < rp->n; i++)
		for (unsigned k = 0; k < rp->all[i].n_steps; k++)
			if (rp->all[i].steps[k].base_ino == was)
				rp->all[i].steps[k].base_ino = is;
}

/* The step is on disk as far as names go: its content may be short. */
static int mend_content(struct replay *rp, const struct step *s, struct err *err)
{
	struct stat st;
	bool in_place = s->kind == CHANGE_APPEND || (s->flags & STEP_IN_PLACE);
	uint64_t ino = in_place ? s->base_ino : s->content_ino;
	if (!(s->flags & STEP_INLINE))
		return 0;
	_cleanup_close_ int fd = fs_look(rp->ws->mounts[s->mount].root_fd, s->path);
	if (fd < 0 || fstat(fd, &st) < 0 || st.st_ino != ino || st.st_size >= s->size_after)
		return 0;
	return step_rewrite(rp->ws, s, ino, s->kind == CHANGE_APPEND ? s->size_before : 0, err);
}

static int play_step(struct replay *rp, unsigned i, struct step *s, struct err *err)
{
	int r;
	struct intent *in = &rp->all[i];
	if ((s->kind == CHANGE_CREATE || s->kind == CHANGE_REPLACE) && (s->flags & STEP_INLINE) &&
		!(s->flags & STEP_IN_PLACE)) {
		if (step_compare(rp->ws, s) == STEP_CONTENT_SAME)
			return 0;
		uint64_t was = s->content_ino;
		if ((r = step_remake(rp->ws, in->seq, s, err)) < 0)
			return r;
		renumber(rp, i, was, s->content_ino);
	}
	r = step_is_done(rp->ws, in->seq, s, err);
	return r == 0 ? step_forward(rp->ws, in->seq, s, err) : r > 0 ? 0 : r;
}

/* Is the record of this commit in the history file already? Then it becomes part of the history. */
static bool take_recorded(const struct store *s, const struct intent *in)
{
	char head[RECORD_HEAD];
	size_t n;
	struct err ignored;
	struct record_reader rr;
	_cleanup_buf_ struct buf frame = buf_init(RECORD_MAX);
	if (fs_read(s->history_fd, head, sizeof(head), (off_t)in->history_at) != RECORD_HEAD ||
		record_length(head, sizeof(head), &n, &ignored) < 0 || !buf_room(&frame, n))
		return false;
	if (fs_read(s->history_fd, frame.data, n, (off_t)in->history_at) != (ssize_t)n ||
		record_open(&rr, frame.data, n, &ignored) < 0 || rr.head.seq != in->seq)
		return false;
	atomic_store(&s->st->history_bytes, in->history_bytes + history_cost(rr, n));
	atomic_store(&s->st->history_end, in->history_at + n);
	return true;
}

/* From a step of an intent to its end. An intent that lacks content was never acknowledged, since
 * what is not in the log is synced or checkpointed first: it is taken back as a whole. */
static int play(struct replay *rp, unsigned i, unsigned first, struct err *err)
{
	struct intent *in = &rp->all[i];
	for (unsigned k = first; k < in->n_steps; k++) {
		struct step *s = &in->steps[k];
		if (!step_is_possible(rp->ws, in->seq, s) && !(s->flags & STEP_INLINE)) {
			atomic_store(&rp->s->st->progress, k);
			rp->ws->recovered.rolled_back++;
			return recover_back(rp->ws, rp->s, in, false, err);
		}
		int r = play_step(rp, i, s, err);
		if (r == -ERR_CONFLICT)
			recover_interfered(rp->ws, rp->s, s);
		else if (r < 0)
			return err_wrap(err, "repeating a change after a power cut");
	}
	rp->ws->recovered.finished += first < in->n_steps;
	in->flags |= take_recorded(rp->s, in) ? REDO_RECORDED : 0;
	return recover_outcome(rp->ws, rp->s, in, err);
}

/* The last step that is evident: its intent, and the number of steps up to and with it. */
static unsigned find_evident(const struct replay *rp, unsigned *ret_steps)
{
	for (unsigned i = rp->n; i-- > 0;)
		for (unsigned k = rp->all[i].n_steps; k-- > 0;)
			if (is_evident(rp, &rp->all[i], &rp->all[i].steps[k])) {
				*ret_steps = k + 1;
				return i;
			}
	*ret_steps = 0;
	return 0;
}

static int play_all(struct replay *rp, struct err *err)
{
	int r = 0;
	unsigned steps, at = find_evident(rp, &steps);
	for (unsigned i = 0; i < rp->n && r == 0; i++) {
		unsigned done = i < at ? rp->all[i].n_steps : i == at ? steps : 0;
		for (unsigned k = 0; k < done && r == 0; k++)
			r = mend_content(rp, &rp->all[i].steps[k], err);
		if (r == 0)
			r = play(rp, i, done, err);
	}
	return r;
}

/* The page may know of less history than there is, or of more than the disk has. */
static void mend_history(struct replay *rp)
{
	struct err ignored;
	struct store_state *st = rp->s->st;
	_cleanup_history_place_ struct history_place p;
	struct record_reader rec;
	int r;
	if (rp->n > 0)
		atomic_store(&st->history_end, rp->all[0].history_at);
	history_at_start(&p, rp->s);
	while ((r = history_forth(&p, &rec, &ignored)) > 0)
		;
	if (r == 0)
		return;
	if (rp->n == 0) {
		atomic_store(&st->history_end, p.at);
		return;
	}
	/* What is before the log cannot be read: history starts anew with the log. */
	atomic_store(&st->history_start, rp->all[0].history_at);
	atomic_store(&st->history_bytes, 0);
}

int recover_boot(struct workspace *ws, struct store *s, struct err *err)
{
	int r;
	struct store_state *st = s->st;
	_cleanup_(replay_done) struct replay rp = {.ws = ws, .s = s};
	/* The page may be older than everything else: what it says of an intent is nothing that
	 * can be relied on. */
	atomic_store(&st->intent, atomic_load(&st->done));
	atomic_store(&st->counted, 0);
	if ((r = read_log(&rp, err)) < 0)
		return r;
	mend_history(&rp);
	if (rp.n > 0)
		r = play_all(&rp, err);
	atomic_store(&st->counted, 0);
	return r == 0 && rp.n > 0 ? redo_checkpoint(s, err) : r;
}
