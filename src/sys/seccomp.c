/*
 * From a table to a seccomp program: see seccomp.h.
 *
 * Layout: check of the architecture, load of the number, then a binary search over runs of
 * neighbouring numbers with the same fate. Jumps of classic BPF reach 255 instructions, so every
 * comparison jumps over at most one unconditional jump (32-bit reach).
 */
#include "sys/seccomp.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
#	define AUDIT_ARCH_HERE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#	define AUDIT_ARCH_HERE AUDIT_ARCH_AARCH64
#else
#	error "add this architecture's AUDIT_ARCH value"
#endif

/* A run [first, next run's first) of numbers that share one row's fate. */
struct run {
	uint32_t first;
	const struct seccomp_row *row;
};

struct compiler {
	struct run runs[2 * SECCOMP_ROWS_MAX + 2];
	unsigned n_runs;
	struct seccomp_program *out;
	bool full;
};

static void emit(struct compiler *c, struct sock_filter insn)
{
	if (c->out->len == SECCOMP_PROGRAM_MAX)
		c->full = true;
	else
		c->out->code[c->out->len++] = insn;
}

static void emit_return(struct compiler *c, uint32_t value)
{
	emit(c, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, value));
}

static uint32_t action_of(const struct seccomp_row *row)
{
	switch ((enum seccomp_do)row->act) {
	case SECCOMP_ALLOW: return SECCOMP_RET_ALLOW;
	case SECCOMP_REFUSE: return SECCOMP_RET_ERRNO | EPERM;
	case SECCOMP_KILL: return SECCOMP_RET_KILL_PROCESS;
	case SECCOMP_ABSENT:
	case SECCOMP_IF_EQ:
	case SECCOMP_IF_NONE:
	case SECCOMP_IF_ONLY:
	case SECCOMP_IF_ALL:
	case SECCOMP_IF_LISTED:
	case SECCOMP_UNLESS_LISTED: break;
	}
	return SECCOMP_RET_ERRNO | ENOSYS;
}

static bool conditional(const struct seccomp_row *row)
{
	return row->act >= SECCOMP_IF_EQ;
}

/* Both halves of the argument must pass, or EPERM. */
static void emit_condition(struct compiler *c, const struct seccomp_row *row)
{
	for (unsigned half = 0; half < 2; half++) {
		uint32_t v = (uint32_t)(row->value >> (32 * half));
		uint32_t off = (uint32_t)offsetof(struct seccomp_data, args) + 8u * row->arg +
			       4u * half; /* little-endian: low half first */
		emit(c, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, off));
		if (row->act == SECCOMP_IF_ALL)
			emit(c, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, v));
		if (row->act == SECCOMP_IF_EQ || row->act == SECCOMP_IF_ALL)
			emit(c, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, v, 1, 0));
		else
			emit(c, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K,
					row->act == SECCOMP_IF_ONLY ? ~v : v, 0, 1));
		emit_return(c, SECCOMP_RET_ERRNO | EPERM);
	}
	emit_return(c, SECCOMP_RET_ALLOW);
}

/* One comparison a value, the one that hits jumps over the rest and over the other outcome. */
static void emit_list(struct compiler *c, const struct seccomp_row *row)
{
	uint32_t hit = SECCOMP_RET_ALLOW, miss = SECCOMP_RET_ERRNO | EPERM;
	if (row->act == SECCOMP_UNLESS_LISTED) {
		hit = SECCOMP_RET_ERRNO | EPERM;
		miss = SECCOMP_RET_ALLOW;
	}
	uint32_t off = (uint32_t)offsetof(struct seccomp_data, args) + 8u * row->arg;
	emit(c, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, off));
	for (unsigned i = 0; i < row->n_list; i++)
		emit(c, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, row->list[i],
				(uint8_t)(row->n_list - i), 0));
	emit_return(c, miss);
	emit_return(c, hit);
}

static void emit_leaf(struct compiler *c, const struct seccomp_row *row)
{
	if (row->act >= SECCOMP_IF_LISTED)
		emit_list(c, row);
	else if (conditional(row))
		emit_condition(c, row);
	else
		emit_return(c, action_of(row));
}

