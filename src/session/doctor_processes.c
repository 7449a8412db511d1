/* The doctor's probes of what fences and limits processes. What changes a process happens in a
 * child. */
#include "session/doctor_impl.h"

#include "base/text.h"
#include "sys/fs.h"
#include "sys/landlock.h"
#include "sys/seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/mount.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#ifndef AT_RECURSIVE
#	define AT_RECURSIVE 0x8000
#endif

/* glibc's <sys/mount.h> and <linux/mount.h> do not go together in Debian 12. */
int mount(const char *source, const char *target, const char *type, unsigned long flags,
	const void *data);
enum { PRIVATE_TREE = 1 << 18 | 1 << 14 }; /* MS_PRIVATE | MS_REC */

void probe_kernel(struct doctor *d, struct doctor_check *c)
{
	struct utsname u;
	unsigned major = 0, minor = 0;
	(void)d;
	if (uname(&u) < 0 || sscanf(u.release, "%u.%u", &major, &minor) != 2)
		doctor_not(c, errno, "the kernel does not tell its version");
	else if (major < 6 || (major == 6 && minor < 1))
		doctor_not(c, 0, "Linux %.60s is older than 6.1", u.release);
	else
		doctor_ok(c, "Linux %.60s on %.30s", u.release, u.machine);
}

void probe_memfd(struct doctor *d, struct doctor_check *c)
{
	_cleanup_close_ int fd = memfd_create("doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	(void)d;
	if (fd < 0 || fs_write(fd, "x", 1, 0) < 0 ||
		fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW) < 0)
		doctor_not(c, errno, "memory cannot be sealed");
	else if (fs_write(fd, "y", 1, 0) == 0)
		doctor_not(c, 0, "sealed memory can be written");
	else
		doctor_ok(c, "sealed memory cannot be written");
}

void probe_pidfd(struct doctor *d, struct doctor_check *c)
{
	(void)d;
	pid_t pid = fork();
	if (pid == 0) {
		(void)pause();
		_exit(0);
	}
	_cleanup_close_ int fd = pid < 0 ? -1 : (int)syscall(SYS_pidfd_open, pid, 0);
	bool sent = fd >= 0 && syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0) == 0;
	int why = errno;
	struct pollfd p = {.fd = fd, .events = POLLIN};
	if (sent && poll(&p, 1, 1000) == 1)
		doctor_ok(c, "a child was ended by its descriptor");
	else
		doctor_not(c, sent ? ETIME : why, "a child could not be ended by its descriptor");
	if (pid > 0) {
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
	}
}

/* --- Landlock and seccomp ------------------------------------------------------------------- */

/* Allowed to read one directory: writing in it and reading elsewhere have to fail. */
static int fence(void *ctx)
{
	const struct doctor *d = ctx;
	struct landlock_rule rule = {.fd = d->state_scratch, .allow = LANDLOCK_ALLOW_READ};
	struct landlock_plan plan = {.abi = landlock_abi(),
		.handle = LANDLOCK_ALLOW_READ | LANDLOCK_ALLOW_WRITE | LANDLOCK_ALLOW_EXEC,
		.rules = &rule,
		.n_rules = 1};
	struct err err;
	if (landlock_apply(&plan, &err) < 0)
		return err.sys ? err.sys : ENOSYS;
	if (openat(d->state_scratch, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) < 0)
		return EINVAL;
	if (openat(d->state_scratch, "made", O_CREAT | O_WRONLY | O_CLOEXEC, 0600) >= 0)
		return ENOTRECOVERABLE;
	if (open("/etc/passwd", O_RDONLY | O_CLOEXEC) >= 0)
		return ENOTRECOVERABLE;
	return 0;
}

void probe_landlock(struct doctor *d, struct doctor_check *c)
{
	int abi = landlock_abi();
	if (d->state_scratch < 0) {
		doctor_skip(c, "there is no state directory to try it in");
		return;
	}
	if (abi < LANDLOCK_ABI_NEEDED) {
		doctor_not(c, 0,
			abi == 0 ? "the kernel has none, or it is switched off"
				 : "the kernel has ABI 1, and 2 is needed");
		return;
	}
	int e = doctor_in_child(fence, d);
	if (e == 0)
		doctor_ok(
			c, "ABI %d; a fenced child could read one directory and nothing else", abi);
	else
		doctor_not(c, e, "ABI %d, but a fenced child was not held", abi);
}

