/*
 * One captured stream: its beginning and its end within a limit, and how much was left out between.
 */
#ifndef CLOISTER_SANDBOX_OUTPUT_H
#define CLOISTER_SANDBOX_OUTPUT_H

#include "base/text.h"

struct output {
	struct buf head;
	char *ring;          /* the newest `part` bytes after the head; owned */
	size_t part;         /* what head and tail may hold each */
	size_t at;           /* where the next byte of the tail goes */
	int64_t tail, total; /* bytes that came after the head; altogether */
};

/* `keep`: bytes that are kept altogether. */
int output_init(struct output *o, size_t keep, struct err *err) _must_check_;
void output_done(struct output *o);
void output_put(struct output *o, const char *p, size_t n);

/* Append what was kept to `out`, cut at characters (a byte that belongs to none stays), with
 * a line saying what is missing in between; returns how many bytes that is. */
int64_t output_text(const struct output *o, struct buf *out);

#endif
