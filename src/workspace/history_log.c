/* The log of the history: see history_log.h. */
#include "workspace/history_log.h"
#include "workspace/view_impl.h"

#include "sys/clock.h"
#include "sys/fs.h"
#include "sys/tree.h"
#include "workspace/crash.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

enum {
	COST_OF_A_NAME = 512,   /* what an inode in `saved/` is counted as beyond its content */
	PUNCH_AT = 1024 * 1024, /* bytes of forgotten records after which their blocks are freed */
};

/* --- cost ---------------------------------------------------------------------------------------
 */

static int64_t cost_of(enum change_kind kind, bool saved, bool is_dir, int64_t size_before,
	int64_t bytes, int64_t entries)
{
	if (!saved)
		return 0;
	int64_t names = kind == CHANGE_DELETE && entries < 0 ? -entries : 1;
	int64_t content = is_dir ? -bytes : size_before;
	return MAX(content, (int64_t)0) + names * COST_OF_A_NAME;
}

int64_t history_cost(struct record_reader r, size_t frame)
{
	struct err ignored;
	struct record_change c;
	int64_t sum = (int64_t)frame;
	while (record_next(&r, &c, &ignored) == 1)
		sum += cost_of(c.kind, c.saved[0] != '\0', (c.flags & RECORD_IS_DIR) != 0,
			c.size_before, c.bytes_delta, c.entries_delta);
	return sum;
}

/* Does a step leave something of the old state in `saved/`? */
static bool step_saves(const struct step *s)
{
	return s->kind == CHANGE_REPLACE || s->kind == CHANGE_DELETE;
}

static int64_t steps_cost(const struct step *steps, unsigned n)
{
	int64_t sum = 0;
	for (unsigned i = 0; i < n; i++)
		sum += cost_of(steps[i].kind, step_saves(&steps[i]),
			(steps[i].flags & STEP_DIR) != 0, steps[i].size_before, steps[i].bytes,
			steps[i].entries);
	return sum;
}

int history_would_keep(const struct workspace *ws, const struct step *steps, unsigned n,
	bool *ret_keep, const char **ret_why, struct err *err)
{
	const char *why = NULL;
	if (ws->opt.history_bytes == 0)
		why = "no history is kept here";
	else if (steps_cost(steps, n) > ws->opt.history_bytes)
		why = "what it replaces is larger than the history may be";
	if (why && ws->opt.history_required) {
		(void)err_set(err, ERR_NO_UNDO, "this change could not be undone: %s", why);
		return err_hint(err, "make it in smaller steps");
	}
	*ret_keep = !why;
	*ret_why = why ? why : "";
	return 0;
}

/* --- reading ------------------------------------------------------------------------------------
 */

void history_at_end(struct history_place *p, const struct store *s)
{
	*p = (struct history_place){
		.s = s, .at = atomic_load(&s->st->history_end), .frame = buf_init(RECORD_MAX)};
}

void history_at_start(struct history_place *p, const struct store *s)
{
	*p = (struct history_place){
		.s = s, .at = atomic_load(&s->st->history_start), .frame = buf_init(RECORD_MAX)};
}

void history_place_done(struct history_place *p)
{
	buf_done(&p->frame);
}

static int read_frame(struct history_place *p, uint64_t at, size_t len, struct record_reader *ret,
	struct err *err)
{
	buf_clear(&p->frame);
	char *room = buf_room(&p->frame, len);
	if (!room)
		return buf_check(&p->frame, "a record of the history", err);
	ssize_t n = fs_read(p->s->history_fd, room, len, (off_t)at);
	if (n < 0)
		return err_sys(err, errno, "reading the history");
	if ((size_t)n < len)
		return err_set(err, ERR_CORRUPT, "the history ends too early");
	buf_grew(&p->frame, len);
	return record_open(ret, p->frame.data, len, err);
}

/* Was what could not be read forgotten meanwhile? Then that is the end of the history. */
static int gone(const struct history_place *p, uint64_t at, int r)
{
	return at < atomic_load(&p->s->st->history_start) ? 0 : r;
}

int history_back(struct history_place *p, struct record_reader *ret, struct err *err)
{
	uint8_t tail[RECORD_TAIL];
	size_t len = 0;
	uint64_t start = atomic_load(&p->s->st->history_start);
	int r;
	if (p->at <= start)
		return 0;
	if (fs_read(p->s->history_fd, tail, sizeof(tail), (off_t)(p->at - RECORD_TAIL)) !=
		RECORD_TAIL)
		return err_set(err, ERR_CORRUPT, "the history cannot be read");
	if ((r = record_length_back(tail, sizeof(tail), &len, err)) < 0 || len > p->at - start)
		return gone(p, p->at - 1,
			r < 0 ? r : err_set(err, ERR_CORRUPT, "the history is damaged"));
	if ((r = read_frame(p, p->at - len, len, ret, err)) < 0)
		return gone(p, p->at - len, r);
	p->at -= len;
	return 1;
}

