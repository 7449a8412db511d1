/* Unified diff: see textdiff.h. Lines become numbers, equal lines the same number; the rest works
 * on those. */
#include "workspace/textdiff.h"

enum {
	COST_MAX = 4096, /* edits of one search for a middle */
	PROBES_MAX = 64, /* lines compared before an unlucky line gets a number of its own */
	LEVELS_MAX = 4,  /* nested splits at unique lines */
	NAMES_MAX = 64 * 1024,
};

/* One side: where its lines start, their numbers, and which of them are not in the other. */
struct side {
	struct str text;
	uint32_t *at; /* n + 1 offsets */
	uint32_t *id;
	bool *changed;
	uint32_t n;
};

/* A region that is still to be compared: lines [a0, a1) against [b0, b1). */
struct box {
	uint32_t a0, a1, b0, b1;
	unsigned level;
};

struct diff {
	struct side a, b;
	uint32_t ids;
	int64_t steps; /* left in the budget */

	/* Furthest line of `a` on each diagonal, forward and backward: 2 * cost + 3 of each. */
	int32_t *forward, *backward;
	uint32_t cost;

	struct box *todo;
	size_t n_todo, cap_todo;

	/* For splitting at unique lines, indexed by number: where it is, how often. */
	uint32_t *where_a, *where_b;
	uint8_t *count_a, *count_b;
};

bool text_is_binary(struct str s)
{
	return (s.n > 0 && memchr(s.p, 0, s.n)) || !utf8_valid(s.p, s.n);
}

/* --- lines --------------------------------------------------------------------------------------
 */

static void side_done(struct side *s)
{
	free(s->at);
	free(s->id);
	free(s->changed);
}

static uint32_t count_lines(struct str t)
{
	uint32_t n = 0;
	const char *p = t.p, *end = t.p + t.n;
	while (p < end) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		p = nl ? nl + 1 : end;
		n++;
	}
	return n;
}

static int side_init(struct side *s, struct str text, struct err *err)
{
	s->text = text;
	s->n = count_lines(text);
	s->at = malloc(((size_t)s->n + 1) * sizeof(*s->at));
	s->id = malloc(((size_t)s->n + 1) * sizeof(*s->id));
	s->changed = calloc((size_t)s->n + 1, sizeof(*s->changed));
	if (!s->at || !s->id || !s->changed)
		return err_oom(err);
	size_t off = 0;
	for (uint32_t i = 0; i < s->n; i++) {
		s->at[i] = (uint32_t)off;
		const char *nl = memchr(text.p + off, '\n', text.n - off);
		off = nl ? (size_t)(nl - text.p) + 1 : text.n;
	}
	s->at[s->n] = (uint32_t)text.n;
	return 0;
}

/* Line i with its newline, so that a last line without one differs from the same line with one. */
static struct str line(const struct side *s, uint32_t i)
{
	return (struct str){s->text.p + s->at[i], s->at[i + 1] - s->at[i]};
}

static uint64_t hash_line(struct str l)
{
	uint64_t h = 0x9e3779b97f4a7c15 ^ l.n, w;
	size_t i = 0;
	for (; i + 8 <= l.n; i += 8) {
		memcpy(&w, l.p + i, 8);
		h = (h ^ w) * 0xff51afd7ed558ccd;
		h ^= h >> 32;
	}
	w = 0;
	memcpy(&w, l.p + i, l.n - i);
	h = (h ^ w) * 0xff51afd7ed558ccd;
	return h ^ (h >> 29);
}

struct slot {
	uint32_t hash; /* upper bits */
	uint32_t id;   /* 0: free */
	struct str line;
};

/* Equal lines get one number. A line that meets too many others at its place gets a number of its
 * own: the diff is then coarser there, not wrong. */
static uint32_t number(struct slot *slots, size_t mask, struct str l, uint32_t *next)
{
	uint64_t h = hash_line(l);
	for (unsigned k = 0; k < PROBES_MAX; k++) {
		struct slot *s = &slots[(h + k) & mask];
		if (s->id == 0) {
			*s = (struct slot){.hash = (uint32_t)(h >> 32), .id = ++*next, .line = l};
			return s->id;
		}
		if (s->hash == (uint32_t)(h >> 32) && str_eq(s->line, l))
			return s->id;
	}
	return ++*next;
}

