/*
 * Recursive descent over the tokens of a policy text.
 *
 * One function per rule of the grammar; each returns NULL (or a negative code) with the error
 * filled. The parser recurses only through parse_expr(), which counts the depth.
 */
#include "cedar/parse.h"
#include "cedar/out.h"

#include <stdio.h>
#include <stdlib.h>

/* At most this many `!` or `-` in a row, by the language's definition. */
enum { UNARY_MAX = 4 };

struct parser {
	struct ced_source s;
	struct ced_lexer lex;
	struct ced_token t, next; /* the current token and the one after it */
	struct ced_pos last;      /* of the token before the current one */
	uint32_t depth;
	/* Elements of the lists that are still open; each list copies its own to the arena. */
	struct ced_entry *open;
	size_t open_count, open_capacity;
};

static int advance(struct parser *p)
{
	p->last = p->t.pos;
	p->t = p->next;
	if (p->t.kind == CED_TOKEN_END)
		return 0;
	return ced_lex_next(&p->lex, &p->next);
}

static int parser_init(struct parser *p, const struct ced_source *s, const char *text, size_t n)
{
	*p = (struct parser){.s = *s};
	if (n > s->limits->text_bytes || n > UINT32_MAX)
		return ced_fail_limit(
			s->err, (struct ced_pos){0}, "text_bytes", s->limits->text_bytes);
	ced_lex_init(&p->lex, text, n, s->err);
	int code = ced_lex_next(&p->lex, &p->t);
	if (code == 0)
		code = p->t.kind == CED_TOKEN_END ? 0 : ced_lex_next(&p->lex, &p->next);
	return code;
}

static int fail(struct parser *p, const char *expected)
{
	bool word = p->t.text.n && p->t.kind <= CED_TOKEN_SLOT;
	return ced_fail(p->s.err, CEDAR_E_SYNTAX, p->t.pos, "expected %s, found %s%s%.*s%s",
		expected, ced_token_name(p->t.kind), word ? " `" : "",
		word ? (int)(p->t.text.n < 60 ? p->t.text.n : 60) : 0, word ? p->t.text.p : "",
		word ? "`" : "");
}

static void *fail_null(struct parser *p, const char *expected)
{
	(void)fail(p, expected);
	return NULL;
}

static void *memory_null(struct parser *p)
{
	(void)ced_arena_fail(p->s.arena, p->s.err, p->t.pos);
	return NULL;
}

static bool at(const struct parser *p, enum ced_token_kind kind)
{
	return p->t.kind == kind;
}

static int expect(struct parser *p, enum ced_token_kind kind)
{
	return at(p, kind) ? advance(p) : fail(p, ced_token_name(kind));
}

/* The closing one of a pair; the error says where the pair was opened. */
static int expect_close(struct parser *p, enum ced_token_kind kind, struct ced_pos open)
{
	char what[80];
	if (at(p, kind))
		return advance(p);
	(void)snprintf(what, sizeof(what), "%s (to close what line %u, column %u opened)",
		ced_token_name(kind), open.line, open.column);
	return fail(p, what);
}

static const struct ced_name *intern(struct parser *p, struct ced_slice s)
{
	const struct ced_name *name = ced_intern(p->s.names, s.p, s.n);
	return name ? name : memory_null(p);
}

/* The string token's characters; moves over it. */
static const struct ced_name *take_string(struct parser *p)
{
	struct ced_slice s;
	if (!at(p, CED_TOKEN_STRING))
		return fail_null(p, "a string");
	if (ced_unescape(p->s.arena, &p->t, &s, p->s.err) < 0)
		return NULL;
	const struct ced_name *name = intern(p, s);
	return name && advance(p) == 0 ? name : NULL;
}

/* An identifier that may name an attribute or a part of a type. */
static const struct ced_name *take_name(struct parser *p, const char *what)
{
	if (!at(p, CED_TOKEN_IDENT))
		return fail_null(p, what);
	if (ced_is_reserved(p->t.text)) {
		(void)ced_fail(p->s.err, CEDAR_E_SYNTAX, p->t.pos,
			"`%.*s` is reserved and cannot be used as %s", (int)p->t.text.n,
			p->t.text.p, what);
		return NULL;
	}
	const struct ced_name *name = intern(p, p->t.text);
	return name && advance(p) == 0 ? name : NULL;
}

