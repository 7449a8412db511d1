/* A growable byte buffer with a maximum from birth: see buf.h. */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void buf_done(struct buf *b)
{
	free(b->data);
	*b = buf_init(b->max);
}

void buf_clear(struct buf *b)
{
	b->len = 0;
	b->failed = b->no_memory = false;
	if (b->data)
		b->data[0] = '\0';
}

const char *buf_str(const struct buf *b)
{
	return b->data ? b->data : "";
}

char *buf_room(struct buf *b, size_t n)
{
	if (b->failed)
		return NULL;
	if (n > b->max - b->len) {
		b->failed = true;
		return NULL;
	}
	if (n >= b->cap - b->len || b->cap == 0) {
		size_t want = MAX(b->len + n + 1, MIN(b->cap * 2, b->max + 1));
		char *p = realloc(b->data, MAX(want, (size_t)64));
		if (!p) {
			b->failed = b->no_memory = true;
			return NULL;
		}
		b->data = p;
		b->cap = MAX(want, (size_t)64);
	}
	return b->data + b->len;
}

void buf_grew(struct buf *b, size_t n)
{
	BUG_ON(n >= b->cap - b->len);
	b->len += n;
	b->data[b->len] = '\0';
}

void buf_put(struct buf *b, const void *p, size_t n)
{
	char *to = buf_room(b, n);
	if (!to)
		return;
	if (n)
		memcpy(to, p, n);
	buf_grew(b, n);
}

void buf_puts(struct buf *b, const char *s)
{
	buf_put(b, s, strlen(s));
}

void buf_putc(struct buf *b, char c)
{
	buf_put(b, &c, 1);
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
	char small[256];
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(small, sizeof(small), fmt, ap);
	va_end(ap);
	if (n >= 0 && (size_t)n < sizeof(small)) {
		buf_put(b, small, (size_t)n);
		return;
	}
	char *to = n < 0 ? NULL : buf_room(b, (size_t)n);
	if (!to) {
		b->failed = true;
		return;
	}
	va_start(ap, fmt);
	(void)vsnprintf(to, (size_t)n + 1, fmt, ap);
	va_end(ap);
	buf_grew(b, (size_t)n);
}

int buf_check(const struct buf *b, const char *what, struct err *err)
{
	if (!b->failed)
		return 0;
	if (b->no_memory)
		return err_oom(err);
	return err_set(err, ERR_LIMIT, "%s is larger than %zu bytes", what, b->max);
}

char *buf_take(struct buf *b, size_t *ret_len)
{
	if (b->failed || (!b->data && !buf_room(b, 0)))
		return NULL;
	b->data[b->len] = '\0';
	if (ret_len)
		*ret_len = b->len;
	char *p = take_ptr(b->data);
	*b = buf_init(b->max);
	return p;
}
