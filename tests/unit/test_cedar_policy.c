/* Cedar's policies: what parses and what does not, what expressions evaluate to, what decides. */
#include "testing.h"

#include "cedar/cedar.h"
#include "cedar/parse.h"
#include "cedar/policies.h"
#include "cedar/print.h"

#include <pthread.h>

/* -- Helpers -------------------------------------------------------------------------------- */

static cedar_policies *policies_of(const char *text)
{
	cedar_policies *p = NULL;
	struct cedar_error err;
	if (cedar_policies_from_text(text, strlen(text), NULL, &p, &err) < 0)
		fail_msg("%u:%u: %s\n%s", err.line, err.column, err.text, text);
	return p;
}

static cedar_entities *entities_of(const char *json)
{
	cedar_entities *e = NULL;
	struct cedar_error err;
	if (cedar_entities_from_json(json, strlen(json), NULL, &e, &err) < 0)
		fail_msg("%u:%u: %s\n%s", err.line, err.column, err.text, json);
	return e;
}

static cedar_request *request_of(const char *context)
{
	cedar_request *r = NULL;
	struct cedar_error err;
	if (cedar_request_new("U::\"alice\"", "Action::\"view\"", "P::\"a\"", context,
		    strlen(context), NULL, &r, &err) < 0)
		fail_msg("%s\n%s", err.text, context);
	return r;
}

static const char world[] =
	"[{\"uid\":{\"type\":\"U\",\"id\":\"alice\"},\"attrs\":{\"age\":30,\"name\":\"Al\",\"r\":{"
	"\"x\":1},"
	"\"boss\":{\"__entity\":{\"type\":\"U\",\"id\":\"ghost\"}},\"list\":[1,2,3]},"
	"\"parents\":[{\"type\":\"G\",\"id\":\"g1\"}],\"tags\":{\"t\":\"v\"}},"
	"{\"uid\":{\"type\":\"G\",\"id\":\"g1\"},\"attrs\":{},\"parents\":[{\"type\":\"G\",\"id\":"
	"\"g2\"}]},"
	"{\"uid\":{\"type\":\"Action\",\"id\":\"view\"},\"attrs\":{},\"parents\":[{\"type\":"
	"\"Action\","
	"\"id\":\"read\"}]}]";

/* What `expr` is as a condition: 1 true, 0 false, or the code of its failure. */
static int verdict(const char *expr)
{
	char text[4096];
	struct cedar_error why = {0};
	(void)snprintf(
		text, sizeof(text), "permit(principal, action, resource) when { %s };", expr);
	cedar_policies *p = policies_of(text);
	cedar_entities *e = entities_of(world);
	cedar_request *r = request_of("{\"n\":5,\"max\":9223372036854775807,\"s\":\"a*b\"}");
	cedar_answer *a = cedar_answer_new(NULL);
	assert_int_equal(cedar_decide(p, e, r, NULL, a), 0);
	int result = cedar_answer_decision(a) == CEDAR_ALLOW;
	if (cedar_answer_error_count(a)) {
		assert_int_equal(cedar_answer_error(a, 0, &why), 0);
		assert_int_equal(result, 0);
		assert_int_equal(why.line, 1);
		assert_true(why.column >= 44 && strlen(why.text) > 5);
		result = why.code;
	}
	cedar_answer_free(a);
	cedar_request_free(r);
	cedar_entities_free(e);
	cedar_policies_free(p);
	return result;
}

struct expr_case {
	const char *expr;
	int want;
};

static void check_all(const struct expr_case *cases, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int got = verdict(cases[i].expr);
		if (got != cases[i].want)
			fail_msg("%s: %d, not %d", cases[i].expr, got, cases[i].want);
	}
}

#define CHECK_ALL(cases) check_all(cases, sizeof(cases) / sizeof((cases)[0]))

/* -- Evaluation ----------------------------------------------------------------------------- */

static void logic_short_circuits_and_wants_booleans(void **state)
{
	static const struct expr_case cases[] = {{"false && 1", 0}, {"true && 1", CEDAR_E_TYPE},
		{"1 && false", CEDAR_E_TYPE}, {"true || 1", 1}, {"false || 1", CEDAR_E_TYPE},
		{"1", CEDAR_E_TYPE}, {"\"true\"", CEDAR_E_TYPE}, {"!1", CEDAR_E_TYPE},
		{"if true then true else 1", 1}, {"if false then 1 else true", 1},
		{"if 1 then true else true", CEDAR_E_TYPE}, {"(if true then 1 else \"a\") == 1", 1},
		{"false && decimal(\"x\") == 1", 0}};
	(void)state;
	CHECK_ALL(cases);
}

static void arithmetic_is_exact_or_fails(void **state)
{
	static const struct expr_case cases[] = {{"9223372036854775807 + 1 == 0", CEDAR_E_OVERFLOW},
		{"context.max + 1 > 0", CEDAR_E_OVERFLOW}, {"context.max - 1 < context.max", 1},
		{"-9223372036854775808 - 1 == 0", CEDAR_E_OVERFLOW},
		{"-9223372036854775808 < 0", 1}, {"- 9223372036854775808 < 0", 1},
		{"--9223372036854775808 == 0", CEDAR_E_OVERFLOW},
		{"-(-9223372036854775807) == 9223372036854775807", 1},
		{"3037000500 * 3037000500 > 0", CEDAR_E_OVERFLOW},
		{"3037000499 * 3037000499 > 0", 1},
		{"-9223372036854775808 * -1 > 0", CEDAR_E_OVERFLOW},
		{"1 + \"a\" == 1", CEDAR_E_TYPE}, {"-\"a\" == 1", CEDAR_E_TYPE}, {"007 == 7", 1},
		{"2 - 3 - 4 == -5", 1}, {"2 + 3 * 4 == 14", 1}};
	(void)state;
	CHECK_ALL(cases);
}

static void order_is_of_numbers_and_times(void **state)
{
	static const struct expr_case cases[] = {{"1 < 2", 1}, {"2 >= 2", 1}, {"2 > 2", 0},
		{"\"a\" < \"b\"", CEDAR_E_TYPE}, {"true < false", CEDAR_E_TYPE},
		{"1 < \"b\"", CEDAR_E_TYPE}, {"decimal(\"1.0\") < decimal(\"2.0\")", CEDAR_E_TYPE},
		{"datetime(\"2024-01-01\") < datetime(\"2024-01-02\")", 1},
		{"duration(\"1h\") >= duration(\"60m\")", 1},
		{"datetime(\"2024-01-01\") < duration(\"1h\")", CEDAR_E_TYPE}};
	(void)state;
	CHECK_ALL(cases);
}

