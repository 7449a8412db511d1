/*
 * The state directory and the base of workspaces: where they are and whether they can be trusted.
 *
 * State: `/var/lib/cloister` for root, else `$XDG_STATE_HOME/cloister`, else
 * `~/.local/state/cloister`. Base: SHANNON_SESSION_WORKSPACES_DIR, else `sessions` below the state.
 * Missing directories are made, 0700.
 *
 * Trusted means: a real directory (the last component is no link), owned by this user; state is
 * closed to everybody else, the base is writable by nobody else; and whoever could replace a
 * directory above is root or this user (a world-writable directory above has the sticky bit).
 */
#ifndef CLOISTER_SESSION_STATE_H
#define CLOISTER_SESSION_STATE_H

#include "base/err.h"

struct state_paths {
	const char *state_dir; /* NULL: as above. Absolute. */
	const char *base_dir;  /* NULL: as above. Absolute. */
};

/* Open both. Errors: ERR_CONFIG (not absolute, no HOME), ERR_DENIED (not trusted; the hint says
 * what to change), ERR_READ_ONLY, ERR_IO. */
int state_open(const struct state_paths *paths, int *ret_state_fd, int *ret_base_fd,
	struct err *err) _must_check_;

/* The directory beside the state whose name is the state's with `suffix`, or `given` when that is
 * not NULL: opened, made when missing, and trusted as state is. */
int state_open_beside(const struct state_paths *paths, const char *suffix, const char *given,
	int *ret_fd, struct err *err) _must_check_;

/* A directory below `dir_fd`: opened, made (0700) when missing, and trusted as state is. */
int state_subdir(int dir_fd, const char *name, int *ret_fd, struct err *err) _must_check_;

#endif
