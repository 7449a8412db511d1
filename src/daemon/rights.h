/*
 * The rights of supervisor, worker and journal: the tables of their system calls and the steps that
 * drop everything else. Linked into these programs (and into the tests that try them).
 */
#ifndef CLOISTER_DAEMON_RIGHTS_H
#define CLOISTER_DAEMON_RIGHTS_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

/* Where things are at a program's start. */
enum {
	SUPERVISOR_FD_CORE = 3,
	SUPERVISOR_FD_WORKER_EXE = 4,
	WORKER_FD_CORE = 3,
	WORKER_FD_MOUNTS = 4,
	JOURNAL_FD_CORE = 3,
	JOURNAL_FD_LOG = 4,
	JOURNAL_FD_KEY = 5,
	JOURNAL_FD_PAGE = 6,
};

/* The uid and gid of workers of a tree that runs as root: an owner of nothing. */
enum { WORKER_UID = 65534, WORKER_GID = 65534 };

struct supervisor_rights {
	int landlock_abi; /* 0: none */
};

/* No writing and no making anywhere, exec of the worker only, no network; inherited by workers. */
int supervisor_restrict(const struct supervisor_rights *r, struct err *err) _must_check_;

/* The path of this program's loader, which those it starts need too; NULL when linked statically.
 */
const char *supervisor_loader(void);

struct worker_rights {
	int landlock_abi; /* 0: none */
	unsigned n_mounts;
	int64_t memory; /* bytes of address space; 0: as inherited */
	int64_t cpu_s;  /* 0: as inherited */
	int64_t output; /* largest file that it may grow (only memfds of core can be written) */
};

/* The identity: as root an owner of nothing that keeps only CAP_DAC_READ_SEARCH. *ret_own_user: the
 * uid was changed. */
int worker_drop_identity(bool *ret_own_user, struct err *err) _must_check_;
/* Limits of the whole process; after them no process or thread can be made by an ordinary uid. */
int worker_limit(const struct worker_rights *r, struct err *err) _must_check_;
/* Landlock and system calls of the calling thread: each thread calls it for itself. */
int worker_restrict(const struct worker_rights *r, struct err *err) _must_check_;

/* --- what they are made of (rights_common.c) --- */

/* Keep these of the first 32 capabilities and no other. */
int rights_capabilities(uint32_t low, struct err *err) _must_check_;
/* Nothing that is executed later can have a capability either. */
void rights_empty_bounding_set(void);
/* Lower a limit, or leave it where it is already lower. */
int rights_limit(int which, int64_t value, struct err *err) _must_check_;

struct journal_rights {
	int landlock_abi; /* 0: none */
};

/* Afterwards files can be made, read, written and cut below JOURNAL_FD_LOG, and core answered. No
 * other file, no network, no program, no process; as root no capability. */
int journal_restrict(const struct journal_rights *r, struct err *err) _must_check_;

#endif