/* -- Lists that grow ------------------------------------------------------------------------ */

static int push(struct parser *p, const struct ced_name *key, const struct ced_expr *value)
{
	if (p->open_count == p->open_capacity) {
		size_t capacity = p->open_capacity ? p->open_capacity * 2 : 32;
		struct ced_entry *open = realloc(p->open, capacity * sizeof(*open));
		if (!open)
			return ced_fail_memory(p->s.err);
		p->open = open;
		p->open_capacity = capacity;
	}
	p->open[p->open_count++] = (struct ced_entry){key, value};
	return 0;
}

/* -- Types and entities --------------------------------------------------------------------- */

/* Names joined by "::", the first already taken; stops before a '::' that no name follows. */
static const struct ced_name *take_path_rest(struct parser *p, const struct ced_name *first)
{
	struct ced_out path = {0};
	ced_out_name(&path, first);
	while (at(p, CED_TOKEN_PATH) && p->next.kind == CED_TOKEN_IDENT) {
		const struct ced_name *part =
			advance(p) < 0 ? NULL : take_name(p, "a part of a type");
		if (!part) {
			free(path.data);
			return NULL;
		}
		ced_out_text(&path, "::");
		ced_out_name(&path, part);
	}
	const struct ced_name *name = NULL;
	if (path.failed)
		(void)ced_fail_memory(p->s.err);
	else
		name = intern(p, (struct ced_slice){path.data, path.length});
	free(path.data);
	return name;
}

static const struct ced_name *parse_type(struct parser *p)
{
	const struct ced_name *first = take_name(p, "an entity type");
	if (!first)
		return NULL;
	const struct ced_name *type = at(p, CED_TOKEN_PATH) ? take_path_rest(p, first) : first;
	if (type && at(p, CED_TOKEN_PATH))
		return fail_null(p, "a type, not an entity");
	return type;
}

/* At the '::' before the id. */
static const struct ced_uid *parse_uid_rest(struct parser *p, const struct ced_name *first)
{
	const struct ced_name *type = take_path_rest(p, first);
	if (!type)
		return NULL;
	if (!at(p, CED_TOKEN_PATH))
		return fail_null(p, "'::' and the id of an entity");
	if (advance(p) < 0)
		return NULL;
	if (!at(p, CED_TOKEN_STRING))
		return fail_null(p, "the id of an entity in quotes");
	const struct ced_name *id = take_string(p);
	if (!id)
		return NULL;
	const struct ced_uid *uid = ced_uid_make(p->s.arena, type, id);
	return uid ? uid : memory_null(p);
}

static const struct ced_uid *parse_uid(struct parser *p)
{
	const struct ced_name *first = take_name(p, "an entity type");
	return first ? parse_uid_rest(p, first) : NULL;
}

/* -- Expressions ---------------------------------------------------------------------------- */

static const struct ced_expr *parse_expr(struct parser *p);
static const struct ced_expr *parse_member(struct parser *p);

/* Expressions separated by commas up to `close`, onto the stack. */
static int parse_items(struct parser *p, enum ced_token_kind close)
{
	while (!at(p, close)) {
		const struct ced_expr *x = parse_expr(p);
		if (!x)
			return -1;
		if (push(p, NULL, x) < 0)
			return -1;
		if (at(p, close))
			break;
		if (!at(p, CED_TOKEN_COMMA))
			return fail(p, close == CED_TOKEN_RBRACKET ? "',' or ']'" : "',' or ')'");
		if (advance(p) < 0)
			return -1;
	}
	return advance(p);
}

static const struct ced_expr *parse_set(struct parser *p)
{
	struct ced_pos start = p->t.pos;
	size_t base = p->open_count;
	if (advance(p) < 0 || parse_items(p, CED_TOKEN_RBRACKET) < 0)
		return NULL;
	const struct ced_expr *x = ced_expr_set(&p->s, ced_pos_join(start, p->last), p->open + base,
		(uint32_t)(p->open_count - base));
	p->open_count = base;
	return x;
}

