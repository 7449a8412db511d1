/* Capabilities and the shapes of expressions. See caps.h. */
#include "cedar/caps.h"

#include <stdlib.h>
#include <string.h>

/* ---- shapes ---- */

/* What a node is, apart from its parts. Operators that the core language does not have are built
 * from those that it has. */
struct ced_shape {
	uint32_t id, hash;
	uint32_t tag;                      /* enum ced_expr_kind, and what belongs to it */
	int64_t num;                       /* a number, a bool, a variable */
	const struct ced_name *a, *b;      /* a string, a name; an entity's type and id; or NULL */
	const struct ced_pattern *pattern; /* of `like` */
	const ced_shape_id *parts;
	const struct ced_name *const *keys; /* of a record, sorted; NULL otherwise */
	uint32_t n_parts;
	struct ced_shape *next;
};

struct ced_shape_memo {
	const struct ced_expr *e;
	ced_shape_id id;
};

enum { FIRST_SLOTS = 64 };

int ced_shape_table_init(struct ced_shape_table *t, struct ced_arena *arena)
{
	*t = (struct ced_shape_table){
		.arena = arena, .n_slots = FIRST_SLOTS, .n_memo_slots = FIRST_SLOTS};
	t->slots = ced_arena_alloc(arena, FIRST_SLOTS * sizeof(*t->slots));
	t->memo = ced_arena_alloc(arena, FIRST_SLOTS * sizeof(*t->memo));
	return t->slots && t->memo ? 0 : -1;
}

static uint32_t mix(uint32_t h, uint64_t v)
{
	return ced_hash_pair(ced_hash_pair(h, (uint32_t)v), (uint32_t)(v >> 32));
}

static uint32_t shape_hash(const struct ced_shape *s)
{
	uint32_t h = mix(s->tag, (uint64_t)s->num);

	h = mix(mix(h, s->a ? s->a->hash : 0), s->b ? s->b->hash : 0);
	for (uint32_t i = 0; i < s->n_parts; i++) {
		h = mix(h, s->parts[i]);
		if (s->keys)
			h = mix(h, s->keys[i]->hash);
	}
	return h;
}

static bool same_name(const struct ced_name *a, const struct ced_name *b)
{
	return a == b || (a && b && ced_name_eq(a, b));
}

static bool same_pattern(const struct ced_pattern *a, const struct ced_pattern *b)
{
	if (a == b)
		return true;
	if (!a || !b || a->count != b->count)
		return false;
	for (uint32_t i = 0; i < a->count; i++)
		if (!ced_name_eq(a->parts[i], b->parts[i]))
			return false;
	return true;
}

static bool shape_same(const struct ced_shape *x, const struct ced_shape *y)
{
	if (x->hash != y->hash || x->tag != y->tag || x->num != y->num ||
		x->n_parts != y->n_parts || !same_name(x->a, y->a) || !same_name(x->b, y->b) ||
		!same_pattern(x->pattern, y->pattern))
		return false;
	for (uint32_t i = 0; i < x->n_parts; i++)
		if (x->parts[i] != y->parts[i] ||
			(x->keys && y->keys && !ced_name_eq(x->keys[i], y->keys[i])))
			return false;
	return true;
}

static void grow_shapes(struct ced_shape_table *t)
{
	size_t n_slots = t->n_slots * 2;
	struct ced_shape **slots = ced_arena_alloc(t->arena, n_slots * sizeof(*slots));

	if (!slots)
		return;
	for (size_t i = 0; i < t->n_slots; i++)
		for (struct ced_shape *s = t->slots[i], *next; s; s = next) {
			next = s->next;
			s->next = slots[s->hash & (n_slots - 1)];
			slots[s->hash & (n_slots - 1)] = s;
		}
	t->slots = slots;
	t->n_slots = n_slots;
}

