/* Opening a workspace: its mounts, its stores, and the paths between agents and mounts. */
#include "workspace/recover.h"

#include "sys/fs.h"
#include "sys/tree.h"

#include <errno.h>
#include <fcntl.h>

struct identity identity_of(const struct stat *st)
{
	return (struct identity){
		.dev = st->st_dev,
		.ino = st->st_ino,
		.size = st->st_size,
		.mtime = st->st_mtim,
		.ctime = st->st_ctim,
	};
}

static bool time_eq(struct timespec a, struct timespec b)
{
	return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

bool identity_eq(const struct identity *a, const struct identity *b)
{
	return a->dev == b->dev && a->ino == b->ino && a->size == b->size &&
	       time_eq(a->mtime, b->mtime) && time_eq(a->ctime, b->ctime);
}

enum node_kind node_kind_of(mode_t mode)
{
	if (S_ISREG(mode))
		return NODE_FILE;
	if (S_ISDIR(mode))
		return NODE_DIR;
	return S_ISLNK(mode) ? NODE_LINK : NODE_OTHER;
}

/* Also where the store is elsewhere: a tree may be opened with its store inside another day, and
 * would then trust what an agent had put there. */
bool mount_hides(const struct mount *m _unused_, const char *path)
{
	const size_t n = sizeof(WORKSPACE_STORE_NAME) - 1;
	return strncmp(path, WORKSPACE_STORE_NAME, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

void mount_agent_path(const struct mount *m, const char *path, struct buf *out)
{
	name_escape(out, (struct str){m->agent, m->agent_len});
	if (*path) {
		buf_putc(out, '/');
		name_escape(out, str_of(path));
	}
}

#undef mount_err
int mount_err(const struct mount *m, const char *path, int errnum, struct err *err)
{
	_cleanup_buf_ struct buf b = buf_init(ERR_TEXT_MAX);
	mount_agent_path(m, path, &b);
	/* Links are followed by walking; the kernel meets one only where none was before. */
	if (errnum == ELOOP)
		return err_set(
			err, ERR_CONFLICT, "a part of '%s' became a link meanwhile", buf_str(&b));
	return err_sys(err, errnum, "'%s'", buf_str(&b));
}

int mount_open_parent(const struct mount *m, const char *path, int *ret_fd, const char **ret_name,
	struct err *err)
{
	char dir[LIMIT_PATH_BYTES];
	const char *slash = strrchr(path, '/');
	size_t n = slash ? (size_t)(slash - path) : 0;
	if (n >= sizeof(dir))
		return err_set(err, ERR_PATH_INVALID, "the path is too long");
	memcpy(dir, path, n);
	dir[n] = '\0';
	int fd = fs_open(m->root_fd, dir, O_PATH | O_DIRECTORY, 0);
	if (fd < 0)
		return mount_err(m, path, errno, err);
	*ret_fd = fd;
	*ret_name = slash ? slash + 1 : path;
	return 0;
}

int workspace_mount_at(const struct workspace *ws, const char *agent, size_t n)
{
	for (unsigned i = 0; i < ws->n_mounts; i++)
		if (ws->mounts[i].agent_len == n && memcmp(ws->mounts[i].agent, agent, n) == 0)
			return (int)i;
	return -1;
}

bool workspace_mount_below(const struct workspace *ws, const char *agent, size_t n)
{
	for (unsigned i = 0; i < ws->n_mounts; i++)
		if (ws->mounts[i].agent_len > n + 1 && ws->mounts[i].agent[n] == '/' &&
			memcmp(ws->mounts[i].agent, agent, n) == 0)
			return true;
	return false;
}

/* Absolute, no empty component, no "." or "..", no slash at the end. */
static bool is_normal(const char *path)
{
	if (path[0] != '/' || path[1] == '\0' || strlen(path) >= LIMIT_PATH_BYTES)
		return false;
	for (const char *p = path; *p;) {
		size_t n = strcspn(++p, "/");
		if (n == 0 || (n == 1 && p[0] == '.') || (n == 2 && p[0] == '.' && p[1] == '.'))
			return false;
		p += n;
	}
	return true;
}

/* A store inside a person's checkout is nothing that git should offer to commit. */
static int ignore_in_git(int dir, struct err *err)
{
	static const char all[] = "*\n";
	_cleanup_close_ int fd = openat(
		dir, ".gitignore", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 && errno == EEXIST)
		return 0;
	if (fd < 0 || fs_write(fd, all, sizeof(all) - 1, 0) < 0)
		return err_sys(err, errno, "making the store");
	return 0;
}

/* The directory that will hold the store of a mount; notes whether it is inside the mount. */
static int open_store_dir(struct mount *m, int store_fd, int *ret_fd, struct err *err)
{
	struct stat root, store, other;
	int r, fd;
	if (store_fd < 0) {
		if ((r = store_subdir(m->root_fd, WORKSPACE_STORE_NAME, &fd, err)) < 0)
			return r;
		/* A file system that folds case would know the store by other spellings. */
		if (fs_lstat(m->root_fd, ".CLOISTER", &other) == 0 && fstat(fd, &store) == 0 &&
			other.st_ino == store.st_ino) {
			(void)close(fd);
			return err_set(err, ERR_UNAVAILABLE,
				"names are not case-sensitive in '%s'; the store must be outside",
				m->agent);
		}
		if ((r = ignore_in_git(fd, err)) < 0) {
			(void)close(fd);
			return r;
		}
		*ret_fd = fd;
		return 0;
	}
	if ((fd = openat(store_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
		return err_sys(err, errno, "opening the store of '%s'", m->agent);
	if (fstat(m->root_fd, &root) < 0 || fstat(fd, &store) < 0 || root.st_dev != store.st_dev) {
		(void)close(fd);
		return err_set(
			err, ERR_CONFIG, "the store of '%s' is not on its file system", m->agent);
	}
	*ret_fd = fd;
	return 0;
}

static int add_store(struct workspace *ws, int dir_fd, struct store **ret, struct err *err)
{
	struct store *s = calloc(1, sizeof(*s));
	if (!s)
		return err_oom(err);
	int r = store_open(s, dir_fd, err);
	if (r < 0) {
		store_done(s);
		free(s);
		return r;
	}
	s->power = ws->opt.durability == DURABLE_POWER;
	ws->stores[ws->n_stores++] = s;
	*ret = s;
	return 0;
}

static int open_mount(struct workspace *ws, const struct mount_spec *spec, struct err *err)
{
	int r;
	struct mount *m = &ws->mounts[ws->n_mounts];
	if (!is_normal(spec->agent_path) ||
		workspace_mount_at(ws, spec->agent_path, strlen(spec->agent_path)) >= 0)
		return err_set(err, ERR_CONFIG, "'%s' cannot be a mount's path", spec->agent_path);
	*m = (struct mount){.root_fd = -1,
		.saved_fd = -1,
		.staged_fd = -1,
		.read_only = spec->read_only,
		.shared = spec->shared,
		.limit_bytes = spec->quota_bytes,
		.limit_entries = spec->quota_entries};
	ws->n_mounts++;
	if (!(m->agent = strdup(spec->agent_path)))
		return err_oom(err);
	m->agent_len = strlen(m->agent);
	m->root_fd = fs_open(spec->dir_fd, "", O_PATH | O_DIRECTORY, 0);
	if (m->root_fd < 0 && errno == ENOSYS)
		return err_set(err, ERR_UNAVAILABLE, "this kernel has no openat2 (Linux 5.6)");
	if (m->root_fd < 0)
		return err_sys(err, errno, "opening '%s'", m->agent);
	if (m->read_only)
		return 0;
	_cleanup_close_ int dir = -1;
	if ((r = open_store_dir(m, spec->store_fd, &dir, err)) < 0)
		return r;
	if (ws->n_mounts == 1 || m->shared || !ws->stores[0])
		r = add_store(ws, dir, &m->store, err);
	else
		m->store = ws->stores[0];
	if (r < 0 || (r = store_subdir(dir, "saved", &m->saved_fd, err)) < 0 ||
		(r = store_subdir(dir, "staged", &m->staged_fd, err)) < 0)
		return r;
	/* Content of calls that died. */
	if (m->store->first && tree_clear(m->staged_fd) < 0)
		return err_sys(err, errno, "clearing the store");
	return 0;
}

static int check_specs(const struct mount_spec *mounts, unsigned n, struct err *err)
{
	if (n == 0 || n > LIMIT_MOUNTS)
		return err_set(err, ERR_CONFIG, "a workspace has 1 to %d mounts", LIMIT_MOUNTS);
	if (strcmp(mounts[0].agent_path, "/workspace") != 0 || mounts[0].shared)
		return err_set(err, ERR_CONFIG, "the first mount is the session's own /workspace");
	if (!mounts[0].read_only)
		return 0;
	for (unsigned i = 1; i < n; i++)
		if (!mounts[i].read_only && !mounts[i].shared)
			return err_set(err, ERR_CONFIG,
				"a private mount '%s' needs a workspace that can be written",
				mounts[i].agent_path);
	return 0;
}

/* End what a dead process or a power cut has left. Nobody is waited for: a live writer ends its own
 * commit, and the next view waits for it. */
static int settle_store(struct workspace *ws, struct store *s, struct err *err)
{
	int r = 0;
	bool unprepared = s->first && atomic_load(&s->st->preparing) > atomic_load(&s->st->done);
	if (store_at_rest(s) && store_same_boot(s) && !unprepared)
		return 0;
	if ((r = store_lock(s, ws->opt.lock_wait_ms, err)) < 0)
		return r;
	if (store_same_boot(s))
		r = store_at_rest(s) ? 0 : recover(ws, s, err);
	else if (!atomic_load(&s->st->clean))
		r = recover_boot(ws, s, err);
	if (r == 0) {
		recover_unprepared(ws, s);
		store_set_boot(s);
	}
	store_unlock(s);
	return r;
}

int workspace_open(const struct mount_spec *mounts, unsigned n_mounts,
	const struct workspace_options *opt, struct workspace **ret, struct err *err)
{
	int r;
	if ((r = check_specs(mounts, n_mounts, err)) < 0)
		return r;
	_cleanup_(cleanup_workspace_free) struct workspace *ws = calloc(1, sizeof(*ws));
	if (!ws)
		return err_oom(err);
	ws->opt = *opt;
	ws->opt.client_root = NULL;
	if (opt->client_root && is_normal(opt->client_root) &&
		!(ws->client_root = strdup(opt->client_root)))
		return err_oom(err);
	for (unsigned i = 0; i < n_mounts; i++)
		if ((r = open_mount(ws, &mounts[i], err)) < 0)
			return r;
	for (unsigned i = 0; i < ws->n_stores; i++)
		if ((r = settle_store(ws, ws->stores[i], err)) < 0)
			return r;
	*ret = take_ptr(ws);
	return 0;
}

/* The last user of a store that promised to survive a power cut leaves nothing to the log. */
static void close_store(struct store *s)
{
	struct err ignored;
	if (!s->st || s->lock_fd < 0 || !s->power || fs_lock(s->lock_fd, 2, F_WRLCK) < 0)
		return;
	if (fs_lock(s->lock_fd, 1, F_WRLCK) == 0 && store_at_rest(s) &&
		atomic_load(&s->st->log_unsynced) && redo_checkpoint(s, &ignored) == 0) {
		atomic_store(&s->st->clean, 1);
		if (ftruncate(s->log_fd, 0) < 0 || fdatasync(s->state_fd) < 0)
			atomic_store(&s->st->clean, 0);
	}
	(void)fs_lock(s->lock_fd, 2, F_UNLCK);
}

void workspace_free(struct workspace *ws)
{
	if (!ws)
		return;
	for (unsigned i = 0; i < ws->n_mounts; i++) {
		free(ws->mounts[i].agent);
		cleanup_close(&ws->mounts[i].root_fd);
		cleanup_close(&ws->mounts[i].saved_fd);
		cleanup_close(&ws->mounts[i].staged_fd);
	}
	for (unsigned i = 0; i < ws->n_stores; i++) {
		close_store(ws->stores[i]);
		store_done(ws->stores[i]);
		free(ws->stores[i]);
	}
	free(ws->client_root);
	free(ws);
}

int workspace_usage(struct workspace *ws, struct workspace_usage *ret, struct err *err)
{
	int r;
	struct store *s = ws->stores[0];
	if (!s || ws->mounts[0].read_only)
		return err_set(err, ERR_READ_ONLY, "a read-only workspace has no usage");
	if (!atomic_load(&s->st->counted) || !(store_same_boot(s) || atomic_load(&s->st->clean))) {
		if ((r = store_lock(s, ws->opt.lock_wait_ms, err)) < 0)
			return r;
		r = quota_know(ws, s, err);
		store_unlock(s);
		if (r < 0)
			return r;
	}
	*ret = (struct workspace_usage){
		.bytes = atomic_load(&s->st->bytes),
		.entries = atomic_load(&s->st->entries),
		.limit_bytes = ws->opt.quota_bytes,
		.limit_entries = ws->opt.quota_entries,
		.history_bytes = atomic_load(&s->st->history_bytes),
	};
	if (ws->opt.quota_is_growth) {
		ret->limit_bytes += ret->limit_bytes ? atomic_load(&s->st->base_bytes) : 0;
		ret->limit_entries += ret->limit_entries ? atomic_load(&s->st->base_entries) : 0;
	}
	return 0;
}

uint64_t workspace_seq(struct workspace *ws)
{
	return ws->mounts[0].read_only ? 0 : atomic_load(&ws->stores[0]->st->done);
}

int workspace_mount_fd(const struct workspace *ws, unsigned mount)
{
	BUG_ON(mount >= ws->n_mounts);
	return ws->mounts[mount].root_fd;
}

unsigned workspace_mounts(const struct workspace *ws)
{
	return ws->n_mounts;
}

const char *workspace_mount_path(const struct workspace *ws, unsigned mount)
{
	BUG_ON(mount >= ws->n_mounts);
	return ws->mounts[mount].agent;
}

bool workspace_mount_read_only(const struct workspace *ws, unsigned mount)
{
	BUG_ON(mount >= ws->n_mounts);
	return ws->mounts[mount].read_only;
}

void workspace_recovered(const struct workspace *ws, struct workspace_recovery *ret)
{
	*ret = ws->recovered;
}
