/* Do data conform to a schema? See conform.h. */
#include "cedar/conform.h"

#include "cedar/closure.h"
#include "cedar/slice.h"
#include "cedar/type_print.h"

struct conform {
	const struct cedar_schema *s;
	struct ced_pos pos;
	struct cedar_error *err;
};

static struct ced_slice slice(const struct ced_name *name)
{
	return ced_name_slice(name);
}

static bool is_action(const struct ced_uid *uid)
{
	return ced_schema_is_action_name(slice(uid->type));
}

static uint32_t etype_of(const struct cedar_schema *s, const struct ced_uid *uid)
{
	return ced_schema_find_etype(s, slice(uid->type));
}

static uint32_t action_of(const struct cedar_schema *s, const struct ced_uid *uid)
{
	return ced_schema_find_uid(s, slice(uid->type), slice(uid->id));
}

/* ---- entities that are referred to ---- */

static int check_id(const struct conform *v, const struct ced_uid *uid)
{
	uint32_t etype = etype_of(v->s, uid);

	if (etype == CED_SCHEMA_NONE || ced_schema_id_ok(&v->s->etypes[etype], slice(uid->id)))
		return 0;
	return ced_fail(v->err, CEDAR_E_INVALID, v->pos,
		"\"%.*s\" is not an id of the enumerated type `%.*s`", ced_shown(slice(uid->id)),
		uid->id->text, ced_shown(slice(uid->type)), uid->type->text);
}

/* Entities need not exist, but the schema must leave room for them. */
static int check_uid(const struct conform *v, const struct ced_uid *uid)
{
	if (is_action(uid) && action_of(v->s, uid) == CED_SCHEMA_NONE)
		return ced_fail(v->err, CEDAR_E_INVALID, v->pos,
			"the schema has no action %.*s::\"%.*s\"", ced_shown(slice(uid->type)),
			uid->type->text, ced_shown(slice(uid->id)), uid->id->text);
	return check_id(v, uid);
}

static int check_uids(const struct conform *v, struct ced_value value)
{
	int r = 0;

	if (value.kind == CED_ENTITY)
		return check_uid(v, value.u.uid);
	if (value.kind == CED_SET)
		for (uint32_t i = 0; i < value.u.set->count && r == 0; i++)
			r = check_uids(v, value.u.set->items[i]);
	if (value.kind == CED_RECORD)
		for (uint32_t i = 0; i < value.u.record->count && r == 0; i++)
			r = check_uids(v, value.u.record->fields[i].value);
	return r;
}

/* ---- values ---- */

static bool fits(const struct cedar_schema *s, const struct ced_type *type, struct ced_value value);

static bool set_fits(
	const struct cedar_schema *s, const struct ced_type *elem, const struct ced_set *set)
{
	for (uint32_t i = 0; i < set->count; i++)
		if (!fits(s, elem, set->items[i]))
			return false;
	return true;
}

/* Both are sorted by key: one walk over both finds what is missing and what is too much. */
static bool record_fits(const struct cedar_schema *s, const struct ced_attr *attrs, size_t n,
	const struct ced_record *record)
{
	size_t a = 0;

	for (uint32_t i = 0; i < record->count; i++) {
		struct ced_slice key = slice(record->fields[i].key);

		while (a < n && ced_slice_cmp(attrs[a].name, key) < 0)
			if (attrs[a++].required)
				return false;
		if (a == n || !ced_slice_eq(attrs[a].name, key) ||
			!fits(s, attrs[a].type, record->fields[i].value))
			return false;
		a++;
	}
	for (; a < n; a++)
		if (attrs[a].required)
			return false;
	return true;
}

/* As deep as values nest, which the JSON reader bounds. */
static bool fits(const struct cedar_schema *s, const struct ced_type *type, struct ced_value value)
{
	switch (type->kind) {
	case CED_TY_FALSE:
	case CED_TY_TRUE: return false; /* no schema has them */
	case CED_TY_BOOL: return value.kind == CED_BOOL;
	case CED_TY_LONG: return value.kind == CED_LONG;
	case CED_TY_STRING: return value.kind == CED_STRING;
	case CED_TY_EXT: return value.kind == (enum ced_kind)type->id;
	case CED_TY_ENTITY:
		return value.kind == CED_ENTITY &&
		       ced_slice_eq(slice(value.u.uid->type), s->etypes[type->id].name);
	case CED_TY_SET: return value.kind == CED_SET && set_fits(s, type->elem, value.u.set);
	case CED_TY_RECORD:
		return value.kind == CED_RECORD &&
		       record_fits(s, type->attrs, type->n_attrs, value.u.record);
	}
	return false;
}

