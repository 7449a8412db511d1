/* The tree as text. One command a line, so that the body of a here-document can follow its line. */
#include "shell/script.h"

enum { PRINT_HERE_MAX = 64 };

struct printer {
	struct buf *out;
	/* Here-documents whose bodies follow the next newline; when there is no room the line ends
	 * early. */
	const struct sh_redirect *pending[PRINT_HERE_MAX];
	size_t count;
	bool failed;
};

static void print_list(struct printer *p, const struct sh_list *list);
static void print_command(struct printer *p, const struct sh_command *c);
static void print_parts(struct printer *p, const struct sh_part *part);

static void text(struct printer *p, struct sh_text t)
{
	if (t.len)
		buf_put(p->out, t.at, t.len);
}

static void newline(struct printer *p)
{
	buf_putc(p->out, '\n');
	for (size_t i = 0; i < p->count; i++) {
		struct sh_text body = p->pending[i]->body;
		text(p, body);
		if (body.len && body.at[body.len - 1] != '\n')
			buf_putc(p->out, '\n');
		text(p, p->pending[i]->delimiter);
		buf_putc(p->out, '\n');
	}
	p->count = 0;
}

/* A list between parentheses; its here-documents are its own. */
static void print_inside(struct printer *p, const struct sh_list *list)
{
	struct printer inner = {.out = p->out};
	buf_puts(p->out, "(\n");
	print_list(&inner, list);
	buf_putc(p->out, ')');
}

static void print_words(struct printer *p, const struct sh_word *w)
{
	for (; w; w = w->next) {
		print_parts(p, w->parts);
		if (w->next)
			buf_putc(p->out, ' ');
	}
}

static void print_param(struct printer *p, const struct sh_param *param)
{
	buf_puts(p->out, param->braces ? "${" : "$");
	buf_puts(p->out, param->length ? "#" : param->indirect ? "!" : "");
	text(p, param->name);
	if (param->has_index) {
		buf_putc(p->out, '[');
		print_parts(p, param->index);
		buf_putc(p->out, ']');
	}
	text(p, param->op);
	print_parts(p, param->argument);
	if (param->has_second) {
		buf_putc(p->out, '/');
		print_parts(p, param->second);
	}
	if (param->braces)
		buf_putc(p->out, '}');
}

static void between(
	struct printer *p, const char *open, const struct sh_part *inner, const char *close)
{
	buf_puts(p->out, open);
	print_parts(p, inner);
	buf_puts(p->out, close);
}

static void quoted(struct printer *p, const char *open, struct sh_text t, const char *close)
{
	buf_puts(p->out, open);
	text(p, t);
	buf_puts(p->out, close);
}

static void print_part(struct printer *p, const struct sh_part *part)
{
	switch (part->kind) {
	case SH_LITERAL: text(p, part->text); break;
	case SH_ESCAPED: quoted(p, "\\", part->text, ""); break;
	case SH_SINGLE: quoted(p, "'", part->text, "'"); break;
	case SH_ANSI: quoted(p, "$'", part->text, "'"); break;
	case SH_BACKTICK: quoted(p, "`", part->text, "`"); break;
	case SH_DOUBLE: between(p, "\"", part->inner, "\""); break;
	case SH_LOCALE: between(p, "$\"", part->inner, "\""); break;
	case SH_ARITH: between(p, "$((", part->inner, "))"); break;
	case SH_OLD_ARITH: between(p, "$[", part->inner, "]"); break;
	case SH_INDEX: between(p, "[", part->inner, "]"); break;
	case SH_EXTGLOB:
		text(p, part->text);
		between(p, "(", part->inner, ")");
		break;
	case SH_PARAM: print_param(p, part->param); break;
	case SH_COMMAND:
		buf_putc(p->out, '$');
		print_inside(p, part->list);
		break;
	case SH_PROCESS:
		text(p, part->text);
		print_inside(p, part->list);
		break;
	case SH_ARRAY:
		buf_putc(p->out, '(');
		print_words(p, part->words);
		buf_putc(p->out, ')');
		break;
	}
}

