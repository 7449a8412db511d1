/* Strict validation of policies: what is checked once, the scope, the request environments. See
 * validate.h. */
#include "cedar/validate.h"

#include "cedar/level.h"
#include "cedar/lookalike.h"
#include "cedar/slice.h"
#include "cedar/typecheck.h"

struct validation {
	const struct cedar_schema *s;
	const struct ced_policy *policy;
	const struct ced_validate_options *options;
	struct cedar_report *report;
	struct ced_checker check;
	bool always_false; /* in every environment so far */
	/* The actions of the scope, CED_SCHEMA_NONE for one that is not declared. */
	uint32_t *actions;
	bool actions_plain; /* all are declared, all of one type, there is at least one */
};

/* ---- what exists ---- */

static void check_type_name(struct validation *v, struct ced_slice type, struct ced_pos pos)
{
	if (!ced_schema_is_action_name(type) &&
		ced_schema_find_etype(v->s, type) == CED_SCHEMA_NONE)
		ced_report_error(v->report, pos, "the schema has no entity type `%.*s`",
			ced_shown(type), type.p);
}

static void check_uid(struct validation *v, const struct ced_uid *uid, struct ced_pos pos)
{
	struct ced_slice type = ced_name_slice(uid->type), id = ced_name_slice(uid->id);
	uint32_t etype = ced_schema_find_etype(v->s, type);

	check_type_name(v, type, pos);
	if (ced_schema_is_action_name(type)) {
		if (ced_schema_find_uid(v->s, type, id) == CED_SCHEMA_NONE)
			ced_report_error(v->report, pos, "the schema has no action %.*s::\"%.*s\"",
				ced_shown(type), type.p, ced_shown(id), id.p);
	} else if (etype != CED_SCHEMA_NONE && !ced_schema_id_ok(&v->s->etypes[etype], id)) {
		ced_report_error(v->report, pos,
			"\"%.*s\" is not an id of the enumerated type `%.*s`", ced_shown(id), id.p,
			ced_shown(type), type.p);
	}
}

static void check_names(struct validation *v, const struct ced_expr *e);

static void check_list(struct validation *v, const struct ced_expr *const *items, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		check_names(v, items[i]);
}

/* Every name in an expression, in dead code too. As deep as the parser lets expressions nest. */
static void check_names(struct validation *v, const struct ced_expr *e)
{
	switch ((int)e->kind) {
	case CED_EXPR_LITERAL:
		if (e->u.literal.kind == CED_ENTITY)
			check_uid(v, e->u.literal.u.uid, e->pos);
		break;
	case CED_EXPR_VAR: break;
	case CED_EXPR_GET: check_names(v, e->u.get.left); break;
	case CED_EXPR_HAS: check_names(v, e->u.has.left); break;
	case CED_EXPR_LIKE: check_names(v, e->u.like.left); break;
	case CED_EXPR_IS:
		check_type_name(v, ced_name_slice(e->u.is.type), e->pos);
		check_names(v, e->u.is.left);
		if (e->u.is.in)
			check_names(v, e->u.is.in);
		break;
	case CED_EXPR_IF:
		check_names(v, e->u.cond.test);
		check_names(v, e->u.cond.yes);
		check_names(v, e->u.cond.no);
		break;
	case CED_EXPR_SET: check_list(v, e->u.list.items, e->u.list.count); break;
	case CED_EXPR_CALL: check_list(v, e->u.call.args, e->u.call.count); break;
	case CED_EXPR_RECORD:
		for (uint32_t i = 0; i < e->u.record.count; i++)
			check_names(v, e->u.record.entries[i].value);
		break;
	default:
		check_names(v, e->u.op.left);
		if (ced_expr_is_binary(e->kind))
			check_names(v, e->u.op.right);
		break;
	}
}

static bool scope_has_type(const struct ced_scope *scope)
{
	return scope->op == CED_SCOPE_IS || scope->op == CED_SCOPE_IS_IN;
}

static void check_scope_names(struct validation *v, const struct ced_scope *scope)
{
	for (uint32_t i = 0; i < scope->count; i++)
		check_uid(v, scope->uids[i], scope->pos);
	if (scope_has_type(scope))
		check_type_name(v, ced_name_slice(scope->type), scope->pos);
}

static void check_all_names(struct validation *v)
{
	check_scope_names(v, &v->policy->principal);
	check_scope_names(v, &v->policy->action);
	check_scope_names(v, &v->policy->resource);
	for (uint32_t i = 0; i < v->policy->condition_count; i++)
		check_names(v, v->policy->conditions[i].body);
}

/* ---- which actions can apply ---- */

