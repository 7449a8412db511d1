/*
 * Searching one file: reading it in windows, telling text from binary, and cutting lines out around
 * matches only.
 */
#ifndef CLOISTER_WORKSPACE_SEARCH_SCAN_H
#define CLOISTER_WORKSPACE_SEARCH_SCAN_H

#include "workspace/search_match.h"

enum {
	SCAN_FIRST = 64 * 1024,   /* the first read; most files end in it */
	SCAN_WINDOW = 256 * 1024, /* of larger files; a longer line is matched in pieces */
	SCAN_BUFFER = SCAN_WINDOW + MATCH_SLACK,
};

/* Memory that is given back as a whole. */
struct arena {
	struct arena_block *blocks;
	size_t used, size; /* of the first block */
	size_t total;
	bool failed;
};
void *arena_alloc(struct arena *a, size_t n); /* NULL: out of memory, and `failed` is set */
void arena_done(struct arena *a);

/* Hits of a run of files, in order, in their arena. */
struct found {
	struct found *next;
	struct search_hit hit;
};
struct found_list {
	struct found *first, **last;
	unsigned n;
	struct arena arena;
};

/* What one thread needs to scan. */
struct scanner {
	const struct search_query *q;
	const struct matcher *matcher;
	unsigned max_hits; /* of one list: one more than may be answered */
	bool (*stop)(void *ctx);
	void *stop_ctx;
	char *buffer; /* SCAN_BUFFER bytes */
};

enum scan_result { SCAN_TEXT, SCAN_BINARY, SCAN_LARGE, SCAN_UNREADABLE };

/* Scan an open file (not closed). Hits are appended with root and path of `where`; *ret_bytes is
 * what was read. */
enum scan_result scan_file(const struct scanner *s, int fd, const struct search_hit *where,
	struct found_list *out, uint64_t *ret_bytes);

#endif
