/*
 * What the files of this folder share and nobody else sees: the open workspace, its mounts, and how
 * real objects in them are reached.
 */
#ifndef CLOISTER_WORKSPACE_ENGINE_H
#define CLOISTER_WORKSPACE_ENGINE_H

#include "workspace/commit.h"
#include "workspace/store.h"

struct mount {
	char *agent; /* "/workspace"; owned */
	size_t agent_len;
	int root_fd;
	int saved_fd, staged_fd; /* in the store, on this mount's file system; -1 when read-only */
	struct store *store; /* whose lock, count and log rule this mount; NULL when read-only */
	bool read_only, shared;
	int64_t limit_bytes, limit_entries;
};

struct workspace {
	struct mount mounts[LIMIT_MOUNTS];
	unsigned n_mounts;
	struct store *stores[LIMIT_MOUNTS]; /* [0] is the session's own; owned */
	unsigned n_stores;
	struct workspace_options opt;
	char *client_root; /* normalised, or NULL; owned */
	struct workspace_recovery recovered;
};

/* Wait until no commit is in the middle of publishing; end what a dead writer left. */
int workspace_settle(struct workspace *ws, struct err *err) _must_check_;

/* The mount whose agent path is exactly this text, or -1. */
int workspace_mount_at(const struct workspace *ws, const char *agent, size_t n);
/* Is there a mount strictly below this agent path? */
bool workspace_mount_below(const struct workspace *ws, const char *agent, size_t n);

/* Is this path of a mount (or something above it) the store? */
bool mount_hides(const struct mount *m, const char *path);

/* Agent path as escaped text: "/workspace/a". */
void mount_agent_path(const struct mount *m, const char *path, struct buf *out);

/* O_PATH descriptor of the directory that holds `path`, *ret_name its last component (inside
 * `path`). No link is followed. */
int mount_open_parent(const struct mount *m, const char *path, int *ret_fd, const char **ret_name,
	struct err *err) _must_check_;

/* ERR with the agent path in front: "/workspace/a: No such file or directory". */
int mount_err(const struct mount *m, const char *path, int errnum, struct err *err);
#ifdef CLOISTER_ANALYZED
#	define mount_err(...) err_is_negative(mount_err(__VA_ARGS__))
#endif

struct identity identity_of(const struct stat *st);
bool identity_eq(const struct identity *a, const struct identity *b);
enum node_kind node_kind_of(mode_t mode);

/* quota.c: would the usage of a store stay within its limits after these changes? Changes that do
 * not grow a sum are always allowed in it. */
int quota_check(const struct workspace *ws, const struct store *s, int64_t bytes, int64_t entries,
	struct err *err) _must_check_;
/* Could `bytes` of staged content ever fit? (a sum over one view, before any old content goes) */
int quota_check_staged(
	const struct workspace *ws, unsigned mount, int64_t bytes, struct err *err) _must_check_;
/* Under the lock: count the trees of a store when its usage is not known. */
int quota_know(struct workspace *ws, struct store *s, struct err *err) _must_check_;

#endif
