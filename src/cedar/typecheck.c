/* The type checker: variables, literals, control flow, attributes, tags, sets and records. The
 * order of the cases follows the order of precedence of the language. See typecheck.h. */
#include "cedar/typecheck.h"

#include <stdlib.h>
#include <string.h>

#include "cedar/slice.h"

/* ---- life ---- */

int ced_checker_init(struct ced_checker *c, const struct cedar_schema *s, struct ced_arena *arena,
	struct cedar_report *report)
{
	*c = (struct ced_checker){.s = s, .arena = arena, .report = report};
	if (ced_types_init(&c->types, arena, &s->types) < 0 ||
		ced_shape_table_init(&c->shapes, arena) < 0)
		return -1;
	c->t_bool = ced_type_basic(&c->types, CED_TY_BOOL);
	c->t_true = ced_type_basic(&c->types, CED_TY_TRUE);
	c->t_false = ced_type_basic(&c->types, CED_TY_FALSE);
	c->t_long = ced_type_basic(&c->types, CED_TY_LONG);
	c->t_string = ced_type_basic(&c->types, CED_TY_STRING);
	return c->t_bool && c->t_true && c->t_false && c->t_long && c->t_string ? 0 : -1;
}

bool ced_checker_stopped(const struct ced_checker *c)
{
	return c->out_of_memory || c->steps >= CEDAR_CHECK_STEPS_MAX;
}

/* A type that could not be made for lack of memory. */
static struct ced_answer made(struct ced_checker *c, bool ok, const struct ced_type *type)
{
	if (!type)
		c->out_of_memory = true;
	return ced_answer_of(ok && type, type, NULL);
}

/* A capability set that is empty for lack of memory would refuse what is right. */
static const struct ced_caps *both(
	struct ced_checker *c, const struct ced_caps *a, const struct ced_caps *b)
{
	const struct ced_caps *set = ced_caps_union(c->arena, a, b);

	if (!set && (a || b))
		c->out_of_memory = true;
	return set;
}

/* ---- which type was found where ---- */

struct ced_type_memo {
	struct memo_slot {
		const struct ced_expr *e;
		const struct ced_type *type;
	} * slots;
	size_t n_slots, n;
};

static struct memo_slot *memo_find(
	struct memo_slot *slots, size_t n_slots, const struct ced_expr *e)
{
	size_t at = (size_t)(((uintptr_t)e >> 4) * 0x9e3779b97f4a7c15u >> 32) & (n_slots - 1);

	while (slots[at].e && slots[at].e != e)
		at = (at + 1) & (n_slots - 1);
	return &slots[at];
}

int ced_check_remember_types(struct ced_checker *c)
{
	enum { FIRST = 256 };

	c->memo = ced_arena_alloc(c->arena, sizeof(*c->memo));
	if (c->memo)
		c->memo->slots = ced_arena_alloc(c->arena, FIRST * sizeof(*c->memo->slots));
	if (!c->memo || !c->memo->slots)
		return -1;
	c->memo->n_slots = FIRST;
	return 0;
}

void ced_check_forget_types(struct ced_checker *c)
{
	memset(c->memo->slots, 0, c->memo->n_slots * sizeof(*c->memo->slots));
	c->memo->n = 0;
}

static void memo_grow(struct ced_checker *c, struct ced_type_memo *m)
{
	size_t n_slots = m->n_slots * 2;
	struct memo_slot *slots = ced_arena_alloc(c->arena, n_slots * sizeof(*slots));

	if (!slots) {
		c->out_of_memory = true;
		return;
	}
	for (size_t i = 0; i < m->n_slots; i++)
		if (m->slots[i].e)
			*memo_find(slots, n_slots, m->slots[i].e) = m->slots[i];
	m->slots = slots;
	m->n_slots = n_slots;
}

static void remember(struct ced_checker *c, const struct ced_expr *e, const struct ced_type *type)
{
	struct ced_type_memo *m = c->memo;
	struct memo_slot *slot;

	if (m->n * 2 >= m->n_slots)
		memo_grow(c, m);
	if (c->out_of_memory)
		return;
	slot = memo_find(m->slots, m->n_slots, e);
	m->n += !slot->e;
	*slot = (struct memo_slot){e, type};
}