static void equality_never_fails(void **state)
{
	static const struct expr_case cases[] = {{"1 == \"1\"", 0}, {"1 != \"1\"", 1},
		{"[[1,2],[2,1]] == [[1,2]]", 1}, {"{a: 1, b: 2} == {b: 2, a: 1}", 1},
		{"{a: 1} == {a: 1, b: 2}", 0}, {"decimal(\"1.0\") == decimal(\"1.00\")", 1},
		{"ip(\"10.0.0.1\") == ip(\"10.0.0.1/32\")", 1},
		{"ip(\"10.0.0.1/24\") == ip(\"10.0.0.0/24\")", 0},
		{"ip(\"::1\") == ip(\"0::1\")", 1}, {"principal == U::\"alice\"", 1},
		{"principal == G::\"alice\"", 0}, {"duration(\"1h\") == duration(\"60m\")", 1},
		{"[] == {}", 0}, {"duration(\"1ms\") == 1", 0}};
	(void)state;
	CHECK_ALL(cases);
}

static void membership(void **state)
{
	static const struct expr_case cases[] = {{"principal in G::\"g1\"", 1},
		{"principal in G::\"g2\"", 1}, {"principal in G::\"g3\"", 0},
		{"principal in principal", 1}, {"X::\"u\" in X::\"u\"", 1},
		{"X::\"u\" in [X::\"v\", X::\"u\"]", 1}, {"principal in []", 0},
		{"principal in [U::\"alice\", 1]", CEDAR_E_TYPE}, {"principal in 1", CEDAR_E_TYPE},
		{"1 in principal", CEDAR_E_TYPE}, {"\"rm\" in [\"rm\"]", CEDAR_E_TYPE},
		{"principal is U", 1}, {"principal is G", 0}, {"principal is U in G::\"g2\"", 1},
		{"principal is X in 1", 0}, {"principal is U in 1", CEDAR_E_TYPE},
		{"1 is U", CEDAR_E_TYPE}, {"action in Action::\"read\"", 1},
		{"G::\"g2\" in G::\"g3\"", 0}};
	(void)state;
	CHECK_ALL(cases);
}

static void attributes_and_tags(void **state)
{
	static const struct expr_case cases[] = {{"principal.age == 30", 1},
		{"principal[\"age\"] == 30", 1}, {"principal.nope == 1", CEDAR_E_ATTRIBUTE},
		{"principal.boss.age == 1", CEDAR_E_ENTITY}, {"principal.boss has age", 0},
		{"principal.r.x == 1", 1}, {"principal.r.y == 1", CEDAR_E_ATTRIBUTE},
		{"principal.age.x == 1", CEDAR_E_TYPE}, {"principal has age", 1},
		{"principal has nope", 0}, {"principal has r.x", 1}, {"principal has r.y", 0},
		{"principal has nope.y.z", 0}, {"principal has age.x", CEDAR_E_TYPE},
		{"principal has boss.age", 0}, {"1 has a", CEDAR_E_TYPE}, {"context has n", 1},
		{"{a: 1, b: 1 + \"x\"} has a", CEDAR_E_TYPE}, {"{\"if\": 1}[\"if\"] == 1", 1},
		{"principal.hasTag(\"t\")", 1}, {"principal.hasTag(\"age\")", 0},
		{"principal.getTag(\"t\") == \"v\"", 1},
		{"principal.getTag(\"u\") == \"v\"", CEDAR_E_ATTRIBUTE},
		{"principal.boss.hasTag(\"t\")", 0},
		{"principal.boss.getTag(\"t\") == 1", CEDAR_E_ENTITY},
		{"principal.hasTag(1)", CEDAR_E_TYPE}, {"context.hasTag(\"t\")", CEDAR_E_TYPE}};
	(void)state;
	CHECK_ALL(cases);
}

static void sets(void **state)
{
	static const struct expr_case cases[] = {{"[1, \"a\"].contains(\"a\")", 1},
		{"principal.list.contains(2)", 1}, {"principal.list.contains(\"2\")", 0},
		{"[].containsAll([])", 1}, {"[1].containsAny([])", 0},
		{"[1,2].containsAll([2])", 1}, {"[1,2].containsAll([2,3])", 0},
		{"[1,2].containsAny([2,3])", 1}, {"1.contains(1)", CEDAR_E_TYPE},
		{"[1].containsAll(1)", CEDAR_E_TYPE}, {"[].isEmpty()", 1},
		{"[principal].isEmpty()", 0}, {"{}.isEmpty()", CEDAR_E_TYPE},
		{"[context.n, 5].containsAll([5])", 1}, {"[1 + \"a\"].isEmpty()", CEDAR_E_TYPE}};
	(void)state;
	CHECK_ALL(cases);
}

static void patterns(void **state)
{
	static const struct expr_case cases[] = {{"\"abc\" like \"a*c\"", 1},
		{"\"abc\" like \"*\"", 1}, {"\"\" like \"*\"", 1}, {"\"\" like \"\"", 1},
		{"\"a\" like \"\"", 0}, {"\"a\\nb\" like \"a*b\"", 1}, {"\"aa\" like \"a*a\"", 1},
		{"\"a\" like \"a*a\"", 0}, {"\"abcbc\" like \"*bc\"", 1},
		{"\"abab\" like \"ab*ab*\"", 1}, {"\"aXbXc\" like \"a*b*c\"", 1},
		{"\"acb\" like \"a*b*c\"", 0}, {"context.s like \"a\\*b\"", 1},
		{"\"axb\" like \"a\\*b\"", 0}, {"\"axb\" like \"a\\x2ab\"", 1},
		{"\"axb\" like \"a\\u{2a}b\"", 1}, {"\"\\u{e9}\" like \"*\"", 1},
		{"1 like \"*\"", CEDAR_E_TYPE}, {"\"ab\" like \"a**b\"", 1}};
	(void)state;
	CHECK_ALL(cases);
}

static void extensions(void **state)
{
	static const struct expr_case cases[] = {{"decimal()  == 1", CEDAR_E_ARITY},
		{"decimal(1) == 1", CEDAR_E_TYPE}, {"decimal(\"x\") == 1", CEDAR_E_EXTENSION},
		{"decimal(\"1.0\").lessThan(decimal(\"1.1\"))", 1},
		{"decimal(\"1.0\").lessThan(1)", CEDAR_E_TYPE},
		{"decimal(\"-0.5\").greaterThan(decimal(\"0.0\"))", 0},
		{"ip(\"10.1.2.3\").isInRange(ip(\"10.0.0.0/8\"))", 1},
		{"ip(\"10.0.0.0/7\").isInRange(ip(\"10.0.0.0/8\"))", 0},
		{"ip(\"::1\").isInRange(ip(\"0.0.0.0/0\"))", 0}, {"ip(\"::1\").isIpv6()", 1},
		{"ip(\"127.0.0.1\").isLoopback()", 1}, {"ip(\"127.0.0.0/7\").isLoopback()", 0},
		{"ip(\"::1\").isLoopback()", 1}, {"ip(\"::1/127\").isLoopback()", 0},
		{"ip(\"224.0.0.0/4\").isMulticast()", 1}, {"ip(\"ff00::/8\").isMulticast()", 1},
		{"ip(\"ff00::/7\").isMulticast()", 0}, {"ip(\"::ffff:1\").isIpv4()", 0},
		{"\"a\".isIpv4()", CEDAR_E_TYPE}, {"ip(\"1.1.1.1\").isIpv4(1)", CEDAR_E_ARITY},
		{"datetime(\"2024-01-01T12:00:00Z\").toDate() == datetime(\"2024-01-01\")", 1},
		{"datetime(\"1969-12-31T23:00:00Z\").toTime() == duration(\"23h\")", 1},
		{"datetime(\"1969-12-31T23:00:00Z\").toDate() == datetime(\"1969-12-31\")", 1},
		{"datetime(\"2024-01-01\").offset(duration(\"1d\")) == datetime(\"2024-01-02\")",
			1},
		{"datetime(\"2024-01-01\").offset(duration(\"9223372036854775807ms\")) == 1",
			CEDAR_E_EXTENSION},
		{"datetime(\"1970-01-01\").offset(duration(\"-9223372036854775808ms\")).toDate() "
		 "== 1",
			CEDAR_E_EXTENSION},
		{"datetime(\"2024-01-02\").durationSince(datetime(\"2024-01-01\")) == "
		 "duration(\"24h\")",
			1},
		{"duration(\"-90s\").toMinutes() == -1", 1},
		{"duration(\"1d\").toHours() == 24", 1}, {"duration(\"25h\").toDays() == 1", 1},
		{"duration(\"1s\").toMilliseconds() == 1000", 1}};
	(void)state;
	CHECK_ALL(cases);
}

