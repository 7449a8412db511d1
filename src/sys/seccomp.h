/*
 * seccomp(2) filters for our own processes, described as data.
 *
 * A role is a table of what it may do: system call number -> what happens. The compiler (pure,
 * testable without a kernel) sorts it and emits a binary search, since the load time of a filter
 * follows its length and is paid at every start. Everything that is not in the table is refused
 * with EPERM, except numbers that did not exist when this was written: they give ENOSYS, as a
 * kernel without the call would, so that libc falls back. Another architecture's numbers kill the
 * process.
 *
 * Rows without argument rules let the kernel answer from its bitmap without running the filter, so
 * the calls of hot loops carry none where another fence says the same.
 */
#ifndef CLOISTER_SYS_SECCOMP_H
#define CLOISTER_SYS_SECCOMP_H

#include "base/err.h"

#include <linux/filter.h>
#include <stdint.h>

enum {
	SECCOMP_ROWS_MAX = 384,
	SECCOMP_PROGRAM_MAX = 2048,
	SECCOMP_LIST_MAX = 16,
	SECCOMP_KNOWN_MAX = 462, /* the newest number that is refused by name: mseal, Linux 6.10 */
};

enum seccomp_do {
	SECCOMP_ALLOW = 0,
	SECCOMP_REFUSE, /* EPERM: what unlisted numbers up to SECCOMP_KNOWN_MAX get */
	SECCOMP_ABSENT, /* ENOSYS: what those beyond get */
	SECCOMP_KILL,
	/* Allow when the condition on one 64-bit argument holds, else EPERM. */
	SECCOMP_IF_EQ,   /* arg == value */
	SECCOMP_IF_NONE, /* (arg & value) == 0 */
	SECCOMP_IF_ONLY, /* (arg & ~value) == 0 */
	SECCOMP_IF_ALL,  /* (arg & value) == value */
	/* Allow when the low 32 bits of one argument, which are all that the kernel looks at in
	 * the calls that these are for, are (not) among the row's `list`. */
	SECCOMP_IF_LISTED,
	SECCOMP_UNLESS_LISTED,
};

struct seccomp_row {
	uint32_t nr; /* __NR_x; each at most once */
	uint8_t act; /* enum seccomp_do */
	uint8_t arg; /* 0..5, for the conditions */
	uint64_t value;
	const uint32_t *list; /* of `n_list` values, at most SECCOMP_LIST_MAX */
	uint8_t n_list;
};

struct seccomp_program {
	struct sock_filter code[SECCOMP_PROGRAM_MAX];
	unsigned len;
};

/* Compile a table. ERR_INVALID_ARGUMENT: a number twice; ERR_LIMIT: too long. */
int seccomp_compile(const struct seccomp_row *rows, unsigned n, struct seccomp_program *ret,
	struct err *err) _must_check_;

/* Install a program for the calling thread and its children for good; sets no_new_privs. */
int seccomp_install(const struct seccomp_program *p, struct err *err) _must_check_;

/* Both in one. */
int seccomp_apply(const struct seccomp_row *rows, unsigned n, struct err *err) _must_check_;

#endif
