/* What is said around a fence, and git's files in it: the first byte says which reader gets the
 * rest. */
#include "sandbox/gitguard.h"
#include "sandbox/protocol.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile size_t sink;

static void read_request(const char *p, size_t n)
{
	static const char *words[FENCE_WORDS_MAX + 2];
	struct fence_request q;
	struct err err;
	if (fence_request_get(p, n, &q, words, &err) < 0)
		return;
	sink += strlen(q.cwd);
	for (unsigned i = 0; q.argv[i]; i++)
		sink += strlen(q.argv[i]);
	for (unsigned i = 0; q.envp[i]; i++)
		sink += strlen(q.envp[i]);
}

static void read_entries(const char *p, size_t n)
{
	struct fence_entries in;
	struct fence_entry e;
	struct err err;
	size_t repository;
	if (fence_entries_open(p, n, &in, &err) < 0)
		return;
	while (fence_entry_get(&in, &e, &err) == 1) {
		sink += git_part_of(e.path, &repository);
		if (repository > e.path.n || memmem(e.path.p, e.path.n, "/../", 4))
			abort();
		sink += git_pointer_inside(e.path, e.target);
	}
}

/* A configuration never does harm against itself, unless it is not plain. */
static void read_config(const char *p, size_t n)
{
	struct str text = {p, n}, nothing = {"", 0};
	bool alone = git_config_harmless(nothing, text);
	if (alone && !git_config_harmless(text, text))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err err;
	struct fence_report m;
	if (size == 0)
		return 0;
	/* A copy of exactly this size, so that reading behind its end is found. */
	char *p = malloc(size);
	if (!p)
		return 0;
	memcpy(p, data + 1, size - 1);
	switch (data[0] & 3) {
	case 0: read_request(p, size - 1); break;
	case 1: read_entries(p, size - 1); break;
	case 2: sink += fence_report_get(p, size - 1, &m, &err) == 0; break;
	default: read_config(p, size - 1); break;
	}
	free(p);
	return 0;
}
