/* The words of decisions, the two-step question and the built-in deciders: see decide.h. */
#include "govern/decide.h"

#include <stdio.h>
#include <string.h>

static const char *const role_words[ROLE_MAX_] = {
#define ROLE(name, word) [ROLE_##name] = word,
	ROLES(ROLE)
#undef ROLE
};

static const char *const group_words[ACTION_GROUP_MAX_] = {
#define GROUP(name, word) [GROUP_##name] = word,
	ACTION_GROUPS(GROUP)
#undef GROUP
};

const char *role_word(enum role r)
{
	BUG_ON((unsigned)r >= ROLE_MAX_);
	return role_words[r];
}

const char *action_group_word(enum action_group g)
{
	BUG_ON((unsigned)g >= ACTION_GROUP_MAX_);
	return group_words[g];
}

int role_parse(const char *word, enum role *ret, struct err *err)
{
	for (unsigned i = 0; i < ROLE_MAX_; i++)
		if (strcmp(word, role_words[i]) == 0) {
			*ret = (enum role)i;
			return 0;
		}
	(void)err_set(err, ERR_INVALID_ARGUMENT, "no role is called '%.40s'", word);
	return err_hint(err, "the roles are developer, generalist and critic");
}

/* Roles are declared from the one that may do most to the one that may do least. */
enum role role_lesser(enum role a, enum role b)
{
	return a > b ? a : b;
}

/* What the reading roles may use. The text is what a refusal offers instead. */
static const char *const reading_tools[] = {
	"file_read", "file_list", "file_search", "file_info", "workspace_info", "system_info"};
#define READING_TOOLS "file_read, file_list, file_search, file_info, workspace_info and system_info"

static bool is_reading_tool(const char *action)
{
	for (size_t i = 0; i < ARRAY_LEN(reading_tools); i++)
		if (strcmp(action, reading_tools[i]) == 0)
			return true;
	return false;
}

static void answer(struct decision *ret, enum verdict verdict, const char *policy)
{
	*ret = (struct decision){.verdict = verdict, .policies = {policy}, .n_policies = 1};
}

static int decide_by_role(const struct decider *d _unused_, const struct decide_request *q,
	struct decision *ret, struct err *err _unused_)
{
	const char *role = role_word(q->principal->role);
	if (q->principal->role == ROLE_DEVELOPER) {
		answer(ret, VERDICT_ALLOW, "role.developer");
		return 0;
	}
	if (is_reading_tool(q->action) && !q->context.effects) {
		answer(ret, VERDICT_ALLOW,
			q->principal->role == ROLE_CRITIC ? "role.critic" : "role.generalist");
		return 0;
	}
	answer(ret, VERDICT_DENY,
		q->principal->role == ROLE_CRITIC ? "role.critic" : "role.generalist");
	if (q->context.effects)
		(void)snprintf(
			ret->reason, sizeof(ret->reason), "the role '%s' may change nothing", role);
	else
		(void)snprintf(ret->reason, sizeof(ret->reason), "the role '%s' may not use %.64s",
			role, q->action);
	(void)snprintf(ret->instead, sizeof(ret->instead), "this role may use " READING_TOOLS);
	return 0;
}

static int decide_deny_all(const struct decider *d _unused_,
	const struct decide_request *q _unused_, struct decision *ret, struct err *err _unused_)
{
	answer(ret, VERDICT_DENY, "deny-all");
	(void)snprintf(ret->reason, sizeof(ret->reason), "every call is refused here");
	return 0;
}

static int decide_hold_all(const struct decider *d _unused_, const struct decide_request *q,
	struct decision *ret, struct err *err _unused_)
{
	answer(ret, q->context.approved ? VERDICT_ALLOW : VERDICT_DENY, "hold-all");
	(void)snprintf(ret->reason, sizeof(ret->reason), "every call waits for approval here");
	return 0;
}

const struct decider decider_roles = {.name = "roles", .decide = decide_by_role};
const struct decider decider_deny_all = {.name = "deny-all", .decide = decide_deny_all};
const struct decider decider_hold_all = {.name = "hold-all", .decide = decide_hold_all};

/* Ask once; a decider that fails, or that answers anything but allow or deny, has denied. */
static void ask(
	const struct decider *d, struct decide_request *q, bool approved, struct decision *ret)
{
	struct err err;
	q->context.approved = approved;
	if (d->decide(d, q, ret, &err) < 0) {
		answer(ret, VERDICT_DENY, "decider.failed");
		(void)snprintf(ret->reason, sizeof(ret->reason),
			"policy could not be decided: %.120s", err.text);
	} else if (ret->verdict != VERDICT_ALLOW) {
		ret->verdict = VERDICT_DENY;
	}
}

void decide(const struct decider *d, struct decide_request *q, struct decision *ret)
{
	struct decision approved;
	ask(d, q, false, ret);
	if (ret->verdict == VERDICT_ALLOW)
		return;
	ask(d, q, true, &approved);
	q->context.approved = false;
	if (approved.verdict == VERDICT_ALLOW)
		ret->verdict = VERDICT_HOLD;
}
