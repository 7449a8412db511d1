/*
 * From a schema as written to a resolved one.
 *
 * A name is looked up in its namespace first and outside of all namespaces second; at each place a
 * common type goes before an entity type, and the built-in types come last. A name that is written
 * with "::" is complete as it stands. Nothing may be declared both inside and outside of a
 * namespace (RFC 70).
 *
 * Common types are resolved on first use, which finds cycles; each is resolved once.
 */
#include "cedar/schema.h"

#include <stdlib.h>
#include <string.h>

#include "cedar/closure.h"
#include "cedar/schema_read.h"
#include "cedar/slice.h"

static const struct ced_pos nowhere;

enum common_state { UNRESOLVED, RESOLVING, RESOLVED };

struct common {
	const struct ced_sch_common *decl;
	const struct ced_sch_namespace *space;
	enum common_state state;
	const struct ced_type *type;
};

struct resolver {
	struct cedar_schema *s;
	const struct ced_sch_tree *tree;
	struct ced_sch_reader r; /* for errors and memory */
	struct common *commons;
	uint32_t n_commons;
	struct ced_map common_of; /* full name -> index */
	unsigned depth;           /* of the recursion, through common types */
};

/* ---- names ---- */

bool ced_schema_is_action_name(struct ced_slice name)
{
	static const char word[] = "Action";
	size_t n = sizeof(word) - 1;

	if (name.n < n || memcmp(name.p + name.n - n, word, n) != 0)
		return false;
	return name.n == n || (name.n > n + 2 && name.p[name.n - n - 1] == ':');
}

static bool is_qualified(struct ced_slice name)
{
	return name.n > 0 && memchr(name.p, ':', name.n);
}

static int full_name(struct resolver *v, const struct ced_sch_namespace *space,
	struct ced_slice name, struct ced_slice *ret_full)
{
	struct ced_slice parts[2] = {space->name.text, name};

	if (space->name.text.n == 0) {
		*ret_full = name;
		return 0;
	}
	return ced_sch_join_path(&v->r, parts, 2, ret_full);
}

/* ---- declarations ---- */

static int declare_etype(struct resolver *v, struct ced_slice full, const struct ced_sch_name *at,
	uint32_t *ret_index)
{
	struct cedar_schema *s = v->s;

	if (s->n_etypes >= CED_SCHEMA_TYPES_MAX)
		return ced_fail(v->r.err, CEDAR_E_SCHEMA, at->pos,
			"the schema has more than %d entity types", CED_SCHEMA_TYPES_MAX);
	*ret_index = s->n_etypes++;
	s->etypes[*ret_index] = (struct ced_etype){.name = full};
	if (ced_map_set(&s->etype_of, &s->arena, full, *ret_index) < 0)
		return ced_arena_fail(&v->s->arena, v->r.err, at->pos);
	return 0;
}

static int declare_entities(struct resolver *v, const struct ced_sch_namespace *space)
{
	for (size_t i = 0; i < space->n_entities; i++) {
		const struct ced_sch_name *name = &space->entities[i].name;
		struct ced_slice full;
		uint32_t index;

		if (ced_slice_is(name->text, "Action"))
			return ced_fail(v->r.err, CEDAR_E_SCHEMA, name->pos,
				"an entity type cannot be named `Action`: that is the type of "
				"actions");
		if (full_name(v, space, name->text, &full) < 0 ||
			declare_etype(v, full, name, &index) < 0)
			return -1;
		v->s->etypes[index].declared = true;
	}
	return 0;
}

static int declare_commons(struct resolver *v, const struct ced_sch_namespace *space)
{
	for (size_t i = 0; i < space->n_commons; i++) {
		struct common *common = &v->commons[v->n_commons];
		struct ced_slice full;

		common->decl = &space->commons[i];
		common->space = space;
		if (full_name(v, space, common->decl->name.text, &full) < 0)
			return -1;
		if (ced_map_set(&v->common_of, &v->s->arena, full, v->n_commons++) < 0)
			return ced_arena_fail(&v->s->arena, v->r.err, nowhere);
	}
	return 0;
}