int history_forth(struct history_place *p, struct record_reader *ret, struct err *err)
{
	uint8_t head[RECORD_HEAD];
	size_t len = 0;
	int r;
	uint64_t end = atomic_load(&p->s->st->history_end);
	p->at = MAX(p->at, atomic_load(&p->s->st->history_start));
	if (p->at >= end)
		return 0;
	if (fs_read(p->s->history_fd, head, sizeof(head), (off_t)p->at) != RECORD_HEAD)
		return err_set(err, ERR_CORRUPT, "the history cannot be read");
	if ((r = record_length(head, sizeof(head), &len, err)) < 0 || len > end - p->at)
		return r < 0 ? r : err_set(err, ERR_CORRUPT, "the history is damaged");
	if ((r = read_frame(p, p->at, len, ret, err)) < 0)
		return r;
	p->at += len;
	return 1;
}

int history_mount(const struct workspace *ws, const struct record *r, unsigned mount)
{
	return mount < r->n_mounts
		       ? workspace_mount_at(ws, r->mounts[mount], strlen(r->mounts[mount]))
		       : -1;
}

int undone_meet(struct undone *u, const struct record *r, bool *ret_undone, struct err *err)
{
	bool undone = false;
	for (size_t i = 0; i < u->n && !undone; i++)
		if (u->seqs[i] == r->seq) {
			undone = true;
			u->seqs[i] = u->seqs[--u->n];
		}
	*ret_undone = undone;
	if (undone || r->undoes == 0)
		return 0;
	if (u->n == u->cap) {
		size_t cap = u->cap ? u->cap * 2 : 32;
		uint64_t *more = realloc(u->seqs, cap * sizeof(*more));
		if (!more)
			return err_oom(err);
		u->seqs = more;
		u->cap = cap;
	}
	u->seqs[u->n++] = r->undoes;
	return 0;
}

void undone_done(struct undone *u)
{
	free(u->seqs);
}

/* --- forgetting ---------------------------------------------------------------------------------
 */

static int forget_content(const struct workspace *ws, struct record_reader r, struct err *err)
{
	struct record_change c;
	int e;
	while ((e = record_next(&r, &c, err)) == 1) {
		int m = c.saved[0] ? history_mount(ws, &r.head, c.mount) : -1;
		if (m < 0 || ws->mounts[m].saved_fd < 0)
			continue;
		if (tree_remove(ws->mounts[m].saved_fd, c.saved) < 0)
			return err_sys(err, errno, "forgetting the oldest change");
	}
	return e;
}

static bool is_over(const struct workspace *ws, const struct store *s, const struct record *oldest)
{
	if (atomic_load(&s->st->history_bytes) > ws->opt.history_bytes)
		return true;
	return ws->opt.history_age_s > 0 &&
	       oldest->time_ms < clock_unix_ms() - ws->opt.history_age_s * 1000;
}

/* Give the blocks of forgotten records back. Offsets stay: the file has a hole at its start. */
static void punch(const struct store *s, uint64_t from, uint64_t to)
{
	if (to / PUNCH_AT > from / PUNCH_AT)
		(void)fallocate(
			s->history_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)to);
}

/* The two numbers change together, also when we die in between. */
void history_settle(struct store *s)
{
	struct store_state *st = s->st;
	uint64_t to = atomic_load(&st->forget_to);
	if (to == 0)
		return;
	atomic_store(&st->history_bytes, atomic_load(&st->forget_bytes));
	atomic_store(&st->history_start, to);
	atomic_store(&st->forget_to, 0);
}

static void forget_record(struct store *s, uint64_t to, int64_t cost)
{
	struct store_state *st = s->st;
	atomic_store(&st->forget_bytes, MAX(atomic_load(&st->history_bytes) - cost, (int64_t)0));
	atomic_store(&st->forget_to, to);
	CRASH_HERE(pruned);
	history_settle(s);
}

int history_evict(const struct workspace *ws, struct store *s, struct err *err)
{
	int r;
	history_settle(s);
	/* Mostly there is nothing to forget, which the sum says. Age is looked at on the way. */
	if (atomic_load(&s->st->history_bytes) <= ws->opt.history_bytes &&
		ws->opt.history_age_s <= 0)
		return 0;
	_cleanup_history_place_ struct history_place p;
	struct record_reader rec;
	history_at_start(&p, s);
	uint64_t from = p.at;
	while ((r = history_forth(&p, &rec, err)) == 1 && is_over(ws, s, &rec.head)) {
		if ((r = forget_content(ws, rec, err)) < 0)
			return r;
		forget_record(s, p.at, history_cost(rec, p.frame.len));
	}
	atomic_store(&s->st->history_oldest, r == 1 ? (int64_t)rec.head.seq : 0);
	punch(s, from, atomic_load(&s->st->history_start));
	return r < 0 ? r : 0;
}

