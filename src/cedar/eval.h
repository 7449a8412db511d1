/*
 * The evaluator: a walk over the tree, from left to right, without a place to write in except the
 * caller's scratch memory.
 *
 * Depth is bounded by the trees' height. A failure is recorded as what is needed to describe it;
 * its text is made only when somebody asks.
 */
#ifndef CEDAR_EVAL_H
#define CEDAR_EVAL_H

#include "cedar/ast.h"
#include "cedar/entities.h"

struct ced_failure {
	enum cedar_code code;
	const struct ced_expr *at;
	const char *expected;        /* E_TYPE: what would have been right */
	enum ced_kind found;         /* E_TYPE */
	const struct ced_name *name; /* E_ATTRIBUTE: the attribute or tag */
	const struct ced_uid *uid;   /* E_ENTITY; E_ATTRIBUTE of an entity */
	size_t limit;                /* E_LIMIT */
};

/* What one decision evaluates in. */
struct ced_env {
	const struct cedar_entities *entities;
	const struct cedar_request *request;
	/* The entities of principal, action and resource, where there are any. */
	const struct ced_entity *known[3];
	struct ced_arena *scratch;
	struct ced_failure failure; /* of the last evaluation that failed */
};

struct ced_env ced_env_make(const struct cedar_entities *entities,
	const struct cedar_request *request, struct ced_arena *scratch);

/* false: `env->failure` says why. The value lives until the scratch memory is reset. */
bool ced_eval(struct ced_env *env, const struct ced_expr *x, struct ced_value *ret);

/* A condition: its body as Bool, `unless` applied. */
bool ced_eval_condition(struct ced_env *env, const struct ced_condition *c, bool *ret);

/* `uid` is `in` the other: equal, or a descendant. */
bool ced_is_in(struct ced_env *env, const struct ced_uid *uid, const struct ced_uid *ancestor);

void ced_failure_describe(const struct ced_failure *f, struct cedar_error *ret);

#endif
