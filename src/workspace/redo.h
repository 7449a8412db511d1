/*
 * The redo log: what a commit is about to do, complete before its first step.
 *
 *   u32 magic | u32 flags | u64 length | u64 generation | u64 seq | i64 usage bytes and entries
 *   after it | i64 history bytes before it | u64 offset of its history record | u32 length of the
 * record | u32 number of contents | SHA-256 of all of this with the digest zero | the record
 * (record.h) | per content: u32 step, u32 length, bytes
 *
 * In native byte order: the log never leaves the machine (the record inside is portable).
 *
 * The log is overwritten in place. Its first `log_end` bytes are intents of this generation whose
 * effects only the log makes durable; there is at most one more behind them, which the state page
 * points to while it is being published. A checkpoint makes all effects durable and starts a new
 * generation at offset 0.
 */
#ifndef CLOISTER_WORKSPACE_REDO_H
#define CLOISTER_WORKSPACE_REDO_H

#include "workspace/history_log.h"

enum redo_flags {
	REDO_POWER = 1,    /* was synced before its first step: survives a power cut */
	REDO_KEEP = 2,     /* what it replaces is kept as history */
	REDO_RECORDED = 4, /* in memory only: its history record is there already */
};

enum {
	REDO_INLINE_MAX = 64 * 1024,    /* content of this size or less goes into the log */
	REDO_LOG_FIRST = 128 * 1024,    /* size of the log at first, doubled as needed */
	REDO_LOG_MAX = 4 * 1024 * 1024, /* up to this; then a checkpoint empties it */
	REDO_INTENT_MAX = 512 * 1024 * 1024,
};

struct intent {
	uint32_t flags;
	uint64_t generation, seq, length;
	int64_t bytes_after, entries_after, history_bytes;
	uint64_t history_at;
	struct record head; /* texts borrowed from `memory`, or from whoever writes it */
	struct step *steps; /* owned after intent_read(); texts borrowed */
	unsigned n_steps;
	char *memory;
};
void intent_done(struct intent *in);

/* Encode: the steps with content of at most REDO_INLINE_MAX get it inline when `in->flags` has
 * REDO_POWER (and then STEP_INLINE). */
int intent_encode(const struct workspace *ws, struct intent *in, struct buf *out,
	struct err *err) _must_check_;

/* Read and check the intent at an offset of the log. ERR_CORRUPT when there is none. Steps whose
 * mount is not in this workspace's table: ERR_UNAVAILABLE. */
int intent_read(const struct workspace *ws, const struct store *s, uint64_t at, struct intent *ret,
	struct err *err) _must_check_;

/* Make room for an intent of at most `len` bytes that will be synced. May checkpoint. */
int redo_room(struct store *s, uint64_t len, struct err *err) _must_check_;

/* Write an encoded intent at the end of the log. With `power` it is synced. */
int redo_write(struct store *s, const struct buf *intent, bool power, struct err *err) _must_check_;

/* Make the intent at the end of the log unreadable, after a commit that was taken back. */
int redo_forget(struct store *s, bool power, struct err *err) _must_check_;

/* Make all effects durable and empty the log. Under the lock, at rest. */
int redo_checkpoint(struct store *s, struct err *err) _must_check_;

/* Is the content of this step small enough for the log? */
bool step_fits_inline(const struct step *s);

#endif
