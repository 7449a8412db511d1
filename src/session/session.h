/*
 * Sessions: who has which workspace, for how long.
 *
 * The registry is a database below the state directory; several processes may use it at once. A
 * session is found by (tenant, id). Each session that ever existed has an incarnation, a random
 * name that is never used again: store, lease and trash are named by it, so a new session of an old
 * id cannot meet old files.
 *
 *     <base>/<id>                     workspace of a session of the default tenant
 *     <base>/<tenant>/<id>            workspace of another tenant's session
 *     <base>/.trash/<incarnation>     deleted, waiting to be removed
 *     <state>/registry.db             this registry (docs/sessions.md has the schema)
 *     <state>/store/<incarnation>     staged files and history, when the workspace is on this mount
 *     <state>/lease/<incarnation>     last use and turns, shared by the processes that have it open
 *     <state>/attached/               rows of attached directories, so that opening one again is
 * quick <state>/trash/<incarnation>     deleted stores
 *
 * What a call costs: registry_session() of a session that is open does no system call. Last use,
 * turns and usage reach the database in batches (REGISTRY_FLUSH_MS, registry_flush(), the end); in
 * between they are in the lease, so an idle session of another process is never taken for unused.
 *
 * One thread at a time may use a registry and its sessions. Nothing here survives a fork.
 */
#ifndef CLOISTER_SESSION_SESSION_H
#define CLOISTER_SESSION_SESSION_H

#include "workspace/workspace.h"

enum {
	REGISTRY_OPEN_MAX = 64,             /* workspaces kept open */
	REGISTRY_FLUSH_MS = 5000,           /* how old an unsaved last use may get */
	REGISTRY_BUSY_MS = 2000,            /* wait for another process's transaction */
	REGISTRY_TENANT_SESSIONS = 1000000, /* sessions of one tenant */
	REGISTRY_PAGE_MAX = 1000,
	SESSION_WORD_MAX = 128, /* owner and role */
	INCARNATION_LEN = 32,
};

/* The tenant that NULL and "" stand for. */
#define TENANT_DEFAULT "default"

/*
 * 1-128 of letters, digits, `-`, `_`, `.`; no leading `.`, no `..`. The same rule holds for
 * tenants. `what` starts the message ("session id"). ERR_INVALID_ARGUMENT naming the rule.
 */
int session_id_check(const char *what, const char *id, struct err *err) _must_check_;

enum session_kind {
	SESSION_MANAGED,  /* the workspace is below the base and goes with the session */
	SESSION_ATTACHED, /* the workspace is a person's own directory; deleting leaves it alone */
};

/* What there is to know of a session. Times are Unix milliseconds. */
struct session_info {
	char id[LIMIT_SESSION_ID + 1], tenant[LIMIT_SESSION_ID + 1];
	char owner[SESSION_WORD_MAX + 1], role[SESSION_WORD_MAX + 1];
	char incarnation[INCARNATION_LEN + 1];
	enum session_kind kind;
	bool expired; /* waits for the sweep; nobody can use it any more */
	int64_t created_ms, used_ms;
	int64_t expires_ms;                 /* 0: never */
	int64_t idle_ms;                    /* expires when unused for so long; 0: does not */
	int64_t quota_bytes, quota_entries; /* 0: none */
	int64_t usage_bytes, usage_entries; /* as of the last flush; the workspace counts exactly */
	uint64_t turns;
};

struct registry;
struct session;

struct registry_options {
	int state_fd; /* from state_open(); borrowed, duplicated */
	int base_fd;
	const struct workspace_options *workspace; /* defaults; copied, client_root too */
	const struct mount_spec *volumes; /* mounted in every session beside /workspace; copied,
					     descriptors duplicated */
	unsigned n_volumes;
	int64_t ttl_s, idle_s;        /* of sessions created on first use; 0: never */
	int64_t tenant_sessions;      /* 0: REGISTRY_TENANT_SESSIONS */
	unsigned open_max;            /* 0: REGISTRY_OPEN_MAX */
	uint32_t busy_ms;             /* 0: REGISTRY_BUSY_MS */
	bool no_create;               /* registry_session() does not create */
	int64_t (*now_ms)(void *ctx); /* Unix time; NULL: the clock. For tests. */
	void *clock_ctx;
};

/*
 * Open or create the registry. The database itself is opened at the first use of it. Errors:
 * ERR_IO, ERR_READ_ONLY, ERR_NO_MEMORY.
 */
int registry_open(
	const struct registry_options *opt, struct registry **ret, struct err *err) _must_check_;

/* Flush, close every workspace and free. Every session must have been released. Accepts NULL. */
void registry_free(struct registry *reg);
DEFINE_CLEANUP(struct registry *, registry_free)

