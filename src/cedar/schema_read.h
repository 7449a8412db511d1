/*
 * What the two schema readers share: the growing lists, the limits, the checks that both notations
 * need (reserved words, duplicate names), and the assembly of the tree.
 *
 * Every function that returns int returns 0 or -1 with `r->err` set; every one that returns a
 * pointer returns NULL with `r->err` set.
 */
#ifndef CEDAR_SCHEMA_READ_H
#define CEDAR_SCHEMA_READ_H

#include "cedar/schema_tree.h"

enum {
	CED_SCH_ITEMS_MAX = 500000, /* declarations, names, attributes, annotations together */
	CED_SCH_ANNOTS_MAX = 256,   /* annotations of one declaration */
};

struct ced_sch_reader {
	struct ced_arena *arena;
	const struct cedar_limits *limits;
	struct cedar_error *err;
	uint32_t depth;
	size_t items;
};

void *ced_sch_alloc(struct ced_sch_reader *r, size_t n); /* zeroed */

/* A list that grows in the arena. ced_sch_push() gives a zeroed element, valid until the next push.
 */
struct ced_sch_vec {
	void *v;
	size_t n, cap;
};
void *ced_sch_push(struct ced_sch_reader *r, struct ced_sch_vec *v, size_t elem_size);

/* Bracket every step into a nested type: the limit is "nesting". */
int ced_sch_enter(struct ced_sch_reader *r, struct ced_pos pos);
void ced_sch_leave(struct ced_sch_reader *r);

/* The reserved words of the policy language: names of no kind. `__cedar` is one only for what is
 * declared (ced_sch_add_* see to that), since built-in types are named `__cedar::Long`. */
bool ced_sch_is_reserved(struct ced_slice word);

/* A path in normal form: identifiers joined with "::", none reserved. */
bool ced_sch_is_path(struct ced_slice s);

/* One identifier, reserved or not; and one that is not. */
bool ced_sch_is_any_ident(struct ced_slice s);
bool ced_sch_is_ident(struct ced_slice s);

int ced_sch_join_path(struct ced_sch_reader *r, const struct ced_slice *parts, size_t n,
	struct ced_slice *ret_path);

struct ced_sch_type *ced_sch_new_type(
	struct ced_sch_reader *r, enum ced_sch_type_kind kind, struct ced_pos pos);
/* Sort by name, keeping the last of each name. Returns how many are left. */
size_t ced_sch_sort_attrs(struct ced_sch_attr *attrs, size_t n);
int ced_sch_add_annot(struct ced_sch_reader *r, struct ced_sch_vec *annots,
	const struct ced_sch_annot *annot, struct ced_pos pos);
void ced_sch_sort_annots(struct ced_sch_vec *annots);

/* Assembly. */
struct ced_sch_space_builder {
	struct ced_sch_name name;
	struct ced_sch_annots annots;
	struct ced_sch_vec commons, entities, actions;
};

struct ced_sch_builder {
	struct ced_sch_vec spaces; /* of struct ced_sch_space_builder * */
};

struct ced_sch_space_builder *ced_sch_add_space(struct ced_sch_reader *r, struct ced_sch_builder *b,
	const struct ced_sch_name *name, struct ced_sch_annots annots);
int ced_sch_add_common(struct ced_sch_reader *r, struct ced_sch_space_builder *b,
	const struct ced_sch_common *common);
int ced_sch_add_entity(struct ced_sch_reader *r, struct ced_sch_space_builder *b,
	const struct ced_sch_entity *entity);
int ced_sch_add_action(struct ced_sch_reader *r, struct ced_sch_space_builder *b,
	const struct ced_sch_action *action);

/* Checks that no name is declared twice and makes the tree. */
int ced_sch_finish(
	struct ced_sch_reader *r, const struct ced_sch_builder *b, struct ced_sch_tree *ret_tree);

/* The readers. The tree lives in `arena`; its strings may point into `src`, which must live as
 * long. */
int ced_sch_parse_text(struct ced_slice src, struct ced_arena *arena,
	const struct cedar_limits *limits, struct ced_sch_tree *ret_tree, struct cedar_error *err);
int ced_sch_parse_json(struct ced_slice src, struct ced_arena *arena,
	const struct cedar_limits *limits, struct ced_sch_tree *ret_tree, struct cedar_error *err);

#endif
