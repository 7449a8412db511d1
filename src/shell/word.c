/* Words: quotes and expansions. Must never decide what a word means, only what it is made of. */
#include "shell/parser.h"

#include <string.h>

/* Where a run of parts stands, since the place decides what quotes. */
enum mode {
	IN_WORD,
	IN_QUOTES,          /* "..." */
	IN_DOCUMENT,        /* here-document: " is ordinary */
	IN_BRACES,          /* ${x#...}: up to } */
	IN_QUOTED_BRACES,   /* "${x:-...}": '...' hides a } as in bash, and stays */
	IN_DOCUMENT_BRACES, /* the same in a here-document: ' is ordinary */
	IN_ARITH,           /* ((...)) */
	IN_INDEX,           /* [...] */
	IN_GLOB,            /* @(...) */
	IN_REGEX,           /* after =~ */
};

struct run {
	struct sh_part *first, **end;
	size_t literal; /* where the unfinished literal begins */
	struct sh_pos literal_pos;
	bool open;
};

static struct sh_part *scan_parts(struct sh_parser *p, enum mode mode, int stop);

static bool is_name_start(int ch)
{
	return ch == '_' || (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z');
}

static bool is_digit(int ch)
{
	return ch >= '0' && ch <= '9';
}

static bool is_special(int ch)
{
	return ch > 0 && strchr("@*#?-$!", ch);
}

static bool is_quoted(enum mode mode)
{
	return mode == IN_QUOTES || mode == IN_DOCUMENT || mode == IN_QUOTED_BRACES ||
	       mode == IN_DOCUMENT_BRACES;
}

static struct sh_part *add(struct sh_parser *p, struct run *run, enum sh_part_kind kind)
{
	struct sh_part *part = sh_new(p, sizeof(*part));
	if (!part)
		return NULL;
	*part = (struct sh_part){.kind = kind, .pos = sh_here(p)};
	*run->end = part;
	run->end = &part->next;
	return part;
}

static void literal_begin(struct sh_parser *p, struct run *run)
{
	if (run->open)
		return;
	run->open = true;
	run->literal = p->c.at;
	run->literal_pos = sh_here(p);
}

static void literal_end(struct sh_parser *p, struct run *run)
{
	struct sh_part *part;
	if (!run->open)
		return;
	run->open = false;
	if (!(part = add(p, run, SH_LITERAL)))
		return;
	part->pos = run->literal_pos;
	part->text = (struct sh_text){p->s + run->literal, p->c.at - run->literal};
}

/* From after the opening quote to past the closing one. */
static struct sh_text scan_until(struct sh_parser *p, char close, bool escapes, struct sh_pos pos)
{
	size_t from = p->c.at;
	while (sh_peek(p, 0) >= 0 && sh_peek(p, 0) != close)
		sh_skip(p, escapes && sh_peek(p, 0) == '\\' ? 2 : 1);
	struct sh_text text = {p->s + from, p->c.at - from};
	if (sh_peek(p, 0) != close)
		sh_fail(p, pos, "a %c that nothing closes", close);
	sh_bump(p);
	return text;
}

/* The command between back-quotes with the backslashes taken off that POSIX 2.6.3 names. */
static void scan_backtick(struct sh_parser *p, struct sh_part *part, enum mode mode)
{
	sh_bump(p);
	struct sh_pos pos = sh_here(p);
	part->text = scan_until(p, '`', true, part->pos);
	char *text = sh_new(p, part->text.len + 1);
	size_t n = 0;
	for (size_t i = 0; text && i < part->text.len; i++) {
		char after = i + 1 < part->text.len ? part->text.at[i + 1] : 0;
		if (part->text.at[i] == '\\' && (after == '$' || after == '`' || after == '\\' ||
							(after == '"' && mode == IN_QUOTES)))
			i++;
		text[n++] = part->text.at[i];
	}
	if (!text || !sh_enter(p))
		return;
	struct sh_parser inner = sh_inner(p, (struct sh_text){text, n}, pos);
	inner.pattern = false;
	part->list = sh_parse_list(&inner);
	if (sh_token(&inner)->kind != SH_T_END)
		sh_fail(&inner, inner.ahead.pos, "an unexpected '%.*s'",
			(int)MIN(inner.ahead.text.len, (size_t)40), inner.ahead.text.at);
	p->failed |= inner.failed;
	p->is_limit |= inner.is_limit;
	sh_leave(p);
}

/* The name in ${...}; the cursor is past a prefix. */
static void scan_name(struct sh_parser *p, struct sh_param *param)
{
	size_t n = 0;
	if (is_name_start(sh_peek(p, 0)))
		while (is_name_start(sh_peek(p, n)) || is_digit(sh_peek(p, n)))
			n++;
	else if (is_digit(sh_peek(p, 0)))
		while (is_digit(sh_peek(p, n)))
			n++;
	else if (is_special(sh_peek(p, 0)))
		n = 1;
	param->name = (struct sh_text){p->s + p->c.at, n};
	sh_skip(p, n);
	if (!n)
		sh_fail(p, sh_here(p), "a ${ without a name");
}

static bool begins_name(int ch)
{
	return is_name_start(ch) || is_digit(ch) || is_special(ch);
}

static void scan_prefix(struct sh_parser *p, struct sh_param *param)
{
	int next = sh_peek(p, 1);
	if (sh_peek(p, 0) == '#' && next != '}' && begins_name(next)) {
		/* ${#-x} is a default for $#, ${#-} the length of $-. */
		if (is_name_start(next) || is_digit(next) || next == '@' || next == '*' ||
			sh_peek(p, 2) == '}')
			param->length = true;
	} else if (sh_peek(p, 0) == '!' && next != '}' && begins_name(next)) {
		param->indirect = is_name_start(next) || is_digit(next) || next == '@' ||
				  next == '*' || next == '#' || sh_peek(p, 2) == '}';
	}
	if (param->length || param->indirect)
		sh_bump(p);
}

static void scan_operator(struct sh_parser *p, struct sh_param *param)
{
	static const char *const ops[] = {":-", ":=", ":?", ":+", "-", "=", "?", "+", "##", "#",
		"%%", "%", "//", "/#", "/%", "/", "^^", "^", ",,", ",", "@", ":", "*", "~~", "~"};
	for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
		if (!sh_at(p, ops[i]))
			continue;
		param->op = (struct sh_text){p->s + p->c.at, strlen(ops[i])};
		sh_skip(p, param->op.len);
		return;
	}
	sh_fail(p, sh_here(p), "a ${%.*s with an unknown operator",
		(int)MIN(param->name.len, (size_t)40), param->name.at);
}