static int number_lines(struct diff *d, struct err *err)
{
	size_t size = 64;
	while (size < 2 * ((size_t)d->a.n + d->b.n))
		size *= 2;
	_cleanup_free_ struct slot *slots = calloc(size, sizeof(*slots));
	if (!slots)
		return err_oom(err);
	for (uint32_t i = 0; i < d->a.n; i++)
		d->a.id[i] = number(slots, size - 1, line(&d->a, i), &d->ids);
	for (uint32_t i = 0; i < d->b.n; i++)
		d->b.id[i] = number(slots, size - 1, line(&d->b, i), &d->ids);
	return 0;
}

/* --- comparing ----------------------------------------------------------------------------------
 */

static int push(struct diff *d, struct box box, struct err *err)
{
	if (d->n_todo == d->cap_todo) {
		size_t cap = d->cap_todo ? d->cap_todo * 2 : 64;
		struct box *more = realloc(d->todo, cap * sizeof(*more));
		if (!more)
			return err_oom(err);
		d->todo = more;
		d->cap_todo = cap;
	}
	d->todo[d->n_todo++] = box;
	return 0;
}

static void trim(const struct diff *d, struct box *x)
{
	while (x->a0 < x->a1 && x->b0 < x->b1 && d->a.id[x->a0] == d->b.id[x->b0])
		x->a0++, x->b0++;
	while (x->a0 < x->a1 && x->b0 < x->b1 && d->a.id[x->a1 - 1] == d->b.id[x->b1 - 1])
		x->a1--, x->b1--;
}

static void mark(struct diff *d, const struct box *x)
{
	memset(d->a.changed + x->a0, 1, x->a1 - x->a0);
	memset(d->b.changed + x->b0, 1, x->b1 - x->b0);
}

/* The search for a middle: both ends walk towards each other, one edit a round. */
struct search {
	const uint32_t *a, *b;
	int32_t n, m, delta;
	int32_t *f, *g; /* indexed by diagonal; f: furthest x from the start, g: from the end */
};

/* One round forward. True when the two ends met: *x, *y is a point of a shortest way. */
static bool forward(struct search *s, int32_t c, bool odd, int64_t *steps, int32_t *x, int32_t *y)
{
	for (int32_t k = -c; k <= c; k += 2) {
		int32_t i = k == -c || (k != c && s->f[k - 1] < s->f[k + 1]) ? s->f[k + 1]
									     : s->f[k - 1] + 1;
		int32_t j = i - k, from = i;
		while (i < s->n && j < s->m && s->a[i] == s->b[j])
			i++, j++;
		*steps -= 1 + (i - from);
		s->f[k] = i;
		int32_t r = s->delta - k; /* the same diagonal, counted from the end */
		if (odd && r >= -(c - 1) && r <= c - 1 && i + s->g[r] >= s->n && i <= s->n &&
			j <= s->m) {
			*x = i, *y = j;
			return true;
		}
	}
	return false;
}

static bool backward(struct search *s, int32_t c, bool odd, int64_t *steps, int32_t *x, int32_t *y)
{
	for (int32_t k = -c; k <= c; k += 2) {
		int32_t i = k == -c || (k != c && s->g[k - 1] < s->g[k + 1]) ? s->g[k + 1]
									     : s->g[k - 1] + 1;
		int32_t j = i - k, from = i;
		while (i < s->n && j < s->m && s->a[s->n - 1 - i] == s->b[s->m - 1 - j])
			i++, j++;
		*steps -= 1 + (i - from);
		s->g[k] = i;
		int32_t r = s->delta - k;
		if (!odd && r >= -c && r <= c && i + s->f[r] >= s->n && i <= s->n && j <= s->m) {
			*x = s->n - i, *y = s->m - j;
			return true;
		}
	}
	return false;
}

