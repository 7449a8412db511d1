/*
 * Every statement of the registry in SQLite, as one list, so that a test can ask the planner about
 * each. Those that may meet many rows name the index that they have to use: without it they do not
 * prepare, so a scan cannot creep in.
 */
#ifndef CLOISTER_SESSION_STATEMENTS_H
#define CLOISTER_SESSION_STATEMENTS_H

#define ROW_COLUMNS                                                                                \
	"incarnation, tenant, id, owner, role, kind, created_ms, used_ms, ifnull(expires_ms, 0),"  \
	" ifnull(idle_ms, 0), quota_bytes, quota_entries, usage_bytes, usage_entries, turns,"      \
	" dir_dev, dir_ino, dir_btime_ns, store_inside, path"

/* STATEMENT(NAME, "sql") */
#define STATEMENTS(STATEMENT)                                                                      \
	STATEMENT(BEGIN, "BEGIN IMMEDIATE")                                                        \
	STATEMENT(COMMIT, "COMMIT")                                                                \
	STATEMENT(ROLLBACK, "ROLLBACK")                                                            \
	STATEMENT(FIND, "SELECT " ROW_COLUMNS " FROM session INDEXED BY session_by_id"             \
			" WHERE tenant = ?1 AND id = ?2")                                          \
	STATEMENT(FIND_INCARNATION, "SELECT " ROW_COLUMNS " FROM session WHERE incarnation = ?1")  \
	STATEMENT(FIND_ATTACHED,                                                                   \
		"SELECT " ROW_COLUMNS " FROM session INDEXED BY session_by_directory"              \
		" WHERE kind = 1 AND dir_ino = ?1 AND dir_btime_ns = ?2"                           \
		" AND (dir_dev = ?3 OR path = ?4)")                                                \
	STATEMENT(TENANT_COUNT,                                                                    \
		"INSERT INTO tenant (name, sessions) VALUES (?1, 1)"                               \
		" ON CONFLICT DO UPDATE SET sessions = sessions + 1 WHERE sessions < ?2")          \
	STATEMENT(TENANT_UNCOUNT, "UPDATE tenant SET sessions = sessions - 1 WHERE name = ?1")     \
	STATEMENT(IS_TENANT, "SELECT 1 FROM tenant WHERE name = ?1")                               \
	STATEMENT(ADD,                                                                             \
		"INSERT INTO session (incarnation, tenant, id, owner, role, kind, created_ms,"     \
		" used_ms, expires_ms, idle_ms, quota_bytes, quota_entries, dir_dev, dir_ino,"     \
		" dir_btime_ns, store_inside, path) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8,"       \
		" nullif(?9, 0), nullif(?10, 0), ?11, ?12, ?13, ?14, ?15, ?16, ?17)")              \
	STATEMENT(DROP, "DELETE FROM session WHERE incarnation = ?1")                              \
	STATEMENT(USE, "UPDATE session SET used_ms = max(used_ms, ?2), turns = max(turns, ?3),"    \
		       " usage_bytes = iif(?4 < 0, usage_bytes, ?4),"                              \
		       " usage_entries = iif(?5 < 0, usage_entries, ?5) WHERE incarnation = ?1")   \
	STATEMENT(                                                                                 \
		EXPIRE_AT, "UPDATE session SET expires_ms = nullif(?2, 0) WHERE incarnation = ?1") \
	STATEMENT(REBIND, "UPDATE session SET dir_dev = ?2 WHERE incarnation = ?1")                \
	STATEMENT(ADOPT, "UPDATE session SET dir_dev = ?2, dir_ino = ?3, dir_btime_ns = ?4"        \
			 " WHERE incarnation = ?1")                                                \
	STATEMENT(PAGE, "SELECT " ROW_COLUMNS " FROM session INDEXED BY session_by_id"             \
			" WHERE tenant = ?1 AND id > ?2 ORDER BY id LIMIT ?3")                     \
	STATEMENT(DUE, "SELECT " ROW_COLUMNS " FROM session INDEXED BY session_by_due"             \
		       " WHERE due <= ?1 AND (due, incarnation) > (?2, ?3)"                        \
		       " ORDER BY due, incarnation LIMIT ?4")

#endif
