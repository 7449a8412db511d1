/*
 * The program that attacks from inside the fence: `attempt NAME` tries one thing and says on
 * standard output whether it got through. `attempt` lists the names.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#ifndef AF_VSOCK
#	define AF_VSOCK 40
#endif

static bool opens(const char *path, int flags)
{
	return open(path, flags | O_CLOEXEC, 0644) >= 0;
}

static bool call(long nr, long a, long b, long c, long d)
{
	return syscall(nr, a, b, c, d, 0, 0) >= 0;
}

/* Namespaces and mounts */
static bool userns(void)
{
	return unshare(CLONE_NEWUSER) == 0;
}
static bool mountns(void)
{
	return unshare(CLONE_NEWNS) == 0;
}
static bool netns(void)
{
	return unshare(CLONE_NEWNET) == 0;
}
static bool clone_userns(void)
{
	long pid = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
	if (pid == 0)
		_exit(0);
	return pid > 0;
}
static bool clone3_userns(void)
{
	struct clone_args a = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
	long pid = syscall(SYS_clone3, &a, sizeof(a));
	if (pid == 0)
		_exit(0);
	return pid > 0;
}
static bool mounts(void)
{
	return mount("t", "/tmp", "tmpfs", 0, NULL) == 0;
}
static bool remounts(void)
{
	return mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND, NULL) == 0;
}
static bool unmounts(void)
{
	return umount2("/usr", MNT_DETACH) == 0;
}
static bool binds(void)
{
	return mount("/workspace", "/usr", NULL, MS_BIND, NULL) == 0;
}
static bool fsopens(void)
{
	return call(SYS_fsopen, (long)"tmpfs", 0, 0, 0);
}
static bool opentree(void)
{
	return call(SYS_open_tree, AT_FDCWD, (long)"/", 1, 0);
}
static bool pivots(void)
{
	return call(SYS_pivot_root, (long)".", (long)".", 0, 0);
}
static bool chroots(void)
{
	return chroot("/tmp") == 0;
}
static bool joins_init(void)
{
	int fd = open("/proc/1/ns/user", O_RDONLY | O_CLOEXEC);
	return fd >= 0 && setns(fd, 0) == 0;
}
static bool sees_init_ns(void)
{
	return opens("/proc/1/ns/mnt", O_RDONLY);
}

/* Other processes */
static bool traces_init(void)
{
	return ptrace(PTRACE_ATTACH, 1, 0, 0) == 0;
}
static bool traces_self_parent(void)
{
	return ptrace(PTRACE_SEIZE, getppid(), 0, 0) == 0;
}
static bool reads_init_memory(void)
{
	return opens("/proc/1/mem", O_RDONLY);
}
static bool reads_init_environ(void)
{
	return opens("/proc/1/environ", O_RDONLY);
}
static bool lists_init_fds(void)
{
	return opendir("/proc/1/fd") != NULL;
}
static bool init_root(void)
{
	return opens("/proc/1/root/etc/passwd", O_RDONLY);
}
static bool init_cwd(void)
{
	return opens("/proc/1/cwd/.", O_RDONLY);
}
static bool writes_init_exe(void)
{
	return opens("/proc/1/exe", O_WRONLY);
}
static bool reads_init_exe(void)
{
	return opens("/proc/1/exe", O_RDONLY);
}
static bool vm_reads(void)
{
	char b[8];
	struct iovec l = {b, 8}, r = {(void *)0x400000, 8};
	return process_vm_readv(1, &l, 1, &r, 1, 0) >= 0;
}
static bool steals_fd(void)
{
	long p = syscall(SYS_pidfd_open, 1, 0);
	return p >= 0 && call(SYS_pidfd_getfd, p, 0, 0, 0);
}
static bool kills_init(void)
{
	(void)kill(1, SIGKILL);
	(void)kill(1, SIGSTOP);
	(void)kill(1, SIGTERM);
	usleep(50000);
	return kill(1, 0) != 0 && errno == ESRCH;
}
static bool kcmps(void)
{
	return call(SYS_kcmp, getpid(), 1, 0, 0);
}