/* Find a point in the middle of a shortest way through the box. False when that costs too much. */
static bool middle(struct diff *d, const struct box *box, uint32_t *x, uint32_t *y)
{
	struct search s = {.a = d->a.id + box->a0,
		.b = d->b.id + box->b0,
		.n = (int32_t)(box->a1 - box->a0),
		.m = (int32_t)(box->b1 - box->b0),
		.f = d->forward + d->cost + 1,
		.g = d->backward + d->cost + 1};
	s.delta = s.n - s.m;
	bool odd = (s.delta & 1) != 0;
	int32_t i = 0, j = 0;
	s.f[1] = s.g[1] = 0;
	for (int32_t c = 0; c <= (int32_t)d->cost && d->steps > 0; c++) {
		if (forward(&s, c, odd, &d->steps, &i, &j) ||
			backward(&s, c, odd, &d->steps, &i, &j)) {
			*x = box->a0 + (uint32_t)i;
			*y = box->b0 + (uint32_t)j;
			return true;
		}
	}
	return false;
}

/* --- splitting at unique lines ------------------------------------------------------------------
 */

static void bump(uint8_t *count)
{
	if (*count < 2)
		++*count;
}

static void count_box(struct diff *d, const struct box *x)
{
	for (uint32_t i = x->a0; i < x->a1; i++)
		d->count_a[d->a.id[i]] = d->count_b[d->a.id[i]] = 0;
	for (uint32_t i = x->b0; i < x->b1; i++)
		d->count_a[d->b.id[i]] = d->count_b[d->b.id[i]] = 0;
	for (uint32_t i = x->a0; i < x->a1; i++) {
		bump(&d->count_a[d->a.id[i]]);
		d->where_a[d->a.id[i]] = i;
	}
	for (uint32_t i = x->b0; i < x->b1; i++) {
		bump(&d->count_b[d->b.id[i]]);
		d->where_b[d->b.id[i]] = i;
	}
}

/* The longest run of unique common lines that is in order on both sides (patience sorting): lines
 * of `a` in *ret, ascending. */
static int anchors(
	struct diff *d, const struct box *x, uint32_t **ret, uint32_t *ret_n, struct err *err)
{
	uint32_t n = x->a1 - x->a0, len = 0;
	_cleanup_free_ uint32_t *top = malloc(((size_t)n + 1) * sizeof(*top));
	_cleanup_free_ uint32_t *prev = malloc(((size_t)n + 1) * sizeof(*prev));
	if (!top || !prev)
		return err_oom(err);
	count_box(d, x);
	for (uint32_t i = x->a0; i < x->a1; i++) {
		uint32_t id = d->a.id[i];
		if (d->count_a[id] != 1 || d->count_b[id] != 1)
			continue;
		uint32_t lo = 0, hi = len;
		while (lo < hi) {
			uint32_t mid = lo + (hi - lo) / 2;
			if (d->where_b[d->a.id[top[mid]]] < d->where_b[id])
				lo = mid + 1;
			else
				hi = mid;
		}
		prev[i - x->a0] = lo > 0 ? top[lo - 1] : UINT32_MAX;
		top[lo] = i;
		len = lo == len ? len + 1 : len;
	}
	uint32_t *run = malloc(((size_t)len + 1) * sizeof(*run));
	if (!run)
		return err_oom(err);
	uint32_t at = len ? top[len - 1] : UINT32_MAX;
	for (uint32_t k = len; k > 0; k--) {
		run[k - 1] = at;
		at = prev[at - x->a0];
	}
	*ret = run;
	*ret_n = len;
	return 0;
}

static int split(struct diff *d, const struct box *x, struct err *err)
{
	_cleanup_free_ uint32_t *run = NULL;
	uint32_t n = 0;
	int r = x->level < LEVELS_MAX ? anchors(d, x, &run, &n, err) : 0;
	if (r < 0)
		return r;
	if (n == 0) {
		mark(d, x);
		return 0;
	}
	struct box part = {.a0 = x->a0, .b0 = x->b0, .level = x->level + 1};
	for (uint32_t i = 0; i <= n && r == 0; i++) {
		part.a1 = i < n ? run[i] : x->a1;
		part.b1 = i < n ? d->where_b[d->a.id[run[i]]] : x->b1;
		if (part.a0 < part.a1 || part.b0 < part.b1)
			r = push(d, part, err);
		part.a0 = part.a1 + 1;
		part.b0 = part.b1 + 1;
	}
	return r;
}