/* -- Grammar -------------------------------------------------------------------------------- */

static int parse_code(const char *text, struct cedar_error *err)
{
	cedar_policies *p = NULL;
	int code = cedar_policies_from_text(text, strlen(text), NULL, &p, err);
	cedar_policies_free(p);
	return code;
}

static void expressions_that_are_none(void **state)
{
	static const char *const bad[] = {"", "1 < 2 < 3", "1 == 1 == true",
		"context has a == true", "\"a\" like \"b\" == true", "principal is U == true",
		"context has a has b", "1 / 2", "1 % 2", "1 = 1", "!-1", "-!true", "!!!!!true",
		"-----1", "-(9223372036854775808)", "9223372036854775808", "-9223372036854775809",
		"true && if true then 1 else 2", "context.if", "context.__cedar", "context[1]",
		"context[\"a\" ]x", "context has \"a\".b", "context has (a)", "context has a::b",
		"context has if", "\"a\" like b", "foo", "ip::\"a\"(1)", "foo(1)",
		"A::ip(\"1.1.1.1\")", "lessThan(1)", "context.ip(1)", "context.foo(1)",
		"[1].contains()", "[1].contains(1, 2)", "[].isEmpty(1)", "[,]", "[1 2]",
		"{a: 1, a: 2}", "{\"a\": 1, a: 2}", "{if: 1}", "{a}", "U::{a: 1}", "?principal",
		"unknown(\"a\")", "principal is \"U\"", "U::a", "A::if::\"x\"", "if true then 1",
		"(1", "[1", "\"\\a\"", "context.contains(1).", "principal::", "when", "1 in",
		"true &&", "a.b"};
	char text[512];
	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct cedar_error err = {0};
		(void)snprintf(text, sizeof(text),
			"permit(principal, action, resource) when { %s };", bad[i]);
		int code = parse_code(text, &err);
		if (code >= 0 || err.code != code || err.line != 1 || err.column < 36)
			fail_msg(
				"%s: %d at %u:%u %s", bad[i], code, err.line, err.column, err.text);
	}
}

static void policies_that_are_none(void **state)
{
	static const char *const bad[] = {";", "permit", "permit()", "permit(principal, action);",
		"permit(action, principal, resource);", "permit(principal, action, resource)",
		"permit(principal, action, resource, context);",
		"allow(principal, action, resource);",
		"permit(principal in [U::\"a\"], action, resource);",
		"permit(principal != U::\"a\", action, resource);",
		"permit(principal is U == U::\"a\", action, resource);",
		"permit(principal in U::\"a\" is U, action, resource);",
		"permit(principal: U, action, resource);",
		"permit(principal == ?resource, action, resource);",
		"permit(principal, action == ?action, resource);",
		"permit(principal == ?x, action, resource);",
		"permit(principal, action is Action, resource);",
		"permit(principal, action == U::\"a\", resource);",
		"permit(principal, action == Action::U::\"a\", resource);",
		"permit(principal, action in [Action::\"a\" Action::\"b\"], resource);",
		"permit(principal, action, resource) when {};",
		"permit(principal, action, resource) when true;",
		"permit(principal, action, resource) when { true }, when { true };",
		"@a() permit(principal, action, resource);",
		"@a::b permit(principal, action, resource);",
		"@a @a permit(principal, action, resource);",
		"@\"a\" permit(principal, action, resource);",
		"permit(principal, action, resource) when { true } @a;",
		"permit(principal, action, resource) if { true };",
		"\xef\xbb\xbfpermit(principal,action,resource);"};
	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct cedar_error err = {0};
		int code = parse_code(bad[i], &err);
		if (code >= 0 || err.code != code || !err.line)
			fail_msg("%s: %d %s", bad[i], code, err.text);
	}
}

static void texts_that_are_policies(void **state)
{
	static const char *const good[] = {"", " // nothing\n",
		"permit(principal,action,resource,);", "permit(principal,action in [],resource);",
		"permit(principal,action in [Action::\"a\",],resource);",
		"permit(principal == principal :: \"a\", action == NS::Action::\"x\", resource is "
		"A::B in C::\"\");",
		"@if(\"x\") @a permit(principal is principal, action, resource) unless { false } "
		"when { true };",
		"permit(principal,action,resource) when { [1,2,].contains(1,) && {a:1,}.a == 1 };",
		"permit(principal,action,resource) when { context has a.b.c && -context.x == - 5 "
		"};",
		"permit(principal,action,resource) when { if true then false else true && true };",
		"permit(principal in ?principal, action, resource is T in ?resource);"};
	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		cedar_policies_free(policies_of(good[i]));
}

static void errors_say_where_and_what(void **state)
{
	struct cedar_error err;
	(void)state;
	assert_int_equal(parse_code("permit(principal, action, resource)\nwhen { (1 + 2 };", &err),
		CEDAR_E_SYNTAX);
	assert_int_equal(err.line, 2);
	assert_int_equal(err.column, 15);
	assert_string_equal(
		err.text, "expected ')' (to close what line 2, column 8 opened), found '}'");
}

/* -- Limits --------------------------------------------------------------------------------- */

static char *repeated(const char *before, const char *left, unsigned n, const char *middle,
	const char *right, const char *after)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	fputs(before, f);
	for (unsigned i = 0; i < n; i++)
		fputs(left, f);
	fputs(middle, f);
	for (unsigned i = 0; i < n; i++)
		fputs(right, f);
	fputs(after, f);
	(void)fclose(f);
	return text;
}

