/*
 * What the files of the parser share. Private to src/shell.
 *
 * The parser is a recursive descent over characters, with one token looked at ahead, because in
 * shell the place decides what a character means. Failure is a state (`failed`): from then on every
 * function returns NULL or false and reads no further, so callers check once per construct.
 * `speculative` keeps an error from being final, for `((`, which is arithmetic or two subshells.
 */
#ifndef CLOISTER_SHELL_PARSER_H
#define CLOISTER_SHELL_PARSER_H

#include "shell/pool.h"
#include "shell/script.h"

struct sh_cursor {
	size_t at, line_start;
	uint32_t line;
};

enum sh_token_kind { SH_T_END, SH_T_NEWLINE, SH_T_WORD, SH_T_REDIRECT, SH_T_OP };

struct sh_token {
	enum sh_token_kind kind;
	struct sh_pos pos;
	struct sh_cursor end;
	struct sh_text text; /* of an operator, and of a word as written */
	struct sh_word *word;
	struct sh_redirect *redirect; /* without its target */
};

/* A here-document whose body comes after the next newline. */
struct sh_pending {
	struct sh_redirect *redirect;
	struct sh_pending *next;
};

struct sh_parser {
	struct sh_pool *pool;
	struct err *err;
	const char *s; /* the text being read */
	size_t n;
	struct sh_cursor c;
	struct sh_token ahead;
	bool has_ahead, failed, is_limit;
	bool pattern;          /* within [[ ]]: !( begins a pattern */
	unsigned depth, joins; /* joins: && and || in the [[ being read */
	uint32_t *steps;       /* shared with the parsers of inner texts */
	struct sh_pending *pending;
};

/* scan.c: characters, tokens, here-documents */
int sh_peek(const struct sh_parser *p, size_t ahead); /* a byte, or -1 at the end */
void sh_bump(struct sh_parser *p);                    /* past one byte */
bool sh_at(const struct sh_parser *p, const char *text);
void sh_skip(struct sh_parser *p, size_t n);
struct sh_pos sh_here(const struct sh_parser *p);
void *sh_new(struct sh_parser *p, size_t size); /* NULL after failing */
void sh_fail(struct sh_parser *p, struct sh_pos pos, const char *fmt, ...) _printf_(3, 4);
void sh_fail_limit(struct sh_parser *p, const char *what, unsigned long max);
bool sh_enter(struct sh_parser *p); /* one level deeper; false at the limit */
void sh_leave(struct sh_parser *p);
void sh_blanks(struct sh_parser *p);                  /* past blanks, comments and joined lines */
const struct sh_token *sh_token(struct sh_parser *p); /* the one ahead */
void sh_take(struct sh_parser *p);                    /* it is dealt with */
bool sh_is_op(struct sh_parser *p, const char *op);
bool sh_is_word(struct sh_parser *p, const char *word); /* a reserved word, not quoted */
bool sh_text_is(struct sh_text t, const char *s);
struct sh_parser sh_inner(struct sh_parser *p, struct sh_text text, struct sh_pos pos);

/* word.c */
struct sh_word *sh_scan_word(struct sh_parser *p);  /* NULL when none begins here */
struct sh_word *sh_scan_regex(struct sh_parser *p); /* after =~ */
/* Parts up to the end of the text, as in "" but with " an ordinary character. */
struct sh_part *sh_scan_document(struct sh_parser *p);
bool sh_scan_arith(
	struct sh_parser *p, struct sh_part **ret); /* up to and past )); false when it is none */

/* parse.c */
struct sh_list *sh_parse_list(
	struct sh_parser *p); /* up to what no list contains; never NULL but on failure */
struct sh_list *sh_parse_inside(struct sh_parser *p); /* the list between ( and ), past both */

/* cond.c */
struct sh_cond *sh_parse_cond(struct sh_parser *p); /* after [[, past ]] */

#endif
