/* Trees as JSON. */
#include "cedar/est.h"

static void text(struct ced_out *o, const char *s)
{
	ced_out_text(o, s);
}

static void string(struct ced_out *o, const struct ced_name *s)
{
	ced_out_json_string(o, s->text, s->length);
}

/* "key": */
static void key(struct ced_out *o, const char *k)
{
	ced_out_json_string(o, k, strlen(k));
	text(o, ":");
}

void ced_uid_to_json(struct ced_out *o, const struct ced_uid *uid)
{
	text(o, "{\"type\":");
	string(o, uid->type);
	text(o, ",\"id\":");
	string(o, uid->id);
	text(o, "}");
}

static void write_expr(struct ced_out *o, const struct ced_expr *x);

static void write_literal(struct ced_out *o, struct ced_value v)
{
	if (v.kind == CED_BOOL) {
		text(o, v.u.boolean ? "true" : "false");
	} else if (v.kind == CED_LONG) {
		ced_out_number(o, v.u.number);
	} else if (v.kind == CED_STRING) {
		string(o, v.u.string);
	} else {
		text(o, "{\"__entity\":");
		ced_uid_to_json(o, v.u.uid);
		text(o, "}");
	}
}

static void write_member(struct ced_out *o, const char *before, const struct ced_expr *x)
{
	text(o, before);
	write_expr(o, x);
}

static void write_list(struct ced_out *o, const struct ced_expr *const *items, uint32_t n)
{
	text(o, "[");
	for (uint32_t i = 0; i < n; i++)
		write_member(o, i ? "," : "", items[i]);
	text(o, "]");
}

static void write_record(struct ced_out *o, const struct ced_expr *x)
{
	text(o, "{");
	for (uint32_t i = 0; i < x->u.record.count; i++) {
		if (i)
			text(o, ",");
		string(o, x->u.record.entries[i].key);
		write_member(o, ":", x->u.record.entries[i].value);
	}
	text(o, "}");
}

static void write_has(struct ced_out *o, const struct ced_expr *x)
{
	write_member(o, "{\"left\":", x->u.has.left);
	text(o, ",\"attr\":");
	if (x->u.has.count > 1)
		text(o, "[");
	for (uint32_t i = 0; i < x->u.has.count; i++) {
		if (i)
			text(o, ",");
		string(o, x->u.has.path[i]);
	}
	text(o, x->u.has.count > 1 ? "]}" : "}");
}

static void write_like(struct ced_out *o, const struct ced_expr *x)
{
	const struct ced_pattern *p = x->u.like.pattern;
	bool first = true;
	write_member(o, "{\"left\":", x->u.like.left);
	text(o, ",\"pattern\":[");
	for (uint32_t i = 0; i < p->count; i++) {
		if (i) {
			text(o, first ? "\"Wildcard\"" : ",\"Wildcard\"");
			first = false;
		}
		if (!p->parts[i]->length)
			continue;
		text(o, first ? "{\"Literal\":" : ",{\"Literal\":");
		string(o, p->parts[i]);
		text(o, "}");
		first = false;
	}
	text(o, "]}");
}

static void write_is(struct ced_out *o, const struct ced_expr *x)
{
	write_member(o, "{\"left\":", x->u.is.left);
	text(o, ",\"entity_type\":");
	string(o, x->u.is.type);
	if (x->u.is.in)
		write_member(o, ",\"in\":", x->u.is.in);
	text(o, "}");
}

static void write_if(struct ced_out *o, const struct ced_expr *x)
{
	write_member(o, "{\"if\":", x->u.cond.test);
	write_member(o, ",\"then\":", x->u.cond.yes);
	write_member(o, ",\"else\":", x->u.cond.no);
	text(o, "}");
}

static void write_operator(struct ced_out *o, const struct ced_expr *x)
{
	write_member(o, ced_expr_is_unary(x->kind) ? "{\"arg\":" : "{\"left\":", x->u.op.left);
	if (x->u.op.right)
		write_member(o, ",\"right\":", x->u.op.right);
	text(o, "}");
}