const struct ced_type *ced_check_type_of(const struct ced_checker *c, const struct ced_expr *e)
{
	return memo_find(c->memo->slots, c->memo->n_slots, e)->type;
}

/* ---- what is expected ---- */

static bool fits(const struct ced_type *type, enum ced_want want)
{
	switch (want) {
	case CED_WANT_BOOL: return ced_type_is_bool(type);
	case CED_WANT_LONG: return type->kind == CED_TY_LONG;
	case CED_WANT_STRING: return type->kind == CED_TY_STRING;
	case CED_WANT_ENTITY: return type->kind == CED_TY_ENTITY;
	case CED_WANT_RECORD_OR_ENTITY:
		return type->kind == CED_TY_RECORD || type->kind == CED_TY_ENTITY;
	case CED_WANT_SET: return type->kind == CED_TY_SET;
	case CED_WANT_ENTITY_OR_SET:
		return type->kind == CED_TY_ENTITY ||
		       (type->kind == CED_TY_SET && type->elem->kind == CED_TY_ENTITY);
	case CED_WANT_EXT: break;
	}
	return type->kind == CED_TY_EXT && type->id == (uint32_t)want - CED_WANT_EXT;
}

static const char *want_text(enum ced_want want)
{
	switch (want) {
	case CED_WANT_BOOL: return "Bool";
	case CED_WANT_LONG: return "Long";
	case CED_WANT_STRING: return "String";
	case CED_WANT_ENTITY: return "an entity";
	case CED_WANT_RECORD_OR_ENTITY: return "a record or an entity";
	case CED_WANT_SET: return "a set";
	case CED_WANT_ENTITY_OR_SET: return "an entity or a set of entities";
	case CED_WANT_EXT: break;
	}
	return ced_kind_name((enum ced_kind)(want - CED_WANT_EXT));
}

struct ced_answer ced_check_expect(struct ced_checker *c, const struct ced_caps *prior,
	const struct ced_expr *e, enum ced_want want)
{
	struct ced_answer a = ced_check_expr(c, prior, e);

	if (!a.type)
		return ced_answer_failed(NULL);
	if (fits(a.type, want))
		return a;
	ced_report_type(c, e->pos, want_text(want), a.type);
	return ced_answer_failed(NULL);
}

/* ---- variables and literals ---- */

uint32_t ced_check_literal_action(const struct ced_checker *c, const struct ced_uid *uid)
{
	return ced_schema_find_uid(c->s, ced_name_slice(uid->type), ced_name_slice(uid->id));
}

/* An action has a type only if it is declared. That it is not is reported once for the policy, not
 * here. */
uint32_t ced_check_literal_etype(const struct ced_checker *c, const struct ced_uid *uid)
{
	struct ced_slice type = ced_name_slice(uid->type);

	if (ced_schema_is_action_name(type) && ced_check_literal_action(c, uid) == CED_SCHEMA_NONE)
		return CED_SCHEMA_NONE;
	return ced_schema_find_etype(c->s, type);
}

static struct ced_answer check_etype(struct ced_checker *c, uint32_t etype)
{
	if (etype == CED_SCHEMA_NONE)
		return ced_answer_failed(NULL);
	return made(c, true, ced_type_entity(&c->types, etype));
}

static struct ced_answer check_var(struct ced_checker *c, enum ced_var var)
{
	const struct ced_action *action = &c->s->actions[c->env.action];

	switch (var) {
	case CED_PRINCIPAL: return check_etype(c, c->env.principal);
	case CED_ACTION: return check_etype(c, action->etype);
	case CED_RESOURCE: return check_etype(c, c->env.resource);
	case CED_CONTEXT:
	case CED_VARS: break;
	}
	return ced_answer_ok(action->context, NULL);
}

/* ---- && || ! if ---- */

static struct ced_answer check_and(
	struct ced_checker *c, const struct ced_caps *prior, const struct ced_expr *e)
{
	struct ced_answer l = ced_check_expect(c, prior, e->u.op.left, CED_WANT_BOOL), r;

	if (l.type == c->t_false)
		return ced_answer_of(l.ok, c->t_false, NULL);
	r = ced_check_expect(c, both(c, prior, l.caps), e->u.op.right, CED_WANT_BOOL);
	return ced_check_join_and(c, l, r);
}

