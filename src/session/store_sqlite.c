/*
 * The registry in SQLite (https://www.sqlite.org/wal.html): see store.h.
 *
 * One connection per process, used by one thread. Statements are prepared once, at their first use.
 * The file is data from outside as far as damage goes: defensive mode, no trust in its schema, low
 * limits, and any damage that SQLite finds ends the operation with ERR_CORRUPT; nothing is repaired
 * or made anew over it.
 */
#include "session/store.h"

#include "session/schema.h"
#include "session/statements.h"
#include "sys/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <sys/statvfs.h>

enum { SHORT_LOG_BYTES = 256 * 1024 };

enum statement {
#define STATEMENT(name, sql) SQL_##name,
	STATEMENTS(STATEMENT)
#undef STATEMENT
		SQL_MAX_,
};

static const char *const statement_sql[] = {
#define STATEMENT(name, sql) [SQL_##name] = sql,
	STATEMENTS(STATEMENT)
#undef STATEMENT
};

struct sqlite_store {
	struct session_store base;
	sqlite3 *db;
	sqlite3_stmt *st[SQL_MAX_];
};

static struct sqlite_store *sqlite_of(struct session_store *st)
{
	return (struct sqlite_store *)(void *)st;
}

/* --- errors --------------------------------------------------------------------------------- */

static int damaged(struct err *err)
{
	(void)err_set(err, ERR_CORRUPT, "the registry of sessions is damaged");
	return err_hint(err, "nothing was changed; workspaces are whole. Restore " SESSION_DATABASE
			     " in the state directory from a copy");
}

/* An error of SQLite as one of ours. */
static int sql_fail(sqlite3 *db, int rc, const char *doing, struct err *err)
{
	int sys = db ? sqlite3_system_errno(db) : 0;
	switch (rc & 0xff) {
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
	case SQLITE_SCHEMA:
	case SQLITE_FORMAT: return damaged(err);
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return err_set(err, ERR_BUSY, "%s: another process is using the registry", doing);
	case SQLITE_FULL: return err_set(err, ERR_NO_SPACE, "%s: no space for the registry", doing);
	case SQLITE_READONLY:
		return err_set(err, ERR_READ_ONLY, "%s: the registry is read-only", doing);
	case SQLITE_NOMEM: return err_oom(err);
	case SQLITE_IOERR:
	case SQLITE_CANTOPEN:
		if (sys != 0)
			return err_sys(err, sys, "%s: the registry", doing);
		return err_set(err, ERR_IO, "%s: the registry cannot be read or written", doing);
	default:
		return err_set(err, ERR_INTERNAL, "%s: the registry answers %d (%s)", doing, rc,
			sqlite3_errstr(rc));
	}
}

/* --- statements ----------------------------------------------------------------------------- */

/* Reset at the end of the scope, so that no statement keeps a snapshot or a lock. */
static void cleanup_reset(sqlite3_stmt **st)
{
	if (*st) {
		(void)sqlite3_reset(*st);
		(void)sqlite3_clear_bindings(*st);
	}
}
#define _cleanup_reset_ _cleanup_(cleanup_reset)

static int prepared(
	struct sqlite_store *s, enum statement which, sqlite3_stmt **ret, struct err *err)
{
	if (!s->st[which]) {
		int rc = sqlite3_prepare_v3(s->db, statement_sql[which], -1,
			SQLITE_PREPARE_PERSISTENT, &s->st[which], NULL);
		if (rc == SQLITE_ERROR) /* a table or an index is missing */
			return damaged(err);
		if (rc != SQLITE_OK)
			return sql_fail(s->db, rc, "preparing", err);
	}
	*ret = s->st[which];
	return 0;
}

static void bind_text(sqlite3_stmt *st, int at, const char *text)
{
	(void)sqlite3_bind_text(st, at, text, -1, SQLITE_STATIC);
}

