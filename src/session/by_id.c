/* The registry by id: show, page, extend, delete. */
#include "session/registry_impl.h"

#include "session/crash.h"
#include "session/remove_tree.h"
#include "workspace/history.h"

#include <fcntl.h>

static int not_found(const char *id, struct err *err)
{
	return err_set(err, ERR_SESSION_NOT_FOUND, "there is no session '%s'", id);
}

/* The row of a session; what a killed process was deleting is not there any more. */
static int find(struct registry *reg, struct session_store *st, const char *tenant, const char *id,
	struct session_row *ret, struct err *err)
{
	int r = st->ops->find(st, tenant, id, ret, err);
	if (r < 0)
		return r;
	return r == 0 || place_buried(&reg->places, ret) ? not_found(id, err) : 0;
}

static void show_row(struct registry *reg, struct session_row *row, struct session_info *ret)
{
	const struct session *open = session_open_find(reg, row->info.tenant, row->info.id);
	row->info.expired = session_is_over(reg, row, registry_now(reg));
	row->info.used_ms = session_last_use(reg, row);
	if (open && strcmp(open->row.info.incarnation, row->info.incarnation) == 0) {
		struct session_info now;
		session_info(open, &now);
		row->info.usage_bytes = now.usage_bytes;
		row->info.usage_entries = now.usage_entries;
		row->info.turns = now.turns;
	}
	*ret = row->info;
}

int registry_show(struct registry *reg, const char *tenant, const char *id,
	struct session_info *ret, struct err *err)
{
	_cleanup_free_ struct session_row *row = malloc(sizeof(*row));
	struct session_store *st = NULL;
	if (!row)
		return err_oom(err);
	int r;
	if ((r = session_names(&tenant, id, err)) < 0 || (r = registry_store(reg, &st, err)) < 0 ||
		(r = find(reg, st, tenant, id, row, err)) < 0)
		return r;
	show_row(reg, row, ret);
	return 0;
}

struct paging {
	int64_t now_ms;
	unsigned left;
	bool more;
	bool (*each)(void *ctx, const struct session_info *info);
	void *ctx;
};

static bool page_row(void *ctx, const struct session_row *row)
{
	struct paging *p = ctx;
	struct session_info info = row->info;
	if (p->left == 0) {
		p->more = true;
		return false;
	}
	p->left--;
	info.expired = p->now_ms >= session_due_ms(&info);
	return p->each(p->ctx, &info);
}

int registry_page(struct registry *reg, const char *tenant, const char *after, unsigned max,
	bool (*each)(void *ctx, const struct session_info *info), void *ctx, bool *ret_more,
	struct err *err)
{
	struct paging p = {.now_ms = registry_now(reg), .left = max, .each = each, .ctx = ctx};
	struct session_store *st = NULL;
	if (max == 0 || max > REGISTRY_PAGE_MAX)
		return err_set(err, ERR_INVALID_ARGUMENT, "a page has 1 to %d sessions",
			REGISTRY_PAGE_MAX);
	/* The position is an id of somebody's page, so the rule for ids holds for it, too. */
	int r = session_names(&tenant, after ? after : "x", err);
	if (r == 0)
		r = registry_store(reg, &st, err);
	if (r == 0)
		r = st->ops->page(st, tenant, after ? after : "", max + 1, page_row, &p, err);
	if (r == 0)
		*ret_more = p.more;
	return r;
}

static int extend_inside(struct registry *reg, struct session_store *st, const char *tenant,
	const char *id, int64_t expires_ms, struct session_row *row, struct err *err)
{
	int r = find(reg, st, tenant, id, row, err);
	if (r < 0)
		return r;
	if (session_is_over(reg, row, registry_now(reg)))
		return err_set(err, ERR_EXPIRED, "session '%s' has expired", id);
	row->info.expires_ms = expires_ms;
	return st->ops->expire_at(st, row->info.incarnation, expires_ms, err);
}

int registry_extend(struct registry *reg, const char *tenant, const char *id, int64_t ttl_s,
	struct session_info *ret, struct err *err)
{
	_cleanup_free_ struct session_row *row = malloc(sizeof(*row));
	struct session_store *st = NULL;
	int64_t expires = ttl_s == 0 ? 0 : registry_now(reg) + MIN(ttl_s, INT64_MAX / 4000) * 1000;
	if (!row)
		return err_oom(err);
	if (ttl_s < 0)
		return err_set(err, ERR_INVALID_ARGUMENT, "a time to live is not negative");
	int r;
	if ((r = session_names(&tenant, id, err)) < 0 || (r = registry_store(reg, &st, err)) < 0 ||
		(r = st->ops->begin(st, err)) < 0)
		return r;
	r = extend_inside(reg, st, tenant, id, expires, row, err);
	if (r == 0)
		r = st->ops->commit(st, err);
	if (r < 0) {
		st->ops->rollback(st);
		return r;
	}
	struct session *open = session_open_find(reg, tenant, id);
	if (open)
		open->row.info.expires_ms = expires;
	show_row(reg, row, ret);
	return 0;
}

