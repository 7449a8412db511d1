/* Edits on a text. The input is three bytes (what to do; first and last line) and three texts
 * divided by 0xff: the file, old_text, new_text. What comes out is compared with what a plain
 * reading of edit.h gives. */
#include "base/text.h"
#include "workspace/edit.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { OUT_MAX = 4 << 20 };

static void demand(bool holds)
{
	if (!holds)
		abort();
}

static bool has(struct str s, char c)
{
	return s.n > 0 && memchr(s.p, c, s.n);
}

static bool starts_with(const struct buf *b, struct str s)
{
	return b->len >= s.n && (s.n == 0 || memcmp(b->data, s.p, s.n) == 0);
}

static bool ends_with(const struct buf *b, struct str s)
{
	return b->len >= s.n && (s.n == 0 || memcmp(b->data + b->len - s.n, s.p, s.n) == 0);
}

/* Offset behind the first n lines, or SIZE_MAX when the text has fewer. */
static size_t line_end(struct str text, uint64_t n)
{
	size_t at = 0;
	for (; n > 0; n--) {
		if (at == text.n)
			return SIZE_MAX;
		while (at < text.n && text.p[at] != '\n')
			at++;
		at += at < text.n;
	}
	return at;
}

static bool all_crlf(struct str text)
{
	for (size_t i = 0; i < text.n; i++)
		if (text.p[i] == '\n' && (i == 0 || text.p[i - 1] != '\r'))
			return false;
	return has(text, '\n');
}

static uint64_t occurrences(struct str text, struct str old)
{
	uint64_t n = 0;
	for (size_t i = 0; old.n > 0 && old.n <= text.n && i <= text.n - old.n;) {
		bool here = memcmp(text.p + i, old.p, old.n) == 0;
		n += here;
		i += here ? old.n : 1;
	}
	return n;
}

/* The text is put together again with one occurrence after the other replaced. */
static void check_text(struct str text, const struct edit *e, int r, const struct edit_result *got,
	const struct buf *out)
{
	struct str old = e->old_text, new = e->new_text;
	if (has(text, '\r'))
		return; /* old and new are rewritten */
	uint64_t n = occurrences(text, old);
	int want = old.n == 0         ? ERR_INVALID_ARGUMENT
		   : n == 0           ? ERR_NO_MATCH
		   : n > 1 && !e->all ? ERR_AMBIGUOUS
				      : ERR_OK;
	demand(r == -want);
	if (r < 0)
		return;
	demand(got->replacements == n);
	const char *o = out->data;
	for (size_t i = 0; i < text.n;) {
		bool here = old.n <= text.n - i && memcmp(text.p + i, old.p, old.n) == 0;
		size_t len = here ? new.n : 1;
		demand(len <= out->len - (size_t)(o - out->data));
		demand(len == 0 || memcmp(o, here ? new.p : text.p + i, len) == 0);
		o += len;
		i += here ? old.n : 1;
	}
	demand(o == out->data + out->len);
}

static void check_lines(struct str text, const struct edit *e, int r, const struct buf *out)
{
	bool inserts = e->kind == EDIT_INSERT_LINES;
	uint64_t last = inserts ? e->start : e->end;
	bool fits = line_end(text, last) != SIZE_MAX &&
		    (inserts || (e->start >= 1 && e->start <= e->end));
	demand(r == (fits ? 0 : -ERR_INVALID_ARGUMENT));
	if (r < 0)
		return;
	size_t from = line_end(text, inserts ? e->start : e->start - 1), to = line_end(text, last);
	demand(starts_with(out, (struct str){text.p, from}));
	demand(ends_with(out, (struct str){text.p + to, text.n - to}));
	if (e->kind == EDIT_DELETE_LINES)
		demand(out->len == from + text.n - to);
	else
		demand(out->len >= from + e->new_text.n + text.n - to);
}

static void run(struct str text, const struct edit *e)
{
	struct err err = {0};
	struct edit_result got = {0};
	_cleanup_buf_ struct buf out = buf_init(OUT_MAX);
	int r = edit_apply(text, e, &out, &got, &err);
	if (r < 0) {
		demand(utf8_valid(err.text, strlen(err.text)) &&
			utf8_valid(err.hint, strlen(err.hint)));
		if (r == -ERR_LIMIT)
			return;
	}
	if (e->kind == EDIT_REPLACE_TEXT)
		check_text(text, e, r, &got, &out);
	else
		check_lines(text, e, r, &out);
	if (r == 0 && all_crlf(text) && !has(e->old_text, '\r') && !has(e->new_text, '\r') &&
		has((struct str){out.data, out.len}, '\n'))
		demand(all_crlf((struct str){out.data, out.len}));
}

static struct str cut(struct str *rest)
{
	const char *end = rest->n ? memchr(rest->p, 0xff, rest->n) : NULL;
	struct str s = {rest->p, end ? (size_t)(end - rest->p) : rest->n};
	size_t used = s.n + (end != NULL);
	*rest = (struct str){rest->p + used, rest->n - used};
	return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 3)
		return 0;
	struct str rest = {(const char *)data + 3, size - 3};
	struct edit e = {.kind = (enum edit_kind)(data[0] & 3),
		.all = data[0] & 4,
		.start = data[1],
		.end = data[2]};
	struct str text = cut(&rest);
	e.old_text = cut(&rest);
	e.new_text = cut(&rest);
	run(text, &e);
	return 0;
}