static int repeated_code(const char *left, unsigned n, const char *middle, const char *right,
	struct cedar_error *err)
{
	char *text = repeated(
		"permit(principal,action,resource) when { ", left, n, middle, right, " };");
	int code = parse_code(text, err);
	free(text);
	return code;
}

static void depth_is_limited_by_name(void **state)
{
	struct cedar_error err;
	(void)state;
	assert_int_equal(repeated_code("(", 199, "true", ")", &err), 0);
	assert_int_equal(repeated_code("(", 200, "true", ")", &err), CEDAR_E_LIMIT);
	assert_non_null(strstr(err.text, "nesting (200)"));
	assert_int_equal(repeated_code("[", 100000, "1", "]", &err), CEDAR_E_LIMIT);
	assert_int_equal(
		repeated_code("if true then ", 100000, "1", " else 1", &err), CEDAR_E_LIMIT);
	assert_int_equal(repeated_code("true && ", 999, "true", "", &err), 0);
	assert_int_equal(repeated_code("true && ", 1000, "true", "", &err), CEDAR_E_LIMIT);
	assert_non_null(strstr(err.text, "height (1000)"));
	assert_int_equal(repeated_code("", 100000, "context", ".a", &err), CEDAR_E_LIMIT);
	assert_int_equal(repeated_code("", 100000, "context has a", ".a", &err), CEDAR_E_LIMIT);
}

static void sizes_are_limited_by_name(void **state)
{
	struct cedar_limits small = cedar_limits_default();
	struct cedar_error err;
	cedar_policies *p = NULL;
	(void)state;
	const char *two = "permit(principal,action,resource);permit(principal,action,resource);";
	small.policies = 1;
	assert_int_equal(
		cedar_policies_from_text(two, strlen(two), &small, &p, &err), CEDAR_E_LIMIT);
	assert_non_null(strstr(err.text, "policies (1)"));
	small = cedar_limits_default();
	small.text_bytes = 10;
	assert_int_equal(
		cedar_policies_from_text(two, strlen(two), &small, &p, &err), CEDAR_E_LIMIT);
	assert_non_null(strstr(err.text, "text_bytes (10)"));
	small = cedar_limits_default();
	small.memory_bytes = 100;
	assert_int_equal(
		cedar_policies_from_text(two, strlen(two), &small, &p, &err), CEDAR_E_LIMIT);
	assert_non_null(strstr(err.text, "memory_bytes (100)"));
	assert_null(p);
}

static void expect_limit(int code, const struct cedar_error *err, const char *name)
{
	assert_int_equal(code, CEDAR_E_LIMIT);
	if (!strstr(err->text, name))
		fail_msg("%s: %s", name, err->text);
}

static void parts_of_a_policy_are_limited_by_name(void **state)
{
	static const char rest[] = "permit(principal,action,resource)";
	struct cedar_error err;
	char prefix[300], *text;
	cedar_builder *b = cedar_builder_new(NULL);
	(void)state;
	text = repeated("", "@a ", 65, rest, "", ";");
	expect_limit(parse_code(text, &err), &err, "annotations of a policy (64)");
	free(text);
	text = repeated(rest, " when { true }", 1024, "", "", ";");
	assert_int_equal(parse_code(text, &err), 0);
	free(text);
	text = repeated(rest, " when { true }", 1025, "", "", ";");
	expect_limit(parse_code(text, &err), &err, "conditions of a policy (1024)");
	free(text);
	memset(prefix, 'p', sizeof(prefix) - 1);
	prefix[sizeof(prefix) - 1] = '\0';
	text = repeated(rest, "", 0, "", "", ";");
	expect_limit(cedar_builder_add_text(b, prefix, CEDAR_IDS_COUNT, text, strlen(text), &err),
		&err, "bytes of a policy id (255)");
	free(text);
	cedar_builder_free(b);
}

/* Everything that JSON is read to has the limits of text. */
static void json_is_limited_by_name(void **state)
{
	static const char
		set[] = "{\"staticPolicies\":{}}",
		data[] = "[]",
		request[] = "{\"principal\":\"U::\\\"a\\\"\",\"action\":\"Action::\\\"a\\\"\","
			    "\"resource\":\"U::\\\"a\\\"\",\"context\":{}}";
	struct cedar_limits small = cedar_limits_default();
	struct cedar_error err;
	cedar_policies *p;
	cedar_entities *e;
	cedar_request *q;
	char *text;
	(void)state;
	small.text_bytes = 1;
	expect_limit(cedar_policies_from_json(set, strlen(set), &small, &p, &err), &err,
		"text_bytes (1)");
	expect_limit(cedar_entities_from_json(data, strlen(data), &small, &e, &err), &err,
		"text_bytes (1)");
	expect_limit(cedar_request_from_json(request, strlen(request), &small, &q, &err), &err,
		"text_bytes (1)");
	text = repeated("[{\"uid\":{\"type\":\"U\",\"id\":\"a\"},\"parents\":[],\"attrs\":{\"a\":",
		"[", 1000, "", "]", "}}]");
	expect_limit(
		cedar_entities_from_json(text, strlen(text), NULL, &e, &err), &err, "json_depth (");
	small = cedar_limits_default();
	small.memory_bytes = 100;
	expect_limit(cedar_request_from_json(request, strlen(request), &small, &q, &err), &err,
		"memory_bytes (100)");
	free(text);
	text = repeated(
		"{\"staticPolicies\":{\"p\":{\"effect\":\"permit\",\"principal\":{\"op\":\"All\"},"
		"\"action\":{\"op\":\"All\"},\"resource\":{\"op\":\"All\"},\"conditions\":[{"
		"\"kind\":\"when\",\"body\":",
		"{\"!\":{\"arg\":", 3000, "{\"Value\":true}", "}}", "}]}}}");
	expect_limit(
		cedar_policies_from_json(text, strlen(text), NULL, &p, &err), &err, "height (");
	free(text);
}

static void output_is_limited_by_name(void **state)
{
	struct ced_out full = {.length = CED_OUT_MAX - 1};
	struct cedar_text text;
	struct cedar_error err;
	(void)state;
	ced_out_text(&full, "ab");
	expect_limit(ced_out_take(&full, &text, &err), &err, "output bytes (268435456)");
}

static void scratch_is_limited_and_the_policy_fails(void **state)
{
	struct cedar_limits small = cedar_limits_default();
	struct cedar_error why;
	(void)state;
	small.scratch_bytes = 256;
	cedar_policies *p = policies_of("permit(principal,action,resource);"
					"forbid(principal,action,resource) when { "
					"[context.n,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16]"
					".contains(1) };");
	cedar_request *r = request_of("{\"n\":1}");
	cedar_answer *a = cedar_answer_new(&small);
	assert_int_equal(cedar_decide(p, NULL, r, NULL, a), 0);
	assert_int_equal(cedar_answer_error_count(a), 1);
	assert_int_equal(cedar_answer_error(a, 0, &why), 1);
	assert_int_equal(why.code, CEDAR_E_LIMIT);
	assert_non_null(strstr(why.text, "scratch_bytes (256)"));
	cedar_answer_free(a);
	cedar_request_free(r);
	cedar_policies_free(p);
}

