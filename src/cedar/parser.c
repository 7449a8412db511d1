/*
 * What every rule of the grammar is made of: the current token and the next one, what is expected,
 * names, types and entities.
 */
#include "cedar/parser.h"
#include "cedar/out.h"

#include <stdio.h>
#include <stdlib.h>

int ced_p_advance(struct ced_parser *p)
{
	p->last = p->t.pos;
	p->t = p->next;
	if (p->t.kind == CED_TOKEN_END)
		return 0;
	return ced_lex_next(&p->lex, &p->next);
}

int ced_p_fail(struct ced_parser *p, const char *expected)
{
	bool word = p->t.text.n && p->t.kind <= CED_TOKEN_SLOT;
	return ced_fail(p->s.err, CEDAR_E_SYNTAX, p->t.pos, "expected %s, found %s%s%.*s%s",
		expected, ced_token_name(p->t.kind), word ? " `" : "",
		word ? (int)(p->t.text.n < 60 ? p->t.text.n : 60) : 0, word ? p->t.text.p : "",
		word ? "`" : "");
}

void *ced_p_fail_null(struct ced_parser *p, const char *expected)
{
	(void)ced_p_fail(p, expected);
	return NULL;
}

void *ced_p_memory_null(struct ced_parser *p)
{
	(void)ced_arena_fail(p->s.arena, p->s.err, p->t.pos);
	return NULL;
}

int ced_p_expect(struct ced_parser *p, enum ced_token_kind kind)
{
	return ced_p_at(p, kind) ? ced_p_advance(p) : ced_p_fail(p, ced_token_name(kind));
}

/* The closing one of a pair; the error says where the pair was opened. */
int ced_p_expect_close(struct ced_parser *p, enum ced_token_kind kind, struct ced_pos open)
{
	char what[80];
	if (ced_p_at(p, kind))
		return ced_p_advance(p);
	(void)snprintf(what, sizeof(what), "%s (to close what line %u, column %u opened)",
		ced_token_name(kind), open.line, open.column);
	return ced_p_fail(p, what);
}

const struct ced_name *ced_p_intern(struct ced_parser *p, struct ced_slice s)
{
	const struct ced_name *name = ced_intern(p->s.names, s.p, s.n);
	return name ? name : ced_p_memory_null(p);
}

/* The string token's characters; moves over it. */
const struct ced_name *ced_p_take_string(struct ced_parser *p)
{
	struct ced_slice s;
	if (!ced_p_at(p, CED_TOKEN_STRING))
		return ced_p_fail_null(p, "a string");
	if (ced_unescape(p->s.arena, &p->t, &s, p->s.err) < 0)
		return NULL;
	const struct ced_name *name = ced_p_intern(p, s);
	return name && ced_p_advance(p) == 0 ? name : NULL;
}

/* An identifier that may name an attribute or a part of a type. */
const struct ced_name *ced_p_take_name(struct ced_parser *p, const char *what)
{
	if (!ced_p_at(p, CED_TOKEN_IDENT))
		return ced_p_fail_null(p, what);
	if (ced_is_reserved(p->t.text)) {
		(void)ced_fail(p->s.err, CEDAR_E_SYNTAX, p->t.pos,
			"`%.*s` is reserved and cannot be used as %s", (int)p->t.text.n,
			p->t.text.p, what);
		return NULL;
	}
	const struct ced_name *name = ced_p_intern(p, p->t.text);
	return name && ced_p_advance(p) == 0 ? name : NULL;
}

int ced_p_expect_word(struct ced_parser *p, const char *word)
{
	char quoted[16];
	if (ced_token_is(&p->t, word))
		return ced_p_advance(p);
	(void)snprintf(quoted, sizeof(quoted), "`%s`", word);
	return ced_p_fail(p, quoted);
}

/* -- Lists that grow ------------------------------------------------------------------------ */

int ced_p_push(struct ced_parser *p, const struct ced_name *key, const struct ced_expr *value)
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
static const struct ced_name *take_path_rest(struct ced_parser *p, const struct ced_name *first)
{
	struct ced_out path = {0};
	ced_out_name(&path, first);
	while (ced_p_at(p, CED_TOKEN_PATH) && p->next.kind == CED_TOKEN_IDENT) {
		const struct ced_name *part =
			ced_p_advance(p) < 0 ? NULL : ced_p_take_name(p, "a part of a type");
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
		name = ced_p_intern(p, (struct ced_slice){path.data, path.length});
	free(path.data);
	return name;
}

const struct ced_name *ced_p_type(struct ced_parser *p)
{
	const struct ced_name *first = ced_p_take_name(p, "an entity type");
	if (!first)
		return NULL;
	const struct ced_name *type =
		ced_p_at(p, CED_TOKEN_PATH) ? take_path_rest(p, first) : first;
	if (type && ced_p_at(p, CED_TOKEN_PATH))
		return ced_p_fail_null(p, "a type, not an entity");
	return type;
}

/* At the '::' before the id. */
const struct ced_uid *ced_p_uid_rest(struct ced_parser *p, const struct ced_name *first)
{
	const struct ced_name *type = take_path_rest(p, first);
	if (!type)
		return NULL;
	if (!ced_p_at(p, CED_TOKEN_PATH))
		return ced_p_fail_null(p, "'::' and the id of an entity");
	if (ced_p_advance(p) < 0)
		return NULL;
	if (!ced_p_at(p, CED_TOKEN_STRING))
		return ced_p_fail_null(p, "the id of an entity in quotes");
	const struct ced_name *id = ced_p_take_string(p);
	if (!id)
		return NULL;
	const struct ced_uid *uid = ced_uid_make(p->s.arena, type, id);
	return uid ? uid : ced_p_memory_null(p);
}

const struct ced_uid *ced_p_uid(struct ced_parser *p)
{
	const struct ced_name *first = ced_p_take_name(p, "an entity type");
	return first ? ced_p_uid_rest(p, first) : NULL;
}
