/* The network of a command is its own loopback device: netdevice(7). */
#include "sandbox/apply.h"

#include <errno.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

int network_up(struct err *err)
{
	struct ifreq q = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
	_cleanup_close_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &q) < 0) {
		(void)err_sys(err, errno, "the fence's loopback device cannot be brought up");
		err->code = ERR_UNAVAILABLE;
		return -ERR_UNAVAILABLE;
	}
	return 0;
}
