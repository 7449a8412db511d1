/*
 * What the journal is told of calls: the record of a call that changed nothing, the intent before a
 * change is published, its outcome. The only maker of `struct journaled`, and the only place that
 * commits: nothing is published whose intent the journal has not taken.
 *
 * Records name paths, sizes and hashes; content is in them as its size and SHA-256 only.
 */
#include "call/stages.h"

#include "codec/canonical.h"
#include "journal/journal.h"

#include <stdio.h>

enum {
	INLINE_MAX = 200, /* bytes of an argument that stand in a record */
	NAME_MAX_BYTES = 64,
	ARGS_BYTES = 3 * 1024, /* of all arguments; the rest is only counted */
	PATHS_BYTES = 3 * 1024,
	CANONICAL_MAX = LIMIT_REQUEST_BYTES,
	FIND_MAX = 10000, /* changes that are looked through for one that was interrupted */
};

/* A record under construction with the texts that it borrows. */
struct writing {
	struct jrecord r;
	size_t used;
	char texts[ARGS_BYTES + PATHS_BYTES];
};

struct journaled {
	struct tool_call *tc;
	struct changeset *set;
	unsigned count;
};

void journaled_free(struct journaled *j)
{
	if (!j)
		return;
	changeset_free(j->set);
	free(j);
}

/* As much of a text as has room, cut at a character; nothing of what is not UTF-8. */
static struct str fit(const char *s, size_t max)
{
	struct str t = str_of(s);
	if (t.n > max)
		t.n = utf8_floor(t.p, max);
	return utf8_valid(t.p, t.n) ? t : (struct str){NULL, 0};
}

static void add_text(struct writing *w, jrecord_texts *list, size_t budget, const char *a,
	const char *between, struct str b)
{
	size_t na = strlen(a), nm = strlen(between), n = na + nm + b.n;
	char *to = w->texts + w->used;
	if (list->n == JRECORD_LIST_MAX || n > JRECORD_TEXT_MAX ||
		n > budget - MIN(budget, w->used) || !utf8_valid(a, na) || !utf8_valid(b.p, b.n)) {
		w->r.more++;
		return;
	}
	memcpy(to, a, na);
	memcpy(to + na, between, nm);
	if (b.n)
		memcpy(to + na + nm, b.p, b.n);
	w->used += n;
	list->v[list->n++] = (struct str){to, n};
}

static bool is_content(const struct tool *tool, const char *name)
{
	for (const struct field *f = tool ? tool->args : NULL; f && f->name; f++)
		if (strcmp(f->name, name) == 0)
			return f->nul_ok;
	return true;
}

static void add_digest(struct writing *w, const char *name, const char *p, size_t n)
{
	struct sha256 h;
	char hex[SHA256_HEX + 1], text[128];
	sha256_of(p, n, &h);
	sha256_hex(&h, hex);
	int len = snprintf(text, sizeof(text), "%zu bytes, sha256:%s", n, hex);
	add_text(w, &w->r.args, ARGS_BYTES, name, "=", (struct str){text, (size_t)len});
}

static void add_arg(struct writing *w, const struct tool *tool, const char *name, const json_t *v)
{
	char number[32];
	struct err err;
	if (json_is_string(v)) {
		struct str s = {json_string_value(v), json_string_length(v)};
		if (s.n > INLINE_MAX || is_content(tool, name))
			add_digest(w, name, s.p, s.n);
		else
			add_text(w, &w->r.args, ARGS_BYTES, name, "=", s);
	} else if (json_is_integer(v)) {
		(void)snprintf(number, sizeof(number), "%lld", (long long)json_integer_value(v));
		add_text(w, &w->r.args, ARGS_BYTES, name, "=", str_of(number));
	} else if (json_is_boolean(v)) {
		add_text(w, &w->r.args, ARGS_BYTES, name, "=",
			str_of(json_is_true(v) ? "true" : "false"));
	} else {
		_cleanup_buf_ struct buf b = buf_init(CANONICAL_MAX);
		if (json_canonical(v, &b, &err) == 0)
			add_digest(w, name, b.data, b.len);
		else
			w->r.more++;
	}
}

static void add_args(struct writing *w, const struct tool_call *tc)
{
	const char *name;
	json_t *v;
	if (!json_is_object(tc->args))
		return;
	json_object_foreach(tc->args, name, v)
	{
		if (strlen(name) <= NAME_MAX_BYTES)
			add_arg(w, tc->tool, name, v);
		else
			w->r.more++;
	}
}

static void add_paths(struct writing *w, const struct tool_call *tc)
{
	static const char *const words[] = {
#define ACCESS(name, word) [ACCESS_##name] = word,
		ACCESSES(ACCESS)
#undef ACCESS
	};
	for (unsigned i = 0; i < tc->n_targets; i++) {
		const struct decide_target *t = &tc->targets[i]->asked;
		add_text(w, &w->r.paths, ARGS_BYTES + PATHS_BYTES, words[t->access], ":",
			str_of(t->resolved ? t->resolved : t->spelled));
	}
}

static void add_policies(struct writing *w, const struct decision *d)
{
	for (unsigned i = 0; d && i < d->n_policies && w->r.policies.n < 8; i++) {
		struct str s = fit(d->policies[i], 128);
		if (s.n)
			w->r.policies.v[w->r.policies.n++] = s;
	}
}

