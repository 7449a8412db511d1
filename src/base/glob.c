/* Patterns over paths: see glob.h. The automaton is Thompson's, its simulation Pike's without
 * captures. Pure. */
#include "base/glob.h"

#include "base/limits.h"

#include <ctype.h>

/* A character of a path: a scalar value, or for a byte that is not UTF-8 a value above all of them.
 */
enum { NOT_UTF8 = 0x110000 };

enum op_kind {
	OP_CHAR,  /* arg: the character */
	OP_ANY,   /* one character but '/' */
	OP_EVERY, /* one character */
	OP_CLASS, /* arg: index of the set */
	OP_SPLIT, /* go on at arg and at the next */
	OP_JUMP,  /* go on at arg */
	OP_MATCH,
};

struct op {
	enum op_kind kind;
	uint32_t arg;
};

struct set_range {
	uint32_t first, last;
};

struct set {
	bool negated;
	unsigned first, n; /* in ranges */
};

/* Every byte of a pattern makes at most five ops (`**` + `/`: split, split, every, jump, char) and
 * one range. */
enum {
	OPS_MAX = 5 * LIMIT_GLOB_BYTES + 8,
	RANGES_MAX = LIMIT_GLOB_BYTES * 4,
	SETS_MAX = LIMIT_GLOB_BYTES / 2
};

struct glob {
	bool icase, basename;
	unsigned n_ops, n_ranges, n_sets;
	struct op *ops;
	struct set_range *ranges;
	struct set *sets;
	struct str literal_suffix; /* the pattern is `*` + this, which is compared directly; p NULL:
				      it is not */
	char *suffix_memory;
};

/* --- compiling
 * ------------------------------------------------------------------------------------ */

struct compiler {
	struct glob *g;
	struct str in;
	size_t at;
	unsigned depth;
	struct err *err;
};

static int bad(struct compiler *c, const char *what)
{
	return err_set(c->err, ERR_INVALID_ARGUMENT, "pattern, byte %zu: %s", c->at + 1, what);
}

static unsigned emit(struct glob *g, enum op_kind kind, uint32_t arg)
{
	BUG_ON(g->n_ops >= OPS_MAX);
	g->ops[g->n_ops] = (struct op){kind, arg};
	return g->n_ops++;
}

static uint32_t fold(const struct glob *g, uint32_t ch)
{
	return g->icase && ch >= 'A' && ch <= 'Z' ? ch + ('a' - 'A') : ch;
}

static uint32_t next_char(const char *p, size_t n, size_t *at)
{
	uint32_t ch;
	unsigned len = utf8_decode(p + *at, n - *at, &ch);
	if (len == 0) {
		ch = NOT_UTF8 + (unsigned char)p[*at];
		len = 1;
	}
	*at += len;
	return ch;
}

static bool more(const struct compiler *c)
{
	return c->at < c->in.n;
}

static bool sees(const struct compiler *c, const char *text)
{
	return str_starts((struct str){c->in.p + c->at, c->in.n - c->at}, str_of(text));
}

static int add_range(struct compiler *c, uint32_t first, uint32_t last)
{
	if (c->g->n_ranges == RANGES_MAX)
		return bad(c, "the set has too many parts");
	c->g->ranges[c->g->n_ranges++] = (struct set_range){first, last};
	return 0;
}

static const struct {
	const char *name;
	int (*is)(int);
} classes[] = {{"alpha", isalpha}, {"digit", isdigit}, {"alnum", isalnum}, {"upper", isupper},
	{"lower", islower}, {"space", isspace}, {"blank", isblank}, {"punct", ispunct},
	{"print", isprint}, {"graph", isgraph}, {"cntrl", iscntrl}, {"xdigit", isxdigit}};

/* [:name:] inside a set: the ASCII characters that it holds, as runs. */
static int add_class(struct compiler *c, struct str name)
{
	for (size_t i = 0; i < ARRAY_LEN(classes); i++) {
		if (!str_eq_c(name, classes[i].name))
			continue;
		for (int ch = 0, r; ch < 128; ch++)
			if (classes[i].is(ch) && (r = add_range(c, (uint32_t)ch, (uint32_t)ch)) < 0)
				return r;
		return 0;
	}
	return bad(c, "no such character class");
}

