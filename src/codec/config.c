/*
 * The configuration: see config.h. Every value, wherever it comes from, ends in one of the store_
 * functions, so it is checked in one place. Pure.
 */
#include "codec/config.h"

#include "base/glob.h"
#include "codec/toml.h"

#include <stdio.h>

enum { KEY_BYTES_MAX = 64 };

const struct config_key config_keys[CONFIG_ID_MAX_] = {
#define CONFIG(id, type_, key_, fallback_, min_, max_, choices_, environment_, flag_, sentence_)   \
	[CONFIG_ID_##id] = {.key = key_,                                                           \
		.fallback = fallback_,                                                             \
		.choices = choices_,                                                               \
		.environment = environment_,                                                       \
		.flag = flag_,                                                                     \
		.sentence = sentence_,                                                             \
		.type = CONFIG_##type_,                                                            \
		.min = min_,                                                                       \
		.max = max_,                                                                       \
		.offset = offsetof(struct config, id)},
#include "base/config.def"
#undef CONFIG
};

static const struct alias {
	enum config_id id;
	const char *environment;
	int64_t factor;
} aliases[] = {
#define CONFIG(...)
#define CONFIG_ALIAS(id_, environment_, factor_) {CONFIG_ID_##id_, environment_, factor_},
#include "base/config.def"
#undef CONFIG_ALIAS
#undef CONFIG
};

/* Who says a value: how messages name the place, and what it outranks. */
struct place {
	enum config_source source;
	const char *file; /* CONFIG_FILE */
	unsigned line;
	const char *name; /* the variable or option */
	int64_t factor;   /* what numbers are times */
};

/* --- messages --- */

struct str config_choice(const struct config_key *k, unsigned n)
{
	const char *p = k->choices;
	while (n-- && (p = strchr(p, '|')))
		p++;
	return p && *p ? (struct str){p, strcspn(p, "|")} : (struct str){NULL, 0};
}

static void put_choices(const struct config_key *k, struct buf *b)
{
	struct str word;
	buf_puts(b, "one of");
	for (unsigned i = 0; (word = config_choice(k, i)).p; i++)
		buf_printf(b, "%s %.*s", i ? "," : "", (int)word.n, word.p);
}

static void put_expected(const struct config_key *k, int64_t factor, struct buf *b)
{
	long long min = (k->min + factor - 1) / factor, max = k->max / factor;
	switch (k->type) {
	case CONFIG_PATH: buf_puts(b, "an absolute path"); break;
	case CONFIG_SIZE:
		if (factor == 1) {
			buf_printf(b,
				"a number of bytes from %lld to %lld, or text such as \"100M\" (K, "
				"M, G, T)",
				min, max);
			break;
		}
		__attribute__((fallthrough));
	case CONFIG_NUMBER: buf_printf(b, "a whole number from %lld to %lld", min, max); break;
	case CONFIG_BOOL: buf_puts(b, "true or false"); break;
	case CONFIG_CHOICE: put_choices(k, b); break;
	case CONFIG_GLOBS: buf_printf(b, "a list of at most %lld patterns", max); break;
	case CONFIG_WORDS: buf_printf(b, "a list of at most %lld words", max); break;
	}
}

void config_expected(const struct config_key *k, struct buf *b)
{
	put_expected(k, 1, b);
}

/* "PLACE: WHAT", with what would be right as the hint. */
static int bad(
	const struct config_key *k, const struct place *at, const char *what, struct err *err)
{
	_cleanup_buf_ struct buf right = buf_init(ERR_HINT_MAX);
	put_expected(k, at->factor, &right);
	switch (at->source) {
	case CONFIG_FILE:
		(void)err_set(
			err, ERR_CONFIG, "%s, line %u: %s: %s", at->file, at->line, k->key, what);
		break;
	case CONFIG_ENVIRONMENT:
		(void)err_set(err, ERR_CONFIG, "environment variable %s: %s", at->name, what);
		break;
	case CONFIG_FLAG: (void)err_set(err, ERR_CONFIG, "option --%s: %s", k->flag, what); break;
	case CONFIG_DEFAULT:
		(void)err_set(err, ERR_CONFIG, "default of %s: %s", k->key, what);
		break;
	}
	return err_hint(err, "%s", buf_str(&right));
}

