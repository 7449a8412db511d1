/*
 * The applications of the OOPSLA 2024 benchmarks: decisions a second, prepared and with entities
 * and request as JSON each time. The input is what bench/cedar-apps.mjs wrote.
 */
#include "cedar/cedar.h"
#include "cedar/json.h"
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { REQUESTS_MAX = 256, ROUNDS = 200 };

struct app {
	char name[64];
	cedar_policies *policies;
	cedar_entities *entities;
	cedar_request *requests[REQUESTS_MAX];
	struct ced_slice entities_json, requests_json[REQUESTS_MAX];
	unsigned n;
	cedar_answer *answer;
};

static void must(int code, const struct cedar_error *err)
{
	if (code == 0)
		return;
	fprintf(stderr, "%u:%u: %s\n", err->line, err->column, err->text);
	exit(1);
}

static struct ced_slice raw(const char *line, const struct ced_json *object, const char *key)
{
	const struct ced_json *j = ced_json_get(object, key);
	if (!j)
		exit(1);
	return (struct ced_slice){line + j->pos.offset, j->pos.length};
}

static void app_open(struct app *a, const char *line, const struct ced_json *j)
{
	struct cedar_error err;
	struct ced_slice p = raw(line, j, "policies");
	const struct ced_json *requests = ced_json_get(j, "requests");
	const struct ced_json *id = ced_json_get(j, "id");
	*a = (struct app){
		.answer = cedar_answer_new(NULL), .entities_json = raw(line, j, "entities")};
	(void)snprintf(a->name, sizeof(a->name), "%.*s", (int)id->u.text.n, id->u.text.p);
	must(cedar_policies_from_json(p.p, p.n, NULL, &a->policies, &err), &err);
	must(cedar_entities_from_json(
		     a->entities_json.p, a->entities_json.n, NULL, &a->entities, &err),
		&err);
	for (; a->n < requests->count && a->n < REQUESTS_MAX; a->n++) {
		const struct ced_json *r = &requests->u.items[a->n];
		struct ced_slice text = {line + r->pos.offset, r->pos.length};
		a->requests_json[a->n] = text;
		must(cedar_request_from_json(text.p, text.n, NULL, &a->requests[a->n], &err), &err);
	}
}

static void app_close(struct app *a)
{
	for (unsigned i = 0; i < a->n; i++)
		cedar_request_free(a->requests[i]);
	cedar_answer_free(a->answer);
	cedar_entities_free(a->entities);
	cedar_policies_free(a->policies);
}

/* All requests of the application, one after the other. */
static int prepared(void *ctx)
{
	struct app *a = ctx;
	for (unsigned i = 0; i < a->n; i++)
		if (cedar_decide(a->policies, a->entities, a->requests[i], NULL, a->answer) < 0)
			return -1;
	return 0;
}

static int from_json(void *ctx)
{
	struct app *a = ctx;
	for (unsigned i = 0; i < a->n; i++) {
		cedar_entities *e;
		cedar_request *r;
		if (cedar_entities_from_json(
			    a->entities_json.p, a->entities_json.n, NULL, &e, NULL) < 0 ||
			cedar_request_from_json(
				a->requests_json[i].p, a->requests_json[i].n, NULL, &r, NULL) < 0)
			return -1;
		(void)cedar_decide(a->policies, e, r, NULL, a->answer);
		cedar_request_free(r);
		cedar_entities_free(e);
	}
	return 0;
}

static int measure(struct app *a)
{
	struct bench b = bench_begin(a->name);
	unsigned fast = bench_add(&b, "prepared", prepared, a);
	unsigned json = bench_add(&b, "JSON in", from_json, a);
	bench_run(&b, ROUNDS, 1);
	double fast_ns = bench_ns(&b, fast, 0.5) / a->n, json_ns = bench_ns(&b, json, 0.5) / a->n;
	printf("%-18s %8.0f ns prepared (%.1f M/s) %8.1f us JSON in (%.0f k/s)\n", a->name, fast_ns,
		1e3 / fast_ns, json_ns / 1e3, 1e6 / json_ns);
	return bench_end(&b);
}

static long long nanoseconds(int (*what)(void *), struct app *a)
{
	struct timespec from, to;
	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
	if (what(a) < 0)
		exit(1);
	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
	return (long long)(to.tv_sec - from.tv_sec) * 1000000000 + (to.tv_nsec - from.tv_nsec);
}

/* For every line of standard input: the nanoseconds of CPU of all requests, prepared and of JSON,
 * so that a peer can be measured in turn. */
static int serve(struct app *a)
{
	int c;
	while ((c = getchar()) != EOF) {
		if (c != '\n')
			continue;
		long long fast = nanoseconds(prepared, a);
		printf("%lld %lld %u\n", fast, nanoseconds(from_json, a), a->n);
		(void)fflush(stdout);
	}
	return 0;
}

/* With `only`, the application of that name is served and the others are passed over. */
static int run_app(const char *line, size_t n, const char *only)
{
	struct ced_arena arena;
	struct ced_json j;
	struct cedar_error err;
	struct app app;
	int failed = 0;
	ced_arena_init(&arena, 64 << 20, "memory_bytes");
	must(ced_json_read(&arena, line, n, 200, "depth", &j, &err), &err);
	app_open(&app, line, &j);
	if (!only)
		failed = measure(&app);
	else if (strcmp(app.name, only) == 0)
		failed = serve(&app);
	app_close(&app);
	ced_arena_done(&arena);
	return failed;
}

int main(int argc, char **argv)
{
	char *line = NULL;
	size_t room = 0;
	ssize_t n;
	int failed = 0;
	FILE *f = argc == 2 || argc == 3 ? fopen(argv[1], "re") : NULL;
	if (!f) {
		fputs("usage: bench_cedar_apps FILE [APPLICATION] (of bench/cedar-apps.mjs)\n",
			stderr);
		return 1;
	}
	if (argc == 2)
		bench_pin();
	while ((n = getline(&line, &room, f)) > 0)
		failed |= run_app(line, (size_t)n, argc == 3 ? argv[2] : NULL);
	free(line);
	(void)fclose(f);
	return failed;
}