/* --- adding -------------------------------------------------------------------------------------
 */

static void no_identity(struct record_change *c)
{
	c->after = (struct identity){.size = c->size_after};
}

/* What a step has left, so that a later change of it can be told. The inode of new content is known
 * by its descriptor; what has no descriptor is looked up. */
static void set_after(const struct workspace *ws, const struct later *later, const struct step *s,
	struct record_change *c)
{
	char path[STEP_PATH_ROOM];
	struct stat st;
	no_identity(c);
	if (s->kind == CHANGE_DELETE)
		return;
	c->flags |= RECORD_HAS;
	_cleanup_close_ int fd = -1;
	bool replaced = s->kind == CHANGE_CREATE ||
			(s->kind == CHANGE_REPLACE && !(s->flags & STEP_IN_PLACE));
	uint64_t ino = replaced ? s->content_ino : s->base_ino;
	if (!replaced || s->content_fd < 0 || fstat(s->content_fd, &st) < 0 || st.st_ino != ino) {
		if (later_path(later, s, path))
			fd = fs_look(ws->mounts[s->mount].root_fd, path);
		if (fd < 0 || fstat(fd, &st) < 0 || (ino != 0 && st.st_ino != ino)) {
			c->after.ino = ino;
			return;
		}
	}
	c->after = identity_of(&st);
}

static void describe(const struct workspace *ws, uint64_t seq, bool keep, const struct later *later,
	const struct step *s, char saved[STEP_NAME], struct record_change *c)
{
	*c = (struct record_change){.kind = s->kind,
		.mount = s->mount,
		.flags = (s->flags & STEP_DIR ? RECORD_IS_DIR : 0) |
			 (s->flags & STEP_IN_PLACE ? RECORD_IN_PLACE : 0) |
			 (s->flags & STEP_COPIED ? RECORD_COPIED : 0) |
			 (s->flags & STEP_BASE ? RECORD_HAD : 0),
		.path = s->path,
		.from = s->from,
		.target = s->target,
		.mode_before = s->mode_before,
		.mode_after = s->kind == CHANGE_DELETE ? 0 : s->mode_after,
		.size_before = s->size_before,
		.size_after = s->size_after,
		.bytes_delta = s->bytes,
		.entries_delta = s->entries,
		.before = {.ino = s->base_ino, .size = s->size_before}};
	saved[0] = '\0';
	if (keep && step_saves(s))
		step_saved_name(seq, s, saved);
	c->saved = saved;
	set_after(ws, later, s, c);
}

static bool may_undo(bool keep, const struct step *steps, unsigned n)
{
	for (unsigned i = 0; i < n && !keep; i++)
		if (step_saves(&steps[i]))
			return false;
	return true;
}

static void encode(const struct workspace *ws, const struct history_head *head, struct step *steps,
	unsigned n, struct buf *out)
{
	struct record_writer w;
	const struct later later = later_of(steps, n);
	bool undo = may_undo(head->keep, steps, n);
	struct record rec = {.type = RECORD_COMMIT,
		.seq = head->seq,
		.undoes = head->undoes,
		.time_ms = head->time_ms,
		.undoable = undo,
		.why_not = undo ? "" : head->why_not,
		.n_mounts = ws->n_mounts,
		.n_changes = n};
	if (head->info) {
		rec.call_id = head->info->call_id;
		rec.tool = head->info->tool;
		rec.turn = head->info->turn;
	}
	for (unsigned i = 0; i < ws->n_mounts; i++)
		rec.mounts[i] = ws->mounts[i].agent;
	record_begin(&w, out, &rec);
	for (unsigned i = 0; i < n; i++) {
		char saved[STEP_NAME];
		struct record_change c;
		describe(ws, head->seq, head->keep, &later, &steps[i], saved, &c);
		record_put(&w, &c);
	}
	record_end(&w);
}

int history_add(const struct workspace *ws, struct store *s, const struct history_head *head,
	struct step *steps, unsigned n, struct err *err)
{
	int r;
	struct record_reader rec;
	if (ws->opt.history_bytes == 0)
		return 0;
	_cleanup_buf_ struct buf frame = buf_init(RECORD_MAX);
	encode(ws, head, steps, n, &frame);
	if ((r = buf_check(&frame, "the record of this change", err)) < 0 ||
		(r = record_open(&rec, frame.data, frame.len, err)) < 0)
		return r;
	if (fs_write(s->history_fd, frame.data, frame.len, (off_t)head->at) < 0)
		return err_sys(err, errno, "writing the history");
	CRASH_HERE(history_written);
	if (atomic_load(&s->st->history_start) == head->at)
		atomic_store(&s->st->history_oldest, (int64_t)head->seq);
	atomic_store(&s->st->history_bytes, head->bytes_before + history_cost(rec, frame.len));
	atomic_store(&s->st->history_end, head->at + frame.len);
	CRASH_HERE(history_ended);
	return 0;
}
