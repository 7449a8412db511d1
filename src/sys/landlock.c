/* Landlock by descriptors: see landlock.h. The numbers are those of the kernel's uapi. */
#include "sys/landlock.h"

#include <errno.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

enum {
	NR_CREATE_RULESET = 444,
	NR_ADD_RULE = 445,
	NR_RESTRICT_SELF = 446,
	CREATE_RULESET_VERSION = 1,
	RULE_PATH_BENEATH = 1,
};

enum fs_right {
	FS_EXECUTE = 1 << 0,
	FS_WRITE_FILE = 1 << 1,
	FS_READ_FILE = 1 << 2,
	FS_READ_DIR = 1 << 3,
	FS_REMOVE_DIR = 1 << 4,
	FS_REMOVE_FILE = 1 << 5,
	FS_MAKE_CHAR = 1 << 6,
	FS_MAKE_DIR = 1 << 7,
	FS_MAKE_REG = 1 << 8,
	FS_MAKE_SOCK = 1 << 9,
	FS_MAKE_FIFO = 1 << 10,
	FS_MAKE_BLOCK = 1 << 11,
	FS_MAKE_SYM = 1 << 12,
	FS_REFER = 1 << 13,    /* ABI 2 */
	FS_TRUNCATE = 1 << 14, /* ABI 3 */
	FS_IOCTL_DEV = 1 << 15 /* ABI 5 */
};

enum {
	RIGHTS_READ = FS_READ_FILE | FS_READ_DIR,
	RIGHTS_WRITE = FS_WRITE_FILE | FS_REMOVE_DIR | FS_REMOVE_FILE | FS_MAKE_DIR | FS_MAKE_REG |
		       FS_MAKE_SYM | FS_REFER | FS_TRUNCATE,
	RIGHTS_SPECIAL = FS_MAKE_SOCK | FS_MAKE_FIFO,
	RIGHTS_NEVER = FS_MAKE_CHAR | FS_MAKE_BLOCK,
	RIGHTS_OF_FILES = FS_EXECUTE | FS_WRITE_FILE | FS_READ_FILE | FS_TRUNCATE | FS_IOCTL_DEV,
	NET_BIND_TCP = 1 << 0,
	NET_CONNECT_TCP = 1 << 1,
	SCOPE_ABSTRACT_UNIX = 1 << 0,
	SCOPE_SIGNAL = 1 << 1,
};

/* struct landlock_ruleset_attr as of ABI 6; the kernel is told the size that its ABI knows. */
struct ruleset_attr {
	uint64_t fs, net, scoped;
};

struct path_beneath_attr {
	uint64_t allowed;
	int32_t fd;
} __attribute__((packed));

int landlock_abi(void)
{
	long r = syscall(NR_CREATE_RULESET, NULL, 0, CREATE_RULESET_VERSION);
	return r < 0 ? 0 : (int)r;
}

static uint64_t rights_of(unsigned allow)
{
	uint64_t fs = 0;
	if (allow & LANDLOCK_ALLOW_READ)
		fs |= RIGHTS_READ;
	if (allow & LANDLOCK_ALLOW_WRITE)
		fs |= RIGHTS_WRITE;
	if (allow & LANDLOCK_ALLOW_EXEC)
		fs |= FS_EXECUTE;
	if (allow & LANDLOCK_ALLOW_DEVICES)
		fs |= FS_IOCTL_DEV;
	if (allow & LANDLOCK_ALLOW_SPECIAL)
		fs |= RIGHTS_SPECIAL;
	if (allow & LANDLOCK_ALLOW_LIST)
		fs |= FS_READ_DIR;
	return fs;
}

/* What the plan restricts, within what its ABI knows. */
static uint64_t handled_rights(const struct landlock_plan *plan)
{
	uint64_t fs = rights_of(plan->handle);
	if (plan->handle & LANDLOCK_ALLOW_WRITE)
		fs |= RIGHTS_NEVER | RIGHTS_SPECIAL;
	if (plan->abi < 2)
		fs &= ~(uint64_t)FS_REFER;
	if (plan->abi < 3)
		fs &= ~(uint64_t)FS_TRUNCATE;
	if (plan->abi < 5)
		fs &= ~(uint64_t)FS_IOCTL_DEV;
	return fs;
}

static int add_rule(
	int ruleset, const struct landlock_rule *rule, uint64_t handled, struct err *err)
{
	struct stat st;
	struct path_beneath_attr attr = {
		.allowed = rights_of(rule->allow) & handled, .fd = rule->fd};
	if (fstat(rule->fd, &st) < 0)
		return err_sys(err, errno, "looking at a place to allow");
	if (!S_ISDIR(st.st_mode))
		attr.allowed &= RIGHTS_OF_FILES;
	if (!attr.allowed)
		return 0;
	if (syscall(NR_ADD_RULE, ruleset, RULE_PATH_BENEATH, &attr, 0) < 0)
		return err_sys(err, errno, "adding a Landlock rule");
	return 0;
}

static int restrict_self(int ruleset, struct err *err)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_sys(err, errno, "giving up new privileges");
	if (syscall(NR_RESTRICT_SELF, ruleset, 0) < 0)
		return err_sys(err, errno, "entering the Landlock domain");
	return 0;
}

int landlock_apply(const struct landlock_plan *plan, struct err *err)
{
	BUG_ON(plan->n_rules > LANDLOCK_RULES_MAX);
	if (plan->abi <= 0)
		return 0;
	struct ruleset_attr attr = {.fs = handled_rights(plan)};
	if (plan->no_network && plan->abi >= 4)
		attr.net = NET_BIND_TCP | NET_CONNECT_TCP;
	if (plan->scoped && plan->abi >= 6)
		attr.scoped = SCOPE_ABSTRACT_UNIX | SCOPE_SIGNAL;
	size_t size = plan->abi >= 6   ? sizeof(attr)
		      : plan->abi >= 4 ? 2 * sizeof(uint64_t)
				       : sizeof(uint64_t);
	if (!attr.fs && !attr.net && !attr.scoped)
		return 0;
	_cleanup_close_ int ruleset = (int)syscall(NR_CREATE_RULESET, &attr, size, 0);
	if (ruleset < 0) {
		(void)err_sys(err, errno, "making a Landlock ruleset");
		err->code = ERR_UNAVAILABLE;
		return -ERR_UNAVAILABLE;
	}
	for (unsigned i = 0; i < plan->n_rules; i++) {
		int r = add_rule(ruleset, &plan->rules[i], attr.fs, err);
		if (r < 0)
			return r;
	}
	return restrict_self(ruleset, err);
}
