/*
 * Unified diff of two texts (POSIX diff -u; GNU's "\ No newline at end of file").
 *
 * The shortest edit script by Myers' algorithm in linear space ("An O(ND) Difference Algorithm",
 * 1986), as long as it is cheap: the search has a budget of steps for the whole comparison. Where
 * it runs out, the region is split at lines that occur once on either side, and what is left
 * between them is shown as replaced. So the result is always a correct diff, and on hostile input a
 * coarser one; the time is bounded by the size of the texts (times log) plus the budget.
 */
#ifndef CLOISTER_WORKSPACE_TEXTDIFF_H
#define CLOISTER_WORKSPACE_TEXTDIFF_H

#include "base/text.h"

enum {
	TEXTDIFF_CONTEXT = 3,
	TEXTDIFF_CONTEXT_MAX = 1000,
	TEXTDIFF_LINES_MAX = 2 * 1000 * 1000,  /* of each side; more is told in one line */
	TEXTDIFF_BYTES_MAX = 64 * 1024 * 1024, /* of each side, likewise */
	TEXTDIFF_STEPS_MAX = 16 * 1000 * 1000,
};

struct textdiff_options {
	const char *name_a, *name_b; /* for the two header lines; escaped text */
	unsigned context;
	size_t max_bytes; /* most bytes to append; the diff is then cut after a whole line */
};

/* Would a diff of it be unreadable? A NUL byte, or not UTF-8 (diffs travel as text). */
bool text_is_binary(struct str s);

/*
 * Append the diff of a and b; nothing when they are equal. Binary content gives the one line
 * "Binary files A and B differ", a side above the maxima "Files A and B differ (too large to
 * compare)". *ret_truncated says whether something was left out because of max_bytes.
 * ERR_NO_MEMORY, ERR_LIMIT (the buffer's own maximum).
 */
int textdiff(struct str a, struct str b, const struct textdiff_options *opt, struct buf *out,
	bool *ret_truncated, struct err *err) _must_check_;

#endif
