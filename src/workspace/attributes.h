/*
 * What a file or directory has beside its content: owner, group, mode, access control lists,
 * extended attributes, times.
 *
 * A new object gets what the kernel would have given it in its directory (attributes_inherit();
 * acl(5) "object creation and default ACLs", inode(7) set-group-ID), which matters since staged
 * content is made in the store and only later gets its name. What takes the place of another object
 * gets that object's (attributes_copy()).
 */
#ifndef CLOISTER_WORKSPACE_ATTRIBUTES_H
#define CLOISTER_WORKSPACE_ATTRIBUTES_H

#include "base/attr.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

enum {
	ATTRIBUTES_NAMES_MAX = 16 * 1024, /* bytes of the names of one object's attributes */
	ATTRIBUTES_VALUE_MAX = 64 * 1024, /* bytes of one value: what Linux allows */
};

/* Owner, group, extended attributes (an ACL is one) and this mode. Goes on behind what cannot be
 * kept and returns false. */
bool attributes_copy(int from, const struct stat *st, int to, mode_t mode);

/*
 * Owner, group, extended attributes and times of something below `dir` (the path is followed
 * through no link), and this mode; a directory also gets its set-group-ID and sticky bits. What
 * `to` has beyond that goes. A file never gets set-user-ID or set-group-ID. False when something is
 * missing.
 */
bool attributes_restore(int dir, const char *path, int to, mode_t mode);

/* The mode that open(2) would have been asked for, when only the usual umask of 022 has taken from
 * it: a default ACL takes the place of the umask. */
mode_t attributes_before_umask(mode_t mode);

/* Has a directory (O_PATH will do) a default ACL? */
bool attributes_has_default(int dir);

/*
 * Give a new file what it inherits from a directory (O_PATH will do): the group of a set-group-ID
 * directory, and its default ACL, masked by `acl_mode`. Repeatable. 0; 1 when something of it could
 * not be given (the group is not ours to give); -1 and errno.
 */
int attributes_inherit(int dir, int fd, mode_t acl_mode);

/* Mask a default ACL (the value of system.posix_acl_default) into the access ACL of something that
 * is made with this mode. False when it is no ACL. */
bool attributes_mask_acl(void *acl, size_t n, mode_t mode);

/* A directory of ours inherits nothing, and hands nothing on: what is made in it gets its
 * attributes by the functions above. */
void attributes_strip(int dir);

#endif
