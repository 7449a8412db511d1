/*
 * Stage two: policy decides the call contract, and what resolving found wrong may be told.
 * The only maker of `struct allowed`.
 */
#include "call/stages.h"

#include <stdio.h>

struct allowed {
	struct tool_call *tc;
	bool running;
};

void question_of(struct tool_call *tc, struct decide_target *asked, const struct changeset *effects,
	struct decide_request *ret)
{
	for (unsigned i = 0; i < tc->n_targets; i++)
		asked[i] = tc->targets[i]->asked;
	*ret = (struct decide_request){
		.principal = tc->principal,
		.action = tc->tool->name,
		.group = tc->tool->group,
		.session = session_id(tc->session),
		.targets = asked,
		.n_targets = tc->n_targets,
		.context = {.profile = tc->env->profile,
			.tier = tc->tool->group == GROUP_EXECUTE ? "kernel" : "native",
			.turn = tc->turn,
			.arguments = tc->args,
			.bytes = effects ? changeset_bytes_delta(effects) : -1,
			.effects = effects},
	};
}

int refusal_of(const struct decision *d, struct err *err)
{
	if (d->verdict == VERDICT_HOLD)
		(void)err_set(err, ERR_HELD, "the call waits for approval: %s", d->reason);
	else
		(void)err_set(err, ERR_DENIED, "refused by policy: %s", d->reason);
	return d->instead[0] ? err_hint(err, "%s", d->instead) : -(int)err->code;
}

/* The first target that did not resolve decides the call's error, now that policy has allowed its
 * spelling. */
static int tell_resolve_failures(const struct tool_call *tc, struct err *err)
{
	for (unsigned i = 0; i < tc->n_targets; i++)
		if (tc->targets[i]->failed < 0) {
			*err = tc->targets[i]->why;
			return tc->targets[i]->failed;
		}
	return 0;
}

int stage_decide(
	struct prepared *take, struct allowed **ret, struct decision *ret_decision, struct err *err)
{
	_cleanup_(cleanup_prepared_free) struct prepared *p = take;
	struct tool_call *tc = prepared_call(p);
	struct decide_request q;
	_cleanup_free_ struct decide_target *asked = calloc(tc->n_targets + 1, sizeof(*asked));
	_cleanup_(cleanup_allowed_free) struct allowed *a = calloc(1, sizeof(*a));
	if (!asked || !a)
		return err_oom(err);
	question_of(tc, asked, NULL, &q);
	decide(tc->env->decider, &q, ret_decision);
	if (ret_decision->verdict != VERDICT_ALLOW)
		return refusal_of(ret_decision, err);
	int r = tell_resolve_failures(tc, err);
	if (r < 0)
		return r;
	a->tc = tc;
	*ret = take_ptr(a);
	return 0;
}

struct tool_call *allowed_call(struct allowed *a)
{
	return a->tc;
}

void allowed_free(struct allowed *a)
{
	free(a);
}

/* --- running: needs an `allowed`, which only the code above makes -------------------------------
 */

static int resume_with_answer(struct tool_call *tc, struct err *err)
{
	_cleanup_(cleanup_worker_answer_free) struct worker_answer *answer = NULL;
	int r = worker_take(tc->worker, tc->job, &answer, err);
	if (r == 0)
		return TOOL_PENDING;
	tc->job_running = false;
	return tc->tool->resume(tc, answer, err);
}

int stage_run(struct allowed *a, struct err *err)
{
	struct tool_call *tc = a->tc;
	if (!a->running) {
		a->running = true;
		return tc->tool->run(tc, err);
	}
	if (tc->job_running)
		return resume_with_answer(tc, err);
	if (tc->follow_fd >= 0)
		return tc->tool->resume(tc, NULL, err);
	return TOOL_DONE;
}
