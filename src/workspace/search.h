/*
 * Searching the files of a workspace: what is asked, what is found.
 *
 * The types are used by whoever asks (call/worker.h carries a query to the worker); the engine
 * itself is linked only into the worker, which has nothing but read-only descriptors.
 *
 * The engine walks by descriptor, one component at a time: it follows no symbolic link, opens no
 * FIFO, socket or device, and does not leave the file system of a mount's root. Names of a
 * directory are visited in byte order, so the same tree gives the same answer. A literal is found
 * by looking for its rarest byte; a regular expression is RE2, whose time is linear in the text.
 * Work stops at the first budget that runs out, and `stop` says which.
 */
#ifndef CLOISTER_WORKSPACE_SEARCH_H
#define CLOISTER_WORKSPACE_SEARCH_H

#include "base/limits.h"
#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	SEARCH_ROOTS_MAX = LIMIT_MOUNTS,
	SEARCH_GLOBS_MAX = 64,
	SEARCH_CONTEXT_MAX = 20,
	SEARCH_RESULTS_MAX = 10000,
	SEARCH_LINE_BYTES = 2000, /* a longer line is cut around its match */
	SEARCH_ANSWER_BYTES = 4 * 1024 * 1024,
};

/* A place below a mount: bytes, relative to the mount's root, already resolved (no link in it). */
struct search_place {
	unsigned mount;
	struct str path; /* "" is the root itself */
};

struct search_query {
	const struct search_place *roots; /* directories or files, in the order of the answer */
	unsigned n_roots;
	const struct search_place *hidden_places; /* never entered: what another mount covers, the
						     store */
	unsigned n_hidden_places;

	struct str pattern; /* 1..LIMIT_PATTERN_BYTES */
	bool regex;         /* RE2 syntax; else literal bytes */
	bool ignore_case;   /* ASCII letters for an ASCII literal, else Unicode simple folding */
	bool whole_word;

	/* Globs (base/glob.h). Without a slash they match base names, else the path below the root.
	 * A file is searched when `include` is empty or one matches; a file or directory that
	 * matches `exclude` or `default_exclude` is left out (switch the defaults off: pass none).
	 */
	const char *const *include, *const *exclude, *const *default_exclude; /* NULL-terminated or
										 NULL */
	bool with_hidden;  /* names with a leading dot too */
	bool strict_links; /* leave out files with more than one name */

	unsigned before, after; /* context lines, at most SEARCH_CONTEXT_MAX */
	unsigned max_results;   /* matching lines; 0: SEARCH_RESULTS_MAX */
	int64_t max_ms;         /* 0: no limit of its own (the job's deadline holds) */
	int64_t max_bytes;      /* bytes read; 0: none */
	int64_t max_file_bytes; /* larger files are left out and counted; 0: none */
};

/* One matching line. Texts are bytes of the file without the line end; not always UTF-8. */
struct search_hit {
	unsigned root;      /* which of the query's roots */
	struct str path;    /* below that root; "" when the root is a file */
	uint64_t line;      /* from 1 */
	uint64_t column;    /* byte column of the match in its line, from 1 */
	uint32_t match_len; /* bytes of the match */
	uint32_t text_skip; /* bytes left out before `text` (long lines are cut around the match) */
	bool text_cut;      /* bytes were left out before or after */
	struct str text;
	const struct str *before, *after; /* nearest lines, in file order; each cut at
					     SEARCH_LINE_BYTES */
	unsigned n_before, n_after;
};

/* SEARCH_STOP(NAME, "stable word of results"): why an answer is not complete. */
#define SEARCH_STOPS(SEARCH_STOP)                                                                  \
	SEARCH_STOP(COMPLETE, "complete")                                                          \
	SEARCH_STOP(RESULTS, "max_results")                                                        \
	SEARCH_STOP(TIME, "time_budget")                                                           \
	SEARCH_STOP(BYTES, "byte_budget")                                                          \
	SEARCH_STOP(ANSWER, "answer_size")                                                         \
	SEARCH_STOP(DEPTH, "depth_limit")

enum search_stop {
#define SEARCH_STOP(name, word) SEARCH_##name,
	SEARCH_STOPS(SEARCH_STOP)
#undef SEARCH_STOP
		SEARCH_STOP_MAX_,
};

struct search_stats {
	enum search_stop stop; /* anything but SEARCH_COMPLETE: truncated, there may be (for
				  RESULTS: there is) more */
	uint64_t hits;
	uint64_t files_scanned, files_matched, bytes_scanned, dirs_read;
	uint64_t skipped_binary, skipped_large, skipped_special, skipped_links, skipped_unreadable;
};

/* The word of a stop reason in results. */
static inline const char *search_stop_word(enum search_stop s)
{
	static const char *const words[] = {
#define SEARCH_STOP(name, word) [SEARCH_##name] = word,
		SEARCH_STOPS(SEARCH_STOP)
#undef SEARCH_STOP
	};
	return (unsigned)s < SEARCH_STOP_MAX_ ? words[s] : "unknown";
}

/* Called for every hit; borrowed until it returns. A negative value stops the search with it. */
typedef int (*search_hit_fn)(void *ctx, const struct search_hit *hit, struct err *err);

/*
 * A second thread for searches, with a table of descriptors of its own (a shared one makes every
 * open and close of both threads dearer). `enter` runs in it before anything else, so that it can
 * drop its rights; the pool is made once that has succeeded. NULL stands for no second thread.
 */
struct search_pool;
int search_pool_new(int (*enter)(void *ctx, struct err *err), void *ctx, struct search_pool **ret,
	struct err *err) _must_check_;
/* Accepts NULL. */
void search_pool_free(struct search_pool *p);
DEFINE_CLEANUP(struct search_pool *, search_pool_free)

/*
 * Search below the given mount descriptors (O_PATH or readable directories, borrowed; the pool's
 * thread must have had them when it started). Errors: ERR_INVALID_ARGUMENT (pattern, glob),
 * ERR_NOT_FOUND, ERR_NOT_REGULAR, ERR_LINK_REFUSED (a root), ERR_NO_MEMORY; anything wrong with a
 * single file below a root is counted, not an error.
 */
int search_run(struct search_pool *pool, const struct search_query *q, const int *mount_fds,
	unsigned n_mounts, search_hit_fn hit, void *ctx, struct search_stats *ret,
	struct err *err) _must_check_;

#endif
