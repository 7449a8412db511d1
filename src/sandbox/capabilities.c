/* No capability, and no way to come by one: capabilities(7). What was dropped is read back. */
#include "sandbox/apply.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

enum { CAP_NUMBERS = 64 }; /* the kernel answers EINVAL from its last one on */

static bool drop_bounding(void)
{
	for (unsigned cap = 0; cap < CAP_NUMBERS; cap++)
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0)
			return errno == EINVAL && cap > CAP_LAST_CAP;
	return true;
}

static bool nothing_left(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {{0}};
	if (syscall(__NR_capget, &head, data) < 0)
		return false;
	for (unsigned i = 0; i < 2; i++)
		if (data[i].effective || data[i].permitted || data[i].inheritable)
			return false;
	for (unsigned cap = 0; cap < CAP_NUMBERS; cap++) {
		int bounded = prctl(PR_CAPBSET_READ, cap, 0, 0, 0);
		if (bounded < 0)
			return cap > CAP_LAST_CAP; /* the kernel knows no more of them */
		if (bounded > 0 || prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, cap, 0, 0) > 0)
			return false;
	}
	return true;
}

int capabilities_drop(struct err *err)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	const struct __user_cap_data_struct none[2] = {{0}};
	if (!drop_bounding() || prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 ||
		syscall(__NR_capset, &head, none) < 0)
		return err_sys(err, errno, "dropping capabilities");
	if (!nothing_left())
		return err_set(err, ERR_UNAVAILABLE, "capabilities are left after dropping them");
	return 0;
}