static int declare_actions(struct resolver *v, const struct ced_sch_namespace *space)
{
	struct cedar_schema *s = v->s;
	struct ced_slice full;
	uint32_t etype;

	if (space->n_actions == 0)
		return 0;
	if (full_name(v, space, ced_slice_of("Action"), &full) < 0 ||
		declare_etype(v, full, &space->actions[0].name, &etype) < 0)
		return -1;
	for (size_t i = 0; i < space->n_actions; i++) {
		const struct ced_sch_name *name = &space->actions[i].name;

		if (s->n_actions >= CED_SCHEMA_ACTIONS_MAX)
			return ced_fail(v->r.err, CEDAR_E_SCHEMA, name->pos,
				"the schema has more than %d actions", CED_SCHEMA_ACTIONS_MAX);
		s->actions[s->n_actions] = (struct ced_action){.etype = etype, .id = name->text};
		if (ced_map_set(&s->action_of[etype], &s->arena, name->text, s->n_actions++) < 0)
			return ced_arena_fail(&v->s->arena, v->r.err, name->pos);
	}
	return 0;
}

static int allocate(struct resolver *v)
{
	size_t n_etypes = 0, n_actions = 0, n_commons = 0;

	for (size_t i = 0; i < v->tree->n_spaces; i++) {
		const struct ced_sch_namespace *space = &v->tree->spaces[i];

		n_etypes += space->n_entities + 1;
		n_actions += space->n_actions;
		n_commons += space->n_commons;
	}
	v->s->etypes = ced_sch_alloc(&v->r, n_etypes * sizeof(*v->s->etypes) + 1);
	v->s->action_of = ced_sch_alloc(&v->r, n_etypes * sizeof(*v->s->action_of) + 1);
	v->s->actions = ced_sch_alloc(&v->r, n_actions * sizeof(*v->s->actions) + 1);
	v->commons = ced_sch_alloc(&v->r, n_commons * sizeof(*v->commons) + 1);
	return v->s->etypes && v->s->action_of && v->s->actions && v->commons ? 0 : -1;
}

/* Action types stand behind the declared ones. */
static int declare_all(struct resolver *v)
{
	if (allocate(v) < 0)
		return -1;
	for (size_t i = 0; i < v->tree->n_spaces; i++)
		if (declare_entities(v, &v->tree->spaces[i]) < 0 ||
			declare_commons(v, &v->tree->spaces[i]) < 0)
			return -1;
	v->s->n_declared = v->s->n_etypes;
	for (size_t i = 0; i < v->tree->n_spaces; i++)
		if (declare_actions(v, &v->tree->spaces[i]) < 0)
			return -1;
	return 0;
}

/* ---- RFC 70 ---- */

/* The names declared outside of all namespaces, types and actions apart. */
struct bare_names {
	struct ced_map types, actions;
};

static int collect_bare(struct resolver *v, struct bare_names *bare)
{
	struct ced_arena *arena = &v->s->arena;
	int r = 0;

	for (size_t i = 0; i < v->tree->n_spaces; i++) {
		const struct ced_sch_namespace *space = &v->tree->spaces[i];

		if (space->name.text.n > 0)
			continue;
		for (size_t k = 0; k < space->n_entities; k++)
			r |= ced_map_set(&bare->types, arena, space->entities[k].name.text, 1);
		for (size_t k = 0; k < space->n_commons; k++)
			r |= ced_map_set(&bare->types, arena, space->commons[k].name.text, 1);
		for (size_t k = 0; k < space->n_actions; k++)
			r |= ced_map_set(&bare->actions, arena, space->actions[k].name.text, 1);
	}
	return r < 0 ? ced_arena_fail(&v->s->arena, v->r.err, nowhere) : 0;
}

