/*
 * batch: one JSON object a line in, one a line out, so that any test suite can drive the library.
 *
 *   in   {"policies": text | set, "schema"?: text | object, "entities": [..],
 *         "requests": [{"principal", "action", "resource", "context"}], "validate"?: true,
 *         "translate"?: true}
 *   out  {"results": [{"decision", "reason", "errors"}],
 *         "validation"?: {"errors": [id..], "warnings": [id..]},
 *         "translation"?: {"policies": set, "policiesText"?: text, "schema"?: object,
 *         "schemaText"?: text}}
 *        or {"error": text}
 *
 * A text is left out of the translation where the language has none: for links, and for names of a
 * schema that only JSON can tell apart.
 */
#include <stdlib.h>
#include <string.h>

#include "cedar/json.h"
#include "cedar/out.h"
#include "tool.h"

enum { LINE_DEPTH = 300, LINE_MAX_BYTES = 64 << 20 };

struct batch {
	const char *line;
	struct ced_arena arena; /* of the line's tree */
	struct cedar_error err;
	struct ced_out out;
	cedar_schema *schema;
	cedar_policies *policies;
	cedar_entities *entities;
	cedar_answer *answer; /* kept from line to line */
};

/* A value as it stands in the line: the library reads it anew, as it would read a file. */
static struct ced_slice source_of(const struct batch *b, const struct ced_json *j)
{
	return (struct ced_slice){b->line + j->pos.offset, j->pos.length};
}

static int missing(struct batch *b, const char *key)
{
	return ced_fail(&b->err, CEDAR_E_SYNTAX, (struct ced_pos){0}, "no \"%s\"", key);
}

static int read_schema(struct batch *b, const struct ced_json *j)
{
	struct ced_slice s;

	if (!j || j->kind == CED_JSON_NULL)
		return 0;
	s = j->kind == CED_JSON_STRING ? j->u.text : source_of(b, j);
	if (j->kind == CED_JSON_STRING)
		return cedar_schema_from_text(s.p, s.n, NULL, &b->schema, &b->err);
	return cedar_schema_from_json(s.p, s.n, NULL, &b->schema, &b->err);
}

static int read_policies(struct batch *b, const struct ced_json *j)
{
	struct ced_slice s;

	if (!j)
		return missing(b, "policies");
	s = j->kind == CED_JSON_STRING ? j->u.text : source_of(b, j);
	if (j->kind == CED_JSON_STRING)
		return cedar_policies_from_text(s.p, s.n, NULL, &b->policies, &b->err);
	return cedar_policies_from_json(s.p, s.n, NULL, &b->policies, &b->err);
}

static int read_entities(struct batch *b, const struct ced_json *j)
{
	struct ced_slice s = j ? source_of(b, j) : (struct ced_slice){"[]", 2};

	if (b->schema)
		return cedar_schema_entities_from_json(
			b->schema, s.p, s.n, NULL, &b->entities, &b->err);
	return cedar_entities_from_json(s.p, s.n, NULL, &b->entities, &b->err);
}

static void put_id(struct batch *b, bool first, size_t policy)
{
	const char *id = cedar_policy_id(b->policies, policy);

	if (!first)
		ced_out_text(&b->out, ",");
	ced_out_json_string(&b->out, id, strlen(id));
}

static void put_answer(struct batch *b)
{
	bool allow = cedar_answer_decision(b->answer) == CEDAR_ALLOW;
	struct cedar_error why;

	ced_out_text(&b->out, allow ? "{\"decision\":\"allow\",\"reason\":["
				    : "{\"decision\":\"deny\",\"reason\":[");
	for (size_t i = 0; i < cedar_answer_reason_count(b->answer); i++)
		put_id(b, i == 0, cedar_answer_reason(b->answer, i));
	ced_out_text(&b->out, "],\"errors\":[");
	for (size_t i = 0; i < cedar_answer_error_count(b->answer); i++)
		put_id(b, i == 0, cedar_answer_error(b->answer, i, &why));
	ced_out_text(&b->out, "]}");
}

