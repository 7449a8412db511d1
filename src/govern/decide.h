/*
 * The question that policy answers, and its answer. This is the final form: the built-in deciders
 * below answer it from roles, Cedar answers it from policy text.
 *
 * The pipeline asks twice when needed: with `approved` false; if that denies, with true. Allowed at
 * once: allow. Allowed only when approved: hold. Else deny, so people are never asked about what
 * policy refuses (design §4).
 */
#ifndef CLOISTER_GOVERN_DECIDE_H
#define CLOISTER_GOVERN_DECIDE_H

#include "base/err.h"
#include "base/sha256.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* What a tool may do to the world: the action group of policy. GROUP(NAME, "word") */
#define ACTION_GROUPS(GROUP)                                                                       \
	GROUP(READ, "read")                                                                        \
	GROUP(WRITE, "write")                                                                      \
	GROUP(EXECUTE, "execute")                                                                  \
	GROUP(NETWORK, "network")                                                                  \
	GROUP(ADMIN, "admin")

enum action_group {
#define GROUP(name, word) GROUP_##name,
	ACTION_GROUPS(GROUP)
#undef GROUP
		ACTION_GROUP_MAX_,
};

/* Built-in roles. ROLE(NAME, "word") */
#define ROLES(ROLE)                                                                                \
	ROLE(DEVELOPER, "developer")                                                               \
	ROLE(GENERALIST, "generalist")                                                             \
	ROLE(CRITIC, "critic")

enum role {
#define ROLE(name, word) ROLE_##name,
	ROLES(ROLE)
#undef ROLE
		ROLE_MAX_,
};

const char *role_word(enum role r);
const char *action_group_word(enum action_group g);
int role_parse(const char *word, enum role *ret,
	struct err *err);                        /* ERR_INVALID_ARGUMENT naming the known roles */
enum role role_lesser(enum role a, enum role b); /* the one that may do less */

enum principal_kind { PRINCIPAL_AGENT, PRINCIPAL_USER };

/* Who asks. Borrowed strings. */
struct principal {
	enum principal_kind kind;
	const char *id;
	const char *tenant;
	enum role role; /* the lesser of the token's and the requested one */
};

/* ACCESS(NAME, "word"): what a call wants of one target. */
#define ACCESSES(ACCESS)                                                                           \
	ACCESS(READ, "read")                                                                       \
	ACCESS(LIST, "list")                                                                       \
	ACCESS(WRITE, "write")                                                                     \
	ACCESS(DELETE, "delete")

enum access {
#define ACCESS(name, word) ACCESS_##name,
	ACCESSES(ACCESS)
#undef ACCESS
		ACCESS_MAX_,
};

/* One target. Policy must allow the spelled and the resolved path; resolved is NULL when it could
 * not be resolved. */
struct decide_target {
	const char *spelled, *resolved; /* absolute agent paths, escaped text */
	enum access access;
};

struct changeset;

struct decide_request {
	const struct principal *principal;
	const char *action; /* tool name */
	enum action_group group;
	const char *session;
	const struct decide_target *targets;
	unsigned n_targets;
	struct {
		const char *profile;
		const char *tier;
		const char *turn;             /* NULL: none */
		const json_t *arguments;      /* normalised */
		int64_t bytes;                /* content that the call brings, -1: none */
		const struct sha256 *content; /* its hash, NULL: not hashed */
		const struct changeset
			*effects; /* NULL for the call contract, set for the effects contract */
		bool approved;
		bool network;
	} context;
};

enum verdict { VERDICT_DENY, VERDICT_ALLOW, VERDICT_HOLD };

enum { DECISION_POLICIES_MAX = 8 };

struct decision {
	enum verdict verdict;
	const char *policies[DECISION_POLICIES_MAX]; /* ids that decided; static or owned by the
							decider until its next reload */
	unsigned n_policies;
	char reason[160];  /* for the answer */
	char instead[240]; /* what would be allowed, or "" */
};

/* A decider answers allow or deny for one request as it stands (it looks at context.approved
 * itself). */
struct decider {
	const char *name;
	int (*decide)(const struct decider *d, const struct decide_request *q, struct decision *ret,
		struct err *err);
};

/* developer: every tool; generalist and critic: reading tools only, and what they run may change
 * nothing. */
extern const struct decider decider_roles;
extern const struct decider decider_deny_all;
extern const struct decider decider_hold_all; /* denies until approved */

/* The two-step question. Any failure to decide denies (fail closed) with the failure as reason. */
void decide(const struct decider *d, struct decide_request *q, struct decision *ret);

#endif