/* `want->parts` and `want->keys` are copied when the shape is new. */
static ced_shape_id intern(struct ced_shape_table *t, struct ced_shape want)
{
	struct ced_shape *s;
	ced_shape_id *parts;
	size_t size = want.n_parts * sizeof(*parts);

	for (uint32_t i = 0; i < want.n_parts; i++)
		if (want.parts[i] == 0)
			return 0;
	want.hash = shape_hash(&want);
	for (s = t->slots[want.hash & (t->n_slots - 1)]; s; s = s->next)
		if (shape_same(s, &want))
			return s->id;
	if (t->n >= t->n_slots)
		grow_shapes(t);
	s = ced_arena_alloc(t->arena, sizeof(*s));
	parts = ced_arena_alloc(t->arena, size + 1);
	if (!s || !parts)
		return 0;
	*s = want;
	if (size)
		memcpy(parts, want.parts, size);
	s->parts = parts;
	s->id = ++t->n;
	s->next = t->slots[s->hash & (t->n_slots - 1)];
	t->slots[s->hash & (t->n_slots - 1)] = s;
	return s->id;
}

static ced_shape_id of_parts(struct ced_shape_table *t, enum ced_expr_kind kind,
	const ced_shape_id *parts, uint32_t n_parts)
{
	return intern(t, (struct ced_shape){.tag = kind, .parts = parts, .n_parts = n_parts});
}

static ced_shape_id of_pair(
	struct ced_shape_table *t, enum ced_expr_kind kind, ced_shape_id a, ced_shape_id b)
{
	return of_parts(t, kind, (const ced_shape_id[]){a, b}, 2);
}

static ced_shape_id of_not(struct ced_shape_table *t, ced_shape_id a)
{
	return of_parts(t, CED_EXPR_NOT, &a, 1);
}

ced_shape_id ced_shape_of_string(struct ced_shape_table *t, const struct ced_name *s)
{
	return intern(t, (struct ced_shape){.tag = CED_EXPR_LITERAL, .num = CED_STRING, .a = s});
}

ced_shape_id ced_shape_of_attr(
	struct ced_shape_table *t, ced_shape_id base, const struct ced_name *name)
{
	return intern(t,
		(struct ced_shape){.tag = CED_EXPR_GET, .a = name, .parts = &base, .n_parts = 1});
}

static ced_shape_id of_has(
	struct ced_shape_table *t, ced_shape_id base, const struct ced_name *name)
{
	return intern(t,
		(struct ced_shape){.tag = CED_EXPR_HAS, .a = name, .parts = &base, .n_parts = 1});
}

/* `e has a.b.c` is `(e has a && e.a has b) && e.a.b has c`. */
static ced_shape_id of_has_path(struct ced_shape_table *t, const struct ced_expr *e)
{
	ced_shape_id base = ced_shape_of(t, e->u.has.left), has = of_has(t, base, e->u.has.path[0]);

	for (uint32_t i = 1; i < e->u.has.count; i++) {
		base = ced_shape_of_attr(t, base, e->u.has.path[i - 1]);
		has = of_pair(t, CED_EXPR_AND, has, of_has(t, base, e->u.has.path[i]));
	}
	return has;
}

static ced_shape_id of_is(struct ced_shape_table *t, const struct ced_expr *e)
{
	ced_shape_id base = ced_shape_of(t, e->u.is.left), is;

	is = intern(
		t, (struct ced_shape){
			   .tag = CED_EXPR_IS, .a = e->u.is.type, .parts = &base, .n_parts = 1});
	if (!e->u.is.in)
		return is;
	return of_pair(
		t, CED_EXPR_AND, is, of_pair(t, CED_EXPR_IN, base, ced_shape_of(t, e->u.is.in)));
}

static ced_shape_id of_like(struct ced_shape_table *t, const struct ced_expr *e)
{
	ced_shape_id base = ced_shape_of(t, e->u.like.left);

	return intern(t, (struct ced_shape){.tag = CED_EXPR_LIKE,
				 .pattern = e->u.like.pattern,
				 .parts = &base,
				 .n_parts = 1});
}

/* A set, or a call of the function `num`. */
static ced_shape_id of_items(struct ced_shape_table *t, enum ced_expr_kind kind, int64_t num,
	const struct ced_expr *const *items, uint32_t n)
{
	ced_shape_id *parts = ced_new_array(t->arena, n, ced_shape_id);

	if (!parts)
		return 0;
	for (uint32_t i = 0; i < n; i++)
		parts[i] = ced_shape_of(t, items[i]);
	return intern(t, (struct ced_shape){.tag = kind, .num = num, .parts = parts, .n_parts = n});
}

