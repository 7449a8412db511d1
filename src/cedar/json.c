/*
 * The JSON reader (RFC 8259): recursive descent with a limited depth.
 *
 * What it must never do: accept bytes that are not UTF-8, a lone surrogate, or a key twice; lose
 * the spelling of a number.
 */
#include "cedar/json.h"
#include "cedar/utf8.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reader {
	struct ced_arena *arena;
	const char *text;
	size_t n, at;
	uint32_t depth, depth_max;
	const char *depth_name;
	struct cedar_error *err;
	/* Members whose object is still open; each object moves its own to the arena. */
	struct ced_member *open;
	size_t open_count, open_capacity;
};

/* ORDER JSON */
static const char *const kind_name[] = {
	"null", "a boolean", "a number", "a string", "an array", "an object"};

const char *ced_json_kind_name(enum ced_json_kind kind)
{
	return kind_name[kind];
}

/* Lines and columns are found when there is an error to place: see ced_place(). */
static struct ced_pos pos_at(size_t from, size_t to)
{
	return (struct ced_pos){
		.offset = (uint32_t)from, .length = (uint32_t)(to - from), .line = CED_LINE_LATER};
}

static int fail_here(const struct reader *r, const char *expected)
{
	size_t to = r->at < r->n ? r->at + 1 : r->at;
	return ced_fail(r->err, CEDAR_E_SYNTAX, pos_at(r->at, to), "JSON: expected %s", expected);
}

static void skip_space(struct reader *r)
{
	for (; r->at < r->n; r->at++) {
		char c = r->text[r->at];
		if (c != ' ' && c != '\t' && c != '\r' && c != '\n')
			return;
	}
}

static char peek(const struct reader *r)
{
	return r->at < r->n ? r->text[r->at] : '\0';
}

static bool take_word(struct reader *r, const char *word)
{
	size_t n = strlen(word);
	if (r->n - r->at < n || memcmp(r->text + r->at, word, n) != 0)
		return false;
	r->at += n;
	return true;
}

static bool take_digits(struct reader *r)
{
	size_t from = r->at;
	while (peek(r) >= '0' && peek(r) <= '9')
		r->at++;
	return r->at > from;
}

static int read_number(struct reader *r, struct ced_json *ret)
{
	size_t from = r->at;
	if (peek(r) == '-')
		r->at++;
	if (peek(r) == '0')
		r->at++;
	else if (!take_digits(r))
		return fail_here(r, "a value");
	if (peek(r) == '.') {
		r->at++;
		if (!take_digits(r))
			return fail_here(r, "a digit after the point");
	}
	if (peek(r) == 'e' || peek(r) == 'E') {
		r->at++;
		if (peek(r) == '+' || peek(r) == '-')
			r->at++;
		if (!take_digits(r))
			return fail_here(r, "a digit of the exponent");
	}
	ret->kind = CED_JSON_NUMBER;
	ret->u.text = (struct ced_slice){r->text + from, r->at - from};
	return 0;
}

/* The four digits at `at`; -1: not four hexadecimal digits. */
static int32_t hex4(const struct reader *r, size_t at)
{
	int32_t v = 0;
	if (r->n - at < 4)
		return -1;
	for (size_t i = at; i < at + 4; i++) {
		int digit = ced_hex_digit(r->text[i]);
		if (digit < 0)
			return -1;
		v = v << 4 | digit;
	}
	return v;
}

/* After "\u" at `at`: the character, with a second escape when it is a pair. -1: none. */
static int32_t unicode_escape(const struct reader *r, size_t *at)
{
	int32_t high = hex4(r, *at);
	if (high < 0)
		return -1;
	*at += 4;
	if (high < 0xd800 || high > 0xdfff)
		return high;
	if (high > 0xdbff || r->n - *at < 6 || r->text[*at] != '\\' || r->text[*at + 1] != 'u')
		return -1;
	int32_t low = hex4(r, *at + 2);
	if (low < 0xdc00 || low > 0xdfff)
		return -1;
	*at += 6;
	return 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
}

