/* Who a process of a node is: see identity_drop() in rights_node.h. */
#include "daemon/rights_node.h"
#include "sys/process.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static int capabilities(uint32_t low, struct err *err)
{
	struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct d[2] = {{.effective = low, .permitted = low}};
	if (syscall(__NR_capset, &h, d) < 0)
		return err_sys(err, errno, "dropping capabilities");
	return 0;
}

static void empty_bounding_set(void)
{
	for (int cap = 0; cap <= 63; cap++)
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0 && errno == EINVAL)
			return; /* past the last one */
}

/* A uid that this user namespace does not map is nobody to be: then we stay who we are. */
static int become(uid_t uid, bool *ret_own_user, struct err *err)
{
	if (setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0) {
		if (errno == EINVAL || errno == EPERM)
			return 0;
		return err_sys(err, errno, "leaving root's groups");
	}
	if (setresuid(uid, uid, uid) < 0)
		return err_sys(err, errno, "leaving root's user");
	*ret_own_user = true;
	return 0;
}

int identity_drop(uid_t uid, uint32_t keep, pid_t parent, bool *ret_own_user, struct err *err)
{
	bool root = geteuid() == 0;
	int r = 0;
	*ret_own_user = false;
	if (root) {
		empty_bounding_set();
		if (uid)
			r = become(uid, ret_own_user, err);
	}
	if (r == 0)
		r = capabilities(root ? keep : 0, err);
	if (r == 0)
		r = process_undumpable(err);
	if (r < 0)
		return r;
	/* A change of identity makes the kernel forget this. */
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
		return err_sys(err, errno, "binding our life to the supervisor's");
	return getppid() == parent ? 0 : err_set(err, ERR_UNAVAILABLE, "the supervisor is gone");
}