static int compare_entries(const void *a, const void *b)
{
	return ced_name_cmp(((const struct ced_entry *)a)->key, ((const struct ced_entry *)b)->key);
}

/* Records are the same whatever the order in which they were written. */
static ced_shape_id of_record(struct ced_shape_table *t, const struct ced_expr *e)
{
	uint32_t n = e->u.record.count;
	struct ced_entry *sorted = ced_new_array(t->arena, n, struct ced_entry);
	ced_shape_id *parts = ced_new_array(t->arena, n, ced_shape_id);
	const struct ced_name **keys = ced_new_array(t->arena, n, const struct ced_name *);

	if (!sorted || !parts || !keys)
		return 0;
	for (uint32_t i = 0; i < n; i++)
		sorted[i] = e->u.record.entries[i];
	qsort(sorted, n, sizeof(*sorted), compare_entries);
	for (uint32_t i = 0; i < n; i++) {
		keys[i] = sorted[i].key;
		parts[i] = ced_shape_of(t, sorted[i].value);
	}
	return intern(
		t, (struct ced_shape){
			   .tag = CED_EXPR_RECORD, .parts = parts, .keys = keys, .n_parts = n});
}

/* Operators of one and of two operands. */
static ced_shape_id of_operator(struct ced_shape_table *t, const struct ced_expr *e)
{
	ced_shape_id a = ced_shape_of(t, e->u.op.left), b;

	if (ced_expr_is_unary(e->kind))
		return of_parts(t, e->kind, &a, 1);
	b = ced_shape_of(t, e->u.op.right);
	switch ((int)e->kind) {
	case CED_EXPR_NE: return of_not(t, of_pair(t, CED_EXPR_EQ, a, b));
	case CED_EXPR_GT: return of_not(t, of_pair(t, CED_EXPR_LE, a, b));
	case CED_EXPR_GE: return of_not(t, of_pair(t, CED_EXPR_LT, a, b));
	default: return of_pair(t, e->kind, a, b);
	}
}

/* A literal is told apart by its kind, in `num`, and by what it is; numbers go where names do not.
 */
static ced_shape_id of_literal(struct ced_shape_table *t, struct ced_value v)
{
	ced_shape_id number;

	switch ((int)v.kind) {
	case CED_STRING: return ced_shape_of_string(t, v.u.string);
	case CED_ENTITY:
		return intern(t, (struct ced_shape){.tag = CED_EXPR_LITERAL,
					 .num = CED_ENTITY,
					 .a = v.u.uid->type,
					 .b = v.u.uid->id});
	case CED_BOOL:
		return intern(
			t, (struct ced_shape){.tag = CED_EXPR_LITERAL, .num = -1 - v.u.boolean});
	default:
		number = intern(t, (struct ced_shape){.tag = CED_EXPR_KINDS, .num = v.u.number});
		return intern(t, (struct ced_shape){.tag = CED_EXPR_LITERAL,
					 .num = v.kind,
					 .parts = &number,
					 .n_parts = 1});
	}
}

static ced_shape_id compute(struct ced_shape_table *t, const struct ced_expr *e)
{
	switch ((int)e->kind) {
	case CED_EXPR_LITERAL: return of_literal(t, e->u.literal);
	case CED_EXPR_VAR: return intern(t, (struct ced_shape){.tag = e->kind, .num = e->u.var});
	case CED_EXPR_GET:
		return ced_shape_of_attr(t, ced_shape_of(t, e->u.get.left), e->u.get.attr);
	case CED_EXPR_HAS: return of_has_path(t, e);
	case CED_EXPR_LIKE: return of_like(t, e);
	case CED_EXPR_IS: return of_is(t, e);
	case CED_EXPR_IF:
		return of_parts(t, e->kind,
			(const ced_shape_id[]){ced_shape_of(t, e->u.cond.test),
				ced_shape_of(t, e->u.cond.yes), ced_shape_of(t, e->u.cond.no)},
			3);
	case CED_EXPR_SET: return of_items(t, e->kind, 0, e->u.list.items, e->u.list.count);
	case CED_EXPR_CALL:
		return of_items(t, e->kind, e->u.call.fn, e->u.call.args, e->u.call.count);
	case CED_EXPR_RECORD: return of_record(t, e);
	default: return of_operator(t, e);
	}
}

/* ---- which shape an expression has, remembered by its address ---- */

