/*
 * The inside of a policy set, for the evaluator and the validator.
 */
#ifndef CEDAR_POLICIES_H
#define CEDAR_POLICIES_H

#include "cedar/ast.h"

/* What decides: a static policy, or a template with its slots filled. */
struct ced_rule {
	const struct ced_name *id;
	const struct ced_policy *policy;            /* the template, of a link */
	const struct ced_uid *principal, *resource; /* the link's values, or NULL */
	bool linked;
};

struct ced_index;

struct cedar_policies {
	int64_t references; /* atomic; see slot.c */
	struct ced_arena arena;
	struct cedar_limits limits;
	const struct ced_rule *rules;
	uint32_t rule_count;
	const struct ced_policy *const *templates;
	uint32_t template_count;
	const struct ced_index *index;
};

/* Give back `n` references at once. */
void ced_policies_release(cedar_policies *policies, int64_t n);

#endif
