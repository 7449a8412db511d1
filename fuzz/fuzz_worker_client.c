/*
 * Everything that a worker can say to core after a job: the first byte chooses the job, the rest is
 * packets, each after its 16-bit length. Whatever comes, the job ends in an answer within its
 * limits, in an error, or goes on waiting.
 */
#include "daemon/tree_internal.h"
#include "sys/process.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct search_place place = {0, {"", 0}};

static struct worker_job job_of(uint8_t kind, int content)
{
	if (kind % 3 == 0)
		return (struct worker_job){.kind = WORK_SEARCH,
			.search = {.roots = &place,
				.n_roots = 1,
				.pattern = STR("x"),
				.before = 2,
				.after = 2,
				.max_results = 4}};
	if (kind % 3 == 1)
		return (struct worker_job){.kind = WORK_REGEX_REPLACE,
			.replace = {.content_fd = content,
				.pattern = STR("x"),
				.replacement = STR("y"),
				.max_output = 64}};
	return (struct worker_job){
		.kind = WORK_YAML, .yaml = {.content_fd = -1, .bytes = STR("x"), .max_output = 64}};
}

static void check_search(const struct worker_answer *a)
{
	if (a->search.stats.hits > 4)
		abort();
	for (uint64_t i = 0; i < a->search.stats.hits; i++) {
		const struct search_hit *h = &a->search.hits[i];
		size_t sum = h->path.n + h->text.n;
		for (unsigned k = 0; k < h->n_before; k++)
			sum += h->before[k].n && h->before[k].p[h->before[k].n - 1];
		for (unsigned k = 0; k < h->n_after; k++)
			sum += h->after[k].n && h->after[k].p[h->after[k].n - 1];
		if (h->root != 0 || h->n_before > 2 || h->n_after > 2 || sum > 10000)
			abort();
	}
}

static void send_packets(int peer, const uint8_t *data, size_t size)
{
	struct err err;
	while (size >= 2) {
		size_t n = (size_t)data[0] | (size_t)data[1] << 8;
		data += 2;
		size -= 2;
		n = MIN(n, size);
		if (n && packet_send(peer, data, n, NULL, 0, false, &err) < 0)
			return;
		data += n;
		size -= n;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err err;
	struct worker *w;
	struct worker_answer *a = NULL;
	uint64_t id;
	int pair[2];
	static int content = -1;
	if (content < 0)
		content = memfd_create("content", MFD_CLOEXEC);
	if (size == 0 || packet_pair(pair, &err) < 0 || client_over(pair[0], 7, &w, &err) < 0)
		return 0;
	const struct worker_job job = job_of(data[0], content);
	if (worker_submit(w, &job, &id, &err) == 0) {
		send_packets(pair[1], data + 1, size - 1);
		if (worker_take(w, id, &a, &err) == 1 && a->kind == WORK_SEARCH)
			check_search(a);
		worker_answer_free(a);
	}
	worker_free(w);
	(void)close(pair[1]);
	return 0;
}