/* Run a statement without rows. */
static int run(struct sqlite_store *s, sqlite3_stmt *st, const char *doing, struct err *err)
{
	int rc = sqlite3_step(st);
	return rc == SQLITE_DONE || rc == SQLITE_ROW ? 0 : sql_fail(s->db, rc, doing, err);
}

static int run_plain(struct sqlite_store *s, enum statement which, struct err *err)
{
	_cleanup_reset_ sqlite3_stmt *st = NULL;
	int r = prepared(s, which, &st, err);
	return r < 0 ? r : run(s, st, "a transaction", err);
}

/* Copy a text column; false when it is too long for where it goes, which we never wrote. */
static bool take_text(sqlite3_stmt *st, int at, char *out, size_t cap)
{
	const unsigned char *p = sqlite3_column_text(st, at);
	int n = sqlite3_column_bytes(st, at);
	if (!p || n < 0 || (size_t)n >= cap || memchr(p, 0, (size_t)n))
		return false;
	memcpy(out, p, (size_t)n);
	out[n] = 0;
	return true;
}

static int take_row(sqlite3_stmt *st, struct session_row *ret, struct err *err)
{
	struct session_info *i = &ret->info;
	bool ok = take_text(st, 0, i->incarnation, INCARNATION_LEN + 1) &&
		  take_text(st, 1, i->tenant, sizeof(i->tenant)) &&
		  take_text(st, 2, i->id, sizeof(i->id)) &&
		  take_text(st, 3, i->owner, sizeof(i->owner)) &&
		  take_text(st, 4, i->role, sizeof(i->role)) &&
		  take_text(st, 19, ret->path, sizeof(ret->path));
	/* Both become file names. */
	if (!ok || session_id_check("tenant", i->tenant, err) < 0 ||
		session_id_check("session id", i->id, err) < 0 ||
		strspn(i->incarnation, "0123456789abcdef") != INCARNATION_LEN)
		return damaged(err);
	i->kind = sqlite3_column_int(st, 5) ? SESSION_ATTACHED : SESSION_MANAGED;
	i->created_ms = sqlite3_column_int64(st, 6);
	i->used_ms = sqlite3_column_int64(st, 7);
	i->expires_ms = sqlite3_column_int64(st, 8);
	i->idle_ms = sqlite3_column_int64(st, 9);
	i->quota_bytes = sqlite3_column_int64(st, 10);
	i->quota_entries = sqlite3_column_int64(st, 11);
	i->usage_bytes = sqlite3_column_int64(st, 12);
	i->usage_entries = sqlite3_column_int64(st, 13);
	i->turns = (uint64_t)sqlite3_column_int64(st, 14);
	i->expired = false;
	ret->dir.dev = (uint64_t)sqlite3_column_int64(st, 15);
	ret->dir.ino = (uint64_t)sqlite3_column_int64(st, 16);
	ret->dir.btime_ns = sqlite3_column_int64(st, 17);
	ret->store_inside = sqlite3_column_int(st, 18) != 0;
	return 0;
}

/* The one row of a statement. */
static int one_row(
	struct sqlite_store *s, sqlite3_stmt *st, struct session_row *ret, struct err *err)
{
	int rc = sqlite3_step(st);
	if (rc == SQLITE_DONE)
		return 0;
	if (rc != SQLITE_ROW)
		return sql_fail(s->db, rc, "finding a session", err);
	int r = take_row(st, ret, err);
	return r < 0 ? r : 1;
}

static int every_row(
	struct sqlite_store *s, sqlite3_stmt *st, session_row_fn each, void *ctx, struct err *err)
{
	_cleanup_free_ struct session_row *row = malloc(sizeof(*row));
	int rc;
	if (!row)
		return err_oom(err);
	while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
		int r = take_row(st, row, err);
		if (r < 0)
			return r;
		if (!each(ctx, row))
			return 0;
	}
	return rc == SQLITE_DONE ? 0 : sql_fail(s->db, rc, "listing sessions", err);
}

/* --- operations ----------------------------------------------------------------------------- */

