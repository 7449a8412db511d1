/* Cedar validation: what strict validation refuses and what it must let pass, capabilities, dead
 * code, levels, templates and links, data against a schema, and its bounds. Verdicts about policies
 * were taken from the official engine; levels, which it does not offer there, from RFC 76. */
#include "testing.h"

#include "cedar/cedar.h"

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

static const char schema_text[] =
	"type Addr = {street: String, zip?: Long};\n"
	"entity User in [Group, User] = {\n"
	"  age: Long, name: String, nick?: String, boss?: User, friend: User, admin: Bool,\n"
	"  addr: Addr, home?: Addr, langs: Set<String>, peers: Set<User>,\n"
	"  ip: ipaddr, rate: decimal, born: datetime, span: duration\n"
	"} tags String;\n"
	"entity Group;\n"
	"entity Doc in [Folder] = { owner: User, title?: String, open: Bool };\n"
	"entity Folder in [Folder] tags Set<Long>;\n"
	"entity Color enum [\"red\", \"blue\"];\n"
	"action read;\n"
	"action view in [read] appliesTo { principal: User, resource: [Doc, Folder], context: {n?: "
	"Long, u: User, r: Addr} };\n"
	"action edit appliesTo { principal: [User, Group], resource: Doc, context: {} };\n"
	"action paint appliesTo { principal: User, resource: Color };\n"
	"namespace NS { action run appliesTo { principal: User, resource: Doc }; }\n";

static cedar_schema *schema_of(const char *text)
{
	struct cedar_error err;
	cedar_schema *s;

	if (cedar_schema_from_text(text, strlen(text), NULL, &s, &err) < 0)
		fail_msg("%u:%u: %s", (unsigned)err.line, (unsigned)err.column, err.text);
	return s;
}

static cedar_report *report_with(
	const char *schema, const char *policies, const struct cedar_validation *options)
{
	cedar_schema *s = schema_of(schema);
	cedar_policies *p;
	cedar_report *report;
	struct cedar_error err;

	if (cedar_policies_from_text(policies, strlen(policies), NULL, &p, &err) < 0)
		fail_msg("%s: %s", policies, err.text);
	assert_int_equal(cedar_validate(s, p, options, &report, &err), 0);
	/* A report stands on its own. */
	cedar_policies_free(p);
	cedar_schema_free(s);
	return report;
}

static bool valid_with(
	const char *schema, const char *policies, const struct cedar_validation *options)
{
	cedar_report *report = report_with(schema, policies, options);
	bool valid = cedar_report_valid(report);

	cedar_report_free(report);
	return valid;
}

/* A condition of a policy about one action, which fixes the environment to a few. */
static bool condition_valid(const char *condition)
{
	char policy[2048];

	(void)snprintf(policy, sizeof(policy),
		"permit(principal is User, action == Action::\"view\", resource is Doc) when { %s "
		"};",
		condition);
	return valid_with(schema_text, policy, NULL);
}

static void expect_all(const char *const *conditions, size_t n, bool valid)
{
	for (size_t i = 0; i < n; i++)
		if (condition_valid(conditions[i]) != valid)
			fail_msg("%s: %s", valid ? "refused" : "accepted", conditions[i]);
}

static void conditions_of_the_right_types_are_valid(void **state)
{
	static const char *const list[] = {
		"principal.age > 18 && principal.langs.contains(\"c\")",
		"principal == resource",
		"principal in resource.owner",
		"principal in Group::\"g\"",
		"principal.peers.containsAny([principal, resource.owner])",
		"principal.ip.isInRange(ip(\"10.0.0.0/8\"))",
		"principal.rate.lessThan(decimal(\"1.5\"))",
		"principal.born.offset(principal.span) < datetime(\"2024-01-01\")",
		"principal.born.toTime().toHours() * 2 == -1",
		"principal.name like \"a*\"",
		"if principal.admin then resource.open else false",
		"(if principal.admin then principal else resource.owner).age == 1",
		"{a: principal.age}.a == 1",
		"{a: 1, b: \"x\"} == {b: \"y\", a: 2}",
		"[1, 2].contains(principal.age)",
		"context.u.friend.admin",
		"action == Action::\"view\"",
		"action in [Action::\"read\", Action::\"edit\"]",
		"Color::\"red\" == Color::\"blue\"",
		"1 == \"a\" || true",
		"(true && false) == 1 || true",
		"principal is User",
		"principal.langs.isEmpty()",
		"action has x || true",
	};

	(void)state;
	expect_all(list, LEN(list), true);
}

