/* Appending to the log of a node: see jlog.h. */
#include "journal/jlog_impl.h"

#include "sys/clock.h"
#include "sys/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

const struct err *jlog_broken(const struct jlog *l)
{
	return l->broken.code ? &l->broken : NULL;
}

static int break_log(struct jlog *l, const struct err *err)
{
	l->broken = *err;
	return -(int)err->code;
}

void jlog_position(const struct jlog *l, struct jposition *ret)
{
	*ret = l->sealed;
}

/* --- intents without an outcome --- */

static bool copy(char *to, size_t cap, struct str s)
{
	if (s.n >= cap)
		return false;
	memcpy(to, s.p ? s.p : "", s.n);
	to[s.n] = '\0';
	return true;
}

static int note_intent(struct jlog *l, const struct jrecord *r, uint64_t seq, struct err *err)
{
	struct jopen *o = &l->open[l->n_open];
	if (l->n_open == JLOG_OPEN_MAX)
		return err_set(
			err, ERR_LIMIT, "at most %d changes can be under way", JLOG_OPEN_MAX);
	o->seq = seq;
	o->run = 0; /* the seal says it */
	BUG_ON(!copy(o->call, sizeof(o->call), r->call));
	BUG_ON(!copy(o->session, sizeof(o->session), r->session));
	BUG_ON(!copy(o->tenant, sizeof(o->tenant), r->tenant));
	l->n_open++;
	return 0;
}

void jlog_note_outcome(struct jlog *l, struct str call)
{
	for (unsigned i = 0; i < l->n_open; i++)
		if (str_eq_c(call, l->open[i].call)) {
			l->n_open--;
			memmove(&l->open[i], &l->open[i + 1], (l->n_open - i) * sizeof(l->open[0]));
			return;
		}
}

static int note_record(struct jlog *l, const struct jrecord *r, uint64_t seq, struct err *err)
{
	if (str_eq_c(r->kind, JRECORD_KIND_INTENT))
		return note_intent(l, r, seq, err);
	if (str_eq_c(r->kind, JRECORD_KIND_OUTCOME))
		jlog_note_outcome(l, r->call);
	return 0;
}

/* Intents are kept in their order, so those of the group are behind all others. */
static void note_run(struct jlog *l, uint64_t run)
{
	for (unsigned i = l->n_open; i-- > 0 && !l->open[i].run;)
		l->open[i].run = run;
}

static uint64_t oldest_open(const struct jlog *l)
{
	return l->n_open ? l->open[0].seq : 0;
}

/* --- who lives --- */

off_t jlog_byte_of(uint64_t run)
{
	return (off_t)(1 + (run & INT64_MAX >> 1));
}

static bool lives(const struct jlog *l, uint64_t run)
{
	struct flock f = {
		.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = jlog_byte_of(run), .l_len = 1};
	if (run == l->opt.run)
		return true;
	/* Where it cannot be known nobody is declared dead. */
	return fcntl(l->lock_fd, F_OFD_GETLK, &f) < 0 || f.l_type != F_UNLCK;
}

unsigned jlog_abandoned(struct jlog *l, const struct jopen **ret)
{
	unsigned n = 0;
	for (unsigned i = 0; i < l->n_open; i++)
		if (!lives(l, l->open[i].run))
			l->abandoned[n++] = l->open[i];
	*ret = l->abandoned;
	return n;
}

/* --- catching up --- */

static int take_record(struct jlog *l, struct str line, struct err *err)
{
	static struct jrecord_memory memory;
	static struct jrecord r;
	/* Most records are neither, and a text cannot hold an unescaped quotation mark. */
	if (!memmem(line.p, line.n, "\"kind\":\"intent\"", 15) &&
		!memmem(line.p, line.n, "\"kind\":\"outcome\"", 16))
		return 0;
	int e = jrecord_read((struct str){line.p, line.n - 1}, &memory, &r, err);
	return e < 0 ? e : note_record(l, &r, r.seq, err);
}

static void note_sealed(struct jlog *l, int64_t end)
{
	l->end = end;
	l->sealed.seq = l->walk.seq;
}

/* What is behind a seal is the head that it seals; the chain goes on over the seal. */
static int walk_line(struct jlog *l, struct str line, int64_t at, struct err *err)
{
	struct jwalk_line w;
	int r = jwalk_line(&l->walk, line, &w, err);
	if (r < 0)
		return r;
	if (w.kind == JWALK_RECORD)
		return take_record(l, line, err);
	if (w.kind == JWALK_SEAL) {
		memcpy(l->sealed.head, w.seal.head.p, SHA256_HEX);
		note_run(l, w.seal.run);
	}
	note_sealed(l, at + (int64_t)line.n);
	return 0;
}

