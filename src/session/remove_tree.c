/*
 * Removing a tree by descriptor: see remove_tree.h.
 *
 * A directory's own name is the only state. Two levels are open at any time: the top of the tree,
 * and the one directory in it that is being emptied. A directory found there that is not empty is
 * renamed into the top. The kernel refuses to rename a mount and to open one (NO_XDEV), so nothing
 * that belongs to another file system is ever touched.
 */
#include "session/remove_tree.h"

#include "session/crash.h"
#include "sys/clock.h"
#include "sys/fs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

enum { HOIST_TRIES = 64 };

struct removal {
	int top_fd; /* top of the tree */
	struct remove_budget *budget;
	uint64_t next_name; /* of hoisted directories */
	bool progress;      /* this pass has changed something */
	bool out_of_budget;
	unsigned stuck; /* in this pass */
	int why;        /* errno of the first */
};

static bool may_go_on(struct removal *job)
{
	struct remove_budget *b = job->budget;
	if (b->entries == 0 || (b->deadline_ns && clock_mono_ns() >= b->deadline_ns))
		job->out_of_budget = true;
	return !job->out_of_budget;
}

static void removed_one(struct removal *job)
{
	if (job->budget->entries > 0)
		job->budget->entries--;
	job->budget->removed++;
	job->progress = true;
}

static void stuck_at(struct removal *job, int why)
{
	if (why == ENOENT) { /* somebody else was faster */
		job->progress = true;
		return;
	}
	if (job->stuck++ == 0)
		job->why = why;
}

/* Open a directory for emptying, taking every permission that the owner can take. */
static int open_to_empty(int dir_fd, const char *name)
{
	struct stat st;
	int fd = fs_open(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (fd < 0 && errno == EACCES) {
		_cleanup_close_ int look = fs_look(dir_fd, name);
		if (look < 0 || fstat(look, &st) < 0 || !S_ISDIR(st.st_mode) ||
			fs_chmod(look, 0700) < 0) {
			errno = EACCES;
			return -1;
		}
		fd = fs_open(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	}
	if (fd >= 0 && fstat(fd, &st) == 0 && (st.st_mode & 0700) != 0700)
		(void)fchmod(fd, 0700); /* when this fails, removing will say so */
	return fd;
}

/* Bring a directory up into the top of the tree. */
static int hoist(struct removal *job, int dir_fd, const char *name)
{
	bool opened = false;
	for (int tries = 0; tries < HOIST_TRIES; tries++) {
		char fresh[32];
		(void)snprintf(
			fresh, sizeof(fresh), "%016llx", (unsigned long long)job->next_name++);
		if (fs_rename_new(dir_fd, name, job->top_fd, fresh) == 0)
			return 0;
		if (errno == EACCES && !opened) {
			/* Its ".." changes, so the directory itself has to be writable. */
			_cleanup_close_ int fd = open_to_empty(dir_fd, name);
			opened = true;
			if (fd < 0)
				return -1;
		} else if (errno != EEXIST) {
			return -1;
		}
	}
	return -1;
}

/* Something in a directory below the top: removed, or a directory that comes up. */
static void remove_below(struct removal *job, int dir_fd, const struct dirent *e)
{
	if (e->d_type != DT_DIR) {
		if (unlinkat(dir_fd, e->d_name, 0) == 0) {
			removed_one(job);
			return;
		}
		if (errno != EISDIR) {
			stuck_at(job, errno);
			return;
		}
	}
	if (unlinkat(dir_fd, e->d_name, AT_REMOVEDIR) == 0)
		removed_one(job);
	else if ((errno == ENOTEMPTY || errno == EEXIST) && hoist(job, dir_fd, e->d_name) == 0)
		job->progress = true;
	else
		stuck_at(job, errno);
}

typedef void (*entry_fn)(struct removal *job, int dir_fd, const struct dirent *e);

/* Every entry of a directory, once. Takes the descriptor. */
static void each_entry(struct removal *job, int take_dir, entry_fn fn)
{
	struct dirent *e;
	DIR *d = fdopendir(take_dir);
	if (!d) {
		stuck_at(job, errno);
		(void)close(take_dir);
		return;
	}
	while (may_go_on(job) && (e = readdir(d)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			fn(job, dirfd(d), e);
	(void)closedir(d);
}

/* Something in the top: a directory is emptied here and now. */
static void remove_in_top(struct removal *job, int dir_fd, const struct dirent *e)
{
	if (e->d_type != DT_DIR) {
		if (unlinkat(dir_fd, e->d_name, 0) == 0) {
			removed_one(job);
			return;
		}
		if (errno != EISDIR) {
			stuck_at(job, errno);
			return;
		}
	}
	int sub = open_to_empty(dir_fd, e->d_name);
	if (sub < 0) {
		stuck_at(job, errno);
		return;
	}
	unsigned stuck = job->stuck;
	each_entry(job, sub, remove_below);
	if (job->out_of_budget)
		return;
	if (unlinkat(dir_fd, e->d_name, AT_REMOVEDIR) == 0)
		removed_one(job);
	else if (job->stuck == stuck || (errno != ENOTEMPTY && errno != EEXIST))
		stuck_at(job, errno);
}

/* Pass over the top until it is empty or nothing moves any more. */
static int empty_top(struct removal *job, struct err *err)
{
	do {
		int again = fs_open(job->top_fd, "", O_RDONLY | O_DIRECTORY, 0);
		if (again < 0)
			return err_sys(err, errno, "opening a directory that is being removed");
		job->progress = false;
		job->stuck = 0;
		each_entry(job, again, remove_in_top);
		if (job->out_of_budget)
			return 1;
	} while (job->progress);
	if (job->stuck == 0)
		return 0;
	if (job->why == EBUSY || job->why == EXDEV)
		return err_set(
			err, ERR_BUSY, "something is mounted in a tree that is being removed");
	return err_sys(err, job->why, "%u names of a tree resist being removed", job->stuck);
}

int remove_content(int dir_fd, const char *name, struct remove_budget *budget, struct err *err)
{
	_cleanup_close_ int top = open_to_empty(dir_fd, name);
	struct removal job = {.top_fd = top, .budget = budget};
	if (top < 0 && errno == ENOENT)
		return 0;
	if (top < 0 && errno == EXDEV)
		return err_set(err, ERR_BUSY, "the tree that is being removed is a mount");
	if (top < 0)
		return err_sys(err, errno, "opening a tree to remove");
	if (getrandom(&job.next_name, sizeof(job.next_name), GRND_NONBLOCK) < 0)
		job.next_name = (uint64_t)clock_mono_ns();
	return empty_top(&job, err);
}

int remove_tree(int dir_fd, const char *name, struct remove_budget *budget, struct err *err)
{
	struct removal job = {.budget = budget};
	struct stat st;
	if (!may_go_on(&job))
		return 1;
	if (fs_lstat(dir_fd, name, &st) < 0)
		return errno == ENOENT ? 0 : err_sys(err, errno, "looking at a tree to remove");
	bool is_dir = S_ISDIR(st.st_mode);
	int r = is_dir ? remove_content(dir_fd, name, budget, err) : 0;
	if (r != 0)
		return r;
	CRASH_POINT(SWEEP_EMPTIED);
	if (unlinkat(dir_fd, name, is_dir ? AT_REMOVEDIR : 0) == 0)
		removed_one(&job);
	else if (errno == EBUSY)
		return err_set(err, ERR_BUSY, "the tree that is being removed is a mount");
	else if (errno != ENOENT)
		return err_sys(err, errno, "removing the top of a tree");
	return 0;
}
