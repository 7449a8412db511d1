/* Finding a pattern in memory: see search_match.h. */
#include "workspace/search_match.h"
#include "workspace/re2_face.h"

#include <string.h>
#ifdef __SSE2__
#	include <emmintrin.h>
#endif

enum {
	PIECE = 16 * 1024, /* RE2 gets this much (to a line end) between two looks at the clock */
	FOLD_PIECE = 8 * 1024,
	STOP_EVERY = 1024 * 1024,
};

struct matcher {
	/* literal */
	bool literal, ignore_case, whole_word;
	size_t n;
	unsigned char text[LIMIT_PATTERN_BYTES]; /* folded when ignore_case */
	size_t i, j;                             /* the two rarest bytes, i <= j */
	unsigned char i_lo, i_up, j_lo, j_up;    /* in both cases */
	/* regular expression */
	struct re2_face *re;
	bool by_line;
};

static unsigned char fold(unsigned char c)
{
	return c >= 'A' && c <= 'Z' ? (unsigned char)(c | 0x20) : c;
}

static unsigned char other_case(unsigned char c)
{
	return c >= 'a' && c <= 'z' ? (unsigned char)(c & ~0x20) : c;
}

/* How common a byte is in source text and prose, roughly: 0 is rare. */
static unsigned commonness(unsigned char c, bool ignore_case)
{
	static const char order[] = "zqjxkvZQJXKV@~^`|%YUWHGBVybwgp!?&$#[]+<>{}\\'"
				    "MDFLOPNRCASITE9876543fm\"uc:;=*hd,l()210srn_i./oat-e\t\n ";
	if (c >= 0x80)
		return 40;
	const char *at = c ? memchr(order, ignore_case ? fold(c) : c, sizeof(order) - 1) : NULL;
	return at ? (unsigned)(at - order) + 1 : 0;
}

static void choose_pair(struct matcher *m)
{
	size_t best = 0, second = m->n - 1;
	for (size_t k = 0; k < m->n; k++)
		if (commonness(m->text[k], m->ignore_case) <
			commonness(m->text[best], m->ignore_case))
			best = k;
	if (second == best)
		second = 0;
	for (size_t k = 0; k < m->n; k++)
		if (k != best && commonness(m->text[k], m->ignore_case) <
					 commonness(m->text[second], m->ignore_case))
			second = k;
	m->i = MIN(best, second);
	m->j = MAX(best, second);
	m->i_lo = m->i_up = m->text[m->i];
	m->j_lo = m->j_up = m->text[m->j];
	if (m->ignore_case) {
		m->i_up = other_case(m->i_lo);
		m->j_up = other_case(m->j_lo);
	}
}

static bool all_ascii(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if ((unsigned char)s.p[i] >= 0x80)
			return false;
	return true;
}

/* Anchors of the whole text and raw bytes mean something else in a buffer than in its lines. */
static bool needs_lines(struct str p)
{
	for (size_t i = 0; i + 1 < p.n; i++)
		if (p.p[i] == '\\' && strchr("AzZC", p.p[i + 1]))
			return true;
	return false;
}

static int compile_regex(const struct search_query *q, struct matcher *m, struct err *err)
{
	char why[256];
	const struct re2_options opt = {
		.ignore_case = q->ignore_case,
		.literal = !q->regex,
		.whole_word = q->whole_word,
		.multi_line = true,
		.in_lines = true,
	};
	m->by_line = q->regex && needs_lines(q->pattern);
	m->re = re2_face_new(q->pattern.p, q->pattern.n, &opt, why, sizeof(why));
	if (!m->re)
		return err_set(err, ERR_INVALID_ARGUMENT, "invalid pattern: %s", why);
	return 0;
}

