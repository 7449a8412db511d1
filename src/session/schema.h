/*
 * The registry's tables, as numbered migrations: the n-th brings a database of version n to n+1
 * (PRAGMA user_version). A migration that has been released is never changed. docs/sessions.md
 * describes the outcome.
 *
 * `due` is when a session expires by either rule; nobody who never expires is in its index's way,
 * since the index is ordered and the sweep starts at its small end.
 */
#ifndef CLOISTER_SESSION_SCHEMA_H
#define CLOISTER_SESSION_SCHEMA_H

/* "CLOI": which program a database file belongs to (PRAGMA application_id). */
#define REGISTRY_APPLICATION_ID 0x434c4f49

#define SCHEMA_NEVER "9223372036854775807"

static const char *const registry_migrations[] = {
	"CREATE TABLE tenant ("
	" name TEXT PRIMARY KEY NOT NULL,"
	" sessions INTEGER NOT NULL CHECK (sessions >= 0)"
	") STRICT, WITHOUT ROWID;"

	"CREATE TABLE session ("
	" incarnation TEXT PRIMARY KEY NOT NULL CHECK (length(incarnation) = 32),"
	" tenant TEXT NOT NULL REFERENCES tenant (name),"
	" id TEXT NOT NULL CHECK (length(id) BETWEEN 1 AND 128),"
	" owner TEXT NOT NULL,"
	" role TEXT NOT NULL,"
	" kind INTEGER NOT NULL CHECK (kind IN (0, 1)),"
	" created_ms INTEGER NOT NULL,"
	" used_ms INTEGER NOT NULL,"
	" expires_ms INTEGER CHECK (expires_ms > 0),"
	" idle_ms INTEGER CHECK (idle_ms > 0),"
	" due INTEGER NOT NULL GENERATED ALWAYS AS (min(ifnull(expires_ms, " SCHEMA_NEVER "),"
	"  ifnull(used_ms + idle_ms, " SCHEMA_NEVER "))) VIRTUAL,"
	" quota_bytes INTEGER NOT NULL CHECK (quota_bytes >= 0),"
	" quota_entries INTEGER NOT NULL CHECK (quota_entries >= 0),"
	" usage_bytes INTEGER NOT NULL DEFAULT 0,"
	" usage_entries INTEGER NOT NULL DEFAULT 0,"
	" turns INTEGER NOT NULL DEFAULT 0,"
	" dir_dev INTEGER NOT NULL,"
	" dir_ino INTEGER NOT NULL,"
	" dir_btime_ns INTEGER NOT NULL,"
	" store_inside INTEGER NOT NULL CHECK (store_inside IN (0, 1)),"
	" path TEXT NOT NULL"
	") STRICT, WITHOUT ROWID;"

	"CREATE UNIQUE INDEX session_by_id ON session (tenant, id);"
	"CREATE INDEX session_by_due ON session (due);"
	"CREATE INDEX session_by_directory ON session (dir_ino) WHERE kind = 1;",
};

#endif
