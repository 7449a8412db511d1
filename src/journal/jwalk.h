/*
 * Walking over the lines of the log from a known head: what the writer does to catch up, what
 * verifying does over everything, what showing does.
 *
 * A segment is a file `NNNNNNNN.log`, numbered from 1. Its first line is
 *
 *   # cloister-journal 1 SEGMENT SEQ HEAD TIME
 *
 * with the position behind the segment before it. Groups follow: records (lines that begin with
 * `{`) and then their seal (jseal.h). Every line, header and seal too, is part of the chain.
 */
#ifndef CLOISTER_JOURNAL_JWALK_H
#define CLOISTER_JOURNAL_JWALK_H

#include "journal/jrecord.h"
#include "journal/jseal.h"

enum {
	JWALK_SEGMENTS_MAX = 99999999,
	JWALK_NAME = 16, /* of a segment, with its NUL */
	JWALK_CHUNK = 1024 * 1024,
	JWALK_HEADER_MAX = 192,
};

/* --- lines of a file --- */

struct jlines {
	int fd;                    /* borrowed */
	int64_t at, end;           /* of the next byte to read; where reading stops */
	int64_t line_at;           /* where the last line began */
	size_t from, to, searched; /* in `data` */
	char *data;                /* JWALK_CHUNK + JRECORD_LINE_MAX bytes; owned */
};

/* `at` is the start of a line. */
int jlines_open(struct jlines *l, int fd, int64_t at, int64_t end, struct err *err) _must_check_;
void jlines_done(struct jlines *l);
/* 1: a line with its newline, borrowed until the next. 0: the end; *ret is what has no newline.
 * ERR_CORRUPT: a line that is too long; ERR_IO. */
int jlines_next(struct jlines *l, struct str *ret, struct err *err) _must_check_;

/* --- the walk --- */

enum jwalk_kind { JWALK_HEADER, JWALK_RECORD, JWALK_SEAL };

struct jwalk {
	uint32_t segment; /* the one that is walked over; 0: none yet */
	uint64_t seq;     /* of the last record */
	struct jchain chain;
	bool started;      /* chain and seq are known; else the next header says them */
	bool at_header;    /* a header has to come next */
	unsigned unsealed; /* records since the last seal */
	uint64_t time_ms;  /* of the last seal or header */
};

struct jwalk_line {
	enum jwalk_kind kind;
	uint64_t seq;      /* of a record */
	struct jseal seal; /* borrowed from the line */
};

/* The next segment is `number`. */
void jwalk_segment(struct jwalk *w, uint32_t number);
/* One line with its newline: it is checked against the walk and becomes part of it. ERR_CORRUPT. */
int jwalk_line(
	struct jwalk *w, struct str line, struct jwalk_line *ret, struct err *err) _must_check_;

/* Append the header of a segment; the walk is at its end afterwards. */
void jwalk_header(struct jwalk *w, uint32_t number, uint64_t time_ms, struct buf *out);

void jwalk_name(uint32_t segment, char ret[JWALK_NAME]);
/* First and last segment of a log directory; both 0 when there is none. ERR_IO. */
int jwalk_segments(
	int dir_fd, uint32_t *ret_first, uint32_t *ret_last, struct err *err) _must_check_;
/* ERR_NOT_FOUND, ERR_IO. */
int jwalk_open(int dir_fd, uint32_t segment, int flags, int *ret_fd, struct err *err) _must_check_;

#endif