/* One escape at the backslash `at`, into `to`. Returns the bytes written, 0: not an escape. */
static size_t unescape_one(const struct reader *r, size_t *at, char *to)
{
	static const char from_to[][2] = {{'"', '"'}, {'\\', '\\'}, {'/', '/'}, {'b', '\b'},
		{'f', '\f'}, {'n', '\n'}, {'r', '\r'}, {'t', '\t'}};
	char c = *at + 1 < r->n ? r->text[*at + 1] : '\0';
	*at += 2;
	for (size_t i = 0; i < sizeof(from_to) / sizeof(from_to[0]); i++)
		if (c == from_to[i][0]) {
			*to = from_to[i][1];
			return 1;
		}
	int32_t character = c == 'u' ? unicode_escape(r, at) : -1;
	return character < 0 ? 0 : ced_utf8_encode((uint32_t)character, to);
}

/* The string from `from` to before its closing quote at `end`, which has escapes. */
static int unescape(struct reader *r, size_t from, size_t end, struct ced_slice *ret)
{
	char *to = ced_arena_alloc(r->arena, end - from);
	size_t n = 0;
	if (!to)
		return ced_arena_fail(r->arena, r->err, pos_at(from, end));
	for (size_t at = from; at < end;) {
		if (r->text[at] != '\\') {
			to[n++] = r->text[at++];
			continue;
		}
		size_t start = at, wrote = unescape_one(r, &at, to + n);
		if (!wrote)
			return ced_fail(r->err, CEDAR_E_SYNTAX, pos_at(start, start + 2),
				"JSON: not an escape of one character");
		n += wrote;
	}
	*ret = (struct ced_slice){to, n};
	return 0;
}

/* At the opening quote. */
static int read_string(struct reader *r, struct ced_slice *ret)
{
	size_t from = r->at + 1, i = from;
	bool escapes = false;
	for (; i < r->n && r->text[i] != '"'; i++) {
		if ((unsigned char)r->text[i] < 0x20) {
			r->at = i;
			return fail_here(r, "control characters in strings to be escaped");
		}
		if (r->text[i] == '\\') {
			escapes = true;
			i++;
		}
	}
	if (i >= r->n)
		return ced_fail(r->err, CEDAR_E_SYNTAX, pos_at(r->at, r->at + 1),
			"JSON: this string is not closed");
	r->at = i + 1;
	if (escapes)
		return unescape(r, from, i, ret);
	*ret = (struct ced_slice){r->text + from, i - from};
	return 0;
}

static int read_value(struct reader *r, struct ced_json *ret);

static int push(struct reader *r, const struct ced_member *m)
{
	if (r->open_count == r->open_capacity) {
		size_t capacity = r->open_capacity ? r->open_capacity * 2 : 32;
		struct ced_member *open = realloc(r->open, capacity * sizeof(*open));
		if (!open)
			return ced_fail_memory(r->err);
		r->open = open;
		r->open_capacity = capacity;
	}
	r->open[r->open_count++] = *m;
	return 0;
}

static int read_key(struct reader *r, struct ced_member *m)
{
	size_t from = r->at;
	if (peek(r) != '"')
		return fail_here(r, "a key in quotes");
	struct ced_pos start = pos_at(from, from);
	int code = read_string(r, &m->key);
	if (code < 0)
		return code;
	m->pos = start;
	m->pos.length = (uint32_t)(r->at - from);
	skip_space(r);
	if (peek(r) != ':')
		return fail_here(r, "':' after a key");
	r->at++;
	return 0;
}

/* Members or items up to `close`, onto the stack. */
static int read_list(struct reader *r, char close, bool keys)
{
	const char *want = keys ? "',' or '}'" : "',' or ']'";
	r->at++;
	skip_space(r);
	if (peek(r) == close) {
		r->at++;
		return 0;
	}
	for (;;) {
		struct ced_member m = {0};
		skip_space(r);
		int code = keys ? read_key(r, &m) : 0;
		if (code == 0)
			code = read_value(r, &m.value);
		if (code == 0)
			code = push(r, &m);
		if (code < 0)
			return code;
		skip_space(r);
		if (peek(r) == close) {
			r->at++;
			return 0;
		}
		if (peek(r) != ',')
			return fail_here(r, want);
		r->at++;
	}
}