/* The conjunction of two answers of which the left is not False. */
struct ced_answer ced_check_join_and(
	struct ced_checker *c, struct ced_answer l, struct ced_answer r)
{
	bool ok = l.ok && r.ok;

	if (!l.type || !r.type)
		return ced_answer_failed(c->t_bool);
	if (r.type == c->t_false)
		return ced_answer_of(ok, c->t_false, NULL);
	if (r.type == c->t_true)
		return ced_answer_of(ok, l.type, both(c, l.caps, r.caps));
	/* What `True && e` passes on is what e does; l's capabilities are lost here, as they are
	 * in the official engine. */
	if (l.type == c->t_true)
		return ced_answer_of(ok, r.type, r.caps);
	return ced_answer_of(ok, c->t_bool, both(c, l.caps, r.caps));
}

static struct ced_answer check_or(
	struct ced_checker *c, const struct ced_caps *prior, const struct ced_expr *e)
{
	struct ced_answer l = ced_check_expect(c, prior, e->u.op.left, CED_WANT_BOOL), r;
	bool ok;

	if (l.type == c->t_true)
		return ced_answer_of(l.ok, c->t_true, l.caps);
	r = ced_check_expect(c, prior, e->u.op.right, CED_WANT_BOOL);
	ok = l.ok && r.ok;
	if (!l.type || !r.type)
		return ced_answer_failed(c->t_bool);
	if (r.type == c->t_true)
		return ced_answer_of(ok, c->t_true, r.caps);
	if (r.type == c->t_false)
		return ced_answer_of(ok, l.type, l.caps);
	if (l.type == c->t_false)
		return ced_answer_of(ok, r.type, r.caps);
	return ced_answer_of(ok, c->t_bool, ced_caps_intersect(c->arena, l.caps, r.caps));
}

static struct ced_answer check_not(
	struct ced_checker *c, const struct ced_caps *prior, const struct ced_expr *e)
{
	struct ced_answer a = ced_check_expect(c, prior, e->u.op.left, CED_WANT_BOOL);

	if (!a.type)
		return ced_answer_failed(c->t_bool);
	if (a.type == c->t_bool)
		return ced_answer_of(a.ok, c->t_bool, NULL);
	return ced_answer_of(a.ok, ced_check_bool(c, a.type == c->t_false), NULL);
}

static struct ced_answer join_branches(struct ced_checker *c, const struct ced_expr *e, bool ok,
	struct ced_answer then, struct ced_answer otherwise)
{
	const struct ced_type *type;

	if (!then.type || !otherwise.type)
		return ced_answer_failed(NULL);
	if (ced_type_join(&c->types, then.type, otherwise.type, &type) < 0)
		return made(c, false, NULL);
	if (!type) {
		ced_report_pair(c, e->pos, "the two branches have no type in common", then.type,
			otherwise.type);
		return ced_answer_failed(NULL);
	}
	return ced_answer_of(ok && then.ok && otherwise.ok, type,
		ced_caps_intersect(c->arena, then.caps, otherwise.caps));
}

static struct ced_answer check_if(
	struct ced_checker *c, const struct ced_caps *prior, const struct ced_expr *e)
{
	struct ced_answer test = ced_check_expect(c, prior, e->u.cond.test, CED_WANT_BOOL), then,
			  otherwise;

	if (test.type == c->t_false) {
		otherwise = ced_check_expr(c, prior, e->u.cond.no);
		return ced_answer_of(test.ok && otherwise.ok, otherwise.type, otherwise.caps);
	}
	then = ced_check_expr(c, both(c, prior, test.caps), e->u.cond.yes);
	then.caps = then.ok ? both(c, then.caps, test.caps) : NULL;
	if (test.type == c->t_true)
		return ced_answer_of(test.ok && then.ok, then.type, then.caps);
	otherwise = ced_check_expr(c, prior, e->u.cond.no);
	return join_branches(c, e, test.ok, then, otherwise);
}

/* ---- attributes ---- */

/* The attribute of a record or entity type, or NULL. */
static const struct ced_attr *attr_of(
	const struct ced_checker *c, const struct ced_type *type, const struct ced_name *name)
{
	return type->kind == CED_TY_RECORD ? ced_type_attr(type, ced_name_slice(name))
					   : ced_schema_attr(c->s, type->id, ced_name_slice(name));
}