static int parse_record_entry(struct parser *p)
{
	const struct ced_name *key =
		at(p, CED_TOKEN_STRING) ? take_string(p) : take_name(p, "a key of a record");
	if (!key || expect(p, CED_TOKEN_COLON) < 0)
		return -1;
	const struct ced_expr *value = parse_expr(p);
	return value ? push(p, key, value) : -1;
}

static const struct ced_expr *parse_record(struct parser *p)
{
	struct ced_pos start = p->t.pos;
	size_t base = p->open_count;
	if (advance(p) < 0)
		return NULL;
	while (!at(p, CED_TOKEN_RBRACE)) {
		if (parse_record_entry(p) < 0)
			return NULL;
		if (at(p, CED_TOKEN_RBRACE))
			break;
		if (!at(p, CED_TOKEN_COMMA))
			return fail_null(p, "',' or '}'");
		if (advance(p) < 0)
			return NULL;
	}
	if (advance(p) < 0)
		return NULL;
	const struct ced_expr *x = ced_expr_record(&p->s, ced_pos_join(start, p->last),
		p->open + base, (uint32_t)(p->open_count - base));
	p->open_count = base;
	return x;
}

static const struct ced_expr *parse_parentheses(struct parser *p)
{
	struct ced_pos open = p->t.pos;
	if (advance(p) < 0)
		return NULL;
	const struct ced_expr *x = parse_expr(p);
	return x && expect_close(p, CED_TOKEN_RPAREN, open) == 0 ? x : NULL;
}

static const struct ced_expr *parse_number(struct parser *p)
{
	if (p->t.number > INT64_MAX) {
		(void)ced_fail(p->s.err, CEDAR_E_VALUE, p->t.pos,
			"this number is larger than 9223372036854775807");
		return NULL;
	}
	const struct ced_expr *x =
		ced_expr_literal(&p->s, p->t.pos, ced_number(CED_LONG, (int64_t)p->t.number));
	return x && advance(p) == 0 ? x : NULL;
}

/* The arguments of an extension function or method; the receiver, if any, is already pushed. At
 * the '('. */