static void write_body(struct ced_out *o, const struct ced_expr *x)
{
	switch ((int)x->kind) {
	case CED_EXPR_LITERAL: write_literal(o, x->u.literal); break;
	case CED_EXPR_VAR:
		ced_out_json_string(o, ced_var_name[x->u.var], strlen(ced_var_name[x->u.var]));
		break;
	case CED_EXPR_GET:
		write_member(o, "{\"left\":", x->u.get.left);
		text(o, ",\"attr\":");
		string(o, x->u.get.attr);
		text(o, "}");
		break;
	case CED_EXPR_HAS: write_has(o, x); break;
	case CED_EXPR_LIKE: write_like(o, x); break;
	case CED_EXPR_IS: write_is(o, x); break;
	case CED_EXPR_IF: write_if(o, x); break;
	case CED_EXPR_SET: write_list(o, x->u.list.items, x->u.list.count); break;
	case CED_EXPR_RECORD: write_record(o, x); break;
	case CED_EXPR_CALL: write_list(o, x->u.call.args, x->u.call.count); break;
	default: write_operator(o, x); break;
	}
}

static void write_expr(struct ced_out *o, const struct ced_expr *x)
{
	if (o->failed)
		return;
	text(o, "{");
	key(o, x->kind == CED_EXPR_CALL ? ced_fn_info[x->u.call.fn].name : ced_expr_key[x->kind]);
	write_body(o, x);
	text(o, "}");
}

/* -- Policies ------------------------------------------------------------------------------- */

/* "entity": E, "entities": [...], or "slot": "?x", without what surrounds them. */
static void write_scope_entities(struct ced_out *o, enum ced_var var, const struct ced_scope *s)
{
	if (s->slot) {
		text(o, "\"slot\":\"?");
		text(o, ced_var_name[var]);
		text(o, "\"");
	} else if (s->list) {
		text(o, "\"entities\":[");
		for (uint32_t i = 0; i < s->count; i++) {
			text(o, i ? "," : "");
			ced_uid_to_json(o, s->uids[i]);
		}
		text(o, "]");
	} else {
		text(o, "\"entity\":");
		ced_uid_to_json(o, s->uids[0]);
	}
}

static void write_scope(struct ced_out *o, enum ced_var var, const struct ced_scope *s)
{
	static const char *const op[] = {"All", "==", "in", "is", "is"}; /* ORDER SCOPE */
	bool is = s->op == CED_SCOPE_IS || s->op == CED_SCOPE_IS_IN;
	text(o, "\"");
	text(o, ced_var_name[var]);
	text(o, "\":{\"op\":\"");
	text(o, op[s->op]);
	text(o, "\"");
	if (is) {
		text(o, ",\"entity_type\":");
		string(o, s->type);
	}
	if (s->op == CED_SCOPE_IS_IN)
		text(o, ",\"in\":{");
	else if (s->op == CED_SCOPE_EQ || s->op == CED_SCOPE_IN)
		text(o, ",");
	if (s->op != CED_SCOPE_ALL && s->op != CED_SCOPE_IS)
		write_scope_entities(o, var, s);
	text(o, s->op == CED_SCOPE_IS_IN ? "}}" : "}");
}

static void write_annotations(struct ced_out *o, const struct ced_policy *p)
{
	text(o, ",\"annotations\":{");
	for (uint32_t i = 0; i < p->annotation_count; i++) {
		text(o, i ? "," : "");
		string(o, p->annotations[i].key);
		text(o, ":");
		if (p->annotations[i].value)
			string(o, p->annotations[i].value);
		else
			text(o, "null");
	}
	text(o, "}");
}

void ced_policy_to_json(struct ced_out *o, const struct ced_policy *p)
{
	text(o, p->effect == CEDAR_PERMIT ? "{\"effect\":\"permit\"," : "{\"effect\":\"forbid\",");
	write_scope(o, CED_PRINCIPAL, &p->principal);
	text(o, ",");
	write_scope(o, CED_ACTION, &p->action);
	text(o, ",");
	write_scope(o, CED_RESOURCE, &p->resource);
	text(o, ",\"conditions\":[");
	for (uint32_t i = 0; i < p->condition_count; i++) {
		text(o, i ? "," : "");
		text(o, p->conditions[i].unless ? "{\"kind\":\"unless\",\"body\":"
						: "{\"kind\":\"when\",\"body\":");
		write_expr(o, p->conditions[i].body);
		text(o, "}");
	}
	text(o, "]");
	if (p->annotation_count)
		write_annotations(o, p);
	text(o, "}");
}
