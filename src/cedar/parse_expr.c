/*
 * Expressions, by recursive descent: one function per rule of the grammar.
 *
 * The parser recurses only through ced_p_expr(), which counts the depth.
 */
#include "cedar/parser.h"

#include <stdio.h>

/* At most this many `!` or `-` in a row, by the language's definition. */
enum { UNARY_MAX = 4 };

/* Expressions separated by commas up to `close`, onto the stack. */
static int parse_items(struct ced_parser *p, enum ced_token_kind close)
{
	while (!ced_p_at(p, close)) {
		const struct ced_expr *x = ced_p_expr(p);
		if (!x)
			return -1;
		if (ced_p_push(p, NULL, x) < 0)
			return -1;
		if (ced_p_at(p, close))
			break;
		if (!ced_p_at(p, CED_TOKEN_COMMA))
			return ced_p_fail(
				p, close == CED_TOKEN_RBRACKET ? "',' or ']'" : "',' or ')'");
		if (ced_p_advance(p) < 0)
			return -1;
	}
	return ced_p_advance(p);
}

static const struct ced_expr *parse_set(struct ced_parser *p)
{
	struct ced_pos start = p->t.pos;
	size_t base = p->open_count;
	if (ced_p_advance(p) < 0 || parse_items(p, CED_TOKEN_RBRACKET) < 0)
		return NULL;
	const struct ced_expr *x = ced_expr_set(&p->s, ced_pos_join(start, p->last),
		ced_p_since(p, base), (uint32_t)(p->open_count - base));
	p->open_count = base;
	return x;
}

static int parse_record_entry(struct ced_parser *p)
{
	const struct ced_name *key = ced_p_at(p, CED_TOKEN_STRING)
					     ? ced_p_take_string(p)
					     : ced_p_take_name(p, "a key of a record");
	if (!key || ced_p_expect(p, CED_TOKEN_COLON) < 0)
		return -1;
	const struct ced_expr *value = ced_p_expr(p);
	return value ? ced_p_push(p, key, value) : -1;
}

static const struct ced_expr *parse_record(struct ced_parser *p)
{
	struct ced_pos start = p->t.pos;
	size_t base = p->open_count;
	if (ced_p_advance(p) < 0)
		return NULL;
	while (!ced_p_at(p, CED_TOKEN_RBRACE)) {
		if (parse_record_entry(p) < 0)
			return NULL;
		if (ced_p_at(p, CED_TOKEN_RBRACE))
			break;
		if (!ced_p_at(p, CED_TOKEN_COMMA))
			return ced_p_fail_null(p, "',' or '}'");
		if (ced_p_advance(p) < 0)
			return NULL;
	}
	if (ced_p_advance(p) < 0)
		return NULL;
	const struct ced_expr *x = ced_expr_record(&p->s, ced_pos_join(start, p->last),
		ced_p_since(p, base), (uint32_t)(p->open_count - base));
	p->open_count = base;
	return x;
}

static const struct ced_expr *parse_parentheses(struct ced_parser *p)
{
	struct ced_pos open = p->t.pos;
	if (ced_p_advance(p) < 0)
		return NULL;
	const struct ced_expr *x = ced_p_expr(p);
	return x && ced_p_expect_close(p, CED_TOKEN_RPAREN, open) == 0 ? x : NULL;
}

static const struct ced_expr *parse_number(struct ced_parser *p)
{
	if (p->t.number > INT64_MAX) {
		(void)ced_fail(p->s.err, CEDAR_E_VALUE, p->t.pos,
			"this number is larger than 9223372036854775807");
		return NULL;
	}
	const struct ced_expr *x =
		ced_expr_literal(&p->s, p->t.pos, ced_number(CED_LONG, (int64_t)p->t.number));
	return x && ced_p_advance(p) == 0 ? x : NULL;
}

/* The arguments of an extension function or method; the receiver, if any, is already pushed. At
 * the '('. */
static const struct ced_expr *parse_call(
	struct ced_parser *p, enum ced_fn fn, struct ced_pos start, size_t base)
{
	if (ced_p_advance(p) < 0 || parse_items(p, CED_TOKEN_RPAREN) < 0)
		return NULL;
	const struct ced_expr *x = ced_expr_call(&p->s, ced_pos_join(start, p->last), fn,
		ced_p_since(p, base), (uint32_t)(p->open_count - base));
	p->open_count = base;
	return x;
}

