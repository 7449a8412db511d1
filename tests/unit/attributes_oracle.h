/*
 * What the kernel gives to a file or directory, beside what the engine gave: the same object is
 * made by hand in the same directory, and mode, group and lists have to be equal.
 */
#ifndef CLOISTER_TESTS_ATTRIBUTES_ORACLE_H
#define CLOISTER_TESTS_ATTRIBUTES_ORACLE_H

#include "workspace_fixture.h"

#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <sys/xattr.h>

struct acl {
	struct posix_acl_xattr_header head;
	struct posix_acl_xattr_entry entries[8];
	size_t n;
};

static _unused_ void acl_add(struct acl *a, unsigned tag, unsigned perm, unsigned id)
{
	a->head.a_version = POSIX_ACL_XATTR_VERSION;
	a->entries[a->n++] = (struct posix_acl_xattr_entry){
		.e_tag = (uint16_t)tag, .e_perm = (uint16_t)perm, .e_id = id};
}

static _unused_ size_t acl_size(const struct acl *a)
{
	return sizeof(a->head) + a->n * sizeof(a->entries[0]);
}

/* user::rwx user:4321:rwx group::GROUP group:1234:rwx mask::rwx other::--- */
static _unused_ struct acl acl_of_a_team(unsigned group)
{
	struct acl a = {.n = 0};
	acl_add(&a, ACL_USER_OBJ, 7, ACL_UNDEFINED_ID);
	acl_add(&a, ACL_USER, 7, 4321);
	acl_add(&a, ACL_GROUP_OBJ, group, ACL_UNDEFINED_ID);
	acl_add(&a, ACL_GROUP, 7, 1234);
	acl_add(&a, ACL_MASK, 7, ACL_UNDEFINED_ID);
	acl_add(&a, ACL_OTHER, 0, ACL_UNDEFINED_ID);
	return a;
}

static _unused_ struct acl acl_like_a_mode(unsigned mode)
{
	struct acl a = {.n = 0};
	acl_add(&a, ACL_USER_OBJ, mode >> 6 & 7, ACL_UNDEFINED_ID);
	acl_add(&a, ACL_GROUP_OBJ, mode >> 3 & 7, ACL_UNDEFINED_ID);
	acl_add(&a, ACL_OTHER, mode & 7, ACL_UNDEFINED_ID);
	return a;
}

/* A directory behind the engine's back with a default ACL. */
static _unused_ void acl_set(struct fixture *f, const char *dir, const char *name, struct acl a)
{
	int fd = openat(f->fd, dir, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	if (fsetxattr(fd, name, &a, acl_size(&a), 0) < 0)
		fail_msg("%s of %s: %s", name, dir, strerror(errno));
	close(fd);
}

static _unused_ void default_acl(struct fixture *f, const char *dir, struct acl a)
{
	acl_set(f, dir, "system.posix_acl_default", a);
}

/* Everything that matters as one line of text. */
static _unused_ const char *attributes_text(struct fixture *f, const char *path)
{
	static char out[4][4096];
	static unsigned turn;
	static const char *const names[] = {
		"system.posix_acl_access", "system.posix_acl_default", "user.test"};
	char *to = out[turn++ % 4];
	uint8_t value[1024];
	struct stat st = fx_host_stat(f, path);
	int at = snprintf(to, 4096, "%o %u:%u", (unsigned)st.st_mode & 07777, st.st_uid, st.st_gid);
	int fd = openat(f->fd, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	for (size_t i = 0; i < ARRAY_LEN(names) && fd >= 0; i++) {
		ssize_t n = fgetxattr(fd, names[i], value, sizeof(value));
		at += snprintf(to + at, 4096 - (size_t)at, " %zd:", n);
		for (ssize_t k = 0; k < n; k++)
			at += snprintf(to + at, 4096 - (size_t)at, "%02x", value[k]);
	}
	if (fd >= 0)
		close(fd);
	return to;
}

static _unused_ void expect_same(struct fixture *f, const char *path, const char *as)
{
	const char *a = attributes_text(f, path), *b = attributes_text(f, as);
	if (strcmp(a, b) != 0)
		fail_msg("%s has %s, %s has %s", path, a, as, b);
}

/* By hand, as a program would: open(2) and mkdir(2) with everything that a umask may take. */
static _unused_ void by_hand(struct fixture *f, const char *path, mode_t mode, bool dir)
{
	mode_t old = umask(022);
	if (dir)
		assert_int_equal(mkdirat(f->fd, path, mode), 0);
	else
		close(openat(f->fd, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
	umask(old);
	assert_true(fx_host_exists(f, path));
}

/* Does the file system of the tests know ACLs? */
static _unused_ bool acls_work(struct fixture *f)
{
	struct acl a = acl_of_a_team(7);
	return fsetxattr(f->fd, "system.posix_acl_default", &a, acl_size(&a), 0) == 0 &&
	       fremovexattr(f->fd, "system.posix_acl_default") == 0;
}

#endif
