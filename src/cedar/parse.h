/* The parser of policy text. */
#ifndef CEDAR_PARSE_H
#define CEDAR_PARSE_H

#include "cedar/ast.h"

/*
 * Parse every policy and template of a text. `take` gets each, without an id; a negative result of
 * it ends parsing and is returned. What the trees point to is in the source's arena, nothing points
 * into the text.
 */
typedef int (*ced_take_policy)(void *ctx, struct ced_policy *policy, struct cedar_error *err);

int ced_parse_policies(
	const struct ced_source *s, const char *text, size_t n, ced_take_policy take, void *ctx);

/* "Action" or "NS::Action". */
bool ced_is_action_type(const struct ced_name *type);
/* No key twice. */
int ced_annotations_check(const struct ced_source *s, const struct ced_annotation *a, uint32_t n);

/* One expression, and one entity `Type::"id"`, with nothing after it. */
int ced_parse_expr(
	const struct ced_source *s, const char *text, size_t n, const struct ced_expr **ret);
int ced_parse_uid(
	const struct ced_source *s, const char *text, size_t n, const struct ced_uid **ret);

#endif