static void conditions_of_wrong_types_are_not(void **state)
{
	static const char *const list[] = {
		"1",
		"principal.age",
		"principal.age == \"a\"",
		"principal.age + principal.name == 1",
		"principal.age < principal.rate",
		"principal.name < \"a\"",
		"principal.name.contains(\"a\")",
		"principal.langs.contains(1)",
		"principal.langs.containsAll([1])",
		"principal.langs.containsAny(principal.peers)",
		"principal.nope == 1",
		"context.nope == 1",
		"principal.age.x == 1",
		"principal.age has x",
		"principal.age like \"a\"",
		"principal.name in principal",
		"principal in principal.name",
		"principal in principal.langs",
		"[] == principal.langs",
		"[1, \"a\"] == principal.langs",
		"[principal, resource].contains(principal)",
		"(if principal.admin then 1 else \"a\") == 1",
		"(if principal.admin then principal else resource) == principal",
		"{a: 1} == {a: 1, b: 2}",
		"principal.addr == {street: \"s\", zip: 1}",
		"!principal.age",
		"-principal.name == 1",
		"ip(principal.name).isIpv4()",
		"ip(\"1.2.3\").isIpv4()",
		"ip().isIpv4()",
		"decimal(\"1.23456\") == principal.rate",
		"datetime(\"2024-13-01\") == principal.born",
		"duration(\"1h1d\") == principal.span",
		"principal.ip.isInRange(\"10.0.0.1\")",
		"principal.ip.isIpv4(1)",
		"Nope::\"a\" == principal || true",
		"false && Nope::\"a\" == principal",
		"Action::\"nope\" == action || true",
		"Color::\"green\" == Color::\"red\" || true",
		"principal is Nope || true",
		"principal.langs < principal.langs",
		"principal is Doc in 1 || 1",
	};

	(void)state;
	expect_all(list, LEN(list), false);
}

static void what_has_found_may_be_read(void **state)
{
	static const char *const list[] = {
		"principal has nick && principal.nick == \"x\"",
		"principal has \"nick\" && principal[\"nick\"] == \"x\"",
		"principal has boss && principal.boss has nick && principal.boss.nick == \"x\"",
		"principal has boss.nick && principal.boss.nick == \"x\"",
		"principal has home.zip && principal.home.zip == 1",
		"(principal has nick || principal has nick) && principal.nick == \"x\"",
		"if principal has nick then principal.nick == \"x\" else false",
		"principal has nick && (principal.age == 1 || principal.nick == \"x\")",
		"principal.hasTag(\"t\") && principal.getTag(\"t\") == \"x\"",
		"principal.hasTag(principal.name) && principal.getTag(principal.name) == \"x\"",
		"context has n && context.n == 1",
		"{a: principal}.a has nick && {a: principal}.a.nick == \"x\"",
		"(principal.age > 1 && principal has nick) && principal.nick == \"x\"",
		"(false || principal has nick) && principal.nick == \"x\"",
		"(principal has nick || false) && principal.nick == \"x\"",
	};

	(void)state;
	expect_all(list, LEN(list), true);
}

static void what_has_did_not_find_for_sure_may_not(void **state)
{
	static const char *const list[] = {
		"principal.nick == \"x\"",
		"principal has nick || principal.nick == \"x\"",
		"(principal has nick || principal.admin) && principal.nick == \"x\"",
		"!(principal has nick) && principal.nick == \"x\"",
		"(principal has nick) == true && principal.nick == \"x\"",
		"principal has boss && principal.nick == \"x\"",
		"principal has nick && resource.owner.nick == \"x\"",
		"principal has boss && principal.boss.nick == \"x\"",
		"if principal has nick then true else principal.nick == \"x\"",
		"(if principal.admin then principal has nick else true) && principal.nick == \"x\"",
		"principal.nick == \"x\" && principal has nick",
		"(if principal has nick then true else false) && principal.nick == \"x\"",
		"principal.hasTag(\"t\") && principal.getTag(\"u\") == \"x\"",
		"principal.hasTag(\"nick\") && principal.nick == \"x\"",
		"principal has nick && principal.getTag(\"nick\") == \"x\"",
		"resource.hasTag(\"t\") || resource.getTag(\"t\") == \"x\"",
		"principal.home has zip && principal.home.zip == 1",
	};

	(void)state;
	expect_all(list, LEN(list), false);
}

static void dead_code_may_be_wrong(void **state)
{
	static const char *const list[] = {
		"false && 1",
		"true || 1",
		"if true then true else 1",
		"if false then principal.nope else true",
		"principal has nope && principal.nope == 1",
		"resource.owner is Doc && resource.owner.title == \"x\"",
		"principal == Folder::\"f\" && 1",
		"principal in Doc::\"d\" && 1",
		"action == Action::\"edit\" && context.nope",
		"action in [Action::\"edit\"] && 1",
		"resource.hasTag(\"x\") && 1",
		"!(action == Action::\"view\") && 1",
	};

	(void)state;
	expect_all(list, LEN(list), true);
}

