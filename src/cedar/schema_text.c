/*
 * Reads the schema text notation into a tree.
 *
 * A recursive descent parser over the tokens of the policy language, with one token of lookahead.
 * What the published grammar leaves open is settled as the official engine does: no trailing comma
 * in a list, one in records and in `appliesTo`; keywords are names everywhere, only the reserved
 * words of the policy language are not; a later attribute of the same name replaces the earlier.
 *
 * Only types nest, so only types recurse; the limit "nesting" bounds them.
 */
#include "cedar/schema_read.h"

#include <stdio.h>

#include "cedar/lex.h"
#include "cedar/slice.h"

struct parser {
	struct ced_sch_reader r;
	struct ced_lexer lex;
	struct ced_token tok;  /* not consumed yet */
	struct ced_slice text; /* of `tok`: an identifier, or a string without its escapes */
};

static int advance(struct parser *p)
{
	int r = ced_lex_next(&p->lex, &p->tok);

	p->text = p->tok.text;
	if (r == 0 && p->tok.kind == CED_TOKEN_STRING)
		r = ced_unescape(p->r.arena, &p->tok, &p->text, p->r.err);
	return r;
}

/* ---- small steps ---- */

static bool at(const struct parser *p, enum ced_token_kind kind)
{
	return p->tok.kind == kind;
}

static bool at_word(const struct parser *p, const char *word)
{
	return ced_token_is(&p->tok, word);
}

static int unexpected(struct parser *p, const char *wanted)
{
	if (at(p, CED_TOKEN_END))
		return ced_fail(p->r.err, CEDAR_E_SYNTAX, p->tok.pos,
			"the schema ends where %s should be", wanted);
	if (at(p, CED_TOKEN_IDENT))
		return ced_fail(p->r.err, CEDAR_E_SYNTAX, p->tok.pos,
			"`%.*s` stands where %s should be", ced_shown(p->text), p->text.p, wanted);
	return ced_fail(p->r.err, CEDAR_E_SYNTAX, p->tok.pos, "%s stands where %s should be",
		ced_token_name(p->tok.kind), wanted);
}

/* Step over a token if it is next. Returns 1 if it was, 0 if not, negative on failure. */
static int accept(struct parser *p, enum ced_token_kind kind)
{
	if (!at(p, kind))
		return 0;
	return advance(p) < 0 ? -1 : 1;
}

static int accept_word(struct parser *p, const char *word)
{
	if (!at_word(p, word))
		return 0;
	return advance(p) < 0 ? -1 : 1;
}

static int expect(struct parser *p, enum ced_token_kind kind)
{
	return at(p, kind) ? advance(p) : unexpected(p, ced_token_name(kind));
}

/* The end of what was opened at `opened`. */
static int expect_close(struct parser *p, enum ced_token_kind kind, struct ced_pos opened)
{
	char wanted[64];

	if (at(p, kind))
		return advance(p);
	(void)snprintf(wanted, sizeof(wanted), "%s (to close line %u)", ced_token_name(kind),
		(unsigned)opened.line);
	return unexpected(p, wanted);
}

static int parse_ident(struct parser *p, const char *wanted, struct ced_sch_name *ret_name)
{
	if (!at(p, CED_TOKEN_IDENT))
		return unexpected(p, wanted);
	if (ced_sch_is_reserved(p->text))
		return ced_fail(p->r.err, CEDAR_E_SYNTAX, p->tok.pos, "`%.*s` is a reserved word",
			ced_shown(p->text), p->text.p);
	*ret_name = (struct ced_sch_name){.text = p->text, .pos = p->tok.pos};
	return advance(p);
}

/* An identifier or a string. */
static int parse_any_name(struct parser *p, const char *wanted, struct ced_sch_name *ret_name)
{
	if (!at(p, CED_TOKEN_STRING))
		return parse_ident(p, wanted, ret_name);
	*ret_name = (struct ced_sch_name){.text = p->text, .pos = p->tok.pos};
	return advance(p);
}

/* The rest of a path whose first part was read, up to CED_SCH_PATH_MAX parts. Stops before a "::"
 * that no identifier follows when `ret_open` is given, and says so there. */
