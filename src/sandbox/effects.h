/*
 * From what a command left in its upper layer to changes of a view: so quota, conflicts, history,
 * undo, dry runs and diffs are the engine's own.
 *
 * The overlay shows a change as "this is here now"; here it is compared with what is there: content
 * that is the same is no change, a file that only grew is appended to, only a mode is only a mode.
 * Times of last write are kept, since build tools compare them. What has changed below the overlay
 * since the command began is a conflict: it may have read the one and written the other.
 */
#ifndef CLOISTER_SANDBOX_EFFECTS_H
#define CLOISTER_SANDBOX_EFFECTS_H

#include "sandbox/protocol.h"
#include "workspace/changeset.h"

struct effects;

/* `since`: when the command began (CLOCK_REALTIME). The view is borrowed. */
int effects_new(struct view *v, const struct timespec *since, struct effects **ret,
	struct err *err) _must_check_;
void effects_free(struct effects *e); /* accepts NULL */
DEFINE_CLEANUP(struct effects *, effects_free)

/* Take one entry, an upper_fn. `fd` is its content, read by position. ERR_CONFLICT naming the path,
 * ERR_QUOTA, ERR_DENIED for what no change set may hold. */
int effects_take(void *e, const struct fence_entry *entry, int fd, struct err *err);

/* After the last entry. */
int effects_finish(struct effects *e, struct err *err) _must_check_;

/* What is not published: FIFOs, sockets, links that lead outside of the workspace to anything but
 * a tree of trees.def. How many, and the agent path of the first. */
unsigned effects_left_out(const struct effects *e, const char **ret_first);

/* What git would execute later outside (gitguard.h), and so is left as it was. */
unsigned effects_held_back(const struct effects *e, const char **ret_first);

#endif
