/*
 * Entities and requests read with the help of a schema.
 *
 * Where the schema expects an entity, {"type", "id"} needs no __entity; where it expects an
 * extension value, the string that its constructor takes needs no __extn. What is read is checked
 * against the schema, and its actions are added to the entities, with their hierarchy.
 */
#include <stdlib.h>

#include "cedar/closure.h"
#include "cedar/conform.h"
#include "cedar/data.h"
#include "cedar/slice.h"

/* ---- values ---- */

static const struct ced_fn_info *constructor_of(enum ced_kind kind, enum ced_fn *ret_fn)
{
	for (int fn = 0; fn < CED_FNS; fn++)
		if (!ced_fn_info[fn].method && ced_fn_info[fn].result == kind) {
			*ret_fn = (enum ced_fn)fn;
			return &ced_fn_info[fn];
		}
	return NULL;
}

static int read_ext(const struct ced_reader *r, enum ced_kind kind, const struct ced_json *j,
	struct ced_value *ret);

/* An argument of an extension function; those that are extension values may be implicit too. */
static int read_arg(const struct ced_reader *r, enum ced_kind kind, const struct ced_json *j,
	struct ced_value *ret)
{
	return kind == CED_STRING ? ced_value_from_json(r, j, ret) : read_ext(r, kind, j, ret);
}

static int call(const struct ced_reader *r, enum ced_fn fn, const struct ced_value *args,
	uint32_t n, struct ced_pos pos, struct ced_value *ret)
{
	uint32_t bad;
	int code = ced_fn_call(fn, r->arena, args, n, ret, &bad);

	if (code == CEDAR_E_MEMORY)
		return ced_arena_fail(r->arena, r->err, pos);
	if (code < 0)
		return ced_fail(
			r->err, CEDAR_E_VALUE, pos, "not a value of %s()", ced_fn_info[fn].name);
	return 0;
}

/* {"fn", "arg"}, or with "args". */
static int read_call(const struct ced_reader *r, const struct ced_json *j, struct ced_value *ret)
{
	const struct ced_json *args;
	struct ced_value values[2];
	enum ced_fn fn;
	uint32_t n;
	int code = ced_extension_of(r, j, &fn, &args, &n);

	if (code < 0)
		return code;
	if (n != ced_fn_info[fn].arity)
		return ced_fail(r->err, CEDAR_E_ARITY, j->pos, "%s takes %u arguments, found %u",
			ced_fn_info[fn].name, (unsigned)ced_fn_info[fn].arity, (unsigned)n);
	for (uint32_t i = 0; i < n && code == 0; i++)
		code = read_arg(r, ced_fn_info[fn].args[i], &args[i], &values[i]);
	return code < 0 ? code : call(r, fn, values, n, j->pos, ret);
}

static int read_ext(const struct ced_reader *r, enum ced_kind kind, const struct ced_json *j,
	struct ced_value *ret)
{
	const struct ced_json *inner = ced_json_get(j, "__extn");
	struct ced_value text;
	enum ced_fn fn;
	int code;

	if (ced_json_get(j, "__expr"))
		return ced_fail(r->err, CEDAR_E_SYNTAX, j->pos,
			"the escape __expr is no longer part of the language");
	if (inner)
		return read_call(r, inner, ret);
	if (ced_json_get(j, "fn"))
		return read_call(r, j, ret);
	if (j->kind != CED_JSON_STRING || !constructor_of(kind, &fn))
		return ced_fail(r->err, CEDAR_E_INVALID, j->pos, "expected a value of %s, found %s",
			ced_kind_name(kind), ced_json_kind_name(j->kind));
	code = ced_value_from_json(r, j, &text);
	return code < 0 ? code : call(r, fn, &text, 1, j->pos, ret);
}

static int read_value(const struct ced_reader *r, const struct ced_type *type,
	const struct ced_json *j, struct ced_value *ret);

