/* Policies as text. */
#ifndef CEDAR_PRINT_H
#define CEDAR_PRINT_H

#include "cedar/ast.h"
#include "cedar/out.h"

/* A head or a condition that is longer than a line is broken: the head at its commas, the condition
 * at the operators && and || that hold it together. A part of it may still be longer. */
struct ced_layout {
	uint32_t line_width, indent_width; /* in bytes; spaces */
};

extern const struct ced_layout ced_layout_default;

/*
 * With as few parentheses as the grammar needs; parsing gives the same tree again. Two things that
 * only JSON can say are printed as what they mean: a `has` path with names that are no identifiers,
 * and a method without a receiver (which no parser accepts).
 */
void ced_print_policy(
	struct ced_out *o, const struct ced_policy *policy, const struct ced_layout *layout);
void ced_print_expr(struct ced_out *o, const struct ced_expr *x);

/* A link: the template with its slots filled, in the default layout. */
void ced_print_rule(struct ced_out *o, const struct ced_policy *policy,
	const struct ced_uid *principal, const struct ced_uid *resource);

#endif
