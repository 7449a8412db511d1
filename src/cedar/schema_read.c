/* What the two schema readers share. See schema_read.h. */
#include "cedar/schema_read.h"

#include <stdlib.h>
#include <string.h>

#include "cedar/lex.h"
#include "cedar/slice.h"

static const struct ced_pos nowhere;

void *ced_sch_alloc(struct ced_sch_reader *r, size_t n)
{
	void *p = ced_arena_alloc(r->arena, n);

	if (!p)
		(void)ced_arena_fail(r->arena, r->err, nowhere);
	return p;
}

void *ced_sch_push(struct ced_sch_reader *r, struct ced_sch_vec *v, size_t elem_size)
{
	if (r->items >= CED_SCH_ITEMS_MAX) {
		(void)ced_fail_limit(r->err, nowhere, "schema_items", CED_SCH_ITEMS_MAX);
		return NULL;
	}
	r->items++;
	if (v->n == v->cap) {
		size_t cap = v->cap ? v->cap * 2 : 4;
		void *grown = ced_sch_alloc(r, cap * elem_size);

		if (!grown)
			return NULL;
		if (v->n)
			memcpy(grown, v->v, v->n * elem_size);
		v->v = grown;
		v->cap = cap;
	}
	return (char *)v->v + v->n++ * elem_size;
}

int ced_sch_enter(struct ced_sch_reader *r, struct ced_pos pos)
{
	if (r->depth >= r->limits->nesting)
		return ced_fail_limit(r->err, pos, "nesting", r->limits->nesting);
	r->depth++;
	return 0;
}

void ced_sch_leave(struct ced_sch_reader *r)
{
	r->depth--;
}

bool ced_sch_is_reserved(struct ced_slice word)
{
	return ced_is_reserved(word) && !ced_slice_is(word, "__cedar");
}

static size_t ident_length(struct ced_slice s, size_t at)
{
	size_t n = 0;

	while (at + n < s.n) {
		char c = s.p[at + n];
		bool letter = c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');

		if (!letter && !(n > 0 && c >= '0' && c <= '9'))
			break;
		n++;
	}
	return n;
}

/* Walk over a path in normal form; *ret_cedar says whether a part is `__cedar`. */
static bool walk_path(struct ced_slice s, bool *ret_cedar)
{
	size_t at = 0;

	*ret_cedar = false;
	for (;;) {
		size_t n = ident_length(s, at);
		struct ced_slice part = {s.p + at, n};

		if (n == 0 || ced_sch_is_reserved(part))
			return false;
		if (ced_slice_is(part, "__cedar"))
			*ret_cedar = true;
		at += n;
		if (at == s.n)
			return true;
		if (s.n - at < 2 || s.p[at] != ':' || s.p[at + 1] != ':')
			return false;
		at += 2;
	}
}

bool ced_sch_is_path(struct ced_slice s)
{
	bool cedar;

	return walk_path(s, &cedar);
}

bool ced_sch_is_any_ident(struct ced_slice s)
{
	return s.n > 0 && ident_length(s, 0) == s.n;
}

bool ced_sch_is_ident(struct ced_slice s)
{
	return ced_sch_is_any_ident(s) && !ced_sch_is_reserved(s);
}

int ced_sch_join_path(struct ced_sch_reader *r, const struct ced_slice *parts, size_t n,
	struct ced_slice *ret_path)
{
	size_t size = 0;
	char *at;

	if (n == 1) {
		*ret_path = parts[0];
		return 0;
	}
	for (size_t i = 0; i < n; i++)
		size += parts[i].n + 2;
	at = ced_sch_alloc(r, size);
	if (!at)
		return -1;
	*ret_path = (struct ced_slice){at, size - 2};
	for (size_t i = 0; i < n; i++) {
		memcpy(at, parts[i].p, parts[i].n);
		at += parts[i].n;
		if (i + 1 < n) {
			memcpy(at, "::", 2);
			at += 2;
		}
	}
	return 0;
}

