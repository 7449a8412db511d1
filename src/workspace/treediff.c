/* Diffs of trees in git's format: see treediff.h. */
#include "workspace/treediff.h"

#include "sys/fs.h"
#include "workspace/textdiff.h"

#include <errno.h>

enum { NAME_MAX_BYTES = 16 * LIMIT_PATH_BYTES };

struct tree_diff treediff_to(struct buf *out, size_t max, unsigned context)
{
	size_t room = SIZE_MAX - out->len;
	return (struct tree_diff){.out = out, .end = out->len + MIN(max, room), .context = context};
}

/* --- names --------------------------------------------------------------------------------------
 */

static bool needs_quotes(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if ((unsigned char)s.p[i] < 0x20 || s.p[i] == 0x7f || s.p[i] == '"' ||
			s.p[i] == '\\')
			return true;
	return !utf8_valid(s.p, s.n);
}

static void put_quoted(struct buf *b, struct str s)
{
	for (size_t i = 0; i < s.n; i++) {
		unsigned char c = (unsigned char)s.p[i];
		if (c == '"' || c == '\\')
			buf_printf(b, "\\%c", c);
		else if (c < 0x20 || c >= 0x7f)
			buf_printf(b, "\\%03o", c);
		else
			buf_putc(b, (char)c);
	}
}

void git_quote(struct buf *b, const char *lead, const char *prefix, const char *path)
{
	struct str parts[] = {str_of(lead), str_of(prefix), str_of(path)};
	bool quote = false;
	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		quote = quote || needs_quotes(parts[i]);
	if (quote)
		buf_putc(b, '"');
	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		if (quote)
			put_quoted(b, parts[i]);
		else
			buf_put(b, parts[i].p, parts[i].n);
	if (quote)
		buf_putc(b, '"');
}

/* --- content ------------------------------------------------------------------------------------
 */

/* A side in memory. */
struct content {
	struct buf b;
	bool too_large;
};

static void content_done(struct content *c)
{
	buf_done(&c->b);
}

static int read_part(struct buf *b, int fd, int64_t size, struct err *err)
{
	if (fd < 0 || size <= 0)
		return 0;
	char *room = buf_room(b, (size_t)size);
	if (!room)
		return buf_check(b, "a file to compare", err);
	ssize_t n = fs_read(fd, room, (size_t)size, 0);
	if (n < 0)
		return err_sys(err, errno, "reading a file to compare");
	buf_grew(b, (size_t)n);
	return 0;
}

static int content_of(const struct diff_side *s, struct content *c, struct err *err)
{
	int r;
	c->b = buf_init(TEXTDIFF_BYTES_MAX);
	if (s->target) {
		buf_puts(&c->b, s->target);
		return buf_check(&c->b, "a link", err);
	}
	int64_t size = MAX(s->size, (int64_t)0), tail = MAX(s->tail_size, (int64_t)0);
	if (size > TEXTDIFF_BYTES_MAX || tail > TEXTDIFF_BYTES_MAX - size) {
		c->too_large = true;
		return 0;
	}
	r = read_part(&c->b, s->fd, size, err);
	return r < 0 ? r : read_part(&c->b, s->tail_fd, tail, err);
}

/* --- output -------------------------------------------------------------------------------------
 */

/* All of it or nothing; after the first piece that did not fit nothing more comes. */
static void put_piece(struct tree_diff *d, const struct buf *piece)
{
	if (d->truncated || piece->len > d->end - d->out->len) {
		d->truncated = true;
		return;
	}
	buf_put(d->out, buf_str(piece), piece->len);
}

static void put_header(
	struct buf *h, const char *prefix, const struct diff_side *a, const struct diff_side *b)
{
	buf_puts(h, "diff --git ");
	git_quote(h, "a/", prefix, a->path ? a->path : b->path);
	buf_putc(h, ' ');
	git_quote(h, "b/", prefix, b->path ? b->path : a->path);
	buf_putc(h, '\n');
	if (!a->path)
		buf_printf(h, "new file mode %o\n", (unsigned)b->mode);
	else if (!b->path)
		buf_printf(h, "deleted file mode %o\n", (unsigned)a->mode);
	else if (a->mode != b->mode)
		buf_printf(h, "old mode %o\nnew mode %o\n", (unsigned)a->mode, (unsigned)b->mode);
	if (a->path && b->path && strcmp(a->path, b->path) != 0) {
		buf_puts(h, "rename from ");
		git_quote(h, "", prefix, a->path);
		buf_puts(h, "\nrename to ");
		git_quote(h, "", prefix, b->path);
		buf_putc(h, '\n');
	}
}

static void put_name(struct buf *b, const char *lead, const char *prefix, const struct diff_side *s)
{
	if (s->path)
		git_quote(b, lead, prefix, s->path);
	else
		buf_puts(b, "/dev/null");
}

static int put_text(struct tree_diff *d, const char *prefix, const struct diff_side *a,
	const struct diff_side *b, const struct content *x, const struct content *y,
	struct err *err)
{
	bool cut = false;
	_cleanup_buf_ struct buf na = buf_init(NAME_MAX_BYTES), nb = buf_init(NAME_MAX_BYTES);
	put_name(&na, "a/", prefix, a);
	put_name(&nb, "b/", prefix, b);
	if (x->too_large || y->too_large) {
		_cleanup_buf_ struct buf note = buf_init(4 * NAME_MAX_BYTES);
		buf_printf(&note, "Files %s and %s differ (too large to compare)\n", buf_str(&na),
			buf_str(&nb));
		put_piece(d, &note);
		return buf_check(&note, "a path", err);
	}
	struct textdiff_options opt = {.name_a = buf_str(&na),
		.name_b = buf_str(&nb),
		.context = d->context,
		.max_bytes = d->end - d->out->len};
	int r = textdiff((struct str){buf_str(&x->b), x->b.len},
		(struct str){buf_str(&y->b), y->b.len}, &opt, d->out, &cut, err);
	d->truncated = d->truncated || cut;
	return r;
}

static bool is_same(const struct diff_side *a, const struct diff_side *b, const struct content *x,
	const struct content *y)
{
	return a->path && b->path && strcmp(a->path, b->path) == 0 && a->mode == b->mode &&
	       !x->too_large && !y->too_large &&
	       str_eq((struct str){buf_str(&x->b), x->b.len},
		       (struct str){buf_str(&y->b), y->b.len});
}

int treediff_file(struct tree_diff *d, const char *prefix, const struct diff_side *a,
	const struct diff_side *b, bool *ret_same, struct err *err)
{
	int r;
	_cleanup_(content_done) struct content x = {0}, y = {0};
	_cleanup_buf_ struct buf head = buf_init(8 * NAME_MAX_BYTES);
	if ((r = content_of(a, &x, err)) < 0 || (r = content_of(b, &y, err)) < 0)
		return r;
	bool same = is_same(a, b, &x, &y);
	if (ret_same)
		*ret_same = same;
	if (same)
		return 0;
	put_header(&head, prefix, a, b);
	put_piece(d, &head);
	if ((r = buf_check(&head, "a path", err)) < 0 || d->truncated)
		return r;
	return put_text(d, prefix, a, b, &x, &y, err);
}

void treediff_note(struct tree_diff *d, const char *what, const char *prefix, const char *path)
{
	_cleanup_buf_ struct buf b = buf_init(2 * NAME_MAX_BYTES);
	buf_printf(&b, "%s ", what);
	git_quote(&b, "", prefix, path);
	buf_putc(&b, '\n');
	put_piece(d, &b);
}
