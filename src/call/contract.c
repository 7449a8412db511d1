/*
 * The call contract: what is asked, before anything runs, as canonical JSON (RFC 8785) with its
 * SHA-256. An approval names this hash, so everything that the call depends on is in it.
 */
#include "call/stages.h"

#include "codec/canonical.h"

static json_t *identity_of(const struct node *n)
{
	if (n->kind == NODE_ABSENT)
		return json_null();
	return json_pack("{s:I,s:I,s:I,s:I,s:I}", "device", (json_int_t)n->id.dev, "inode",
		(json_int_t)n->id.ino, "size", (json_int_t)n->id.size, "modified_s",
		(json_int_t)n->id.mtime.tv_sec, "modified_ns", (json_int_t)n->id.mtime.tv_nsec);
}

static json_t *targets_of(const struct tool_call *tc)
{
	static const char *const words[] = {
#define ACCESS(name, word) [ACCESS_##name] = word,
		ACCESSES(ACCESS)
#undef ACCESS
	};
	json_t *list = json_array();
	for (unsigned i = 0; i < tc->n_targets; i++) {
		const struct target *t = tc->targets[i];
		(void)json_array_append_new(list,
			json_pack("{s:s,s:s?,s:s,s:o}", "spelled", t->asked.spelled, "resolved",
				t->asked.resolved, "access", words[t->asked.access], "identity",
				t->failed < 0 ? json_null() : identity_of(&t->node)));
	}
	return list;
}

int contract_of(struct tool_call *tc, struct buf *out, struct sha256 *ret, struct err *err)
{
	json_t *c = json_pack("{s:s,s:s,s:O,s:{s:s,s:s,s:s},s:s,s:s?,s:s,s:s,s:o}", "kind", "call",
		"tool", tc->tool->name, "arguments", tc->args, "principal", "id", tc->principal->id,
		"tenant", tc->principal->tenant, "role", role_word(tc->principal->role), "session",
		session_id(tc->session), "turn", tc->turn, "profile", tc->env->profile, "tier",
		tc->tool->group == GROUP_EXECUTE ? "kernel" : "native", "targets", targets_of(tc));
	if (!c)
		return err_oom(err);
	int r = json_canonical(c, out, err);
	json_decref(c);
	if (r < 0)
		return r;
	sha256_of(out->data, out->len, ret);
	return 0;
}
