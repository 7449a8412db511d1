/*
 * Edits on a text: exact replacement and operations on lines. Pure, in time linear in text and
 * edit.
 *
 * A text whose line ends are all CRLF keeps them: `old` and `new` may be written with LF and are
 * read as CRLF. A text with both kinds is left as it is everywhere but where it is edited. Lines
 * are counted from 1; what follows the last line end is a line only when it is not empty.
 */
#ifndef CLOISTER_WORKSPACE_EDIT_H
#define CLOISTER_WORKSPACE_EDIT_H

#include "base/text.h"

enum edit_kind {
	EDIT_REPLACE_TEXT,  /* old_text (exact) by new_text: the only occurrence, or all */
	EDIT_REPLACE_LINES, /* lines start..end by new_text */
	EDIT_INSERT_LINES,  /* new_text behind line `start`; 0: at the top */
	EDIT_DELETE_LINES,  /* lines start..end */
};

struct edit {
	enum edit_kind kind;
	struct str old_text, new_text;
	bool all;            /* EDIT_REPLACE_TEXT: every occurrence */
	uint64_t start, end; /* lines, inclusive */
};

struct edit_result {
	uint64_t replacements; /* occurrences, or 1 */
	uint64_t first_line;   /* of the edited text where the first change begins */
};

/*
 * Apply one edit: the edited text goes into `out` (empty before; its maximum is the largest text
 * allowed).
 *
 * ERR_NO_MATCH: old_text does not occur; the text says what comes closest and the hint what differs
 * (white space, case, line ends, typographic quotes). ERR_AMBIGUOUS: it occurs more than once; the
 * text names the lines. ERR_INVALID_ARGUMENT: empty old_text, lines outside the text or reversed.
 * ERR_LIMIT: the result is too large.
 */
int edit_apply(struct str text, const struct edit *e, struct buf *out, struct edit_result *ret,
	struct err *err) _must_check_;

/* Number of lines. */
uint64_t edit_count_lines(struct str text);

#endif