/* Where the file holds less than whole sealed groups its writer has died: it is cut there. */
static int cut(struct jlog *l, int64_t size, struct err *err)
{
	char note[128];
	struct jrecord r = {.kind = str_of(JRECORD_KIND_NOTE)};
	uint64_t seq;
	if (ftruncate(l->fd, l->end) < 0)
		return err_sys(err, errno, "cutting the torn end of the journal");
	(void)snprintf(note, sizeof(note),
		"%lld bytes of a group that was never sealed were cut off",
		(long long)(size - l->end));
	r.note = str_of(note);
	return jlog_put(l, &r, &seq, err);
}

static void remember(struct jlog *l)
{
	l->before = l->walk;
	memcpy(l->open_before, l->open, l->n_open * sizeof(l->open[0]));
	l->n_open_before = l->n_open;
}

static void restore(struct jlog *l)
{
	l->walk = l->before;
	memcpy(l->open, l->open_before, l->n_open_before * sizeof(l->open[0]));
	l->n_open = l->n_open_before;
}

static int read_lines(struct jlog *l, int64_t size, struct err *err)
{
	struct jlines lines;
	struct str line;
	int r = jlines_open(&lines, l->fd, l->end, size, err);
	if (r < 0)
		return r;
	while ((r = jlines_next(&lines, &line, err)) == 1 &&
		(r = walk_line(l, line, lines.line_at, err)) == 0)
		;
	jlines_done(&lines);
	return r;
}

/* Groups that others have appended to this segment, up to the last seal: what is behind it, a dead
 * writer has left. A line that does not fit is no torn end but damage. */
int jlog_read_groups(struct jlog *l, int64_t size, struct err *err)
{
	int64_t from = l->end, sealed;
	remember(l);
	int r = read_lines(l, size, err);
	if (r < 0 || !l->walk.unsealed)
		return r;
	/* Records without a seal have not happened, so neither have their outcomes. */
	restore(l);
	sealed = l->end;
	l->end = from;
	return read_lines(l, sealed, err);
}

int jlog_open_segment(struct jlog *l, uint32_t number, int flags, struct err *err)
{
	int fd, r = jwalk_open(l->dir_fd, number, flags, &fd, err);
	if (r < 0)
		return r;
	cleanup_close(&l->fd);
	l->fd = fd;
	l->end = 0;
	jwalk_segment(&l->walk, number);
	return 0;
}

int jlog_size(int fd, int64_t *ret, struct err *err)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return err_sys(err, errno, "looking at the journal");
	*ret = st.st_size;
	return 0;
}

/* Has another process begun the next segment? */
static int follow(struct jlog *l, struct err *err)
{
	int r = jlog_open_segment(l, l->walk.segment + 1, O_RDWR | O_APPEND, err);
	if (r < 0 && err->sys == ENOENT) {
		err_clear(err);
		return 0;
	}
	return r < 0 ? r : 1;
}

/* Read what others have appended to this segment; what is no whole group yet is its torn end. */
static int catch_up_segment(struct jlog *l, int64_t *ret_torn_size, struct err *err)
{
	int64_t size;
	int r = jlog_size(l->fd, &size, err);
	if (r < 0)
		return r;
	if (size < l->end)
		return err_set(err, ERR_CORRUPT, "the journal has become shorter");
	if (size > l->end && (r = jlog_read_groups(l, size, err)) < 0)
		return r;
	if (size > l->end)
		*ret_torn_size = size;
	return 0;
}

static int catch_up(struct jlog *l, int64_t *ret_torn_size, struct err *err)
{
	int r;
	*ret_torn_size = -1;
	for (;;) {
		if (l->fd >= 0 && (r = catch_up_segment(l, ret_torn_size, err)) < 0)
			return r;
		if ((r = follow(l, err)) <= 0)
			return r;
		if (*ret_torn_size >= 0)
			return err_set(
				err, ERR_CORRUPT, "a segment of the journal ends without a seal");
	}
}

/* --- groups --- */

static void unlock(struct jlog *l)
{
	(void)fs_lock(l->lock_fd, 0, F_UNLCK);
	l->in_group = false;
	buf_clear(&l->group);
}

static void forget_group(struct jlog *l)
{
	restore(l);
	unlock(l);
}

/* Behind a full segment, or when there is none, the group begins with a header. */
static void begin_segment(struct jlog *l)
{
	l->rotates = l->fd < 0 || l->end == 0 || l->end >= l->opt.segment_bytes;
	if (l->rotates)
		jwalk_header(&l->walk,
			l->fd >= 0 && l->end == 0 ? l->walk.segment : l->walk.segment + 1,
			l->time_ms, &l->group);
}

/* It needs the key, which is not asked for before the first group (jseal.c). */
static int check_first_seal(struct jlog *l, struct err *err)
{
	struct jseal seal;
	int r = l->first_seal[0] ? jseal_read(str_of(l->first_seal), &seal, err) : 0;
	if (r == 0 && l->first_seal[0] && !jseal_check(l->opt.key, &seal))
		r = err_set(err, ERR_CORRUPT, "the last seal of the journal is not of its key");
	l->first_seal[0] = '\0';
	return r < 0 ? break_log(l, err) : 0;
}