int matcher_new(const struct search_query *q, struct matcher **ret, struct err *err)
{
	if (q->pattern.n == 0)
		return err_set(err, ERR_INVALID_ARGUMENT, "the pattern is empty");
	if (q->pattern.n > LIMIT_PATTERN_BYTES)
		return err_set(err, ERR_INVALID_ARGUMENT, "the pattern is longer than %d bytes",
			LIMIT_PATTERN_BYTES);
	_cleanup_(cleanup_matcher_free) struct matcher *m = calloc(1, sizeof(*m));
	if (!m)
		return err_oom(err);
	m->ignore_case = q->ignore_case;
	m->whole_word = q->whole_word;
	m->n = q->pattern.n;
	/* Folding beyond ASCII is RE2's business, where the text is text at all. */
	m->literal = !q->regex && (!q->ignore_case || all_ascii(q->pattern) ||
					  !utf8_valid(q->pattern.p, q->pattern.n));
	if (m->literal) {
		for (size_t k = 0; k < m->n; k++) {
			unsigned char c = (unsigned char)q->pattern.p[k];
			m->text[k] = m->ignore_case ? fold(c) : c;
		}
		choose_pair(m);
	} else {
		int r = compile_regex(q, m, err);
		if (r < 0)
			return r;
	}
	*ret = take_ptr(m);
	return 0;
}

void matcher_free(struct matcher *m)
{
	if (!m)
		return;
	re2_face_free(m->re);
	free(m);
}

/* --- literals --- */

static bool word_byte(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c >= 0x80;
}

static bool same(const struct matcher *m, const unsigned char *p)
{
	if (!m->ignore_case)
		return memcmp(p, m->text, m->n) == 0;
	for (size_t k = 0; k < m->n; k++)
		if (fold(p[k]) != m->text[k])
			return false;
	return true;
}

static bool word_ends(const struct matcher *m, const unsigned char *t, size_t n, size_t at)
{
	if (!m->whole_word)
		return true;
	size_t end = at + m->n;
	return (at == 0 || !word_byte(t[at - 1]) || !word_byte(t[at])) &&
	       (end == n || !word_byte(t[end]) || !word_byte(t[end - 1]));
}

/*
 * Positions where both rare bytes stand, 16 at a time, as a bit mask. Reads up to 15 bytes past the
 * last position asked for (MATCH_SLACK).
 */
static unsigned candidates(const struct matcher *m, const unsigned char *t)
{
#ifdef __SSE2__
	__m128i a = _mm_loadu_si128((const __m128i *)(const void *)(t + m->i));
	__m128i b = _mm_loadu_si128((const __m128i *)(const void *)(t + m->j));
	__m128i ea = _mm_cmpeq_epi8(a, _mm_set1_epi8((char)m->i_lo));
	__m128i eb = _mm_cmpeq_epi8(b, _mm_set1_epi8((char)m->j_lo));
	if (m->ignore_case) {
		ea = _mm_or_si128(ea, _mm_cmpeq_epi8(a, _mm_set1_epi8((char)m->i_up)));
		eb = _mm_or_si128(eb, _mm_cmpeq_epi8(b, _mm_set1_epi8((char)m->j_up)));
	}
	return (unsigned)_mm_movemask_epi8(_mm_and_si128(ea, eb));
#else
	unsigned mask = 0;
	for (unsigned k = 0; k < 16; k++) {
		unsigned char a = t[m->i + k], b = t[m->j + k];
		mask |= (unsigned)((a == m->i_lo || a == m->i_up) && (b == m->j_lo || b == m->j_up))
			<< k;
	}
	return mask;
#endif
}

/* Text and pattern that agree nearly everywhere would make checking candidates quadratic; from
 * there on the C library's linear search takes over, over a folded copy when need be. */
static bool find_linear(const struct matcher *m, const unsigned char *t, size_t n, size_t from,
	struct match_span *ret)
{
	unsigned char folded[FOLD_PIECE];
	while (n - from >= m->n) {
		size_t piece = m->ignore_case ? MIN(n - from, sizeof(folded)) : n - from;
		const unsigned char *in = t + from;
		if (m->ignore_case) {
			for (size_t k = 0; k < piece; k++)
				folded[k] = fold(t[from + k]);
			in = folded;
		}
		const unsigned char *at = memmem(in, piece, m->text, m->n);
		if (!at) {
			if (piece == n - from)
				return false;
			from += piece - (m->n - 1);
			continue;
		}
		from += (size_t)(at - in);
		if (word_ends(m, t, n, from)) {
			*ret = (struct match_span){from, from + m->n};
			return true;
		}
		from++;
	}
	return false;
}

