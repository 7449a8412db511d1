/* JSON to values. Depth is bounded by the JSON reader. */
#include "cedar/data.h"
#include "cedar/lex.h"
#include "cedar/parse.h"

#include <stdlib.h>

static int expected(const struct ced_reader *r, const struct ced_json *j, const char *what)
{
	return ced_fail(r->err, CEDAR_E_SYNTAX, j->pos, "expected %s, found %s", what,
		ced_json_kind_name(j->kind));
}

const struct ced_name *ced_json_name(const struct ced_reader *r, const struct ced_json *j)
{
	if (j->kind != CED_JSON_STRING) {
		(void)expected(r, j, "a string");
		return NULL;
	}
	const struct ced_name *name = ced_intern(r->names, j->u.text.p, j->u.text.n);
	if (!name)
		(void)ced_arena_fail(r->arena, r->err, j->pos);
	return name;
}

const struct ced_name *ced_json_type(const struct ced_reader *r, const struct ced_json *j)
{
	const struct ced_name *name = ced_json_name(r, j);
	if (name && !ced_is_type_name(j->u.text)) {
		(void)ced_fail(r->err, CEDAR_E_SYNTAX, j->pos,
			"\"%.100s\" is not a type name in its normal form", name->text);
		return NULL;
	}
	return name;
}

/* Rules that answer with a pointer leave the code in the error; make it a result. */
static int code_of(const struct ced_reader *r)
{
	return r->err && r->err->code < 0 ? (int)r->err->code : CEDAR_E_SYNTAX;
}

/* {"type","id"}, without the escape around it. */
static int plain_uid(
	const struct ced_reader *r, const struct ced_json *j, const struct ced_uid **ret)
{
	const struct ced_json *type = ced_json_get(j, "type"), *id = ced_json_get(j, "id");
	if (!type || !id)
		return ced_fail(r->err, CEDAR_E_SYNTAX, j->pos,
			"expected an entity: {\"type\": ..., \"id\": ...}");
	const struct ced_name *type_name = ced_json_type(r, type);
	const struct ced_name *id_name = type_name ? ced_json_name(r, id) : NULL;
	if (!id_name)
		return code_of(r);
	*ret = ced_uid_make(r->arena, type_name, id_name);
	return *ret ? 0 : ced_arena_fail(r->arena, r->err, j->pos);
}

int ced_uid_from_json(
	const struct ced_reader *r, const struct ced_json *j, const struct ced_uid **ret)
{
	const struct ced_json *inner = ced_json_get(j, "__entity");
	return plain_uid(r, inner ? inner : j, ret);
}

int ced_uid_from_text(
	const struct ced_reader *r, const char *text, size_t n, const struct ced_uid **ret)
{
	struct ced_source s = {r->arena, r->names, r->limits, r->err};
	return ced_parse_uid(&s, text, n, ret);
}

static bool is_string(const struct ced_json *j)
{
	return j && j->kind == CED_JSON_STRING;
}

static bool looks_like_entity(const struct ced_json *j)
{
	return is_string(ced_json_get(j, "type")) && is_string(ced_json_get(j, "id"));
}

static bool looks_like_extension(const struct ced_json *j)
{
	const struct ced_json *args = ced_json_get(j, "args");
	return is_string(ced_json_get(j, "fn")) &&
	       (ced_json_get(j, "arg") || (args && args->kind == CED_JSON_ARRAY));
}

int ced_escape_of(const struct ced_reader *r, const struct ced_json *j, enum ced_escape *ret,
	const struct ced_json **ret_inner)
{
	*ret = CED_ESCAPE_NONE;
	if (j->kind != CED_JSON_OBJECT || j->count != 1)
		return 0;
	const struct ced_member *m = &j->u.members[0];
	*ret_inner = &m->value;
	if (ced_slice_is(m->key, "__entity") && looks_like_entity(&m->value))
		*ret = CED_ESCAPE_ENTITY;
	else if (ced_slice_is(m->key, "__extn") && looks_like_extension(&m->value))
		*ret = CED_ESCAPE_EXTENSION;
	else if (ced_slice_is(m->key, "__expr") && is_string(&m->value))
		return ced_fail(r->err, CEDAR_E_SYNTAX, m->pos,
			"the escape __expr is no longer part of the language");
	return 0;
}

int ced_extension_of(const struct ced_reader *r, const struct ced_json *inner, enum ced_fn *ret_fn,
	const struct ced_json **ret_args, uint32_t *ret_count)
{
	const struct ced_json *fn = ced_json_get(inner, "fn"), *arg = ced_json_get(inner, "arg"),
			      *args = ced_json_get(inner, "args");
	if (!fn || fn->kind != CED_JSON_STRING || (!arg && !args))
		return ced_fail(r->err, CEDAR_E_SYNTAX, inner->pos,
			"expected an extension value: {\"fn\": ..., \"arg\": ...}");
	int found = ced_fn_find(fn->u.text);
	if (found < 0)
		return ced_fail(r->err, CEDAR_E_SYNTAX, fn->pos,
			"there is no extension function \"%.*s\"",
			(int)(fn->u.text.n < 60 ? fn->u.text.n : 60), fn->u.text.p);
	if (!arg && args->kind != CED_JSON_ARRAY)
		return expected(r, args, "an array of arguments");
	*ret_fn = (enum ced_fn)found;
	*ret_args = arg ? arg : args->u.items;
	*ret_count = arg ? 1 : args->count;
	return 0;
}

