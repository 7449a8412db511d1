/* Cedar schemas: what both notations accept and refuse (each verdict was taken from the official
 * engine), places and limits, and that nothing is lost between the notations. */
#include "testing.h"

#include "cedar/cedar.h"

static const char *const text_ok[] = {
	"entity A {__cedar: Long};",
	"action __cedar;",
	"type __cedarx = Long;",
	"entity Set; entity A { a: Set, b: Set<Set> };",
	"entity A {\"a\": Long,};",
	"entity A in [];",
	"entity A = { } tags Long;",
	"entity A tags {a: Long};",
	"entity A tags Set<Long>;",
	"action a in \"b\"; action b;",
	"action a in Action::\"b\"; action b;",
	"@a(\"x\\n\") entity A;",
	"@a(\"x\ny\") entity A;",
	"type Action = Long; entity A {a: Action};",
	"action x; entity A {a: Action};",
	"namespace X { action x; } entity A {a: X::Action};",
	"entity A in [B, B]; entity B;",
	"entity A in A;",
	"action x appliesTo {principal: A, resource: A, context: T}; type T = {}; entity A;",
	"action x appliesTo {principal: [A,A], resource: A}; entity A;",
	"type ipaddr = Long; entity A {a: ipaddr, b: __cedar::ipaddr};",
	"entity Long; entity A {a: Long};",
	"type EntityOrCommon = Long;",
	"namespace X { entity Long; entity B {a: Long}; }",
	"entity E enum [\"a\"]; entity A in E;",
	"entity E, F enum [\"a\"];",
	"entity A {\"if\": Long};",
	"action principal, context, entity, type, Set;",
	"entity entity, type, namespace, tags, enum;",
	"entity A;\302\240entity B;",
	"action a appliesTo { principal: A, resource: A, context: {a: Long}, }; entity A;",
	"@x namespace N { @y entity A {@z a: Long}; @w action a; @v type T = Long; }",
	"action \"a\\u{1F600}\\x41\\0\"; ",
	"entity A {a?: Long, a: Long};",
	"entity A {\n\"a\" ? : Long};",
	"type A = Set < Set<Long> >;",
	"entity A in B::C {}; namespace B {entity C;}",
	"entity A in B :: C {}; namespace B {entity C;}",
	"type T = {a: T2}; type T2 = {b: E}; entity E {t: T};",
	("namespace N { type T = Long; entity A {a: T, b: N::T}; } namespace M { entity B {a: "
	 "N::T}; }"),
};

static const char *const text_bad[] = {
	"entity __cedar;",
	"namespace A::__cedar {}",
	"entity A { a: Set };",
	"entity A { a: Long,, };",
	"entity A, B, ;",
	"entity A = ;",
	"action a in A::b; action b;",
	"action a in A::Action::\"b\";",
	"@a @a entity A;",
	"@a() entity A;",
	"@a(\"x\015\") entity A;",
	"@a(\"x\\\ny\") entity A;",
	"entity Action;",
	"namespace X { entity Action; }",
	"entity A {a: Action};",
	"entity A in C;",
	"entity A in Action; action x;",
	"type B = A; entity C in B; entity A;",
	"action x appliesTo {principal: Action, resource: A}; entity A;",
	"action x appliesTo {principal: A, resource: A, context: A}; entity A;",
	"action x appliesTo {principal: A, resource: A, context: T}; type T = Long; entity A;",
	"action x appliesTo {principal: A, principal: A, resource: A}; entity A;",
	"action x appliesTo {principal: [], resource: A}; entity A;",
	"action x appliesTo {principal: A}; entity A;",
	"action x appliesTo {principal: [A,], resource: A}; entity A;",
	"action x appliesTo {}; ",
	"type A = B; type B = A;",
	"type A = {a: A};",
	"type A = Set<A>; entity A;",
	"entity A {a: Foo};",
	"type Bool = Long;",
	"type Boolean = Long;",
	"entity A {a: __cedar::Foo};",
	"entity A {a: Boolean};",
	"type Record = Long;",
	"namespace X { entity A; } entity A;",
	"namespace X { type A = Long; } entity A;",
	"namespace X { action a; } action a;",
	"namespace X { entity A {b: Y::B}; } namespace X::Y {entity B;}",
	"namespace X {} namespace X {}",
	"action a, a;",
	"action a in a;",
	"action a in b; action b in a;",
	"entity E enum [];",
	"entity E enum [\"a\",];",
	"entity E in A enum [\"a\"]; entity A;",
	"entity A;;",
	"entity \"A\";",
	"entity if;",
	"entity A {if: Long};",
	"action if;",
	"entity A // c\015 entity B;",
	"\357\273\277entity A;",
	"@x('a') entity A;",
	"action \"\\*\";",
	"action \"\\q\";",
	"entity A::B;",
	"type A::B = Long;",
	"entity A in [B::C,] {}; namespace B {entity C;}",
};

