/*
 * Listing a directory of a view: filtered, sorted, counted, in pages.
 *
 * The walk follows no link, never leaves the mount and never enters the store. It keeps one open
 * directory per level, at most LIMIT_PATH_DEPTH of them; what is deeper is counted and said. Names
 * are sorted by bytes, directory by directory, each directory before what is below it, so pages are
 * stable while the tree is.
 */
#ifndef CLOISTER_WORKSPACE_LIST_H
#define CLOISTER_WORKSPACE_LIST_H

#include "base/glob.h"
#include "workspace/view.h"

enum { LIST_DEPTH_MAX = 200, LIST_VISITED_MAX = 2000000 };

struct list_query {
	const struct glob *
		pattern; /* NULL: everything. Matched against the path below the listed directory */
	struct glob *const
		*exclude; /* NULL-terminated or NULL: what matches is left out with all below it */
	bool recursive, hidden;
	bool details;       /* also size, time and mode (costs a stat per entry) */
	unsigned max_depth; /* 0: no limit of its own; 1: only the directory itself */
	uint64_t skip;      /* entries of earlier pages */
	unsigned max;       /* entries of this page */
	/* Called now and then; a negative value ends the walk with that error. May be NULL. */
	int (*check)(void *ctx, struct err *err);
	void *check_ctx;
};

struct list_entry {
	struct str path; /* below the listed directory; bytes */
	struct str name; /* its last component */
	enum node_kind kind;
	const struct stat *st; /* when details were asked for, else NULL */
};

struct list_result {
	uint64_t files, dirs, others; /* of all that matched, also outside the page (when the walk
					 was complete) */
	bool more;                    /* there are entries behind this page */
	bool truncated; /* the walk ended early: LIST_VISITED_MAX names, or directories deeper than
			   LIST_DEPTH_MAX */
	uint64_t visited;
};

/* `each` gets borrowed data. Errors: those of the view, and what `check` or `each` (negative)
 * return. */
int list_directory(struct view *v, const struct node *dir, const struct list_query *q,
	int (*each)(void *ctx, const struct list_entry *e, struct err *err), void *ctx,
	struct list_result *ret, struct err *err) _must_check_;

#endif