static int bad_value(const struct config_key *k, const struct place *at, struct str value,
	const char *what, struct err *err)
{
	_cleanup_buf_ struct buf b = buf_init(512);
	buf_putc(&b, '\'');
	text_show(&b, (struct str){value.p, utf8_floor(value.p, MIN(value.n, (size_t)60))}, false);
	buf_printf(&b, "%s' %s", value.n > 60 ? "..." : "", what);
	return bad(k, at, buf_str(&b), err);
}

/* --- storing --- */

static enum config_id id_of(const struct config_key *k)
{
	return (enum config_id)(k - config_keys);
}

static void *field(struct config *c, const struct config_key *k)
{
	return (char *)c + k->offset;
}

/* Is this place outranked? What is outranked is checked all the same, but not stored. */
static bool outranked(const struct config *c, const struct config_key *k, const struct place *at)
{
	return c->source[id_of(k)] > at->source;
}

static void take_memory(
	struct config *c, const struct config_key *k, const struct place *at, void *memory)
{
	free(c->memory[id_of(k)]);
	c->memory[id_of(k)] = memory;
	c->source[id_of(k)] = at->source;
}

static int store_number(struct config *c, const struct config_key *k, const struct place *at,
	struct str said, int64_t v, struct err *err)
{
	if (v > k->max / at->factor || v * at->factor < k->min)
		return bad_value(k, at, said, "is out of range", err);
	if (!outranked(c, k, at)) {
		*(int64_t *)field(c, k) = v * at->factor;
		c->source[id_of(k)] = at->source;
	}
	return 0;
}

/* Digits, and for sizes one of K, M, G, T. */
static int store_digits(struct config *c, const struct config_key *k, const struct place *at,
	struct str s, struct err *err)
{
	static const char units[] = "KMGT";
	int64_t v = 0;
	size_t i = 0;
	for (; i < s.n && s.p[i] >= '0' && s.p[i] <= '9'; i++) {
		if (v > (INT64_MAX - 9) / 10)
			return bad_value(k, at, s, "is out of range", err);
		v = v * 10 + (s.p[i] - '0');
	}
	const char *unit = i && i < s.n && k->type == CONFIG_SIZE && at->factor == 1
				   ? memchr(units, s.p[i], sizeof(units) - 1)
				   : NULL;
	if (i == 0 || i + (unit != NULL) != s.n)
		return bad_value(k, at, s, "is no whole number", err);
	for (const char *u = units; unit && u <= unit; u++) {
		if (v > INT64_MAX / 1024)
			return bad_value(k, at, s, "is out of range", err);
		v *= 1024;
	}
	return store_number(c, k, at, s, v, err);
}

static int store_bool(struct config *c, const struct config_key *k, const struct place *at,
	struct str s, struct err *err)
{
	bool yes = str_eq(s, STR("true"));
	if (!yes && !str_eq(s, STR("false")))
		return bad_value(k, at, s, "is neither true nor false", err);
	if (!outranked(c, k, at)) {
		*(bool *)field(c, k) = yes;
		c->source[id_of(k)] = at->source;
	}
	return 0;
}

static int store_choice(struct config *c, const struct config_key *k, const struct place *at,
	struct str s, struct err *err)
{
	struct str word;
	for (unsigned i = 0; (word = config_choice(k, i)).p; i++) {
		if (!str_eq(word, s))
			continue;
		if (!outranked(c, k, at)) {
			*(int *)field(c, k) = (int)i;
			c->source[id_of(k)] = at->source;
		}
		return 0;
	}
	return bad_value(k, at, s, "is none of the words", err);
}

/* An absolute path; the empty default means none. */
static int store_path(struct config *c, const struct config_key *k, const struct place *at,
	struct str s, struct err *err)
{
	if (s.n == 0 && at->source == CONFIG_DEFAULT)
		return 0;
	if (s.n == 0 || s.p[0] != '/')
		return bad_value(k, at, s, "is no absolute path", err);
	if (s.n > LIMIT_PATH_BYTES || memchr(s.p, 0, s.n))
		return bad_value(k, at, s, "is too long for a path or holds NUL", err);
	if (outranked(c, k, at))
		return 0;
	char *copy = strndup(s.p, s.n);
	if (!copy)
		return err_oom(err);
	take_memory(c, k, at, copy);
	*(const char **)field(c, k) = copy;
	return 0;
}

