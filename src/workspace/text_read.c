/* Reading a file as text, in windows: see text_read.h. */
#include "workspace/text_read.h"

#include "codec/json_write.h"

#include <errno.h>

enum { PIECE = 64 * 1024, CARRY = 4 };

enum encoding encoding_parse(const char *word)
{
	static const char *const words[] = {
#define ENCODING(name, word) word,
		ENCODINGS(ENCODING)
#undef ENCODING
	};
	for (unsigned i = 0; i < ARRAY_LEN(words); i++)
		if (strcmp(word, words[i]) == 0)
			return (enum encoding)i;
	return ENCODING_MAX_;
}

struct reading {
	int fd;
	const struct text_window *w;
	struct buf *out;
	struct text_read *got;
	struct err *err;
	uint64_t at;       /* file offset of the next piece */
	char carry[CARRY]; /* the beginning of a character (or base64 group) that the piece before
			    * cut
			    */
	unsigned n_carry;
	uint64_t line;  /* number of the line that the next byte belongs to */
	bool line_open; /* some byte of that line was seen */
	bool done;      /* the window is full: only lines are counted from here on */
	char piece[];   /* PIECE and a carried beginning, or less for a small file */
};

/* --- encodings
 * ---------------------------------------------------------------------------------------- */

static int not_utf8(struct reading *rd, uint64_t at)
{
	(void)err_set(rd->err, ERR_ENCODING, "the file is not UTF-8 at byte %llu",
		(unsigned long long)at);
	return err_hint(rd->err, "use encoding base64 for bytes, or latin-1");
}

static int put_ascii(struct reading *rd, const char *p, size_t n, uint64_t at)
{
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)p[i] >= 0x80) {
			(void)err_set(rd->err, ERR_ENCODING, "the file is not ASCII at byte %llu",
				(unsigned long long)(at + i));
			return err_hint(rd->err, "use encoding utf-8, latin-1 or base64");
		}
	jw_escaped(rd->out, (struct str){p, n});
	return 0;
}

static void put_latin1(struct buf *out, const char *p, size_t n)
{
	size_t plain = 0;
	for (size_t i = 0; i < n; i++) {
		if ((unsigned char)p[i] < 0x80)
			continue;
		jw_escaped(out, (struct str){p + plain, i - plain});
		utf8_put(out, (unsigned char)p[i]);
		plain = i + 1;
	}
	jw_escaped(out, (struct str){p + plain, n - plain});
}

/* UTF-8 that may end inside a character: what is cut is carried to the next piece. */
static int put_utf8(struct reading *rd, const char *p, size_t n, uint64_t at, bool last)
{
	size_t whole = last ? n : utf8_floor(p, n);
	size_t good = utf8_error_at(p, whole);
	if (good < whole)
		return not_utf8(rd, at + good);
	jw_escaped(rd->out, (struct str){p, whole});
	rd->n_carry = (unsigned)(n - whole);
	memcpy(rd->carry, p + whole, n - whole);
	return 0;
}

void base64_put(struct buf *b, const void *bytes, size_t n, bool last)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned char *p = bytes;
	size_t i = 0;
	for (; n - i >= 3; i += 3) {
		uint32_t v = (uint32_t)p[i] << 16 | (uint32_t)p[i + 1] << 8 | p[i + 2];
		char out[4] = {
			digits[v >> 18], digits[v >> 12 & 63], digits[v >> 6 & 63], digits[v & 63]};
		buf_put(b, out, 4);
	}
	if (!last || i == n)
		return;
	uint32_t v = (uint32_t)p[i] << 16 | (n - i == 2 ? (uint32_t)p[i + 1] << 8 : 0);
	char out[4] = {
		digits[v >> 18], digits[v >> 12 & 63], n - i == 2 ? digits[v >> 6 & 63] : '=', '='};
	buf_put(b, out, 4);
}

/* Bytes that belong to the window, in order. `at` is the file offset of p[0]; a carried beginning
 * stands before it. */
static int put_bytes(struct reading *rd, const char *p, size_t n, uint64_t at, bool last)
{
	rd->n_carry = 0;
	switch (rd->w->encoding) {
	case ENCODING_UTF8: return put_utf8(rd, p, n, at, last);
	case ENCODING_ASCII: return put_ascii(rd, p, n, at);
	case ENCODING_LATIN1: put_latin1(rd->out, p, n); return 0;
	case ENCODING_BASE64: {
		size_t whole = last ? n : n - n % 3;
		base64_put(rd->out, p, whole, last);
		rd->n_carry = (unsigned)(n - whole);
		memcpy(rd->carry, p + whole, n - whole);
		return 0;
	}
	case ENCODING_MAX_: break;
	}
	return err_set(rd->err, ERR_INVALID_ARGUMENT, "no such encoding");
}

/* --- by bytes
 * ----------------------------------------------------------------------------------------- */

/* Fill the piece behind what is carried. *ret_n counts the carried bytes too. */
static int fill(struct reading *rd, size_t want, size_t *ret_n, bool *ret_end)
{
	memcpy(rd->piece, rd->carry, rd->n_carry);
	ssize_t n = pread(rd->fd, rd->piece + rd->n_carry, want, (off_t)rd->at);
	if (n < 0)
		return err_sys(rd->err, errno, "reading the file");
	rd->at += (uint64_t)n;
	*ret_n = rd->n_carry + (size_t)n;
	*ret_end = n == 0;
	return 0;
}

