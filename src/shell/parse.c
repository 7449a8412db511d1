/* Tokens to commands: the productions of POSIX 2018 XCU 2.10.2, with bash's compound commands. */
#include "shell/parser.h"

#include <string.h>

struct sh_script {
	struct sh_pool pool;
	struct sh_list *list;
};

static struct sh_command *parse_command(struct sh_parser *p);

static void unexpected(struct sh_parser *p, const char *wanted)
{
	const struct sh_token *t = sh_token(p);
	int n = (int)MIN(t->text.len, (size_t)40);
	if (t->kind == SH_T_END)
		sh_fail(p, t->pos, "the end comes before %s", wanted);
	else if (t->kind == SH_T_NEWLINE)
		sh_fail(p, t->pos, "the line ends before %s", wanted);
	else
		sh_fail(p, t->pos, "'%.*s' comes before %s", n, t->text.at, wanted);
}

static void newlines(struct sh_parser *p)
{
	while (sh_token(p)->kind == SH_T_NEWLINE)
		sh_take(p);
}

static void expect_word(struct sh_parser *p, const char *word)
{
	if (sh_is_word(p, word))
		sh_take(p);
	else
		unexpected(p, word);
}

static void expect_op(struct sh_parser *p, const char *op)
{
	if (sh_is_op(p, op))
		sh_take(p);
	else
		unexpected(p, op);
}

/* Words that, where a command could begin, end the list before them. */
static bool ends_list(struct sh_parser *p)
{
	static const char *const words[] = {
		"then", "else", "elif", "fi", "do", "done", "esac", "}"};
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (sh_is_word(p, words[i]))
			return true;
	return false;
}

static bool begins_command(struct sh_parser *p)
{
	const struct sh_token *t = sh_token(p);
	return t->kind == SH_T_REDIRECT || sh_is_op(p, "(") ||
	       (t->kind == SH_T_WORD && !ends_list(p));
}

/* A list that must have a command. */
static struct sh_list *body(struct sh_parser *p, const char *wanted)
{
	struct sh_list *list = sh_parse_list(p);
	if (!p->failed && (!list || !list->items))
		unexpected(p, wanted);
	return list;
}

/* Does every backslash at the end have another to escape? */
static bool ends_whole(struct sh_text raw)
{
	size_t n = 0;
	while (n < raw.len && raw.at[raw.len - 1 - n] == '\\')
		n++;
	return n % 2 == 0;
}

/* The delimiter of a here-document is its word without quotes; nothing in it is expanded. */
static void set_delimiter(struct sh_parser *p, struct sh_redirect *r, struct sh_text raw)
{
	char *text = sh_new(p, raw.len + 1);
	size_t n = 0;
	char quote = 0;
	for (size_t i = 0; text && i < raw.len; i++) {
		char ch = raw.at[i];
		bool ansi = ch == '$' && !quote && i + 1 < raw.len &&
			    (raw.at[i + 1] == '\'' || raw.at[i + 1] == '"');
		if (quote ? ch == quote : ch == '\'' || ch == '"') {
			quote = quote ? 0 : ch;
			r->quoted = true;
		} else if (ch == '\\' && quote != '\'' && i + 1 < raw.len) {
			r->quoted = true;
			if (raw.at[++i] != '\n')
				text[n++] = raw.at[i];
		} else if (!ansi) {
			text[n++] = ch;
		}
	}
	r->delimiter = (struct sh_text){text, n};
	/* Only where the script ends can a word end in a backslash that escapes nothing. */
	if (text && !quote && !ends_whole(raw))
		sh_fail(p, r->pos, "the end comes after a backslash in a here-document");
	if (n && memchr(text, '\n', n))
		sh_fail(p, r->pos, "a here-document that no line can end");
}

static void add_pending(struct sh_parser *p, struct sh_redirect *r)
{
	struct sh_pending **end = &p->pending;
	struct sh_pending *h = sh_new(p, sizeof(*h));
	if (!h)
		return;
	while (*end)
		end = &(*end)->next;
	*h = (struct sh_pending){.redirect = r};
	*end = h;
}

