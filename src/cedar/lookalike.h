/*
 * Names and strings that look like what they are not: the warnings of validation about characters.
 *
 * A string is warned of when it contains a character that turns the direction of writing, or
 * characters of scripts that are not written together (UTS 39, single script). A name (an
 * attribute, the key of a record, the id of an entity) also when a character is outside of the
 * profile for identifiers. ASCII is never warned of, except control characters in names.
 */
#ifndef CEDAR_LOOKALIKE_H
#define CEDAR_LOOKALIKE_H

#include "cedar/ast.h"
#include "cedar/report.h"

/* Add what is to be warned of in the scope and the conditions, in dead code too. */
void ced_lookalike_check(const struct ced_policy *policy, struct cedar_report *report);

#endif
