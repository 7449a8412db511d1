/* Checking arguments and writing their JSON Schema, both from one table: see schema.h. Pure. */
#include "call/schema.h"

#include "base/limits.h"
#include "base/text.h"

#include <math.h>

/* Tables nest as deep as our own declarations do; the bound guards against one that loops. */
enum { FIELD_DEPTH_MAX = 8 };

/* Where in the arguments we are, for messages: "edits[3].old_text". */
struct where {
	const struct where *up;
	const char *name; /* NULL: an element of `up` */
	size_t index;
};

static void put_where(struct buf *b, const struct where *w)
{
	if (!w)
		return;
	put_where(b, w->up);
	if (w->name)
		buf_printf(b, "%s%.64s", b->len ? "." : "", w->name);
	else
		buf_printf(b, "[%zu]", w->index);
}

static const char *type_word(enum field_type t)
{
	static const char *const words[] = {[FIELD_STRING] = "a string",
		[FIELD_INT] = "an integer",
		[FIELD_BOOL] = "true or false",
		[FIELD_ENUM] = "a string",
		[FIELD_ARRAY] = "an array",
		[FIELD_OBJECT] = "an object",
		[FIELD_ANY] = "any value"};
	return words[t];
}

static const char *json_type_word(const json_t *v)
{
	switch (json_typeof(v)) {
	case JSON_OBJECT: return "an object";
	case JSON_ARRAY: return "an array";
	case JSON_STRING: return "a string";
	case JSON_INTEGER: return "an integer";
	case JSON_REAL: return "a number";
	case JSON_TRUE:
	case JSON_FALSE: return "a boolean";
	case JSON_NULL: return "null";
	default: return "something else";
	}
}

static int refuse(const struct where *w, struct err *err, const char *problem)
{
	_cleanup_buf_ struct buf path = buf_init(512);
	put_where(&path, w);
	return err_set(err, ERR_INVALID_ARGUMENT, "argument '%s' %s", buf_str(&path), problem);
}

static void put_words(struct buf *b, const char *const *words)
{
	for (unsigned i = 0; words[i]; i++)
		buf_printf(b, "%s%s", i ? ", " : "", words[i]);
}

static int check_enum(
	const struct field *f, const json_t *v, const struct where *w, struct err *err)
{
	for (unsigned i = 0; f->words[i]; i++)
		if (strcmp(json_string_value(v), f->words[i]) == 0)
			return 0;
	_cleanup_buf_ struct buf words = buf_init(ERR_HINT_MAX);
	put_words(&words, f->words);
	(void)refuse(w, err, "is none of the known words");
	return err_hint(err, "use one of: %s", buf_str(&words));
}

/* Unicode characters of checked UTF-8: every byte but continuation bytes starts one. */
static size_t count_characters(const char *p, size_t n)
{
	size_t count = 0;
	for (size_t i = 0; i < n; i++)
		count += ((unsigned char)p[i] & 0xC0) != 0x80;
	return count;
}

static int check_size(
	const struct field *f, size_t n, const char *unit, const struct where *w, struct err *err)
{
	char problem[96];
	if (f->max > 0 && n > (size_t)f->max)
		(void)snprintf(problem, sizeof(problem), "has %zu %s; at most %lld are allowed", n,
			unit, (long long)f->max);
	else if (n < (size_t)f->min)
		(void)snprintf(problem, sizeof(problem), "has %zu %s; at least %lld are needed", n,
			unit, (long long)f->min);
	else
		return 0;
	return refuse(w, err, problem);
}

/* An integer may be written as 5 or 5.0 (JSON Schema 2020-12 §6.1.1), never as "5". */
static bool integer_of(const json_t *v, int64_t *ret)
{
	if (json_is_integer(v)) {
		*ret = json_integer_value(v);
		return true;
	}
	double d = json_real_value(v);
	if (!json_is_real(v) || d != trunc(d) || fabs(d) > 9007199254740992.0)
		return false;
	*ret = (int64_t)d;
	return true;
}

static int check_int(const struct field *f, const json_t *v, const struct where *w, struct err *err)
{
	char problem[96];
	int64_t n = 0;
	if (!integer_of(v, &n))
		return refuse(w, err, "must be an integer");
	int64_t max = f->max ? f->max : INT64_MAX;
	if (n >= f->min && n <= max)
		return 0;
	(void)snprintf(problem, sizeof(problem), "is %lld; it must be between %lld and %lld",
		(long long)n, (long long)f->min, (long long)max);
	return refuse(w, err, problem);
}

