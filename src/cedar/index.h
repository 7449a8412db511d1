/*
 * The scope index: which policies of a set a request can concern at all.
 *
 * Each policy is filed under one constraint of its scope, the one that fewest policies share; those
 * without a constraint are looked at always. Looking up the request's entities, their types and
 * their ancestors then finds every policy whose scope could match (the scope is still checked, for
 * its other constraints). Leaving out the others changes nothing: a scope that does not match makes
 * a policy false without an error.
 */
#ifndef CEDAR_INDEX_H
#define CEDAR_INDEX_H

#include "cedar/eval.h"
#include "cedar/policies.h"

/* ORDER DIMENSION. What a policy can be filed under. */
enum ced_dimension {
	CED_BY_PRINCIPAL_EQ,
	CED_BY_RESOURCE_EQ,
	CED_BY_ACTION_EQ,
	CED_BY_PRINCIPAL_IN,
	CED_BY_RESOURCE_IN,
	CED_BY_ACTION_IN,
	CED_BY_PRINCIPAL_TYPE,
	CED_BY_RESOURCE_TYPE,
	CED_DIMENSIONS,
};

struct ced_bucket {
	const struct ced_name *type; /* NULL: an empty place of the table */
	const struct ced_name *id;   /* NULL: the key is the type alone */
	uint32_t hash;
	enum ced_dimension by;
	uint32_t start, count; /* of `rules` */
};

struct ced_index {
	const struct ced_bucket *table;
	uint32_t mask;
	bool used[CED_DIMENSIONS];
	const uint32_t *rules;
	uint32_t always; /* the first so many of `rules` */
};

/* Into the set's arena. */
int ced_index_build(struct cedar_policies *set, struct cedar_error *err);

/* Call `visit` with every rule whose scope can match, each once, in no order. */
void ced_index_visit(const struct cedar_policies *set, struct ced_env *env,
	void (*visit)(void *ctx, uint32_t rule), void *ctx);

/* The scope as a whole matches; else `ret_part` is the first part that does not. */
bool ced_scope_matches(const struct ced_rule *rule, struct ced_env *env, enum cedar_part *ret_part);

#endif
