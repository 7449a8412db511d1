/* YAML to JSON values: see yaml.h. The stack of open containers has a fixed size, so nothing here
 * recurses. */
#include "codec/yaml.h"

#include "base/limits.h"
#include "codec/json.h"

#include <errno.h>
#include <math.h>
#include <yaml.h>

#define CORE_TAG "tag:yaml.org,2002:"

/* A container that is being filled, borrowed from the one around it. */
struct frame {
	json_t *into;
	char *key; /* owned; of an object: the name whose value comes next */
	size_t key_len;
};

struct builder {
	yaml_parser_t parser;
	struct frame stack[LIMIT_JSON_DEPTH]; /* [0]: the list of documents */
	unsigned depth;                       /* frames in use */
	struct err *err;
};

static int bad_at(struct builder *b, yaml_mark_t at, const char *what)
{
	return err_set(b->err, ERR_PARSE, "YAML, line %zu, column %zu: %s", at.line + 1,
		at.column + 1, what);
}

/* --- scalars of the core schema --- */

static bool is_one_of(struct str s, const char *const *words)
{
	for (; *words; words++)
		if (str_eq_c(s, *words))
			return true;
	return false;
}

static size_t span(struct str s, size_t from, const char *set)
{
	size_t i = from;
	while (i < s.n && s.p[i] && strchr(set, s.p[i]))
		i++;
	return i - from;
}

/* The base of an integer of the core schema, 0 when it is none. */
static int integer_base(struct str s)
{
	if (s.n > 2 && s.p[0] == '0' && s.p[1] == 'o')
		return span(s, 2, "01234567") == s.n - 2 ? 8 : 0;
	if (s.n > 2 && s.p[0] == '0' && s.p[1] == 'x')
		return span(s, 2, "0123456789abcdefABCDEF") == s.n - 2 ? 16 : 0;
	size_t sign = s.n && (s.p[0] == '-' || s.p[0] == '+');
	return s.n > sign && span(s, sign, "0123456789") == s.n - sign ? 10 : 0;
}

/* [-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )? */
static bool is_float(struct str s)
{
	static const char digits[] = "0123456789";
	size_t i = s.n && (s.p[0] == '-' || s.p[0] == '+');
	size_t whole = span(s, i, digits), fraction = 0;
	i += whole;
	if (i < s.n && s.p[i] == '.') {
		fraction = span(s, i + 1, digits);
		i += 1 + fraction;
	}
	if (whole + fraction == 0)
		return false;
	if (i < s.n && (s.p[i] == 'e' || s.p[i] == 'E')) {
		i++;
		if (i < s.n && (s.p[i] == '-' || s.p[i] == '+'))
			i++;
		size_t exponent = span(s, i, digits);
		if (exponent == 0)
			return false;
		i += exponent;
	}
	return i == s.n;
}

/* A number, or NULL when it is none or does not fit. libyaml ends scalars with a NUL. */
static json_t *number_of(struct str s)
{
	int base = integer_base(s);
	if (base) {
		errno = 0;
		long long i = strtoll(base == 10 ? s.p : s.p + 2, NULL, base);
		return errno ? NULL : json_integer(i);
	}
	if (!is_float(s))
		return NULL;
	double d = strtod(s.p, NULL);
	return isfinite(d) ? json_real(d) : NULL;
}

static json_t *plain_value(struct str s)
{
	static const char *const nulls[] = {"", "~", "null", "Null", "NULL", NULL};
	static const char *const trues[] = {"true", "True", "TRUE", NULL};
	static const char *const falses[] = {"false", "False", "FALSE", NULL};
	if (is_one_of(s, nulls))
		return json_null();
	if (is_one_of(s, trues))
		return json_true();
	if (is_one_of(s, falses))
		return json_false();
	json_t *n = number_of(s);
	return n ? n : json_stringn_nocheck(s.p, s.n);
}