static int check_word(
	const struct config_key *k, const struct place *at, struct str word, struct err *err)
{
	bool visible = word.n > 0;
	for (size_t i = 0; i < word.n; i++)
		visible = visible && word.p[i] > ' ' && word.p[i] <= '~';
	return visible ? 0 : bad_value(k, at, word, "is no word of visible ASCII", err);
}

static int check_glob(
	const struct config_key *k, const struct place *at, struct str pattern, struct err *err)
{
	struct glob *g = NULL;
	if (pattern.n == 0 || memchr(pattern.p, 0, pattern.n))
		return bad_value(k, at, pattern, "is no pattern", err);
	if (at->source == CONFIG_DEFAULT)
		return 0;
	struct err why;
	int r = glob_compile(pattern, GLOB_BASENAME, &g, &why);
	glob_free(g);
	if (r == -ERR_NO_MEMORY)
		return err_oom(err);
	return r < 0 ? bad_value(k, at, pattern, why.text, err) : 0;
}

static int check_item(
	const struct config_key *k, const struct place *at, struct str item, struct err *err)
{
	return k->type == CONFIG_WORDS ? check_word(k, at, item, err)
				       : check_glob(k, at, item, err);
}

/* The pointers and the texts of a list of checked items, in one block. */
static int store_list(struct config *c, const struct config_key *k, const struct place *at,
	const struct str *v, size_t n, struct err *err)
{
	size_t bytes = (n + 1) * sizeof(char *);
	for (size_t i = 0; i < n; i++)
		bytes += v[i].n + 1;
	if (outranked(c, k, at))
		return 0;
	char **list = malloc(bytes);
	if (!list)
		return err_oom(err);
	char *to = (char *)(list + n + 1);
	for (size_t i = 0; i < n; i++) {
		list[i] = memcpy(to, v[i].p, v[i].n);
		to[v[i].n] = '\0';
		to += v[i].n + 1;
	}
	list[n] = NULL;
	take_memory(c, k, at, list);
	*(const char *const **)field(c, k) = (const char *const *)list;
	return 0;
}

static int store_words(struct config *c, const struct config_key *k, const struct place *at,
	struct str s, struct err *err)
{
	static const char blanks[] = " \t\n";
	struct str words[CONFIG_LIST_MAX];
	size_t n = 0;
	for (size_t i = 0; i < s.n;) {
		size_t from = i;
		while (i < s.n && !memchr(blanks, s.p[i], 3))
			i++;
		if (i > from && n == (size_t)k->max)
			return bad(k, at, "the list is too long", err);
		if (i > from) {
			words[n] = (struct str){s.p + from, i - from};
			int r = check_item(k, at, words[n++], err);
			if (r < 0)
				return r;
		}
		i++;
	}
	return store_list(c, k, at, words, n, err);
}

static int store_text(struct config *c, const struct config_key *k, const struct place *at,
	struct str s, struct err *err)
{
	switch (k->type) {
	case CONFIG_PATH: return store_path(c, k, at, s, err);
	case CONFIG_SIZE:
	case CONFIG_NUMBER: return store_digits(c, k, at, s, err);
	case CONFIG_BOOL: return store_bool(c, k, at, s, err);
	case CONFIG_CHOICE: return store_choice(c, k, at, s, err);
	case CONFIG_GLOBS:
	case CONFIG_WORDS: return store_words(c, k, at, s, err);
	}
	return err_set(err, ERR_INTERNAL, "no such type");
}

int config_init(struct config *c, struct err *err)
{
	*c = (struct config){0};
	const struct place at = {.source = CONFIG_DEFAULT, .factor = 1};
	for (const struct config_key *k = config_keys; k < config_keys + CONFIG_ID_MAX_; k++) {
		int r = store_text(c, k, &at, str_of(k->fallback), err);
		if (r < 0) {
			config_done(c);
			return r;
		}
	}
	return 0;
}

void config_done(struct config *c)
{
	for (int i = 0; i < CONFIG_ID_MAX_; i++)
		free(c->memory[i]);
	*c = (struct config){0};
}

/* --- the file --- */

static int store_array(struct config *c, const struct config_key *k, const struct place *at,
	const struct toml *array, struct err *err)
{
	struct str v[CONFIG_LIST_MAX];
	size_t n = 0;
	for (const struct toml *t = array->list.first; t; t = t->next) {
		struct place here = *at;
		here.line = t->line;
		if (t->type != TOML_STRING)
			return bad(k, &here, "every item is text in quotes", err);
		if (n == (size_t)k->max)
			return bad(k, &here, "the list is too long", err);
		int r = check_item(k, &here, t->string, err);
		if (r < 0)
			return r;
		v[n++] = t->string;
	}
	return store_list(c, k, at, v, n, err);
}