struct ced_sch_type *ced_sch_new_type(
	struct ced_sch_reader *r, enum ced_sch_type_kind kind, struct ced_pos pos)
{
	struct ced_sch_type *type = ced_sch_alloc(r, sizeof(*type));

	if (type) {
		type->kind = kind;
		type->pos = pos;
	}
	return type;
}

static int compare_places(struct ced_pos a, struct ced_pos b)
{
	return a.offset < b.offset ? -1 : a.offset > b.offset;
}

/* qsort is not stable: the place in the source breaks ties. */
static int compare_attrs(const void *va, const void *vb)
{
	const struct ced_sch_attr *a = va, *b = vb;
	int c = ced_slice_cmp(a->name, b->name);

	if (c != 0)
		return c;
	return compare_places(a->type->pos, b->type->pos);
}

size_t ced_sch_sort_attrs(struct ced_sch_attr *attrs, size_t n)
{
	size_t kept = 0;

	if (n == 0)
		return 0;
	qsort(attrs, n, sizeof(*attrs), compare_attrs);
	for (size_t i = 0; i < n; i++)
		if (i + 1 == n || !ced_slice_eq(attrs[i].name, attrs[i + 1].name))
			attrs[kept++] = attrs[i];
	return kept;
}

int ced_sch_add_annot(struct ced_sch_reader *r, struct ced_sch_vec *annots,
	const struct ced_sch_annot *annot, struct ced_pos pos)
{
	const struct ced_sch_annot *v = annots->v;
	struct ced_sch_annot *slot;

	if (annots->n >= CED_SCH_ANNOTS_MAX)
		return ced_fail_limit(r->err, pos, "annotations", CED_SCH_ANNOTS_MAX);
	for (size_t i = 0; i < annots->n; i++)
		if (ced_slice_eq(v[i].key, annot->key))
			return ced_fail(r->err, CEDAR_E_DUPLICATE, pos,
				"the annotation @%.*s is given twice", ced_shown(annot->key),
				annot->key.p);
	slot = ced_sch_push(r, annots, sizeof(*slot));
	if (!slot)
		return -1;
	*slot = *annot;
	return 0;
}

static int compare_annots(const void *va, const void *vb)
{
	return ced_slice_cmp(
		((const struct ced_sch_annot *)va)->key, ((const struct ced_sch_annot *)vb)->key);
}

void ced_sch_sort_annots(struct ced_sch_vec *annots)
{
	if (annots->n)
		qsort(annots->v, annots->n, sizeof(struct ced_sch_annot), compare_annots);
}

struct ced_sch_space_builder *ced_sch_add_space(struct ced_sch_reader *r, struct ced_sch_builder *b,
	const struct ced_sch_name *name, struct ced_sch_annots annots)
{
	struct ced_sch_space_builder *space, **slot;
	bool cedar;

	if (name->text.n > 0 && walk_path(name->text, &cedar) && cedar) {
		(void)ced_fail(
			r->err, CEDAR_E_SYNTAX, name->pos, "the namespace `__cedar` is reserved");
		return NULL;
	}
	space = ced_sch_alloc(r, sizeof(*space));
	slot = space ? ced_sch_push(r, &b->spaces, sizeof(struct ced_sch_space_builder *)) : NULL;
	if (!slot)
		return NULL;
	*slot = space;
	space->name = *name;
	space->annots = annots;
	return space;
}

static int refuse_cedar(struct ced_sch_reader *r, const struct ced_sch_name *name)
{
	if (ced_slice_is(name->text, "__cedar"))
		return ced_fail(
			r->err, CEDAR_E_SYNTAX, name->pos, "the name `__cedar` is reserved");
	return 0;
}

