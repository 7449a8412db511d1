/* The journal's readers: arbitrary bytes as a line that is a record, a seal, and as a whole
 * segment. What is accepted is written again and must be the same bytes, since a record has one
 * spelling. */
#include "journal/jlog.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile size_t sink;

static void read_record(struct str line)
{
	static struct jrecord_memory memory;
	static struct jrecord r;
	struct err err;
	if (jrecord_read(line, &memory, &r, &err) < 0)
		return;
	_cleanup_buf_ struct buf again = buf_init(2 * JRECORD_LINE_MAX);
	/* A line may be read that is longer than what is ever written. */
	if (jrecord_write(&r, &again, &err) < 0) {
		BUG_ON(err.code != ERR_LIMIT);
		return;
	}
	BUG_ON(again.len != line.n + 1 || memcmp(again.data, line.p, line.n) != 0);
	BUG_ON(jrecord_seq(line) != r.seq);
}

static void walk(const char *p, size_t n)
{
	struct jwalk w = {.segment = 0};
	struct jwalk_line line;
	struct err err;
	jwalk_segment(&w, 1);
	while (n > 0) {
		const char *nl = memchr(p, '\n', n);
		size_t len = nl ? (size_t)(nl + 1 - p) : n;
		if (!nl || jwalk_line(&w, (struct str){p, len}, &line, &err) < 0)
			return;
		sink += (size_t)w.seq;
		p += len;
		n -= len;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct jseal seal;
	struct err err;
	struct str line = {(const char *)data, size};
	read_record(line);
	sink += jseal_read(line, &seal, &err) == 0;
	walk(line.p, line.n);
	return 0;
}
