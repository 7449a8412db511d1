/* validate and check-parse. */
#include <limits.h>

#include "tool.h"

static int parse_level(const char *text, unsigned *ret_plus_one)
{
	uint32_t n = 0;

	*ret_plus_one = 0;
	if (!text)
		return 0;
	if (read_number("level", text, INT_MAX - 1, &n) != 0)
		return TOOL_FAILURE;
	*ret_plus_one = n + 1;
	return 0;
}

/* The policy's text again, to show the place; a JSON document has places that nobody wrote. */
static void print_finding(
	const cedar_report *report, size_t i, const struct options *o, const struct file *f)
{
	bool text = !o->policy_format || o->policy_format[0] != 'j';
	struct cedar_error err;
	const char *id;
	bool warning;

	cedar_report_at(report, i, &warning, &id, &err);
	(void)fprintf(stderr, "policy %s: ", id);
	diag_error(warning ? "warning" : "error", text ? f : NULL, &err);
}

static int print_report(const cedar_report *report, const struct options *o)
{
	struct file f = {0};
	size_t n = cedar_report_count(report);
	bool valid = cedar_report_valid(report);

	/* Standard input was read already. */
	if (n > 0 && o->policies && o->policies[0] != '-' && file_read(o->policies, &f) != 0)
		return TOOL_FAILURE;
	for (size_t i = 0; i < n; i++)
		print_finding(report, i, o, f.data ? &f : NULL);
	file_done(&f);
	if (!valid || (o->deny_warnings && n > 0)) {
		(void)puts("policy set validation failed");
		return TOOL_INVALID;
	}
	(void)puts(n > 0 ? "policy set validation passed, with warnings"
			 : "policy set validation passed");
	return TOOL_OK;
}

static int validate(const struct options *o, const cedar_schema *schema,
	const cedar_policies *policies, unsigned level_plus_one)
{
	struct cedar_validation options = {
		.inapplicable_is_error = o->compat_412, .level_plus_one = level_plus_one};
	cedar_report *report;
	struct cedar_error err;
	int r;

	if (cedar_validate(schema, policies, &options, &report, &err) < 0) {
		diag_error("error", NULL, &err);
		return TOOL_FAILURE;
	}
	r = print_report(report, o);
	cedar_report_free(report);
	return r;
}

int cmd_validate(const struct options *o)
{
	cedar_schema *schema = NULL;
	cedar_policies *policies = NULL;
	unsigned level_plus_one;
	int r = parse_level(o->level, &level_plus_one);

	if (r == 0 && !o->schema) {
		diag_say("error", "validate needs --schema");
		r = TOOL_FAILURE;
	}
	if (r == 0)
		r = load_schema(o, &schema);
	if (r == 0)
		r = load_policies(o, &policies);
	if (r == 0)
		r = validate(o, schema, policies, level_plus_one);
	cedar_policies_free(policies);
	cedar_schema_free(schema);
	return r;
}

/* Whatever is named is parsed; without anything, policies from standard input. */
int cmd_check_parse(const struct options *o)
{
	cedar_schema *schema = NULL;
	cedar_policies *policies = NULL;
	cedar_entities *entities = NULL;
	int r = load_schema(o, &schema);

	if (r == 0 && o->entities)
		r = load_entities(o, schema, &entities);
	if (r == 0 && (o->policies || (!o->schema && !o->entities)))
		r = load_policies(o, &policies);
	cedar_entities_free(entities);
	cedar_policies_free(policies);
	cedar_schema_free(schema);
	return r;
}
