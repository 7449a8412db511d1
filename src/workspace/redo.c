/* The redo log: see redo.h. */
#include "workspace/redo.h"

#include "sys/fs.h"
#include "workspace/crash.h"

#include <errno.h>
#include <fcntl.h>

struct head {
	uint32_t magic, flags;
	uint64_t length, generation, seq;
	int64_t bytes_after, entries_after, history_bytes;
	uint64_t history_at;
	uint32_t record_len, n_data;
	struct sha256 digest;
};

struct data_head {
	uint32_t step, length;
};

static const uint32_t MAGIC = 0x4f444552; /* "REDO" */

void intent_done(struct intent *in)
{
	free(in->steps);
	free(in->memory);
	in->steps = NULL;
	in->memory = NULL;
}

/* --- steps and records ------------------------------------------------------------------------ */

static mode_t type_of(const struct step *s)
{
	if (s->kind == CHANGE_LINK)
		return S_IFLNK;
	return s->flags & STEP_DIR ? S_IFDIR : S_IFREG;
}

static void change_of(const struct intent *in, const struct step *s, struct record_change *c,
	char saved[STEP_NAME])
{
	bool saves = s->kind == CHANGE_DELETE || s->kind == CHANGE_REPLACE;
	step_saved_name(in->seq, s, saved);
	*c = (struct record_change){.kind = s->kind,
		.mount = s->mount,
		.path = s->path,
		.from = s->kind == CHANGE_RENAME ? s->from : s->like,
		.target = s->target,
		.saved = saves && (in->flags & REDO_KEEP) ? saved : "",
		.staged = s->flags & STEP_NAMED ? saved : "",
		.size_before = s->size_before,
		.size_after = s->size_after,
		.bytes_delta = s->bytes,
		.entries_delta = s->entries,
		.before = {.dev = s->base_dev,
			.ino = s->base_ino,
			.size = s->size_before,
			.mtime = s->base_mtime,
			.ctime = s->base_ctime},
		.after = {.ino = s->content_ino, .size = s->size_after, .mtime = s->content_mtime}};
	c->flags = (s->flags & STEP_DIR ? RECORD_IS_DIR : 0) |
		   (s->flags & STEP_IN_PLACE ? RECORD_IN_PLACE : 0) |
		   (s->flags & STEP_COPIED ? RECORD_COPIED : 0) |
		   (s->flags & STEP_UMASKED ? RECORD_UMASKED : 0) |
		   (s->flags & STEP_BASE ? RECORD_HAD : 0) |
		   (s->kind != CHANGE_DELETE ? RECORD_HAS : 0);
	if (s->flags & STEP_BASE)
		c->mode_before = s->base_type | s->mode_before;
	if (s->kind != CHANGE_DELETE)
		c->mode_after = (s->flags & STEP_BASE ? s->base_type : type_of(s)) | s->mode_after;
}

static void step_of(const struct record_change *c, unsigned mount, unsigned index, struct step *s)
{
	*s = (struct step){.kind = c->kind,
		.mount = mount,
		.index = index,
		.path = c->path,
		.from = c->from,
		.like = c->kind != CHANGE_RENAME && *c->from ? c->from : NULL,
		.target = c->target,
		.mode_before = c->mode_before & 07777,
		.mode_after = c->mode_after & 07777,
		.base_type = c->mode_before & S_IFMT,
		.base_ino = c->before.ino,
		.base_dev = c->before.dev,
		.base_mtime = c->before.mtime,
		.base_ctime = c->before.ctime,
		.content_ino = c->after.ino,
		.content_mtime = c->after.mtime,
		.size_before = c->size_before,
		.size_after = c->size_after,
		.bytes = c->bytes_delta,
		.entries = c->entries_delta,
		.content_fd = -1};
	s->flags = (c->flags & RECORD_IS_DIR ? STEP_DIR : 0) |
		   (c->flags & RECORD_IN_PLACE ? STEP_IN_PLACE : 0) |
		   (c->flags & RECORD_COPIED ? STEP_COPIED : 0) |
		   (c->flags & RECORD_UMASKED ? STEP_UMASKED : 0) |
		   (c->flags & RECORD_HAD ? STEP_BASE : 0) | (*c->staged ? STEP_NAMED : 0);
}

static int put_record(
	const struct workspace *ws, const struct intent *in, struct buf *out, struct err *err)
{
	struct record_writer w;
	struct record_change c;
	char saved[STEP_NAME];
	struct record head = in->head;
	head.type = RECORD_COMMIT;
	head.seq = in->seq;
	head.n_changes = in->n_steps;
	head.n_mounts = ws->n_mounts;
	for (unsigned i = 0; i < ws->n_mounts; i++)
		head.mounts[i] = ws->mounts[i].agent;
	record_begin(&w, out, &head);
	for (unsigned i = 0; i < in->n_steps; i++) {
		change_of(in, &in->steps[i], &c, saved);
		record_put(&w, &c);
	}
	record_end(&w);
	return buf_check(out, "the record of a change set", err);
}