/*
 * The session of this id, created on first use up to the tenant's limit. Counts as a use. A session
 * that has expired is gone: its files go to the trash and a new one begins. Every success is paired
 * with session_release(). Errors: ERR_INVALID_ARGUMENT, ERR_SESSION_NOT_FOUND (no_create),
 * ERR_LIMIT (tenant's sessions; sessions in use at once), ERR_EXISTS (a directory that no session
 * owns is in the way, or the id is the name of a tenant), ERR_CONFLICT (the directory is not the
 * one that was created), ERR_CORRUPT, ERR_BUSY, ERR_NO_SPACE, ERR_READ_ONLY, ERR_IO.
 */
int registry_session(struct registry *reg, const char *tenant, const char *id, struct session **ret,
	struct err *err) _must_check_;

/* Creating on purpose. Zero and NULL are defaults. */
struct session_spec {
	const char *tenant, *id;            /* id NULL: a random one */
	const char *owner;                  /* NULL: the tenant */
	const char *role;                   /* NULL: "developer" */
	int64_t ttl_s, idle_s;              /* 0: the registry's default; < 0: never */
	int64_t quota_bytes, quota_entries; /* 0: the registry's default */
};

/* As registry_session(), but ERR_EXISTS when there is a session of this id. */
int registry_create(struct registry *reg, const struct session_spec *spec, struct session **ret,
	struct err *err) _must_check_;

/*
 * The session of a person's own directory, recognised by device and inode, so that history and undo
 * persist. Its quota is growth, it does not expire. `dir_fd` is borrowed; `path` is only shown.
 * Errors as registry_session(); ERR_NOT_DIRECTORY.
 */
int registry_attach(struct registry *reg, int dir_fd, const char *path, struct session **ret,
	struct err *err) _must_check_;

/* --- a session in use ------------------------------------------------------------------------- */

void session_release(struct session *s); /* it stays open until others need its place */

const char *session_id(const struct session *s);
const char *session_tenant(const struct session *s);
const char *session_role(const struct session *s);
int64_t session_expires(
	const struct session *s); /* Unix seconds of the earliest expiry; 0: never */
void session_info(const struct session *s, struct session_info *ret);
uint64_t session_next_turn(
	struct session *s); /* 1, 2, ...; unique across processes; 0: out of memory */

/* Its workspace, opened on first use and kept open. Borrowed until session_release(). */
int session_workspace(struct session *s, struct workspace **ret, struct err *err) _must_check_;

/* --- the registry by id ----------------------------------------------------------------------- */

int registry_show(struct registry *reg, const char *tenant, const char *id,
	struct session_info *ret, struct err *err) _must_check_;

/*
 * Sessions of a tenant in the order of their ids, those after `after` (NULL: from the start), at
 * most `max` (1..REGISTRY_PAGE_MAX). The cost of a page does not depend on its position or on how
 * many sessions there are; creating and deleting others moves nothing. The callback gets borrowed
 * data and returns false to stop; *ret_more says whether there are others behind the last one.
 */
int registry_page(struct registry *reg, const char *tenant, const char *after, unsigned max,
	bool (*each)(void *ctx, const struct session_info *info), void *ctx, bool *ret_more,
	struct err *err) _must_check_;

/* Let it expire ttl_s from now (0: never). ERR_EXPIRED when it is too late. */
int registry_extend(struct registry *reg, const char *tenant, const char *id, int64_t ttl_s,
	struct session_info *ret, struct err *err) _must_check_;

/*
 * Delete: out of sight at once (a new session of this id starts empty), its files removed by the
 * sweep. Processes that have it open notice at their next call. ERR_BUSY when this process is using
 * it.
 */
int registry_delete(
	struct registry *reg, const char *tenant, const char *id, struct err *err) _must_check_;

/*
 * Take what is at the session's place now for its directory: after a back-up was restored, when the
 * files are the session's and their inodes are not. Nobody may be using the session. Errors:
 * ERR_UNSUPPORTED (an attached directory is recognised by attaching it), ERR_NOT_FOUND,
 * ERR_CONFLICT (a link, a file, a mount or another user's), ERR_BUSY.
 */
int registry_adopt(struct registry *reg, const char *tenant, const char *id,
	struct session_info *ret, struct err *err) _must_check_;

/* How much one sweep may do. 0: no limit. */
struct sweep_budget {
	unsigned sessions; /* expired sessions taken */
	int64_t entries;   /* names removed */
	int64_t ms;
};

struct sweep_result {
	unsigned expired;    /* sessions taken out of the registry */
	int64_t entries;     /* names removed */
	unsigned stuck;      /* trees in the trash that could not be removed now */
	char stuck_why[160]; /* of the first of them, "" when none */
	bool more;           /* the budget ended it */
};

/*
 * Take expired sessions (found by index, never by a scan) out of the registry, then remove what is
 * in the trash. May be killed anywhere; the next sweep goes on. A tree that cannot be removed does
 * not stop the others.
 */
int registry_sweep(struct registry *reg, const struct sweep_budget *budget,
	struct sweep_result *ret, struct err *err) _must_check_;

/* Save what is only in memory, in one transaction. */
int registry_flush(struct registry *reg, struct err *err) _must_check_;

#endif
