/* Policies as text. */
#ifndef CEDAR_PRINT_H
#define CEDAR_PRINT_H

#include "cedar/ast.h"
#include "cedar/out.h"

/*
 * With as few parentheses as the grammar needs; parsing gives the same tree again. Two things that
 * only JSON can say are printed as what they mean: a `has` path with names that are no identifiers,
 * and a method without a receiver (which no parser accepts).
 */
void ced_print_policy(struct ced_out *o, const struct ced_policy *policy);
void ced_print_expr(struct ced_out *o, const struct ced_expr *x);

/* A link: the template with its slots filled. */
void ced_print_rule(struct ced_out *o, const struct ced_policy *policy,
	const struct ced_uid *principal, const struct ced_uid *resource);

#endif