static struct sh_redirect *parse_redirect(struct sh_parser *p)
{
	struct sh_redirect *r = sh_token(p)->redirect;
	sh_take(p);
	const struct sh_token *t = sh_token(p);
	if (t->kind != SH_T_WORD) {
		unexpected(p, "the target of a redirection");
		return NULL;
	}
	r->target = t->word;
	if (r->kind == SH_HERE || r->kind == SH_HERE_TABS) {
		r->written = t->text;
		set_delimiter(p, r, t->text);
		add_pending(p, r);
	}
	sh_take(p);
	return r;
}

static void parse_redirects(struct sh_parser *p, struct sh_command *c)
{
	struct sh_redirect **end = &c->redirects;
	while (*end)
		end = &(*end)->next;
	while (sh_token(p)->kind == SH_T_REDIRECT && (*end = parse_redirect(p)))
		end = &(*end)->next;
}

static struct sh_list *parse_do(struct sh_parser *p)
{
	struct sh_list *list;
	expect_word(p, "do");
	list = body(p, "a command");
	expect_word(p, "done");
	return list;
}

/* `do ... done`, or bash's { ... } in its place. */
static struct sh_list *parse_loop_body(struct sh_parser *p)
{
	struct sh_list *list;
	if (!sh_is_word(p, "{"))
		return parse_do(p);
	sh_take(p);
	list = body(p, "a command");
	expect_word(p, "}");
	return list;
}

static struct sh_clause *add_clause(struct sh_parser *p, struct sh_clause ***end)
{
	struct sh_clause *c = sh_new(p, sizeof(*c));
	if (!c)
		return NULL;
	**end = c;
	*end = &c->next;
	return c;
}

static void parse_if(struct sh_parser *p, struct sh_command *c)
{
	struct sh_clause **end = &c->clauses, *clause;
	do {
		sh_take(p); /* if, elif */
		if (!(clause = add_clause(p, &end)))
			return;
		clause->condition = body(p, "a command");
		expect_word(p, "then");
		clause->body = body(p, "a command");
	} while (sh_is_word(p, "elif"));
	if (sh_is_word(p, "else")) {
		sh_take(p);
		if ((clause = add_clause(p, &end)))
			clause->body = body(p, "a command");
	}
	expect_word(p, "fi");
}

static void parse_while(struct sh_parser *p, struct sh_command *c)
{
	struct sh_clause **end = &c->clauses, *clause;
	c->kind = sh_is_word(p, "while") ? SH_WHILE : SH_UNTIL;
	sh_take(p);
	if (!(clause = add_clause(p, &end)))
		return;
	clause->condition = body(p, "a command");
	clause->body = parse_do(p);
}

static void parse_words(struct sh_parser *p, struct sh_word **end)
{
	while (sh_token(p)->kind == SH_T_WORD) {
		*end = p->ahead.word;
		end = &(*end)->next;
		sh_take(p);
	}
}

static void parse_for_arith(struct sh_parser *p, struct sh_command *c)
{
	c->kind = SH_FOR_ARITH;
	p->has_ahead = false;
	sh_bump(p); /* the second ( */
	if (!sh_scan_arith(p, &c->arith))
		sh_fail(p, c->pos, "a for (( that nothing closes");
}

static void parse_for(struct sh_parser *p, struct sh_command *c)
{
	c->kind = sh_is_word(p, "for") ? SH_FOR : SH_SELECT;
	sh_take(p);
	if (sh_is_op(p, "(") && sh_peek(p, 0) == '(') {
		parse_for_arith(p, c);
	} else if (sh_token(p)->kind != SH_T_WORD) {
		unexpected(p, "the name of a variable");
	} else {
		c->name = p->ahead.text;
		sh_take(p);
	}
	if (c->kind != SH_FOR_ARITH) {
		newlines(p);
		if ((c->has_in = sh_is_word(p, "in"))) {
			sh_take(p);
			parse_words(p, &c->words);
			if (sh_token(p)->kind != SH_T_NEWLINE && !sh_is_op(p, ";"))
				unexpected(p, "; or a new line");
		}
	}
	if (sh_is_op(p, ";"))
		sh_take(p);
	newlines(p);
	c->body = parse_loop_body(p);
}

