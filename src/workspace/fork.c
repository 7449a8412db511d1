/*
 * Copying a workspace: by descriptor, following no link, entering no other file system, one
 * directory open on each side at a time. Blocks are shared where the file system can.
 */
#include "workspace/attributes.h"
#include "workspace/history_impl.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <sys/ioctl.h>

enum {
	NAMES_MAX = 256 * 1024 * 1024, /* bytes of paths of directories still to be copied */
	LINKED_MAX = 1000 * 1000,      /* inodes with several names that are remembered */
};

/* A directory whose permissions and times are set at the end, when nothing more is put into it. */
struct done_dir {
	char *rel; /* owned */
	struct stat st;
};

/* An inode with several names: where its first copy is. */
struct linked {
	struct linked *next;
	ino_t ino;
	char *rel; /* owned */
};

struct fork {
	const struct mount *m;
	int to;
	struct fork_result res;
	struct buf todo; /* paths, each behind a NUL */
	struct done_dir *dirs;
	size_t n_dirs, cap_dirs;
	struct linked *buckets[4096];
	size_t n_linked;
};

static void fork_done(struct fork *f)
{
	buf_done(&f->todo);
	for (size_t i = 0; i < f->n_dirs; i++)
		free(f->dirs[i].rel);
	free(f->dirs);
	for (size_t i = 0; i < ARRAY_LEN(f->buckets); i++)
		for (struct linked *l = f->buckets[i], *next; l; l = next) {
			next = l->next;
			free(l->rel);
			free(l);
		}
}

/* One directory of the tree, open on both sides. */
struct both {
	struct fork *f;
	const char *rel;
	int from, to;
};

static char *join(const char *rel, const char *name)
{
	char *path = NULL;
	return asprintf(&path, "%s%s%s", rel, *rel ? "/" : "", name) < 0 ? NULL : path;
}

static int failed(const struct both *p, const char *name, struct err *err)
{
	int e = errno;
	_cleanup_free_ char *path = join(p->rel, name);
	return path ? mount_err(p->f->m, path, e, err) : err_oom(err);
}

static void skip(const struct both *p, const char *name)
{
	struct fork_result *res = &p->f->res;
	_cleanup_free_ char *path = join(p->rel, name);
	_cleanup_buf_ struct buf agent = buf_init(8 * LIMIT_PATH_BYTES);
	if (res->skipped++ > 0 || !path)
		return;
	mount_agent_path(p->f->m, path, &agent);
	size_t n = utf8_floor(buf_str(&agent), MIN(agent.len, sizeof(res->first_skipped) - 1));
	memcpy(res->first_skipped, buf_str(&agent), n);
	res->first_skipped[n] = '\0';
}

/* --- one object each ----------------------------------------------------------------------------
 */

static const struct linked *find_linked(const struct fork *f, ino_t ino)
{
	const struct linked *l = f->buckets[ino % ARRAY_LEN(f->buckets)];
	while (l && l->ino != ino)
		l = l->next;
	return l;
}

static int remember(struct fork *f, ino_t ino, const char *rel, const char *name, struct err *err)
{
	if (f->n_linked >= LINKED_MAX)
		return 0; /* its further names become files of their own */
	struct linked *l = calloc(1, sizeof(*l));
	if (!l || !(l->rel = join(rel, name))) {
		free(l);
		return err_oom(err);
	}
	struct linked **at = &f->buckets[ino % ARRAY_LEN(f->buckets)];
	l->ino = ino;
	l->next = *at;
	*at = l;
	f->n_linked++;
	return 0;
}

static int set_times(int fd, const struct stat *st)
{
	const struct timespec t[2] = {st->st_atim, st->st_mtim};
	return futimens(fd, t);
}

/* Everything but the set-user-id and set-group-id of files, which no workspace hands out. */
static int set_attributes(struct fork *f, int from, int to, const struct stat *st)
{
	mode_t mode = st->st_mode & (S_ISDIR(st->st_mode) ? 03777 : 01777);
	if (!attributes_copy(from, st, to, mode))
		f->res.attributes_lost++;
	return fchmod(to, mode) < 0 ? -1 : set_times(to, st);
}

static int copy_content(struct both *p, int from, int to, const struct stat *st)
{
	if (st->st_size == 0)
		return 0;
	if (ioctl(to, FICLONE, from) == 0) {
		p->f->res.shared++;
		return 0;
	}
	return fs_copy(from, 0, to, 0, -1) < 0 ? -1 : 0;
}