static int filter(void *ctx)
{
	static const struct seccomp_row rows[] = {
		{.nr = SYS_exit_group, .act = SECCOMP_ALLOW},
		{.nr = SYS_getpid, .act = SECCOMP_ALLOW},
		{.nr = SYS_getuid, .act = SECCOMP_REFUSE},
	};
	struct err err;
	(void)ctx;
	if (seccomp_apply(rows, ARRAY_LEN(rows), &err) < 0)
		return err.sys ? err.sys : ENOSYS;
	if (syscall(SYS_getpid) < 0)
		return EINVAL;
	bool refused = syscall(SYS_getuid) == -1 && errno == EPERM;
	bool unlisted = syscall(SYS_getppid) == -1 && errno == EPERM;
	return refused && unlisted ? 0 : ENOTRECOVERABLE;
}

void probe_seccomp(struct doctor *d, struct doctor_check *c)
{
	int e = doctor_in_child(filter, d);
	if (e == 0)
		doctor_ok(c, "a filtered child was refused what its table refuses");
	else
		doctor_not(c, e, "a filtered child was not held");
}

/* --- namespaces ----------------------------------------------------------------------------- */

static int write_text(const char *path, const char *text)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);
	size_t n = strlen(text);
	return fd >= 0 && write(fd, text, n) == (ssize_t)n ? 0 : -1;
}

/* Become root of a user namespace of our own. */
static int enter_userns(int more)
{
	char uid_map[32], gid_map[32];
	(void)snprintf(uid_map, sizeof(uid_map), "0 %u 1", geteuid());
	(void)snprintf(gid_map, sizeof(gid_map), "0 %u 1", getegid());
	if (unshare(CLONE_NEWUSER | more) < 0 || write_text("/proc/self/setgroups", "deny") < 0 ||
		write_text("/proc/self/uid_map", uid_map) < 0 ||
		write_text("/proc/self/gid_map", gid_map) < 0)
		return errno;
	return geteuid() == 0 ? 0 : EPERM;
}

static int just_enter(void *ctx)
{
	(void)ctx;
	return enter_userns(0);
}

void probe_userns(struct doctor *d, struct doctor_check *c)
{
	int e = doctor_in_child(just_enter, d);
	if (e == 0)
		doctor_ok(c, "a child became root of its own namespace");
	else
		doctor_not(c, e, "a namespace cannot be made");
}

/* Mount an overlay over the scratch directory with its upper layer on a tmpfs, and write in it: the
 * lower layer must not change. The mounts are gone with the child. */
static int overlay(void *ctx)
{
	const struct doctor *d = ctx;
	char link[32], path[PATH_MAX];
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", d->state_scratch);
	ssize_t n = readlink(link, path, sizeof(path) - 1);
	int e = n < 0 ? errno : enter_userns(CLONE_NEWNS);
	if (e != 0)
		return e;
	path[n] = 0;
	/* By its name: a descriptor from before belongs to the mounts of the old namespace. */
	if (mount("", "/", NULL, PRIVATE_TREE, NULL) < 0 || chdir(path) < 0 ||
		mount("tmpfs", "top", "tmpfs", 0, "size=1m,mode=700") < 0 || chdir("top") < 0 ||
		mkdir("upper", 0700) < 0 || mkdir("work", 0700) < 0 || mkdir("merged", 0700) < 0)
		return errno;
	if (mount("overlay", "merged", "overlay", 0,
		    "lowerdir=../lower,upperdir=upper,workdir=work,userxattr") < 0)
		return errno;
	_cleanup_close_ int fd = open("merged/new", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	if (fd < 0)
		return errno;
	return access("upper/new", F_OK) == 0 && access("../lower/new", F_OK) < 0 ? 0
										  : ENOTRECOVERABLE;
}

void probe_overlay(struct doctor *d, struct doctor_check *c)
{
	if (d->state_scratch < 0 || mkdirat(d->state_scratch, "lower", 0700) < 0 ||
		mkdirat(d->state_scratch, "top", 0700) < 0) {
		doctor_skip(c, "there is no state directory to try it in");
		return;
	}
	int e = doctor_in_child(overlay, d);
	if (e == 0)
		doctor_ok(c, "a child wrote into an upper layer; the lower one stayed as it was");
	else
		doctor_not(c, e, "an overlay cannot be mounted in a user namespace");
}

/* A user namespace to map by: a child that waits in one. */
static int userns_of_child(pid_t *ret_pid)
{
	int sync[2];
	char path[48], byte;
	if (pipe2(sync, O_CLOEXEC) < 0)
		return -1;
	*ret_pid = fork();
	if (*ret_pid == 0) {
		int e = enter_userns(0);
		byte = (char)e;
		(void)!write(sync[1], &byte, 1);
		(void)pause();
		_exit(0);
	}
	(void)close(sync[1]);
	ssize_t n = *ret_pid < 0 ? -1 : read(sync[0], &byte, 1);
	(void)close(sync[0]);
	if (n != 1 || byte != 0) {
		errno = n == 1 ? byte : EPROTO;
		return -1;
	}
	(void)snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)*ret_pid);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static int map_mount(int dir_fd, int userns_fd)
{
	struct mount_attr attr = {.attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (uint64_t)userns_fd};
	/* A detached copy of the mount: nobody ever sees it. */
	_cleanup_close_ int tree = (int)syscall(
		SYS_open_tree, dir_fd, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
	if (tree < 0)
		return errno;
	return syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0 ? errno
											    : 0;
}

void probe_idmap(struct doctor *d, struct doctor_check *c)
{
	pid_t pid = -1;
	if (d->base_scratch < 0) {
		doctor_skip(c, "there is no state directory to try it in");
		return;
	}
	_cleanup_close_ int userns = userns_of_child(&pid);
	int e = userns < 0 ? errno : map_mount(d->base_scratch, userns);
	if (pid > 0) {
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
	}
	if (e == 0)
		doctor_ok(c, "a mount of the base was mapped");
	else
		doctor_not(c, e, "a mount of the base cannot be mapped");
}

/* --- control groups ------------------------------------------------------------------------- */

/* The line of /proc/self/cgroup that starts with `prefix`; its path in `out`. */
static bool own_cgroup(const char *prefix, char *out, size_t cap)
{
	char text[4096];
	_cleanup_close_ int fd = open("/proc/self/cgroup", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return false;
	text[n] = 0;
	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		const char *path = strstr(line, prefix), *end = strchrnul(line, '\n');
		if (path && path < end) {
			path += strlen(prefix);
			(void)snprintf(out, cap, "%.*s", (int)(end - path), path);
			return true;
		}
	}
	return false;
}

/* Make a group below ours and remove it. */
static int try_group(const char *mount_point, const char *group)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s%s/cloister-doctor-%d", mount_point,
		strcmp(group, "/") == 0 ? "" : group, (int)getpid());
	if (n < 0 || n >= (int)sizeof(path))
		return ENAMETOOLONG;
	if (mkdir(path, 0755) < 0)
		return errno;
	return rmdir(path) < 0 ? errno : 0;
}