static void parse_case_end(struct sh_parser *p, struct sh_case_item *item)
{
	item->end = sh_is_op(p, ";&")    ? SH_CASE_FALL
		    : sh_is_op(p, ";;&") ? SH_CASE_NEXT
					 : SH_CASE_BREAK;
	if (sh_is_op(p, ";;") || item->end != SH_CASE_BREAK)
		sh_take(p);
	else if (!sh_is_word(p, "esac"))
		unexpected(p, ";; or esac");
	newlines(p);
}

static struct sh_case_item *parse_case_item(struct sh_parser *p)
{
	struct sh_case_item *item = sh_new(p, sizeof(*item));
	struct sh_word **end;
	if (!item)
		return NULL;
	*item = (struct sh_case_item){.pos = sh_token(p)->pos};
	end = &item->patterns;
	if (sh_is_op(p, "("))
		sh_take(p);
	do {
		if (item->patterns)
			sh_take(p); /* | */
		struct sh_word *pattern = sh_token(p)->kind == SH_T_WORD ? p->ahead.word : NULL;
		if (!pattern) {
			unexpected(p, "a pattern");
			return item;
		}
		*end = pattern;
		end = &pattern->next;
		sh_take(p);
	} while (sh_is_op(p, "|"));
	expect_op(p, ")");
	item->body = sh_parse_list(p);
	parse_case_end(p, item);
	return item;
}

static void parse_case(struct sh_parser *p, struct sh_command *c)
{
	struct sh_case_item **end = &c->items;
	c->kind = SH_CASE;
	sh_take(p);
	if (sh_token(p)->kind != SH_T_WORD) {
		unexpected(p, "a word");
		return;
	}
	c->word = p->ahead.word;
	sh_take(p);
	newlines(p);
	expect_word(p, "in");
	newlines(p);
	while (!p->failed && !sh_is_word(p, "esac") && (*end = parse_case_item(p)))
		end = &(*end)->next;
	expect_word(p, "esac");
}

static void parse_function_body(struct sh_parser *p, struct sh_command *c)
{
	newlines(p);
	c->kind = SH_FUNCTION;
	c->inner = parse_command(p);
	if (!p->failed && (c->inner->kind == SH_SIMPLE || c->inner->kind == SH_FUNCTION ||
				  c->inner->kind == SH_COPROC))
		sh_fail(p, c->inner->pos, "a function's body must be a compound command");
}

static void parse_function(struct sh_parser *p, struct sh_command *c)
{
	sh_take(p);
	if (sh_token(p)->kind != SH_T_WORD) {
		unexpected(p, "the name of a function");
		return;
	}
	c->name = p->ahead.text;
	sh_take(p);
	if (sh_is_op(p, "(") && sh_peek(p, 0) != '(') {
		sh_take(p);
		if (sh_is_op(p, ")")) {
			sh_take(p);
		} else {
			unexpected(p, ")");
		}
	}
	parse_function_body(p, c);
}

/* ((...)), or two subshells when it is no arithmetic. */
static void parse_parens(struct sh_parser *p, struct sh_command *c)
{
	if (sh_peek(p, 0) == '(') {
		struct sh_parser before = *p;
		sh_bump(p);
		p->has_ahead = false;
		c->kind = SH_ARITH_COMMAND;
		if (sh_scan_arith(p, &c->arith) || p->failed)
			return;
		*p = before;
	}
	c->kind = SH_SUBSHELL;
	sh_take(p);
	c->body = body(p, "a command");
	expect_op(p, ")");
}

static void parse_group(struct sh_parser *p, struct sh_command *c)
{
	c->kind = SH_GROUP;
	sh_take(p);
	c->body = body(p, "a command");
	expect_word(p, "}");
}

