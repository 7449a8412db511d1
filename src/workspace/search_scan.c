/* Searching one file: see search_scan.h. */
#include "workspace/search_scan.h"

#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ARENA_BLOCK = 16 * 1024, BACK_MAX = 64 * 1024, LEAD_MAX = 500 };

struct arena_block {
	struct arena_block *next;
	_Alignas(16) char room[];
};

void *arena_alloc(struct arena *a, size_t n)
{
	n = (n + 15) & ~(size_t)15;
	if (!a->blocks || n > a->size - a->used) {
		size_t size = MAX(n, (size_t)ARENA_BLOCK);
		struct arena_block *b = malloc(sizeof(*b) + size);
		if (!b) {
			a->failed = true;
			return NULL;
		}
		b->next = a->blocks;
		a->blocks = b;
		a->used = 0;
		a->size = size;
		a->total += size;
	}
	void *p = a->blocks->room + a->used;
	a->used += n;
	return p;
}

void arena_done(struct arena *a)
{
	while (a->blocks) {
		struct arena_block *next = a->blocks->next;
		free(a->blocks);
		a->blocks = next;
	}
	*a = (struct arena){0};
}

/* Part of a file in memory. Lines before `from` are only there as context. */
struct window {
	const char *t;
	size_t n;      /* bytes */
	size_t end;    /* where complete lines end; n at the end of the file */
	size_t from;   /* the first line not looked at */
	bool last;     /* the file ends here */
	size_t known;  /* offset whose line number is known ... */
	uint64_t line; /* ... and that number, from 1 */
};

/* Newlines, eight bytes at a time: a byte of `hit` is 0x80 exactly where the text has one. */
static uint64_t count_lines(const char *p, size_t n)
{
	const uint64_t low = UINT64_C(0x7f7f7f7f7f7f7f7f);
	uint64_t lines = 0, v;
	for (; n >= sizeof(v); p += sizeof(v), n -= sizeof(v)) {
		memcpy(&v, p, sizeof(v));
		v ^= UINT64_C(0x0a0a0a0a0a0a0a0a);
		uint64_t hit = ~(((v & low) + low) | v | low);
		lines += (uint64_t)__builtin_popcountll(hit);
	}
	for (; n; p++, n--)
		lines += *p == '\n';
	return lines;
}

static void know_line(struct window *w, size_t at)
{
	if (at >= w->known)
		w->line += count_lines(w->t + w->known, at - w->known);
	else
		w->line -= count_lines(w->t + at, w->known - at);
	w->known = at;
}

static size_t start_of_line(const struct window *w, size_t at)
{
	const char *nl = memrchr(w->t, '\n', at);
	return nl ? (size_t)(nl - w->t) + 1 : 0;
}

/* End of the line that holds `at`, without its newline. */
static size_t end_of_line(const struct window *w, size_t at)
{
	const char *nl = memchr(w->t + at, '\n', w->end - at);
	return nl ? (size_t)(nl - w->t) : w->end;
}

/* Start of the line that stands `lines` above the one that starts at `at`, at most BACK_MAX back.
 */
static size_t lines_above(const struct window *w, size_t at, unsigned lines)
{
	size_t s = at;
	for (; lines && s > 0; lines--) {
		size_t above = start_of_line(w, s - 1);
		if (at - above > BACK_MAX)
			break;
		s = above;
	}
	return s;
}

static struct str copy(struct arena *a, const char *p, size_t n)
{
	char *to = arena_alloc(a, n ? n : 1);
	if (!to)
		return (struct str){NULL, 0};
	memcpy(to, p, n);
	return (struct str){to, n};
}

static size_t without_cr(const char *t, size_t start, size_t end)
{
	return end > start && t[end - 1] == '\r' ? end - 1 : end;
}

/* A context line, cut at its limit. */
static struct str copy_line(struct arena *a, const char *t, size_t start, size_t end)
{
	size_t n = without_cr(t, start, end) - start;
	if (n > SEARCH_LINE_BYTES)
		n = utf8_floor(t + start, SEARCH_LINE_BYTES);
	return copy(a, t + start, n);
}

/* The text of a hit: the whole line, or what is around the match. */
static void cut_around(struct arena *a, const char *t, size_t start, size_t end, size_t match,
	struct search_hit *hit)
{
	size_t from = start, to = without_cr(t, start, end);
	if (to - from > SEARCH_LINE_BYTES) {
		if (match - from > LEAD_MAX)
			from = match - LEAD_MAX;
		while (from < match && ((unsigned char)t[from] & 0xC0) == 0x80)
			from++;
		if (to - from > SEARCH_LINE_BYTES)
			to = from + utf8_floor(t + from, SEARCH_LINE_BYTES);
		hit->text_cut = true;
	}
	hit->text_skip = (uint32_t)MIN(from - start, (size_t)UINT32_MAX);
	hit->text = copy(a, t + from, to - from);
}

static const struct str *context(struct arena *a, const struct window *w, size_t start,
	size_t limit, unsigned max, unsigned *ret_n)
{
	struct str *lines = arena_alloc(a, sizeof(*lines) * (max ? max : 1));
	unsigned n = 0;
	while (lines && n < max && start < limit) {
		size_t end = end_of_line(w, start);
		lines[n++] = copy_line(a, w->t, start, end);
		start = end + 1;
	}
	*ret_n = lines ? n : 0;
	return lines;
}

