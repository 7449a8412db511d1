/*
 * Ending a commit: in order, after a failure, after a death, after a power cut.
 *
 * Everything here runs under the store's lock and can itself die at any point and be run again.
 */
#ifndef CLOISTER_WORKSPACE_RECOVER_H
#define CLOISTER_WORKSPACE_RECOVER_H

#include "workspace/redo.h"

/* All steps are published: keep or forget old inodes, write the history, set usage and seq. */
int recover_outcome(struct workspace *ws, struct store *s, const struct intent *in,
	struct err *err) _must_check_;

/* Take back every step that was published, and the intent. `died`: the step after the counted ones
 * may be published, too; else it has failed. */
int recover_back(struct workspace *ws, struct store *s, const struct intent *in, bool died,
	struct err *err) _must_check_;

/* The store is not at rest and its writer is dead: finish its change set when everything that is
 * missing can still be published, else take it back. */
int recover(struct workspace *ws, struct store *s, struct err *err) _must_check_;

/* Clear the saved names of a writer that died before its intent. */
void recover_unprepared(struct workspace *ws, struct store *s);

/* The page is from an earlier boot of the kernel and the store was not closed in order: publish
 * again what the log holds and the disk lacks. */
int recover_boot(struct workspace *ws, struct store *s, struct err *err) _must_check_;

/* Something that is neither as before nor as after: it is left as it is, and said. */
void recover_interfered(struct workspace *ws, struct store *s, const struct step *step);

#endif