static int wrong_type(
	const struct config_key *k, const struct place *at, const struct toml *t, struct err *err)
{
	_cleanup_buf_ struct buf b = buf_init(128);
	buf_printf(&b, "the value cannot be of type %s", toml_type_name(t->type));
	return bad(k, at, buf_str(&b), err);
}

/* A number is written back for the message about it. */
static int store_integer(struct config *c, const struct config_key *k, const struct place *at,
	int64_t v, struct err *err)
{
	char said[24];
	int n = snprintf(said, sizeof(said), "%lld", (long long)v);
	return store_number(c, k, at, (struct str){said, (size_t)n}, v, err);
}

static int store_toml(struct config *c, const struct config_key *k, const struct place *at,
	const struct toml *t, struct err *err)
{
	bool number = k->type == CONFIG_SIZE || k->type == CONFIG_NUMBER;
	if (number && t->type == TOML_INTEGER)
		return store_integer(c, k, at, t->integer, err);
	if (k->type == CONFIG_BOOL && t->type == TOML_BOOL)
		return store_bool(c, k, at, t->boolean ? STR("true") : STR("false"), err);
	if ((k->type == CONFIG_GLOBS || k->type == CONFIG_WORDS) && t->type == TOML_ARRAY)
		return store_array(c, k, at, t, err);
	bool text = k->type == CONFIG_PATH || k->type == CONFIG_CHOICE || k->type == CONFIG_SIZE;
	if (text && t->type == TOML_STRING)
		return store_text(c, k, at, t->string, err);
	return wrong_type(k, at, t, err);
}

/* Levenshtein's distance of two short texts. */
static size_t distance(struct str a, struct str b)
{
	size_t row[KEY_BYTES_MAX + 1];
	for (size_t j = 0; j <= b.n; j++)
		row[j] = j;
	for (size_t i = 0; i < a.n; i++) {
		size_t diagonal = row[0];
		row[0] = i + 1;
		for (size_t j = 0; j < b.n; j++) {
			size_t replace = diagonal + (a.p[i] != b.p[j]);
			diagonal = row[j + 1];
			size_t either = MIN(row[j], diagonal) + 1;
			row[j + 1] = MIN(replace, either);
		}
	}
	return row[b.n];
}

/* The key nearest to a misspelt one. */
static const char *nearest(struct str said)
{
	const char *best = NULL;
	size_t best_distance = 4;
	if (said.n > KEY_BYTES_MAX)
		return NULL;
	for (const struct config_key *k = config_keys; k < config_keys + CONFIG_ID_MAX_; k++) {
		struct str name = str_of(k->key);
		size_t d = distance(said, name);
		if (d < best_distance) {
			best_distance = d;
			best = name.p;
		}
	}
	return best;
}

static int unknown_key(const char *file, const struct toml *t, struct str path, struct err *err)
{
	_cleanup_buf_ struct buf shown = buf_init(256);
	text_show(&shown, path, false);
	(void)err_set(
		err, ERR_CONFIG, "%s, line %u: there is no key %s", file, t->line, buf_str(&shown));
	const char *near = nearest(path);
	return near ? err_hint(err, "the nearest key is %s", near)
		    : err_hint(err, "cloister.toml(5) lists the keys");
}

/* Does some key lie below this table? */
static bool is_section(struct str path)
{
	for (const struct config_key *k = config_keys; k < config_keys + CONFIG_ID_MAX_; k++)
		if (str_starts(str_of(k->key), path) && k->key[path.n] == '.')
			return true;
	return false;
}

static const struct config_key *key_named(struct str path)
{
	for (const struct config_key *k = config_keys; k < config_keys + CONFIG_ID_MAX_; k++)
		if (str_eq_c(path, k->key))
			return k;
	return NULL;
}

struct walk {
	struct config *c;
	const char *file;
	struct buf path; /* of the table being read */
};

