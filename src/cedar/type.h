/*
 * Types of the validator.
 *
 * Types are hash-consed: within one `struct ced_types` (and the tables stacked on it) two types are
 * equal exactly when their pointers are. A schema's common types therefore cost memory once, and
 * comparing them costs one comparison, however often and however deeply they are used.
 *
 * A schema owns a table that is complete when the schema is resolved; a validation stacks a table
 * of its own on it, so that one schema can serve many threads.
 *
 * Entity types are named by their index in the schema (schema.h), action entity types included.
 */
#ifndef CEDAR_TYPE_H
#define CEDAR_TYPE_H

#include "cedar/json.h"
#include "cedar/value.h"

/* Nesting of sets and records in a type, common types expanded. It bounds every recursion here. */
enum { CED_TY_DEPTH_MAX = 256 };

enum ced_type_kind {
	CED_TY_FALSE,
	CED_TY_TRUE,
	CED_TY_BOOL,
	CED_TY_LONG,
	CED_TY_STRING,
	CED_TY_EXT,
	CED_TY_ENTITY,
	CED_TY_SET,
	CED_TY_RECORD
};

struct ced_attr {
	struct ced_slice name;
	bool required;
	const struct ced_type *type;
};

struct ced_type {
	enum ced_type_kind kind;
	uint32_t hash;
	uint32_t depth; /* 0 for a type without parts */
	uint32_t id;    /* CED_TY_EXT: enum ced_kind; CED_TY_ENTITY: entity type index */
	const struct ced_type *elem;  /* CED_TY_SET */
	const struct ced_attr *attrs; /* CED_TY_RECORD: sorted by name, unique */
	size_t n_attrs;
	struct ced_type *next; /* hash chain */
};

struct ced_types {
	struct ced_arena *arena;
	const struct ced_types *base; /* looked up first; may be NULL */
	struct ced_type **slots;
	size_t n_slots, n;
};

/* Make an empty table whose types live in `arena`. 0, or -1 without memory. */
int ced_types_init(struct ced_types *t, struct ced_arena *arena, const struct ced_types *base);

/* Each returns the one type of this shape, or NULL without memory. A set or record whose depth
 * would pass CED_TY_DEPTH_MAX is the caller's to refuse: ask ced_type_depth_ok() first. */
const struct ced_type *ced_type_basic(
	struct ced_types *t, enum ced_type_kind kind); /* CED_TY_FALSE .. CED_TY_STRING */
const struct ced_type *ced_type_ext(struct ced_types *t, enum ced_kind ext);
const struct ced_type *ced_type_entity(struct ced_types *t, uint32_t index);
const struct ced_type *ced_type_set(struct ced_types *t, const struct ced_type *elem);
/* `attrs` is sorted and unique; it is copied when the type is new. */
const struct ced_type *ced_type_record(struct ced_types *t, const struct ced_attr *attrs, size_t n);

static inline bool ced_type_is_bool(const struct ced_type *ty)
{
	return ty->kind <= CED_TY_BOOL;
}

static inline bool ced_type_nests_too_deep(const struct ced_type *part)
{
	return part->depth >= CED_TY_DEPTH_MAX;
}

/* The attribute of a record type, or NULL. */
const struct ced_attr *ced_type_attr(const struct ced_type *record, struct ced_slice name);
const struct ced_attr *ced_type_find_attr(
	const struct ced_attr *attrs, size_t n, struct ced_slice name);

/* The least type that both are, as strict validation has it: equal, or differing only in which of
 * True, False, Bool stands at the same place. *ret_ty is NULL when there is none. 0, or -1 without
 * memory. */
int ced_type_join(struct ced_types *t, const struct ced_type *a, const struct ced_type *b,
	const struct ced_type **ret_ty);

/* The extension type (enum ced_kind) with this name; -1: none. Names are those of ced_kind_name().
 */
int ced_type_ext_from_name(struct ced_slice name);

#endif