static void scan_braces(
	struct sh_parser *p, struct sh_param *param, enum mode mode, struct sh_pos pos)
{
	sh_bump(p);
	param->braces = true;
	scan_prefix(p, param);
	scan_name(p, param);
	if (sh_peek(p, 0) == '[') {
		sh_bump(p);
		param->has_index = true;
		param->index = scan_parts(p, IN_INDEX, ']');
		sh_bump(p);
	}
	if (sh_peek(p, 0) >= 0 && sh_peek(p, 0) != '}') {
		scan_operator(p, param);
		char first = p->failed ? 0 : param->op.at[0];
		char last = p->failed ? 0 : param->op.at[param->op.len - 1];
		bool plain = first && strchr("-=?+", last) && is_quoted(mode);
		enum mode inside = !plain ? IN_BRACES
				   : mode == IN_DOCUMENT || mode == IN_DOCUMENT_BRACES
					   ? IN_DOCUMENT_BRACES
					   : IN_QUOTED_BRACES;
		param->argument = scan_parts(p, inside, first == '/' ? '/' : '}');
		if (first == '/' && sh_peek(p, 0) == '/') {
			sh_bump(p);
			param->has_second = true;
			param->second = scan_parts(p, inside, '}');
		}
	}
	if (sh_peek(p, 0) != '}')
		sh_fail(p, pos, "a ${ that nothing closes");
	sh_bump(p);
}

