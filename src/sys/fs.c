/* File system calls: see fs.h. */
#include "sys/fs.h"

#include "base/attr.h"
#include "sys/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>

int fs_open(int dir, const char *path, int flags, mode_t mode)
{
	struct open_how how = {
		.flags = (uint64_t)(flags | O_CLOEXEC),
		.mode = mode,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS |
			   RESOLVE_NO_XDEV,
	};
	long fd;
	do
		fd = syscall(SYS_openat2, dir, *path ? path : ".", &how, sizeof(how));
	while (fd < 0 && (errno == EINTR || errno == EAGAIN));
	return (int)fd;
}

int fs_look(int dir, const char *path)
{
	return fs_open(dir, path, O_PATH | O_NOFOLLOW, 0);
}

int fs_lstat(int dir, const char *name, struct stat *ret)
{
	return fstatat(dir, name, ret, AT_SYMLINK_NOFOLLOW);
}

int fs_rename_new(int from_dir, const char *from, int to_dir, const char *to)
{
	return renameat2(from_dir, from, to_dir, to, RENAME_NOREPLACE);
}

int fs_rename_swap(int a_dir, const char *a, int b_dir, const char *b)
{
	return renameat2(a_dir, a, b_dir, b, RENAME_EXCHANGE);
}

int fs_tmpfile(int dir)
{
	int fd;
	do
		fd = openat(dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	while (fd < 0 && errno == EINTR);
	if (fd < 0 && (errno == EISDIR || errno == ENOENT || errno == EINVAL))
		errno = EOPNOTSUPP; /* what kernels and file systems without it say */
	return fd;
}

int fs_link(int fd, int dir, const char *name)
{
	char path[32];
	if (linkat(fd, "", dir, name, AT_EMPTY_PATH) == 0)
		return 0;
	if (errno != ENOENT) /* ENOENT: neither the capability nor a kernel that does without */
		return -1;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return linkat(AT_FDCWD, path, dir, name, AT_SYMLINK_FOLLOW);
}

int fs_chmod(int path_fd, mode_t mode)
{
	char path[32];
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", path_fd);
	return fchmodat(AT_FDCWD, path, mode, 0); /* chmod(2) is not among the core's calls */
}

ssize_t fs_read(int fd, void *p, size_t n, off_t off)
{
	size_t done = 0;
	while (done < n) {
		ssize_t r = pread(fd, (char *)p + done, n - done, off + (off_t)done);
		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -1;
		if (r == 0)
			break;
		done += (size_t)r;
	}
	return (ssize_t)done;
}

int fs_write(int fd, const void *p, size_t n, off_t off)
{
	size_t done = 0;
	while (done < n) {
		ssize_t r = pwrite(fd, (const char *)p + done, n - done, off + (off_t)done);
		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -1;
		done += (size_t)r;
	}
	return 0;
}

enum { COPY_CHUNK = 64 * 1024 };

static int64_t copy_by_hand(int from, off_t from_off, int to, off_t to_off, int64_t len)
{
	int64_t done = 0;
	_cleanup_free_ char *chunk = malloc(COPY_CHUNK);
	if (!chunk) {
		errno = ENOMEM;
		return -1;
	}
	while (len < 0 || done < len) {
		size_t want = len < 0 ? COPY_CHUNK : (size_t)MIN(len - done, (int64_t)COPY_CHUNK);
		ssize_t n = fs_read(from, chunk, want, from_off + done);
		if (n < 0 || fs_write(to, chunk, (size_t)n, to_off + done) < 0)
			return -1;
		done += n;
		if (n < (ssize_t)want)
			break;
	}
	return done;
}

int64_t fs_copy(int from, off_t from_off, int to, off_t to_off, int64_t len)
{
	int64_t done = 0;
	while (len < 0 || done < len) {
		off64_t in = from_off + done, out = to_off + done;
		size_t want = len < 0 ? (size_t)1 << 30 : (size_t)(len - done);
		ssize_t n = copy_file_range(from, &in, to, &out, want, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && done == 0 &&
			(errno == EXDEV || errno == EINVAL || errno == EOPNOTSUPP ||
				errno == ENOSYS || errno == EBADF))
			return copy_by_hand(from, from_off, to, to_off, len);
		if (n < 0)
			return -1;
		if (n == 0)
			break;
		done += n;
	}
	return done;
}

static void random_name(const char *prefix, char name[FS_TEMP_NAME])
{
	uint64_t r = 0;
	if (getrandom(&r, sizeof(r), 0) != (ssize_t)sizeof(r))
		r = (uint64_t)clock_mono_ns(); /* O_EXCL keeps a guessable name safe, too */
	(void)snprintf(name, FS_TEMP_NAME, "%.8s%016llx", prefix, (unsigned long long)r);
}

int fs_temp(int dir, const char *prefix, char name[FS_TEMP_NAME])
{
	for (int tries = 0; tries < 16; tries++) {
		random_name(prefix, name);
		int fd =
			openat(dir, name, O_CREAT | O_EXCL | O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (fd >= 0 || (errno != EEXIST && errno != EINTR))
			return fd;
	}
	return -1;
}

int fs_lock(int fd, off_t byte, short type)
{
	struct flock l = {.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
	int r;
	do
		r = fcntl(fd, F_OFD_SETLK, &l);
	while (r < 0 && errno == EINTR);
	if (r < 0 && errno == EACCES)
		errno = EAGAIN;
	return r;
}

int fs_lock_wait(int fd, off_t byte, short type, unsigned wait_ms)
{
	int64_t end = clock_mono_ns() + (int64_t)wait_ms * 1000000;
	long pause_ns = 20000;
	/* F_OFD_SETLKW has no time limit of its own, so this polls: soon at first, since most
	 * holders are done within 100 us, then less and less often. */
	while (fs_lock(fd, byte, type) < 0) {
		if (errno != EAGAIN || clock_mono_ns() >= end)
			return -1;
		(void)nanosleep(&(struct timespec){.tv_nsec = pause_ns}, NULL);
		pause_ns = MIN(pause_ns * 3 / 2, 1000000L);
		errno = EAGAIN;
	}
	return 0;
}
