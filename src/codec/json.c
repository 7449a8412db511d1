/* Strict JSON: see json.h. A recursive descent whose depth is bounded; every byte is looked at
 * once. */
#include "codec/json.h"

#include "base/limits.h"
#include "codec/canonical.h"

#include <errno.h>
#include <math.h>

enum { NUMBER_BYTES_MAX = 1024 };

struct reader {
	const char *start, *p, *end;
	unsigned depth;
	struct buf scratch; /* a string that holds escapes */
	struct err *err;
};

static int bad_at(struct reader *r, const char *at, const char *what)
{
	unsigned line = 1;
	const char *line_start = r->start;
	for (const char *q = r->start; q < at; q++)
		if (*q == '\n') {
			line++;
			line_start = q + 1;
		}
	return err_set(r->err, ERR_PARSE, "JSON, line %u, column %zu: %s", line,
		(size_t)(at - line_start) + 1, what);
}

static int bad(struct reader *r, const char *what)
{
	return bad_at(r, r->p, r->p == r->end ? "the text ends too early" : what);
}

static void skip_blanks(struct reader *r)
{
	while (r->p < r->end && (*r->p == ' ' || *r->p == '\n' || *r->p == '\t' || *r->p == '\r'))
		r->p++;
}

static bool eat(struct reader *r, char c)
{
	if (r->p == r->end || *r->p != c)
		return false;
	r->p++;
	return true;
}

/* --- strings
 * ---------------------------------------------------------------------------------------- */

static int hex4(struct reader *r, uint32_t *ret)
{
	uint32_t v = 0;
	for (int i = 0; i < 4; i++, r->p++) {
		if (r->p == r->end)
			return bad(r, "");
		char c = *r->p;
		uint32_t d = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
			     : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a' + 10)
			     : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A' + 10)
						    : 16;
		if (d == 16)
			return bad(r, "four hexadecimal digits belong after \\u");
		v = v << 4 | d;
	}
	*ret = v;
	return 0;
}

/* After "\u": one scalar value, from a pair of escapes where it takes two. */
static int unicode_escape(struct reader *r)
{
	uint32_t c = 0, low = 0;
	const char *at = r->p - 2;
	int e = hex4(r, &c);
	if (e < 0)
		return e;
	if (c >= 0xD800 && c <= 0xDBFF) {
		if (!eat(r, '\\') || !eat(r, 'u'))
			return bad_at(r, at, "half of a surrogate pair");
		if ((e = hex4(r, &low)) < 0)
			return e;
		if (low < 0xDC00 || low > 0xDFFF)
			return bad_at(r, at, "half of a surrogate pair");
		c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
	} else if (c >= 0xDC00 && c <= 0xDFFF) {
		return bad_at(r, at, "half of a surrogate pair");
	}
	utf8_put(&r->scratch, c);
	return 0;
}

/* After the backslash. */
static int escape(struct reader *r)
{
	static const char letters[] = "\"\\/bfnrt", means[] = "\"\\/\b\f\n\r\t";
	if (r->p == r->end)
		return bad(r, "");
	const char *found = memchr(letters, *r->p, sizeof(letters) - 1);
	if (found) {
		buf_putc(&r->scratch, means[found - letters]);
		r->p++;
		return 0;
	}
	if (!eat(r, 'u'))
		return bad(r, "no such escape");
	return unicode_escape(r);
}

/* A run up to the next quote, backslash or control character, checked to be UTF-8. */
static int plain_run(struct reader *r, struct str *ret)
{
	const char *from = r->p;
	bool ascii = true;
	while (r->p < r->end && *r->p != '"' && *r->p != '\\' && (unsigned char)*r->p >= 0x20) {
		ascii &= (unsigned char)*r->p < 0x80;
		r->p++;
	}
	*ret = (struct str){from, (size_t)(r->p - from)};
	size_t good = ascii ? ret->n : utf8_error_at(from, ret->n);
	return good == ret->n ? 0 : bad_at(r, from + good, "the bytes are not UTF-8");
}

