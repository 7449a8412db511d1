/* File calls that fail when told to: see fail_io.h. With 64-bit offsets the C library's symbols end
 * in 64, which is what the wrappers define and what they look for. */
#include "fail_io.h"

#include "base/attr.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>

static unsigned long calls, fail_at;
static int fail_errno;
static const char *failed;

static bool fails(const char *name)
{
	if (!fail_at || ++calls != fail_at)
		return false;
	failed = name;
	errno = fail_errno;
	return true;
}

void fail_io_arm(unsigned long n, int errnum)
{
	calls = 0;
	fail_at = n;
	fail_errno = errnum;
	failed = NULL;
}

bool fail_io_disarm(const char **ret_name)
{
	fail_at = 0;
	*ret_name = failed;
	return failed != NULL;
}

/* The real function of this name; the test cannot go on without it. */
static void *real(const char *name)
{
	void *p = dlsym(RTLD_NEXT, name);
	BUG_ON(!p);
	return p;
}

#define WRAP(type, name, symbol, params, args)                                                     \
	_public_ type name params;                                                                 \
	_public_ type name params                                                                  \
	{                                                                                          \
		static type(*next) params;                                                         \
		if (!next)                                                                         \
			next = (type(*) params)real(symbol);                                       \
		return fails(#name) ? (type)-1 : next args;                                        \
	}

WRAP(ssize_t, pwrite, "pwrite64", (int fd, const void *p, size_t n, off_t off), (fd, p, n, off))
WRAP(ssize_t, pread, "pread64", (int fd, void *p, size_t n, off_t off), (fd, p, n, off))
WRAP(int, fsync, "fsync", (int fd), (fd))
WRAP(int, fdatasync, "fdatasync", (int fd), (fd))
WRAP(int, syncfs, "syncfs", (int fd), (fd))
WRAP(int, renameat, "renameat", (int a, const char *p, int b, const char *q), (a, p, b, q))
WRAP(int, renameat2, "renameat2", (int a, const char *p, int b, const char *q, unsigned flags),
	(a, p, b, q, flags))
WRAP(int, linkat, "linkat", (int a, const char *p, int b, const char *q, int flags),
	(a, p, b, q, flags))
WRAP(int, unlinkat, "unlinkat", (int dir, const char *p, int flags), (dir, p, flags))
WRAP(int, mkdirat, "mkdirat", (int dir, const char *p, mode_t mode), (dir, p, mode))
WRAP(int, symlinkat, "symlinkat", (const char *text, int dir, const char *p), (text, dir, p))
WRAP(int, fchmod, "fchmod", (int fd, mode_t mode), (fd, mode))
WRAP(int, fchown, "fchown", (int fd, uid_t u, gid_t g), (fd, u, g))
WRAP(int, ftruncate, "ftruncate64", (int fd, off_t n), (fd, n))
WRAP(int, fallocate, "fallocate64", (int fd, int mode, off_t off, off_t n), (fd, mode, off, n))
WRAP(ssize_t, copy_file_range, "copy_file_range",
	(int a, off_t *a_off, int b, off_t *b_off, size_t n, unsigned flags),
	(a, a_off, b, b_off, n, flags))
WRAP(int, fstat, "fstat64", (int fd, struct stat *st), (fd, st))
WRAP(int, fstatat, "fstatat64", (int dir, const char *p, struct stat *st, int flags),
	(dir, p, st, flags))
WRAP(ssize_t, readlinkat, "readlinkat", (int dir, const char *p, char *to, size_t n),
	(dir, p, to, n))
WRAP(void *, mmap, "mmap64", (void *p, size_t n, int prot, int flags, int fd, off_t off),
	(p, n, prot, flags, fd, off))

/* open(2) and openat(2) take a mode only where they may make a file; passing it on is harmless. */
#define WRAP_OPEN(name, symbol, params, args)                                                      \
	_public_ int name params;                                                                  \
	_public_ int name params                                                                   \
	{                                                                                          \
		static int(*next) params;                                                          \
		va_list ap;                                                                        \
		va_start(ap, flags);                                                               \
		mode_t mode = va_arg(ap, mode_t);                                                  \
		va_end(ap);                                                                        \
		if (!next)                                                                         \
			next = (int(*) params)real(symbol);                                        \
		return fails(#name) ? -1 : next args;                                              \
	}

WRAP_OPEN(open, "open64", (const char *p, int flags, ...), (p, flags, mode))
WRAP_OPEN(openat, "openat64", (int dir, const char *p, int flags, ...), (dir, p, flags, mode))

_public_ long syscall(long number, ...);
_public_ long syscall(long number, ...)
{
	static long (*next)(long, ...);
	long v[6];
	va_list ap;
	va_start(ap, number);
	for (int i = 0; i < 6; i++)
		v[i] = va_arg(ap, long);
	va_end(ap);
	if (!next)
		next = (long (*)(long, ...))real("syscall");
	if (number == SYS_openat2 && fails("openat2"))
		return -1;
	return next(number, v[0], v[1], v[2], v[3], v[4], v[5]);
}
