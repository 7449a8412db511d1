/*
 * TOML: see toml.h. A recursive descent whose depth is bounded; every byte is looked at once.
 *
 * What may be added to a table depends on how it came to be (TOML 1.0, "Table" and "Keys"): a
 * header may define a table once (`defined`); a key with dots may go on only through tables that
 * such keys made below the same header (`dotted_in` holds the header's number); what is written
 * inline is complete (`closed`).
 */
#include "codec/toml.h"

#include "base/limits.h"
#include "codec/toml_scalar.h"

enum { CHUNK_BYTES = 8192 };

#define TEXT_OF_(x) #x
#define TEXT_OF(x) TEXT_OF_(x)

/* Memory of the tree: it only grows and is freed at once. */
struct chunk {
	struct chunk *before;
	size_t used, size;
	_Alignas(max_align_t) char bytes[];
};

struct document {
	struct toml root; /* first, so that the root's address is the document's */
	struct chunk *chunks;
};

struct reader {
	const char *start, *p, *end;
	const char *counted, *line_start; /* lines are counted up to here */
	unsigned line;
	unsigned section; /* number of the header that keys stand below, from 1 */
	struct document *doc;
	struct buf scratch; /* a string being read */
	struct err *err;
};

/* --- places and errors --- */

static unsigned line_of(struct reader *r, const char *at, unsigned *ret_column)
{
	if (at < r->counted) {
		r->counted = r->line_start = r->start;
		r->line = 1;
	}
	for (; r->counted < at; r->counted++)
		if (*r->counted == '\n') {
			r->line++;
			r->line_start = r->counted + 1;
		}
	*ret_column = (unsigned)(at - r->line_start) + 1;
	return r->line;
}

static int bad_at(struct reader *r, const char *at, const char *what)
{
	unsigned column, line = line_of(r, at, &column);
	return err_set(r->err, ERR_PARSE, "TOML, line %u, column %u: %s", line, column, what);
}

static int bad(struct reader *r, const char *what)
{
	return bad_at(r, r->p, r->p == r->end ? "the text ends too early" : what);
}

/* --- the tree --- */

static void *arena(struct document *doc, size_t n)
{
	const size_t align = _Alignof(max_align_t);
	n = (n + align - 1) / align * align;
	struct chunk *c = doc->chunks;
	if (!c || c->size - c->used < n) {
		size_t size = MAX(n, (size_t)CHUNK_BYTES);
		c = malloc(sizeof(*c) + size);
		if (!c)
			return NULL;
		*c = (struct chunk){.before = doc->chunks, .size = size};
		doc->chunks = c;
	}
	void *p = c->bytes + c->used;
	c->used += n;
	return p;
}

static int keep_text(struct reader *r, struct str text, struct str *ret)
{
	char *p = arena(r->doc, text.n + 1);
	if (!p)
		return err_oom(r->err);
	if (text.n)
		memcpy(p, text.p, text.n);
	p[text.n] = '\0';
	*ret = (struct str){p, text.n};
	return 0;
}

static uint32_t hash_of(struct str key)
{
	uint32_t h = 2166136261u;
	for (size_t i = 0; i < key.n; i++)
		h = (h ^ (unsigned char)key.p[i]) * 16777619u;
	return h;
}

static struct toml *find(const struct toml *table, struct str key)
{
	uint32_t h = hash_of(key);
	for (struct toml *t = table->list.first; t; t = t->next)
		if (t->hash == h && str_eq(t->key, key))
			return t;
	return NULL;
}

const struct toml *toml_get(const struct toml *table, struct str key)
{
	return find(table, key);
}

/* A value at the end of a table or array; an element has no key. */
static int append(
	struct reader *r, struct toml *to, const struct str *key, const char *at, struct toml **ret)
{
	if (to->depth == LIMIT_JSON_DEPTH)
		return bad_at(r, at, "nested too deeply");
	if (key && to->list.n == TOML_KEYS_MAX)
		return bad_at(r, at, "the table has more than " TEXT_OF(TOML_KEYS_MAX) " keys");
	struct toml *t = arena(r->doc, sizeof(*t));
	if (!t)
		return err_oom(r->err);
	*t = (struct toml){.depth = (unsigned char)(to->depth + 1)};
	t->line = line_of(r, at, &t->column);
	if (key) {
		int e = keep_text(r, *key, &t->key);
		if (e < 0)
			return e;
		t->hash = hash_of(*key);
	}
	*(to->list.last ? &to->list.last->next : &to->list.first) = t;
	to->list.last = t;
	to->list.n++;
	*ret = t;
	return 0;
}

void toml_free(struct toml *root)
{
	struct document *doc = (struct document *)root;
	if (!doc)
		return;
	for (struct chunk *c = doc->chunks, *before; c; c = before) {
		before = c->before;
		free(c);
	}
	free(doc);
}

