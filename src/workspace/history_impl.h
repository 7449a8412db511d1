/* What the files of the history share: going back over records, and making a view of it. */
#ifndef CLOISTER_WORKSPACE_HISTORY_IMPL_H
#define CLOISTER_WORKSPACE_HISTORY_IMPL_H

#include "workspace/history.h"
#include "workspace/history_log.h"
#include "workspace/view_impl.h"

/* The store whose history is meant: the session's own. ERR_READ_ONLY when there is none. */
int history_store(const struct workspace *ws, struct store **ret, struct err *err) _must_check_;

/* Take the writer's lock with everything published; give it back with store_unlock(). */
int history_hold(struct workspace *ws, struct store *s, struct err *err) _must_check_;

/* --- history_alias.c */

/* Which inodes stand for which older ones, since an undoing has made them (see there). */
struct alias;
struct aliases {
	struct alias *all;
	size_t n, cap;
};
/* Called with each record, going back from the newest; then finished once. */
int aliases_meet(const struct workspace *ws, struct aliases *a, struct record_reader r,
	struct err *err) _must_check_;
void aliases_finish(struct aliases *a);
void aliases_done(struct aliases *a);

/* One step back: *id becomes what it stands for. `content`: size and time must be as they were
 * made. False when it stands for nothing but itself. */
bool aliases_resolve(const struct aliases *a, bool content, struct identity *id);

/* --- history_undo.c */

/*
 * Taking records back in a view.
 *
 * Strict: everything must be as the record left it (ERR_CONFLICT naming the path), as undoing asks.
 * Otherwise what was changed outside Cloister is stepped over, as comparing asks.
 *
 * The contents are borrowed from the store until history_own() has copied what the change set
 * needs, so going back over many changes of one file copies it once, or never.
 */
struct reversal {
	struct workspace *ws;
	const struct aliases *aliases; /* NULL: none */
	struct view *v;
	bool strict;
	unsigned open; /* descriptors that borrowed beginnings of files hold */
};

/* Take back one record. ERR_NO_UNDO when what it needs is not kept. */
int reverse_record(struct reversal *rv, struct record_reader *r, struct err *err) _must_check_;

/* Take back everything after a position, newest first. ERR_NO_UNDO when the history does not reach
 * back that far, ERR_NOT_FOUND when the position is in the future. */
int reverse_since(struct reversal *rv, uint64_t since, struct err *err) _must_check_;

/* Take back everything that can be taken back: to the oldest known state. */
int reverse_known(struct reversal *rv, struct err *err) _must_check_;

/* Make copies of all borrowed content in a view, so that it can be committed. */
int history_own(struct view *v, struct err *err) _must_check_;

/* --- checkpoints.c */

struct checkpoint {
	char label[RECORD_TEXT_MAX + 1];
	uint64_t seq;
	int64_t time_ms;
};

/* All checkpoints, oldest first; *ret is owned by the caller. */
int checkpoints_read(const struct store *s, struct checkpoint **ret, size_t *ret_n,
	struct err *err) _must_check_;

/* The position of a label. ERR_NOT_FOUND. */
int checkpoint_find(
	const struct store *s, const char *label, uint64_t *ret_seq, struct err *err) _must_check_;

#endif