static void later_clauses_know_what_earlier_ones_found(void **state)
{
	(void)state;
	assert_true(valid_with(schema_text,
		"permit(principal is User, action == Action::\"view\", resource) "
		"when { principal has nick } when { principal.nick == \"x\" };",
		NULL));
	assert_false(valid_with(schema_text,
		"permit(principal is User, action == Action::\"view\", resource) "
		"unless { principal has nick } when { principal.nick == \"x\" };",
		NULL));
	assert_false(valid_with(schema_text,
		"permit(principal is User, action == Action::\"view\", resource) "
		"when { principal.nick == \"x\" } when { principal has nick };",
		NULL));
}

static void every_environment_counts(void **state)
{
	(void)state;
	/* A folder has no owner. */
	assert_false(valid_with(schema_text,
		"permit(principal, action == Action::\"view\", resource) when { resource.owner == "
		"principal };",
		NULL));
	assert_true(valid_with(schema_text,
		"permit(principal, action == Action::\"view\", resource) "
		"when { resource is Doc && resource.owner == principal };",
		NULL));
	/* Groups may edit, and have no age. */
	assert_false(valid_with(schema_text,
		"permit(principal, action, resource is Doc) when { principal.age == 1 };", NULL));
	assert_true(valid_with(schema_text,
		"permit(principal in User::\"u\", action, resource is Doc) when { principal.age == "
		"1 };",
		NULL));
}

static void scopes_name_what_the_schema_has(void **state)
{
	static const struct {
		const char *policy;
		bool valid;
	} cases[] = {
		{"permit(principal == Nope::\"a\", action, resource);", false},
		{"permit(principal is Nope, action, resource);", false},
		{"permit(principal, action == Action::\"nope\", resource);", false},
		{"permit(principal, action in [Action::\"view\", Action::\"nope\"], resource);",
			false},
		{"permit(principal, action, resource == Color::\"green\");", false},
		{"permit(principal, action, resource == Color::\"red\");", true},
		{"permit(principal, action in [], resource);", false},
		{"permit(principal is Folder, action in [], resource);", true},
		{"permit(principal, action in [Action::\"view\", NS::Action::\"run\"], resource);",
			false},
		{"permit(principal in Folder::\"f\", action, resource);", true},
		{"permit(principal is User in Group::\"g\", action, resource is Doc in "
		 "Folder::\"f\");",
			true},
		{"permit(principal == Action::\"view\", action, resource);", true},
	};

	(void)state;
	for (size_t i = 0; i < LEN(cases); i++)
		if (valid_with(schema_text, cases[i].policy, NULL) != cases[i].valid)
			fail_msg("%s", cases[i].policy);
}

static bool has_warning(const cedar_report *report, const char *text)
{
	for (size_t i = 0; i < cedar_report_count(report); i++) {
		struct cedar_error finding;
		bool warning;

		cedar_report_at(report, i, &warning, NULL, &finding);
		if (warning && strstr(finding.text, text))
			return true;
	}
	return false;
}

static void a_policy_about_no_action_is_warned_of_or_refused(void **state)
{
	static const char policy[] = "permit(principal is Folder, action, resource);";
	struct cedar_validation old = {.inapplicable_is_error = true};
	cedar_report *report = report_with(schema_text, policy, NULL);

	(void)state;
	assert_true(cedar_report_valid(report));
	assert_true(has_warning(report, "no action"));
	assert_true(has_warning(report, "never apply"));
	cedar_report_free(report);
	assert_false(valid_with(schema_text, policy, &old));
}

static void a_policy_that_can_never_apply_is_warned_of(void **state)
{
	cedar_report *report = report_with(
		schema_text, "forbid(principal, action, resource) when { false };", NULL);

	(void)state;
	assert_true(cedar_report_valid(report));
	assert_true(has_warning(report, "never apply"));
	assert_false(has_warning(report, "no action"));
	cedar_report_free(report);
}

/* After a mistake a later condition that is False says nothing of the whole. */
static void a_wrong_policy_is_not_said_never_to_apply(void **state)
{
	static const struct {
		const char *conditions;
		bool never;
	} rows[] = {
		{"when { 1 } when { false }", false},
		{"when { principal.nope } when { false }", false},
		{"when { false } when { 1 }", true},
		{"unless { 1 } when { false }", true},
		{"when { [1, \"a\"].contains(1) } when { false }", true},
		{"when { context.n } when { principal is Doc in Doc::\"a\" }", false},
	};

	(void)state;
	for (size_t i = 0; i < LEN(rows); i++) {
		char policy[256];
		cedar_report *report;

		(void)snprintf(policy, sizeof(policy),
			"permit(principal is User, action, resource) %s;", rows[i].conditions);
		report = report_with(schema_text, policy, NULL);
		if (has_warning(report, "never apply") != rows[i].never)
			fail_msg("%s", policy);
		cedar_report_free(report);
	}
}