static int refuse_shadow(struct resolver *v, const struct ced_map *bare,
	const struct ced_sch_namespace *space, const struct ced_sch_name *name, const char *what)
{
	if (ced_map_get(bare, name->text) == CED_MAP_NONE)
		return 0;
	return ced_fail(v->r.err, CEDAR_E_SCHEMA, name->pos,
		"the %s `%.*s` of the namespace `%.*s` is also declared outside of any namespace",
		what, ced_shown(name->text), name->text.p, ced_shown(space->name.text),
		space->name.text.p);
}

static int check_shadowing(struct resolver *v)
{
	struct bare_names bare = {0};

	if (collect_bare(v, &bare) < 0)
		return -1;
	for (size_t i = 0; i < v->tree->n_spaces; i++) {
		const struct ced_sch_namespace *space = &v->tree->spaces[i];

		if (space->name.text.n == 0)
			continue;
		for (size_t k = 0; k < space->n_entities; k++)
			if (refuse_shadow(v, &bare.types, space, &space->entities[k].name,
				    "entity type") < 0)
				return -1;
		for (size_t k = 0; k < space->n_commons; k++)
			if (refuse_shadow(v, &bare.types, space, &space->commons[k].name,
				    "common type") < 0)
				return -1;
		for (size_t k = 0; k < space->n_actions; k++)
			if (refuse_shadow(
				    v, &bare.actions, space, &space->actions[k].name, "action") < 0)
				return -1;
	}
	return 0;
}

/* ---- types ---- */

/* What a name can refer to; a set of these says what is wanted. */
enum { WANT_COMMON = 1, WANT_ENTITY = 2 };

struct found {
	const struct ced_type *builtin;
	uint32_t common, etype; /* one of them is not CED_MAP_NONE, unless builtin is set */
};

static int builtin_type(struct resolver *v, struct ced_slice name, const struct ced_type **ret_type)
{
	struct ced_types *t = &v->s->types;
	int ext = ced_type_ext_from_name(name);

	if (ced_slice_is(name, "Long"))
		*ret_type = ced_type_basic(t, CED_TY_LONG);
	else if (ced_slice_is(name, "String"))
		*ret_type = ced_type_basic(t, CED_TY_STRING);
	else if (ced_slice_is(name, "Bool"))
		*ret_type = ced_type_basic(t, CED_TY_BOOL);
	else if (ext >= 0)
		*ret_type = ced_type_ext(t, (enum ced_kind)ext);
	else
		return 0;
	return *ret_type ? 1 : ced_arena_fail(&v->s->arena, v->r.err, nowhere);
}

/* Look up one full name. 1 found, 0 not, -1 failure. */
static int look_at(struct resolver *v, struct ced_slice full, unsigned want, struct found *ret)
{
	static const char prefix[] = "__cedar::";
	size_t n = sizeof(prefix) - 1;

	*ret = (struct found){.common = CED_MAP_NONE, .etype = CED_MAP_NONE};
	if (want & WANT_COMMON)
		ret->common = ced_map_get(&v->common_of, full);
	if (ret->common == CED_MAP_NONE && want & WANT_ENTITY)
		ret->etype = ced_map_get(&v->s->etype_of, full);
	if (ret->common != CED_MAP_NONE || ret->etype != CED_MAP_NONE)
		return 1;
	if (!(want & WANT_COMMON))
		return 0;
	if (full.n > n && memcmp(full.p, prefix, n) == 0)
		return builtin_type(v, (struct ced_slice){full.p + n, full.n - n}, &ret->builtin);
	/* A declaration outside of all namespaces takes the short name from a built-in type. */
	if (ced_map_get(&v->s->etype_of, full) != CED_MAP_NONE)
		return 0;
	return builtin_type(v, full, &ret->builtin);
}

static int look_up(struct resolver *v, const struct ced_sch_namespace *space, struct ced_slice name,
	struct ced_pos pos, unsigned want, struct found *ret)
{
	struct ced_slice full;
	int r = 0;

