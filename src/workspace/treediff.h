/*
 * Diffs of trees, path by path, in git's extended format (git-diff(1), "Generating patch text"), so
 * that `git apply` understands them: what textdiff.h makes of a file's two contents, under lines
 * that say what became of the file itself.
 */
#ifndef CLOISTER_WORKSPACE_TREEDIFF_H
#define CLOISTER_WORKSPACE_TREEDIFF_H

#include "workspace/changeset.h"

/* One side of a file. Content is the first `size` bytes of `fd`, then those of `tail_fd`; of a link
 * it is its target. */
struct diff_side {
	const char *path; /* bytes, below the mount; NULL: not there */
	mode_t mode;      /* with the type */
	int fd;           /* borrowed; -1: none */
	int64_t size;
	int tail_fd; /* -1: none */
	int64_t tail_size;
	const char *target;
};

#define DIFF_SIDE_ABSENT ((struct diff_side){.fd = -1, .tail_fd = -1})

struct tree_diff {
	struct buf *out;
	size_t end; /* out->len may grow up to here */
	unsigned context;
	bool truncated;
};

/* Start a diff that appends at most `max` bytes. */
struct tree_diff treediff_to(struct buf *out, size_t max, unsigned context);

/* Append what differs between two sides. `prefix`: agent path of the mount without its first slash
 * and with one at its end, "" for the workspace. *ret_same (may be NULL): both have the same
 * content and mode, and nothing was appended. */
int treediff_file(struct tree_diff *d, const char *prefix, const struct diff_side *a,
	const struct diff_side *b, bool *ret_same, struct err *err) _must_check_;

/* Append one line about something that is not a file. */
void treediff_note(struct tree_diff *d, const char *what, const char *prefix, const char *path);

/* Append a path the way git quotes it: as it is, or in quotes with C escapes when it has a control
 * character, a quote, a backslash, or bytes that are not UTF-8. */
void git_quote(struct buf *b, const char *lead, const char *prefix, const char *path);

#endif