static bool has_cap(struct ced_checker *c, const struct ced_caps *prior, enum ced_cap_kind kind,
	ced_shape_id on, ced_shape_id key)
{
	if (!on || !key)
		c->out_of_memory = true;
	return ced_caps_has(prior, (struct ced_cap){.kind = kind, .on = on, .key = key}, &c->steps);
}

static const struct ced_caps *new_cap(
	struct ced_checker *c, enum ced_cap_kind kind, ced_shape_id on, ced_shape_id key)
{
	const struct ced_caps *one =
		ced_caps_one(c->arena, (struct ced_cap){.kind = kind, .on = on, .key = key});

	if (!one || !on || !key)
		c->out_of_memory = true;
	return one;
}

/* `base.name`, where `base` was checked and its shape is `on`. `e` is where errors point. */
static struct ced_answer get_attr(struct ced_checker *c, const struct ced_caps *prior,
	struct ced_answer base, ced_shape_id on, const struct ced_name *name,
	const struct ced_expr *e)
{
	const struct ced_attr *attr;

	if (!base.type)
		return ced_answer_failed(NULL);
	attr = attr_of(c, base.type, name);
	if (!attr) {
		ced_report_attr(c, e->pos, "there is no such attribute", name, base.type);
		return ced_answer_failed(NULL);
	}
	if (!attr->required &&
		!has_cap(c, prior, CED_CAP_ATTR, on, ced_shape_of_string(&c->shapes, name))) {
		ced_report_attr(c, e->pos,
			"this attribute is optional; guard the access with `has`", name, base.type);
		return ced_answer_failed(attr->type);
	}
	return ced_answer_of(base.ok, attr->type, NULL);
}

/* The shape costs time and is needed only when the attribute is optional. */
static struct ced_answer check_attr(
	struct ced_checker *c, const struct ced_caps *prior, const struct ced_expr *e)
{
	struct ced_answer base =
		ced_check_expect(c, prior, e->u.get.left, CED_WANT_RECORD_OR_ENTITY);

	return get_attr(c, prior, base, base.type ? ced_shape_of(&c->shapes, e->u.get.left) : 0,
		e->u.get.attr, e);
}

/* `base has name`. A required attribute of an entity may be missing, since the entity may be. */
static struct ced_answer has_attr(struct ced_checker *c, const struct ced_caps *prior,
	struct ced_answer base, ced_shape_id on, const struct ced_name *name)
{
	const struct ced_attr *attr;
	ced_shape_id key;
	bool certain;

	if (!base.type)
		return ced_answer_failed(c->t_bool);
	attr = attr_of(c, base.type, name);
	if (!attr)
		return ced_answer_of(base.ok, c->t_false, NULL);
	key = ced_shape_of_string(&c->shapes, name);
	certain = (attr->required && base.type->kind == CED_TY_RECORD) ||
		  has_cap(c, prior, CED_CAP_ATTR, on, key);
	return ced_answer_of(
		base.ok, certain ? c->t_true : c->t_bool, new_cap(c, CED_CAP_ATTR, on, key));
}

/* `e.k0.k1...` up to `n` names of a has path, checked anew, since more is known each time. */
static struct ced_answer check_path_base(struct ced_checker *c, const struct ced_caps *prior,
	const struct ced_expr *e, size_t n, ced_shape_id *ret_shape)
{
	struct ced_answer a = ced_check_expect(c, prior, e->u.has.left, CED_WANT_RECORD_OR_ENTITY);
	ced_shape_id on = ced_shape_of(&c->shapes, e->u.has.left);

	for (size_t i = 0; i < n && !ced_checker_stopped(c); i++) {
		c->steps++;
		a = get_attr(c, prior, a, on, e->u.has.path[i], e);
		if (a.type && !fits(a.type, CED_WANT_RECORD_OR_ENTITY)) {
			ced_report_error(c->report, e->pos,
				"`%.*s` in this `has` is neither a record nor an entity",
				ced_shown(ced_name_slice(e->u.has.path[i])),
				e->u.has.path[i]->text);
			a = ced_answer_failed(NULL);
		}
		on = ced_shape_of_attr(&c->shapes, on, e->u.has.path[i]);
	}
	*ret_shape = on;
	return a;
}