	if (space->name.text.n > 0 && !is_qualified(name)) {
		if (full_name(v, space, name, &full) < 0)
			return -1;
		r = look_at(v, full, want, ret);
	}
	if (r == 0)
		r = look_at(v, name, want, ret);
	if (r == 0)
		return ced_fail(v->r.err, CEDAR_E_SCHEMA, pos, "`%.*s` is not the name of %s",
			ced_shown(name), name.p,
			want == WANT_ENTITY   ? "an entity type"
			: want == WANT_COMMON ? "a common type"
					      : "a type");
	return r < 0 ? -1 : 0;
}

static int resolve_type(struct resolver *v, const struct ced_sch_namespace *space,
	const struct ced_sch_type *type, const struct ced_type **ret_ty);

static int too_deep(struct resolver *v, const struct ced_sch_type *type)
{
	return ced_fail_limit(v->r.err, type->pos, "type_depth", CED_TY_DEPTH_MAX);
}

static int resolve_common(
	struct resolver *v, uint32_t index, struct ced_pos pos, const struct ced_type **ret_ty)
{
	struct common *common = &v->commons[index];
	struct ced_slice name = common->decl->name.text;

	if (common->state == RESOLVING)
		return ced_fail(v->r.err, CEDAR_E_CYCLE, pos,
			"the common type `%.*s` refers to itself", ced_shown(name), name.p);
	if (common->state == UNRESOLVED) {
		common->state = RESOLVING;
		if (resolve_type(v, common->space, common->decl->type, &common->type) < 0)
			return -1;
		common->state = RESOLVED;
	}
	*ret_ty = common->type;
	return 0;
}

static int resolve_name(struct resolver *v, const struct ced_sch_namespace *space,
	const struct ced_sch_type *type, unsigned want, const struct ced_type **ret_ty)
{
	struct found found;

	if (look_up(v, space, type->name, type->pos, want, &found) < 0)
		return -1;
	if (found.builtin) {
		*ret_ty = found.builtin;
		return 0;
	}
	if (found.common != CED_MAP_NONE)
		return resolve_common(v, found.common, type->pos, ret_ty);
	*ret_ty = ced_type_entity(&v->s->types, found.etype);
	return *ret_ty ? 0 : ced_arena_fail(&v->s->arena, v->r.err, type->pos);
}

static int resolve_record(struct resolver *v, const struct ced_sch_namespace *space,
	const struct ced_sch_type *type, const struct ced_type **ret_ty)
{
	struct ced_attr *attrs = ced_sch_alloc(&v->r, type->n_attrs * sizeof(*attrs) + 1);

	if (!attrs)
		return -1;
	for (size_t i = 0; i < type->n_attrs; i++) {
		attrs[i].name = type->attrs[i].name;
		attrs[i].required = type->attrs[i].required;
		if (resolve_type(v, space, type->attrs[i].type, &attrs[i].type) < 0)
			return -1;
		if (ced_type_nests_too_deep(attrs[i].type))
			return too_deep(v, type->attrs[i].type);
	}
	*ret_ty = ced_type_record(&v->s->types, attrs, type->n_attrs);
	return *ret_ty ? 0 : ced_arena_fail(&v->s->arena, v->r.err, type->pos);
}

static int resolve_set(struct resolver *v, const struct ced_sch_namespace *space,
	const struct ced_sch_type *type, const struct ced_type **ret_ty)
{
	const struct ced_type *elem = NULL;

	if (resolve_type(v, space, type->elem, &elem) < 0)
		return -1;
	if (ced_type_nests_too_deep(elem))
		return too_deep(v, type);
	*ret_ty = ced_type_set(&v->s->types, elem);
	return *ret_ty ? 0 : ced_arena_fail(&v->s->arena, v->r.err, type->pos);
}

static int resolve_ext(
	struct resolver *v, const struct ced_sch_type *type, const struct ced_type **ret_ty)
{
	int ext = ced_type_ext_from_name(type->name);

	if (ext < 0)
		return ced_fail(v->r.err, CEDAR_E_SCHEMA, type->pos,
			"`%.*s` is not an extension type", ced_shown(type->name), type->name.p);
	*ret_ty = ced_type_ext(&v->s->types, (enum ced_kind)ext);
	return *ret_ty ? 0 : ced_arena_fail(&v->s->arena, v->r.err, type->pos);
}

