/*
 * The type checker: `==` and `in`.
 *
 * Both can be decided from literals alone, in which case their type is True or False and what they
 * guard is dead or certain. The variable `action` counts as a literal, since the environment fixes
 * it. `true && false` counts as the literal `false`, because the official engine's parser folds it.
 */
#include "cedar/slice.h"
#include "cedar/typecheck.h"

/* A literal, or nothing. The action of the environment has names of the schema, so that entities
 * are compared as slices. */
struct literal {
	bool is;
	enum ced_kind kind;
	int64_t num;                 /* Bool and Long */
	struct ced_slice type, text; /* String: text; Entity: both */
};

static const struct literal not_literal;

static struct literal literal_of(const struct ced_checker *c, const struct ced_expr *e);

static struct literal fold(const struct ced_checker *c, const struct ced_expr *e)
{
	struct literal l = literal_of(c, e->u.op.left), r;

	if (!l.is || l.kind != CED_BOOL)
		return not_literal;
	r = literal_of(c, e->u.op.right);
	if (!r.is || r.kind != CED_BOOL)
		return not_literal;
	l.num = e->kind == CED_EXPR_AND ? l.num && r.num : l.num || r.num;
	return l;
}

static struct literal of_value(struct ced_value v)
{
	struct literal l = {.is = true, .kind = v.kind};

	if (v.kind == CED_STRING) {
		l.text = ced_name_slice(v.u.string);
	} else if (v.kind == CED_ENTITY) {
		l.type = ced_name_slice(v.u.uid->type);
		l.text = ced_name_slice(v.u.uid->id);
	} else {
		l.num = v.kind == CED_BOOL ? v.u.boolean : v.u.number;
	}
	return l;
}

static struct literal of_action(const struct ced_checker *c)
{
	const struct ced_action *action = &c->s->actions[c->env.action];

	return (struct literal){.is = true,
		.kind = CED_ENTITY,
		.type = c->s->etypes[action->etype].name,
		.text = action->id};
}

static struct literal literal_of(const struct ced_checker *c, const struct ced_expr *e)
{
	if (e->kind == CED_EXPR_LITERAL)
		return of_value(e->u.literal);
	if (e->kind == CED_EXPR_VAR && e->u.var == CED_ACTION)
		return of_action(c);
	if (e->kind == CED_EXPR_AND || e->kind == CED_EXPR_OR)
		return fold(c, e);
	return not_literal;
}

static bool literals_equal(struct literal x, struct literal y)
{
	return x.kind == y.kind && x.num == y.num && ced_slice_eq(x.type, y.type) &&
	       ced_slice_eq(x.text, y.text);
}

/* Bool, unless the types or the literals decide. */
static const struct ced_type *type_of_equality(const struct ced_checker *c,
	const struct ced_expr *e, const struct ced_type *left, const struct ced_type *right)
{
	struct literal x, y;

	if (left && right && left->kind == CED_TY_ENTITY && right->kind == CED_TY_ENTITY &&
		left != right)
		return c->t_false;
	x = literal_of(c, e->u.op.left);
	y = literal_of(c, e->u.op.right);
	if (!x.is || !y.is)
		return c->t_bool;
	return ced_check_bool(c, literals_equal(x, y));
}

struct ced_answer ced_check_equality(
	struct ced_checker *c, const struct ced_caps *prior, const struct ced_expr *e)
{
	struct ced_answer l = ced_check_expr(c, prior, e->u.op.left),
			  r = ced_check_expr(c, prior, e->u.op.right);
	const struct ced_type *type = type_of_equality(c, e, l.type, r.type), *joined;
	bool ok = l.ok && r.ok;

	if (type == c->t_bool && l.type && r.type) {
		if (ced_type_join(&c->types, l.type, r.type, &joined) < 0)
			c->out_of_memory = true;
		else if (!joined) {
			ced_report_pair(c, e->pos, "these have no type in common", l.type, r.type);
			ok = false;
		}
	}
	if (e->kind == CED_EXPR_NE && type != c->t_bool)
		type = ced_check_bool(c, type == c->t_false);
	return ced_answer_of(ok, type, NULL);
}

/* ---- in ---- */

/* What an action literal is in, among literals. */
struct in_literals {
	uint32_t left;    /* the action */
	bool any_action;  /* is one of the others an action at all? */
	bool any_unknown; /* ... one that is not declared? */
	bool found;
};

static bool add_right(const struct ced_checker *c, struct in_literals *in, const struct ced_expr *e)
{
	struct literal right = literal_of(c, e);
	uint32_t action;

	if (!right.is || right.kind != CED_ENTITY)
		return false;
	if (!ced_schema_is_action_name(right.type))
		return true;
	in->any_action = true;
	action = ced_schema_find_uid(c->s, right.type, right.text);
	if (action == CED_SCHEMA_NONE)
		in->any_unknown = true;
	else
		in->found |= ced_schema_action_in(c->s, in->left, action);
	return true;
}

/* Are both sides literals and the left one an action? Then *ret_in says what is known. */
static bool literals_decide(const struct ced_checker *c, const struct ced_expr *left,
	const struct ced_expr *right, struct in_literals *ret_in)
{
	struct literal l = literal_of(c, left);

	if (!l.is || l.kind != CED_ENTITY || !ced_schema_is_action_name(l.type))
		return false;
	*ret_in = (struct in_literals){.left = ced_schema_find_uid(c->s, l.type, l.text)};
	if (right->kind != CED_EXPR_SET)
		return add_right(c, ret_in, right);
	for (size_t i = 0; i < right->u.list.count; i++)
		if (!add_right(c, ret_in, right->u.list.items[i]))
			return false;
	return true;
}

struct ced_answer ced_check_in(struct ced_checker *c, const struct ced_caps *prior,
	const struct ced_expr *left, const struct ced_expr *right)
{
	struct ced_answer l = ced_check_expect(c, prior, left, CED_WANT_ENTITY);
	struct ced_answer r = ced_check_expect(c, prior, right, CED_WANT_ENTITY_OR_SET);
	struct in_literals in;
	const struct ced_type *of;

	if (!l.ok || !r.ok)
		return ced_answer_failed(c->t_bool);
	if (literals_decide(c, left, right, &in)) {
		if (in.any_unknown)
			return ced_answer_failed(c->t_bool);
		return ced_answer_ok(ced_check_bool(c, in.any_action && in.found), NULL);
	}
	of = r.type->kind == CED_TY_SET ? r.type->elem : r.type;
	return ced_answer_ok(
		ced_schema_type_in(c->s, l.type->id, of->id) ? c->t_bool : c->t_false, NULL);
}
