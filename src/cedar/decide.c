/*
 * Decisions.
 *
 * Every policy whose scope can match is evaluated, whatever the others said, because the answer
 * names every policy that failed.
 */
#include "cedar/index.h"

#include <stdlib.h>

struct rules {
	uint32_t *items;
	uint32_t count, capacity;
};

struct failed {
	uint32_t rule;
	struct ced_failure why;
};

struct cedar_answer {
	struct ced_arena scratch;
	const cedar_policies *policies;
	enum cedar_decision decision;
	bool denied_by_error, out_of_memory;
	struct rules satisfied[2]; /* by effect */
	struct failed *failed;
	uint32_t failed_count, failed_capacity;
};

enum { ANSWER_ROOM = 64, SCRATCH_ROOM = 16384 };

cedar_answer *cedar_answer_new(const struct cedar_limits *limits)
{
	struct cedar_limits defaults = cedar_limits_default();
	struct cedar_answer *a = calloc(1, sizeof(*a));
	if (!a)
		return NULL;
	size_t scratch = limits ? limits->scratch_bytes : defaults.scratch_bytes;
	ced_arena_init(&a->scratch, scratch, "scratch_bytes");
	(void)ced_arena_alloc(&a->scratch, scratch < SCRATCH_ROOM ? scratch : SCRATCH_ROOM);
	a->failed = calloc(ANSWER_ROOM, sizeof(*a->failed));
	a->failed_capacity = ANSWER_ROOM;
	bool ok = a->failed != NULL;
	for (int i = 0; i < 2; i++) {
		a->satisfied[i].items = calloc(ANSWER_ROOM, sizeof(uint32_t));
		a->satisfied[i].capacity = ANSWER_ROOM;
		ok &= a->satisfied[i].items != NULL;
	}
	if (!ok) {
		cedar_answer_free(a);
		return NULL;
	}
	return a;
}

void cedar_answer_free(cedar_answer *a)
{
	if (!a)
		return;
	ced_arena_done(&a->scratch);
	free(a->satisfied[0].items);
	free(a->satisfied[1].items);
	free(a->failed);
	free(a);
}

/* -- One policy ----------------------------------------------------------------------------- */

/* `ret_part` and `ret_condition` say what decided. */
static bool rule_satisfied(struct ced_env *env, const struct ced_rule *rule,
	enum cedar_part *ret_part, uint32_t *ret_condition, bool *ret_satisfied)
{
	const struct ced_policy *p = rule->policy;
	*ret_satisfied = false;
	if (!ced_scope_matches(rule, env, ret_part))
		return true;
	*ret_part = CEDAR_PART_CONDITION;
	for (uint32_t i = 0; i < p->condition_count; i++) {
		bool holds;
		*ret_condition = i;
		if (!ced_eval_condition(env, &p->conditions[i], &holds))
			return false;
		if (!holds)
			return true;
	}
	*ret_part = CEDAR_PART_ALL;
	*ret_satisfied = true;
	return true;
}

static void *more(void *items, uint32_t *capacity, size_t size)
{
	void *larger = realloc(items, (size_t)*capacity * 2 * size);
	if (larger)
		*capacity *= 2;
	return larger;
}

static bool note_satisfied(struct rules *r, uint32_t rule)
{
	if (r->count == r->capacity) {
		uint32_t *items = more(r->items, &r->capacity, sizeof(*r->items));
		if (!items)
			return false;
		r->items = items;
	}
	r->items[r->count++] = rule;
	return true;
}

static bool note_failed(struct cedar_answer *a, uint32_t rule, const struct ced_failure *why)
{
	if (a->failed_count == a->failed_capacity) {
		struct failed *items = more(a->failed, &a->failed_capacity, sizeof(*a->failed));
		if (!items)
			return false;
		a->failed = items;
	}
	a->failed[a->failed_count++] = (struct failed){rule, *why};
	return true;
}

struct decision {
	struct cedar_answer *answer;
	struct ced_env env;
};

static void visit(void *ctx, uint32_t index)
{
	struct decision *d = ctx;
	struct cedar_answer *a = d->answer;
	const struct ced_rule *rule = &a->policies->rules[index];
	enum cedar_part part;
	uint32_t condition;
	bool satisfied, noted = true;
	ced_arena_reset(&a->scratch);
	if (!rule_satisfied(&d->env, rule, &part, &condition, &satisfied))
		noted = note_failed(a, index, &d->env.failure) &&
			d->env.failure.code != CEDAR_E_MEMORY;
	else if (satisfied)
		noted = note_satisfied(&a->satisfied[rule->policy->effect], index);
	a->out_of_memory |= !noted;
}

/* -- The answer ----------------------------------------------------------------------------- */

static int rule_order(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (x > y) - (x < y);
}

/* Ascending; qsort() may allocate, so short lists, which are the rule, go without it. Both kinds
 * of item begin with the rule. */