static int parse_path_rest(struct parser *p, struct ced_sch_name *name, bool *ret_open)
{
	struct ced_sch_vec parts = {0};
	struct ced_slice *part = ced_sch_push(&p->r, &parts, sizeof(*part));

	if (!part)
		return -1;
	*part = name->text;
	while (at(p, CED_TOKEN_PATH)) {
		struct ced_sch_name next;

		if (advance(p) < 0)
			return -1;
		if (ret_open && at(p, CED_TOKEN_STRING)) {
			*ret_open = true;
			break;
		}
		if (parse_ident(p, "the next part of the name", &next) < 0)
			return -1;
		part = ced_sch_push(&p->r, &parts, sizeof(*part));
		if (!part)
			return -1;
		*part = next.text;
	}
	return ced_sch_join_path(&p->r, parts.v, parts.n, &name->text);
}

static int parse_path(struct parser *p, const char *wanted, struct ced_sch_name *ret_name)
{
	if (parse_ident(p, wanted, ret_name) < 0)
		return -1;
	return parse_path_rest(p, ret_name, NULL);
}

/* ---- annotations ---- */

static int parse_annotation(struct parser *p, struct ced_sch_vec *annots)
{
	struct ced_pos pos = p->tok.pos;
	struct ced_sch_annot annot = {.value = {"", 0}};

	if (advance(p) < 0)
		return -1;
	if (!at(p, CED_TOKEN_IDENT))
		return unexpected(p, "an annotation name");
	annot.key = p->text;
	if (advance(p) < 0)
		return -1;
	if (at(p, CED_TOKEN_LPAREN)) {
		if (advance(p) < 0)
			return -1;
		if (!at(p, CED_TOKEN_STRING))
			return unexpected(p, "the annotation's value, a string");
		annot.value = p->text;
		if (advance(p) < 0 || expect(p, CED_TOKEN_RPAREN) < 0)
			return -1;
	}
	return ced_sch_add_annot(&p->r, annots, &annot, pos);
}

static int parse_annotations(struct parser *p, struct ced_sch_annots *ret_annots)
{
	struct ced_sch_vec annots = {0};

	while (at(p, CED_TOKEN_AT))
		if (parse_annotation(p, &annots) < 0)
			return -1;
	ced_sch_sort_annots(&annots);
	*ret_annots = (struct ced_sch_annots){.v = annots.v, .n = annots.n};
	return 0;
}

/* ---- types ---- */

static int parse_type(struct parser *p, const struct ced_sch_type **ret_type);

static int parse_attr(struct parser *p, struct ced_sch_vec *attrs)
{
	struct ced_sch_attr attr = {.required = true};
	struct ced_sch_name name;
	int r;

	if (parse_annotations(p, &attr.annots) < 0 ||
		parse_any_name(p, "an attribute name", &name) < 0)
		return -1;
	attr.name = name.text;
	r = accept(p, CED_TOKEN_QUESTION);
	if (r < 0)
		return -1;
	attr.required = r == 0;
	if (expect(p, CED_TOKEN_COLON) < 0 || parse_type(p, &attr.type) < 0)
		return -1;

	struct ced_sch_attr *slot = ced_sch_push(&p->r, attrs, sizeof(*slot));

	if (!slot)
		return -1;
	*slot = attr;
	return 0;
}

/* `{ attributes }`, the brace being next. */
static int parse_record(struct parser *p, const struct ced_sch_type **ret_type)
{
	struct ced_sch_type *type = ced_sch_new_type(&p->r, CED_SCH_RECORD, p->tok.pos);
	struct ced_sch_vec attrs = {0};
	struct ced_pos opened = p->tok.pos;

	if (!type || advance(p) < 0)
		return -1;
	while (!at(p, CED_TOKEN_RBRACE)) {
		if (parse_attr(p, &attrs) < 0)
			return -1;

		int r = accept(p, CED_TOKEN_COMMA);

		if (r < 0)
			return -1;
		if (r == 0)
			break;
	}
	if (expect_close(p, CED_TOKEN_RBRACE, opened) < 0)
		return -1;
	type->n_attrs = ced_sch_sort_attrs(attrs.v, attrs.n);
	type->attrs = attrs.v;
	*ret_type = type;
	return 0;
}

/* After the word `Set`: either `< type >`, or it was a type that is named Set. */
static int parse_set_rest(struct parser *p, struct ced_sch_type *type)
{
	struct ced_pos opened = p->tok.pos;

	type->kind = CED_SCH_SET;
	if (advance(p) < 0 || parse_type(p, &type->elem) < 0)
		return -1;
	return expect_close(p, CED_TOKEN_GT, opened);
}