int ced_conform_value(const struct cedar_schema *s, const struct ced_type *type,
	struct ced_value value, const char *what, const struct ced_name *name, struct ced_pos pos,
	struct cedar_error *err)
{
	struct conform v = {.s = s, .pos = pos, .err = err};
	char text[CED_TY_TEXT_MAX];

	if (!fits(s, type, value))
		return ced_fail(err, CEDAR_E_INVALID, pos, "%s%s%.*s%s is not of the type %s", what,
			name ? " `" : "", name ? ced_shown(slice(name)) : 0, name ? name->text : "",
			name ? "`" : "", ced_type_text(s, type, text));
	return check_uids(&v, value);
}

/* ---- entities ---- */

static int check_required(
	const struct conform *v, const struct ced_etype *etype, const struct ced_entity *e)
{
	uint32_t at = 0;

	for (size_t i = 0; i < etype->n_attrs; i++) {
		const struct ced_attr *attr = &etype->attrs[i];

		while (at < e->attrs->count &&
			ced_slice_cmp(slice(e->attrs->fields[at].key), attr->name) < 0)
			at++;
		if (!attr->required ||
			(at < e->attrs->count &&
				ced_slice_eq(slice(e->attrs->fields[at].key), attr->name)))
			continue;
		return ced_fail(v->err, CEDAR_E_INVALID, v->pos,
			"%.*s::\"%.*s\" lacks the attribute `%.*s`", ced_shown(etype->name),
			etype->name.p, ced_shown(slice(e->uid.id)), e->uid.id->text,
			ced_shown(attr->name), attr->name.p);
	}
	return 0;
}

static int check_attrs(
	const struct conform *v, const struct ced_etype *etype, const struct ced_entity *e)
{
	int r = check_required(v, etype, e);

	for (uint32_t i = 0; i < e->attrs->count && r == 0; i++) {
		const struct ced_field *f = &e->attrs->fields[i];
		const struct ced_attr *attr;

		attr = ced_type_find_attr(etype->attrs, etype->n_attrs, slice(f->key));
		if (!attr)
			return ced_fail(v->err, CEDAR_E_INVALID, v->pos,
				"the entity type `%.*s` has no attribute `%.*s`",
				ced_shown(etype->name), etype->name.p, ced_shown(slice(f->key)),
				f->key->text);
		r = ced_conform_value(
			v->s, attr->type, f->value, "the attribute", f->key, v->pos, v->err);
	}
	return r;
}

static int check_tags(
	const struct conform *v, const struct ced_etype *etype, const struct ced_entity *e)
{
	int r = 0;

	if (e->tags->count > 0 && !etype->tags)
		return ced_fail(v->err, CEDAR_E_INVALID, v->pos,
			"the entity type `%.*s` has no tags", ced_shown(etype->name),
			etype->name.p);
	for (uint32_t i = 0; i < e->tags->count && r == 0; i++)
		r = ced_conform_value(v->s, etype->tags, e->tags->fields[i].value, "the tag",
			e->tags->fields[i].key, v->pos, v->err);
	return r;
}

/* A parent is of a type that the entity's type may be in; a type that is only in itself by way of
 * others counts as well. */
static int check_parents(const struct conform *v, uint32_t etype, const struct ced_entity *e)
{
	const struct ced_etype *t = &v->s->etypes[etype];

	for (uint32_t i = 0; i < e->parent_count; i++) {
		const struct ced_uid *parent = e->parents[i];
		uint32_t of = etype_of(v->s, parent);
		int r = check_uid(v, parent);

		if (r < 0)
			return r;
		if (of == CED_SCHEMA_NONE || !ced_closure_has(t->ancestors, of))
			return ced_fail(v->err, CEDAR_E_INVALID, v->pos,
				"an entity of the type `%.*s` cannot be in one of the type `%.*s`",
				ced_shown(t->name), t->name.p, ced_shown(slice(parent->type)),
				parent->type->text);
	}
	return 0;
}

int ced_conform_entity(const struct cedar_schema *s, const struct ced_entity *e, struct ced_pos pos,
	struct cedar_error *err)
{
	struct conform v = {.s = s, .pos = pos, .err = err};
	uint32_t etype = etype_of(s, &e->uid);
	int r;