static int op_begin(struct session_store *base, struct err *err)
{
	return run_plain(sqlite_of(base), SQL_BEGIN, err);
}

static void op_rollback(struct session_store *base)
{
	struct sqlite_store *s = sqlite_of(base);
	struct err ignored;
	if (!sqlite3_get_autocommit(s->db)) /* some failures have rolled back already */
		(void)run_plain(s, SQL_ROLLBACK, &ignored);
}

static int op_commit(struct session_store *base, struct err *err)
{
	return run_plain(sqlite_of(base), SQL_COMMIT, err);
}

static int op_find(struct session_store *base, const char *tenant, const char *id,
	struct session_row *ret, struct err *err)
{
	struct sqlite_store *s = sqlite_of(base);
	_cleanup_reset_ sqlite3_stmt *st = NULL;
	int r = prepared(s, SQL_FIND, &st, err);
	if (r < 0)
		return r;
	bind_text(st, 1, tenant);
	bind_text(st, 2, id);
	return one_row(s, st, ret, err);
}

static int op_find_incarnation(struct session_store *base, const char *incarnation,
	struct session_row *ret, struct err *err)
{
	struct sqlite_store *s = sqlite_of(base);
	_cleanup_reset_ sqlite3_stmt *st = NULL;
	int r = prepared(s, SQL_FIND_INCARNATION, &st, err);
	if (r < 0)
		return r;
	bind_text(st, 1, incarnation);
	return one_row(s, st, ret, err);
}

static int op_find_attached(struct session_store *base, const struct dir_identity *dir,
	const char *path, struct session_row *ret, struct err *err)
{
	struct sqlite_store *s = sqlite_of(base);
	_cleanup_reset_ sqlite3_stmt *st = NULL;
	int r = prepared(s, SQL_FIND_ATTACHED, &st, err);
	if (r < 0)
		return r;
	(void)sqlite3_bind_int64(st, 1, (sqlite3_int64)dir->ino);
	(void)sqlite3_bind_int64(st, 2, dir->btime_ns);
	(void)sqlite3_bind_int64(st, 3, (sqlite3_int64)dir->dev);
	bind_text(st, 4, path);
	return one_row(s, st, ret, err);
}

static int is_tenant(struct sqlite_store *s, const char *name, struct err *err)
{
	_cleanup_reset_ sqlite3_stmt *st = NULL;
	int r = prepared(s, SQL_IS_TENANT, &st, err);
	if (r < 0)
		return r;
	bind_text(st, 1, name);
	int rc = sqlite3_step(st);
	if (rc != SQLITE_ROW && rc != SQLITE_DONE)
		return sql_fail(s->db, rc, "finding a tenant", err);
	return rc == SQLITE_ROW;
}

/* <base>/NAME is either a session of the default tenant or the directory of a tenant. */
static int check_place(struct sqlite_store *s, const struct session_info *i, struct err *err)
{
	struct sqlite_store *st = s;
	bool is_default = strcmp(i->tenant, TENANT_DEFAULT) == 0;
	if (i->kind == SESSION_ATTACHED)
		return 0;
	if (is_default) {
		int r = strcmp(i->id, TENANT_DEFAULT) == 0 ? 0 : is_tenant(st, i->id, err);
		return r <= 0 ? r
			      : err_set(err, ERR_EXISTS, "the session id '%s' cannot be used here",
					i->id);
	}
	_cleanup_free_ struct session_row *other = malloc(sizeof(*other));
	if (!other)
		return err_oom(err);
	int r = op_find(&s->base, TENANT_DEFAULT, i->tenant, other, err);
	if (r == 1 && other->info.kind == SESSION_MANAGED)
		return err_set(err, ERR_EXISTS, "the tenant '%s' cannot be used here", i->tenant);
	return MIN(r, 0);
}

