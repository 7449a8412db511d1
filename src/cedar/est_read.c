/* JSON to trees. Depth is bounded by the JSON reader and by the nodes' heights. */
#include "cedar/data.h"
#include "cedar/est.h"
#include "cedar/parse.h"

#include <stdlib.h>

static const struct ced_pos nowhere;

static void *fail_null(const struct ced_source *s, const struct ced_json *j, const char *what)
{
	(void)ced_fail(s->err, CEDAR_E_SYNTAX, j->pos, "expected %s, found %s", what,
		ced_json_kind_name(j->kind));
	return NULL;
}

static struct ced_reader reader_of(const struct ced_source *s)
{
	return (struct ced_reader){s->arena, s->names, s->limits, s->err};
}

static const struct ced_name *name_of(const struct ced_source *s, const struct ced_json *j)
{
	struct ced_reader r = reader_of(s);
	return ced_json_name(&r, j);
}

static const struct ced_name *type_of(const struct ced_source *s, const struct ced_json *j)
{
	struct ced_reader r = reader_of(s);
	return ced_json_type(&r, j);
}

static const struct ced_expr *read_expr(const struct ced_source *s, const struct ced_json *j);
static const struct ced_expr *read_value(const struct ced_source *s, const struct ced_json *j);

typedef const struct ced_expr *(*read_fn)(const struct ced_source *s, const struct ced_json *j);

/* The elements, each read with `read`; the caller frees. */
static struct ced_entry *read_items(
	const struct ced_source *s, const struct ced_json *items, uint32_t n, read_fn read)
{
	struct ced_entry *entries = calloc(n ? n : 1, sizeof(*entries));
	if (!entries)
		(void)ced_fail_memory(s->err);
	for (uint32_t i = 0; entries && i < n; i++) {
		entries[i].value = read(s, &items[i]);
		if (entries[i].value)
			continue;
		free(entries);
		return NULL;
	}
	return entries;
}

static const struct ced_expr *read_set(
	const struct ced_source *s, const struct ced_json *j, read_fn read)
{
	if (j->kind != CED_JSON_ARRAY)
		return fail_null(s, j, "an array");
	struct ced_entry *entries = read_items(s, j->u.items, j->count, read);
	const struct ced_expr *x = entries ? ced_expr_set(s, nowhere, entries, j->count) : NULL;
	free(entries);
	return x;
}

static const struct ced_expr *read_record(
	const struct ced_source *s, const struct ced_json *j, read_fn read)
{
	if (j->kind != CED_JSON_OBJECT)
		return fail_null(s, j, "an object");
	struct ced_entry *entries = calloc(j->count ? j->count : 1, sizeof(*entries));
	if (!entries)
		(void)ced_fail_memory(s->err);
	bool ok = entries != NULL;
	for (uint32_t i = 0; ok && i < j->count; i++) {
		const struct ced_member *m = &j->u.members[i];
		entries[i].key = ced_intern(s->names, m->key.p, m->key.n);
		if (!entries[i].key)
			(void)ced_arena_fail(s->arena, s->err, m->pos);
		else
			entries[i].value = read(s, &m->value);
		ok = entries[i].value != NULL;
	}
	const struct ced_expr *x = ok ? ced_expr_record(s, nowhere, entries, j->count) : NULL;
	free(entries);
	return x;
}

static const struct ced_expr *make_call(const struct ced_source *s, enum ced_fn fn,
	const struct ced_json *args, uint32_t n, read_fn read)
{
	struct ced_entry *entries = read_items(s, args, n, read);
	const struct ced_expr *x = entries ? ced_expr_call(s, nowhere, fn, entries, n) : NULL;
	free(entries);
	return x;
}

/* -- Constants: {"Value": ...} -------------------------------------------------------------- */