static int find_var(struct ced_slice word)
{
	for (int i = 0; i < CED_VARS; i++)
		if (ced_slice_is(word, ced_var_name[i]))
			return i;
	return -1;
}

static const struct ced_expr *parse_function(struct ced_parser *p, const struct ced_token *name)
{
	int fn = ced_fn_find(name->text);
	if (fn < 0 || ced_fn_info[fn].method) {
		(void)ced_fail(p->s.err, CEDAR_E_SYNTAX, name->pos,
			fn < 0 ? "there is no function `%.*s`"
			       : "`%.*s` is a method: it stands after a value and a '.'",
			(int)(name->text.n < 60 ? name->text.n : 60), name->text.p);
		return NULL;
	}
	return parse_call(p, (enum ced_fn)fn, name->pos, p->open_count);
}

/* A name at the start of a primary: a variable, an entity, or a call. */
static const struct ced_expr *parse_named(struct ced_parser *p)
{
	struct ced_token word = p->t;
	int var = find_var(word.text);
	if (var >= 0 && p->next.kind != CED_TOKEN_PATH && p->next.kind != CED_TOKEN_LPAREN) {
		const struct ced_expr *x = ced_expr_var(&p->s, word.pos, (enum ced_var)var);
		return x && ced_p_advance(p) == 0 ? x : NULL;
	}
	const struct ced_name *first = ced_p_take_name(p, "an expression");
	if (!first)
		return NULL;
	if (ced_p_at(p, CED_TOKEN_LPAREN))
		return parse_function(p, &word);
	if (!ced_p_at(p, CED_TOKEN_PATH)) {
		(void)ced_fail(p->s.err, CEDAR_E_SYNTAX, word.pos,
			"there is no variable `%.*s`: the variables are principal, action, "
			"resource and context, and strings stand in quotes",
			(int)(word.text.n < 60 ? word.text.n : 60), word.text.p);
		return NULL;
	}
	const struct ced_uid *uid = ced_p_uid_rest(p, first);
	if (!uid)
		return NULL;
	return ced_expr_literal(&p->s, ced_pos_join(word.pos, p->last), ced_entity(uid));
}

static const struct ced_expr *parse_primary(struct ced_parser *p)
{
	struct ced_pos pos = p->t.pos;
	switch ((int)p->t.kind) {
	case CED_TOKEN_NUMBER: return parse_number(p);
	case CED_TOKEN_LPAREN: return parse_parentheses(p);
	case CED_TOKEN_LBRACKET: return parse_set(p);
	case CED_TOKEN_LBRACE: return parse_record(p);
	case CED_TOKEN_STRING: {
		const struct ced_name *s = ced_p_take_string(p);
		return s ? ced_expr_literal(&p->s, pos, ced_string(s)) : NULL;
	}
	case CED_TOKEN_SLOT:
		return ced_p_fail_null(p, "an expression (slots stand only in the scope)");
	case CED_TOKEN_IDENT: break;
	default: return ced_p_fail_null(p, "an expression");
	}
	bool yes = ced_token_is(&p->t, "true");
	if (yes || ced_token_is(&p->t, "false")) {
		const struct ced_expr *x = ced_expr_literal(&p->s, pos, ced_bool(yes));
		return x && ced_p_advance(p) == 0 ? x : NULL;
	}
	if (ced_token_is(&p->t, "if"))
		return ced_p_fail_null(
			p, "an operand (an `if` inside of operators needs parentheses)");
	return parse_named(p);
}

/* Methods of the language itself: their arity is part of the grammar. */
static int find_method(struct ced_slice name)
{
	static const enum ced_expr_kind methods[] = {CED_EXPR_CONTAINS, CED_EXPR_CONTAINS_ALL,
		CED_EXPR_CONTAINS_ANY, CED_EXPR_IS_EMPTY, CED_EXPR_GET_TAG, CED_EXPR_HAS_TAG};
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		if (ced_slice_is(name, ced_expr_key[methods[i]]))
			return (int)methods[i];
	return -1;
}

