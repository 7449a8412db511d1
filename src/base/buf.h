/*
 * A growable byte buffer with a maximum from birth.
 *
 * Invariants: data[len] is always NUL (so text can be used as a C string); len <= max; growth past
 * max or a failed allocation sets `failed` and leaves the content as it was. Appending to a failed
 * buffer does nothing, so a chain of appends needs one check at its end:
 *
 *     struct buf b = buf_init(64 * 1024);
 *     buf_put(&b, p, n); buf_printf(&b, "%d", i);
 *     if ((r = buf_check(&b, "the listing", err)) < 0) ...
 */
#ifndef CLOISTER_BASE_BUF_H
#define CLOISTER_BASE_BUF_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

struct buf {
	char *data; /* NULL until the first append; owned */
	size_t len, cap, max;
	bool failed, no_memory; /* no_memory: that is why it failed */
};

/* An empty buffer that may hold at most `max` bytes. */
static inline struct buf buf_init(size_t max)
{
	return (struct buf){.max = max};
}

void buf_done(struct buf *b);  /* free; the buffer is empty and usable again */
void buf_clear(struct buf *b); /* forget the content, keep the memory */

/* The content as a C string; "" when empty. Borrowed until the next change. */
const char *buf_str(const struct buf *b);

/* Room for `n` more bytes: a pointer to write to, or NULL (then the buffer has failed).
 * buf_grew() says how many of them were used. */
char *buf_room(struct buf *b, size_t n);
void buf_grew(struct buf *b, size_t n);

void buf_put(struct buf *b, const void *p, size_t n);
void buf_puts(struct buf *b, const char *s);
void buf_putc(struct buf *b, char c);
void buf_printf(struct buf *b, const char *fmt, ...) _printf_(2, 3);

/* 0, or ERR_LIMIT naming `what` and the maximum, or ERR_NO_MEMORY. */
int buf_check(const struct buf *b, const char *what, struct err *err) _must_check_;

/* Move the content out as a malloc()ed, NUL-terminated string; the buffer is empty afterwards. */
char *buf_take(struct buf *b, size_t *ret_len);

#define _cleanup_buf_ _cleanup_(buf_done)

#endif
