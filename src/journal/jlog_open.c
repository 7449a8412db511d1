/* Opening the log of a node: where it ends, and what was left undone. See jlog.h. */
#include "journal/jlog_impl.h"

#include "sys/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#define LOCK_FILE "lock"

struct tail {
	int64_t end; /* behind the last whole seal; 0: there is none */
	struct jseal seal;
	char line[JSEAL_LINE_MAX];
};

/* The last line of `data` that is a whole seal. */
static bool find_seal(const char *data, size_t n, int64_t at, struct tail *ret)
{
	struct err err;
	while (n > 0) {
		const char *nl = memrchr(data, '\n', n);
		if (!nl)
			return false;
		const char *before = nl > data ? memrchr(data, '\n', (size_t)(nl - data)) : NULL;
		const char *start = before ? before + 1 : data;
		size_t len = (size_t)(nl - start);
		if (len < sizeof(ret->line) && *start == '=') {
			memcpy(ret->line, start, len);
			ret->line[len] = '\n';
			if (jseal_read((struct str){ret->line, len}, &ret->seal, &err) == 0) {
				ret->end = at + (nl + 1 - data);
				return true;
			}
		}
		n = (size_t)(start - data);
	}
	return false;
}

/* Almost always the file ends in a seal; else one is looked for as far back as a group can be. */
static int read_tail(int fd, int64_t size, struct tail *ret, struct err *err)
{
	static const int64_t windows[] = {4096, JLOG_GROUP_BYTES + 2 * JRECORD_LINE_MAX};
	ret->end = 0;
	for (unsigned i = 0; i < ARRAY_LEN(windows); i++) {
		int64_t n = MIN(size, windows[i]);
		_cleanup_free_ char *data = malloc((size_t)n + 1);
		if (!data)
			return err_oom(err);
		ssize_t got = fs_read(fd, data, (size_t)n, size - n);
		if (got < 0)
			return err_sys(err, errno, "reading the end of the journal");
		if (find_seal(data, (size_t)got, size - n, ret) || n == size)
			break;
	}
	return 0;
}

/* The walk stands behind a seal. */
static void stand_at(struct jlog *l, uint32_t segment, const struct tail *t)
{
	size_t n = t->seal.text.n + 1 + t->seal.signature.n;
	memcpy(l->first_seal, t->line, n);
	l->first_seal[n] = '\0';
	l->walk = (struct jwalk){.segment = segment,
		.seq = t->seal.seq,
		.started = true,
		.time_ms = t->seal.time_ms};
	(void)jchain_set(&l->walk.chain, t->seal.head);
	l->sealed.seq = t->seal.seq;
	memcpy(l->sealed.head, t->seal.head.p, SHA256_HEX);
	jchain_add(&l->walk.chain, t->line, n + 1);
	l->end = t->end;
}

/* A segment that holds no whole group is one whose first writer died: the walk stands at the end of
 * the one before and reads it again. */
static int find_end(struct jlog *l, uint32_t first, uint32_t last, struct err *err)
{
	struct tail t;
	for (uint32_t s = last; s >= first && s > 0; s--) {
		int64_t size = 0;
		int r = jlog_open_segment(l, s, O_RDWR | O_APPEND, err);
		if (r < 0 || (r = jlog_size(l->fd, &size, err)) < 0 ||
			(r = read_tail(l->fd, size, &t, err)) < 0)
			return r;
		if (t.end > 0) {
			stand_at(l, s, &t);
			return 0;
		}
	}
	return err_set(err, ERR_CORRUPT, "no segment of the journal has a seal");
}

static uint64_t first_seq(int dir_fd, uint32_t segment)
{
	char text[JWALK_HEADER_MAX] = "";
	unsigned long long seq = 0;
	int fd;
	struct err err;
	if (jwalk_open(dir_fd, segment, O_RDONLY, &fd, &err) < 0)
		return 0;
	if (fs_read(fd, text, sizeof(text) - 1, 0) <= 0 ||
		sscanf(text, "# cloister-journal 1 %*u %16llu", &seq) != 1)
		seq = 0;
	(void)close(fd);
	return seq;
}

/* Read again from the segment that holds the oldest open intent. */
static int read_open(struct jlog *l, uint32_t first, uint64_t oldest, struct err *err)
{
	uint32_t last = l->walk.segment, s = last;
	int64_t end = l->end;
	while (s > first && first_seq(l->dir_fd, s) >= oldest)
		s--;
	l->walk = (struct jwalk){.segment = 0};
	for (; s <= last; s++) {
		int64_t size = 0;
		int r = jlog_open_segment(l, s, O_RDWR | O_APPEND, err);
		if (r < 0 || (r = jlog_size(l->fd, &size, err)) < 0 ||
			(r = jlog_read_groups(l, s == last ? end : size, err)) < 0)
			return r;
	}
	/* Intents from before `oldest` whose outcome is in a segment before this. */
	while (l->n_open && l->open[0].seq < oldest)
		jlog_note_outcome(l, str_of(l->open[0].call));
	return 0;
}

