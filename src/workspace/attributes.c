/* Owner, mode, lists and times: see attributes.h. */
#include "workspace/attributes.h"

#include "sys/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

static const char acl_access[] = "system.posix_acl_access";
static const char acl_default[] = "system.posix_acl_default";

/* --- copying ---------------------------------------------------------------------------------- */

/* False when it cannot be kept. */
static bool copy_xattr(int from, int to, const char *name, char *room)
{
	ssize_t n = fgetxattr(from, name, room, ATTRIBUTES_VALUE_MAX);
	if (n < 0)
		return errno == ENODATA;
	return fsetxattr(to, name, room, (size_t)n, 0) == 0;
}

static bool copy_xattrs(int from, int to)
{
	char names[ATTRIBUTES_NAMES_MAX];
	ssize_t n = flistxattr(from, names, sizeof(names));
	if (n <= 0)
		return n == 0 || errno == EOPNOTSUPP;
	bool all = true;
	_cleanup_free_ char *room = malloc(ATTRIBUTES_VALUE_MAX);
	for (ssize_t i = 0; i < n && room; i += (ssize_t)strlen(names + i) + 1)
		all &= copy_xattr(from, to, names + i, room);
	return room && all;
}

bool attributes_copy(int from, const struct stat *st, int to, mode_t mode)
{
	struct stat now;
	if (fstat(to, &now) < 0)
		return false;
	bool owner = (now.st_uid == st->st_uid && now.st_gid == st->st_gid) ||
		     fchown(to, st->st_uid, st->st_gid) == 0;
	bool lists = copy_xattrs(from, to);
	return fchmod(to, mode) == 0 && owner && lists;
}

/* Take away what only `to` has, as what it has inherited. */
static bool drop_others(int from, int to)
{
	char names[ATTRIBUTES_NAMES_MAX];
	bool all = true;
	ssize_t n = flistxattr(to, names, sizeof(names));
	if (n < 0)
		return errno == EOPNOTSUPP;
	for (ssize_t i = 0; i < n; i += (ssize_t)strlen(names + i) + 1)
		/* What the kernel labels by itself is not ours to take. */
		if (fgetxattr(from, names + i, NULL, 0) < 0 && errno == ENODATA &&
			strncmp(names + i, "security.", 9) != 0)
			all &= fremovexattr(to, names + i) == 0;
	return all;
}

bool attributes_restore(int dir, const char *path, int to, mode_t mode)
{
	struct stat st;
	_cleanup_close_ int from = fs_open(dir, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	if (from < 0 || fstat(from, &st) < 0) {
		(void)fchmod(to, mode);
		return false;
	}
	mode |= S_ISDIR(st.st_mode) ? st.st_mode & (S_ISGID | S_ISVTX) : 0;
	const struct timespec times[2] = {st.st_atim, st.st_mtim};
	bool others = drop_others(from, to);
	bool copied = attributes_copy(from, &st, to, mode);
	return futimens(to, times) == 0 && others && copied;
}

/* --- inheriting ------------------------------------------------------------------------------- */

mode_t attributes_before_umask(mode_t mode)
{
	return mode | (mode & 0200 ? 0022 : 0);
}

/* The list of a directory that may be open by O_PATH only. -1 and errno. */
static ssize_t get_default(int dir, void *acl, size_t n)
{
	char path[32];
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", dir);
	return getxattr(path, acl_default, acl, n);
}

bool attributes_has_default(int dir)
{
	return get_default(dir, NULL, 0) > 0;
}

static uint16_t le16_at(const uint8_t *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

bool attributes_mask_acl(void *acl, size_t n, mode_t mode)
{
	enum { HEAD = sizeof(struct posix_acl_xattr_header) };
	enum { ENTRY = sizeof(struct posix_acl_xattr_entry) };
	uint8_t *p = acl, *group = NULL, *mask = NULL;
	static const uint8_t version[HEAD] = {POSIX_ACL_XATTR_VERSION};
	if (n < HEAD || (n - HEAD) % ENTRY != 0 || memcmp(p, version, HEAD) != 0)
		return false;
	for (uint8_t *e = p + HEAD; e < p + n; e += ENTRY) {
		uint16_t tag = le16_at(e);
		if (tag == ACL_USER_OBJ)
			e[2] &= (uint8_t)(mode >> 6 & 7);
		else if (tag == ACL_OTHER)
			e[2] &= (uint8_t)(mode & 7);
		else if (tag == ACL_GROUP_OBJ)
			group = e + 2;
		else if (tag == ACL_MASK)
			mask = e + 2;
	}
	if (!group)
		return false;
	*(mask ? mask : group) &= (uint8_t)(mode >> 3 & 7);
	return true;
}

/* 0, or -1 and errno; 1 when the group is not ours to give. */
static int inherit_group(int dir, int fd)
{
	struct stat d, f;
	if (fstat(dir, &d) < 0)
		return -1;
	if (!(d.st_mode & S_ISGID))
		return 0;
	if (fstat(fd, &f) < 0)
		return -1;
	if (f.st_gid == d.st_gid || fchown(fd, (uid_t)-1, d.st_gid) == 0)
		return 0;
	return errno == EPERM ? 1 : -1;
}

static int inherit_acl(int dir, int fd, mode_t mode)
{
	uint8_t first[1024]; /* 127 entries: hardly ever more */
	_cleanup_free_ uint8_t *more = NULL;
	uint8_t *acl = first;
	ssize_t n = get_default(dir, first, sizeof(first));
	if (n < 0 && errno == ERANGE && (more = malloc(ATTRIBUTES_VALUE_MAX)))
		n = get_default(dir, acl = more, ATTRIBUTES_VALUE_MAX);
	if (n < 0)
		return errno == ENODATA || errno == EOPNOTSUPP ? 0 : -1;
	if (!attributes_mask_acl(acl, (size_t)n, mode))
		return 1;
	/* Where the list says no more than a mode, the kernel makes it one. */
	if (fsetxattr(fd, acl_access, acl, (size_t)n, 0) == 0)
		return 0;
	return errno == EPERM ? 1 : -1;
}

int attributes_inherit(int dir, int fd, mode_t acl_mode)
{
	int group = inherit_group(dir, fd);
	int acl = group < 0 ? 0 : inherit_acl(dir, fd, acl_mode);
	return group < 0 || acl < 0 ? -1 : group | acl;
}

void attributes_strip(int dir)
{
	/* What was never there is no failure, and what stays is put right when something is
	 * published. */
	(void)fremovexattr(dir, acl_default);
	(void)fremovexattr(dir, acl_access);
	(void)fchmod(dir, 0700);
}