static const char *const json_ok[] = {
	"{\"\":{\"entityTypes\":{\"A\":{}},\"actions\":{}}}",
	"{\"\":{\"entityTypes\":{\"A\":{\"annotations\":{\"a\":null}}},\"actions\":{}}}",
	"{\"\":{\"entityTypes\":{\"A\":{\"annotations\":{\"a\":\"b\"}}},\"actions\":{}}}",
	"{\"\":{\"entityTypes\":{\"A\":{\"enum\":[\"a\"],\"annotations\":{}}},\"actions\":{}}}",
	("{\"\":{\"entityTypes\":{\"A\":{\"shape\":{\"type\":\"Record\",\"attributes\":{\"a\":{"
	 "\"type\":\"Bool\"}}}}},\"actions\":{}}}"),
	("{\"\":{\"entityTypes\":{\"A\":{\"shape\":{\"type\":\"Record\",\"attributes\":{\"a\":{"
	 "\"type\":\"Boolean\",\"required\":false}}}}},\"actions\":{}}}"),
	("{\"\":{\"entityTypes\":{\"A\":{\"shape\":{\"type\":\"Record\",\"attributes\":{\"a\":{"
	 "\"type\":\"Entity\",\"name\":\"A\"}}}}},\"actions\":{}}}"),
	("{\"\":{\"entityTypes\":{\"A\":{\"shape\":{\"type\":\"Record\",\"attributes\":{\"a\":{"
	 "\"type\":\"Extension\",\"name\":\"ipaddr\"}}}}},\"actions\":{}}}"),
	("{\"\":{\"entityTypes\":{\"A\":{\"shape\":{\"type\":\"Record\",\"attributes\":{\"a\":{"
	 "\"type\":\"ipaddr\"}}}}},\"actions\":{}}}"),
	("{\"\":{\"entityTypes\":{\"A\":{\"shape\":{\"type\":\"Record\",\"attributes\":{\"a\":{"
	 "\"type\":\"EntityOrCommon\",\"name\":\"A\"}},\"additionalAttributes\":false}}},"
	 "\"actions\":{}}}"),
	"{\"X\":{\"entityTypes\":{},\"actions\":{},\"annotations\":{\"a\":\"b\"}}}",
	"{\"X\":{\"entityTypes\":{},\"actions\":{\"a\":{\"appliesTo\":null,\"memberOf\":null}}}}",
	"{\"X\":{\"entityTypes\":{},\"actions\":{\"a\":{\"attributes\":null}}}}",
	("{\"X\":{\"entityTypes\":{},\"actions\":{\"a\":{\"appliesTo\":{\"principalTypes\":[],"
	 "\"resourceTypes\":[]}}}}}"),
	("{\"X\":{\"entityTypes\":{\"A\":{}},\"actions\":{\"a\":{\"appliesTo\":{\"principalTypes\":"
	 "["
	 "\"A\"],\"resourceTypes\":[\"X::A\"],\"context\":{\"type\":\"T\"}}}},\"commonTypes\":{"
	 "\"T\":{\"type\":\"Record\",\"attributes\":{},\"annotations\":{\"q\":\"r\"}}}}}"),
	"{\"X\":{\"entityTypes\":{},\"actions\":{\"a\":{\"memberOf\":[{\"id\":\"b\"}]},\"b\":{}}}}",
	("{\"X\":{\"entityTypes\":{},\"actions\":{\"a\":{\"memberOf\":[{\"id\":\"b\",\"type\":null}"
	 "]"
	 "},\"b\":{}}}}"),
	("{\"X\":{\"entityTypes\":{},\"actions\":{\"a\":{\"memberOf\":[{\"id\":\"b\",\"type\":"
	 "\"Action\"}]},\"b\":{}}}}"),
	("{\"X\":{\"entityTypes\":{},\"actions\":{\"a\":{\"memberOf\":[{\"id\":\"b\",\"type\":\"X::"
	 "Action\"}]},\"b\":{}}}}"),
	("{\"X\":{\"entityTypes\":{\"A\":{}},\"actions\":{},\"commonTypes\":{\"A\":{\"type\":"
	 "\"Long\"}}}}"),
	("{\"\":{\"entityTypes\":{\"A\":{}},\"actions\":{},\"commonTypes\":{\"A\":{\"type\":"
	 "\"Long\"}}}}"),
	("{\"\":{\"entityTypes\":{\"A\":{\"shape\":{\"type\":\"Record\",\"attributes\":{\"a\":{"
	 "\"type\":\"Entity\",\"name\":\"A\"},\"b\":{\"type\":\"A\"}}}}},\"actions\":{},"
	 "\"commonTypes\":{\"A\":{\"type\":\"Long\"}}}}"),
	("{\"\":{\"entityTypes\":{},\"actions\":{},\"commonTypes\":{\"T\":{\"type\":\"Long\","
	 "\"annotations\":{\"a\":\"b\"}}}}}"),
	"{}",
	("{\"\":{\"entityTypes\":{\"A\":{\"shape\":{\"type\":\"Record\",\"attributes\":{\"a\":{"
	 "\"type\":\"Record\",\"attributes\":{\"b\":{\"type\":\"Long\",\"annotations\":{\"z\":"
	 "\"q\"}"
	 "}}}}}}},\"actions\":{}}}"),
	("{\"\":{\"entityTypes\":{\"A\":{\"shape\":{\"type\":\"Record\",\"attributes\":{\"a\":{"
	 "\"type\":\"Long\",\"annotations\":{\"if\":\"x\"}}}}}},\"actions\":{}}}"),
};