static int resolve_kind(struct resolver *v, const struct ced_sch_namespace *space,
	const struct ced_sch_type *type, const struct ced_type **ret_ty)
{
	struct ced_types *types = &v->s->types;

	switch (type->kind) {
	case CED_SCH_BOOL: *ret_ty = ced_type_basic(types, CED_TY_BOOL); break;
	case CED_SCH_LONG: *ret_ty = ced_type_basic(types, CED_TY_LONG); break;
	case CED_SCH_STRING: *ret_ty = ced_type_basic(types, CED_TY_STRING); break;
	case CED_SCH_SET: return resolve_set(v, space, type, ret_ty);
	case CED_SCH_RECORD: return resolve_record(v, space, type, ret_ty);
	case CED_SCH_EXTENSION: return resolve_ext(v, type, ret_ty);
	case CED_SCH_ENTITY: return resolve_name(v, space, type, WANT_ENTITY, ret_ty);
	case CED_SCH_COMMON: return resolve_name(v, space, type, WANT_COMMON, ret_ty);
	case CED_SCH_ENTITY_OR_COMMON:
		return resolve_name(v, space, type, WANT_ENTITY | WANT_COMMON, ret_ty);
	}
	return *ret_ty ? 0 : ced_arena_fail(&v->s->arena, v->r.err, type->pos);
}

/* Recursion follows the nesting of types, through the common types that they refer to. */
static int resolve_type(struct resolver *v, const struct ced_sch_namespace *space,
	const struct ced_sch_type *type, const struct ced_type **ret_ty)
{
	int r;

	if (v->depth >= CED_SCHEMA_RESOLVE_MAX)
		return too_deep(v, type);
	v->depth++;
	r = resolve_kind(v, space, type, ret_ty);
	v->depth--;
	return r;
}

static int resolve_all_commons(struct resolver *v)
{
	for (uint32_t i = 0; i < v->n_commons; i++) {
		const struct ced_type *type;

		if (resolve_common(v, i, v->commons[i].decl->name.pos, &type) < 0)
			return -1;
	}
	return 0;
}

/* ---- entity types and actions ---- */

/* A type that entities other than actions have. */
static int resolve_etype(struct resolver *v, const struct ced_sch_namespace *space,
	const struct ced_sch_name *name, uint32_t *ret_etype)
{
	struct found found;

	if (look_up(v, space, name->text, name->pos, WANT_ENTITY, &found) < 0)
		return -1;
	if (!v->s->etypes[found.etype].declared)
		return ced_fail(v->r.err, CEDAR_E_SCHEMA, name->pos,
			"`%.*s` is a type of actions, which cannot stand here",
			ced_shown(name->text), name->text.p);
	*ret_etype = found.etype;
	return 0;
}

static int compare_strs(const void *a, const void *b)
{
	return ced_slice_cmp(*(const struct ced_slice *)a, *(const struct ced_slice *)b);
}

static int resolve_enum(
	struct resolver *v, const struct ced_sch_entity *entity, struct ced_etype *etype)
{
	struct ced_slice *ids = ced_sch_alloc(&v->r, entity->n_ids * sizeof(*ids));

	if (!ids)
		return -1;
	memcpy(ids, entity->ids, entity->n_ids * sizeof(*ids));
	qsort(ids, entity->n_ids, sizeof(*ids), compare_strs);
	etype->is_enum = true;
	etype->ids = ids;
	etype->n_ids = entity->n_ids;
	return 0;
}

static int resolve_entity(struct resolver *v, const struct ced_sch_namespace *space,
	const struct ced_sch_entity *entity, struct ced_etype *etype)
{
	const struct ced_type *shape;

	if (entity->is_enum)
		return resolve_enum(v, entity, etype);
	if (entity->tags && resolve_type(v, space, entity->tags, &etype->tags) < 0)
		return -1;
	if (!entity->shape)
		return 0;
	if (resolve_type(v, space, entity->shape, &shape) < 0)
		return -1;
	if (shape->kind != CED_TY_RECORD)
		return ced_fail(v->r.err, CEDAR_E_SCHEMA, entity->shape->pos,
			"the shape of the entity type `%.*s` is not a record",
			ced_shown(etype->name), etype->name.p);
	etype->attrs = shape->attrs;
	etype->n_attrs = shape->n_attrs;
	return 0;
}

