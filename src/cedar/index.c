/* Building the scope index, and looking requests up in it. */
#include "cedar/index.h"

#include <stdlib.h>

/* The entity of a scope: the template's slot takes it from the link. */
static const struct ced_uid *scope_uid(const struct ced_scope *s, const struct ced_uid *filled)
{
	return s->slot ? filled : s->uids[0];
}

/* -- Scopes --------------------------------------------------------------------------------- */

static bool entity_matches(struct ced_env *env, const struct ced_scope *s,
	const struct ced_uid *filled, const struct ced_uid *uid)
{
	if ((s->op == CED_SCOPE_IS || s->op == CED_SCOPE_IS_IN) && !ced_name_eq(uid->type, s->type))
		return false;
	if (s->op == CED_SCOPE_ALL || s->op == CED_SCOPE_IS)
		return true;
	if (s->op == CED_SCOPE_EQ)
		return ced_uid_eq(uid, scope_uid(s, filled));
	return ced_is_in(env, uid, scope_uid(s, filled));
}

static bool action_matches(struct ced_env *env, const struct ced_scope *s)
{
	const struct ced_uid *action = env->request->action;
	if (s->op == CED_SCOPE_ALL)
		return true;
	if (s->op == CED_SCOPE_EQ)
		return ced_uid_eq(action, s->uids[0]);
	for (uint32_t i = 0; i < s->count; i++)
		if (ced_is_in(env, action, s->uids[i]))
			return true;
	return false;
}

bool ced_scope_matches(const struct ced_rule *rule, struct ced_env *env, enum cedar_part *ret_part)
{
	const struct ced_policy *p = rule->policy;
	*ret_part = CEDAR_PART_PRINCIPAL;
	if (!entity_matches(env, &p->principal, rule->principal, env->request->principal))
		return false;
	*ret_part = CEDAR_PART_ACTION;
	if (!action_matches(env, &p->action))
		return false;
	*ret_part = CEDAR_PART_RESOURCE;
	return entity_matches(env, &p->resource, rule->resource, env->request->resource);
}

/* -- Tables --------------------------------------------------------------------------------- */

static uint32_t key_hash(enum ced_dimension by, const struct ced_bucket *key)
{
	uint32_t of = key->id ? ced_hash_pair(key->type->hash, key->id->hash) : key->type->hash;
	return of + (uint32_t)by * 0x9e3779b9u;
}

static struct ced_bucket key_of_uid(enum ced_dimension by, const struct ced_uid *uid)
{
	return (struct ced_bucket){.type = uid->type,
		.id = uid->id,
		.hash = uid->hash + (uint32_t)by * 0x9e3779b9u,
		.by = by};
}

static struct ced_bucket key_of_type(enum ced_dimension by, const struct ced_name *type)
{
	struct ced_bucket key = {.type = type, .by = by};
	key.hash = key_hash(by, &key);
	return key;
}

static bool same_key(const struct ced_bucket *a, const struct ced_bucket *b)
{
	if (a->hash != b->hash || a->by != b->by || !ced_name_eq(a->type, b->type))
		return false;
	return a->id && b->id ? ced_name_eq(a->id, b->id) : a->id == b->id;
}

/* The key's place: its own, or the empty one where it would be. */
static uint32_t place_of(
	const struct ced_bucket *table, uint32_t mask, const struct ced_bucket *key)
{
	uint32_t at = key->hash & mask;
	while (table[at].type && !same_key(&table[at], key))
		at = (at + 1) & mask;
	return at;
}

/* -- Filing --------------------------------------------------------------------------------- */

struct filing {
	const struct cedar_policies *set;
	struct ced_bucket *table; /* every key of every rule, with how many rules have it */
	uint32_t mask;
};

/* The key of a principal or resource scope; false: unconstrained. */
static bool entity_key(const struct ced_scope *s, const struct ced_uid *filled,
	enum ced_dimension eq, enum ced_dimension in, enum ced_dimension type,
	struct ced_bucket *ret)
{
	if (s->op == CED_SCOPE_ALL)
		return false;
	if (s->op == CED_SCOPE_IS)
		*ret = key_of_type(type, s->type);
	else
		*ret = key_of_uid(s->op == CED_SCOPE_EQ ? eq : in, scope_uid(s, filled));
	return true;
}

static bool principal_key(const struct ced_rule *rule, struct ced_bucket *ret)
{
	return entity_key(&rule->policy->principal, rule->principal, CED_BY_PRINCIPAL_EQ,
		CED_BY_PRINCIPAL_IN, CED_BY_PRINCIPAL_TYPE, ret);
}

static bool resource_key(const struct ced_rule *rule, struct ced_bucket *ret)
{
	return entity_key(&rule->policy->resource, rule->resource, CED_BY_RESOURCE_EQ,
		CED_BY_RESOURCE_IN, CED_BY_RESOURCE_TYPE, ret);
}

static struct ced_bucket action_key(const struct ced_rule *rule, uint32_t n)
{
	const struct ced_scope *s = &rule->policy->action;
	return key_of_uid(s->op == CED_SCOPE_EQ ? CED_BY_ACTION_EQ : CED_BY_ACTION_IN, s->uids[n]);
}

