/* Listing a directory as a view sees it. */
#include "workspace/view_impl.h"

#include "sys/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

enum { EXTRA_MAX = 64 * 1024 * 1024, SUM_DEPTH_MAX = LIMIT_PATH_BYTES / 2 };

struct view_dir {
	struct view *v;
	unsigned mount;
	char *path;       /* in the view; owned */
	DIR *real;        /* NULL: made by the view */
	struct buf extra; /* names that the view adds: a byte of kind, then the name and a NUL */
	size_t extra_at;
	struct buf name; /* the last name handed out of `extra` */
};

void view_closedir(struct view_dir *d)
{
	if (!d)
		return;
	if (d->real)
		(void)closedir(d->real);
	buf_done(&d->extra);
	buf_done(&d->name);
	free(d->path);
	free(d);
}

static enum node_kind kind_of_entry(const struct entry *e)
{
	switch (e->now) {
	case NOW_FILE: return NODE_FILE;
	case NOW_DIR: return NODE_DIR;
	case NOW_LINK: return NODE_LINK;
	case NOW_REAL: return node_kind_of(e->real.st.st_mode);
	case NOW_NONE: break;
	}
	return NODE_ABSENT;
}

static void add_extra(struct view_dir *d, enum node_kind kind, const char *name)
{
	buf_putc(&d->extra, (char)kind);
	buf_put(&d->extra, name, strlen(name) + 1);
}

/* The name of `path` in directory `dir`, or NULL when it is not directly in it. */
static const char *name_in(const char *path, const char *dir)
{
	if (!path_is_below(path, dir))
		return NULL;
	const char *name = path + strlen(dir) + (*dir != '\0');
	return strchr(name, '/') ? NULL : name;
}

static const char *mount_name_in(const struct view_dir *d, unsigned i)
{
	const struct mount *m = &d->v->ws->mounts[d->mount], *other = &d->v->ws->mounts[i];
	if (i == d->mount || !path_is_below(other->agent, m->agent))
		return NULL;
	return name_in(other->agent + m->agent_len + 1, d->path);
}

static int collect_extra(struct view_dir *d, struct err *err)
{
	const struct view *v = d->v;
	for (size_t i = 0; i < v->n_buckets; i++)
		for (const struct entry *e = v->buckets[i]; e; e = e->next) {
			const char *name = e->mount == d->mount ? name_in(e->path, d->path) : NULL;
			if (name && e->now != NOW_NONE)
				add_extra(d, kind_of_entry(e), name);
		}
	for (unsigned i = 0; i < v->ws->n_mounts && v->ws->n_mounts > 1; i++) {
		const char *name = mount_name_in(d, i);
		if (name)
			add_extra(d, NODE_DIR, name);
	}
	return buf_check(&d->extra, "the listing", err);
}

/* Takes the descriptor also on failure; -1: no real directory. */
static int dir_new(struct view *v, unsigned mount, const char *path, int take_dir,
	struct view_dir **ret, struct err *err)
{
	int r;
	_cleanup_close_ int fd = take_dir;
	_cleanup_(cleanup_view_closedir) struct view_dir *d = calloc(1, sizeof(*d));
	if (!d || !(d->path = strdup(path)))
		return err_oom(err);
	d->v = v;
	d->mount = mount;
	d->extra = buf_init(EXTRA_MAX);
	d->name = buf_init(LIMIT_PATH_BYTES);
	if (fd >= 0) {
		if (!(d->real = fdopendir(fd)))
			return err_sys(err, errno, "listing a directory");
		fd = -1;
	}
	if ((v->n_entries > 0 || v->ws->n_mounts > 1) && (r = collect_extra(d, err)) < 0)
		return r;
	*ret = take_ptr(d);
	return 0;
}