static void scan_param(struct sh_parser *p, struct sh_part *part, enum mode mode)
{
	struct sh_param *param = part->param = sh_new(p, sizeof(*param));
	if (!param)
		return;
	*param = (struct sh_param){.length = false};
	sh_bump(p);
	if (sh_peek(p, 0) == '{') {
		scan_braces(p, param, mode, part->pos);
		return;
	}
	size_t n = 1;
	if (is_name_start(sh_peek(p, 0)))
		while (is_name_start(sh_peek(p, n)) || is_digit(sh_peek(p, n)))
			n++;
	param->name = (struct sh_text){p->s + p->c.at, n};
	sh_skip(p, n);
}

bool sh_scan_arith(struct sh_parser *p, struct sh_part **ret)
{
	struct sh_parser before = *p;
	struct sh_part *parts = scan_parts(p, IN_ARITH, ')');
	if (!p->failed && sh_at(p, "))")) {
		sh_skip(p, 2);
		*ret = parts;
		return true;
	}
	if (!p->is_limit)
		*p = before;
	return false;
}

/* $( or $((: two closing parentheses in the right place make it arithmetic. */
static void scan_dollar_paren(struct sh_parser *p, struct sh_part *part)
{
	sh_bump(p);
	if (sh_at(p, "((")) {
		struct sh_parser before = *p;
		sh_skip(p, 2);
		if (sh_scan_arith(p, &part->inner)) {
			part->kind = SH_ARITH;
			return;
		}
		if (p->failed)
			return;
		*p = before;
	}
	part->list = sh_parse_inside(p);
}

static void scan_dollar(struct sh_parser *p, struct run *run, enum mode mode)
{
	int next = sh_peek(p, 1);
	bool quoted = is_quoted(mode);
	struct sh_part *part;
	if (next == '(' || next == '[' || next == '{' || begins_name(next) ||
		(!quoted && (next == '\'' || next == '"'))) {
		literal_end(p, run);
	} else {
		literal_begin(p, run);
		sh_bump(p);
		return;
	}
	if (!(part = add(p, run, SH_PARAM)))
		return;
	if (next == '(') {
		part->kind = SH_COMMAND;
		scan_dollar_paren(p, part);
	} else if (next == '[') {
		part->kind = SH_OLD_ARITH;
		sh_skip(p, 2);
		part->inner = scan_parts(p, IN_INDEX, ']');
		sh_bump(p);
	} else if (next == '\'') {
		part->kind = SH_ANSI;
		sh_skip(p, 2);
		part->text = scan_until(p, '\'', true, part->pos);
	} else if (next == '"') {
		part->kind = SH_LOCALE;
		sh_skip(p, 2);
		part->inner = scan_parts(p, IN_QUOTES, '"');
		sh_bump(p);
	} else {
		scan_param(p, part, mode);
	}
}

static void scan_backslash(struct sh_parser *p, struct run *run, enum mode mode)
{
	int next = sh_peek(p, 1);
	bool in_quotes = is_quoted(mode);
	if (next == '\n') {
		literal_end(p, run);
		sh_skip(p, 2);
		return;
	}
	bool brace = mode == IN_QUOTED_BRACES || mode == IN_DOCUMENT_BRACES;
	if (in_quotes &&
		(next < 0 || (!strchr("$`\\", next) && !(next == '"' && mode != IN_DOCUMENT) &&
				     !(next == '}' && brace)))) {
		literal_begin(p, run);
		sh_bump(p);
		return;
	}
	/* At the end of the text a backslash stands for itself. */
	size_t skip = next < 0 ? 0 : 1;
	literal_end(p, run);
	struct sh_part *part = add(p, run, SH_ESCAPED);
	if (part)
		part->text = (struct sh_text){p->s + p->c.at + skip, 1};
	sh_skip(p, skip + 1);
}

