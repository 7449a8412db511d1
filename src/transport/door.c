/* What every door checks before it asks anything of core: see door.h. */
#include "transport/door.h"

static const struct door_op_info ops[DOOR_OP_MAX_] = {
#define DOOR_OP(NAME, name, needs, help) [DOOR_##NAME] = {name, help, needs},
#include "transport/door.def"
#undef DOOR_OP
};

const struct door_op_info *door_op_info(enum door_op op)
{
	BUG_ON((unsigned)op >= DOOR_OP_MAX_);
	return &ops[op];
}

static int check_lengths(const struct door_request *q, struct err *err)
{
	const struct {
		const char *what;
		size_t n, max;
	} fields[] = {
		{"the bearer token", q->token.n, DOOR_TOKEN_MAX},
		{"the session id", q->session.n, LIMIT_SESSION_ID},
		{"the name of the tool", q->tool.n, DOOR_TOOL_MAX},
		{"the turn", q->turn.n, DOOR_TURN_MAX},
		{"the call id", q->id.n, DOOR_ID_MAX},
		{"the role", q->role.n, DOOR_ROLE_MAX},
	};
	for (unsigned i = 0; i < ARRAY_LEN(fields); i++)
		if (fields[i].n > fields[i].max)
			return err_set(err, ERR_INVALID_ARGUMENT, "%s is longer than %zu bytes",
				fields[i].what, fields[i].max);
	if (q->arguments.n > LIMIT_REQUEST_BYTES)
		return err_set(err, ERR_TOO_LARGE, "the arguments are larger than %d bytes",
			LIMIT_REQUEST_BYTES);
	if (q->wait_ms < 0 || q->wait_ms > DOOR_WAIT_MS_MAX)
		return err_set(err, ERR_INVALID_ARGUMENT, "wait_ms is not between 0 and %d",
			DOOR_WAIT_MS_MAX);
	return 0;
}

/* The token first: who is not known learns nothing about what else is wrong. */
int door_check(const struct door_request *q, struct err *err)
{
	BUG_ON((unsigned)q->op >= DOOR_OP_MAX_);
	unsigned needs = ops[q->op].needs;
	if ((needs & DOOR_AUTH) && !q->token.n)
		return err_set(err, ERR_UNAUTHENTICATED, "a bearer token is needed");
	int r = check_lengths(q, err);
	if (r < 0)
		return r;
	if ((needs & DOOR_SESSION) && !q->session.n)
		return err_set(err, ERR_INVALID_ARGUMENT, "which session is not said");
	if ((needs & DOOR_TOOL) && !q->tool.n)
		return err_set(err, ERR_INVALID_ARGUMENT, "which tool is not said");
	if ((needs & DOOR_ID) && !q->id.n)
		return err_set(err, ERR_INVALID_ARGUMENT, "which call is not said");
	if ((needs & DOOR_BODY) && q->body_fd < 0)
		return err_set(err, ERR_INVALID_ARGUMENT, "there is no content to write");
	return 0;
}
