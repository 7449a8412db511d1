/* Types of the validator: hash consing, attribute lookup, least upper bounds. See type.h. */
#include "cedar/type.h"

#include <string.h>

#include "cedar/slice.h"

enum { CED_TY_FIRST_SLOTS = 64 };

int ced_type_ext_from_name(struct ced_slice name)
{
	for (int kind = CED_DECIMAL; kind < CED_KINDS; kind++)
		if (ced_slice_is(name, ced_kind_name((enum ced_kind)kind)))
			return kind;
	return -1;
}

int ced_types_init(struct ced_types *t, struct ced_arena *arena, const struct ced_types *base)
{
	struct ced_type **slots = ced_arena_alloc(arena, CED_TY_FIRST_SLOTS * sizeof(*slots));

	if (!slots)
		return -1;
	*t = (struct ced_types){
		.arena = arena, .base = base, .slots = slots, .n_slots = CED_TY_FIRST_SLOTS};
	return 0;
}

static uint32_t mix(uint32_t h, uint64_t v)
{
	return ced_hash_pair(ced_hash_pair(h, (uint32_t)v), (uint32_t)(v >> 32));
}

/* Parts are hash-consed already, so a part is hashed and compared by its own hash and pointer. */
static uint32_t hash_of(const struct ced_type *ty)
{
	uint32_t h = mix((uint32_t)ty->kind, ty->id);

	if (ty->elem)
		h = mix(h, ty->elem->hash);
	for (size_t i = 0; i < ty->n_attrs; i++) {
		h = mix(h, ced_hash(ty->attrs[i].name.p, ty->attrs[i].name.n));
		h = mix(h, ((uint64_t)ty->attrs[i].type->hash << 1) | ty->attrs[i].required);
	}
	return h;
}

static bool same(const struct ced_type *a, const struct ced_type *b)
{
	if (a->hash != b->hash || a->kind != b->kind || a->id != b->id || a->elem != b->elem ||
		a->n_attrs != b->n_attrs)
		return false;
	for (size_t i = 0; i < a->n_attrs; i++)
		if (a->attrs[i].type != b->attrs[i].type ||
			a->attrs[i].required != b->attrs[i].required ||
			!ced_slice_eq(a->attrs[i].name, b->attrs[i].name))
			return false;
	return true;
}

static const struct ced_type *lookup(const struct ced_types *t, const struct ced_type *want)
{
	do
		for (struct ced_type *ty = t->slots[want->hash & (t->n_slots - 1)]; ty;
			ty = ty->next)
			if (same(ty, want))
				return ty;
	while ((t = t->base));
	return NULL;
}

/* Failing to grow costs speed only. */
static void grow(struct ced_types *t)
{
	size_t n_slots = t->n_slots * 2;
	struct ced_type **slots = ced_arena_alloc(t->arena, n_slots * sizeof(*slots));

	if (!slots)
		return;
	for (size_t i = 0; i < t->n_slots; i++)
		for (struct ced_type *ty = t->slots[i], *next; ty; ty = next) {
			next = ty->next;
			ty->next = slots[ty->hash & (n_slots - 1)];
			slots[ty->hash & (n_slots - 1)] = ty;
		}
	t->slots = slots;
	t->n_slots = n_slots;
}

static const struct ced_type *intern(struct ced_types *t, struct ced_type *want)
{
	want->hash = hash_of(want);

	const struct ced_type *found = lookup(t, want);

	if (found)
		return found;

	struct ced_type *ty = ced_arena_alloc(t->arena, sizeof(*ty));

	if (!ty)
		return NULL;
	*ty = *want;
	if (want->n_attrs > 0) {
		struct ced_attr *copy = ced_arena_alloc(t->arena, want->n_attrs * sizeof(*copy));

		if (!copy)
			return NULL;
		memcpy(copy, want->attrs, want->n_attrs * sizeof(*copy));
		ty->attrs = copy;
	}
	if (t->n >= t->n_slots)
		grow(t);
	ty->next = t->slots[ty->hash & (t->n_slots - 1)];
	t->slots[ty->hash & (t->n_slots - 1)] = ty;
	t->n++;
	return ty;
}

