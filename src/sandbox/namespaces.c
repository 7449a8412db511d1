/* Namespaces and the identity in them: clone3(2), user_namespaces(7), mount_setattr(2). */
#include "sandbox/apply.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum {
	ALL_NAMESPACES = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS |
			 CLONE_NEWCGROUP | CLONE_NEWNET
};

static pid_t clone_into(uint64_t flags, int *pidfd)
{
	struct clone_args args = {.flags = flags | CLONE_PIDFD,
		.pidfd = (uint64_t)(uintptr_t)pidfd,
		.exit_signal = SIGCHLD};
	return (pid_t)syscall(__NR_clone3, &args, sizeof(args));
}

static int refused(struct err *err, int errnum, const char *what)
{
	(void)err_sys(err, errnum, "%s", what);
	err->code = ERR_UNAVAILABLE;
	return err_hint(err, "cloister doctor says what this machine lacks");
}

/* The launcher cannot be looked into (process_undumpable()), and a child that had this from its
 * birth could not be mapped by an ordinary user: its files in /proc would be root's. So it is as
 * others for the moment of the clone; the child forbids looking as soon as it is mapped. */
int namespaces_clone(pid_t *ret_pid, int *ret_pidfd, struct err *err)
{
	(void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	pid_t pid = clone_into(ALL_NAMESPACES, ret_pidfd);
	int failed = errno;
	if (pid != 0)
		(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	if (pid < 0)
		return refused(err, failed, "namespaces for a command cannot be made here");
	*ret_pid = pid;
	return 0;
}

/* A file of /proc/PID, which holds still: the process is our child and has not been waited for. */
static int write_proc(pid_t pid, const char *name, const char *text, struct err *err)
{
	char path[64];
	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		return refused(err, errno, "an identity cannot be mapped here");
	return 0;
}

static int write_map(
	pid_t pid, const char *name, unsigned inside, unsigned outside, struct err *err)
{
	char text[64];
	(void)snprintf(text, sizeof(text), "%u %u 1", inside, outside);
	return write_proc(pid, name, text, err);
}

int namespaces_map(const struct fence_plan *plan, pid_t pid, struct err *err)
{
	int r = 0;
	/* An ordinary user may map a group only once nobody can leave supplementary ones; root's
	 * command leaves them all (identity_take()). */
	if (!plan->root)
		r = write_proc(pid, "setgroups", "deny", err);
	if (r == 0)
		r = write_map(pid, "gid_map", plan->inside_gid, plan->host_gid, err);
	if (r == 0)
		r = write_map(pid, "uid_map", plan->inside_uid, plan->host_uid, err);
	return r;
}

int identity_take(const struct fence_plan *plan, struct err *err)
{
	if (!plan->root)
		return 0;
	if (setgroups(0, NULL) < 0 ||
		setresgid(plan->inside_gid, plan->inside_gid, plan->inside_gid) < 0 ||
		setresuid(plan->inside_uid, plan->inside_uid, plan->inside_uid) < 0)
		return refused(err, errno, "the command's identity cannot be taken");
	return 0;
}

/* --- the workspace of root -------------------------------------------------------------------- */

/* A user namespace that maps the owner of a directory to the command's host ids, as a descriptor:
 * its only process ends at once. */
static int mapping_of(
	const struct fence_plan *plan, const struct stat *owner, int *ret_fd, struct err *err)
{
	int pidfd = -1, status;
	char path[64];
	pid_t pid = clone_into(CLONE_NEWUSER, &pidfd);
	if (pid < 0)
		return refused(err, errno, "a user namespace cannot be made here");
	if (pid == 0)
		for (;;)
			(void)pause();
	int r = write_map(pid, "uid_map", owner->st_uid, plan->host_uid, err);
	if (r == 0)
		r = write_map(pid, "gid_map", owner->st_gid, plan->host_gid, err);
	(void)snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
	int fd = r == 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (r == 0 && fd < 0)
		r = refused(err, errno, "a user namespace cannot be opened");
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, &status, 0);
	(void)close(pidfd);
	if (r == 0)
		*ret_fd = fd;
	return r;
}

int idmapped_tree(const struct fence_plan *plan, int dir_fd, int *ret_fd, struct err *err)
{
	struct stat st;
	_cleanup_close_ int userns = -1;
	if (fstat(dir_fd, &st) < 0)
		return err_sys(err, errno, "looking at the workspace");
	int r = mapping_of(plan, &st, &userns, err);
	if (r < 0)
		return r;
	_cleanup_close_ int tree =
		open_tree(dir_fd, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (tree < 0)
		return refused(err, errno, "the workspace cannot be mounted once more");
	struct mount_attr attr = {.attr_set = MOUNT_ATTR_IDMAP | MOUNT_ATTR_RDONLY |
					      MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
		.userns_fd = (uint64_t)userns};
	if (mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof(attr)) < 0)
		return refused(err, errno,
			"the workspace's file system cannot be mounted for another owner");
	*ret_fd = take_fd(tree);
	return 0;
}
