/* Edits on a text: see edit.h. Pure. */
#include "workspace/edit.h"

enum { LINES_NAMED = 5, SHOWN_BYTES = 80, COMPARED_BYTES = 512 };

/* --- lines
 * ---------------------------------------------------------------------------------------------- */

/* The line that begins at *at, with its end; *at moves behind it. False at the end of the text. */
static bool next_line(struct str text, size_t *at, struct str *ret)
{
	if (*at >= text.n)
		return false;
	const char *p = text.p + *at, *end = memchr(p, '\n', text.n - *at);
	*ret = (struct str){p, end ? (size_t)(end + 1 - p) : text.n - *at};
	*at += ret->n;
	return true;
}

static uint64_t count_ends(struct str text)
{
	uint64_t n = 0;
	for (const char *p = text.p, *end = text.p + text.n;
		p < end && (p = memchr(p, '\n', (size_t)(end - p))); p++)
		n++;
	return n;
}

uint64_t edit_count_lines(struct str text)
{
	return count_ends(text) + (text.n > 0 && text.p[text.n - 1] != '\n');
}

static uint64_t line_of(struct str text, size_t at)
{
	return count_ends((struct str){text.p, at}) + 1;
}

/* Are all line ends CRLF, and is there one? */
static bool is_crlf(struct str text)
{
	bool any = false;
	for (const char *p = text.p, *end = text.p + text.n;
		p < end && (p = memchr(p, '\n', (size_t)(end - p))); p++) {
		if (p == text.p || p[-1] != '\r')
			return false;
		any = true;
	}
	return any;
}

/* Write LF that has no CR before it as CRLF. */
static void put_as_crlf(struct buf *out, struct str s)
{
	for (size_t i = 0, from = 0; i <= s.n; i++) {
		bool lone = i < s.n && s.p[i] == '\n' && (i == 0 || s.p[i - 1] != '\r');
		if (!lone && i < s.n)
			continue;
		buf_put(out, s.p + from, i - from);
		if (lone)
			buf_putc(out, '\r');
		from = i;
	}
}

/* `s` in the text's own line ends; `memory` holds it when it had to be rewritten. */
static struct str in_style(struct str s, bool crlf, struct buf *memory)
{
	if (!crlf || !memchr(s.n ? s.p : "", '\n', s.n))
		return s;
	*memory = buf_init(s.n * 2 + 1);
	put_as_crlf(memory, s);
	return (struct str){buf_str(memory), memory->len};
}

/* --- near misses
 * ---------------------------------------------------------------------------------------- */

/* LOOSE(NAME, what is said about a place that matches only when this is forgiven) */
#define LOOSE_WAYS(LOOSE)                                                                          \
	LOOSE(BLANKS, "only white space differs")                                                  \
	LOOSE(CASE, "only upper and lower case differ")                                            \
	LOOSE(QUOTES, "only typographic quotes or dashes differ")

enum loose {
#define LOOSE(name, says) LOOSE_##name,
	LOOSE_WAYS(LOOSE)
#undef LOOSE
		LOOSE_MAX_,
};

