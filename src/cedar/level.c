/* Level validation. See level.h. */
#include "cedar/level.h"

#include "cedar/slice.h"

/* The names by which a record is read, innermost last: `{a: x}.a` needs what x needs, not what the
 * other members do. They lie on the stack of the recursion. */
struct path {
	const struct ced_name *name;
	const struct path *outer;
};

struct leveler {
	struct ced_checker *c;
	unsigned level;
};

static void walk(struct leveler *v, const struct ced_expr *e);

static bool is_reached(const struct leveler *v, const struct ced_expr *e)
{
	return ced_check_type_of(v->c, e) != NULL;
}

/* An entity literal is not reached from the request, unless it is the action itself. */
static void check_literal(struct leveler *v, const struct ced_expr *e)
{
	if (e->u.literal.kind != CED_ENTITY ||
		ced_check_literal_action(v->c, e->u.literal.u.uid) == v->c->env.action)
		return;
	ced_report_error(v->c->report, e->pos,
		"an entity that is written here may not be looked into at any level");
}

static unsigned level_of(struct leveler *v, const struct ced_expr *e, const struct path *path);

static unsigned level_of_record(
	struct leveler *v, const struct ced_expr *e, const struct path *path)
{
	unsigned level = 0;

	for (uint32_t i = 0; i < e->u.record.count; i++)
		if (path && ced_name_eq(e->u.record.entries[i].key, path->name))
			level = level_of(v, e->u.record.entries[i].value, path->outer);
		else
			walk(v, e->u.record.entries[i].value);
	return level;
}

static unsigned level_of_branches(
	struct leveler *v, const struct ced_expr *e, const struct path *path)
{
	unsigned then = 0, otherwise = 0;

	walk(v, e->u.cond.test);
	if (is_reached(v, e->u.cond.yes))
		then = level_of(v, e->u.cond.yes, path);
	if (is_reached(v, e->u.cond.no))
		otherwise = level_of(v, e->u.cond.no, path);
	return then > otherwise ? then : otherwise;
}

/* How many look-ups it takes to know the entity or record that `e` is. */
static unsigned level_of(struct leveler *v, const struct ced_expr *e, const struct path *path)
{
	const struct ced_type *base;

	v->c->steps++;
	if (ced_checker_stopped(v->c))
		return 0;
	switch ((int)e->kind) {
	case CED_EXPR_LITERAL: check_literal(v, e); return 0;
	case CED_EXPR_IF: return level_of_branches(v, e, path);
	case CED_EXPR_RECORD: return level_of_record(v, e, path);
	case CED_EXPR_GET_TAG: walk(v, e->u.op.right); return level_of(v, e->u.op.left, NULL) + 1;
	case CED_EXPR_GET:
		base = ced_check_type_of(v->c, e->u.get.left);
		if (base && base->kind == CED_TY_RECORD)
			return level_of(v, e->u.get.left,
				&(struct path){.name = e->u.get.attr, .outer = path});
		return level_of(v, e->u.get.left, NULL) + 1;
	default: return 0;
	}
}

/* `at` looks into what `more` look-ups lead to from `e`, or from what `path` reads in it. */
static void look_into_path(struct leveler *v, const struct ced_expr *e, const struct path *path,
	unsigned more, const struct ced_expr *at)
{
	unsigned needed = level_of(v, e, path) + more;

	if (needed >= v->level)
		ced_report_error(v->c->report, at->pos, "this needs level %u, but the level is %u",
			needed + 1, v->level);
}

static void look_into(struct leveler *v, const struct ced_expr *e, const struct ced_expr *at)
{
	look_into_path(v, e, NULL, 0, at);
}

/* `base.name` or the first step of `base has name`. */
static void walk_base(struct leveler *v, const struct ced_expr *base, const struct ced_expr *at)
{
	const struct ced_type *type = ced_check_type_of(v->c, base);

	if (type && type->kind == CED_TY_ENTITY)
		look_into(v, base, at);
	else
		walk(v, base);
}