/* A Cyrillic a, an override of direction, a full-width a. Verdicts as the official engine's. */
#define CYR_A "\xd0\xb0"
#define RLO "\xe2\x80\xae"
#define FULL_A "\xef\xbd\x81"

static void characters_that_deceive_are_warned_of(void **state)
{
	static const struct {
		const char *condition, *warning; /* NULL: none */
	} rows[] = {
		{"\"p" CYR_A "ypal\" == \"\"", "the string `p" CYR_A "ypal` mixes scripts"},
		{"false && \"p" CYR_A "y\" == \"\"", "mixes scripts"},
		{"\"" CYR_A "\" == \"a\"", NULL},
		{"\"" RLO "abc\" == \"\"",
			"the string `\\u{202e}abc` contains characters that turn"},
		{"\"" FULL_A "\" == \"\"", NULL},
		{"\"\xf0\x9f\x98\x80 ok\" == \"\"", NULL},
		{"principal has \"p" CYR_A "ypal\"", "the name `p" CYR_A "ypal` mixes scripts"},
		{"principal has \"" FULL_A "\"", "contains U+FF41, which no name should contain"},
		{"principal has \"a\\nb\"", "contains U+000A"},
		{"principal has \"a b~\"", NULL},
		{"principal has \"\xc3\xa9t\xc3\xa9\"", NULL},
		{"principal has \"" RLO "\"", "turn the direction"},
		{"{\"" FULL_A "\": 1} has x", "U+FF41"},
		{"principal == User::\"p" CYR_A "y\"", "the name `p" CYR_A "y` mixes"},
		{"principal.hasTag(\"p" CYR_A "y\")", "the string `p" CYR_A "y` mixes"},
		{"\"x\" like \"p*" CYR_A "\"", "the pattern mixes scripts"},
		/* Japanese is written in three scripts, and not with Hangul. */
		{"\"\xe6\x97\xa5\xe3\x82\xab\xe3\x81\xaa\" == \"\"", NULL},
		{"\"\xe3\x82\xab\xed\x95\x9c\" == \"\"", "mixes scripts"},
		{"\"\xf4\x8f\xbf\xbf\" == \"\"", "mixes scripts"}, /* of no script: U+10FFFF */
		{"\"\" == \"\"", NULL},
	};

	(void)state;
	for (size_t i = 0; i < LEN(rows); i++) {
		char policy[256];
		cedar_report *report;
		bool warned;

		(void)snprintf(policy, sizeof(policy),
			"permit(principal is User, action, resource) when { principal.admin || "
			"(%s) };",
			rows[i].condition);
		report = report_with(schema_text, policy, NULL);
		warned = has_warning(report, rows[i].warning ? rows[i].warning : "the ");
		if (warned != (rows[i].warning != NULL))
			fail_msg("%s", policy);
		cedar_report_free(report);
	}
}

static void a_scope_is_looked_at_for_characters_too(void **state)
{
	cedar_report *report = report_with(schema_text,
		"@note(\"p" CYR_A "y\") permit(principal == User::\"p" CYR_A
		"y\", action, resource);",
		NULL);

	(void)state;
	assert_true(cedar_report_valid(report));
	assert_true(has_warning(report, "the name `p" CYR_A "y` mixes scripts"));
	assert_int_equal(cedar_report_count(report), 1); /* annotations may say what they like */
	cedar_report_free(report);
}

static void findings_name_policy_and_place_once(void **state)
{
	cedar_report *report = report_with(schema_text,
		"permit(principal, action, resource);\n"
		"permit(principal, action, resource)\n  when { 1 + \"a\" == 2 };",
		NULL);
	struct cedar_error finding;
	const char *id;
	bool warning;

	(void)state;
	assert_int_equal(cedar_report_count(report), 1);
	cedar_report_at(report, 0, &warning, &id, &finding);
	assert_false(warning);
	assert_string_equal(id, "policy1");
	assert_int_equal(finding.code, CEDAR_E_INVALID);
	assert_int_equal(finding.line, 3);
	assert_int_equal(finding.column, 14);
	assert_string_equal(finding.text, "this must be Long, but it is String");
	cedar_report_free(report);
}

/* ---- levels ---- */

static bool valid_at(const char *policy, unsigned level)
{
	struct cedar_validation options = {.level_plus_one = level + 1};

	return valid_with(schema_text, policy, &options);
}

