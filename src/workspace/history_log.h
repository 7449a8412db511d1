/*
 * The log of a store's history: records (record.h) in the order of their numbers, in one file of
 * which [history_start, history_end) of the store's page is live.
 *
 * The writer's lock orders appending and forgetting. Readers take none: the live part only grows at
 * its end and shrinks at its start, and what is forgotten reads as zeros, which no record is; so a
 * reader that meets one that has just been forgotten sees the end of the history there.
 *
 * A record costs its own length and what it keeps in `saved/`. When the sum passes
 * workspace_options.history_bytes, or a record is older than history_age_s, the oldest goes with
 * all it keeps. Content goes before its record, so a death in between leaves a record that cannot
 * be undone, never content that nobody knows of.
 */
#ifndef CLOISTER_WORKSPACE_HISTORY_LOG_H
#define CLOISTER_WORKSPACE_HISTORY_LOG_H

#include "workspace/engine.h"
#include "workspace/record.h"
#include "workspace/step.h"

/* --- writing: all of these under the writer's lock ----------------------------------------------
 */

/* Could history hold what a commit replaces and deletes? *ret_why is static text when not.
 * ERR_NO_UNDO instead, when the options require history. */
int history_would_keep(const struct workspace *ws, const struct step *steps, unsigned n,
	bool *ret_keep, const char **ret_why, struct err *err) _must_check_;

/* Write the record of a published commit. It can be repeated after a death at any point, since it
 * says where the record goes and what history has cost before. */
struct history_head {
	uint64_t seq, undoes;
	int64_t time_ms;
	const struct commit_info *info; /* NULL: not known any more */
	bool keep;                      /* what it replaced and deleted is in `saved/` */
	const char *why_not;            /* when not */
	uint64_t at;                    /* offset of the record */
	int64_t bytes_before;           /* history_bytes without it */
};
int history_add(const struct workspace *ws, struct store *s, const struct history_head *head,
	struct step *steps, unsigned n, struct err *err) _must_check_;

/* End the forgetting of a record that a death has interrupted. Before anything else of a commit. */
void history_settle(struct store *s);

/* Forget the oldest records until the limits hold. */
int history_evict(const struct workspace *ws, struct store *s, struct err *err) _must_check_;

/* --- reading ------------------------------------------------------------------------------------
 */

/* A place between two records. */
struct history_place {
	const struct store *s;
	uint64_t at;
	struct buf frame; /* the last record read */
};
void history_at_end(struct history_place *p, const struct store *s);
void history_at_start(struct history_place *p, const struct store *s);
void history_place_done(struct history_place *p);
#define _cleanup_history_place_ _cleanup_(history_place_done)

/* Step over a record towards the start or the end: 1 with *ret open (borrowed until the next step),
 * 0 at the end of the live part, <0: ERR_CORRUPT, ERR_IO, ERR_NO_MEMORY. */
int history_back(struct history_place *p, struct record_reader *ret, struct err *err) _must_check_;
int history_forth(struct history_place *p, struct record_reader *ret, struct err *err) _must_check_;

/* What a record costs. */
int64_t history_cost(struct record_reader r, size_t frame);

/* The mount of a workspace that a record's mount index means, or -1 when there is none (any more).
 */
int history_mount(const struct workspace *ws, const struct record *r, unsigned mount);

/*
 * Which records are undone follows from the newer ones: a record that takes another back undoes it,
 * unless it is undone itself. Going back from the newest, undone_meet() is called with each record
 * and says whether that one is undone.
 */
struct undone {
	uint64_t *seqs;
	size_t n, cap;
};
int undone_meet(
	struct undone *u, const struct record *r, bool *ret_undone, struct err *err) _must_check_;
void undone_done(struct undone *u);

#endif
