/*
 * The type checker: calls of extension functions, from the table that the evaluator uses.
 *
 * A constructor takes one literal string, which is checked here, so that a valid policy cannot fail
 * in one.
 */
#include "cedar/ext.h"
#include "cedar/slice.h"
#include "cedar/typecheck.h"

static enum ced_want want_of(enum ced_kind kind)
{
	return kind == CED_STRING ? CED_WANT_STRING
				  : (enum ced_want)(CED_WANT_EXT + (unsigned)kind);
}

static const struct ced_type *result_type(struct ced_checker *c, enum ced_kind kind)
{
	const struct ced_type *type;

	if (kind == CED_BOOL)
		return c->t_bool;
	if (kind == CED_LONG)
		return c->t_long;
	type = ced_type_ext(&c->types, kind);
	if (!type)
		c->out_of_memory = true;
	return type;
}

/* Does the constructor make a value of this string? */
static bool makes_value(struct ced_checker *c, enum ced_fn fn, struct ced_value text)
{
	struct ced_value made;
	uint32_t bad;
	int r = ced_fn_call(fn, c->arena, &text, 1, &made, &bad);

	if (r == CEDAR_E_MEMORY)
		c->out_of_memory = true;
	return r == 0;
}

/* The argument of a constructor must be a literal, and one that makes a value. */
static bool constructor_ok(struct ced_checker *c, const struct ced_expr *e)
{
	const char *name = ced_fn_info[e->u.call.fn].name;
	const struct ced_expr *arg;

	for (uint32_t i = 0; i < e->u.call.count; i++)
		if (e->u.call.args[i]->kind != CED_EXPR_LITERAL) {
			ced_report_error(c->report, e->pos,
				"%s() must be given a literal here, so that it can be checked",
				name);
			return false;
		}
	if (e->u.call.count != 1)
		return true;
	arg = e->u.call.args[0];
	if (arg->u.literal.kind == CED_STRING && !makes_value(c, e->u.call.fn, arg->u.literal)) {
		ced_report_error(c->report, arg->pos, "%s(\"%.*s\") is not a value", name,
			ced_shown(ced_name_slice(arg->u.literal.u.string)),
			arg->u.literal.u.string->text);
		return false;
	}
	return true;
}

struct ced_answer ced_check_call(
	struct ced_checker *c, const struct ced_caps *prior, const struct ced_expr *e)
{
	const struct ced_fn_info *fn = &ced_fn_info[e->u.call.fn];
	bool ok = true;

	if (e->u.call.count != fn->arity) {
		ced_report_error(c->report, e->pos, "`%s` takes %u argument%s, not %u", fn->name,
			(unsigned)fn->arity, fn->arity == 1 ? "" : "s", (unsigned)e->u.call.count);
		ok = false;
	}
	if (!fn->method)
		ok &= constructor_ok(c, e);
	for (uint32_t i = 0; i < e->u.call.count; i++) {
		const struct ced_expr *arg = e->u.call.args[i];
		struct ced_answer a;

		a = i < fn->arity ? ced_check_expect(c, prior, arg, want_of(fn->args[i]))
				  : ced_check_expr(c, prior, arg);
		ok &= a.ok;
	}
	return ced_answer_of(ok, result_type(c, fn->result), NULL);
}
