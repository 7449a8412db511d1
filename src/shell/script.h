/*
 * A parsed script and its text.
 *
 * sh_parse() reads POSIX 2018 XCU 2.10 (Shell Grammar) with bash's extensions that tree.h lists. It
 * never executes, expands or opens anything. What it accepts, sh_print() writes so that parsing it
 * again gives the same tree.
 *
 * Limits, each named by the error that reports it: SH_MAX_BYTES of source, SH_MAX_DEPTH of nesting,
 * SH_MAX_JOINS in one [[, SH_MAX_STEPS of work and SH_MAX_MEMORY of tree. An error says "line L,
 * column C: ..."; ERR_PARSE for what is not shell, ERR_LIMIT for a limit.
 */
#ifndef CLOISTER_SHELL_SCRIPT_H
#define CLOISTER_SHELL_SCRIPT_H

#include "base/buf.h"
#include "shell/tree.h"

enum {
	SH_MAX_BYTES = 4 << 20,
	SH_MAX_DEPTH = 100,
	SH_MAX_JOINS = 1000,
	SH_MAX_STEPS = 32 << 20,
	SH_MAX_MEMORY = 256 << 20,
};

struct sh_script;

/* The tree of `n` bytes at `source`, which may be changed or freed afterwards. Owned by the caller.
 */
int sh_parse(const char *source, size_t n, struct sh_script **ret, struct err *err) _must_check_;
void sh_script_free(struct sh_script *script);
DEFINE_CLEANUP(struct sh_script *, sh_script_free)

/* The commands; borrowed until the script is freed. Never NULL. */
const struct sh_list *sh_script_list(const struct sh_script *script);

/* The script as text, ending in a newline unless it is empty. What did not fit shows in
 * buf_check(). */
void sh_print(const struct sh_list *list, struct buf *out);

#endif