static int count_tenant(struct sqlite_store *s, const char *tenant, int64_t limit, struct err *err)
{
	_cleanup_reset_ sqlite3_stmt *st = NULL;
	int r = prepared(s, SQL_TENANT_COUNT, &st, err);
	if (r < 0)
		return r;
	bind_text(st, 1, tenant);
	(void)sqlite3_bind_int64(st, 2, limit);
	r = run(s, st, "counting sessions", err);
	if (r == 0 && sqlite3_changes(s->db) == 0)
		return err_set(err, ERR_LIMIT, "there are %lld sessions already, the limit",
			(long long)limit);
	return r;
}

static void bind_row(sqlite3_stmt *st, const struct session_row *row)
{
	const struct session_info *i = &row->info;
	bind_text(st, 1, i->incarnation);
	bind_text(st, 2, i->tenant);
	bind_text(st, 3, i->id);
	bind_text(st, 4, i->owner);
	bind_text(st, 5, i->role);
	(void)sqlite3_bind_int(st, 6, i->kind == SESSION_ATTACHED);
	(void)sqlite3_bind_int64(st, 7, i->created_ms);
	(void)sqlite3_bind_int64(st, 8, i->used_ms);
	(void)sqlite3_bind_int64(st, 9, i->expires_ms);
	(void)sqlite3_bind_int64(st, 10, i->idle_ms);
	(void)sqlite3_bind_int64(st, 11, i->quota_bytes);
	(void)sqlite3_bind_int64(st, 12, i->quota_entries);
	(void)sqlite3_bind_int64(st, 13, (sqlite3_int64)row->dir.dev);
	(void)sqlite3_bind_int64(st, 14, (sqlite3_int64)row->dir.ino);
	(void)sqlite3_bind_int64(st, 15, row->dir.btime_ns);
	(void)sqlite3_bind_int(st, 16, row->store_inside);
	bind_text(st, 17, row->path);
}

static int op_add(struct session_store *base, const struct session_row *row, int64_t tenant_limit,
	struct err *err)
{
	struct sqlite_store *s = sqlite_of(base);
	_cleanup_reset_ sqlite3_stmt *st = NULL;
	int r = check_place(s, &row->info, err);
	if (r == 0)
		r = count_tenant(s, row->info.tenant, tenant_limit, err);
	if (r == 0)
		r = prepared(s, SQL_ADD, &st, err);
	if (r < 0)
		return r;
	bind_row(st, row);
	int rc = sqlite3_step(st);
	if ((rc & 0xff) == SQLITE_CONSTRAINT)
		return err_set(err, ERR_EXISTS, "there is a session '%s' already", row->info.id);
	return rc == SQLITE_DONE ? 0 : sql_fail(s->db, rc, "adding a session", err);
}

static int op_drop(struct session_store *base, const struct session_row *row, struct err *err)
{
	struct sqlite_store *s = sqlite_of(base);
	_cleanup_reset_ sqlite3_stmt *drop = NULL, *uncount = NULL;
	int r = prepared(s, SQL_DROP, &drop, err);
	if (r == 0)
		r = prepared(s, SQL_TENANT_UNCOUNT, &uncount, err);
	if (r < 0)
		return r;
	bind_text(drop, 1, row->info.incarnation);
	r = run(s, drop, "deleting a session", err);
	if (r < 0 || sqlite3_changes(s->db) == 0)
		return r;
	bind_text(uncount, 1, row->info.tenant);
	return run(s, uncount, "counting sessions", err);
}

static int op_use(struct session_store *base, const struct session_use *use, struct err *err)
{
	struct sqlite_store *s = sqlite_of(base);
	_cleanup_reset_ sqlite3_stmt *st = NULL;
	int r = prepared(s, SQL_USE, &st, err);
	if (r < 0)
		return r;
	bind_text(st, 1, use->incarnation);
	(void)sqlite3_bind_int64(st, 2, use->used_ms);
	(void)sqlite3_bind_int64(st, 3, (sqlite3_int64)use->turns);
	(void)sqlite3_bind_int64(st, 4, use->usage_bytes);
	(void)sqlite3_bind_int64(st, 5, use->usage_entries);
	return run(s, st, "saving the use of a session", err);
}

