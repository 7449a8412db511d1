/* Records of the store: arbitrary bytes as a frame, and as the body of a frame whose checksum is
 * right. */
#include "base/sha256.h"
#include "workspace/record.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile size_t sink;

static void read_all(const uint8_t *frame, size_t n)
{
	struct err err;
	struct record_reader r;
	struct record_change c;
	if (record_open(&r, frame, n, &err) < 0)
		return;
	sink += strlen(r.head.call_id) + strlen(r.head.label);
	for (unsigned i = 0; i < r.head.n_mounts; i++)
		sink += strlen(r.head.mounts[i]);
	while (record_next(&r, &c, &err) == 1)
		sink += strlen(c.path) + strlen(c.from) + strlen(c.saved) + strlen(c.target);
}

static void put32(uint8_t *p, size_t v)
{
	for (unsigned i = 0; i < 4; i++)
		p[i] = (uint8_t)(v >> (8 * i));
}

/* The first byte is the type, the rest the body. */
static void read_sealed(const uint8_t *data, size_t size)
{
	size_t body = size - 1, n = RECORD_HEAD + body + RECORD_TAIL;
	uint8_t *f = calloc(1, n);
	struct sha256 h;
	struct sha256_ctx *c = sha256_start();
	if (f && c) {
		put32(f, 0x31524c43);
		f[4] = data[0];
		f[5] = 1;
		put32(f + 8, body);
		memcpy(f + RECORD_HEAD, data + 1, body);
		put32(f + n - RECORD_TAIL, n);
		sha256_add(c, f, 12);
		sha256_add(c, f + RECORD_HEAD, n - RECORD_HEAD);
		sha256_finish(c, &h);
		memcpy(f + 12, h.b, 8);
		read_all(f, n);
	}
	free(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err err;
	size_t len;
	read_all(data, size);
	sink += record_length(data, size, &len, &err) < 0;
	sink += record_length_back(data, size, &len, &err) < 0;
	if (size > 0 && size < 1 << 20)
		read_sealed(data, size);
	return 0;
}
