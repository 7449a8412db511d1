/* The directories of sessions: see places.h. */
#include "session/places.h"

#include "session/crash.h"
#include "session/known.h"
#include "session/lease.h"
#include "session/state.h"
#include "sys/clock.h"
#include "sys/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/random.h>

int places_open(struct places *p, int state_fd, int base_fd, struct err *err)
{
	int r = 0;
	*p = (struct places){-1, -1, -1, -1, -1, -1, false};
	p->state_fd = fcntl(state_fd, F_DUPFD_CLOEXEC, 3);
	p->base_fd = fcntl(base_fd, F_DUPFD_CLOEXEC, 3);
	if (p->state_fd < 0 || p->base_fd < 0)
		r = err_sys(err, errno, "opening the registry");
	if (r == 0)
		r = state_subdir(p->state_fd, "trash", &p->state_trash_fd, err);
	if (r == 0)
		r = state_subdir(p->state_fd, "store", &p->store_fd, err);
	if (r == 0)
		r = state_subdir(p->state_fd, "lease", &p->lease_fd, err);
	if (r == 0)
		r = state_subdir(p->base_fd, ".trash", &p->base_trash_fd, err);
	p->one_mount = r == 0 && same_mount(p->base_fd, p->store_fd);
	if (r < 0)
		places_done(p);
	return r;
}

void places_done(struct places *p)
{
	int *const fds[] = {&p->state_fd, &p->base_fd, &p->base_trash_fd, &p->state_trash_fd,
		&p->store_fd, &p->lease_fd};
	for (unsigned i = 0; i < ARRAY_LEN(fds); i++) {
		cleanup_close(fds[i]);
		*fds[i] = -1;
	}
}

void incarnation_new(int64_t now_ms, char ret[INCARNATION_LEN + 1])
{
	uint64_t r[2];
	while (getrandom(r, sizeof(r), 0) != (ssize_t)sizeof(r))
		; /* 16 bytes never come short once the pool is ready; only a signal repeats it */
	(void)snprintf(ret, INCARNATION_LEN + 1, "%012llx%04llx%016llx",
		(unsigned long long)now_ms & 0xffffffffffffULL, (unsigned long long)r[0] & 0xffff,
		(unsigned long long)r[1]);
}

int dir_identify(int fd, struct dir_identity *ret, struct err *err)
{
	struct statx x;
	if (statx(fd, "", AT_EMPTY_PATH, STATX_TYPE | STATX_INO | STATX_BTIME, &x) < 0)
		return err_sys(err, errno, "looking at the directory of a session");
	if (!S_ISDIR(x.stx_mode))
		return err_set(err, ERR_NOT_DIRECTORY, "the workspace has to be a directory");
	ret->dev = (uint64_t)x.stx_dev_major << 32 | x.stx_dev_minor;
	ret->ino = x.stx_ino;
	ret->btime_ns = x.stx_mask & STATX_BTIME
				? x.stx_btime.tv_sec * 1000000000LL + x.stx_btime.tv_nsec
				: 0;
	return 0;
}

bool same_mount(int a_fd, int b_fd)
{
	struct statx a, b;
	if (statx(a_fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &a) < 0 ||
		statx(b_fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &b) < 0)
		return false;
	return (a.stx_mask & b.stx_mask & STATX_MNT_ID) && a.stx_mnt_id == b.stx_mnt_id;
}

/* --- the workspace -------------------------------------------------------------------------- */