static int check_object(const struct field *fields, const json_t *obj, const struct where *w,
	unsigned depth, struct err *err);
static int check_array(const struct field *f, const json_t *v, const struct where *w,
	unsigned depth, struct err *err);

static bool has_type(const struct field *f, const json_t *v)
{
	switch (f->type) {
	case FIELD_STRING:
	case FIELD_ENUM: return json_is_string(v);
	case FIELD_INT: return json_is_number(v);
	case FIELD_BOOL: return json_is_boolean(v);
	case FIELD_ARRAY: return json_is_array(v);
	case FIELD_OBJECT: return json_is_object(v);
	case FIELD_ANY: return true;
	}
	return false;
}

static int check_value(const struct field *f, const json_t *v, const struct where *w,
	unsigned depth, struct err *err)
{
	char problem[96];
	if (!has_type(f, v)) {
		(void)snprintf(problem, sizeof(problem), "is %s; it must be %s", json_type_word(v),
			type_word(f->type));
		return refuse(w, err, problem);
	}
	if (json_is_string(v) && !f->nul_ok &&
		strlen(json_string_value(v)) != json_string_length(v))
		return refuse(w, err, "has a NUL character, which is not allowed here");
	switch (f->type) {
	case FIELD_STRING:
		return check_size(f, count_characters(json_string_value(v), json_string_length(v)),
			"characters", w, err);
	case FIELD_ENUM: return check_enum(f, v, w, err);
	case FIELD_INT: return check_int(f, v, w, err);
	case FIELD_ARRAY: return check_array(f, v, w, depth, err);
	case FIELD_OBJECT: return check_object(f->items, v, w, depth + 1, err);
	case FIELD_BOOL:
	case FIELD_ANY: return 0;
	}
	return 0;
}

static int check_array(const struct field *f, const json_t *v, const struct where *w,
	unsigned depth, struct err *err)
{
	int r = check_size(f, json_array_size(v), "items", w, err);
	for (size_t i = 0; r == 0 && i < json_array_size(v); i++) {
		struct where at = {.up = w, .index = i};
		r = check_value(f->items, json_array_get(v, i), &at, depth, err);
	}
	return r;
}

static const struct field *field_named(const struct field *fields, const char *name)
{
	for (const struct field *f = fields; f->name; f++)
		if (strcmp(f->name, name) == 0)
			return f;
	return NULL;
}

static int unknown_argument(const struct field *fields, const struct where *w, struct err *err)
{
	_cleanup_buf_ struct buf known = buf_init(ERR_HINT_MAX);
	for (const struct field *f = fields; f->name; f++)
		buf_printf(&known, "%s%s", f == fields ? "" : ", ", f->name);
	(void)refuse(w, err, "is not known here");
	if (fields->name)
		return err_hint(err, "the arguments are: %s", buf_str(&known));
	return err_hint(err, "this tool takes no arguments");
}

static int check_object(const struct field *fields, const json_t *obj, const struct where *w,
	unsigned depth, struct err *err)
{
	const char *key;
	json_t *value;
	int r;
	BUG_ON(depth > FIELD_DEPTH_MAX);
	json_object_foreach((json_t *)(uintptr_t)obj, key, value)
	{
		struct where at = {.up = w, .name = key};
		const struct field *f = field_named(fields, key);
		if (!f)
			return unknown_argument(fields, &at, err);
		if ((r = check_value(f, value, &at, depth, err)) < 0)
			return r;
	}
	for (const struct field *f = fields; f->name; f++) {
		struct where at = {.up = w, .name = f->name};
		if (f->required && !json_object_get(obj, f->name)) {
			(void)refuse(&at, err, "is missing");
			return err_hint(err, "it is %s: %s", type_word(f->type), f->help);
		}
	}
	return 0;
}

int fields_check(const struct field *fields, const json_t *args, struct err *err)
{
	if (!json_is_object(args))
		return err_set(err, ERR_INVALID_ARGUMENT,
			"the arguments are %s; they must be an object", json_type_word(args));
	return check_object(fields, args, NULL, 0, err);
}

/* --- JSON Schema --------------------------------------------------------------------------------
 */