/* -- Entities ------------------------------------------------------------------------------- */

static void entities_that_are_none(void **state)
{
	static const struct {
		const char *json;
		int code;
	} bad[] = {{"{}", CEDAR_E_SYNTAX}, {"[{}]", CEDAR_E_SYNTAX},
		{"[{\"uid\":{\"type\":\"N::Action\",\"id\":\"a\"},\"attrs\":{},\"parents\":[{"
		 "\"type\":\"U\",\"id\":\"a\"}]}]",
			CEDAR_E_SYNTAX},
		{"[{\"uid\":\"U::\\\"a\\\"\",\"attrs\":{},\"parents\":[]}]", CEDAR_E_SYNTAX},
		{"[{\"uid\":{\"type\":\"U\",\"id\":\"a\"},\"parents\":[]}]", CEDAR_E_SYNTAX},
		{"[{\"uid\":{\"type\":\"U\",\"id\":\"a\"},\"attrs\":{}}]", CEDAR_E_SYNTAX},
		{"[{\"uid\":{\"type\":\"U \",\"id\":\"a\"},\"attrs\":{},\"parents\":[]}]",
			CEDAR_E_SYNTAX},
		{"[{\"uid\":{\"type\":\"if\",\"id\":\"a\"},\"attrs\":{},\"parents\":[]}]",
			CEDAR_E_SYNTAX},
		{"[{\"uid\":{\"type\":\"U\",\"id\":\"a\"},\"attrs\":{\"x\":null},\"parents\":[]}]",
			CEDAR_E_SYNTAX},
		{"[{\"uid\":{\"type\":\"U\",\"id\":\"a\"},\"attrs\":{\"x\":1.0},\"parents\":[]}]",
			CEDAR_E_VALUE},
		{"[{\"uid\":{\"type\":\"U\",\"id\":\"a\"},\"attrs\":{},\"parents\":[],\"tags\":"
		 "null}]",
			CEDAR_E_SYNTAX},
		{"[{\"uid\":{\"type\":\"U\",\"id\":\"a\"},\"attrs\":{\"x\":{\"__expr\":\"1\"}},"
		 "\"parents\":[]}]",
			CEDAR_E_SYNTAX},
		{"[{\"uid\":{\"type\":\"U\",\"id\":\"a\"},\"attrs\":{\"x\":{\"__extn\":{\"fn\":"
		 "\"ip\",\"arg\":\"x\"}}},"
		 "\"parents\":[]}]",
			CEDAR_E_VALUE},
		{"[{\"uid\":{\"type\":\"U\",\"id\":\"a\"},\"attrs\":{\"x\":{\"__extn\":{\"fn\":"
		 "\"no\",\"arg\":\"x\"}}},"
		 "\"parents\":[]}]",
			CEDAR_E_SYNTAX},
		{"[{\"uid\":{\"type\":\"U\",\"id\":\"a\"},\"attrs\":{},\"parents\":[{\"type\":"
		 "\"U\",\"id\":\"a\"}]}]",
			CEDAR_E_CYCLE},
		{"[{\"uid\":{\"type\":\"U\",\"id\":\"a\"},\"attrs\":{},\"parents\":[{\"type\":"
		 "\"U\",\"id\":\"b\"}]},"
		 "{\"uid\":{\"type\":\"U\",\"id\":\"b\"},\"attrs\":{},\"parents\":[{\"type\":\"U\","
		 "\"id\":\"c\"}]},"
		 "{\"uid\":{\"type\":\"U\",\"id\":\"c\"},\"attrs\":{},\"parents\":[{\"type\":\"U\","
		 "\"id\":\"a\"}]}]",
			CEDAR_E_CYCLE},
		{"[{\"uid\":{\"type\":\"U\",\"id\":\"a\"},\"attrs\":{},\"parents\":[]},"
		 "{\"uid\":{\"type\":\"U\",\"id\":\"a\"},\"attrs\":{\"x\":1},\"parents\":[]}]",
			CEDAR_E_DUPLICATE},
		{"[{\"uid\":{\"type\":\"U\",\"id\":\"a\"},\"attrs\":{},\"parents\":[]},"
		 "{\"uid\":{\"type\":\"U\",\"id\":\"a\"},\"attrs\":{},\"parents\":[],\"tags\":{"
		 "\"x\":1}}]",
			CEDAR_E_DUPLICATE}};
	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		cedar_entities *e = NULL;
		struct cedar_error err = {0};
		int code =
			cedar_entities_from_json(bad[i].json, strlen(bad[i].json), NULL, &e, &err);
		if (code != bad[i].code || e)
			fail_msg("%s: %d %s", bad[i].json, code, err.text);
	}
}

static void equal_entities_merge_and_escapes_are_exact(void **state)
{
	const char *json =
		"[{\"uid\":{\"__entity\":{\"type\":\"U\",\"id\":\"a\"}},\"attrs\":{\"s\":[2,1]},"
		"\"parents\":"
		"[{\"type\":\"G\",\"id\":\"1\"},{\"type\":\"G\",\"id\":\"2\"}],\"extra\":null},"
		"{\"uid\":{\"type\":\"U\",\"id\":\"a\"},\"attrs\":{\"s\":[1,2,1]},\"parents\":"
		"[{\"type\":\"G\",\"id\":\"2\"},{\"__entity\":{\"type\":\"G\",\"id\":\"1\"}}],"
		"\"tags\":{}}]";
	(void)state;
	cedar_entities *e = entities_of(json);
	assert_int_equal(cedar_entities_count(e), 1);
	cedar_entities_free(e);
	/* With a further member, or without what it needs, an escape is an ordinary record. */
	cedar_policies *p = policies_of(
		"permit(principal,action,resource) when { context.e.x == 1 && "
		"context.e[\"__entity\"].type == \"U\" && context.o == ip(\"1.1.1.1\") && "
		"context.f has __entity.type && context.g == {__extn: {fn: 1, arg: 2}} && "
		"context.h == {__expr: 1} };");
	cedar_request *r =
		request_of("{\"e\":{\"__entity\":{\"type\":\"U\",\"id\":\"a\"},\"x\":1},"
			   "\"f\":{\"__entity\":{\"type\":\"U\",\"id\":1}},"
			   "\"g\":{\"__extn\":{\"fn\":1,\"arg\":2}},\"h\":{\"__expr\":1},"
			   "\"o\":{\"__extn\":{\"fn\":\"ip\",\"arg\":\"1.1.1.1\"}}}");
	cedar_answer *a = cedar_answer_new(NULL);
	assert_int_equal(cedar_decide(p, NULL, r, NULL, a), 0);
	assert_int_equal(cedar_answer_decision(a), CEDAR_ALLOW);
	cedar_answer_free(a);
	cedar_request_free(r);
	cedar_policies_free(p);
}

