/*
 * The registry: sessions that are open in this process, and the way to them.
 *
 * The common case, a session that is open, is a look into a table and three memory accesses. All
 * else goes through obtain(): look at the row without a lock, and only when something has to change
 * (create, finish what a killed process began, replace what has expired) do it inside one
 * transaction, in which this process is the only one to move directories.
 */
#include "session/registry_impl.h"

#include "session/crash.h"
#include "session/known.h"
#include "session/state.h"
#include "sys/clock.h"
#include "sys/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

enum { NEEDS_SETTLING = 1 }; /* of entry_open(): something is unfinished or over */

/* --- names ---------------------------------------------------------------------------------- */

int session_id_check(const char *what, const char *id, struct err *err)
{
	static const char allowed[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
	size_t n = id ? strnlen(id, LIMIT_SESSION_ID + 1) : 0;
	if (n == 0 || n > LIMIT_SESSION_ID)
		return err_set(err, ERR_INVALID_ARGUMENT, "a %s has 1 to %d characters", what,
			LIMIT_SESSION_ID);
	if (strspn(id, allowed) != n)
		return err_set(err, ERR_INVALID_ARGUMENT,
			"a %s has only letters, digits, '-', '_' and '.'", what);
	if (id[0] == '.')
		return err_set(err, ERR_INVALID_ARGUMENT, "a %s does not start with '.'", what);
	if (strstr(id, ".."))
		return err_set(err, ERR_INVALID_ARGUMENT, "a %s does not contain '..'", what);
	return 0;
}

int session_names(const char **tenant, const char *id, struct err *err)
{
	if (!*tenant || !**tenant)
		*tenant = TENANT_DEFAULT;
	int r = session_id_check("tenant", *tenant, err);
	return r < 0 ? r : session_id_check("session id", id, err);
}

static int check_word(const char *what, const char *word, struct err *err)
{
	size_t n = strnlen(word, SESSION_WORD_MAX + 1);
	if (n == 0 || n > SESSION_WORD_MAX || !utf8_valid(word, n))
		return err_set(err, ERR_INVALID_ARGUMENT,
			"the %s of a session is text of 1 to %d bytes", what, SESSION_WORD_MAX);
	return 0;
}

/* --- opening and closing -------------------------------------------------------------------- */

int64_t registry_now(const struct registry *reg)
{
	return reg->opt.now_ms ? reg->opt.now_ms(reg->opt.clock_ctx) : clock_unix_ms();
}

static int copy_volumes(struct registry *reg, const struct registry_options *opt, struct err *err)
{
	if (opt->n_volumes >= LIMIT_MOUNTS)
		return err_set(err, ERR_LIMIT, "more than %d mounts", LIMIT_MOUNTS - 1);
	for (unsigned i = 0; i < opt->n_volumes; i++) {
		struct mount_spec *v = &reg->volumes[i];
		*v = opt->volumes[i];
		v->agent_path = strdup(opt->volumes[i].agent_path);
		v->dir_fd = fcntl(opt->volumes[i].dir_fd, F_DUPFD_CLOEXEC, 3);
		v->store_fd = opt->volumes[i].store_fd < 0
				      ? -1
				      : fcntl(opt->volumes[i].store_fd, F_DUPFD_CLOEXEC, 3);
		reg->n_volumes++;
		if (!v->agent_path)
			return err_oom(err);
		if (v->dir_fd < 0 || (opt->volumes[i].store_fd >= 0 && v->store_fd < 0))
			return err_sys(err, errno, "opening a volume");
	}
	return 0;
}

static int copy_options(struct registry *reg, const struct registry_options *opt, struct err *err)
{
	reg->opt = *opt;
	reg->opt.tenant_sessions =
		opt->tenant_sessions > 0 ? opt->tenant_sessions : REGISTRY_TENANT_SESSIONS;
	reg->opt.open_max = opt->open_max > 0 ? opt->open_max : REGISTRY_OPEN_MAX;
	reg->opt.busy_ms = opt->busy_ms > 0 ? opt->busy_ms : REGISTRY_BUSY_MS;
	if (opt->workspace)
		reg->workspace = *opt->workspace;
	if (reg->workspace.client_root) {
		reg->client_root = strdup(reg->workspace.client_root);
		if (!reg->client_root)
			return err_oom(err);
		reg->workspace.client_root = reg->client_root;
	}
	for (reg->n_buckets = 16; reg->n_buckets < reg->opt.open_max;)
		reg->n_buckets *= 2;
	reg->buckets = calloc(reg->n_buckets, sizeof(struct session *));
	return reg->buckets ? copy_volumes(reg, opt, err) : err_oom(err);
}

int registry_open(const struct registry_options *opt, struct registry **ret, struct err *err)
{
	struct registry *reg = calloc(1, sizeof(*reg));
	if (!reg)
		return err_oom(err);
	int r = places_open(&reg->places, opt->state_fd, opt->base_fd, err);
	if (r == 0)
		r = copy_options(reg, opt, err);
	reg->flushed_ms = registry_now(reg);
	if (r < 0)
		registry_free(reg);
	else
		*ret = reg;
	return r;
}

void registry_free(struct registry *reg)
{
	struct err ignored;
	if (!reg)
		return;
	while (reg->oldest) {
		BUG_ON(reg->oldest->refs > 0);
		session_unlist(reg->oldest);
	}
	/* What cannot be saved now is in the leases still. */
	if (reg->buckets)
		(void)!registry_flush(reg, &ignored);
	if (reg->store)
		reg->store->ops->close(reg->store);
	for (unsigned i = 0; i < reg->n_volumes; i++) {
		free((void *)(uintptr_t)reg->volumes[i].agent_path);
		cleanup_close(&reg->volumes[i].dir_fd);
		cleanup_close(&reg->volumes[i].store_fd);
	}
	places_done(&reg->places);
	free(reg->client_root);
	free(reg->buckets);
	free(reg);
}

int registry_store(struct registry *reg, struct session_store **ret, struct err *err)
{
	if (!reg->store) {
		int r = store_sqlite_open(reg->places.state_fd, reg->opt.busy_ms,
			reg->workspace.durability == DURABLE_POWER, &reg->store, err);
		if (r < 0)
			return r;
	}
	*ret = reg->store;
	return 0;
}

/* --- sessions that are open in this process ------------------------------------------------- */

/* FNV-1a over "tenant/id". */
static unsigned bucket_of(const struct registry *reg, const char *tenant, const char *id)
{
	uint32_t h = 2166136261U;
	for (const char *p = tenant; *p; p++)
		h = (h ^ (uint8_t)*p) * 16777619U;
	h = (h ^ '/') * 16777619U;
	for (const char *p = id; *p; p++)
		h = (h ^ (uint8_t)*p) * 16777619U;
	return h & (reg->n_buckets - 1);
}

struct session *session_open_find(struct registry *reg, const char *tenant, const char *id)
{
	struct session *s = reg->buckets[bucket_of(reg, tenant, id)];
	while (s && (strcmp(s->row.info.id, id) != 0 || strcmp(s->row.info.tenant, tenant) != 0))
		s = s->chain;
	return s;
}

static void lru_remove(struct session *s)
{
	struct registry *reg = s->reg;
	*(s->newer ? &s->newer->older : &reg->newest) = s->older;
	*(s->older ? &s->older->newer : &reg->oldest) = s->newer;
	s->newer = s->older = NULL;
}

static void lru_add(struct session *s)
{
	struct registry *reg = s->reg;
	s->older = reg->newest;
	*(reg->newest ? &reg->newest->newer : &reg->oldest) = s;
	reg->newest = s;
}

static void session_free(struct session *s)
{
	workspace_free(s->ws);
	lease_done(&s->lease);
	cleanup_close(&s->dir_fd);
	free(s);
}
DEFINE_CLEANUP(struct session *, session_free)

static struct session_use use_of(struct session *s)
{
	struct session_use use = {.used_ms = lease_last_use(&s->lease),
		.turns = lease_turns(&s->lease),
		.usage_bytes = -1,
		.usage_entries = -1};
	struct workspace_usage u;
	struct err ignored;
	memcpy(use.incarnation, s->row.info.incarnation, sizeof(use.incarnation));
	if (s->ws && workspace_usage(s->ws, &u, &ignored) == 0) {
		use.usage_bytes = u.bytes;
		use.usage_entries = u.entries;
	}
	return use;
}

/* Keep what the session's last use has to tell the registry. When there is no room (the database is
 * busy for long), the lease tells whoever needs to know. */
static void keep_use(struct session *s)
{
	struct registry *reg = s->reg;
	struct err ignored;
	if (!s->dirty || lease_dead(&s->lease))
		return;
	if (reg->n_pending == REGISTRY_PENDING_MAX)
		(void)!registry_flush(reg, &ignored);
	if (reg->n_pending < REGISTRY_PENDING_MAX)
		reg->pending[reg->n_pending++] = use_of(s);
	s->dirty = false;
}

void session_unlist(struct session *s)
{
	struct registry *reg = s->reg;
	struct session **at = &reg->buckets[bucket_of(reg, s->row.info.tenant, s->row.info.id)];
	while (*at != s)
		at = &(*at)->chain;
	*at = s->chain;
	lru_remove(s);
	reg->n_open--;
	s->listed = false;
	keep_use(s);
	if (s->refs == 0)
		session_free(s);
}

static void list_session(struct session *s)
{
	struct registry *reg = s->reg;
	struct session **at = &reg->buckets[bucket_of(reg, s->row.info.tenant, s->row.info.id)];
	s->chain = *at;
	*at = s;
	lru_add(s);
	reg->n_open++;
	s->listed = true;
}

/* Room for one more: the one that was not used for longest goes. */
static int make_room(struct registry *reg, struct err *err)
{
	struct session *s = reg->oldest;
	if (reg->n_open < reg->opt.open_max)
		return 0;
	while (s && s->refs > 0)
		s = s->newer;
	if (!s)
		return err_set(err, ERR_LIMIT, "%u sessions are in use at once, the limit",
			reg->opt.open_max);
	session_unlist(s);
	return 0;
}

/* --- is it over? ---------------------------------------------------------------------------- */

int64_t session_last_use(const struct registry *reg, const struct session_row *row)
{
	struct lease lease = LEASE_NONE;
	int64_t used = row->info.used_ms;
	if (lease_peek(reg->places.lease_fd, row->info.incarnation, &lease))
		used = MAX(used, lease_last_use(&lease));
	lease_done(&lease);
	return used;
}

bool session_is_over(const struct registry *reg, struct session_row *row, int64_t now_ms)
{
	if (now_ms < session_due_ms(&row->info))
		return false;
	if (row->info.idle_ms > 0)
		row->info.used_ms = session_last_use(reg, row);
	return now_ms >= session_due_ms(&row->info);
}

/* The same for a session that is open here. */
static bool still_good(struct session *s, int64_t now_ms)
{
	s->row.info.used_ms = MAX(s->row.info.used_ms, lease_last_use(&s->lease));
	return !lease_dead(&s->lease) && now_ms < session_due_ms(&s->row.info);
}

/* --- opening one ---------------------------------------------------------------------------- */

/* The directory of a session: 0, NEEDS_SETTLING when it is not there. */
static int entry_directory(struct session *s, int given_fd, struct err *err)
{
	const struct places *p = &s->reg->places;
	int r;
	if (given_fd >= 0) {
		s->dir_fd = fcntl(given_fd, F_DUPFD_CLOEXEC, 3);
		r = s->dir_fd < 0 ? err_sys(err, errno, "opening a workspace") : 1;
	} else if (s->row.info.kind == SESSION_ATTACHED) {
		r = place_reattach(&s->row, &s->dir_fd, err);
	} else {
		r = place_open(p, &s->row, &s->dir_fd, err);
	}
	if (r < 0)
		return r;
	return r == 0 || (s->row.info.kind == SESSION_ATTACHED && place_buried(p, &s->row))
		       ? NEEDS_SETTLING
		       : 0;
}

/* Open what a row describes: first the lease, then the directory (place_bury() says why). Where the
 * row may be gone meanwhile, a lease that is missing is not made. */
static int entry_open(struct registry *reg, const struct session_row *row, int given_fd,
	bool locked, struct session **ret, struct err *err)
{
	int r;
	_cleanup_(cleanup_session_free) struct session *s = calloc(1, sizeof(*s));
	if (!s)
		return err_oom(err);
	s->reg = reg;
	s->row = *row;
	s->dir_fd = -1;
	s->lease = LEASE_NONE;
	r = lease_open(reg->places.lease_fd, row->info.incarnation, locked, &s->lease, err);
	if (r <= 0)
		return r < 0 ? r : NEEDS_SETTLING;
	if (locked)
		CRASH_POINT(CREATE_LEASED);
	r = entry_directory(s, given_fd, err);
	if (r != 0)
		return r;
	if (!still_good(s, registry_now(reg)))
		return NEEDS_SETTLING;
	lease_raise_turns(&s->lease, row->info.turns);
	list_session(s);
	*ret = take_ptr(s);
	return 0;
}

/* --- one transaction that settles everything ------------------------------------------------ */

/* What is to be found or made. */
struct wanted {
	struct session_row row; /* all of a new one, but incarnation and directory */
	int dir_fd;             /* attached; -1: managed */
	bool create, must_be_new;
};

struct settling {
	struct session_row found; /* what there is, or what was buried */
	bool buried, made, announced;
	int made_fd; /* the directory of what was made; -1: none */
};

static int find_wanted(
	struct session_store *st, const struct wanted *w, struct session_row *ret, struct err *err)
{
	if (w->dir_fd >= 0)
		return st->ops->find_attached(st, &w->row.dir, w->row.path, ret, err);
	return st->ops->find(st, w->row.info.tenant, w->row.info.id, ret, err);
}

static int bury_found(
	struct registry *reg, struct session_store *st, struct settling *how, struct err *err)
{
	int r = place_bury(&reg->places, &how->found, err);
	if (r < 0)
		return r;
	how->buried = true;
	r = st->ops->drop(st, &how->found, err);
	CRASH_POINT(BURY_DROPPED);
	return r;
}

static int make_wanted(struct registry *reg, struct session_store *st, struct wanted *w,
	struct settling *how, struct err *err)
{
	int64_t now = registry_now(reg);
	struct session_info *i = &w->row.info;
	int r = 0;
	i->created_ms = i->used_ms = now;
	incarnation_new(now, i->incarnation);
	if (w->dir_fd < 0) {
		r = place_make(&reg->places, i, &how->made_fd, err);
		how->made = r == 0;
		CRASH_POINT(CREATE_MADE);
		if (r == 0)
			r = dir_identify(how->made_fd, &w->row.dir, err);
	} else {
		(void)snprintf(i->id, sizeof(i->id), "dir-%s", i->incarnation);
	}
	if (r < 0)
		return r;
	if ((r = place_announce(&reg->places, i->incarnation, err)) < 0)
		return r;
	how->announced = true;
	CRASH_POINT(CREATE_ANNOUNCED);
	w->row.store_inside = w->dir_fd < 0 ? !reg->places.one_mount
					    : !same_mount(w->dir_fd, reg->places.store_fd);
	r = st->ops->add(st, &w->row, reg->opt.tenant_sessions, err);
	CRASH_POINT(CREATE_ADDED);
	return r;
}

/* Inside the transaction: the row that is to be opened, made when there is none. */
static int settle_inside(struct registry *reg, struct session_store *st, struct wanted *w,
	struct settling *how, struct err *err)
{
	int r = find_wanted(st, w, &how->found, err);
	if (r < 0)
		return r;
	if (r == 1 && !place_buried(&reg->places, &how->found) &&
		!session_is_over(reg, &how->found, registry_now(reg))) {
		if (w->must_be_new)
			return err_set(
				err, ERR_EXISTS, "there is a session '%s' already", w->row.info.id);
		place_revive(&reg->places, &how->found); /* whoever marked it died before more */
		w->row = how->found;
		return 0;
	}
	if (r == 1 && (r = bury_found(reg, st, how, err)) < 0)
		return r;
	return w->create ? make_wanted(reg, st, w, how, err) : 0;
}

static void undo_settling(struct registry *reg, const struct wanted *w, const struct settling *how)
{
	if (how->announced)
		place_announced(&reg->places, w->row.info.incarnation, false);
	if (how->made)
		place_unmake(&reg->places, &w->row.info);
	if (how->buried)
		place_exhume(&reg->places, &how->found);
}

static int not_there(const struct wanted *w, struct err *err)
{
	return err_set(err, ERR_SESSION_NOT_FOUND, "there is no session '%s'", w->row.info.id);
}

/* What has been found or made is opened inside the transaction, too: nobody can take it away. */
static int settle_and_open(struct registry *reg, struct session_store *st, struct wanted *w,
	struct settling *how, struct session **ret, struct err *err)
{
	int r = settle_inside(reg, st, w, how, err);
	if (r < 0 || !w->row.info.incarnation[0])
		return r;
	r = entry_open(reg, &w->row, MAX(w->dir_fd, how->made_fd), true, ret, err);
	if (r != NEEDS_SETTLING)
		return r;
	(void)err_set(err, ERR_CORRUPT, "the directory of session '%s' is missing", w->row.info.id);
	return err_hint(err, "delete the session to begin anew");
}

static int settle(struct registry *reg, struct session_store *st, struct wanted *w,
	struct session **ret, struct err *err)
{
	_cleanup_free_ struct settling *how = calloc(1, sizeof(*how));
	struct session *s = NULL;
	if (!how)
		return err_oom(err);
	how->made_fd = -1;
	int r = st->ops->begin(st, err);
	if (r < 0)
		return r;
	r = settle_and_open(reg, st, w, how, &s, err);
	cleanup_close(&how->made_fd);
	if (r == 0)
		r = st->ops->commit(st, err);
	if (r < 0) {
		/* Directories go back while we are still the only one to move them. */
		if (s)
			session_unlist(s);
		undo_settling(reg, w, how);
		st->ops->rollback(st);
		return r;
	}
	CRASH_POINT(CREATE_COMMITTED);
	if (how->announced)
		place_announced(&reg->places, w->row.info.incarnation, true);
	if (!s)
		return not_there(w, err);
	*ret = s;
	return 0;
}

/* Find or make, and open. */
static int obtain(struct registry *reg, struct wanted *w, struct session **ret, struct err *err)
{
	_cleanup_free_ struct session_row *row = calloc(1, sizeof(*row));
	struct session_store *st = NULL;
	if (!row)
		return err_oom(err);
	int r = make_room(reg, err);
	if (r == 0)
		r = registry_store(reg, &st, err);
	if (r == 0)
		r = find_wanted(st, w, row, err);
	if (r < 0)
		return r;
	if (r == 0 && !w->create)
		return not_there(w, err);
	if (r == 1 && !w->must_be_new) {
		/* A conflict may only mean that the row is older than the directory. */
		r = entry_open(reg, row, w->dir_fd, false, ret, err);
		if (r != NEEDS_SETTLING && r != -ERR_CONFLICT)
			return r;
	}
	return settle(reg, st, w, ret, err);
}

/* --- the ways in ---------------------------------------------------------------------------- */

static void touch(struct session *s, int64_t now_ms)
{
	struct registry *reg = s->reg;
	struct err ignored;
	s->refs++;
	s->dirty = true;
	if (now_ms > s->row.info.used_ms) /* of a new session the row knows it */
		lease_use(&s->lease, now_ms);
	lru_remove(s);
	lru_add(s);
	if (now_ms - reg->flushed_ms >= REGISTRY_FLUSH_MS)
		(void)!registry_flush(reg, &ignored); /* tried again when the time comes again */
}

static int64_t span_ms(int64_t asked_s, int64_t default_s)
{
	int64_t s = asked_s == 0 ? default_s : asked_s;
	return s <= 0 ? 0 : MIN(s, INT64_MAX / 4000) * 1000;
}

static void copy_text(char *out, size_t cap, const char *text)
{
	(void)snprintf(out, cap, "%s", text);
}

static int fill_wanted(
	struct registry *reg, const struct session_spec *spec, struct wanted *w, struct err *err)
{
	struct session_info *i = &w->row.info;
	const char *owner = spec->owner ? spec->owner : spec->tenant;
	const char *role = spec->role ? spec->role : "developer";
	int64_t ttl = span_ms(spec->ttl_s, reg->opt.ttl_s);
	int r = check_word("owner", owner, err);
	if (r == 0)
		r = check_word("role", role, err);
	if (r < 0)
		return r;
	w->dir_fd = -1;
	copy_text(i->tenant, sizeof(i->tenant), spec->tenant);
	copy_text(i->id, sizeof(i->id), spec->id);
	copy_text(i->owner, sizeof(i->owner), owner);
	copy_text(i->role, sizeof(i->role), role);
	i->expires_ms = ttl > 0 ? registry_now(reg) + ttl : 0;
	i->idle_ms = span_ms(spec->idle_s, reg->opt.idle_s);
	i->quota_bytes =
		spec->quota_bytes > 0 ? spec->quota_bytes : MAX(reg->workspace.quota_bytes, 0);
	i->quota_entries = spec->quota_entries > 0 ? spec->quota_entries
						   : MAX(reg->workspace.quota_entries, 0);
	return 0;
}

/* Find or make by (tenant, id), which have been checked. */
static int by_name(struct registry *reg, const struct session_spec *spec, bool create,
	bool must_be_new, struct session **ret, struct err *err)
{
	_cleanup_free_ struct wanted *w = calloc(1, sizeof(*w));
	struct session *s = NULL;
	if (!w)
		return err_oom(err);
	int r = fill_wanted(reg, spec, w, err);
	if (r < 0)
		return r;
	w->create = create;
	w->must_be_new = must_be_new;
	if ((r = obtain(reg, w, &s, err)) < 0)
		return r;
	touch(s, registry_now(reg));
	*ret = s;
	return 0;
}

int registry_session(struct registry *reg, const char *tenant, const char *id, struct session **ret,
	struct err *err)
{
	int64_t now = registry_now(reg);
	int r = session_names(&tenant, id, err);
	if (r < 0)
		return r;
	struct session *s = session_open_find(reg, tenant, id);
	if (s && still_good(s, now)) {
		touch(s, now);
		*ret = s;
		return 0;
	}
	if (s)
		session_unlist(s);
	struct session_spec spec = {.tenant = tenant, .id = id};
	return by_name(reg, &spec, !reg->opt.no_create, false, ret, err);
}

int registry_create(struct registry *reg, const struct session_spec *spec, struct session **ret,
	struct err *err)
{
	struct session_spec full = *spec;
	char random[INCARNATION_LEN + 1];
	if (!full.id) {
		incarnation_new(registry_now(reg), random);
		full.id = random;
	}
	int r = session_names(&full.tenant, full.id, err);
	if (r < 0)
		return r;
	struct session *s = session_open_find(reg, full.tenant, full.id);
	if (s && still_good(s, registry_now(reg)))
		return err_set(err, ERR_EXISTS, "there is a session '%s' already", full.id);
	if (s)
		session_unlist(s);
	return by_name(reg, &full, true, true, ret, err);
}

/* --- a person's own directory --------------------------------------------------------------- */

static bool same_inode(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Is `what` the directory, or below it? Climbs by "..". */
static bool is_within(int what_fd, int dir_fd)
{
	struct stat dir, at, last = {0};
	_cleanup_close_ int fd = fcntl(what_fd, F_DUPFD_CLOEXEC, 3);
	if (fstat(dir_fd, &dir) < 0)
		return true;
	for (int depth = 0; depth < LIMIT_PATH_BYTES; depth++) {
		if (fd < 0 || fstat(fd, &at) < 0)
			return depth == 0; /* what cannot be looked at does not hold the other */
		if (same_inode(&at, &dir))
			return true;
		if (depth > 0 && same_inode(&at, &last))
			return false;
		last = at;
		int up = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
		(void)close(fd);
		fd = up;
	}
	return true;
}

static int check_attachable(const struct registry *reg, int dir_fd, struct err *err)
{
	const struct places *p = &reg->places;
	if (is_within(p->state_fd, dir_fd) || is_within(p->base_fd, dir_fd))
		return err_set(err, ERR_DENIED,
			"the state of all sessions is inside this directory, so it cannot be a "
			"workspace");
	if (is_within(dir_fd, p->state_fd) || is_within(dir_fd, p->base_fd))
		return err_set(err, ERR_DENIED,
			"this directory belongs to the sessions, so it cannot be attached");
	return 0;
}

static int fill_attached(
	struct registry *reg, int dir_fd, const char *path, struct wanted *w, struct err *err)
{
	struct session_spec spec = {
		.tenant = TENANT_DEFAULT, .id = "attached", .ttl_s = -1, .idle_s = -1};
	int r = fill_wanted(reg, &spec, w, err);
	if (r == 0)
		r = dir_identify(dir_fd, &w->row.dir, err);
	if (r < 0)
		return r;
	w->row.info.kind = SESSION_ATTACHED;
	w->dir_fd = dir_fd;
	w->create = true;
	if (!path || strlen(path) >= sizeof(w->row.path) || !utf8_valid(path, strlen(path)))
		path = ""; /* only shown, and a help in finding it again */
	copy_text(w->row.path, sizeof(w->row.path), path);
	return 0;
}

/* After a reboot the device may have another number. */
static int rebind(struct registry *reg, struct session *s, const struct wanted *w, struct err *err)
{
	struct session_store *st = NULL;
	if (s->row.dir.dev == w->row.dir.dev)
		return 0;
	int r = registry_store(reg, &st, err);
	if (r == 0)
		r = st->ops->rebind(st, s->row.info.incarnation, &w->row.dir, err);
	s->row.dir.dev = w->row.dir.dev;
	return r;
}

/* Found by what is kept of it, else by the database. */
static int attach(struct registry *reg, struct wanted *w, struct session **ret, bool *ret_known,
	struct err *err)
{
	_cleanup_free_ struct session_row *row = calloc(1, sizeof(*row));
	struct err ignored;
	if (!row)
		return err_oom(err);
	int r = make_room(reg, err);
	if (r < 0)
		return r;
	*ret_known = known_find(reg->places.state_fd, &w->row.dir, row) &&
		     entry_open(reg, row, w->dir_fd, false, ret, &ignored) == 0;
	return *ret_known ? 0 : obtain(reg, w, ret, err);
}

static void remember(struct registry *reg, const struct session *s)
{
	known_keep(reg->places.state_fd, &s->row);
	if (lease_dead(&s->lease)) /* it was deleted while that was being written */
		known_forget(reg->places.state_fd, &s->row.dir);
}

int registry_attach(
	struct registry *reg, int dir_fd, const char *path, struct session **ret, struct err *err)
{
	_cleanup_free_ struct wanted *w = calloc(1, sizeof(*w));
	struct dir_identity here;
	struct session *s = NULL;
	if (!w)
		return err_oom(err);
	int r = check_attachable(reg, dir_fd, err);
	if (r == 0)
		r = fill_attached(reg, dir_fd, path, w, err);
	if (r < 0)
		return r;
	here = w->row.dir;
	for (s = reg->newest; s; s = s->older)
		if (s->row.info.kind == SESSION_ATTACHED && s->row.dir.dev == here.dev &&
			s->row.dir.ino == here.ino && s->row.dir.btime_ns == here.btime_ns)
			break;
	if (s && !still_good(s, registry_now(reg))) {
		session_unlist(s);
		s = NULL;
	}
	bool known = s != NULL;
	r = s ? 0 : attach(reg, w, &s, &known, err);
	if (r < 0)
		return r;
	w->row.dir = here;
	touch(s, registry_now(reg));
	r = rebind(reg, s, w, err);
	if (r < 0) {
		session_release(s);
		return r;
	}
	if (!known)
		remember(reg, s);
	*ret = s;
	return 0;
}

/* --- a session in use ----------------------------------------------------------------------- */

void session_release(struct session *s)
{
	BUG_ON(s->refs == 0);
	if (--s->refs == 0 && !s->listed)
		session_free(s);
}

const char *session_id(const struct session *s)
{
	return s->row.info.id;
}

const char *session_tenant(const struct session *s)
{
	return s->row.info.tenant;
}

const char *session_role(const struct session *s)
{
	return s->row.info.role;
}

int64_t session_expires(const struct session *s)
{
	struct session_info i = s->row.info;
	i.used_ms = MAX(i.used_ms, lease_last_use(&s->lease));
	int64_t due = session_due_ms(&i);
	return due == INT64_MAX ? 0 : due / 1000;
}

void session_info(const struct session *s, struct session_info *ret)
{
	struct workspace_usage u;
	struct err ignored;
	*ret = s->row.info;
	ret->used_ms = MAX(ret->used_ms, lease_last_use(&s->lease));
	ret->turns = lease_turns(&s->lease);
	ret->expired = registry_now(s->reg) >= session_due_ms(ret);
	if (s->ws && workspace_usage(s->ws, &u, &ignored) == 0) {
		ret->usage_bytes = u.bytes;
		ret->usage_entries = u.entries;
	}
}

uint64_t session_next_turn(struct session *s)
{
	struct err ignored;
	uint64_t turn;
	s->dirty = true;
	return lease_next_turn(&s->lease, &turn, &ignored) == 0 ? turn : 0;
}

static int open_workspace(struct session *s, struct err *err)
{
	struct registry *reg = s->reg;
	struct mount_spec mounts[LIMIT_MOUNTS] = {{.agent_path = "/workspace"}};
	struct workspace_options opt = reg->workspace;
	_cleanup_close_ int store_fd = -1;
	int r = place_store(&reg->places, &s->row, &store_fd, err);
	if (r < 0)
		return r;
	if (store_fd >= 0 && !same_mount(store_fd, s->dir_fd))
		return err_set(err, ERR_UNAVAILABLE,
			"the workspace of session '%s' and its store are no longer on one mount",
			s->row.info.id);
	mounts[0].dir_fd = s->dir_fd;
	mounts[0].store_fd = store_fd;
	for (unsigned i = 0; i < reg->n_volumes; i++)
		mounts[i + 1] = reg->volumes[i];
	opt.quota_bytes = s->row.info.quota_bytes;
	opt.quota_entries = s->row.info.quota_entries;
	opt.quota_is_growth = s->row.info.kind == SESSION_ATTACHED;
	if (!opt.client_root && s->row.path[0])
		opt.client_root = s->row.path;
	return workspace_open(mounts, reg->n_volumes + 1, &opt, &s->ws, err);
}

int session_workspace(struct session *s, struct workspace **ret, struct err *err)
{
	int r = s->ws ? 0 : lease_map(&s->lease, err);
	if (r == 0 && !s->ws)
		r = open_workspace(s, err);
	if (r < 0)
		return r;
	cleanup_close(&s->dir_fd);
	s->dir_fd = -1;
	*ret = s->ws;
	return 0;
}

/* --- saving --------------------------------------------------------------------------------- */

static int save_all(struct registry *reg, struct session_store *st, struct err *err)
{
	int r = 0;
	for (unsigned i = 0; r == 0 && i < reg->n_pending; i++)
		r = st->ops->use(st, &reg->pending[i], err);
	for (struct session *s = reg->newest; r == 0 && s; s = s->older) {
		struct session_use use;
		if (!s->dirty)
			continue;
		use = use_of(s);
		r = st->ops->use(st, &use, err);
	}
	return r;
}

static bool anything_to_save(const struct registry *reg)
{
	bool any = reg->n_pending > 0;
	for (const struct session *s = reg->newest; !any && s; s = s->older)
		any = s->dirty;
	return any;
}

/* What another process has deleted would hold its files open until the next use. */
static void drop_dead(struct registry *reg)
{
	for (struct session *s = reg->newest, *next; s; s = next) {
		next = s->older;
		if (s->refs == 0 && lease_dead(&s->lease))
			session_unlist(s);
	}
}

int registry_flush(struct registry *reg, struct err *err)
{
	struct session_store *st = NULL;
	reg->flushed_ms = registry_now(reg);
	drop_dead(reg);
	if (!anything_to_save(reg))
		return 0;
	int r = registry_store(reg, &st, err);
	if (r == 0)
		r = st->ops->begin(st, err);
	if (r < 0)
		return r;
	r = save_all(reg, st, err);
	if (r == 0)
		r = st->ops->commit(st, err);
	if (r < 0) {
		st->ops->rollback(st);
		return r;
	}
	reg->n_pending = 0;
	for (struct session *s = reg->newest; s; s = s->older)
		s->dirty = false;
	return 0;
}
