/* Making nodes, finding constants, comparing trees. */
#include "cedar/ast.h"

/* ORDER EXPR */
const char *const ced_expr_key[CED_EXPR_KINDS] = {
#define CED_EXPR_KEY(name, key) key,
	CED_EXPRS(CED_EXPR_KEY)
#undef CED_EXPR_KEY
};

const char *const ced_var_name[CED_VARS] = {"principal", "action", "resource", "context"};

/* ORDER SCOPE */
const char *const ced_scope_op_name[] = {"nothing", "==", "in", "is", "is in"};

static uint32_t taller(const struct ced_expr *a, uint32_t height)
{
	return a && a->height > height ? a->height : height;
}

static struct ced_expr *make(
	const struct ced_source *s, enum ced_expr_kind kind, struct ced_pos pos, uint32_t below)
{
	if (below >= s->limits->height) {
		(void)ced_fail_limit(s->err, pos, "height", s->limits->height);
		return NULL;
	}
	struct ced_expr *x = ced_new(s->arena, struct ced_expr);
	if (!x) {
		(void)ced_arena_fail(s->arena, s->err, pos);
		return NULL;
	}
	x->kind = kind;
	x->height = below + 1;
	x->pos = pos;
	return x;
}

struct ced_expr *ced_expr_literal(
	const struct ced_source *s, struct ced_pos pos, struct ced_value value)
{
	struct ced_expr *x = make(s, CED_EXPR_LITERAL, pos, 0);
	if (x) {
		x->u.literal = value;
		x->constant = &x->u.literal;
	}
	return x;
}

struct ced_expr *ced_expr_var(const struct ced_source *s, struct ced_pos pos, enum ced_var var)
{
	struct ced_expr *x = make(s, CED_EXPR_VAR, pos, 0);
	if (x)
		x->u.var = var;
	return x;
}

struct ced_expr *ced_expr_op(const struct ced_source *s, enum ced_expr_kind kind,
	struct ced_pos pos, const struct ced_expr *left, const struct ced_expr *right)
{
	struct ced_expr *x = make(s, kind, pos, taller(right, left->height));
	if (x) {
		x->u.op.left = left;
		x->u.op.right = right;
	}
	return x;
}

struct ced_expr *ced_expr_get(const struct ced_source *s, struct ced_pos pos,
	const struct ced_expr *left, const struct ced_name *attr)
{
	struct ced_expr *x = make(s, CED_EXPR_GET, pos, left->height);
	if (x) {
		x->u.get.left = left;
		x->u.get.attr = attr;
	}
	return x;
}

struct ced_expr *ced_expr_has(const struct ced_source *s, struct ced_pos pos,
	const struct ced_expr *left, const struct ced_name *const *path, uint32_t count)
{
	/* Every further name of the path is one `.` more. */
	uint32_t below = left->height + count - 1;
	struct ced_expr *x = make(s, CED_EXPR_HAS, pos, below);
	if (!x)
		return NULL;
	x->u.has.left = left;
	x->u.has.count = count;
	x->u.has.path = ced_arena_copy(s->arena, path, count * sizeof(*path));
	if (!x->u.has.path) {
		(void)ced_arena_fail(s->arena, s->err, pos);
		return NULL;
	}
	return x;
}

struct ced_expr *ced_expr_like(const struct ced_source *s, struct ced_pos pos,
	const struct ced_expr *left, const struct ced_pattern *pattern)
{
	struct ced_expr *x = make(s, CED_EXPR_LIKE, pos, left->height);
	if (x) {
		x->u.like.left = left;
		x->u.like.pattern = pattern;
	}
	return x;
}

struct ced_expr *ced_expr_is(const struct ced_source *s, struct ced_pos pos,
	const struct ced_expr *left, const struct ced_name *type, const struct ced_expr *in)
{
	struct ced_expr *x = make(s, CED_EXPR_IS, pos, taller(in, left->height));
	if (x) {
		x->u.is.left = left;
		x->u.is.type = type;
		x->u.is.in = in;
	}
	return x;
}

struct ced_expr *ced_expr_if(const struct ced_source *s, struct ced_pos pos,
	const struct ced_expr *test, const struct ced_expr *yes, const struct ced_expr *no)
{
	struct ced_expr *x = make(s, CED_EXPR_IF, pos, taller(no, taller(yes, test->height)));
	if (x) {
		x->u.cond.test = test;
		x->u.cond.yes = yes;
		x->u.cond.no = no;
	}
	return x;
}

static uint32_t entries_height(const struct ced_entry *entries, uint32_t count)
{
	uint32_t below = 0;
	for (uint32_t i = 0; i < count; i++)
		below = taller(entries[i].value, below);
	return below;
}