static const char *const json_bad[] = {
	"{\"\":{\"entityTypes\":{\"A\":{\"shape\":null}},\"actions\":{}}}",
	"{\"\":{\"entityTypes\":{\"A\":{\"tags\":null}},\"actions\":{}}}",
	"{\"\":{\"entityTypes\":{\"A\":{\"memberOfTypes\":null}},\"actions\":{}}}",
	"{\"\":{\"entityTypes\":{\"A\":{\"annotations\":null}},\"actions\":{}}}",
	"{\"\":{\"entityTypes\":{\"A\":{\"annotations\":{\"a b\":\"b\"}}},\"actions\":{}}}",
	"{\"\":{\"entityTypes\":{\"A\":{\"enum\":[]}},\"actions\":{}}}",
	("{\"\":{\"entityTypes\":{\"A\":{\"enum\":[\"a\"],\"shape\":{\"type\":\"Record\","
	 "\"attributes\":{}}}},\"actions\":{}}}"),
	"{\"\":{\"entityTypes\":{\"A\":{\"enum\":null}},\"actions\":{}}}",
	"{\"\":{\"entityTypes\":{\"A\":{\"enum\":[\"a\"], \"memberOfTypes\":[]}},\"actions\":{}}}",
	"{\"\":{\"entityTypes\":{\"A\":{\"shape\":{\"type\":\"Record\"}}},\"actions\":{}}}",
	("{\"\":{\"entityTypes\":{\"A\":{\"shape\":{\"type\":\"Record\",\"attributes\":{\"a\":{"
	 "\"type\":\"Long\",\"required\":null}}}}},\"actions\":{}}}"),
	("{\"\":{\"entityTypes\":{\"A\":{\"shape\":{\"type\":\"Record\",\"attributes\":{\"a\":{"
	 "\"type\":\"Long\",\"name\":\"x\"}}}}},\"actions\":{}}}"),
	("{\"\":{\"entityTypes\":{\"A\":{\"shape\":{\"type\":\"Record\",\"attributes\":{\"a\":{"
	 "\"type\":\"Long\",\"foo\":\"x\"}}}}},\"actions\":{}}}"),
	("{\"\":{\"entityTypes\":{\"A\":{\"shape\":{\"type\":\"Record\",\"attributes\":{\"a\":{"
	 "\"type\":\"Entity\",\"name\":\"Long\"}}}}},\"actions\":{}}}"),
	("{\"\":{\"entityTypes\":{\"A\":{\"shape\":{\"type\":\"Record\",\"attributes\":{\"a\":{"
	 "\"type\":\"Extension\",\"name\":\"ip\"}}}}},\"actions\":{}}}"),
	("{\"\":{\"entityTypes\":{\"A\":{\"shape\":{\"type\":\"Record\",\"attributes\":{\"a\":{"
	 "\"type\":\"A\"}}}}},\"actions\":{}}}"),
	("{\"\":{\"entityTypes\":{\"A\":{\"shape\":{\"type\":\"Record\",\"attributes\":{\"a\":{"
	 "\"type\":\"EntityOrCommon\",\"name\":\"A\"}},\"additionalAttributes\":true}}},"
	 "\"actions\":"
	 "{}}}"),
	("{\"\":{\"entityTypes\":{\"A\":{\"shape\":{\"type\":\"Set\",\"element\":{\"type\":"
	 "\"Long\"}"
	 "}}},\"actions\":{}}}"),
	"{\"\":{\"entityTypes\":{\"A\":{\"shape\":{\"type\":\"T\"}}},\"actions\":{}}}",
	("{\"\":{\"entityTypes\":{\"A\":{\"shape\":{\"type\":\"Record\",\"attributes\":{\"a\":{"
	 "\"type\":\"Set\",\"element\":{\"type\":\"Long\",\"required\":false}}}}}},\"actions\":{}}"
	 "}"),
	("{\"\":{\"entityTypes\":{\"A\":{\"shape\":{\"type\":\"Record\",\"attributes\":{\"a\":{"
	 "\"type\":\"Set\"}}}}},\"actions\":{}}}"),
	"{\"\":{\"entityTypes\":{\"A\":{\"foo\":1}},\"actions\":{}}}",
	"{\"\":{\"entityTypes\":{}}}",
	"{\"\":{\"actions\":{}}}",
	"{\"\":{\"entityTypes\":{},\"actions\":{},\"annotations\":{\"a\":\"b\"}}}",
	"{\"X Y\":{\"entityTypes\":{},\"actions\":{}}}",
	"{\"__cedar\":{\"entityTypes\":{},\"actions\":{}}}",
	"{\"X\":{\"entityTypes\":{\"a b\":{}},\"actions\":{}}}",
	"{\"X\":{\"entityTypes\":{\"__cedar\":{}},\"actions\":{}}}",
	"{\"X\":{\"entityTypes\":{\" a\":{}},\"actions\":{}}}",
	"{\"X\":{\"entityTypes\":{},\"actions\":{\"a\":{\"attributes\":{}}}}}",
	"{\"X\":{\"entityTypes\":{},\"actions\":{\"a\":{\"appliesTo\":{\"principalTypes\":[]}}}}}",
	("{\"X\":{\"entityTypes\":{},\"actions\":{\"a\":{\"appliesTo\":{\"principalTypes\":null,"
	 "\"resourceTypes\":[]}}}}}"),
	("{\"X\":{\"entityTypes\":{\"A\":{}},\"actions\":{\"a\":{\"appliesTo\":{\"principalTypes\":"
	 "["
	 "\"A\"],\"resourceTypes\":[\"X::A\"],\"context\":null}}}}}"),
	("{\"X\":{\"entityTypes\":{\"A\":{}},\"actions\":{\"a\":{\"appliesTo\":{\"principalTypes\":"
	 "["
	 "\"A\"],\"resourceTypes\":[\"X::A\"],\"context\":{\"type\":\"Record\",\"attributes\":{}},"
	 "\"foo\":1}}}}}"),
	("{\"X\":{\"entityTypes\":{},\"actions\":{\"a\":{\"memberOf\":[{\"id\":\"b\",\"type\":\"X "
	 ":: Action\"}]},\"b\":{}}}}"),
	"{\"X\":{\"entityTypes\":{},\"actions\":{\"a\":{\"memberOf\":[\"b\"]},\"b\":{}}}}",
	("{\"X\":{\"entityTypes\":{},\"actions\":{\"a\":{\"memberOf\":[{\"id\":\"b\",\"foo\":1}]},"
	 "\"b\":{}}}}"),
	"{\"\":{\"entityTypes\":{},\"actions\":{},\"commonTypes\":{\"Bool\":{\"type\":\"Long\"}}}}",
	("{\"\":{\"entityTypes\":{},\"actions\":{},\"commonTypes\":{\"T\":{\"type\":\"Long\","
	 "\"foo\":1}}}}"),
	"{\"\":{\"entityTypes\":{},\"actions\":{},\"commonTypes\":null}}",
	"[]",
	"{\"\":null}",
	"{\"\":{\"entityTypes\":{\"A\":{\"memberOfTypes\":[\"B::C\"]}},\"actions\":{}}}",
	"{\"\":{\"entityTypes\":{\"A\":{\"memberOfTypes\":[\"if\"]}},\"actions\":{}}}",
	"{\"\":{\"entityTypes\":{\"A\":{\"memberOfTypes\":[\" A\"]}},\"actions\":{}}}",
	("{\"\":{\"entityTypes\":{\"A\":{\"shape\":{\"type\":\"Record\",\"attributes\":{\"a\":{"
	 "\"type\":\"Set\",\"element\":{\"type\":\"Long\",\"annotations\":{\"a\":\"b\"}}}}}}},"
	 "\"actions\":{}}}"),
	("{\"\":{\"entityTypes\":{\"A\":{\"shape\":{\"type\":\"Record\",\"attributes\":{\"a\":{"
	 "\"type\":\"Long\",\"additionalAttributes\":false}}}}},\"actions\":{}}}"),
	("{\"\":{\"entityTypes\":{\"A\":{\"shape\":{\"type\":\"Record\",\"attributes\":{\"a\":{"
	 "\"type\":\"if\"}}}}},\"actions\":{}}}"),
	("{\"\":{\"entityTypes\":{\"A\":{\"tags\":{\"type\":\"Long\",\"annotations\":{}}}},"
	 "\"actions\":{}}}"),
	("{\"\":{\"entityTypes\":{\"A\":{\"shape\":{\"type\":\"Record\",\"attributes\":{},"
	 "\"annotations\":{}}}},\"actions\":{}}}"),
};

