/* A strict applier of unified diffs, for tests: the diff of a and b applied to a must give b. */
#ifndef CLOISTER_TESTS_APPLY_H
#define CLOISTER_TESTS_APPLY_H

#include "base/text.h"

struct hunk_range {
	size_t from, n;
};

static inline size_t apply_number(const char **p)
{
	size_t v = 0;
	while (**p >= '0' && **p <= '9')
		v = v * 10 + (size_t)(*(*p)++ - '0');
	return v;
}

static inline bool apply_range(const char **p, char sign, struct hunk_range *ret)
{
	if (*(*p)++ != sign)
		return false;
	ret->from = apply_number(p);
	ret->n = 1;
	if (**p == ',') {
		++*p;
		ret->n = apply_number(p);
	}
	return true;
}

static inline struct str apply_line(struct str text, size_t off)
{
	const char *nl = off < text.n ? memchr(text.p + off, '\n', text.n - off) : NULL;
	size_t end = nl ? (size_t)(nl - text.p) + 1 : text.n;
	return (struct str){text.p + off, end - off};
}

/* Apply: false when the diff is malformed or its context does not fit. */
static inline bool diff_apply(struct str a, struct str diff, struct buf *out)
{
	size_t at = 0, a_line = 0, out_line = 0, i = 0;
	for (unsigned header = 0; header < 2; header++)
		i += apply_line(diff, i).n;
	while (i < diff.n) {
		struct hunk_range ra, rb;
		const char *p = diff.p + i;
		if (memcmp(p, "@@ ", 3) != 0)
			return false;
		p += 3;
		if (!apply_range(&p, '-', &ra) || *p++ != ' ' || !apply_range(&p, '+', &rb) ||
			memcmp(p, " @@\n", 4) != 0)
			return false;
		i = (size_t)(p + 4 - diff.p);
		size_t start = ra.n ? ra.from - 1 : ra.from;
		while (a_line < start) {
			struct str l = apply_line(a, at);
			if (l.n == 0)
				return false;
			buf_put(out, l.p, l.n);
			at += l.n, a_line++, out_line++;
		}
		if (out_line != (rb.n ? rb.from - 1 : rb.from))
			return false;
		while (ra.n > 0 || rb.n > 0) {
			struct str l = apply_line(diff, i);
			if (l.n < 2)
				return false;
			char sign = l.p[0];
			i += l.n;
			struct str body = {l.p + 1, l.n - 1};
			if (i < diff.n && diff.p[i] == '\\') {
				body.n--;
				i += apply_line(diff, i).n;
			}
			if (sign == ' ' || sign == '-') {
				struct str have = apply_line(a, at);
				if (ra.n == 0 || !str_eq(have, body))
					return false;
				at += have.n, a_line++, ra.n--;
			}
			if (sign == ' ' || sign == '+') {
				if (rb.n == 0)
					return false;
				buf_put(out, body.p, body.n);
				out_line++, rb.n--;
			}
			if (sign != ' ' && sign != '-' && sign != '+')
				return false;
		}
	}
	buf_put(out, a.p + at, a.n - at);
	return true;
}

#endif