static int decide(struct batch *b, const struct ced_json *j)
{
	struct ced_slice s = source_of(b, j);
	cedar_request *request = NULL;
	int r = b->schema ? cedar_schema_request_from_json(
				    b->schema, s.p, s.n, NULL, &request, &b->err)
			  : cedar_request_from_json(s.p, s.n, NULL, &request, &b->err);

	if (r == 0)
		r = cedar_decide(b->policies, b->entities, request, NULL, b->answer);
	if (r == 0)
		put_answer(b);
	cedar_request_free(request);
	return r;
}

static int decide_all(struct batch *b, const struct ced_json *requests)
{
	int r = 0;

	ced_out_text(&b->out, "{\"results\":[");
	for (uint32_t i = 0; requests && i < requests->count && r == 0; i++) {
		if (i > 0)
			ced_out_text(&b->out, ",");
		r = decide(b, &requests->u.items[i]);
	}
	ced_out_text(&b->out, "]");
	return r;
}

static void put_findings(struct batch *b, const cedar_report *report, bool warnings)
{
	bool first = true, warning;
	const char *id;

	for (size_t i = 0; i < cedar_report_count(report); i++) {
		cedar_report_at(report, i, &warning, &id, NULL);
		if (warning != warnings)
			continue;
		if (!first)
			ced_out_text(&b->out, ",");
		ced_out_json_string(&b->out, id, strlen(id));
		first = false;
	}
}

static int validate(struct batch *b)
{
	cedar_report *report;
	int r = cedar_validate(b->schema, b->policies, NULL, &report, &b->err);

	if (r < 0)
		return r;
	ced_out_text(&b->out, ",\"validation\":{\"errors\":[");
	put_findings(b, report, false);
	ced_out_text(&b->out, "],\"warnings\":[");
	put_findings(b, report, true);
	ced_out_text(&b->out, "]}");
	cedar_report_free(report);
	return 0;
}

static void put_text(struct batch *b, const char *key, struct cedar_text *text)
{
	ced_out_text(&b->out, key);
	ced_out_json_string(&b->out, text->data, text->length);
	cedar_text_free(text);
}

static int put_json(struct batch *b, const char *key, int r, struct cedar_text *json)
{
	if (r < 0)
		return r;
	ced_out_text(&b->out, key);
	ced_out_bytes(&b->out, json->data, json->length);
	cedar_text_free(json);
	return 0;
}

static int translate(struct batch *b)
{
	struct cedar_text t = {0};
	int r = cedar_policies_to_json(b->policies, &t, &b->err);

	r = put_json(b, ",\"translation\":{\"policies\":", r, &t);
	if (r == 0 && cedar_policies_to_text(b->policies, &t, NULL) == 0)
		put_text(b, ",\"policiesText\":", &t);
	if (r == 0 && b->schema) {
		r = cedar_schema_to_json(b->schema, &t, &b->err);
		r = put_json(b, ",\"schema\":", r, &t);
		if (r == 0 && cedar_schema_to_text(b->schema, &t, NULL) == 0)
			put_text(b, ",\"schemaText\":", &t);
	}
	ced_out_text(&b->out, "}");
	return r;
}

static bool asked(const struct ced_json *line, const char *key)
{
	const struct ced_json *j = ced_json_get(line, key);

	return j && j->kind == CED_JSON_BOOL && j->boolean;
}

static int run_line(struct batch *b, const struct ced_json *j)
{
	const struct ced_json *requests = ced_json_get(j, "requests");
	int r = read_schema(b, ced_json_get(j, "schema"));

	if (r == 0)
		r = read_policies(b, ced_json_get(j, "policies"));
	if (r == 0)
		r = read_entities(b, ced_json_get(j, "entities"));
	if (r == 0)
		r = decide_all(b, requests && requests->kind == CED_JSON_ARRAY ? requests : NULL);
	if (r == 0 && b->schema && asked(j, "validate"))
		r = validate(b);
	if (r == 0 && asked(j, "translate"))
		r = translate(b);
	ced_out_text(&b->out, "}");
	return r;
}

