/* Evaluating expressions. Every function answers false after recording the failure. */
#include "cedar/eval.h"

static bool eval(struct ced_env *env, const struct ced_expr *x, struct ced_value *ret);

/* -- Failures, off the common path ---------------------------------------------------------- */

#define COLD __attribute__((noinline, cold))

COLD static bool wrong_type(struct ced_env *env, const struct ced_expr *at, const char *expected,
	struct ced_value found)
{
	env->failure = (struct ced_failure){
		.code = CEDAR_E_TYPE, .at = at, .expected = expected, .found = found.kind};
	return false;
}

COLD static bool no_attribute(struct ced_env *env, const struct ced_expr *at,
	const struct ced_name *name, const struct ced_uid *uid)
{
	env->failure =
		(struct ced_failure){.code = CEDAR_E_ATTRIBUTE, .at = at, .name = name, .uid = uid};
	return false;
}

COLD static bool no_entity(
	struct ced_env *env, const struct ced_expr *at, const struct ced_uid *uid)
{
	env->failure = (struct ced_failure){.code = CEDAR_E_ENTITY, .at = at, .uid = uid};
	return false;
}

COLD static bool overflow(struct ced_env *env, const struct ced_expr *at)
{
	env->failure = (struct ced_failure){.code = CEDAR_E_OVERFLOW, .at = at};
	return false;
}

COLD static bool no_scratch(struct ced_env *env, const struct ced_expr *at)
{
	bool limit = env->scratch->over_limit;
	env->failure = (struct ced_failure){.code = limit ? CEDAR_E_LIMIT : CEDAR_E_MEMORY,
		.at = at,
		.limit = env->scratch->bytes_max};
	return false;
}

/* -- Operands of one kind ------------------------------------------------------------------- */

static bool eval_kind(struct ced_env *env, const struct ced_expr *x, enum ced_kind kind,
	const char *expected, struct ced_value *ret)
{
	if (!eval(env, x, ret))
		return false;
	/* eval() has set it, which clang's analyzer forgets at the depth of this recursion.
	 * NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult) */
	return ret->kind == kind || wrong_type(env, x, expected, *ret);
}

static bool eval_bool(struct ced_env *env, const struct ced_expr *x, bool *ret)
{
	struct ced_value v;
	if (!eval_kind(env, x, CED_BOOL, "Bool", &v))
		return false;
	*ret = v.u.boolean;
	return true;
}

/* Both operands, the left one first; types are looked at afterwards. */
static bool eval_both(
	struct ced_env *env, const struct ced_expr *x, struct ced_value *a, struct ced_value *b)
{
	return eval(env, x->u.op.left, a) && eval(env, x->u.op.right, b);
}

static bool both_are(struct ced_env *env, const struct ced_expr *x, enum ced_kind kind,
	const char *expected, struct ced_value a, struct ced_value b)
{
	if (a.kind != kind)
		return wrong_type(env, x->u.op.left, expected, a);
	return b.kind == kind || wrong_type(env, x->u.op.right, expected, b);
}

/* -- Entities ------------------------------------------------------------------------------- */

static const struct ced_entity *find_entity(const struct ced_env *env, const struct ced_uid *uid)
{
	const struct cedar_request *r = env->request;
	if (uid == r->principal)
		return env->known[CED_PRINCIPAL];
	if (uid == r->resource)
		return env->known[CED_RESOURCE];
	if (uid == r->action)
		return env->known[CED_ACTION];
	return ced_entities_find(env->entities, uid);
}

bool ced_is_in(struct ced_env *env, const struct ced_uid *uid, const struct ced_uid *ancestor)
{
	if (ced_uid_eq(uid, ancestor))
		return true;
	const struct ced_entity *e = find_entity(env, uid);
	return e && ced_entity_has_ancestor(e, ancestor);
}

/* The right side is an entity or a set of nothing but entities. */
static bool eval_in(struct ced_env *env, const struct ced_expr *left, struct ced_value a,
	const struct ced_expr *right, struct ced_value b, struct ced_value *ret)
{
	if (a.kind != CED_ENTITY)
		return wrong_type(env, left, "an entity", a);
	if (b.kind == CED_ENTITY) {
		*ret = ced_bool(ced_is_in(env, a.u.uid, b.u.uid));
		return true;
	}
	if (b.kind != CED_SET)
		return wrong_type(env, right, "an entity or a set of entities", b);
	const struct ced_set *set = b.u.set;
	bool found = false;
	for (uint32_t i = 0; i < set->count; i++)
		if (set->items[i].kind != CED_ENTITY)
			return wrong_type(env, right, "a set of entities only", set->items[i]);
	for (uint32_t i = 0; i < set->count && !found; i++)
		found = ced_is_in(env, a.u.uid, set->items[i].u.uid);
	*ret = ced_bool(found);
	return true;
}