static int parse_named_type(struct parser *p, const struct ced_sch_type **ret_type)
{
	struct ced_sch_type *type = ced_sch_new_type(&p->r, CED_SCH_ENTITY_OR_COMMON, p->tok.pos);
	bool set = at_word(p, "Set");
	struct ced_sch_name name;

	if (!type || parse_ident(p, "a type", &name) < 0)
		return -1;
	*ret_type = type;
	if (set && at(p, CED_TOKEN_LT))
		return parse_set_rest(p, type);
	if (parse_path_rest(p, &name, NULL) < 0)
		return -1;
	type->name = name.text;
	return 0;
}

static int parse_type(struct parser *p, const struct ced_sch_type **ret_type)
{
	int r;

	if (ced_sch_enter(&p->r, p->tok.pos) < 0)
		return -1;
	if (at(p, CED_TOKEN_LBRACE))
		r = parse_record(p, ret_type);
	else
		r = parse_named_type(p, ret_type);
	ced_sch_leave(&p->r);
	return r;
}

/* ---- lists ---- */

/* A list of names: `path` or `[ path, ... ]`; the brackets may hold nothing. */
static int parse_paths(struct parser *p, const char *wanted, struct ced_sch_names *ret_names)
{
	struct ced_sch_vec names = {0};
	struct ced_pos opened = p->tok.pos;
	int list = accept(p, CED_TOKEN_LBRACKET), more = list >= 0;

	if (list == 1 && at(p, CED_TOKEN_RBRACKET))
		more = 0;
	while (more > 0) {
		struct ced_sch_name *name = ced_sch_push(&p->r, &names, sizeof(*name));

		if (!name || parse_path(p, wanted, name) < 0)
			return -1;
		more = list ? accept(p, CED_TOKEN_COMMA) : 0;
	}
	if (list < 0 || more < 0 || (list && expect_close(p, CED_TOKEN_RBRACKET, opened) < 0))
		return -1;
	*ret_names = (struct ced_sch_names){.v = names.v, .n = names.n};
	return 0;
}

static int parse_action_ref(struct parser *p, struct ced_sch_vec *refs)
{
	struct ced_sch_action_ref *ref = ced_sch_push(&p->r, refs, sizeof(*ref));
	struct ced_sch_name name;
	bool qualified = false;

	if (!ref)
		return -1;
	ref->pos = p->tok.pos;
	if (at(p, CED_TOKEN_STRING)) {
		ref->id = p->text;
		return advance(p);
	}
	if (parse_ident(p, "the name of an action", &name) < 0)
		return -1;
	ref->id = name.text;
	if (!at(p, CED_TOKEN_PATH))
		return 0;
	if (parse_path_rest(p, &name, &qualified) < 0)
		return -1;
	if (!qualified)
		return unexpected(p, "`::` and the action's id, a string");
	ref->type = name.text;
	ref->id = p->text;
	return advance(p);
}

/* An action, or a bracketed list of at least one. */
static int parse_action_refs(struct parser *p, struct ced_sch_action *action)
{
	struct ced_sch_vec refs = {0};
	struct ced_pos opened = p->tok.pos;
	int list = accept(p, CED_TOKEN_LBRACKET), more = 1;

	while (list >= 0 && more > 0) {
		if (parse_action_ref(p, &refs) < 0)
			return -1;
		more = list ? accept(p, CED_TOKEN_COMMA) : 0;
	}
	if (list < 0 || more < 0 || (list && expect_close(p, CED_TOKEN_RBRACKET, opened) < 0))
		return -1;
	action->has_member_of = true;
	action->parents = refs.v;
	action->n_parents = refs.n;
	return 0;
}

/* Names of one declaration, separated by commas. */
static int parse_decl_names(struct parser *p,
	int (*parse)(struct parser *, const char *, struct ced_sch_name *),
	struct ced_sch_vec *names)
{
	int more = 1;

	while (more > 0) {
		struct ced_sch_name *name = ced_sch_push(&p->r, names, sizeof(*name));

		if (!name || parse(p, "a name", name) < 0)
			return -1;
		more = accept(p, CED_TOKEN_COMMA);
	}
	return more;
}

/* ---- declarations ---- */

static int parse_enum(struct parser *p, struct ced_sch_entity *entity)
{
	struct ced_sch_vec ids = {0};
	struct ced_pos opened = p->tok.pos;
	int more = 1;

	if (expect(p, CED_TOKEN_LBRACKET) < 0)
		return -1;
	while (more > 0) {
		struct ced_slice *id;

		if (!at(p, CED_TOKEN_STRING))
			return unexpected(p, "an id, a string");
		id = ced_sch_push(&p->r, &ids, sizeof(*id));
		if (!id)
			return -1;
		*id = p->text;
		if (advance(p) < 0)
			return -1;
		more = accept(p, CED_TOKEN_COMMA);
	}
	entity->is_enum = true;
	entity->ids = ids.v;
	entity->n_ids = ids.n;
	return more < 0 ? -1 : expect_close(p, CED_TOKEN_RBRACKET, opened);
}

