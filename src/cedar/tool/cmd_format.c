/*
 * format: policies in one style, comments kept.
 *
 * Comments between policies stay where they are. A policy with a comment inside of it is left as it
 * was written: the tree does not know comments, and losing one is worse than an old layout.
 */
#include <stdlib.h>
#include <string.h>

#include "cedar/parse.h"
#include "cedar/print.h"
#include "tool.h"

enum { WIDTH_MAX = 1000 };

struct formatter {
	const struct file *f;
	struct ced_out out;
	size_t at; /* everything before is written */
	struct ced_layout layout;
};

/* A comment between two tokens of the text. */
static bool has_comment(const char *text, size_t n)
{
	struct ced_lexer lex;
	struct ced_token t;
	size_t end = 0;
	ced_lex_init(&lex, text, n, NULL);
	while (ced_lex_next(&lex, &t) == 0 && t.kind != CED_TOKEN_END) {
		if (t.pos.offset > end && memmem(text + end, t.pos.offset - end, "//", 2))
			return true;
		end = t.pos.offset + t.pos.length;
	}
	return false;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* The comments up to `end`, each on its line. */
static void copy_comments(struct formatter *w, size_t end)
{
	const char *text = w->f->data;
	while (w->at < end) {
		if (text[w->at] != '/') {
			w->at++;
			continue;
		}
		size_t from = w->at;
		while (w->at < end && text[w->at] != '\n' && text[w->at] != '\r')
			w->at++;
		size_t to = w->at;
		while (to > from && is_blank(text[to - 1]))
			to--;
		ced_out_bytes(&w->out, text + from, to - from);
		ced_out_text(&w->out, "\n");
	}
}

static int format_policy(void *ctx, struct ced_policy *policy, struct cedar_error *err)
{
	struct formatter *w = ctx;
	const char *text = w->f->data + policy->pos.offset;
	(void)err;
	if (w->out.length)
		ced_out_text(&w->out, "\n");
	copy_comments(w, policy->pos.offset);
	if (has_comment(text, policy->pos.length)) {
		ced_out_bytes(&w->out, text, policy->pos.length);
		ced_out_text(&w->out, "\n");
	} else {
		ced_print_policy(&w->out, policy, &w->layout);
	}
	w->at = policy->pos.offset + policy->pos.length;
	return 0;
}

static int format_file(struct formatter *w)
{
	struct cedar_limits limits = cedar_limits_default();
	struct cedar_error err;
	struct ced_arena arena;
	struct ced_names names;
	ced_arena_init(&arena, limits.memory_bytes, "memory_bytes");
	ced_names_init(&names, &arena);
	struct ced_source s = {&arena, &names, &limits, &err};
	int code = ced_parse_policies(&s, w->f->data, w->f->n, format_policy, w);
	if (code == 0)
		copy_comments(w, w->f->n);
	else
		diag_error("error", w->f, &err);
	ced_names_done(&names);
	ced_arena_done(&arena);
	return code;
}

static bool write_file(const char *name, const struct cedar_text *text)
{
	FILE *f = fopen(name, "we");
	bool ok = f && fwrite(text->data, 1, text->length, f) == text->length;
	if (f && fclose(f) != 0)
		ok = false;
	if (!ok)
		diag_say("error", "cannot write %s", name);
	return ok;
}

int cmd_format(const struct options *o)
{
	struct file f;
	struct cedar_text text = {0};
	struct cedar_error err;
	struct ced_layout layout = ced_layout_default;
	int status = TOOL_FAILURE;
	if (read_number("line-width", o->line_width, WIDTH_MAX, &layout.line_width) != 0 ||
		read_number("indent-width", o->indent_width, WIDTH_MAX, &layout.indent_width) != 0)
		return TOOL_FAILURE;
	if (file_read(o->policies, &f) != 0)
		return TOOL_FAILURE;
	struct formatter w = {.f = &f, .layout = layout};
	if (format_file(&w) < 0) {
		free(w.out.data);
	} else if (ced_out_take(&w.out, &text, &err) < 0) {
		diag_error("error", NULL, &err);
	} else if (o->check) {
		bool same = text.length == f.n && (!f.n || memcmp(text.data, f.data, f.n) == 0);
		status = same ? TOOL_OK : TOOL_FAILURE;
	} else if (o->write && o->policies) {
		status = write_file(o->policies, &text) ? TOOL_OK : TOOL_FAILURE;
	} else {
		(void)fwrite(text.data, 1, text.length, stdout);
		status = TOOL_OK;
	}
	cedar_text_free(&text);
	file_done(&f);
	return status;
}
