/* The state directory and the base of workspaces: see state.h. */
#include "session/state.h"

#include "base/text.h"
#include "sys/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Whoever may write in this directory could replace what is below it. */
static int check_above(const struct stat *st, const char *path, struct err *err)
{
	bool open_to_others = (st->st_mode & 022) && !(st->st_mode & S_ISVTX);
	if (st->st_uid != 0 && st->st_uid != geteuid()) {
		(void)err_set(err, ERR_DENIED, "the state directory is below one of another user");
		return err_hint(err, "user %u owns %s", st->st_uid, path);
	}
	if (open_to_others) {
		(void)err_set(err, ERR_DENIED,
			"the state directory is below one that others may write in");
		return err_hint(err, "chmod go-w %s", path);
	}
	return 0;
}

static int check_own(const struct stat *st, mode_t forbidden, const char *path, struct err *err)
{
	if (st->st_uid != geteuid()) {
		(void)err_set(err, ERR_DENIED, "the directory of the state is another user's");
		return err_hint(err, "user %u owns %s", st->st_uid, path);
	}
	if (st->st_mode & forbidden) {
		(void)err_set(err, ERR_DENIED, "the directory of the state is open to others");
		return err_hint(err, "chmod %s %s", forbidden == 077 ? "700" : "go-w", path);
	}
	return 0;
}

/*
 * One component further down: made when missing, owned by root or this user. A link is followed
 * only above the last component, and only a link that root or this user has made.
 */
static int step_down(int dir, const char *name, bool last, int *ret_fd, struct err *err)
{
	struct stat st;
	int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | (last ? O_NOFOLLOW : 0);
	int missing = fs_lstat(dir, name, &st);
	if (missing && errno == ENOENT) {
		if (mkdirat(dir, name, 0700) < 0 && errno != EEXIST)
			return err_sys(err, errno, "making a directory of the state");
		missing = fs_lstat(dir, name, &st);
	}
	if (missing)
		return err_sys(err, errno, "looking for a directory of the state");
	if (last && S_ISLNK(st.st_mode))
		return err_set(err, ERR_DENIED, "a directory of the state is a symbolic link");
	if (st.st_uid != 0 && st.st_uid != geteuid())
		return err_set(err, ERR_DENIED, "a directory of the state is another user's");
	/* Above the last, search permission has to do: a parent need not be readable. */
	int fd = openat(dir, name, last ? flags : (flags & ~O_ACCMODE) | O_PATH);
	if (fd < 0)
		return err_sys(err, errno, "opening a directory of the state");
	*ret_fd = fd;
	return 0;
}

/* Walk an absolute path from the root, distrusting every directory on it. */
static int open_trusted(const char *path, mode_t forbidden, int *ret_fd, struct err *err)
{
	_cleanup_close_ int dir = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct stat st;
	if (dir < 0)
		return err_sys(err, errno, "opening the root directory");
	for (const char *p = path + strspn(path, "/"); *p;) {
		char name[NAME_MAX + 1];
		size_t n = strcspn(p, "/");
		const char *next = p + n + strspn(p + n, "/");
		int fd = -1, r;
		if (n > NAME_MAX)
			return err_set(
				err, ERR_CONFIG, "a directory name of the state is too long");
		(void)snprintf(name, sizeof(name), "%.*s", (int)n, p);
		if (fstat(dir, &st) < 0)
			return err_sys(err, errno, "looking at a directory of the state");
		if ((r = check_above(&st, path, err)) < 0)
			return r;
		if ((r = step_down(dir, name, !*next, &fd, err)) < 0)
			return r;
		(void)close(dir);
		dir = fd;
		p = next;
	}
	if (fstat(dir, &st) < 0)
		return err_sys(err, errno, "looking at the directory of the state");
	int r = check_own(&st, forbidden, path, err);
	if (r == 0)
		*ret_fd = take_fd(dir);
	return r;
}

static int put_path(char out[PATH_MAX], const char *root, const char *rest, struct err *err)
{
	int n = snprintf(out, PATH_MAX, "%s%s", root, rest);
	if (n < 0 || n >= PATH_MAX)
		return err_set(err, ERR_CONFIG, "the path of the state directory is too long");
	if (out[0] != '/')
		return err_set(err, ERR_CONFIG, "the state directory has to be an absolute path");
	return 0;
}

static int state_path(const char *given, char out[PATH_MAX], struct err *err)
{
	const char *xdg = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	if (given)
		return put_path(out, given, "", err);
	if (geteuid() == 0)
		return put_path(out, "/var/lib/cloister", "", err);
	if (xdg && xdg[0] == '/') /* a relative one is to be ignored, says its specification */
		return put_path(out, xdg, "/cloister", err);
	if (!home || !*home) {
		(void)err_set(err, ERR_CONFIG, "where to keep the state is not known");
		return err_hint(err, "set HOME, XDG_STATE_HOME or the state directory");
	}
	return put_path(out, home, "/.local/state/cloister", err);
}

static int open_base(int state_fd, const char *given, int *ret_fd, struct err *err)
{
	const char *shannon = getenv("SHANNON_SESSION_WORKSPACES_DIR");
	char path[PATH_MAX];
	if (!given && shannon && *shannon)
		given = shannon;
	if (!given)
		return state_subdir(state_fd, "sessions", ret_fd, err);
	int r = put_path(path, given, "", err);
	if (r == 0)
		r = open_trusted(path, 022, ret_fd, err);
	return r < 0 ? err_wrap(err, "base of workspaces") : 0;
}

int state_open(
	const struct state_paths *paths, int *ret_state_fd, int *ret_base_fd, struct err *err)
{
	_cleanup_close_ int state = -1;
	char path[PATH_MAX];
	int base, r = state_path(paths ? paths->state_dir : NULL, path, err);
	if (r == 0)
		r = open_trusted(path, 077, &state, err);
	if (r == 0)
		r = open_base(state, paths ? paths->base_dir : NULL, &base, err);
	if (r < 0)
		return r;
	*ret_state_fd = take_fd(state);
	*ret_base_fd = base;
	return 0;
}

int state_open_beside(const struct state_paths *paths, const char *suffix, const char *given,
	int *ret_fd, struct err *err)
{
	char state[PATH_MAX], path[PATH_MAX];
	int r = given ? put_path(path, given, "", err)
		      : state_path(paths ? paths->state_dir : NULL, state, err);
	if (r < 0)
		return r;
	if (!given) {
		size_t n = strlen(state);
		while (n > 1 && state[n - 1] == '/')
			state[--n] = '\0';
		r = put_path(path, state, suffix, err);
	}
	return r < 0 ? r : open_trusted(path, 077, ret_fd, err);
}

int state_subdir(int dir_fd, const char *name, int *ret_fd, struct err *err)
{
	static const int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;
	struct stat st;
	_cleanup_close_ int fd = fs_open(dir_fd, name, flags, 0);
	if (fd < 0 && errno == ENOENT) {
		if (mkdirat(dir_fd, name, 0700) < 0 && errno != EEXIST)
			return err_sys(err, errno, "making the directory '%s' of the state", name);
		fd = fs_open(dir_fd, name, flags, 0);
	}
	if (fd < 0 && (errno == ELOOP || errno == ENOTDIR))
		return err_set(err, ERR_DENIED, "'%s' of the state is not a directory", name);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(err, errno, "opening the directory '%s' of the state", name);
	int r = check_own(&st, 077, name, err);
	if (r == 0)
		*ret_fd = take_fd(fd);
	return r;
}
