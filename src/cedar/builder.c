/*
 * Making policy sets: reading the sources, keeping ids apart, filling templates.
 *
 * The builder owns the set to be until cedar_builder_finish(). An add that fails takes back what it
 * had added; the memory of it stays in the arena until the builder ends.
 */
#include "cedar/data.h"
#include "cedar/est.h"
#include "cedar/index.h"
#include "cedar/parse.h"

#include <stdio.h>
#include <stdlib.h>

struct cedar_builder {
	struct cedar_policies *set;
	struct ced_names names;
	struct ced_rule *rules;
	uint32_t rule_count, rule_capacity;
	const struct ced_policy **templates;
	uint32_t template_count, template_capacity;
	/* Ids in use: open addressing over interned names, so that a pointer is the whole test. */
	const struct ced_name **ids;
	uint32_t id_count, id_capacity;
};

cedar_builder *cedar_builder_new(const struct cedar_limits *limits)
{
	struct cedar_builder *b = calloc(1, sizeof(*b));
	struct cedar_policies *set = calloc(1, sizeof(*set));
	if (!b || !set) {
		free(b);
		free(set);
		return NULL;
	}
	b->set = set;
	set->references = 1;
	set->limits = limits ? *limits : cedar_limits_default();
	ced_arena_init(&set->arena, set->limits.memory_bytes, "memory_bytes");
	ced_names_init(&b->names, &set->arena);
	return b;
}

void cedar_builder_free(cedar_builder *b)
{
	if (!b)
		return;
	cedar_policies_free(b->set);
	ced_names_done(&b->names);
	free(b->rules);
	free(b->templates);
	free(b->ids);
	free(b);
}

static struct ced_source source_of(struct cedar_builder *b, struct cedar_error *err)
{
	return (struct ced_source){&b->set->arena, &b->names, &b->set->limits, err};
}

/* -- Ids ------------------------------------------------------------------------------------ */

static uint32_t id_place(const struct cedar_builder *b, const struct ced_name *id)
{
	uint32_t at = id->hash & (b->id_capacity - 1);
	while (b->ids[at] && b->ids[at] != id)
		at = (at + 1) & (b->id_capacity - 1);
	return at;
}

static int grow_ids(struct cedar_builder *b, struct cedar_error *err)
{
	uint32_t old_capacity = b->id_capacity;
	const struct ced_name **old = b->ids;
	uint32_t capacity = old_capacity ? old_capacity * 2 : 64;
	const struct ced_name **ids = calloc(capacity, sizeof(*ids));
	if (!ids)
		return ced_fail_memory(err);
	b->ids = ids;
	b->id_capacity = capacity;
	for (uint32_t i = 0; i < old_capacity; i++)
		if (old[i])
			b->ids[id_place(b, old[i])] = old[i];
	free(old);
	return 0;
}

static int claim_id(struct cedar_builder *b, const struct ced_name *id, struct ced_pos pos,
	struct cedar_error *err)
{
	if (b->id_count >= b->set->limits.policies)
		return ced_fail_limit(err, pos, "policies", b->set->limits.policies);
	if (b->id_count >= b->id_capacity / 2 && grow_ids(b, err) < 0)
		return CEDAR_E_MEMORY;
	uint32_t at = id_place(b, id);
	if (b->ids[at])
		return ced_fail(
			err, CEDAR_E_DUPLICATE, pos, "the policy id \"%.100s\" is taken", id->text);
	b->ids[at] = id;
	b->id_count++;
	return 0;
}

/* Go back to how many rules and templates there were. */
static void take_back(struct cedar_builder *b, uint32_t rules, uint32_t templates)
{
	b->rule_count = rules;
	b->template_count = templates;
	if (!b->ids)
		return;
	memset(b->ids, 0, b->id_capacity * sizeof(*b->ids));
	for (uint32_t i = 0; i < rules; i++)
		b->ids[id_place(b, b->rules[i].id)] = b->rules[i].id;
	for (uint32_t i = 0; i < templates; i++)
		b->ids[id_place(b, b->templates[i]->id)] = b->templates[i]->id;
	b->id_count = rules + templates;
}

