/* What an intruder would try: see attempts.h. */
#include "attempts.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <arpa/inet.h>
#include <linux/capability.h>

/* Straight to the kernel: the C library would take other ways. */
#define CALL(...) (syscall(__VA_ARGS__) < 0 ? errno : 0)

static int opened(long fd)
{
	if (fd < 0)
		return errno;
	(void)syscall(SYS_close, fd);
	return 0;
}

static int try_open(const struct attempt_env *e, const char *name, int flags)
{
	return opened(syscall(SYS_openat, e->mount_fd, name, flags | O_CLOEXEC, 0644));
}

/* A file of the workspace, open as an intruder can have it: for reading. */
static int reading(const struct attempt_env *e)
{
	return (int)syscall(SYS_openat, e->mount_fd, "file", O_RDONLY | O_CLOEXEC);
}

static const char *host(const struct attempt_env *e, const char *name)
{
	static char path[600];
	size_t n = strlen(e->host);
	memcpy(path, e->host, n);
	path[n] = '/';
	strcpy(path + n + 1, name);
	return path;
}

/* --- writing --- */

#define OPEN(name, flags)                                                                          \
	static int name(const struct attempt_env *e)                                               \
	{                                                                                          \
		return try_open(e, "file", flags);                                                 \
	}
OPEN(open_for_writing, O_WRONLY)
OPEN(open_for_both, O_RDWR)
OPEN(open_for_reading_and_truncate, O_RDONLY | O_TRUNC)
OPEN(open_for_appending, O_WRONLY | O_APPEND)

static int create_a_file(const struct attempt_env *e)
{
	return try_open(e, "new", O_RDONLY | O_CREAT);
}

static int create_without_a_name(const struct attempt_env *e)
{
	return try_open(e, ".", O_RDWR | O_TMPFILE);
}

static int create_with_openat2(const struct attempt_env *e)
{
	uint64_t how[3] = {O_WRONLY | O_CREAT, 0600, 0};
	return opened(syscall(SYS_openat2, e->mount_fd, "new2", how, sizeof(how)));
}

static int truncate_by_path(const struct attempt_env *e)
{
	return CALL(SYS_truncate, host(e, "file"), 1);
}

static int truncate_by_descriptor(const struct attempt_env *e)
{
	int fd = (int)syscall(SYS_openat, e->mount_fd, "file", O_RDWR);
	return CALL(SYS_ftruncate, fd < 0 ? reading(e) : fd, 1);
}

static int punch_a_hole(const struct attempt_env *e)
{
	int fd = (int)syscall(SYS_openat, e->mount_fd, "file", O_RDWR);
	return CALL(SYS_fallocate, fd < 0 ? reading(e) : fd, 3, 0L, 1L);
}

static int chmod_by_descriptor(const struct attempt_env *e)
{
	return CALL(SYS_fchmod, reading(e), 0777);
}

static int chmod_by_name(const struct attempt_env *e)
{
	return CALL(SYS_fchmodat, e->mount_fd, "file", 0777);
}

static int chmod_by_path(const struct attempt_env *e)
{
	return CALL(SYS_chmod, host(e, "file"), 04755);
}

static int chown_by_descriptor(const struct attempt_env *e)
{
	return CALL(SYS_fchown, reading(e), getuid(), getgid());
}

static int chown_by_name(const struct attempt_env *e)
{
	return CALL(SYS_fchownat, e->mount_fd, "file", getuid(), getgid(), 0);
}

static int set_times_by_name(const struct attempt_env *e)
{
	return CALL(SYS_utimensat, e->mount_fd, "file", NULL, 0);
}

static int set_times_by_descriptor(const struct attempt_env *e)
{
	return CALL(SYS_utimensat, reading(e), NULL, NULL, 0);
}

static int set_attribute_by_descriptor(const struct attempt_env *e)
{
	return CALL(SYS_fsetxattr, reading(e), "user.x", "1", 1UL, 0);
}

static int set_attribute_by_path(const struct attempt_env *e)
{
	return CALL(SYS_setxattr, host(e, "file"), "user.x", "1", 1UL, 0);
}

static int remove_attribute(const struct attempt_env *e)
{
	return CALL(SYS_fremovexattr, reading(e), "user.there");
}

static int unlink_a_file(const struct attempt_env *e)
{
	return CALL(SYS_unlinkat, e->mount_fd, "file", 0);
}