static const struct ced_expr *read_object_value(
	const struct ced_source *s, const struct ced_json *j)
{
	struct ced_reader r = reader_of(s);
	enum ced_escape escape;
	enum ced_fn fn;
	const struct ced_json *inner, *args;
	const struct ced_uid *uid;
	uint32_t n;
	if (ced_escape_of(&r, j, &escape, &inner) < 0)
		return NULL;
	if (escape == CED_ESCAPE_NONE)
		return read_record(s, j, read_value);
	if (escape == CED_ESCAPE_ENTITY)
		return ced_uid_from_json(&r, j, &uid) < 0
			       ? NULL
			       : ced_expr_literal(s, nowhere, ced_entity(uid));
	if (ced_extension_of(&r, inner, &fn, &args, &n) < 0)
		return NULL;
	return make_call(s, fn, args, n, read_value);
}

static const struct ced_expr *read_value(const struct ced_source *s, const struct ced_json *j)
{
	struct ced_reader r = reader_of(s);
	struct ced_value v;
	if (j->kind == CED_JSON_ARRAY)
		return read_set(s, j, read_value);
	if (j->kind == CED_JSON_OBJECT)
		return read_object_value(s, j);
	return ced_value_from_json(&r, j, &v) < 0 ? NULL : ced_expr_literal(s, nowhere, v);
}

/* -- Expressions ---------------------------------------------------------------------------- */

static bool members(const struct ced_source *s, const struct ced_json *j, const char *what,
	const char *const *required, const char *const *optional)
{
	return ced_json_members(j, what, required, optional, s->err) == 0;
}

static const struct ced_expr *read_var(const struct ced_source *s, const struct ced_json *j)
{
	for (int i = 0; j->kind == CED_JSON_STRING && i < CED_VARS; i++)
		if (ced_slice_is(j->u.text, ced_var_name[i]))
			return ced_expr_var(s, nowhere, (enum ced_var)i);
	return fail_null(s, j, "one of principal, action, resource, context");
}

static const struct ced_expr *read_operator(
	const struct ced_source *s, const struct ced_json *j, enum ced_expr_kind kind)
{
	static const char *const one[] = {"arg", NULL}, *const two[] = {"left", "right", NULL};
	bool unary = ced_expr_is_unary(kind);
	if (!members(s, j, "an operator", unary ? one : two, NULL))
		return NULL;
	const struct ced_expr *left = read_expr(s, ced_json_get(j, unary ? "arg" : "left"));
	const struct ced_expr *right =
		left && !unary ? read_expr(s, ced_json_get(j, "right")) : NULL;
	return left && (unary || right) ? ced_expr_op(s, kind, nowhere, left, right) : NULL;
}

static const struct ced_expr *read_get(const struct ced_source *s, const struct ced_json *j)
{
	static const char *const want[] = {"left", "attr", NULL};
	if (!members(s, j, "'.'", want, NULL))
		return NULL;
	const struct ced_expr *left = read_expr(s, ced_json_get(j, "left"));
	const struct ced_name *attr = left ? name_of(s, ced_json_get(j, "attr")) : NULL;
	return attr ? ced_expr_get(s, nowhere, left, attr) : NULL;
}

static const struct ced_expr *read_has_path(
	const struct ced_source *s, const struct ced_expr *left, const struct ced_json *attr)
{
	if (attr->kind != CED_JSON_ARRAY || !attr->count)
		return fail_null(s, attr, "a string or a list of at least one");
	const struct ced_name **path = calloc(attr->count, sizeof(*path));
	if (!path)
		(void)ced_fail_memory(s->err);
	bool ok = path != NULL;
	for (uint32_t i = 0; ok && i < attr->count; i++) {
		path[i] = name_of(s, &attr->u.items[i]);
		ok = path[i] != NULL;
	}
	const struct ced_expr *x = ok ? ced_expr_has(s, nowhere, left, path, attr->count) : NULL;
	free(path);
	return x;
}