typedef int from_fn(
	const char *, size_t, const struct cedar_limits *, cedar_schema **, struct cedar_error *);

static int try_schema(
	from_fn *from, const char *text, const struct cedar_limits *limits, struct cedar_error *err)
{
	cedar_schema *s = NULL;
	int r = from(text, strlen(text), limits, &s, err);

	assert_true((r == 0) == (s != NULL));
	if (r == 0 && err)
		err->text[0] = '\0';
	cedar_schema_free(s);
	return r;
}

static void accepts_all(from_fn *from, const char *const *list, size_t n)
{
	struct cedar_error err;

	for (size_t i = 0; i < n; i++)
		if (try_schema(from, list[i], NULL, &err) < 0)
			fail_msg("refused: %s\n%s", list[i], err.text);
}

static void refuses_all(from_fn *from, const char *const *list, size_t n)
{
	struct cedar_error err;

	for (size_t i = 0; i < n; i++) {
		int r = try_schema(from, list[i], NULL, &err);

		if (r == 0)
			fail_msg("accepted: %s", list[i]);
		assert_int_equal(r, err.code);
		assert_true(err.text[0] != '\0');
	}
}

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

static void text_that_the_language_has_is_accepted(void **state)
{
	(void)state;
	accepts_all(cedar_schema_from_text, text_ok, LEN(text_ok));
}

