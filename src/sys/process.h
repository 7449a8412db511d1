/*
 * Starting and ending processes, and passing descriptors between them.
 *
 * clone3(2) CLONE_PIDFD, pidfd_send_signal(2), close_range(2), PR_SET_PDEATHSIG, unix(7)
 * SCM_RIGHTS. Every process started here is killed by the kernel when the thread that started it
 * ends, unless it is to survive.
 */
#ifndef CLOISTER_SYS_PROCESS_H
#define CLOISTER_SYS_PROCESS_H

#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { PROCESS_FDS_MAX = 64 };

struct process {
	pid_t pid;
	int pidfd; /* -1: none */
};

struct process_spec {
	int exec_fd;             /* the executable, from open(O_PATH) or open(O_RDONLY) */
	const char *const *argv; /* NULL-terminated */
	const char *const *envp; /* NULL-terminated; the environment is never inherited */
	const int *fds;          /* become 3, 4, ...; every other descriptor above 2 is closed */
	unsigned n_fds;          /* at most PROCESS_FDS_MAX */
	int null_fd;             /* becomes 0, 1 and 2; open /dev/null for reading and writing */
	bool keep_stderr;        /* 2 stays as it is */
	bool survives; /* is not killed with us: it ends by itself once its channel is closed */
};

/* Start; returns when the exec has happened. Errors before the exec are reported here (ERR_LIMIT,
 * ERR_NO_MEMORY, ERR_IO, ERR_NOT_FOUND when the executable cannot be executed). */
int process_start(
	const struct process_spec *spec, struct process *ret, struct err *err) _must_check_;

/* Signal by pidfd; a process that has ended already is no error. */
void process_kill(const struct process *p, int signo);

/* Reap. 1: ended, *ret_status as of waitpid(2); 0: still running after timeout_ms (< 0: wait). */
int process_wait(struct process *p, int timeout_ms, int *ret_status);
void process_done(struct process *p); /* close the pidfd; does not kill */

/* "exited with status 3", "was killed by signal 31 (Bad system call)". */
void process_describe(int status, char *out, size_t cap);

/* Send one packet with descriptors (borrowed). ERR_BUSY when a non-blocking socket is full,
 * ERR_UNAVAILABLE when the peer is gone. */
int packet_send(int sock, const void *p, size_t n, const int *fds, unsigned n_fds, bool block,
	struct err *err) _must_check_;

/*
 * Receive one packet. > 0: its length; descriptors received are in fds[0..*n_fds) (close-on-exec,
 * owned by the caller), *n_fds is the room on entry. 0: the peer is gone. ERR_BUSY: nothing there
 * (block false). ERR_PARSE: longer than cap, or more descriptors than room (all are closed).
 */
int packet_recv(int sock, void *p, size_t cap, int *fds, unsigned *n_fds, bool block,
	struct err *err) _must_check_;

/* SOCK_SEQPACKET, close-on-exec. */
int packet_pair(int ret[2], struct err *err) _must_check_;

/* A number among a program's arguments: decimal digits, at most `max`. -1: it is not. */
int64_t process_argument(const char *text, int64_t max);

/* The process cannot be traced or dumped by others of its uid. */
int process_undumpable(struct err *err) _must_check_;

#endif