	if (etype == CED_SCHEMA_NONE || !s->etypes[etype].declared)
		return ced_fail(err, CEDAR_E_INVALID, pos, "the schema has no entity type `%.*s`",
			ced_shown(slice(e->uid.type)), e->uid.type->text);
	r = check_id(&v, &e->uid);
	if (r == 0)
		r = check_attrs(&v, &s->etypes[etype], e);
	if (r == 0)
		r = check_parents(&v, etype, e);
	return r == 0 ? check_tags(&v, &s->etypes[etype], e) : r;
}

static uint32_t count_ancestors(const struct cedar_schema *s, uint32_t action)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->n_actions; i++)
		n += ced_closure_has(s->actions[action].ancestors, i);
	return n;
}

int ced_conform_action(const struct cedar_schema *s, const struct ced_entity *e, struct ced_pos pos,
	struct cedar_error *err)
{
	uint32_t action = action_of(s, &e->uid);
	bool same;

	if (action == CED_SCHEMA_NONE)
		return ced_fail(err, CEDAR_E_INVALID, pos,
			"the schema has no action %.*s::\"%.*s\"", ced_shown(slice(e->uid.type)),
			e->uid.type->text, ced_shown(slice(e->uid.id)), e->uid.id->text);
	same = e->attrs->count == 0 && e->tags->count == 0 &&
	       e->ancestor_count == count_ancestors(s, action);
	for (uint32_t i = 0; i < e->ancestor_count && same; i++) {
		uint32_t of = action_of(s, e->ancestors[i]);

		same = of != CED_SCHEMA_NONE && ced_closure_has(s->actions[action].ancestors, of);
	}
	if (same)
		return 0;
	return ced_fail(err, CEDAR_E_INVALID, pos,
		"the action %.*s::\"%.*s\" is not what the schema declares; actions are best left "
		"out",
		ced_shown(slice(e->uid.type)), e->uid.type->text, ced_shown(slice(e->uid.id)),
		e->uid.id->text);
}

/* ---- requests ---- */

static bool has_type(const uint32_t *etypes, size_t n, uint32_t etype)
{
	for (size_t i = 0; i < n; i++)
		if (etypes[i] == etype)
			return true;
	return false;
}

static int check_declared(
	const struct conform *v, const struct ced_uid *uid, const char *what, uint32_t *ret_etype)
{
	*ret_etype = etype_of(v->s, uid);
	if (*ret_etype == CED_SCHEMA_NONE || !v->s->etypes[*ret_etype].declared)
		return ced_fail(v->err, CEDAR_E_INVALID, v->pos,
			"the type `%.*s` of the %s is not in the schema",
			ced_shown(slice(uid->type)), uid->type->text, what);
	return check_id(v, uid);
}

static int does_not_apply(const struct conform *v, const struct ced_action *action,
	const struct ced_uid *uid, const char *what)
{
	return ced_fail(v->err, CEDAR_E_INVALID, v->pos,
		"the action \"%.*s\" does not apply to a %s of the type `%.*s`",
		ced_shown(action->id), action->id.p, what, ced_shown(slice(uid->type)),
		uid->type->text);
}

int ced_conform_scope(const struct cedar_schema *s, const struct ced_uid *principal,
	const struct ced_uid *action, const struct ced_uid *resource, uint32_t *ret_action,
	struct cedar_error *err)
{
	struct conform v = {.s = s, .err = err};
	uint32_t p, r, found;
	const struct ced_action *a;
	int code;

	if ((code = check_declared(&v, principal, "principal", &p)) < 0 ||
		(code = check_declared(&v, resource, "resource", &r)) < 0)
		return code;
	found = action_of(s, action);
	if (found == CED_SCHEMA_NONE)
		return ced_fail(err, CEDAR_E_INVALID, v.pos,
			"the schema has no action %.*s::\"%.*s\"", ced_shown(slice(action->type)),
			action->type->text, ced_shown(slice(action->id)), action->id->text);
	a = &s->actions[found];
	if (!has_type(a->principals, a->n_principals, p))
		return does_not_apply(&v, a, principal, "principal");
	if (!has_type(a->resources, a->n_resources, r))
		return does_not_apply(&v, a, resource, "resource");
	*ret_action = found;
	return 0;
}

int ced_conform_request(
	const struct cedar_schema *s, const struct cedar_request *request, struct cedar_error *err)
{
	struct ced_value context = {.kind = CED_RECORD, .u.record = request->context};
	uint32_t action;
	int r;

	r = ced_conform_scope(
		s, request->principal, request->action, request->resource, &action, err);
	if (r < 0)
		return r;
	return ced_conform_value(s, s->actions[action].context, context, "the context", NULL,
		(struct ced_pos){0}, err);
}