static const struct ced_expr *parse_call(
	struct parser *p, enum ced_fn fn, struct ced_pos start, size_t base)
{
	if (advance(p) < 0 || parse_items(p, CED_TOKEN_RPAREN) < 0)
		return NULL;
	const struct ced_expr *x = ced_expr_call(&p->s, ced_pos_join(start, p->last), fn,
		p->open + base, (uint32_t)(p->open_count - base));
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

static const struct ced_expr *parse_function(struct parser *p, const struct ced_token *name)
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
static const struct ced_expr *parse_named(struct parser *p)
{
	struct ced_token word = p->t;
	int var = find_var(word.text);
	if (var >= 0 && p->next.kind != CED_TOKEN_PATH && p->next.kind != CED_TOKEN_LPAREN) {
		const struct ced_expr *x = ced_expr_var(&p->s, word.pos, (enum ced_var)var);
		return x && advance(p) == 0 ? x : NULL;
	}
	const struct ced_name *first = take_name(p, "an expression");
	if (!first)
		return NULL;
	if (at(p, CED_TOKEN_LPAREN))
		return parse_function(p, &word);
	if (!at(p, CED_TOKEN_PATH)) {
		(void)ced_fail(p->s.err, CEDAR_E_SYNTAX, word.pos,
			"there is no variable `%.*s`: the variables are principal, action, "
			"resource and context, and strings stand in quotes",
			(int)(word.text.n < 60 ? word.text.n : 60), word.text.p);
		return NULL;
	}
	const struct ced_uid *uid = parse_uid_rest(p, first);
	if (!uid)
		return NULL;
	return ced_expr_literal(&p->s, ced_pos_join(word.pos, p->last), ced_entity(uid));
}

static const struct ced_expr *parse_primary(struct parser *p)
{
	struct ced_pos pos = p->t.pos;
	switch ((int)p->t.kind) {
	case CED_TOKEN_NUMBER: return parse_number(p);
	case CED_TOKEN_LPAREN: return parse_parentheses(p);
	case CED_TOKEN_LBRACKET: return parse_set(p);
	case CED_TOKEN_LBRACE: return parse_record(p);
	case CED_TOKEN_STRING: {
		const struct ced_name *s = take_string(p);
		return s ? ced_expr_literal(&p->s, pos, ced_string(s)) : NULL;
	}
	case CED_TOKEN_SLOT: return fail_null(p, "an expression (slots stand only in the scope)");
	case CED_TOKEN_IDENT: break;
	default: return fail_null(p, "an expression");
	}
	bool yes = ced_token_is(&p->t, "true");
	if (yes || ced_token_is(&p->t, "false")) {
		const struct ced_expr *x = ced_expr_literal(&p->s, pos, ced_bool(yes));
		return x && advance(p) == 0 ? x : NULL;
	}
	if (ced_token_is(&p->t, "if"))
		return fail_null(p, "an operand (an `if` inside of operators needs parentheses)");
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

static const struct ced_expr *parse_builtin_method(struct parser *p, enum ced_expr_kind kind,
	const struct ced_expr *receiver, const struct ced_token *name)
{
	size_t base = p->open_count;
	uint32_t want = kind == CED_EXPR_IS_EMPTY ? 0 : 1;
	if (advance(p) < 0 || parse_items(p, CED_TOKEN_RPAREN) < 0)
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
	struct parser *p, const struct ced_expr *receiver, const struct ced_token *name)
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
	if (push(p, NULL, receiver) < 0)
		return NULL;
	return parse_call(p, (enum ced_fn)fn, receiver->pos, base);
}

static const struct ced_expr *parse_dot(struct parser *p, const struct ced_expr *left)
{
	if (advance(p) < 0)
		return NULL;
	struct ced_token name = p->t;
	const struct ced_name *attr = take_name(p, "the name of an attribute");
	if (!attr)
		return NULL;
	if (at(p, CED_TOKEN_LPAREN))
		return parse_method(p, left, &name);
	return ced_expr_get(&p->s, ced_pos_join(left->pos, p->last), left, attr);
}

static const struct ced_expr *parse_index(struct parser *p, const struct ced_expr *left)
{
	struct ced_pos open = p->t.pos;
	if (advance(p) < 0)
		return NULL;
	if (!at(p, CED_TOKEN_STRING))
		return fail_null(p, "the name of an attribute in quotes");
	const struct ced_name *attr = take_string(p);
	if (!attr || expect_close(p, CED_TOKEN_RBRACKET, open) < 0)
		return NULL;
	return ced_expr_get(&p->s, ced_pos_join(left->pos, p->last), left, attr);
}

static const struct ced_expr *parse_member(struct parser *p)
{
	const struct ced_expr *x = parse_primary(p);
	while (x && (at(p, CED_TOKEN_DOT) || at(p, CED_TOKEN_LBRACKET)))
		x = at(p, CED_TOKEN_DOT) ? parse_dot(p, x) : parse_index(p, x);
	return x;
}

/* A number directly after its sign is one literal, unless something is accessed of it. */
static bool at_negative_literal(const struct parser *p)
{
	return at(p, CED_TOKEN_NUMBER) && p->next.kind != CED_TOKEN_DOT &&
	       p->next.kind != CED_TOKEN_LBRACKET;
}

static const struct ced_expr *negative_literal(struct parser *p, struct ced_pos minus)
{
	uint64_t n = p->t.number;
	if (n > (uint64_t)INT64_MAX + 1) {
		(void)ced_fail(p->s.err, CEDAR_E_VALUE, p->t.pos,
			"this number is smaller than -9223372036854775808");
		return NULL;
	}
	const struct ced_expr *x = ced_expr_literal(
		&p->s, ced_pos_join(minus, p->t.pos), ced_number(CED_LONG, (int64_t)(0 - n)));
	return x && advance(p) == 0 ? x : NULL;
}

static const struct ced_expr *parse_unary(struct parser *p)
{
	struct ced_pos signs[UNARY_MAX];
	enum ced_token_kind sign = p->t.kind;
	uint32_t n = 0;
	if (sign != CED_TOKEN_NOT && sign != CED_TOKEN_MINUS)
		return parse_member(p);
	for (; at(p, sign); n++) {
		if (n == UNARY_MAX)
			return fail_null(p, "at most four of one unary operator in a row");
		signs[n] = p->t.pos;
		if (advance(p) < 0)
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

typedef const struct ced_expr *(*rule)(struct parser *p);

/* Operands of `next`, joined from the left by the operators that `kind_of` knows. */
static const struct ced_expr *left_associative(
	struct parser *p, rule next, int (*kind_of)(enum ced_token_kind))
{
	const struct ced_expr *x = next(p);
	while (x && kind_of(p->t.kind) >= 0) {
		enum ced_expr_kind kind = (enum ced_expr_kind)kind_of(p->t.kind);
		const struct ced_expr *right = advance(p) < 0 ? NULL : next(p);
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

static const struct ced_expr *parse_mul(struct parser *p)
{
	return left_associative(p, parse_unary, mul_kind);
}

static const struct ced_expr *parse_add(struct parser *p)
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

static const struct ced_expr *parse_has(struct parser *p, const struct ced_expr *left)
{
	const struct ced_name *path_room[8], **path = path_room;
	uint32_t n = 0;
	if (at(p, CED_TOKEN_STRING)) {
		path[0] = take_string(p);
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
				return memory_null(p);
			path = memcpy(more, path, n * sizeof(*path));
		}
		path[n] = take_name(p, "the name of an attribute");
		if (!path[n++])
			return NULL;
		if (!at(p, CED_TOKEN_DOT))
			break;
		if (advance(p) < 0)
			return NULL;
	}
	return ced_expr_has(&p->s, ced_pos_join(left->pos, p->last), left, path, n);
}

static const struct ced_expr *parse_like(struct parser *p, const struct ced_expr *left)
{
	const struct ced_pattern *pattern;
	if (!at(p, CED_TOKEN_STRING))
		return fail_null(p, "a pattern in quotes");
	if (ced_unescape_pattern(p->s.names, &p->t, &pattern, p->s.err) < 0 || advance(p) < 0)
		return NULL;
	return ced_expr_like(&p->s, ced_pos_join(left->pos, p->last), left, pattern);
}

static const struct ced_expr *parse_is(struct parser *p, const struct ced_expr *left)
{
	const struct ced_expr *in = NULL;
	const struct ced_name *type = parse_type(p);
	if (!type)
		return NULL;
	if (ced_token_is(&p->t, "in")) {
		in = advance(p) < 0 ? NULL : parse_add(p);
		if (!in)
			return NULL;
	}
	return ced_expr_is(&p->s, ced_pos_join(left->pos, p->last), left, type, in);
}

static bool at_relation(const struct parser *p)
{
	return relation_kind(&p->t) >= 0 || ced_token_is(&p->t, "has") ||
	       ced_token_is(&p->t, "like") || ced_token_is(&p->t, "is");
}

static const struct ced_expr *parse_relation(struct parser *p)
{
	const struct ced_expr *x = parse_add(p);
	if (!x || !at_relation(p))
		return x;
	struct ced_token op = p->t;
	if (advance(p) < 0)
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
		return fail_null(p, "no second relation here (use parentheses or &&)");
	return x;
}

static const struct ced_expr *parse_and(struct parser *p)
{
	return left_associative(p, parse_relation, and_kind);
}

static const struct ced_expr *parse_or(struct parser *p)
{
	return left_associative(p, parse_and, or_kind);
}

static int expect_word(struct parser *p, const char *word)
{
	char quoted[16];
	if (ced_token_is(&p->t, word))
		return advance(p);
	(void)snprintf(quoted, sizeof(quoted), "`%s`", word);
	return fail(p, quoted);
}

static const struct ced_expr *parse_if(struct parser *p)
{
	struct ced_pos start = p->t.pos;
	const struct ced_expr *test = advance(p) < 0 ? NULL : parse_expr(p);
	if (!test || expect_word(p, "then") < 0)
		return NULL;
	const struct ced_expr *yes = parse_expr(p);
	if (!yes || expect_word(p, "else") < 0)
		return NULL;
	const struct ced_expr *no = parse_expr(p);
	if (!no)
		return NULL;
	return ced_expr_if(&p->s, ced_pos_join(start, p->last), test, yes, no);
}

static const struct ced_expr *parse_expr(struct parser *p)
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

/* -- Policies ------------------------------------------------------------------------------- */

static int scope_uid(struct parser *p, struct ced_scope *scope)
{
	const struct ced_uid *uid = parse_uid(p);
	const struct ced_uid **uids = uid ? ced_new(p->s.arena, const struct ced_uid *) : NULL;
	if (!uids)
		return uid ? ced_arena_fail(p->s.arena, p->s.err, p->t.pos) : -1;
	uids[0] = uid;
	scope->uids = uids;
	scope->count = 1;
	return 0;
}

static int scope_entity(struct parser *p, enum ced_var var, struct ced_scope *scope)
{
	if (!at(p, CED_TOKEN_SLOT))
		return scope_uid(p, scope);
	if (var == CED_ACTION || !ced_slice_is(p->t.text, ced_var_name[var])) {
		char want[40];
		(void)snprintf(want, sizeof(want), var == CED_ACTION ? "an action" : "?%s",
			ced_var_name[var]);
		return fail(p, want);
	}
	scope->slot = true;
	return advance(p);
}

/* "NS::Action", whatever comes before. */
bool ced_is_action_type(const struct ced_name *type)
{
	static const char base[] = "Action";
	size_t n = sizeof(base) - 1;
	if (type->length < n || memcmp(type->text + type->length - n, base, n) != 0)
		return false;
	return type->length == n || type->text[type->length - n - 1] == ':';
}

static int scope_list(struct parser *p, struct ced_scope *scope)
{
	size_t base = p->open_count;
	struct ced_pos open = p->t.pos;
	scope->list = true;
	if (advance(p) < 0)
		return -1;
	while (!at(p, CED_TOKEN_RBRACKET)) {
		struct ced_pos pos = p->t.pos;
		const struct ced_uid *uid = parse_uid(p);
		const struct ced_expr *x =
			uid ? ced_expr_literal(&p->s, pos, ced_entity(uid)) : NULL;
		if (!x || push(p, NULL, x) < 0)
			return -1;
		if (!at(p, CED_TOKEN_COMMA))
			break;
		if (advance(p) < 0)
			return -1;
	}
	if (expect_close(p, CED_TOKEN_RBRACKET, open) < 0)
		return -1;
	scope->count = (uint32_t)(p->open_count - base);
	const struct ced_uid **uids =
		ced_new_array(p->s.arena, scope->count, const struct ced_uid *);
	if (!uids)
		return ced_arena_fail(p->s.arena, p->s.err, open);
	for (uint32_t i = 0; i < scope->count; i++)
		uids[i] = p->open[base + i].value->u.literal.u.uid;
	scope->uids = uids;
	/* The official JSON form cannot tell a list of one from its one entity. */
	scope->list = scope->count != 1;
	p->open_count = base;
	return 0;
}

static int scope_is(struct parser *p, enum ced_var var, struct ced_scope *scope)
{
	if (var == CED_ACTION)
		return fail(p, "'==' or `in` (an action has no `is`)");
	if (advance(p) < 0)
		return -1;
	scope->op = CED_SCOPE_IS;
	scope->type = parse_type(p);
	if (!scope->type)
		return -1;
	if (!ced_token_is(&p->t, "in"))
		return 0;
	scope->op = CED_SCOPE_IS_IN;
	return advance(p) < 0 ? -1 : scope_entity(p, var, scope);
}

static int scope_operator(struct parser *p, enum ced_var var, struct ced_scope *scope)
{
	if (at(p, CED_TOKEN_EQ)) {
		scope->op = CED_SCOPE_EQ;
		return advance(p) < 0 ? -1 : scope_entity(p, var, scope);
	}
	if (ced_token_is(&p->t, "in")) {
		scope->op = CED_SCOPE_IN;
		if (advance(p) < 0)
			return -1;
		if (var == CED_ACTION && at(p, CED_TOKEN_LBRACKET))
			return scope_list(p, scope);
		return scope_entity(p, var, scope);
	}
	return ced_token_is(&p->t, "is") ? scope_is(p, var, scope) : 0;
}

static int check_action(struct parser *p, const struct ced_scope *scope)
{
	for (uint32_t i = 0; i < scope->count; i++)
		if (!ced_is_action_type(scope->uids[i]->type))
			return ced_fail(p->s.err, CEDAR_E_SYNTAX, scope->pos,
				"an action is of a type `Action`, not `%.100s`",
				scope->uids[i]->type->text);
	return 0;
}

static int parse_scope(struct parser *p, enum ced_var var, struct ced_scope *scope)
{
	scope->pos = p->t.pos;
	if (expect_word(p, ced_var_name[var]) < 0 || scope_operator(p, var, scope) < 0)
		return -1;
	scope->pos = ced_pos_join(scope->pos, p->last);
	return var == CED_ACTION ? check_action(p, scope) : 0;
}

static int parse_scopes(struct parser *p, struct ced_policy *policy)
{
	struct ced_pos open = p->t.pos;
	if (expect(p, CED_TOKEN_LPAREN) < 0 ||
		parse_scope(p, CED_PRINCIPAL, &policy->principal) < 0 ||
		expect(p, CED_TOKEN_COMMA) < 0 || parse_scope(p, CED_ACTION, &policy->action) < 0 ||
		expect(p, CED_TOKEN_COMMA) < 0 ||
		parse_scope(p, CED_RESOURCE, &policy->resource) < 0)
		return -1;
	if (at(p, CED_TOKEN_COMMA) && advance(p) < 0)
		return -1;
	return expect_close(p, CED_TOKEN_RPAREN, open);
}

static int parse_annotation(struct parser *p, struct ced_annotation *a)
{
	a->pos = p->t.pos;
	if (advance(p) < 0)
		return -1;
	if (!at(p, CED_TOKEN_IDENT))
		return fail(p, "the name of an annotation");
	a->key = intern(p, p->t.text);
	if (!a->key || advance(p) < 0)
		return -1;
	if (at(p, CED_TOKEN_LPAREN)) {
		struct ced_pos open = p->t.pos;
		if (advance(p) < 0)
			return -1;
		a->value = take_string(p);
		if (!a->value || expect_close(p, CED_TOKEN_RPAREN, open) < 0)
			return -1;
	}
	a->pos = ced_pos_join(a->pos, p->last);
	return 0;
}

int ced_annotations_check(const struct ced_source *s, const struct ced_annotation *a, uint32_t n)
{
	/* Names of one table: equal ones are one pointer. */
	for (uint32_t i = 1; i < n; i++)
		for (uint32_t j = 0; j < i; j++)
			if (a[i].key == a[j].key)
				return ced_fail(s->err, CEDAR_E_DUPLICATE, a[i].pos,
					"the annotation @%.100s appears twice", a[i].key->text);
	return 0;
}

enum { ANNOTATIONS_MAX = 64, CONDITIONS_MAX = 1024 };

static int parse_annotations(struct parser *p, struct ced_policy *policy)
{
	struct ced_annotation all[ANNOTATIONS_MAX];
	uint32_t n = 0;
	for (; at(p, CED_TOKEN_AT); n++) {
		if (n == ANNOTATIONS_MAX)
			return ced_fail_limit(
				p->s.err, p->t.pos, "annotations of a policy", ANNOTATIONS_MAX);
		all[n] = (struct ced_annotation){0};
		if (parse_annotation(p, &all[n]) < 0)
			return -1;
	}
	policy->annotation_count = n;
	policy->annotations = ced_arena_copy(p->s.arena, all, n * sizeof(all[0]));
	if (!policy->annotations)
		return ced_arena_fail(p->s.arena, p->s.err, p->t.pos);
	return ced_annotations_check(&p->s, policy->annotations, n);
}

static int parse_condition(struct parser *p, struct ced_condition *c)
{
	*c = (struct ced_condition){.unless = ced_token_is(&p->t, "unless"), .pos = p->t.pos};
	struct ced_pos open = p->next.pos;
	if (advance(p) < 0 || expect(p, CED_TOKEN_LBRACE) < 0)
		return -1;
	c->body = parse_expr(p);
	if (!c->body || expect_close(p, CED_TOKEN_RBRACE, open) < 0)
		return -1;
	c->pos = ced_pos_join(c->pos, p->last);
	return 0;
}

/* Conditions are few: they double in the arena. */
static int parse_conditions(struct parser *p, struct ced_policy *policy)
{
	struct ced_condition *all = NULL;
	uint32_t n = 0, capacity = 0;
	for (; ced_token_is(&p->t, "when") || ced_token_is(&p->t, "unless"); n++) {
		if (n == CONDITIONS_MAX)
			return ced_fail_limit(
				p->s.err, p->t.pos, "conditions of a policy", CONDITIONS_MAX);
		if (n == capacity) {
			capacity = capacity ? capacity * 2 : 1;
			struct ced_condition *more =
				ced_new_array(p->s.arena, capacity, struct ced_condition);
			if (!more)
				return ced_arena_fail(p->s.arena, p->s.err, p->t.pos);
			if (n)
				memcpy(more, all, n * sizeof(*all));
			all = more;
		}
		if (parse_condition(p, &all[n]) < 0)
			return -1;
	}
	policy->conditions = all;
	policy->condition_count = n;
	return 0;
}

static int parse_policy(struct parser *p, struct ced_policy **ret)
{
	struct ced_policy *policy = ced_new(p->s.arena, struct ced_policy);
	if (!policy)
		return ced_arena_fail(p->s.arena, p->s.err, p->t.pos);
	policy->pos = p->t.pos;
	if (parse_annotations(p, policy) < 0)
		return -1;
	bool permit = ced_token_is(&p->t, "permit");
	if (!permit && !ced_token_is(&p->t, "forbid"))
		return fail(p, "`permit` or `forbid`");
	policy->effect = permit ? CEDAR_PERMIT : CEDAR_FORBID;
	if (advance(p) < 0 || parse_scopes(p, policy) < 0 || parse_conditions(p, policy) < 0)
		return -1;
	if (!at(p, CED_TOKEN_SEMICOLON))
		return fail(p, "`when`, `unless` or ';'");
	if (advance(p) < 0)
		return -1;
	policy->pos = ced_pos_join(policy->pos, p->last);
	*ret = policy;
	return 0;
}

/* Rules answer -1 with the error filled; the code is in the error. */
static int finish(struct parser *p, int code, const struct cedar_error *err)
{
	free(p->open);
	return code < 0 ? err->code : 0;
}

static int run(const struct ced_source *s, const char *text, size_t n,
	int (*body)(struct parser *p, void *ctx), void *ctx)
{
	struct cedar_error err = {0};
	struct ced_source inner = *s;
	struct parser p;
	inner.err = &err;
	int code = parser_init(&p, &inner, text, n);
	if (code == 0)
		code = body(&p, ctx);
	code = finish(&p, code, &err);
	if (code < 0 && s->err)
		*s->err = err;
	return code;
}

struct sink {
	ced_take_policy take;
	void *ctx;
};

static int body_policies(struct parser *p, void *ctx)
{
	const struct sink *sink = ctx;
	while (!at(p, CED_TOKEN_END)) {
		struct ced_policy *policy;
		if (parse_policy(p, &policy) < 0)
			return -1;
		int code = sink->take(sink->ctx, policy, p->s.err);
		if (code < 0)
			return code;
	}
	return 0;
}

int ced_parse_policies(
	const struct ced_source *s, const char *text, size_t n, ced_take_policy take, void *ctx)
{
	struct sink sink = {take, ctx};
	return run(s, text, n, body_policies, &sink);
}

static int body_expr(struct parser *p, void *ctx)
{
	const struct ced_expr *x = parse_expr(p);
	if (x && !at(p, CED_TOKEN_END))
		return fail(p, "the end of the expression");
	*(const struct ced_expr **)ctx = x;
	return x ? 0 : -1;
}

int ced_parse_expr(
	const struct ced_source *s, const char *text, size_t n, const struct ced_expr **ret)
{
	const struct ced_expr *x;
	int code = run(s, text, n, body_expr, &x);
	if (code == 0)
		*ret = x;
	return code;
}

static int body_uid(struct parser *p, void *ctx)
{
	const struct ced_uid *uid = parse_uid(p);
	if (uid && !at(p, CED_TOKEN_END))
		return fail(p, "the end of the entity");
	*(const struct ced_uid **)ctx = uid;
	return uid ? 0 : -1;
}

int ced_parse_uid(
	const struct ced_source *s, const char *text, size_t n, const struct ced_uid **ret)
{
	const struct ced_uid *uid;
	int code = run(s, text, n, body_uid, &uid);
	if (code == 0)
		*ret = uid;
	return code;
}
