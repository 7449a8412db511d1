/*
 * Capabilities: what is known to exist where an expression is evaluated.
 *
 * `x has a` that was true makes `x.a` safe, `x.hasTag(k)` makes `x.getTag(k)` safe. A capability
 * names the expressions by their *shape*: shapes are hash-consed, so that two expressions are the
 * same exactly when their shapes have the same number. The shape is the one of the official
 * engine's core language, in which `a != b` is `!(a == b)`, `a > b` is `!(a <= b)`, and
 * `e is T in f` is `e is T && e in f`.
 *
 * Sets are immutable trees of unions and intersections that share their parts: making one costs
 * nothing, asking one walks the tree behind a 64-bit filter.
 */
#ifndef CEDAR_CAPS_H
#define CEDAR_CAPS_H

#include <stdbool.h>
#include <stdint.h>

#include "cedar/arena.h"
#include "cedar/ast.h"

typedef uint32_t ced_shape_id; /* 0: none, after a failure to get memory */

struct ced_shape_table {
	struct ced_arena *arena;
	struct ced_shape **slots;
	size_t n_slots;
	uint32_t n;
	/* Expressions whose shape is known, by address. */
	struct ced_shape_memo *memo;
	size_t n_memo_slots, n_memo;
};

int ced_shape_table_init(struct ced_shape_table *t, struct ced_arena *arena);

ced_shape_id ced_shape_of(struct ced_shape_table *t, const struct ced_expr *e);
/* The shapes of `base.name` and of the string literal `s`, without an expression at hand. */
ced_shape_id ced_shape_of_attr(
	struct ced_shape_table *t, ced_shape_id base, const struct ced_name *name);
ced_shape_id ced_shape_of_string(struct ced_shape_table *t, const struct ced_name *s);

enum ced_cap_kind { CED_CAP_ATTR, CED_CAP_TAG };

struct ced_cap {
	enum ced_cap_kind kind;
	ced_shape_id on;  /* the entity or record */
	ced_shape_id key; /* the attribute or the tag: for an attribute the shape of its name as a
			     string */
};

struct ced_caps; /* NULL is the empty set */

const struct ced_caps *ced_caps_one(struct ced_arena *arena, struct ced_cap cap);
const struct ced_caps *ced_caps_union(
	struct ced_arena *arena, const struct ced_caps *a, const struct ced_caps *b);
const struct ced_caps *ced_caps_intersect(
	struct ced_arena *arena, const struct ced_caps *a, const struct ced_caps *b);

/* Counts the nodes that it visits in *steps. */
bool ced_caps_has(const struct ced_caps *set, struct ced_cap cap, uint64_t *steps);

#endif