const char *toml_type_name(enum toml_type type)
{
	static const char *const names[TOML_TYPE_MAX_] = {
		[TOML_TABLE] = "table",
		[TOML_ARRAY] = "array",
		[TOML_STRING] = "string",
		[TOML_INTEGER] = "integer",
		[TOML_FLOAT] = "float",
		[TOML_BOOL] = "boolean",
		[TOML_DATETIME] = "date and time with offset",
		[TOML_DATETIME_LOCAL] = "date and time",
		[TOML_DATE_LOCAL] = "date",
		[TOML_TIME_LOCAL] = "time",
	};
	return names[type];
}

/* --- blanks, comments, line ends --- */

static bool eat(struct reader *r, char c)
{
	if (r->p == r->end || *r->p != c)
		return false;
	r->p++;
	return true;
}

static void skip_blanks(struct reader *r)
{
	while (r->p < r->end && (*r->p == ' ' || *r->p == '\t'))
		r->p++;
}

static bool eat_newline(struct reader *r)
{
	if (r->end - r->p >= 2 && r->p[0] == '\r' && r->p[1] == '\n') {
		r->p += 2;
		return true;
	}
	return eat(r, '\n');
}

static bool is_control(char c)
{
	return ((unsigned char)c < 0x20 && c != '\t') || c == 0x7f;
}

/* A comment, up to its line's end. */
static int skip_comment(struct reader *r)
{
	if (!eat(r, '#'))
		return 0;
	while (r->p < r->end && !is_control(*r->p))
		r->p++;
	if (r->p == r->end || *r->p == '\n' || (r->end - r->p >= 2 && memcmp(r->p, "\r\n", 2) == 0))
		return 0;
	return bad(r, "a comment cannot hold control characters");
}

/* Blanks, comments and line ends. */
static int skip_lines(struct reader *r)
{
	do {
		skip_blanks(r);
		int e = skip_comment(r);
		if (e < 0)
			return e;
	} while (eat_newline(r));
	return 0;
}

static int end_of_line(struct reader *r)
{
	skip_blanks(r);
	int e = skip_comment(r);
	if (e < 0)
		return e;
	return r->p == r->end || eat_newline(r) ? 0 : bad(r, "the line should end here");
}

/* --- strings --- */

static int hex_escape(struct reader *r, unsigned digits)
{
	uint32_t c = 0;
	const char *at = r->p - 2;
	for (unsigned i = 0; i < digits; i++, r->p++) {
		static const char hex[] = "0123456789abcdef0123456789ABCDEF";
		const char *found = r->p < r->end ? memchr(hex, *r->p, sizeof(hex) - 1) : NULL;
		if (!found)
			return bad(r,
				"hexadecimal digits belong here: four after \\u, eight after \\U");
		c = c << 4 | (uint32_t)((found - hex) % 16);
	}
	if (c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF))
		return bad_at(r, at, "this is no character of Unicode");
	utf8_put(&r->scratch, c);
	return 0;
}

/* A backslash at the end of a line takes the line end and the blanks after it away. */
static bool line_continues(struct reader *r)
{
	const char *at = r->p;
	skip_blanks(r);
	if (!eat_newline(r)) {
		r->p = at;
		return false;
	}
	do
		skip_blanks(r);
	while (eat_newline(r));
	return true;
}

/* After the backslash. */
static int escape(struct reader *r, bool multi)
{
	static const char letters[] = "btnfr\"\\", means[] = "\b\t\n\f\r\"\\";
	if (multi && line_continues(r))
		return 0;
	if (r->p == r->end)
		return bad(r, "");
	const char *found = memchr(letters, *r->p, sizeof(letters) - 1);
	if (found) {
		buf_putc(&r->scratch, means[found - letters]);
		r->p++;
		return 0;
	}
	if (eat(r, 'u'))
		return hex_escape(r, 4);
	return eat(r, 'U') ? hex_escape(r, 8) : bad(r, "no such escape");
}

/* At quotes: do they end the string? Of a multi-line one the last three of up to five do. */
static bool ends_here(struct reader *r, char quote, bool multi)
{
	size_t n = 0, most = multi ? 5 : 1, few = multi ? 3 : 1;
	while (n < most && eat(r, quote))
		n++;
	bool ends = n >= few;
	for (size_t i = ends ? few : 0; i < n; i++)
		buf_putc(&r->scratch, quote);
	return ends;
}

static void plain_run(struct reader *r, char quote)
{
	const char *from = r->p;
	while (r->p < r->end && *r->p != quote && *r->p != '\\' && !is_control(*r->p))
		r->p++;
	buf_put(&r->scratch, from, (size_t)(r->p - from));
}

