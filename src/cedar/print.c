/* The printer: the grammar read backwards. */
#include "cedar/print.h"

/* How tightly an expression binds; a place for an operand names the least it takes. */
enum level { EXPR, OR, AND, RELATION, ADD, MUL, UNARY, MEMBER };

enum { UNARY_MAX = 4 };

const struct ced_layout ced_layout_default = {.line_width = 80, .indent_width = 2};

static void print_at(struct ced_out *o, const struct ced_expr *x, enum level least);

static bool is_attribute(const struct ced_name *name)
{
	return ced_is_attribute((struct ced_slice){name->text, name->length});
}

/* A path that text can write in one piece. */
static bool is_plain_path(const struct ced_expr *x)
{
	for (uint32_t i = 0; x->u.has.count > 1 && i < x->u.has.count; i++)
		if (!is_attribute(x->u.has.path[i]))
			return false;
	return true;
}

static bool is_negative(const struct ced_expr *x)
{
	return x->kind == CED_EXPR_LITERAL && x->u.literal.kind == CED_LONG &&
	       x->u.literal.u.number < 0;
}

static bool is_natural(const struct ced_expr *x)
{
	return x->kind == CED_EXPR_LITERAL && x->u.literal.kind == CED_LONG &&
	       x->u.literal.u.number >= 0;
}

static enum level level_of(const struct ced_expr *x)
{
	switch ((int)x->kind) {
	case CED_EXPR_IF: return EXPR;
	case CED_EXPR_OR: return OR;
	case CED_EXPR_AND: return AND;
	case CED_EXPR_HAS: return is_plain_path(x) ? RELATION : AND;
	case CED_EXPR_EQ:
	case CED_EXPR_NE:
	case CED_EXPR_LT:
	case CED_EXPR_LE:
	case CED_EXPR_GT:
	case CED_EXPR_GE:
	case CED_EXPR_IN:
	case CED_EXPR_LIKE:
	case CED_EXPR_IS: return RELATION;
	case CED_EXPR_ADD:
	case CED_EXPR_SUB: return ADD;
	case CED_EXPR_MUL: return MUL;
	case CED_EXPR_NOT:
	case CED_EXPR_NEG: return UNARY;
	default: return is_negative(x) ? UNARY : MEMBER;
	}
}

static void print_string(struct ced_out *o, const struct ced_name *s)
{
	ced_out_quoted(o, s->text, s->length);
}

static void print_literal(struct ced_out *o, struct ced_value v)
{
	if (v.kind == CED_BOOL)
		ced_out_text(o, v.u.boolean ? "true" : "false");
	else if (v.kind == CED_LONG)
		ced_out_number(o, v.u.number);
	else if (v.kind == CED_STRING)
		print_string(o, v.u.string);
	else
		ced_out_uid(o, v.u.uid);
}

static void print_binary(struct ced_out *o, const struct ced_expr *x)
{
	enum level level = level_of(x);
	/* Relations take sums on both sides; the others group to the left. */
	enum level left = level == RELATION ? ADD : level;
	print_at(o, x->u.op.left, left);
	ced_out_text(o, " ");
	ced_out_text(o, ced_expr_key[x->kind]);
	ced_out_text(o, " ");
	print_at(o, x->u.op.right, level == RELATION ? ADD : level + 1);
}

/* Up to four signs in a row stand without parentheses, as the parser reads them; a number would
 * melt into the sign before it. */
static void print_unary(struct ced_out *o, const struct ced_expr *x)
{
	enum ced_expr_kind kind = x->kind;
	unsigned n = 0;
	for (; x->kind == kind && n < UNARY_MAX; n++, x = x->u.op.left)
		ced_out_text(o, kind == CED_EXPR_NOT ? "!" : "-");
	bool melts = kind == CED_EXPR_NEG && is_natural(x);
	bool sign = kind == CED_EXPR_NEG && is_negative(x) && n < UNARY_MAX;
	if (melts)
		ced_out_text(o, "(");
	print_at(o, x, melts ? EXPR : sign ? UNARY : MEMBER);
	if (melts)
		ced_out_text(o, ")");
}