/* --- writing ---------------------------------------------------------------------------------- */

static int put_data(struct step *s, struct buf *out, struct err *err)
{
	struct data_head h = {.step = s->index, .length = (uint32_t)(s->size_after)};
	if (s->kind == CHANGE_APPEND)
		h.length = (uint32_t)(s->size_after - s->size_before);
	buf_put(out, &h, sizeof(h));
	char *room = buf_room(out, h.length);
	if (!room)
		return err_oom(err);
	ssize_t n = fs_read(s->content_fd, room, h.length, 0);
	if (n < 0)
		return err_sys(err, errno, "reading a staged file");
	if (n != (ssize_t)h.length)
		return err_set(err, ERR_CONFLICT, "a staged file has changed its size");
	buf_grew(out, h.length);
	s->flags |= STEP_INLINE;
	return 0;
}

bool step_fits_inline(const struct step *s)
{
	int64_t n = s->kind == CHANGE_APPEND ? s->size_after - s->size_before : s->size_after;
	return n <= REDO_INLINE_MAX;
}

int intent_encode(const struct workspace *ws, struct intent *in, struct buf *out, struct err *err)
{
	int r;
	struct head h = {.magic = MAGIC,
		.flags = in->flags,
		.generation = in->generation,
		.seq = in->seq,
		.bytes_after = in->bytes_after,
		.entries_after = in->entries_after,
		.history_bytes = in->history_bytes,
		.history_at = in->history_at};
	buf_put(out, &h, sizeof(h));
	if ((r = put_record(ws, in, out, err)) < 0)
		return r;
	h.record_len = (uint32_t)(out->len - sizeof(h));
	for (unsigned i = 0; i < in->n_steps && (in->flags & REDO_POWER); i++)
		if (in->steps[i].content_fd >= 0 && step_fits_inline(&in->steps[i])) {
			if ((r = put_data(&in->steps[i], out, err)) < 0)
				return r;
			h.n_data++;
		}
	if ((r = buf_check(out, "the record of a change set", err)) < 0)
		return r;
	h.length = in->length = out->len;
	memcpy(out->data, &h, sizeof(h));
	sha256_of(out->data, out->len, &h.digest);
	memcpy(out->data, &h, sizeof(h));
	return 0;
}

/* --- reading ---------------------------------------------------------------------------------- */

static int no_intent(struct err *err, const char *why)
{
	return err_set(err, ERR_CORRUPT, "the store's log cannot be read: %s", why);
}

static int read_all(
	const struct store *s, uint64_t at, struct head *h, struct intent *in, struct err *err)
{
	struct sha256 want, is;
	struct stat st;
	ssize_t n = fs_read(s->log_fd, h, sizeof(*h), (off_t)at);
	if (n < 0)
		return err_sys(err, errno, "reading the store's log");
	if (n < (ssize_t)sizeof(*h) || h->magic != MAGIC)
		return no_intent(err, "no record there");
	if (h->length < sizeof(*h) || h->length > REDO_INTENT_MAX)
		return no_intent(err, "its length cannot be");
	/* Memory only for what is there. */
	if (fstat(s->log_fd, &st) < 0)
		return err_sys(err, errno, "looking at the store's log");
	if (h->length > (uint64_t)st.st_size - at)
		return no_intent(err, "it ends too early");
	in->memory = malloc(h->length);
	if (!in->memory)
		return err_oom(err);
	n = fs_read(s->log_fd, in->memory, h->length, (off_t)at);
	if (n != (ssize_t)h->length)
		return no_intent(err, "it ends too early");
	want = h->digest;
	memset(&((struct head *)(void *)in->memory)->digest, 0, sizeof(want));
	sha256_of(in->memory, h->length, &is);
	if (memcmp(&want, &is, sizeof(want)) != 0)
		return no_intent(err, "its digest is wrong");
	return 0;
}

static int read_steps(
	const struct workspace *ws, struct intent *in, struct record_reader *rr, struct err *err)
{
	int r;
	struct record_change c;
	in->steps = calloc((size_t)rr->head.n_changes + 1, sizeof(*in->steps));
	if (!in->steps)
		return err_oom(err);
	while ((r = record_next(rr, &c, err)) > 0) {
		const char *agent = rr->head.mounts[c.mount];
		int m = workspace_mount_at(ws, agent, strlen(agent));
		if (m < 0 || ws->mounts[m].read_only)
			return err_set(err, ERR_UNAVAILABLE,
				"an interrupted change touches '%s', which is not mounted", agent);
		step_of(&c, (unsigned)m, in->n_steps, &in->steps[in->n_steps]);
		in->n_steps++;
	}
	return r;
}

