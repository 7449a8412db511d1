/*
 * The measuring harness: every figure is a ratio against a peer or a floor measured in the same
 * run.
 *
 * Machines are shared and noisy, so the things to compare are run in turn, round by round (A B C A
 * B C ...), each round for a small batch, and medians are compared. Latencies are taken with the
 * whole process tree pinned to one CPU.
 *
 *     struct bench b = bench_begin("file_write", argc, argv);
 *     unsigned floor = bench_add(&b, "plain write", plain, &ctx), ours = bench_add(&b,
 * "file_write", call, &ctx); bench_run(&b, 200, 10); bench_ratio(&b, ours, floor, 1.3); return
 * bench_end(&b);
 */
#ifndef CLOISTER_BENCH_HARNESS_H
#define CLOISTER_BENCH_HARNESS_H

#include <stdbool.h>
#include <stdint.h>

enum { BENCH_CASES_MAX = 16, BENCH_ROUNDS_MAX = 100000 };

/* One operation. Returns 0, or -1 when it failed (the benchmark then ends with an error). */
typedef int (*bench_fn)(void *ctx);

struct bench_case {
	const char *name;
	bench_fn fn;
	void *ctx;
	double *ns; /* one value per round: nanoseconds per operation */
	unsigned rounds;
};

struct bench {
	const char *name;
	struct bench_case cases[BENCH_CASES_MAX];
	unsigned n;
	bool failed;
};

struct bench bench_begin(const char *name);
unsigned bench_add(struct bench *b, const char *name, bench_fn fn, void *ctx);

/* Run every case once to warm up, then `rounds` rounds of `batch` operations each, in turn. */
void bench_run(struct bench *b, unsigned rounds, unsigned batch);

/* Quantile (0..1) of a case in nanoseconds per operation. */
double bench_ns(const struct bench *b, unsigned id, double quantile);

/* Print "ours / base = x (bar <= y): met|missed". A missed bar does not fail the run: it is a
 * figure, not a test. */
void bench_ratio(struct bench *b, unsigned ours, unsigned base, double bar);

/* Print "ours - base = x us (bar <= y us)" at a quantile. */
void bench_over(struct bench *b, unsigned ours, unsigned base, double quantile, double bar_us);

/* Print the table of all cases; free; exit status. */
int bench_end(struct bench *b);

/* Pin this process (and what it starts later) to the CPU it is running on. */
void bench_pin(void);

/* Proportional set size of a process and all below it, in bytes; -1 when it cannot be read. */
int64_t bench_tree_pss(int pid);

double bench_now_ns(void);

#endif