/* `e has a.b.c` is `(e has a && e.a has b) && e.a.b has c`. */
static struct ced_answer check_has(
	struct ced_checker *c, const struct ced_caps *prior, const struct ced_expr *e)
{
	struct ced_answer all = {0};

	for (size_t i = 0; i < e->u.has.count; i++) {
		const struct ced_caps *known = both(c, prior, all.caps);
		struct ced_answer base, one;
		ced_shape_id on;

		base = check_path_base(c, known, e, i, &on);
		one = has_attr(c, known, base, on, e->u.has.path[i]);
		all = i == 0 ? one : ced_check_join_and(c, all, one);
		if (all.type == c->t_false || ced_checker_stopped(c))
			break;
	}
	return all;
}

/* ---- tags ---- */

static struct ced_answer check_has_tag(
	struct ced_checker *c, const struct ced_caps *prior, const struct ced_expr *e)
{
	struct ced_answer base = ced_check_expect(c, prior, e->u.op.left, CED_WANT_ENTITY);
	struct ced_answer key = ced_check_expect(c, prior, e->u.op.right, CED_WANT_STRING);
	ced_shape_id on = ced_shape_of(&c->shapes, e->u.op.left),
		     name = ced_shape_of(&c->shapes, e->u.op.right);
	const struct ced_type *type = c->t_bool;

	if (!base.type)
		return ced_answer_failed(NULL);
	if (!c->s->etypes[base.type->id].tags)
		type = c->t_false;
	else if (has_cap(c, prior, CED_CAP_TAG, on, name))
		type = c->t_true;
	return ced_answer_of(base.ok && key.ok, type, new_cap(c, CED_CAP_TAG, on, name));
}

static struct ced_answer check_get_tag(
	struct ced_checker *c, const struct ced_caps *prior, const struct ced_expr *e)
{
	struct ced_answer base = ced_check_expect(c, prior, e->u.op.left, CED_WANT_ENTITY);
	struct ced_answer key = ced_check_expect(c, prior, e->u.op.right, CED_WANT_STRING);
	const struct ced_etype *etype;

	if (!base.type)
		return ced_answer_failed(NULL);
	etype = &c->s->etypes[base.type->id];
	if (!has_cap(c, prior, CED_CAP_TAG, ced_shape_of(&c->shapes, e->u.op.left),
		    ced_shape_of(&c->shapes, e->u.op.right))) {
		ced_report_error(c->report, e->pos,
			"guard the access to this tag of %.*s with `hasTag`",
			ced_shown(etype->name), etype->name.p);
		return ced_answer_failed(NULL);
	}
	if (!etype->tags) {
		ced_report_error(c->report, e->pos, "%.*s has no tags", ced_shown(etype->name),
			etype->name.p);
		return ced_answer_failed(NULL);
	}
	return ced_answer_of(base.ok && key.ok, etype->tags, NULL);
}

/* ---- like, is ---- */

static struct ced_answer check_like(
	struct ced_checker *c, const struct ced_caps *prior, const struct ced_expr *e)
{
	struct ced_answer a = ced_check_expect(c, prior, e->u.like.left, CED_WANT_STRING);

	return ced_answer_of(a.ok, c->t_bool, NULL);
}

/* `e is T in f` is `e is T && e in f`. */
static struct ced_answer check_is(
	struct ced_checker *c, const struct ced_caps *prior, const struct ced_expr *e)
{
	struct ced_answer a = ced_check_expect(c, prior, e->u.is.left, CED_WANT_ENTITY), is;

	if (!a.type)
		return ced_answer_failed(c->t_bool);
	is = ced_answer_of(a.ok,
		ced_check_bool(c,
			ced_slice_eq(c->s->etypes[a.type->id].name, ced_name_slice(e->u.is.type))),
		NULL);
	if (!e->u.is.in || is.type == c->t_false)
		return is;
	return ced_check_join_and(c, is, ced_check_in(c, prior, e->u.is.left, e->u.is.in));
}

/* ---- sets and records ---- */

