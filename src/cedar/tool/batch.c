/*
 * batch: one JSON object a line in, one a line out, so that any program can drive the engine.
 *
 *     {"policies": TEXT | {"staticPolicies", "templates", "templateLinks"}, "schema"?: TEXT |
 * {...}, "entities": [...], "requests": [{"principal", "action", "resource", "context"}]}
 *     {"results": [{"decision", "reason", "errors"} | {"error"}]} | {"error"}
 */
#include "tool.h"

#include "cedar/est.h"
#include "cedar/json.h"
#include "cedar/out.h"

#include <stdio.h>
#include <stdlib.h>

struct batch {
	const char *line;
	struct ced_arena arena;
	cedar_answer *answer;
	struct question q;
	struct ced_out out;
};

/* A member as it stands in the line. */
static struct ced_slice raw(const struct batch *b, const struct ced_json *j)
{
	return (struct ced_slice){b->line + j->pos.offset, j->pos.length};
}

static void write_error(struct batch *b, const struct cedar_error *err)
{
	ced_out_text(&b->out, "{\"error\":");
	ced_out_json_string(&b->out, err->text, strlen(err->text));
	ced_out_text(&b->out, "}");
}

/* Text when it is a JSON string, else JSON. */
static int load(struct batch *b, const struct ced_json *policies, const struct ced_json *schema,
	const struct ced_json *entities, struct cedar_error *err)
{
	struct question *q = &b->q;
	struct ced_slice p =
		policies->kind == CED_JSON_STRING ? policies->u.text : raw(b, policies);
	int code = policies->kind == CED_JSON_STRING
			   ? cedar_policies_from_text(p.p, p.n, NULL, &q->policies, err)
			   : cedar_policies_from_json(p.p, p.n, NULL, &q->policies, err);
	if (code == 0 && schema && schema->kind == CED_JSON_STRING)
		code = cedar_schema_from_text(
			schema->u.text.p, schema->u.text.n, NULL, &q->schema, err);
	else if (code == 0 && schema)
		code = cedar_schema_from_json(
			raw(b, schema).p, raw(b, schema).n, NULL, &q->schema, err);
	if (code < 0)
		return code;
	struct ced_slice e = entities ? raw(b, entities) : (struct ced_slice){"[]", 2};
	return q->schema ? cedar_schema_entities_from_json(
				   q->schema, e.p, e.n, NULL, &q->entities, err)
			 : cedar_entities_from_json(e.p, e.n, NULL, &q->entities, err);
}

static void write_ids(struct batch *b, const char *before, size_t n,
	size_t (*at)(const cedar_answer *a, size_t i))
{
	ced_out_text(&b->out, before);
	for (size_t i = 0; i < n; i++) {
		const char *id = cedar_policy_id(b->q.policies, at(b->answer, i));
		if (i)
			ced_out_text(&b->out, ",");
		ced_out_json_string(&b->out, id, strlen(id));
	}
	ced_out_text(&b->out, "]");
}

static size_t error_at(const cedar_answer *a, size_t i)
{
	return cedar_answer_error(a, i, NULL);
}

static void answer_one(struct batch *b, const struct ced_json *request)
{
	struct ced_slice r = raw(b, request);
	struct cedar_error err;
	struct question *q = &b->q;
	int code = q->schema ? cedar_schema_request_from_json(
				       q->schema, r.p, r.n, NULL, &q->request, &err)
			     : cedar_request_from_json(r.p, r.n, NULL, &q->request, &err);
	if (code < 0) {
		write_error(b, &err);
		return;
	}
	(void)cedar_decide(q->policies, q->entities, q->request, NULL, b->answer);
	ced_out_text(&b->out, cedar_answer_decision(b->answer) == CEDAR_ALLOW
				      ? "{\"decision\":\"allow\""
				      : "{\"decision\":\"deny\"");
	write_ids(b, ",\"reason\":[", cedar_answer_reason_count(b->answer), cedar_answer_reason);
	write_ids(b, ",\"errors\":[", cedar_answer_error_count(b->answer), error_at);
	ced_out_text(&b->out, "}");
	cedar_request_free(q->request);
	q->request = NULL;
}

static void answer_line(struct batch *b, size_t n)
{
	struct cedar_limits limits = cedar_limits_default();
	struct cedar_error err = {.text = "a line is an object with policies and requests"};
	struct ced_json j;
	int code = ced_json_read(
		&b->arena, b->line, n, ced_policy_json_depth(&limits) + 2, "json_depth", &j, &err);
	const struct ced_json *policies = code == 0 ? ced_json_get(&j, "policies") : NULL;
	const struct ced_json *requests = code == 0 ? ced_json_get(&j, "requests") : NULL;
	if (!policies || !requests || requests->kind != CED_JSON_ARRAY) {
		write_error(b, &err);
		return;
	}
	if (load(b, policies, ced_json_get(&j, "schema"), ced_json_get(&j, "entities"), &err) < 0) {
		write_error(b, &err);
		return;
	}
	ced_out_text(&b->out, "{\"results\":[");
	for (uint32_t i = 0; i < requests->count; i++) {
		if (i)
			ced_out_text(&b->out, ",");
		answer_one(b, &requests->u.items[i]);
	}
	ced_out_text(&b->out, "]}");
}

/* The answer, or that there was no memory for it. */
static void flush_line(struct batch *b)
{
	if (b->out.failed)
		fputs("{\"error\":\"out of memory\"}", stdout);
	else
		(void)fwrite(b->out.data, 1, b->out.length, stdout);
	putchar('\n');
	(void)fflush(stdout);
	free(b->out.data);
	b->out = (struct ced_out){0};
}

int run_batch(const struct options *o)
{
	struct batch b = {.answer = cedar_answer_new(NULL)};
	char *line = NULL;
	size_t room = 0;
	ssize_t n;
	(void)o;
	if (!b.answer)
		return EXIT_FAILED;
	ced_arena_init(&b.arena, 1u << 30, "memory_bytes");
	while ((n = getline(&line, &room, stdin)) > 0) {
		b.line = line;
		ced_arena_reset(&b.arena);
		answer_line(&b, (size_t)n);
		flush_line(&b);
		question_done(&b.q);
		b.q = (struct question){.policies = NULL};
	}
	ced_arena_done(&b.arena);
	cedar_answer_free(b.answer);
	free(line);
	return EXIT_DONE;
}