static int make_id(struct cedar_builder *b, const char *id, size_t n, const struct ced_name **ret,
	struct cedar_error *err)
{
	*ret = ced_intern(&b->names, id, n);
	return *ret ? 0 : ced_arena_fail(&b->set->arena, err, (struct ced_pos){0});
}

/* -- Adding --------------------------------------------------------------------------------- */

static int grow(void **p, uint32_t *capacity, uint32_t need, size_t size, struct cedar_error *err)
{
	if (need <= *capacity)
		return 0;
	uint32_t n = *capacity ? *capacity * 2 : 16;
	void *more = realloc(*p, n * size);
	if (!more)
		return ced_fail_memory(err);
	*p = more;
	*capacity = n;
	return 0;
}

static int add_rule(struct cedar_builder *b, const struct ced_rule *rule, struct cedar_error *err)
{
	int code = grow(
		(void **)&b->rules, &b->rule_capacity, b->rule_count + 1, sizeof(*b->rules), err);
	if (code == 0)
		code = claim_id(b, rule->id, rule->policy->pos, err);
	if (code == 0)
		b->rules[b->rule_count++] = *rule;
	return code;
}

static int add_template(
	struct cedar_builder *b, const struct ced_policy *policy, struct cedar_error *err)
{
	int code = grow((void **)&b->templates, &b->template_capacity, b->template_count + 1,
		sizeof(*b->templates), err);
	if (code == 0)
		code = claim_id(b, policy->id, policy->pos, err);
	if (code == 0)
		b->templates[b->template_count++] = policy;
	return code;
}

static int add_policy(struct cedar_builder *b, struct ced_policy *policy, const struct ced_name *id,
	struct cedar_error *err)
{
	policy->id = id;
	if (ced_policy_is_template(policy))
		return add_template(b, policy, err);
	struct ced_rule rule = {.id = id, .policy = policy};
	return add_rule(b, &rule, err);
}

/* -- Text ----------------------------------------------------------------------------------- */

struct text_sink {
	struct cedar_builder *b;
	const char *prefix;
	const char *only_id; /* the id of the one policy that there must be, or NULL */
	enum cedar_ids ids;
	uint32_t number;
};

static const struct ced_name *id_annotation(const struct ced_policy *policy)
{
	for (uint32_t i = 0; i < policy->annotation_count; i++)
		if (ced_name_is(policy->annotations[i].key, "id"))
			return policy->annotations[i].value;
	return NULL;
}

static int take_policy(void *ctx, struct ced_policy *policy, struct cedar_error *err)
{
	struct text_sink *sink = ctx;
	const struct ced_name *id =
		sink->ids == CEDAR_IDS_ANNOTATION ? id_annotation(policy) : NULL;
	char text[256];
	int code = 0, n = snprintf(text, sizeof(text), "%s%u", sink->prefix, sink->number);
	if (sink->only_id && sink->number)
		return ced_fail(err, CEDAR_E_SYNTAX, policy->pos,
			"expected exactly one policy, found a second one");
	sink->number++;
	if (sink->only_id)
		code = make_id(sink->b, sink->only_id, strlen(sink->only_id), &id, err);
	else if (!id && n >= (int)sizeof(text))
		code = ced_fail_limit(err, policy->pos, "bytes of a policy id", sizeof(text) - 1);
	else if (!id)
		code = make_id(sink->b, text, (size_t)n, &id, err);
	return code < 0 ? code : add_policy(sink->b, policy, id, err);
}

static int add_text(struct text_sink *sink, const char *text, size_t n, struct cedar_error *err)
{
	struct cedar_builder *b = sink->b;
	struct ced_source s = source_of(b, err);
	uint32_t rules = b->rule_count, templates = b->template_count;
	int code = ced_parse_policies(&s, text, n, take_policy, sink);
	if (code == 0 && sink->only_id && !sink->number)
		code = ced_fail(err, CEDAR_E_SYNTAX, (struct ced_pos){0},
			"expected exactly one policy, found none");
	if (code < 0)
		take_back(b, rules, templates);
	return code;
}