static bool too_deep(struct ced_checker *c, const struct ced_expr *e, const struct ced_type *part)
{
	if (!ced_type_nests_too_deep(part))
		return false;
	ced_report_error(c->report, e->pos, "types nest deeper than %d here", CED_TY_DEPTH_MAX);
	return true;
}

static struct ced_answer check_set(
	struct ced_checker *c, const struct ced_caps *prior, const struct ced_expr *e)
{
	const struct ced_type *elem = NULL;
	bool ok = true, known = true;

	if (e->u.list.count == 0) {
		ced_report_error(c->report, e->pos, "a set without elements has no type");
		return ced_answer_failed(NULL);
	}
	for (size_t i = 0; i < e->u.list.count; i++) {
		struct ced_answer a = ced_check_expr(c, prior, e->u.list.items[i]);
		const struct ced_type *joined;

		ok &= a.ok;
		known &= a.type != NULL;
		if (!known || elem == a.type)
			continue;
		joined = a.type;
		if (elem && ced_type_join(&c->types, elem, a.type, &joined) < 0)
			return made(c, false, NULL);
		if (!joined) {
			ced_report_pair(
				c, e->pos, "the elements have no type in common", elem, a.type);
			known = ok = false;
		}
		elem = joined;
	}
	if (!known || !elem || too_deep(c, e, elem))
		return ced_answer_failed(NULL);
	return made(c, ok, ced_type_set(&c->types, elem));
}

static int compare_attrs(const void *a, const void *b)
{
	return ced_slice_cmp(
		((const struct ced_attr *)a)->name, ((const struct ced_attr *)b)->name);
}

static struct ced_answer check_record(
	struct ced_checker *c, const struct ced_caps *prior, const struct ced_expr *e)
{
	struct ced_attr *attrs = ced_arena_alloc(c->arena, e->u.record.count * sizeof(*attrs) + 1);
	bool ok = true, known = true;

	if (!attrs)
		return made(c, false, NULL);
	for (size_t i = 0; i < e->u.record.count; i++) {
		struct ced_answer a = ced_check_expr(c, prior, e->u.record.entries[i].value);

		attrs[i] = (struct ced_attr){.name = ced_name_slice(e->u.record.entries[i].key),
			.required = true,
			.type = a.type};
		ok &= a.ok;
		known &= a.type && !too_deep(c, e, a.type);
	}
	if (!known)
		return ced_answer_failed(NULL);
	qsort(attrs, e->u.record.count, sizeof(*attrs), compare_attrs);
	return made(c, ok, ced_type_record(&c->types, attrs, e->u.record.count));
}

/* ---- arithmetic and comparison ---- */

static struct ced_answer check_unary(struct ced_checker *c, const struct ced_caps *prior,
	const struct ced_expr *e, enum ced_want want, const struct ced_type *type)
{
	struct ced_answer a = ced_check_expect(c, prior, e->u.op.left, want);

	return ced_answer_of(a.ok, type, NULL);
}

static struct ced_answer check_arith(
	struct ced_checker *c, const struct ced_caps *prior, const struct ced_expr *e)
{
	struct ced_answer l = ced_check_expect(c, prior, e->u.op.left, CED_WANT_LONG);
	struct ced_answer r = ced_check_expect(c, prior, e->u.op.right, CED_WANT_LONG);

	return ced_answer_of(l.ok && r.ok, c->t_long, NULL);
}

static bool has_order(const struct ced_type *type)
{
	return type->kind == CED_TY_LONG ||
	       (type->kind == CED_TY_EXT && (type->id == CED_DATETIME || type->id == CED_DURATION));
}

static struct ced_answer check_order(
	struct ced_checker *c, const struct ced_caps *prior, const struct ced_expr *e)
{
	struct ced_answer l = ced_check_expr(c, prior, e->u.op.left),
			  r = ced_check_expr(c, prior, e->u.op.right);

	if (!l.type || !r.type)
		return ced_answer_failed(c->t_bool);
	if (l.type == r.type && has_order(l.type))
		return ced_answer_of(l.ok && r.ok, c->t_bool, NULL);
	ced_report_pair(c, e->pos,
		"only two Longs, datetimes or durations can be compared, not these", l.type,
		r.type);
	return ced_answer_failed(c->t_bool);
}