/* Can an entity of type `etype` satisfy the scope, going by types alone? `uid` is the entity of the
 * scope, or NULL where there is none or a slot. */
static bool type_fits(const struct cedar_schema *s, const struct ced_scope *scope,
	const struct ced_uid *uid, uint32_t etype)
{
	uint32_t of;

	if (scope_has_type(scope) &&
		!ced_slice_eq(s->etypes[etype].name, ced_name_slice(scope->type)))
		return false;
	if (!uid)
		return true;
	of = ced_schema_find_etype(s, ced_name_slice(uid->type));
	if (of == CED_SCHEMA_NONE)
		return false;
	return scope->op == CED_SCOPE_EQ ? etype == of : ced_schema_type_in(s, etype, of);
}

static bool any_fits(const struct cedar_schema *s, const struct ced_scope *scope,
	const struct ced_uid *uid, const uint32_t *etypes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (type_fits(s, scope, uid, etypes[i]))
			return true;
	return false;
}

static uint32_t find_action(const struct cedar_schema *s, const struct ced_uid *uid)
{
	return ced_schema_find_uid(s, ced_name_slice(uid->type), ced_name_slice(uid->id));
}

/* An `in` list with an action that is not declared fits nothing. */
static bool action_fits(
	const struct cedar_schema *s, const struct ced_scope *scope, uint32_t action)
{
	bool in = false;

	if (scope->op == CED_SCOPE_ALL)
		return true;
	for (uint32_t i = 0; i < scope->count; i++) {
		uint32_t of = find_action(s, scope->uids[i]);

		if (of == CED_SCHEMA_NONE)
			return false;
		in |= scope->op == CED_SCOPE_EQ ? action == of
						: ced_schema_action_in(s, action, of);
	}
	return in;
}

/* The entities are those of the scope, or of a link. */
static bool can_apply(const struct cedar_schema *s, const struct ced_policy *policy,
	const struct ced_uid *principal, const struct ced_uid *resource)
{
	for (uint32_t i = 0; i < s->n_actions; i++) {
		const struct ced_action *a = &s->actions[i];

		if (action_fits(s, &policy->action, i) &&
			any_fits(
				s, &policy->principal, principal, a->principals, a->n_principals) &&
			any_fits(s, &policy->resource, resource, a->resources, a->n_resources))
			return true;
	}
	return false;
}

static void check_application(const struct cedar_schema *s, const struct ced_policy *policy,
	const struct ced_uid *principal, const struct ced_uid *resource,
	const struct ced_validate_options *options, struct cedar_report *report)
{
	static const char text[] = "the scope allows no action of the schema";

	if (can_apply(s, policy, principal, resource))
		return;
	if (options->no_action_is_error)
		ced_report_error(report, policy->pos, "%s", text);
	else
		ced_report_warning(report, policy->pos, "%s", text);
}

static const struct ced_uid *scope_uid(const struct ced_scope *scope)
{
	return scope->count > 0 ? scope->uids[0] : NULL;
}

/* ---- the scope in an environment ---- */

/* Whether the scope holds in an environment. NEVER ends the policy there without an error. */
enum scope_result { NEVER, MAYBE, FAILED };

/* An `in` looks up its variable, which level 0 does not allow. */
static void check_scope_level(struct validation *v, const struct ced_scope *scope)
{
	if (v->options->level == 0)
		ced_report_error(v->report, scope->pos,
			"an `in` in the scope needs level 1, but the level is 0");
}

static enum scope_result check_entity_scope(
	struct validation *v, const struct ced_scope *scope, uint32_t etype, uint32_t slot)
{
	uint32_t of = slot;

	if (scope->op == CED_SCOPE_ALL)
		return MAYBE;
	if (scope_has_type(scope) &&
		!ced_slice_eq(v->s->etypes[etype].name, ced_name_slice(scope->type)))
		return NEVER;
	if (scope->op == CED_SCOPE_IS)
		return MAYBE;
	if (!scope->slot)
		of = ced_check_literal_etype(&v->check, scope->uids[0]);
	if (of == CED_SCHEMA_NONE)
		return FAILED;
	if (scope->op == CED_SCOPE_EQ)
		return etype == of ? MAYBE : NEVER;
	check_scope_level(v, scope);
	return ced_schema_type_in(v->s, etype, of) ? MAYBE : NEVER;
}

/* `action in [..]` is a set literal, which must have elements, all of one type. */
static enum scope_result check_action_list(struct validation *v, const struct ced_scope *scope)
{
	bool in = false;