static void scan_double(struct sh_parser *p, struct run *run)
{
	literal_end(p, run);
	struct sh_part *part = add(p, run, SH_DOUBLE);
	if (!part)
		return;
	sh_bump(p);
	part->inner = scan_parts(p, IN_QUOTES, '"');
	sh_bump(p);
}

/* What quotes or expands. False when the character here is an ordinary one. */
static bool scan_special(struct sh_parser *p, struct run *run, enum mode mode)
{
	int ch = sh_peek(p, 0);
	struct sh_part *part;
	if (ch == '\\') {
		scan_backslash(p, run, mode);
	} else if (ch == '$') {
		scan_dollar(p, run, mode);
	} else if (ch == '`') {
		literal_end(p, run);
		if ((part = add(p, run, SH_BACKTICK)))
			scan_backtick(p, part, mode);
	} else if (ch == '"' && mode != IN_QUOTES && mode != IN_DOCUMENT) {
		scan_double(p, run);
	} else if (ch == '\'' && (!is_quoted(mode) || mode == IN_QUOTED_BRACES)) {
		literal_end(p, run);
		if (!(part = add(p, run, SH_SINGLE)))
			return true;
		sh_bump(p);
		part->text = scan_until(p, '\'', false, part->pos);
	} else if ((ch == '<' || ch == '>') && sh_peek(p, 1) == '(' &&
		   (mode == IN_WORD || mode == IN_BRACES)) {
		literal_end(p, run);
		if (!(part = add(p, run, SH_PROCESS)))
			return true;
		part->text = (struct sh_text){p->s + p->c.at, 1};
		sh_bump(p);
		part->list = sh_parse_inside(p);
	} else {
		return false;
	}
	return true;
}

/* Parts up to the byte `stop` that is not quoted and not within brackets of the same kind; it is
 * left. */
static struct sh_part *scan_parts(struct sh_parser *p, enum mode mode, int stop)
{
	struct run run = {.end = &run.first};
	struct sh_pos pos = sh_here(p);
	unsigned long inside = 0;
	int open = mode == IN_ARITH || mode == IN_GLOB ? '(' : mode == IN_INDEX ? '[' : -2;
	if (!sh_enter(p))
		return NULL;
	for (int ch; (ch = sh_peek(p, 0)) >= 0 &&
		     (inside || (ch != stop && (stop != '/' || ch != '}')));) {
		if (scan_special(p, &run, mode))
			continue;
		inside += ch == open;
		inside -= inside && ch == stop;
		literal_begin(p, &run);
		sh_bump(p);
	}
	literal_end(p, &run);
	if (stop >= 0 && sh_peek(p, 0) < 0)
		sh_fail(p, pos, "the end comes before the closing %c", stop == '/' ? '}' : stop);
	sh_leave(p);
	return run.first;
}

struct sh_part *sh_scan_document(struct sh_parser *p)
{
	return scan_parts(p, IN_DOCUMENT, -1);
}

/* NAME, NAME[...] and then = or +=, at the beginning of a word. The length of NAME, or 0. */
static size_t assignment(const struct sh_parser *p, size_t *ret_index)
{
	size_t n = 0, i, depth = 0;
	if (!is_name_start(sh_peek(p, 0)))
		return 0;
	while (is_name_start(sh_peek(p, n)) || is_digit(sh_peek(p, n)))
		n++;
	i = n;
	if (sh_peek(p, i) == '[') {
		do {
			int ch = sh_peek(p, i);
			if (ch < 0 || ch == '\n' || i - n > 4096)
				return 0;
			depth += ch == '[';
			depth -= ch == ']';
			i++;
		} while (depth);
	}
	*ret_index = i - n;
	i += sh_peek(p, i) == '+';
	return sh_peek(p, i) == '=' ? n : 0;
}

static void scan_index(struct sh_parser *p, struct run *run)
{
	struct sh_part *part = add(p, run, SH_INDEX);
	if (!part)
		return;
	sh_bump(p);
	part->inner = scan_parts(p, IN_INDEX, ']');
	sh_bump(p);
}