static int copy_file(struct both *p, const char *name, const struct stat *seen, struct err *err)
{
	struct stat st;
	const struct linked *l = seen->st_nlink > 1 ? find_linked(p->f, seen->st_ino) : NULL;
	if (l) {
		p->f->res.files++;
		return linkat(p->f->to, l->rel, p->to, name, 0) < 0 ? failed(p, name, err) : 0;
	}
	_cleanup_close_ int from =
		fs_open(p->from, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0);
	if (from < 0 || fstat(from, &st) < 0)
		return failed(p, name, err);
	if (!S_ISREG(st.st_mode)) {
		skip(p, name);
		return 0;
	}
	_cleanup_close_ int to =
		fs_open(p->to, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
	if (to < 0 || copy_content(p, from, to, &st) < 0 || set_attributes(p->f, from, to, &st) < 0)
		return failed(p, name, err);
	p->f->res.files++;
	p->f->res.bytes += st.st_size;
	return st.st_nlink > 1 ? remember(p->f, st.st_ino, p->rel, name, err) : 0;
}

static int copy_link(struct both *p, const char *name, const struct stat *st, struct err *err)
{
	char target[LIMIT_PATH_BYTES + 1];
	ssize_t n = readlinkat(p->from, name, target, sizeof(target) - 1);
	if (n < 0)
		return failed(p, name, err);
	target[n] = '\0';
	const struct timespec t[2] = {st->st_atim, st->st_mtim};
	if (symlinkat(target, p->to, name) < 0 ||
		utimensat(p->to, name, t, AT_SYMLINK_NOFOLLOW) < 0 ||
		(geteuid() == 0 &&
			fchownat(p->to, name, st->st_uid, st->st_gid, AT_SYMLINK_NOFOLLOW) < 0))
		return failed(p, name, err);
	p->f->res.links++;
	return 0;
}

static int note_dir(struct both *p, const char *name, const struct stat *st, struct err *err)
{
	struct fork *f = p->f;
	if (f->n_dirs == f->cap_dirs) {
		size_t cap = f->cap_dirs ? f->cap_dirs * 2 : 64;
		struct done_dir *more = realloc(f->dirs, cap * sizeof(*more));
		if (!more)
			return err_oom(err);
		f->dirs = more;
		f->cap_dirs = cap;
	}
	char *rel = join(p->rel, name);
	if (!rel)
		return err_oom(err);
	f->dirs[f->n_dirs++] = (struct done_dir){.rel = rel, .st = *st};
	if (mkdirat(p->to, name, 0700) < 0)
		return failed(p, name, err);
	f->res.dirs++;
	buf_putc(&f->todo, '\0');
	buf_puts(&f->todo, rel);
	return buf_check(&f->todo, "the list of directories to copy", err);
}

static int copy_one(struct both *p, const char *name, struct err *err)
{
	struct stat st;
	if (*p->rel == '\0' && mount_hides(p->f->m, name))
		return 0;
	if (fs_lstat(p->from, name, &st) < 0)
		return errno == ENOENT ? 0 : failed(p, name, err);
	switch (st.st_mode & S_IFMT) {
	case S_IFREG: return copy_file(p, name, &st, err);
	case S_IFLNK: return copy_link(p, name, &st, err);
	case S_IFDIR: return note_dir(p, name, &st, err);
	default: skip(p, name); return 0;
	}
}

/* --- the tree -----------------------------------------------------------------------------------
 */

static int copy_entries(struct both *p, struct err *err)
{
	int r = 0;
	int fd = openat(p->from, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	if (!d) {
		r = failed(p, ".", err);
		cleanup_close(&fd);
		return r;
	}
	while (r == 0) {
		errno = 0;
		const struct dirent *e = readdir(d);
		if (!e) {
			r = errno ? failed(p, ".", err) : 0;
			break;
		}
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			r = copy_one(p, e->d_name, err);
	}
	(void)closedir(d);
	return r;
}

static int copy_dir(struct fork *f, const char *rel, struct err *err)
{
	struct both p = {.f = f, .rel = rel};
	_cleanup_close_ int from =
		fs_open(f->m->root_fd, rel, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (from < 0 && errno == EXDEV) {
		p.rel = "";
		skip(&p, rel);
		return 0;
	}
	if (from < 0)
		return errno == ENOENT ? 0 : mount_err(f->m, rel, errno, err);
	_cleanup_close_ int to = fs_open(f->to, rel, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (to < 0)
		return mount_err(f->m, rel, errno, err);
	p.from = from, p.to = to;
	return copy_entries(&p, err);
}

static int finish_dirs(struct fork *f, struct err *err)
{
	for (size_t i = f->n_dirs; i-- > 0;) {
		const char *rel = f->dirs[i].rel;
		_cleanup_close_ int from =
			fs_open(f->m->root_fd, rel, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
		_cleanup_close_ int to =
			fs_open(f->to, rel, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
		/* Without `from`, which somebody outside has taken away, the lists are lost. */
		if (to < 0 || set_attributes(f, from, to, &f->dirs[i].st) < 0)
			return mount_err(f->m, rel, errno, err);
	}
	return 0;
}

static int copy_tree(struct fork *f, struct err *err)
{
	int r = 0;
	buf_putc(&f->todo, '\0'); /* one path, "": the root */
	while (f->todo.len > 0 && r == 0) {
		const char *last = memrchr(f->todo.data, '\0', f->todo.len);
		_cleanup_free_ char *rel = strdup(last + 1);
		if (!rel)
			return err_oom(err);
		f->todo.len = (size_t)(last - f->todo.data);
		f->todo.data[f->todo.len] = '\0';
		r = copy_dir(f, rel, err);
	}
	return r < 0 ? r : finish_dirs(f, err);
}

static int check_empty(int dir_fd, struct err *err)
{
	bool empty = true;
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	if (!d) {
		int e = errno;
		cleanup_close(&fd);
		return err_sys(err, e, "looking at the directory of the fork");
	}
	for (const struct dirent *e; (e = readdir(d));)
		empty = empty && (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0);
	(void)closedir(d);
	return empty ? 0 : err_set(err, ERR_NOT_EMPTY, "the directory of the fork is not empty");
}

int workspace_fork(struct workspace *ws, int to_dir_fd, struct fork_result *ret, struct err *err)
{
	struct store *s = ws->mounts[0].read_only ? NULL : ws->stores[0];
	int r = check_empty(to_dir_fd, err);
	if (r < 0)
		return r;
	_cleanup_free_ struct fork *f = calloc(1, sizeof(*f));
	if (!f)
		return err_oom(err);
	f->m = &ws->mounts[0];
	f->to = to_dir_fd;
	f->todo = buf_init(NAMES_MAX);
	if (s)
		r = history_hold(ws, s, err);
	if (r == 0) {
		r = copy_tree(f, err);
		if (s)
			store_unlock(s);
	}
	if (r == 0)
		*ret = f->res;
	fork_done(f);
	return r;
}