static void count_key(struct filing *f, struct ced_bucket key)
{
	uint32_t at = place_of(f->table, f->mask, &key);
	key.count = f->table[at].count + 1;
	f->table[at] = key;
}

static void count_rule(struct filing *f, const struct ced_rule *rule)
{
	struct ced_bucket key;
	if (principal_key(rule, &key))
		count_key(f, key);
	if (resource_key(rule, &key))
		count_key(f, key);
	for (uint32_t i = 0; i < rule->policy->action.count; i++)
		count_key(f, action_key(rule, i));
}

static uint32_t shared_by(const struct filing *f, struct ced_bucket key)
{
	return f->table[place_of(f->table, f->mask, &key)].count;
}

enum choice { ALWAYS, PRINCIPAL, RESOURCE, ACTION };

/* The constraint that fewest rules share. */
static enum choice choose(const struct filing *f, const struct ced_rule *rule)
{
	const struct ced_scope *action = &rule->policy->action;
	struct ced_bucket key;
	uint32_t best = UINT32_MAX, actions = 0;
	enum choice choice = ALWAYS;
	if (principal_key(rule, &key)) {
		best = shared_by(f, key);
		choice = PRINCIPAL;
	}
	if (resource_key(rule, &key) && shared_by(f, key) < best) {
		best = shared_by(f, key);
		choice = RESOURCE;
	}
	for (uint32_t i = 0; i < action->count && actions < best; i++)
		actions += shared_by(f, action_key(rule, i));
	return action->op != CED_SCOPE_ALL && actions < best ? ACTION : choice;
}

/* The keys under which a rule is filed, one after the other; false: no more. */
static bool filed_under(
	const struct ced_rule *rule, enum choice choice, uint32_t n, struct ced_bucket *ret)
{
	if (choice == ACTION) {
		if (n >= rule->policy->action.count)
			return false;
		*ret = action_key(rule, n);
		return true;
	}
	if (n || choice == ALWAYS)
		return false;
	return choice == PRINCIPAL ? principal_key(rule, ret) : resource_key(rule, ret);
}

struct layout {
	struct ced_bucket *table;
	uint32_t mask, keys, entries;
	uint32_t *rules;
};

/* Count what each final bucket will hold. */
static void count_chosen(struct layout *l, const struct cedar_policies *set, const uint8_t *choices)
{
	struct ced_bucket key;
	for (uint32_t i = 0; i < set->rule_count; i++)
		for (uint32_t n = 0; filed_under(&set->rules[i], choices[i], n, &key); n++) {
			uint32_t at = place_of(l->table, l->mask, &key);
			key.count = l->table[at].count + 1;
			l->table[at] = key;
		}
}

/* Rules that are looked at always come first, then bucket after bucket. */
static void fill(
	struct layout *l, const struct cedar_policies *set, const uint8_t *choices, uint32_t always)
{
	struct ced_bucket key;
	uint32_t next = always, at_always = 0;
	for (uint32_t i = 0; i <= l->mask; i++) {
		l->table[i].start = next;
		next += l->table[i].count;
		l->table[i].count = 0;
	}
	for (uint32_t i = 0; i < set->rule_count; i++) {
		if (choices[i] == ALWAYS)
			l->rules[at_always++] = i;
		for (uint32_t n = 0; filed_under(&set->rules[i], choices[i], n, &key); n++) {
			struct ced_bucket *b = &l->table[place_of(l->table, l->mask, &key)];
			uint32_t *last = b->count ? &l->rules[b->start + b->count - 1] : NULL;
			if (!last || *last != i) /* an action named twice in one list */
				l->rules[b->start + b->count++] = i;
		}
	}
}

static uint32_t table_size(uint32_t keys)
{
	uint32_t size = 8;
	while (size < keys + keys / 2 + 1)
		size *= 2;
	return size;
}

static int lay_out(struct cedar_policies *set, const uint8_t *choices, struct cedar_error *err)
{
	struct ced_index *index = ced_new(&set->arena, struct ced_index);
	struct ced_bucket key;
	struct layout l = {0};
	uint32_t always = 0;
	for (uint32_t i = 0; i < set->rule_count; i++) {
		always += choices[i] == ALWAYS;
		for (uint32_t n = 0; filed_under(&set->rules[i], choices[i], n, &key); n++)
			l.entries++;
	}
	l.mask = table_size(l.entries) - 1;
	l.table = ced_new_array(&set->arena, (size_t)l.mask + 1, struct ced_bucket);
	if (!index || !l.table)
		return ced_arena_fail(&set->arena, err, (struct ced_pos){0});
	l.rules = ced_new_array(&set->arena, (size_t)always + l.entries, uint32_t);
	if (!l.rules)
		return ced_arena_fail(&set->arena, err, (struct ced_pos){0});
	count_chosen(&l, set, choices);
	fill(&l, set, choices, always);
	for (uint32_t i = 0; i <= l.mask; i++)
		if (l.table[i].type)
			index->used[l.table[i].by] = true;
	index->table = l.table;
	index->mask = l.mask;
	index->rules = l.rules;
	index->always = always;
	set->index = index;
	return 0;
}

