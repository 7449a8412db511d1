/*
 * A change set: the exact list of what a call changes, in the order in which it is to be published.
 *
 * Made by finishing a view; read by dry runs, policy (the effects contract), diffs and results;
 * consumed by commit.
 */
#ifndef CLOISTER_WORKSPACE_CHANGESET_H
#define CLOISTER_WORKSPACE_CHANGESET_H

#include "workspace/view.h"

/* CHANGE(NAME, "word in results") */
#define CHANGE_KINDS(CHANGE)                                                                       \
	CHANGE(CREATE, "created")                                                                  \
	CHANGE(REPLACE, "replaced")                                                                \
	CHANGE(APPEND, "appended")                                                                 \
	CHANGE(DELETE, "deleted")                                                                  \
	CHANGE(RENAME, "renamed")                                                                  \
	CHANGE(MKDIR, "directory_created")                                                         \
	CHANGE(MODE, "mode_changed")                                                               \
	CHANGE(LINK, "link_created")

enum change_kind {
#define CHANGE(name, word) CHANGE_##name,
	CHANGE_KINDS(CHANGE)
#undef CHANGE
		CHANGE_KIND_MAX_,
};

const char *change_kind_word(enum change_kind k);

struct change {
	enum change_kind kind;
	unsigned mount;
	const char *path;                /* relative to the mount's root; bytes */
	const char *from_path;           /* RENAME: the old path */
	const char *agent_path;          /* escaped text, absolute ("/workspace/a") */
	int64_t size_before, size_after; /* -1: did not or does not exist */
	int64_t entries_delta, bytes_delta;
	mode_t mode_before, mode_after;
	bool is_dir;
};

struct changeset;

/* Finish a view: what it holds becomes a change set (the view is empty afterwards, its lookups go
 * on working). */
int view_finish(struct view *v, struct changeset **ret, struct err *err) _must_check_;
void changeset_free(struct changeset *cs); /* drops staged content and reservations; accepts NULL */
DEFINE_CLEANUP(struct changeset *, changeset_free)

unsigned changeset_count(const struct changeset *cs);
const struct change *changeset_get(const struct changeset *cs, unsigned i);

/* The staged content of CREATE and REPLACE, or the tail of APPEND, for reading with pread(2). The
 * caller owns the descriptor; its offset is shared, so it is not to be used. */
int changeset_content(
	const struct changeset *cs, unsigned i, int *ret_fd, struct err *err) _must_check_;

int64_t changeset_bytes_delta(const struct changeset *cs);
int64_t changeset_entries_delta(const struct changeset *cs);

/* SHA-256 over the canonical description (kinds, paths, identities, content hashes): names this
 * very change set. Hashes contents, so it costs their size; computed once. */
int changeset_hash(struct changeset *cs, struct sha256 *ret, struct err *err) _must_check_;

/* Unified diff of the whole change set (text files; others as one line), at most `max` bytes, then
 * *ret_truncated. */
int changeset_diff(struct changeset *cs, struct buf *out, size_t max, bool *ret_truncated,
	struct err *err) _must_check_;

#endif