static int compare_u32(const void *va, const void *vb)
{
	uint32_t a = *(const uint32_t *)va, b = *(const uint32_t *)vb;

	return a < b ? -1 : a > b;
}

static size_t sort_unique(uint32_t *v, size_t n)
{
	size_t kept = 0;

	if (n == 0)
		return 0;
	qsort(v, n, sizeof(*v), compare_u32);
	for (size_t i = 0; i < n; i++)
		if (kept == 0 || v[kept - 1] != v[i])
			v[kept++] = v[i];
	return kept;
}

/* The types of a list, sorted and each once. */
static int resolve_etypes(struct resolver *v, const struct ced_sch_namespace *space,
	struct ced_sch_names names, const uint32_t **ret_etypes, size_t *ret_n)
{
	uint32_t *etypes = ced_sch_alloc(&v->r, names.n * sizeof(*etypes) + 1);

	if (!etypes)
		return -1;
	for (size_t i = 0; i < names.n; i++)
		if (resolve_etype(v, space, &names.v[i], &etypes[i]) < 0)
			return -1;
	*ret_etypes = etypes;
	*ret_n = sort_unique(etypes, names.n);
	return 0;
}

static int resolve_context(struct resolver *v, const struct ced_sch_namespace *space,
	const struct ced_sch_action *decl, struct ced_action *action)
{
	if (!decl->has_applies_to || !decl->context) {
		action->context = ced_type_record(&v->s->types, NULL, 0);
		return action->context ? 0 : ced_arena_fail(&v->s->arena, v->r.err, nowhere);
	}
	if (resolve_type(v, space, decl->context, &action->context) < 0)
		return -1;
	if (action->context->kind != CED_TY_RECORD)
		return ced_fail(v->r.err, CEDAR_E_SCHEMA, decl->context->pos,
			"the context of the action \"%.*s\" is not a record", ced_shown(action->id),
			action->id.p);
	return 0;
}

static int resolve_action_ref(struct resolver *v, const struct ced_sch_namespace *space,
	const struct ced_sch_action_ref *ref, uint32_t *ret_action)
{
	struct ced_slice type = ref->type.n ? ref->type : ced_slice_of("Action"), full;

	*ret_action = CED_SCHEMA_NONE;
	if (space->name.text.n > 0 && !is_qualified(type)) {
		if (full_name(v, space, type, &full) < 0)
			return -1;
		*ret_action = ced_schema_find_uid(v->s, full, ref->id);
	}
	if (*ret_action == CED_SCHEMA_NONE)
		*ret_action = ced_schema_find_uid(v->s, type, ref->id);
	if (*ret_action == CED_SCHEMA_NONE)
		return ced_fail(v->r.err, CEDAR_E_SCHEMA, ref->pos,
			"the action %.*s::\"%.*s\" is not declared", ced_shown(type), type.p,
			ced_shown(ref->id), ref->id.p);
	return 0;
}

static int resolve_action(struct resolver *v, const struct ced_sch_namespace *space,
	const struct ced_sch_action *decl, struct ced_action *action)
{
	uint32_t *parents = ced_sch_alloc(&v->r, decl->n_parents * sizeof(*parents) + 1);

	if (!parents)
		return -1;
	for (size_t i = 0; i < decl->n_parents; i++)
		if (resolve_action_ref(v, space, &decl->parents[i], &parents[i]) < 0)
			return -1;
	action->parents = parents;
	action->n_parents = sort_unique(parents, decl->n_parents);
	if (resolve_etypes(v, space, decl->principals, &action->principals, &action->n_principals) <
			0 ||
		resolve_etypes(
			v, space, decl->resources, &action->resources, &action->n_resources) < 0)
		return -1;
	return resolve_context(v, space, decl, action);
}

