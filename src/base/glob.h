/*
 * Patterns over paths. A pattern is compiled once into a small nondeterministic automaton and
 * matched by following all its states at once, so the time is bounded by length of path × length of
 * pattern: no pattern can hang.
 *
 *     *        any run of characters but `/`          ?         one character but `/`
 *     **       any run of characters; as a whole      [a-z]     one character of a set; [!a-z] or
 * [^a-z] not of it; component also no component at all               [:alpha:] and the other POSIX
 * classes (ASCII) inside {a,b}    either, nested at most GLOB_NESTING    \x        the character x
 * itself
 *
 * Paths are bytes, relative, with `/` between components. `?` and sets take one UTF-8 character; a
 * byte that is not UTF-8 counts as one character. A leading `./` or `/` of the pattern is dropped.
 */
#ifndef CLOISTER_BASE_GLOB_H
#define CLOISTER_BASE_GLOB_H

#include "base/text.h"

enum { GLOB_NESTING = 8 };

enum glob_flags {
	GLOB_ICASE = 1, /* ASCII letters of either case are the same */
	GLOB_BASENAME =
		2, /* a pattern without `/` is matched against the last component, at any depth */
};

struct glob;

/* Errors: ERR_INVALID_ARGUMENT naming the position (unclosed [ or {, reversed range, unknown class,
 * trailing backslash, nesting), ERR_LIMIT (longer than LIMIT_GLOB_BYTES), ERR_NO_MEMORY. */
int glob_compile(
	struct str pattern, unsigned flags, struct glob **ret, struct err *err) _must_check_;
void glob_free(struct glob *g); /* accepts NULL */
DEFINE_CLEANUP(struct glob *, glob_free)

bool glob_match(const struct glob *g, struct str path);

/* Could any path below this directory match? False only when none can, so that a walk can leave it
 * out. */
bool glob_may_match_below(const struct glob *g, struct str dir);

#endif
