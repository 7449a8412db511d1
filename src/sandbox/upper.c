/* Walking the upper layer of an overlay: see upper.h. */
#include "sandbox/upper.h"

#include "sys/fs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>

struct walk {
	upper_fn fn;
	void *ctx;
	const char *skip;
	char path[LIMIT_PATH_BYTES];
	size_t len;
	DIR *dirs[UPPER_DEPTH_MAX];   /* open, from the root down */
	size_t lens[UPPER_DEPTH_MAX]; /* of the path of each */
	unsigned depth;
};

/* An attribute of overlayfs itself; what the command set under these names has another prefix. */
static bool has_mark(int fd, const char *name, char want)
{
	char value[2];
	if (!want)
		return fgetxattr(fd, name, NULL, 0) >= 0;
	return fgetxattr(fd, name, value, sizeof(value)) == 1 && value[0] == want;
}

static int give(struct walk *w, struct fence_entry *e, int fd, struct err *err)
{
	e->path = (struct str){w->path, w->len};
	return w->fn(w->ctx, e, fd, err);
}

static int refuse(struct walk *w, const char *why, struct err *err)
{
	struct fence_entry e = {.kind = FENCE_REFUSED, .target = str_of(why)};
	return give(w, &e, -1, err);
}

static int give_file(
	struct walk *w, int dir, const char *name, const struct stat *st, struct err *err)
{
	struct fence_entry e = {.kind = FENCE_FILE, .mode = st->st_mode & 07777};
	_cleanup_close_ int fd = fs_open(dir, name, O_RDONLY | O_NOFOLLOW, 0);
	if (fd < 0)
		return err_sys(err, errno, "reading a changed file");
	if (st->st_size == 0 && has_mark(fd, "user.overlay.whiteout", 0))
		e.kind = FENCE_WHITEOUT;
	else if (has_mark(fd, "user.overlay.redirect", 0) ||
		 has_mark(fd, "user.overlay.metacopy", 0))
		return refuse(w, "a file whose content is elsewhere", err);
	else if (st->st_mode & (S_ISUID | S_ISGID))
		return refuse(w, "a file that would run as its owner", err);
	return give(w, &e, e.kind == FENCE_FILE ? fd : -1, err);
}

static int give_link(struct walk *w, int dir, const char *name, struct err *err)
{
	char target[LIMIT_PATH_BYTES];
	struct fence_entry e = {.kind = FENCE_LINK, .mode = 0777};
	ssize_t n = readlinkat(dir, name, target, sizeof(target));
	if (n <= 0)
		return err_sys(err, n < 0 ? errno : EINVAL, "reading a link");
	if (n == (ssize_t)sizeof(target))
		return refuse(w, "a link whose target is too long", err);
	e.target = (struct str){target, (size_t)n};
	return give(w, &e, -1, err);
}

static int enter(struct walk *w, int fd, struct err *err)
{
	DIR *d = w->depth < UPPER_DEPTH_MAX ? fdopendir(fd) : NULL;
	if (!d) {
		(void)close(fd);
		if (w->depth == UPPER_DEPTH_MAX)
			return err_set(
				err, ERR_LIMIT, "directories more than %d deep", UPPER_DEPTH_MAX);
		return err_oom(err);
	}
	w->lens[w->depth] = w->len;
	w->dirs[w->depth++] = d;
	return 0;
}

/* The bit that gives what is in a directory its group comes from the directory above it, so it is
 * left to the workspace. */
static int give_dir(
	struct walk *w, int dir, const char *name, const struct stat *st, struct err *err)
{
	struct fence_entry e = {.kind = FENCE_DIR, .mode = st->st_mode & 0777};
	_cleanup_close_ int fd = fs_open(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (fd < 0)
		return err_sys(err, errno, "reading a changed directory");
	if (has_mark(fd, "user.overlay.redirect", 0))
		return refuse(w, "a directory whose content is elsewhere", err);
	e.opaque = has_mark(fd, "user.overlay.opaque", 'y');
	int r = give(w, &e, -1, err);
	return r < 0 ? r : enter(w, take_fd(fd), err);
}

static int one(struct walk *w, int dir, const char *name, struct err *err)
{
	struct stat st;
	struct fence_entry special = {.kind = FENCE_SPECIAL};
	struct fence_entry whiteout = {.kind = FENCE_WHITEOUT};
	if (fs_lstat(dir, name, &st) < 0)
		return err_sys(err, errno, "looking at what was changed");
	switch (st.st_mode & S_IFMT) {
	case S_IFREG: return give_file(w, dir, name, &st, err);
	case S_IFDIR: return give_dir(w, dir, name, &st, err);
	case S_IFLNK: return give_link(w, dir, name, err);
	case S_IFIFO:
	case S_IFSOCK: return give(w, &special, -1, err);
	case S_IFCHR:
		if (st.st_rdev == makedev(0, 0))
			return give(w, &whiteout, -1, err);
		break;
	default: break;
	}
	return refuse(w, "a device", err);
}

/* The path of a name in the innermost directory. */
static bool spell(struct walk *w, const char *name)
{
	size_t above = w->lens[w->depth - 1], n = strlen(name);
	if (sizeof(w->path) - above < n + 2)
		return false;
	if (above)
		w->path[above++] = '/';
	memcpy(w->path + above, name, n + 1);
	w->len = above + n;
	return true;
}

static int step(struct walk *w, struct err *err)
{
	DIR *d = w->dirs[w->depth - 1];
	errno = 0;
	const struct dirent *e = readdir(d);
	if (!e && errno)
		return err_sys(err, errno, "listing what was changed");
	if (!e) {
		(void)closedir(d);
		w->depth--;
		return 0;
	}
	const char *name = e->d_name;
	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return 0;
	if (w->depth == 1 && w->skip && strcmp(name, w->skip) == 0)
		return 0;
	if (!spell(w, name))
		return err_set(err, ERR_LIMIT, "a path of more than %d bytes", LIMIT_PATH_BYTES);
	return one(w, dirfd(d), name, err);
}

int upper_walk(int root, const char *skip, upper_fn fn, void *ctx, struct err *err)
{
	_cleanup_free_ struct walk *w = calloc(1, sizeof(*w));
	if (!w)
		return err_oom(err);
	w->fn = fn;
	w->ctx = ctx;
	w->skip = skip;
	int fd = openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_sys(err, errno, "opening what was changed");
	int r = enter(w, fd, err);
	while (r >= 0 && w->depth > 0)
		r = step(w, err);
	while (w->depth > 0)
		(void)closedir(w->dirs[--w->depth]);
	return r < 0 ? r : 0;
}