/* One member of a table. The depth is bounded by that of the keys in the table. */
static int read_member(struct walk *w, const struct toml *t, struct err *err)
{
	size_t before = w->path.len;
	buf_printf(&w->path, "%s", before ? "." : "");
	buf_put(&w->path, t->key.p, t->key.n);
	if (w->path.no_memory)
		return err_oom(err);
	if (w->path.failed)
		return err_set(
			err, ERR_CONFIG, "%s, line %u: the key is too long", w->file, t->line);
	struct str path = {w->path.data, w->path.len};
	/* A dot inside quotes separates nothing. */
	const struct config_key *k = memchr(t->key.p, '.', t->key.n) ? NULL : key_named(path);
	const struct place at = {
		.source = CONFIG_FILE, .file = w->file, .line = t->line, .factor = 1};
	int r = 0;
	if (k)
		r = store_toml(w->c, k, &at, t, err);
	else if (!is_section(path) || memchr(t->key.p, '.', t->key.n))
		r = unknown_key(w->file, t, path, err);
	else if (t->type != TOML_TABLE)
		r = err_set(err, ERR_CONFIG, "%s, line %u: %.*s is a table, no value", w->file,
			t->line, (int)path.n, path.p);
	else
		for (const struct toml *m = t->list.first; r == 0 && m; m = m->next)
			r = read_member(w, m, err);
	w->path.len = before;
	return r;
}

int config_read(struct config *c, const char *name, struct str text, struct err *err)
{
	_cleanup_(cleanup_toml_free) struct toml *root = NULL;
	int r = toml_parse(text, CONFIG_FILE_BYTES_MAX, &root, err);
	if (r == -ERR_NO_MEMORY)
		return r;
	if (r < 0) {
		err->code = ERR_CONFIG;
		return err_wrap(err, "%s", name);
	}
	struct walk w = {.c = c, .file = name, .path = buf_init(4 * KEY_BYTES_MAX)};
	for (const struct toml *t = root->list.first; r == 0 && t; t = t->next)
		r = read_member(&w, t, err);
	buf_done(&w.path);
	return r;
}

/* --- environment and command line --- */

static const char *variable(const char *const *environment, const char *name)
{
	size_t n = strlen(name);
	for (; *environment; environment++)
		if (strncmp(*environment, name, n) == 0 && (*environment)[n] == '=')
			return (*environment)[n + 1] ? *environment + n + 1 : NULL;
	return NULL;
}

static int store_variable(struct config *c, const char *const *environment,
	const struct config_key *k, const char *name, int64_t factor, struct err *err)
{
	const struct place at = {.source = CONFIG_ENVIRONMENT, .name = name, .factor = factor};
	const char *v = variable(environment, name);
	return v ? store_text(c, k, &at, str_of(v), err) : 0;
}

int config_environment(struct config *c, const char *const *environment, struct err *err)
{
	int r = 0;
	/* Ours are read last and so win over those of older systems. */
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(aliases); i++)
		r = store_variable(c, environment, &config_keys[aliases[i].id],
			aliases[i].environment, aliases[i].factor, err);
	for (const struct config_key *k = config_keys; r == 0 && k < config_keys + CONFIG_ID_MAX_;
		k++)
		r = store_variable(c, environment, k, k->environment, 1, err);
	return r;
}

const char *config_alias(enum config_id id, int64_t *ret_factor)
{
	for (size_t i = 0; i < ARRAY_LEN(aliases); i++)
		if (aliases[i].id == id) {
			*ret_factor = aliases[i].factor;
			return aliases[i].environment;
		}
	return NULL;
}

static const struct config_key *flag_named(struct str name)
{
	for (const struct config_key *k = config_keys; k < config_keys + CONFIG_ID_MAX_; k++)
		if (str_eq_c(name, k->flag))
			return k;
	return NULL;
}

int config_argument(struct config *c, const char *const *args, unsigned *ret_taken, struct err *err)
{
	const struct config_key *k = NULL;
	size_t n = 0;
	if (strncmp(args[0], "--", 2) == 0) {
		n = strcspn(args[0] + 2, "=");
		k = flag_named((struct str){args[0] + 2, n});
	}
	if (!k) {
		*ret_taken = 0;
		return 0;
	}
	const struct place at = {.source = CONFIG_FLAG, .factor = 1};
	const char *value = args[0][2 + n] == '=' ? args[0] + 3 + n : NULL;
	bool next = !value && k->type != CONFIG_BOOL;
	if (next && !(value = args[1]))
		return bad(k, &at, "a value is missing", err);
	int r = store_text(c, k, &at, value ? str_of(value) : STR("true"), err);
	if (r == 0)
		*ret_taken = next ? 2 : 1;
	return r;
}
