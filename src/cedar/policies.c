/* Policy sets: their life, what can be asked about them, and their text and JSON. */
#include "cedar/policies.h"
#include "cedar/est.h"
#include "cedar/print.h"

#include <stdlib.h>

cedar_policies *cedar_policies_ref(cedar_policies *policies)
{
	(void)__atomic_add_fetch(&policies->references, 1, __ATOMIC_RELAXED);
	return policies;
}

void ced_policies_release(cedar_policies *policies, int64_t n)
{
	if (__atomic_sub_fetch(&policies->references, n, __ATOMIC_ACQ_REL) != 0)
		return;
	ced_arena_done(&policies->arena);
	free(policies);
}

void cedar_policies_free(cedar_policies *policies)
{
	if (policies)
		ced_policies_release(policies, 1);
}

size_t cedar_policies_count(const cedar_policies *policies)
{
	return policies->rule_count;
}

size_t cedar_policies_template_count(const cedar_policies *policies)
{
	return policies->template_count;
}

/* NULL for a template: those come after the rules. */
static const struct ced_rule *rule_at(const cedar_policies *set, size_t index)
{
	return index < set->rule_count ? &set->rules[index] : NULL;
}

static const struct ced_policy *policy_at(const cedar_policies *set, size_t index)
{
	const struct ced_rule *rule = rule_at(set, index);
	return rule ? rule->policy : set->templates[index - set->rule_count];
}

const char *cedar_policy_id(const cedar_policies *set, size_t index)
{
	return index < set->rule_count ? set->rules[index].id->text
				       : set->templates[index - set->rule_count]->id->text;
}

enum cedar_effect cedar_policy_effect(const cedar_policies *policies, size_t index)
{
	return policy_at(policies, index)->effect;
}

static const char *annotation_value(const struct ced_annotation *a)
{
	return a->value ? a->value->text : "";
}

const char *cedar_policy_annotation(const cedar_policies *policies, size_t index, const char *key)
{
	const struct ced_policy *p = policy_at(policies, index);
	for (uint32_t i = 0; i < p->annotation_count; i++)
		if (ced_name_is(p->annotations[i].key, key))
			return annotation_value(&p->annotations[i]);
	return NULL;
}

size_t cedar_policy_annotation_count(const cedar_policies *policies, size_t index)
{
	return policy_at(policies, index)->annotation_count;
}

void cedar_policy_annotation_at(const cedar_policies *policies, size_t index, size_t n,
	const char **ret_key, const char **ret_value)
{
	const struct ced_annotation *a = &policy_at(policies, index)->annotations[n];
	*ret_key = a->key->text;
	*ret_value = annotation_value(a);
}

int cedar_policy_to_text(
	const cedar_policies *set, size_t index, struct cedar_text *ret, struct cedar_error *err)
{
	struct ced_out o = {0};
	const struct ced_rule *rule = rule_at(set, index);
	ced_print_rule(&o, policy_at(set, index), rule ? rule->principal : NULL,
		rule ? rule->resource : NULL);
	return ced_out_take(&o, ret, err);
}

static void fill_slot(struct ced_scope *scope, const struct ced_uid *const *uid)
{
	scope->slot = false;
	scope->uids = uid;
	scope->count = 1;
}

int cedar_policy_to_json(
	const cedar_policies *set, size_t index, struct cedar_text *ret, struct cedar_error *err)
{
	struct ced_out o = {0};
	const struct ced_rule *rule = rule_at(set, index);
	struct ced_policy filled = *policy_at(set, index);
	if (rule && rule->principal)
		fill_slot(&filled.principal, &rule->principal);
	if (rule && rule->resource)
		fill_slot(&filled.resource, &rule->resource);
	ced_policy_to_json(&o, &filled);
	return ced_out_take(&o, ret, err);
}

int cedar_policies_to_text(
	const cedar_policies *set, struct cedar_text *ret, struct cedar_error *err)
{
	struct ced_out o = {0};
	for (uint32_t i = 0; i < set->rule_count; i++)
		if (set->rules[i].linked)
			return ced_fail(err, CEDAR_E_TEMPLATE, (struct ced_pos){0},
				"the link \"%.100s\" has no form in text", set->rules[i].id->text);
	for (uint32_t i = 0; i < set->rule_count + set->template_count; i++) {
		if (i)
			ced_out_text(&o, "\n");
		ced_print_policy(&o, policy_at(set, i), &ced_layout_default);
	}
	return ced_out_take(&o, ret, err);
}

/* "id": policy */
static void write_member(
	struct ced_out *o, bool first, const struct ced_name *id, const struct ced_policy *policy)
{
	if (!first)
		ced_out_text(o, ",");
	ced_out_json_string(o, id->text, id->length);
	ced_out_text(o, ":");
	ced_policy_to_json(o, policy);
}

static void write_link(struct ced_out *o, bool first, const struct ced_rule *rule)
{
	ced_out_text(o, first ? "{\"templateId\":" : ",{\"templateId\":");
	ced_out_json_string(o, rule->policy->id->text, rule->policy->id->length);
	ced_out_text(o, ",\"newId\":");
	ced_out_json_string(o, rule->id->text, rule->id->length);
	ced_out_text(o, ",\"values\":{");
	if (rule->principal) {
		ced_out_text(o, "\"?principal\":");
		ced_uid_to_json(o, rule->principal);
	}
	if (rule->resource) {
		ced_out_text(o, rule->principal ? ",\"?resource\":" : "\"?resource\":");
		ced_uid_to_json(o, rule->resource);
	}
	ced_out_text(o, "}}");
}

int cedar_policies_to_json(
	const cedar_policies *set, struct cedar_text *ret, struct cedar_error *err)
{
	struct ced_out o = {0};
	bool first = true;
	ced_out_text(&o, "{\"staticPolicies\":{");
	for (uint32_t i = 0; i < set->rule_count; i++)
		if (!set->rules[i].linked) {
			write_member(&o, first, set->rules[i].id, set->rules[i].policy);
			first = false;
		}
	ced_out_text(&o, "},\"templates\":{");
	for (uint32_t i = 0; i < set->template_count; i++)
		write_member(&o, i == 0, set->templates[i]->id, set->templates[i]);
	ced_out_text(&o, "},\"templateLinks\":[");
	first = true;
	for (uint32_t i = 0; i < set->rule_count; i++)
		if (set->rules[i].linked) {
			write_link(&o, first, &set->rules[i]);
			first = false;
		}
	ced_out_text(&o, "]}");
	return ced_out_take(&o, ret, err);
}