static bool all_constant(const struct ced_entry *entries, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (!entries[i].value->constant)
			return false;
	return true;
}

static const struct ced_expr *const *copy_values(
	const struct ced_source *s, const struct ced_entry *items, uint32_t count)
{
	const struct ced_expr **copy = ced_new_array(s->arena, count, const struct ced_expr *);
	for (uint32_t i = 0; copy && i < count; i++)
		copy[i] = items[i].value;
	return copy;
}

static struct ced_expr *out_of_memory(const struct ced_source *s, struct ced_pos pos)
{
	(void)ced_arena_fail(s->arena, s->err, pos);
	return NULL;
}

/* Keep a value beside its node. */
static struct ced_expr *set_constant(
	const struct ced_source *s, struct ced_expr *x, struct ced_value v)
{
	x->constant = ced_arena_copy(s->arena, &v, sizeof(v));
	return x->constant ? x : out_of_memory(s, x->pos);
}

static struct ced_expr *fold_set(const struct ced_source *s, struct ced_expr *x)
{
	uint32_t n = x->u.list.count;
	struct ced_value *items = ced_new_array(s->arena, n, struct ced_value);
	for (uint32_t i = 0; items && i < n; i++)
		items[i] = *x->u.list.items[i]->constant;
	const struct ced_set *set = items ? ced_set_make(s->arena, items, n) : NULL;
	if (!set)
		return out_of_memory(s, x->pos);
	return set_constant(s, x, (struct ced_value){.kind = CED_SET, .u.set = set});
}

struct ced_expr *ced_expr_set(const struct ced_source *s, struct ced_pos pos,
	const struct ced_entry *items, uint32_t count)
{
	struct ced_expr *x = make(s, CED_EXPR_SET, pos, entries_height(items, count));
	if (!x)
		return NULL;
	x->u.list.items = copy_values(s, items, count);
	x->u.list.count = count;
	if (!x->u.list.items)
		return out_of_memory(s, pos);
	return all_constant(items, count) ? fold_set(s, x) : x;
}

/* The keys are all different, which only the canonical form can tell quickly: so it is made from
 * the keys in any case and kept when the values are constant. */
struct ced_expr *ced_expr_record(const struct ced_source *s, struct ced_pos pos,
	const struct ced_entry *entries, uint32_t count)
{
	bool constant = all_constant(entries, count);
	const struct ced_name *twice = NULL;
	struct ced_expr *x = make(s, CED_EXPR_RECORD, pos, entries_height(entries, count));
	if (!x)
		return NULL;
	struct ced_field *fields = ced_new_array(s->arena, count, struct ced_field);
	for (uint32_t i = 0; fields && i < count; i++) {
		fields[i].key = entries[i].key;
		if (constant)
			fields[i].value = *entries[i].value->constant;
	}
	const struct ced_record *r =
		fields ? ced_record_make(s->arena, fields, count, &twice) : NULL;
	x->u.record.entries = ced_arena_copy(s->arena, entries, count * sizeof(*entries));
	x->u.record.count = count;
	if (twice) {
		(void)ced_fail(s->err, CEDAR_E_DUPLICATE, pos,
			"the key \"%.100s\" appears twice in this record", twice->text);
		return NULL;
	}
	if (!r || !x->u.record.entries)
		return out_of_memory(s, pos);
	if (!constant)
		return x;
	return set_constant(s, x, (struct ced_value){.kind = CED_RECORD, .u.record = r});
}

/* A call that fails stays a call: it fails when it is evaluated. */
static struct ced_expr *fold_call(const struct ced_source *s, struct ced_expr *x)
{
	struct ced_value args[2], v;
	uint32_t bad, n = x->u.call.count;
	if (n != ced_fn_info[x->u.call.fn].arity)
		return x;
	for (uint32_t i = 0; i < n; i++)
		args[i] = *x->u.call.args[i]->constant;
	int code = ced_fn_call(x->u.call.fn, s->arena, args, n, &v, &bad);
	if (code == CEDAR_E_MEMORY)
		return out_of_memory(s, x->pos);
	return code < 0 ? x : set_constant(s, x, v);
}

struct ced_expr *ced_expr_call(const struct ced_source *s, struct ced_pos pos, enum ced_fn fn,
	const struct ced_entry *args, uint32_t count)
{
	struct ced_expr *x = make(s, CED_EXPR_CALL, pos, entries_height(args, count));
	if (!x)
		return NULL;
	x->u.call.fn = fn;
	x->u.call.count = count;
	x->u.call.args = copy_values(s, args, count);
	if (!x->u.call.args)
		return out_of_memory(s, pos);
	return all_constant(args, count) ? fold_call(s, x) : x;
}

/* -- Comparing ------------------------------------------------------------------------------ */