int cedar_builder_add_text(cedar_builder *b, const char *prefix, enum cedar_ids ids,
	const char *text, size_t n, struct cedar_error *err)
{
	struct text_sink sink = {.b = b, .prefix = prefix ? prefix : "policy", .ids = ids};
	return add_text(&sink, text, n, err);
}

int cedar_builder_add_policy_text(
	cedar_builder *b, const char *id, const char *text, size_t n, struct cedar_error *err)
{
	struct text_sink sink = {.b = b, .prefix = "", .only_id = id};
	return add_text(&sink, text, n, err);
}

/* -- JSON ----------------------------------------------------------------------------------- */

enum want { WANT_ANY, WANT_STATIC, WANT_TEMPLATE };

/* A policy in JSON, or (as the official interfaces allow) in text within a JSON string. */
static int add_json_policy(struct cedar_builder *b, const struct ced_name *id,
	const struct ced_json *j, struct cedar_error *err)
{
	struct ced_source s = source_of(b, err);
	struct ced_policy *policy;
	if (j->kind == CED_JSON_STRING)
		return cedar_builder_add_policy_text(b, id->text, j->u.text.p, j->u.text.n, err);
	int code = ced_policy_from_json(&s, j, &policy);
	return code < 0 ? code : add_policy(b, policy, id, err);
}

static int check_kind(struct cedar_builder *b, const struct ced_name *id, enum want want,
	uint32_t templates, struct ced_pos pos, struct cedar_error *err)
{
	bool is_template = b->template_count > templates;
	if (want == WANT_STATIC && is_template)
		return ced_fail(err, CEDAR_E_TEMPLATE, pos,
			"the static policy \"%.100s\" has a slot", id->text);
	if (want == WANT_TEMPLATE && !is_template)
		return ced_fail(err, CEDAR_E_TEMPLATE, pos, "the template \"%.100s\" has no slot",
			id->text);
	return 0;
}

/* {id: policy, ...}; a string is one text of static policies. */
static int add_json_policies(
	struct cedar_builder *b, const struct ced_json *j, enum want want, struct cedar_error *err)
{
	if (!j)
		return 0;
	uint32_t before = b->template_count;
	if (j->kind == CED_JSON_STRING && want == WANT_STATIC) {
		int code = cedar_builder_add_text(
			b, NULL, CEDAR_IDS_COUNT, j->u.text.p, j->u.text.n, err);
		if (code == 0 && b->template_count > before)
			return check_kind(b, b->templates[before]->id, want, before, j->pos, err);
		return code;
	}
	if (j->kind != CED_JSON_OBJECT)
		return ced_fail(err, CEDAR_E_SYNTAX, j->pos,
			"expected an object of policies by id, found %s",
			ced_json_kind_name(j->kind));
	for (uint32_t i = 0; i < j->count; i++) {
		const struct ced_member *m = &j->u.members[i];
		const struct ced_name *id;
		int code = make_id(b, m->key.p, m->key.n, &id, err);
		before = b->template_count;
		if (code == 0)
			code = add_json_policy(b, id, &m->value, err);
		if (code == 0)
			code = check_kind(b, id, want, before, m->pos, err);
		if (code < 0)
			return code;
	}
	return 0;
}

/* -- Links ---------------------------------------------------------------------------------- */

static const struct ced_policy *find_template(const struct cedar_builder *b, const char *id)
{
	for (uint32_t i = 0; i < b->template_count; i++)
		if (ced_name_is(b->templates[i]->id, id))
			return b->templates[i];
	return NULL;
}

