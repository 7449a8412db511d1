/*
 * A resolved schema: every name looked up, every common type expanded, both hierarchies closed.
 *
 * Immutable once made, so it can be shared by threads. Entity types and actions are known by
 * index. Besides the declared entity types there is one for each action type (`Action`,
 * `NS::Action`) that has actions; those are not `declared`, have no attributes, and stand behind
 * the declared ones.
 */
#ifndef CEDAR_SCHEMA_H
#define CEDAR_SCHEMA_H

#include "cedar/schema_tree.h"
#include "cedar/map.h"
#include "cedar/type.h"

enum {
	CED_SCHEMA_TYPES_MAX = 16384,   /* entity types */
	CED_SCHEMA_ACTIONS_MAX = 16384, /* actions */
	CED_SCHEMA_RESOLVE_MAX = 512, /* nesting of types through common types that rename others */
};

#define CED_SCHEMA_NONE UINT32_MAX

struct ced_etype {
	struct ced_slice name; /* full */
	bool declared;
	bool is_enum;
	const struct ced_slice *ids; /* of an enumerated type, sorted */
	size_t n_ids;
	const struct ced_attr *attrs; /* sorted by name */
	size_t n_attrs;
	const struct ced_type *tags; /* NULL: no tags */
	const uint64_t *ancestors;   /* bits over etypes; NULL: none. Has itself only in a cycle */
};

struct ced_action {
	uint32_t etype;
	struct ced_slice id;
	const uint32_t *principals, *resources; /* sorted, unique */
	size_t n_principals, n_resources;
	const struct ced_type *context; /* a record */
	const uint32_t *parents;
	size_t n_parents;
	const uint64_t *ancestors; /* bits over actions; NULL: none */
};

struct cedar_schema {
	struct ced_arena arena;
	struct ced_sch_tree tree; /* as written, for translation */
	struct ced_types types;
	struct ced_etype *etypes;
	uint32_t n_etypes, n_declared;
	struct ced_action *actions;
	uint32_t n_actions;
	struct ced_map etype_of;   /* full name -> index */
	struct ced_map *action_of; /* for each etype: id -> index */
};

/* Index, or CED_SCHEMA_NONE. */
uint32_t ced_schema_find_etype(const struct cedar_schema *s, struct ced_slice name);
uint32_t ced_schema_find_action(const struct cedar_schema *s, uint32_t etype, struct ced_slice id);

/* The action with this type and id, or CED_SCHEMA_NONE. */
uint32_t ced_schema_find_uid(
	const struct cedar_schema *s, struct ced_slice type, struct ced_slice id);

/* Is the last part of the name `Action`? */
bool ced_schema_is_action_name(struct ced_slice name);

/* May an entity of type `type` be `in` one of type `ancestor`? Reflexive. Covers action types. */
bool ced_schema_type_in(const struct cedar_schema *s, uint32_t type, uint32_t ancestor);

/* Is the action `action` in the action `ancestor`? Reflexive. */
bool ced_schema_action_in(const struct cedar_schema *s, uint32_t action, uint32_t ancestor);

/* Does an enumerated type have this id? True for every other type. */
bool ced_schema_id_ok(const struct ced_etype *etype, struct ced_slice id);

const struct ced_attr *ced_schema_attr(
	const struct cedar_schema *s, uint32_t etype, struct ced_slice name);

/* Fill `s` (its arena set up, the rest zero) from `tree`, which lives in that arena. Negative with
 * the error filled when the schema contradicts itself. */
int ced_schema_resolve(struct cedar_schema *s, const struct ced_sch_tree *tree,
	const struct cedar_limits *limits, struct cedar_error *err);

#endif