/* The kernel's own */
static bool uring(void)
{
	char p[256] = {0};
	return call(SYS_io_uring_setup, 4, (long)p, 0, 0);
}
static bool bpf(void)
{
	char a[64] = {1, 0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0, 1};
	return call(SYS_bpf, 0, (long)a, sizeof(a), 0);
}
static bool perf(void)
{
	char a[128] = {0};
	a[4] = 64;
	return call(SYS_perf_event_open, (long)a, 0, -1, -1);
}
static bool faultfd(void)
{
	return call(SYS_userfaultfd, 1, 0, 0, 0);
}
static bool keys(void)
{
	return call(SYS_add_key, (long)"user", (long)"k", (long)"v", 1);
}
static bool keyring(void)
{
	return call(SYS_keyctl, 0, -3, 1, 0);
}
static bool reboots(void)
{
	return call(SYS_reboot, 0xfee1dead, 672274793, 0, 0);
}
static bool sets_time(void)
{
	long t[2] = {0, 0};
	return call(SYS_clock_settime, 0, (long)t, 0, 0);
}
static bool loads_module(void)
{
	return call(SYS_init_module, (long)"x", 1, (long)"", 0);
}
static bool kexecs(void)
{
	return call(SYS_kexec_load, 0, 0, 0, 0);
}
static bool swaps(void)
{
	return call(SYS_swapon, (long)"/workspace/x", 0, 0, 0);
}
static bool quotas(void)
{
	return call(SYS_quotactl, 0x800001 << 8, 0, 0, 0);
}
static bool accts(void)
{
	return call(SYS_acct, 0, 0, 0, 0);
}
static bool names_handle(void)
{
	char h[256] = {8};
	int m;
	return call(SYS_name_to_handle_at, AT_FDCWD, (long)"/workspace", (long)h, (long)&m);
}
static bool opens_handle(void)
{
	char h[16] = {8, 0, 0, 0, 1};
	return call(SYS_open_by_handle_at, AT_FDCWD, (long)h, 0, 0);
}
static bool fanotifies(void)
{
	return call(SYS_fanotify_init, 0, 0, 0, 0);
}
static bool personalities(void)
{
	return personality(ADDR_NO_RANDOMIZE) != -1;
}
static bool logs(void)
{
	char b[64];
	return call(SYS_syslog, 3, (long)b, sizeof(b), 0);
}
static bool ldt(void)
{
	char b[64];
	return call(SYS_modify_ldt, 0, (long)b, sizeof(b), 0);
}
static bool new_number(void)
{
	return call(1000, 0, 0, 0, 0);
}
static bool x32(void)
{
	return call(0x40000000 | SYS_getpid, 0, 0, 0, 0);
}
static bool int80(void)
{
#ifdef __x86_64__
	pid_t pid = fork();
	int status = 0;
	if (pid == 0) {
		long r;
		__asm__ volatile("int $0x80" : "=a"(r) : "a"(20L) : "memory"); /* getpid */
		_exit(r > 0 ? 0 : 1);
	}
	(void)waitpid(pid, &status, 0);
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
#else
	return false;
#endif
}

/* Sockets */
static bool sock(int family, int type, int proto)
{
	return socket(family, type, proto) >= 0;
}
static bool netlink(void)
{
	return sock(AF_NETLINK, SOCK_RAW, 0);
}
static bool packet(void)
{
	return sock(AF_PACKET, SOCK_RAW, 0);
}
static bool vsock(void)
{
	return sock(AF_VSOCK, SOCK_STREAM, 0);
}
static bool alg(void)
{
	return sock(AF_ALG, SOCK_SEQPACKET, 0);
}
static bool key_socket(void)
{
	return sock(AF_KEY, SOCK_RAW, 2);
}
static bool bluetooth(void)
{
	return sock(31, SOCK_RAW, 0);
}
static bool xdp(void)
{
	return sock(44, SOCK_RAW, 0);
}
static bool tipc(void)
{
	return sock(30, SOCK_STREAM, 0);
}
static bool raw_ip(void)
{
	return sock(AF_INET, SOCK_RAW, 1);
}
static bool connects_out(void)
{
	/* 192.0.2.1, which is nobody's: with no route the kernel says so at once. */
	struct sockaddr a = {.sa_family = AF_INET, .sa_data = {0, 80, (char)192, 0, 2, 1}};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	return fd >= 0 && (connect(fd, &a, sizeof(a)) == 0 || errno == EINPROGRESS);
}
static bool sends_out(void)
{
	struct sockaddr a = {.sa_family = AF_INET, .sa_data = {0, 53, (char)192, 0, 2, 1}};
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	return fd >= 0 && sendto(fd, "x", 1, 0, &a, sizeof(a)) == 1;
}
static bool host_socket(void)
{
	static const char *const paths[] = {"/run/docker.sock", "/var/run/docker.sock",
		"/run/dbus/system_bus_socket", "/run/systemd/private", "/tmp/.X11-unix/X0"};
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		if (access(paths[i], F_OK) == 0)
			return true;
	return false;
}