static int find_position(struct jlog *l, struct err *err)
{
	uint32_t first, last;
	int r = jwalk_segments(l->dir_fd, &first, &last, err);
	if (r < 0)
		return r;
	jchain_init(&l->walk.chain);
	l->walk.started = true;
	memcpy(l->sealed.head, l->walk.chain.head, sizeof(l->sealed.head));
	if (!last)
		return 0;
	if (last == 1 && first == 1) {
		/* The very first group may be the torn one. */
		int64_t size = 0;
		struct tail t;
		if ((r = jlog_open_segment(l, 1, O_RDWR | O_APPEND, err)) < 0 ||
			(r = jlog_size(l->fd, &size, err)) < 0 ||
			(r = read_tail(l->fd, size, &t, err)) < 0)
			return r;
		if (t.end == 0)
			return 0;
	}
	return find_end(l, first, last, err);
}

static int find_open(struct jlog *l, struct err *err)
{
	uint32_t first, last;
	struct tail t = {.end = 0};
	int r = l->fd < 0 || l->end == 0 ? 0 : read_tail(l->fd, l->end, &t, err);
	if (r < 0 || t.end == 0 || !t.seal.open)
		return r;
	r = jwalk_segments(l->dir_fd, &first, &last, err);
	return r < 0 ? r : read_open(l, first, t.seal.open, err);
}

static int open_lock(struct jlog *l, struct err *err)
{
	l->lock_fd = openat(l->dir_fd, LOCK_FILE, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (l->lock_fd < 0)
		return err_sys(err, errno, "opening the lock of the journal");
	if (fs_lock(l->lock_fd, jlog_byte_of(l->opt.run), F_WRLCK) < 0)
		return err_sys(err, errno, "saying that this writer of the journal lives");
	if (fs_lock_wait(l->lock_fd, 0, F_WRLCK, JLOG_LOCK_MS) < 0)
		return err_sys(err, errno, "waiting for another writer of the journal");
	return 0;
}

/* A torn end is cut at once, so that what is wrong is known at the start. */
static int settle(struct jlog *l, struct err *err)
{
	int64_t size = 0;
	int r = l->fd < 0 ? 0 : jlog_size(l->fd, &size, err);
	if (r == 0 && size > l->end) {
		(void)fs_lock(l->lock_fd, 0, F_UNLCK);
		r = jlog_begin(l, err);
		return r < 0 ? r : jlog_end(l, 0, false, err);
	}
	(void)fs_lock(l->lock_fd, 0, F_UNLCK);
	return r;
}

static int allocate(struct jlog *l, struct err *err)
{
	l->open = calloc(JLOG_OPEN_MAX, sizeof(*l->open));
	l->open_before = calloc(JLOG_OPEN_MAX, sizeof(*l->open));
	l->abandoned = calloc(JLOG_OPEN_MAX, sizeof(*l->open));
	return l->open && l->open_before && l->abandoned ? 0 : err_oom(err);
}

int jlog_open(const struct jlog_options *opt, struct jlog **ret, struct err *err)
{
	_cleanup_(cleanup_jlog_free) struct jlog *l = calloc(1, sizeof(*l));
	int r;
	if (!l)
		return err_oom(err);
	l->opt = *opt;
	l->group = buf_init(JLOG_GROUP_BYTES);
	l->fd = l->lock_fd = -1;
	if (!l->opt.segment_bytes)
		l->opt.segment_bytes = JLOG_SEGMENT_BYTES;
	if (!l->opt.sync)
		l->opt.sync = fdatasync;
	l->dir_fd = fcntl(opt->dir_fd, F_DUPFD_CLOEXEC, 3);
	if (l->dir_fd < 0)
		return err_sys(err, errno, "opening the directory of the journal");
	if ((r = allocate(l, err)) < 0 || (r = open_lock(l, err)) < 0 ||
		(r = find_position(l, err)) < 0 || (r = find_open(l, err)) < 0 ||
		(r = settle(l, err)) < 0)
		return r;
	*ret = take_ptr(l);
	return 0;
}

void jlog_free(struct jlog *l)
{
	if (!l)
		return;
	cleanup_close(&l->fd);
	cleanup_close(&l->lock_fd);
	cleanup_close(&l->dir_fd);
	buf_done(&l->group);
	free(l->open);
	free(l->open_before);
	free(l->abandoned);
	free(l);
}