static int wrong_kind(const struct ced_reader *r, const struct ced_json *j, const char *wanted)
{
	return ced_fail(r->err, CEDAR_E_INVALID, j->pos, "expected %s, found %s", wanted,
		ced_json_kind_name(j->kind));
}

static int read_set(const struct ced_reader *r, const struct ced_type *type,
	const struct ced_json *j, struct ced_value *ret)
{
	const struct ced_set *set;
	struct ced_value *items;
	int code = 0;

	if (j->kind != CED_JSON_ARRAY)
		return wrong_kind(r, j, "a set, which is an array");
	items = calloc((size_t)j->count + 1, sizeof(*items));
	if (!items)
		return ced_fail_memory(r->err);
	for (uint32_t i = 0; i < j->count && code == 0; i++)
		code = read_value(r, type->elem, &j->u.items[i], &items[i]);
	if (code == 0) {
		set = ced_set_make(r->arena, items, j->count);
		if (set)
			*ret = (struct ced_value){.kind = CED_SET, .u.set = set};
		else
			code = ced_arena_fail(r->arena, r->err, j->pos);
	}
	free(items);
	return code;
}

static int read_field(const struct ced_reader *r, const struct ced_type *type,
	const struct ced_member *m, struct ced_field *ret)
{
	const struct ced_attr *attr = ced_type_attr(type, m->key);

	if (!attr)
		return ced_fail(r->err, CEDAR_E_INVALID, m->pos,
			"the schema has no attribute `%.*s` here", ced_shown(m->key), m->key.p);
	ret->key = ced_intern(r->names, m->key.p, m->key.n);
	if (!ret->key)
		return ced_arena_fail(r->arena, r->err, m->pos);
	return read_value(r, attr->type, &m->value, &ret->value);
}

/* That nothing is missing is checked with the finished value. */
static int read_record(const struct ced_reader *r, const struct ced_type *type,
	const struct ced_json *j, struct ced_value *ret)
{
	const struct ced_record *record;
	struct ced_field *fields;
	int code = 0;

	if (j->kind != CED_JSON_OBJECT)
		return wrong_kind(r, j, "a record, which is an object");
	fields = calloc((size_t)j->count + 1, sizeof(*fields));
	if (!fields)
		return ced_fail_memory(r->err);
	for (uint32_t i = 0; i < j->count && code == 0; i++)
		code = read_field(r, type, &j->u.members[i], &fields[i]);
	if (code == 0) {
		record = ced_record_make(r->arena, fields, j->count, NULL);
		if (record)
			*ret = (struct ced_value){.kind = CED_RECORD, .u.record = record};
		else
			code = ced_arena_fail(r->arena, r->err, j->pos);
	}
	free(fields);
	return code;
}

/* As deep as the JSON, which its reader bounds. */
static int read_value(const struct ced_reader *r, const struct ced_type *type,
	const struct ced_json *j, struct ced_value *ret)
{
	const struct ced_uid *uid;
	int code;

	switch ((int)type->kind) {
	case CED_TY_ENTITY:
		code = ced_uid_from_json(r, j, &uid);
		if (code == 0)
			*ret = ced_entity(uid);
		return code;
	case CED_TY_EXT: return read_ext(r, (enum ced_kind)type->id, j, ret);
	case CED_TY_SET: return read_set(r, type, j, ret);
	case CED_TY_RECORD: return read_record(r, type, j, ret);
	default: return ced_value_from_json(r, j, ret);
	}
}

/* ---- entities ---- */

/* What reading one set of entities keeps. */
struct guide {
	const struct cedar_schema *s;
	struct ced_arena arena;
	struct ced_entity *actions; /* those that the data hold themselves, by index */
	bool *seen;
};