/* Files */
static bool host_tmp(void)
{
	return access("/tmp/cloister-host-mark", F_OK) == 0;
}
static bool host_root(void)
{
	return access("/root", F_OK) == 0 || access("/var", F_OK) == 0 ||
	       access("/sys", F_OK) == 0 || access("/run", F_OK) == 0 || access("/boot", F_OK) == 0;
}
static bool shadow(void)
{
	return opens("/etc/shadow", O_RDONLY);
}
static bool writes_usr(void)
{
	return opens("/usr/bin/cloister-evil", O_WRONLY | O_CREAT);
}
static bool writes_etc(void)
{
	return opens("/etc/passwd", O_WRONLY);
}
static bool writes_root(void)
{
	return opens("/evil", O_WRONLY | O_CREAT);
}
static bool chmods_usr(void)
{
	return chmod("/usr/bin/env", 0777) == 0;
}
static bool touches_usr(void)
{
	return utimensat(AT_FDCWD, "/usr/bin/env", NULL, 0) == 0;
}
static bool xattr_usr(void)
{
	return setxattr("/usr/bin/env", "user.x", "y", 1, 0) == 0;
}
static bool truncates_usr(void)
{
	return truncate("/usr/bin/env", 0) == 0;
}
static bool makes_suid(void)
{
	int fd = open("suid", O_CREAT | O_WRONLY | O_CLOEXEC, 0755);
	return fd >= 0 && (fchmod(fd, 04755) == 0 || chmod("suid", 02755) == 0);
}
static bool setcaps(void)
{
	static const char caps[20] = {1, 0, 0, 2, (char)0xff};
	int fd = open("caps", O_CREAT | O_WRONLY | O_CLOEXEC, 0755);
	return fd >= 0 && fsetxattr(fd, "security.capability", caps, sizeof(caps), 0) == 0;
}
static bool makes_device(void)
{
	return mknod("dev", S_IFBLK | 0600, 0xfe00) == 0;
}
static bool makes_null(void)
{
	return mknod("null", S_IFCHR | 0600, 0x103) == 0;
}
static bool makes_whiteout(void)
{
	return mknod("white", S_IFCHR, 0) == 0;
}
static bool trusted_xattr(void)
{
	int fd = open("x", O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
	return fd >= 0 && fsetxattr(fd, "trusted.overlay.opaque", "y", 1, 0) == 0;
}
static bool upper_visible(void)
{
	return access("/upper", F_OK) == 0 || access("/work", F_OK) == 0 ||
	       access("/lower", F_OK) == 0;
}
static bool store_visible(void)
{
	return access("/workspace/.cloister", F_OK) == 0;
}
static bool kernel_files(void)
{
	return opens("/proc/kcore", O_RDONLY) || opens("/proc/kmsg", O_RDONLY) ||
	       opens("/dev/mem", O_RDONLY) || opens("/dev/kmsg", O_RDONLY);
}
static bool sysctls(void)
{
	return opens("/proc/sys/kernel/core_pattern", O_WRONLY) ||
	       opens("/proc/sys/kernel/modprobe", O_WRONLY) ||
	       opens("/proc/sysrq-trigger", O_WRONLY) ||
	       opens("/proc/sys/user/max_user_namespaces", O_WRONLY);
}
static bool other_devices(void)
{
	return opens("/dev/vda", O_RDONLY) || opens("/dev/sda", O_RDONLY) ||
	       opens("/dev/fuse", O_RDWR) || opens("/dev/net/tun", O_RDWR) ||
	       opens("/dev/kvm", O_RDWR) || opens("/dev/loop-control", O_RDWR);
}

/* Identity, descriptors, terminal */
static bool becomes_root(void)
{
	return setuid(0) == 0 || setresuid(0, 0, 0) == 0;
}
static bool has_capabilities(void)
{
	for (int c = 0; c < 41; c++)
		if (prctl(PR_CAPBSET_READ, c, 0, 0, 0) != 0)
			return true;
	return false;
}
static bool regains_privileges(void)
{
	return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1;
}
static bool inherited_fds(void)
{
	for (int fd = 3; fd < 4096; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			return true;
	return false;
}
static bool types_into_terminal(void)
{
	char c = 'x';
	int fd = open("/dev/tty", O_RDWR | O_CLOEXEC);
	return ioctl(0, TIOCSTI, &c) == 0 || (fd >= 0 && ioctl(fd, TIOCSTI, &c) == 0);
}
static bool controls_terminal(void)
{
	return opens("/dev/tty", O_RDWR);
}
static bool host_secret(void)
{
	return getenv("CLOISTER_TEST_SECRET") != NULL;
}
static bool raises_limits(void)
{
	return system("ulimit -n 100000 2>/dev/null || ulimit -u 100000 2>/dev/null") == 0;
}

#define A(f)                                                                                       \
	{                                                                                          \
#		f, f                                                                              \
	}
static const struct {
	const char *name;
	bool (*got_through)(void);
} attempts[] = {A(userns), A(mountns), A(netns), A(clone_userns), A(clone3_userns), A(mounts),
	A(remounts), A(unmounts), A(binds), A(fsopens), A(opentree), A(pivots), A(chroots),
	A(joins_init), A(sees_init_ns), A(traces_init), A(traces_self_parent), A(reads_init_memory),
	A(reads_init_environ), A(lists_init_fds), A(init_root), A(init_cwd), A(writes_init_exe),
	A(reads_init_exe), A(vm_reads), A(steals_fd), A(kills_init), A(kcmps), A(uring), A(bpf),
	A(perf), A(faultfd), A(keys), A(keyring), A(reboots), A(sets_time), A(loads_module),
	A(kexecs), A(swaps), A(quotas), A(accts), A(names_handle), A(opens_handle), A(fanotifies),
	A(personalities), A(logs), A(ldt), A(new_number), A(x32), A(int80), A(netlink), A(packet),
	A(vsock), A(alg), A(key_socket), A(bluetooth), A(xdp), A(tipc), A(raw_ip), A(connects_out),
	A(sends_out), A(host_socket), A(host_tmp), A(host_root), A(shadow), A(writes_usr),
	A(writes_etc), A(writes_root), A(chmods_usr), A(touches_usr), A(xattr_usr),
	A(truncates_usr), A(makes_suid), A(setcaps), A(makes_device), A(makes_null),
	A(makes_whiteout), A(trusted_xattr), A(upper_visible), A(store_visible), A(kernel_files),
	A(sysctls), A(other_devices), A(becomes_root), A(has_capabilities), A(regains_privileges),
	A(inherited_fds), A(types_into_terminal), A(controls_terminal), A(host_secret),
	A(raises_limits)};

int main(int argc, char **argv)
{
	for (size_t i = 0; i < sizeof(attempts) / sizeof(attempts[0]); i++) {
		if (argc < 2) {
			puts(attempts[i].name);
		} else if (strcmp(argv[1], attempts[i].name) == 0) {
			errno = 0;
			bool through = attempts[i].got_through();
			printf("%s (%s)\n", through ? "THROUGH" : "refused", strerror(errno));
			return 0;
		}
	}
	return argc < 2 ? 0 : 2;
}