/* Declarations were given their indices in the order of the tree. */
static int resolve_bodies(struct resolver *v)
{
	uint32_t etype = 0, action = 0;

	for (size_t i = 0; i < v->tree->n_spaces; i++) {
		const struct ced_sch_namespace *space = &v->tree->spaces[i];

		for (size_t k = 0; k < space->n_entities; k++)
			if (resolve_entity(v, space, &space->entities[k], &v->s->etypes[etype++]) <
				0)
				return -1;
		for (size_t k = 0; k < space->n_actions; k++)
			if (resolve_action(v, space, &space->actions[k], &v->s->actions[action++]) <
				0)
				return -1;
	}
	return 0;
}

/* ---- hierarchies ---- */

/* Edges are appended node by node. */
struct edges {
	uint32_t *first, *to;
	uint32_t n;
};

static int edges_init(struct resolver *v, struct edges *e, size_t n_nodes, size_t n_edges)
{
	e->first = ced_sch_alloc(&v->r, (n_nodes + 1) * sizeof(*e->first));
	e->to = ced_sch_alloc(&v->r, n_edges * sizeof(*e->to) + 1);
	e->n = 0;
	return e->first && e->to ? 0 : -1;
}

static int close_actions(struct resolver *v)
{
	struct cedar_schema *s = v->s;
	const uint64_t **rows = ced_sch_alloc(&v->r, s->n_actions * sizeof(*rows) + 1);
	size_t n_edges = 0;
	struct edges e;
	uint32_t cycle;

	for (uint32_t i = 0; i < s->n_actions; i++)
		n_edges += s->actions[i].n_parents;
	if (!rows || edges_init(v, &e, s->n_actions, n_edges) < 0)
		return -1;
	for (uint32_t i = 0; i < s->n_actions; i++) {
		for (size_t k = 0; k < s->actions[i].n_parents; k++)
			e.to[e.n++] = s->actions[i].parents[k];
		e.first[i + 1] = e.n;
	}

	struct ced_graph g = {.n = s->n_actions, .first = e.first, .to = e.to};

	if (ced_closure_compute(&g, &s->arena, rows, &cycle) < 0)
		return ced_arena_fail(&v->s->arena, v->r.err, nowhere);
	if (cycle != UINT32_MAX)
		return ced_fail(v->r.err, CEDAR_E_CYCLE, nowhere,
			"the action %.*s::\"%.*s\" is in itself",
			ced_shown(s->etypes[s->actions[cycle].etype].name),
			s->etypes[s->actions[cycle].etype].name.p, ced_shown(s->actions[cycle].id),
			s->actions[cycle].id.p);
	for (uint32_t i = 0; i < s->n_actions; i++)
		s->actions[i].ancestors = rows[i];
	return 0;
}

/* Which types of actions can be in which. The actions of one type follow each other, from `*at`. */
static size_t action_type_edges(
	const struct cedar_schema *s, uint32_t etype, uint32_t *at, uint32_t *ret_to)
{
	size_t n = 0;

	for (; *at < s->n_actions && s->actions[*at].etype == etype; ++*at)
		for (size_t k = 0; k < s->actions[*at].n_parents; k++)
			ret_to[n++] = s->actions[s->actions[*at].parents[k]].etype;
	return sort_unique(ret_to, n);
}

static int entity_edges(struct resolver *v, const struct ced_sch_namespace *space,
	const struct ced_sch_entity *entity, struct edges *e)
{
	for (size_t i = 0; i < entity->parents.n; i++)
		if (resolve_etype(v, space, &entity->parents.v[i], &e->to[e->n++]) < 0)
			return -1;
	return 0;
}