static void print_parts(struct printer *p, const struct sh_part *part)
{
	for (; part; part = part->next)
		print_part(p, part);
}

static const char *const redirect_text[] = {
#define SH_REDIRECT(name, op) [SH_##name] = op,
#include "shell/redirect.def"
#undef SH_REDIRECT
};

static void print_redirects(struct printer *p, const struct sh_redirect *r, bool space)
{
	for (; r; r = r->next) {
		bool here = r->kind == SH_HERE || r->kind == SH_HERE_TABS;
		if (space)
			buf_putc(p->out, ' ');
		space = true;
		if (r->fd_name)
			quoted(p, "{", r->fd, "}");
		else
			text(p, r->fd);
		buf_puts(p->out, redirect_text[r->kind]);
		/* "< <(...)" must not become a here-document, nor ">&" take a digit away, and
		 * "<< -A" is not "<<-A", nor "<< <(a)" "<<<(a)". */
		if (!here || (r->written.len && strchr("-<>", r->written.at[0])))
			buf_putc(p->out, ' ');
		if (here)
			text(p, r->written);
		else
			print_parts(p, r->target->parts);
		if (here && p->count == PRINT_HERE_MAX)
			p->failed = true;
		else if (here)
			p->pending[p->count++] = r;
	}
}

static void keyword(struct printer *p, const char *word)
{
	buf_puts(p->out, word);
	newline(p);
}

static void print_cond(struct printer *p, const struct sh_cond *c)
{
	switch (c->kind) {
	case SH_COND_OR:
	case SH_COND_AND:
		print_cond(p, c->a);
		buf_puts(p->out, c->kind == SH_COND_OR ? " || " : " && ");
		print_cond(p, c->b);
		break;
	case SH_COND_NOT:
		buf_puts(p->out, "! ");
		print_cond(p, c->a);
		break;
	case SH_COND_PAREN:
		buf_puts(p->out, "( ");
		print_cond(p, c->a);
		buf_puts(p->out, " )");
		break;
	case SH_COND_UNARY:
		text(p, c->op);
		buf_putc(p->out, ' ');
		print_parts(p, c->left->parts);
		break;
	case SH_COND_BINARY:
		print_parts(p, c->left->parts);
		quoted(p, " ", c->op, " ");
		print_parts(p, c->right->parts);
		break;
	case SH_COND_WORD: print_parts(p, c->left->parts); break;
	}
}

static void print_body(
	struct printer *p, const char *open, const struct sh_list *list, const char *close)
{
	keyword(p, open);
	print_list(p, list);
	buf_puts(p->out, close);
}

static void print_if(struct printer *p, const struct sh_command *c)
{
	for (const struct sh_clause *k = c->clauses; k; k = k->next) {
		if (k->condition)
			print_body(p, k == c->clauses ? "if" : "elif", k->condition, "then");
		else
			buf_puts(p->out, "else");
		newline(p);
		print_list(p, k->body);
	}
	buf_puts(p->out, "fi");
}

static void print_for(struct printer *p, const struct sh_command *c)
{
	buf_puts(p->out, c->kind == SH_SELECT ? "select " : "for ");
	text(p, c->name);
	if (c->has_in) {
		buf_puts(p->out, c->words ? " in " : " in");
		print_words(p, c->words);
	}
	newline(p);
	print_body(p, "do", c->body, "done");
}

static void print_case(struct printer *p, const struct sh_command *c)
{
	static const char *const ends[] = {";;", ";&", ";;&"};
	buf_puts(p->out, "case ");
	print_parts(p, c->word->parts);
	keyword(p, " in");
	for (const struct sh_case_item *item = c->items; item; item = item->next) {
		buf_putc(p->out, '(');
		for (const struct sh_word *w = item->patterns; w; w = w->next) {
			print_parts(p, w->parts);
			buf_puts(p->out, w->next ? " | " : "");
		}
		keyword(p, ")");
		print_list(p, item->body);
		keyword(p, ends[item->end]);
	}
	buf_puts(p->out, "esac");
}