static void ancestors_are_limited_by_name(void **state)
{
	struct cedar_limits small = cedar_limits_default();
	struct cedar_error err;
	cedar_entities *e = NULL;
	char *json = NULL;
	size_t n;
	(void)state;
	FILE *f = open_memstream(&json, &n);
	fputs("[", f);
	for (int i = 0; i < 3000; i++)
		fprintf(f,
			"%s{\"uid\":{\"type\":\"U\",\"id\":\"%d\"},\"attrs\":{},\"parents\":[{"
			"\"type\":\"U\","
			"\"id\":\"%d\"}]}",
			i ? "," : "", i, i + 1);
	fputs("]", f);
	(void)fclose(f);
	small.ancestors = 100000;
	assert_int_equal(cedar_entities_from_json(json, n, &small, &e, &err), CEDAR_E_LIMIT);
	assert_non_null(strstr(err.text, "ancestors (100000)"));
	small.ancestors = 10000000;
	assert_int_equal(cedar_entities_from_json(json, n, &small, &e, &err), 0);
	cedar_entities_free(e);
	small.entities = 2999;
	assert_int_equal(cedar_entities_from_json(json, n, &small, &e, &err), CEDAR_E_LIMIT);
	assert_non_null(strstr(err.text, "entities (2999)"));
	free(json);
}

/* -- Decisions ------------------------------------------------------------------------------ */

static void decide_text(const char *text, bool strict, cedar_answer *a, cedar_policies **ret)
{
	struct cedar_options options = {.deny_on_forbid_error = strict};
	static cedar_entities *e;
	static cedar_request *r;
	cedar_entities_free(e);
	cedar_request_free(r);
	e = entities_of(world);
	r = request_of("{\"n\":5}");
	*ret = policies_of(text);
	assert_int_equal(cedar_decide(*ret, e, r, &options, a), 0);
}

static void a_failed_forbid_denies_only_on_request(void **state)
{
	const char *text = "permit(principal,action,resource);"
			   "forbid(principal,action,resource) when { \"rm\" in [\"rm\"] };";
	cedar_answer *a = cedar_answer_new(NULL);
	cedar_policies *p;
	(void)state;
	decide_text(text, false, a, &p);
	assert_int_equal(cedar_answer_decision(a), CEDAR_ALLOW);
	assert_int_equal(cedar_answer_error_count(a), 1);
	assert_false(cedar_answer_denied_by_error(a));
	cedar_policies_free(p);
	decide_text(text, true, a, &p);
	assert_int_equal(cedar_answer_decision(a), CEDAR_DENY);
	assert_true(cedar_answer_denied_by_error(a));
	cedar_policies_free(p);
	/* A failed permit does not. */
	decide_text(
		"permit(principal,action,resource); permit(principal,action,resource) when { 1 };",
		true, a, &p);
	assert_int_equal(cedar_answer_decision(a), CEDAR_ALLOW);
	cedar_policies_free(p);
	cedar_answer_free(a);
}

static void reasons_are_the_forbids_or_else_the_permits(void **state)
{
	cedar_answer *a = cedar_answer_new(NULL);
	cedar_policies *p;
	(void)state;
	decide_text("permit(principal,action,resource); @why(\"no\") @b "
		    "forbid(principal,action,resource);"
		    "permit(principal,action,resource) when { 1 < \"a\" };"
		    "forbid(principal == U::\"bob\",action,resource) when { 1 };"
		    "forbid(principal in G::\"g2\",action in [Action::\"read\", "
		    "Action::\"view\"],resource is P);",
		false, a, &p);
	assert_int_equal(cedar_answer_decision(a), CEDAR_DENY);
	assert_int_equal(cedar_answer_reason_count(a), 2);
	assert_string_equal(cedar_policy_id(p, cedar_answer_reason(a, 0)), "policy1");
	assert_string_equal(cedar_policy_id(p, cedar_answer_reason(a, 1)), "policy4");
	assert_string_equal(cedar_policy_annotation(p, 1, "why"), "no");
	assert_string_equal(cedar_policy_annotation(p, 1, "b"), "");
	assert_null(cedar_policy_annotation(p, 1, "c"));
	/* The scope does not match, so the condition of policy3 is not evaluated. */
	assert_int_equal(cedar_answer_error_count(a), 1);
	assert_int_equal(cedar_answer_error(a, 0, NULL), 2);
	cedar_policies_free(p);
	decide_text("permit(principal == U::\"bob\",action,resource);", false, a, &p);
	assert_int_equal(cedar_answer_decision(a), CEDAR_DENY);
	assert_int_equal(cedar_answer_reason_count(a), 0);
	cedar_policies_free(p);
	cedar_answer_free(a);
}

static void explanations_name_the_part(void **state)
{
	static const struct {
		const char *text;
		enum cedar_part part;
		bool failed;
	} cases[] = {
		{"permit(principal == U::\"bob\",action,resource);", CEDAR_PART_PRINCIPAL, false},
		{"permit(principal,action == Action::\"x\",resource);", CEDAR_PART_ACTION, false},
		{"permit(principal,action,resource is X);", CEDAR_PART_RESOURCE, false},
		{"permit(principal,action,resource) when { true } unless { true };",
			CEDAR_PART_CONDITION, false},
		{"permit(principal,action,resource) when { true } when { 1 };",
			CEDAR_PART_CONDITION, true},
		{"permit(principal,action,resource) when { true };", CEDAR_PART_ALL, false}};
	cedar_answer *a = cedar_answer_new(NULL);
	cedar_entities *e = entities_of(world);
	cedar_request *r = request_of("{}");
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct cedar_explanation x;
		cedar_policies *p = policies_of(cases[i].text);
		assert_int_equal(cedar_explain(p, e, r, 0, a, &x), 0);
		assert_int_equal(x.part, cases[i].part);
		assert_int_equal(x.failed, cases[i].failed);
		assert_int_equal(x.satisfied, x.part == CEDAR_PART_ALL);
		assert_true(x.place.line == 1 && x.place.text[0]);
		if (x.part == CEDAR_PART_CONDITION)
			assert_int_equal(x.condition, 1);
		cedar_policies_free(p);
	}
	cedar_request_free(r);
	cedar_entities_free(e);
	cedar_answer_free(a);
}

/* -- Sets, templates, links ----------------------------------------------------------------- */