static int rename_a_file(const struct attempt_env *e)
{
	return CALL(SYS_renameat2, e->mount_fd, "file", e->mount_fd, "moved", 0);
}

static int make_a_hard_link(const struct attempt_env *e)
{
	return CALL(SYS_linkat, e->mount_fd, "file", e->mount_fd, "linked", 0);
}

static int make_a_symbolic_link(const struct attempt_env *e)
{
	return CALL(SYS_symlinkat, "/etc/passwd", e->mount_fd, "linked");
}

static int make_a_directory(const struct attempt_env *e)
{
	return CALL(SYS_mkdirat, e->mount_fd, "made", 0755);
}

static int make_a_fifo(const struct attempt_env *e)
{
	return CALL(SYS_mknodat, e->mount_fd, "fifo", S_IFIFO | 0600, 0);
}

static int make_a_device(const struct attempt_env *e)
{
	return CALL(SYS_mknodat, e->mount_fd, "null", S_IFCHR | 0600, 0x103);
}

static int copy_over_a_file(const struct attempt_env *e)
{
	int to = (int)syscall(SYS_openat, e->mount_fd, "file", O_RDWR);
	long long at = 4;
	return CALL(SYS_copy_file_range, reading(e), NULL, to, &at, 1UL, 0);
}

static int set_an_inode_flag(const struct attempt_env *e)
{
	int flags = 0; /* FS_IOC_GETFLAGS, _SETFLAGS: chattr */
	int fd = reading(e);
	if (syscall(SYS_ioctl, fd, 0x80086601UL, &flags) < 0)
		return errno;
	return CALL(SYS_ioctl, fd, 0x40086602UL, &flags);
}

/* --- reading outside --- */

static int open_an_absolute_path(const struct attempt_env *e)
{
	(void)e;
	return opened(syscall(SYS_openat, AT_FDCWD, "/etc/passwd", O_RDONLY));
}

static int open_above_the_mount(const struct attempt_env *e)
{
	return try_open(e, "../../../../../../../../etc/passwd", O_RDONLY);
}

static int open_through_a_link(const struct attempt_env *e)
{
	return try_open(e, "out", O_RDONLY);
}

static int list_the_root(const struct attempt_env *e)
{
	(void)e;
	return opened(syscall(SYS_openat, AT_FDCWD, "/", O_RDONLY | O_DIRECTORY));
}

static int open_own_environment(const struct attempt_env *e)
{
	(void)e;
	return opened(syscall(SYS_openat, AT_FDCWD, "/proc/self/environ", O_RDONLY));
}

static int open_the_root_through_proc(const struct attempt_env *e)
{
	(void)e;
	return opened(syscall(SYS_openat, AT_FDCWD, "/proc/self/root/etc/passwd", O_RDONLY));
}

static int open_by_handle(const struct attempt_env *e)
{
	struct {
		struct file_handle h;
		char room[128];
	} h = {.h = {.handle_bytes = 128}};
	int id;
	if (syscall(SYS_name_to_handle_at, AT_FDCWD, "/etc/passwd", &h, &id, 0) < 0)
		return errno;
	(void)e;
	int root = (int)syscall(SYS_openat, AT_FDCWD, "/etc", O_RDONLY);
	return opened(syscall(SYS_open_by_handle_at, root, &h, O_RDONLY));
}

static int look_at_a_path_outside(const struct attempt_env *e)
{
	struct stat st;
	(void)e;
	return CALL(SYS_newfstatat, AT_FDCWD, "/etc/passwd", &st, 0);
}

static int change_directory(const struct attempt_env *e)
{
	(void)e;
	return CALL(SYS_chdir, "/etc");
}

/* --- network --- */

#define SOCKET(name, family, type, protocol)                                                       \
	static int name(const struct attempt_env *e)                                               \
	{                                                                                          \
		(void)e;                                                                           \
		return opened(syscall(SYS_socket, family, type, protocol));                        \
	}
SOCKET(make_a_tcp_socket, AF_INET, SOCK_STREAM, 0)
SOCKET(make_a_udp_socket, AF_INET6, SOCK_DGRAM, 0)
SOCKET(make_a_raw_socket, AF_INET, SOCK_RAW, 1)
SOCKET(make_an_mptcp_socket, AF_INET, SOCK_STREAM, 262)
SOCKET(make_a_unix_socket, AF_UNIX, SOCK_STREAM, 0)
SOCKET(make_a_netlink_socket, AF_NETLINK, SOCK_RAW, 0)
SOCKET(make_a_packet_socket, AF_PACKET, SOCK_RAW, 0)
SOCKET(make_a_vsock_socket, AF_VSOCK, SOCK_STREAM, 0)
SOCKET(make_an_alg_socket, AF_ALG, SOCK_SEQPACKET, 0)

