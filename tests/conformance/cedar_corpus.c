/*
 * The official corpus: every decision, its reasons and its errors; every policy to JSON and back,
 * and to text and back.
 */
#include "lines.h"

#include "cedar/est.h"
#include "cedar/parse.h"
#include "cedar/policies.h"
#include "cedar/print.h"

/* -- JSON trees that say the same ------------------------------------------------------------ */

/* The pattern with its literals joined: "*" for a wildcard, a NUL after each literal. */
static void flatten(struct ced_out *o, const struct ced_json *pattern)
{
	bool literal = false;
	for (uint32_t i = 0; i < pattern->count; i++) {
		const struct ced_json *e = &pattern->u.items[i];
		const struct ced_json *text = ced_json_get(e, "Literal");
		if (!text && literal)
			ced_out_bytes(o, "", 1);
		if (text)
			ced_out_bytes(o, text->u.text.p, text->u.text.n);
		else
			ced_out_text(o, "*");
		literal = text != NULL;
	}
}

static bool same_pattern(const struct ced_json *a, const struct ced_json *b)
{
	struct ced_out x = {0}, y = {0};
	flatten(&x, a);
	flatten(&y, b);
	bool same = x.length == y.length && (!x.length || memcmp(x.data, y.data, x.length) == 0);
	free(x.data);
	free(y.data);
	return same;
}

static bool same_slice(struct ced_slice a, struct ced_slice b)
{
	return a.n == b.n && (!a.n || memcmp(a.p, b.p, a.n) == 0);
}

static bool same_json(const struct ced_json *a, const struct ced_json *b)
{
	if (a->kind != b->kind || (a->count != b->count && a->kind == CED_JSON_OBJECT))
		return false;
	if (a->kind == CED_JSON_BOOL)
		return a->boolean == b->boolean;
	if (a->kind == CED_JSON_STRING || a->kind == CED_JSON_NUMBER)
		return same_slice(a->u.text, b->u.text);
	if (a->kind == CED_JSON_ARRAY && a->count != b->count)
		return false;
	for (uint32_t i = 0; a->kind == CED_JSON_ARRAY && i < a->count; i++)
		if (!same_json(&a->u.items[i], &b->u.items[i]))
			return false;
	for (uint32_t i = 0; a->kind == CED_JSON_OBJECT && i < a->count; i++) {
		const struct ced_member *m = &a->u.members[i];
		const struct ced_json *other = NULL;
		for (uint32_t k = 0; k < b->count; k++)
			if (same_slice(b->u.members[k].key, m->key))
				other = &b->u.members[k].value;
		bool pattern = ced_slice_is(m->key, "pattern") && a->count == 2;
		if (!other ||
			!(pattern ? same_pattern(&m->value, other) : same_json(&m->value, other)))
			return false;
	}
	return true;
}

/* -- Policies there and back ----------------------------------------------------------------- */

struct workshop {
	struct ced_arena arena;
	struct ced_names names;
	struct cedar_limits limits;
	struct cedar_error err;
	struct ced_source source;
};

static void workshop_open(struct workshop *w)
{
	*w = (struct workshop){.limits = cedar_limits_default()};
	ced_arena_init(&w->arena, w->limits.memory_bytes, "memory_bytes");
	ced_names_init(&w->names, &w->arena);
	w->source = (struct ced_source){&w->arena, &w->names, &w->limits, &w->err};
}

static void workshop_close(struct workshop *w)
{
	ced_names_done(&w->names);
	ced_arena_done(&w->arena);
}

static int keep(void *ctx, struct ced_policy *policy, struct cedar_error *err)
{
	(void)err;
	*(struct ced_policy **)ctx = policy;
	return 0;
}

/* The one policy of a text; NULL when it does not parse. */
static struct ced_policy *parse(struct workshop *w, const char *text, size_t n)
{
	struct ced_policy *policy = NULL;
	return ced_parse_policies(&w->source, text, n, keep, &policy) < 0 ? NULL : policy;
}

static void check_print(
	struct workshop *w, const struct ced_policy *policy, const char *what, struct verdict *v)
{
	struct ced_out o = {0};
	ced_print_policy(&o, policy, &ced_layout_default);
	struct ced_policy *again = parse(w, o.data, o.length);
	if (!again)
		verdict_bad(v, "%s: the printed text does not parse: %.200s\n%.*s", what,
			w->err.text, (int)o.length, o.data);
	else if (!ced_policy_eq(policy, again))
		verdict_bad(v, "%s: printed as something else: %.*s", what, (int)o.length, o.data);
	free(o.data);
}

