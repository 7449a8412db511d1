/* Characters to tokens. Reads nothing but the text; must never look past its end. */
#include "shell/parser.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int sh_peek(const struct sh_parser *p, size_t ahead)
{
	return !p->failed && ahead < p->n - p->c.at ? (unsigned char)p->s[p->c.at + ahead] : -1;
}

void sh_bump(struct sh_parser *p)
{
	if (sh_peek(p, 0) < 0)
		return;
	if (++*p->steps > SH_MAX_STEPS) {
		sh_fail_limit(p, "steps of work", SH_MAX_STEPS);
		return;
	}
	if (p->s[p->c.at++] == '\n') {
		p->c.line++;
		p->c.line_start = p->c.at;
	}
}

bool sh_at(const struct sh_parser *p, const char *text)
{
	size_t n = strlen(text);
	return !p->failed && n <= p->n - p->c.at && memcmp(p->s + p->c.at, text, n) == 0;
}

void sh_skip(struct sh_parser *p, size_t n)
{
	while (n--)
		sh_bump(p);
}

struct sh_pos sh_here(const struct sh_parser *p)
{
	return (struct sh_pos){p->c.line, (uint32_t)(p->c.at - p->c.line_start) + 1};
}

void sh_fail(struct sh_parser *p, struct sh_pos pos, const char *fmt, ...)
{
	char text[256];
	va_list ap;
	if (p->failed)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	p->failed = true;
	(void)err_set(p->err, ERR_PARSE, "line %u, column %u: %s", pos.line, pos.column, text);
}

void sh_fail_limit(struct sh_parser *p, const char *what, unsigned long max)
{
	struct sh_pos pos = sh_here(p);
	if (p->failed)
		return;
	p->failed = p->is_limit = true;
	(void)err_set(p->err, ERR_LIMIT, "line %u, column %u: the script has more than %lu %s",
		pos.line, pos.column, max, what);
}

void *sh_new(struct sh_parser *p, size_t size)
{
	void *m = p->failed ? NULL : sh_pool_get(p->pool, size);
	if (!m)
		sh_fail_limit(p, "bytes of tree", SH_MAX_MEMORY);
	return m;
}

bool sh_enter(struct sh_parser *p)
{
	if (p->depth >= SH_MAX_DEPTH)
		sh_fail_limit(p, "levels of nesting", SH_MAX_DEPTH);
	p->depth++;
	return !p->failed;
}

void sh_leave(struct sh_parser *p)
{
	p->depth--;
}

struct sh_parser sh_inner(struct sh_parser *p, struct sh_text text, struct sh_pos pos)
{
	struct sh_parser inner = *p;
	inner.s = text.at;
	inner.n = text.len;
	inner.c = (struct sh_cursor){.line = pos.line};
	inner.has_ahead = false;
	inner.pending = NULL;
	return inner;
}

bool sh_text_is(struct sh_text t, const char *s)
{
	return t.len == strlen(s) && memcmp(t.at, s, t.len) == 0;
}

void sh_blanks(struct sh_parser *p)
{
	for (;;) {
		int ch = sh_peek(p, 0);
		if (ch == ' ' || ch == '\t')
			sh_bump(p);
		else if (ch == '\\' && sh_peek(p, 1) == '\n')
			sh_skip(p, 2);
		else
			break;
	}
	if (sh_peek(p, 0) == '#')
		while (sh_peek(p, 0) >= 0 && sh_peek(p, 0) != '\n')
			sh_bump(p);
}

/* One line of a body without its newline; false at the end of the text. */
static bool next_line(struct sh_parser *p, struct sh_text *ret)
{
	if (sh_peek(p, 0) < 0)
		return false;
	const char *from = p->s + p->c.at;
	while (sh_peek(p, 0) >= 0 && sh_peek(p, 0) != '\n')
		sh_bump(p);
	*ret = (struct sh_text){from, (size_t)(p->s + p->c.at - from)};
	sh_bump(p);
	return !p->failed;
}

static bool is_joined(struct sh_text line)
{
	size_t n = 0;
	while (n < line.len && line.at[line.len - 1 - n] == '\\')
		n++;
	return n % 2;
}

/* A body ends at its delimiter, or where the text ends, which bash takes with a warning. */
static void read_body(struct sh_parser *p, struct sh_redirect *r)
{
	struct sh_pos pos = sh_here(p);
	struct sh_text line;
	bool joined = false;
	size_t n = 0;
	char *body = sh_new(p, p->n - p->c.at + 1);
	while (body && next_line(p, &line)) {
		while (r->kind == SH_HERE_TABS && line.len && *line.at == '\t')
			line.at++, line.len--;
		if (!joined && line.len == r->delimiter.len &&
			memcmp(line.at, r->delimiter.at, line.len) == 0)
			break;
		memcpy(body + n, line.at, line.len);
		n += line.len;
		if (line.at + line.len < p->s + p->n)
			body[n++] = '\n';
		joined = !r->quoted && is_joined(line);
	}
	if (joined)
		sh_fail(p, sh_here(p), "the end comes after a backslash in a here-document");
	r->body = (struct sh_text){body, n};
	struct sh_parser inner = sh_inner(p, r->body, pos);
	if (!r->quoted) {
		r->content = sh_scan_document(&inner);
	} else if (n && (r->content = sh_new(p, sizeof(*r->content)))) {
		*r->content = (struct sh_part){.kind = SH_LITERAL, .pos = pos, .text = r->body};
	}
	p->failed |= inner.failed;
	p->is_limit |= inner.is_limit;
}