static int compare_box(struct diff *d, struct box x, struct err *err)
{
	uint32_t i = 0, j = 0;
	trim(d, &x);
	if (x.a0 == x.a1 || x.b0 == x.b1) {
		mark(d, &x);
		return 0;
	}
	if (!middle(d, &x, &i, &j))
		return split(d, &x, err);
	struct box left = {x.a0, i, x.b0, j, x.level}, right = {i, x.a1, j, x.b1, x.level};
	/* A middle at a corner makes no progress: one edit is all there is, or the way is blocked.
	 */
	if ((left.a0 == left.a1 && left.b0 == left.b1) ||
		(right.a0 == right.a1 && right.b0 == right.b1))
		return split(d, &x, err);
	int r = push(d, right, err);
	return r < 0 ? r : push(d, left, err);
}

static int diff_alloc(struct diff *d, struct err *err)
{
	uint64_t most = (uint64_t)d->a.n + d->b.n + 1;
	d->cost = (uint32_t)MIN(most, (uint64_t)COST_MAX);
	d->forward = calloc(2 * (size_t)d->cost + 4, sizeof(*d->forward));
	d->backward = calloc(2 * (size_t)d->cost + 4, sizeof(*d->backward));
	d->where_a = malloc(((size_t)d->ids + 1) * sizeof(*d->where_a));
	d->where_b = malloc(((size_t)d->ids + 1) * sizeof(*d->where_b));
	d->count_a = malloc((size_t)d->ids + 1);
	d->count_b = malloc((size_t)d->ids + 1);
	if (!d->forward || !d->backward || !d->where_a || !d->where_b || !d->count_a || !d->count_b)
		return err_oom(err);
	return 0;
}

static void diff_done(struct diff *d)
{
	side_done(&d->a);
	side_done(&d->b);
	free(d->forward);
	free(d->backward);
	free(d->where_a);
	free(d->where_b);
	free(d->count_a);
	free(d->count_b);
	free(d->todo);
}

static int compare(struct diff *d, struct err *err)
{
	int r;
	if ((r = number_lines(d, err)) < 0 || (r = diff_alloc(d, err)) < 0)
		return r;
	d->steps = TEXTDIFF_STEPS_MAX;
	r = push(d, (struct box){.a1 = d->a.n, .b1 = d->b.n}, err);
	while (r == 0 && d->n_todo > 0)
		r = compare_box(d, d->todo[--d->n_todo], err);
	return r;
}

/* --- output -------------------------------------------------------------------------------------
 */

struct output {
	struct buf *out;
	size_t end; /* out->len may grow up to here */
	bool full;
};

/* Append all of it or nothing; after the first piece that did not fit nothing more comes. */
static void put_piece(struct output *o, struct str piece)
{
	if (o->full || piece.n > o->end - o->out->len) {
		o->full = true;
		return;
	}
	buf_put(o->out, piece.p, piece.n);
}

static void put_line(struct output *o, char sign, struct str l)
{
	static const char NO_NEWLINE[] = "\n\\ No newline at end of file\n";
	bool ends = l.p[l.n - 1] == '\n';
	if (o->full || l.n + 1 + (ends ? 0 : sizeof(NO_NEWLINE) - 1) > o->end - o->out->len) {
		o->full = true;
		return;
	}
	buf_putc(o->out, sign);
	buf_put(o->out, l.p, l.n);
	if (!ends)
		buf_puts(o->out, NO_NEWLINE);
}

static void put_range(struct buf *b, char sign, uint32_t from, uint32_t n)
{
	/* An empty range names the line before it (POSIX). */
	buf_printf(b, "%c%u", sign, n == 0 ? from : from + 1);
	if (n != 1)
		buf_printf(b, ",%u", n);
}

static void put_hunk_head(struct output *o, const struct box *h)
{
	_cleanup_buf_ struct buf b = buf_init(128);
	buf_puts(&b, "@@ ");
	put_range(&b, '-', h->a0, h->a1 - h->a0);
	buf_putc(&b, ' ');
	put_range(&b, '+', h->b0, h->b1 - h->b0);
	buf_puts(&b, " @@\n");
	put_piece(o, (struct str){buf_str(&b), b.len});
}