static int guide_value(void *ctx, const struct ced_reader *r, const struct ced_uid *owner, bool tag,
	const struct ced_name *key, const struct ced_json *j, struct ced_value *ret)
{
	const struct guide *g = ctx;
	struct ced_slice type = ced_name_slice(owner->type);
	const struct ced_attr *attr;
	const struct ced_etype *etype;
	uint32_t index;

	if (ced_schema_is_action_name(type))
		return ced_value_from_json(r, j, ret);
	index = ced_schema_find_etype(g->s, type);
	if (index == CED_SCHEMA_NONE)
		return ced_fail(r->err, CEDAR_E_INVALID, j->pos,
			"the schema has no entity type `%.*s`", ced_shown(type), type.p);
	etype = &g->s->etypes[index];
	if (tag && etype->tags)
		return read_value(r, etype->tags, j, ret);
	attr = tag ? NULL : ced_type_find_attr(etype->attrs, etype->n_attrs, ced_name_slice(key));
	if (!attr)
		return ced_fail(r->err, CEDAR_E_INVALID, j->pos,
			"the entity type `%.*s` has no %s `%.*s`", ced_shown(type), type.p,
			tag ? "tag" : "attribute", ced_shown(ced_name_slice(key)), key->text);
	return read_value(r, attr->type, j, ret);
}

/* An action of the data, to be compared with the schema when all are known. */
static int keep_action(
	struct guide *g, const struct ced_reader *r, const struct ced_entity *e, struct ced_pos pos)
{
	uint32_t action =
		ced_schema_find_uid(g->s, ced_name_slice(e->uid.type), ced_name_slice(e->uid.id));

	if (action == CED_SCHEMA_NONE)
		return ced_conform_action(g->s, e, pos, r->err);
	g->actions[action] = *e;
	g->seen[action] = true;
	return 0;
}

static int guide_entity(
	void *ctx, const struct ced_reader *r, const struct ced_entity *e, struct ced_pos pos)
{
	struct guide *g = ctx;

	if (ced_schema_is_action_name(ced_name_slice(e->uid.type)))
		return keep_action(g, r, e, pos);
	return ced_conform_entity(g->s, e, pos, r->err);
}

/* The edges that the data give the actions that they hold. Negative when a parent is none that the
 * schema gives. */
static int data_edges(const struct guide *g, uint32_t *first, uint32_t *to)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < g->s->n_actions; i++) {
		first[i] = n;
		for (uint32_t k = 0; g->seen[i] && k < g->actions[i].parent_count; k++) {
			const struct ced_uid *parent = g->actions[i].parents[k];

			to[n] = ced_schema_find_uid(
				g->s, ced_name_slice(parent->type), ced_name_slice(parent->id));
			if (to[n] == CED_SCHEMA_NONE)
				return -1;
			n++;
		}
	}
	first[g->s->n_actions] = n;
	return 0;
}

static int mismatch(const struct ced_reader *r)
{
	return ced_fail(r->err, CEDAR_E_INVALID, (struct ced_pos){0},
		"the data hold an action that is not as the schema declares it; actions are best "
		"left out");
}

/* The ancestors that the data alone give an action must be exactly those of the schema. */
static int compare_actions(struct guide *g, const struct ced_reader *r)
{
	const struct cedar_schema *s = g->s;
	size_t n_edges = 0, n_words = ((size_t)s->n_actions + 63) / 64;
	const uint64_t **rows = ced_new_array(&g->arena, s->n_actions + 1, const uint64_t *);
	uint32_t *first = ced_new_array(&g->arena, s->n_actions + 1, uint32_t), *to, cycle;
	struct ced_graph graph = {.n = s->n_actions, .first = first};

	for (uint32_t i = 0; i < s->n_actions; i++)
		n_edges += g->seen[i] ? g->actions[i].parent_count : 0;
	to = ced_new_array(&g->arena, n_edges + 1, uint32_t);
	if (!rows || !first || !to)
		return ced_arena_fail(&g->arena, r->err, (struct ced_pos){0});
	if (data_edges(g, first, to) < 0)
		return mismatch(r);
	graph.to = to;
	if (ced_closure_compute(&graph, &g->arena, rows, &cycle) < 0)
		return ced_arena_fail(&g->arena, r->err, (struct ced_pos){0});
	for (uint32_t i = 0; i < s->n_actions; i++) {
		if (!g->seen[i])
			continue;
		if (g->actions[i].attrs->count > 0 || g->actions[i].tags->count > 0)
			return mismatch(r);
		for (size_t w = 0; w < n_words; w++)
			if ((rows[i] ? rows[i][w] : 0) !=
				(s->actions[i].ancestors ? s->actions[i].ancestors[w] : 0))
				return mismatch(r);
	}
	return 0;
}

