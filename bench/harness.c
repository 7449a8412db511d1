/* The measuring harness: see harness.h. */
#include "harness.h"

#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

double bench_now_ns(void)
{
	struct timespec t;
	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

struct bench bench_begin(const char *name)
{
	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	return (struct bench){.name = name};
}

unsigned bench_add(struct bench *b, const char *name, bench_fn fn, void *ctx)
{
	if (b->n == BENCH_CASES_MAX)
		abort();
	b->cases[b->n] = (struct bench_case){.name = name, .fn = fn, .ctx = ctx};
	return b->n++;
}

static bool run_batch(struct bench *b, struct bench_case *c, unsigned batch)
{
	double start = bench_now_ns();
	for (unsigned i = 0; i < batch; i++)
		if (c->fn(c->ctx) < 0) {
			printf("%s: %s failed\n", b->name, c->name);
			b->failed = true;
			return false;
		}
	c->ns[c->rounds++] = (bench_now_ns() - start) / batch;
	return true;
}

void bench_run(struct bench *b, unsigned rounds, unsigned batch)
{
	for (unsigned i = 0; i < b->n; i++) {
		b->cases[i].ns = calloc(rounds + 1, sizeof(double));
		if (!b->cases[i].ns)
			abort();
		if (!run_batch(b, &b->cases[i], batch))
			return;
		b->cases[i].rounds = 0;
	}
	for (unsigned r = 0; r < rounds; r++)
		for (unsigned i = 0; i < b->n; i++)
			if (!run_batch(b, &b->cases[i], batch))
				return;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

double bench_ns(const struct bench *b, unsigned id, double quantile)
{
	const struct bench_case *c = &b->cases[id];
	if (c->rounds == 0)
		return 0;
	double *sorted = malloc(c->rounds * sizeof(double));
	if (!sorted)
		abort();
	memcpy(sorted, c->ns, c->rounds * sizeof(double));
	qsort(sorted, c->rounds, sizeof(double), by_value);
	double value = sorted[(unsigned)((double)(c->rounds - 1) * quantile)];
	free(sorted);
	return value;
}

/* The median of the ratios round by round: what drifts with the machine drifts in both. */
static double paired_ratio(const struct bench *b, unsigned ours, unsigned base)
{
	unsigned n = b->cases[ours].rounds;
	double *ratios = malloc((n + 1) * sizeof(double)), value;
	if (n == 0)
		abort();
	if (!ratios)
		abort();
	for (unsigned i = 0; i < n; i++)
		ratios[i] = b->cases[ours].ns[i] / b->cases[base].ns[i];
	qsort(ratios, n, sizeof(double), by_value);
	value = ratios[n / 2];
	free(ratios);
	return value;
}

void bench_ratio(struct bench *b, unsigned ours, unsigned base, double bar)
{
	if (b->failed)
		return;
	double ratio = paired_ratio(b, ours, base);
	printf("%s: %s / %s = %.2f (bar <= %.2f): %s\n", b->name, b->cases[ours].name,
		b->cases[base].name, ratio, bar, ratio <= bar ? "met" : "missed");
}

void bench_over(struct bench *b, unsigned ours, unsigned base, double quantile, double bar_us)
{
	if (b->failed)
		return;
	double us = (bench_ns(b, ours, quantile) - bench_ns(b, base, quantile)) / 1000;
	printf("%s: %s - %s at p%.0f = %.1f us (bar <= %.1f us): %s\n", b->name,
		b->cases[ours].name, b->cases[base].name, quantile * 100, us, bar_us,
		us <= bar_us ? "met" : "missed");
}

int bench_end(struct bench *b)
{
	printf("%-32s %12s %12s %12s\n", b->name, "min us", "p50 us", "p99 us");
	for (unsigned i = 0; i < b->n; i++) {
		printf("%-32s %12.2f %12.2f %12.2f\n", b->cases[i].name, bench_ns(b, i, 0) / 1000,
			bench_ns(b, i, 0.5) / 1000, bench_ns(b, i, 0.99) / 1000);
		free(b->cases[i].ns);
	}
	return b->failed ? 1 : 0;
}

void bench_pin(void)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	int cpu = sched_getcpu();
	CPU_SET(cpu < 0 ? 0 : cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		printf("bench: cannot pin to one CPU\n");
}

static int64_t pss_of(int pid)
{
	char path[64], line[256];
	long kb = -1;
	(void)snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", pid);
	FILE *f = fopen(path, "re");
	if (!f)
		return -1;
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "Pss: %ld kB", &kb) == 1)
			break;
	(void)fclose(f);
	return kb < 0 ? -1 : (int64_t)kb * 1024;
}

static int parent_of(int pid)
{
	char path[64], line[512];
	int parent = -1;
	(void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	FILE *f = fopen(path, "re");
	if (!f)
		return -1;
	/* The name stands in parentheses and may hold anything, so what follows its last one is
	 * read. */
	if (fgets(line, sizeof(line), f) && strrchr(line, ')'))
		(void)sscanf(strrchr(line, ')'), ") %*c %d", &parent);
	(void)fclose(f);
	return parent;
}

static bool is_below(int pid, int top)
{
	for (int steps = 0; pid > 1 && steps < 64; steps++) {
		if (pid == top)
			return true;
		pid = parent_of(pid);
	}
	return false;
}

int64_t bench_tree_pss(int pid)
{
	int64_t sum = 0;
	struct dirent *e;
	DIR *proc = opendir("/proc");
	if (!proc)
		return -1;
	while ((e = readdir(proc))) {
		int other = (int)strtol(e->d_name, NULL, 10);
		if (other > 0 && is_below(other, pid)) {
			int64_t pss = pss_of(other);
			sum += pss > 0 ? pss : 0;
		}
	}
	(void)closedir(proc);
	return sum;
}