static const struct ced_expr *parse_builtin_method(struct ced_parser *p, enum ced_expr_kind kind,
	const struct ced_expr *receiver, const struct ced_token *name)
{
	size_t base = p->open_count;
	uint32_t want = kind == CED_EXPR_IS_EMPTY ? 0 : 1;
	if (ced_p_advance(p) < 0 || parse_items(p, CED_TOKEN_RPAREN) < 0)
		return NULL;
	uint32_t found = (uint32_t)(p->open_count - base);
	p->open_count = base;
	if (found != want) {
		(void)ced_fail(p->s.err, CEDAR_E_SYNTAX, name->pos,
			"%s() takes %u arguments, found %u", ced_expr_key[kind], want, found);
		return NULL;
	}
	return ced_expr_op(&p->s, kind, ced_pos_join(receiver->pos, p->last), receiver,
		want ? p->open[base].value : NULL);
}

/* At the '(' after `.name`. */
static const struct ced_expr *parse_method(
	struct ced_parser *p, const struct ced_expr *receiver, const struct ced_token *name)
{
	int builtin = find_method(name->text), fn = ced_fn_find(name->text);
	size_t base = p->open_count;
	if (builtin >= 0)
		return parse_builtin_method(p, (enum ced_expr_kind)builtin, receiver, name);
	if (fn < 0 || !ced_fn_info[fn].method) {
		(void)ced_fail(p->s.err, CEDAR_E_SYNTAX, name->pos,
			fn < 0 ? "there is no method `%.*s`" : "`%.*s` is a function, not a method",
			(int)(name->text.n < 60 ? name->text.n : 60), name->text.p);
		return NULL;
	}
	if (ced_p_push(p, NULL, receiver) < 0)
		return NULL;
	return parse_call(p, (enum ced_fn)fn, receiver->pos, base);
}

static const struct ced_expr *parse_dot(struct ced_parser *p, const struct ced_expr *left)
{
	if (ced_p_advance(p) < 0)
		return NULL;
	struct ced_token name = p->t;
	const struct ced_name *attr = ced_p_take_name(p, "the name of an attribute");
	if (!attr)
		return NULL;
	if (ced_p_at(p, CED_TOKEN_LPAREN))
		return parse_method(p, left, &name);
	return ced_expr_get(&p->s, ced_pos_join(left->pos, p->last), left, attr);
}

static const struct ced_expr *parse_index(struct ced_parser *p, const struct ced_expr *left)
{
	struct ced_pos open = p->t.pos;
	if (ced_p_advance(p) < 0)
		return NULL;
	if (!ced_p_at(p, CED_TOKEN_STRING))
		return ced_p_fail_null(p, "the name of an attribute in quotes");
	const struct ced_name *attr = ced_p_take_string(p);
	if (!attr || ced_p_expect_close(p, CED_TOKEN_RBRACKET, open) < 0)
		return NULL;
	return ced_expr_get(&p->s, ced_pos_join(left->pos, p->last), left, attr);
}

static const struct ced_expr *parse_member(struct ced_parser *p)
{
	const struct ced_expr *x = parse_primary(p);
	while (x && (ced_p_at(p, CED_TOKEN_DOT) || ced_p_at(p, CED_TOKEN_LBRACKET)))
		x = ced_p_at(p, CED_TOKEN_DOT) ? parse_dot(p, x) : parse_index(p, x);
	return x;
}

/* A number directly after its sign is one literal, unless something is accessed of it. */
static bool at_negative_literal(const struct ced_parser *p)
{
	return ced_p_at(p, CED_TOKEN_NUMBER) && p->next.kind != CED_TOKEN_DOT &&
	       p->next.kind != CED_TOKEN_LBRACKET;
}

static const struct ced_expr *negative_literal(struct ced_parser *p, struct ced_pos minus)
{
	uint64_t n = p->t.number;
	if (n > (uint64_t)INT64_MAX + 1) {
		(void)ced_fail(p->s.err, CEDAR_E_VALUE, p->t.pos,
			"this number is smaller than -9223372036854775808");
		return NULL;
	}
	const struct ced_expr *x = ced_expr_literal(
		&p->s, ced_pos_join(minus, p->t.pos), ced_number(CED_LONG, (int64_t)(0 - n)));
	return x && ced_p_advance(p) == 0 ? x : NULL;
}