/* The slots of the template and the values given are the same. */
static int check_slot(const struct ced_policy *t, enum ced_var var, bool slot, bool given,
	struct ced_pos pos, struct cedar_error *err)
{
	if (slot == given)
		return 0;
	return ced_fail(err, CEDAR_E_TEMPLATE, pos,
		slot ? "the link gives no value for ?%s of the template \"%.100s\""
		     : "the link gives a value for ?%s, which the template \"%.100s\" does not "
		       "have",
		ced_var_name[var], t->id->text);
}

static int add_link(struct cedar_builder *b, const struct ced_name *template_id,
	const struct ced_rule *link, struct ced_pos pos, struct cedar_error *err)
{
	struct ced_rule rule = *link;
	rule.linked = true;
	rule.policy = find_template(b, template_id->text);
	if (!rule.policy)
		return ced_fail(err, CEDAR_E_TEMPLATE, pos, "there is no template \"%.100s\"",
			template_id->text);
	int code = check_slot(rule.policy, CED_PRINCIPAL, rule.policy->principal.slot,
		rule.principal != NULL, pos, err);
	if (code == 0)
		code = check_slot(rule.policy, CED_RESOURCE, rule.policy->resource.slot,
			rule.resource != NULL, pos, err);
	return code < 0 ? code : add_rule(b, &rule, err);
}

static int link_values(const struct ced_reader *r, const struct ced_json *j, struct ced_rule *link)
{
	static const char *const may[] = {"?principal", "?resource", NULL};
	int code = ced_json_members(j, "the values of a link", NULL, may, r->err);
	const struct ced_json *principal = ced_json_get(j, "?principal"),
			      *resource = ced_json_get(j, "?resource");
	if (code == 0 && principal)
		code = ced_uid_from_json(r, principal, &link->principal);
	if (code == 0 && resource)
		code = ced_uid_from_json(r, resource, &link->resource);
	return code;
}

static int add_json_link(struct cedar_builder *b, const struct ced_json *j, struct cedar_error *err)
{
	static const char *const want[] = {"templateId", "newId", "values", NULL};
	struct ced_reader r = {&b->set->arena, &b->names, &b->set->limits, err};
	struct ced_rule link = {0};
	int code = ced_json_members(j, "a link", want, NULL, err);
	if (code < 0)
		return code;
	const struct ced_name *template_id = ced_json_name(&r, ced_json_get(j, "templateId"));
	link.id = template_id ? ced_json_name(&r, ced_json_get(j, "newId")) : NULL;
	if (!link.id)
		return err->code;
	code = link_values(&r, ced_json_get(j, "values"), &link);
	return code < 0 ? code : add_link(b, template_id, &link, j->pos, err);
}

static int add_json_links(
	struct cedar_builder *b, const struct ced_json *j, struct cedar_error *err)
{
	if (!j)
		return 0;
	if (j->kind != CED_JSON_ARRAY)
		return ced_fail(err, CEDAR_E_SYNTAX, j->pos, "templateLinks are an array, found %s",
			ced_json_kind_name(j->kind));
	for (uint32_t i = 0; i < j->count; i++) {
		int code = add_json_link(b, &j->u.items[i], err);
		if (code < 0)
			return code;
	}
	return 0;
}

static int add_json_set(struct cedar_builder *b, const struct ced_json *j, struct cedar_error *err)
{
	static const char *const may[] = {"staticPolicies", "templates", "templateLinks", NULL};
	int code = ced_json_members(j, "a policy set", NULL, may, err);
	if (code == 0)
		code = add_json_policies(b, ced_json_get(j, "staticPolicies"), WANT_STATIC, err);
	if (code == 0)
		code = add_json_policies(b, ced_json_get(j, "templates"), WANT_TEMPLATE, err);
	return code < 0 ? code : add_json_links(b, ced_json_get(j, "templateLinks"), err);
}

