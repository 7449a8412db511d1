/*
 * A view: one call's private picture of a workspace.
 *
 * A view maps path -> staged file, made directory, link or whiteout over the untouched workspace.
 * Every open, stat and listing of a call goes through it, so the call sees its own writes and
 * nobody else does. Nothing in the workspace changes until the finished change set is committed
 * (commit.h); freeing a view drops everything.
 *
 * Paths come in as agents spell them: relative to /workspace, or absolute below a mount's agent
 * path, or below the client's root. view_resolve() is the only way in. It never opens a string
 * twice: it walks by openat2(RESOLVE_BENEATH|NO_MAGICLINKS|NO_XDEV) from the mount's descriptor.
 */
#ifndef CLOISTER_WORKSPACE_VIEW_H
#define CLOISTER_WORKSPACE_VIEW_H

#include "base/sha256.h"
#include "workspace/workspace.h"

#include <sys/stat.h>

enum node_kind {
	NODE_ABSENT, /* no such name, but its parent exists */
	NODE_FILE,
	NODE_DIR,
	NODE_LINK,  /* only with RESOLVE_NOFOLLOW */
	NODE_OTHER, /* FIFO, socket, device: can be named in listings, deleted, and nothing else */
};

/* What a file was when it was looked at; commit compares it again (conflict when it differs). */
struct identity {
	dev_t dev;
	ino_t ino;
	int64_t size;
	struct timespec mtime, ctime;
};

/* A resolved target. Plain data plus one descriptor; node_done() releases it. */
struct node {
	enum node_kind kind;
	unsigned mount;
	bool read_only;    /* the mount is */
	bool staged;       /* the content is this view's own */
	bool lacks_parent; /* RESOLVE_PARENTS_MAY_LACK: some directory above is missing too */
	int fd;            /* O_PATH descriptor of the real object; -1 when there is none; owned */
	const char *spelled;  /* agent path as asked, normalised to absolute ("/workspace/a/l/x");
				 escaped text; owned by the node, as the next three */
	const char *resolved; /* agent path after links ("/workspace/a/b/x"); escaped text. Policy
				 sees both */
	const char *path; /* bytes relative to the mount's root, "" for the root itself; no link in
			     it */
	const char *name; /* last component, inside `path` */
	struct stat st;   /* when not NODE_ABSENT */
	struct identity id; /* when it exists in the real tree */
	void *memory;       /* what the texts point into */
};

void node_done(struct node *n);
#define _cleanup_node_ _cleanup_(node_done)

enum resolve_flags {
	RESOLVE_NOFOLLOW = 1, /* do not follow a link in the last component */
	RESOLVE_PARENTS_MAY_LACK =
		2, /* missing parents are not an error (create_dirs); node.kind is NODE_ABSENT */
};

struct view;

int view_new(struct workspace *ws, struct view **ret, struct err *err) _must_check_;
void view_free(struct view *v);
DEFINE_CLEANUP(struct view *, view_free)

/*
 * Resolve a path. Errors: ERR_PATH_INVALID (empty, NUL, longer than LIMIT_PATH_BYTES, component
 * over 255 bytes), ERR_PATH_ESCAPE (absolute outside every mount, `..` above the root, a link that
 * leads out), ERR_LINK_REFUSED (strict_links, link loop), ERR_NOT_FOUND (a parent is missing),
 * ERR_NOT_DIRECTORY. A missing last component is not an error: kind is NODE_ABSENT. Special files
 * are NODE_OTHER and are never opened.
 */
int view_resolve(struct view *v, struct str path, unsigned flags, struct node *ret,
	struct err *err) _must_check_;

/* Open a file for reading: O_RDONLY|O_NONBLOCK, checked to be the very file of `n` (ERR_CONFLICT
 * when it was swapped). */
int view_open(struct view *v, const struct node *n, int *ret_fd, struct err *err) _must_check_;

/* Text of a symbolic link, owned by the caller. */
int view_readlink(struct view *v, const struct node *n, char **ret, struct err *err) _must_check_;

/* --- listing
 * ------------------------------------------------------------------------------------------------------
 */