static void text_that_it_has_not_is_refused_with_a_reason(void **state)
{
	(void)state;
	refuses_all(cedar_schema_from_text, text_bad, LEN(text_bad));
}

static void json_that_the_language_has_is_accepted(void **state)
{
	(void)state;
	accepts_all(cedar_schema_from_json, json_ok, LEN(json_ok));
}

static void json_that_it_has_not_is_refused_with_a_reason(void **state)
{
	(void)state;
	refuses_all(cedar_schema_from_json, json_bad, LEN(json_bad));
}

static void a_mistake_is_shown_where_it_is(void **state)
{
	static const struct {
		const char *text;
		int code;
		uint32_t line, column;
	} cases[] = {
		{"entity A;\nentity B { x: Foo };", CEDAR_E_SCHEMA, 2, 15},
		{"entity A;\n\nentity A;", CEDAR_E_DUPLICATE, 3, 8},
		{"entity A {\n  \xc3\xa9: Long };", CEDAR_E_SYNTAX, 2, 3},
		{"entity \"\xc3\xa9\" ;", CEDAR_E_SYNTAX, 1, 8},
		{"type T = { a: T };", CEDAR_E_CYCLE, 1, 15},
		{"entity A {\n a: Long", CEDAR_E_SYNTAX, 2, 9},
		{"action a in b;", CEDAR_E_SCHEMA, 1, 13},
		{"@x @x entity A;", CEDAR_E_DUPLICATE, 1, 4},
	};
	struct cedar_error err;

	(void)state;
	for (size_t i = 0; i < LEN(cases); i++) {
		assert_int_equal(try_schema(cedar_schema_from_text, cases[i].text, NULL, &err),
			cases[i].code);
		assert_int_equal(err.line, cases[i].line);
		assert_int_equal(err.column, cases[i].column);
	}
}

static void a_mistake_in_json_is_shown_where_it_is(void **state)
{
	static const struct {
		const char *json;
		uint32_t line, column;
	} cases[] = {
		{"{\"\":{\"entityTypes\":{},\n \"actions\":{\"a\":1}}}", 2, 17},
		{"{\"\":{\n\"entityTypes\":{\"A\":{\"tags\":{\"type\":\"Nope\"}}},\"actions\":{}}}",
			2, 28},
		{"{\"\":{\"entityTypes\":{},\n", 2, 1},
	};
	struct cedar_error err;

	(void)state;
	for (size_t i = 0; i < LEN(cases); i++) {
		assert_true(try_schema(cedar_schema_from_json, cases[i].json, NULL, &err) < 0);
		assert_int_equal(err.line, cases[i].line);
		assert_int_equal(err.column, cases[i].column);
	}
}

static void what_is_not_closed_names_where_it_was_opened(void **state)
{
	struct cedar_error err;

	(void)state;
	assert_true(try_schema(cedar_schema_from_text, "entity A {\n a: Long\n", NULL, &err) < 0);
	assert_non_null(strstr(err.text, "close line 1"));
}

/* Text that grows. */
struct text {
	char *p;
	size_t n, room;
};

