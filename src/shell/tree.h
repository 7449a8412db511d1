/*
 * The tree of a command line or script: POSIX 2018 XCU 2 (Shell Command Language) and the bash
 * forms that agents use.
 *
 * Purpose: one object that policy looks at and that runs afterwards, so the two cannot disagree.
 *
 * Invariants: everything lives in the pool of its `struct sh_script` and is freed with it; texts
 * are slices that point into the source, which the script copies, or into the pool, and are not
 * NUL-terminated. Lists are linked through `next` in the order of the source. Positions are
 * 1-based; those inside a back-quoted command or a here-document count columns within the text that
 * is left when its own quoting is taken off.
 */
#ifndef CLOISTER_SHELL_TREE_H
#define CLOISTER_SHELL_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sh_pos {
	uint32_t line, column;
};

struct sh_text {
	const char *at;
	size_t len;
};

enum sh_part_kind {
	SH_LITERAL,   /* text: unquoted, so subject to globs, braces and tildes */
	SH_ESCAPED,   /* text: the one character after a backslash */
	SH_SINGLE,    /* text: between '' */
	SH_ANSI,      /* text: between $'' with its escapes as written */
	SH_DOUBLE,    /* inner: between "" */
	SH_LOCALE,    /* inner: between $"" */
	SH_PARAM,     /* param: $x ${x...} */
	SH_COMMAND,   /* list: $(...) */
	SH_BACKTICK,  /* list; text: between `` as written */
	SH_ARITH,     /* inner: between $(( and )), expanded first and read as an expression then */
	SH_OLD_ARITH, /* inner: between $[ and ] */
	SH_PROCESS,   /* list: <(...) or >(...); text: the one character < or > */
	SH_ARRAY,     /* words: between ( and ) after NAME= */
	SH_INDEX,     /* inner: between [ and ] of NAME[...]= */
	SH_EXTGLOB,   /* text: the one character before (; inner: between ( and ) */
};

struct sh_part {
	enum sh_part_kind kind;
	struct sh_pos pos;
	struct sh_text text;
	struct sh_part *inner;
	struct sh_param *param;
	struct sh_list *list;
	struct sh_word *words;
	struct sh_part *next;
};

struct sh_param {
	bool braces, length, indirect; /* ${x} ${#x} ${!x} */
	bool has_index, has_second;
	struct sh_text name;
	struct sh_part *index; /* ${x[...]} */
	struct sh_text op;     /* as written, such as ":-" or "//"; empty when there is none */
	struct sh_part *argument, *second; /* second: ${x/argument/second} */
};

struct sh_word {
	struct sh_pos pos;
	struct sh_part *parts; /* NULL for the empty text after NAME= only with `assigns` */
	size_t assigns; /* bytes of its first part that are NAME, or 0 when it assigns nothing */
	struct sh_word *next;
};

enum sh_redirect_kind {
#define SH_REDIRECT(name, text) SH_##name,
#include "shell/redirect.def"
#undef SH_REDIRECT
};

struct sh_redirect {
	enum sh_redirect_kind kind;
	struct sh_pos pos;
	struct sh_text fd; /* digits, or a name for {name}>; empty when not said */
	bool fd_name;
	struct sh_word *target;   /* for a here-document its delimiter as written */
	struct sh_text written;   /* a here-document: the delimiter with its quotes */
	struct sh_text delimiter; /* without its quotes */
	bool quoted;              /* the body is taken as it is */
	struct sh_text body;      /* without the tabs that <<- takes off */
	struct sh_part *content;  /* the body's parts; one SH_LITERAL when quoted */
	struct sh_redirect *next;
};

enum sh_command_kind {
	SH_SIMPLE,        /* words, of which the first may assign */
	SH_GROUP,         /* body */
	SH_SUBSHELL,      /* body */
	SH_IF,            /* clauses; the last without condition is `else` */
	SH_WHILE,         /* clauses: one */
	SH_UNTIL,         /* clauses: one */
	SH_FOR,           /* name, has_in, words, body */
	SH_SELECT,        /* the same */
	SH_FOR_ARITH,     /* arith, body */
	SH_CASE,          /* word, items */
	SH_FUNCTION,      /* name, inner: the command that is its body */
	SH_COPROC,        /* name or empty, inner */
	SH_ARITH_COMMAND, /* arith: ((...)) */
	SH_COND,          /* cond: [[ ... ]] */
};

struct sh_clause {
	struct sh_list *condition, *body;
	struct sh_clause *next;
};

enum sh_case_end { SH_CASE_BREAK, SH_CASE_FALL, SH_CASE_NEXT }; /* ;; ;& ;;& */

struct sh_case_item {
	struct sh_pos pos;
	struct sh_word *patterns;
	struct sh_list *body; /* may be NULL */
	enum sh_case_end end;
	struct sh_case_item *next;
};

enum sh_cond_kind {
	SH_COND_OR,
	SH_COND_AND,
	SH_COND_NOT,
	SH_COND_PAREN,
	SH_COND_UNARY,
	SH_COND_BINARY,
	SH_COND_WORD
};

struct sh_cond {
	enum sh_cond_kind kind;
	struct sh_pos pos;
	struct sh_text op;            /* of unary and binary */
	struct sh_word *left, *right; /* unary and word: left only */
	struct sh_cond *a, *b;        /* of or, and; not and paren: a only */
};

struct sh_command {
	enum sh_command_kind kind;
	struct sh_pos pos;
	struct sh_redirect *redirects;
	bool pipe_stderr; /* |& follows */
	bool has_in;
	struct sh_text name;
	struct sh_word *words, *word;
	struct sh_list *body;
	struct sh_clause *clauses;
	struct sh_case_item *items;
	struct sh_cond *cond;
	struct sh_part *arith;
	struct sh_command *inner;
	struct sh_command *next; /* of the pipeline */
};

enum sh_join { SH_ALWAYS, SH_AND, SH_OR };

struct sh_pipeline {
	struct sh_pos pos;
	enum sh_join join; /* with the pipeline before it */
	bool negate, timed, timed_posix;
	struct sh_command *commands; /* NULL for a bare `!` or `time` */
	struct sh_pipeline *next;
};

struct sh_item {
	struct sh_pipeline *pipelines;
	bool background; /* & follows */
	struct sh_item *next;
};

struct sh_list {
	struct sh_item *items;
};

#endif
