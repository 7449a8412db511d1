/* Requests: who, does what, to what, in which context. */
#include "cedar/data.h"

#include <stdlib.h>

static int read_uid(const struct ced_reader *r, const struct ced_json *object, const char *which,
	const struct ced_uid **ret)
{
	const struct ced_json *j = ced_json_get(object, which);
	if (!j)
		return ced_fail(
			r->err, CEDAR_E_SYNTAX, object->pos, "the request lacks its %s", which);
	if (j->kind != CED_JSON_STRING)
		return ced_uid_from_json(r, j, ret);
	int code = ced_uid_from_text(r, j->u.text.p, j->u.text.n, ret);
	if (code < 0) /* places within the string would be taken for places in the document */
		return ced_fail(r->err, (enum cedar_code)code, j->pos,
			"the %s is not an entity: Type::\"id\"", which);
	return 0;
}

static int guided_context(const struct ced_reader *r, const struct ced_guide *guide,
	const struct ced_json *j, const struct ced_record **ret)
{
	struct ced_field *fields = calloc(j->count ? j->count : 1, sizeof(*fields));
	int code = fields ? 0 : ced_fail_memory(r->err);
	for (uint32_t i = 0; i < j->count && code == 0; i++) {
		const struct ced_member *m = &j->u.members[i];
		fields[i].key = ced_intern(r->names, m->key.p, m->key.n);
		if (!fields[i].key)
			code = ced_arena_fail(r->arena, r->err, m->pos);
		else
			code = guide->value(guide->ctx, r, NULL, false, fields[i].key, &m->value,
				&fields[i].value);
	}
	if (code == 0) {
		*ret = ced_record_make(r->arena, fields, j->count, NULL);
		code = *ret ? 0 : ced_arena_fail(r->arena, r->err, j->pos);
	}
	free(fields);
	return code;
}

static int read_context(const struct ced_reader *r, const struct ced_guide *guide,
	const struct ced_json *j, const struct ced_record **ret)
{
	static const struct ced_json empty = {.kind = CED_JSON_OBJECT};
	struct ced_value v;
	j = j ? j : &empty;
	if (guide && guide->value && j->kind == CED_JSON_OBJECT)
		return guided_context(r, guide, j, ret);
	int code = ced_value_from_json(r, j, &v);
	if (code < 0)
		return code;
	if (v.kind != CED_RECORD)
		return ced_fail(r->err, CEDAR_E_SYNTAX, j->pos, "the context is a record");
	*ret = v.u.record;
	return 0;
}

static int request_new(struct cedar_request **ret, struct ced_names *names,
	const struct cedar_limits *limits, struct cedar_error *err)
{
	struct cedar_request *q = calloc(1, sizeof(*q));
	if (!q)
		return ced_fail_memory(err);
	ced_arena_init(&q->arena, limits->memory_bytes, "memory_bytes");
	ced_names_init(names, &q->arena);
	*ret = q;
	return 0;
}

static int read_request(struct cedar_request *q, const struct ced_reader *r,
	const struct ced_guide *guide, const struct ced_json *j)
{
	static const char *const want[] = {"principal", "action", "resource", NULL};
	static const char *const may[] = {"context", NULL};
	int code = ced_json_members(j, "a request", want, may, r->err);
	if (code == 0)
		code = read_uid(r, j, "principal", &q->principal);
	if (code == 0)
		code = read_uid(r, j, "action", &q->action);
	if (code == 0)
		code = read_uid(r, j, "resource", &q->resource);
	if (code == 0 && guide && guide->request)
		code = guide->request(guide->ctx, q, r->err);
	if (code == 0)
		code = read_context(r, guide, ced_json_get(j, "context"), &q->context);
	return code;
}

/* Parse `json` and run the rest over it. */
static int with_json(struct cedar_request *q, struct ced_names *names, const char *json, size_t n,
	const struct cedar_limits *limits, const struct ced_guide *guide, struct cedar_error *err)
{
	struct ced_reader r = {&q->arena, names, limits, err};
	struct ced_arena tree;
	struct ced_json j;
	ced_arena_init(&tree, limits->memory_bytes, "memory_bytes");
	int code = ced_json_read(&tree, json, n, limits->json_depth, "json_depth", &j, err);
	if (code == 0)
		code = read_request(q, &r, guide, &j);
	ced_arena_done(&tree);
	ced_place(err, json, n);
	return code;
}

int ced_request_read(const char *json, size_t n, const struct cedar_limits *limits,
	const struct ced_guide *guide,
	int (*check)(void *ctx, const cedar_request *request, struct cedar_error *err), void *ctx,
	cedar_request **ret, struct cedar_error *err)
{
	struct cedar_limits defaults = cedar_limits_default();
	struct cedar_error local = {0};
	struct cedar_request *q = NULL;
	struct ced_names names;
	limits = limits ? limits : &defaults;
	err = err ? err : &local;
	if (n > limits->text_bytes)
		return ced_fail_limit(err, (struct ced_pos){0}, "text_bytes", limits->text_bytes);
	int code = request_new(&q, &names, limits, err);
	if (code < 0)
		return code;
	code = with_json(q, &names, json, n, limits, guide, err);
	if (code == 0 && check)
		code = check(ctx, q, err);
	ced_names_done(&names);
	if (code < 0)
		cedar_request_free(q);
	else
		*ret = q;
	return code;
}

int cedar_request_from_json(const char *json, size_t n, const struct cedar_limits *limits,
	cedar_request **ret, struct cedar_error *err)
{
	return ced_request_read(json, n, limits, NULL, NULL, NULL, ret, err);
}

static int make_request(struct cedar_request *q, const struct ced_reader *r, const char *principal,
	const char *action, const char *resource, const char *context, size_t context_n)
{
	struct ced_arena tree;
	struct ced_json j;
	int code = ced_uid_from_text(r, principal, strlen(principal), &q->principal);
	if (code == 0)
		code = ced_uid_from_text(r, action, strlen(action), &q->action);
	if (code == 0)
		code = ced_uid_from_text(r, resource, strlen(resource), &q->resource);
	if (code < 0)
		return code;
	ced_arena_init(&tree, r->limits->memory_bytes, "memory_bytes");
	code = ced_json_read(
		&tree, context, context_n, r->limits->json_depth, "json_depth", &j, r->err);
	if (code == 0)
		code = read_context(r, NULL, &j, &q->context);
	ced_arena_done(&tree);
	ced_place(r->err, context, context_n);
	return code;
}

int cedar_request_new(const char *principal, const char *action, const char *resource,
	const char *context, size_t context_n, const struct cedar_limits *limits,
	cedar_request **ret, struct cedar_error *err)
{
	struct cedar_limits defaults = cedar_limits_default();
	struct cedar_error local = {0};
	struct cedar_request *q = NULL;
	struct ced_names names;
	limits = limits ? limits : &defaults;
	err = err ? err : &local;
	int code = request_new(&q, &names, limits, err);
	if (code < 0)
		return code;
	struct ced_reader r = {&q->arena, &names, limits, err};
	code = make_request(q, &r, principal, action, resource, context ? context : "{}",
		context ? context_n : 2);
	ced_names_done(&names);
	if (code < 0)
		cedar_request_free(q);
	else
		*ret = q;
	return code;
}

void cedar_request_free(cedar_request *request)
{
	if (!request)
		return;
	ced_arena_done(&request->arena);
	free(request);
}
