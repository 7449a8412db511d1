/* Inside of the registry, shared by its files: who is open, and what is not saved yet. */
#ifndef CLOISTER_SESSION_REGISTRY_IMPL_H
#define CLOISTER_SESSION_REGISTRY_IMPL_H

#include "session/lease.h"
#include "session/places.h"

enum { REGISTRY_PENDING_MAX = 256, SWEEP_BATCH = 64 };

/* A session that is open in this process. It is in the table until others need its place, until it
 * is deleted or expires; after that it lives as long as it is used. */
struct session {
	struct registry *reg;
	struct session_row row;
	struct lease lease;
	int dir_fd; /* until the workspace is open */
	struct workspace *ws;
	unsigned refs;
	bool listed;
	bool dirty;                    /* used since the last flush */
	struct session *chain;         /* same bucket */
	struct session *newer, *older; /* by last use */
};

struct registry {
	struct places places;
	struct session_store *store; /* NULL until the first use */
	struct registry_options opt; /* pointers in it are not used */
	struct workspace_options workspace;
	char *client_root;
	struct mount_spec volumes[LIMIT_MOUNTS];
	unsigned n_volumes;

	struct session **buckets;
	unsigned n_buckets, n_open;
	struct session *newest, *oldest;

	struct session_use pending[REGISTRY_PENDING_MAX]; /* of sessions no longer open */
	unsigned n_pending;
	int64_t flushed_ms;
};

int64_t registry_now(const struct registry *reg);

/* The database, opened at the first call. */
int registry_store(struct registry *reg, struct session_store **ret, struct err *err) _must_check_;

/* Of this process: find without opening; take out of the table (the workspace is closed when nobody
 * uses it). */
struct session *session_open_find(struct registry *reg, const char *tenant, const char *id);
void session_unlist(struct session *s);

/* Last use: the later of what the row and the lease say. */
int64_t session_last_use(const struct registry *reg, const struct session_row *row);

/* Is it over at `now_ms`, also by the lease? Puts the last use into the row. */
bool session_is_over(const struct registry *reg, struct session_row *row, int64_t now_ms);

/* NULL and "" are the default tenant. Both names checked. */
int session_names(const char **tenant, const char *id, struct err *err) _must_check_;

#endif
