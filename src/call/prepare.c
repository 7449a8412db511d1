/*
 * Stage one: arguments are checked against the tool's table, defaults are known, targets are
 * resolved to descriptors and identities. Nothing that is learned here reaches an answer before
 * policy has spoken.
 */
#include "call/stages.h"

struct prepared {
	struct tool_call *tc;
};

static void targets_clear(struct tool_call *tc)
{
	for (unsigned i = 0; i < tc->n_targets; i++) {
		if (tc->targets[i]->failed == 0)
			node_done(&tc->targets[i]->node);
		free(tc->targets[i]);
	}
	tc->n_targets = 0;
}

/* A call that is prepared anew after a lost race starts from nothing. */
static int start_afresh(struct tool_call *tc, struct err *err)
{
	if (tc->tool->done && tc->state)
		tc->tool->done(tc);
	free(take_ptr(tc->state));
	tc->follow_fd = -1;
	targets_clear(tc);
	view_free(take_ptr(tc->view));
	buf_clear(&tc->result);
	return view_new(tc->ws, &tc->view, err);
}

int stage_prepare(struct tool_call *tc, struct prepared **ret, struct err *err)
{
	int r = fields_check(tc->tool->args, tc->args, err);
	if (r < 0)
		return r;
	if ((r = start_afresh(tc, err)) < 0 || (r = tc->tool->prepare(tc, err)) < 0)
		return r;
	struct prepared *p = malloc(sizeof(*p));
	if (!p)
		return err_oom(err);
	p->tc = tc;
	*ret = p;
	return 0;
}

struct tool_call *prepared_call(struct prepared *p)
{
	return p->tc;
}

void prepared_free(struct prepared *p)
{
	free(p);
}