	if (scope->count == 0) {
		ced_report_error(v->report, scope->pos, "`action in []` can never hold");
		return FAILED;
	}
	for (uint32_t i = 0; i < scope->count; i++) {
		struct ced_slice first = ced_name_slice(scope->uids[0]->type);
		struct ced_slice type = ced_name_slice(scope->uids[i]->type);

		if (v->actions[i] == CED_SCHEMA_NONE)
			return FAILED;
		if (!ced_slice_eq(type, first)) {
			ced_report_error(v->report, scope->pos,
				"the actions of the scope have no type in common: %.*s and %.*s",
				ced_shown(first), first.p, ced_shown(type), type.p);
			return FAILED;
		}
		in |= ced_schema_action_in(v->s, v->check.env.action, v->actions[i]);
	}
	check_scope_level(v, scope);
	return in ? MAYBE : NEVER;
}

static enum scope_result check_action_scope(struct validation *v)
{
	const struct ced_scope *scope = &v->policy->action;

	if (scope->op == CED_SCOPE_ALL)
		return MAYBE;
	if (scope->op == CED_SCOPE_IN)
		return check_action_list(v, scope);
	return v->actions[0] == v->check.env.action ? MAYBE : NEVER;
}

/* Find the actions of the scope once for all environments. */
static int find_scope_actions(struct validation *v)
{
	const struct ced_scope *scope = &v->policy->action;

	v->actions = ced_new_array(v->check.arena, scope->count + 1, uint32_t);
	if (!v->actions)
		return -1;
	v->actions_plain = scope->count > 0;
	for (uint32_t i = 0; i < scope->count; i++) {
		v->actions[i] = find_action(v->s, scope->uids[i]);
		if (v->actions[i] == CED_SCHEMA_NONE ||
			!ced_name_eq(scope->uids[i]->type, scope->uids[0]->type))
			v->actions_plain = false;
	}
	return 0;
}

/* Is the scope False for an action, with nothing to report on the way? Then its environments need
 * no look. With thousands of actions this is what makes a policy about one of them cheap. */
static bool skips_action(const struct validation *v, uint32_t action)
{
	const struct ced_scope *scope = &v->policy->action;

	if (scope->op == CED_SCOPE_ALL || !v->actions_plain || v->options->level == 0)
		return false;
	if (scope->op == CED_SCOPE_EQ)
		return v->actions[0] != action;
	for (uint32_t i = 0; i < scope->count; i++)
		if (ced_schema_action_in(v->s, action, v->actions[i]))
			return false;
	return true;
}

/* What failed may still hold, so that the rest is looked at. */
static enum scope_result check_scope(struct validation *v)
{
	const struct ced_env *env = &v->check.env;
	enum scope_result p, a, r;

	p = check_entity_scope(v, &v->policy->principal, env->principal, env->principal_slot);
	if (p == NEVER)
		return NEVER;
	a = check_action_scope(v);
	if (a == NEVER)
		return NEVER;
	r = check_entity_scope(v, &v->policy->resource, env->resource, env->resource_slot);
	if (r == NEVER)
		return NEVER;
	return p == MAYBE && a == MAYBE && r == MAYBE ? MAYBE : FAILED;
}

/* ---- an environment ---- */

/* `unless e` is `when !(e)`: no capabilities come out of it. */
static struct ced_answer check_cond(
	struct validation *v, const struct ced_caps *prior, const struct ced_condition *cond)
{
	struct ced_checker *c = &v->check;
	struct ced_answer a = ced_check_expect(c, prior, cond->body, CED_WANT_BOOL);

	if (!cond->unless)
		return a;
	if (!a.type)
		return ced_answer_failed(c->t_bool);
	if (a.type != c->t_bool)
		a.type = ced_check_bool(c, a.type == c->t_false);
	a.caps = NULL;
	return a;
}

/* The conditions are one conjunction: what one guards, the next may use. */
static struct ced_answer check_conds(struct validation *v)
{
	struct ced_checker *c = &v->check;
	struct ced_answer all = ced_answer_ok(c->t_true, NULL);

	for (uint32_t i = 0; i < v->policy->condition_count; i++) {
		struct ced_answer a = check_cond(v, all.caps, &v->policy->conditions[i]);

		all.ok &= a.ok;
		all.caps = ced_caps_union(c->arena, all.caps, a.caps);
		if (a.type == c->t_false) {
			/* After a mistake nothing is known of the whole, False or not. */
			if (all.type)
				all.type = c->t_false;
			break;
		}
		if (a.type != c->t_true)
			all.type = a.type && all.type ? c->t_bool : NULL;
	}
	return all;
}

static void check_env(struct validation *v)
{
	enum scope_result scope = check_scope(v);
	struct ced_answer a;

	if (scope == NEVER)
		return;
	if (v->check.memo)
		ced_check_forget_types(&v->check);
	a = check_conds(v);
	a.ok &= scope == MAYBE;
	if (a.type != v->check.t_false)
		v->always_false = false;
	if (v->options->level >= 0 && (a.ok || a.type == v->check.t_false))
		ced_level_check(&v->check, v->policy, (unsigned)v->options->level);
}