int ced_index_build(struct cedar_policies *set, struct cedar_error *err)
{
	struct filing f = {.set = set};
	uint64_t keys = 0;
	for (uint32_t i = 0; i < set->rule_count; i++)
		keys += 2 + (uint64_t)set->rules[i].policy->action.count;
	if (keys > UINT32_MAX / 4)
		return ced_fail_limit(err, (struct ced_pos){0}, "scope keys", UINT32_MAX / 4);
	f.mask = table_size((uint32_t)keys) - 1;
	f.table = calloc((size_t)f.mask + 1, sizeof(*f.table));
	uint8_t *choices = calloc(set->rule_count ? set->rule_count : 1, 1);
	int code = f.table && choices ? 0 : ced_fail_memory(err);
	for (uint32_t i = 0; code == 0 && i < set->rule_count; i++)
		count_rule(&f, &set->rules[i]);
	for (uint32_t i = 0; code == 0 && i < set->rule_count; i++)
		choices[i] = (uint8_t)choose(&f, &set->rules[i]);
	if (code == 0)
		code = lay_out(set, choices, err);
	free(f.table);
	free(choices);
	return code;
}

/* -- Looking up ----------------------------------------------------------------------------- */

struct visit {
	const struct cedar_policies *set;
	struct ced_env *env;
	void (*visit)(void *ctx, uint32_t rule);
	void *ctx;
};

static void visit_bucket(const struct visit *v, struct ced_bucket key)
{
	const struct ced_index *index = v->set->index;
	const struct ced_bucket *b = &index->table[place_of(index->table, index->mask, &key)];
	for (uint32_t i = 0; i < b->count; i++)
		v->visit(v->ctx, index->rules[b->start + i]);
}

/* A rule with a list of actions is in several buckets: it counts in that of its first match. */
static bool is_first_match(
	const struct visit *v, const struct ced_scope *s, const struct ced_uid *found)
{
	for (uint32_t i = 0; i < s->count; i++)
		if (ced_is_in(v->env, v->env->request->action, s->uids[i]))
			return ced_uid_eq(s->uids[i], found);
	return false;
}

static void visit_action_in(const struct visit *v, const struct ced_uid *uid)
{
	const struct ced_index *index = v->set->index;
	struct ced_bucket key = key_of_uid(CED_BY_ACTION_IN, uid);
	const struct ced_bucket *b = &index->table[place_of(index->table, index->mask, &key)];
	for (uint32_t i = 0; i < b->count; i++) {
		uint32_t rule = index->rules[b->start + i];
		const struct ced_scope *s = &v->set->rules[rule].policy->action;
		if (s->count == 1 || is_first_match(v, s, uid))
			v->visit(v->ctx, rule);
	}
}

static void visit_in(const struct visit *v, enum ced_dimension by, const struct ced_uid *uid)
{
	if (by == CED_BY_ACTION_IN)
		visit_action_in(v, uid);
	else
		visit_bucket(v, key_of_uid(by, uid));
}

/* The entity itself and its ancestors. */
static void visit_up(const struct visit *v, enum ced_dimension by, const struct ced_uid *uid,
	const struct ced_entity *e)
{
	if (!v->set->index->used[by])
		return;
	visit_in(v, by, uid);
	for (uint32_t i = 0; e && i < e->ancestor_count; i++)
		visit_in(v, by, e->ancestors[i]);
}

void ced_index_visit(const struct cedar_policies *set, struct ced_env *env,
	void (*visit)(void *ctx, uint32_t rule), void *ctx)
{
	struct visit v = {set, env, visit, ctx};
	const struct cedar_request *r = env->request;
	const bool *used = set->index->used;
	for (uint32_t i = 0; i < set->index->always; i++)
		visit(ctx, set->index->rules[i]);
	if (used[CED_BY_PRINCIPAL_EQ])
		visit_bucket(&v, key_of_uid(CED_BY_PRINCIPAL_EQ, r->principal));
	if (used[CED_BY_RESOURCE_EQ])
		visit_bucket(&v, key_of_uid(CED_BY_RESOURCE_EQ, r->resource));
	if (used[CED_BY_ACTION_EQ])
		visit_bucket(&v, key_of_uid(CED_BY_ACTION_EQ, r->action));
	if (used[CED_BY_PRINCIPAL_TYPE])
		visit_bucket(&v, key_of_type(CED_BY_PRINCIPAL_TYPE, r->principal->type));
	if (used[CED_BY_RESOURCE_TYPE])
		visit_bucket(&v, key_of_type(CED_BY_RESOURCE_TYPE, r->resource->type));
	visit_up(&v, CED_BY_PRINCIPAL_IN, r->principal, env->known[CED_PRINCIPAL]);
	visit_up(&v, CED_BY_RESOURCE_IN, r->resource, env->known[CED_RESOURCE]);
	visit_up(&v, CED_BY_ACTION_IN, r->action, env->known[CED_ACTION]);
}