static const char *const loose_says[] = {
#define LOOSE(name, says) says,
	LOOSE_WAYS(LOOSE)
#undef LOOSE
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static uint32_t plain_quote(uint32_t c)
{
	switch (c) {
	case 0x2018:
	case 0x2019:
	case 0x201B: return '\'';
	case 0x201C:
	case 0x201D:
	case 0x201F: return '"';
	case 0x2013:
	case 0x2014:
	case 0x2212: return '-';
	case 0xA0: return ' ';
	default: return c;
	}
}

/* The next character of a line under a way of comparing; 0 at the end. Bytes that are not UTF-8
 * count as themselves. */
static uint32_t loose_char(struct str s, size_t *at, enum loose way)
{
	uint32_t c;
	while (way == LOOSE_BLANKS && *at < s.n && is_blank(s.p[*at]))
		(*at)++;
	if (*at >= s.n)
		return 0;
	unsigned len = utf8_decode(s.p + *at, s.n - *at, &c);
	if (len == 0) {
		c = (unsigned char)s.p[*at];
		len = 1;
	}
	*at += len;
	if (way == LOOSE_CASE && c >= 'A' && c <= 'Z')
		return c + ('a' - 'A');
	return way == LOOSE_QUOTES ? plain_quote(c) : c;
}

static struct str without_end(struct str line)
{
	while (line.n > 0 && (line.p[line.n - 1] == '\n' || line.p[line.n - 1] == '\r'))
		line.n--;
	return line;
}

static bool loosely_equal(struct str a, struct str b, enum loose way)
{
	size_t i = 0, j = 0;
	a = without_end(a);
	b = without_end(b);
	for (;;) {
		uint32_t x = loose_char(a, &i, way), y = loose_char(b, &j, way);
		if (x != y)
			return false;
		if (x == 0)
			return true;
	}
}

/* Do the lines of `old` stand at `at` when compared that way? The first line decides in nearly
 * every place, so this is linear for ordinary texts; `budget` bounds it for the others. */
static bool loosely_at(struct str text, size_t at, struct str old, enum loose way, size_t *budget)
{
	struct str a, b;
	size_t i = 0;
	while (next_line(old, &i, &b)) {
		if (!next_line(text, &at, &a) || *budget < a.n + b.n)
			return false;
		*budget -= a.n + b.n;
		if (!loosely_equal(a, b, way))
			return false;
	}
	return true;
}

static bool find_loosely(struct str text, struct str old, enum loose way, uint64_t *ret_line)
{
	size_t at = 0, start, budget = 8 * (text.n + old.n) + 4096;
	uint64_t line = 1;
	struct str ignored;
	for (start = at; next_line(text, &at, &ignored); start = at, line++)
		if (loosely_at(text, start, old, way, &budget)) {
			*ret_line = line;
			return true;
		}
	return false;
}

static size_t common_ends(struct str a, struct str b)
{
	size_t shorter = MIN(a.n, b.n), n = MIN(shorter, (size_t)COMPARED_BYTES), front = 0,
	       back = 0;
	while (front < n && a.p[front] == b.p[front])
		front++;
	while (back < n - front && a.p[a.n - 1 - back] == b.p[b.n - 1 - back])
		back++;
	return front + back;
}

static struct str trimmed(struct str line)
{
	while (line.n > 0 && is_blank(line.p[line.n - 1]))
		line.n--;
	while (line.n > 0 && is_blank(line.p[0]))
		line = (struct str){line.p + 1, line.n - 1};
	return line;
}

/* The first line of `old` that is not blank, and the line of the text that has most of its two ends
 * in common. */
static bool closest_line(struct str text, struct str old, uint64_t *ret_line, struct str *ret_text,
	struct str *ret_wanted)
{
	size_t at = 0, best = 0;
	uint64_t number = 0;
	struct str line, wanted = {NULL, 0};
	while (wanted.n == 0 && next_line(old, &at, &line))
		wanted = trimmed(line);
	if (wanted.n == 0)
		return false;
	for (at = 0; next_line(text, &at, &line);) {
		size_t same = common_ends(trimmed(line), wanted);
		number++;
		if (same > best) {
			best = same;
			*ret_line = number;
			*ret_text = trimmed(line);
		}
	}
	*ret_wanted = wanted;
	return best * 3 >= MIN(wanted.n, (size_t)COMPARED_BYTES);
}

static void show(struct buf *b, struct str s)
{
	text_show(b, (struct str){s.p, utf8_floor(s.p, MIN(s.n, (size_t)SHOWN_BYTES))}, false);
	if (s.n > SHOWN_BYTES)
		buf_puts(b, "...");
}

static int no_match(struct str text, struct str old, struct err *err)
{
	uint64_t line = 0;
	struct str got = {NULL, 0}, wanted = {NULL, 0};
	for (int way = 0; way < LOOSE_MAX_; way++)
		if (find_loosely(text, old, (enum loose)way, &line)) {
			(void)err_set(err, ERR_NO_MATCH,
				"old_text does not occur, but at line %llu %s",
				(unsigned long long)line, loose_says[way]);
			return err_hint(err, "read the lines from %llu and copy them exactly",
				(unsigned long long)line);
		}
	if (!closest_line(text, old, &line, &got, &wanted))
		return err_set(
			err, ERR_NO_MATCH, "old_text does not occur, and no line is close to it");
	_cleanup_buf_ struct buf a = buf_init(4096), b = buf_init(4096);
	show(&a, got);
	show(&b, wanted);
	(void)err_set(err, ERR_NO_MATCH,
		"old_text does not occur; line %llu comes closest: '%s' instead of '%s'",
		(unsigned long long)line, buf_str(&a), buf_str(&b));
	return err_hint(err, "read the file around line %llu and copy the text exactly",
		(unsigned long long)line);
}

/* --- replacing text
 * --------------------------------------------------------------------------------------- */

static const char *find(struct str text, size_t from, struct str what)
{
	return memmem(text.p + from, text.n - from, what.p, what.n);
}

static int ambiguous(struct str text, struct str old, struct err *err)
{
	_cleanup_buf_ struct buf lines = buf_init(256);
	unsigned n = 0;
	const char *hit = text.p;
	for (size_t at = 0; at <= text.n && (hit = find(text, at, old));
		at = (size_t)(hit - text.p) + old.n)
		if (n++ < LINES_NAMED)
			buf_printf(&lines, "%s%llu", n > 1 ? ", " : "",
				(unsigned long long)line_of(text, (size_t)(hit - text.p)));
	(void)err_set(err, ERR_AMBIGUOUS, "old_text occurs %u times, at lines %s%s", n,
		buf_str(&lines), n > LINES_NAMED ? ", ..." : "");
	return err_hint(err, "add surrounding lines so that it occurs once, or set replace_all");
}

static int replace_text(struct str text, const struct edit *e, struct buf *out,
	struct edit_result *ret, struct err *err)
{
	_cleanup_buf_ struct buf old_memory = buf_init(0), new_memory = buf_init(0);
	bool crlf = is_crlf(text);
	struct str old = in_style(e->old_text, crlf, &old_memory),
		   new = in_style(e->new_text, crlf, &new_memory);
	if (old.n == 0)
		return err_set(err, ERR_INVALID_ARGUMENT,
			"old_text is empty; use insert_lines to add text");
	const char *hit = find(text, 0, old);
	if (!hit)
		return no_match(text, e->old_text, err);
	if (!e->all && find(text, (size_t)(hit - text.p) + old.n, old))
		return ambiguous(text, old, err);
	ret->first_line = line_of(text, (size_t)(hit - text.p));
	size_t at = 0;
	for (; hit; hit = e->all && at <= text.n ? find(text, at, old) : NULL) {
		buf_put(out, text.p + at, (size_t)(hit - text.p) - at);
		buf_put(out, new.p, new.n);
		at = (size_t)(hit - text.p) + old.n;
		ret->replacements++;
	}
	buf_put(out, text.p + at, text.n - at);
	return 0;
}

/* --- lines
 * ------------------------------------------------------------------------------------------------
 */

/* Offset behind the first `n` lines. */
static size_t behind_lines(struct str text, uint64_t n)
{
	size_t at = 0;
	struct str line;
	while (n > 0 && next_line(text, &at, &line))
		n--;
	return at;
}

static int check_lines(struct str text, const struct edit *e, struct err *err)
{
	uint64_t count = edit_count_lines(text);
	if (e->kind == EDIT_INSERT_LINES) {
		if (e->start <= count)
			return 0;
		return err_set(err, ERR_INVALID_ARGUMENT,
			"line %llu to insert behind does not exist; the file has %llu lines",
			(unsigned long long)e->start, (unsigned long long)count);
	}
	if (e->start >= 1 && e->start <= e->end && e->end <= count)
		return 0;
	return err_set(err, ERR_INVALID_ARGUMENT,
		"lines %llu to %llu are not a range of this file, which has %llu lines",
		(unsigned long long)e->start, (unsigned long long)e->end,
		(unsigned long long)count);
}

static bool ends_open(struct str s)
{
	return s.n > 0 && s.p[s.n - 1] != '\n';
}

static int edit_lines(struct str text, const struct edit *e, struct buf *out,
	struct edit_result *ret, struct err *err)
{
	_cleanup_buf_ struct buf memory = buf_init(0);
	int r = check_lines(text, e, err);
	if (r < 0)
		return r;
	bool crlf = is_crlf(text), inserts = e->kind == EDIT_INSERT_LINES;
	struct str new = e->kind == EDIT_DELETE_LINES ? (struct str){"", 0}
						      : in_style(e->new_text, crlf, &memory);
	struct str end = crlf ? STR("\r\n") : STR("\n");
	size_t from = behind_lines(text, inserts ? e->start : e->start - 1);
	size_t to = inserts ? from : behind_lines(text, e->end);
	buf_put(out, text.p, from);
	/* What is put in is whole lines: a missing end before it or behind it is added, except at
	 * the end of a file that had none. */
	if (new.n > 0 && ends_open((struct str){text.p, from}))
		buf_put(out, end.p, end.n);
	buf_put(out, new.p, new.n);
	bool at_end = to == text.n;
	if (ends_open(new) && !(at_end && ends_open(text)))
		buf_put(out, end.p, end.n);
	buf_put(out, text.p + to, text.n - to);
	ret->replacements = 1;
	ret->first_line = inserts ? e->start + 1 : e->start;
	return 0;
}

int edit_apply(struct str text, const struct edit *e, struct buf *out, struct edit_result *ret,
	struct err *err)
{
	struct edit_result got = {0};
	int r = e->kind == EDIT_REPLACE_TEXT ? replace_text(text, e, out, &got, err)
					     : edit_lines(text, e, out, &got, err);
	if (r == 0)
		r = buf_check(out, "the edited file", err);
	if (r == 0)
		*ret = got;
	return r;
}
