/*
 * The schema as written: one tree for both notations.
 *
 * Two readers (schema_text.c, schema_json.c) make it, two printers (schema_print.c) write it, and
 * schema_resolve.c turns it into a `struct schema` (schema.h) that the validator uses. Names stand
 * here as they were written; nothing is resolved and nothing is checked that needs a second
 * declaration, so that a schema can be translated without being valid as a whole.
 *
 * Ownership: everything lives in the arena that was given to the reader, strings included.
 * Order: everything that has a name is sorted by it, bytewise, as the official tools print it, and
 * names are unique per kind of declaration within a namespace (the readers see to both).
 */
#ifndef CEDAR_SCHEMA_TREE_H
#define CEDAR_SCHEMA_TREE_H

#include "cedar/json.h"

struct ced_sch_annot {
	struct ced_slice key;
	struct ced_slice value; /* "" when the annotation was written without a value */
};

struct ced_sch_annots {
	const struct ced_sch_annot *v;
	size_t n;
};

enum ced_sch_type_kind {
	CED_SCH_BOOL,
	CED_SCH_LONG,
	CED_SCH_STRING,
	CED_SCH_SET,              /* elem */
	CED_SCH_RECORD,           /* attrs */
	CED_SCH_ENTITY,           /* name: must be an entity type (JSON only) */
	CED_SCH_EXTENSION,        /* name: must be an extension type (JSON only) */
	CED_SCH_ENTITY_OR_COMMON, /* name: whatever it resolves to */
	CED_SCH_COMMON,           /* name: must be a common type */
};

struct ced_sch_attr {
	struct ced_slice name;
	bool required;
	const struct ced_sch_type *type;
	struct ced_sch_annots annots;
};

struct ced_sch_type {
	enum ced_sch_type_kind kind;
	struct ced_pos pos;
	struct ced_slice name;
	const struct ced_sch_type *elem;
	const struct ced_sch_attr *attrs; /* sorted by name, unique */
	size_t n_attrs;
};

struct ced_sch_name {
	struct ced_slice text; /* a path, parts joined with "::" and no spaces */
	struct ced_pos pos;
};

struct ced_sch_names {
	const struct ced_sch_name *v;
	size_t n;
};

/* In each kind of declaration the name comes first. */
struct ced_sch_common {
	struct ced_sch_name name;
	const struct ced_sch_type *type;
	struct ced_sch_annots annots;
};

struct ced_sch_entity {
	struct ced_sch_name name;
	bool is_enum;
	const struct ced_slice *ids; /* of an enumerated type, at least one */
	size_t n_ids;
	struct ced_sch_names parents;
	const struct ced_sch_type *shape; /* NULL: no attributes */
	const struct ced_sch_type *tags;  /* NULL: no tags */
	struct ced_sch_annots annots;
};

/* A reference to an action: `type` is empty where only the id was written. */
struct ced_sch_action_ref {
	struct ced_slice type, id;
	struct ced_pos pos;
};

struct ced_sch_action {
	struct ced_sch_name name; /* any string */
	bool has_applies_to;      /* JSON can leave it out; the text form then writes none either */
	struct ced_sch_names principals, resources;
	const struct ced_sch_type *context; /* NULL: the empty record */
	bool has_member_of;
	const struct ced_sch_action_ref *parents;
	size_t n_parents;
	struct ced_sch_annots annots;
};

struct ced_sch_namespace {
	struct ced_sch_name name; /* "" for declarations outside of any namespace */
	struct ced_sch_common *commons;
	size_t n_commons;
	struct ced_sch_entity *entities;
	size_t n_entities;
	struct ced_sch_action *actions;
	size_t n_actions;
	struct ced_sch_annots annots;
};

struct ced_sch_tree {
	struct ced_sch_namespace *spaces; /* at most one of each name */
	size_t n_spaces;
};

#endif