/* The attribute of a record or an entity; NULL in `ret`: it has none, or does not exist. */
static bool find_attr(struct ced_env *env, const struct ced_expr *at, struct ced_value v,
	const struct ced_name *attr, const struct ced_value **ret)
{
	if (v.kind == CED_RECORD) {
		*ret = ced_record_get(v.u.record, attr);
		return true;
	}
	if (v.kind != CED_ENTITY)
		return wrong_type(env, at, "a record or an entity", v);
	const struct ced_entity *e = find_entity(env, v.u.uid);
	*ret = e ? ced_record_get(e->attrs, attr) : NULL;
	return true;
}

static bool eval_get(struct ced_env *env, const struct ced_expr *x, struct ced_value *ret)
{
	struct ced_value v;
	const struct ced_value *found = NULL;
	if (!eval(env, x->u.get.left, &v) ||
		!find_attr(env, x->u.get.left, v, x->u.get.attr, &found))
		return false;
	if (found) {
		*ret = *found;
		return true;
	}
	if (v.kind == CED_ENTITY && !find_entity(env, v.u.uid))
		return no_entity(env, x, v.u.uid);
	return no_attribute(env, x, x->u.get.attr, v.kind == CED_ENTITY ? v.u.uid : NULL);
}

static bool eval_has(struct ced_env *env, const struct ced_expr *x, struct ced_value *ret)
{
	struct ced_value v;
	const struct ced_value *found = NULL;
	if (!eval(env, x->u.has.left, &v))
		return false;
	for (uint32_t i = 0; i < x->u.has.count; i++) {
		if (!find_attr(env, i ? x : x->u.has.left, v, x->u.has.path[i], &found))
			return false;
		if (!found) {
			*ret = ced_bool(false);
			return true;
		}
		v = *found;
	}
	*ret = ced_bool(true);
	return true;
}

static bool eval_tag(struct ced_env *env, const struct ced_expr *x, struct ced_value *ret)
{
	struct ced_value v, key;
	if (!eval_both(env, x, &v, &key))
		return false;
	if (v.kind != CED_ENTITY)
		return wrong_type(env, x->u.op.left, "an entity", v);
	if (key.kind != CED_STRING)
		return wrong_type(env, x->u.op.right, "String", key);
	const struct ced_entity *e = find_entity(env, v.u.uid);
	const struct ced_value *found = e ? ced_record_get(e->tags, key.u.string) : NULL;
	if (x->kind == CED_EXPR_HAS_TAG) {
		*ret = ced_bool(found != NULL);
		return true;
	}
	if (!e)
		return no_entity(env, x, v.u.uid);
	if (!found)
		return no_attribute(env, x, key.u.string, v.u.uid);
	*ret = *found;
	return true;
}

static bool eval_is(struct ced_env *env, const struct ced_expr *x, struct ced_value *ret)
{
	struct ced_value v, in;
	if (!eval_kind(env, x->u.is.left, CED_ENTITY, "an entity", &v))
		return false;
	bool is = ced_name_eq(v.u.uid->type, x->u.is.type);
	*ret = ced_bool(is);
	if (!is || !x->u.is.in)
		return true;
	return eval(env, x->u.is.in, &in) && eval_in(env, x->u.is.left, v, x->u.is.in, in, ret);
}

/* -- Strings -------------------------------------------------------------------------------- */

/* Wildcards match any bytes: valid UTF-8 within valid UTF-8 is found only at characters. Each part
 * is taken where it appears first, so the work grows with the lengths added, not multiplied. */
static bool like(const struct ced_pattern *p, const struct ced_name *text)
{
	const char *at = text->text, *end = text->text + text->length;
	const struct ced_name *first = p->parts[0], *last = p->parts[p->count - 1];
	if (p->count == 1)
		return ced_name_eq(first, text);
	if (first->length > text->length || memcmp(at, first->text, first->length) != 0)
		return false;
	at += first->length;
	if (last->length > (size_t)(end - at) ||
		memcmp(end - last->length, last->text, last->length) != 0)
		return false;
	end -= last->length;
	for (uint32_t i = 1; i + 1 < p->count; i++) {
		const struct ced_name *part = p->parts[i];
		at = memmem(at, (size_t)(end - at), part->text, part->length);
		if (!at)
			return false;
		at += part->length;
	}
	return true;
}

