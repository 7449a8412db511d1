/* The doctor's probes of files and directories. They use the very functions of sys/fs.h. */
#include "session/doctor_impl.h"

#include "session/places.h"
#include "sys/clock.h"
#include "sys/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>

#define NEEDS_SCRATCH(fd, c)                                                                       \
	do {                                                                                       \
		if ((fd) < 0) {                                                                    \
			doctor_skip(c, "there is no state directory to try it in");                \
			return;                                                                    \
		}                                                                                  \
	} while (0)

static int make_file(int dir, const char *name, const char *content)
{
	int fd = openat(dir, name, O_CREAT | O_EXCL | O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd >= 0 && fs_write(fd, content, strlen(content), 0) < 0) {
		(void)close(fd);
		return -1;
	}
	return fd;
}

void probe_proc(struct doctor *d, struct doctor_check *c)
{
	char where[PATH_MAX];
	_cleanup_close_ int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	char link[32];
	(void)d;
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	ssize_t n = readlink(link, where, sizeof(where));
	if (n == 1 && where[0] == '/')
		doctor_ok(c, "/proc/self/fd names descriptors");
	else
		doctor_not(c, n < 0 ? errno : 0, "/proc/self/fd cannot be used");
}

static void path_of(int fd, char out[PATH_MAX])
{
	char link[32];
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	ssize_t n = readlink(link, out, PATH_MAX - 1);
	out[n < 0 ? 0 : n] = 0;
}

void probe_state(struct doctor *d, struct doctor_check *c)
{
	char path[PATH_MAX];
	struct statvfs fs;
	if (d->state_fd < 0) {
		doctor_not(c, 0, "%.120s; %.60s", d->state_err.text, d->state_err.hint);
		return;
	}
	if (d->state_scratch < 0 || d->base_scratch < 0) {
		doctor_not(c, errno, "nothing can be made in it");
		return;
	}
	path_of(d->state_fd, path);
	if (fstatvfs(d->state_fd, &fs) < 0)
		fs = (struct statvfs){0};
	doctor_ok(c, "%.120s, %llu MiB and %llu inodes free", path,
		(unsigned long long)fs.f_bavail * fs.f_frsize >> 20,
		(unsigned long long)fs.f_favail);
}

void probe_same_mount(struct doctor *d, struct doctor_check *c)
{
	NEEDS_SCRATCH(d->base_scratch, c);
	NEEDS_SCRATCH(d->state_scratch, c);
	char path[PATH_MAX];
	path_of(d->base_fd, path);
	if (mkdirat(d->base_scratch, "moves", 0700) < 0 ||
		fs_rename_new(d->base_scratch, "moves", d->state_scratch, "moved") < 0)
		doctor_not(c, errno, "%.120s is on another mount than the state", path);
	else if (!same_mount(d->base_fd, d->state_fd))
		doctor_not(c, 0, "the kernel does not tell mounts apart (STATX_MNT_ID)");
	else
		doctor_ok(c, "%.120s", path);
}

void probe_openat2(struct doctor *d, struct doctor_check *c)
{
	NEEDS_SCRATCH(d->base_scratch, c);
	_cleanup_close_ int plain = fs_open(d->base_scratch, "", O_RDONLY | O_DIRECTORY, 0);
	if (plain < 0) {
		doctor_not(c, errno, "openat2 is refused");
		return;
	}
	if (symlinkat("/", d->base_scratch, "out") < 0) {
		doctor_not(c, errno, "a link cannot be made");
		return;
	}
	_cleanup_close_ int link = fs_open(d->base_scratch, "out/etc", O_PATH, 0);
	int link_errno = errno;
	_cleanup_close_ int up = fs_open(d->base_scratch, "../..", O_PATH, 0);
	if (link >= 0 || up >= 0 || link_errno != ELOOP || errno != EXDEV)
		doctor_not(c, 0, "paths that lead outside are not refused");
	else
		doctor_ok(c, "links and '..' that lead outside are refused");
}

void probe_tmpfile(struct doctor *d, struct doctor_check *c)
{
	NEEDS_SCRATCH(d->base_scratch, c);
	_cleanup_close_ int fd = fs_tmpfile(d->base_scratch);
	if (fd < 0)
		doctor_not(c, errno, "the file system makes no files without a name");
	else if (fs_link(fd, d->base_scratch, "named") < 0)
		doctor_not(c, errno, "a file without a name cannot be given one");
	else
		doctor_ok(c, "made, and given a name");
}

void probe_exchange(struct doctor *d, struct doctor_check *c)
{
	NEEDS_SCRATCH(d->base_scratch, c);
	_cleanup_close_ int a = make_file(d->base_scratch, "a", "a");
	_cleanup_close_ int b = make_file(d->base_scratch, "b", "b");
	struct stat before, after;
	if (a < 0 || b < 0 || fstat(a, &before) < 0)
		doctor_not(c, errno, "files cannot be made");
	else if (fs_rename_new(d->base_scratch, "a", d->base_scratch, "b") == 0 || errno != EEXIST)
		doctor_not(c, errno, "a rename that must not replace does");
	else if (fs_rename_swap(d->base_scratch, "a", d->base_scratch, "b") < 0)
		doctor_not(c, errno, "two files cannot change places");
	else if (fs_lstat(d->base_scratch, "b", &after) < 0 || before.st_ino != after.st_ino)
		doctor_not(c, 0, "two files did not change places");
	else
		doctor_ok(c, "two files changed places; a taken name was refused");
}