static void read_bodies(struct sh_parser *p)
{
	for (struct sh_pending *h = p->pending; h && !p->failed; h = h->next)
		read_body(p, h->redirect);
	p->pending = NULL;
}

static const struct {
	enum sh_redirect_kind kind;
	const char *text;
} redirects[] = {
#define SH_REDIRECT(name, text) {SH_##name, text},
#include "shell/redirect.def"
#undef SH_REDIRECT
};

static bool is_digit(int ch)
{
	return ch >= '0' && ch <= '9';
}

static bool is_name(int ch)
{
	return ch == '_' || (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || is_digit(ch);
}

/* The length of what may name a descriptor before an operator: digits, or {name}. */
static size_t fd_length(const struct sh_parser *p)
{
	size_t n = 0;
	if (sh_peek(p, 0) == '{') {
		for (n = 1; is_name(sh_peek(p, n));)
			n++;
		if (n == 1 || sh_peek(p, n++) != '}')
			return 0;
	} else {
		while (is_digit(sh_peek(p, n)))
			n++;
	}
	return sh_peek(p, n) == '<' || sh_peek(p, n) == '>' ? n : 0;
}

static bool scan_redirect(struct sh_parser *p, struct sh_token *t)
{
	size_t fd = fd_length(p), n = 0;
	enum sh_redirect_kind kind = SH_OUT;
	const char *from = p->s + p->c.at;
	bool named = sh_peek(p, 0) == '{';
	for (size_t i = 0; i < ARRAY_LEN(redirects) && !n; i++) {
		size_t len = strlen(redirects[i].text);
		if (len <= p->n - p->c.at - fd && memcmp(from + fd, redirects[i].text, len) == 0) {
			kind = redirects[i].kind;
			n = len;
		}
	}
	/* <( and >( begin a word. */
	if (!n || (fd && from[fd] == '&') || (n == 1 && !fd && sh_peek(p, 1) == '('))
		return false;
	if (!(t->redirect = sh_new(p, sizeof(*t->redirect))))
		return false;
	*t->redirect = (struct sh_redirect){.kind = kind,
		.pos = t->pos,
		.fd_name = fd && named,
		.fd = {from + (fd && named), fd - (fd && named ? 2 : 0)}};
	t->kind = SH_T_REDIRECT;
	t->text = (struct sh_text){from, fd + n};
	sh_skip(p, fd + n);
	return true;
}

static bool scan_op(struct sh_parser *p, struct sh_token *t)
{
	static const char *const ops[] = {
		";;&", ";;", ";&", "&&", "||", "|&", ";", "&", "|", "(", ")"};
	for (size_t i = 0; i < ARRAY_LEN(ops); i++) {
		if (!sh_at(p, ops[i]))
			continue;
		t->kind = SH_T_OP;
		t->text = (struct sh_text){p->s + p->c.at, strlen(ops[i])};
		sh_skip(p, t->text.len);
		return true;
	}
	return false;
}

static void scan_token(struct sh_parser *p, struct sh_token *t)
{
	size_t from;
	sh_blanks(p);
	from = p->c.at;
	*t = (struct sh_token){.kind = SH_T_END, .pos = sh_here(p), .text = {p->s + from, 0}};
	if (sh_peek(p, 0) < 0)
		return;
	if (sh_peek(p, 0) == '\n') {
		t->kind = SH_T_NEWLINE;
		sh_bump(p);
		return;
	}
	if (scan_redirect(p, t) || scan_op(p, t) || p->failed)
		return;
	if (!(t->word = sh_scan_word(p))) {
		sh_fail(p, t->pos, "an unexpected character");
		return;
	}
	t->kind = SH_T_WORD;
	t->text.len = p->c.at - from;
}

const struct sh_token *sh_token(struct sh_parser *p)
{
	if (!p->has_ahead) {
		struct sh_token t; /* a command within a word uses p->ahead meanwhile */
		scan_token(p, &t);
		p->ahead = t;
		p->has_ahead = true;
	}
	if (p->failed)
		p->ahead = (struct sh_token){.kind = SH_T_END, .pos = p->ahead.pos};
	return &p->ahead;
}

void sh_take(struct sh_parser *p)
{
	p->has_ahead = false;
	if (p->ahead.kind == SH_T_NEWLINE && p->pending)
		read_bodies(p);
}

bool sh_is_op(struct sh_parser *p, const char *op)
{
	const struct sh_token *t = sh_token(p);
	return t->kind == SH_T_OP && sh_text_is(t->text, op);
}

bool sh_is_word(struct sh_parser *p, const char *word)
{
	const struct sh_token *t = sh_token(p);
	const struct sh_part *part = t->kind == SH_T_WORD ? t->word->parts : NULL;
	return part && part->kind == SH_LITERAL && !part->next && sh_text_is(part->text, word);
}