/* Lists are counted, so only their counts are cleared: this is on the way of every read. */
static void begin(struct writing *w, const struct tool_call *tc, const char *kind, const char *code)
{
#define clear_text(v) (*(v) = (struct str){NULL, 0})
#define clear_number(v) (*(v) = 0)
#define clear_texts(v) ((v)->n = 0)
#define MEMBER(type, name, max) clear_##type(&w->r.name);
#include "journal/jrecord.def"
#undef MEMBER
	w->used = 0;
	w->r.kind = str_of(kind);
	w->r.code = str_of(code);
	w->r.call = str_of(tc->id);
	w->r.tool = fit(tc->tool ? tc->tool->name : tc->asked_tool, NAME_MAX_BYTES);
	w->r.session =
		fit(tc->session ? session_id(tc->session) : tc->asked_session, LIMIT_SESSION_ID);
	w->r.tenant = fit(tc->session ? session_tenant(tc->session) : tc->principal->tenant, 128);
	w->r.principal = fit(tc->principal->id, 256);
	w->r.role = str_of(role_word(tc->principal->role));
	w->r.turn = fit(tc->turn, 64);
}

int call_journal_record(
	struct tool_call *tc, const struct err *why, const struct decision *d, struct err *err)
{
	_uninitialized_ struct writing w;
	begin(&w, tc, JRECORD_KIND_CALL, why->code ? err_info(why->code)->name : "ok");
	add_args(&w, tc);
	add_paths(&w, tc);
	if (why->code) {
		w.r.note = fit(why->text, ERR_TEXT_MAX);
		add_policies(&w, d);
	}
	return journal_add(tc->env->journal, &w.r, err);
}

/* --- what was interrupted --- */

struct search_for {
	const char *call;
	uint64_t seq; /* 0: not found */
};

static bool look(void *ctx, const struct history_entry *e)
{
	struct search_for *s = ctx;
	if (strcmp(e->call_id, s->call) == 0)
		s->seq = e->seq;
	return !s->seq;
}

/* The engine has finished it or taken it back when it opened the workspace; its history knows
 * which. */
static int resolve(struct tool_call *tc, const struct jopen *open, struct err *err)
{
	_uninitialized_ struct writing w;
	struct search_for s = {.call = open->call};
	int r = history_list(tc->ws, 0, FIND_MAX, look, &s, err);
	if (r < 0)
		return r;
	begin(&w, tc, JRECORD_KIND_OUTCOME, s.seq ? "ok" : err_info(ERR_CANCELLED)->name);
	w.r.call = str_of(open->call);
	w.r.tool = w.r.turn = w.r.principal = w.r.role = (struct str){NULL, 0};
	w.r.history = s.seq;
	w.r.note = str_of(s.seq ? "interrupted; it was published whole"
			  : tc->env->workspace->history_bytes
				  ? "interrupted; nothing of it was published"
				  : "interrupted; without a history it is not known whether it was "
				    "published");
	return journal_add(tc->env->journal, &w.r, err);
}

int call_journal_recover(struct tool_call *tc, struct err *err)
{
	struct jopen open;
	while (tc->session && tc->ws &&
		journal_take_abandoned(tc->env->journal, session_tenant(tc->session),
			session_id(tc->session), &open)) {
		int r = resolve(tc, &open, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* --- changes --- */

static int put_intent(struct journaled *j, const struct decision *d, struct err *err)
{
	_uninitialized_ struct writing w;
	struct tool_call *tc = j->tc;
	struct jposition at;
	struct sha256 h;
	char hex[SHA256_HEX + 1];
	int r = journal_position(tc->env->journal, &at, err);
	if (r < 0 || (r = call_journal_recover(tc, err)) < 0 ||
		(r = changeset_hash(j->set, &h, err)) < 0)
		return r;
	sha256_hex(&h, hex);
	begin(&w, tc, JRECORD_KIND_INTENT, "ok");
	add_args(&w, tc);
	add_paths(&w, tc);
	add_policies(&w, d);
	w.r.changes = str_of(hex);
	w.r.count = j->count;
	return journal_commit(
		tc->env->journal, &w.r, tc->env->workspace->durability == DURABLE_POWER, err);
}

int stage_journal(struct tool_call *tc, struct changeset *take, const struct decision *d,
	struct journaled **ret, struct err *err)
{
	_cleanup_(cleanup_journaled_free) struct journaled *j = calloc(1, sizeof(*j));
	if (!j) {
		changeset_free(take);
		return err_oom(err);
	}
	j->tc = tc;
	j->set = take;
	j->count = changeset_count(take);
	int r = tc->env->journal ? put_intent(j, d, err) : 0;
	if (r < 0)
		return err_wrap(err, "nothing was changed, since it could not be journaled");
	*ret = take_ptr(j);
	return 0;
}

/* The change has happened or not, and no record can alter that: a journal that does not take this
 * one refuses the next change, and the outcome is found at the next start. */
static void put_outcome(
	struct tool_call *tc, const struct commit_result *done, const struct err *why)
{
	_uninitialized_ struct writing w;
	struct err err;
	begin(&w, tc, JRECORD_KIND_OUTCOME, why ? err_info(why->code)->name : "ok");
	w.r.history = why ? 0 : done->seq;
	if (why)
		w.r.note = fit(why->text, ERR_TEXT_MAX);
	if (!why && tc->env->workspace->durability == DURABLE_POWER)
		(void)!journal_commit(tc->env->journal, &w.r, true, &err);
	else
		(void)!journal_add(tc->env->journal, &w.r, &err);
	journal_flush(tc->env->journal);
}

int journaled_commit(struct journaled *take, struct commit_result *ret, struct err *err)
{
	_cleanup_(cleanup_journaled_free) struct journaled *j = take;
	struct tool_call *tc = j->tc;
	struct commit_info info = {.call_id = tc->id, .tool = tc->tool->name, .turn = tc->turn};
	int r = changeset_commit(tc->ws, take_ptr(j->set), &info, ret, err);
	if (tc->env->journal) {
		put_outcome(tc, ret, r < 0 ? err : NULL);
		tc->journaled = r == 0;
	}
	return r;
}
