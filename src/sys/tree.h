/*
 * Walking a directory tree by descriptor: no link is followed, no other file system entered, one
 * directory open at a time whatever the depth (the way up is checked by inode number).
 */
#ifndef CLOISTER_SYS_TREE_H
#define CLOISTER_SYS_TREE_H

#include <stdint.h>
#include <sys/stat.h>

enum { TREE_DEPTH_MAX = 100000, TREE_NAMES_MAX = 256 * 1024 * 1024 };

/* Called for every name below the root; for a directory after everything in it. `dir` is the open
 * directory that holds `name`. A value other than 0 stops the walk with it. */
typedef int (*tree_fn)(void *ctx, int dir, const char *name, const struct stat *st);

/* Walk below a directory (any descriptor of it, borrowed). `skip` (may be NULL) is a name at the
 * top level that is left out. 0, what the callback said, or -1 and errno; names that vanish
 * meanwhile are no error. */
int tree_walk(int root, const char *skip, tree_fn fn, void *ctx);

/* Sum of what is below a directory: sizes of regular files, number of names. */
struct tree_sum {
	int64_t bytes, entries;
};
int tree_count(int root, const char *skip, struct tree_sum *ret);

/* Remove everything below a directory, taking the permissions for it that an owner can take. */
int tree_clear(int dir);

/* Remove name in dir and, when it is a directory, everything below it. ENOENT is no error. */
int tree_remove(int dir, const char *name);

#endif
