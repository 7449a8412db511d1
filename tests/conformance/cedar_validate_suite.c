/*
 * The official Cedar data about validation:
 *
 *   policies FILE...       is each policy set valid as recorded for 4.13 (valid413) and, with the
 *                          option for it, for 4.10 (shouldValidate)
 *   data CORPUS EXPECTED   entities and requests, as recorded for 4.9
 *   cases FILE             the hand-written validator cases: policies, entities, requests
 *   guided FILE            entities read with the help of a schema
 */
#include "cedar_lines.h"

#include "cedar/conform.h"

static bool same_slice(struct ced_slice a, struct ced_slice b)
{
	return a.n == b.n && memcmp(a.p, b.p, a.n) == 0;
}

static const struct ced_json *member(const struct ced_json *j, struct ced_slice key)
{
	for (uint32_t i = 0; i < j->count; i++)
		if (same_slice(j->u.members[i].key, key))
			return &j->u.members[i].value;
	return NULL;
}

/* ---- policies ---- */

static cedar_schema *schema_of(const struct lines *l, const struct ced_json *j)
{
	const struct ced_json *schema = ced_json_get(j, "schema");
	struct ced_slice text =
		schema->kind == CED_JSON_STRING ? schema->u.text : source_of(l, schema);
	cedar_schema *s = NULL;
	struct cedar_error err;
	int r = schema->kind == CED_JSON_STRING
			? cedar_schema_from_text(text.p, text.n, NULL, &s, &err)
			: cedar_schema_from_json(text.p, text.n, NULL, &s, &err);

	if (r < 0)
		printf("# schema: %u:%u: %s\n", err.line, err.column, err.text);
	return s;
}

static cedar_report *report_of(
	const cedar_schema *s, struct ced_slice text, const struct cedar_validation *options)
{
	cedar_policies *policies = NULL;
	cedar_report *report = NULL;
	struct cedar_error err = {0};
	int r = cedar_policies_from_text(text.p, text.n, NULL, &policies, &err);

	if (r == 0)
		r = cedar_validate(s, policies, options, &report, &err);
	if (r < 0)
		printf("# policies: %u:%u: %s\n", err.line, err.column, err.text);
	cedar_policies_free(policies);
	return report;
}

/* The corpus records both what 4.13 says and, as shouldValidate, what 4.10 said. */
static void try_policies(struct tally *t, const struct lines *l, const struct ced_json *j)
{
	struct cedar_validation old = {.inapplicable_is_error = true};
	cedar_schema *s = schema_of(l, j);
	cedar_report *now = NULL, *before = NULL;
	const char *why = s ? NULL : "the schema is refused";
	const char *newest = ced_json_get(j, "valid413") ? "valid413" : "shouldValidate";

	if (!why) {
		now = report_of(s, text_of(j, "policies"), NULL);
		before = report_of(s, text_of(j, "policies"), &old);
		if (!now || !before)
			why = "no report";
		else if (cedar_report_valid(now) != true_of(j, newest))
			why = "not as in 4.13";
		else if (cedar_report_valid(before) != true_of(j, "shouldValidate"))
			why = "not as in 4.10";
	}
	t->done++;
	if (why)
		tally_fail(t, text_of(j, "id"), why);
	cedar_report_free(now);
	cedar_report_free(before);
	cedar_schema_free(s);
}

static void policies(struct tally *t, const char *path)
{
	struct lines l;
	struct ced_json j;

	lines_open(&l, path);
	while (lines_next(&l, &j))
		try_policies(t, &l, &j);
	lines_close(&l);
	tally_end(t, "policies valid or not, as recorded for 4.13 and 4.10");
}

/* ---- entities and requests ---- */

/* Is the entity with this name (`Type::id`, the id as it is) without errors in what is expected? */
static bool expected_to_conform(const struct ced_json *per_entity, const struct ced_entity *e)
{
	char name[8192];
	int n = snprintf(name, sizeof(name), "%s::%s", e->uid.type->text, e->uid.id->text);
	const struct ced_json *row = member(per_entity, (struct ced_slice){name, (size_t)n});

	return !row || !ced_json_get(row, "errors");
}

