/* translate-policy and translate-schema: from text to JSON and back. */
#include <string.h>

#include "tool.h"

enum direction { TO_JSON, TO_CEDAR, UNKNOWN };

static enum direction direction_of(const struct options *o)
{
	if (o->direction && strcmp(o->direction, "cedar-to-json") == 0)
		return TO_JSON;
	if (o->direction && strcmp(o->direction, "json-to-cedar") == 0)
		return TO_CEDAR;
	diag_say("error", "--direction is cedar-to-json or json-to-cedar");
	return UNKNOWN;
}

static int print_or_fail(int r, struct cedar_text *text, const struct cedar_error *err)
{
	if (r == 0)
		return print_text(text);
	diag_error("error", NULL, err);
	return TOOL_FAILURE;
}

/* The ids of translated policies are those of their places, as the official tool has them. */
int cmd_translate_policy(const struct options *o)
{
	enum direction d = direction_of(o);
	cedar_policies *policies = NULL;
	struct cedar_text text;
	struct cedar_error err;
	struct file f;
	int r;

	if (d == UNKNOWN || file_read(o->policies, &f) != 0)
		return TOOL_FAILURE;
	r = d == TO_JSON ? cedar_policies_from_text(f.data, f.n, NULL, &policies, &err)
			 : cedar_policies_from_json(f.data, f.n, NULL, &policies, &err);
	if (r < 0) {
		diag_error("error", &f, &err);
		file_done(&f);
		return TOOL_FAILURE;
	}
	r = d == TO_JSON ? cedar_policies_to_json(policies, &text, &err)
			 : cedar_policies_to_text(policies, &text, &err);
	r = print_or_fail(r, &text, &err);
	cedar_policies_free(policies);
	file_done(&f);
	return r;
}

int cmd_translate_schema(const struct options *o)
{
	enum direction d = direction_of(o);
	struct options with_format = *o;
	cedar_schema *schema;
	struct cedar_text text;
	struct cedar_error err;
	int r;

	if (d == UNKNOWN)
		return TOOL_FAILURE;
	with_format.schema_format = d == TO_JSON ? "cedar" : "json";
	if (!with_format.schema)
		with_format.schema = "-";
	if (load_schema(&with_format, &schema) != 0)
		return TOOL_FAILURE;
	r = d == TO_JSON ? cedar_schema_to_json(schema, &text, &err)
			 : cedar_schema_to_text(schema, &text, &err);
	r = print_or_fail(r, &text, &err);
	cedar_schema_free(schema);
	return r;
}