static int op_expire_at(
	struct session_store *base, const char *incarnation, int64_t expires_ms, struct err *err)
{
	struct sqlite_store *s = sqlite_of(base);
	_cleanup_reset_ sqlite3_stmt *st = NULL;
	int r = prepared(s, SQL_EXPIRE_AT, &st, err);
	if (r < 0)
		return r;
	bind_text(st, 1, incarnation);
	(void)sqlite3_bind_int64(st, 2, expires_ms);
	return run(s, st, "extending a session", err);
}

static int op_rebind(struct session_store *base, const char *incarnation,
	const struct dir_identity *dir, struct err *err)
{
	struct sqlite_store *s = sqlite_of(base);
	_cleanup_reset_ sqlite3_stmt *st = NULL;
	int r = prepared(s, SQL_REBIND, &st, err);
	if (r < 0)
		return r;
	bind_text(st, 1, incarnation);
	(void)sqlite3_bind_int64(st, 2, (sqlite3_int64)dir->dev);
	return run(s, st, "recognising a directory", err);
}

static int op_adopt(struct session_store *base, const char *incarnation,
	const struct dir_identity *dir, struct err *err)
{
	struct sqlite_store *s = sqlite_of(base);
	_cleanup_reset_ sqlite3_stmt *st = NULL;
	int r = prepared(s, SQL_ADOPT, &st, err);
	if (r < 0)
		return r;
	bind_text(st, 1, incarnation);
	(void)sqlite3_bind_int64(st, 2, (sqlite3_int64)dir->dev);
	(void)sqlite3_bind_int64(st, 3, (sqlite3_int64)dir->ino);
	(void)sqlite3_bind_int64(st, 4, dir->btime_ns);
	return run(s, st, "adopting a directory", err);
}

static int op_page(struct session_store *base, const char *tenant, const char *after, unsigned max,
	session_row_fn each, void *ctx, struct err *err)
{
	struct sqlite_store *s = sqlite_of(base);
	_cleanup_reset_ sqlite3_stmt *st = NULL;
	int r = prepared(s, SQL_PAGE, &st, err);
	if (r < 0)
		return r;
	bind_text(st, 1, tenant);
	bind_text(st, 2, after);
	(void)sqlite3_bind_int64(st, 3, max);
	return every_row(s, st, each, ctx, err);
}

static int op_due(struct session_store *base, int64_t now_ms, int64_t after_due,
	const char *after_incarnation, unsigned max, session_row_fn each, void *ctx,
	struct err *err)
{
	struct sqlite_store *s = sqlite_of(base);
	_cleanup_reset_ sqlite3_stmt *st = NULL;
	int r = prepared(s, SQL_DUE, &st, err);
	if (r < 0)
		return r;
	(void)sqlite3_bind_int64(st, 1, now_ms);
	(void)sqlite3_bind_int64(st, 2, after_due);
	bind_text(st, 3, after_incarnation);
	(void)sqlite3_bind_int64(st, 4, max);
	return every_row(s, st, each, ctx, err);
}

/*
 * The last one to close usually writes the log back into the database, with three syncs. A process
 * that serves one call leaves a short log to the next one, to which reading it costs far less; only
 * a long log is written back.
 */
static void leave_short_log(sqlite3 *db)
{
	sqlite3_file *log = NULL;
	sqlite3_int64 size = 0;
	if (sqlite3_file_control(db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log) == SQLITE_OK &&
		log && log->pMethods && log->pMethods->xFileSize(log, &size) == SQLITE_OK &&
		size <= SHORT_LOG_BYTES)
		(void)sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
}

static void op_close(struct session_store *base)
{
	struct sqlite_store *s = sqlite_of(base);
	if (s->db)
		leave_short_log(s->db);
	for (unsigned i = 0; i < SQL_MAX_; i++)
		(void)sqlite3_finalize(s->st[i]);
	(void)sqlite3_close(s->db);
	free(s);
}