static void check_json(struct workshop *w, const struct ced_policy *policy,
	const struct ced_json *official, struct verdict *v)
{
	struct ced_out o = {0};
	struct ced_json ours;
	struct ced_policy *theirs;
	ced_policy_to_json(&o, policy);
	if (ced_json_read(&w->arena, o.data, o.length, 4096, "depth", &ours, &w->err) < 0)
		verdict_bad(v, "JSON that does not parse: %s", w->err.text);
	else if (!same_json(&ours, official))
		verdict_bad(
			v, "another JSON: %.*s", (int)(o.length < 400 ? o.length : 400), o.data);
	if (ced_policy_from_json(&w->source, official, &theirs) < 0)
		verdict_bad(v, "the official JSON is refused: %s", w->err.text);
	else if (!ced_policy_eq(policy, theirs))
		verdict_bad(v, "the official JSON reads as another policy");
	else
		check_print(w, theirs, "from JSON", v);
	free(o.data);
}

static void check_policy(struct ced_slice text, const struct ced_json *official, struct verdict *v)
{
	struct workshop w;
	workshop_open(&w);
	struct ced_policy *policy = parse(&w, text.p, text.n);
	if (!policy) {
		verdict_bad(v, "does not parse: %s", w.err.text);
	} else {
		check_print(&w, policy, "from text", v);
		check_json(&w, policy, official, v);
	}
	workshop_close(&w);
}

/* -- Decisions ------------------------------------------------------------------------------- */

static bool lists(const struct ced_json *ids, const char *id)
{
	for (uint32_t i = 0; i < ids->count; i++)
		if (ced_slice_is(ids->u.items[i].u.text, id))
			return true;
	return false;
}

static void check_answer(const cedar_policies *policies, const cedar_answer *answer,
	const struct ced_json *request, struct verdict *v)
{
	const struct ced_json *reason = ced_json_get(request, "reason"),
			      *errors = ced_json_get(request, "errors");
	bool allow = ced_slice_is(lines_string(request, "decision"), "allow");
	struct cedar_error why;
	if ((cedar_answer_decision(answer) == CEDAR_ALLOW) != allow)
		verdict_bad(v, "decides otherwise: expected %s", allow ? "allow" : "deny");
	if (cedar_answer_reason_count(answer) != reason->count)
		verdict_bad(v, "%zu reasons instead of %u", cedar_answer_reason_count(answer),
			reason->count);
	if (cedar_answer_error_count(answer) != errors->count) {
		why.text[0] = '\0';
		if (cedar_answer_error_count(answer))
			(void)cedar_answer_error(answer, 0, &why);
		verdict_bad(v, "%zu errors instead of %u (%s)", cedar_answer_error_count(answer),
			errors->count, why.text);
	}
	for (size_t i = 0; i < cedar_answer_reason_count(answer); i++)
		if (!lists(reason, cedar_policy_id(policies, cedar_answer_reason(answer, i))))
			verdict_bad(v, "another reason");
	for (size_t i = 0; i < cedar_answer_error_count(answer); i++)
		if (!lists(errors, cedar_policy_id(policies, cedar_answer_error(answer, i, &why))))
			verdict_bad(v, "another error: %s", why.text);
}

/* The four members that make a request, as an object of their own. */
static cedar_request *read_request(const struct lines *l, const cedar_schema *schema,
	const struct ced_json *j, struct verdict *v)
{
	static const char *const parts[] = {"principal", "action", "resource", "context"};
	struct ced_out o = {0};
	struct cedar_error err;
	cedar_request *request = NULL;
	for (size_t i = 0; i < 4; i++) {
		struct ced_slice raw = lines_raw(l, ced_json_get(j, parts[i]));
		ced_out_text(&o, i ? "," : "{");
		ced_out_json_string(&o, parts[i], strlen(parts[i]));
		ced_out_text(&o, ":");
		ced_out_bytes(&o, raw.p, raw.n);
	}
	ced_out_text(&o, "}");
	int code = schema ? cedar_schema_request_from_json(
				    schema, o.data, o.length, NULL, &request, &err)
			  : cedar_request_from_json(o.data, o.length, NULL, &request, &err);
	if (code < 0)
		verdict_bad(v, "the request is refused: %s", err.text);
	free(o.data);
	return request;
}