static void links_fill_exactly_their_slots(void **state)
{
	const char *t = "permit(principal in ?principal, action, resource == ?resource);";
	struct cedar_error err;
	cedar_policies *p;
	(void)state;
	cedar_builder *b = cedar_builder_new(NULL);
	assert_int_equal(cedar_builder_add_policy_text(b, "t", t, strlen(t), &err), 0);
	assert_int_equal(
		cedar_builder_link(b, "t", "l", "G::\"g1\"", NULL, &err), CEDAR_E_TEMPLATE);
	assert_int_equal(
		cedar_builder_link(b, "u", "l", "G::\"g1\"", NULL, &err), CEDAR_E_TEMPLATE);
	assert_int_equal(
		cedar_builder_link(b, "t", "t", "G::\"g1\"", "P::\"a\"", &err), CEDAR_E_DUPLICATE);
	assert_int_equal(cedar_builder_link(b, "t", "l", "G::\"g1\"", "P::\"a\"", &err), 0);
	assert_int_equal(cedar_builder_link(b, "t", "m", "G::\"g9\"", "P::\"a\"", &err), 0);
	assert_int_equal(
		cedar_builder_add_policy_text(b, "l", t, strlen(t), &err), CEDAR_E_DUPLICATE);
	assert_int_equal(cedar_builder_finish(b, &p, &err), 0);
	assert_int_equal(cedar_policies_count(p), 2);
	assert_int_equal(cedar_policies_template_count(p), 1);
	cedar_entities *e = entities_of(world);
	cedar_request *r = request_of("{}");
	cedar_answer *a = cedar_answer_new(NULL);
	assert_int_equal(cedar_decide(p, e, r, NULL, a), 0);
	assert_int_equal(cedar_answer_decision(a), CEDAR_ALLOW);
	assert_int_equal(cedar_answer_reason_count(a), 1);
	assert_string_equal(cedar_policy_id(p, cedar_answer_reason(a, 0)), "l");
	struct cedar_text json, again;
	cedar_policies *q;
	assert_int_equal(cedar_policies_to_json(p, &json, &err), 0);
	assert_int_equal(cedar_policies_from_json(json.data, json.length, NULL, &q, &err), 0);
	assert_int_equal(cedar_policies_to_json(q, &again, &err), 0);
	assert_string_equal(json.data, again.data);
	cedar_text_free(&again);
	assert_int_equal(cedar_policies_to_text(p, &again, &err), CEDAR_E_TEMPLATE);
	cedar_text_free(&json);
	cedar_policies_free(q);
	cedar_answer_free(a);
	cedar_request_free(r);
	cedar_entities_free(e);
	cedar_policies_free(p);
}

static void policy_sets_in_json_that_are_none(void **state)
{
#define HEAD                                                                                       \
	"\"effect\":\"permit\",\"action\":{\"op\":\"All\"},\"resource\":{\"op\":\"All\"},"         \
	"\"conditions\":[]"
#define STATIC "{" HEAD ",\"principal\":{\"op\":\"All\"}}"
#define TEMPLATE "{" HEAD ",\"principal\":{\"op\":\"==\",\"slot\":\"?principal\"}}"
	static const struct {
		const char *json;
		int code;
	} cases[] = {{"{\"staticPolicies\":{\"a\":" STATIC "}}", 0},
		{"{\"staticPolicies\":{\"a\":" TEMPLATE "}}", CEDAR_E_TEMPLATE},
		{"{\"templates\":{\"a\":" STATIC "}}", CEDAR_E_TEMPLATE},
		{"{\"staticPolicies\":{\"a\":" STATIC "},\"templates\":{\"a\":" TEMPLATE "}}",
			CEDAR_E_DUPLICATE},
		{"{\"staticPolicies\":{\"a\":" STATIC ",\"a\":" STATIC "}}", CEDAR_E_DUPLICATE},
		{"{\"templates\":{\"a\":" TEMPLATE
		 "},\"templateLinks\":[{\"templateId\":\"a\",\"newId\":\"b\","
		 "\"values\":{}}]}",
			CEDAR_E_TEMPLATE},
		{"{\"templates\":{\"a\":" TEMPLATE
		 "},\"templateLinks\":[{\"templateId\":\"a\",\"newId\":\"b\","
		 "\"values\":{\"?principal\":{\"type\":\"U\",\"id\":\"x\"},\"?resource\":{\"type\":"
		 "\"U\",\"id\":\"x\"}}}]}",
			CEDAR_E_TEMPLATE},
		{"{\"templates\":{\"a\":" TEMPLATE
		 "},\"templateLinks\":[{\"templateId\":\"a\",\"newId\":\"b\","
		 "\"values\":{\"?principal\":{\"type\":\"U\",\"id\":\"x\"}}}]}",
			0},
		{"{\"staticPolicies\":{\"a\":{" HEAD
		 ",\"principal\":{\"op\":\"is\",\"entity_type\":\"U\","
		 "\"x\":1}}}}",
			CEDAR_E_SYNTAX},
		{"{\"staticPolicies\":{\"a\":{" HEAD ",\"principal\":{\"op\":\"all\",\"x\":1}}}}",
			0},
		{"{\"nope\":{}}", CEDAR_E_SYNTAX},
		{"{\"staticPolicies\":{\"a\":{" HEAD ",\"principal\":{\"op\":\"All\"},\"x\":1}}}",
			CEDAR_E_SYNTAX},
		{"{\"staticPolicies\":{\"a\":{" HEAD "}}}", CEDAR_E_SYNTAX},
		{"{\"staticPolicies\":{\"a\":{" HEAD
		 ",\"principal\":{\"op\":\"==\",\"slot\":\"?resource\"}}}}",
			CEDAR_E_SYNTAX}};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct cedar_error err = {0};
		cedar_policies *p = NULL;
		int code = cedar_policies_from_json(
			cases[i].json, strlen(cases[i].json), NULL, &p, &err);
		if (code != cases[i].code)
			fail_msg("%s: %d %s", cases[i].json, code, err.text);
		cedar_policies_free(p);
	}
}

static void expressions_in_json_that_are_none(void **state)
{
	static const char *const bad[] = {"{}", "1", "{\"Value\":null}", "{\"Value\":1.0}",
		"{\"Value\":{\"__expr\":\"1\"}}", "{\"Var\":\"foo\"}", "{\"Slot\":\"?principal\"}",
		"{\"Value\":1,\"Var\":\"context\"}", "{\"==\":{\"left\":{\"Value\":1}}}",
		"{\"!\":{\"arg\":{\"Value\":1},\"x\":1}}",
		"{\"has\":{\"left\":{\"Var\":\"context\"},\"attr\":[]}}",
		"{\"is\":{\"left\":{\"Var\":\"principal\"},\"entity_type\":\"A :: B\"}}",
		"{\"nope\":[{\"Value\":1}]}", "{\"unknown\":[{\"Value\":\"a\"}]}",
		"{\"ip\":{\"Value\":\"1.1.1.1\"}}", "{\"Set\":{}}", "{\"Record\":[]}",
		"{\"like\":{\"left\":{\"Value\":\"a\"},\"pattern\":[\"x\"]}}",
		"{\"Value\":{\"a\":1,\"a\":2}}",
		"{\"if-then-else\":{\"if\":{\"Value\":true},\"then\":{\"Value\":1}}}"};
	char json[1024];
	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct cedar_error err = {0};
		(void)snprintf(json, sizeof(json),
			"{\"effect\":\"permit\",\"principal\":{\"op\":\"All\"},\"action\":{\"op\":"
			"\"All\"},"
			"\"resource\":{\"op\":\"All\"},\"conditions\":[{\"kind\":\"when\",\"body\":"
			"%s}]}",
			bad[i]);
		cedar_builder *b = cedar_builder_new(NULL);
		int code = cedar_builder_add_policy_json(b, "p", json, strlen(json), &err);
		if (code >= 0 || err.code != code || err.line != 1)
			fail_msg("%s: %d %s", bad[i], code, err.text);
		cedar_builder_free(b);
	}
}

