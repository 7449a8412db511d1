/*
 * Commit: publishing a change set, all or nothing.
 *
 *   lock -> recover what a dead writer left -> re-check identities -> reserve quota exactly -> redo
 * record (one sync in DURABLE_POWER) -> publish by rename, exchange, link -> outcome and history ->
 * unlock
 *
 * The redo record (the intent) is complete before the first name changes, so after kill -9 at any
 * point the next start either finishes all of it or leaves nothing. A replaced or deleted inode
 * moves into the store by rename and becomes history. Named crash points (crash_points.def) let the
 * tests kill the process at each step.
 */
#ifndef CLOISTER_WORKSPACE_COMMIT_H
#define CLOISTER_WORKSPACE_COMMIT_H

#include "workspace/changeset.h"

/* Who and what, recorded in the history beside the change. Borrowed. */
struct commit_info {
	const char *call_id; /* <= 64 bytes */
	const char *tool;    /* <= 64 bytes */
	const char *turn;    /* <= 64 bytes, may be NULL */
};

struct commit_result {
	uint64_t seq;             /* number of this change set in the workspace */
	bool undo;                /* can it be undone? */
	const char *undo_why_not; /* static text when not */
	unsigned in_place; /* files changed in place since a replacement could not keep their owner
			      or attributes */
	unsigned attributes_lost; /* files and directories that could not be given the group, owner
				     or access control list that belongs to them */
	int64_t usage_bytes, usage_entries;
};

/*
 * Publish. `take` is consumed also on failure. Errors: ERR_CONFLICT naming the path, ERR_QUOTA
 * ("Workspace quota exceeded: 102.5MB > 100MB limit"), ERR_BUSY, ERR_NO_SPACE, ERR_IO; on any of
 * them nothing has changed. An empty change set commits to nothing (seq stays).
 */
int changeset_commit(struct workspace *ws, struct changeset *take, const struct commit_info *info,
	struct commit_result *ret, struct err *err) _must_check_;

#endif
