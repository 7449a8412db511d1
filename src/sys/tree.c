/* Walking a directory tree by descriptor: see tree.h. */
#include "sys/tree.h"

#include "base/buf.h"
#include "sys/fs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* A directory on the way down: what it is, and which of its subdirectories are still to be
 * visited. */
struct frame {
	dev_t dev;
	ino_t ino;
	struct buf names; /* NUL-separated */
	size_t at;
};

struct walk {
	struct frame *frames;
	size_t depth, cap;
	dev_t dev;
	int fd;       /* the directory of the deepest frame */
	bool empties; /* everything is to be removed */
	const char *skip;
	tree_fn fn;
	void *ctx;
};

static void walk_done(struct walk *w)
{
	for (size_t i = 0; i < w->depth; i++)
		buf_done(&w->frames[i].names);
	free(w->frames);
	cleanup_close(&w->fd);
}

static int frame_push(struct walk *w)
{
	struct stat st;
	if (w->depth == TREE_DEPTH_MAX) {
		errno = EMLINK;
		return -1;
	}
	if (w->depth == w->cap) {
		size_t cap = w->cap ? w->cap * 2 : 16;
		struct frame *p = realloc(w->frames, cap * sizeof(*p));
		if (!p)
			return -1;
		w->frames = p, w->cap = cap;
	}
	if (fstat(w->fd, &st) < 0)
		return -1;
	w->frames[w->depth++] = (struct frame){
		.dev = st.st_dev, .ino = st.st_ino, .names = buf_init(TREE_NAMES_MAX)};
	return 0;
}

/* One name of the directory of the deepest frame: subdirectories are noted, the rest reported. */
static int see(struct walk *w, const char *name)
{
	struct stat st;
	struct frame *f = &w->frames[w->depth - 1];
	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return 0;
	if (w->depth == 1 && w->skip && strcmp(name, w->skip) == 0)
		return 0;
	if (fs_lstat(w->fd, name, &st) < 0)
		return errno == ENOENT ? 0 : -1;
	if (!S_ISDIR(st.st_mode) || st.st_dev != w->dev)
		return w->fn(w->ctx, w->fd, name, &st);
	buf_put(&f->names, name, strlen(name) + 1);
	if (f->names.failed) {
		errno = ENOMEM;
		return -1;
	}
	return 0;
}

static int read_names(struct walk *w)
{
	int r = 0, fd = openat(w->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	if (!d) {
		cleanup_close(&fd);
		return -1;
	}
	while (r == 0) {
		errno = 0;
		const struct dirent *e = readdir(d);
		if (!e) {
			r = errno ? -1 : 0;
			break;
		}
		r = see(w, e->d_name);
	}
	int keep = errno;
	(void)closedir(d);
	errno = keep;
	return r;
}

/* Open a directory that is to be emptied, taking every permission that the owner can take. */
static int open_to_empty(int dir, const char *name)
{
	struct stat st;
	int fd = fs_open(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (fd < 0 && errno == EACCES) {
		_cleanup_close_ int look = fs_look(dir, name);
		if (look >= 0 && fstat(look, &st) == 0 && S_ISDIR(st.st_mode) &&
			fs_chmod(look, 0700) == 0)
			fd = fs_open(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
		else
			errno = EACCES;
	}
	if (fd >= 0 && fstat(fd, &st) == 0 && (st.st_mode & 0700) != 0700)
		(void)fchmod(fd, 0700); /* when this fails, removing will say so */
	return fd;
}

/* Enter a subdirectory. 1: entered, 0: it is gone (or no directory any more). */
static int descend(struct walk *w, const char *name)
{
	int fd = w->empties ? open_to_empty(w->fd, name)
			    : fs_open(w->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (fd < 0)
		return errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? 0 : -1;
	(void)close(w->fd);
	w->fd = fd;
	return frame_push(w) < 0 ? -1 : 1;
}

/* Back to the parent, which must be the directory that we came from. */
static int ascend(struct walk *w)
{
	struct stat st;
	buf_done(&w->frames[--w->depth].names);
	if (w->depth == 0)
		return 0;
	int fd = openat(w->fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	(void)close(w->fd);
	w->fd = fd;
	const struct frame *f = &w->frames[w->depth - 1];
	if (fstat(fd, &st) < 0)
		return -1;
	if (st.st_ino != f->ino || st.st_dev != f->dev) {
		errno = ESTALE; /* moved away under our feet */
		return -1;
	}
	return 0;
}

/* All of the deepest directory is done: report it in its parent. */
static int leave(struct walk *w)
{
	struct stat st;
	int r = ascend(w);
	if (r != 0 || w->depth == 0)
		return r;
	struct frame *f = &w->frames[w->depth - 1];
	const char *name = f->names.data + f->at;
	f->at += strlen(name) + 1;
	if (fs_lstat(w->fd, name, &st) < 0)
		return errno == ENOENT ? 0 : -1;
	return w->fn(w->ctx, w->fd, name, &st);
}

static int walk_on(struct walk *w)
{
	int r = frame_push(w);
	if (r == 0)
		r = read_names(w);
	while (r == 0 && w->depth > 0) {
		struct frame *f = &w->frames[w->depth - 1];
		if (f->at == f->names.len) {
			r = leave(w);
			continue;
		}
		const char *name = f->names.data + f->at;
		int in = descend(w, name);
		if (in == 1)
			r = read_names(w);
		else if (in == 0)
			f->at += strlen(name) + 1;
		else
			r = -1;
	}
	return r;
}

static int walk_from(struct walk *w, int root)
{
	struct stat st;
	w->fd = openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (w->fd < 0 || fstat(w->fd, &st) < 0)
		return -1;
	w->dev = st.st_dev;
	return walk_on(w);
}

int tree_walk(int root, const char *skip, tree_fn fn, void *ctx)
{
	_cleanup_(walk_done) struct walk w = {.fd = -1, .skip = skip, .fn = fn, .ctx = ctx};
	return walk_from(&w, root);
}

static int add_up(void *ctx, int dir, const char *name, const struct stat *st)
{
	struct tree_sum *sum = ctx;
	(void)dir, (void)name;
	sum->entries++;
	if (S_ISREG(st->st_mode))
		sum->bytes += st->st_size;
	return 0;
}

int tree_count(int root, const char *skip, struct tree_sum *ret)
{
	struct tree_sum sum = {0};
	int r = tree_walk(root, skip, add_up, &sum);
	if (r == 0)
		*ret = sum;
	return r;
}

static int remove_one(void *ctx, int dir, const char *name, const struct stat *st)
{
	(void)ctx;
	int r = unlinkat(dir, name, S_ISDIR(st->st_mode) ? AT_REMOVEDIR : 0);
	return r < 0 && errno == ENOENT ? 0 : r;
}

int tree_clear(int dir)
{
	_cleanup_(walk_done) struct walk w = {.fd = -1, .fn = remove_one, .empties = true};
	return walk_from(&w, dir);
}

int tree_remove(int dir, const char *name)
{
	struct stat st;
	if (fs_lstat(dir, name, &st) < 0)
		return errno == ENOENT ? 0 : -1;
	if (S_ISDIR(st.st_mode)) {
		_cleanup_close_ int fd = open_to_empty(dir, name);
		if (fd < 0 || tree_clear(fd) < 0)
			return -1;
	}
	return remove_one(NULL, dir, name, &st);
}