/* After the opening quote. The result is in the text itself or in the scratch buffer, until the
 * next string is read. */
static int read_string(struct reader *r, struct str *ret)
{
	struct str run;
	int e = plain_run(r, &run);
	if (e < 0)
		return e;
	if (eat(r, '"')) {
		*ret = run;
		return 0;
	}
	buf_clear(&r->scratch);
	buf_put(&r->scratch, run.p, run.n);
	while (!eat(r, '"')) {
		if (!eat(r, '\\'))
			return bad(r, "a control character in a string must be escaped");
		if ((e = escape(r)) < 0 || (e = plain_run(r, &run)) < 0)
			return e;
		buf_put(&r->scratch, run.p, run.n);
	}
	*ret = (struct str){buf_str(&r->scratch), r->scratch.len};
	return r->scratch.failed ? err_oom(r->err) : 0;
}

/* --- numbers
 * ---------------------------------------------------------------------------------------- */

static bool digits(struct reader *r)
{
	const char *from = r->p;
	while (r->p < r->end && *r->p >= '0' && *r->p <= '9')
		r->p++;
	return r->p > from;
}

/* RFC 8259 §6; *ret_real says whether a fraction or an exponent was there. */
static int scan_number(struct reader *r, bool *ret_real)
{
	*ret_real = false;
	(void)eat(r, '-');
	if (!eat(r, '0') && !digits(r))
		return bad(r, "a digit belongs here");
	if (eat(r, '.')) {
		*ret_real = true;
		if (!digits(r))
			return bad(r, "a digit belongs after the point");
	}
	if (eat(r, 'e') || eat(r, 'E')) {
		*ret_real = true;
		if (!eat(r, '+'))
			(void)eat(r, '-');
		if (!digits(r))
			return bad(r, "a digit belongs in the exponent");
	}
	return 0;
}

/* RFC 8785 writes reals up to 10^21 without exponent; such a text stands for exactly one double. */
static bool is_canonical_double(const char *text)
{
	_cleanup_buf_ struct buf b = buf_init(64);
	double d = strtod(text, NULL);
	if (!isfinite(d))
		return false;
	canonical_number(&b, d);
	return strcmp(buf_str(&b), text) == 0;
}

static int real_of(struct reader *r, const char *at, const char *text, json_t **ret)
{
	double d = strtod(text, NULL);
	if (!isfinite(d))
		return bad_at(r, at, "the number is too large for a double");
	*ret = json_real(d);
	return *ret ? 0 : err_oom(r->err);
}

static int read_number(struct reader *r, json_t **ret)
{
	char text[NUMBER_BYTES_MAX + 1];
	const char *from = r->p;
	bool real;
	int e = scan_number(r, &real);
	if (e < 0)
		return e;
	size_t n = (size_t)(r->p - from);
	if (n > NUMBER_BYTES_MAX)
		return bad_at(r, from, "the number has more than 1024 characters");
	memcpy(text, from, n);
	text[n] = '\0';
	if (real)
		return real_of(r, from, text, ret);
	errno = 0;
	long long i = strtoll(text, NULL, 10);
	if (errno == ERANGE)
		return is_canonical_double(text)
			       ? real_of(r, from, text, ret)
			       : bad_at(r, from, "the integer does not fit 64 bits");
	*ret = json_integer(i);
	return *ret ? 0 : err_oom(r->err);
}

/* --- values
 * ----------------------------------------------------------------------------------------- */

static int read_value(struct reader *r, json_t **ret);