static bool eval_like(struct ced_env *env, const struct ced_expr *x, struct ced_value *ret)
{
	struct ced_value v;
	if (!eval_kind(env, x->u.like.left, CED_STRING, "String", &v))
		return false;
	*ret = ced_bool(like(x->u.like.pattern, v.u.string));
	return true;
}

/* -- Logic ---------------------------------------------------------------------------------- */

/* `decides` is the left value that ends it: false for &&, true for ||. */
static bool eval_logic(
	struct ced_env *env, const struct ced_expr *x, bool decides, struct ced_value *ret)
{
	bool b;
	if (!eval_bool(env, x->u.op.left, &b))
		return false;
	if (b != decides && !eval_bool(env, x->u.op.right, &b))
		return false;
	*ret = ced_bool(b);
	return true;
}

static bool eval_if(struct ced_env *env, const struct ced_expr *x, struct ced_value *ret)
{
	bool test;
	if (!eval_bool(env, x->u.cond.test, &test))
		return false;
	return eval(env, test ? x->u.cond.yes : x->u.cond.no, ret);
}

static bool eval_equal(
	struct ced_env *env, const struct ced_expr *x, bool wanted, struct ced_value *ret)
{
	struct ced_value a, b;
	if (!eval_both(env, x, &a, &b))
		return false;
	*ret = ced_bool(ced_value_eq(a, b) == wanted);
	return true;
}

static bool eval_order(struct ced_env *env, const struct ced_expr *x, struct ced_value *ret)
{
	struct ced_value a, b;
	if (!eval_both(env, x, &a, &b))
		return false;
	if (a.kind != CED_LONG && a.kind != CED_DATETIME && a.kind != CED_DURATION)
		return wrong_type(env, x->u.op.left, "Long, datetime or duration", a);
	if (b.kind != a.kind)
		return wrong_type(env, x->u.op.right, ced_kind_name(a.kind), b);
	int64_t m = a.u.number, n = b.u.number;
	bool result = x->kind == CED_EXPR_LT   ? m < n
		      : x->kind == CED_EXPR_LE ? m <= n
		      : x->kind == CED_EXPR_GT ? m > n
					       : m >= n;
	*ret = ced_bool(result);
	return true;
}

static bool eval_not(struct ced_env *env, const struct ced_expr *x, struct ced_value *ret)
{
	bool b;
	if (!eval_bool(env, x->u.op.left, &b))
		return false;
	*ret = ced_bool(!b);
	return true;
}

/* -- Numbers -------------------------------------------------------------------------------- */

static bool eval_neg(struct ced_env *env, const struct ced_expr *x, struct ced_value *ret)
{
	struct ced_value v;
	int64_t n;
	if (!eval_kind(env, x->u.op.left, CED_LONG, "Long", &v))
		return false;
	if (__builtin_sub_overflow((int64_t)0, v.u.number, &n))
		return overflow(env, x);
	*ret = ced_number(CED_LONG, n);
	return true;
}

static bool eval_arithmetic(struct ced_env *env, const struct ced_expr *x, struct ced_value *ret)
{
	struct ced_value a, b;
	int64_t n;
	bool over;
	if (!eval_both(env, x, &a, &b) || !both_are(env, x, CED_LONG, "Long", a, b))
		return false;
	if (x->kind == CED_EXPR_ADD)
		over = __builtin_add_overflow(a.u.number, b.u.number, &n);
	else if (x->kind == CED_EXPR_SUB)
		over = __builtin_sub_overflow(a.u.number, b.u.number, &n);
	else
		over = __builtin_mul_overflow(a.u.number, b.u.number, &n);
	if (over)
		return overflow(env, x);
	*ret = ced_number(CED_LONG, n);
	return true;
}

/* -- Sets and records ----------------------------------------------------------------------- */

static bool eval_is_empty(struct ced_env *env, const struct ced_expr *x, struct ced_value *ret)
{
	struct ced_value v;
	if (!eval_kind(env, x->u.op.left, CED_SET, "Set", &v))
		return false;
	*ret = ced_bool(v.u.set->count == 0);
	return true;
}

static bool eval_contains(struct ced_env *env, const struct ced_expr *x, struct ced_value *ret)
{
	struct ced_value a, b;
	if (!eval_both(env, x, &a, &b))
		return false;
	if (a.kind != CED_SET)
		return wrong_type(env, x->u.op.left, "Set", a);
	if (x->kind == CED_EXPR_CONTAINS) {
		*ret = ced_bool(ced_set_contains(a.u.set, b));
		return true;
	}
	if (b.kind != CED_SET)
		return wrong_type(env, x->u.op.right, "Set", b);
	*ret = ced_bool(x->kind == CED_EXPR_CONTAINS_ALL ? ced_set_contains_all(a.u.set, b.u.set)
							 : ced_set_contains_any(a.u.set, b.u.set));
	return true;
}