/* The type of `base.name`, or NULL. */
static const struct ced_type *attr_type(
	const struct leveler *v, const struct ced_type *base, const struct ced_name *name)
{
	const struct ced_attr *attr;

	attr = base->kind == CED_TY_RECORD
		       ? ced_type_attr(base, ced_name_slice(name))
		       : ced_schema_attr(v->c->s, base->id, ced_name_slice(name));
	return attr ? attr->type : NULL;
}

/* `e has a.b.c` looks into `e`, `e.a` and `e.a.b`. Names that are read from records before the
 * first entity are a path into `e`; their number is bounded as the depth of types is. */
static void walk_has(struct leveler *v, const struct ced_expr *e)
{
	const struct ced_expr *left = e->u.has.left;
	const struct ced_type *type = ced_check_type_of(v->c, left);
	struct path *path = ced_new_array(v->c->arena, CED_TY_DEPTH_MAX + 1, struct path);
	unsigned n_path = 0, looks = 0;

	walk_base(v, left, e);
	if (!path)
		v->c->out_of_memory = true;
	for (uint32_t i = 0; type && i + 1 < e->u.has.count && !ced_checker_stopped(v->c); i++) {
		if (type->kind == CED_TY_ENTITY)
			looks++;
		else if (looks == 0 && n_path <= CED_TY_DEPTH_MAX)
			path[n_path++].name = e->u.has.path[i];
		type = attr_type(v, type, e->u.has.path[i]);
		if (!type || type->kind != CED_TY_ENTITY)
			continue;
		for (unsigned k = 0; k < n_path; k++)
			path[k].outer = k + 1 < n_path ? &path[k + 1] : NULL;
		look_into_path(v, left, n_path ? path : NULL, looks, e);
	}
}

static void walk_is(struct leveler *v, const struct ced_expr *e)
{
	if (!e->u.is.in || !is_reached(v, e->u.is.in)) {
		walk(v, e->u.is.left);
		return;
	}
	look_into(v, e->u.is.left, e);
	walk(v, e->u.is.in);
}

static void walk_list(struct leveler *v, const struct ced_expr *const *items, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		walk(v, items[i]);
}

static void walk_record(struct leveler *v, const struct ced_expr *e)
{
	for (uint32_t i = 0; i < e->u.record.count; i++)
		walk(v, e->u.record.entries[i].value);
}

static void walk_operator(struct leveler *v, const struct ced_expr *e)
{
	if (e->kind == CED_EXPR_IN || e->kind == CED_EXPR_GET_TAG || e->kind == CED_EXPR_HAS_TAG)
		look_into(v, e->u.op.left, e);
	else
		walk(v, e->u.op.left);
	if (ced_expr_is_binary(e->kind))
		walk(v, e->u.op.right);
}

static void walk(struct leveler *v, const struct ced_expr *e)
{
	v->c->steps++;
	if (ced_checker_stopped(v->c) || !is_reached(v, e))
		return;
	switch ((int)e->kind) {
	case CED_EXPR_LITERAL:
	case CED_EXPR_VAR: break;
	case CED_EXPR_GET: walk_base(v, e->u.get.left, e); break;
	case CED_EXPR_HAS: walk_has(v, e); break;
	case CED_EXPR_LIKE: walk(v, e->u.like.left); break;
	case CED_EXPR_IS: walk_is(v, e); break;
	case CED_EXPR_IF:
		walk(v, e->u.cond.test);
		walk(v, e->u.cond.yes);
		walk(v, e->u.cond.no);
		break;
	case CED_EXPR_SET: walk_list(v, e->u.list.items, e->u.list.count); break;
	case CED_EXPR_CALL: walk_list(v, e->u.call.args, e->u.call.count); break;
	case CED_EXPR_RECORD: walk_record(v, e); break;
	default: walk_operator(v, e); break;
	}
}

void ced_level_check(struct ced_checker *c, const struct ced_policy *policy, unsigned level)
{
	struct leveler v = {.c = c, .level = level};

	for (uint32_t i = 0; i < policy->condition_count; i++)
		walk(&v, policy->conditions[i].body);
}
