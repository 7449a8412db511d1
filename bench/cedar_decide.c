/*
 * Cedar: what a decision costs, what loading costs, and that deciding allocates nothing.
 *
 *     bench_cedar_decide             all of it
 *     bench_cedar_decide --times N   N prepared decisions and no measuring, for callgrind
 *     bench_cedar_decide --input     the policies, entities and request as JSON, for a peer
 *     bench_cedar_decide --serve     for every line N of standard input: N decisions of JSON, and
 *                                    the nanoseconds of CPU they took
 *
 * The allocation counter is the linker's: malloc, calloc and realloc of the library go through the
 * wrappers below.
 */
#include "cedar/cedar.h"
#include "harness.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static unsigned long allocations;
static size_t allocated;

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);

void *__wrap_malloc(size_t n)
{
	allocations++;
	allocated += n;
	return __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
	allocations++;
	allocated += n * size;
	return __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
	allocations++;
	allocated += n;
	return __real_realloc(p, n);
}

/* Ten policies as a tool gate has them: scopes of every kind, conditions over attributes, sets,
 * patterns and extension values. */
static const char ten[] =
	"permit(principal in Role::\"developer\", action in [Action::\"read\", Action::\"write\"], "
	"resource in Path::\"/workspace\") when { context.size < 100000 && !resource.hidden };\n"
	"permit(principal, action == Action::\"list\", resource);\n"
	"forbid(principal, action, resource) when { resource.name like \"*.pem\" };\n"
	"forbid(principal, action == Action::\"write\", resource) unless { context.approved };\n"
	"permit(principal == Agent::\"a2\", action, resource is Path);\n"
	"forbid(principal, action, resource in Path::\"/workspace/.git\");\n"
	"permit(principal is Agent in Role::\"admin\", action, resource);\n"
	"forbid(principal, action == Action::\"read\", resource) when { "
	"[\"secret\", \"key\"].contains(resource.label) };\n"
	"permit(principal, action == Action::\"read\", resource) when { context has net && "
	"context.net.ip.isInRange(ip(\"10.0.0.0/8\")) };\n"
	"forbid(principal, action, resource) when { principal.suspended || principal.score < 5 "
	"};\n";

static const char entities_json[] =
	"[{\"uid\":{\"type\":\"Agent\",\"id\":\"a1\"},\"attrs\":{\"suspended\":false,\"score\":9},"
	"\"parents\":[{\"type\":\"Role\",\"id\":\"developer\"}]},"
	"{\"uid\":{\"type\":\"Path\",\"id\":\"/workspace/src/a.c\"},\"attrs\":{\"hidden\":false,"
	"\"name\":\"a.c\",\"label\":\"code\"},\"parents\":[{\"type\":\"Path\",\"id\":\"/"
	"workspace\"},"
	"{\"type\":\"Path\",\"id\":\"/workspace/src\"}]}]";

static const char request_json[] =
	"{\"principal\":{\"type\":\"Agent\",\"id\":\"a1\"},\"action\":{\"type\":\"Action\",\"id\":"
	"\"read\"},\"resource\":{\"type\":\"Path\",\"id\":\"/workspace/src/a.c\"},\"context\":{"
	"\"size\":4096,\"approved\":true,\"net\":{\"ip\":{\"__extn\":{\"fn\":\"ip\",\"arg\":"
	"\"10.1.2.3\"}}}}}";

struct gate {
	cedar_policies *policies;
	cedar_entities *entities;
	cedar_request *request;
	cedar_answer *answer;
	unsigned repeat;
};

static void must(int code, const struct cedar_error *err)
{
	if (code == 0)
		return;
	fprintf(stderr, "%u:%u: %s\n", err->line, err->column, err->text);
	exit(1);
}

static struct gate gate_open(const char *text, size_t n)
{
	struct gate g = {.repeat = 1};
	struct cedar_error err;
	must(cedar_policies_from_text(text, n, NULL, &g.policies, &err), &err);
	must(cedar_entities_from_json(
		     entities_json, strlen(entities_json), NULL, &g.entities, &err),
		&err);
	must(cedar_request_from_json(request_json, strlen(request_json), NULL, &g.request, &err),
		&err);
	g.answer = cedar_answer_new(NULL);
	return g;
}

static void gate_close(struct gate *g)
{
	cedar_answer_free(g->answer);
	cedar_request_free(g->request);
	cedar_entities_free(g->entities);
	cedar_policies_free(g->policies);
}

static int decide(void *ctx)
{
	struct gate *g = ctx;
	return cedar_decide(g->policies, g->entities, g->request, NULL, g->answer);
}

/* Entities and request come as JSON with each call, as a gateway gets them. */
static int decide_json(void *ctx)
{
	struct gate *g = ctx;
	cedar_entities *entities;
	cedar_request *request;
	if (cedar_entities_from_json(
		    entities_json, sizeof(entities_json) - 1, NULL, &entities, NULL) < 0 ||
		cedar_request_from_json(
			request_json, sizeof(request_json) - 1, NULL, &request, NULL) < 0)
		return -1;
	int code = cedar_decide(g->policies, entities, request, NULL, g->answer);
	cedar_request_free(request);
	cedar_entities_free(entities);
	return code;
}

static void print_escaped(const char *text)
{
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			(void)putchar('\\');
		if (*text == '\n')
			(void)fputs("\\n", stdout);
		else
			(void)putchar(*text);
	}
}

static int print_input(void)
{
	(void)fputs("{\"policies\":\"", stdout);
	print_escaped(ten);
	(void)printf("\",\"entities\":%s,\"request\":%s}\n", entities_json, request_json);
	return 0;
}

