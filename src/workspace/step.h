/*
 * A step: one operation of a commit as it is published, undone and recovered.
 *
 * Steps are made from a change set, or read back from a record after a crash; from there on both
 * are the same. step_forward() and step_back() judge by inode numbers what has been done already,
 * so that each can be repeated after a crash at any point inside it.
 *
 * Each step may own one name in its mount's `saved/`: "SEQ.INDEX". Before publishing it is the
 * staged content (or, for a change in place, a copy of the old content); afterwards what was
 * replaced or deleted.
 */
#ifndef CLOISTER_WORKSPACE_STEP_H
#define CLOISTER_WORKSPACE_STEP_H

#include "workspace/engine.h"

enum step_flags {
	STEP_DIR = 1,      /* the object is a directory */
	STEP_BASE = 2,     /* relies on a real object, whose inode number is base_ino */
	STEP_NAMED = 4,    /* the content lies under its saved name before it is published */
	STEP_IN_PLACE = 8, /* REPLACE: written into the old inode, whose content was copied */
	STEP_COPIED = 16,  /* the old inode has other names or writers: history keeps a copy of it,
			      "SEQ.INDEX.c" until the commit ends, then under the saved name */
	STEP_INLINE = 32,  /* the content is in the record */
	STEP_RENUMBERED = 64, /* in memory: a replay has changed base_ino */
	STEP_UMASKED = 128,   /* the mode is what a umask of 022 has left: see attributes.h */
	STEP_LOST = 256,      /* in memory: owner, group or lists could not be given to it */
};

struct step {
	enum change_kind kind;
	unsigned mount, index;
	uint32_t flags;
	const char *path, *from; /* borrowed; at the moment of this step */
	const char *target;      /* LINK; borrowed */
	const char *like; /* CREATE, MKDIR: below `saved/`, whose attributes it gets; NULL: it
			     inherits its directory's; borrowed */
	struct str data;  /* STEP_INLINE; borrowed */
	mode_t mode_before, mode_after;
	mode_t base_type; /* S_IFMT bits of the real object */
	uint64_t base_ino, base_dev, content_ino;
	struct timespec base_mtime, base_ctime, content_mtime;
	int64_t size_before, size_after;
	int64_t bytes, entries; /* what it adds to usage */
	int content_fd;         /* -1: none (any more); borrowed */
	unsigned next_mover;    /* the next RENAME or DELETE behind it: later_of() */
};

enum { STEP_NAME = 40 };
void step_saved_name(uint64_t seq, const struct step *s, char out[STEP_NAME]);
void step_copy_name(uint64_t seq, const struct step *s, char out[STEP_NAME]);

/* Publish one step. ERR_CONFLICT when something else is there; then nothing of this step is done.
 */
int step_forward(
	const struct workspace *ws, uint64_t seq, struct step *s, struct err *err) _must_check_;

/* After a power cut: make the content of a CREATE or REPLACE again from the record, under its saved
 * name. It gets another content_ino. */
int step_remake(
	const struct workspace *ws, uint64_t seq, struct step *s, struct err *err) _must_check_;
/* Does the file at the path hold what the record has as its content, or (`shorter`) did the power
 * cut take some of it? */
enum step_content { STEP_CONTENT_SAME, STEP_CONTENT_SHORT, STEP_CONTENT_OTHER };
enum step_content step_compare(const struct workspace *ws, const struct step *s);
/* Write the record's content into the file at the path, which is the very inode `ino`. */
int step_rewrite(const struct workspace *ws, const struct step *s, uint64_t ino, int64_t at,
	struct err *err) _must_check_;

/* Take one step back, as far as it was published. ERR_CONFLICT when something else is there. */
int step_back(const struct workspace *ws, uint64_t seq, const struct step *s,
	struct err *err) _must_check_;

/* Is it published already? 1 yes, 0 no, <0 neither can be said (ERR_CONFLICT). */
int step_is_done(const struct workspace *ws, uint64_t seq, const struct step *s, struct err *err);

/* Could it be published now (is its content still there, without making it again)? */
bool step_is_possible(const struct workspace *ws, uint64_t seq, const struct step *s);

/* The renames and removals behind a step, which move or take what it has left. */
enum { STEP_PATH_ROOM = LIMIT_PATH_BYTES * 2 };
struct later {
	const struct step *steps;
	unsigned n;
	bool lost; /* there are so many that following them would take too long */
};
struct later later_of(struct step *steps, unsigned n); /* sets `next_mover` of each */
/* Where what a step has left is when all are published; false when it is removed again. */
bool later_path(const struct later *l, const struct step *s, char path[STEP_PATH_ROOM]);

/* When all are published, from the last to the first: a directory gets the attributes and times of
 * the one that it brings back (before, a mode without writing would keep others out). Repeatable.
 */
void step_settle(const struct workspace *ws, const struct later *l, struct step *s);

/* After the last step: keep copies under the saved names; `keep` false: forget what was saved. What
 * cannot be done is left for the next cleaning of the store. */
void step_keep(const struct workspace *ws, uint64_t seq, const struct step *s, bool keep);

/* Forget content that was named but not published. */
void step_drop(const struct workspace *ws, uint64_t seq, const struct step *s);

#endif