static int key_order(const void *a, const void *b)
{
	const struct ced_member *x = *(const struct ced_member *const *)a;
	const struct ced_member *y = *(const struct ced_member *const *)b;
	size_t n = x->key.n < y->key.n ? x->key.n : y->key.n;
	int r = n ? memcmp(x->key.p, y->key.p, n) : 0;
	if (r == 0)
		r = (x->key.n > y->key.n) - (x->key.n < y->key.n);
	return r ? r : (x > y) - (x < y);
}

static bool same_key(const struct ced_member *a, const struct ced_member *b)
{
	return a->key.n == b->key.n && (!a->key.n || memcmp(a->key.p, b->key.p, a->key.n) == 0);
}

/* The second of two members with one key, if any. -1: no memory. */
static int find_twice(const struct ced_member *m, size_t n, const struct ced_member **ret)
{
	if (n <= 16) {
		for (size_t i = 1; i < n; i++)
			for (size_t j = 0; j < i; j++)
				if (same_key(&m[i], &m[j]))
					*ret = &m[i];
		return 0;
	}
	const struct ced_member **sorted = malloc(n * sizeof(*sorted));
	if (!sorted)
		return -1;
	for (size_t i = 0; i < n; i++)
		sorted[i] = &m[i];
	qsort(sorted, n, sizeof(*sorted), key_order);
	for (size_t i = 1; i < n; i++)
		if (same_key(sorted[i - 1], sorted[i]))
			*ret = sorted[i];
	free(sorted);
	return 0;
}

static int close_object(struct reader *r, size_t base, struct ced_json *ret)
{
	size_t n = r->open_count - base;
	const struct ced_member *twice = NULL, *first = n ? &r->open[base] : NULL;
	if (find_twice(first, n, &twice) < 0)
		return ced_fail_memory(r->err);
	if (twice)
		return ced_fail(r->err, CEDAR_E_DUPLICATE, twice->pos,
			"JSON: the key \"%.*s\" appears twice in one object",
			(int)(twice->key.n < 100 ? twice->key.n : 100), twice->key.p);
	ret->u.members = ced_arena_copy(r->arena, first, n * sizeof(*first));
	return ret->u.members ? 0 : ced_arena_fail(r->arena, r->err, ret->pos);
}

static int close_array(struct reader *r, size_t base, struct ced_json *ret)
{
	size_t n = r->open_count - base;
	struct ced_json *items = ced_new_array(r->arena, n, struct ced_json);
	if (!items)
		return ced_arena_fail(r->arena, r->err, ret->pos);
	for (size_t i = 0; i < n; i++)
		items[i] = r->open[base + i].value;
	ret->u.items = items;
	return 0;
}

static int read_nested(struct reader *r, struct ced_json *ret)
{
	bool keys = peek(r) == '{';
	size_t base = r->open_count;
	if (r->depth == r->depth_max)
		return ced_fail_limit(
			r->err, pos_at(r->at, r->at + 1), r->depth_name, r->depth_max);
	r->depth++;
	int code = read_list(r, keys ? '}' : ']', keys);
	r->depth--;
	if (code < 0)
		return code;
	ret->kind = keys ? CED_JSON_OBJECT : CED_JSON_ARRAY;
	ret->count = (uint32_t)(r->open_count - base);
	code = keys ? close_object(r, base, ret) : close_array(r, base, ret);
	r->open_count = base;
	return code;
}

static int read_bare(struct reader *r, struct ced_json *ret)
{
	if (take_word(r, "null")) {
		ret->kind = CED_JSON_NULL;
	} else if (take_word(r, "true") || take_word(r, "false")) {
		ret->kind = CED_JSON_BOOL;
		ret->boolean = r->text[r->at - 2] == 'u';
	} else {
		return read_number(r, ret);
	}
	return 0;
}

static int read_value(struct reader *r, struct ced_json *ret)
{
	int code;
	skip_space(r);
	*ret = (struct ced_json){.pos = pos_at(r->at, r->at)};
	switch (peek(r)) {
	case '{':
	case '[': code = read_nested(r, ret); break;
	case '"':
		ret->kind = CED_JSON_STRING;
		code = read_string(r, &ret->u.text);
		break;
	default: code = read_bare(r, ret); break;
	}
	ret->pos.length = (uint32_t)r->at - ret->pos.offset;
	return code;
}