static const struct ced_uid *action_uid(
	const struct cedar_schema *s, const struct ced_reader *r, uint32_t action)
{
	struct ced_slice type = s->etypes[s->actions[action].etype].name;
	struct ced_slice id = s->actions[action].id;
	const struct ced_name *type_name = ced_intern(r->names, type.p, type.n);
	const struct ced_name *id_name = ced_intern(r->names, id.p, id.n);

	return type_name && id_name ? ced_uid_make(r->arena, type_name, id_name) : NULL;
}

static int add_action(const struct guide *g, const struct ced_reader *r,
	const struct ced_uid *const *uids, uint32_t action, struct ced_entities_builder *b)
{
	const struct ced_action *a = &g->s->actions[action];
	const struct ced_uid **parents =
		ced_new_array(r->arena, a->n_parents + 1, const struct ced_uid *);
	const struct ced_record *empty = ced_record_make(r->arena, NULL, 0, NULL);
	struct ced_entity e = {.attrs = empty, .tags = empty, .parents = parents};

	if (!parents || !empty)
		return ced_arena_fail(r->arena, r->err, (struct ced_pos){0});
	for (size_t k = 0; k < a->n_parents; k++)
		parents[k] = uids[a->parents[k]];
	e.parent_count = (uint32_t)a->n_parents;
	e.uid = *uids[action];
	return ced_entities_add(b, &e, (struct ced_pos){0});
}

static int guide_add(void *ctx, const struct ced_reader *r, struct ced_entities_builder *b)
{
	struct guide *g = ctx;
	const struct ced_uid **uids =
		ced_new_array(r->arena, g->s->n_actions + 1, const struct ced_uid *);
	int code = compare_actions(g, r);

	if (code < 0)
		return code;
	for (uint32_t i = 0; uids && i < g->s->n_actions; i++) {
		uids[i] = action_uid(g->s, r, i);
		if (!uids[i])
			return ced_arena_fail(r->arena, r->err, (struct ced_pos){0});
	}
	if (!uids)
		return ced_arena_fail(r->arena, r->err, (struct ced_pos){0});
	for (uint32_t i = 0; i < g->s->n_actions && code == 0; i++)
		if (!g->seen[i])
			code = add_action(g, r, uids, i, b);
	return code;
}

int cedar_schema_entities_from_json(const cedar_schema *schema, const char *json, size_t n,
	const struct cedar_limits *limits, cedar_entities **ret, struct cedar_error *err)
{
	struct cedar_limits defaults = cedar_limits_default();
	struct guide g = {.s = schema};
	struct ced_guide hooks = {
		.ctx = &g, .value = guide_value, .entity = guide_entity, .add = guide_add};
	int r;

	if (!limits)
		limits = &defaults;
	ced_arena_init(&g.arena, limits->memory_bytes, "memory_bytes");
	g.actions = ced_new_array(&g.arena, schema->n_actions + 1, struct ced_entity);
	g.seen = ced_new_array(&g.arena, schema->n_actions + 1, bool);
	if (g.actions && g.seen)
		r = ced_entities_read(json, n, limits, &hooks, ret, err);
	else
		r = ced_arena_fail(&g.arena, err, (struct ced_pos){0});
	ced_arena_done(&g.arena);
	return r;
}