static const struct ced_expr *parse_unary(struct ced_parser *p)
{
	struct ced_pos signs[UNARY_MAX];
	enum ced_token_kind sign = p->t.kind;
	uint32_t n = 0;
	if (sign != CED_TOKEN_NOT && sign != CED_TOKEN_MINUS)
		return parse_member(p);
	for (; ced_p_at(p, sign); n++) {
		if (n == UNARY_MAX)
			return ced_p_fail_null(p, "at most four of one unary operator in a row");
		signs[n] = p->t.pos;
		if (ced_p_advance(p) < 0)
			return NULL;
	}
	const struct ced_expr *x = NULL;
	if (sign == CED_TOKEN_MINUS && at_negative_literal(p))
		x = negative_literal(p, signs[--n]);
	else
		x = parse_member(p);
	while (x && n) {
		struct ced_pos pos = ced_pos_join(signs[--n], x->pos);
		x = ced_expr_op(
			&p->s, sign == CED_TOKEN_NOT ? CED_EXPR_NOT : CED_EXPR_NEG, pos, x, NULL);
	}
	return x;
}

typedef const struct ced_expr *(*rule)(struct ced_parser *p);

/* Operands of `next`, joined from the left by the operators that `kind_of` knows. */
static const struct ced_expr *left_associative(
	struct ced_parser *p, rule next, int (*kind_of)(enum ced_token_kind))
{
	const struct ced_expr *x = next(p);
	while (x && kind_of(p->t.kind) >= 0) {
		enum ced_expr_kind kind = (enum ced_expr_kind)kind_of(p->t.kind);
		const struct ced_expr *right = ced_p_advance(p) < 0 ? NULL : next(p);
		if (!right)
			return NULL;
		x = ced_expr_op(&p->s, kind, ced_pos_join(x->pos, right->pos), x, right);
	}
	return x;
}

static int mul_kind(enum ced_token_kind t)
{
	return t == CED_TOKEN_STAR ? (int)CED_EXPR_MUL : -1;
}

static int add_kind(enum ced_token_kind t)
{
	if (t == CED_TOKEN_PLUS)
		return CED_EXPR_ADD;
	return t == CED_TOKEN_MINUS ? (int)CED_EXPR_SUB : -1;
}

static int and_kind(enum ced_token_kind t)
{
	return t == CED_TOKEN_AND ? (int)CED_EXPR_AND : -1;
}

static int or_kind(enum ced_token_kind t)
{
	return t == CED_TOKEN_OR ? (int)CED_EXPR_OR : -1;
}

static const struct ced_expr *parse_mul(struct ced_parser *p)
{
	return left_associative(p, parse_unary, mul_kind);
}

static const struct ced_expr *parse_add(struct ced_parser *p)
{
	return left_associative(p, parse_mul, add_kind);
}

/* -- Relations ------------------------------------------------------------------------------ */

/* The operator here that compares two sums; -1: none. */
static int relation_kind(const struct ced_token *t)
{
	switch ((int)t->kind) {
	case CED_TOKEN_EQ: return CED_EXPR_EQ;
	case CED_TOKEN_NE: return CED_EXPR_NE;
	case CED_TOKEN_LT: return CED_EXPR_LT;
	case CED_TOKEN_LE: return CED_EXPR_LE;
	case CED_TOKEN_GT: return CED_EXPR_GT;
	case CED_TOKEN_GE: return CED_EXPR_GE;
	default: return ced_token_is(t, "in") ? (int)CED_EXPR_IN : -1;
	}
}

