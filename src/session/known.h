/*
 * Directories that were attached before: what opening them again needs, without the database.
 *
 * An agent's client starts `cloister mcp --workspace DIR` anew for every conversation, and opening
 * the database is a third of what such a start costs. So the row of an attached directory, which
 * does not change, is kept in a small file of its own:
 *
 *     <state>/attached/<inode>-<birth>
 *
 * It is only ever a hint. The lease is the truth: a session that was deleted has none (or a dead
 * one), and then the database is asked. A file that is torn, of another version, of another user or
 * of another database counts as none; so does one of a directory whose birth is not known, since an
 * inode number alone is used again.
 */
#ifndef CLOISTER_SESSION_KNOWN_H
#define CLOISTER_SESSION_KNOWN_H

#include "session/store.h"

/* The row of this directory; false when it is not known. */
bool known_find(int state_fd, const struct dir_identity *dir, struct session_row *ret);

/* Keep the row of an attached directory. What cannot be kept is asked for again. */
void known_keep(int state_fd, const struct session_row *row);

/* Before the row goes, and when it was kept too late. */
void known_forget(int state_fd, const struct dir_identity *dir);

#endif
