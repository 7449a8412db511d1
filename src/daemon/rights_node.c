/*
 * The rights of a node's supervisor. Its children inherit them, so its system calls are those of
 * all roles together; what none of them has is lost to the whole node: sockets, mounts, tracing,
 * modules, clocks, keys. What the supervisor itself could do with calls that only its children use
 * is bounded by Landlock: it writes below the state and executes the roles' programs.
 */
#include "daemon/rights_node.h"
#include "daemon/rights.h"
#include "sys/landlock.h"

#include <sys/stat.h>
#include <sys/syscall.h>

/* Core makes the file of the registry once, before it drops the rest. */
static const struct seccomp_row node_calls[] = {
	{.nr = __NR_mknodat, .act = SECCOMP_IF_EQ, .arg = 2, .value = S_IFREG | 0600},
};

struct table {
	struct seccomp_row rows[SECCOMP_ROWS_MAX];
	unsigned n;
};

/* Without a condition beats with one; between two conditions the supervisor's, which comes first,
 * is the wider. */
static int add(struct table *t, const struct seccomp_row *rows, unsigned n, struct err *err)
{
	for (unsigned i = 0; i < n; i++) {
		unsigned j = 0;
		while (j < t->n && t->rows[j].nr != rows[i].nr)
			j++;
		if (j < t->n && rows[i].act != SECCOMP_ALLOW)
			continue;
		if (j == SECCOMP_ROWS_MAX)
			return err_set(
				err, ERR_LIMIT, "more than %d system calls", SECCOMP_ROWS_MAX);
		t->rows[j] = rows[i];
		t->n = MAX(t->n, j + 1);
	}
	return 0;
}

static int system_calls(struct err *err)
{
	static struct table all;
	const struct seccomp_row *(*const tables[])(unsigned *) = {
		supervisor_seccomp, core_seccomp, front_seccomp};
	for (unsigned i = 0; i < ARRAY_LEN(tables); i++) {
		unsigned n;
		const struct seccomp_row *rows = tables[i](&n);
		int r = add(&all, rows, n, err);
		if (r < 0)
			return r;
	}
	int r = add(&all, node_calls, ARRAY_LEN(node_calls), err);
	return r < 0 ? r : seccomp_apply(all.rows, all.n, err);
}

int node_restrict(const struct node_rights *r, struct err *err)
{
	struct landlock_rule rules[LANDLOCK_RULES_MAX];
	unsigned n = 0;
	BUG_ON(r->n_write_fds + r->n_exec_fds > LANDLOCK_RULES_MAX);
	for (unsigned i = 0; i < r->n_write_fds; i++)
		rules[n++] = (struct landlock_rule){r->write_fds[i], LANDLOCK_ALLOW_WRITE};
	for (unsigned i = 0; i < r->n_exec_fds; i++)
		rules[n++] = (struct landlock_rule){r->exec_fds[i], LANDLOCK_ALLOW_EXEC};
	const struct landlock_plan plan = {
		.abi = r->landlock_abi,
		.handle = LANDLOCK_ALLOW_WRITE | LANDLOCK_ALLOW_EXEC,
		.no_network = true,
		.rules = rules,
		.n_rules = n,
	};
	int e = landlock_apply(&plan, err);
	return e < 0 ? e : system_calls(err);
}