static const char *core_type(const json_t *v)
{
	switch (json_typeof(v)) {
	case JSON_OBJECT: return "map";
	case JSON_ARRAY: return "seq";
	case JSON_INTEGER: return "int";
	case JSON_REAL: return "float";
	case JSON_TRUE:
	case JSON_FALSE: return "bool";
	case JSON_NULL: return "null";
	case JSON_STRING: break;
	}
	return "str";
}

/* A tag may only say what the value is anyway; `!` and `!!str` make a string of a plain scalar. */
static bool tag_fits(const char *tag, const json_t *v)
{
	if (!tag)
		return true;
	if (strcmp(tag, "!") == 0)
		return true;
	size_t n = strlen(CORE_TAG);
	return strncmp(tag, CORE_TAG, n) == 0 && strcmp(tag + n, core_type(v)) == 0;
}

static bool tag_means_string(const char *tag)
{
	return tag && (strcmp(tag, "!") == 0 || strcmp(tag, CORE_TAG "str") == 0);
}

/* --- events --- */

static int add(struct builder *b, json_t *take_value)
{
	struct frame *f = &b->stack[b->depth - 1];
	if (!take_value)
		return err_oom(b->err);
	if (json_is_array(f->into))
		return json_array_append_new(f->into, take_value) < 0 ? err_oom(b->err) : 0;
	int r = json_object_setn_new_nocheck(f->into, f->key, f->key_len, take_value);
	free(take_ptr(f->key));
	return r < 0 ? err_oom(b->err) : 0;
}

static bool key_is_due(const struct builder *b)
{
	const struct frame *f = &b->stack[b->depth - 1];
	return json_is_object(f->into) && !f->key;
}

static int take_key(struct builder *b, const yaml_event_t *e)
{
	struct frame *f = &b->stack[b->depth - 1];
	struct str s = {(const char *)e->data.scalar.value, e->data.scalar.length};
	const char *tag = (const char *)e->data.scalar.tag;
	if (tag && !tag_means_string(tag))
		return bad_at(b, e->start_mark, "a key cannot have this tag");
	if (json_object_getn(f->into, s.p, s.n))
		return bad_at(b, e->start_mark, "this key is already there");
	f->key = malloc(s.n + 1);
	if (!f->key)
		return err_oom(b->err);
	memcpy(f->key, s.p, s.n);
	f->key[s.n] = '\0';
	f->key_len = s.n;
	return 0;
}

static int on_scalar(struct builder *b, const yaml_event_t *e)
{
	const char *tag = (const char *)e->data.scalar.tag;
	struct str s = {(const char *)e->data.scalar.value, e->data.scalar.length};
	if (e->data.scalar.anchor)
		return bad_at(b, e->start_mark, "anchors are not allowed");
	if (key_is_due(b))
		return take_key(b, e);
	bool text =
		tag_means_string(tag) || (!tag && e->data.scalar.style != YAML_PLAIN_SCALAR_STYLE);
	_cleanup_(cleanup_json_decref) json_t *v =
		text ? json_stringn_nocheck(s.p, s.n) : plain_value(s);
	if (v && !tag_fits(tag, v))
		return bad_at(b, e->start_mark, "the value does not fit its tag");
	return add(b, take_ptr(v));
}

static int on_start(
	struct builder *b, const yaml_event_t *e, json_t *take_v, const char *tag, bool anchor)
{
	_cleanup_(cleanup_json_decref) json_t *v = take_v;
	if (!v)
		return err_oom(b->err);
	if (anchor)
		return bad_at(b, e->start_mark, "anchors are not allowed");
	if (!tag_fits(tag, v))
		return bad_at(b, e->start_mark, "the value does not fit its tag");
	if (key_is_due(b))
		return bad_at(b, e->start_mark, "a key must be a scalar");
	if (b->depth == ARRAY_LEN(b->stack))
		return bad_at(b, e->start_mark, "nested too deeply");
	json_t *into = v;
	int r = add(b, take_ptr(v));
	if (r == 0)
		b->stack[b->depth++] = (struct frame){.into = into};
	return r;
}