/* -- Values --------------------------------------------------------------------------------- */

enum { FN_ARGS_MAX = 2 };

static int extension_value(
	const struct ced_reader *r, const struct ced_json *inner, struct ced_value *ret)
{
	enum ced_fn fn;
	const struct ced_json *args;
	struct ced_value values[FN_ARGS_MAX];
	uint32_t n, bad;
	int code = ced_extension_of(r, inner, &fn, &args, &n);
	if (code < 0)
		return code;
	if (n != ced_fn_info[fn].arity)
		return ced_fail(r->err, CEDAR_E_ARITY, inner->pos,
			"%s takes %u arguments, found %u", ced_fn_info[fn].name,
			ced_fn_info[fn].arity, n);
	for (uint32_t i = 0; i < n && code == 0; i++)
		code = ced_value_from_json(r, &args[i], &values[i]);
	if (code < 0)
		return code;
	code = ced_fn_call(fn, r->arena, values, n, ret, &bad);
	if (code == CEDAR_E_MEMORY)
		return ced_arena_fail(r->arena, r->err, inner->pos);
	if (code < 0)
		return ced_fail(r->err, CEDAR_E_VALUE, inner->pos, "not a value of %s()",
			ced_fn_info[fn].name);
	return 0;
}

static int set_value(const struct ced_reader *r, const struct ced_json *j, struct ced_value *ret)
{
	struct ced_value *items = calloc(j->count ? j->count : 1, sizeof(*items));
	int code = 0;
	if (!items)
		return ced_fail_memory(r->err);
	for (uint32_t i = 0; i < j->count && code == 0; i++)
		code = ced_value_from_json(r, &j->u.items[i], &items[i]);
	if (code == 0) {
		const struct ced_set *set = ced_set_make(r->arena, items, j->count);
		if (!set)
			code = ced_arena_fail(r->arena, r->err, j->pos);
		*ret = (struct ced_value){.kind = CED_SET, .u.set = set};
	}
	free(items);
	return code;
}

static int record_value(const struct ced_reader *r, const struct ced_json *j, struct ced_value *ret)
{
	struct ced_field *fields = calloc(j->count ? j->count : 1, sizeof(*fields));
	int code = 0;
	if (!fields)
		return ced_fail_memory(r->err);
	for (uint32_t i = 0; i < j->count && code == 0; i++) {
		const struct ced_member *m = &j->u.members[i];
		fields[i].key = ced_intern(r->names, m->key.p, m->key.n);
		if (!fields[i].key)
			code = ced_arena_fail(r->arena, r->err, m->pos);
		else
			code = ced_value_from_json(r, &m->value, &fields[i].value);
	}
	if (code == 0) {
		const struct ced_record *record = ced_record_make(r->arena, fields, j->count, NULL);
		if (!record)
			code = ced_arena_fail(r->arena, r->err, j->pos);
		*ret = (struct ced_value){.kind = CED_RECORD, .u.record = record};
	}
	free(fields);
	return code;
}

static int object_value(const struct ced_reader *r, const struct ced_json *j, struct ced_value *ret)
{
	enum ced_escape escape;
	const struct ced_json *inner;
	const struct ced_uid *uid;
	int code = ced_escape_of(r, j, &escape, &inner);
	if (code < 0)
		return code;
	if (escape == CED_ESCAPE_NONE)
		return record_value(r, j, ret);
	if (escape == CED_ESCAPE_EXTENSION)
		return extension_value(r, inner, ret);
	code = plain_uid(r, inner, &uid);
	if (code == 0)
		*ret = ced_entity(uid);
	return code;
}

int ced_value_from_json(const struct ced_reader *r, const struct ced_json *j, struct ced_value *ret)
{
	const struct ced_name *name;
	int64_t number;
	int code;
	switch (j->kind) {
	case CED_JSON_NULL:
		return ced_fail(r->err, CEDAR_E_SYNTAX, j->pos, "null is not a value of Cedar");
	case CED_JSON_BOOL: *ret = ced_bool(j->boolean); return 0;
	case CED_JSON_NUMBER:
		code = ced_json_long(j, &number, r->err);
		if (code == 0)
			*ret = ced_number(CED_LONG, number);
		return code;
	case CED_JSON_STRING:
		name = ced_json_name(r, j);
		if (name)
			*ret = ced_string(name);
		return name ? 0 : code_of(r);
	case CED_JSON_ARRAY: return set_value(r, j, ret);
	case CED_JSON_OBJECT: break;
	}
	return object_value(r, j, ret);
}
