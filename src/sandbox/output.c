/* Keeping the head and the tail of a stream: see output.h. */
#include "sandbox/output.h"

int output_init(struct output *o, size_t keep, struct err *err)
{
	*o = (struct output){.part = keep / 2, .head = buf_init(keep / 2)};
	o->ring = malloc(MAX(o->part, (size_t)1));
	return o->ring ? 0 : err_oom(err);
}

void output_done(struct output *o)
{
	buf_done(&o->head);
	free(take_ptr(o->ring));
}

static void put_tail(struct output *o, const char *p, size_t n)
{
	o->tail += (int64_t)n;
	if (o->part == 0)
		return;
	if (n > o->part) {
		p += n - o->part;
		n = o->part;
	}
	size_t first = MIN(n, o->part - o->at);
	memcpy(o->ring + o->at, p, first);
	memcpy(o->ring, p + first, n - first);
	o->at = (o->at + n) % o->part;
}

void output_put(struct output *o, const char *p, size_t n)
{
	size_t room = o->part - o->head.len, head = MIN(n, room);
	o->total += (int64_t)n;
	if (o->tail == 0 && head > 0 && !o->head.failed)
		buf_put(&o->head, p, head);
	else
		head = 0;
	if (n > head)
		put_tail(o, p + head, n - head);
}

/* Where the first whole character begins, when at most three bytes before it belong to one that was
 * cut. */
static size_t first_character(const char *p, size_t n)
{
	size_t i = 0;
	while (i < n && i < 3 && ((unsigned char)p[i] & 0xc0) == 0x80)
		i++;
	return i;
}

int64_t output_text(const struct output *o, struct buf *out)
{
	size_t kept = (size_t)MIN(o->tail, (int64_t)o->part);
	if (kept == 0 || o->tail <= (int64_t)o->part) {
		/* Nothing is missing: the ring has not gone round. */
		buf_put(out, o->head.data, o->head.len);
		buf_put(out, o->ring, kept);
		return o->tail - (int64_t)kept;
	}
	size_t head = utf8_floor(buf_str(&o->head), o->head.len);
	_cleanup_free_ char *tail = malloc(kept);
	if (!tail) {
		out->failed = out->no_memory = true;
		return 0;
	}
	memcpy(tail, o->ring + o->at, o->part - o->at);
	memcpy(tail + (o->part - o->at), o->ring, o->at);
	size_t skip = first_character(tail, kept);
	int64_t missing = o->total - (int64_t)head - (int64_t)(kept - skip);
	buf_put(out, o->head.data, head);
	buf_printf(out, "\n[... %lld bytes are left out here ...]\n", (long long)missing);
	buf_put(out, tail + skip, kept - skip);
	return missing;
}
