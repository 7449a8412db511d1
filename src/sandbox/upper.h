/*
 * Reading the upper layer of an overlay: what a command has changed.
 *
 * Done by the init of the fence when every process of the command is gone, so nothing changes
 * meanwhile. The layer was written by a hostile command through overlayfs
 * (Documentation/filesystems/overlayfs.rst, mounted with `userxattr`): a whiteout is a character
 * device 0:0 or an empty file with `user.overlay.whiteout`, a directory that hides what was below
 * carries `user.overlay.opaque` = y. What such a layer cannot hold without something being wrong
 * (devices, redirects, bits that change identity) comes as FENCE_REFUSED with the reason.
 */
#ifndef CLOISTER_SANDBOX_UPPER_H
#define CLOISTER_SANDBOX_UPPER_H

#include "sandbox/protocol.h"

/*
 * Called for every object in the order in which it can be made: a directory before what is in it.
 * `fd` is the content of FENCE_FILE, -1 otherwise; it is closed after the call. A value below 0
 * stops the walk with it.
 */
typedef int (*upper_fn)(void *ctx, const struct fence_entry *e, int fd, struct err *err);

enum { UPPER_DEPTH_MAX = LIMIT_PATH_DEPTH };

/* Walk a layer. `skip` (may be NULL) is a name at the top that is left out. ERR_LIMIT when it is
 * too deep, else what the callback said. */
int upper_walk(int root, const char *skip, upper_fn fn, void *ctx, struct err *err) _must_check_;

#endif