static int on_event(struct builder *b, const yaml_event_t *e)
{
	switch (e->type) {
	case YAML_ALIAS_EVENT: return bad_at(b, e->start_mark, "aliases are not allowed");
	case YAML_SCALAR_EVENT: return on_scalar(b, e);
	case YAML_SEQUENCE_START_EVENT:
		return on_start(b, e, json_array(), (const char *)e->data.sequence_start.tag,
			e->data.sequence_start.anchor);
	case YAML_MAPPING_START_EVENT:
		return on_start(b, e, json_object(), (const char *)e->data.mapping_start.tag,
			e->data.mapping_start.anchor);
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT: b->depth--; return 0;
	case YAML_NO_EVENT:
	case YAML_STREAM_START_EVENT:
	case YAML_STREAM_END_EVENT:
	case YAML_DOCUMENT_START_EVENT:
	case YAML_DOCUMENT_END_EVENT: break;
	}
	return 0;
}

/* What libyaml found wrong. Its reader knows the offset only. */
static int bad_text(struct builder *b, struct str text)
{
	const yaml_parser_t *p = &b->parser;
	yaml_mark_t at = p->problem_mark;
	if (p->error == YAML_MEMORY_ERROR)
		return err_oom(b->err);
	if (p->error == YAML_READER_ERROR) {
		at = (yaml_mark_t){0};
		for (size_t i = 0; i < MIN(p->problem_offset, text.n); i++) {
			bool newline = text.p[i] == '\n';
			at.line += newline;
			at.column =
				newline ? 0
					: at.column + (((unsigned char)text.p[i] & 0xC0) != 0x80);
		}
	}
	return bad_at(b, at, p->problem ? p->problem : "this is not YAML");
}

static int read_all(struct builder *b, struct str text)
{
	for (;;) {
		yaml_event_t e;
		if (!yaml_parser_parse(&b->parser, &e))
			return bad_text(b, text);
		bool last = e.type == YAML_STREAM_END_EVENT;
		int r = on_event(b, &e);
		yaml_event_delete(&e);
		if (r < 0 || last)
			return r;
	}
}

static int check_size(struct str text, size_t max_bytes, struct err *err)
{
	static const char tag[] = "%TAG";
	unsigned tags = 0;
	if (text.n > max_bytes)
		return err_set(err, ERR_LIMIT,
			"the YAML text has %zu bytes; at most %zu are allowed", text.n, max_bytes);
	for (const char *p = text.p, *end = text.p + text.n;
		(p = memmem(p, (size_t)(end - p), tag, sizeof(tag) - 1)); p++)
		tags++;
	if (tags > YAML_TAGS_MAX)
		return err_set(err, ERR_LIMIT,
			"the YAML text has %u %%TAG directives; at most %d are allowed", tags,
			YAML_TAGS_MAX);
	return 0;
}

/* One document is its value, several stay the list. */
static void hand_out(json_t *take_list, json_t **ret, unsigned *ret_documents)
{
	size_t n = json_array_size(take_list);
	*ret_documents = (unsigned)n;
	if (n > 1) {
		*ret = take_list;
		return;
	}
	*ret = n ? json_incref(json_array_get(take_list, 0)) : json_null();
	json_decref(take_list);
}

int yaml_parse(
	struct str text, size_t max_bytes, json_t **ret, unsigned *ret_documents, struct err *err)
{
	struct builder b = {.err = err, .depth = 1};
	if (!text.p)
		text.p = "";
	int r = check_size(text, max_bytes, err);
	if (r < 0)
		return r;
	_cleanup_(cleanup_json_decref) json_t *documents = json_array();
	if (!documents || !yaml_parser_initialize(&b.parser))
		return err_oom(err);
	b.stack[0].into = documents;
	yaml_parser_set_encoding(&b.parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&b.parser, (const unsigned char *)text.p, text.n);
	r = read_all(&b, text);
	for (unsigned i = 0; i < b.depth; i++)
		free(b.stack[i].key);
	yaml_parser_delete(&b.parser);
	if (r == 0)
		hand_out(take_ptr(documents), ret, ret_documents);
	return r;
}