static void add_hit(const struct scanner *s, struct window *w, const struct match_span *m,
	size_t start, size_t end, const struct search_hit *where, struct found_list *out)
{
	struct arena *a = &out->arena;
	struct found *f = arena_alloc(a, sizeof(*f));
	if (!f)
		return;
	*f = (struct found){.hit = *where};
	know_line(w, start);
	f->hit.line = w->line;
	f->hit.column = m->from - start + 1;
	f->hit.match_len = (uint32_t)(MIN(m->to, end) - m->from);
	cut_around(a, w->t, start, end, m->from, &f->hit);
	if (s->q->before)
		f->hit.before = context(a, w, lines_above(w, start, s->q->before), start,
			s->q->before, &f->hit.n_before);
	if (s->q->after)
		f->hit.after = context(a, w, end + 1, w->end, s->q->after, &f->hit.n_after);
	*out->last = f;
	out->last = &f->next;
	out->n++;
}

/* Are the lines that follow `end` as context all in the window? */
static bool context_is_here(const struct scanner *s, const struct window *w, size_t end)
{
	size_t at = end;
	for (unsigned i = 0; i < s->q->after && at < w->end; i++)
		at = end_of_line(w, at + 1 <= w->end ? at + 1 : w->end);
	return w->last || at < w->end;
}

/* Look at the lines of a window. Afterwards w->from is the first line that the next window has to
 * begin with (after its context). */
static void scan_window(const struct scanner *s, struct window *w, const struct search_hit *where,
	struct found_list *out)
{
	struct match_span m;
	while (w->from < w->end && out->n < s->max_hits && !out->arena.failed) {
		if (!matcher_find(s->matcher, w->t, w->end, w->from, s->stop, s->stop_ctx, &m)) {
			w->from = w->end;
			return;
		}
		size_t start = MAX(start_of_line(w, m.from), w->from);
		size_t end = end_of_line(w, m.from);
		bool can_slide = lines_above(w, start, s->q->before) > 0;
		if (s->q->after && can_slide && !context_is_here(s, w, end)) {
			w->from = start;
			return;
		}
		add_hit(s, w, &m, start, end, where, out);
		w->from = MIN(end + 1, w->end);
	}
}

/* Keep what the next window needs, at the buffer's start. */
static void slide(const struct scanner *s, struct window *w)
{
	size_t keep = lines_above(w, w->from, s->q->before);
	if (keep == 0 && w->n == SCAN_WINDOW)
		keep = w->from; /* context as long as the window: give it up */
	know_line(w, keep);
	memmove(s->buffer, s->buffer + keep, w->n - keep);
	w->n -= keep;
	w->from -= keep;
	w->known = 0;
}

static bool fill(const struct scanner *s, struct window *w, int fd, uint64_t *bytes)
{
	while (w->n < SCAN_WINDOW && !w->last) {
		ssize_t got = read(fd, s->buffer + w->n, SCAN_WINDOW - w->n);
		if (got < 0)
			return false;
		w->last = got == 0;
		w->n += (size_t)got;
		*bytes += (uint64_t)got;
	}
	const char *nl = memrchr(s->buffer + w->from, '\n', w->n - w->from);
	w->end = w->last || !nl ? w->n : (size_t)(nl - s->buffer) + 1;
	return true;
}

static enum scan_result scan_large(const struct scanner *s, int fd, size_t got,
	const struct search_hit *where, struct found_list *out, uint64_t *bytes)
{
	struct stat st;
	/* not fstat(3), which may be a call that takes a path */
	if (syscall(SYS_fstat, fd, &st) < 0)
		return SCAN_UNREADABLE;
	if (s->q->max_file_bytes && st.st_size > s->q->max_file_bytes)
		return SCAN_LARGE;
	struct window w = {.t = s->buffer, .n = got, .line = 1};
	for (;;) {
		if (!fill(s, &w, fd, bytes))
			return SCAN_UNREADABLE;
		scan_window(s, &w, where, out);
		if ((w.last && w.from >= w.end) || out->n >= s->max_hits || out->arena.failed ||
			s->stop(s->stop_ctx))
			return SCAN_TEXT;
		slide(s, &w);
	}
}

enum scan_result scan_file(const struct scanner *s, int fd, const struct search_hit *where,
	struct found_list *out, uint64_t *ret_bytes)
{
	ssize_t got = read(fd, s->buffer, SCAN_FIRST);
	*ret_bytes = got > 0 ? (uint64_t)got : 0;
	if (got < 0)
		return SCAN_UNREADABLE;
	if (memchr(s->buffer, '\0', (size_t)got))
		return SCAN_BINARY;
	if (s->q->max_file_bytes && got > s->q->max_file_bytes)
		return SCAN_LARGE;
	if (got == SCAN_FIRST)
		return scan_large(s, fd, (size_t)got, where, out, ret_bytes);
	struct window w = {
		.t = s->buffer, .n = (size_t)got, .end = (size_t)got, .last = true, .line = 1};
	scan_window(s, &w, where, out);
	return SCAN_TEXT;
}