static int serve(struct gate *g)
{
	unsigned times;
	while (scanf("%u", &times) == 1) {
		struct timespec a, z;
		(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
		for (unsigned i = 0; i < times; i++)
			if (decide_json(g) < 0)
				return 1;
		(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &z);
		(void)printf("%lld\n",
			(long long)(z.tv_sec - a.tv_sec) * 1000000000 + (z.tv_nsec - a.tv_nsec));
		(void)fflush(stdout);
	}
	return 0;
}

/* What a decision costs in instructions is counted from outside, in cedar_decide(). */
static int only_decide(struct gate *g, unsigned times)
{
	for (unsigned i = 0; i < times; i++)
		if (decide(g) < 0)
			return 1;
	return 0;
}

static int run_mode(int argc, char **argv)
{
	struct gate g = gate_open(ten, sizeof(ten) - 1);
	int failed = 1;
	if (argc == 3 && strcmp(argv[1], "--times") == 0)
		failed = only_decide(&g, (unsigned)strtoul(argv[2], NULL, 10));
	else if (argc == 2 && strcmp(argv[1], "--input") == 0)
		failed = print_input();
	else if (argc == 2 && strcmp(argv[1], "--serve") == 0)
		failed = serve(&g);
	else
		(void)fputs("usage: bench_cedar_decide [--times N | --input | --serve]\n", stderr);
	gate_close(&g);
	return failed;
}

/* The ten, and policies about other principals, resources, roles and types. */
static char *many(unsigned total, size_t *ret_n)
{
	char *text = NULL;
	FILE *f = open_memstream(&text, ret_n);
	fputs(ten, f);
	for (unsigned i = 10; i < total; i++) {
		const char *const forms[] = {
			"permit(principal == Agent::\"x%u\", action, resource);\n",
			"forbid(principal, action == Action::\"read\", resource in "
			"Path::\"/other/%u\") "
			"when { context.size > 5 };\n",
			"permit(principal in Role::\"r%u\", action in [Action::\"read\", "
			"Action::\"write\"], resource) when { resource.label == \"code\" };\n",
			"permit(principal, action == Action::\"act%u\", resource) when { "
			"principal.score > 3 && context.approved };\n"};
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		fprintf(f, forms[i % 4], i);
#pragma GCC diagnostic pop
	}
	(void)fclose(f);
	return text;
}

struct load {
	char *text;
	size_t n;
};

static int load(void *ctx)
{
	struct load *l = ctx;
	cedar_policies *policies;
	if (cedar_policies_from_text(l->text, l->n, NULL, &policies, NULL) < 0)
		return -1;
	cedar_policies_free(policies);
	return 0;
}

static void report_allocations(struct gate *g, unsigned times)
{
	for (unsigned i = 0; i < 10; i++)
		(void)decide(g);
	unsigned long before = allocations;
	for (unsigned i = 0; i < times; i++)
		(void)decide(g);
	printf("%lu allocations in %u decisions (bar 0): %s\n", allocations - before, times,
		allocations == before ? "met" : "missed");
}

static void report_memory(const struct load *l, unsigned policies)
{
	cedar_policies *set;
	struct mallinfo2 before = mallinfo2();
	if (cedar_policies_from_text(l->text, l->n, NULL, &set, NULL) < 0)
		exit(1);
	struct mallinfo2 after = mallinfo2();
	size_t bytes = after.uordblks + after.hblkhd - before.uordblks - before.hblkhd;
	printf("%zu bytes a policy of %u (bar 2048): %s\n", bytes / policies, policies,
		bytes / policies <= 2048 ? "met" : "missed");
	cedar_policies_free(set);
}

static void report_bar(struct bench *b, unsigned id, const char *what, double bar_ns)
{
	double ns = bench_ns(b, id, 0.5);
	printf("%s: %.0f ns (bar %.0f): %s\n", what, ns, bar_ns, ns <= bar_ns ? "met" : "missed");
}

int main(int argc, char **argv)
{
	struct load thousand = {0};
	size_t n;
	if (argc > 1)
		return run_mode(argc, argv);
	char *text = many(10000, &n);
	thousand.text = many(1000, &thousand.n);
	bench_pin();
	struct gate small = gate_open(ten, sizeof(ten) - 1), large = gate_open(text, n);
	report_allocations(&small, 10000);
	report_allocations(&large, 10000);
	report_memory(&thousand, 1000);

	struct bench b = bench_begin("cedar_decide");
	unsigned ten_id = bench_add(&b, "decide among 10", decide, &small);
	unsigned many_id =
		bench_add(&b, "decide among 10,000, 10 of them relevant", decide, &large);
	unsigned json_id = bench_add(&b, "decide among 10, JSON in", decide_json, &small);
	bench_run(&b, 300, 200);
	report_bar(&b, ten_id, "one decision among 10 policies", 1000);
	bench_ratio(&b, many_id, ten_id, 2.0);
	/* Its bar is a ratio to the official engine: bench/cedar-decide.mjs. */
	printf("the same with entities and request as JSON: %.0f ns\n", bench_ns(&b, json_id, 0.5));
	int failed = bench_end(&b);

	struct bench l = bench_begin("cedar_load");
	unsigned load_id = bench_add(&l, "load and index 1,000 policies", load, &thousand);
	bench_run(&l, 50, 1);
	report_bar(&l, load_id, "load and index 1,000 policies", 10e6);
	failed |= bench_end(&l);
	gate_close(&small);
	gate_close(&large);
	free(text);
	free(thousand.text);
	return failed;
}
