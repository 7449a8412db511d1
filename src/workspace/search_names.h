/*
 * Which names a search takes: include and exclude globs, hidden places.
 *
 * Nearly all patterns in use are plain names or `*.suffix`; these are compared directly, only the
 * rest runs the automaton of base/glob.h.
 */
#ifndef CLOISTER_WORKSPACE_SEARCH_NAMES_H
#define CLOISTER_WORKSPACE_SEARCH_NAMES_H

#include "workspace/search.h"

struct name_filter;

/* ERR_INVALID_ARGUMENT (a glob, too many), ERR_NO_MEMORY. */
int name_filter_new(
	const struct search_query *q, struct name_filter **ret, struct err *err) _must_check_;
void name_filter_free(struct name_filter *f); /* accepts NULL */

/* Is the entry `name` of the directory `dir` (below the root; "" is the root) to be searched? */
bool name_filter_takes(const struct name_filter *f, struct str dir, struct str name, bool is_dir);

/* Is it one of the query's hidden places? `dir` is relative to the mount. */
bool name_filter_hides(
	const struct search_query *q, unsigned mount, struct str dir, struct str name);

#endif