static void policies_need_the_level_of_their_look_ups(void **state)
{
	static const struct {
		const char *condition;
		unsigned level; /* the least at which it is valid */
	} cases[] = {
		{"true", 0},
		{"context.r.street == \"a\"", 0},
		{"context.u == principal", 0},
		{"principal.age == 1", 1},
		{"principal has nick", 1},
		{"principal.hasTag(\"a\")", 1},
		{"principal in Group::\"g\"", 1},
		{"principal is User in Group::\"g\"", 1},
		{"context.u.age == 1", 1},
		{"principal.friend.age == 1", 2},
		{"principal.friend.friend.age == 1", 3},
		{"principal.friend in Group::\"g\"", 2},
		{"principal.addr.street == \"a\"", 1},
		{"{a: principal.friend, b: principal}.b.age == 1", 1},
		{"{a: principal.friend.friend, b: principal}.a.age == 1", 3},
		{"{a: principal.friend.friend.age, b: principal}.b.age == 1", 3},
		{"(if principal.admin then principal.friend else principal).age == 1", 2},
		{"principal has boss && principal.boss.age == 1", 2},
		{"principal has boss.nick", 2},
		{"principal has boss.boss.nick", 3},
		{"{a: {b: principal}} has a.b.nick", 1},
		{"principal in principal.friend.peers", 2},
		{"false && principal.friend.friend.age == 1", 0},
	};
	char policy[512];

	(void)state;
	for (size_t i = 0; i < LEN(cases); i++) {
		(void)snprintf(policy, sizeof(policy),
			"permit(principal is User, action == Action::\"view\", resource) when { %s "
			"};",
			cases[i].condition);
		for (unsigned level = 0; level < 5; level++)
			if (valid_at(policy, level) != (level >= cases[i].level))
				fail_msg("%s at level %u", cases[i].condition, level);
	}
}

static void a_literal_may_not_be_looked_into_at_any_level(void **state)
{
	(void)state;
	assert_false(
		valid_at("permit(principal, action, resource) when { User::\"a\".age == 1 };", 9));
	assert_false(valid_at(
		"permit(principal, action, resource) when { User::\"a\" in Group::\"g\" };", 9));
	assert_true(valid_at("permit(principal, action, resource) "
			     "when { principal == User::\"a\" };",
		0));
}

static void a_scope_with_in_needs_a_look_up(void **state)
{
	(void)state;
	assert_false(valid_at("permit(principal in Group::\"g\", action, resource);", 0));
	assert_false(valid_at("permit(principal, action in Action::\"read\", resource);", 0));
	assert_true(valid_at(
		"permit(principal in Group::\"g\", action in Action::\"read\", resource);", 1));
	assert_true(valid_at(
		"permit(principal == User::\"u\", action == Action::\"view\", resource is Doc);",
		0));
}

/* ---- templates ---- */

