/*
 * File system calls that glibc 2.36 does not wrap, or that need a loop around them.
 *
 * They behave like system calls: -1 and errno on failure; EINTR is retried. Nothing here takes a
 * host path: every name is relative to a descriptor.
 */
#ifndef CLOISTER_SYS_FS_H
#define CLOISTER_SYS_FS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

/*
 * openat2(2) with RESOLVE_BENEATH|NO_SYMLINKS|NO_MAGICLINKS|NO_XDEV and O_CLOEXEC: no link anywhere
 * (ELOOP; O_PATH|O_NOFOLLOW gives a link in the last component itself), nothing outside `dir`
 * (EXDEV), no other file system. "" names `dir`.
 */
int fs_open(int dir, const char *path, int flags, mode_t mode);

/* O_PATH descriptor of whatever is there, without opening it. */
int fs_look(int dir, const char *path);

/* lstat of one component. 0 or -1. */
int fs_lstat(int dir, const char *name, struct stat *ret);

/* renameat2(2): fails with EEXIST when the new name is taken; swaps the two. */
int fs_rename_new(int from_dir, const char *from, int to_dir, const char *to);
int fs_rename_swap(int a_dir, const char *a, int b_dir, const char *b);

/* open(2) O_TMPFILE, read and write, 0600. EOPNOTSUPP where the file system has none. */
int fs_tmpfile(int dir);

/* Give a descriptor's file a name: linkat(2) by AT_EMPTY_PATH, else through /proc/self/fd. */
int fs_link(int fd, int dir, const char *name);

/* chmod of the object of an O_PATH descriptor (never follows a link): fchmodat(2) through
 * /proc/self/fd. */
int fs_chmod(int path_fd, mode_t mode);

/* pread(2) until `n` bytes or the end: the number read. */
ssize_t fs_read(int fd, void *p, size_t n, off_t off);

/* pwrite(2) of all of it: 0 or -1. */
int fs_write(int fd, const void *p, size_t n, off_t off);

/* copy_file_range(2), falling back to read and write; len < 0: to the end of `from`. The number of
 * bytes copied (less than len only at the end of `from`). */
int64_t fs_copy(int from, off_t from_off, int to, off_t to_off, int64_t len);

/* Create a file under a random name: *name gets `prefix` and 16 hex digits. */
enum { FS_TEMP_NAME = 32 };
int fs_temp(int dir, const char *prefix, char name[FS_TEMP_NAME]);

/* Open-file-description locks (fcntl(2) F_OFD_SETLK) on one byte. type: F_RDLCK, F_WRLCK, F_UNLCK.
 * fs_lock_wait() tries for wait_ms; EAGAIN when somebody else still holds it. */
int fs_lock(int fd, off_t byte, short type);
int fs_lock_wait(int fd, off_t byte, short type, unsigned wait_ms);

#endif