static const char *try_entities(const cedar_schema *s, const struct lines *l,
	const struct ced_json *entities, const struct ced_json *per_entity)
{
	struct ced_slice text = source_of(l, entities);
	cedar_entities *all = NULL;
	static struct cedar_error err;
	const char *why = NULL;

	if (cedar_entities_from_json(text.p, text.n, NULL, &all, &err) < 0)
		return "the entities are refused";
	for (uint32_t i = 0; i < all->count && !why; i++) {
		const struct ced_entity *e = &all->entities[i];
		bool action = ced_schema_is_action_name(
			(struct ced_slice){e->uid.type->text, e->uid.type->length});
		int r = action ? ced_conform_action(s, e, (struct ced_pos){0}, &err)
			       : ced_conform_entity(s, e, (struct ced_pos){0}, &err);

		if (memchr(e->uid.id->text, 0, e->uid.id->length))
			continue; /* its name in the data is cut there */
		if ((r == 0) != expected_to_conform(per_entity, e))
			why = r == 0 ? "an entity is accepted" : err.text;
	}
	cedar_entities_free(all);
	return why;
}

static const char *try_request(
	const cedar_schema *s, const struct lines *l, const struct ced_json *request, bool want)
{
	const struct ced_json *context = ced_json_get(request, "context");
	static struct cedar_error err;
	struct ced_slice p = source_of(l, ced_json_get(request, "principal")),
			 a = source_of(l, ced_json_get(request, "action")),
			 r = source_of(l, ced_json_get(request, "resource")),
			 c = context ? source_of(l, context) : (struct ced_slice){"{}", 2};
	cedar_request *q = NULL;
	char *text = NULL;
	int n, code;

	n = asprintf(&text,
		"{\"principal\":%.*s,\"action\":%.*s,\"resource\":%.*s,\"context\":%.*s}", (int)p.n,
		p.p, (int)a.n, a.p, (int)r.n, r.p, (int)c.n, c.p);
	if (n < 0)
		return "out of memory";
	code = cedar_schema_request_from_json(s, text, (size_t)n, NULL, &q, &err);
	cedar_request_free(q);
	free(text);
	if ((code == 0) == want)
		return NULL;
	return code == 0 ? "a request is accepted" : err.text;
}

static const char *try_requests(const cedar_schema *s, const struct lines *l,
	const struct ced_json *requests, const struct ced_json *expected)
{
	const char *why = NULL;

	for (uint32_t i = 0; i < requests->count && i < expected->count && !why; i++)
		why = try_request(
			s, l, &requests->u.items[i], true_of(&expected->u.items[i], "strict"));
	return why;
}

static void try_data(struct tally *t, const struct lines *l, const struct ced_json *j,
	const struct ced_json *expected)
{
	const struct ced_json *entities = ced_json_get(expected, "entityValidation"),
			      *requests = ced_json_get(expected, "requestValidation");
	cedar_schema *s = schema_of(l, j);
	const char *why = s ? NULL : "the schema is refused";

	if (!why)
		why = try_entities(
			s, l, ced_json_get(j, "entities"), ced_json_get(entities, "perEntity"));
	if (!why)
		why = try_requests(s, l, ced_json_get(j, "requests"), requests);
	t->done++;
	if (why)
		tally_fail(t, text_of(j, "id"), why);
	cedar_schema_free(s);
}

/* The expectations are a part of the corpus, in the same order. */
static void data(struct tally *t, const char *corpus, const char *expected)
{
	struct lines a, b;
	struct ced_json x, y;

	lines_open(&a, corpus);
	lines_open(&b, expected);
	while (lines_next(&b, &y)) {
		bool found = false;

		while (!found && lines_next(&a, &x))
			found = same_slice(text_of(&x, "id"), text_of(&y, "id"));
		if (found)
			try_data(t, &a, &x, &y);
	}
	lines_close(&a);
	lines_close(&b);
	tally_end(t, "entities and requests, as recorded for 4.9");
}

