/*
 * Finding a query's pattern in memory: a literal by its two rarest bytes, anything else by RE2.
 *
 * Both are linear in the text, whatever pattern and text are. A matcher may be used by several
 * threads at once.
 */
#ifndef CLOISTER_WORKSPACE_SEARCH_MATCH_H
#define CLOISTER_WORKSPACE_SEARCH_MATCH_H

#include "workspace/search.h"

/* Text given to matcher_find() must be followed by this many readable bytes. */
enum { MATCH_SLACK = 32 };

struct matcher;

struct match_span {
	size_t from, to;
};

/* ERR_INVALID_ARGUMENT (empty, too long, does not parse), ERR_NO_MEMORY. */
int matcher_new(const struct search_query *q, struct matcher **ret, struct err *err) _must_check_;
void matcher_free(struct matcher *m);
DEFINE_CLEANUP(struct matcher *, matcher_free)

/*
 * The first match that starts at or after `from` in text[0..n), where `from` is the start of a
 * line. A match never extends over the end of its line, unless the literal holds a newline. `stop`
 * is asked now and then; when it says true the answer is "none".
 */
bool matcher_find(const struct matcher *m, const char *text, size_t n, size_t from,
	bool (*stop)(void *ctx), void *ctx, struct match_span *ret);

#endif