static bool eval_set(struct ced_env *env, const struct ced_expr *x, struct ced_value *ret)
{
	uint32_t n = x->u.list.count;
	struct ced_value *items = ced_new_array(env->scratch, n, struct ced_value);
	if (!items)
		return no_scratch(env, x);
	for (uint32_t i = 0; i < n; i++)
		if (!eval(env, x->u.list.items[i], &items[i]))
			return false;
	const struct ced_set *set = ced_set_make(env->scratch, items, n);
	if (!set)
		return no_scratch(env, x);
	*ret = (struct ced_value){.kind = CED_SET, .u.set = set};
	return true;
}

static bool eval_record(struct ced_env *env, const struct ced_expr *x, struct ced_value *ret)
{
	uint32_t n = x->u.record.count;
	struct ced_field *fields = ced_new_array(env->scratch, n, struct ced_field);
	if (!fields)
		return no_scratch(env, x);
	for (uint32_t i = 0; i < n; i++) {
		fields[i].key = x->u.record.entries[i].key;
		if (!eval(env, x->u.record.entries[i].value, &fields[i].value))
			return false;
	}
	const struct ced_record *record = ced_record_make(env->scratch, fields, n, NULL);
	if (!record)
		return no_scratch(env, x);
	*ret = (struct ced_value){.kind = CED_RECORD, .u.record = record};
	return true;
}

/* -- Extension functions -------------------------------------------------------------------- */

enum { FN_ARGS_MAX = 2 };

COLD static bool call_failed(struct ced_env *env, const struct ced_expr *x, int code,
	struct ced_value bad, uint32_t which)
{
	enum ced_kind want = ced_fn_info[x->u.call.fn].args[which];
	if (code == CEDAR_E_TYPE)
		return wrong_type(env, x->u.call.args[which], ced_kind_name(want), bad);
	if (code == CEDAR_E_MEMORY)
		return no_scratch(env, x);
	env->failure = (struct ced_failure){.code = (enum cedar_code)code, .at = x};
	if (bad.kind == CED_STRING)
		env->failure.name = bad.u.string;
	return false;
}

/* Arguments are evaluated even when there are too many or too few of them. */
static bool eval_call(struct ced_env *env, const struct ced_expr *x, struct ced_value *ret)
{
	struct ced_value args[FN_ARGS_MAX] = {{.kind = CED_BOOL}, {.kind = CED_BOOL}}, extra;
	uint32_t bad;
	for (uint32_t i = 0; i < x->u.call.count; i++)
		if (!eval(env, x->u.call.args[i], i < FN_ARGS_MAX ? &args[i] : &extra))
			return false;
	int code = ced_fn_call(x->u.call.fn, env->scratch, args, x->u.call.count, ret, &bad);
	return code == 0 || call_failed(env, x, code, args[bad], bad);
}

/* -- The switch ----------------------------------------------------------------------------- */

static bool eval_var(struct ced_env *env, enum ced_var var, struct ced_value *ret)
{
	const struct cedar_request *r = env->request;
	if (var == CED_CONTEXT)
		*ret = (struct ced_value){.kind = CED_RECORD, .u.record = r->context};
	else if (var == CED_PRINCIPAL)
		*ret = ced_entity(r->principal);
	else
		*ret = ced_entity(var == CED_ACTION ? r->action : r->resource);
	return true;
}