static void print_attr(struct ced_out *o, const struct ced_name *attr)
{
	if (is_attribute(attr)) {
		ced_out_text(o, ".");
		ced_out_name(o, attr);
	} else {
		ced_out_text(o, "[");
		print_string(o, attr);
		ced_out_text(o, "]");
	}
}

/* e has "a b" && e["a b"] has c */
static void print_long_path(struct ced_out *o, const struct ced_expr *x)
{
	for (uint32_t i = 0; i < x->u.has.count && !o->failed; i++) {
		if (i)
			ced_out_text(o, " && ");
		print_at(o, x->u.has.left, i ? MEMBER : ADD);
		for (uint32_t k = 0; k < i; k++)
			print_attr(o, x->u.has.path[k]);
		ced_out_text(o, " has ");
		print_string(o, x->u.has.path[i]);
	}
}

static void print_has(struct ced_out *o, const struct ced_expr *x)
{
	if (!is_plain_path(x)) {
		print_long_path(o, x);
		return;
	}
	print_at(o, x->u.has.left, ADD);
	ced_out_text(o, " has ");
	if (!is_attribute(x->u.has.path[0])) {
		print_string(o, x->u.has.path[0]);
		return;
	}
	for (uint32_t i = 0; i < x->u.has.count; i++) {
		if (i)
			ced_out_text(o, ".");
		ced_out_name(o, x->u.has.path[i]);
	}
}

static void print_like(struct ced_out *o, const struct ced_expr *x)
{
	const struct ced_pattern *p = x->u.like.pattern;
	print_at(o, x->u.like.left, ADD);
	ced_out_text(o, " like \"");
	for (uint32_t i = 0; i < p->count; i++) {
		if (i)
			ced_out_text(o, "*");
		ced_out_pattern_part(o, p->parts[i]->text, p->parts[i]->length);
	}
	ced_out_text(o, "\"");
}

static void print_is(struct ced_out *o, const struct ced_expr *x)
{
	print_at(o, x->u.is.left, ADD);
	ced_out_text(o, " is ");
	ced_out_name(o, x->u.is.type);
	if (!x->u.is.in)
		return;
	ced_out_text(o, " in ");
	print_at(o, x->u.is.in, ADD);
}

static void print_if(struct ced_out *o, const struct ced_expr *x)
{
	ced_out_text(o, "if ");
	print_at(o, x->u.cond.test, EXPR);
	ced_out_text(o, " then ");
	print_at(o, x->u.cond.yes, EXPR);
	ced_out_text(o, " else ");
	print_at(o, x->u.cond.no, EXPR);
}

static void print_list(struct ced_out *o, const struct ced_expr *const *items, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		if (i)
			ced_out_text(o, ", ");
		print_at(o, items[i], EXPR);
	}
}

static void print_record(struct ced_out *o, const struct ced_expr *x)
{
	ced_out_text(o, "{");
	for (uint32_t i = 0; i < x->u.record.count; i++) {
		const struct ced_entry *e = &x->u.record.entries[i];
		if (i)
			ced_out_text(o, ", ");
		if (is_attribute(e->key))
			ced_out_name(o, e->key);
		else
			print_string(o, e->key);
		ced_out_text(o, ": ");
		print_at(o, e->value, EXPR);
	}
	ced_out_text(o, "}");
}

static void print_call(struct ced_out *o, const struct ced_expr *x)
{
	const struct ced_fn_info *info = &ced_fn_info[x->u.call.fn];
	uint32_t receiver = info->method && x->u.call.count ? 1 : 0;
	if (receiver) {
		print_at(o, x->u.call.args[0], MEMBER);
		ced_out_text(o, ".");
	}
	ced_out_text(o, info->name);
	ced_out_text(o, "(");
	print_list(o, x->u.call.args + receiver, x->u.call.count - receiver);
	ced_out_text(o, ")");
}

