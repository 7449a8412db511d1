/* Policies: annotations, scope and conditions. Rules answer -1 with the error filled. */
#include "cedar/parser.h"

#include <stdio.h>
#include <stdlib.h>

static int scope_uid(struct ced_parser *p, struct ced_scope *scope)
{
	const struct ced_uid *uid = ced_p_uid(p);
	const struct ced_uid **uids = uid ? ced_new(p->s.arena, const struct ced_uid *) : NULL;
	if (!uids)
		return uid ? ced_arena_fail(p->s.arena, p->s.err, p->t.pos) : -1;
	uids[0] = uid;
	scope->uids = uids;
	scope->count = 1;
	return 0;
}

static int scope_entity(struct ced_parser *p, enum ced_var var, struct ced_scope *scope)
{
	if (!ced_p_at(p, CED_TOKEN_SLOT))
		return scope_uid(p, scope);
	if (var == CED_ACTION || !ced_slice_is(p->t.text, ced_var_name[var])) {
		char want[40];
		(void)snprintf(want, sizeof(want), var == CED_ACTION ? "an action" : "?%s",
			ced_var_name[var]);
		return ced_p_fail(p, want);
	}
	scope->slot = true;
	return ced_p_advance(p);
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

static int scope_list(struct ced_parser *p, struct ced_scope *scope)
{
	size_t base = p->open_count;
	struct ced_pos open = p->t.pos;
	scope->list = true;
	if (ced_p_advance(p) < 0)
		return -1;
	while (!ced_p_at(p, CED_TOKEN_RBRACKET)) {
		struct ced_pos pos = p->t.pos;
		const struct ced_uid *uid = ced_p_uid(p);
		const struct ced_expr *x =
			uid ? ced_expr_literal(&p->s, pos, ced_entity(uid)) : NULL;
		if (!x || ced_p_push(p, NULL, x) < 0)
			return -1;
		if (!ced_p_at(p, CED_TOKEN_COMMA))
			break;
		if (ced_p_advance(p) < 0)
			return -1;
	}
	if (ced_p_expect_close(p, CED_TOKEN_RBRACKET, open) < 0)
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

static int scope_is(struct ced_parser *p, enum ced_var var, struct ced_scope *scope)
{
	if (var == CED_ACTION)
		return ced_p_fail(p, "'==' or `in` (an action has no `is`)");
	if (ced_p_advance(p) < 0)
		return -1;
	scope->op = CED_SCOPE_IS;
	scope->type = ced_p_type(p);
	if (!scope->type)
		return -1;
	if (!ced_token_is(&p->t, "in"))
		return 0;
	scope->op = CED_SCOPE_IS_IN;
	return ced_p_advance(p) < 0 ? -1 : scope_entity(p, var, scope);
}

static int scope_operator(struct ced_parser *p, enum ced_var var, struct ced_scope *scope)
{
	if (ced_p_at(p, CED_TOKEN_EQ)) {
		scope->op = CED_SCOPE_EQ;
		return ced_p_advance(p) < 0 ? -1 : scope_entity(p, var, scope);
	}
	if (ced_token_is(&p->t, "in")) {
		scope->op = CED_SCOPE_IN;
		if (ced_p_advance(p) < 0)
			return -1;
		if (var == CED_ACTION && ced_p_at(p, CED_TOKEN_LBRACKET))
			return scope_list(p, scope);
		return scope_entity(p, var, scope);
	}
	return ced_token_is(&p->t, "is") ? scope_is(p, var, scope) : 0;
}

static int check_action(struct ced_parser *p, const struct ced_scope *scope)
{
	for (uint32_t i = 0; i < scope->count; i++)
		if (!ced_is_action_type(scope->uids[i]->type))
			return ced_fail(p->s.err, CEDAR_E_SYNTAX, scope->pos,
				"an action is of a type `Action`, not `%.100s`",
				scope->uids[i]->type->text);
	return 0;
}

static int parse_scope(struct ced_parser *p, enum ced_var var, struct ced_scope *scope)
{
	scope->pos = p->t.pos;
	if (ced_p_expect_word(p, ced_var_name[var]) < 0 || scope_operator(p, var, scope) < 0)
		return -1;
	scope->pos = ced_pos_join(scope->pos, p->last);
	return var == CED_ACTION ? check_action(p, scope) : 0;
}

static int parse_scopes(struct ced_parser *p, struct ced_policy *policy)
{
	struct ced_pos open = p->t.pos;
	if (ced_p_expect(p, CED_TOKEN_LPAREN) < 0 ||
		parse_scope(p, CED_PRINCIPAL, &policy->principal) < 0 ||
		ced_p_expect(p, CED_TOKEN_COMMA) < 0 ||
		parse_scope(p, CED_ACTION, &policy->action) < 0 ||
		ced_p_expect(p, CED_TOKEN_COMMA) < 0 ||
		parse_scope(p, CED_RESOURCE, &policy->resource) < 0)
		return -1;
	if (ced_p_at(p, CED_TOKEN_COMMA) && ced_p_advance(p) < 0)
		return -1;
	return ced_p_expect_close(p, CED_TOKEN_RPAREN, open);
}

static int parse_annotation(struct ced_parser *p, struct ced_annotation *a)
{
	a->pos = p->t.pos;
	if (ced_p_advance(p) < 0)
		return -1;
	if (!ced_p_at(p, CED_TOKEN_IDENT))
		return ced_p_fail(p, "the name of an annotation");
	a->key = ced_p_intern(p, p->t.text);
	if (!a->key || ced_p_advance(p) < 0)
		return -1;
	if (ced_p_at(p, CED_TOKEN_LPAREN)) {
		struct ced_pos open = p->t.pos;
		if (ced_p_advance(p) < 0)
			return -1;
		a->value = ced_p_take_string(p);
		if (!a->value || ced_p_expect_close(p, CED_TOKEN_RPAREN, open) < 0)
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

static int parse_annotations(struct ced_parser *p, struct ced_policy *policy)
{
	struct ced_annotation all[ANNOTATIONS_MAX];
	uint32_t n = 0;
	for (; ced_p_at(p, CED_TOKEN_AT); n++) {
		if (n == ANNOTATIONS_MAX)
			return ced_fail_limit(
				p->s.err, p->t.pos, "annotations of a policy", ANNOTATIONS_MAX);
		all[n] = (struct ced_annotation){0};
		if (parse_annotation(p, &all[n]) < 0)
			return -1;
	}
	if (n == 0)
		return 0;
	policy->annotation_count = n;
	policy->annotations = ced_arena_copy(p->s.arena, all, n * sizeof(all[0]));
	if (!policy->annotations)
		return ced_arena_fail(p->s.arena, p->s.err, p->t.pos);
	return ced_annotations_check(&p->s, policy->annotations, n);
}

static int parse_condition(struct ced_parser *p, struct ced_condition *c)
{
	*c = (struct ced_condition){.unless = ced_token_is(&p->t, "unless"), .pos = p->t.pos};
	struct ced_pos open = p->next.pos;
	if (ced_p_advance(p) < 0 || ced_p_expect(p, CED_TOKEN_LBRACE) < 0)
		return -1;
	c->body = ced_p_expr(p);
	if (!c->body || ced_p_expect_close(p, CED_TOKEN_RBRACE, open) < 0)
		return -1;
	c->pos = ced_pos_join(c->pos, p->last);
	return 0;
}

/* Conditions are few: they double in the arena. */
static int parse_conditions(struct ced_parser *p, struct ced_policy *policy)
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

static int parse_policy(struct ced_parser *p, struct ced_policy **ret)
{
	struct ced_policy *policy = ced_new(p->s.arena, struct ced_policy);
	if (!policy)
		return ced_arena_fail(p->s.arena, p->s.err, p->t.pos);
	policy->pos = p->t.pos;
	if (parse_annotations(p, policy) < 0)
		return -1;
	bool permit = ced_token_is(&p->t, "permit");
	if (!permit && !ced_token_is(&p->t, "forbid"))
		return ced_p_fail(p, "`permit` or `forbid`");
	policy->effect = permit ? CEDAR_PERMIT : CEDAR_FORBID;
	if (ced_p_advance(p) < 0 || parse_scopes(p, policy) < 0 || parse_conditions(p, policy) < 0)
		return -1;
	if (!ced_p_at(p, CED_TOKEN_SEMICOLON))
		return ced_p_fail(p, "`when`, `unless` or ';'");
	if (ced_p_advance(p) < 0)
		return -1;
	policy->pos = ced_pos_join(policy->pos, p->last);
	*ret = policy;
	return 0;
}

static int parser_init(struct ced_parser *p, const struct ced_source *s, const char *text, size_t n)
{
	*p = (struct ced_parser){.s = *s};
	if (n > s->limits->text_bytes || n > UINT32_MAX)
		return ced_fail_limit(
			s->err, (struct ced_pos){0}, "text_bytes", s->limits->text_bytes);
	ced_lex_init(&p->lex, text, n, s->err);
	int code = ced_lex_next(&p->lex, &p->t);
	if (code == 0)
		code = p->t.kind == CED_TOKEN_END ? 0 : ced_lex_next(&p->lex, &p->next);
	return code;
}

/* Rules answer -1 with the error filled; the code is in the error. */
static int finish(struct ced_parser *p, int code, const struct cedar_error *err)
{
	free(p->open);
	return code < 0 ? err->code : 0;
}

static int run(const struct ced_source *s, const char *text, size_t n,
	int (*body)(struct ced_parser *p, void *ctx), void *ctx)
{
	struct cedar_error err = {0};
	struct ced_source inner = *s;
	struct ced_parser p;
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

static int body_policies(struct ced_parser *p, void *ctx)
{
	const struct sink *sink = ctx;
	while (!ced_p_at(p, CED_TOKEN_END)) {
		struct ced_policy *policy = NULL;
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

static int body_expr(struct ced_parser *p, void *ctx)
{
	const struct ced_expr *x = ced_p_expr(p);
	if (x && !ced_p_at(p, CED_TOKEN_END))
		return ced_p_fail(p, "the end of the expression");
	*(const struct ced_expr **)ctx = x;
	return x ? 0 : -1;
}

int ced_parse_expr(
	const struct ced_source *s, const char *text, size_t n, const struct ced_expr **ret)
{
	const struct ced_expr *x = NULL;
	int code = run(s, text, n, body_expr, &x);
	if (code == 0)
		*ret = x;
	return code;
}

static int body_uid(struct ced_parser *p, void *ctx)
{
	const struct ced_uid *uid = ced_p_uid(p);
	if (uid && !ced_p_at(p, CED_TOKEN_END))
		return ced_p_fail(p, "the end of the entity");
	*(const struct ced_uid **)ctx = uid;
	return uid ? 0 : -1;
}

int ced_parse_uid(
	const struct ced_source *s, const char *text, size_t n, const struct ced_uid **ret)
{
	const struct ced_uid *uid = NULL;
	int code = run(s, text, n, body_uid, &uid);
	if (code == 0)
		*ret = uid;
	return code;
}