static bool is_fs(const char *path, long magic)
{
	struct statfs fs;
	return statfs(path, &fs) == 0 && (long)fs.f_type == magic;
}

void probe_own_users(struct doctor *d, struct doctor_check *c)
{
	(void)d;
	if (geteuid() == 0)
		doctor_ok(c,
			"front runs as serve.front_uid, workers as 65534, core as root without "
			"capabilities over other processes");
	else
		doctor_not(c, 0, "an ordinary user has one uid: front, core and workers share %u",
			(unsigned)geteuid());
}

void probe_cgroup2(struct doctor *d, struct doctor_check *c)
{
	static const char *const mounts[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
	char group[512], path[600], controllers[256] = "";
	const char *at = NULL;
	(void)d;
	for (unsigned i = 0; i < ARRAY_LEN(mounts) && !at; i++)
		at = is_fs(mounts[i], CGROUP2_SUPER_MAGIC) ? mounts[i] : NULL;
	if (!at || !own_cgroup("0::", group, sizeof(group))) {
		doctor_not(c, 0, "no cgroup v2 is mounted");
		return;
	}
	(void)snprintf(path, sizeof(path), "%s/cgroup.controllers", at);
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, controllers, sizeof(controllers) - 1);
	controllers[n > 0 ? n : 0] = 0;
	controllers[strcspn(controllers, "\n")] = 0;
	int e = try_group(at, group);
	if (e != 0)
		doctor_not(c, e, "no group can be made below ours");
	else if (!strstr(controllers, "memory") || !strstr(controllers, "pids"))
		doctor_not(c, 0,
			"a group can be made, but memory and pids are not controlled (%.80s)",
			controllers[0] ? controllers : "none");
	else
		doctor_ok(c, "a group was made below ours; controllers %.120s", controllers);
}

void probe_cgroup1(struct doctor *d, struct doctor_check *c)
{
	static const char *const wanted[] = {"memory", "pids"};
	(void)d;
	for (unsigned i = 0; i < ARRAY_LEN(wanted); i++) {
		char group[512], prefix[32], at[64];
		(void)snprintf(prefix, sizeof(prefix), ":%s:", wanted[i]);
		(void)snprintf(at, sizeof(at), "/sys/fs/cgroup/%s", wanted[i]);
		if (!is_fs(at, CGROUP_SUPER_MAGIC) || !own_cgroup(prefix, group, sizeof(group))) {
			doctor_not(c, 0, "the controller %s is not mounted", wanted[i]);
			return;
		}
		int e = try_group(at, group);
		if (e != 0) {
			doctor_not(c, e, "no group of %s can be made below ours", wanted[i]);
			return;
		}
	}
	doctor_ok(c, "groups of memory and pids were made below ours");
}
