/*
 * Level validation (RFC 76): how many look-ups in the entity data a policy needs.
 *
 * A policy that is valid at level n gives the same answer when the data holds only what can be
 * reached from the request in n steps.
 */
#ifndef CEDAR_LEVEL_H
#define CEDAR_LEVEL_H

#include "cedar/typecheck.h"

/* Check the conditions of a policy in the checker's environment, whose types the checker has just
 * recorded; what it did not reach cannot be evaluated and does not count. */
void ced_level_check(struct ced_checker *c, const struct ced_policy *policy, unsigned level);

#endif
