/* The redo log: arbitrary bytes as the log, and as an intent whose digest (and whose record's
 * checksum) is right, so that what lies behind them is reached. What is read is touched to its last
 * byte. */
#include "sys/fs.h"
#include "workspace/engine.h"
#include "workspace/redo.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Where things are in an intent (redo.h) and in a record (record.h). */
enum {
	AT_LENGTH = 8,
	AT_RECORD_LEN = 64,
	AT_DIGEST = 72,
	HEAD = AT_DIGEST + SHA256_LEN,
	AT_CHECKSUM = 12,
	CHECKSUM = 8,
	INPUT_MAX = 1 << 20,
};

static volatile size_t sink;

static struct workspace *workspace(void)
{
	static char agent[] = "/workspace", other[] = "/data";
	static struct workspace ws = {.n_mounts = 2};
	ws.mounts[0] =
		(struct mount){.agent = agent, .agent_len = sizeof(agent) - 1, .root_fd = -1};
	ws.mounts[1] = (struct mount){
		.agent = other, .agent_len = sizeof(other) - 1, .root_fd = -1, .read_only = true};
	return &ws;
}

static void touch(const struct intent *in)
{
	for (unsigned i = 0; i < in->n_steps; i++) {
		const struct step *s = &in->steps[i];
		char name[STEP_NAME];
		step_saved_name(in->seq, s, name);
		sink += strlen(s->path) + strlen(s->from) + strlen(s->target) + strlen(name);
		for (size_t j = 0; j < s->data.n; j++)
			sink += (unsigned char)s->data.p[j];
		if (s->mount != 0 || s->index != i)
			abort();
	}
	sink += strlen(in->head.call_id) + strlen(in->head.tool) + strlen(in->head.turn);
}

static void read_log(const uint8_t *log, size_t n)
{
	static int fd = -1;
	struct err err;
	struct intent in = {0};
	if (fd < 0)
		fd = memfd_create("redo", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, 0) < 0 || fs_write(fd, log, n, 0) < 0)
		abort();
	struct store s = {.log_fd = fd};
	if (intent_read(workspace(), &s, 0, &in, &err) < 0)
		return;
	touch(&in);
	intent_done(&in);
}

static void seal_record(uint8_t *record, size_t n)
{
	struct sha256 h;
	sha256_of_two(record, AT_CHECKSUM, record + RECORD_HEAD, n - RECORD_HEAD, &h);
	memcpy(record + AT_CHECKSUM, h.b, CHECKSUM);
}

/* The input as an intent whose lengths and sums are put right. */
static void read_sealed(const uint8_t *data, size_t size)
{
	struct sha256 h;
	uint64_t length = size;
	uint32_t record;
	uint8_t *log = malloc(size);
	if (!log)
		return;
	memcpy(log, data, size);
	memcpy(log + AT_LENGTH, &length, sizeof(length));
	memcpy(&record, log + AT_RECORD_LEN, sizeof(record));
	if (record >= RECORD_HEAD + RECORD_TAIL && record <= size - HEAD)
		seal_record(log + HEAD, record);
	memset(log + AT_DIGEST, 0, SHA256_LEN);
	sha256_of(log, size, &h);
	memcpy(log + AT_DIGEST, h.b, SHA256_LEN);
	read_log(log, size);
	free(log);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size > INPUT_MAX)
		return 0;
	read_log(data, size);
	if (size >= HEAD)
		read_sealed(data, size);
	return 0;
}
