/*
 * Where the registry keeps its rows: a port, so that a daemon can use another database.
 *
 * The rows are truth for who, until when and how much; files are truth for what. Between begin()
 * and commit() the caller is the only writer among all processes, and renames and makes directories
 * in step with the rows.
 */
#ifndef CLOISTER_SESSION_STORE_H
#define CLOISTER_SESSION_STORE_H

#include "session/session.h"

enum { ATTACHED_PATH_MAX = 4096 };

/* The database's name in the state directory. */
#define SESSION_DATABASE "registry.db"

/* What a directory is recognised by: an inode number alone is used again, its birth is not. */
struct dir_identity {
	uint64_t dev, ino;
	int64_t btime_ns; /* 0: the file system does not know */
};

struct session_row {
	struct session_info info;
	struct dir_identity dir;
	bool store_inside;            /* its store is `.cloister` in the workspace */
	char path[ATTACHED_PATH_MAX]; /* of an attached directory, else "" */
};

/* What uses change, saved in batches. */
struct session_use {
	char incarnation[INCARNATION_LEN + 1];
	int64_t used_ms;
	uint64_t turns;
	int64_t usage_bytes, usage_entries; /* < 0: not known */
};

struct session_store;

typedef bool (*session_row_fn)(void *ctx, const struct session_row *row);

struct session_store_ops {
	void (*close)(struct session_store *st);

	/* A transaction that writes. When commit() fails, rollback() ends it. */
	int (*begin)(struct session_store *st, struct err *err);
	int (*commit)(struct session_store *st, struct err *err);
	void (*rollback)(struct session_store *st);

	/* 1: found, 0: there is none. */
	int (*find)(struct session_store *st, const char *tenant, const char *id,
		struct session_row *ret, struct err *err);
	int (*find_incarnation)(struct session_store *st, const char *incarnation,
		struct session_row *ret, struct err *err);
	int (*find_attached)(struct session_store *st, const struct dir_identity *dir,
		const char *path, struct session_row *ret, struct err *err);

	/* Inside a transaction. add(): ERR_LIMIT, ERR_EXISTS (also when a session of the default
	 * tenant and a tenant would have the same name). */
	int (*add)(struct session_store *st, const struct session_row *row, int64_t tenant_limit,
		struct err *err);
	int (*drop)(struct session_store *st, const struct session_row *row, struct err *err);
	int (*use)(struct session_store *st, const struct session_use *use, struct err *err);
	int (*expire_at)(struct session_store *st, const char *incarnation, int64_t expires_ms,
		struct err *err);
	/* rebind() changes the device only, adopt() all that the directory is recognised by. */
	int (*rebind)(struct session_store *st, const char *incarnation,
		const struct dir_identity *dir, struct err *err);
	int (*adopt)(struct session_store *st, const char *incarnation,
		const struct dir_identity *dir, struct err *err);

	/* Ordered by id. At most `max` rows. */
	int (*page)(struct session_store *st, const char *tenant, const char *after, unsigned max,
		session_row_fn each, void *ctx, struct err *err);

	/* Rows due at `now_ms`, by index, in the order (due, incarnation), behind that position. */
	int (*due)(struct session_store *st, int64_t now_ms, int64_t after_due,
		const char *after_incarnation, unsigned max, session_row_fn each, void *ctx,
		struct err *err);
};

struct session_store {
	const struct session_store_ops *ops;
};

/* When the row is due: the earlier of expiry and idle expiry; INT64_MAX: never. */
static inline int64_t session_due_ms(const struct session_info *i)
{
	int64_t due = i->expires_ms > 0 ? i->expires_ms : INT64_MAX;
	if (i->idle_ms > 0 && i->used_ms <= INT64_MAX - i->idle_ms)
		due = MIN(due, i->used_ms + i->idle_ms);
	return due;
}

/*
 * SQLite in WAL mode, `registry.db` in the state directory. `power`: a transaction survives a power
 * cut, too. Errors: ERR_CORRUPT (with what to do), ERR_UNSUPPORTED (made by a newer version),
 * ERR_READ_ONLY, ERR_NO_SPACE, ERR_BUSY, ERR_DENIED (not a file of ours), ERR_IO.
 */
int store_sqlite_open(int state_fd, uint32_t busy_ms, bool power, struct session_store **ret,
	struct err *err) _must_check_;

#endif
