/*
 * The file tree of a command: mount(2), overlayfs, pivot_root(2).
 *
 * One tmpfs of bounded size holds everything that the command can write: the overlay's layers, its
 * /tmp, /dev/shm and home. Only a part of it becomes the root, which is read-only, so the layers
 * themselves have no name that the command can reach. Sources are opened in the new mount
 * namespace, and every target by descriptor below the new root; nothing follows a name that the
 * command could have made, since it has not begun.
 */
#include "sandbox/apply.h"

#include "sys/fs.h"
#include "workspace/workspace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#ifndef AT_RECURSIVE
#	define AT_RECURSIVE 0x8000
#endif

struct build {
	const struct fence_plan *plan;
	int base; /* the tmpfs */
	int root; /* the new root, mounted */
};

static int failed(struct err *err, const char *what)
{
	(void)err_sys(err, errno, "the fence's %s", what);
	err->code = ERR_UNAVAILABLE;
	return err_hint(err, "cloister doctor says what this machine lacks");
}

static int new_tmpfs(const struct fence_limits *l, struct err *err)
{
	char size[32], entries[32];
	_cleanup_close_ int fs = fsopen("tmpfs", FSOPEN_CLOEXEC);
	(void)snprintf(size, sizeof(size), "%lld", (long long)l->scratch_bytes);
	(void)snprintf(entries, sizeof(entries), "%lld", (long long)l->scratch_entries);
	if (fs < 0 || fsconfig(fs, FSCONFIG_SET_STRING, "size", size, 0) < 0 ||
		fsconfig(fs, FSCONFIG_SET_STRING, "nr_inodes", entries, 0) < 0 ||
		fsconfig(fs, FSCONFIG_SET_STRING, "mode", "0755", 0) < 0 ||
		fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return failed(err, "tmpfs cannot be made");
	int mount = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	return mount < 0 ? failed(err, "tmpfs cannot be mounted") : mount;
}

static int attach(int mount, int dir, const char *name)
{
	return move_mount(mount, "", dir, name, MOVE_MOUNT_F_EMPTY_PATH);
}

/* Mount a part of a tree at a name below the new root, with more restrictions than it has. */
static int bind_at(const struct build *b, int from, const char *path, const char *to, uint64_t less,
	bool whole)
{
	unsigned deep = whole ? AT_RECURSIVE : 0;
	_cleanup_close_ int tree =
		open_tree(from, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | deep);
	struct mount_attr attr = {.attr_set = less};
	if (tree < 0 || mount_setattr(tree, "", AT_EMPTY_PATH | deep, &attr, sizeof(attr)) < 0)
		return -1;
	return attach(tree, b->root, to);
}

/* --- the scratch and the root ----------------------------------------------------------------- */

static int attach_scratch(struct build *b, struct err *err)
{
	_cleanup_close_ int fs = new_tmpfs(&b->plan->limits, err);
	if (fs < 0)
		return fs;
	/* Hidden from here on is only what nothing below is read from. */
	const char *at = attach(fs, AT_FDCWD, "/tmp") == 0 ? "/tmp" : NULL;
	if (!at && attach(fs, AT_FDCWD, "/mnt") == 0)
		at = "/mnt";
	if (!at || (b->base = open(at, O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0)
		return failed(err, "tmpfs finds no place");
	static const struct {
		const char *name;
		mode_t mode;
	} dirs[] = {{"root", 0755}, {"upper", 0755}, {"work", 0700}, {"tmp", 01777}, {"shm", 01777},
		{"home", 0755}};
	for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
		if (mkdirat(b->base, dirs[i].name, 0700) < 0 ||
			fchmodat(b->base, dirs[i].name, dirs[i].mode, 0) < 0)
			return failed(err, "directories cannot be made");
	_cleanup_close_ int tree = open_tree(b->base, "root", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (tree < 0 || attach(tree, b->base, "root") < 0 ||
		(b->root = openat(b->base, "root", O_PATH | O_DIRECTORY | O_CLOEXEC)) < 0)
		return failed(err, "root cannot be mounted");
	return 0;
}

/* Directories of the root above and at `path` (absolute). */
static int make_dirs(const struct build *b, const char *path)
{
	char part[256];
	for (const char *p = path + 1;; p++) {
		if (*p && *p != '/')
			continue;
		(void)snprintf(part, sizeof(part), "%.*s", (int)(p - path - 1), path + 1);
		if (mkdirat(b->root, part, 0755) < 0 && errno != EEXIST)
			return -1;
		if (!*p)
			return 0;
	}
}

static int make_file(const struct build *b, const char *path, const char *content)
{
	_cleanup_close_ int fd =
		openat(b->root, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	return fd < 0 ? -1 : fs_write(fd, content, strlen(content), 0);
}

/* --- what is seen of the system --------------------------------------------------------------- */

static int show_link(const struct build *b, const char *path)
{
	char target[256];
	ssize_t n = readlink(path, target, sizeof(target) - 1);
	if (n <= 0)
		return -1;
	target[n] = '\0';
	return symlinkat(target, b->root, path + 1);
}

static int show_tree(const struct build *b, const char *path)
{
	struct stat st;
	char parent[256];
	if (lstat(path, &st) < 0)
		return errno == ENOENT || errno == ENOTDIR ? 0 : -1;
	(void)snprintf(parent, sizeof(parent), "%.*s", (int)(strrchr(path, '/') - path), path);
	if (parent[0] && make_dirs(b, parent) < 0)
		return -1;
	if (S_ISLNK(st.st_mode))
		return show_link(b, path);
	if (S_ISDIR(st.st_mode) ? make_dirs(b, path) < 0 : make_file(b, path + 1, "") < 0)
		return -1;
	return bind_at(b, AT_FDCWD, path, path + 1,
		MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, true);
}

static int show_system(const struct build *b, struct err *err)
{
	for (unsigned i = 0; i < fence_trees_n; i++)
		if (show_tree(b, fence_trees[i].path) < 0)
			return failed(err, "view of the system cannot be mounted");
	return 0;
}

/* Who is who inside: only the command and nobody. */
static int name_people(const struct build *b, struct err *err)
{
	char passwd[256], group[256];
	const struct fence_plan *p = b->plan;
	(void)snprintf(passwd, sizeof(passwd),
		"agent:x:%u:%u:agent:%s:/bin/bash\nnobody:x:65534:65534:nobody:/nonexistent:"
		"/usr/sbin/nologin\n",
		p->inside_uid, p->inside_gid, p->home);
	(void)snprintf(group, sizeof(group), "agent:x:%u:\nnogroup:x:65534:\n", p->inside_gid);
	if (make_dirs(b, "/etc") < 0 || make_file(b, "etc/passwd", passwd) < 0 ||
		make_file(b, "etc/group", group) < 0 ||
		make_file(b, "etc/hosts", "127.0.0.1 localhost\n::1 localhost\n") < 0 ||
		make_file(b, "etc/nsswitch.conf",
			"passwd: files\ngroup: files\nhosts: files\nservices: files\n") < 0)
		return failed(err, "names cannot be written");
	return 0;
}

/* --- devices ---------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	unsigned major, minor;
} devices[] = {{"null", 1, 3}, {"zero", 1, 5}, {"full", 1, 7}, {"random", 1, 8}, {"urandom", 1, 9},
	{"tty", 5, 0}};

/* The node is looked at by descriptor before it is mounted, so it is the device of that number. */
static int show_device(const struct build *b, unsigned i)
{
	struct stat st;
	char path[32], to[32];
	(void)snprintf(path, sizeof(path), "/dev/%s", devices[i].name);
	(void)snprintf(to, sizeof(to), "dev/%s", devices[i].name);
	_cleanup_close_ int tree = open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	struct mount_attr attr = {.attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC};
	if (tree < 0 || fstat(tree, &st) < 0)
		return -1;
	if (!S_ISCHR(st.st_mode) || st.st_rdev != makedev(devices[i].major, devices[i].minor)) {
		errno = ENODEV;
		return -1;
	}
	if (mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0 ||
		make_file(b, to, "") < 0)
		return -1;
	return attach(tree, b->root, to);
}

static int show_devices(const struct build *b, struct err *err)
{
	if (make_dirs(b, "/dev/shm") < 0)
		return failed(err, "/dev cannot be made");
	for (unsigned i = 0; i < ARRAY_LEN(devices); i++)
		if (show_device(b, i) < 0)
			return failed(err, "devices cannot be mounted");
	if (symlinkat("/proc/self/fd", b->root, "dev/fd") < 0 ||
		symlinkat("/proc/self/fd/0", b->root, "dev/stdin") < 0 ||
		symlinkat("/proc/self/fd/1", b->root, "dev/stdout") < 0 ||
		symlinkat("/proc/self/fd/2", b->root, "dev/stderr") < 0 ||
		bind_at(b, b->base, "shm", "dev/shm",
			MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC, false) < 0)
		return failed(err, "/dev cannot be filled");
	return 0;
}

static int show_proc(const struct build *b, struct err *err)
{
	_cleanup_close_ int fs = fsopen("proc", FSOPEN_CLOEXEC);
	if (fs < 0 || fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return failed(err, "/proc cannot be made");
	_cleanup_close_ int mount = fsmount(
		fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	if (mount < 0 || make_dirs(b, "/proc") < 0 || attach(mount, b->root, "proc") < 0)
		return failed(err, "/proc cannot be mounted");
	return 0;
}

/* --- the workspace ---------------------------------------------------------------------------- */

/* The store of the workspace shows to nobody: a whiteout is put over its name beforehand. */
static int hide_store(const struct build *b)
{
	return mknodat(b->base, "upper/" WORKSPACE_STORE_NAME, S_IFCHR, makedev(0, 0));
}

/* Layers are named through the descriptor of the tmpfs, the workspace by the present directory. */
static int overlay_workspace(const struct build *b, int lower_tree, int *ret_upper, struct err *err)
{
	char options[256], target[64];
	const char *lower = ".";
	if (lower_tree >= 0) {
		if (mkdirat(b->base, "lower", 0700) < 0 || attach(lower_tree, b->base, "lower") < 0)
			return failed(err, "idmapped workspace cannot be mounted");
		lower = "lower";
		if (fchdir(b->base) < 0)
			return failed(err, "tmpfs cannot be entered");
	}
	(void)snprintf(options, sizeof(options),
		"lowerdir=%s,upperdir=/proc/self/fd/%d/upper,workdir=/proc/self/fd/%d/work,"
		"userxattr",
		lower, b->base, b->base);
	(void)snprintf(target, sizeof(target), "/proc/self/fd/%d/workspace", b->root);
	struct stat st;
	if (stat(lower, &st) < 0 || fchmodat(b->base, "upper", st.st_mode & 0777, 0) < 0)
		return failed(err, "workspace cannot be looked at");
	if (make_dirs(b, b->plan->workdir) < 0 || hide_store(b) < 0 ||
		mount("overlay", target, "overlay", MS_NOSUID | MS_NODEV, options) < 0)
		return failed(err, "overlay of the workspace cannot be mounted");
	*ret_upper = openat(b->base, "upper", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return *ret_upper < 0 ? failed(err, "layer of changes cannot be opened") : 0;
}

static int show_writable(const struct build *b, struct err *err)
{
	if (make_dirs(b, "/tmp") < 0 || make_dirs(b, b->plan->home) < 0 ||
		bind_at(b, b->base, "tmp", "tmp", MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, false) <
			0 ||
		bind_at(b, b->base, "home", b->plan->home + 1, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
			false) < 0)
		return failed(err, "/tmp cannot be mounted");
	return 0;
}

/* --- the end ---------------------------------------------------------------------------------- */

/* pivot_root(2) "." onto itself: the old root lies over the new one and is taken away. */
static int enter_root(const struct build *b, struct err *err)
{
	struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY};
	if (fchdir(b->root) < 0 || syscall(__NR_pivot_root, ".", ".") < 0 ||
		umount2(".", MNT_DETACH) < 0 || chdir("/") < 0)
		return failed(err, "root cannot be entered");
	if (mount_setattr(AT_FDCWD, "/", 0, &attr, sizeof(attr)) < 0)
		return failed(err, "root cannot be made read-only");
	return 0;
}

int root_build(const struct fence_plan *plan, int lower_tree, int *ret_upper, struct err *err)
{
	struct build b = {.plan = plan, .base = -1, .root = -1};
	int r = 0;
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		r = failed(err, "mounts cannot be made private");
	if (r == 0 && (r = attach_scratch(&b, err)) == 0 && (r = name_people(&b, err)) == 0 &&
		(r = show_system(&b, err)) == 0 && (r = show_devices(&b, err)) == 0 &&
		(r = show_proc(&b, err)) == 0 && (r = show_writable(&b, err)) == 0 &&
		(r = overlay_workspace(&b, lower_tree, ret_upper, err)) == 0)
		r = enter_root(&b, err);
	cleanup_close(&b.root);
	cleanup_close(&b.base);
	return r;
}