static void print_method(struct ced_out *o, const struct ced_expr *x)
{
	print_at(o, x->u.op.left, MEMBER);
	ced_out_text(o, ".");
	ced_out_text(o, ced_expr_key[x->kind]);
	ced_out_text(o, "(");
	if (x->u.op.right)
		print_at(o, x->u.op.right, EXPR);
	ced_out_text(o, ")");
}

static void print_bare(struct ced_out *o, const struct ced_expr *x)
{
	switch ((int)x->kind) {
	case CED_EXPR_LITERAL: print_literal(o, x->u.literal); break;
	case CED_EXPR_VAR: ced_out_text(o, ced_var_name[x->u.var]); break;
	case CED_EXPR_NOT:
	case CED_EXPR_NEG: print_unary(o, x); break;
	case CED_EXPR_IS_EMPTY:
	case CED_EXPR_CONTAINS:
	case CED_EXPR_CONTAINS_ALL:
	case CED_EXPR_CONTAINS_ANY:
	case CED_EXPR_GET_TAG:
	case CED_EXPR_HAS_TAG: print_method(o, x); break;
	case CED_EXPR_GET:
		print_at(o, x->u.get.left, MEMBER);
		print_attr(o, x->u.get.attr);
		break;
	case CED_EXPR_HAS: print_has(o, x); break;
	case CED_EXPR_LIKE: print_like(o, x); break;
	case CED_EXPR_IS: print_is(o, x); break;
	case CED_EXPR_IF: print_if(o, x); break;
	case CED_EXPR_SET:
		ced_out_text(o, "[");
		print_list(o, x->u.list.items, x->u.list.count);
		ced_out_text(o, "]");
		break;
	case CED_EXPR_RECORD: print_record(o, x); break;
	case CED_EXPR_CALL: print_call(o, x); break;
	default: print_binary(o, x); break;
	}
}

static void print_at(struct ced_out *o, const struct ced_expr *x, enum level least)
{
	bool parentheses = level_of(x) < least;
	if (o->failed)
		return;
	if (parentheses)
		ced_out_text(o, "(");
	print_bare(o, x);
	if (parentheses)
		ced_out_text(o, ")");
}

void ced_print_expr(struct ced_out *o, const struct ced_expr *x)
{
	print_at(o, x, EXPR);
}

/* -- Policies ------------------------------------------------------------------------------- */

static void print_scope_entities(struct ced_out *o, enum ced_var var, const struct ced_scope *s,
	const struct ced_uid *filled)
{
	if (s->slot && filled) {
		ced_out_uid(o, filled);
	} else if (s->slot) {
		ced_out_text(o, "?");
		ced_out_text(o, ced_var_name[var]);
	} else if (s->list) {
		ced_out_text(o, "[");
		for (uint32_t i = 0; i < s->count; i++) {
			if (i)
				ced_out_text(o, ", ");
			ced_out_uid(o, s->uids[i]);
		}
		ced_out_text(o, "]");
	} else {
		ced_out_uid(o, s->uids[0]);
	}
}

static void print_scope(struct ced_out *o, enum ced_var var, const struct ced_scope *s,
	const struct ced_uid *filled)
{
	ced_out_text(o, ced_var_name[var]);
	if (s->op == CED_SCOPE_IS || s->op == CED_SCOPE_IS_IN) {
		ced_out_text(o, " is ");
		ced_out_name(o, s->type);
	}
	if (s->op == CED_SCOPE_ALL || s->op == CED_SCOPE_IS)
		return;
	ced_out_text(o, s->op == CED_SCOPE_EQ ? " == " : " in ");
	print_scope_entities(o, var, s, filled);
}

