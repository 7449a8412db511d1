/*
 * Reading a file as text, in windows, in constant memory.
 *
 * Content goes straight into a JSON string under construction (the caller has written the opening
 * quote and writes the closing one), so a large file is never held twice.
 */
#ifndef CLOISTER_WORKSPACE_TEXT_READ_H
#define CLOISTER_WORKSPACE_TEXT_READ_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

/* ENCODING(NAME, "word") */
#define ENCODINGS(ENCODING)                                                                        \
	ENCODING(UTF8, "utf-8")                                                                    \
	ENCODING(ASCII, "ascii")                                                                   \
	ENCODING(LATIN1, "latin-1")                                                                \
	ENCODING(BASE64, "base64")

enum encoding {
#define ENCODING(name, word) ENCODING_##name,
	ENCODINGS(ENCODING)
#undef ENCODING
		ENCODING_MAX_,
};

/* The encoding of a word, or ENCODING_MAX_. */
enum encoding encoding_parse(const char *word);

struct text_window {
	enum encoding encoding;
	bool by_line;       /* offset and limit count lines (never with base64), else bytes */
	uint64_t offset;    /* by line: from 1, the first line; by byte: from 0 */
	uint64_t limit;     /* at most so many lines or bytes; 0: to the end */
	uint64_t max_bytes; /* at most so many bytes of the file in the answer; a window that needs
			       more ends early */
	int64_t max_file;   /* ERR_TOO_LARGE for a larger file */
};

struct text_read {
	uint64_t bytes;       /* of the file, in this window */
	uint64_t total_lines; /* by line only; a last line without an end counts */
	uint64_t lines;       /* in this window */
	uint64_t next_offset; /* where the next window begins; 0: this was the end */
};

/*
 * Append the window of an open regular file that has `size` bytes (what is beyond is not read; what
 * is missing by now ends it). Errors: ERR_ENCODING naming the offset and what to use
 * instead, ERR_TOO_LARGE, ERR_LIMIT (the buffer), ERR_IO. On failure the buffer's content is
 * undefined.
 */
int text_read(int fd, int64_t size, const struct text_window *w, struct buf *out,
	struct text_read *ret, struct err *err) _must_check_;

/* Append base64 (RFC 4648 §4) of bytes. */
void base64_put(struct buf *b, const void *p, size_t n, bool last);

#endif