/* ---- the validator cases ---- */

static bool policy_has_error(const cedar_report *report, const char *id)
{
	for (size_t i = 0; i < cedar_report_count(report); i++) {
		const char *policy;
		bool warning;

		cedar_report_at(report, i, &warning, &policy, NULL);
		if (!warning && strcmp(policy, id) == 0)
			return true;
	}
	return false;
}

static const char *try_case_policies(
	const cedar_schema *s, const struct ced_json *j, const struct ced_json *expected)
{
	struct cedar_validation old = {.inapplicable_is_error = true};
	const struct ced_json *per_policy = ced_json_get(expected, "perPolicy");
	cedar_report *report = report_of(s, text_of(j, "policies"), &old);
	const char *why = report ? NULL : "no report";

	for (uint32_t i = 0; per_policy && i < per_policy->count && !why; i++) {
		const struct ced_member *m = &per_policy->u.members[i];
		char id[64];

		(void)snprintf(id, sizeof(id), "%.*s", (int)m->key.n, m->key.p);
		if (policy_has_error(report, id) == true_of(&m->value, "strict"))
			why = "a policy is not valid or invalid as recorded";
	}
	cedar_report_free(report);
	return why;
}

static void try_case(struct tally *t, const struct lines *l, const struct ced_json *j)
{
	const struct ced_json *expected = ced_json_get(j, "expected");
	cedar_schema *s = schema_of(l, j);
	const char *why = s ? try_case_policies(s, j, ced_json_get(expected, "policyValidation"))
			    : "the schema is refused";

	if (why) {
		t->done++;
		tally_fail(t, text_of(j, "id"), why);
	} else {
		try_data(t, l, j, expected);
	}
	cedar_schema_free(s);
}

static void cases(struct tally *t, const char *path)
{
	struct lines l;
	struct ced_json j;

	lines_open(&l, path);
	while (lines_next(&l, &j))
		try_case(t, &l, &j);
	lines_close(&l);
	tally_end(t, "hand-written validator cases");
}

/* ---- guided reading ---- */

static void guided(struct tally *t, const char *path)
{
	struct lines l;
	struct ced_json j;

	lines_open(&l, path);
	while (lines_next(&l, &j)) {
		const struct ced_json *want =
			ced_json_get(ced_json_get(&j, "expected"), "allEntities");
		struct ced_slice text = text_of(&j, "entitiesText");
		cedar_schema *s = schema_of(&l, &j);
		cedar_entities *entities = NULL;
		struct cedar_error err;
		int r = s ? cedar_schema_entities_from_json(
				    s, text.p, text.n, NULL, &entities, &err)
			  : -1;

		t->done++;
		if (!s || (r == 0) != true_of(want, "success"))
			tally_fail(t, text_of(&j, "id"), r == 0 ? "accepted" : err.text);
		cedar_entities_free(entities);
		cedar_schema_free(s);
	}
	lines_close(&l);
	tally_end(t, "entities read with a schema");
}

int main(int argc, char **argv)
{
	struct tally t = {0};

	if (argc < 3)
		return 1;
	if (strcmp(argv[1], "policies") == 0)
		for (int i = 2; i < argc; i++)
			policies(&t, argv[i]);
	else if (strcmp(argv[1], "data") == 0 && argc == 4)
		data(&t, argv[2], argv[3]);
	else if (strcmp(argv[1], "cases") == 0)
		cases(&t, argv[2]);
	else if (strcmp(argv[1], "guided") == 0)
		guided(&t, argv[2]);
	else
		return 1;
	printf("1..%u\n", t.number);
	return t.failed || !t.done ? 1 : 0;
}