static int read_by_bytes(struct reading *rd, uint64_t size)
{
	uint64_t end = MIN(size,
		rd->w->max_bytes < UINT64_MAX - rd->at ? rd->at + rd->w->max_bytes : UINT64_MAX);
	if (rd->w->limit && rd->w->limit < end - MIN(end, rd->at))
		end = rd->at + rd->w->limit;
	while (rd->at < end) {
		size_t n;
		bool eof;
		uint64_t before = rd->at - rd->n_carry;
		int r = fill(rd, (size_t)MIN(end - rd->at, (uint64_t)PIECE), &n, &eof);
		if (r < 0 || eof)
			return r;
		/* A window that ends inside a character gives it to the next window, unless the
		 * file ends there. */
		bool last = rd->at >= size || (rd->w->encoding == ENCODING_BASE64 && rd->at >= end);
		if ((r = put_bytes(rd, rd->piece, n, before, last)) < 0)
			return r;
		rd->got->bytes += n - rd->n_carry;
	}
	uint64_t next = rd->at - rd->n_carry;
	if (next < size && rd->got->bytes == 0 && rd->n_carry > 0)
		return err_set(rd->err, ERR_INVALID_ARGUMENT,
			"the limit is smaller than the character at byte %llu",
			(unsigned long long)next);
	rd->got->next_offset = next < size ? next : 0;
	return 0;
}

/* --- by lines
 * ----------------------------------------------------------------------------------------- */

/* Does the line with this number belong to the window? */
static bool wanted(const struct reading *rd)
{
	uint64_t first = rd->w->offset ? rd->w->offset : 1;
	return !rd->done && rd->line >= first &&
	       (rd->w->limit == 0 || rd->line - first < rd->w->limit);
}

/* The line that begins here would make the answer too large: the window ends before it. A first
 * line that is too large by itself is an error, since no window could show it. */
static int check_budget(struct reading *rd, size_t n)
{
	if (rd->got->bytes + n <= rd->w->max_bytes)
		return 0;
	if (rd->got->lines == 0 || rd->line_open)
		return err_set(rd->err, ERR_TOO_LARGE, "line %llu alone is longer than %llu bytes",
			(unsigned long long)rd->line, (unsigned long long)rd->w->max_bytes);
	rd->done = true;
	rd->got->next_offset = rd->line;
	return 0;
}

/* One run of bytes of a single line, with its end when `ended`. */
static int take_run(struct reading *rd, const char *p, size_t n, uint64_t at, bool ended, bool last)
{
	int r = 0;
	if (wanted(rd) && n > 0) {
		if ((r = check_budget(rd, n)) < 0)
			return r;
		if (!rd->done) {
			/* A line end is never inside a character, so only a piece's end can cut
			 * one. */
			r = put_bytes(rd, p, n, at, ended || last);
			rd->got->bytes += n - rd->n_carry;
			rd->got->lines += !rd->line_open;
		}
	}
	rd->line_open = n > 0 || rd->line_open;
	if (ended) {
		rd->line++;
		rd->line_open = false;
	}
	return r;
}

static int take_piece(struct reading *rd, size_t n, uint64_t at, bool last)
{
	size_t i = 0;
	rd->n_carry = 0;
	while (i < n) {
		const char *end = memchr(rd->piece + i, '\n', n - i);
		size_t len = end ? (size_t)(end + 1 - (rd->piece + i)) : n - i;
		int r = take_run(rd, rd->piece + i, len, at + i, end != NULL, last);
		if (r < 0)
			return r;
		i += len;
	}
	return 0;
}

static int read_by_lines(struct reading *rd, uint64_t size)
{
	uint64_t first = rd->w->offset ? rd->w->offset : 1;
	rd->line = 1;
	while (rd->at < size) {
		size_t n;
		bool eof;
		uint64_t before = rd->at - rd->n_carry;
		unsigned carried = rd->n_carry;
		int r = fill(rd, (size_t)MIN(size - rd->at, (uint64_t)PIECE), &n, &eof);
		if (r < 0 || eof)
			return r;
		/* A carried beginning has opened its line already; it is counted again with the
		 * rest. */
		(void)carried;
		if ((r = take_piece(rd, n, before, rd->at >= size)) < 0)
			return r;
	}
	rd->got->total_lines = rd->line - 1 + rd->line_open;
	uint64_t next = first + rd->got->lines;
	if (!rd->done && rd->got->lines > 0 && next <= rd->got->total_lines)
		rd->got->next_offset = next;
	return 0;
}

int text_read(int fd, int64_t size, const struct text_window *w, struct buf *out,
	struct text_read *ret, struct err *err)
{
	struct text_read got = {0};
	if (size > w->max_file) {
		(void)err_set(err, ERR_TOO_LARGE, "the file has %lld bytes; at most %lld are read",
			(long long)size, (long long)w->max_file);
		return err_hint(err, "raise max_size_mb, or search it with file_search");
	}
	struct reading *rd = malloc(sizeof(*rd) + (size_t)MIN(size, (int64_t)PIECE) + CARRY);
	if (!rd)
		return err_oom(err);
	rd->fd = fd, rd->w = w, rd->out = out, rd->got = &got, rd->err = err;
	rd->at = w->by_line ? 0 : MIN(w->offset, (uint64_t)size);
	rd->n_carry = 0, rd->line_open = rd->done = false;
	int r = w->by_line ? read_by_lines(rd, (uint64_t)size) : read_by_bytes(rd, (uint64_t)size);
	free(rd);
	if (r == 0)
		r = buf_check(out, "the content", err);
	if (r == 0)
		*ret = got;
	return r;
}
