/* The public functions over schemas and reports. */
#include <limits.h>
#include <stdlib.h>

#include "cedar/schema.h"
#include "cedar/schema_print.h"
#include "cedar/schema_read.h"
#include "cedar/slice.h"
#include "cedar/validate.h"

typedef int reader_fn(struct ced_slice src, struct ced_arena *arena,
	const struct cedar_limits *limits, struct ced_sch_tree *ret_tree, struct cedar_error *err);

/* The tree points into the text, so that a schema keeps a copy of it. */
static int load(cedar_schema *s, reader_fn *read, const char *text, size_t n,
	const struct cedar_limits *limits, struct cedar_error *err)
{
	struct ced_sch_tree tree;
	const char *copy;

	if (n > limits->text_bytes)
		return ced_fail_limit(err, (struct ced_pos){0}, "text_bytes", limits->text_bytes);
	copy = ced_arena_copy(&s->arena, text, n);
	if (!copy)
		return ced_arena_fail(&s->arena, err, (struct ced_pos){0});
	if (read((struct ced_slice){copy, n}, &s->arena, limits, &tree, err) < 0)
		return -1;
	return ced_schema_resolve(s, &tree, limits, err);
}

static int from(reader_fn *read, const char *text, size_t n, const struct cedar_limits *limits,
	cedar_schema **ret, struct cedar_error *err)
{
	struct cedar_limits defaults = cedar_limits_default();
	struct cedar_error local = {0};
	cedar_schema *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return ced_fail_memory(err);
	if (!limits)
		limits = &defaults;
	ced_arena_init(&s->arena, limits->memory_bytes, "memory_bytes");
	r = load(s, read, text, n, limits, &local);
	if (r < 0) {
		cedar_schema_free(s);
		if (err)
			*err = local;
		return local.code;
	}
	*ret = s;
	return 0;
}

int cedar_schema_from_text(const char *text, size_t n, const struct cedar_limits *limits,
	cedar_schema **ret, struct cedar_error *err)
{
	return from(ced_sch_parse_text, text, n, limits, ret, err);
}

int cedar_schema_from_json(const char *json, size_t n, const struct cedar_limits *limits,
	cedar_schema **ret, struct cedar_error *err)
{
	return from(ced_sch_parse_json, json, n, limits, ret, err);
}

void cedar_schema_free(cedar_schema *schema)
{
	if (!schema)
		return;
	ced_arena_done(&schema->arena);
	free(schema);
}

int cedar_schema_to_text(
	const cedar_schema *schema, struct cedar_text *ret, struct cedar_error *err)
{
	struct ced_out out = {0};
	int r = ced_sch_print_text(&schema->tree, &out, err);

	if (r < 0) {
		free(out.data);
		return r;
	}
	return ced_out_take(&out, ret, err);
}

int cedar_schema_to_json(
	const cedar_schema *schema, struct cedar_text *ret, struct cedar_error *err)
{
	struct ced_out out = {0};

	ced_sch_print_json(&schema->tree, &out);
	return ced_out_take(&out, ret, err);
}

/* ---- reports ---- */

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