/* A string in quotes, into the scratch buffer: valid until the next string is read. */
static int read_string(struct reader *r, bool may_be_multi, struct str *ret)
{
	char quote = *r->p++;
	bool multi = may_be_multi && r->end - r->p >= 2 && r->p[0] == quote && r->p[1] == quote;
	buf_clear(&r->scratch);
	if (multi) {
		r->p += 2;
		(void)eat_newline(r);
	}
	for (;;) {
		plain_run(r, quote);
		if (r->p == r->end)
			return bad(r, "");
		if (*r->p == quote) {
			if (ends_here(r, quote, multi))
				break;
		} else if (*r->p == '\\') {
			r->p++;
			int e = 0;
			if (quote == '\'')
				buf_putc(&r->scratch, '\\');
			else
				e = escape(r, multi);
			if (e < 0)
				return e;
		} else if (multi && eat_newline(r)) {
			buf_putc(&r->scratch, '\n');
		} else {
			return bad(r, multi ? "a control character must be escaped"
					    : "a line end or control character in a string must be "
					      "escaped");
		}
	}
	*ret = (struct str){buf_str(&r->scratch), r->scratch.len};
	return r->scratch.failed ? err_oom(r->err) : 0;
}

/* --- keys --- */

static bool is_bare(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '-';
}

/* One part of a key, and whether a dot and another part follow. Valid until the next string. */
static int read_key(struct reader *r, struct str *ret, const char **ret_at, bool *ret_more)
{
	int e = 0;
	skip_blanks(r);
	*ret_at = r->p;
	if (r->p < r->end && (*r->p == '"' || *r->p == '\'')) {
		e = read_string(r, false, ret);
	} else {
		while (r->p < r->end && is_bare(*r->p))
			r->p++;
		*ret = (struct str){*ret_at, (size_t)(r->p - *ret_at)};
		if (ret->n == 0)
			e = bad(r, "a key belongs here");
	}
	skip_blanks(r);
	*ret_more = e == 0 && eat(r, '.');
	return e;
}

static int new_table(
	struct reader *r, struct toml *in, const struct str *key, const char *at, struct toml **ret)
{
	int e = append(r, in, key, at, ret);
	if (e == 0)
		(*ret)->type = TOML_TABLE;
	return e;
}

/* Through one part of a key with dots, before its last. */
static int go_dotted(struct reader *r, struct str key, const char *at, struct toml **table)
{
	struct toml *t = find(*table, key);
	if (!t) {
		int e = new_table(r, *table, &key, at, &t);
		if (e < 0)
			return e;
	} else if (t->type != TOML_TABLE || t->closed || t->defined ||
		   (t->dotted_in && t->dotted_in != r->section)) {
		return bad_at(r, at, "this name is already there; nothing can be added to it here");
	}
	t->dotted_in = r->section;
	*table = t;
	return 0;
}

/* Through one part of a header, before its last: of an array of tables into its newest. */
static int go_header(struct reader *r, struct str key, const char *at, struct toml **table)
{
	struct toml *t = find(*table, key);
	if (!t)
		return new_table(r, *table, &key, at, table);
	if (t->closed || (t->type != TOML_TABLE && t->type != TOML_ARRAY))
		return bad_at(r, at, "this name is already there and is complete");
	*table = t->type == TOML_ARRAY ? t->list.last : t;
	return 0;
}

/* --- values --- */

static int read_value(struct reader *r, struct toml *into);

/* key = value, below `table`. */
static int read_pair(struct reader *r, struct toml *table)
{
	struct str key;
	const char *at;
	bool more;
	struct toml *t;
	for (;;) {
		int e = read_key(r, &key, &at, &more);
		if (e < 0)
			return e;
		if (!more)
			break;
		if ((e = go_dotted(r, key, at, &table)) < 0)
			return e;
	}
	if (find(table, key))
		return bad_at(r, at, "this key is already there");
	int e = append(r, table, &key, at, &t);
	if (e < 0)
		return e;
	if (!eat(r, '='))
		return bad(r, "an equals sign belongs after a key");
	skip_blanks(r);
	return read_value(r, t);
}

/* After the bracket. Line ends and comments may stand anywhere between. */
static int read_array(struct reader *r, struct toml *array)
{
	array->type = TOML_ARRAY;
	array->closed = true;
	for (;;) {
		struct toml *t;
		int e = skip_lines(r);
		if (e < 0)
			return e;
		if (eat(r, ']'))
			return 0;
		if ((e = append(r, array, NULL, r->p, &t)) < 0 || (e = read_value(r, t)) < 0 ||
			(e = skip_lines(r)) < 0)
			return e;
		if (eat(r, ']'))
			return 0;
		if (!eat(r, ','))
			return bad(r, "a comma or ] belongs here");
	}
}

