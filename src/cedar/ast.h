/*
 * The tree of a policy: what text and JSON are parsed to, printed from, validated and evaluated by.
 *
 * It is exactly what was written as far as the official JSON form can tell things apart: `!=`, `>`
 * and `unless` are kept, conditions stay apart, parentheses are gone. Constants that JSON can write
 * as one "Value" (sets, records, extension values) are the same nodes as those that text makes.
 *
 * A tree is made once, in an arena, and never changed afterwards.
 */
#ifndef CEDAR_AST_H
#define CEDAR_AST_H

#include "cedar/ext.h"
#include "cedar/lex.h"
#include "cedar/value.h"

/* NAME, JSON key (NULL: JSON has a form of its own for it). The operators of two operands are those
 * from EQ to HAS_TAG. ORDER EXPR: nothing else may depend on the order. */
#define CED_EXPRS(X)                                                                               \
	X(LITERAL, "Value") /* u.literal: Bool, Long, String or Entity */                          \
	X(VAR, "Var")                                                                              \
	X(NOT, "!") /* u.op.left only */                                                           \
	X(NEG, "neg")                                                                              \
	X(IS_EMPTY, "isEmpty")                                                                     \
	X(EQ, "==")                                                                                \
	X(NE, "!=")                                                                                \
	X(IN, "in")                                                                                \
	X(LT, "<")                                                                                 \
	X(LE, "<=")                                                                                \
	X(GT, ">")                                                                                 \
	X(GE, ">=")                                                                                \
	X(AND, "&&")                                                                               \
	X(OR, "||")                                                                                \
	X(ADD, "+")                                                                                \
	X(SUB, "-")                                                                                \
	X(MUL, "*")                                                                                \
	X(CONTAINS, "contains")                                                                    \
	X(CONTAINS_ALL, "containsAll")                                                             \
	X(CONTAINS_ANY, "containsAny")                                                             \
	X(GET_TAG, "getTag")                                                                       \
	X(HAS_TAG, "hasTag")                                                                       \
	X(GET, ".")   /* u.get */                                                                  \
	X(HAS, "has") /* u.has */                                                                  \
	X(LIKE, "like")                                                                            \
	X(IS, "is") /* u.is; `in` may be NULL */                                                   \
	X(IF, "if-then-else")                                                                      \
	X(SET, "Set")       /* u.list */                                                           \
	X(RECORD, "Record") /* u.record */                                                         \
	X(CALL, NULL)       /* u.call: an extension function or method, the receiver first */

enum ced_expr_kind {
#define CED_EXPR_ENUM(name, key) CED_EXPR_##name,
	CED_EXPRS(CED_EXPR_ENUM)
#undef CED_EXPR_ENUM
		CED_EXPR_KINDS,
};

extern const char *const ced_expr_key[CED_EXPR_KINDS];

static inline bool ced_expr_is_unary(enum ced_expr_kind k)
{
	return k >= CED_EXPR_NOT && k <= CED_EXPR_IS_EMPTY;
}
static inline bool ced_expr_is_binary(enum ced_expr_kind k)
{
	return k >= CED_EXPR_EQ && k <= CED_EXPR_HAS_TAG;
}

enum ced_var { CED_PRINCIPAL, CED_ACTION, CED_RESOURCE, CED_CONTEXT, CED_VARS };

extern const char *const ced_var_name[CED_VARS];

struct ced_entry {
	const struct ced_name *key;
	const struct ced_expr *value;
};

struct ced_expr {
	enum ced_expr_kind kind;
	uint32_t height; /* 1 for a leaf */
	struct ced_pos pos;
	/* Set on sets, records and calls whose parts are constant and whose
	 * evaluation cannot fail: what they evaluate to. */
	const struct ced_value *constant;
	union {
		struct ced_value literal;
		enum ced_var var;
		struct {
			const struct ced_expr *left, *right;
		} op;
		struct {
			const struct ced_expr *left;
			const struct ced_name *attr;
		} get;
		struct {
			const struct ced_expr *left;
			const struct ced_name *const *path;
			uint32_t count; /* at least 1 */
		} has;
		struct {
			const struct ced_expr *left;
			const struct ced_pattern *pattern;
		} like;
		struct {
			const struct ced_expr *left;
			const struct ced_name *type;
			const struct ced_expr *in;
		} is;
		struct {
			const struct ced_expr *test, *yes, *no;
		} cond;
		struct {
			const struct ced_expr *const *items;
			uint32_t count;
		} list;
		struct {
			const struct ced_entry *entries; /* in source order, keys all different */
			uint32_t count;
		} record;
		struct {
			enum ced_fn fn;
			const struct ced_expr *const *args;
			uint32_t count; /* any: a wrong number is an error of evaluation */
		} call;
	} u;
};