/* --- adopting ------------------------------------------------------------------------------- */

static int adopt_inside(struct registry *reg, struct session_store *st, const char *tenant,
	const char *id, struct session_row *row, struct err *err)
{
	int r = find(reg, st, tenant, id, row, err);
	if (r < 0)
		return r;
	if (row->info.kind != SESSION_MANAGED)
		return err_set(err, ERR_UNSUPPORTED,
			"session '%s' is of an attached directory, which is recognised by "
			"attaching it",
			id);
	if ((r = place_adopt(&reg->places, row, &row->dir, err)) < 0)
		return r;
	return st->ops->adopt(st, row->info.incarnation, &row->dir, err);
}

/* Its history is of the files that these are copies of. */
static int adopt_history(struct registry *reg, const char *tenant, const char *id, struct err *err)
{
	struct session *s = NULL;
	struct workspace *ws = NULL;
	int r = registry_session(reg, tenant, id, &s, err);
	if (r < 0)
		return r;
	if ((r = session_workspace(s, &ws, err)) == 0)
		r = history_is_of_copy(ws, err);
	session_release(s);
	return r;
}

int registry_adopt(struct registry *reg, const char *tenant, const char *id,
	struct session_info *ret, struct err *err)
{
	_cleanup_free_ struct session_row *row = malloc(sizeof(*row));
	struct session_store *st = NULL;
	if (!row)
		return err_oom(err);
	int r = session_names(&tenant, id, err);
	if (r < 0)
		return r;
	struct session *open = session_open_find(reg, tenant, id);
	if (open && open->refs > 0)
		return err_set(err, ERR_BUSY, "session '%s' is in use", id);
	if (open)
		session_unlist(open);
	if ((r = registry_store(reg, &st, err)) < 0 || (r = st->ops->begin(st, err)) < 0)
		return r;
	r = adopt_inside(reg, st, tenant, id, row, err);
	if (r == 0)
		r = st->ops->commit(st, err);
	if (r < 0) {
		st->ops->rollback(st);
		return r;
	}
	if (!session_is_over(reg, row, registry_now(reg)) &&
		(r = adopt_history(reg, tenant, id, err)) < 0)
		return r;
	show_row(reg, row, ret);
	return 0;
}

/* --- deleting ------------------------------------------------------------------------------- */

/* The store of a person's own directory on another mount: `.cloister` in it. */
static int remove_inside_store(const struct session_row *row, struct err *err)
{
	_cleanup_close_ int fd = -1;
	struct remove_budget all = {.entries = -1};
	struct err ignored;
	if (row->info.kind != SESSION_ATTACHED || !row->store_inside)
		return 0;
	if (place_reattach(row, &fd, &ignored) != 1)
		return 0; /* the directory is gone, and the store with it */
	return remove_tree(fd, WORKSPACE_STORE_NAME, &all, err);
}

static int delete_inside(struct registry *reg, struct session_store *st, const char *tenant,
	const char *id, struct session_row *row, bool *ret_buried, struct err *err)
{
	int r = st->ops->find(st, tenant, id, row, err);
	if (r < 0)
		return r;
	if (r == 0)
		return not_found(id, err);
	if ((r = place_bury(&reg->places, row, err)) < 0)
		return r;
	*ret_buried = true;
	r = st->ops->drop(st, row, err);
	CRASH_POINT(BURY_DROPPED);
	return r;
}

static int delete_locked(struct registry *reg, struct session_store *st, const char *tenant,
	const char *id, struct session_row *row, struct err *err)
{
	bool buried = false;
	int r = st->ops->begin(st, err);
	if (r < 0)
		return r;
	r = delete_inside(reg, st, tenant, id, row, &buried, err);
	if (r == 0)
		r = st->ops->commit(st, err);
	if (r < 0) {
		if (buried)
			place_exhume(&reg->places, row);
		st->ops->rollback(st);
		return r;
	}
	CRASH_POINT(BURY_COMMITTED);
	return 0;
}

int registry_delete(struct registry *reg, const char *tenant, const char *id, struct err *err)
{
	_cleanup_free_ struct session_row *row = malloc(sizeof(*row));
	struct session_store *st = NULL;
	if (!row)
		return err_oom(err);
	int r;
	if ((r = session_names(&tenant, id, err)) < 0 || (r = registry_store(reg, &st, err)) < 0)
		return r;
	struct session *open = session_open_find(reg, tenant, id);
	if (open && open->refs > 0)
		return err_set(err, ERR_BUSY, "session '%s' is in use", id);
	if (open)
		session_unlist(open);
	r = delete_locked(reg, st, tenant, id, row, err);
	return r < 0 ? r : remove_inside_store(row, err);
}