static void add(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void add(struct text *t, const char *fmt, ...)
{
	va_list ap;

	if (t->room - t->n < 512) {
		t->room = t->room * 2 + 4096;
		t->p = realloc(t->p, t->room);
		assert_non_null(t->p);
	}
	va_start(ap, fmt);
	t->n += (size_t)vsnprintf(t->p + t->n, t->room - t->n, fmt, ap);
	va_end(ap);
}

/* `open` n times, `middle`, `close` n times, between `before` and `after`. */
static char *nested(const char *before, const char *open, const char *middle, const char *close,
	const char *after, int n)
{
	struct text t = {0};

	add(&t, "%s", before);
	for (int i = 0; i < n; i++)
		add(&t, "%s", open);
	add(&t, "%s", middle);
	for (int i = 0; i < n; i++)
		add(&t, "%s", close);
	add(&t, "%s", after);
	return t.p;
}

static void nesting_ends_at_its_limit_by_name(void **state)
{
	struct cedar_limits limits = cedar_limits_default();
	struct cedar_error err;
	char *deep = nested("type T = ", "Set<", "Long", ">", ";", 100);

	(void)state;
	assert_int_equal(try_schema(cedar_schema_from_text, deep, NULL, &err), 0);
	limits.nesting = 99;
	assert_int_equal(try_schema(cedar_schema_from_text, deep, &limits, &err), CEDAR_E_LIMIT);
	assert_non_null(strstr(err.text, "nesting"));
	free(deep);
	deep = nested("type T = ", "{a:", "Long", "}", ";", 20000);
	assert_int_equal(try_schema(cedar_schema_from_text, deep, NULL, &err), CEDAR_E_LIMIT);
	free(deep);
	deep = nested("{\"\":{\"entityTypes\":{},\"actions\":{},\"commonTypes\":{\"T\":",
		"{\"type\":\"Set\",\"element\":", "{\"type\":\"Long\"}", "}", "}}}", 20000);
	assert_int_equal(try_schema(cedar_schema_from_json, deep, NULL, &err), CEDAR_E_LIMIT);
	free(deep);
}

/* Each type holds the one before twice: written out it would have 2^n parts. */
static char *doubling(int n)
{
	struct text t = {0};

	add(&t, "type T0 = Long;\n");
	for (int i = 1; i <= n; i++)
		add(&t, "type T%d = {a: T%d, b: T%d};\n", i, i - 1, i - 1);
	return t.p;
}

static char *hierarchy(int n)
{
	struct text t = {0};

	add(&t, "entity E0;\n");
	for (int i = 1; i < n; i++)
		add(&t, "entity E%d in [E%d, E%d];\n", i, i - 1, i / 2);
	return t.p;
}

static void common_types_that_share_cost_no_more_than_they_are_long(void **state)
{
	struct cedar_error err;
	char *text = doubling(200);

	(void)state;
	assert_int_equal(try_schema(cedar_schema_from_text, text, NULL, &err), 0);
	free(text);
}

static void a_chain_of_common_types_ends_at_the_depth_of_types(void **state)
{
	struct cedar_error err;
	char *text = doubling(5000);

	(void)state;
	assert_int_equal(try_schema(cedar_schema_from_text, text, NULL, &err), CEDAR_E_LIMIT);
	assert_non_null(strstr(err.text, "type_depth"));
	free(text);
}

static void a_schema_that_is_too_long_or_too_large_is_refused_by_name(void **state)
{
	struct cedar_limits limits = cedar_limits_default();
	struct cedar_error err;
	char *text = hierarchy(400);

	(void)state;
	limits.text_bytes = 100;
	assert_int_equal(try_schema(cedar_schema_from_text, text, &limits, &err), CEDAR_E_LIMIT);
	assert_non_null(strstr(err.text, "text_bytes"));
	assert_int_equal(try_schema(cedar_schema_from_json, text, &limits, &err), CEDAR_E_LIMIT);
	limits = cedar_limits_default();
	limits.memory_bytes = 20000;
	assert_int_equal(try_schema(cedar_schema_from_text, text, &limits, &err), CEDAR_E_LIMIT);
	assert_non_null(strstr(err.text, "memory_bytes"));
	free(text);
}

static void parts_of_a_schema_are_limited_by_name(void **state)
{
	struct text notes = {0}, names = {0};
	struct cedar_error err;

	(void)state;
	for (int i = 0; i < 257; i++)
		add(&notes, "@a%d ", i);
	add(&notes, "entity A;");
	assert_int_equal(try_schema(cedar_schema_from_text, notes.p, NULL, &err), CEDAR_E_LIMIT);
	assert_non_null(strstr(err.text, "annotations (256)"));
	add(&names, "entity A enum [\"a\"");
	for (int i = 0; i < 500000; i++)
		add(&names, ",\"a\"");
	add(&names, "];");
	assert_int_equal(try_schema(cedar_schema_from_text, names.p, NULL, &err), CEDAR_E_LIMIT);
	assert_non_null(strstr(err.text, "schema_items (500000)"));
	free(notes.p);
	free(names.p);
}

static void too_many_types_and_actions_are_refused_by_number(void **state)
{
	struct text types = {0}, actions = {0};
	struct cedar_error err;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		add(&types, "entity E%d;\n", i);
		add(&actions, "action a%d;\n", i);
	}
	assert_int_equal(try_schema(cedar_schema_from_text, types.p, NULL, &err), CEDAR_E_SCHEMA);
	assert_non_null(strstr(err.text, "16384"));
	assert_int_equal(try_schema(cedar_schema_from_text, actions.p, NULL, &err), CEDAR_E_SCHEMA);
	assert_non_null(strstr(err.text, "16384"));
	free(types.p);
	free(actions.p);
}