static bool is_compound(struct sh_parser *p)
{
	static const char *const words[] = {
		"{", "if", "while", "until", "for", "select", "case", "[["};
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (sh_is_word(p, words[i]))
			return true;
	return sh_is_op(p, "(");
}

/* NAME, when a compound command follows it, or a command without a name. */
static void parse_coproc(struct sh_parser *p, struct sh_command *c)
{
	c->kind = SH_COPROC;
	sh_take(p);
	if (sh_token(p)->kind == SH_T_WORD && !is_compound(p)) {
		struct sh_parser before = *p;
		struct sh_text name = p->ahead.text;
		sh_take(p);
		if (is_compound(p))
			c->name = name;
		else if (!p->failed)
			*p = before;
	}
	c->inner = parse_command(p);
}

static void parse_simple(struct sh_parser *p, struct sh_command *c)
{
	struct sh_word **end = &c->words;
	bool begun = false;
	while (!p->failed) {
		const struct sh_token *t = sh_token(p);
		if (t->kind == SH_T_REDIRECT) {
			parse_redirects(p, c);
		} else if (t->kind == SH_T_WORD) {
			*end = t->word;
			end = &(*end)->next;
			begun = true;
			c->name = t->text;
			sh_take(p);
		} else {
			break;
		}
	}
	if (begun && !c->words->next && !c->redirects && !c->words->assigns && sh_is_op(p, "(")) {
		sh_take(p);
		expect_op(p, ")");
		c->words = NULL;
		parse_function_body(p, c);
		return;
	}
	c->name = (struct sh_text){NULL, 0};
	if (!begun && !c->redirects)
		unexpected(p, "a command");
}

static bool parse_compound(struct sh_parser *p, struct sh_command *c)
{
	if (sh_is_op(p, "(")) {
		parse_parens(p, c);
	} else if (sh_is_word(p, "{")) {
		parse_group(p, c);
	} else if (sh_is_word(p, "if")) {
		c->kind = SH_IF;
		parse_if(p, c);
	} else if (sh_is_word(p, "while") || sh_is_word(p, "until")) {
		parse_while(p, c);
	} else if (sh_is_word(p, "for") || sh_is_word(p, "select")) {
		parse_for(p, c);
	} else if (sh_is_word(p, "case")) {
		parse_case(p, c);
	} else if (sh_is_word(p, "[[")) {
		c->kind = SH_COND;
		c->cond = sh_parse_cond(p);
	} else {
		return false;
	}
	return true;
}

static struct sh_command *parse_command(struct sh_parser *p)
{
	struct sh_command *c = sh_new(p, sizeof(*c));
	if (!c || !sh_enter(p))
		return c;
	*c = (struct sh_command){.kind = SH_SIMPLE, .pos = sh_token(p)->pos};
	if (parse_compound(p, c))
		parse_redirects(p, c);
	else if (sh_is_word(p, "function"))
		parse_function(p, c);
	else if (sh_is_word(p, "coproc"))
		parse_coproc(p, c);
	else if (ends_list(p))
		unexpected(p, "a command");
	else
		parse_simple(p, c);
	sh_leave(p);
	return c;
}

static void parse_pipeline_prefix(struct sh_parser *p, struct sh_pipeline *line)
{
	for (;;) {
		if (sh_is_word(p, "!")) {
			line->negate = !line->negate;
		} else if (sh_is_word(p, "time") && !line->timed) {
			line->timed = true;
		} else if (line->timed && !line->timed_posix && sh_is_word(p, "-p")) {
			line->timed_posix = true;
		} else {
			break;
		}
		sh_take(p);
	}
}

static struct sh_pipeline *parse_pipeline(struct sh_parser *p, enum sh_join join)
{
	struct sh_pipeline *line = sh_new(p, sizeof(*line));
	struct sh_command **end;
	if (!line)
		return NULL;
	*line = (struct sh_pipeline){.pos = sh_token(p)->pos, .join = join};
	parse_pipeline_prefix(p, line);
	if ((line->negate || line->timed) && !begins_command(p))
		return line;
	for (end = &line->commands; (*end = parse_command(p)) && !p->failed; end = &(*end)->next) {
		if (!sh_is_op(p, "|") && !sh_is_op(p, "|&"))
			break;
		(*end)->pipe_stderr = sh_is_op(p, "|&");
		sh_take(p);
		newlines(p);
	}
	return line;
}

