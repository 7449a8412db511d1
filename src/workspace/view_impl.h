/*
 * Inside a view: the map of what differs from the real tree, and the list of operations that makes
 * the difference.
 *
 * The map answers lookups: an entry says what is at a path now; a path without one is what its
 * nearest ancestor with an entry makes it (nothing below a made directory or a whiteout; the real
 * tree, perhaps at another place, below a real or moved object).
 *
 * The list is a history that can be played in order: each operation was possible in the state that
 * the ones before it had made, and its path is the path at that moment. Content operations of one
 * path are merged, what was made and removed again is dropped; renames and removals of real objects
 * stay where they are.
 */
#ifndef CLOISTER_WORKSPACE_VIEW_IMPL_H
#define CLOISTER_WORKSPACE_VIEW_IMPL_H

#include "workspace/changeset.h"
#include "workspace/engine.h"

#include "sys/fs.h"

enum now_kind {
	NOW_NONE, /* nothing: removed or moved away */
	NOW_FILE, /* content of our own */
	NOW_DIR,  /* a directory made here */
	NOW_LINK, /* a symbolic link made here */
	NOW_REAL, /* a real object: moved here, or at its own place with another mode or a tail */
};

struct staged {
	struct workspace *ws;
	struct view *view; /* NULL once a change set owns it */
	unsigned mount;
	int fd;                  /* -1: closed, `name` names it */
	char name[FS_TEMP_NAME]; /* "" without a name */
	int64_t size;
	/* Borrowed: what history keeps, or the beginning of a file. It is read, never written or
	 * removed, and counts to nothing; history_own() makes copies of what a change set needs. */
	bool borrowed;
	bool is_copy; /* not the inode itself that was in the tree */
	char *kept;   /* its path below `saved/`; NULL: only the descriptor; owned */
};

/* A borrowed descriptor of the content for reading, opened again when it was closed. */
int staged_reopen(struct staged *s, struct err *err) _must_check_;

/* The first `size` bytes of what is below `saved/` at a path; or, when that is NULL, of a
 * descriptor, which is taken also on failure. */
int staged_borrow(struct view *v, unsigned mount, const char *kept, int take, int64_t size,
	struct staged **ret, struct err *err) _must_check_;

/* Close what staged_reopen() has opened of borrowed content, so that reading much of it needs few
 * descriptors. */
void staged_rest(struct staged *s);

/* The real object that an operation relies on: where it is before the commit, and what it was. */
struct base {
	char *path; /* owned; NULL: none */
	struct stat st;
};

struct op {
	struct op *prev, *next;
	enum change_kind kind;
	unsigned mount;
	char *path, *from; /* as of this operation; owned */
	struct base base;
	struct staged *content; /* owned */
	char *target;           /* LINK; owned */
	char *like; /* CREATE, MKDIR: below `saved/`, what it brings back; owned, NULL: nothing */
	mode_t mode;
	bool is_dir;
	bool optional;          /* MKDIR of a missing parent: somebody else may make it first */
	bool unlike;            /* the path of what it brings back is too long to be written down */
	bool umasked;           /* the mode is what a umask has left; a default ACL replaces that */
	int64_t bytes, entries; /* DELETE: what it takes from usage */
};

struct entry {
	struct entry *next; /* in its bucket */
	uint64_t hash;
	unsigned mount;
	char *path; /* owned */
	enum now_kind now;
	struct op *op;      /* makes `now`'s content, directory, link or tail; borrowed */
	struct op *mode_op; /* NOW_REAL: its MODE; borrowed */
	struct op *removal; /* NOW_NONE: the DELETE of a regular file here, for merging; borrowed */
	struct base real;   /* NOW_REAL: the object, where it is before the commit */
	bool pinned;        /* NOW_DIR: a RENAME relies on it, so its MKDIR has to stay */
	int merged_fd;      /* NOW_REAL with a tail: both together, for reading; -1: not made */
};

struct view {
	struct workspace *ws;
	struct entry **buckets;
	size_t n_buckets, n_entries;
	struct op *first, *last;
	unsigned n_ops;
	uint64_t seqs[LIMIT_MOUNTS]; /* last change set of each store when the view was made */
	int64_t staged_bytes;
	unsigned staged_open;
	uint64_t undoes; /* the record that this change set takes back */
};

/* --- view_map.c */
struct entry *view_entry(const struct view *v, unsigned mount, const char *path, size_t n);
int view_entry_make(struct view *v, unsigned mount, const char *path, struct entry **ret,
	struct err *err) _must_check_;
int view_rekey(struct view *v, unsigned mount, const char *from, const char *to,
	struct err *err) _must_check_;
void view_entry_forget(struct view *v, struct entry *e);
/* Forget every entry below a path (not the path itself). */
void view_forget_below(struct view *v, unsigned mount, const char *path);
void view_clear_entries(struct view *v);
bool path_is_below(const char *path, const char *dir);

int op_new(struct view *v, enum change_kind kind, unsigned mount, const char *path, struct op **ret,
	struct err *err) _must_check_;
void op_append(struct view *v, struct op *op);
void op_unlink(struct view *v, struct op *op);
void op_free(struct op *op);
DEFINE_CLEANUP(struct op *, op_free)
int base_set(struct base *b, const char *path, const struct stat *st, struct err *err) _must_check_;
void base_done(struct base *b);

/* Attributes of what is below `saved/` at a path, for what an operation makes. */
int op_like(struct op *op, const char *kept, struct err *err) _must_check_;

/* What an operation adds to usage. */
struct delta {
	int64_t bytes, entries;
};
struct delta op_delta(const struct op *op);

/* --- resolve.c */

/* Where a path of the view is. */
enum place_kind { PLACE_REAL, PLACE_MADE, PLACE_GONE };
struct place {
	enum place_kind kind;
	struct entry *entry;         /* exactly this path's, or NULL */
	char real[LIMIT_PATH_BYTES]; /* PLACE_REAL: in the real tree, which may lack it */
};
void view_locate(const struct view *v, unsigned mount, const char *path, struct place *ret);

/* What is there: kind, stat, O_PATH descriptor of a real object (-1 otherwise; owned). Errors of
 * the kernel other than absence. */
struct found {
	enum node_kind kind;
	bool no_parent;  /* NODE_ABSENT since something above is absent or no directory */
	bool bad_parent; /* something above is no directory */
	int fd;
	struct stat st;
	struct entry *entry;
	bool real;
};
int view_find(const struct view *v, unsigned mount, const char *path, struct found *ret,
	struct err *err) _must_check_;

/* A node of a path of the view that is known already: no links are followed. ERR_PATH_INVALID when
 * it is too long. */
int view_node_at(struct view *v, unsigned mount, const char *path, struct node *ret,
	struct err *err) _must_check_;

/* --- view_dir.c */

/* Sizes of files and number of names below a directory of the view (not of itself). */
int view_sum(struct view *v, unsigned mount, const char *path, struct delta *ret,
	struct err *err) _must_check_;

#endif