static bool lists_eq(
	const struct ced_expr *const *a, uint32_t na, const struct ced_expr *const *b, uint32_t nb)
{
	if (na != nb)
		return false;
	for (uint32_t i = 0; i < na; i++)
		if (!ced_expr_eq(a[i], b[i]))
			return false;
	return true;
}

static bool names_eq(
	const struct ced_name *const *a, uint32_t na, const struct ced_name *const *b, uint32_t nb)
{
	if (na != nb)
		return false;
	for (uint32_t i = 0; i < na; i++)
		if (!ced_name_eq(a[i], b[i]))
			return false;
	return true;
}

static bool records_eq(const struct ced_expr *a, const struct ced_expr *b)
{
	if (a->u.record.count != b->u.record.count)
		return false;
	for (uint32_t i = 0; i < a->u.record.count; i++) {
		const struct ced_entry *x = &a->u.record.entries[i], *y = &b->u.record.entries[i];
		if (!ced_name_eq(x->key, y->key) || !ced_expr_eq(x->value, y->value))
			return false;
	}
	return true;
}

static bool optional_name_eq(const struct ced_name *a, const struct ced_name *b)
{
	return a && b ? ced_name_eq(a, b) : a == b;
}

bool ced_expr_eq(const struct ced_expr *a, const struct ced_expr *b)
{
	if (!a || !b || a->kind != b->kind)
		return a == b;
	switch ((int)a->kind) {
	case CED_EXPR_LITERAL: return ced_value_eq(a->u.literal, b->u.literal);
	case CED_EXPR_VAR: return a->u.var == b->u.var;
	case CED_EXPR_GET:
		return ced_name_eq(a->u.get.attr, b->u.get.attr) &&
		       ced_expr_eq(a->u.get.left, b->u.get.left);
	case CED_EXPR_HAS:
		return names_eq(a->u.has.path, a->u.has.count, b->u.has.path, b->u.has.count) &&
		       ced_expr_eq(a->u.has.left, b->u.has.left);
	case CED_EXPR_LIKE:
		return names_eq(a->u.like.pattern->parts, a->u.like.pattern->count,
			       b->u.like.pattern->parts, b->u.like.pattern->count) &&
		       ced_expr_eq(a->u.like.left, b->u.like.left);
	case CED_EXPR_IS:
		return ced_name_eq(a->u.is.type, b->u.is.type) &&
		       ced_expr_eq(a->u.is.left, b->u.is.left) &&
		       ced_expr_eq(a->u.is.in, b->u.is.in);
	case CED_EXPR_IF:
		return ced_expr_eq(a->u.cond.test, b->u.cond.test) &&
		       ced_expr_eq(a->u.cond.yes, b->u.cond.yes) &&
		       ced_expr_eq(a->u.cond.no, b->u.cond.no);
	case CED_EXPR_SET:
		return lists_eq(a->u.list.items, a->u.list.count, b->u.list.items, b->u.list.count);
	case CED_EXPR_RECORD: return records_eq(a, b);
	case CED_EXPR_CALL:
		return a->u.call.fn == b->u.call.fn &&
		       lists_eq(a->u.call.args, a->u.call.count, b->u.call.args, b->u.call.count);
	default: break; /* the operators */
	}
	return ced_expr_eq(a->u.op.left, b->u.op.left) && ced_expr_eq(a->u.op.right, b->u.op.right);
}

static bool scope_eq(const struct ced_scope *a, const struct ced_scope *b)
{
	if (a->op != b->op || a->slot != b->slot || a->list != b->list || a->count != b->count ||
		!optional_name_eq(a->type, b->type))
		return false;
	for (uint32_t i = 0; i < a->count; i++)
		if (!ced_uid_eq(a->uids[i], b->uids[i]))
			return false;
	return true;
}

static bool annotations_eq(const struct ced_policy *a, const struct ced_policy *b)
{
	if (a->annotation_count != b->annotation_count)
		return false;
	for (uint32_t i = 0; i < a->annotation_count; i++)
		if (!ced_name_eq(a->annotations[i].key, b->annotations[i].key) ||
			!optional_name_eq(a->annotations[i].value, b->annotations[i].value))
			return false;
	return true;
}

bool ced_policy_eq(const struct ced_policy *a, const struct ced_policy *b)
{
	if (a->effect != b->effect || a->condition_count != b->condition_count ||
		!annotations_eq(a, b) || !scope_eq(&a->principal, &b->principal) ||
		!scope_eq(&a->action, &b->action) || !scope_eq(&a->resource, &b->resource))
		return false;
	for (uint32_t i = 0; i < a->condition_count; i++)
		if (a->conditions[i].unless != b->conditions[i].unless ||
			!ced_expr_eq(a->conditions[i].body, b->conditions[i].body))
			return false;
	return true;
}
