/*
 * Landlock over the tree that a command sees: a second answer, independent of mounts and of the
 * identity. Made after every mount, since it forbids mounting, and before the system call filter.
 *
 * TCP is not restricted by it: the network namespace holds nothing but a loopback device, and tests
 * that talk to themselves there are ordinary work.
 */
#include "sandbox/apply.h"

#include "sys/landlock.h"

#include <errno.h>
#include <fcntl.h>

enum {
	SEE = LANDLOCK_ALLOW_READ | LANDLOCK_ALLOW_EXEC,
	USE = SEE | LANDLOCK_ALLOW_WRITE | LANDLOCK_ALLOW_SPECIAL,
};

static int add(struct landlock_rule *rules, unsigned *n, const char *path, unsigned allow)
{
	BUG_ON(*n == LANDLOCK_RULES_MAX);
	int fd = open(path, O_PATH | O_CLOEXEC);
	if (fd >= 0)
		rules[(*n)++] = (struct landlock_rule){fd, allow};
	return fd < 0 && errno != ENOENT ? -1 : 0;
}

int places_restrict(const struct fence_plan *plan, struct err *err)
{
	struct landlock_rule rules[LANDLOCK_RULES_MAX];
	unsigned n = 0;
	int bad = add(rules, &n, "/", LANDLOCK_ALLOW_LIST);
	for (unsigned i = 0; i < fence_trees_n; i++)
		bad |= add(rules, &n, fence_trees[i].path, SEE);
	bad |= add(rules, &n, "/etc", LANDLOCK_ALLOW_READ);
	bad |= add(rules, &n, "/proc", LANDLOCK_ALLOW_READ);
	bad |= add(rules, &n, "/dev",
		LANDLOCK_ALLOW_READ | LANDLOCK_ALLOW_WRITE | LANDLOCK_ALLOW_DEVICES);
	bad |= add(rules, &n, "/dev/shm", USE);
	bad |= add(rules, &n, "/tmp", USE);
	bad |= add(rules, &n, plan->home, USE);
	bad |= add(rules, &n, plan->workdir, USE);
	const struct landlock_plan landlock = {
		.abi = plan->landlock_abi,
		.handle = USE | LANDLOCK_ALLOW_DEVICES,
		.scoped = true,
		.rules = rules,
		.n_rules = n,
	};
	int r = bad ? err_sys(err, errno, "opening the fence's places")
		    : landlock_apply(&landlock, err);
	while (n)
		(void)close(rules[--n].fd);
	return r;
}