static const struct ced_expr *read_has(const struct ced_source *s, const struct ced_json *j)
{
	static const char *const want[] = {"left", "attr", NULL};
	if (!members(s, j, "has", want, NULL))
		return NULL;
	const struct ced_expr *left = read_expr(s, ced_json_get(j, "left"));
	const struct ced_json *attr = ced_json_get(j, "attr");
	if (!left || attr->kind != CED_JSON_STRING)
		return left ? read_has_path(s, left, attr) : NULL;
	const struct ced_name *name = name_of(s, attr);
	return name ? ced_expr_has(s, nowhere, left, &name, 1) : NULL;
}

/* The literal of one element of a pattern; `ret_wild`: it is the wildcard. */
static bool pattern_element(const struct ced_source *s, const struct ced_json *j, bool *ret_wild,
	struct ced_slice *ret_literal)
{
	static const char *const want[] = {"Literal", NULL};
	*ret_wild = j->kind == CED_JSON_STRING && ced_slice_is(j->u.text, "Wildcard");
	if (*ret_wild)
		return true;
	if (!members(s, j, "an element of a pattern other than \"Wildcard\"", want, NULL))
		return false;
	j = ced_json_get(j, "Literal");
	if (j->kind != CED_JSON_STRING)
		return fail_null(s, j, "a string") != NULL;
	*ret_literal = j->u.text;
	return true;
}

/* Runs of literals become one part each. */
static const struct ced_pattern *read_pattern(
	const struct ced_source *s, const struct ced_json *j, struct ced_out *part)
{
	struct ced_pattern *p = ced_arena_alloc(
		s->arena, sizeof(*p) + (j->count + (size_t)1) * sizeof(p->parts[0]));
	for (uint32_t i = 0; p && i <= j->count; i++) {
		bool wild = true;
		struct ced_slice literal = {"", 0};
		if (i < j->count && !pattern_element(s, &j->u.items[i], &wild, &literal))
			return NULL;
		ced_out_bytes(part, literal.p, literal.n);
		if (!wild)
			continue;
		p->parts[p->count] =
			part->failed
				? NULL
				: ced_intern(s->names, part->data ? part->data : "", part->length);
		if (!p->parts[p->count++])
			p = NULL;
		part->length = 0;
	}
	if (!p)
		(void)ced_arena_fail(s->arena, s->err, j->pos);
	return p;
}

static const struct ced_expr *read_like(const struct ced_source *s, const struct ced_json *j)
{
	static const char *const want[] = {"left", "pattern", NULL};
	if (!members(s, j, "like", want, NULL))
		return NULL;
	const struct ced_expr *left = read_expr(s, ced_json_get(j, "left"));
	const struct ced_json *pattern = ced_json_get(j, "pattern");
	if (!left || pattern->kind != CED_JSON_ARRAY)
		return left ? fail_null(s, pattern, "an array") : NULL;
	struct ced_out part = {0};
	const struct ced_pattern *p = read_pattern(s, pattern, &part);
	free(part.data);
	return p ? ced_expr_like(s, nowhere, left, p) : NULL;
}

static const struct ced_expr *read_is(const struct ced_source *s, const struct ced_json *j)
{
	static const char *const want[] = {"left", "entity_type", NULL}, *const may[] = {
										 "in", NULL};
	if (!members(s, j, "is", want, may))
		return NULL;
	const struct ced_expr *left = read_expr(s, ced_json_get(j, "left")), *in = NULL;
	const struct ced_name *type = left ? type_of(s, ced_json_get(j, "entity_type")) : NULL;
	const struct ced_json *in_json = ced_json_get(j, "in");
	if (type && in_json)
		in = read_expr(s, in_json);
	if (!type || (in_json && !in))
		return NULL;
	return ced_expr_is(s, nowhere, left, type, in);
}