/* Depth is log2 of the table: at most 10. */
static void emit_search(struct compiler *c, unsigned lo, unsigned hi)
{
	if (hi - lo == 1) {
		emit_leaf(c, c->runs[lo].row);
		return;
	}
	unsigned mid = lo + (hi - lo) / 2;
	/* nr >= runs[mid].first: over the next jump, into it otherwise being the left half */
	emit(c, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, c->runs[mid].first, 0, 1));
	unsigned jump = c->out->len;
	emit(c, (struct sock_filter)BPF_STMT(BPF_JMP | BPF_JA, 0));
	emit_search(c, lo, mid);
	if (c->full)
		return;
	c->out->code[jump].k = c->out->len - jump - 1;
	emit_search(c, mid, hi);
}

static int by_number(const void *a, const void *b)
{
	const struct seccomp_row *const *x = a, *const *y = b;
	return (*x)->nr < (*y)->nr ? -1 : (*x)->nr > (*y)->nr;
}

static void add_run(struct compiler *c, uint32_t first, const struct seccomp_row *row)
{
	if (c->n_runs && c->runs[c->n_runs - 1].first == first)
		c->n_runs--; /* an empty gap between neighbours */
	const struct seccomp_row *last = c->n_runs ? c->runs[c->n_runs - 1].row : NULL;
	if (last && !conditional(row) && !conditional(last) && action_of(row) == action_of(last))
		return;
	c->runs[c->n_runs++] = (struct run){first, row};
}

/* What an unlisted number gets. */
static const struct seccomp_row refused = {.act = SECCOMP_REFUSE}, absent = {.act = SECCOMP_ABSENT};

static void add_gap(struct compiler *c, uint32_t first)
{
	add_run(c, first, first <= SECCOMP_KNOWN_MAX ? &refused : &absent);
}

static int make_runs(
	struct compiler *c, const struct seccomp_row *rows, unsigned n, struct err *err)
{
	const struct seccomp_row *sorted[SECCOMP_ROWS_MAX];
	bool beyond = false;
	for (unsigned i = 0; i < n; i++)
		sorted[i] = &rows[i];
	qsort(sorted, n, sizeof(sorted[0]), by_number);
	add_gap(c, 0);
	for (unsigned i = 0; i < n; i++) {
		if (i && sorted[i]->nr == sorted[i - 1]->nr)
			return err_set(err, ERR_INVALID_ARGUMENT,
				"system call %u is listed twice in a filter", sorted[i]->nr);
		if (!beyond && sorted[i]->nr > SECCOMP_KNOWN_MAX) {
			add_gap(c, SECCOMP_KNOWN_MAX + 1);
			beyond = true;
		}
		add_run(c, sorted[i]->nr, sorted[i]);
		add_gap(c, sorted[i]->nr + 1);
	}
	if (!beyond)
		add_gap(c, SECCOMP_KNOWN_MAX + 1);
	return 0;
}

int seccomp_compile(
	const struct seccomp_row *rows, unsigned n, struct seccomp_program *ret, struct err *err)
{
	if (n > SECCOMP_ROWS_MAX)
		return err_set(err, ERR_LIMIT, "a filter has at most %d rows", SECCOMP_ROWS_MAX);
	for (unsigned i = 0; i < n; i++)
		if (rows[i].n_list > SECCOMP_LIST_MAX)
			return err_set(
				err, ERR_LIMIT, "a row lists at most %d values", SECCOMP_LIST_MAX);
	struct compiler c = {.out = ret};
	int r = make_runs(&c, rows, n, err);
	if (r < 0)
		return r;
	ret->len = 0;
	emit(&c, (struct sock_filter)BPF_STMT(
			 BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)));
	emit(&c, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_HERE, 1, 0));
	emit_return(&c, SECCOMP_RET_KILL_PROCESS);
	emit(&c, (struct sock_filter)BPF_STMT(
			 BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)));
	emit_search(&c, 0, c.n_runs);
	if (c.full)
		return err_set(err, ERR_LIMIT, "a filter has at most %d instructions",
			SECCOMP_PROGRAM_MAX);
	return 0;
}

int seccomp_install(const struct seccomp_program *p, struct err *err)
{
	struct sock_fprog prog = {
		.len = (unsigned short)p->len,
		.filter = (struct sock_filter *)(uintptr_t)p->code,
	};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return err_sys(err, errno, "giving up new privileges");
	if (syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog) < 0) {
		(void)err_sys(err, errno, "installing a system call filter");
		err->code = ERR_UNAVAILABLE;
		return -ERR_UNAVAILABLE;
	}
	return 0;
}

int seccomp_apply(const struct seccomp_row *rows, unsigned n, struct err *err)
{
	struct seccomp_program program;
	int r = seccomp_compile(rows, n, &program, err);
	return r < 0 ? r : seccomp_install(&program, err);
}