static int make_a_pair_of_inet_sockets(const struct attempt_env *e)
{
	int pair[2];
	(void)e;
	int r = CALL(SYS_socketpair, AF_TIPC, SOCK_STREAM, 0, pair);
	return r == 0 ? 0 : r;
}

static int connect_the_channel_elsewhere(const struct attempt_env *e)
{
	struct sockaddr sa = {.sa_family = AF_UNSPEC};
	return CALL(SYS_connect, e->channel, &sa, sizeof(sa));
}

/* --- programs and processes --- */

static int execute_a_program(const struct attempt_env *e)
{
	char *const argv[] = {(char *)(uintptr_t) "true", NULL}, *const envp[] = {NULL};
	(void)e;
	(void)syscall(SYS_execve, "/bin/true", argv, envp);
	return errno;
}

static int execute_a_descriptor(const struct attempt_env *e)
{
	char *const argv[] = {(char *)(uintptr_t) "true", NULL}, *const envp[] = {NULL};
	int fd = (int)syscall(SYS_openat, AT_FDCWD, "/bin/true", O_RDONLY);
	(void)e;
	(void)syscall(SYS_execveat, fd < 0 ? 0 : fd, "", argv, envp, AT_EMPTY_PATH);
	return errno;
}

static int execute_memory(const struct attempt_env *e)
{
	char *const argv[] = {(char *)(uintptr_t) "x", NULL}, *const envp[] = {NULL};
	static const char script[] = "#!/bin/true\n";
	(void)e;
	int fd = (int)syscall(SYS_memfd_create, "x", 0);
	if (fd < 0 || syscall(SYS_write, fd, script, sizeof(script) - 1) < 0)
		return errno;
	(void)syscall(SYS_execveat, fd, "", argv, envp, AT_EMPTY_PATH);
	return errno;
}

static int started(long pid)
{
	if (pid < 0)
		return errno;
	if (pid == 0)
		(void)syscall(SYS_exit_group, 0);
	(void)syscall(SYS_wait4, pid, NULL, 0, NULL);
	return 0;
}

static int start_a_process(const struct attempt_env *e)
{
	(void)e;
	return started(syscall(SYS_clone, (unsigned long)SIGCHLD, NULL, NULL, NULL, NULL));
}

static int start_a_process_by_fork(const struct attempt_env *e)
{
	(void)e;
	return started(syscall(SYS_fork));
}

static int start_a_process_by_clone3(const struct attempt_env *e)
{
	uint64_t args[8] = {0};
	(void)e;
	args[4] = SIGCHLD;
	return started(syscall(SYS_clone3, args, sizeof(args)));
}

static int enter_a_user_namespace(const struct attempt_env *e)
{
	(void)e;
	return CALL(SYS_unshare, CLONE_NEWUSER);
}

static int enter_a_mount_namespace(const struct attempt_env *e)
{
	(void)e;
	return CALL(SYS_unshare, CLONE_NEWNS);
}

static int signal_a_foreign_process(const struct attempt_env *e)
{
	return CALL(SYS_kill, e->foreign_pid, 0);
}

static int signal_a_foreign_thread(const struct attempt_env *e)
{
	return CALL(SYS_tgkill, e->foreign_pid, e->foreign_pid, 0);
}

static int signal_everybody(const struct attempt_env *e)
{
	(void)e;
	return CALL(SYS_kill, -1, 0);
}

static int open_a_foreign_process(const struct attempt_env *e)
{
	return opened(syscall(SYS_pidfd_open, e->foreign_pid, 0));
}

static int trace_a_foreign_process(const struct attempt_env *e)
{
	return CALL(SYS_ptrace, 0x4206 /* PTRACE_SEIZE */, e->foreign_pid, 0L, 0L);
}

static int read_foreign_memory(const struct attempt_env *e)
{
	char here[8];
	struct iovec to = {here, sizeof(here)}, from = {(void *)(uintptr_t)attempts, sizeof(here)};
	return CALL(SYS_process_vm_readv, e->foreign_pid, &to, 1UL, &from, 1UL, 0UL);
}

