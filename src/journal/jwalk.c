/* Walking over the log: see jwalk.h. Nothing here believes a byte that it has not checked. */
#include "journal/jwalk.h"

#include "sys/fs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

/* --- lines --- */

int jlines_open(struct jlines *l, int fd, int64_t at, int64_t end, struct err *err)
{
	*l = (struct jlines){.fd = fd, .at = at, .end = end, .line_at = at};
	l->data = malloc(JWALK_CHUNK + JRECORD_LINE_MAX);
	return l->data ? 0 : err_oom(err);
}

void jlines_done(struct jlines *l)
{
	free(take_ptr(l->data));
}

static int fill(struct jlines *l, struct err *err)
{
	size_t left = l->to - l->from, room = (size_t)MIN((int64_t)JWALK_CHUNK, l->end - l->at);
	memmove(l->data, l->data + l->from, left);
	ssize_t n = room ? fs_read(l->fd, l->data + left, room, l->at) : 0;
	if (n < 0)
		return err_sys(err, errno, "reading the journal");
	l->searched = left;
	l->from = 0;
	l->to = left + (size_t)n;
	l->at += n;
	return n > 0;
}

int jlines_next(struct jlines *l, struct str *ret, struct err *err)
{
	l->line_at = l->at - (int64_t)(l->to - l->from);
	for (;;) {
		const char *p = l->data + l->searched;
		const char *nl = l->to > l->searched ? memchr(p, '\n', l->to - l->searched) : NULL;
		size_t n = (nl ? (size_t)(nl + 1 - l->data) : l->to) - l->from;
		if (n > JRECORD_LINE_MAX)
			return err_set(err, ERR_CORRUPT,
				"a line of the journal is longer than %d bytes", JRECORD_LINE_MAX);
		*ret = (struct str){l->data + l->from, n};
		if (nl) {
			l->from = l->searched = (size_t)(nl + 1 - l->data);
			return 1;
		}
		int r = fill(l, err);
		if (r <= 0) {
			*ret = (struct str){l->data + l->from, l->to - l->from};
			return r;
		}
	}
}

/* --- header --- */

struct header {
	uint32_t segment;
	uint64_t seq, time_ms;
	char head[SHA256_HEX + 1];
};

/* Its one spelling is how we write it. */
static void header_text(const struct header *h, char out[JWALK_HEADER_MAX])
{
	(void)snprintf(out, JWALK_HEADER_MAX, "# cloister-journal 1 %u %llu %s %llu\n", h->segment,
		(unsigned long long)h->seq, h->head, (unsigned long long)h->time_ms);
}

static bool header_read(struct str line, struct header *ret)
{
	char text[JWALK_HEADER_MAX], again[JWALK_HEADER_MAX];
	unsigned long long seq, time_ms;
	struct jchain c;
	if (line.n >= sizeof(text))
		return false;
	memcpy(text, line.p, line.n);
	text[line.n] = '\0';
	if (sscanf(text, "# cloister-journal 1 %9u %16llu %64s %16llu", &ret->segment, &seq,
		    ret->head, &time_ms) != 4)
		return false;
	ret->seq = seq;
	ret->time_ms = time_ms;
	header_text(ret, again);
	return strcmp(text, again) == 0 && jchain_set(&c, str_of(ret->head)) == 0;
}

void jwalk_segment(struct jwalk *w, uint32_t number)
{
	w->segment = number;
	w->at_header = true;
}

static int walk_header(struct jwalk *w, struct str line, struct err *err)
{
	struct header h;
	if (!header_read(line, &h))
		return err_set(
			err, ERR_CORRUPT, "segment %u of the journal has no header", w->segment);
	if (h.segment != w->segment)
		return err_set(err, ERR_CORRUPT, "segment %u of the journal calls itself %u",
			w->segment, h.segment);
	if (!w->started) {
		w->seq = h.seq;
		(void)jchain_set(&w->chain, str_of(h.head));
		w->started = true;
	}
	if (w->unsealed || h.seq != w->seq || strcmp(h.head, w->chain.head) != 0)
		return err_set(err, ERR_CORRUPT,
			"segment %u of the journal does not follow the one before it", w->segment);
	w->at_header = false;
	w->time_ms = h.time_ms;
	return 0;
}

