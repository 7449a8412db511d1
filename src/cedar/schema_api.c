/* The public functions over schemas. */
#include <stdlib.h>

#include "cedar/schema.h"
#include "cedar/schema_print.h"
#include "cedar/schema_read.h"

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
		ced_place(&local, text, n);
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
	struct cedar_error local = {0};

	if (ced_sch_print_text(&schema->tree, &out, &local) < 0) {
		free(out.data);
		if (err)
			*err = local;
		return local.code;
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
