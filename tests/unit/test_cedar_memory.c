/*
 * Cedar when memory runs out: the n-th allocation fails, for every n until none is left to fail.
 * All that may happen is CEDAR_E_MEMORY, and nothing may stay allocated.
 */
#include "testing.h"

#include "cedar/cedar.h"

static unsigned long until_failure; /* 0: never */
static long live;

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void __real_free(void *p);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void __wrap_free(void *p);

static bool fails(void)
{
	return until_failure && --until_failure == 0;
}

void *__wrap_malloc(size_t n)
{
	void *p = fails() ? NULL : __real_malloc(n);
	live += p != NULL;
	return p;
}

void *__wrap_calloc(size_t n, size_t size)
{
	void *p = fails() ? NULL : __real_calloc(n, size);
	live += p != NULL;
	return p;
}

void *__wrap_realloc(void *p, size_t n)
{
	void *q = fails() ? NULL : __real_realloc(p, n);
	live += q != NULL && p == NULL;
	return q;
}

void __wrap_free(void *p)
{
	live -= p != NULL;
	__real_free(p);
}

static const char policies_json[] = "{\"staticPolicies\":{\"a\":{\"effect\":\"permit\","
				    "\"principal\":{\"op\":\"All\"},\"action\":{\"op\":"
				    "\"in\",\"entities\":[{\"type\":\"Action\",\"id\":\"a\"},{"
				    "\"type\":\"Action\",\"id\":\"b\"}]},"
				    "\"resource\":{\"op\":\"All\"},\"conditions\":[{\"kind\":"
				    "\"when\",\"body\":{\"like\":{\"left\":{"
				    "\"Value\":\"x\"},\"pattern\":[\"Wildcard\",{\"Literal\":\"a\"}"
				    "]}}},{\"kind\":\"when\",\"body\":{"
				    "\"has\":{\"left\":{\"Value\":{\"r\":[1,{\"__extn\":{\"fn\":"
				    "\"ip\",\"arg\":\"::1\"}}]}},\"attr\":["
				    "\"r\",\"s\"]}}}],\"annotations\":{\"a\":null}}},\"templates\":"
				    "{\"t\":{\"effect\":\"permit\","
				    "\"principal\":{\"op\":\"==\",\"slot\":\"?principal\"},"
				    "\"action\":{\"op\":\"All\"},\"resource\":{"
				    "\"op\":\"All\"},\"conditions\":[]}},\"templateLinks\":[{"
				    "\"templateId\":\"t\",\"newId\":\"l\","
				    "\"values\":{\"?principal\":{\"type\":\"U\",\"id\":\"a\"}}}]}";

static const char policies_text[] =
	"@a(\"b\") permit(principal in G::N::\"g\", action in [Action::\"a\", Action::\"b\"], "
	"resource is U) "
	"when { [context.a, {b: 1}, decimal(\"1.0\"), ip(\"::1\")].contains(principal.a.b) } "
	"unless { "
	"context has a.b.c.d.e.f.g.h.i.j && \"x\\ny\" like \"*\\*a*\" && -5 - context.x == 3 };";

static const char context[] = "{\"a\":[1],\"x\":2}";

static const char entities_json[] = "[{\"uid\":{\"type\":\"U\",\"id\":\"a\"},\"attrs\":{\"a\":{"
				    "\"b\":[1,2,{\"c\":\"\\u0041\"}]}},\"parents\":["
				    "{\"type\":\"G::N\",\"id\":\"g\"}]},{\"uid\":{\"type\":\"G::"
				    "N\",\"id\":\"g\"},\"attrs\":{\"i\":{\"__extn\":{"
				    "\"fn\":\"ip\",\"arg\":\"1.1.1.1\"}}},\"parents\":[{\"type\":"
				    "\"G::N\",\"id\":\"h\"}],\"tags\":{\"t\":1}}]";

/* The code of the first step that failed; 0 when all went well. */
static int everything(void)
{
	cedar_policies *p = NULL, *q = NULL;
	cedar_entities *e = NULL;
	cedar_request *r = NULL;
	cedar_answer *a = cedar_answer_new(NULL);
	struct cedar_text text = {0};
	struct cedar_error err = {0};
	int code = a ? 0 : CEDAR_E_MEMORY;
	if (code == 0)
		code = cedar_policies_from_text(
			policies_text, sizeof(policies_text) - 1, NULL, &p, &err);
	if (code == 0)
		code = cedar_policies_from_json(
			policies_json, sizeof(policies_json) - 1, NULL, &q, &err);
	if (code == 0)
		code = cedar_entities_from_json(
			entities_json, sizeof(entities_json) - 1, NULL, &e, &err);
	if (code == 0)
		code = cedar_request_new("U::\"a\"", "Action::\"a\"", "U::\"b\"", context,
			sizeof(context) - 1, NULL, &r, &err);
	if (code == 0)
		code = cedar_policies_to_json(q, &text, &err);
	cedar_text_free(&text);
	if (code == 0)
		code = cedar_policy_to_text(p, 0, &text, &err);
	cedar_text_free(&text);
	if (code == 0)
		code = cedar_decide(p, e, r, NULL, a);
	cedar_answer_free(a);
	cedar_request_free(r);
	cedar_entities_free(e);
	cedar_policies_free(q);
	cedar_policies_free(p);
	return code;
}

static void every_allocation_may_fail(void **state)
{
	unsigned long n = 1, failures = 0;
	int code;
	(void)state;
	assert_int_equal(everything(), 0);
	assert_int_equal(live, 0);
	do {
		until_failure = n++;
		code = everything();
		unsigned long left = until_failure;
		until_failure = 0;
		if (code != 0 && code != CEDAR_E_MEMORY)
			fail_msg("allocation %lu: %d", n - 1, code);
		if (live)
			fail_msg("allocation %lu: %ld blocks were not freed", n - 1, live);
		if (left)
			break; /* it was not reached: every one before it has failed once */
		failures += code == CEDAR_E_MEMORY; /* the room of an answer can do without */
	} while (n < 100000);
	assert_true(failures > 30 && failures + 4 > n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation_may_fail)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