static void sort_rules(struct rules *r)
{
	if (r->count > 64) {
		qsort(r->items, r->count, sizeof(*r->items), rule_order);
		return;
	}
	for (uint32_t i = 1; i < r->count; i++) {
		uint32_t x = r->items[i], j = i;
		for (; j && r->items[j - 1] > x; j--)
			r->items[j] = r->items[j - 1];
		r->items[j] = x;
	}
}

static void sort_failed(struct cedar_answer *a)
{
	if (a->failed_count > 1)
		qsort(a->failed, a->failed_count, sizeof(*a->failed), rule_order);
}

static bool forbid_failed(const struct cedar_answer *a)
{
	for (uint32_t i = 0; i < a->failed_count; i++)
		if (a->policies->rules[a->failed[i].rule].policy->effect == CEDAR_FORBID)
			return true;
	return false;
}

int cedar_decide(const cedar_policies *policies, const cedar_entities *entities,
	const cedar_request *request, const struct cedar_options *options, cedar_answer *a)
{
	struct decision d = {.answer = a, .env = ced_env_make(entities, request, &a->scratch)};
	a->policies = policies;
	a->satisfied[CEDAR_FORBID].count = a->satisfied[CEDAR_PERMIT].count = 0;
	a->failed_count = 0;
	a->out_of_memory = a->denied_by_error = false;
	ced_index_visit(policies, &d.env, visit, &d);
	sort_rules(&a->satisfied[CEDAR_FORBID]);
	sort_rules(&a->satisfied[CEDAR_PERMIT]);
	sort_failed(a);
	bool allow = a->satisfied[CEDAR_PERMIT].count && !a->satisfied[CEDAR_FORBID].count;
	if (allow && options && options->deny_on_forbid_error)
		a->denied_by_error = forbid_failed(a);
	allow = allow && !a->denied_by_error && !a->out_of_memory;
	a->decision = allow ? CEDAR_ALLOW : CEDAR_DENY;
	return a->out_of_memory ? CEDAR_E_MEMORY : 0;
}

enum cedar_decision cedar_answer_decision(const cedar_answer *a)
{
	return a->decision;
}

bool cedar_answer_denied_by_error(const cedar_answer *a)
{
	return a->denied_by_error;
}

/* Forbids when any is satisfied, else permits. */
static const struct rules *reasons(const cedar_answer *a)
{
	return &a->satisfied[a->satisfied[CEDAR_FORBID].count ? CEDAR_FORBID : CEDAR_PERMIT];
}

size_t cedar_answer_reason_count(const cedar_answer *a)
{
	return reasons(a)->count;
}

size_t cedar_answer_reason(const cedar_answer *a, size_t n)
{
	return reasons(a)->items[n];
}

size_t cedar_answer_error_count(const cedar_answer *a)
{
	return a->failed_count;
}

size_t cedar_answer_error(const cedar_answer *a, size_t n, struct cedar_error *ret_why)
{
	if (ret_why)
		ced_failure_describe(&a->failed[n].why, ret_why);
	return a->failed[n].rule;
}

/* -- Explaining ----------------------------------------------------------------------------- */

static void describe(const struct ced_rule *rule, struct cedar_explanation *e)
{
	const struct ced_policy *p = rule->policy;
	const struct ced_condition *c;
	switch (e->part) {
	case CEDAR_PART_PRINCIPAL:
		(void)ced_fail(
			&e->place, CEDAR_OK, p->principal.pos, "the principal is not in the scope");
		break;
	case CEDAR_PART_ACTION:
		(void)ced_fail(
			&e->place, CEDAR_OK, p->action.pos, "the action is not in the scope");
		break;
	case CEDAR_PART_RESOURCE:
		(void)ced_fail(
			&e->place, CEDAR_OK, p->resource.pos, "the resource is not in the scope");
		break;
	case CEDAR_PART_CONDITION:
		c = &p->conditions[e->condition];
		(void)ced_fail(&e->place, CEDAR_OK, c->pos, "the `%s` condition does not hold",
			c->unless ? "unless" : "when");
		break;
	case CEDAR_PART_ALL:
		(void)ced_fail(
			&e->place, CEDAR_OK, p->pos, "the scope matches and every condition holds");
		break;
	}
}

int cedar_explain(const cedar_policies *policies, const cedar_entities *entities,
	const cedar_request *request, size_t index, cedar_answer *scratch,
	struct cedar_explanation *ret)
{
	struct ced_env env = ced_env_make(entities, request, &scratch->scratch);
	struct cedar_explanation e = {0};
	uint32_t condition = 0;
	ced_arena_reset(&scratch->scratch);
	e.failed =
		!rule_satisfied(&env, &policies->rules[index], &e.part, &condition, &e.satisfied);
	e.condition = condition;
	if (e.failed)
		ced_failure_describe(&env.failure, &e.place);
	else
		describe(&policies->rules[index], &e);
	*ret = e;
	return e.failed && env.failure.code == CEDAR_E_MEMORY ? CEDAR_E_MEMORY : 0;
}
