/* Inside of the doctor: its one list of probes and what they share. */
#ifndef CLOISTER_SESSION_DOCTOR_IMPL_H
#define CLOISTER_SESSION_DOCTOR_IMPL_H

#include "session/doctor.h"

/* PROBE(function, "name", required, "what needs it", "what to do") */
#define DOCTOR_PROBES(PROBE)                                                                       \
	PROBE(kernel, "kernel", true, "everything", "use Linux 6.1 or newer")                      \
	PROBE(proc, "proc", true, "changing modes and linking files by descriptor",                \
		"mount procfs at /proc")                                                           \
	PROBE(state, "state_directory", true, "sessions", "see the detail; modes have to be 0700") \
	PROBE(same_mount, "store_on_base_mount", false,                                            \
		"a store outside the workspaces; without it each has a hidden .cloister",          \
		"put the state directory and the base of workspaces on one mount")                 \
	PROBE(openat2, "openat2", true, "keeping every path inside its workspace",                 \
		"use Linux 5.6 or newer; a container's seccomp profile may hide it")               \
	PROBE(tmpfile, "o_tmpfile", false, "staged files without names",                           \
		"keep workspaces on ext4, xfs, btrfs or tmpfs")                                    \
	PROBE(exchange, "rename_exchange", true, "replacing a file as one step",                   \
		"keep workspaces on ext4, xfs, btrfs or tmpfs")                                    \
	PROBE(ofd_locks, "ofd_locks", true, "one writer per workspace",                            \
		"keep workspaces on a local file system")                                          \
	PROBE(birth_time, "birth_time", false, "telling a session's directory from a later one",   \
		"keep workspaces on ext4, xfs, btrfs or tmpfs")                                    \
	PROBE(xattr, "extended_attributes", false,                                                 \
		"keeping attributes and ACLs of replaced files",                                   \
		"mount the file system with user_xattr")                                           \
	PROBE(reflink, "reflink", false, "copies and forks that share their blocks",               \
		"keep workspaces on btrfs, or on xfs made with reflink")                           \
	PROBE(sync_cost, "fdatasync", true, "durable writes", "see the detail")                    \
	PROBE(sqlite, "sqlite_wal", true, "the registry of sessions",                              \
		"keep the state directory on a local file system")                                 \
	PROBE(memfd, "memfd_seals", true, "handing bulk content between processes",                \
		"use a kernel with memfd_create")                                                  \
	PROBE(pidfd, "pidfd", true, "ending processes without mistaking them",                     \
		"use Linux 5.4 or newer")                                                          \
	PROBE(landlock, "landlock", true, "fencing core and workers off the rest of the disk",     \
		"boot with lsm=landlock,...; or start with --single-user")                         \
	PROBE(seccomp, "seccomp", true, "taking system calls away from each role",                 \
		"use a kernel with CONFIG_SECCOMP_FILTER")                                         \
	PROBE(userns, "user_namespaces", false, "real commands for an ordinary user",              \
		"sysctl kernel.unprivileged_userns_clone=1, user.max_user_namespaces > 0")         \
	PROBE(overlay, "overlay_in_userns", false, "real commands on a copy-on-write view",        \
		"use Linux 5.11 or newer with overlayfs")                                          \
	PROBE(idmap, "idmapped_mounts", false, "workspaces whose files keep their owner, as root", \
		"needs root and a file system that allows it (ext4, xfs, btrfs)")                  \
	PROBE(own_users, "own_users", false,                                                       \
		"a user of its own for the process that talks to clients, and for workers",        \
		"start cloister serve as root; else system calls and Landlock hold them apart")    \
	PROBE(cgroup2, "cgroup2", false, "limits on memory and processes of real commands",        \
		"delegate a cgroup v2 subtree (systemd: Delegate=yes)")                            \
	PROBE(cgroup1, "cgroup1", false, "the same limits where only cgroup v1 is mounted",        \
		"prefer cgroup v2; v1 needs the memory and pids controllers and root")

/* What probes may use. Descriptors are -1 when the state directory could not be had. */
struct doctor {
	int state_fd, base_fd;
	int state_scratch, base_scratch; /* directories that are removed at the end */
	struct err state_err;
};

/* One probe; sets outcome and detail. */
typedef void (*doctor_probe)(struct doctor *d, struct doctor_check *c);

#define PROBE(fn, name, required, needed_by, advice)                                               \
	void probe_##fn(struct doctor *d, struct doctor_check *c);
DOCTOR_PROBES(PROBE)
#undef PROBE

void doctor_ok(struct doctor_check *c, const char *fmt, ...) _printf_(2, 3);
/* DOCTOR_FAILED when it is required, else DOCTOR_MISSING. errnum 0: none. */
void doctor_not(struct doctor_check *c, int errnum, const char *fmt, ...) _printf_(3, 4);
void doctor_skip(struct doctor_check *c, const char *why);

/*
 * Run in a child that is killed after five seconds: what it does to itself is gone with it. The
 * function returns 0 or an errno value; that is the result here, ETIME when it took too long,
 * EPROTO when it died.
 */
int doctor_in_child(int (*fn)(void *ctx), void *ctx);

#endif