static int read_data(struct intent *in, const struct head *h, struct err *err)
{
	const char *p = in->memory + sizeof(*h) + h->record_len, *end = in->memory + h->length;
	for (uint32_t i = 0; i < h->n_data; i++) {
		struct data_head d;
		if ((size_t)(end - p) < sizeof(d))
			return no_intent(err, "content ends too early");
		memcpy(&d, p, sizeof(d));
		p += sizeof(d);
		if (d.step >= in->n_steps || (size_t)(end - p) < d.length)
			return no_intent(err, "content ends too early");
		in->steps[d.step].data = (struct str){p, d.length};
		in->steps[d.step].flags |= STEP_INLINE;
		p += d.length;
	}
	return p == end ? 0 : no_intent(err, "something is left over");
}

int intent_read(const struct workspace *ws, const struct store *s, uint64_t at, struct intent *ret,
	struct err *err)
{
	int r;
	struct head h;
	struct record_reader rr;
	_cleanup_(intent_done) struct intent in = {0};
	if ((r = read_all(s, at, &h, &in, err)) < 0)
		return r;
	if (h.record_len > h.length - sizeof(h))
		return no_intent(err, "its record is too long");
	if ((r = record_open(&rr, in.memory + sizeof(h), h.record_len, err)) < 0)
		return r;
	in.head = rr.head;
	in.flags = h.flags;
	in.generation = h.generation;
	in.seq = h.seq;
	in.length = h.length;
	in.bytes_after = h.bytes_after;
	in.entries_after = h.entries_after;
	in.history_bytes = h.history_bytes;
	in.history_at = h.history_at;
	if ((r = read_steps(ws, &in, &rr, err)) < 0 || (r = read_data(&in, &h, err)) < 0)
		return r;
	*ret = in;
	in.steps = NULL, in.memory = NULL;
	return 0;
}

/* --- the file --------------------------------------------------------------------------------- */

/* Blocks that are written already: overwriting them changes no metadata, so that a sync later is
 * one write of data and nothing of the file system's own journal. */
static int grow_log(struct store *s, uint64_t from, uint64_t to, struct err *err)
{
	static const char zeros[64 * 1024];
	while (from < to) {
		size_t n = (size_t)MIN(to - from, (uint64_t)sizeof(zeros));
		if (fs_write(s->log_fd, zeros, n, (off_t)from) < 0)
			return err_sys(err, errno, "growing the store's log");
		from += n;
	}
	return 0;
}

int redo_room(struct store *s, uint64_t len, struct err *err)
{
	int r;
	struct stat st;
	if (fstat(s->log_fd, &st) < 0)
		return err_sys(err, errno, "looking at the store's log");
	uint64_t size = (uint64_t)st.st_size, end = atomic_load(&s->st->log_end);
	if (end > size)
		return err_set(err, ERR_CORRUPT, "the store's log is shorter than its state says");
	if (len <= size - end)
		return 0;
	if (end > 0 && size >= REDO_LOG_MAX) {
		if ((r = redo_checkpoint(s, err)) < 0)
			return r;
		end = 0;
	}
	if (len <= size - end)
		return 0;
	uint64_t twice = MAX(size * 2, (uint64_t)REDO_LOG_FIRST);
	return grow_log(s, size, MAX(twice, end + len), err);
}

int redo_write(struct store *s, const struct buf *intent, bool power, struct err *err)
{
	uint64_t end = atomic_load(&s->st->log_end);
	if (fs_write(s->log_fd, intent->data, intent->len, (off_t)end) < 0)
		return err_sys(err, errno, "writing the store's log");
	CRASH_HERE(record_written);
	if (power && fdatasync(s->log_fd) < 0)
		return err_sys(err, errno, "syncing the store's log");
	CRASH_HERE(record_synced);
	return 0;
}

int redo_forget(struct store *s, bool power, struct err *err)
{
	struct head h = {0};
	if (fs_write(s->log_fd, &h, sizeof(h), (off_t)atomic_load(&s->st->log_end)) < 0 ||
		(power && fdatasync(s->log_fd) < 0))
		return err_sys(err, errno, "writing the store's log");
	return 0;
}

int redo_checkpoint(struct store *s, struct err *err)
{
	if (syncfs(s->lock_fd) < 0)
		return err_sys(err, errno, "syncing the workspace");
	CRASH_HERE(checkpoint_synced);
	atomic_fetch_add(&s->st->log_generation, 1);
	atomic_store(&s->st->log_end, 0);
	atomic_store(&s->st->log_unsynced, 0);
	if (fdatasync(s->state_fd) < 0)
		return err_sys(err, errno, "syncing the store's state");
	CRASH_HERE(checkpoint_done);
	return 0;
}