/* ORDER SCOPE: ced_scope_op_name in ast.c. */
enum ced_scope_op { CED_SCOPE_ALL, CED_SCOPE_EQ, CED_SCOPE_IN, CED_SCOPE_IS, CED_SCOPE_IS_IN };

struct ced_scope {
	enum ced_scope_op op;
	bool slot;                   /* EQ, IN and IS_IN: the entity comes from the link */
	bool list;                   /* IN of an action, written as a list */
	const struct ced_name *type; /* IS, IS_IN */
	/* The entities: one without `list` (none with `slot`), any number with it. */
	const struct ced_uid *const *uids;
	uint32_t count;
	struct ced_pos pos;
};

struct ced_annotation {
	const struct ced_name *key;
	const struct ced_name *value; /* NULL: written without one */
	struct ced_pos pos;
};

/* "nothing", "==", "in", "is", "is in" */
extern const char *const ced_scope_op_name[];

struct ced_condition {
	bool unless;
	const struct ced_expr *body;
	struct ced_pos pos;
};

/* A policy or, when a scope has a slot, a template. */
struct ced_policy {
	const struct ced_name *id;
	enum cedar_effect effect;
	const struct ced_annotation *annotations; /* in source order */
	uint32_t annotation_count;
	struct ced_scope principal, action, resource;
	const struct ced_condition *conditions;
	uint32_t condition_count;
	struct ced_pos pos;
};

static inline bool ced_policy_is_template(const struct ced_policy *p)
{
	return p->principal.slot || p->resource.slot;
}

/* What a reader of policies works in. */
struct ced_source {
	struct ced_arena *arena;
	struct ced_names *names;
	const struct cedar_limits *limits;
	struct cedar_error *err;
};

/*
 * Nodes. Each returns NULL with the error filled when the limit "height" or memory ends. Lists are
 * copied into the arena. Sets, records and calls find out here whether they are constant.
 */
struct ced_expr *ced_expr_literal(
	const struct ced_source *s, struct ced_pos pos, struct ced_value value);
struct ced_expr *ced_expr_var(const struct ced_source *s, struct ced_pos pos, enum ced_var var);
/* `right` is NULL for operators of one operand. */
struct ced_expr *ced_expr_op(const struct ced_source *s, enum ced_expr_kind kind,
	struct ced_pos pos, const struct ced_expr *left, const struct ced_expr *right);
struct ced_expr *ced_expr_get(const struct ced_source *s, struct ced_pos pos,
	const struct ced_expr *left, const struct ced_name *attr);
struct ced_expr *ced_expr_has(const struct ced_source *s, struct ced_pos pos,
	const struct ced_expr *left, const struct ced_name *const *path, uint32_t count);
struct ced_expr *ced_expr_like(const struct ced_source *s, struct ced_pos pos,
	const struct ced_expr *left, const struct ced_pattern *pattern);
struct ced_expr *ced_expr_is(const struct ced_source *s, struct ced_pos pos,
	const struct ced_expr *left, const struct ced_name *type, const struct ced_expr *in);
struct ced_expr *ced_expr_if(const struct ced_source *s, struct ced_pos pos,
	const struct ced_expr *test, const struct ced_expr *yes, const struct ced_expr *no);
struct ced_expr *ced_expr_set(const struct ced_source *s, struct ced_pos pos,
	const struct ced_entry *items, uint32_t count); /* the values of the entries */
struct ced_expr *ced_expr_record(const struct ced_source *s, struct ced_pos pos,
	const struct ced_entry *entries, uint32_t count); /* CEDAR_E_DUPLICATE: a key twice */
struct ced_expr *ced_expr_call(const struct ced_source *s, struct ced_pos pos, enum ced_fn fn,
	const struct ced_entry *args, uint32_t count); /* the values of the entries */

/* Structural equality, without places: what "parse after print is the identity" means. */
bool ced_expr_eq(const struct ced_expr *a, const struct ced_expr *b);
bool ced_policy_eq(const struct ced_policy *a, const struct ced_policy *b);

#endif
