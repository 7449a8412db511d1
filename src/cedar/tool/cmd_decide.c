/* authorize and explain: one request against policies and entities. */
#include <string.h>
#include <time.h>

#include "tool.h"

struct inputs {
	cedar_schema *schema;
	cedar_policies *policies;
	cedar_entities *entities;
	cedar_request *request;
	cedar_answer *answer;
	double microseconds; /* that the decision took */
};

static void inputs_done(struct inputs *in)
{
	cedar_answer_free(in->answer);
	cedar_request_free(in->request);
	cedar_entities_free(in->entities);
	cedar_policies_free(in->policies);
	cedar_schema_free(in->schema);
}

/* Microseconds since some point. */
static double now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int inputs_load(const struct options *o, struct inputs *in)
{
	struct cedar_options decide = {.deny_on_forbid_error = o->deny_on_forbid_error};
	double start;
	int r;

	if (load_schema(o, &in->schema) != 0 || load_policies(o, &in->policies) != 0 ||
		load_entities(o, in->schema, &in->entities) != 0 ||
		load_request(o, in->schema, &in->request) != 0)
		return TOOL_FAILURE;
	in->answer = cedar_answer_new(NULL);
	start = now();
	r = in->answer ? cedar_decide(in->policies, in->entities, in->request, &decide, in->answer)
		       : CEDAR_E_MEMORY;
	in->microseconds = now() - start;
	if (r == 0)
		return 0;
	diag_say("error", "out of memory");
	return TOOL_FAILURE;
}

/* A policy whose evaluation failed could have decided otherwise: that is never silent. */
static void warn_errors(const struct inputs *in)
{
	for (size_t i = 0; i < cedar_answer_error_count(in->answer); i++) {
		struct cedar_error why;
		size_t policy = cedar_answer_error(in->answer, i, &why);

		diag_say("warning", "%s could not be evaluated: %s",
			cedar_policy_id(in->policies, policy), why.text);
	}
}

static int print_decision(const struct inputs *in)
{
	bool allow = cedar_answer_decision(in->answer) == CEDAR_ALLOW;

	(void)puts(allow ? "ALLOW" : "DENY");
	return allow ? TOOL_OK : TOOL_DENY;
}

static void print_reasons(const struct inputs *in)
{
	size_t n = cedar_answer_reason_count(in->answer);

	(void)putchar('\n');
	if (n == 0)
		(void)puts("note: no policies applied to this request");
	else
		(void)puts("note: this decision was due to the following policies:");
	for (size_t i = 0; i < n; i++)
		(void)printf("  %s\n",
			cedar_policy_id(in->policies, cedar_answer_reason(in->answer, i)));
	if (cedar_answer_denied_by_error(in->answer))
		(void)puts("note: a forbid could not be evaluated, which was asked to deny");
}

int cmd_authorize(const struct options *o)
{
	struct inputs in = {0};
	int r = inputs_load(o, &in);

	if (r == 0) {
		warn_errors(&in);
		r = print_decision(&in);
		if (o->verbose)
			print_reasons(&in);
		if (o->timing)
			(void)printf(
				"Authorization Time (micro seconds) : %.3f\n", in.microseconds);
	}
	inputs_done(&in);
	return r;
}

/* ---- explain ---- */

static const char *part_text(enum cedar_part part)
{
	switch (part) {
	case CEDAR_PART_PRINCIPAL: return "the principal does not match";
	case CEDAR_PART_ACTION: return "the action does not match";
	case CEDAR_PART_RESOURCE: return "the resource does not match";
	case CEDAR_PART_CONDITION: return "a condition";
	case CEDAR_PART_ALL: return "it is satisfied";
	}
	return "";
}

static void explain_one(const struct inputs *in, size_t index)
{
	const char *id = cedar_policy_id(in->policies, index);
	bool permit = cedar_policy_effect(in->policies, index) == CEDAR_PERMIT;
	struct cedar_explanation e;

	if (cedar_explain(in->policies, in->entities, in->request, index, in->answer, &e) < 0) {
		diag_say("error", "out of memory");
		return;
	}
	(void)printf("%s (%s): ", id, permit ? "permit" : "forbid");
	if (e.satisfied)
		(void)puts(part_text(e.part));
	else if (e.part == CEDAR_PART_CONDITION)
		(void)printf("condition %zu (line %u) %s: %s\n", e.condition + 1,
			(unsigned)e.place.line, e.failed ? "failed" : "does not hold",
			e.place.text);
	else
		(void)printf("%s (line %u)\n", part_text(e.part), (unsigned)e.place.line);
}

int cmd_explain(const struct options *o)
{
	struct inputs in = {0};
	int r = inputs_load(o, &in);

	if (r == 0) {
		r = print_decision(&in);
		print_reasons(&in);
		(void)putchar('\n');
		for (size_t i = 0; i < cedar_policies_count(in.policies); i++)
			explain_one(&in, i);
	}
	inputs_done(&in);
	return r;
}