/* contains, containsAll, containsAny: what is looked for must be able to be there. */
static struct ced_answer check_contains(
	struct ced_checker *c, const struct ced_caps *prior, const struct ced_expr *e)
{
	struct ced_answer l = ced_check_expect(c, prior, e->u.op.left, CED_WANT_SET), r;
	const struct ced_type *left, *joined;

	r = e->kind == CED_EXPR_CONTAINS ? ced_check_expr(c, prior, e->u.op.right)
					 : ced_check_expect(c, prior, e->u.op.right, CED_WANT_SET);
	if (!l.type || !r.type)
		return ced_answer_failed(c->t_bool);
	left = e->kind == CED_EXPR_CONTAINS ? l.type->elem : l.type;
	if (ced_type_join(&c->types, left, r.type, &joined) < 0)
		return made(c, false, NULL);
	if (!joined) {
		ced_report_pair(c, e->pos, "these have no type in common", left, r.type);
		return ced_answer_failed(c->t_bool);
	}
	return ced_answer_of(l.ok && r.ok, c->t_bool, NULL);
}

/* ---- dispatch ---- */

static struct ced_answer check_literal(struct ced_checker *c, struct ced_value v)
{
	switch ((int)v.kind) {
	case CED_BOOL: return ced_answer_ok(ced_check_bool(c, v.u.boolean), NULL);
	case CED_LONG: return ced_answer_ok(c->t_long, NULL);
	case CED_STRING: return ced_answer_ok(c->t_string, NULL);
	default: return check_etype(c, ced_check_literal_etype(c, v.u.uid));
	}
}

static struct ced_answer check_kind(
	struct ced_checker *c, const struct ced_caps *prior, const struct ced_expr *e)
{
	switch ((int)e->kind) {
	case CED_EXPR_LITERAL: return check_literal(c, e->u.literal);
	case CED_EXPR_VAR: return check_var(c, e->u.var);
	case CED_EXPR_NOT: return check_not(c, prior, e);
	case CED_EXPR_NEG: return check_unary(c, prior, e, CED_WANT_LONG, c->t_long);
	case CED_EXPR_IS_EMPTY: return check_unary(c, prior, e, CED_WANT_SET, c->t_bool);
	case CED_EXPR_EQ:
	case CED_EXPR_NE: return ced_check_equality(c, prior, e);
	case CED_EXPR_LT:
	case CED_EXPR_LE:
	case CED_EXPR_GT:
	case CED_EXPR_GE: return check_order(c, prior, e);
	case CED_EXPR_IN: return ced_check_in(c, prior, e->u.op.left, e->u.op.right);
	case CED_EXPR_ADD:
	case CED_EXPR_SUB:
	case CED_EXPR_MUL: return check_arith(c, prior, e);
	case CED_EXPR_CONTAINS:
	case CED_EXPR_CONTAINS_ALL:
	case CED_EXPR_CONTAINS_ANY: return check_contains(c, prior, e);
	case CED_EXPR_GET_TAG: return check_get_tag(c, prior, e);
	case CED_EXPR_HAS_TAG: return check_has_tag(c, prior, e);
	case CED_EXPR_AND: return check_and(c, prior, e);
	case CED_EXPR_OR: return check_or(c, prior, e);
	case CED_EXPR_IF: return check_if(c, prior, e);
	case CED_EXPR_GET: return check_attr(c, prior, e);
	case CED_EXPR_HAS: return check_has(c, prior, e);
	case CED_EXPR_LIKE: return check_like(c, prior, e);
	case CED_EXPR_IS: return check_is(c, prior, e);
	case CED_EXPR_SET: return check_set(c, prior, e);
	case CED_EXPR_RECORD: return check_record(c, prior, e);
	case CED_EXPR_CALL: return ced_check_call(c, prior, e);
	default: return ced_answer_failed(NULL);
	}
}

/* The recursion goes as deep as the parser lets expressions nest. */
struct ced_answer ced_check_expr(
	struct ced_checker *c, const struct ced_caps *prior, const struct ced_expr *e)
{
	struct ced_answer a;

	c->steps++;
	if (ced_checker_stopped(c))
		return ced_answer_failed(NULL);
	a = check_kind(c, prior, e);
	if (c->memo && a.type)
		remember(c, e, a.type);
	return a;
}