static size_t memo_hash(const struct ced_expr *e)
{
	return (size_t)(((uintptr_t)e >> 4) * 0x9e3779b97f4a7c15u >> 32);
}

static struct ced_shape_memo *memo_find(
	struct ced_shape_memo *slots, size_t n_slots, const struct ced_expr *e)
{
	size_t at = memo_hash(e) & (n_slots - 1);

	while (slots[at].e && slots[at].e != e)
		at = (at + 1) & (n_slots - 1);
	return &slots[at];
}

/* Failing to grow costs speed only. */
static void memo_add(struct ced_shape_table *t, const struct ced_expr *e, ced_shape_id id)
{
	if (t->n_memo * 2 >= t->n_memo_slots) {
		size_t n_slots = t->n_memo_slots * 2;
		struct ced_shape_memo *slots = ced_arena_alloc(t->arena, n_slots * sizeof(*slots));

		if (!slots)
			return;
		for (size_t i = 0; i < t->n_memo_slots; i++)
			if (t->memo[i].e)
				*memo_find(slots, n_slots, t->memo[i].e) = t->memo[i];
		t->memo = slots;
		t->n_memo_slots = n_slots;
	}
	*memo_find(t->memo, t->n_memo_slots, e) = (struct ced_shape_memo){e, id};
	t->n_memo++;
}

ced_shape_id ced_shape_of(struct ced_shape_table *t, const struct ced_expr *e)
{
	const struct ced_shape_memo *known = memo_find(t->memo, t->n_memo_slots, e);
	ced_shape_id id;

	if (known->e)
		return known->id;
	id = compute(t, e);
	if (id)
		memo_add(t, e, id);
	return id;
}

/* ---- sets ---- */

enum caps_kind { CAPS_ONE, CAPS_UNION, CAPS_INTERSECT };

struct ced_caps {
	enum caps_kind kind;
	uint64_t filter; /* a bit for every capability that may be in the set */
	struct ced_cap cap;
	const struct ced_caps *left, *right;
};

static uint64_t filter_of(struct ced_cap cap)
{
	uint32_t h = mix(mix(cap.on, cap.key), (uint64_t)cap.kind);

	return (uint64_t)1 << (h & 63);
}

static const struct ced_caps *make(struct ced_arena *arena, struct ced_caps want)
{
	struct ced_caps *set = ced_arena_alloc(arena, sizeof(*set));

	if (set)
		*set = want;
	return set;
}

const struct ced_caps *ced_caps_one(struct ced_arena *arena, struct ced_cap cap)
{
	return make(
		arena, (struct ced_caps){.kind = CAPS_ONE, .filter = filter_of(cap), .cap = cap});
}

/* Without memory a smaller set is the answer, which can only refuse more. */
const struct ced_caps *ced_caps_union(
	struct ced_arena *arena, const struct ced_caps *a, const struct ced_caps *b)
{
	if (!a || a == b)
		return b;
	if (!b)
		return a;
	return make(arena, (struct ced_caps){.kind = CAPS_UNION,
				   .filter = a->filter | b->filter,
				   .left = a,
				   .right = b});
}

const struct ced_caps *ced_caps_intersect(
	struct ced_arena *arena, const struct ced_caps *a, const struct ced_caps *b)
{
	if (!a || !b || !(a->filter & b->filter))
		return NULL;
	if (a == b)
		return a;
	return make(arena, (struct ced_caps){.kind = CAPS_INTERSECT,
				   .filter = a->filter & b->filter,
				   .left = a,
				   .right = b});
}

/* Sets lean to the left, as chains of `&&` do: the left part is a loop, the right one recurses. */
bool ced_caps_has(const struct ced_caps *set, struct ced_cap cap, uint64_t *steps)
{
	uint64_t filter = filter_of(cap);

	for (; set; set = set->left) {
		++*steps;
		if (!(set->filter & filter))
			return false;
		if (set->kind == CAPS_ONE)
			return set->cap.kind == cap.kind && set->cap.on == cap.on &&
			       set->cap.key == cap.key;
		if (ced_caps_has(set->right, cap, steps)) {
			if (set->kind == CAPS_UNION)
				return true;
		} else if (set->kind == CAPS_INTERSECT) {
			return false;
		}
	}
	return false;
}