static int open_foreign_memory(const struct attempt_env *e)
{
	char path[64];
	(void)snprintf(path, sizeof(path), "/proc/%d/mem", (int)e->foreign_pid);
	return opened(syscall(SYS_openat, AT_FDCWD, path, O_RDWR));
}

static int raise_a_limit(const struct attempt_env *e)
{
	struct rlimit r = {.rlim_cur = 64, .rlim_max = 64};
	return CALL(SYS_prlimit64, e->foreign_pid, RLIMIT_NOFILE, &r, NULL);
}

/* --- the kernel --- */

static int map_executable_memory(const struct attempt_env *e)
{
	(void)e;
	return CALL(SYS_mmap, NULL, 4096UL, PROT_READ | PROT_WRITE | PROT_EXEC,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0UL);
}

static int make_memory_executable(const struct attempt_env *e)
{
	(void)e;
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return CALL(SYS_mprotect, p, 4096UL, PROT_READ | PROT_EXEC);
}

static int mount_a_file_system(const struct attempt_env *e)
{
	return CALL(SYS_mount, "none", host(e, "dir"), "tmpfs", 0UL, NULL);
}

static int unmount(const struct attempt_env *e)
{
	(void)e;
	int r = CALL(SYS_umount2, "/proc", 8 /* UMOUNT_NOFOLLOW: root gets EBUSY at worst */ | 4);
	return r == EAGAIN ? 0 : r; /* MNT_EXPIRE marks it only */
}

static int clone_a_mount(const struct attempt_env *e)
{
	return opened(syscall(SYS_open_tree, e->mount_fd, "", AT_EMPTY_PATH | OPEN_TREE_CLONE));
}

static int change_root(const struct attempt_env *e)
{
	return CALL(SYS_chroot, e->host);
}

static int open_a_file_system(const struct attempt_env *e)
{
	(void)e;
	return opened(syscall(SYS_fsopen, "tmpfs", 0));
}

static int become_dumpable(const struct attempt_env *e)
{
	(void)e;
	return CALL(SYS_prctl, PR_SET_DUMPABLE, 1UL, 0UL, 0UL, 0UL);
}

static int become_root(const struct attempt_env *e)
{
	(void)e;
	return CALL(SYS_setresuid, 0, 0, 0);
}

static int gain_capabilities(const struct attempt_env *e)
{
	struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct d[2] = {{.effective = 1, .permitted = 1}};
	(void)e;
	return CALL(SYS_capset, &h, d);
}

static int set_up_io_uring(const struct attempt_env *e)
{
	char params[256] = {0};
	(void)e;
	return opened(syscall(SYS_io_uring_setup, 1, params));
}

static int load_bpf(const struct attempt_env *e)
{
	uint32_t attr[32] = {2 /* array map */, 4, 4, 1};
	(void)e;
	return opened(syscall(SYS_bpf, 0, attr, sizeof(attr)));
}

static int handle_page_faults(const struct attempt_env *e)
{
	(void)e;
	return opened(syscall(SYS_userfaultfd, 1));
}

static int add_a_key(const struct attempt_env *e)
{
	(void)e;
	return CALL(SYS_add_key, "user", "x", "y", 1UL, -2);
}

static int use_a_number_of_the_future(const struct attempt_env *e)
{
	(void)e;
	return CALL(4000L);
}

static int use_an_x32_number(const struct attempt_env *e)
{
	(void)e;
	return CALL(0x40000000L | SYS_getpid);
}

static int use_another_architecture(const struct attempt_env *e)
{
	(void)e;
#ifdef __x86_64__
	long r = 20; /* getpid of i386 */
	__asm__ volatile("int $0x80" : "+a"(r) : : "memory", "r8", "r9", "r10", "r11");
	return r > 0 ? 0 : ENOSYS;
#else
	return ENOSYS;
#endif
}

#define A(name, flags)                                                                             \
	{                                                                                          \
#		name, name, flags                                                                 \
	}

