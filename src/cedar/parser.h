/*
 * The inside of the parser, shared by its three files: parser.c (tokens, names, entities),
 * parse_expr.c (expressions) and parse.c (policies).
 *
 * Functions that return a pointer answer NULL, those that return int a negative number, with the
 * error filled.
 */
#ifndef CEDAR_PARSER_H
#define CEDAR_PARSER_H

#include "cedar/parse.h"

struct ced_parser {
	struct ced_source s;
	struct ced_lexer lex;
	struct ced_token t, next; /* the current token and the one after it */
	struct ced_pos last;      /* of the token before the current one */
	uint32_t depth;
	/* Elements of the lists that are still open; each list copies its own to the arena. */
	struct ced_entry *open;
	size_t open_count, open_capacity;
};

static inline bool ced_p_at(const struct ced_parser *p, enum ced_token_kind kind)
{
	return p->t.kind == kind;
}

int ced_p_advance(struct ced_parser *p);

/* "expected THIS, found ..." about the current token. */
int ced_p_fail(struct ced_parser *p, const char *expected);
void *ced_p_fail_null(struct ced_parser *p, const char *expected);
void *ced_p_memory_null(struct ced_parser *p);

/* Move over the token or word that must be here. The error of a missing closing one says where the
 * pair was opened. */
int ced_p_expect(struct ced_parser *p, enum ced_token_kind kind);
int ced_p_expect_close(struct ced_parser *p, enum ced_token_kind kind, struct ced_pos open);
int ced_p_expect_word(struct ced_parser *p, const char *word);

const struct ced_name *ced_p_intern(struct ced_parser *p, struct ced_slice s);
/* The characters of a string; an identifier that is not reserved, used as `what`. */
const struct ced_name *ced_p_take_string(struct ced_parser *p);
const struct ced_name *ced_p_take_name(struct ced_parser *p, const char *what);

/* Onto the stack of open lists. */
int ced_p_push(struct ced_parser *p, const struct ced_name *key, const struct ced_expr *value);

/* What was pushed since there were `base` elements. */
static inline const struct ced_entry *ced_p_since(const struct ced_parser *p, size_t base)
{
	return p->open_count > base ? &p->open[base] : NULL;
}

/* A::B; A::B::"id"; the same from the '::' after its first name. */
const struct ced_name *ced_p_type(struct ced_parser *p);
const struct ced_uid *ced_p_uid(struct ced_parser *p);
const struct ced_uid *ced_p_uid_rest(struct ced_parser *p, const struct ced_name *first);

const struct ced_expr *ced_p_expr(struct ced_parser *p);

#endif