static int open_dir(
	struct view *v, unsigned mount, const char *path, struct view_dir **ret, struct err *err)
{
	const struct mount *m = &v->ws->mounts[mount];
	struct place pl;
	view_locate(v, mount, path, &pl);
	if (pl.kind == PLACE_MADE && pl.entry->now == NOW_DIR)
		return dir_new(v, mount, path, -1, ret, err);
	if (pl.kind != PLACE_REAL)
		return mount_err(m, path, pl.kind == PLACE_GONE ? ENOENT : ENOTDIR, err);
	int fd = fs_open(m->root_fd, pl.real, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (fd < 0)
		return mount_err(m, path, errno, err);
	return dir_new(v, mount, path, fd, ret, err);
}

int view_opendir(struct view *v, const struct node *dir, struct view_dir **ret, struct err *err)
{
	if (dir->kind != NODE_DIR)
		return err_set(err, dir->kind == NODE_ABSENT ? ERR_NOT_FOUND : ERR_NOT_DIRECTORY,
			"'%s' is not a directory", dir->resolved);
	return open_dir(v, dir->mount, dir->path, ret, err);
}

static bool join(const char *dir, const char *name, char out[LIMIT_PATH_BYTES])
{
	int n = snprintf(out, LIMIT_PATH_BYTES, "%s%s%s", dir, *dir ? "/" : "", name);
	return n >= 0 && n < LIMIT_PATH_BYTES;
}

/* The mount whose root is this name of the directory, or -1. */
static int mount_of_name(const struct view_dir *d, const char *name)
{
	for (unsigned i = 0; i < d->v->ws->n_mounts && d->v->ws->n_mounts > 1; i++) {
		const char *m = mount_name_in(d, i);
		if (m && strcmp(m, name) == 0)
			return (int)i;
	}
	return -1;
}

/* Is a name of the real directory hidden, or said by `extra`? */
static bool is_covered(const struct view_dir *d, const char *name)
{
	char path[LIMIT_PATH_BYTES];
	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return true;
	if (!*d->path && mount_hides(&d->v->ws->mounts[d->mount], name))
		return true;
	if (d->v->ws->n_mounts > 1 && mount_of_name(d, name) >= 0)
		return true;
	if (d->v->n_entries == 0)
		return false;
	return join(d->path, name, path) && view_entry(d->v, d->mount, path, strlen(path));
}

static enum node_kind kind_of_dirent(const struct view_dir *d, const struct dirent *e)
{
	struct stat st;
	switch (e->d_type) {
	case DT_REG: return NODE_FILE;
	case DT_DIR: return NODE_DIR;
	case DT_LNK: return NODE_LINK;
	case DT_UNKNOWN:
		if (fs_lstat(dirfd(d->real), e->d_name, &st) == 0)
			return node_kind_of(st.st_mode);
		return NODE_ABSENT;
	default: return NODE_OTHER;
	}
}

static int next_extra(struct view_dir *d, struct dir_entry *ret)
{
	if (d->extra_at == d->extra.len)
		return 0;
	const char *p = d->extra.data + d->extra_at;
	*ret = (struct dir_entry){.name = p + 1, .kind = (enum node_kind) * p};
	d->extra_at += strlen(p + 1) + 2;
	return 1;
}

int view_readdir(struct view_dir *d, struct dir_entry *ret, struct err *err)
{
	while (d->real) {
		errno = 0;
		const struct dirent *e = readdir(d->real);
		if (!e && errno)
			return err_sys(err, errno, "listing a directory");
		if (!e)
			break;
		if (is_covered(d, e->d_name))
			continue;
		*ret = (struct dir_entry){.name = e->d_name, .kind = kind_of_dirent(d, e)};
		if (ret->kind != NODE_ABSENT)
			return 1;
	}
	return next_extra(d, ret);
}

int view_dir_stat(struct view_dir *d, const char *name, struct stat *ret, struct err *err)
{
	char path[LIMIT_PATH_BYTES];
	struct found f;
	int r, i = mount_of_name(d, name);
	const struct mount *m = &d->v->ws->mounts[d->mount];
	if (i >= 0)
		return fstat(d->v->ws->mounts[i].root_fd, ret) == 0
			       ? 0
			       : err_sys(err, errno, "looking at a mount");
	if (!join(d->path, name, path) || strchr(name, '/'))
		return err_set(err, ERR_PATH_INVALID, "the path is too long");
	if (d->real && d->v->n_entries == 0)
		return fs_lstat(dirfd(d->real), name, ret) == 0 ? 0
								: mount_err(m, path, errno, err);
	if ((r = view_find(d->v, d->mount, path, &f, err)) < 0)
		return r;
	cleanup_close(&f.fd);
	if (f.kind == NODE_ABSENT)
		return mount_err(m, path, ENOENT, err);
	*ret = f.st;
	return 0;
}

int view_dir_enter(struct view_dir *d, const char *name, struct view_dir **ret, struct err *err)
{
	char path[LIMIT_PATH_BYTES];
	int i = mount_of_name(d, name);
	const struct mount *m = &d->v->ws->mounts[d->mount];
	if (i >= 0)
		return open_dir(d->v, (unsigned)i, "", ret, err);
	if (!join(d->path, name, path) || strchr(name, '/'))
		return err_set(err, ERR_PATH_INVALID, "the path is too long");
	if (mount_hides(m, path) || strcmp(name, "..") == 0 || strcmp(name, ".") == 0)
		return mount_err(m, path, ENOENT, err);
	if (!d->real || d->v->n_entries > 0)
		return open_dir(d->v, d->mount, path, ret, err);
	int fd = fs_open(dirfd(d->real), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (fd < 0)
		return mount_err(m, path, errno, err);
	return dir_new(d->v, d->mount, path, fd, ret, err);
}

/* --- sums --------------------------------------------------------------------------------- */

struct summing {
	struct view_dir *stack[SUM_DEPTH_MAX];
	unsigned depth;
	struct delta sum;
};

static void summing_free(struct summing *s)
{
	while (s->depth > 0)
		view_closedir(s->stack[--s->depth]);
	free(s);
}
DEFINE_CLEANUP(struct summing *, summing_free)

static int sum_one(struct summing *s, const struct dir_entry *e, struct err *err)
{
	struct stat st;
	int r;
	struct view_dir *d = s->stack[s->depth - 1];
	s->sum.entries++;
	if (e->kind == NODE_FILE) {
		if ((r = view_dir_stat(d, e->name, &st, err)) < 0)
			return r;
		s->sum.bytes += st.st_size;
	} else if (e->kind == NODE_DIR) {
		if (s->depth == SUM_DEPTH_MAX)
			return err_set(err, ERR_LIMIT, "the tree is deeper than %d directories",
				SUM_DEPTH_MAX);
		if ((r = view_dir_enter(d, e->name, &s->stack[s->depth], err)) < 0)
			return r;
		s->depth++;
	}
	return 0;
}

/* Does the view hold anything below a path? */
static bool touched_below(const struct view *v, unsigned mount, const char *path)
{
	for (size_t i = 0; i < v->n_buckets; i++)
		for (const struct entry *e = v->buckets[i]; e; e = e->next)
			if (e->mount == mount && path_is_below(e->path, path))
				return true;
	return false;
}

/* A tree that the view does not touch, of any depth. */
static int sum_real(struct view *v, unsigned mount, const char *path, const char *real,
	struct delta *ret, struct err *err)
{
	struct tree_sum sum;
	const struct mount *m = &v->ws->mounts[mount];
	_cleanup_close_ int fd = fs_open(m->root_fd, real, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (fd < 0 || tree_count(fd, NULL, &sum) < 0)
		return mount_err(m, path, errno, err);
	*ret = (struct delta){sum.bytes, sum.entries};
	return 0;
}

int view_sum(struct view *v, unsigned mount, const char *path, struct delta *ret, struct err *err)
{
	int r;
	struct place pl;
	view_locate(v, mount, path, &pl);
	if (pl.kind == PLACE_REAL && !touched_below(v, mount, path))
		return sum_real(v, mount, path, pl.real, ret, err);
	struct dir_entry e;
	_cleanup_(cleanup_summing_free) struct summing *s = calloc(1, sizeof(*s));
	if (!s)
		return err_oom(err);
	if ((r = open_dir(v, mount, path, &s->stack[0], err)) < 0)
		return r;
	s->depth = 1;
	while (s->depth > 0) {
		if ((r = view_readdir(s->stack[s->depth - 1], &e, err)) < 0)
			return r;
		if (r == 0)
			view_closedir(s->stack[--s->depth]);
		else if ((r = sum_one(s, &e, err)) < 0)
			return r;
	}
	*ret = s->sum;
	return 0;
}
