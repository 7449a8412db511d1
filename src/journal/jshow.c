/* Reading records out of a log: see jshow.h. */
#include "journal/jshow.h"

#include <fcntl.h>
#include <sys/stat.h>

struct showing {
	const struct jfilter *f;
	bool (*each)(void *ctx, const struct jrecord *r, struct str line);
	void *ctx;
	bool stopped;
	struct jwalk walk;
	struct jrecord_memory memory;
	struct jrecord record;
};

static bool fits(const char *wanted, struct str is)
{
	return !wanted || str_eq_c(is, wanted);
}

static bool fits_all(const struct jfilter *f, const struct jrecord *r)
{
	return r->seq > f->since && fits(f->session, r->session) && fits(f->turn, r->turn) &&
	       fits(f->tool, r->tool) && fits(f->code, r->code) && fits(f->call, r->call);
}

static int show_line(struct showing *s, struct str line, struct err *err)
{
	struct jwalk_line w;
	int r = jwalk_line(&s->walk, line, &w, err);
	if (r < 0 || w.kind != JWALK_RECORD || w.seq <= s->f->since)
		return r;
	struct str text = {line.p, line.n - 1};
	if ((r = jrecord_read(text, &s->memory, &s->record, err)) < 0)
		return r;
	if (fits_all(s->f, &s->record))
		s->stopped = !s->each(s->ctx, &s->record, text);
	return 0;
}

static int show_segment(struct showing *s, int dir_fd, uint32_t number, struct err *err)
{
	struct jlines lines;
	struct str line;
	struct stat st = {.st_size = 0};
	_cleanup_close_ int fd = -1;
	int r = jwalk_open(dir_fd, number, O_RDONLY, &fd, err);
	if (r < 0)
		return r;
	if (fstat(fd, &st) < 0 || (r = jlines_open(&lines, fd, 0, st.st_size, err)) < 0)
		return r < 0 ? r : err_set(err, ERR_IO, "looking at the journal");
	jwalk_segment(&s->walk, number);
	while (!s->stopped && (r = jlines_next(&lines, &line, err)) == 1 &&
		(r = show_line(s, line, err)) == 0)
		;
	jlines_done(&lines);
	return r < 0 ? err_wrap(err, "segment %u", number) : 0;
}

/* The number of the last record before a segment, from its header; UINT64_MAX when it has none. */
static uint64_t before_segment(int dir_fd, uint32_t number)
{
	struct jwalk w = {.segment = 0};
	struct jwalk_line kind;
	struct jlines lines;
	struct str line;
	struct err err;
	uint64_t seq = UINT64_MAX;
	_cleanup_close_ int fd = -1;
	if (jwalk_open(dir_fd, number, O_RDONLY, &fd, &err) < 0 ||
		jlines_open(&lines, fd, 0, JWALK_HEADER_MAX, &err) < 0)
		return seq;
	jwalk_segment(&w, number);
	if (jlines_next(&lines, &line, &err) == 1 && jwalk_line(&w, line, &kind, &err) == 0)
		seq = w.seq;
	jlines_done(&lines);
	return seq;
}

int jshow(int dir_fd, const struct jfilter *f,
	bool (*each)(void *ctx, const struct jrecord *r, struct str line), void *ctx,
	struct err *err)
{
	_cleanup_free_ struct showing *s = calloc(1, sizeof(*s));
	uint32_t first, last;
	if (!s)
		return err_oom(err);
	s->f = f;
	s->each = each;
	s->ctx = ctx;
	int r = jwalk_segments(dir_fd, &first, &last, err);
	if (r < 0)
		return r;
	if (!last)
		return err_set(err, ERR_NOT_FOUND, "there is no journal yet");
	while (first < last && before_segment(dir_fd, first + 1) <= f->since)
		first++;
	for (; r == 0 && first <= last && !s->stopped; first++)
		r = show_segment(s, dir_fd, first, err);
	return r;
}