static const char *schema_type(enum field_type t)
{
	switch (t) {
	case FIELD_STRING:
	case FIELD_ENUM: return "string";
	case FIELD_INT: return "integer";
	case FIELD_BOOL: return "boolean";
	case FIELD_ARRAY: return "array";
	case FIELD_OBJECT: return "object";
	case FIELD_ANY: return NULL;
	}
	return NULL;
}

static json_t *object_schema(const struct field *fields, bool open);

static void schema_bounds(json_t *s, const struct field *f)
{
	static const char *const keys[][2] = {[FIELD_STRING] = {"minLength", "maxLength"},
		[FIELD_INT] = {"minimum", "maximum"},
		[FIELD_ARRAY] = {"minItems", "maxItems"}};
	if (f->type != FIELD_STRING && f->type != FIELD_INT && f->type != FIELD_ARRAY)
		return;
	if (f->min != 0 || f->type == FIELD_INT)
		(void)json_object_set_new(s, keys[f->type][0], json_integer(f->min));
	if (f->max != 0)
		(void)json_object_set_new(s, keys[f->type][1], json_integer(f->max));
}

static void schema_default(json_t *s, const struct field *f)
{
	if (f->dflt_str)
		(void)json_object_set_new(s, "default", json_string(f->dflt_str));
	else if (f->has_default)
		(void)json_object_set_new(s, "default",
			f->type == FIELD_BOOL ? json_boolean(f->dflt) : json_integer(f->dflt));
}

static json_t *field_schema(const struct field *f, bool open)
{
	json_t *s = f->type == FIELD_OBJECT ? object_schema(f->items, open) : json_object();
	const char *type = schema_type(f->type);
	if (type)
		(void)json_object_set_new(s, "type", json_string(type));
	if (f->help)
		(void)json_object_set_new(s, "description", json_string(f->help));
	if (f->type == FIELD_ENUM) {
		json_t *words = json_array();
		for (unsigned i = 0; f->words[i]; i++)
			(void)json_array_append_new(words, json_string(f->words[i]));
		(void)json_object_set_new(s, "enum", words);
	}
	if (f->type == FIELD_ARRAY)
		(void)json_object_set_new(s, "items", field_schema(f->items, open));
	schema_bounds(s, f);
	schema_default(s, f);
	return s;
}

static json_t *object_schema(const struct field *fields, bool open)
{
	json_t *s = json_object(), *properties = json_object(), *required = json_array();
	(void)json_object_set_new(s, "type", json_string("object"));
	for (const struct field *f = fields; f->name; f++) {
		(void)json_object_set_new(properties, f->name, field_schema(f, open));
		if (f->required)
			(void)json_array_append_new(required, json_string(f->name));
	}
	(void)json_object_set_new(s, "properties", properties);
	if (json_array_size(required) > 0)
		(void)json_object_set_new(s, "required", required);
	else
		json_decref(required);
	if (!open)
		(void)json_object_set_new(s, "additionalProperties", json_false());
	return s;
}

void fields_schema(const struct field *fields, bool open, struct buf *out)
{
	json_t *s = object_schema(fields, open);
	char *text = json_dumps(s, JSON_COMPACT);
	if (text)
		buf_puts(out, text);
	else
		out->failed = true;
	free(text);
	json_decref(s);
}

/* --- access -------------------------------------------------------------------------------------
 */

const json_t *arg_get(const json_t *args, const char *name)
{
	return json_object_get(args, name);
}

const char *arg_str(const json_t *args, const struct field *fields, const char *name)
{
	const json_t *v = json_object_get(args, name);
	if (v)
		return json_string_value(v);
	const struct field *f = field_named(fields, name);
	BUG_ON(!f);
	return f->dflt_str;
}

int64_t arg_int(const json_t *args, const struct field *fields, const char *name)
{
	const json_t *v = json_object_get(args, name);
	int64_t n = 0;
	if (v && integer_of(v, &n))
		return n;
	const struct field *f = field_named(fields, name);
	BUG_ON(!f);
	return f->dflt;
}

bool arg_bool(const json_t *args, const struct field *fields, const char *name)
{
	const json_t *v = json_object_get(args, name);
	if (v)
		return json_is_true(v);
	const struct field *f = field_named(fields, name);
	BUG_ON(!f);
	return f->dflt != 0;
}