static const struct ced_expr *parse_has(struct ced_parser *p, const struct ced_expr *left)
{
	const struct ced_name *path_room[8], **path = path_room;
	uint32_t n = 0;
	if (ced_p_at(p, CED_TOKEN_STRING)) {
		path[0] = ced_p_take_string(p);
		return path[0] ? ced_expr_has(
					 &p->s, ced_pos_join(left->pos, p->last), left, path, 1)
			       : NULL;
	}
	for (;;) {
		/* The path moves to the arena when the room ends, and doubles there. */
		if (n >= 8 && (n & (n - 1)) == 0) {
			const struct ced_name **more =
				ced_new_array(p->s.arena, 2 * n, const struct ced_name *);
			if (!more)
				return ced_p_memory_null(p);
			path = memcpy(more, path, n * sizeof(*path));
		}
		path[n] = ced_p_take_name(p, "the name of an attribute");
		if (!path[n++])
			return NULL;
		if (!ced_p_at(p, CED_TOKEN_DOT))
			break;
		if (ced_p_advance(p) < 0)
			return NULL;
	}
	return ced_expr_has(&p->s, ced_pos_join(left->pos, p->last), left, path, n);
}

static const struct ced_expr *parse_like(struct ced_parser *p, const struct ced_expr *left)
{
	const struct ced_pattern *pattern;
	if (!ced_p_at(p, CED_TOKEN_STRING))
		return ced_p_fail_null(p, "a pattern in quotes");
	if (ced_unescape_pattern(p->s.names, &p->t, &pattern, p->s.err) < 0 || ced_p_advance(p) < 0)
		return NULL;
	return ced_expr_like(&p->s, ced_pos_join(left->pos, p->last), left, pattern);
}

static const struct ced_expr *parse_is(struct ced_parser *p, const struct ced_expr *left)
{
	const struct ced_expr *in = NULL;
	const struct ced_name *type = ced_p_type(p);
	if (!type)
		return NULL;
	if (ced_token_is(&p->t, "in")) {
		in = ced_p_advance(p) < 0 ? NULL : parse_add(p);
		if (!in)
			return NULL;
	}
	return ced_expr_is(&p->s, ced_pos_join(left->pos, p->last), left, type, in);
}

static bool at_relation(const struct ced_parser *p)
{
	return relation_kind(&p->t) >= 0 || ced_token_is(&p->t, "has") ||
	       ced_token_is(&p->t, "like") || ced_token_is(&p->t, "is");
}

static const struct ced_expr *parse_relation(struct ced_parser *p)
{
	const struct ced_expr *x = parse_add(p);
	if (!x || !at_relation(p))
		return x;
	struct ced_token op = p->t;
	if (ced_p_advance(p) < 0)
		return NULL;
	if (ced_token_is(&op, "has")) {
		x = parse_has(p, x);
	} else if (ced_token_is(&op, "like")) {
		x = parse_like(p, x);
	} else if (ced_token_is(&op, "is")) {
		x = parse_is(p, x);
	} else {
		const struct ced_expr *right = parse_add(p);
		x = right ? ced_expr_op(&p->s, (enum ced_expr_kind)relation_kind(&op),
				    ced_pos_join(x->pos, right->pos), x, right)
			  : NULL;
	}
	if (x && at_relation(p))
		return ced_p_fail_null(p, "no second relation here (use parentheses or &&)");
	return x;
}

static const struct ced_expr *parse_and(struct ced_parser *p)
{
	return left_associative(p, parse_relation, and_kind);
}

static const struct ced_expr *parse_or(struct ced_parser *p)
{
	return left_associative(p, parse_and, or_kind);
}

static const struct ced_expr *parse_if(struct ced_parser *p)
{
	struct ced_pos start = p->t.pos;
	const struct ced_expr *test = ced_p_advance(p) < 0 ? NULL : ced_p_expr(p);
	if (!test || ced_p_expect_word(p, "then") < 0)
		return NULL;
	const struct ced_expr *yes = ced_p_expr(p);
	if (!yes || ced_p_expect_word(p, "else") < 0)
		return NULL;
	const struct ced_expr *no = ced_p_expr(p);
	if (!no)
		return NULL;
	return ced_expr_if(&p->s, ced_pos_join(start, p->last), test, yes, no);
}

const struct ced_expr *ced_p_expr(struct ced_parser *p)
{
	if (p->depth == p->s.limits->nesting) {
		(void)ced_fail_limit(p->s.err, p->t.pos, "nesting", p->s.limits->nesting);
		return NULL;
	}
	p->depth++;
	const struct ced_expr *x = ced_token_is(&p->t, "if") ? parse_if(p) : parse_or(p);
	p->depth--;
	return x;
}