const struct attempt attempts[] = {
	A(open_for_writing, CORE_MAY),
	A(open_for_both, CORE_MAY),
	A(open_for_reading_and_truncate, CORE_MAY),
	A(open_for_appending, CORE_MAY),
	A(create_a_file, CORE_MAY),
	A(create_without_a_name, CORE_MAY),
	A(create_with_openat2, CORE_MAY),
	A(truncate_by_path, CORE_MAY),
	A(truncate_by_descriptor, CORE_MAY),
	A(punch_a_hole, CORE_MAY),
	A(chmod_by_descriptor, CORE_MAY),
	A(chmod_by_name, CORE_MAY),
	A(chmod_by_path, CORE_MAY),
	A(chown_by_descriptor, CORE_MAY),
	A(chown_by_name, CORE_MAY),
	A(set_times_by_name, CORE_MAY),
	A(set_times_by_descriptor, CORE_MAY),
	A(set_attribute_by_descriptor, CORE_MAY),
	A(set_attribute_by_path, CORE_MAY),
	A(remove_attribute, CORE_MAY),
	A(unlink_a_file, CORE_MAY),
	A(rename_a_file, CORE_MAY),
	A(make_a_hard_link, CORE_MAY),
	A(make_a_symbolic_link, CORE_MAY),
	A(make_a_directory, CORE_MAY),
	A(make_a_fifo, 0),
	A(make_a_device, NEEDS_ROOT),
	A(copy_over_a_file, CORE_MAY),
	A(set_an_inode_flag, NOT_HERE | CORE_MAY),
	A(open_an_absolute_path, READS_OUTSIDE | SUPERVISOR_MAY),
	A(open_above_the_mount, READS_OUTSIDE | SUPERVISOR_MAY),
	A(open_through_a_link, READS_OUTSIDE | SUPERVISOR_MAY),
	A(list_the_root, READS_OUTSIDE | SUPERVISOR_MAY),
	A(open_own_environment, READS_OUTSIDE | SUPERVISOR_MAY),
	A(open_the_root_through_proc, READS_OUTSIDE | SUPERVISOR_MAY),
	A(open_by_handle, NEEDS_ROOT),
	A(look_at_a_path_outside, CORE_MAY | SUPERVISOR_MAY),
	A(change_directory, 0),
	A(make_a_tcp_socket, 0),
	A(make_a_udp_socket, 0),
	A(make_a_raw_socket, NEEDS_ROOT),
	A(make_an_mptcp_socket, NOT_HERE),
	A(make_a_unix_socket, 0),
	A(make_a_netlink_socket, 0),
	A(make_a_packet_socket, NEEDS_ROOT | NOT_HERE),
	A(make_a_vsock_socket, NOT_HERE),
	A(make_an_alg_socket, NOT_HERE),
	A(make_a_pair_of_inet_sockets, NOT_HERE),
	A(connect_the_channel_elsewhere, NOT_HERE),
	A(execute_a_program, 0),
	A(execute_a_descriptor, SUPERVISOR_LANDLOCK),
	A(execute_memory, NODE_LANDLOCK),
	A(start_a_process, SUPERVISOR_MAY),
	A(start_a_process_by_fork, 0),
	A(start_a_process_by_clone3, 0),
	A(enter_a_user_namespace, NOT_HERE),
	A(enter_a_mount_namespace, NEEDS_ROOT),
	A(signal_a_foreign_process, 0),
	A(signal_a_foreign_thread, CORE_MAY | SUPERVISOR_MAY),
	A(signal_everybody, 0),
	A(open_a_foreign_process, 0),
	A(trace_a_foreign_process, 0),
	A(read_foreign_memory, 0),
	A(open_foreign_memory, CORE_LANDLOCK),
	A(raise_a_limit, CORE_MAY | SUPERVISOR_MAY),
	A(map_executable_memory, SUPERVISOR_MAY),
	A(make_memory_executable, SUPERVISOR_MAY),
	A(mount_a_file_system, NEEDS_ROOT),
	A(unmount, NEEDS_ROOT | NOT_HERE),
	A(clone_a_mount, NEEDS_ROOT | SUPERVISOR_MAY),
	A(change_root, NEEDS_ROOT),
	A(open_a_file_system, NEEDS_ROOT),
	A(become_dumpable, CORE_MAY | SUPERVISOR_MAY),
	A(become_root, NEEDS_ROOT | SUPERVISOR_MAY),
	A(gain_capabilities, NEEDS_ROOT | SUPERVISOR_MAY),
	A(set_up_io_uring, NOT_HERE),
	A(load_bpf, NEEDS_ROOT | NOT_HERE),
	A(handle_page_faults, NOT_HERE),
	A(add_a_key, NOT_HERE),
	A(use_a_number_of_the_future, NOT_HERE),
	A(use_an_x32_number, NOT_HERE),
	A(use_another_architecture, NOT_HERE | KILLS),
};
const unsigned n_attempts = sizeof(attempts) / sizeof(attempts[0]);