/* The types that the entity in a slot can have when the variable has type `var`; `next` walks
 * through them from CED_SCHEMA_NONE on. Without a slot there is one step, with no type. */
static bool next_slot(const struct cedar_schema *s, const struct ced_scope *scope, uint32_t var,
	uint32_t *slot, bool *started)
{
	uint32_t from = *started ? *slot + 1 : 0;

	if (!scope->slot || scope->op == CED_SCOPE_EQ) {
		*slot = scope->slot ? var : CED_SCHEMA_NONE;
		return !*started && (*started = true);
	}
	*started = true;
	for (uint32_t i = from; i < s->n_declared; i++)
		if (ced_schema_type_in(s, var, i)) {
			*slot = i;
			return true;
		}
	return false;
}

static void check_slots(struct validation *v)
{
	struct ced_env *env = &v->check.env;
	bool p_started = false;

	while (next_slot(v->s, &v->policy->principal, env->principal, &env->principal_slot,
		       &p_started) &&
		!ced_checker_stopped(&v->check)) {
		bool r_started = false;

		while (next_slot(v->s, &v->policy->resource, env->resource, &env->resource_slot,
			       &r_started) &&
			!ced_checker_stopped(&v->check)) {
			v->check.steps++;
			check_env(v);
		}
	}
}

static void check_action_envs(struct validation *v, uint32_t action)
{
	const struct ced_action *a = &v->s->actions[action];

	for (size_t p = 0; p < a->n_principals; p++)
		for (size_t r = 0; r < a->n_resources; r++) {
			if (ced_checker_stopped(&v->check))
				return;
			v->check.env = (struct ced_env){.action = action,
				.principal = a->principals[p],
				.resource = a->resources[r]};
			check_slots(v);
		}
}

static int stopped(struct validation *v)
{
	if (v->check.out_of_memory || v->report->out_of_memory)
		ced_report_error(v->report, v->policy->pos, "out of memory");
	else
		ced_report_error(v->report, v->policy->pos, "checking takes more than %d steps",
			CEDAR_CHECK_STEPS_MAX);
	return -1;
}

int ced_validate_policy(const struct cedar_schema *s, const struct ced_policy *policy,
	const struct ced_validate_options *options, struct ced_arena *scratch,
	struct cedar_report *report)
{
	struct validation v = {.s = s,
		.policy = policy,
		.options = options,
		.report = report,
		.always_false = true};

	ced_report_about(report, policy->id);
	if (ced_checker_init(&v.check, s, scratch, report) < 0 || find_scope_actions(&v) < 0 ||
		(options->level >= 0 && ced_check_remember_types(&v.check) < 0)) {
		v.check.out_of_memory = true;
		return stopped(&v);
	}
	check_all_names(&v);
	ced_lookalike_check(policy, report);
	check_application(s, policy, scope_uid(&policy->principal), scope_uid(&policy->resource),
		options, report);
	for (uint32_t i = 0; i < s->n_actions; i++)
		if (!skips_action(&v, i))
			check_action_envs(&v, i);
	if (ced_checker_stopped(&v.check) || report->out_of_memory)
		return stopped(&v);
	if (v.always_false)
		ced_report_warning(report, policy->pos,
			"this policy can never apply: it is false for every request that the "
			"schema allows");
	return 0;
}

/* ---- links ---- */

static void check_slot_type(const struct cedar_schema *s, const struct ced_policy *template_,
	const struct ced_uid *uid, struct cedar_report *report)
{
	struct ced_slice type;

	if (!uid)
		return;
	type = ced_name_slice(uid->type);
	if (!ced_schema_is_action_name(type) && ced_schema_find_etype(s, type) == CED_SCHEMA_NONE)
		ced_report_error(report, template_->pos, "the schema has no entity type `%.*s`",
			ced_shown(type), type.p);
}

int ced_validate_link(const struct cedar_schema *s, const struct ced_rule *link,
	const struct ced_validate_options *options, struct cedar_report *report)
{
	const struct ced_policy *t = link->policy;
	const struct ced_uid *p = t->principal.slot ? link->principal : scope_uid(&t->principal);
	const struct ced_uid *r = t->resource.slot ? link->resource : scope_uid(&t->resource);

	ced_report_about(report, link->id);
	check_slot_type(s, t, link->principal, report);
	check_slot_type(s, t, link->resource, report);
	check_application(s, t, p, r, options, report);
	return report->out_of_memory ? -1 : 0;
}
