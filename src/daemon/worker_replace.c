/* Regular-expression replace over a whole content: see worker_replace.h. */
#include "daemon/worker_replace.h"
#include "workspace/re2_face.h"

#include <errno.h>
#include <string.h>

static int write_all(struct output *o, const char *p, size_t n, struct err *err)
{
	while (n) {
		ssize_t w = write(o->fd, p, n);
		if (w < 0)
			return err_sys(err, errno, "writing the new content");
		p += w;
		n -= (size_t)w;
	}
	return 0;
}

int output_end(struct output *o, struct err *err)
{
	int r = write_all(o, o->buffer, o->n, err);
	o->n = 0;
	return r;
}

int output_put(struct output *o, const void *p, size_t n, struct err *err)
{
	if (n > (uint64_t)(o->max - o->size))
		return err_set(err, ERR_TOO_LARGE, "the new content is larger than %lld bytes",
			(long long)o->max);
	o->size += (int64_t)n;
	if (n > sizeof(o->buffer) - o->n) {
		int r = output_end(o, err);
		if (r < 0)
			return r;
	}
	if (n > sizeof(o->buffer))
		return write_all(o, p, n, err);
	memcpy(o->buffer + o->n, p, n);
	o->n += n;
	return 0;
}

/* Every backslash starts a group or a backslash, and the group exists. */
static int check_replacement(struct str t, unsigned groups, struct err *err)
{
	for (size_t i = 0; i < t.n; i++) {
		if (t.p[i] != '\\')
			continue;
		char c = ++i < t.n ? t.p[i] : '\0';
		if (c == '\\')
			continue;
		if (c < '0' || c > '9')
			return err_set(err, ERR_INVALID_ARGUMENT,
				"a backslash in the replacement is followed by a digit or a "
				"backslash");
		if ((unsigned)(c - '0') > groups)
			return err_set(err, ERR_INVALID_ARGUMENT,
				"the replacement uses group %c, but the pattern has %u", c, groups);
	}
	return 0;
}

static int put_replacement(struct output *o, struct str t, const char *text,
	const struct re2_span *spans, struct err *err)
{
	int r = 0;
	for (size_t i = 0; i < t.n && r == 0; i++) {
		if (t.p[i] != '\\') {
			const char *next = memchr(t.p + i, '\\', t.n - i);
			size_t plain = next ? (size_t)(next - t.p) - i : t.n - i;
			r = output_put(o, t.p + i, plain, err);
			i += plain - 1;
			continue;
		}
		char c = t.p[++i];
		if (c == '\\') {
			r = output_put(o, "\\", 1, err);
		} else {
			const struct re2_span *s = &spans[c - '0'];
			if (s->from != SIZE_MAX)
				r = output_put(o, text + s->from, s->to - s->from, err);
		}
	}
	return r;
}

/* Which lines a match touches; matches come in order. */
struct line_counter {
	const char *text;
	size_t at;     /* counted up to here */
	uint64_t line; /* of `at`, from 1 */
	uint64_t last; /* the last line that was counted as changed */
};

static void go_to(struct line_counter *c, size_t to)
{
	const char *p = c->text + c->at, *end = c->text + to;
	while (p < end && (p = memchr(p, '\n', (size_t)(end - p)))) {
		c->line++;
		p++;
	}
	c->at = MAX(c->at, to);
}

static void count_match(struct line_counter *c, struct re2_span m, struct msg_replaced *ret)
{
	go_to(c, m.from);
	uint64_t first = c->line;
	/* a match that ends with a newline does not touch the line after it */
	go_to(c, m.to > m.from ? m.to - 1 : m.to);
	for (uint64_t l = MAX(first, c->last + 1); l <= c->line; l++) {
		ret->lines_changed++;
		if (ret->lines.n < WORKER_LINES_MAX)
			ret->lines.v[ret->lines.n++] = l;
	}
	c->last = c->line;
}

static size_t character_at(const char *text, size_t n, size_t at)
{
	uint32_t c;
	unsigned len = utf8_decode(text + at, n - at, &c);
	return len ? len : 1;
}

static int replace_each(const struct msg_replace *m, const struct re2_face *re, const char *text,
	size_t n, struct output *out, struct msg_replaced *ret, struct err *err)
{
	struct re2_span s[RE2_FACE_GROUPS];
	struct line_counter lines = {.text = text, .line = 1};
	size_t copied = 0, from = 0, last_end = SIZE_MAX;
	unsigned groups = MIN(re2_face_groups(re) + 1, (unsigned)RE2_FACE_GROUPS);
	int r = 0;
	while (r == 0 && from <= n && (!m->max_count || ret->replacements < m->max_count) &&
		re2_face_find(re, text, n, from, s, groups)) {
		bool empty = s[0].to == s[0].from;
		/* no empty match where the one before ended, as sed and RE2 have it */
		if (!(empty && s[0].from == last_end)) {
			r = output_put(out, text + copied, s[0].from - copied, err);
			if (r == 0)
				r = put_replacement(out, m->replacement, text, s, err);
			copied = last_end = s[0].to;
			ret->replacements++;
			count_match(&lines, s[0], ret);
		}
		from = s[0].to;
		if (empty)
			from += from < n ? character_at(text, n, from) : 1;
	}
	return r < 0 ? r : output_put(out, text + copied, n - copied, err);
}

int replace_all(const struct msg_replace *m, const char *text, size_t n, struct output *out,
	struct msg_replaced *ret, struct err *err)
{
	char why[256];
	const struct re2_options opt = {
		.ignore_case = m->ignore_case, .multi_line = m->multi_line, .dot_all = m->dot_all};
	struct re2_face *re = re2_face_new(m->pattern.p, m->pattern.n, &opt, why, sizeof(why));
	if (!re)
		return err_set(err, ERR_INVALID_ARGUMENT, "invalid pattern: %s", why);
	*ret = (struct msg_replaced){0};
	int r = check_replacement(m->replacement, re2_face_groups(re), err);
	if (r == 0)
		r = replace_each(m, re, text, n, out, ret, err);
	if (r == 0)
		r = output_end(out, err);
	ret->size = out->size;
	re2_face_free(re);
	return r;
}