int cedar_schema_check_entities(
	const cedar_schema *schema, const cedar_entities *entities, struct cedar_error *err)
{
	for (uint32_t i = 0; i < entities->count; i++) {
		const struct ced_entity *e = &entities->entities[i];
		bool action = ced_schema_is_action_name(ced_name_slice(e->uid.type));
		int r = action ? ced_conform_action(schema, e, (struct ced_pos){0}, err)
			       : ced_conform_entity(schema, e, (struct ced_pos){0}, err);

		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- requests ---- */

static int read_uid(
	const struct ced_reader *r, const struct ced_json *j, const struct ced_uid **ret)
{
	if (j->kind == CED_JSON_STRING)
		return ced_uid_from_text(r, j->u.text.p, j->u.text.n, ret);
	return ced_uid_from_json(r, j, ret);
}

static int read_context(const struct cedar_schema *s, const struct ced_reader *r, uint32_t action,
	const struct ced_json *j, const struct ced_record **ret)
{
	static const struct ced_json nothing = {.kind = CED_JSON_OBJECT};
	struct ced_value context;
	int code = read_record(r, s->actions[action].context, j ? j : &nothing, &context);

	if (code == 0)
		code = ced_conform_value(s, s->actions[action].context, context, "the context",
			NULL, j ? j->pos : (struct ced_pos){0}, r->err);
	if (code == 0)
		*ret = context.u.record;
	return code;
}

static int read_request(const struct cedar_schema *s, const struct ced_reader *r,
	const struct ced_json *j, cedar_request *q)
{
	static const char *const required[] = {"principal", "action", "resource", NULL};
	static const char *const optional[] = {"context", NULL};
	uint32_t action;
	int code = ced_json_members(j, "a request", required, optional, r->err);

	if (code == 0)
		code = read_uid(r, ced_json_get(j, "principal"), &q->principal);
	if (code == 0)
		code = read_uid(r, ced_json_get(j, "action"), &q->action);
	if (code == 0)
		code = read_uid(r, ced_json_get(j, "resource"), &q->resource);
	if (code == 0)
		code = ced_conform_scope(s, q->principal, q->action, q->resource, &action, r->err);
	if (code == 0)
		code = read_context(s, r, action, ced_json_get(j, "context"), &q->context);
	return code;
}

/* The tree of the JSON text is working memory; what is kept of it is copied. */
static int request_from_json(const struct cedar_schema *s, const char *json, size_t n,
	const struct cedar_limits *limits, struct ced_arena *scratch, cedar_request *q,
	struct cedar_error *err)
{
	struct ced_names names;
	struct ced_reader r = {.arena = &q->arena, .names = &names, .limits = limits, .err = err};
	struct ced_json j;
	int code;

	if (n > limits->text_bytes)
		return ced_fail_limit(err, (struct ced_pos){0}, "text_bytes", limits->text_bytes);
	code = ced_json_read(scratch, json, n, limits->json_depth, "json_depth", &j, err);
	if (code < 0)
		return code;
	ced_names_init(&names, &q->arena);
	code = read_request(s, &r, &j, q);
	ced_names_done(&names);
	return code;
}

int cedar_schema_request_from_json(const cedar_schema *schema, const char *json, size_t n,
	const struct cedar_limits *limits, cedar_request **ret, struct cedar_error *err)
{
	struct cedar_limits defaults = cedar_limits_default();
	cedar_request *q = calloc(1, sizeof(*q));
	struct cedar_error local = {0};
	struct ced_arena scratch;

	if (!q)
		return ced_fail_memory(err);
	if (!limits)
		limits = &defaults;
	ced_arena_init(&q->arena, limits->memory_bytes, "memory_bytes");
	ced_arena_init(&scratch, limits->memory_bytes, "memory_bytes");
	int code = request_from_json(schema, json, n, limits, &scratch, q, &local);

	ced_place(&local, json, n);
	ced_arena_done(&scratch);
	if (code < 0) {
		cedar_request_free(q);
		if (err)
			*err = local;
		return code;
	}
	*ret = q;
	return 0;
}

int cedar_schema_check_request(
	const cedar_schema *schema, const cedar_request *request, struct cedar_error *err)
{
	return ced_conform_request(schema, request, err);
}
