/*
 * The last stages: the finished view becomes a change set, policy decides its effects, core
 * publishes it. The only maker of `struct publishable`.
 */
#include "call/stages.h"

#include "codec/json_write.h"

struct changed {
	struct tool_call *tc;
	struct changeset *set;
};

struct publishable {
	struct tool_call *tc;
	struct changeset *set;
	const struct decision *decision; /* during stage_commit() */
};

void changed_free(struct changed *c)
{
	if (!c)
		return;
	changeset_free(c->set);
	free(c);
}

void publishable_free(struct publishable *p)
{
	if (!p)
		return;
	changeset_free(p->set);
	free(p);
}

struct tool_call *changed_call(struct changed *c)
{
	return c->tc;
}

struct changeset *changed_set(struct changed *c)
{
	return c->set;
}

int stage_finish(struct allowed *take, struct changed **ret, struct err *err)
{
	_cleanup_(cleanup_allowed_free) struct allowed *a = take;
	_cleanup_(cleanup_changed_free) struct changed *c = calloc(1, sizeof(*c));
	if (!c)
		return err_oom(err);
	c->tc = allowed_call(a);
	if (c->tc->tool->group != GROUP_READ) {
		int r = view_finish(c->tc->view, &c->set, err);
		if (r < 0)
			return r;
	}
	*ret = take_ptr(c);
	return 0;
}

static int decide_effects(struct changed *c, struct decision *ret_decision, struct err *err)
{
	struct decide_request q;
	_cleanup_free_ struct decide_target *asked = calloc(c->tc->n_targets + 1, sizeof(*asked));
	if (!asked)
		return err_oom(err);
	question_of(c->tc, asked, c->set, &q);
	decide(c->tc->env->decider, &q, ret_decision);
	return ret_decision->verdict == VERDICT_ALLOW ? 0 : refusal_of(ret_decision, err);
}

int stage_effects(struct changed *take, struct publishable **ret, struct decision *ret_decision,
	struct err *err)
{
	_cleanup_(cleanup_changed_free) struct changed *c = take;
	if (c->set && changeset_count(c->set) > 0) {
		int r = decide_effects(c, ret_decision, err);
		if (r < 0)
			return r;
	}
	struct publishable *p = calloc(1, sizeof(*p));
	if (!p)
		return err_oom(err);
	p->tc = c->tc;
	p->set = take_ptr(c->set);
	*ret = p;
	return 0;
}

static bool is_dry_run(const struct tool_call *tc)
{
	return json_is_true(arg_get(tc->args, "dry_run"));
}

enum { DIFF_MAX = 256 * 1024 };

/* A dry run stops with the change set and its diff. */
static int report_dry_run(
	struct publishable *p, const struct buf *diff, bool truncated, struct err *err)
{
	struct tool_call *tc = p->tc;
	int r;
	if (tc->tool->report && (r = tc->tool->report(tc, p->set, err)) < 0)
		return r;
	jw_bool(&tc->result, "dry_run", true);
	jw_str(&tc->result, "diff", (struct str){buf_str(diff), diff->len});
	if (truncated)
		jw_bool(&tc->result, "diff_truncated", true);
	return 0;
}

static void report_undo(struct buf *out, const struct commit_result *done)
{
	jw_key(out, "undo");
	jw_open(out, '{');
	jw_int(out, "seq", (int64_t)done->seq);
	jw_bool(out, "possible", done->undo);
	if (!done->undo && done->undo_why_not)
		jw_str(out, "why_not", str_of(done->undo_why_not));
	jw_close(out, '}');
	if (done->in_place > 0)
		jw_int(out, "changed_in_place", done->in_place);
	if (done->attributes_lost > 0)
		jw_int(out, "attributes_lost", done->attributes_lost);
}

static int publish(struct publishable *p, struct err *err)
{
	struct tool_call *tc = p->tc;
	struct commit_result done = {0};
	struct journaled *journaled = NULL;
	int r = tc->tool->report ? tc->tool->report(tc, p->set, err) : 0;
	if (r < 0)
		return r;
	/* What is said after the change must find room, or the answer would deny what happened. */
	(void)buf_room(&tc->result, CALL_RESULT_TAIL);
	if ((r = buf_check(&tc->result, "the result", err)) < 0)
		return r;
	if ((r = stage_journal(tc, take_ptr(p->set), p->decision, &journaled, err)) < 0 ||
		(r = journaled_commit(journaled, &done, err)) < 0)
		return r;
	report_undo(&tc->result, &done);
	return 0;
}

/* Stop with the diff, or go on when whoever asked agrees to it. */
static int show_diff(struct publishable *p, bool dry_run, struct err *err)
{
	bool truncated = false;
	_cleanup_buf_ struct buf diff = buf_init(DIFF_MAX + 4096);
	int r = changeset_diff(p->set, &diff, DIFF_MAX, &truncated, err);
	if (r < 0)
		return r;
	if (!dry_run && p->tc->agree(p->tc->agree_ctx, (struct str){buf_str(&diff), diff.len}))
		return publish(p, err);
	return report_dry_run(p, &diff, truncated, err);
}

int stage_commit(struct publishable *take, const struct decision *d, struct err *err)
{
	_cleanup_(cleanup_publishable_free) struct publishable *p = take;
	p->decision = d;
	if (!p->set)
		return 0;
	if (is_dry_run(p->tc))
		return show_diff(p, true, err);
	if (changeset_count(p->set) > 0 && p->tc->agree)
		return show_diff(p, false, err);
	if (changeset_count(p->set) == 0)
		return p->tc->tool->report ? p->tc->tool->report(p->tc, p->set, err) : 0;
	return publish(p, err);
}
