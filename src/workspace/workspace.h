/*
 * A workspace: the directory tree of one session, with its mounts, store, quota and history.
 *
 * An agent sees the tree as `/workspace`. A small mount table adds volumes below other agent paths;
 * the most specific entry wins. Everything is reached from descriptors held here, never by a host
 * path.
 *
 * Several processes may have the same workspace open. Readers take no lock. A writer holds the
 * store's lock (an open-file-description lock, so a killed holder releases it) from its quota
 * reservation to the end of its commit; whoever takes the lock next finishes or rolls back what a
 * dead holder left (commit.h).
 */
#ifndef CLOISTER_WORKSPACE_WORKSPACE_H
#define CLOISTER_WORKSPACE_WORKSPACE_H

#include "base/limits.h"
#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* How sure an answer is: DURABLE_PROCESS survives kill -9 of everything; DURABLE_POWER also a power
 * cut. */
enum durability { DURABLE_PROCESS, DURABLE_POWER };

/* One row of the mount table. The first row is always the session's own tree, named "/workspace".
 */
struct mount_spec {
	const char
		*agent_path; /* absolute, normalised: "/workspace", "/workspace/shared", "/tmp" */
	int dir_fd;   /* O_PATH|O_DIRECTORY or O_RDONLY; borrowed, duplicated by workspace_open() */
	int store_fd; /* directory on the same mount for staged files and history; -1: `.cloister`
			 inside dir_fd */
	bool read_only;
	/*
	 * Other sessions may have this directory too. A shared mount has a store, a lock and a
	 * count of its own, limited by the two quotas here (0: none); one change set can touch one
	 * shared mount. A mount that is not shared is private to the session: it counts to the
	 * session's quota.
	 */
	bool shared;
	int64_t quota_bytes, quota_entries;
};

/* Where a store without a descriptor of its own is kept, in the root of the mount; hidden from
 * every tool. */
#define WORKSPACE_STORE_NAME ".cloister"

struct workspace_options {
	int64_t quota_bytes;   /* 0: no limit */
	int64_t quota_entries; /* 0: no limit */
	bool quota_is_growth; /* the limits count from the usage found at first open (a person's own
				 checkout) */
	int64_t history_bytes; /* 0: keep no history */
	int64_t history_age_s; /* 0: no age limit */
	bool history_required; /* refuse a change that could not be undone, instead of saying `undo:
				  no` */
	bool strict_links; /* refuse every symbolic link and every file with more than one name */
	enum durability durability;
	uint32_t lock_wait_ms;   /* bounded wait for another writer, then ERR_BUSY */
	const char *client_root; /* host path under which the client knows /workspace, or NULL;
				    accepted as a spelling */
};

struct workspace_usage {
	int64_t bytes,
		entries; /* logical file sizes; every name except the root counts as an entry */
	int64_t limit_bytes, limit_entries; /* 0: none */
	int64_t history_bytes;
};

struct workspace;

/*
 * Open a workspace: duplicates the descriptors, creates or opens the store, recovers what a dead
 * process left, and (only when the store is new or was marked as open at a crash) counts the tree.
 * Errors: ERR_UNAVAILABLE (no openat2), ERR_READ_ONLY, ERR_CORRUPT (the store cannot be trusted),
 * ERR_BUSY, ERR_IO.
 */
int workspace_open(const struct mount_spec *mounts, unsigned n_mounts,
	const struct workspace_options *opt, struct workspace **ret, struct err *err) _must_check_;

/* Close; marks the store clean when this was the last user. Accepts NULL. */
void workspace_free(struct workspace *ws);

/* Current usage: O(1). Counts other processes' commits too. */
int workspace_usage(
	struct workspace *ws, struct workspace_usage *ret, struct err *err) _must_check_;

/* What recovery has found and done since this workspace was opened by this process. */
struct workspace_recovery {
	unsigned finished, rolled_back; /* interrupted change sets */
	unsigned interfered; /* files that something else changed meanwhile, left as they are */
	char path[256];      /* agent path of the first of these, "" when none */
	bool recounted;      /* usage was counted anew */
};
void workspace_recovered(const struct workspace *ws, struct workspace_recovery *ret);

/* Number of the last committed change set (0: none yet). */
uint64_t workspace_seq(struct workspace *ws);

/* The root descriptor of a mount, for starting a worker on it. Borrowed. */
int workspace_mount_fd(const struct workspace *ws, unsigned mount);
unsigned workspace_mounts(const struct workspace *ws);
const char *workspace_mount_path(const struct workspace *ws, unsigned mount);
bool workspace_mount_read_only(const struct workspace *ws, unsigned mount);

DEFINE_CLEANUP(struct workspace *, workspace_free)

#endif
