/*
 * Cedar policies in text: what is accepted prints as a text that is accepted again and is the same
 * tree, survives JSON, and can be evaluated.
 */
#include "cedar/est.h"
#include "cedar/index.h"
#include "cedar/parse.h"
#include "cedar/print.h"

#include <stdlib.h>

struct kept {
	struct ced_policy *first;
};

static int keep(void *ctx, struct ced_policy *policy, struct cedar_error *err)
{
	struct kept *k = ctx;
	(void)err;
	if (!k->first)
		k->first = policy;
	return 0;
}

static void there_and_back(struct ced_source *s, const struct ced_policy *policy)
{
	struct ced_out text = {0}, json = {0};
	struct ced_json tree;
	struct kept again = {0};
	struct ced_policy *from_json;
	ced_print_policy(&text, policy, &ced_layout_default);
	ced_policy_to_json(&json, policy);
	if (ced_parse_policies(s, text.data, text.length, keep, &again) < 0 ||
		!ced_policy_eq(policy, again.first))
		abort();
	if (ced_json_read(s->arena, json.data, json.length, ced_policy_json_depth(s->limits),
		    "height", &tree, s->err) < 0 ||
		ced_policy_from_json(s, &tree, &from_json) < 0 || !ced_policy_eq(policy, from_json))
		abort();
	free(text.data);
	free(json.data);
}

static void evaluate(const char *text, size_t n)
{
	static cedar_entities *entities;
	static cedar_request *request;
	static cedar_answer *answer;
	static const char data[] =
		"[{\"uid\":{\"type\":\"U\",\"id\":\"a\"},\"attrs\":{\"a\":1,\"b\":{"
		"\"a\":[1]}},\"parents\":[],\"tags\":{\"a\":\"a\"}}]";
	static const char context[] = "{\"a\":true,\"b\":\"a\"}";
	cedar_policies *policies;
	struct cedar_error why;
	if (!answer) {
		answer = cedar_answer_new(NULL);
		if (cedar_entities_from_json(data, sizeof(data) - 1, NULL, &entities, NULL) < 0 ||
			cedar_request_new("U::\"a\"", "Action::\"a\"", "U::\"b\"", context,
				sizeof(context) - 1, NULL, &request, NULL) < 0)
			abort();
	}
	if (cedar_policies_from_text(text, n, NULL, &policies, NULL) < 0)
		return;
	(void)cedar_decide(policies, entities, request, NULL, answer);
	for (size_t i = 0; i < cedar_answer_error_count(answer); i++)
		(void)cedar_answer_error(answer, i, &why);
	for (size_t i = 0; i < cedar_policies_count(policies); i++) {
		struct cedar_explanation x;
		(void)cedar_explain(policies, entities, request, i, answer, &x);
	}
	cedar_policies_free(policies);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cedar_limits limits = cedar_limits_default();
	struct cedar_error err;
	struct ced_arena arena;
	struct ced_names names;
	struct kept k = {0};
	ced_arena_init(&arena, limits.memory_bytes, "memory_bytes");
	ced_names_init(&names, &arena);
	struct ced_source s = {&arena, &names, &limits, &err};
	if (ced_parse_policies(&s, (const char *)data, size, keep, &k) == 0 && k.first)
		there_and_back(&s, k.first);
	evaluate((const char *)data, size);
	ced_names_done(&names);
	ced_arena_done(&arena);
	return 0;
}
