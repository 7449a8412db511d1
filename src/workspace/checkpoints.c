/*
 * Checkpoints: names for positions, in a file of records of their own (`checkpoints` in the store),
 * so that making one reads no history. What a torn write leaves behind the last whole record is
 * overwritten by the next.
 */
#include "workspace/history_impl.h"

#include "sys/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

enum { CHECKPOINTS_MAX = 10000, CHECKPOINT_BYTES = 512 };

static const char FILE_NAME[] = "checkpoints", NEW_NAME[] = "checkpoints.new";

static int open_file(
	const struct store *s, const char *name, int flags, int *ret_fd, struct err *err)
{
	int fd = fs_open(s->dir_fd, name, flags | O_NOFOLLOW, flags & O_CREAT ? 0600 : 0);
	if (fd < 0 && errno == ENOENT && !(flags & O_CREAT)) {
		*ret_fd = -1;
		return 0;
	}
	if (fd < 0)
		return err_sys(err, errno, "opening the checkpoints");
	*ret_fd = fd;
	return 0;
}

/* The whole file; *ret_len the length of its whole records. */
static int read_file(const struct store *s, struct buf *out, struct err *err)
{
	struct stat st;
	_cleanup_close_ int fd = -1;
	int r = open_file(s, FILE_NAME, O_RDONLY, &fd, err);
	if (r < 0 || fd < 0)
		return r;
	if (fstat(fd, &st) < 0)
		return err_sys(err, errno, "looking at the checkpoints");
	char *room = buf_room(out, (size_t)st.st_size);
	if (!room)
		return buf_check(out, "the checkpoints", err);
	ssize_t n = fs_read(fd, room, (size_t)st.st_size, 0);
	if (n < 0)
		return err_sys(err, errno, "reading the checkpoints");
	buf_grew(out, (size_t)n);
	return 0;
}

/* The record at an offset of the file, when there is a whole one: its length, else 0. */
static size_t record_at(const struct buf *file, size_t off, struct record_reader *ret)
{
	size_t len = 0;
	struct err ignored;
	if (record_length(file->data + off, file->len - off, &len, &ignored) < 0 ||
		len > file->len - off || record_open(ret, file->data + off, len, &ignored) < 0)
		return 0;
	return len;
}

static void fill(struct checkpoint *c, const struct record *r)
{
	(void)snprintf(c->label, sizeof(c->label), "%s", r->label);
	c->seq = r->seq;
	c->time_ms = r->time_ms;
}

/* All whole records; *ret_end is where the next one goes. */
static int read_all(const struct store *s, struct checkpoint **ret, size_t *ret_n, size_t *ret_end,
	struct err *err)
{
	struct record_reader rec;
	_cleanup_buf_ struct buf file = buf_init((size_t)CHECKPOINTS_MAX * CHECKPOINT_BYTES);
	int r = read_file(s, &file, err);
	if (r < 0)
		return r;
	size_t n = 0, off = 0;
	for (size_t len; off < file.len && (len = record_at(&file, off, &rec)) > 0; off += len)
		n++;
	struct checkpoint *all = calloc(n + 1, sizeof(*all));
	if (!all)
		return err_oom(err);
	off = 0;
	for (size_t i = 0; i < n; i++) {
		off += record_at(&file, off, &rec);
		fill(&all[i], &rec.head);
	}
	*ret = all;
	*ret_n = n;
	*ret_end = off;
	return 0;
}

int checkpoints_read(const struct store *s, struct checkpoint **ret, size_t *ret_n, struct err *err)
{
	size_t end;
	return read_all(s, ret, ret_n, &end, err);
}

static const struct checkpoint *find(const struct checkpoint *all, size_t n, const char *label)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(all[i].label, label) == 0)
			return &all[i];
	return NULL;
}

int checkpoint_find(const struct store *s, const char *label, uint64_t *ret_seq, struct err *err)
{
	size_t n = 0;
	_cleanup_free_ struct checkpoint *all = NULL;
	int r = checkpoints_read(s, &all, &n, err);
	if (r < 0)
		return r;
	const struct checkpoint *c = find(all, n, label);
	if (!c) {
		_cleanup_buf_ struct buf b = buf_init(ERR_TEXT_MAX);
		text_show(&b, str_of(label), false);
		return err_set(err, ERR_NOT_FOUND, "no checkpoint '%s'", buf_str(&b));
	}
	*ret_seq = c->seq;
	return 0;
}

static void encode(struct buf *out, const struct checkpoint *c)
{
	struct record_writer w;
	struct record rec = {
		.type = RECORD_CHECKPOINT, .seq = c->seq, .time_ms = c->time_ms, .label = c->label};
	record_begin(&w, out, &rec);
	record_end(&w);
}

