/* The public functions over validation and its reports. */
#include <limits.h>
#include <stdlib.h>

#include "cedar/validate.h"

static struct ced_validate_options options_of(const struct cedar_validation *options)
{
	struct ced_validate_options o = {.level = -1};

	if (!options)
		return o;
	o.no_action_is_error = options->inapplicable_is_error;
	if (options->level_plus_one > 0)
		o.level = options->level_plus_one - 1 > INT_MAX
				  ? INT_MAX
				  : (int)(options->level_plus_one - 1);
	return o;
}

static int validate_all(const cedar_schema *schema, const cedar_policies *policies,
	const struct ced_validate_options *o, struct ced_arena *scratch, cedar_report *report)
{
	int r = 0;

	for (uint32_t i = 0; i < policies->template_count && r == 0; i++) {
		r = ced_validate_policy(schema, policies->templates[i], o, scratch, report);
		ced_arena_reset(scratch);
	}
	for (uint32_t i = 0; i < policies->rule_count && r == 0; i++) {
		const struct ced_rule *rule = &policies->rules[i];

		if (rule->linked) {
			r = ced_validate_link(schema, rule, o, report);
			continue;
		}
		r = ced_validate_policy(schema, rule->policy, o, scratch, report);
		ced_arena_reset(scratch);
	}
	return report->out_of_memory ? -1 : 0;
}

int cedar_validate(const cedar_schema *schema, const cedar_policies *policies,
	const struct cedar_validation *options, cedar_report **ret, struct cedar_error *err)
{
	struct ced_validate_options o = options_of(options);
	cedar_report *report = calloc(1, sizeof(*report));
	struct ced_arena scratch;

	if (!report)
		return ced_fail_memory(err);
	ced_report_init(report, policies->limits.memory_bytes);
	ced_arena_init(&scratch, policies->limits.memory_bytes, "memory_bytes");
	if (validate_all(schema, policies, &o, &scratch, report) < 0) {
		int r = ced_arena_fail(&report->arena, err, (struct ced_pos){0});

		ced_arena_done(&scratch);
		cedar_report_free(report);
		return r;
	}
	ced_arena_done(&scratch);
	*ret = report;
	return 0;
}

void cedar_report_free(cedar_report *report)
{
	if (!report)
		return;
	ced_report_done(report);
	free(report);
}

bool cedar_report_valid(const cedar_report *report)
{
	return report->n_errors == 0;
}

size_t cedar_report_count(const cedar_report *report)
{
	return report->n;
}

void cedar_report_at(const cedar_report *report, size_t n, bool *ret_is_warning,
	const char **ret_policy_id, struct cedar_error *ret_finding)
{
	const struct ced_finding *f = &report->v[n];

	if (ret_is_warning)
		*ret_is_warning = f->warning;
	if (ret_policy_id)
		*ret_policy_id = f->policy->text;
	if (ret_finding)
		(void)ced_fail(ret_finding, CEDAR_E_INVALID, f->pos, "%s", f->text);
}