static int collect_type_edges(struct resolver *v, struct edges *e)
{
	const struct cedar_schema *s = v->s;
	uint32_t node = 0, action = 0;

	for (size_t i = 0; i < v->tree->n_spaces; i++) {
		const struct ced_sch_namespace *space = &v->tree->spaces[i];

		for (size_t k = 0; k < space->n_entities; k++) {
			if (entity_edges(v, space, &space->entities[k], e) < 0)
				return -1;
			e->first[++node] = e->n;
		}
	}
	while (node < s->n_etypes) {
		e->n += (uint32_t)action_type_edges(s, node, &action, e->to + e->n);
		e->first[++node] = e->n;
	}
	return 0;
}

/* Entity types may be in each other in a circle. */
static int close_types(struct resolver *v)
{
	struct cedar_schema *s = v->s;
	const uint64_t **rows = ced_sch_alloc(&v->r, s->n_etypes * sizeof(*rows) + 1);
	size_t n_edges = 0;
	struct edges e;
	uint32_t cycle;

	for (size_t i = 0; i < v->tree->n_spaces; i++)
		for (size_t k = 0; k < v->tree->spaces[i].n_entities; k++)
			n_edges += v->tree->spaces[i].entities[k].parents.n;
	for (uint32_t i = 0; i < s->n_actions; i++)
		n_edges += s->actions[i].n_parents;
	if (!rows || edges_init(v, &e, s->n_etypes, n_edges) < 0 || collect_type_edges(v, &e) < 0)
		return -1;

	struct ced_graph g = {.n = s->n_etypes, .first = e.first, .to = e.to};

	if (ced_closure_compute(&g, &s->arena, rows, &cycle) < 0)
		return ced_arena_fail(&v->s->arena, v->r.err, nowhere);
	for (uint32_t i = 0; i < s->n_etypes; i++)
		s->etypes[i].ancestors = rows[i];
	return 0;
}

int ced_schema_resolve(struct cedar_schema *s, const struct ced_sch_tree *tree,
	const struct cedar_limits *limits, struct cedar_error *err)
{
	struct resolver v = {
		.s = s,
		.tree = tree,
		.r = {.arena = &s->arena, .limits = limits, .err = err},
	};

	if (ced_types_init(&s->types, &s->arena, NULL) < 0)
		return ced_arena_fail(&s->arena, err, nowhere);
	if (declare_all(&v) < 0 || check_shadowing(&v) < 0 || resolve_all_commons(&v) < 0 ||
		resolve_bodies(&v) < 0 || close_actions(&v) < 0 || close_types(&v) < 0)
		return -1;
	s->tree = *tree;
	return 0;
}

/* ---- lookup ---- */

uint32_t ced_schema_find_etype(const struct cedar_schema *s, struct ced_slice name)
{
	return ced_map_get(&s->etype_of, name);
}

uint32_t ced_schema_find_action(const struct cedar_schema *s, uint32_t etype, struct ced_slice id)
{
	return ced_map_get(&s->action_of[etype], id);
}

uint32_t ced_schema_find_uid(
	const struct cedar_schema *s, struct ced_slice type, struct ced_slice id)
{
	uint32_t etype = ced_schema_find_etype(s, type);

	if (etype == CED_SCHEMA_NONE || s->etypes[etype].declared)
		return CED_SCHEMA_NONE;
	return ced_schema_find_action(s, etype, id);
}

bool ced_schema_type_in(const struct cedar_schema *s, uint32_t type, uint32_t ancestor)
{
	return type == ancestor || ced_closure_has(s->etypes[type].ancestors, ancestor);
}

bool ced_schema_action_in(const struct cedar_schema *s, uint32_t action, uint32_t ancestor)
{
	return action == ancestor || ced_closure_has(s->actions[action].ancestors, ancestor);
}

bool ced_schema_id_ok(const struct ced_etype *etype, struct ced_slice id)
{
	return !etype->is_enum ||
	       bsearch(&id, etype->ids, etype->n_ids, sizeof(*etype->ids), compare_strs);
}

const struct ced_attr *ced_schema_attr(
	const struct cedar_schema *s, uint32_t etype, struct ced_slice name)
{
	return ced_type_find_attr(s->etypes[etype].attrs, s->etypes[etype].n_attrs, name);
}