static int set_char(struct compiler *c, uint32_t *ret)
{
	if (sees(c, "\\"))
		c->at++;
	if (!more(c))
		return bad(c, "the set is not closed by ]");
	*ret = next_char(c->in.p, c->in.n, &c->at);
	return 0;
}

static int set_part(struct compiler *c)
{
	uint32_t first = 0, last;
	if (sees(c, "[:")) {
		const char *end = memmem(c->in.p + c->at, c->in.n - c->at, ":]", 2);
		if (!end)
			return bad(c, "the character class is not closed by :]");
		struct str name = {c->in.p + c->at + 2, (size_t)(end - (c->in.p + c->at)) - 2};
		int r = add_class(c, name);
		c->at += name.n + 4;
		return r;
	}
	int r = set_char(c, &first);
	if (r < 0)
		return r;
	last = first;
	if (sees(c, "-") && !sees(c, "-]")) {
		c->at++;
		if ((r = set_char(c, &last)) < 0)
			return r;
	}
	return first > last ? bad(c, "the range is reversed") : add_range(c, first, last);
}

/* After '['. A ']' that comes first stands for itself. */
static int compile_set(struct compiler *c)
{
	struct glob *g = c->g;
	struct set s = {.first = g->n_ranges};
	int r = 0;
	if (g->n_sets == SETS_MAX)
		return bad(c, "too many sets");
	if (sees(c, "!") || sees(c, "^")) {
		s.negated = true;
		c->at++;
	}
	for (bool first = true; r == 0 && more(c) && (first || !sees(c, "]")); first = false)
		r = set_part(c);
	if (r < 0)
		return r;
	if (!more(c))
		return bad(c, "the set is not closed by ]");
	c->at++;
	s.n = g->n_ranges - s.first;
	g->sets[g->n_sets] = s;
	(void)emit(g, OP_CLASS, g->n_sets++);
	return 0;
}

static void compile_star(struct compiler *c, enum op_kind of)
{
	unsigned split = emit(c->g, OP_SPLIT, 0);
	(void)emit(c->g, of, 0);
	(void)emit(c->g, OP_JUMP, split);
	c->g->ops[split].arg = c->g->n_ops;
}

/* `**`: with a '/' after it and a component boundary before it, no component at all is also fine.
 */
static void compile_stars(struct compiler *c, bool at_boundary)
{
	while (sees(c, "*"))
		c->at++;
	if (!at_boundary || !sees(c, "/")) {
		compile_star(c, OP_EVERY);
		return;
	}
	c->at++;
	unsigned skip = emit(c->g, OP_SPLIT, 0);
	compile_star(c, OP_EVERY);
	(void)emit(c->g, OP_CHAR, '/');
	c->g->ops[skip].arg = c->g->n_ops;
}

static int compile_until(struct compiler *c, const char *stops);

/* After '{': each alternative is tried by a split; each ends with a jump behind the group. */
static int compile_group(struct compiler *c)
{
	unsigned jumps[LIMIT_GLOB_BYTES], n = 0;
	int r;
	if (++c->depth > GLOB_NESTING)
		return bad(c, "braces are nested too deeply");
	for (;;) {
		unsigned split = emit(c->g, OP_SPLIT, 0);
		if ((r = compile_until(c, ",}")) < 0)
			return r;
		if (!more(c))
			return bad(c, "the group is not closed by }");
		bool last = c->in.p[c->at++] == '}';
		jumps[n++] = emit(c->g, OP_JUMP, 0);
		c->g->ops[split].arg = c->g->n_ops;
		if (last)
			break;
	}
	/* What the last split leads to when no alternative fits: a state that nothing leaves. */
	(void)emit(c->g, OP_CLASS, UINT32_MAX);
	for (unsigned i = 0; i < n; i++)
		c->g->ops[jumps[i]].arg = c->g->n_ops;
	c->depth--;
	return 0;
}