/* [in types] [[=] record] [tags type] */
static int parse_entity_body(struct parser *p, struct ced_sch_entity *entity)
{
	int r = accept_word(p, "in");

	if (r < 0 || (r && parse_paths(p, "an entity type", &entity->parents) < 0))
		return -1;
	r = accept(p, CED_TOKEN_ASSIGN);
	if (r < 0)
		return -1;
	if (r && !at(p, CED_TOKEN_LBRACE))
		return unexpected(p, "`{` and the attributes");
	if (at(p, CED_TOKEN_LBRACE) && parse_record(p, &entity->shape) < 0)
		return -1;
	r = accept_word(p, "tags");
	return r <= 0 ? r : parse_type(p, &entity->tags);
}

static int parse_entity(
	struct parser *p, struct ced_sch_space_builder *b, struct ced_sch_annots annots)
{
	struct ced_sch_entity entity = {.annots = annots};
	struct ced_sch_vec names = {0};
	int r;

	if (advance(p) < 0 || parse_decl_names(p, parse_ident, &names) < 0)
		return -1;
	r = accept_word(p, "enum");
	if (r >= 0)
		r = r ? parse_enum(p, &entity) : parse_entity_body(p, &entity);
	if (r < 0 || expect(p, CED_TOKEN_SEMICOLON) < 0)
		return -1;
	for (size_t i = 0; i < names.n; i++) {
		entity.name = ((const struct ced_sch_name *)names.v)[i];
		if (ced_sch_add_entity(&p->r, b, &entity) < 0)
			return -1;
	}
	return 0;
}

static int parse_context(struct parser *p, struct ced_sch_action *action)
{
	struct ced_sch_type *type;
	struct ced_sch_name name;

	if (at(p, CED_TOKEN_LBRACE))
		return parse_record(p, &action->context);
	type = ced_sch_new_type(&p->r, CED_SCH_COMMON, p->tok.pos);
	if (!type || parse_path(p, "a record or the name of a common type", &name) < 0)
		return -1;
	type->name = name.text;
	action->context = type;
	return 0;
}

/* One `principal: ..`, `resource: ..` or `context: ..`; `seen` has a bit for each. */
static int parse_applies_part(struct parser *p, struct ced_sch_action *action, unsigned *seen)
{
	static const char *const words[] = {"principal", "resource", "context"};
	struct ced_pos pos = p->tok.pos;
	unsigned which = 0;

	while (which < 3 && !at_word(p, words[which]))
		which++;
	if (which == 3)
		return unexpected(p, "`principal`, `resource` or `context`");
	if (*seen & 1u << which)
		return ced_fail(p->r.err, CEDAR_E_SYNTAX, pos,
			"`%s` is given twice in one `appliesTo`", words[which]);
	*seen |= 1u << which;
	if (advance(p) < 0 || expect(p, CED_TOKEN_COLON) < 0)
		return -1;
	if (which == 2)
		return parse_context(p, action);

	struct ced_sch_names *names = which == 0 ? &action->principals : &action->resources;

	if (parse_paths(p, "an entity type", names) < 0)
		return -1;
	if (names->n == 0)
		return ced_fail(p->r.err, CEDAR_E_SYNTAX, pos,
			"`%s` is empty; an action that applies to nothing has no `appliesTo`",
			words[which]);
	return 0;
}

static int parse_applies_to(struct parser *p, struct ced_sch_action *action)
{
	struct ced_pos opened = p->tok.pos;
	unsigned seen = 0;
	int more = 1;

	if (expect(p, CED_TOKEN_LBRACE) < 0)
		return -1;
	while (more > 0) {
		if (parse_applies_part(p, action, &seen) < 0)
			return -1;
		more = accept(p, CED_TOKEN_COMMA);
		if (more > 0 && at(p, CED_TOKEN_RBRACE))
			break;
	}
	if (more < 0 || expect_close(p, CED_TOKEN_RBRACE, opened) < 0)
		return -1;
	if ((seen & 3) != 3)
		return ced_fail(p->r.err, CEDAR_E_SYNTAX, opened,
			"`appliesTo` needs `principal` and `resource`; `%s` is missing",
			seen & 1 ? "resource" : "principal");
	return 0;
}