/* Read the document and add what `id` says: a set (NULL), or one policy. */
static int with_json(struct cedar_builder *b, const char *id, const char *json, size_t n,
	struct cedar_error *err)
{
	const struct cedar_limits *limits = &b->set->limits;
	uint32_t rules = b->rule_count, templates = b->template_count;
	struct cedar_error local = {0};
	const struct ced_name *name;
	struct ced_arena tree;
	struct ced_json j;
	err = err ? err : &local;
	if (n > limits->text_bytes)
		return ced_fail_limit(err, (struct ced_pos){0}, "text_bytes", limits->text_bytes);
	ced_arena_init(&tree, limits->memory_bytes, "memory_bytes");
	int code = ced_json_read(&tree, json, n, ced_policy_json_depth(limits), "height", &j, err);
	if (code == 0 && id)
		code = make_id(b, id, strlen(id), &name, err);
	if (code == 0)
		code = id ? add_json_policy(b, name, &j, err) : add_json_set(b, &j, err);
	ced_arena_done(&tree);
	ced_place(err, json, n);
	if (code < 0)
		take_back(b, rules, templates);
	return code;
}

int cedar_builder_add_policy_json(
	cedar_builder *b, const char *id, const char *json, size_t n, struct cedar_error *err)
{
	return with_json(b, id, json, n, err);
}

int cedar_builder_add_json(cedar_builder *b, const char *json, size_t n, struct cedar_error *err)
{
	return with_json(b, NULL, json, n, err);
}

static int link_uid(const struct ced_reader *r, const char *text, const struct ced_uid **ret)
{
	return text ? ced_uid_from_text(r, text, strlen(text), ret) : 0;
}

int cedar_builder_link(cedar_builder *b, const char *template_id, const char *id,
	const char *principal, const char *resource, struct cedar_error *err)
{
	struct ced_reader r = {&b->set->arena, &b->names, &b->set->limits, err};
	struct ced_rule link = {0};
	const struct ced_name *template_name;
	int code = make_id(b, template_id, strlen(template_id), &template_name, err);
	if (code == 0)
		code = make_id(b, id, strlen(id), &link.id, err);
	if (code == 0)
		code = link_uid(&r, principal, &link.principal);
	if (code == 0)
		code = link_uid(&r, resource, &link.resource);
	return code < 0 ? code : add_link(b, template_name, &link, (struct ced_pos){0}, err);
}

/* -- Finishing ------------------------------------------------------------------------------ */

int cedar_builder_finish(cedar_builder *b, cedar_policies **ret, struct cedar_error *err)
{
	struct cedar_policies *set = b->set;
	set->rules = ced_arena_copy(&set->arena, b->rules, b->rule_count * sizeof(*b->rules));
	set->templates = ced_arena_copy(
		&set->arena, b->templates, b->template_count * sizeof(*b->templates));
	if (!set->rules || !set->templates)
		return ced_arena_fail(&set->arena, err, (struct ced_pos){0});
	set->rule_count = b->rule_count;
	set->template_count = b->template_count;
	int code = ced_index_build(set, err);
	if (code < 0)
		return code;
	b->set = NULL;
	cedar_builder_free(b);
	*ret = set;
	return 0;
}

typedef int (*add_fn)(cedar_builder *b, const char *text, size_t n, struct cedar_error *err);

static int add_counted(cedar_builder *b, const char *text, size_t n, struct cedar_error *err)
{
	return cedar_builder_add_text(b, NULL, CEDAR_IDS_COUNT, text, n, err);
}

static int build(add_fn add, const char *text, size_t n, const struct cedar_limits *limits,
	cedar_policies **ret, struct cedar_error *err)
{
	cedar_builder *b = cedar_builder_new(limits);
	int code = b ? add(b, text, n, err) : ced_fail_memory(err);
	if (code == 0)
		code = cedar_builder_finish(b, ret, err);
	if (code < 0)
		cedar_builder_free(b);
	return code;
}

int cedar_policies_from_text(const char *text, size_t n, const struct cedar_limits *limits,
	cedar_policies **ret, struct cedar_error *err)
{
	return build(add_counted, text, n, limits, ret, err);
}

int cedar_policies_from_json(const char *json, size_t n, const struct cedar_limits *limits,
	cedar_policies **ret, struct cedar_error *err)
{
	return build(cedar_builder_add_json, json, n, limits, ret, err);
}