static const struct ced_expr *read_if(const struct ced_source *s, const struct ced_json *j)
{
	static const char *const want[] = {"if", "then", "else", NULL};
	if (!members(s, j, "if-then-else", want, NULL))
		return NULL;
	const struct ced_expr *test = read_expr(s, ced_json_get(j, "if"));
	const struct ced_expr *yes = test ? read_expr(s, ced_json_get(j, "then")) : NULL;
	const struct ced_expr *no = yes ? read_expr(s, ced_json_get(j, "else")) : NULL;
	return no ? ced_expr_if(s, nowhere, test, yes, no) : NULL;
}

static int find_kind(struct ced_slice key)
{
	for (int i = 0; i < CED_EXPR_KINDS; i++)
		if (ced_expr_key[i] && ced_slice_is(key, ced_expr_key[i]))
			return i;
	return -1;
}

static const struct ced_expr *read_call(const struct ced_source *s, const struct ced_member *m)
{
	int fn = ced_fn_find(m->key);
	if (fn < 0) {
		(void)ced_fail(s->err, CEDAR_E_SYNTAX, m->pos,
			"there is no operator or function \"%.*s\"",
			(int)(m->key.n < 60 ? m->key.n : 60), m->key.p);
		return NULL;
	}
	if (m->value.kind != CED_JSON_ARRAY)
		return fail_null(s, &m->value, "an array of arguments");
	return make_call(s, (enum ced_fn)fn, m->value.u.items, m->value.count, read_expr);
}

static const struct ced_expr *read_expr(const struct ced_source *s, const struct ced_json *j)
{
	if (j->kind != CED_JSON_OBJECT || j->count != 1)
		return fail_null(s, j, "an expression, an object with one member");
	const struct ced_member *m = &j->u.members[0];
	int kind = find_kind(m->key);
	switch (kind) {
	case -1: return read_call(s, m);
	case CED_EXPR_LITERAL: return read_value(s, &m->value);
	case CED_EXPR_VAR: return read_var(s, &m->value);
	case CED_EXPR_GET: return read_get(s, &m->value);
	case CED_EXPR_HAS: return read_has(s, &m->value);
	case CED_EXPR_LIKE: return read_like(s, &m->value);
	case CED_EXPR_IS: return read_is(s, &m->value);
	case CED_EXPR_IF: return read_if(s, &m->value);
	case CED_EXPR_SET: return read_set(s, &m->value, read_expr);
	case CED_EXPR_RECORD: return read_record(s, &m->value, read_expr);
	default: return read_operator(s, &m->value, (enum ced_expr_kind)kind);
	}
}

/* -- Scopes --------------------------------------------------------------------------------- */

static int scope_uids(const struct ced_source *s, const struct ced_json *items, uint32_t n,
	struct ced_scope *scope)
{
	struct ced_reader r = reader_of(s);
	const struct ced_uid **uids = ced_new_array(s->arena, n, const struct ced_uid *);
	int code = uids ? 0 : ced_arena_fail(s->arena, s->err, nowhere);
	for (uint32_t i = 0; i < n && code == 0; i++)
		code = ced_uid_from_json(&r, &items[i], &uids[i]);
	scope->uids = uids;
	scope->count = n;
	return code;
}

/* The entity or slot that `j` holds; an action has no slot and may have a list. */
static int scope_entity(const struct ced_source *s, const struct ced_json *j, enum ced_var var,
	struct ced_scope *scope)
{
	const struct ced_json *entity = ced_json_get(j, "entity"), *slot = ced_json_get(j, "slot");
	const struct ced_json *list = ced_json_get(j, "entities");
	if (entity)
		return scope_uids(s, entity, 1, scope);
	if (list && var == CED_ACTION && scope->op == CED_SCOPE_IN &&
		list->kind == CED_JSON_ARRAY) {
		scope->list = list->count != 1;
		return scope_uids(s, list->u.items, list->count, scope);
	}
	if (slot && var == CED_ACTION)
		return ced_fail(s->err, CEDAR_E_SYNTAX, slot->pos, "an action has no slot");
	if (slot && slot->kind == CED_JSON_STRING && slot->u.text.n && slot->u.text.p[0] == '?' &&
		ced_slice_is((struct ced_slice){slot->u.text.p + 1, slot->u.text.n - 1},
			ced_var_name[var])) {
		scope->slot = true;
		return 0;
	}
	return ced_fail(s->err, CEDAR_E_SYNTAX, j->pos,
		"the scope of %s lacks an entity or its slot", ced_var_name[var]);
}