static void print_compound(struct printer *p, const struct sh_command *c)
{
	switch (c->kind) {
	case SH_SIMPLE: print_words(p, c->words); break;
	case SH_GROUP: print_body(p, "{", c->body, "}"); break;
	case SH_SUBSHELL: print_body(p, "(", c->body, ")"); break;
	case SH_IF: print_if(p, c); break;
	case SH_WHILE:
	case SH_UNTIL:
		print_body(p, c->kind == SH_WHILE ? "while" : "until", c->clauses->condition, "do");
		newline(p);
		print_list(p, c->clauses->body);
		buf_puts(p->out, "done");
		break;
	case SH_FOR:
	case SH_SELECT: print_for(p, c); break;
	case SH_FOR_ARITH:
		between(p, "for ((", c->arith, "))");
		newline(p);
		print_body(p, "do", c->body, "done");
		break;
	case SH_CASE: print_case(p, c); break;
	case SH_FUNCTION:
		quoted(p, "function ", c->name, " ()\n");
		print_command(p, c->inner);
		break;
	case SH_COPROC:
		quoted(p, "coproc ", c->name, c->name.len ? " " : "");
		print_command(p, c->inner);
		break;
	case SH_ARITH_COMMAND: between(p, "((", c->arith, "))"); break;
	case SH_COND:
		buf_puts(p->out, "[[ ");
		print_cond(p, c->cond);
		buf_puts(p->out, " ]]");
		break;
	}
}

/* Would this word begin something else where a command begins? Behind a redirection it does not. */
static bool is_reserved(const struct sh_word *w)
{
	static const char *const words[] = {"!", "[[", "case", "coproc", "do", "done", "elif",
		"else", "esac", "fi", "for", "function", "if", "select", "then", "time", "until",
		"while", "{", "}"};
	const struct sh_part *part = w ? w->parts : NULL;
	if (!part || part->next || part->kind != SH_LITERAL)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (part->text.len == strlen(words[i]) &&
			memcmp(part->text.at, words[i], part->text.len) == 0)
			return true;
	return false;
}

static void print_command(struct printer *p, const struct sh_command *c)
{
	bool behind = c->kind == SH_SIMPLE && c->redirects && is_reserved(c->words);
	if (behind) {
		print_redirects(p, c->redirects, false);
		buf_putc(p->out, ' ');
	}
	print_compound(p, c);
	if (!behind)
		print_redirects(p, c->redirects, c->kind != SH_SIMPLE || c->words);
}

static void print_pipeline(struct printer *p, const struct sh_pipeline *line)
{
	buf_puts(p->out, line->timed ? line->timed_posix ? "time -p " : "time " : "");
	buf_puts(p->out, line->negate ? "! " : "");
	for (const struct sh_command *c = line->commands; c; c = c->next) {
		print_command(p, c);
		if (c->next)
			buf_puts(p->out, c->pipe_stderr ? " |& " : " | ");
	}
}

static void print_list(struct printer *p, const struct sh_list *list)
{
	for (const struct sh_item *item = list->items; item; item = item->next) {
		for (const struct sh_pipeline *line = item->pipelines; line; line = line->next) {
			if (line->join != SH_ALWAYS)
				buf_puts(p->out, line->join == SH_AND ? " && " : " || ");
			print_pipeline(p, line);
		}
		if (item->background)
			buf_puts(p->out, " &");
		newline(p);
	}
}

void sh_print(const struct sh_list *list, struct buf *out)
{
	struct printer p = {.out = out};
	print_list(&p, list);
	if (p.failed)
		out->failed = true;
}
