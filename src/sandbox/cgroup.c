/* Groups of processes with limits: see cgroup.h. */
#include "sandbox/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { NAME_BYTES = 64, REMOVE_TRIES = 50, REMOVE_WAIT_US = 1000 };

static void group_name(unsigned slot, char ret[NAME_BYTES])
{
	(void)snprintf(ret, NAME_BYTES, "cloister-%d-%u", (int)getpid(), slot);
}

static int open_dir(int at, const char *path)
{
	return openat(at, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static int set(int dir, const char *name, long long value)
{
	char text[32];
	int n = snprintf(text, sizeof(text), "%lld", value);
	_cleanup_close_ int fd = openat(dir, name, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
	return fd >= 0 && write(fd, text, (size_t)n) == n ? 0 : -1;
}

static bool has_word(const char *text, const char *word)
{
	size_t n = strlen(word);
	for (const char *p = text; (p = strstr(p, word)); p += n)
		if ((p == text || p[-1] == ' ') && (p[n] == ' ' || p[n] == '\n' || !p[n]))
			return true;
	return false;
}

static bool has_controllers(int dir)
{
	char text[512] = {0};
	_cleanup_close_ int fd = openat(dir, "cgroup.subtree_control", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
	return n > 0 && has_word(text, "memory") && has_word(text, "pids");
}

/* May we make groups here? */
static bool usable(int dir)
{
	char name[NAME_BYTES];
	group_name(FENCE_SLOTS_MAX, name);
	if (mkdirat(dir, name, 0700) < 0)
		return false;
	return unlinkat(dir, name, AT_REMOVEDIR) == 0;
}

/* What launchers that were killed have left: groups named after a process that is no more. */
static void sweep(int parent)
{
	const struct dirent *e;
	int fd = open_dir(parent, ".");
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	while (d && (e = readdir(d))) {
		int pid, end = 0;
		if (sscanf(e->d_name, "cloister-%d-%*u%n", &pid, &end) == 1 && end > 0 && pid > 0 &&
			kill(pid, 0) < 0 && errno == ESRCH)
			(void)unlinkat(parent, e->d_name, AT_REMOVEDIR);
	}
	if (d)
		(void)closedir(d);
}

static void find_usable(struct cgroup *c)
{
	static const char *const v1[CGROUP_DIRS_MAX] = {
		"/sys/fs/cgroup/memory", "/sys/fs/cgroup/pids"};
	*c = (struct cgroup){.n = 0};
	int fd = open_dir(AT_FDCWD, "/sys/fs/cgroup");
	if (fd >= 0 && has_controllers(fd) && usable(fd)) {
		c->parents[c->n++] = fd;
		c->v2 = true;
		return;
	}
	if (fd >= 0)
		(void)close(fd);
	for (unsigned i = 0; i < CGROUP_DIRS_MAX; i++) {
		if ((fd = open_dir(AT_FDCWD, v1[i])) >= 0 && usable(fd)) {
			c->parents[c->n++] = fd;
			continue;
		}
		/* Both or none: half a limit is none that could be told in a word. */
		if (fd >= 0)
			(void)close(fd);
		while (c->n)
			(void)close(c->parents[--c->n]);
		return;
	}
}

void cgroup_find(struct cgroup *c)
{
	find_usable(c);
	for (unsigned i = 0; i < c->n; i++)
		sweep(c->parents[i]);
}

static int limit_group(const struct cgroup *c, unsigned i, int group, const struct fence_limits *l)
{
	int r = 0;
	if (c->v2 || i == 0)
		r |= set(group, c->v2 ? "memory.max" : "memory.limit_in_bytes", l->memory_bytes);
	if (c->v2 || i == 1)
		r |= set(group, "pids.max", l->processes);
	/* Where there is swap, it counts too. */
	if (r == 0 && c->v2)
		(void)set(group, "memory.swap.max", 0);
	else if (r == 0 && i == 0)
		(void)set(group, "memory.memsw.limit_in_bytes", l->memory_bytes);
	return r;
}

int cgroup_enter(const struct cgroup *c, const struct fence_plan *plan, unsigned slot, pid_t pid,
	struct err *err)
{
	char name[NAME_BYTES];
	group_name(slot, name);
	for (unsigned i = 0; i < c->n; i++) {
		if (mkdirat(c->parents[i], name, 0700) < 0 && errno != EEXIST)
			return err_sys(err, errno, "making a group of processes");
		_cleanup_close_ int group = open_dir(c->parents[i], name);
		if (group < 0 || limit_group(c, i, group, &plan->limits) < 0 ||
			set(group, "cgroup.procs", pid) < 0) {
			(void)err_sys(err, errno, "limiting a group of processes");
			err->code = ERR_UNAVAILABLE;
			return -ERR_UNAVAILABLE;
		}
	}
	return 0;
}

void cgroup_leave(const struct cgroup *c, unsigned slot)
{
	char name[NAME_BYTES];
	group_name(slot, name);
	/* Processes that have been waited for leave their group a moment later. */
	for (unsigned i = 0; i < c->n; i++)
		for (unsigned tries = 0; tries < REMOVE_TRIES; tries++) {
			if (unlinkat(c->parents[i], name, AT_REMOVEDIR) == 0 || errno != EBUSY)
				break;
			(void)usleep(REMOVE_WAIT_US);
		}
}