static struct sh_item *parse_item(struct sh_parser *p)
{
	struct sh_item *item = sh_new(p, sizeof(*item));
	struct sh_pipeline **end;
	enum sh_join join = SH_ALWAYS;
	if (!item)
		return NULL;
	*item = (struct sh_item){.background = false};
	for (end = &item->pipelines; (*end = parse_pipeline(p, join)) && !p->failed;
		end = &(*end)->next) {
		if (!sh_is_op(p, "&&") && !sh_is_op(p, "||"))
			break;
		join = sh_is_op(p, "&&") ? SH_AND : SH_OR;
		sh_take(p);
		newlines(p);
	}
	return item;
}

struct sh_list *sh_parse_list(struct sh_parser *p)
{
	struct sh_list *list = sh_new(p, sizeof(*list));
	struct sh_item **end;
	if (!list || !sh_enter(p))
		return NULL;
	*list = (struct sh_list){.items = NULL};
	end = &list->items;
	for (newlines(p); begins_command(p) && (*end = parse_item(p)) && !p->failed; newlines(p)) {
		bool more =
			sh_token(p)->kind == SH_T_NEWLINE || sh_is_op(p, ";") || sh_is_op(p, "&");
		(*end)->background = sh_is_op(p, "&");
		end = &(*end)->next;
		if (!more)
			break;
		sh_take(p);
	}
	sh_leave(p);
	return p->failed ? NULL : list;
}

struct sh_list *sh_parse_inside(struct sh_parser *p)
{
	struct sh_pending *outer = p->pending, **end;
	bool pattern = p->pattern;
	struct sh_list *list;
	p->pending = NULL;
	p->pattern = false;
	p->has_ahead = false;
	sh_bump(p);
	list = sh_parse_list(p);
	if (!sh_is_op(p, ")"))
		unexpected(p, ")");
	p->has_ahead = false;
	p->pattern = pattern;
	/* A body that has not come before the ) comes after the line, as the older shells read it.
	 */
	for (end = &outer; *end;)
		end = &(*end)->next;
	*end = p->pending;
	p->pending = outer;
	return list;
}

static int parse_script(struct sh_script *script, const char *text, size_t n, struct err *err)
{
	uint32_t steps = 0;
	struct sh_parser p = {.pool = &script->pool,
		.err = err,
		.s = text,
		.n = n,
		.c = {.line = 1},
		.steps = &steps};
	script->list = sh_parse_list(&p);
	if (sh_token(&p)->kind != SH_T_END)
		unexpected(&p, "a command");
	return p.failed ? -(int)err->code : 0;
}

int sh_parse(const char *source, size_t n, struct sh_script **ret, struct err *err)
{
	if (n > SH_MAX_BYTES)
		return err_set(err, ERR_LIMIT, "the script has more than %d bytes", SH_MAX_BYTES);
	const char *nul = n ? memchr(source, 0, n) : NULL;
	if (nul)
		return err_set(err, ERR_PARSE, "the script has a zero byte at offset %zu",
			(size_t)(nul - source));
	_cleanup_(cleanup_sh_script_free) struct sh_script *script = calloc(1, sizeof(*script));
	if (!script)
		return err_oom(err);
	script->pool.max = SH_MAX_MEMORY;
	char *text = sh_pool_get(&script->pool, n + 1);
	if (!text)
		return err_oom(err);
	if (n)
		memcpy(text, source, n);
	int r = parse_script(script, text, n, err);
	if (r < 0)
		return r;
	*ret = take_ptr(script);
	return 0;
}

void sh_script_free(struct sh_script *script)
{
	if (!script)
		return;
	sh_pool_done(&script->pool);
	free(script);
}

const struct sh_list *sh_script_list(const struct sh_script *script)
{
	return script->list;
}