static const struct session_store_ops sqlite_ops = {
	.close = op_close,
	.begin = op_begin,
	.commit = op_commit,
	.rollback = op_rollback,
	.find = op_find,
	.find_incarnation = op_find_incarnation,
	.find_attached = op_find_attached,
	.add = op_add,
	.drop = op_drop,
	.use = op_use,
	.expire_at = op_expire_at,
	.rebind = op_rebind,
	.adopt = op_adopt,
	.page = op_page,
	.due = op_due,
};

/* --- opening -------------------------------------------------------------------------------- */

/*
 * The file exists and is ours. It is made without being opened: closing a second descriptor of it
 * would drop the locks of another connection of this process (fcntl(2)).
 */
static int check_file(int state_fd, struct err *err)
{
	struct statvfs fs;
	struct stat st;
	if (fstatvfs(state_fd, &fs) == 0 && (fs.f_flag & ST_RDONLY))
		return err_set(err, ERR_READ_ONLY, "the state directory is read-only");
	int missing = fs_lstat(state_fd, SESSION_DATABASE, &st);
	if (missing && errno == ENOENT) {
		if (mknodat(state_fd, SESSION_DATABASE, S_IFREG | 0600, 0) < 0 && errno != EEXIST)
			return err_sys(err, errno, "making the registry");
		missing = fs_lstat(state_fd, SESSION_DATABASE, &st);
	}
	if (missing)
		return err_sys(err, errno, "looking for the registry");
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_nlink != 1)
		return err_set(err, ERR_DENIED, "the registry is not a plain file of this user");
	return 0;
}

/* SQLite opens by path: the one that the descriptor has now, without any link in it. */
static int registry_path(int state_fd, char out[PATH_MAX], struct err *err)
{
	char link[32];
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", state_fd);
	ssize_t n = readlink(link, out, PATH_MAX - sizeof("/" SESSION_DATABASE));
	if (n < 0)
		return err_sys(err, errno, "finding the state directory");
	if (n >= (ssize_t)(PATH_MAX - sizeof("/" SESSION_DATABASE)))
		return err_set(err, ERR_LIMIT, "the path of the state directory is too long");
	(void)snprintf(out + n, PATH_MAX - (size_t)n, "/" SESSION_DATABASE);
	return 0;
}

static void harden(sqlite3 *db)
{
	static const int limits[][2] = {
		{SQLITE_LIMIT_LENGTH, 1 << 20},
		{SQLITE_LIMIT_SQL_LENGTH, 16 << 10},
		{SQLITE_LIMIT_COLUMN, 64},
		{SQLITE_LIMIT_EXPR_DEPTH, 32},
		{SQLITE_LIMIT_COMPOUND_SELECT, 4},
		{SQLITE_LIMIT_ATTACHED, 0},
		{SQLITE_LIMIT_TRIGGER_DEPTH, 1},
		{SQLITE_LIMIT_WORKER_THREADS, 0},
	};
	for (unsigned i = 0; i < ARRAY_LEN(limits); i++)
		(void)sqlite3_limit(db, limits[i][0], limits[i][1]);
	(void)sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	(void)sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	(void)sqlite3_db_config(db, SQLITE_DBCONFIG_DQS_DDL, 0, NULL);
	(void)sqlite3_db_config(db, SQLITE_DBCONFIG_DQS_DML, 0, NULL);
	(void)sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_FKEY, 1, NULL);
	(void)sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, NULL);
}

static int exec(sqlite3 *db, const char *sql, struct err *err)
{
	int rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
	return rc == SQLITE_OK ? 0 : sql_fail(db, rc, "opening", err);
}

static int pragma_int(sqlite3 *db, const char *sql, int *ret, struct err *err)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(db, sql, -1, &st, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(st);
	int value = rc == SQLITE_ROW ? sqlite3_column_int(st, 0) : 0;
	(void)sqlite3_finalize(st);
	if (rc != SQLITE_ROW)
		return sql_fail(db, rc, "opening", err);
	*ret = value;
	return 0;
}