/* `text` and, in a broken layout, a new line with its indentation. */
static void separate(struct ced_out *o, const char *text, const struct ced_layout *broken)
{
	ced_out_text(o, text);
	if (!broken)
		return;
	ced_out_text(o, "\n");
	for (uint32_t i = 0; i < broken->indent_width; i++)
		ced_out_text(o, " ");
}

static void print_scopes(struct ced_out *o, const struct ced_policy *policy,
	const struct ced_uid *principal, const struct ced_uid *resource,
	const struct ced_layout *broken)
{
	ced_out_text(o, "(");
	separate(o, "", broken);
	print_scope(o, CED_PRINCIPAL, &policy->principal, principal);
	separate(o, broken ? "," : ", ", broken);
	print_scope(o, CED_ACTION, &policy->action, NULL);
	separate(o, broken ? "," : ", ", broken);
	print_scope(o, CED_RESOURCE, &policy->resource, resource);
	ced_out_text(o, broken ? "\n)" : ")");
}

/* On one line when it fits. */
static void print_head(struct ced_out *o, const struct ced_policy *policy,
	const struct ced_uid *principal, const struct ced_uid *resource,
	const struct ced_layout *layout)
{
	size_t start = o->length;
	ced_out_text(o, policy->effect == CEDAR_PERMIT ? "permit " : "forbid ");
	size_t after_effect = o->length;
	print_scopes(o, policy, principal, resource, NULL);
	if (o->failed || o->length - start <= layout->line_width)
		return;
	o->length = after_effect;
	print_scopes(o, policy, principal, resource, layout);
}

/* Every operand of && and || that needs no parentheses on a line of its own. */
static void print_operands(struct ced_out *o, const struct ced_expr *x, enum level least,
	const struct ced_layout *layout)
{
	enum level level = level_of(x);
	if ((x->kind != CED_EXPR_AND && x->kind != CED_EXPR_OR) || level < least) {
		print_at(o, x, least);
		return;
	}
	print_operands(o, x->u.op.left, level, layout);
	separate(o, x->kind == CED_EXPR_AND ? " &&" : " ||", layout);
	print_operands(o, x->u.op.right, level + 1, layout);
}

static void print_condition(
	struct ced_out *o, const struct ced_condition *condition, const struct ced_layout *layout)
{
	ced_out_text(o, "\n");
	size_t start = o->length;
	ced_out_text(o, condition->unless ? "unless {" : "when {");
	size_t after_brace = o->length;
	ced_out_text(o, " ");
	ced_print_expr(o, condition->body);
	ced_out_text(o, " }");
	if (o->failed || o->length - start <= layout->line_width)
		return;
	o->length = after_brace;
	separate(o, "", layout);
	print_operands(o, condition->body, EXPR, layout);
	ced_out_text(o, "\n}");
}

static void print_annotations(struct ced_out *o, const struct ced_policy *policy)
{
	for (uint32_t i = 0; i < policy->annotation_count; i++) {
		const struct ced_annotation *a = &policy->annotations[i];
		ced_out_text(o, "@");
		ced_out_name(o, a->key);
		if (a->value) {
			ced_out_text(o, "(");
			print_string(o, a->value);
			ced_out_text(o, ")");
		}
		ced_out_text(o, "\n");
	}
}

static void print_rule(struct ced_out *o, const struct ced_policy *policy,
	const struct ced_uid *principal, const struct ced_uid *resource,
	const struct ced_layout *layout)
{
	print_annotations(o, policy);
	print_head(o, policy, principal, resource, layout);
	for (uint32_t i = 0; i < policy->condition_count; i++)
		print_condition(o, &policy->conditions[i], layout);
	ced_out_text(o, ";\n");
}

void ced_print_rule(struct ced_out *o, const struct ced_policy *policy,
	const struct ced_uid *principal, const struct ced_uid *resource)
{
	print_rule(o, policy, principal, resource, &ced_layout_default);
}

void ced_print_policy(
	struct ced_out *o, const struct ced_policy *policy, const struct ced_layout *layout)
{
	print_rule(o, policy, NULL, NULL, layout);
}