static int scope_is(const struct ced_source *s, const struct ced_json *j, enum ced_var var,
	struct ced_scope *scope)
{
	/* The other scopes ignore what they do not know; the official reader refuses it here. */
	static const char *const want[] = {"op", "entity_type", NULL}, *const may[] = {"in", NULL};
	const struct ced_json *type = ced_json_get(j, "entity_type"), *in = ced_json_get(j, "in");
	if (ced_json_members(j, "an `is` scope", want, may, s->err) < 0)
		return -1;
	scope->op = in ? CED_SCOPE_IS_IN : CED_SCOPE_IS;
	scope->type = type_of(s, type);
	if (!scope->type)
		return -1;
	return in ? scope_entity(s, in, var, scope) : 0;
}

static int check_actions(
	const struct ced_source *s, const struct ced_json *j, const struct ced_scope *scope)
{
	for (uint32_t i = 0; i < scope->count; i++)
		if (!ced_is_action_type(scope->uids[i]->type))
			return ced_fail(s->err, CEDAR_E_SYNTAX, j->pos,
				"an action is of a type `Action`, not `%.100s`",
				scope->uids[i]->type->text);
	return 0;
}

static int read_scope(const struct ced_source *s, const struct ced_json *policy, enum ced_var var,
	struct ced_scope *scope)
{
	const struct ced_json *j = ced_json_get(policy, ced_var_name[var]);
	const struct ced_json *op = ced_json_get(j, "op");
	struct ced_slice name =
		op && op->kind == CED_JSON_STRING ? op->u.text : (struct ced_slice){"", 0};
	int code;
	if (ced_slice_is(name, "All") || ced_slice_is(name, "all"))
		return 0;
	if (ced_slice_is(name, "==") || ced_slice_is(name, "in")) {
		scope->op = ced_slice_is(name, "==") ? CED_SCOPE_EQ : CED_SCOPE_IN;
		code = scope_entity(s, j, var, scope);
	} else if (ced_slice_is(name, "is") && var != CED_ACTION) {
		code = scope_is(s, j, var, scope);
	} else {
		code = ced_fail(s->err, CEDAR_E_SYNTAX, op ? op->pos : j->pos,
			"the \"op\" of the scope of %s must be All, ==, in%s", ced_var_name[var],
			var == CED_ACTION ? "" : " or is");
	}
	return code == 0 && var == CED_ACTION ? check_actions(s, j, scope) : code;
}

/* -- Policies ------------------------------------------------------------------------------- */

static bool is_identifier(struct ced_slice text)
{
	return ced_is_attribute(text) || ced_is_reserved(text);
}

static int read_annotations(
	const struct ced_source *s, const struct ced_json *j, struct ced_policy *policy)
{
	if (j->kind != CED_JSON_OBJECT)
		return ced_fail(s->err, CEDAR_E_SYNTAX, j->pos, "annotations are an object");
	struct ced_annotation *all = ced_new_array(s->arena, j->count, struct ced_annotation);
	if (!all)
		return ced_arena_fail(s->arena, s->err, j->pos);
	for (uint32_t i = 0; i < j->count; i++) {
		const struct ced_member *m = &j->u.members[i];
		if (!is_identifier(m->key))
			return ced_fail(s->err, CEDAR_E_SYNTAX, m->pos,
				"the name of an annotation is an identifier");
		all[i].key = ced_intern(s->names, m->key.p, m->key.n);
		if (!all[i].key)
			return ced_arena_fail(s->arena, s->err, m->pos);
		if (m->value.kind == CED_JSON_NULL)
			continue;
		all[i].value = name_of(s, &m->value);
		if (!all[i].value)
			return -1;
	}
	policy->annotations = all;
	policy->annotation_count = j->count;
	return 0;
}