struct dir_entry {
	const char *name; /* bytes; borrowed until the next call */
	enum node_kind kind;
};

/* Names of a directory as the view sees it, unsorted, without "." and ".." and without the store.
 */
struct view_dir;
int view_opendir(struct view *v, const struct node *dir, struct view_dir **ret,
	struct err *err) _must_check_;
int view_readdir(struct view_dir *d, struct dir_entry *ret,
	struct err *err); /* 1: an entry, 0: end, <0: error */
int view_dir_stat(struct view_dir *d, const char *name, struct stat *ret,
	struct err *err); /* lstat of an entry */
/* Open a subdirectory listing without resolving from the root again; never follows links or crosses
 * mounts. */
int view_dir_enter(
	struct view_dir *d, const char *name, struct view_dir **ret, struct err *err) _must_check_;
void view_closedir(struct view_dir *d);
DEFINE_CLEANUP(struct view_dir *, view_closedir)

/* --- changes
 * ------------------------------------------------------------------------------------------------------
 */

/* A file being written, outside every name. Reserves quota as it grows (ERR_QUOTA with both
 * figures). */
struct staged;
int staged_new(struct view *v, unsigned mount, struct staged **ret, struct err *err) _must_check_;
int staged_write(struct staged *s, const void *p, size_t n, struct err *err) _must_check_;
int staged_copy(struct staged *s, int from_fd, int64_t offset, int64_t len,
	struct err *err) _must_check_; /* len < 0: to the end */
int staged_fd(const struct staged *s); /* borrowed, for reading back */
int64_t staged_size(const struct staged *s);
void staged_free(struct staged *s); /* drop it; accepts NULL */
DEFINE_CLEANUP(struct staged *, staged_free)

/* All of these leave the view unchanged on failure. Read-only mounts: ERR_READ_ONLY. */

/* Make or replace a file. `take` is consumed also on failure. mode: used for new files only (a
 * replacement keeps mode, owner, ACL and xattrs). `must_hash`: NULL, or the content hash the
 * current file must have (ERR_CONFLICT otherwise). */
enum put_how {
	PUT_CREATE = 1 /* ERR_EXISTS when there */,
	PUT_REPLACE = 2 /* ERR_NOT_FOUND when not */,
	PUT_EITHER = 3,
	PUT_PARENTS = 4 /* flag: make the directories that are missing above it (0755) */,
	PUT_UMASKED = 8 /* flag: the mode is what a umask of 022 has left of what is wanted; a
			   default ACL takes the place of the umask, as in open(2) */
};
int view_put(struct view *v, const struct node *n, struct staged *take, enum put_how how,
	mode_t mode, const struct sha256 *must_hash, struct err *err) _must_check_;

/* Append the content of `take` to an existing file, in place at commit. */
int view_append(struct view *v, const struct node *n, struct staged *take,
	const struct sha256 *must_hash, struct err *err) _must_check_;

/* Make a directory; with `parents` also what is missing above it (existing is then no error). The
 * mode is what a umask of 022 has left. */
int view_mkdir(struct view *v, const struct node *n, mode_t mode, bool parents,
	struct err *err) _must_check_;

/* Remove a file, link or special file; a directory only when empty or `recursive`. *ret_removed
 * (may be NULL): names removed. */
int view_remove(struct view *v, const struct node *n, bool recursive, int64_t *ret_removed,
	struct err *err) _must_check_;

/* Rename; `replace` allows an existing file (or empty directory) at `to`. A directory never moves
 * into itself (ERR_INVALID_ARGUMENT). Across mounts it becomes copy and remove in the same change
 * set. */
int view_rename(struct view *v, const struct node *from, const struct node *to, bool replace,
	struct err *err) _must_check_;

int view_chmod(struct view *v, const struct node *n, mode_t mode,
	struct err *err) _must_check_; /* setuid, setgid and sticky: refused */
int view_symlink(
	struct view *v, const struct node *n, const char *target, struct err *err) _must_check_;
/* The same for an absolute target outside of the workspace that the caller has judged; tools refuse
 * to follow it nevertheless. */
int view_symlink_out(
	struct view *v, const struct node *n, const char *target, struct err *err) _must_check_;

#endif
