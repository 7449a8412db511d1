/*
 * Tokens of policies and of the schema language.
 *
 * Keywords are not tokens of their own: an identifier is compared with ced_token_is(), since nearly
 * every word is also a name somewhere. The lexer borrows the text; so do its tokens.
 */
#ifndef CEDAR_LEX_H
#define CEDAR_LEX_H

#include "cedar/intern.h"
#include "cedar/json.h"

/* One list: the enum, and how errors call each. */
#define CED_TOKENS(X)                                                                              \
	X(END, "the end of the text")                                                              \
	X(IDENT, "an identifier")                                                                  \
	X(NUMBER, "a number")                                                                      \
	X(STRING, "a string")                                                                      \
	X(SLOT, "a slot")                                                                          \
	X(AT, "'@'")                                                                               \
	X(LPAREN, "'('")                                                                           \
	X(RPAREN, "')'")                                                                           \
	X(LBRACE, "'{'")                                                                           \
	X(RBRACE, "'}'")                                                                           \
	X(LBRACKET, "'['")                                                                         \
	X(RBRACKET, "']'")                                                                         \
	X(COMMA, "','")                                                                            \
	X(SEMICOLON, "';'")                                                                        \
	X(COLON, "':'")                                                                            \
	X(PATH, "'::'")                                                                            \
	X(DOT, "'.'")                                                                              \
	X(QUESTION, "'?'")                                                                         \
	X(ASSIGN, "'='")                                                                           \
	X(EQ, "'=='")                                                                              \
	X(NE, "'!='")                                                                              \
	X(LT, "'<'")                                                                               \
	X(LE, "'<='")                                                                              \
	X(GT, "'>'")                                                                               \
	X(GE, "'>='")                                                                              \
	X(AND, "'&&'")                                                                             \
	X(OR, "'||'")                                                                              \
	X(NOT, "'!'")                                                                              \
	X(PLUS, "'+'")                                                                             \
	X(MINUS, "'-'")                                                                            \
	X(STAR, "'*'")

enum ced_token_kind {
#define CED_TOKEN_ENUM(name, text) CED_TOKEN_##name,
	CED_TOKENS(CED_TOKEN_ENUM)
#undef CED_TOKEN_ENUM
};

struct ced_token {
	enum ced_token_kind kind;
	struct ced_pos pos;
	struct ced_slice text; /* as written; a string without its quotes, a slot without its '?' */
	uint64_t number;       /* of CED_TOKEN_NUMBER */
};

struct ced_lexer {
	const char *text;
	size_t n, at;
	uint32_t line, column;
	struct cedar_error *err;
};

/* In the schema language '?' stands alone; in policies it begins a slot: both come from here, the
 * first when no identifier follows directly. */
void ced_lex_init(struct ced_lexer *lex, const char *text, size_t n, struct cedar_error *err);

/* The next token: 0, or an error of the text (a character that begins nothing, an unclosed string,
 * a number of more than 64 bits, a string that is not UTF-8). */
int ced_lex_next(struct ced_lexer *lex, struct ced_token *ret);

const char *ced_token_name(enum ced_token_kind kind);
static inline bool ced_token_is(const struct ced_token *t, const char *word)
{
	return t->kind == CED_TOKEN_IDENT && ced_slice_is(t->text, word);
}

/* true false if then else in is like has __cedar: never a type, attribute or record key. */
bool ced_is_reserved(struct ced_slice word);
/* Could stand for itself after a '.': an identifier that is not reserved. */
bool ced_is_attribute(struct ced_slice word);
/* A type name in its normal form: attributes joined by "::", no spaces. */
bool ced_is_type_name(struct ced_slice text);

/* The characters that a string token stands for, in `arena`. */
int ced_unescape(struct ced_arena *arena, const struct ced_token *t, struct ced_slice *ret,
	struct cedar_error *err);

/* A pattern of `like`: the parts between its wildcards ("a*b" has two, "*" has two empty ones). */
struct ced_pattern {
	uint32_t count;
	const struct ced_name *parts[];
};

int ced_unescape_pattern(struct ced_names *names, const struct ced_token *t,
	const struct ced_pattern **ret, struct cedar_error *err);

#endif
