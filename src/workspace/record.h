/*
 * Records: how a change set is written down, in the redo log before it is published and in the
 * history afterwards.
 *
 * A record is one frame. All integers are little-endian.
 *
 *   u32 magic | u8 type | u8 version | u16 zero | u32 length of the body | u8[8] checksum |
 *   body | u32 length of the whole frame
 *
 * The checksum is the beginning of SHA-256 over everything in the frame but itself, so a torn or
 * altered record is seen as such. The length at the end lets a file of records be read from its
 * end. A text is u32 length, bytes, NUL; so what the reader hands out are C strings inside the
 * frame, borrowed as long as its bytes are.
 *
 * The reader trusts nothing: lengths are checked by subtraction, a text with a NUL in it, a
 * leftover byte, an unknown kind, a path that is absolute or has `..` in it make the record
 * ERR_CORRUPT.
 */
#ifndef CLOISTER_WORKSPACE_RECORD_H
#define CLOISTER_WORKSPACE_RECORD_H

#include "workspace/changeset.h"

enum record_type {
	RECORD_COMMIT = 1,     /* a change set */
	RECORD_CHECKPOINT = 2, /* a name for a position; has a label and no changes */
};

enum {
	RECORD_HEAD = 20,               /* bytes before the body */
	RECORD_TAIL = 4,                /* and behind it */
	RECORD_MAX = 128 * 1024 * 1024, /* bytes of one frame */
	RECORD_TEXT_MAX = 64,           /* call id, tool, turn, label */
	RECORD_WHY_MAX = 200,
};

struct record {
	enum record_type type;
	uint64_t seq;    /* of the change set; of a checkpoint: the last one before it */
	uint64_t undoes; /* the change set that this one takes back; 0: none */
	int64_t time_ms; /* Unix time */
	bool undoable;
	const char *why_not;                       /* "" when it can be undone */
	const char *call_id, *tool, *turn, *label; /* "" when there is none */

	/* Mounts that the changes name by index; agent paths, since the table of the next start
	 * may have another order. */
	const char *mounts[LIMIT_MOUNTS];
	unsigned n_mounts;

	uint32_t n_changes;
};

enum record_flags {
	RECORD_IS_DIR = 1,
	RECORD_IN_PLACE = 2, /* published by writing into the existing inode; `saved` is a copy */
	RECORD_HAD = 4,      /* something was at the path before: `before` is set */
	RECORD_HAS = 8,      /* something is there after it: `after` is set */
	RECORD_COPIED = 16,  /* `saved` is a copy, since the old inode had other names or writers */
	RECORD_UMASKED = 32, /* redo only: mode_after is what a umask has left */
};
enum { RECORD_FLAGS_ALL = 63 };

struct record_change {
	enum change_kind kind;
	unsigned mount; /* index into record.mounts */
	unsigned flags;
	const char *path;   /* where, in the state that the changes before this one have made */
	const char *from;   /* RENAME: the old path; redo, CREATE and MKDIR: what they bring back,
			       below   `saved`; else "" */
	const char *saved;  /* name in the store's `saved` of what was replaced or deleted, "" when
			       nothing is kept */
	const char *staged; /* redo only: name in `saved` of the new content, else "" */
	const char *target; /* LINK: the new text; DELETE of a link: the old one; else "" */
	mode_t mode_before, mode_after;  /* with the file type bits; 0: nothing there */
	int64_t size_before, size_after; /* -1: nothing there */
	int64_t bytes_delta, entries_delta;
	struct identity before, after;
};

/*
 * Write: record_begin(), then exactly n_changes times record_put(), then record_end(). A buffer
 * that overflows is seen at its buf_check(); texts that are too long or a wrong count are our own
 * mistakes (BUG_ON).
 */
struct record_writer {
	struct buf *out;
	size_t start;
	uint32_t left;
};
void record_begin(struct record_writer *w, struct buf *out, const struct record *r);
void record_put(struct record_writer *w, const struct record_change *c);
void record_end(struct record_writer *w);

/* Length of the frame that starts with these RECORD_HEAD bytes: so much has to be read. ERR_CORRUPT
 * when this is no record. */
int record_length(const void *head, size_t n, size_t *ret_len, struct err *err) _must_check_;

/* Length of the frame that ends with these RECORD_TAIL bytes. */
int record_length_back(const void *tail, size_t n, size_t *ret_len, struct err *err) _must_check_;

/* Reading: opening checks the frame and its checksum. Changes come in order. */
struct record_reader {
	struct record head;
	const uint8_t *p, *end;
	uint32_t left;
};
int record_open(struct record_reader *r, const void *frame, size_t n, struct err *err) _must_check_;

/* 1: a change, 0: that was the last, <0: ERR_CORRUPT. */
int record_next(struct record_reader *r, struct record_change *ret, struct err *err) _must_check_;

#endif