static int read_member(struct reader *r, json_t *obj)
{
	struct str key;
	json_t *value = NULL;
	const char *at = r->p;
	if (!eat(r, '"'))
		return bad(r, "a name in quotes belongs here");
	int e = read_string(r, &key);
	if (e < 0)
		return e;
	if (json_object_getn(obj, key.p, key.n))
		return bad_at(r, at, "this name is already there");
	/* The scratch buffer is used again by the value, so an escaped name moves out of it first.
	 */
	_cleanup_free_ char *copy =
		key.p == buf_str(&r->scratch) ? buf_take(&r->scratch, &key.n) : NULL;
	key.p = copy ? copy : key.p;
	skip_blanks(r);
	if (!eat(r, ':'))
		return bad(r, "a colon belongs here");
	if ((e = read_value(r, &value)) < 0)
		return e;
	return json_object_setn_new_nocheck(obj, key.p, key.n, value) < 0 ? err_oom(r->err) : 0;
}

static int read_element(struct reader *r, json_t *list)
{
	json_t *value = NULL;
	int e = read_value(r, &value);
	if (e < 0)
		return e;
	return json_array_append_new(list, value) < 0 ? err_oom(r->err) : 0;
}

/* What stands between brackets, with commas between and none at the end. */
static int read_list(
	struct reader *r, json_t *into, char close, int (*read_one)(struct reader *, json_t *))
{
	skip_blanks(r);
	if (eat(r, close))
		return 0;
	for (;;) {
		skip_blanks(r);
		int e = read_one(r, into);
		if (e < 0)
			return e;
		skip_blanks(r);
		if (eat(r, close))
			return 0;
		if (!eat(r, ','))
			return bad(r, close == '}' ? "a comma or } belongs here"
						   : "a comma or ] belongs here");
	}
}

static int read_container(struct reader *r, json_t **ret)
{
	bool object = *r->p == '{';
	if (r->depth == LIMIT_JSON_DEPTH)
		return bad(r, "nested too deeply");
	_cleanup_(cleanup_json_decref) json_t *v = object ? json_object() : json_array();
	if (!v)
		return err_oom(r->err);
	r->p++;
	r->depth++;
	int e = object ? read_list(r, v, '}', read_member) : read_list(r, v, ']', read_element);
	r->depth--;
	if (e == 0)
		*ret = take_ptr(v);
	return e;
}

static int read_text(struct reader *r, json_t **ret)
{
	struct str s = {0};
	r->p++;
	int e = read_string(r, &s);
	if (e < 0)
		return e;
	*ret = json_stringn_nocheck(s.p, s.n);
	return *ret ? 0 : err_oom(r->err);
}

static bool eat_word(struct reader *r, const char *word)
{
	size_t n = strlen(word);
	if ((size_t)(r->end - r->p) < n || memcmp(r->p, word, n) != 0)
		return false;
	r->p += n;
	return true;
}

static int read_value(struct reader *r, json_t **ret)
{
	skip_blanks(r);
	if (r->p == r->end)
		return bad(r, "");
	switch (*r->p) {
	case '{':
	case '[': return read_container(r, ret);
	case '"': return read_text(r, ret);
	case 't':
		if (!eat_word(r, "true"))
			break;
		*ret = json_true();
		return 0;
	case 'f':
		if (!eat_word(r, "false"))
			break;
		*ret = json_false();
		return 0;
	case 'n':
		if (!eat_word(r, "null"))
			break;
		*ret = json_null();
		return 0;
	default:
		if (*r->p == '-' || (*r->p >= '0' && *r->p <= '9'))
			return read_number(r, ret);
		break;
	}
	return bad(r, "no value starts like this");
}

int json_parse(struct str text, size_t max_bytes, json_t **ret, struct err *err)
{
	if (text.n > max_bytes)
		return err_set(err, ERR_LIMIT,
			"the JSON text has %zu bytes; at most %zu are allowed", text.n, max_bytes);
	struct reader r = {.start = text.p,
		.p = text.p,
		.end = text.p + text.n,
		.scratch = buf_init(max_bytes),
		.err = err};
	_cleanup_(cleanup_json_decref) json_t *v = NULL;
	int e = read_value(&r, &v);
	if (e == 0) {
		skip_blanks(&r);
		if (r.p < r.end)
			e = bad(&r, "something follows the value");
	}
	buf_done(&r.scratch);
	if (e == 0)
		*ret = take_ptr(v);
	return e;
}