/* Each type is in all before it: the closure is where a naive one would stand still. */
static void a_deep_hierarchy_is_closed_in_reasonable_time(void **state)
{
	struct cedar_error err;
	char *text = hierarchy(16000);

	(void)state;
	assert_int_equal(try_schema(cedar_schema_from_text, text, NULL, &err), 0);
	free(text);
}

static void same_after(const char *text, const char *want_json)
{
	struct cedar_text json, back;
	cedar_schema *s, *again;

	assert_int_equal(cedar_schema_from_text(text, strlen(text), NULL, &s, NULL), 0);
	assert_int_equal(cedar_schema_to_json(s, &json, NULL), 0);
	assert_string_equal(json.data, want_json);
	assert_int_equal(cedar_schema_from_json(json.data, json.length, NULL, &again, NULL), 0);
	assert_int_equal(cedar_schema_to_text(again, &back, NULL), 0);
	cedar_schema_free(again);
	cedar_text_free(&json);
	assert_int_equal(cedar_schema_from_text(back.data, back.length, NULL, &again, NULL), 0);
	assert_int_equal(cedar_schema_to_json(again, &json, NULL), 0);
	assert_string_equal(json.data, want_json);
	cedar_text_free(&json);
	cedar_text_free(&back);
	cedar_schema_free(again);
	cedar_schema_free(s);
}

static void both_notations_say_the_same(void **state)
{
	(void)state;
	same_after("", "{}");
	same_after("@d(\"x\\n\") namespace N::M { @b entity A, B in [A] { \"a b\"?: Set<{x: A}>, "
		   "if1: Long } "
		   "tags String; entity E enum [\"q\\\"\", \"\"]; action \"do it\" in "
		   "[N::M::Action::\"g\"] "
		   "appliesTo { principal: A, resource: [A, B], context: T }; action g; "
		   "@z type T = {y: __cedar::decimal}; }",
		"{\"N::M\":{\"commonTypes\":{\"T\":{\"type\":\"Record\",\"attributes\":{\"y\":{"
		"\"type\":"
		"\"EntityOrCommon\",\"name\":\"__cedar::decimal\"}},\"annotations\":{\"z\":\"\"}}},"
		"\"entityTypes\":{\"A\":{\"memberOfTypes\":[\"A\"],\"shape\":{\"type\":\"Record\","
		"\"attributes\":{\"a "
		"b\":{\"type\":\"Set\",\"element\":{\"type\":\"Record\",\"attributes\":"
		"{\"x\":{\"type\":\"EntityOrCommon\",\"name\":\"A\"}}},\"required\":false},\"if1\":"
		"{\"type\":"
		"\"EntityOrCommon\",\"name\":\"Long\"}}},\"tags\":{\"type\":\"EntityOrCommon\","
		"\"name\":"
		"\"String\"},\"annotations\":{\"b\":\"\"}},\"B\":{\"memberOfTypes\":[\"A\"],"
		"\"shape\":{\"type\":"
		"\"Record\",\"attributes\":{\"a "
		"b\":{\"type\":\"Set\",\"element\":{\"type\":\"Record\","
		"\"attributes\":{\"x\":{\"type\":\"EntityOrCommon\",\"name\":\"A\"}}},\"required\":"
		"false},"
		"\"if1\":{\"type\":\"EntityOrCommon\",\"name\":\"Long\"}}},\"tags\":{\"type\":"
		"\"EntityOrCommon\","
		"\"name\":\"String\"},\"annotations\":{\"b\":\"\"}},\"E\":{\"enum\":[\"q\\\"\","
		"\"\"]}},\"actions\":"
		"{\"do "
		"it\":{\"appliesTo\":{\"resourceTypes\":[\"A\",\"B\"],\"principalTypes\":[\"A\"],"
		"\"context\":{\"type\":\"T\"}},\"memberOf\":[{\"id\":\"g\",\"type\":\"N::M::"
		"Action\"}]},\"g\":"
		"{\"appliesTo\":{\"resourceTypes\":[],\"principalTypes\":[]}}},\"annotations\":{"
		"\"d\":\"x\\n\"}}}");
}

