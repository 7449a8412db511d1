/* The JSON form of policies, both ways. */
#ifndef CEDAR_EST_H
#define CEDAR_EST_H

#include "cedar/ast.h"
#include "cedar/out.h"

/* Policies from JSON have no places: their nodes are at line 0. Errors of reading have one. The id
 * is not set. */
int ced_policy_from_json(
	const struct ced_source *s, const struct ced_json *j, struct ced_policy **ret);

/* How deeply the JSON of expressions within the limit "height" nests. */
static inline uint32_t ced_policy_json_depth(const struct cedar_limits *limits)
{
	return limits->height < 1u << 20 ? 2 * limits->height + 32 : 1u << 21;
}

void ced_policy_to_json(struct ced_out *o, const struct ced_policy *policy);
void ced_uid_to_json(struct ced_out *o, const struct ced_uid *uid);

#endif