static void put_error(struct batch *b)
{
	b->out.length = 0;
	ced_out_text(&b->out, "{\"error\":");
	ced_out_json_string(&b->out, b->err.text, strlen(b->err.text));
	ced_out_text(&b->out, "}");
}

static int answer_line(struct batch *b, const char *line, size_t n)
{
	struct ced_json j;
	struct cedar_text text;
	int r;

	b->line = line;
	b->err = (struct cedar_error){0};
	r = ced_json_read(&b->arena, line, n, LINE_DEPTH, "json_depth", &j, &b->err);
	if (r == 0)
		r = run_line(b, &j);
	if (r < 0)
		put_error(b);
	cedar_schema_free(b->schema);
	cedar_policies_free(b->policies);
	cedar_entities_free(b->entities);
	b->schema = NULL;
	b->policies = NULL;
	b->entities = NULL;
	ced_arena_reset(&b->arena);
	if (ced_out_take(&b->out, &text, &b->err) < 0) {
		diag_error("error", NULL, &b->err);
		return TOOL_FAILURE;
	}
	b->out = (struct ced_out){0};
	return print_text(&text);
}

struct line {
	char *p;
	size_t n, room;
};

static bool line_grow(struct line *l)
{
	size_t room = l->room ? l->room * 2 : 4096;
	char *p = l->room < LINE_MAX_BYTES ? realloc(l->p, room) : NULL;

	if (!p)
		return false;
	l->p = p;
	l->room = room;
	return true;
}

/* A line without its end: 1, 0 at the end of the input, TOO_LONG or NO_MEMORY with the rest of it
 * skipped. */
enum { TOO_LONG = -1, NO_MEMORY = -2 };

static int read_line(struct line *l)
{
	int c, r = 1;

	l->n = 0;
	while ((c = getc_unlocked(stdin)) != EOF && c != '\n') {
		if (r < 0)
			continue;
		if (l->n == l->room && !line_grow(l))
			r = l->room >= LINE_MAX_BYTES ? TOO_LONG : NO_MEMORY;
		else
			l->p[l->n++] = (char)c;
	}
	return c == EOF && l->n == 0 ? 0 : r;
}

static int answer_long_line(struct batch *b)
{
	struct cedar_text text;

	(void)ced_fail_limit(&b->err, (struct ced_pos){0}, "line_bytes", LINE_MAX_BYTES);
	put_error(b);
	if (ced_out_take(&b->out, &text, &b->err) < 0)
		return TOOL_FAILURE;
	b->out = (struct ced_out){0};
	return print_text(&text);
}

/* Every line is answered before the next is read, so that a program can talk to this one. */
static int run(struct batch *b)
{
	struct line line = {0};
	int r = TOOL_OK, got;

	while (r == TOOL_OK && (got = read_line(&line)) != 0) {
		if (got == NO_MEMORY) {
			diag_say("error", "out of memory");
			r = TOOL_FAILURE;
			break;
		}
		r = got == TOO_LONG ? answer_long_line(b) : answer_line(b, line.p, line.n);
		if (fflush(stdout) != 0)
			r = TOOL_FAILURE;
	}
	free(line.p);
	return r;
}

int cmd_batch(const struct options *o)
{
	struct batch b = {.answer = cedar_answer_new(NULL)};
	int r = TOOL_FAILURE;

	(void)o;
	if (!b.answer) {
		diag_say("error", "out of memory");
		return TOOL_FAILURE;
	}
	ced_arena_init(&b.arena, (size_t)1 << 30, "memory_bytes");
	r = run(&b);
	ced_arena_done(&b.arena);
	cedar_answer_free(b.answer);
	return r;
}
