/*
 * Do data conform to a schema? Values to types, entities to entity types, requests to actions.
 */
#ifndef CEDAR_CONFORM_H
#define CEDAR_CONFORM_H

#include "cedar/entities.h"
#include "cedar/schema.h"

/* 0, or CEDAR_E_INVALID with what does not conform; `what` begins the message ("the context",
 * "the attribute"...), `name` follows it (may be NULL). Entities in the value must be ones that the
 * schema can name: an id of an enumerated type, a declared action. */
int ced_conform_value(const struct cedar_schema *s, const struct ced_type *type,
	struct ced_value value, const char *what, const struct ced_name *name, struct ced_pos pos,
	struct cedar_error *err);

/* An entity that is not an action: type, id, attributes, tags, parents. */
int ced_conform_entity(const struct cedar_schema *s, const struct ced_entity *e, struct ced_pos pos,
	struct cedar_error *err);

/* An action: exactly as the schema declares it, with the ancestors that it has there. */
int ced_conform_action(const struct cedar_schema *s, const struct ced_entity *e, struct ced_pos pos,
	struct cedar_error *err);

/* Principal, action and resource go together. *ret_action is the index of the action. */
int ced_conform_scope(const struct cedar_schema *s, const struct ced_uid *principal,
	const struct ced_uid *action, const struct ced_uid *resource, uint32_t *ret_action,
	struct cedar_error *err);

int ced_conform_request(
	const struct cedar_schema *s, const struct cedar_request *request, struct cedar_error *err);

#endif