/* After the brace. All on one line, no comma at the end. */
static int read_inline_table(struct reader *r, struct toml *table)
{
	table->type = TOML_TABLE;
	skip_blanks(r);
	bool empty = eat(r, '}');
	while (!empty) {
		int e = read_pair(r, table);
		if (e < 0)
			return e;
		skip_blanks(r);
		if (eat(r, '}'))
			break;
		if (!eat(r, ','))
			return bad(r, "a comma or } belongs here");
	}
	table->closed = true;
	return 0;
}

static int read_text(struct reader *r, struct toml *into)
{
	struct str s;
	int e = read_string(r, true, &s);
	into->type = TOML_STRING;
	return e < 0 ? e : keep_text(r, s, &into->string);
}

static int read_value(struct reader *r, struct toml *into)
{
	if (r->p == r->end)
		return bad(r, "");
	if (*r->p == '"' || *r->p == '\'')
		return read_text(r, into);
	if (eat(r, '['))
		return read_array(r, into);
	if (eat(r, '{'))
		return read_inline_table(r, into);
	struct str word = {r->p, toml_word(r->p, (size_t)(r->end - r->p))};
	const char *wrong = toml_scalar(word, into);
	if (wrong)
		return bad(r, wrong);
	r->p += word.n;
	return 0;
}

/* --- headers --- */

static int define_table(
	struct reader *r, struct toml *in, struct str key, const char *at, struct toml **ret)
{
	struct toml *t = find(in, key);
	if (!t) {
		int e = new_table(r, in, &key, at, &t);
		if (e < 0)
			return e;
	} else if (t->type != TOML_TABLE || t->closed || t->defined || t->dotted_in) {
		return bad_at(r, at, "this name is already there; a table is defined once");
	}
	t->defined = true;
	t->line = line_of(r, at, &t->column);
	*ret = t;
	return 0;
}

static int define_element(
	struct reader *r, struct toml *in, struct str key, const char *at, struct toml **ret)
{
	struct toml *array = find(in, key);
	if (!array) {
		int e = append(r, in, &key, at, &array);
		if (e < 0)
			return e;
		array->type = TOML_ARRAY;
		array->defined = true;
	} else if (array->type != TOML_ARRAY || array->closed) {
		return bad_at(r, at, "this name is already there and is no array of tables");
	}
	int e = new_table(r, array, NULL, at, ret);
	if (e == 0)
		(*ret)->defined = true;
	return e;
}

/* After the first bracket: [a.b] or [[a.b]]. */
static int read_header(struct reader *r, struct toml **ret)
{
	struct toml *table = &r->doc->root;
	bool element = eat(r, '['), more;
	struct str key;
	const char *at;
	int e;
	while ((e = read_key(r, &key, &at, &more)) == 0 && more)
		if ((e = go_header(r, key, at, &table)) < 0)
			return e;
	if (e < 0)
		return e;
	r->section++;
	e = element ? define_element(r, table, key, at, ret) : define_table(r, table, key, at, ret);
	if (e < 0)
		return e;
	if (!eat(r, ']') || (element && !eat(r, ']')))
		return bad(r, element ? "]] belongs here" : "] belongs here");
	return end_of_line(r);
}

static int read_document(struct reader *r)
{
	struct toml *table = &r->doc->root;
	for (;;) {
		int e = skip_lines(r);
		if (e < 0 || r->p == r->end)
			return e;
		if (eat(r, '['))
			e = read_header(r, &table);
		else if ((e = read_pair(r, table)) == 0)
			e = end_of_line(r);
		if (e < 0)
			return e;
	}
}

int toml_parse(struct str text, size_t max_bytes, struct toml **ret, struct err *err)
{
	if (text.n > max_bytes)
		return err_set(err, ERR_LIMIT,
			"the TOML text has %zu bytes; at most %zu are allowed", text.n, max_bytes);
	if (!text.p)
		text.p = "";
	struct reader r = {.start = text.p,
		.p = text.p,
		.end = text.p + text.n,
		.counted = text.p,
		.line_start = text.p,
		.line = 1,
		.section = 1,
		.scratch = buf_init(max_bytes),
		.err = err};
	size_t good = utf8_error_at(text.p, text.n);
	if (good < text.n)
		return bad_at(&r, text.p + good, "the bytes are not UTF-8");
	if (str_starts(text, STR("\xef\xbb\xbf")))
		r.p += 3;
	r.doc = calloc(1, sizeof(*r.doc));
	if (!r.doc)
		return err_oom(err);
	int e = read_document(&r);
	buf_done(&r.scratch);
	if (e < 0)
		toml_free(&r.doc->root);
	else
		*ret = &r.doc->root;
	return e;
}