static int compile_one(struct compiler *c, bool at_boundary)
{
	switch (c->in.p[c->at]) {
	case '*':
		if (sees(c, "**")) {
			compile_stars(c, at_boundary);
		} else {
			c->at++;
			compile_star(c, OP_ANY);
		}
		return 0;
	case '?':
		c->at++;
		(void)emit(c->g, OP_ANY, 0);
		return 0;
	case '[': c->at++; return compile_set(c);
	case '{': c->at++; return compile_group(c);
	case '\\':
		if (c->at + 1 == c->in.n)
			return bad(c, "a backslash at the end");
		c->at++;
		break;
	default: break;
	}
	(void)emit(c->g, OP_CHAR, fold(c->g, next_char(c->in.p, c->in.n, &c->at)));
	return 0;
}

static int compile_until(struct compiler *c, const char *stops)
{
	bool at_boundary = c->at == 0;
	while (more(c) && !(stops && strchr(stops, c->in.p[c->at]))) {
		int r = compile_one(c, at_boundary);
		if (r < 0)
			return r;
		at_boundary = c->in.p[c->at - 1] == '/';
	}
	return 0;
}

/* `*` and then only plain characters is what most patterns are; comparing ends is all that it
 * takes. */
static int find_literal_suffix(struct glob *g, struct str p, struct err *err)
{
	if (p.n < 2 || p.p[0] != '*' || g->icase || !g->basename)
		return 0;
	for (size_t i = 1; i < p.n; i++)
		if (strchr("*?[{\\/", p.p[i]) || p.p[i] == '\0')
			return 0;
	g->suffix_memory = malloc(p.n - 1);
	if (!g->suffix_memory)
		return err_oom(err);
	memcpy(g->suffix_memory, p.p + 1, p.n - 1);
	g->literal_suffix = (struct str){g->suffix_memory, p.n - 1};
	return 0;
}

static void shrink(struct glob *g)
{
	void *p = reallocarray(g->ops, g->n_ops, sizeof(*g->ops));
	if (p)
		g->ops = p;
	if (g->n_ranges > 0 && (p = reallocarray(g->ranges, g->n_ranges, sizeof(*g->ranges))))
		g->ranges = p;
	if (g->n_sets > 0 && (p = reallocarray(g->sets, g->n_sets, sizeof(*g->sets))))
		g->sets = p;
}

int glob_compile(struct str pattern, unsigned flags, struct glob **ret, struct err *err)
{
	if (pattern.n > LIMIT_GLOB_BYTES)
		return err_set(
			err, ERR_LIMIT, "the pattern is longer than %d bytes", LIMIT_GLOB_BYTES);
	if (str_starts(pattern, STR("./")))
		pattern = (struct str){pattern.p + 2, pattern.n - 2};
	bool anchored = memchr(pattern.p, '/', pattern.n) != NULL;
	if (str_starts(pattern, STR("/")))
		pattern = (struct str){pattern.p + 1, pattern.n - 1};
	_cleanup_(cleanup_glob_free) struct glob *g = calloc(1, sizeof(*g));
	if (!g)
		return err_oom(err);
	g->icase = flags & GLOB_ICASE;
	g->basename = (flags & GLOB_BASENAME) && !anchored;
	g->ops = calloc(OPS_MAX, sizeof(*g->ops));
	g->ranges = calloc(RANGES_MAX, sizeof(*g->ranges));
	g->sets = calloc(SETS_MAX, sizeof(*g->sets));
	if (!g->ops || !g->ranges || !g->sets)
		return err_oom(err);
	struct compiler c = {.g = g, .in = pattern, .err = err};
	int r = compile_until(&c, NULL);
	if (r == 0)
		r = find_literal_suffix(g, pattern, err);
	if (r < 0)
		return r;
	(void)emit(g, OP_MATCH, 0);
	shrink(g);
	*ret = take_ptr(g);
	return 0;
}

void glob_free(struct glob *g)
{
	if (!g)
		return;
	free(g->ops);
	free(g->ranges);
	free(g->sets);
	free(g->suffix_memory);
	free(g);
}

