/*
 * History: what was changed and how to take it back.
 *
 * Every commit leaves one record; replaced and deleted inodes wait in the store. Records have their
 * own quota and age: when full the oldest goes. A checkpoint is a name for a position; making one
 * costs nothing that depends on the workspace's size.
 */
#ifndef CLOISTER_WORKSPACE_HISTORY_H
#define CLOISTER_WORKSPACE_HISTORY_H

#include "workspace/commit.h"

struct history_entry {
	uint64_t seq;
	int64_t time_ms; /* Unix time */
	char call_id[65], tool[65], turn[65];
	unsigned changes;
	bool undoable, undone;
	char checkpoint[65]; /* label when this is a checkpoint, else "" */
};

/* Newest first, from `before` (0: the newest) at most `max`. The callback gets borrowed data and
 * returns false to stop. */
int history_list(struct workspace *ws, uint64_t before, unsigned max,
	bool (*each)(void *ctx, const struct history_entry *e), void *ctx,
	struct err *err) _must_check_;

/* The changes of one record (paths and kinds), as a callback. */
int history_changes(struct workspace *ws, uint64_t seq,
	bool (*each)(void *ctx, const struct change *c), void *ctx, struct err *err) _must_check_;

/* Build the reverse of one record (seq 0: the newest that is neither undone nor an undoing, so that
 * repeating it goes further back) as changes in `v`, to be
 * finished and committed like any other (so it is itself undoable). ERR_NO_UNDO when the content is
 * gone; ERR_CONFLICT naming the path when a later change touched it. */
int history_undo(struct workspace *ws, struct view *v, uint64_t seq, uint64_t *ret_seq,
	struct err *err) _must_check_;

/* The files are copies of those that the history is of, as after a back-up was restored: what it
 * holds up to now is compared with them by size and time of content, since a copy has another
 * inode. ERR_READ_ONLY, ERR_BUSY. */
int history_is_of_copy(struct workspace *ws, struct err *err) _must_check_;

/* Name the present position. ERR_EXISTS when the label is taken. */
int checkpoint_create(
	struct workspace *ws, const char *label, uint64_t *ret_seq, struct err *err) _must_check_;

/* Build the way back to a checkpoint in `v`: everything committed since it, reversed, as one change
 * set. */
int checkpoint_restore(struct workspace *ws, struct view *v, const char *label, uint64_t *ret_seq,
	struct err *err) _must_check_;

/* Net difference between a position (a seq, or a checkpoint by label when not NULL) and now: a
 * unified diff and one row per path. */
struct diff_options {
	uint64_t since_seq;
	const char *since_label;
	size_t max_bytes;
	unsigned context;
};
int workspace_diff(struct workspace *ws, const struct diff_options *opt, struct buf *out,
	bool *ret_truncated, bool (*each)(void *ctx, const struct change *c), void *ctx,
	struct err *err) _must_check_;

/* What a fork has copied, and what it has not. */
struct fork_result {
	int64_t files, dirs, links, bytes;
	int64_t shared;          /* files whose blocks are shared (FICLONE) */
	int64_t attributes_lost; /* files and directories of which an owner, list or attribute could
				    not be given */
	int64_t skipped;         /* special files, and directories of other file systems */
	char first_skipped[256]; /* agent path of the first of these, "" when none */
};

/* Copy the session's own tree (not its volumes, not its history) into an empty directory: the start
 * of a forked session. Owners, permissions, lists, extended attributes, times, links
 * and names that share an inode are kept. Writers
 * wait meanwhile. ERR_NOT_EMPTY; after any other failure the directory may be partly filled. */
int workspace_fork(
	struct workspace *ws, int to_dir_fd, struct fork_result *ret, struct err *err) _must_check_;

/* The history of the session's own tree as a `git fast-import` stream: one commit a record on
 * refs/heads/cloister, the oldest known state first. Special files and what git cannot hold (names
 * that are `.git`) are left out and counted in a `progress` line. Writers wait meanwhile. The
 * stream ends in `done`, so that git refuses one that was cut. */
int history_export(struct workspace *ws, int out_fd, struct err *err) _must_check_;

#endif