const struct ced_type *ced_type_basic(struct ced_types *t, enum ced_type_kind kind)
{
	return intern(t, &(struct ced_type){.kind = kind});
}

const struct ced_type *ced_type_ext(struct ced_types *t, enum ced_kind ext)
{
	return intern(t, &(struct ced_type){.kind = CED_TY_EXT, .id = (uint32_t)ext});
}

const struct ced_type *ced_type_entity(struct ced_types *t, uint32_t index)
{
	return intern(t, &(struct ced_type){.kind = CED_TY_ENTITY, .id = index});
}

const struct ced_type *ced_type_set(struct ced_types *t, const struct ced_type *elem)
{
	return intern(
		t, &(struct ced_type){.kind = CED_TY_SET, .elem = elem, .depth = elem->depth + 1});
}

const struct ced_type *ced_type_record(struct ced_types *t, const struct ced_attr *attrs, size_t n)
{
	uint32_t depth = 0;

	for (size_t i = 0; i < n; i++)
		if (attrs[i].type->depth > depth)
			depth = attrs[i].type->depth;
	return intern(t,
		&(struct ced_type){
			.kind = CED_TY_RECORD, .attrs = attrs, .n_attrs = n, .depth = depth + 1});
}

const struct ced_attr *ced_type_find_attr(
	const struct ced_attr *attrs, size_t n, struct ced_slice name)
{
	size_t lo = 0, hi = n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		int c = ced_slice_cmp(attrs[mid].name, name);

		if (c == 0)
			return &attrs[mid];
		if (c < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

const struct ced_attr *ced_type_attr(const struct ced_type *record, struct ced_slice name)
{
	return ced_type_find_attr(record->attrs, record->n_attrs, name);
}

static int join_records(struct ced_types *t, const struct ced_type *a, const struct ced_type *b,
	const struct ced_type **ret_ty)
{
	if (a->n_attrs != b->n_attrs)
		return 0;

	struct ced_attr *attrs = ced_arena_alloc(t->arena, a->n_attrs * sizeof(*attrs) + 1);

	if (!attrs)
		return -1;
	for (size_t i = 0; i < a->n_attrs; i++) {
		const struct ced_type *part = NULL;

		if (a->attrs[i].required != b->attrs[i].required ||
			!ced_slice_eq(a->attrs[i].name, b->attrs[i].name))
			return 0;
		if (ced_type_join(t, a->attrs[i].type, b->attrs[i].type, &part) < 0)
			return -1;
		if (!part)
			return 0;
		attrs[i] = (struct ced_attr){
			.name = a->attrs[i].name, .required = a->attrs[i].required, .type = part};
	}
	*ret_ty = ced_type_record(t, attrs, a->n_attrs);
	return *ret_ty ? 0 : -1;
}

int ced_type_join(struct ced_types *t, const struct ced_type *a, const struct ced_type *b,
	const struct ced_type **ret_ty)
{
	const struct ced_type *elem = NULL;

	*ret_ty = NULL;
	if (a == b) {
		*ret_ty = a;
		return 0;
	}
	if (ced_type_is_bool(a) && ced_type_is_bool(b)) {
		*ret_ty = ced_type_basic(t, CED_TY_BOOL);
		return *ret_ty ? 0 : -1;
	}
	if (a->kind != b->kind || a->depth != b->depth)
		return 0;
	if (a->kind == CED_TY_RECORD)
		return join_records(t, a, b, ret_ty);
	if (a->kind != CED_TY_SET)
		return 0;
	if (ced_type_join(t, a->elem, b->elem, &elem) < 0)
		return -1;
	if (!elem)
		return 0;
	*ret_ty = ced_type_set(t, elem);
	return *ret_ty ? 0 : -1;
}