static cedar_report *template_report(const char *template_, const char *principal)
{
	cedar_schema *s = schema_of(schema_text);
	cedar_builder *b = cedar_builder_new(NULL);
	cedar_policies *p;
	cedar_report *report;
	struct cedar_error err;

	assert_int_equal(
		cedar_builder_add_policy_text(b, "t", template_, strlen(template_), &err), 0);
	if (principal && cedar_builder_link(b, "t", "link", principal, NULL, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(cedar_builder_finish(b, &p, &err), 0);
	assert_int_equal(cedar_validate(s, p, NULL, &report, &err), 0);
	cedar_policies_free(p);
	cedar_schema_free(s);
	return report;
}

static void templates_are_checked_for_all_that_their_slots_can_be(void **state)
{
	static const struct {
		const char *policy, *link;
		bool valid;
	} cases[] = {
		{"permit(principal == ?principal, action, resource is Doc);", NULL, true},
		{"permit(principal in ?principal, action, resource is Doc);", "Group::\"g\"", true},
		{"permit(principal == ?principal, action == Action::\"view\", resource) "
		 "when { principal.age == 1 };",
			"User::\"u\"", true},
		{"permit(principal in ?principal, action, resource is Doc) when { principal.age == "
		 "1 };",
			NULL, false},
		{"permit(principal is User in ?principal, action, resource is Doc) "
		 "when { principal.age == 1 };",
			NULL, true},
		{"permit(principal == ?principal, action, resource) when { 1 };", NULL, false},
		{"permit(principal == ?principal, action, resource);", "Nope::\"n\"", false},
	};

	(void)state;
	for (size_t i = 0; i < LEN(cases); i++) {
		cedar_report *report = template_report(cases[i].policy, cases[i].link);

		if (cedar_report_valid(report) != cases[i].valid)
			fail_msg("%s", cases[i].policy);
		cedar_report_free(report);
	}
}

static void a_link_to_what_no_action_takes_is_warned_of(void **state)
{
	cedar_report *report = template_report(
		"permit(principal == ?principal, action, resource);", "Folder::\"f\"");
	const char *id;
	bool warning;

	(void)state;
	assert_true(cedar_report_valid(report));
	assert_int_equal(cedar_report_count(report), 1);
	cedar_report_at(report, 0, &warning, &id, NULL);
	assert_true(warning);
	assert_string_equal(id, "link");
	cedar_report_free(report);
}

/* ---- data ---- */

static int entities_of(const char *json, struct cedar_error *err)
{
	cedar_schema *s = schema_of(schema_text);
	cedar_entities *e = NULL;
	int r = cedar_schema_entities_from_json(s, json, strlen(json), NULL, &e, err);

	assert_true((r == 0) == (e != NULL));
	cedar_entities_free(e);
	cedar_schema_free(s);
	return r;
}

#define DOC(attrs, parents)                                                                        \
	"[{\"uid\":{\"type\":\"Doc\",\"id\":\"d\"},\"attrs\":{" attrs "},\"parents\":[" parents    \
	"]}]"
#define OWNER "\"owner\":{\"type\":\"User\",\"id\":\"u\"},\"open\":true"

static void entities_that_conform_are_read(void **state)
{
	static const char *const list[] = {
		"[]",
		DOC(OWNER, ""),
		DOC(OWNER ",\"title\":\"t\"", "{\"type\":\"Folder\",\"id\":\"f\"}"),
		DOC("\"owner\":{\"__entity\":{\"type\":\"User\",\"id\":\"u\"}},\"open\":true", ""),
		"[{\"uid\":{\"type\":\"Folder\",\"id\":\"f\"},\"attrs\":{},\"parents\":"
		"[{\"type\":\"Folder\",\"id\":\"g\"}],\"tags\":{\"x\":[1,2],\"y\":[]}}]",
		"[{\"uid\":{\"type\":\"Color\",\"id\":\"red\"},\"attrs\":{},\"parents\":[]}]",
		"[{\"uid\":{\"type\":\"Action\",\"id\":\"view\"},\"attrs\":{},\"parents\":"
		"[{\"type\":\"Action\",\"id\":\"read\"}]}]",
		"[{\"uid\":{\"type\":\"Action\",\"id\":\"edit\"},\"attrs\":{},\"parents\":[]}]",
	};
	struct cedar_error err;

	(void)state;
	for (size_t i = 0; i < LEN(list); i++)
		if (entities_of(list[i], &err) < 0)
			fail_msg("%s: %s", list[i], err.text);
}

static void entities_that_do_not_are_refused(void **state)
{
	static const char *const list[] = {
		DOC("", ""),
		DOC("\"owner\":{\"type\":\"User\",\"id\":\"u\"}", ""),
		DOC(OWNER ",\"nope\":1", ""),
		DOC(OWNER ",\"title\":1", ""),
		DOC("\"owner\":{\"type\":\"Group\",\"id\":\"u\"},\"open\":true", ""),
		DOC("\"owner\":\"User::u\",\"open\":true", ""),
		DOC(OWNER, "{\"type\":\"Group\",\"id\":\"f\"}"),
		"[{\"uid\":{\"type\":\"Doc\",\"id\":\"d\"},\"attrs\":{" OWNER "},\"parents\":[],"
		"\"tags\":{\"a\":\"b\"}}]",
		"[{\"uid\":{\"type\":\"Folder\",\"id\":\"f\"},\"attrs\":{},\"parents\":[],"
		"\"tags\":{\"a\":[\"b\"]}}]",
		"[{\"uid\":{\"type\":\"Nope\",\"id\":\"f\"},\"attrs\":{},\"parents\":[]}]",
		"[{\"uid\":{\"type\":\"Color\",\"id\":\"green\"},\"attrs\":{},\"parents\":[]}]",
		"[{\"uid\":{\"type\":\"Action\",\"id\":\"view\"},\"attrs\":{},\"parents\":[]}]",
		"[{\"uid\":{\"type\":\"Action\",\"id\":\"nope\"},\"attrs\":{},\"parents\":[]}]",
		"[{\"uid\":{\"type\":\"Action\",\"id\":\"edit\"},\"attrs\":{\"a\":1},\"parents\":[]"
		"}]",
		"[{\"uid\":{\"type\":\"Action\",\"id\":\"edit\"},\"attrs\":{},\"parents\":"
		"[{\"type\":\"Action\",\"id\":\"read\"}]}]",
	};
	struct cedar_error err;

	(void)state;
	for (size_t i = 0; i < LEN(list); i++) {
		int r = entities_of(list[i], &err);

		if (r == 0)
			fail_msg("accepted: %s", list[i]);
		assert_int_equal(r, err.code);
		assert_true(err.text[0] != '\0');
	}
}

static void the_schema_brings_its_actions_with_it(void **state)
{
	static const char policy[] = "permit(principal, action in Action::\"read\", resource);";
	static const char request[] = "{\"principal\":\"User::\\\"u\\\"\",\"action\":\"Action::"
				      "\\\"view\\\"\",\"resource\":"
				      "\"Doc::\\\"d\\\"\",\"context\":{\"u\":{\"type\":\"User\","
				      "\"id\":\"v\"},\"r\":{\"street\":\"s\"}}}";
	cedar_schema *s = schema_of(schema_text);
	cedar_answer *answer = cedar_answer_new(NULL);
	cedar_policies *p;
	cedar_entities *e;
	cedar_request *q;

	(void)state;
	assert_int_equal(cedar_policies_from_text(policy, strlen(policy), NULL, &p, NULL), 0);
	assert_int_equal(cedar_schema_entities_from_json(s, "[]", 2, NULL, &e, NULL), 0);
	assert_int_equal(
		cedar_schema_request_from_json(s, request, strlen(request), NULL, &q, NULL), 0);
	assert_int_equal(cedar_schema_check_request(s, q, NULL), 0);
	assert_int_equal(cedar_schema_check_entities(s, e, NULL), 0);
	assert_int_equal(cedar_decide(p, e, q, NULL, answer), 0);
	assert_int_equal(cedar_answer_decision(answer), CEDAR_ALLOW);
	cedar_request_free(q);
	cedar_entities_free(e);
	cedar_policies_free(p);
	cedar_answer_free(answer);
	cedar_schema_free(s);
}

static int request_of(
	const char *p, const char *a, const char *r, const char *context, struct cedar_error *err)
{
	cedar_schema *s = schema_of(schema_text);
	cedar_request *q = NULL;
	char json[1024];
	int code, n;

	n = snprintf(json, sizeof(json),
		"{\"principal\":{\"type\":\"%s\",\"id\":\"x\"},\"action\":{\"type\":\"Action\","
		"\"id\":\"%s\"},"
		"\"resource\":{\"type\":\"%s\",\"id\":\"red\"},\"context\":%s}",
		p, a, r, context);
	code = cedar_schema_request_from_json(s, json, (size_t)n, NULL, &q, err);
	assert_true((code == 0) == (q != NULL));
	cedar_request_free(q);
	cedar_schema_free(s);
	return code;
}

static void requests_are_those_that_the_action_takes(void **state)
{
	static const char good[] =
		"{\"u\":{\"type\":\"User\",\"id\":\"v\"},\"r\":{\"street\":\"s\"}}";
	static const struct {
		const char *p, *a, *r, *context;
		bool valid;
	} cases[] = {
		{"User", "view", "Doc", good, true},
		{"User", "edit", "Doc", "{}", true},
		{"User", "paint", "Color", "{}", true},
		{"Group", "view", "Doc", good, false},
		{"User", "view", "Group", good, false},
		{"Nope", "view", "Doc", good, false},
		{"User", "nope", "Doc", good, false},
		{"User", "read", "Doc", "{}", false},
		{"User", "view", "Doc", "{}", false},
		{"User", "edit", "Doc", "{\"x\":1}", false},
		{"User", "edit", "Doc", "[]", false},
		{"User", "view", "Doc",
			"{\"n\":\"1\",\"u\":{\"type\":\"User\",\"id\":\"v\"},\"r\":{\"street\":"
			"\"s\"}}",
			false},
		{"User", "view", "Doc", "{\"u\":{\"type\":\"User\",\"id\":\"v\"},\"r\":{}}", false},
		{"User", "view", "Doc",
			"{\"u\":{\"type\":\"Doc\",\"id\":\"v\"},\"r\":{\"street\":\"s\"}}", false},
	};
	struct cedar_error err;

	(void)state;
	for (size_t i = 0; i < LEN(cases); i++)
		if ((request_of(cases[i].p, cases[i].a, cases[i].r, cases[i].context, &err) == 0) !=
			cases[i].valid)
			fail_msg("%s %s %s %s", cases[i].p, cases[i].a, cases[i].r,
				cases[i].context);
}

/* ---- bounds ---- */

/* A check that would take forever ends at a named number of steps, and the policy is not valid. */
static void a_request_that_does_not_fit_is_shown_where(void **state)
{
	static const char json[] =
		"{\"principal\":{\"type\":\"User\",\"id\":\"u\"},\n"
		"\"action\":{\"type\":\"Action\",\"id\":\"edit\"},\"resource\":{\"type\":\"Doc\","
		"\"id\":\"d\"},\n \"context\":{\"n\":1}}";
	cedar_schema *s = schema_of(schema_text);
	cedar_request *q;
	struct cedar_error err;

	(void)state;
	assert_int_equal(cedar_schema_request_from_json(s, json, strlen(json), NULL, &q, &err),
		CEDAR_E_INVALID);
	assert_int_equal(err.line, 3);
	assert_int_equal(err.column, 13);
	cedar_schema_free(s);
}

static void checking_ends_after_a_number_of_steps(void **state)
{
	enum { TYPES = 300 };
	size_t room = TYPES * 64 + 4096, n = 0;
	char *schema = malloc(room);
	cedar_report *report;
	struct cedar_error finding;

	(void)state;
	for (int i = 0; i < TYPES; i++)
		n += (size_t)snprintf(schema + n, room - n, "entity E%d { a: Long };\n", i);
	n += (size_t)snprintf(schema + n, room - n, "action x appliesTo { principal: [E0");
	for (int i = 1; i < TYPES; i++)
		n += (size_t)snprintf(schema + n, room - n, ",E%d", i);
	n += (size_t)snprintf(schema + n, room - n, "], resource: [E0");
	for (int i = 1; i < TYPES; i++)
		n += (size_t)snprintf(schema + n, room - n, ",E%d", i);
	(void)snprintf(schema + n, room - n, "] };\n");

	size_t policy_room = 100000;
	char *policy = malloc(policy_room);

	n = (size_t)snprintf(
		policy, policy_room, "permit(principal, action, resource) when { true");
	for (int i = 0; i < 300; i++)
		n += (size_t)snprintf(policy + n, policy_room - n, " && principal.a == resource.a");
	(void)snprintf(policy + n, policy_room - n, " };");
	report = report_with(schema, policy, NULL);
	assert_false(cedar_report_valid(report));
	cedar_report_at(report, cedar_report_count(report) - 1, NULL, NULL, &finding);
	assert_non_null(strstr(finding.text, "steps"));
	cedar_report_free(report);
	free(policy);
	free(schema);
}

static void a_report_has_no_more_than_its_number_of_findings(void **state)
{
	size_t room = 200000, n = 0;
	char *policies = malloc(room);
	cedar_report *report;

	(void)state;
	for (int i = 0; i < 1500; i++)
		n += (size_t)snprintf(policies + n, room - n,
			"permit(principal, action, resource) when { %d };\n", i);
	report = report_with(schema_text, policies, NULL);
	assert_false(cedar_report_valid(report));
	assert_int_equal(cedar_report_count(report), 1000);
	cedar_report_free(report);
	free(policies);
}

static void expressions_as_high_as_the_parser_allows_are_checked(void **state)
{
	size_t room = 100000, n;
	char *policy = malloc(room);

	(void)state;
	n = (size_t)snprintf(policy, room,
		"permit(principal is User, action == Action::\"view\", resource is Doc) when { "
		"principal.admin");
	for (int i = 0; i < 900; i++)
		n += (size_t)snprintf(policy + n, room - n, " && principal.admin");
	(void)snprintf(policy + n, room - n, " };");
	assert_true(valid_with(schema_text, policy, NULL));
	assert_true(valid_at(policy, 1));
	free(policy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(conditions_of_the_right_types_are_valid),
		cmocka_unit_test(conditions_of_wrong_types_are_not),
		cmocka_unit_test(what_has_found_may_be_read),
		cmocka_unit_test(what_has_did_not_find_for_sure_may_not),
		cmocka_unit_test(dead_code_may_be_wrong),
		cmocka_unit_test(later_clauses_know_what_earlier_ones_found),
		cmocka_unit_test(every_environment_counts),
		cmocka_unit_test(scopes_name_what_the_schema_has),
		cmocka_unit_test(a_policy_about_no_action_is_warned_of_or_refused),
		cmocka_unit_test(a_policy_that_can_never_apply_is_warned_of),
		cmocka_unit_test(a_wrong_policy_is_not_said_never_to_apply),
		cmocka_unit_test(characters_that_deceive_are_warned_of),
		cmocka_unit_test(a_scope_is_looked_at_for_characters_too),
		cmocka_unit_test(findings_name_policy_and_place_once),
		cmocka_unit_test(policies_need_the_level_of_their_look_ups),
		cmocka_unit_test(a_literal_may_not_be_looked_into_at_any_level),
		cmocka_unit_test(a_scope_with_in_needs_a_look_up),
		cmocka_unit_test(templates_are_checked_for_all_that_their_slots_can_be),
		cmocka_unit_test(a_link_to_what_no_action_takes_is_warned_of),
		cmocka_unit_test(entities_that_conform_are_read),
		cmocka_unit_test(entities_that_do_not_are_refused),
		cmocka_unit_test(the_schema_brings_its_actions_with_it),
		cmocka_unit_test(requests_are_those_that_the_action_takes),
		cmocka_unit_test(a_request_that_does_not_fit_is_shown_where),
		cmocka_unit_test(checking_ends_after_a_number_of_steps),
		cmocka_unit_test(a_report_has_no_more_than_its_number_of_findings),
		cmocka_unit_test(expressions_as_high_as_the_parser_allows_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