static bool eval(struct ced_env *env, const struct ced_expr *x, struct ced_value *ret)
{
	if (x->constant) {
		*ret = *x->constant;
		return true;
	}
	switch (x->kind) {
	case CED_EXPR_VAR: return eval_var(env, x->u.var, ret);
	case CED_EXPR_AND: return eval_logic(env, x, false, ret);
	case CED_EXPR_OR: return eval_logic(env, x, true, ret);
	case CED_EXPR_GET: return eval_get(env, x, ret);
	case CED_EXPR_HAS: return eval_has(env, x, ret);
	case CED_EXPR_EQ: return eval_equal(env, x, true, ret);
	case CED_EXPR_NE: return eval_equal(env, x, false, ret);
	case CED_EXPR_NOT: return eval_not(env, x, ret);
	case CED_EXPR_IN: {
		struct ced_value a, b;
		return eval_both(env, x, &a, &b) &&
		       eval_in(env, x->u.op.left, a, x->u.op.right, b, ret);
	}
	case CED_EXPR_LT:
	case CED_EXPR_LE:
	case CED_EXPR_GT:
	case CED_EXPR_GE: return eval_order(env, x, ret);
	case CED_EXPR_ADD:
	case CED_EXPR_SUB:
	case CED_EXPR_MUL: return eval_arithmetic(env, x, ret);
	case CED_EXPR_NEG: return eval_neg(env, x, ret);
	case CED_EXPR_CONTAINS:
	case CED_EXPR_CONTAINS_ALL:
	case CED_EXPR_CONTAINS_ANY: return eval_contains(env, x, ret);
	case CED_EXPR_IS_EMPTY: return eval_is_empty(env, x, ret);
	case CED_EXPR_GET_TAG:
	case CED_EXPR_HAS_TAG: return eval_tag(env, x, ret);
	case CED_EXPR_LIKE: return eval_like(env, x, ret);
	case CED_EXPR_IS: return eval_is(env, x, ret);
	case CED_EXPR_IF: return eval_if(env, x, ret);
	case CED_EXPR_SET: return eval_set(env, x, ret);
	case CED_EXPR_RECORD: return eval_record(env, x, ret);
	case CED_EXPR_CALL: return eval_call(env, x, ret);
	case CED_EXPR_LITERAL: /* is constant */
	case CED_EXPR_KINDS: break;
	}
	*ret = x->u.literal;
	return true;
}

bool ced_eval(struct ced_env *env, const struct ced_expr *x, struct ced_value *ret)
{
	return eval(env, x, ret);
}

bool ced_eval_condition(struct ced_env *env, const struct ced_condition *c, bool *ret)
{
	bool b;
	if (!eval_bool(env, c->body, &b))
		return false;
	*ret = b != c->unless;
	return true;
}

struct ced_env ced_env_make(const struct cedar_entities *entities,
	const struct cedar_request *request, struct ced_arena *scratch)
{
	return (struct ced_env){.entities = entities,
		.request = request,
		.scratch = scratch,
		.known = {ced_entities_find(entities, request->principal),
			ced_entities_find(entities, request->action),
			ced_entities_find(entities, request->resource)}};
}

/* -- Words ---------------------------------------------------------------------------------- */

static void describe_attribute(const struct ced_failure *f, struct cedar_error *ret)
{
	const char *what = f->at->kind == CED_EXPR_GET_TAG ? "tag" : "attribute";
	if (f->uid)
		(void)ced_fail(ret, f->code, f->at->pos, "%.80s::\"%.80s\" has no %s \"%.80s\"",
			f->uid->type->text, f->uid->id->text, what, f->name->text);
	else
		(void)ced_fail(ret, f->code, f->at->pos, "the record has no %s \"%.80s\"", what,
			f->name->text);
}

static void describe_call(const struct ced_failure *f, struct cedar_error *ret)
{
	const struct ced_fn_info *info = &ced_fn_info[f->at->u.call.fn];
	if (f->code == CEDAR_E_ARITY)
		(void)ced_fail(ret, f->code, f->at->pos, "%s() takes %u arguments, found %u",
			info->name, info->arity, f->at->u.call.count);
	else if (f->name)
		(void)ced_fail(ret, f->code, f->at->pos, "\"%.100s\" is not a value of %s()",
			f->name->text, info->name);
	else
		(void)ced_fail(
			ret, f->code, f->at->pos, "the result of %s() is out of range", info->name);
}

void ced_failure_describe(const struct ced_failure *f, struct cedar_error *ret)
{
	switch ((int)f->code) {
	case CEDAR_E_TYPE:
		(void)ced_fail(ret, f->code, f->at->pos, "expected %s, found %s", f->expected,
			ced_kind_name(f->found));
		break;
	case CEDAR_E_OVERFLOW:
		(void)ced_fail(ret, f->code, f->at->pos, "the result does not fit into 64 bits");
		break;
	case CEDAR_E_ATTRIBUTE: describe_attribute(f, ret); break;
	case CEDAR_E_ENTITY:
		(void)ced_fail(ret, f->code, f->at->pos,
			"the entity %.100s::\"%.100s\" does not exist", f->uid->type->text,
			f->uid->id->text);
		break;
	case CEDAR_E_LIMIT: (void)ced_fail_limit(ret, f->at->pos, "scratch_bytes", f->limit); break;
	case CEDAR_E_MEMORY: (void)ced_fail_memory(ret); break;
	default: describe_call(f, ret); break;
	}
}