/* --- matching
 * ------------------------------------------------------------------------------------- */

/* The states that are alive: a list without repetition and a mark per state. */
struct states {
	uint16_t list[OPS_MAX];
	unsigned n;
	uint64_t marked[(OPS_MAX + 63) / 64];
};

static void push_state(struct states *s, unsigned state)
{
	uint64_t bit = UINT64_C(1) << (state % 64);
	if (s->marked[state / 64] & bit)
		return;
	s->marked[state / 64] |= bit;
	s->list[s->n++] = (uint16_t)state;
}

/* Add a state and all that follows from it without a character: what is pushed is looked at in
 * turn. */
static void add_state(const struct glob *g, struct states *s, unsigned start)
{
	unsigned i = s->n;
	push_state(s, start);
	for (; i < s->n; i++) {
		const struct op *op = &g->ops[s->list[i]];
		if (op->kind == OP_SPLIT)
			push_state(s, s->list[i] + 1u);
		if (op->kind == OP_SPLIT || op->kind == OP_JUMP)
			push_state(s, op->arg);
	}
}

static bool in_set(const struct glob *g, uint32_t index, uint32_t ch)
{
	if (index == UINT32_MAX || ch == '/')
		return false;
	const struct set *s = &g->sets[index];
	uint32_t other = g->icase && ch < 128 && isalpha((int)ch) ? ch ^ 0x20 : ch;
	for (unsigned i = s->first; i < s->first + s->n; i++) {
		const struct set_range *r = &g->ranges[i];
		if ((ch >= r->first && ch <= r->last) || (other >= r->first && other <= r->last))
			return !s->negated;
	}
	return s->negated;
}

static bool takes(const struct glob *g, const struct op *op, uint32_t ch)
{
	switch (op->kind) {
	case OP_CHAR: return op->arg == fold(g, ch);
	case OP_ANY: return ch != '/';
	case OP_EVERY: return true;
	case OP_CLASS: return in_set(g, op->arg, ch);
	case OP_SPLIT:
	case OP_JUMP:
	case OP_MATCH: break;
	}
	return false;
}

static void clear_states(const struct glob *g, struct states *s)
{
	memset(s->marked, 0, (g->n_ops + 63) / 64 * sizeof(s->marked[0]));
	s->n = 0;
}

/* Run the automaton over the text; returns the states that are alive behind it. */
static struct states *simulate(
	const struct glob *g, struct str text, struct states *a, struct states *b)
{
	size_t at = 0;
	clear_states(g, a);
	add_state(g, a, 0);
	while (at < text.n && a->n > 0) {
		uint32_t ch = next_char(text.p, text.n, &at);
		clear_states(g, b);
		for (unsigned i = 0; i < a->n; i++)
			if (takes(g, &g->ops[a->list[i]], ch))
				add_state(g, b, a->list[i] + 1u);
		struct states *swap = a;
		a = b;
		b = swap;
	}
	return a;
}

static struct str base_name(struct str path)
{
	const char *slash = memrchr(path.p, '/', path.n);
	return slash ? (struct str){slash + 1, path.n - (size_t)(slash + 1 - path.p)} : path;
}

bool glob_match(const struct glob *g, struct str path)
{
	struct states a, b;
	if (g->basename)
		path = base_name(path);
	if (g->literal_suffix.p)
		return str_ends(path, g->literal_suffix);
	const struct states *end = simulate(g, path, &a, &b);
	unsigned match = g->n_ops - 1;
	return end->n > 0 && (end->marked[match / 64] >> (match % 64) & 1);
}

bool glob_may_match_below(const struct glob *g, struct str dir)
{
	struct states a, b;
	if (g->basename || dir.n == 0)
		return true;
	struct states *end = simulate(g, dir, &a, &b);
	if (end->n == 0)
		return false;
	/* Behind the '/' something must be alive. */
	for (unsigned i = 0; i < end->n; i++)
		if (takes(g, &g->ops[end->list[i]], '/'))
			return true;
	return false;
}