void probe_ofd_locks(struct doctor *d, struct doctor_check *c)
{
	NEEDS_SCRATCH(d->state_scratch, c);
	_cleanup_close_ int a = make_file(d->state_scratch, "lock", "");
	_cleanup_close_ int b = openat(d->state_scratch, "lock", O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (a < 0 || b < 0 || fs_lock(a, 0, F_WRLCK) < 0)
		doctor_not(c, errno, "a lock cannot be had");
	else if (fs_lock(b, 0, F_WRLCK) == 0)
		doctor_not(c, 0, "a lock does not keep others out");
	else
		doctor_ok(c, "a second writer was kept out");
}

void probe_birth_time(struct doctor *d, struct doctor_check *c)
{
	NEEDS_SCRATCH(d->base_scratch, c);
	struct dir_identity id;
	struct err err;
	if (dir_identify(d->base_scratch, &id, &err) < 0 || id.btime_ns == 0)
		doctor_not(c, 0, "the file system does not record when a directory was made");
	else
		doctor_ok(c, "directories have a time of birth");
}

void probe_xattr(struct doctor *d, struct doctor_check *c)
{
	NEEDS_SCRATCH(d->base_scratch, c);
	_cleanup_close_ int fd = make_file(d->base_scratch, "xattr", "");
	char value[4];
	if (fd < 0 || fsetxattr(fd, "user.cloister", "x", 1, 0) < 0 ||
		fgetxattr(fd, "user.cloister", value, sizeof(value)) != 1)
		doctor_not(c, errno, "attributes cannot be kept");
	else
		doctor_ok(c, "user attributes are kept");
}

void probe_reflink(struct doctor *d, struct doctor_check *c)
{
	NEEDS_SCRATCH(d->base_scratch, c);
	_cleanup_close_ int from = make_file(d->base_scratch, "from", "content");
	_cleanup_close_ int to = make_file(d->base_scratch, "to", "");
	if (from < 0 || to < 0 || ioctl(to, FICLONE, from) < 0)
		doctor_not(c, errno, "blocks cannot be shared");
	else
		doctor_ok(c, "two files share their blocks");
}

static int compare_ns(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

void probe_sync_cost(struct doctor *d, struct doctor_check *c)
{
	enum { TIMES = 9 };
	int64_t ns[TIMES];
	NEEDS_SCRATCH(d->state_scratch, c);
	_cleanup_close_ int fd = make_file(d->state_scratch, "sync", "");
	for (unsigned i = 0; i < TIMES; i++) {
		int64_t start = clock_mono_ns();
		if (fd < 0 || fs_write(fd, "0123456789abcdef", 16, (off_t)i * 4096) < 0 ||
			fdatasync(fd) < 0) {
			doctor_not(c, errno, "a file cannot be synced");
			return;
		}
		ns[i] = clock_mono_ns() - start;
	}
	qsort(ns, TIMES, sizeof(ns[0]), compare_ns);
	doctor_ok(c, "%.3f ms for 16 bytes (median of %d; slowest %.3f ms)",
		(double)ns[TIMES / 2] / 1e6, TIMES, (double)ns[TIMES - 1] / 1e6);
}

/* Write through one connection, read through another. */
static int try_wal(sqlite3 *a, sqlite3 *b)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_exec(a, "CREATE TABLE t (x); INSERT INTO t VALUES (42)", NULL, NULL, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_prepare_v2(b, "SELECT x FROM t", -1, &st, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(st);
	bool right = rc == SQLITE_ROW && sqlite3_column_int(st, 0) == 42;
	(void)sqlite3_finalize(st);
	return right ? SQLITE_OK : rc == SQLITE_ROW ? SQLITE_ERROR : rc;
}

static bool is_wal(sqlite3 *db)
{
	sqlite3_stmt *st = NULL;
	bool wal =
		sqlite3_prepare_v2(db, "PRAGMA journal_mode = WAL", -1, &st, NULL) == SQLITE_OK &&
		sqlite3_step(st) == SQLITE_ROW &&
		strcmp((const char *)sqlite3_column_text(st, 0), "wal") == 0;
	(void)sqlite3_finalize(st);
	return wal;
}

void probe_sqlite(struct doctor *d, struct doctor_check *c)
{
	NEEDS_SCRATCH(d->state_scratch, c);
	sqlite3 *a = NULL, *b = NULL;
	char dir[PATH_MAX], path[PATH_MAX + 16];
	path_of(d->state_scratch, dir);
	(void)snprintf(path, sizeof(path), "%s/probe.db", dir);
	int rc = sqlite3_open(path, &a);
	bool wal = rc == SQLITE_OK && is_wal(a);
	if (wal)
		rc = sqlite3_open(path, &b);
	if (wal && rc == SQLITE_OK)
		rc = try_wal(a, b);
	if (wal && rc == SQLITE_OK)
		doctor_ok(c, "SQLite %s writes ahead, a second connection reads",
			sqlite3_libversion());
	else
		doctor_not(c, 0, "SQLite %s: %s", sqlite3_libversion(),
			rc == SQLITE_OK ? "no write-ahead log here" : sqlite3_errstr(rc));
	(void)sqlite3_close(b);
	(void)sqlite3_close(a);
}