int ced_sch_add_common(struct ced_sch_reader *r, struct ced_sch_space_builder *b,
	const struct ced_sch_common *common)
{
	static const char *const taken[] = {
		"Bool", "Boolean", "Entity", "Extension", "Long", "Record", "Set", "String"};
	struct ced_sch_common *slot;

	if (refuse_cedar(r, &common->name) < 0)
		return -1;
	for (size_t i = 0; i < sizeof(taken) / sizeof(*taken); i++)
		if (ced_slice_is(common->name.text, taken[i]))
			return ced_fail(r->err, CEDAR_E_SYNTAX, common->name.pos,
				"a common type cannot be named `%s`, which has a meaning already",
				taken[i]);
	slot = ced_sch_push(r, &b->commons, sizeof(*slot));
	if (!slot)
		return -1;
	*slot = *common;
	return 0;
}

int ced_sch_add_entity(struct ced_sch_reader *r, struct ced_sch_space_builder *b,
	const struct ced_sch_entity *entity)
{
	struct ced_sch_entity *slot;

	if (refuse_cedar(r, &entity->name) < 0)
		return -1;
	slot = ced_sch_push(r, &b->entities, sizeof(*slot));
	if (!slot)
		return -1;
	*slot = *entity;
	return 0;
}

int ced_sch_add_action(struct ced_sch_reader *r, struct ced_sch_space_builder *b,
	const struct ced_sch_action *action)
{
	struct ced_sch_action *slot = ced_sch_push(r, &b->actions, sizeof(*slot));

	if (!slot)
		return -1;
	*slot = *action;
	return 0;
}

/* Every kind of declaration starts with its name. */
static int compare_names(const void *va, const void *vb)
{
	const struct ced_sch_name *a = va, *b = vb;
	int c = ced_slice_cmp(a->text, b->text);

	if (c != 0)
		return c;
	return compare_places(a->pos, b->pos);
}

static int sort_decls(
	struct ced_sch_reader *r, const struct ced_sch_vec *decls, size_t size, const char *what)
{
	if (decls->n < 2)
		return 0;
	qsort(decls->v, decls->n, size, compare_names);
	for (size_t i = 1; i < decls->n; i++) {
		const char *at = (const char *)decls->v + i * size;
		const struct ced_sch_name *name = (const struct ced_sch_name *)(const void *)at;
		const struct ced_sch_name *before =
			(const struct ced_sch_name *)(const void *)(at - size);

		if (ced_slice_eq(before->text, name->text))
			return ced_fail(r->err, CEDAR_E_DUPLICATE, name->pos,
				"the %s `%.*s` is declared twice", what, ced_shown(name->text),
				name->text.p);
	}
	return 0;
}

static int finish_space(struct ced_sch_reader *r, const struct ced_sch_space_builder *b,
	struct ced_sch_namespace *space)
{
	if (sort_decls(r, &b->commons, sizeof(struct ced_sch_common), "common type") < 0 ||
		sort_decls(r, &b->entities, sizeof(struct ced_sch_entity), "entity type") < 0 ||
		sort_decls(r, &b->actions, sizeof(struct ced_sch_action), "action") < 0)
		return -1;
	*space = (struct ced_sch_namespace){
		.name = b->name,
		.annots = b->annots,
		.commons = b->commons.v,
		.n_commons = b->commons.n,
		.entities = b->entities.v,
		.n_entities = b->entities.n,
		.actions = b->actions.v,
		.n_actions = b->actions.n,
	};
	return 0;
}

int ced_sch_finish(
	struct ced_sch_reader *r, const struct ced_sch_builder *b, struct ced_sch_tree *ret_tree)
{
	struct ced_sch_space_builder *const *builders = b->spaces.v;
	struct ced_sch_vec spaces = {.n = b->spaces.n};

	spaces.v = ced_sch_alloc(r, b->spaces.n * sizeof(struct ced_sch_namespace) + 1);
	if (!spaces.v)
		return -1;
	for (size_t i = 0; i < b->spaces.n; i++)
		if (finish_space(r, builders[i], (struct ced_sch_namespace *)spaces.v + i) < 0)
			return -1;
	if (sort_decls(r, &spaces, sizeof(struct ced_sch_namespace), "namespace") < 0)
		return -1;
	*ret_tree = (struct ced_sch_tree){.spaces = spaces.v, .n_spaces = spaces.n};
	return 0;
}