static unsigned check_requests(const struct lines *l, const cedar_schema *schema,
	const cedar_policies *policies, const cedar_entities *entities, cedar_answer *answer,
	struct verdict *v)
{
	const struct ced_json *requests = ced_json_get(&l->json, "requests");
	unsigned count = 0;
	for (uint32_t i = 0; i < requests->count; i++) {
		const struct ced_json *j = &requests->u.items[i];
		int64_t times = 1;
		cedar_request *request = read_request(l, schema, j, v);
		if (!request)
			continue;
		(void)cedar_decide(policies, entities, request, NULL, answer);
		check_answer(policies, answer, j, v);
		cedar_request_free(request);
		if (ced_json_get(j, "count"))
			(void)ced_json_long(ced_json_get(j, "count"), &times, NULL);
		count += (unsigned)times;
	}
	return count;
}

/* Entities with the schema when there is one, else as they are. */
static int read_entities(struct ced_slice data, const cedar_schema *schema, cedar_entities **ret,
	struct cedar_error *err)
{
	return schema ? cedar_schema_entities_from_json(schema, data.p, data.n, NULL, ret, err)
		      : cedar_entities_from_json(data.p, data.n, NULL, ret, err);
}

static unsigned check_decisions(
	const struct lines *l, bool with_schema, cedar_answer *answer, struct verdict *v)
{
	struct ced_slice text = lines_string(&l->json, "policies");
	struct ced_slice data = lines_raw(l, ced_json_get(&l->json, "entities"));
	struct ced_slice types = lines_string(&l->json, "schema");
	struct cedar_error err;
	cedar_policies *policies = NULL;
	cedar_entities *entities = NULL;
	cedar_schema *schema = NULL;
	unsigned count = 0;
	if (cedar_policies_from_text(text.p, text.n, NULL, &policies, &err) < 0)
		verdict_bad(v, "does not parse: %s", err.text);
	else if (with_schema && cedar_schema_from_text(types.p, types.n, NULL, &schema, &err) < 0)
		verdict_bad(v, "the schema is refused: %s", err.text);
	else if (read_entities(data, schema, &entities, &err) < 0)
		verdict_bad(v, "the entities are refused: %s", err.text);
	else
		count = check_requests(l, schema, policies, entities, answer, v);
	cedar_entities_free(entities);
	cedar_schema_free(schema);
	cedar_policies_free(policies);
	return count;
}

static void count_requests(struct verdict *v, unsigned count, unsigned want)
{
	char name[64];
	if (count != want)
		verdict_bad(v, "%u requests were tried", count);
	int n = snprintf(name, sizeof(name), "all %u requests were tried", want);
	verdict_tell(v, (struct ced_slice){name, (size_t)n});
}

static void run_handwritten(const char *path, cedar_answer *answer, struct verdict *v)
{
	struct lines tests = lines_open(path);
	unsigned requests = 0;
	while (lines_next(&tests)) {
		requests += check_decisions(&tests, true, answer, v);
		verdict_tell(v, lines_string(&tests.json, "id"));
	}
	count_requests(v, requests, 74);
	lines_close(&tests);
}

static void run_corpus(
	const char *path, const char *json_path, cedar_answer *answer, struct verdict *v)
{
	struct lines corpus = lines_open(path), json = lines_open(json_path);
	unsigned requests = 0;
	while (lines_next(&corpus) && lines_next(&json)) {
		struct ced_slice id = lines_string(&corpus.json, "id");
		if (!same_slice(id, lines_string(&json.json, "id")))
			verdict_bad(v, "the two files do not agree about the order");
		check_policy(lines_string(&corpus.json, "policies"),
			ced_json_get(&json.json, "policy"), v);
		requests += check_decisions(&corpus, false, answer, v);
		verdict_tell(v, id);
	}
	count_requests(v, requests, 62472);
	lines_close(&corpus);
	lines_close(&json);
}

int main(int argc, char **argv)
{
	if (argc != 2 && argc != 3)
		return 1;
	cedar_answer *answer = cedar_answer_new(NULL);
	struct verdict v = {0};
	if (argc == 2)
		run_handwritten(argv[1], answer, &v);
	else
		run_corpus(argv[1], argv[2], answer, &v);
	printf("1..%u\n", v.number);
	cedar_answer_free(answer);
	return v.failed ? 1 : 0;
}