int jlog_begin(struct jlog *l, struct err *err)
{
	int64_t torn;
	BUG_ON(l->in_group);
	if (l->broken.code) {
		*err = l->broken;
		return -(int)err->code;
	}
	int checked = check_first_seal(l, err);
	if (checked < 0)
		return checked;
	if (fs_lock_wait(l->lock_fd, 0, F_WRLCK, JLOG_LOCK_MS) < 0)
		return err_sys(err, errno, "waiting for another writer of the journal");
	l->in_group = true;
	remember(l);
	int r = catch_up(l, &torn, err);
	if (r < 0) {
		forget_group(l);
		return break_log(l, err);
	}
	remember(l);
	l->time_ms = MAX((uint64_t)clock_unix_ms(), l->walk.time_ms);
	begin_segment(l);
	if (torn >= 0 && (r = cut(l, torn, err)) < 0)
		forget_group(l);
	return r;
}

int jlog_put(struct jlog *l, const struct jrecord *r, uint64_t *ret_seq, struct err *err)
{
	size_t from = l->group.len;
	struct jrecord mine = *r;
	mine.seq = l->walk.seq + 1;
	mine.time = l->time_ms;
	BUG_ON(!l->in_group);
	if (l->walk.unsealed == JLOG_GROUP_RECORDS + 1)
		return err_set(err, ERR_LIMIT, "a group of the journal has at most %d records",
			JLOG_GROUP_RECORDS);
	int e = jrecord_write(&mine, &l->group, err);
	if (e == 0)
		e = note_record(l, &mine, mine.seq, err);
	if (e < 0) {
		if (l->group.data)
			l->group.data[from] = '\0';
		l->group.len = from;
		l->group.failed = false;
		return e;
	}
	jchain_add(&l->walk.chain, l->group.data + from, l->group.len - from);
	l->walk.seq++;
	l->walk.unsealed++;
	*ret_seq = mine.seq;
	return 0;
}

static int put_seal(struct jlog *l, uint64_t upto, struct jposition *ret, struct err *err)
{
	size_t from = l->group.len;
	const struct jseal seal = {.seq = l->walk.seq,
		.time_ms = l->time_ms,
		.run = l->opt.run,
		.upto = upto,
		.open = oldest_open(l)};
	int r = jseal_write(l->opt.key, &l->walk.chain, &seal, &l->group, err);
	if (r < 0)
		return r;
	ret->seq = l->walk.seq;
	memcpy(ret->head, l->walk.chain.head, sizeof(ret->head));
	jchain_add(&l->walk.chain, l->group.data + from, l->group.len - from);
	l->walk.unsealed = 0;
	l->walk.time_ms = l->time_ms;
	return 0;
}

/* A new segment gets its name before its content, so that a torn one is found. */
static int start_file(struct jlog *l, struct err *err)
{
	int fd;
	if (!l->rotates || (l->fd >= 0 && l->end == 0))
		return 0;
	int r = jwalk_open(
		l->dir_fd, l->walk.segment, O_RDWR | O_APPEND | O_CREAT | O_EXCL, &fd, err);
	if (r < 0)
		return r;
	cleanup_close(&l->fd);
	l->fd = fd;
	l->end = 0;
	return 0;
}

/* The file is cut back to what it was before, so a group is there whole or not at all. */
static int write_group(struct jlog *l, struct err *err)
{
	struct err cut_err;
	size_t done = 0;
	while (done < l->group.len) {
		ssize_t n = write(l->fd, l->group.data + done, l->group.len - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	if (done == l->group.len)
		return 0;
	int why = errno;
	if (ftruncate(l->fd, l->end) < 0) {
		(void)err_sys(&cut_err, errno, "cutting the journal back");
		(void)break_log(l, &cut_err);
	}
	return err_sys(err, why == EFBIG ? ENOSPC : why, "writing the journal");
}

static int make_durable(struct jlog *l, bool new_file, struct err *err)
{
	if (l->opt.sync(l->fd) < 0 || (new_file && fsync(l->dir_fd) < 0)) {
		(void)err_sys(err, errno, "making the journal durable");
		return break_log(l, err);
	}
	return 0;
}

/* The sync is outside of the lock, so that other processes write their groups meanwhile. */
int jlog_end(struct jlog *l, uint64_t upto, bool sync, struct err *err)
{
	struct jposition sealed;
	BUG_ON(!l->in_group);
	if (!l->walk.unsealed) {
		forget_group(l);
		return 0;
	}
	note_run(l, l->opt.run);
	bool rotates = l->rotates;
	int r = put_seal(l, upto, &sealed, err);
	/* What others have not synced yet counts as theirs; the segment before is done with. */
	if (r == 0 && rotates && l->fd >= 0 && l->end > 0 && sync)
		r = make_durable(l, false, err);
	if (r < 0 || (r = start_file(l, err)) < 0 || (r = write_group(l, err)) < 0) {
		forget_group(l);
		return r;
	}
	l->end += (int64_t)l->group.len;
	l->sealed = sealed;
	unlock(l);
	return sync ? make_durable(l, rotates, err) : 0;
}