/* What text cannot say is an error, not another schema. */
static void text_never_says_something_else_than_json(void **state)
{
	static const char *const only_json[] = {
		"{\"\":{\"entityTypes\":{\"A\":{\"shape\":{\"type\":\"T\"}}},\"actions\":{},"
		"\"commonTypes\":{\"T\":{\"type\":\"Record\",\"attributes\":{}}}}}",
		"{\"\":{\"entityTypes\":{\"A\":{},\"B\":{\"shape\":{\"type\":\"Record\","
		"\"attributes\":"
		"{\"a\":{\"type\":\"Entity\",\"name\":\"A\"}}}}},\"actions\":{},"
		"\"commonTypes\":{\"A\":{\"type\":\"Long\"}}}}",
		"{\"X\":{\"entityTypes\":{\"A\":{},\"B\":{\"tags\":{\"type\":\"Entity\",\"name\":"
		"\"X::A\"}}},"
		"\"actions\":{},\"commonTypes\":{\"A\":{\"type\":\"Long\"}}}}",
	};
	struct cedar_error err;
	struct cedar_text text;
	cedar_schema *s;

	(void)state;
	for (size_t i = 0; i < LEN(only_json); i++) {
		assert_int_equal(
			cedar_schema_from_json(only_json[i], strlen(only_json[i]), NULL, &s, &err),
			0);
		assert_int_equal(cedar_schema_to_text(s, &text, &err), CEDAR_E_SCHEMA);
		cedar_schema_free(s);
	}
}

/* A reference that must be an entity type is one, whatever common type has its name elsewhere. */
static void another_namespace_takes_no_name_away(void **state)
{
	static const char json[] =
		"{\"X\":{\"entityTypes\":{\"A\":{\"tags\":{\"type\":\"Entity\",\"name\":\"A\"}}},"
		"\"actions\":{}},\"Y\":{\"entityTypes\":{},\"actions\":{},"
		"\"commonTypes\":{\"A\":{\"type\":\"Long\"}}}}";
	struct cedar_text text;
	cedar_schema *s;

	(void)state;
	assert_int_equal(cedar_schema_from_json(json, strlen(json), NULL, &s, NULL), 0);
	assert_int_equal(cedar_schema_to_text(s, &text, NULL), 0);
	assert_non_null(strstr(text.data, "tags A;"));
	cedar_text_free(&text);
	cedar_schema_free(s);
}

/* The namespace without a name, when it declares nothing, leaves no trace in text. */
static void an_empty_namespace_without_a_name_has_no_text(void **state)
{
	static const char *const rows[][2] = {
		{"{\"\":{\"entityTypes\":{},\"actions\":{}}}", ""},
		{"{\"\":{\"entityTypes\":{},\"actions\":{}},\"A\":{\"entityTypes\":{},\"actions\":{"
		 "}}}",
			"namespace A {\n}\n"},
	};
	struct cedar_text text;
	cedar_schema *s;

	(void)state;
	for (size_t i = 0; i < LEN(rows); i++) {
		assert_int_equal(
			cedar_schema_from_json(rows[i][0], strlen(rows[i][0]), NULL, &s, NULL), 0);
		assert_int_equal(cedar_schema_to_text(s, &text, NULL), 0);
		assert_string_equal(text.data, rows[i][1]);
		cedar_text_free(&text);
		cedar_schema_free(s);
	}
}

static void failing_leaves_the_output_alone(void **state)
{
	cedar_schema *s = (cedar_schema *)state;

	assert_true(cedar_schema_from_text("entity", 6, NULL, &s, NULL) < 0);
	assert_ptr_equal(s, state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_that_the_language_has_is_accepted),
		cmocka_unit_test(text_that_it_has_not_is_refused_with_a_reason),
		cmocka_unit_test(json_that_the_language_has_is_accepted),
		cmocka_unit_test(json_that_it_has_not_is_refused_with_a_reason),
		cmocka_unit_test(a_mistake_is_shown_where_it_is),
		cmocka_unit_test(a_mistake_in_json_is_shown_where_it_is),
		cmocka_unit_test(what_is_not_closed_names_where_it_was_opened),
		cmocka_unit_test(nesting_ends_at_its_limit_by_name),
		cmocka_unit_test(common_types_that_share_cost_no_more_than_they_are_long),
		cmocka_unit_test(a_chain_of_common_types_ends_at_the_depth_of_types),
		cmocka_unit_test(a_schema_that_is_too_long_or_too_large_is_refused_by_name),
		cmocka_unit_test(parts_of_a_schema_are_limited_by_name),
		cmocka_unit_test(too_many_types_and_actions_are_refused_by_number),
		cmocka_unit_test(a_deep_hierarchy_is_closed_in_reasonable_time),
		cmocka_unit_test(both_notations_say_the_same),
		cmocka_unit_test(text_never_says_something_else_than_json),
		cmocka_unit_test(another_namespace_takes_no_name_away),
		cmocka_unit_test(an_empty_namespace_without_a_name_has_no_text),
		cmocka_unit_test(failing_leaves_the_output_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