static int parse_action(
	struct parser *p, struct ced_sch_space_builder *b, struct ced_sch_annots annots)
{
	struct ced_sch_action action = {.annots = annots, .has_applies_to = true};
	struct ced_sch_vec names = {0};
	int r;

	if (advance(p) < 0 || parse_decl_names(p, parse_any_name, &names) < 0)
		return -1;
	r = accept_word(p, "in");
	if (r < 0 || (r && parse_action_refs(p, &action) < 0))
		return -1;
	r = accept_word(p, "appliesTo");
	if (r < 0 || (r && parse_applies_to(p, &action) < 0))
		return -1;
	r = accept_word(p, "attributes");
	if (r < 0 || (r && (expect(p, CED_TOKEN_LBRACE) < 0 || expect(p, CED_TOKEN_RBRACE) < 0)))
		return -1;
	if (expect(p, CED_TOKEN_SEMICOLON) < 0)
		return -1;
	for (size_t i = 0; i < names.n; i++) {
		action.name = ((const struct ced_sch_name *)names.v)[i];
		if (ced_sch_add_action(&p->r, b, &action) < 0)
			return -1;
	}
	return 0;
}

static int parse_common(
	struct parser *p, struct ced_sch_space_builder *b, struct ced_sch_annots annots)
{
	struct ced_sch_common common = {.annots = annots};

	if (advance(p) < 0 || parse_ident(p, "the name of the type", &common.name) < 0 ||
		expect(p, CED_TOKEN_ASSIGN) < 0 || parse_type(p, &common.type) < 0 ||
		expect(p, CED_TOKEN_SEMICOLON) < 0)
		return -1;
	return ced_sch_add_common(&p->r, b, &common);
}

static int parse_decl(
	struct parser *p, struct ced_sch_space_builder *b, struct ced_sch_annots annots)
{
	if (at_word(p, "entity"))
		return parse_entity(p, b, annots);
	if (at_word(p, "action"))
		return parse_action(p, b, annots);
	if (at_word(p, "type"))
		return parse_common(p, b, annots);
	return unexpected(p, "a declaration (`entity`, `action` or `type`)");
}

static int parse_namespace(
	struct parser *p, struct ced_sch_builder *tree, struct ced_sch_annots annots)
{
	struct ced_sch_space_builder *b;
	struct ced_sch_name name;
	struct ced_pos opened;

	if (advance(p) < 0 || parse_path(p, "the name of the namespace", &name) < 0)
		return -1;
	b = ced_sch_add_space(&p->r, tree, &name, annots);
	opened = p->tok.pos;
	if (!b || expect(p, CED_TOKEN_LBRACE) < 0)
		return -1;
	while (!at(p, CED_TOKEN_RBRACE)) {
		struct ced_sch_annots of_decl;

		if (at(p, CED_TOKEN_END))
			return expect_close(p, CED_TOKEN_RBRACE, opened);
		if (parse_annotations(p, &of_decl) < 0 || parse_decl(p, b, of_decl) < 0)
			return -1;
	}
	return advance(p);
}

/* Declarations outside of any namespace may stand anywhere; together they are one namespace. */
static int parse_top(struct parser *p, struct ced_sch_builder *tree)
{
	struct ced_sch_space_builder *unnamed = NULL;

	while (!at(p, CED_TOKEN_END)) {
		struct ced_sch_annots annots;

		if (parse_annotations(p, &annots) < 0)
			return -1;
		if (at_word(p, "namespace")) {
			if (parse_namespace(p, tree, annots) < 0)
				return -1;
			continue;
		}
		if (!unnamed)
			unnamed = ced_sch_add_space(&p->r, tree,
				&(struct ced_sch_name){.text = {"", 0}},
				(struct ced_sch_annots){0});
		if (!unnamed || parse_decl(p, unnamed, annots) < 0)
			return -1;
	}
	return 0;
}

int ced_sch_parse_text(struct ced_slice src, struct ced_arena *arena,
	const struct cedar_limits *limits, struct ced_sch_tree *ret_tree, struct cedar_error *err)
{
	struct parser p = {.r = {.arena = arena, .limits = limits, .err = err}};
	struct ced_sch_builder tree = {0};

	if (src.n > limits->text_bytes)
		return ced_fail_limit(err, (struct ced_pos){0}, "text_bytes", limits->text_bytes);
	ced_lex_init(&p.lex, src.p, src.n, err);
	if (advance(&p) < 0 || parse_top(&p, &tree) < 0)
		return -1;
	return ced_sch_finish(&p.r, &tree, ret_tree);
}
