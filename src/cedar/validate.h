/*
 * Strict validation of policies and templates against a schema.
 *
 * A policy is checked once as it stands (do all entity types, enumerated ids and actions exist, is
 * there an action to which it can apply) and then in every request environment that the schema
 * allows. It is valid when there is no error in any.
 */
#ifndef CEDAR_VALIDATE_H
#define CEDAR_VALIDATE_H

#include "cedar/policies.h"
#include "cedar/report.h"
#include "cedar/schema.h"

struct ced_validate_options {
	/* Up to 4.12 a policy that can apply to no action was an error; since 4.13 it is a
	 * warning. */
	bool no_action_is_error;
	/* Level validation (RFC 76): how often an entity may be looked up on the way from the
	 * request. Negative: not wanted. */
	int level;
};

/* Adds what it finds to the report. `scratch` is for working memory and may be emptied afterwards.
 * 0, or -1 when memory or the step limit ran out: then the policy counts as not valid, and the
 * report says so. */
int ced_validate_policy(const struct cedar_schema *s, const struct ced_policy *policy,
	const struct ced_validate_options *options, struct ced_arena *scratch,
	struct cedar_report *report);

/* A link of a template that was validated itself. */
int ced_validate_link(const struct cedar_schema *s, const struct ced_rule *link,
	const struct ced_validate_options *options, struct cedar_report *report);

#endif