/* A database of version 0 has to be empty: another program's file is left alone. */
static int check_empty(sqlite3 *db, struct err *err)
{
	int tables;
	int r = pragma_int(db, "SELECT count(*) FROM sqlite_schema", &tables, err);
	if (r == 0 && tables > 0)
		return damaged(err);
	return r;
}

static int migrate_one(sqlite3 *db, int version, struct err *err)
{
	char pragma[96];
	(void)snprintf(pragma, sizeof(pragma),
		"PRAGMA application_id = %d; PRAGMA user_version = %d", REGISTRY_APPLICATION_ID,
		version + 1);
	int r = version == 0 ? check_empty(db, err) : 0;
	if (r == 0)
		r = exec(db, registry_migrations[version], err);
	if (r == 0)
		r = exec(db, pragma, err);
	return r;
}

/* Another process may migrate at the same time: the version is read again under the lock. */
static int migrate(sqlite3 *db, struct err *err)
{
	int version, r = exec(db, "PRAGMA journal_mode = WAL", err);
	if (r == 0)
		r = exec(db, "BEGIN IMMEDIATE", err);
	if (r < 0)
		return r;
	r = pragma_int(db, "PRAGMA user_version", &version, err);
	for (; r == 0 && version < (int)ARRAY_LEN(registry_migrations); version++)
		r = migrate_one(db, version, err);
	if (r == 0)
		r = exec(db, "COMMIT", err);
	if (r < 0 && !sqlite3_get_autocommit(db))
		(void)sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
	return r;
}

/* Both numbers of the file's head in one transaction, on the way of every start. */
static int read_head(sqlite3 *db, int *ret_version, int *ret_application, struct err *err)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(db,
		"SELECT user_version, application_id FROM pragma_user_version, "
		"pragma_application_id",
		-1, &st, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(st);
	if (rc == SQLITE_ROW) {
		*ret_version = sqlite3_column_int(st, 0);
		*ret_application = sqlite3_column_int(st, 1);
	}
	(void)sqlite3_finalize(st);
	return rc == SQLITE_ROW ? 0 : sql_fail(db, rc, "opening", err);
}

static int check_version(sqlite3 *db, struct err *err)
{
	int version = 0, application = 0, r = read_head(db, &version, &application, err);
	if (r == 0 && version >= 0 && version < (int)ARRAY_LEN(registry_migrations)) {
		r = migrate(db, err);
		if (r == 0)
			r = read_head(db, &version, &application, err);
	}
	if (r < 0)
		return r;
	if (application != REGISTRY_APPLICATION_ID || version < 0)
		return damaged(err);
	if (version > (int)ARRAY_LEN(registry_migrations))
		return err_set(err, ERR_UNSUPPORTED,
			"the registry was made by a newer version of this program (%d > %zu)",
			version, ARRAY_LEN(registry_migrations));
	return 0;
}

int store_sqlite_open(
	int state_fd, uint32_t busy_ms, bool power, struct session_store **ret, struct err *err)
{
	static const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX |
				 SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_PRIVATECACHE |
				 SQLITE_OPEN_EXRESCODE;
	char path[PATH_MAX];
	int r = check_file(state_fd, err);
	if (r == 0)
		r = registry_path(state_fd, path, err);
	if (r < 0)
		return r;
	struct sqlite_store *s = calloc(1, sizeof(*s));
	if (!s)
		return err_oom(err);
	s->base.ops = &sqlite_ops;
	int rc = sqlite3_open_v2(path, &s->db, flags, NULL);
	if (rc != SQLITE_OK) {
		r = sql_fail(s->db, rc, "opening", err);
	} else {
		harden(s->db);
		(void)sqlite3_busy_timeout(s->db, (int)MIN(busy_ms, (uint32_t)INT_MAX));
		r = check_version(s->db, err);
	}
	if (r == 0)
		r = exec(s->db, power ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL",
			err);
	if (r < 0)
		op_close(&s->base);
	else
		*ret = &s->base;
	return r;
}
