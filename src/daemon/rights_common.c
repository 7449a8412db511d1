/* Steps that the rights of several roles are made of: see rights.h. */
#include "daemon/rights.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

int rights_capabilities(uint32_t low, struct err *err)
{
	struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct d[2] = {{.effective = low, .permitted = low}};
	if (syscall(__NR_capset, &h, d) < 0)
		return err_sys(err, errno, "dropping capabilities");
	return 0;
}

void rights_empty_bounding_set(void)
{
	for (int cap = 0; cap <= 63; cap++)
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0 && errno == EINVAL)
			return; /* past the last one */
}

int rights_limit(int which, int64_t value, struct err *err)
{
	struct rlimit now, to = {.rlim_cur = (rlim_t)value, .rlim_max = (rlim_t)value};
	if (setrlimit(which, &to) == 0)
		return 0;
	if (getrlimit(which, &now) < 0 || now.rlim_max > to.rlim_max)
		return err_sys(err, errno, "setting a resource limit");
	return 0;
}