void jwalk_header(struct jwalk *w, uint32_t number, uint64_t time_ms, struct buf *out)
{
	char text[JWALK_HEADER_MAX];
	struct header h = {.segment = number, .seq = w->seq, .time_ms = time_ms};
	memcpy(h.head, w->chain.head, sizeof(h.head));
	header_text(&h, text);
	buf_puts(out, text);
	jchain_add(&w->chain, text, strlen(text));
	w->segment = number;
	w->at_header = false;
	w->time_ms = time_ms;
}

/* --- lines of the walk --- */

static int walk_record(struct jwalk *w, struct str line, struct jwalk_line *ret, struct err *err)
{
	ret->kind = JWALK_RECORD;
	ret->seq = jrecord_seq(line);
	if (ret->seq != w->seq + 1)
		return err_set(err, ERR_CORRUPT,
			"behind record %llu of the journal comes one that is not its next",
			(unsigned long long)w->seq);
	w->seq++;
	w->unsealed++;
	return 0;
}

static int walk_seal(struct jwalk *w, struct str line, struct jwalk_line *ret, struct err *err)
{
	int r = jseal_read((struct str){line.p, line.n - 1}, &ret->seal, err);
	if (r < 0)
		return r;
	ret->kind = JWALK_SEAL;
	if (!w->unsealed || ret->seal.seq != w->seq ||
		memcmp(ret->seal.head.p, w->chain.head, SHA256_HEX) != 0)
		return err_set(err, ERR_CORRUPT,
			"the seal behind record %llu of the journal is of other records",
			(unsigned long long)w->seq);
	w->unsealed = 0;
	w->time_ms = ret->seal.time_ms;
	return 0;
}

int jwalk_line(struct jwalk *w, struct str line, struct jwalk_line *ret, struct err *err)
{
	int r;
	if (w->at_header) {
		ret->kind = JWALK_HEADER;
		r = walk_header(w, line, err);
	} else if (line.p[0] == '{') {
		r = walk_record(w, line, ret, err);
	} else {
		r = walk_seal(w, line, ret, err);
	}
	if (r == 0)
		jchain_add(&w->chain, line.p, line.n);
	return r;
}

/* --- files --- */

void jwalk_name(uint32_t segment, char ret[JWALK_NAME])
{
	(void)snprintf(ret, JWALK_NAME, "%08u.log", segment % (JWALK_SEGMENTS_MAX + 1u));
}

static uint32_t number_of(const char *name)
{
	uint32_t n = 0;
	for (unsigned i = 0; i < 8; i++) {
		if (name[i] < '0' || name[i] > '9')
			return 0;
		n = n * 10 + (uint32_t)(name[i] - '0');
	}
	return strcmp(name + 8, ".log") == 0 ? n : 0;
}

static void free_dir(DIR **d)
{
	if (*d)
		(void)closedir(*d);
}

int jwalk_segments(int dir_fd, uint32_t *ret_first, uint32_t *ret_last, struct err *err)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_(free_dir) DIR *d = fd < 0 ? NULL : fdopendir(fd);
	if (!d) {
		int why = errno;
		cleanup_close(&fd);
		return err_sys(err, why, "reading the directory of the journal");
	}
	*ret_first = *ret_last = 0;
	for (const struct dirent *e; (e = readdir(d));) {
		uint32_t n = number_of(e->d_name);
		if (n && (!*ret_first || n < *ret_first))
			*ret_first = n;
		*ret_last = MAX(*ret_last, n);
	}
	return 0;
}

int jwalk_open(int dir_fd, uint32_t segment, int flags, int *ret_fd, struct err *err)
{
	char name[JWALK_NAME];
	jwalk_name(segment, name);
	int fd = openat(dir_fd, name, flags | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_sys(err, errno, "segment %u of the journal", segment);
	*ret_fd = fd;
	return 0;
}