static int read_condition(
	const struct ced_source *s, const struct ced_json *j, struct ced_condition *c)
{
	static const char *const want[] = {"kind", "body", NULL};
	if (!members(s, j, "a condition", want, NULL))
		return -1;
	const struct ced_json *kind = ced_json_get(j, "kind");
	bool string = kind->kind == CED_JSON_STRING;
	c->unless = string && ced_slice_is(kind->u.text, "unless");
	if (!c->unless && !(string && ced_slice_is(kind->u.text, "when")))
		return ced_fail(s->err, CEDAR_E_SYNTAX, kind->pos,
			"the kind of a condition is \"when\" or \"unless\"");
	c->body = read_expr(s, ced_json_get(j, "body"));
	return c->body ? 0 : -1;
}

static int read_conditions(
	const struct ced_source *s, const struct ced_json *j, struct ced_policy *policy)
{
	if (j->kind != CED_JSON_ARRAY)
		return ced_fail(s->err, CEDAR_E_SYNTAX, j->pos, "conditions are an array");
	struct ced_condition *all = ced_new_array(s->arena, j->count, struct ced_condition);
	if (!all)
		return ced_arena_fail(s->arena, s->err, j->pos);
	for (uint32_t i = 0; i < j->count; i++)
		if (read_condition(s, &j->u.items[i], &all[i]) < 0)
			return -1;
	policy->conditions = all;
	policy->condition_count = j->count;
	return 0;
}

static int read_effect(
	const struct ced_source *s, const struct ced_json *j, struct ced_policy *policy)
{
	bool string = j->kind == CED_JSON_STRING;
	bool permit = string && ced_slice_is(j->u.text, "permit");
	if (!permit && !(string && ced_slice_is(j->u.text, "forbid")))
		return ced_fail(
			s->err, CEDAR_E_SYNTAX, j->pos, "the effect is \"permit\" or \"forbid\"");
	policy->effect = permit ? CEDAR_PERMIT : CEDAR_FORBID;
	return 0;
}

static int read_policy(
	const struct ced_source *s, const struct ced_json *j, struct ced_policy *policy)
{
	static const char *const want[] = {
		"effect", "principal", "action", "resource", "conditions", NULL};
	static const char *const may[] = {"annotations", NULL};
	const struct ced_json *annotations = ced_json_get(j, "annotations");
	if (!members(s, j, "a policy", want, may) ||
		read_effect(s, ced_json_get(j, "effect"), policy) < 0 ||
		read_scope(s, j, CED_PRINCIPAL, &policy->principal) < 0 ||
		read_scope(s, j, CED_ACTION, &policy->action) < 0 ||
		read_scope(s, j, CED_RESOURCE, &policy->resource) < 0 ||
		read_conditions(s, ced_json_get(j, "conditions"), policy) < 0)
		return -1;
	return annotations ? read_annotations(s, annotations, policy) : 0;
}

int ced_policy_from_json(
	const struct ced_source *s, const struct ced_json *j, struct ced_policy **ret)
{
	struct cedar_error err = {0};
	struct ced_source inner = *s;
	inner.err = &err;
	struct ced_policy *policy = ced_new(s->arena, struct ced_policy);
	if (!policy)
		return ced_arena_fail(s->arena, s->err, j->pos);
	if (read_policy(&inner, j, policy) == 0) {
		*ret = policy;
		return 0;
	}
	if (s->err)
		*s->err = err;
	return err.code;
}