static void scan_array(struct sh_parser *p, struct run *run)
{
	struct sh_part *part = add(p, run, SH_ARRAY);
	struct sh_word **end;
	if (!part || !sh_enter(p))
		return;
	end = &part->words;
	sh_bump(p);
	for (;;) {
		sh_blanks(p);
		if (sh_peek(p, 0) == '\n') {
			sh_bump(p);
			continue;
		}
		if (sh_peek(p, 0) == ')' || !(*end = sh_scan_word(p)))
			break;
		end = &(*end)->next;
	}
	if (sh_peek(p, 0) != ')')
		sh_fail(p, part->pos, "an array that nothing closes");
	sh_bump(p);
	sh_leave(p);
}

static void scan_assignment(struct sh_parser *p, struct run *run, struct sh_word *w)
{
	size_t index = 0;
	if (!(w->assigns = assignment(p, &index)))
		return;
	literal_begin(p, run);
	sh_skip(p, w->assigns);
	if (index) {
		literal_end(p, run);
		scan_index(p, run);
		literal_begin(p, run);
	}
	sh_skip(p, sh_peek(p, 0) == '+' ? 2 : 1);
	if (sh_peek(p, 0) != '(')
		return;
	literal_end(p, run);
	scan_array(p, run);
}

static bool ends_word(int ch)
{
	return ch < 0 || strchr(" \t\n;&|<>()", ch);
}

/* ?( *( +( @( and, where it cannot be a negated subshell, !( */
static bool begins_extglob(const struct sh_parser *p, size_t from)
{
	int ch = sh_peek(p, 0);
	if (sh_peek(p, 1) != '(' || ch <= 0)
		return false;
	return strchr("?*+@", ch) || (ch == '!' && (p->pattern || p->c.at > from));
}

static void scan_extglob(struct sh_parser *p, struct run *run)
{
	literal_end(p, run);
	struct sh_part *part = add(p, run, SH_EXTGLOB);
	if (!part)
		return;
	part->text = (struct sh_text){p->s + p->c.at, 1};
	sh_skip(p, 2);
	part->inner = scan_parts(p, IN_GLOB, ')');
	sh_bump(p);
}

struct sh_word *sh_scan_word(struct sh_parser *p)
{
	struct run run = {.end = &run.first};
	size_t from = p->c.at;
	struct sh_word *w = sh_new(p, sizeof(*w));
	if (!w)
		return NULL;
	*w = (struct sh_word){.pos = sh_here(p)};
	scan_assignment(p, &run, w);
	while (!p->failed) {
		if (begins_extglob(p, from)) {
			scan_extglob(p, &run);
		} else if (!scan_special(p, &run, IN_WORD)) {
			if (ends_word(sh_peek(p, 0)))
				break;
			literal_begin(p, &run);
			sh_bump(p);
		}
	}
	literal_end(p, &run);
	w->parts = run.first;
	return p->c.at == from || p->failed ? NULL : w;
}

struct sh_word *sh_scan_regex(struct sh_parser *p)
{
	struct run run = {.end = &run.first};
	unsigned long inside = 0;
	sh_blanks(p);
	struct sh_word *w = sh_new(p, sizeof(*w));
	if (!w)
		return NULL;
	*w = (struct sh_word){.pos = sh_here(p)};
	for (int ch; (ch = sh_peek(p, 0)) >= 0;) {
		if (scan_special(p, &run, IN_REGEX))
			continue;
		if (!inside && (ch == ' ' || ch == '\t' || ch == '\n' || ch == ')'))
			break;
		inside += ch == '(';
		inside -= ch == ')';
		literal_begin(p, &run);
		sh_bump(p);
	}
	literal_end(p, &run);
	w->parts = run.first;
	if (!w->parts)
		sh_fail(p, w->pos, "=~ needs an expression");
	return w;
}
