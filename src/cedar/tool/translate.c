/* check-parse, translate-policy, translate-schema, validate: reading and writing again. */
#include "tool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int print_text(int code, struct cedar_text *text, const struct cedar_error *err)
{
	if (code < 0) {
		tell("error", NULL, err);
		return EXIT_FAILED;
	}
	(void)fwrite(text->data, 1, text->length, stdout);
	if (text->length && text->data[text->length - 1] != '\n')
		putchar('\n');
	cedar_text_free(text);
	return EXIT_DONE;
}

int run_check_parse(const struct options *o)
{
	struct question q = {.policies = NULL};
	bool ok = true;
	if (o->policies || !o->schema)
		ok = load_policies(o, &q);
	if (ok && o->schema)
		ok = load_schema(o, &q);
	question_done(&q);
	return ok ? EXIT_DONE : EXIT_FAILED;
}

/* Which of two directions; -1: neither, told. */
static int direction(const struct options *o, const char *forth, const char *back)
{
	if (o->direction && strcmp(o->direction, forth) == 0)
		return 0;
	if (o->direction && strcmp(o->direction, back) == 0)
		return 1;
	tell_plain("--direction is %s or %s", forth, back);
	return -1;
}

int run_translate_policy(const struct options *o)
{
	int way = direction(o, "cedar-to-json", "json-to-cedar");
	struct options as = *o;
	struct question q = {.policies = NULL};
	struct cedar_text text;
	struct cedar_error err;
	int status = EXIT_FAILED;
	as.policy_format = way == 1 ? "json" : "cedar";
	if (way >= 0 && load_policies(&as, &q)) {
		int code = way == 0 ? cedar_policies_to_json(q.policies, &text, &err)
				    : cedar_policies_to_text(q.policies, &text, &err);
		status = print_text(code, &text, &err);
	}
	question_done(&q);
	return status;
}

int run_translate_schema(const struct options *o)
{
	int way = direction(o, "cedar-to-json", "json-to-cedar");
	struct options as = *o;
	struct question q = {.policies = NULL};
	struct cedar_text text;
	struct cedar_error err;
	int status = EXIT_FAILED;
	as.schema_format = way == 1 ? "json" : "cedar";
	if (way >= 0 && load_schema(&as, &q)) {
		int code = way == 0 ? cedar_schema_to_json(q.schema, &text, &err)
				    : cedar_schema_to_text(q.schema, &text, &err);
		status = print_text(code, &text, &err);
	}
	question_done(&q);
	return status;
}

static int tell_report(
	const struct options *o, const struct question *q, const cedar_report *report)
{
	bool bad = !cedar_report_valid(report);
	for (size_t i = 0; i < cedar_report_count(report); i++) {
		struct cedar_error finding;
		const char *id;
		bool warning;
		cedar_report_at(report, i, &warning, &id, &finding);
		fprintf(stderr, "policy `%s`:\n", id);
		tell(warning ? "warning" : "error", &q->policies_file, &finding);
		bad |= warning && o->deny_warnings;
	}
	if (!bad)
		printf("policy set validation passed\n");
	return bad ? EXIT_INVALID : EXIT_DONE;
}

/* A level of at most three digits; -1: it is none, told. */
static int level_of(const char *text)
{
	char *end;
	long level = strtol(text, &end, 10);
	if (*text && !*end && level >= 0 && level < 1000)
		return (int)level;
	tell_plain("--level is a number from 0 to 999");
	return -1;
}

int run_validate(const struct options *o)
{
	struct question q = {.policies = NULL};
	struct cedar_validation how = {0};
	struct cedar_error err;
	cedar_report *report = NULL;
	int status = EXIT_FAILED, level = o->level ? level_of(o->level) : 0;
	how.level_plus_one = o->level ? (unsigned)level + 1 : 0;
	if (!o->schema)
		tell_plain("validate needs --schema");
	else if (level >= 0 && load_schema(o, &q) && load_policies(o, &q)) {
		if (cedar_validate(q.schema, q.policies, &how, &report, &err) < 0)
			tell("error", NULL, &err);
		else
			status = tell_report(o, &q, report);
	}
	cedar_report_free(report);
	question_done(&q);
	return status;
}
