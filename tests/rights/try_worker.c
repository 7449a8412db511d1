/*
 * A worker with the real one's life and rights that does not serve but tries: the pattern of a
 * search names an attempt, the answer is what the kernel said.
 */
#include "attempts.h"
#include "daemon/rights.h"
#include "daemon/worker_role.h"

#include <stdio.h>
#include <string.h>

static int attempt_named(struct str name, const struct attempt_env *env)
{
	for (unsigned i = 0; i < n_attempts; i++)
		if (str_eq_c(name, attempts[i].name))
			return attempts[i].run(env);
	return -1;
}

/* A search whose include patterns are the host path and the foreign pid. */
static int serve_try(struct worker_host *h, struct msg_in packet, const int *fds, unsigned n_fds,
	struct err *err)
{
	enum msg_type type;
	struct msg_in body;
	struct msg_search m;
	char host[512], pid[32];
	(void)fds;
	(void)n_fds;
	int r = msg_next(&packet, MSG_WORKER, &type, &body, err);
	if (r <= 0 || type != MSG_T_SEARCH || (r = msg_search_get(body, &m, err)) < 0)
		return r < 0 ? r : err_set(err, ERR_PARSE, "not a try");
	(void)snprintf(host, sizeof(host), "%.*s", (int)m.include.v[0].n, m.include.v[0].p);
	(void)snprintf(pid, sizeof(pid), "%.*s", (int)m.include.v[1].n, m.include.v[1].p);
	const struct attempt_env env = {.mount_fd = h->mount_fds[0],
		.host = host,
		.foreign_pid = (pid_t)atoi(pid),
		.channel = WORKER_FD_CORE};
	char text[32];
	(void)snprintf(text, sizeof(text), "%d", attempt_named(m.pattern, &env));
	const struct msg_failed answer = {
		.id = m.id, .code = ERR_DENIED, .text = str_of(text), .hint = STR("")};
	msg_out_clear(h->out);
	BUG_ON(!msg_failed_put(h->out, &answer));
	return worker_flush(h, err);
}

int main(int argc, char **argv)
{
	worker_role(argc, argv, serve_try);
}