static int read_document(struct reader *r, struct ced_json *ret)
{
	struct ced_json j;
	if (r->n > UINT32_MAX)
		return ced_fail_limit(r->err, (struct ced_pos){0}, "text_bytes", UINT32_MAX);
	r->at = ced_utf8_valid(r->text, r->n);
	if (r->at < r->n)
		return fail_here(r, "UTF-8");
	r->at = 0;
	int code = read_value(r, &j);
	if (code < 0)
		return code;
	skip_space(r);
	if (r->at < r->n)
		return fail_here(r, "nothing after the value");
	*ret = j;
	return 0;
}

int ced_json_read(struct ced_arena *arena, const char *text, size_t n, uint32_t depth,
	const char *depth_name, struct ced_json *ret, struct cedar_error *err)
{
	struct reader r = {.arena = arena,
		.text = text,
		.n = n,
		.depth_max = depth,
		.depth_name = depth_name,
		.err = err};
	int code = read_document(&r, ret);
	free(r.open);
	if (code < 0)
		ced_place(err, text, n);
	return code;
}

/* Most comparisons end at the first byte. */
bool ced_slice_is(struct ced_slice s, const char *text)
{
	for (size_t i = 0; i < s.n; i++)
		if (!text[i] || text[i] != s.p[i])
			return false;
	return !text[s.n];
}

const struct ced_json *ced_json_get(const struct ced_json *object, const char *key)
{
	if (object->kind != CED_JSON_OBJECT)
		return NULL;
	for (uint32_t i = 0; i < object->count; i++)
		if (ced_slice_is(object->u.members[i].key, key))
			return &object->u.members[i].value;
	return NULL;
}

int ced_json_long(const struct ced_json *j, int64_t *ret, struct cedar_error *err)
{
	if (j->kind != CED_JSON_NUMBER)
		return ced_fail(err, CEDAR_E_SYNTAX, j->pos, "expected an integer, found %s",
			ced_json_kind_name(j->kind));
	struct ced_slice s = j->u.text;
	bool negative = s.p[0] == '-';
	int64_t v = 0;
	bool fits = true;
	for (size_t i = negative; i < s.n; i++) {
		if (s.p[i] < '0' || s.p[i] > '9')
			return ced_fail(err, CEDAR_E_VALUE, j->pos,
				"numbers are integers without point and exponent");
		int digit = negative ? -(s.p[i] - '0') : s.p[i] - '0';
		fits &= !__builtin_mul_overflow(v, 10, &v) && !__builtin_add_overflow(v, digit, &v);
	}
	if (!fits)
		return ced_fail(
			err, CEDAR_E_VALUE, j->pos, "this number is outside of 64 bits with sign");
	if (negative && v == 0)
		return ced_fail(err, CEDAR_E_VALUE, j->pos, "-0 is not an integer of Cedar");
	*ret = v;
	return 0;
}

static bool listed(const char *const *names, struct ced_slice key)
{
	for (; names && *names; names++)
		if (ced_slice_is(key, *names))
			return true;
	return false;
}

int ced_json_members(const struct ced_json *j, const char *what, const char *const *required,
	const char *const *optional, struct cedar_error *err)
{
	if (j->kind != CED_JSON_OBJECT)
		return ced_fail(err, CEDAR_E_SYNTAX, j->pos, "%s must be an object, found %s", what,
			ced_json_kind_name(j->kind));
	for (uint32_t i = 0; i < j->count; i++) {
		const struct ced_member *m = &j->u.members[i];
		if (!listed(required, m->key) && !listed(optional, m->key))
			return ced_fail(err, CEDAR_E_SYNTAX, m->pos, "%s has no member \"%.*s\"",
				what, (int)(m->key.n < 100 ? m->key.n : 100), m->key.p);
	}
	for (; required && *required; required++)
		if (!ced_json_get(j, *required))
			return ced_fail(err, CEDAR_E_SYNTAX, j->pos, "%s lacks its member \"%s\"",
				what, *required);
	return 0;
}
