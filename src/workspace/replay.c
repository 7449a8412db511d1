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

/* Inode numbers are used again as soon as they are free, so that after a cut a number alone says
 * nothing. The time of the last write came before the record and is in it. */
static bool is_content(const struct replay *rp, const struct step *s)
{
	struct stat st;
	_cleanup_close_ int fd = fs_look(rp->ws->mounts[s->mount].root_fd, s->path);
	return fd >= 0 && fstat(fd, &st) == 0 && st.st_ino == s->content_ino &&
	       st.st_mtim.tv_sec == s->content_mtime.tv_sec &&
	       st.st_mtim.tv_nsec == s->content_mtime.tv_nsec;
}

static bool makes_content(const struct step *s)
{
	return s->kind == CHANGE_CREATE ||
	       (s->kind == CHANGE_REPLACE && !(s->flags & STEP_IN_PLACE));
}

/* Certainly published? New content where it belongs, or an old inode under a name that only this
 * commit could give it. Directories, links, modes and places of old inodes prove nothing. */
static bool is_evident(const struct replay *rp, const struct intent *in, const struct step *s)
{
	struct err ignored;
	if (makes_content(s))
		return is_content(rp, s);
	return s->kind == CHANGE_DELETE && step_is_done(rp->ws, in->seq, s, &ignored) == 1;
}

/* Later steps saw this content under another inode number than it has now; up to where that number
 * is used again for something else. */
static void renumber(struct replay *rp, unsigned i, unsigned k, uint64_t was, uint64_t is)
{
	for (k++; i < rp->n; i++, k = 0)
		for (; k < rp->all[i].n_steps; k++) {
			struct step *s = &rp->all[i].steps[k];
			/* A number that has been put right is of now, not of then. */
			if (s->base_ino == was && !(s->flags & STEP_RENUMBERED)) {
				s->base_ino = is;
				s->flags |= STEP_RENUMBERED;
			}
			if (makes_content(s) && s->content_ino == was)
				return;
		}
}

/* The same for a directory or link, whose number no record knows when it is made: later steps find
 * it at its path, up to the one that takes it away. */
static void renumber_made(struct replay *rp, unsigned i, unsigned k)
{
	struct stat st;
	const struct step *made = &rp->all[i].steps[k];
	_cleanup_close_ int fd = fs_look(rp->ws->mounts[made->mount].root_fd, made->path);
	if (fd < 0 || fstat(fd, &st) < 0)
		return;
	for (k++; i < rp->n; i++, k = 0)
		for (; k < rp->all[i].n_steps; k++) {
			struct step *s = &rp->all[i].steps[k];
			const char *at = s->kind == CHANGE_RENAME ? s->from : s->path;
			if (!(s->flags & STEP_BASE) || s->mount != made->mount ||
				strcmp(at, made->path) != 0)
				continue;
			s->base_ino = st.st_ino;
			s->flags |= STEP_RENUMBERED;
			if (s->kind == CHANGE_RENAME || s->kind == CHANGE_DELETE)
				return;
		}
}

/* Does a step between this one and the evident one put something else at the path? */
static bool is_superseded(
	const struct replay *rp, unsigned i, unsigned k, unsigned last_i, unsigned last_k)
{
	const char *path = rp->all[i].steps[k].path;
	for (k++; i <= last_i; i++, k = 0)
		for (; k < (i == last_i ? last_k : rp->all[i].n_steps); k++) {
			const struct step *s = &rp->all[i].steps[k];
			if (s->kind != CHANGE_APPEND && s->kind != CHANGE_MODE &&
				strcmp(s->path, path) == 0)
				return true;
		}
	return false;
}

/* The step is on disk as far as names go: its content may be short. */
static int mend_content(struct replay *rp, const struct step *s, struct err *err)
{
	struct stat st;
	uint64_t ino = makes_content(s) ? s->content_ino : s->base_ino;
	if (!(s->flags & STEP_INLINE) || (s->flags & STEP_IN_PLACE))
		return 0;
	_cleanup_close_ int fd = fs_look(rp->ws->mounts[s->mount].root_fd, s->path);
	if (fd < 0 || fstat(fd, &st) < 0 || st.st_ino != ino ||
		step_compare(rp->ws, s) != STEP_CONTENT_SHORT)
		return 0;
	return step_rewrite(rp->ws, s, ino, s->kind == CHANGE_APPEND ? s->size_before : 0, err);
}

/* Where every step before is done, and nothing after it, the number alone is enough: the old inode
 * lived beside the new one. The time may be that of an append. */
static bool has_number(const struct replay *rp, const struct step *s)
{
	struct stat st;
	_cleanup_close_ int fd = fs_look(rp->ws->mounts[s->mount].root_fd, s->path);
	return fd >= 0 && fstat(fd, &st) == 0 && st.st_ino == s->content_ino;
}

static int play_step(struct replay *rp, unsigned i, unsigned k, struct err *err)
{
	int r;
	struct intent *in = &rp->all[i];
	struct step *s = &in->steps[k];
	if (makes_content(s) && has_number(rp, s))
		return mend_content(rp, s, err);
	if (makes_content(s) && (s->flags & STEP_INLINE)) {
		if (step_compare(rp->ws, s) == STEP_CONTENT_SAME)
			return 0;
		uint64_t was = s->content_ino;
		if ((r = step_remake(rp->ws, in->seq, s, err)) < 0)
			return r;
		renumber(rp, i, k, was, s->content_ino);
	}
	r = makes_content(s) ? 0 : step_is_done(rp->ws, in->seq, s, err);
	if (r < 0 || (r == 0 && (r = step_forward(rp->ws, in->seq, s, err)) < 0))
		return r;
	if (s->kind == CHANGE_MKDIR || s->kind == CHANGE_LINK)
		renumber_made(rp, i, k);
	return 0;
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
		int r = play_step(rp, i, k, err);
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
			if (!is_superseded(rp, i, k, at, steps))
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

/* What was forgotten since the page was last written lives again: it is counted, and forgotten
 * again. */
static int count_history(struct workspace *ws, struct store *s, struct err *err)
{
	int r;
	int64_t cost = 0;
	struct record_reader rec;
	_cleanup_history_place_ struct history_place p;
	history_at_start(&p, s);
	while ((r = history_forth(&p, &rec, err)) > 0)
		cost += history_cost(rec, p.frame.len);
	if (r < 0)
		return r;
	atomic_store(&s->st->forget_to, 0);
	atomic_store(&s->st->history_bytes, cost);
	return history_evict(ws, s, err);
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
	if (r == 0)
		r = count_history(ws, s, err);
	return r == 0 && rp.n > 0 ? redo_checkpoint(s, err) : r;
}