/* The directory that holds a tenant's sessions. */
static int open_parent(
	const struct places *p, const char *tenant, bool make, int *ret_fd, struct err *err)
{
	if (strcmp(tenant, TENANT_DEFAULT) == 0) {
		int fd = fcntl(p->base_fd, F_DUPFD_CLOEXEC, 3);
		if (fd < 0)
			return err_sys(err, errno, "opening the base of workspaces");
		*ret_fd = fd;
		return 0;
	}
	int fd = fs_open(p->base_fd, tenant, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (fd < 0 && errno == ENOENT && make) {
		if (mkdirat(p->base_fd, tenant, 0700) < 0 && errno != EEXIST)
			return err_sys(
				err, errno, "making the directory of the tenant '%s'", tenant);
		fd = fs_open(p->base_fd, tenant, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	}
	struct stat st;
	if (fd < 0 && (errno == ELOOP || errno == ENOTDIR))
		return err_set(
			err, ERR_CONFLICT, "the place of the tenant '%s' is no directory", tenant);
	if (fd < 0)
		return err_sys(err, errno, "opening the directory of the tenant '%s'", tenant);
	if (fstat(fd, &st) < 0 || st.st_uid != geteuid() || (st.st_mode & 022)) {
		(void)close(fd);
		return err_set(err, ERR_DENIED,
			"the directory of the tenant '%s' is not this user's alone", tenant);
	}
	*ret_fd = fd;
	return 0;
}

static int in_the_way(const struct session_info *i, struct err *err)
{
	(void)err_set(err, ERR_EXISTS,
		"something that belongs to no session is at the place of session '%s'", i->id);
	return err_hint(err, "choose another id, or move it away from the base of workspaces");
}

int place_make(const struct places *p, const struct session_info *i, int *ret_fd, struct err *err)
{
	_cleanup_close_ int parent = -1;
	int r = open_parent(p, i->tenant, true, &parent, err);
	if (r < 0)
		return r;
	if (mkdirat(parent, i->id, 0700) < 0) {
		if (errno != EEXIST)
			return err_sys(err, errno, "making the directory of session '%s'", i->id);
		/* Made anew, so that it is certainly empty and its birth is now. */
		if (unlinkat(parent, i->id, AT_REMOVEDIR) < 0 || mkdirat(parent, i->id, 0700) < 0)
			return in_the_way(i, err);
	}
	int fd = fs_open(parent, i->id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (fd < 0)
		return err_sys(err, errno, "opening the directory of session '%s'", i->id);
	*ret_fd = fd;
	return 0;
}

void place_unmake(const struct places *p, const struct session_info *i)
{
	_cleanup_close_ int parent = -1;
	struct err ignored;
	if (open_parent(p, i->tenant, false, &parent, &ignored) == 0)
		(void)unlinkat(parent, i->id, AT_REMOVEDIR);
}

static int replaced(const struct session_row *row, struct err *err)
{
	(void)err_set(err, ERR_CONFLICT,
		"the directory of session '%s' is not the one that was made for it", row->info.id);
	return err_hint(
		err, "if it was restored from a back-up: cloister session adopt %s", row->info.id);
}

static int check_identity(const struct session_row *row, int fd, struct err *err)
{
	struct dir_identity now;
	struct stat st;
	int r = dir_identify(fd, &now, err);
	if (r < 0)
		return r;
	/* A look that fails says nothing of whose it is. */
	if (fstat(fd, &st) < 0)
		return err_sys(
			err, errno, "looking at the directory of session '%s'", row->info.id);
	if (row->info.kind == SESSION_MANAGED && st.st_uid != geteuid())
		return err_set(err, ERR_CONFLICT, "the directory of session '%s' is another user's",
			row->info.id);
	/* A device number may be another after a reboot; who was born when stays. */
	if (now.ino != row->dir.ino || now.btime_ns != row->dir.btime_ns)
		return replaced(row, err);
	return 0;
}

/* 1: open; 0: nothing is there. Whose it is has not been looked at. */
static int open_directory(
	const struct places *p, const struct session_row *row, int *ret_fd, struct err *err)
{
	_cleanup_close_ int parent = -1;
	int r = open_parent(p, row->info.tenant, false, &parent, err);
	if (r < 0)
		return r == -ERR_NOT_FOUND ? 0 : r;
	int fd = fs_open(parent, row->info.id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0 && (errno == ELOOP || errno == ENOTDIR || errno == EXDEV))
		return err_set(err, ERR_CONFLICT,
			"the directory of session '%s' is a link, a file or a mount", row->info.id);
	if (fd < 0)
		return err_sys(err, errno, "opening the directory of session '%s'", row->info.id);
	*ret_fd = fd;
	return 1;
}

int place_open(const struct places *p, const struct session_row *row, int *ret_fd, struct err *err)
{
	_cleanup_close_ int fd = -1;
	int r = open_directory(p, row, &fd, err);
	if (r <= 0)
		return r;
	if ((r = check_identity(row, fd, err)) < 0)
		return r;
	*ret_fd = take_fd(fd);
	return 1;
}

int place_adopt(const struct places *p, const struct session_row *row, struct dir_identity *ret,
	struct err *err)
{
	_cleanup_close_ int fd = -1;
	struct stat st;
	int r = open_directory(p, row, &fd, err);
	if (r == 0)
		return err_set(err, ERR_NOT_FOUND,
			"there is no directory at the place of session '%s'", row->info.id);
	if (r < 0)
		return r;
	if (fstat(fd, &st) < 0 || st.st_uid != geteuid() || (st.st_mode & 022))
		return err_set(err, ERR_CONFLICT,
			"the directory of session '%s' is not this user's alone", row->info.id);
	return dir_identify(fd, ret, err);
}

int place_reattach(const struct session_row *row, int *ret_fd, struct err *err)
{
	_cleanup_close_ int fd = open(row->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return 0;
	if (fd < 0)
		return err_sys(err, errno, "opening the directory of session '%s'", row->info.id);
	int r = check_identity(row, fd, err);
	if (r < 0)
		return r;
	*ret_fd = take_fd(fd);
	return 1;
}

int place_store(const struct places *p, const struct session_row *row, int *ret_fd, struct err *err)
{
	if (row->store_inside) {
		*ret_fd = -1;
		return 0;
	}
	return state_subdir(p->store_fd, row->info.incarnation, ret_fd, err);
}

/* --- the trash ------------------------------------------------------------------------------ */

static int bury_store(const struct places *p, const struct session_row *row, struct err *err)
{
	const char *name = row->info.incarnation;
	if (row->store_inside)
		return 0; /* goes with the workspace, or stays in a person's own directory */
	if (fs_rename_new(p->store_fd, name, p->state_trash_fd, name) < 0 && errno != ENOENT &&
		errno != EEXIST)
		return err_sys(err, errno, "deleting the store of session '%s'", row->info.id);
	return 0;
}

static int bury_directory(const struct places *p, const struct session_row *row, struct err *err)
{
	_cleanup_close_ int fd = -1, parent = -1;
	if (row->info.kind == SESSION_ATTACHED)
		return 0;
	int r = place_open(p, row, &fd, err);
	if (r == 1) {
		r = open_parent(p, row->info.tenant, false, &parent, err);
		if (r == 0 && fs_rename_new(parent, row->info.id, p->base_trash_fd,
				      row->info.incarnation) < 0)
			return err_sys(
				err, errno, "deleting the directory of session '%s'", row->info.id);
	}
	/* What is there is not ours to delete. Whoever creates the id again is told. */
	return r == -ERR_CONFLICT ? 0 : MIN(r, 0);
}

static void lease_trash_name(const struct session_row *row, char ret[INCARNATION_LEN + 8])
{
	(void)snprintf(ret, INCARNATION_LEN + 8, "%s.lease", row->info.incarnation);
}

static void mark_dead(int dir_fd, const char *name, bool dead)
{
	struct lease lease = LEASE_NONE;
	if (lease_peek(dir_fd, name, &lease))
		lease_mark(&lease, dead);
	lease_done(&lease);
}

/* In place of what an interrupted deletion has left there. Told once more afterwards: a process may
 * have made the lease since we looked. */
static int bury_lease(const struct places *p, const struct session_row *row, struct err *err)
{
	char name[INCARNATION_LEN + 8];
	lease_trash_name(row, name);
	if (renameat(p->lease_fd, row->info.incarnation, p->state_trash_fd, name) < 0 &&
		errno != ENOENT)
		return err_sys(err, errno, "deleting the lease of session '%s'", row->info.id);
	mark_dead(p->state_trash_fd, name, true);
	return 0;
}

/*
 * The order matters. A process that opens the session maps its lease first and then looks for its
 * directory; here the directory goes first and the lease last. So it either misses the directory,
 * or is told by the lease.
 */
int place_bury(const struct places *p, const struct session_row *row, struct err *err)
{
	mark_dead(p->lease_fd, row->info.incarnation, true);
	if (row->info.kind == SESSION_ATTACHED)
		known_forget(p->state_fd, &row->dir);
	CRASH_POINT(BURY_MARKED);
	int r = bury_directory(p, row, err);
	CRASH_POINT(BURY_DIRECTORY);
	if (r == 0)
		r = bury_store(p, row, err);
	CRASH_POINT(BURY_STORE);
	if (r == 0)
		r = bury_lease(p, row, err);
	if (r < 0) {
		place_exhume(p, row);
		return r;
	}
	CRASH_POINT(BURY_LEASE);
	return 0;
}

void place_exhume_lease(const struct places *p, const struct session_row *row)
{
	char lease[INCARNATION_LEN + 8];
	lease_trash_name(row, lease);
	if (fs_rename_new(p->state_trash_fd, lease, p->lease_fd, row->info.incarnation) < 0 &&
		errno == EEXIST)
		(void)unlinkat(p->state_trash_fd, lease, 0);
}

void place_exhume(const struct places *p, const struct session_row *row)
{
	_cleanup_close_ int parent = -1;
	struct err ignored;
	const char *name = row->info.incarnation;
	place_exhume_lease(p, row);
	(void)fs_rename_new(p->state_trash_fd, name, p->store_fd, name);
	if (row->info.kind == SESSION_MANAGED &&
		open_parent(p, row->info.tenant, false, &parent, &ignored) == 0)
		(void)fs_rename_new(p->base_trash_fd, name, parent, row->info.id);
	place_revive(p, row);
}

void place_revive(const struct places *p, const struct session_row *row)
{
	mark_dead(p->lease_fd, row->info.incarnation, false);
}

static const char announcement[] = ".new";

static void announcement_name(const char *incarnation, char ret[INCARNATION_LEN + 8])
{
	(void)snprintf(
		ret, INCARNATION_LEN + 8, "%.*s%s", INCARNATION_LEN, incarnation, announcement);
}

int place_announce(const struct places *p, const char *incarnation, struct err *err)
{
	char name[INCARNATION_LEN + 8];
	announcement_name(incarnation, name);
	int fd = fs_open(p->state_trash_fd, name, O_WRONLY | O_CREAT | O_NOFOLLOW, 0600);
	if (fd < 0)
		return err_sys(err, errno, "announcing the lease of a session");
	(void)close(fd);
	return 0;
}

/* The lease first: what is announced can still be found. */
void place_announced(const struct places *p, const char *incarnation, bool keep_lease)
{
	char name[INCARNATION_LEN + 8];
	announcement_name(incarnation, name);
	if (!keep_lease)
		(void)unlinkat(p->lease_fd, incarnation, 0);
	(void)unlinkat(p->state_trash_fd, name, 0);
}

bool place_is_announcement(const char *trash_name)
{
	size_t n = strlen(trash_name);
	return n == INCARNATION_LEN + sizeof(announcement) - 1 &&
	       strcmp(trash_name + INCARNATION_LEN, announcement) == 0;
}

bool place_buried(const struct places *p, const struct session_row *row)
{
	struct stat st;
	const char *name = row->info.incarnation;
	return fs_lstat(p->base_trash_fd, name, &st) == 0 ||
	       fs_lstat(p->state_trash_fd, name, &st) == 0;
}