/* Check one batch of candidates: 1 found, 0 none, -1 too much work was in vain. */
static int check(const struct matcher *m, const unsigned char *t, size_t n, size_t from, size_t pos,
	unsigned mask, size_t *effort, struct match_span *ret)
{
	for (; mask; mask &= mask - 1) {
		size_t at = pos + (size_t)__builtin_ctz(mask);
		if (at + m->n > n)
			return 0;
		if (same(m, t + at) && word_ends(m, t, n, at)) {
			*ret = (struct match_span){at, at + m->n};
			return 1;
		}
		*effort += m->n;
		if (*effort > 8 * (at - from + 4096))
			return -1;
	}
	return 0;
}

static bool find_literal(const struct matcher *m, const unsigned char *t, size_t n, size_t from,
	bool (*stop)(void *ctx), void *ctx, struct match_span *ret)
{
	if (n < m->n)
		return false;
	size_t last = n - m->n, effort = 0, next_stop = from + STOP_EVERY;
	for (size_t pos = from; pos <= last; pos += 16) {
		unsigned mask = candidates(m, t + pos);
		if (mask) {
			int r = check(m, t, n, from, pos, mask, &effort, ret);
			if (r > 0)
				return true;
			if (r < 0)
				return find_linear(m, t, n, pos, ret);
		}
		if (pos >= next_stop) {
			next_stop += STOP_EVERY;
			if (stop(ctx))
				return false;
		}
	}
	return false;
}

/* --- regular expressions --- */

static size_t line_end(const char *t, size_t n, size_t from)
{
	const char *nl = memchr(t + from, '\n', n - from);
	return nl ? (size_t)(nl - t) : n;
}

static size_t line_start(const char *t, size_t at)
{
	const char *nl = memrchr(t, '\n', at);
	return nl ? (size_t)(nl - t) + 1 : 0;
}

static bool find_in_line(
	const struct matcher *m, const char *t, size_t start, size_t end, struct match_span *ret)
{
	struct re2_span s;
	if (!re2_face_find(m->re, t + start, end - start, 0, &s, 1))
		return false;
	*ret = (struct match_span){start + s.from, start + s.to};
	return true;
}

/* The first match in lines [from..end), `end` being a line's end or the text's. */
static bool find_in_piece(
	const struct matcher *m, const char *t, size_t end, size_t from, struct match_span *ret)
{
	struct re2_span s;
	while (from < end) {
		size_t start = from;
		if (!m->by_line) {
			if (!re2_face_find(m->re, t, end, from, &s, 1) || s.from >= end)
				return false;
			start = MAX(line_start(t, s.from), from);
		}
		size_t stop_at = line_end(t, end, start);
		if (!m->by_line && s.to <= stop_at) {
			*ret = (struct match_span){s.from, s.to};
			return true;
		}
		if (find_in_line(m, t, start, stop_at, ret))
			return true;
		from = stop_at + 1;
	}
	return false;
}

static bool find_regex(const struct matcher *m, const char *t, size_t n, size_t from,
	bool (*stop)(void *ctx), void *ctx, struct match_span *ret)
{
	while (from < n) {
		size_t end = n;
		if (n - from > PIECE)
			end = line_end(t, n, from + PIECE);
		if (end < n)
			end++;
		if (find_in_piece(m, t, end, from, ret))
			return true;
		from = end;
		if (from < n && stop(ctx))
			return false;
	}
	return false;
}

bool matcher_find(const struct matcher *m, const char *text, size_t n, size_t from,
	bool (*stop)(void *ctx), void *ctx, struct match_span *ret)
{
	if (m->literal)
		return find_literal(m, (const unsigned char *)text, n, from, stop, ctx, ret);
	return find_regex(m, text, n, from, stop, ctx, ret);
}
