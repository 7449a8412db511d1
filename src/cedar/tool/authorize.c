/* authorize: one decision. explain: the same, with what decided about each policy. */
#include "tool.h"

#include <stdio.h>
#include <time.h>

static double now_us(void)
{
	struct timespec t;
	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void print_ids(const struct question *q, const cedar_answer *a)
{
	size_t n = cedar_answer_reason_count(a);
	if (!n)
		printf("note: no policy applied to this request\n");
	else
		printf("note: this decision was due to the following policies:\n");
	for (size_t i = 0; i < n; i++)
		printf("  %s\n", cedar_policy_id(q->policies, cedar_answer_reason(a, i)));
}

static void tell_failures(const struct question *q, const cedar_answer *a)
{
	for (size_t i = 0; i < cedar_answer_error_count(a); i++) {
		struct cedar_error why;
		size_t policy = cedar_answer_error(a, i, &why);
		fprintf(stderr, "while evaluating policy `%s`:\n",
			cedar_policy_id(q->policies, policy));
		tell("error", &q->policies_file, &why);
	}
}

static int decide(const struct options *o, const struct question *q, cedar_answer *a)
{
	struct cedar_options options = {.deny_on_forbid_error = o->deny_on_forbid_error};
	double start = now_us();
	int code = cedar_decide(q->policies, q->entities, q->request, &options, a);
	double took = now_us() - start;
	bool allow = cedar_answer_decision(a) == CEDAR_ALLOW;
	if (code < 0)
		return EXIT_FAILED;
	printf("%s\n", allow ? "ALLOW" : "DENY");
	if (o->timing)
		printf("decided in %.2f us\n", took);
	if (cedar_answer_denied_by_error(a))
		printf("note: denied because a forbid could not be evaluated\n");
	if (o->verbose)
		print_ids(q, a);
	tell_failures(q, a);
	return allow ? EXIT_DONE : EXIT_DENY;
}

int run_authorize(const struct options *o)
{
	struct question q = {.policies = NULL};
	cedar_answer *a = cedar_answer_new(NULL);
	int status = EXIT_FAILED;
	if (a && load_question(o, &q))
		status = decide(o, &q, a);
	cedar_answer_free(a);
	question_done(&q);
	return status;
}

static void explain_one(const struct question *q, size_t i, cedar_answer *a)
{
	struct cedar_explanation e;
	if (cedar_explain(q->policies, q->entities, q->request, i, a, &e) < 0)
		return;
	printf("%s (%s): %s: ", cedar_policy_id(q->policies, i),
		cedar_policy_effect(q->policies, i) == CEDAR_PERMIT ? "permit" : "forbid",
		e.satisfied ? "satisfied"
		: e.failed  ? "failed"
			    : "not satisfied");
	if (e.place.line)
		printf("%u:%u: ", e.place.line, e.place.column);
	printf("%s\n", e.place.text);
}

int run_explain(const struct options *o)
{
	struct question q = {.policies = NULL};
	cedar_answer *a = cedar_answer_new(NULL);
	int status = EXIT_FAILED;
	if (a && load_question(o, &q)) {
		status = decide(o, &q, a);
		for (size_t i = 0; i < cedar_policies_count(q.policies); i++)
			explain_one(&q, i, a);
	}
	cedar_answer_free(a);
	question_done(&q);
	return status;
}