static void an_add_that_fails_leaves_nothing(void **state)
{
	struct cedar_error err;
	cedar_policies *p;
	const char *good = "permit(principal,action,resource);",
		   *bad = "permit(principal,action,resource); x";
	(void)state;
	cedar_builder *b = cedar_builder_new(NULL);
	assert_true(cedar_builder_add_text(b, "a", CEDAR_IDS_COUNT, bad, strlen(bad), &err) < 0);
	assert_int_equal(
		cedar_builder_add_text(b, "a", CEDAR_IDS_COUNT, good, strlen(good), &err), 0);
	const char *named = "@id(\"n\") permit(principal,action,resource);";
	assert_int_equal(
		cedar_builder_add_text(b, "b", CEDAR_IDS_ANNOTATION, named, strlen(named), &err),
		0);
	assert_true(cedar_builder_add_policy_text(b, "two", "", 0, &err) < 0);
	assert_int_equal(cedar_builder_finish(b, &p, &err), 0);
	assert_int_equal(cedar_policies_count(p), 2);
	assert_string_equal(cedar_policy_id(p, 0), "a0");
	assert_string_equal(cedar_policy_id(p, 1), "n");
	cedar_policies_free(p);
}

/* -- Printing ------------------------------------------------------------------------------- */

static void printing_is_minimal(void **state)
{
	static const char *const same[] = {"true && (false && true)", "true && false && true",
		"(true || false) && true", "1 - (2 - 3) == 1", "!(true && false)", "!!!!true",
		"-(5) == 1", "--5 == 1", "---context.n == 1", "(-5).x == 1", "-5.x == 1",
		"(if true then 1 else 2) == 1", "if true then if false then 1 else 2 else 3",
		"context[\"a b\"].c has \"d e\"", "principal is A::B in [X::\"\\n\\0\"]",
		"{\"if\": 1, a: [1, {}]}.a == []", "\"a\" like \"*\\*\\\"*\"",
		"ip(\"::1\").isInRange(ip(\"::/0\")) == (1 < 2)",
		"[1].contains(if true then 1 else 2)", "context has a.b.c && context has \"if\"",
		"(1 < 2) == (2 < 3)", "(principal has a) == true",
		"\"\\u{7f}\\r\" == \"\xc3\xa9\""};
	char text[512];
	(void)state;
	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
		struct cedar_text out;
		(void)snprintf(text, sizeof(text),
			"permit (principal, action, resource)\nwhen { %s };\n", same[i]);
		cedar_policies *p = policies_of(text);
		assert_int_equal(cedar_policy_to_text(p, 0, &out, NULL), 0);
		assert_string_equal(out.data, text);
		cedar_text_free(&out);
		cedar_policies_free(p);
	}
}

/* -- The slot ------------------------------------------------------------------------------- */

enum { SWAPS = 2000, READERS = 3 };

struct race {
	struct cedar_slot slot;
	bool done;
};

static void *reader(void *ctx)
{
	struct race *race = ctx;
	cedar_request *r = request_of("{}");
	cedar_answer *a = cedar_answer_new(NULL);
	uintptr_t wrong = 0;
	while (!__atomic_load_n(&race->done, __ATOMIC_ACQUIRE)) {
		cedar_policies *p = cedar_slot_get(&race->slot);
		wrong += !p || cedar_decide(p, NULL, r, NULL, a) != 0 ||
			 cedar_answer_decision(a) != CEDAR_ALLOW;
		cedar_policies_free(p);
	}
	cedar_answer_free(a);
	cedar_request_free(r);
	return (void *)wrong;
}

static void sets_are_swapped_under_readers(void **state)
{
	const char *text = "permit(principal,action,resource) when { [context, 1].contains(1) };";
	struct race race = {0};
	pthread_t threads[READERS];
	(void)state;
	assert_null(cedar_slot_get(&race.slot));
	cedar_slot_set(&race.slot, policies_of(text));
	for (int i = 0; i < READERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, reader, &race), 0);
	for (int i = 0; i < SWAPS; i++)
		cedar_slot_set(&race.slot, policies_of(text));
	__atomic_store_n(&race.done, true, __ATOMIC_RELEASE);
	for (int i = 0; i < READERS; i++) {
		void *wrong;
		assert_int_equal(pthread_join(threads[i], &wrong), 0);
		assert_null(wrong);
	}
	/* Enough reads of one set to fold the count many times; then the last reference frees. */
	for (int i = 0; i < 200000; i++)
		cedar_policies_free(cedar_slot_get(&race.slot));
	cedar_policies *last = cedar_slot_get(&race.slot);
	assert_int_equal(cedar_policies_count(last), 1);
	cedar_slot_set(&race.slot, NULL);
	assert_int_equal(last->references, 1);
	cedar_policies_free(last);
	assert_null(cedar_slot_get(&race.slot));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(logic_short_circuits_and_wants_booleans),
		cmocka_unit_test(arithmetic_is_exact_or_fails),
		cmocka_unit_test(order_is_of_numbers_and_times),
		cmocka_unit_test(equality_never_fails),
		cmocka_unit_test(membership),
		cmocka_unit_test(attributes_and_tags),
		cmocka_unit_test(sets),
		cmocka_unit_test(patterns),
		cmocka_unit_test(extensions),
		cmocka_unit_test(expressions_that_are_none),
		cmocka_unit_test(policies_that_are_none),
		cmocka_unit_test(texts_that_are_policies),
		cmocka_unit_test(errors_say_where_and_what),
		cmocka_unit_test(depth_is_limited_by_name),
		cmocka_unit_test(sizes_are_limited_by_name),
		cmocka_unit_test(parts_of_a_policy_are_limited_by_name),
		cmocka_unit_test(json_is_limited_by_name),
		cmocka_unit_test(output_is_limited_by_name),
		cmocka_unit_test(scratch_is_limited_and_the_policy_fails),
		cmocka_unit_test(entities_that_are_none),
		cmocka_unit_test(equal_entities_merge_and_escapes_are_exact),
		cmocka_unit_test(ancestors_are_limited_by_name),
		cmocka_unit_test(a_failed_forbid_denies_only_on_request),
		cmocka_unit_test(reasons_are_the_forbids_or_else_the_permits),
		cmocka_unit_test(explanations_name_the_part),
		cmocka_unit_test(links_fill_exactly_their_slots),
		cmocka_unit_test(policy_sets_in_json_that_are_none),
		cmocka_unit_test(expressions_in_json_that_are_none),
		cmocka_unit_test(an_add_that_fails_leaves_nothing),
		cmocka_unit_test(printing_is_minimal),
		cmocka_unit_test(sets_are_swapped_under_readers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
