/* [[ ... ]]: bash's conditional expression. && binds tighter than ||, ! tighter than both. */
#include "shell/parser.h"

#include <string.h>

static struct sh_cond *parse_or(struct sh_parser *p);

static struct sh_cond *node(struct sh_parser *p, enum sh_cond_kind kind)
{
	struct sh_cond *c = sh_new(p, sizeof(*c));
	if (c)
		*c = (struct sh_cond){.kind = kind, .pos = sh_token(p)->pos};
	return c;
}

static void newlines(struct sh_parser *p)
{
	while (sh_token(p)->kind == SH_T_NEWLINE)
		sh_take(p);
}

static bool is_unary(struct sh_text t)
{
	return t.len == 2 && t.at[0] == '-' && strchr("abcdefghknoprstuvwxzGLNORS", t.at[1]);
}

static bool is_binary(struct sh_text t)
{
	static const char *const ops[] = {"=", "==", "!=", "=~", "-eq", "-ne", "-lt", "-le", "-gt",
		"-ge", "-nt", "-ot", "-ef", "<", ">"};
	for (size_t i = 0; i < ARRAY_LEN(ops); i++)
		if (sh_text_is(t, ops[i]))
			return true;
	return false;
}

static struct sh_word *take_word(struct sh_parser *p)
{
	if (sh_token(p)->kind != SH_T_WORD || sh_is_word(p, "]]")) {
		sh_fail(p, sh_token(p)->pos, "an operand is missing in [[");
		return NULL;
	}
	struct sh_word *w = p->ahead.word;
	sh_take(p);
	return w;
}

static struct sh_cond *parse_operands(struct sh_parser *p)
{
	struct sh_cond *c = node(p, SH_COND_WORD);
	struct sh_text text = sh_token(p)->text;
	if (!c || !(c->left = take_word(p)))
		return c;
	const struct sh_token *t = sh_token(p);
	bool word = t->kind == SH_T_WORD && !sh_is_word(p, "]]");
	if ((word || t->kind == SH_T_REDIRECT) && is_binary(t->text)) {
		c->kind = SH_COND_BINARY;
		c->op = t->text;
		sh_take(p);
		c->right = sh_text_is(c->op, "=~") ? sh_scan_regex(p) : take_word(p);
	} else if (word && is_unary(text)) {
		c->kind = SH_COND_UNARY;
		c->op = text;
		c->left = take_word(p);
	}
	return c;
}

static struct sh_cond *parse_primary(struct sh_parser *p)
{
	struct sh_cond *c;
	newlines(p);
	if (sh_is_op(p, "(")) {
		if (!(c = node(p, SH_COND_PAREN)) || !sh_enter(p))
			return c;
		sh_take(p);
		c->a = parse_or(p);
		if (!sh_is_op(p, ")"))
			sh_fail(p, sh_token(p)->pos, "a ( in [[ that nothing closes");
		sh_take(p);
		sh_leave(p);
	} else if (sh_is_word(p, "!")) {
		if (!(c = node(p, SH_COND_NOT)) || !sh_enter(p))
			return c;
		sh_take(p);
		c->a = parse_primary(p);
		sh_leave(p);
	} else {
		c = parse_operands(p);
	}
	newlines(p);
	return c;
}

static struct sh_cond *join(struct sh_parser *p, enum sh_cond_kind kind, struct sh_cond *a)
{
	struct sh_cond *c = node(p, kind);
	if (!c)
		return NULL;
	if (++p->joins > SH_MAX_JOINS)
		sh_fail_limit(p, "conditions in one [[", SH_MAX_JOINS);
	c->a = a;
	sh_take(p);
	c->b = kind == SH_COND_AND ? parse_primary(p) : NULL;
	return c;
}

static struct sh_cond *parse_and(struct sh_parser *p)
{
	struct sh_cond *c = parse_primary(p);
	while (!p->failed && sh_is_op(p, "&&"))
		c = join(p, SH_COND_AND, c);
	return c;
}

static struct sh_cond *parse_or(struct sh_parser *p)
{
	struct sh_cond *c = parse_and(p);
	while (!p->failed && sh_is_op(p, "||")) {
		if (!(c = join(p, SH_COND_OR, c)))
			break;
		c->b = parse_and(p);
	}
	return c;
}

struct sh_cond *sh_parse_cond(struct sh_parser *p)
{
	p->pattern = true;
	p->joins = 0;
	sh_take(p);
	struct sh_cond *c = parse_or(p);
	p->pattern = false;
	if (!sh_is_word(p, "]]"))
		sh_fail(p, sh_token(p)->pos, "a [[ that nothing closes");
	sh_take(p);
	return c;
}