/* Can the history still lead back to a position? */
static bool is_live(const struct store *s, uint64_t seq)
{
	if (seq == atomic_load(&s->st->done))
		return true;
	int64_t oldest = atomic_load(&s->st->history_oldest);
	return oldest > 0 && (uint64_t)oldest <= seq + 1;
}

/* Write the file anew without the checkpoints that nothing leads back to. */
static int rewrite(const struct store *s, const struct checkpoint *all, size_t n, size_t *ret_end,
	struct err *err)
{
	size_t live = 0;
	_cleanup_close_ int fd = -1;
	_cleanup_buf_ struct buf out = buf_init((size_t)CHECKPOINTS_MAX * CHECKPOINT_BYTES);
	for (size_t i = 0; i < n; i++)
		if (is_live(s, all[i].seq)) {
			encode(&out, &all[i]);
			live++;
		}
	if (live >= CHECKPOINTS_MAX)
		return err_set(
			err, ERR_LIMIT, "a workspace has at most %d checkpoints", CHECKPOINTS_MAX);
	int r = open_file(s, NEW_NAME, O_WRONLY | O_CREAT | O_TRUNC, &fd, err);
	if (r < 0 || (r = buf_check(&out, "the checkpoints", err)) < 0)
		return r;
	if (fs_write(fd, buf_str(&out), out.len, 0) < 0 || fdatasync(fd) < 0 ||
		renameat(s->dir_fd, NEW_NAME, s->dir_fd, FILE_NAME) < 0)
		return err_sys(err, errno, "writing the checkpoints");
	*ret_end = out.len;
	return 0;
}

static int append(
	const struct store *s, const struct checkpoint *c, size_t end, bool sync, struct err *err)
{
	_cleanup_close_ int fd = -1;
	_cleanup_buf_ struct buf out = buf_init(CHECKPOINT_BYTES);
	encode(&out, c);
	int r = buf_check(&out, "a checkpoint", err);
	if (r < 0 || (r = open_file(s, FILE_NAME, O_WRONLY | O_CREAT, &fd, err)) < 0)
		return r;
	if (fs_write(fd, out.data, out.len, (off_t)end) < 0 ||
		ftruncate(fd, (off_t)(end + out.len)) < 0 || (sync && fdatasync(fd) < 0))
		return err_sys(err, errno, "writing a checkpoint");
	return 0;
}

static int create_locked(
	const struct workspace *ws, const struct store *s, struct checkpoint *c, struct err *err)
{
	size_t n = 0, end = 0;
	_cleanup_free_ struct checkpoint *all = NULL;
	int r = read_all(s, &all, &n, &end, err);
	if (r < 0)
		return r;
	const struct checkpoint *old = find(all, n, c->label);
	if (old && is_live(s, old->seq))
		return err_set(err, ERR_EXISTS, "there is a checkpoint of that name already");
	if ((old || n >= CHECKPOINTS_MAX) && (r = rewrite(s, all, n, &end, err)) < 0)
		return r;
	c->seq = atomic_load(&s->st->done);
	return append(s, c, end, ws->opt.durability == DURABLE_POWER, err);
}

int checkpoint_create(struct workspace *ws, const char *label, uint64_t *ret_seq, struct err *err)
{
	int r;
	struct store *s;
	struct checkpoint c = {.time_ms = clock_unix_ms()};
	size_t n = strlen(label);
	if (n == 0 || n > RECORD_TEXT_MAX || !utf8_valid(label, n))
		return err_set(err, ERR_INVALID_ARGUMENT, "a label is 1 to %d bytes of UTF-8",
			RECORD_TEXT_MAX);
	if ((r = history_store(ws, &s, err)) < 0)
		return r;
	if (ws->opt.history_bytes == 0)
		return err_set(err, ERR_NO_UNDO,
			"no history is kept here, so nothing could lead back to a checkpoint");
	memcpy(c.label, label, n + 1);
	if ((r = store_lock(s, ws->opt.lock_wait_ms, err)) < 0)
		return r;
	r = create_locked(ws, s, &c, err);
	store_unlock(s);
	if (r == 0)
		*ret_seq = c.seq;
	return r;
}

int checkpoint_restore(
	struct workspace *ws, struct view *v, const char *label, uint64_t *ret_seq, struct err *err)
{
	int r;
	struct store *s;
	uint64_t seq = 0;
	struct reversal rv = {.ws = ws, .v = v, .strict = true};
	if ((r = history_store(ws, &s, err)) < 0 ||
		(r = checkpoint_find(s, label, &seq, err)) < 0 ||
		(r = reverse_since(&rv, seq, err)) < 0 || (r = history_own(v, err)) < 0)
		return r;
	*ret_seq = seq;
	return 0;
}