static void put_hunk(struct output *o, const struct diff *d, const struct box *h)
{
	uint32_t i = h->a0, j = h->b0;
	put_hunk_head(o, h);
	while (!o->full && (i < h->a1 || j < h->b1)) {
		if (i < h->a1 && d->a.changed[i]) {
			put_line(o, '-', line(&d->a, i++));
		} else if (j < h->b1 && d->b.changed[j]) {
			put_line(o, '+', line(&d->b, j++));
		} else {
			put_line(o, ' ', line(&d->a, i++));
			j++;
		}
	}
}

/* From a place where both sides agree: skip to the next change. False at the end. */
static bool next_change(const struct diff *d, uint32_t *i, uint32_t *j)
{
	while (*i < d->a.n && *j < d->b.n && !d->a.changed[*i] && !d->b.changed[*j])
		++*i, ++*j;
	return *i < d->a.n || *j < d->b.n;
}

static void skip_change(const struct diff *d, uint32_t *i, uint32_t *j)
{
	while (*i < d->a.n && d->a.changed[*i])
		++*i;
	while (*j < d->b.n && d->b.changed[*j])
		++*j;
}

static void put_hunks(struct output *o, const struct diff *d, uint32_t context)
{
	uint32_t i = 0, j = 0;
	bool more = next_change(d, &i, &j);
	while (more && !o->full) {
		uint32_t lead = MIN(context, i);
		lead = MIN(lead, j);
		struct box h = {.a0 = i - lead, .b0 = j - lead};
		uint32_t end_a, end_b;
		do {
			skip_change(d, &i, &j);
			end_a = i, end_b = j;
			more = next_change(d, &i, &j);
		} while (more && i - end_a <= 2 * context);
		uint32_t trail = MIN(context, d->a.n - end_a);
		trail = MIN(trail, d->b.n - end_b);
		h.a1 = end_a + trail, h.b1 = end_b + trail;
		put_hunk(o, d, &h);
	}
}

static int put_note(struct output *o, const struct textdiff_options *opt, const char *what,
	const char *why, struct err *err)
{
	_cleanup_buf_ struct buf b = buf_init(NAMES_MAX);
	buf_printf(&b, "%s %s and %s differ%s\n", what, opt->name_a, opt->name_b, why);
	put_piece(o, (struct str){buf_str(&b), b.len});
	return buf_check(&b, "a file name", err);
}

static int put_diff(
	struct output *o, struct diff *d, const struct textdiff_options *opt, struct err *err)
{
	int r = compare(d, err);
	if (r < 0)
		return r;
	_cleanup_buf_ struct buf head = buf_init(NAMES_MAX);
	buf_printf(&head, "--- %s\n+++ %s\n", opt->name_a, opt->name_b);
	put_piece(o, (struct str){buf_str(&head), head.len});
	put_hunks(o, d, MIN(opt->context, (unsigned)TEXTDIFF_CONTEXT_MAX));
	return buf_check(&head, "a file name", err);
}

int textdiff(struct str a, struct str b, const struct textdiff_options *opt, struct buf *out,
	bool *ret_truncated, struct err *err)
{
	int r;
	_cleanup_(diff_done) struct diff d = {0};
	struct output o = {.out = out, .end = out->len + MIN(opt->max_bytes, SIZE_MAX - out->len)};
	if (!str_eq(a, b)) {
		if (a.n > TEXTDIFF_BYTES_MAX || b.n > TEXTDIFF_BYTES_MAX ||
			count_lines(a) > TEXTDIFF_LINES_MAX || count_lines(b) > TEXTDIFF_LINES_MAX)
			r = put_note(&o, opt, "Files", " (too large to compare)", err);
		else if (text_is_binary(a) || text_is_binary(b))
			r = put_note(&o, opt, "Binary files", "", err);
		else if ((r = side_init(&d.a, a, err)) == 0 && (r = side_init(&d.b, b, err)) == 0)
			r = put_diff(&o, &d, opt, err);
		if (r < 0)
			return r;
	}
	if ((r = buf_check(out, "the diff", err)) < 0)
		return r;
	*ret_truncated = o.full;
	return 0;
}
