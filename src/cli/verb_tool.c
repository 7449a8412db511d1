/*
 * The readable forms of tools: `cloister read PATH`, `cloister ls`, ... Arguments and options are
 * made from the tool's own table, so what a tool takes, its readable form takes too.
 */
#include "cli/cli.h"
#include "cli/input.h"
#include "codec/json.h"

#include <stdio.h>
#include <string.h>

void option_name_of(const struct field *f, char ret[OPTION_NAME_MAX])
{
	size_t n = 0;
	for (; f->name[n] && n < OPTION_NAME_MAX - 1; n++)
		ret[n] = f->name[n] == '_' ? '-' : f->name[n];
	ret[n] = '\0';
}

struct reading {
	struct cli *c;
	const struct tool *tool;
	json_t *args;
};

static int set(json_t *args, const char *name, json_t *take, struct err *err)
{
	return json_object_set_new_nocheck(args, name, take) < 0 ? err_oom(err) : 0;
}

/* An argument as it was typed, turned into what the tool's table says. */
static int set_text(json_t *args, const struct field *f, const char *text, struct err *err)
{
	int64_t n = 0;
	json_t *v = NULL;
	char name[OPTION_NAME_MAX];
	int r;
	switch (f->type) {
	case FIELD_INT:
		option_name_of(f, name);
		if ((r = option_int(name, text, &n, err)) < 0)
			return r;
		return set(args, f->name, json_integer(n), err);
	case FIELD_STRING:
	case FIELD_ENUM:
		if (!utf8_valid(text, strlen(text)))
			return err_set(err, ERR_INVALID_ARGUMENT,
				"'%s' is not UTF-8; write other bytes of a name as \\xHH", f->name);
		return set(args, f->name, json_string_nocheck(text), err);
	case FIELD_BOOL:
	case FIELD_ARRAY:
	case FIELD_OBJECT:
	case FIELD_ANY: break;
	}
	if (f->type == FIELD_ARRAY && f->items->type == FIELD_STRING) {
		json_t *list = json_object_get(args, f->name);
		if (!list && (r = set(args, f->name, json_array(), err)) < 0)
			return r;
		list = json_object_get(args, f->name);
		return json_array_append_new(list, json_string(text)) < 0 ? err_oom(err) : 0;
	}
	if (json_parse(str_of(text), LIMIT_REQUEST_BYTES, &v, err) < 0)
		return err_wrap(err, "--%s", f->name);
	return set(args, f->name, v, err);
}

/* --no-NAME switches off what is on by default. */
static const struct field *field_of_option(
	const struct tool *t, const char *name, bool *ret_negated)
{
	char spelled[OPTION_NAME_MAX];
	for (const struct field *f = t->args; f->name; f++) {
		option_name_of(f, spelled);
		*ret_negated = false;
		if (strcmp(spelled, name) == 0)
			return f;
		*ret_negated = true;
		if (f->type == FIELD_BOOL && strncmp(name, "no-", 3) == 0 &&
			strcmp(spelled, name + 3) == 0)
			return f;
	}
	return NULL;
}

static int take_option(void *ctx, const char *const *args, unsigned *ret_taken, struct err *err)
{
	struct reading *g = ctx;
	char name[OPTION_NAME_MAX];
	const char *value;
	bool negated;
	const struct field *f = option_split(args[0], name, &value)
					? field_of_option(g->tool, name, &negated)
					: NULL;
	if (!f)
		return take_setting(g->c, args, ret_taken, err);
	*ret_taken = 1;
	if (f->type == FIELD_BOOL && value)
		return err_set(err, ERR_INVALID_ARGUMENT, "--%s takes no value", name);
	if (f->type == FIELD_BOOL)
		return set(g->args, f->name, json_boolean(!negated), err);
	if (!value && !args[1])
		return err_set(err, ERR_INVALID_ARGUMENT, "--%s needs a value", name);
	*ret_taken += !value;
	return set_text(g->args, f, value ? value : args[1], err);
}

static const struct field *field_named(const struct tool *t, struct str name)
{
	for (const struct field *f = t->args; f->name; f++)
		if (str_eq_c(name, f->name))
			return f;
	BUG_ON(true); /* verbs.def names an argument that the tool has not */
	return NULL;
}

/* Words in the order of the verb's table. `content?` that is not there comes from standard input.
 */
static int set_positionals(
	struct reading *g, const char *spec, const struct arguments *a, struct err *err)
{
	unsigned i = 0;
	int r = 0;
	for (const char *p = spec; *p && r == 0;) {
		struct str name = {p, strcspn(p, " ?")};
		bool optional = p[name.n] == '?';
		const struct field *f = field_named(g->tool, name);
		if (i < a->n)
			r = set_text(g->args, f, a->v[i++], err);
		else if (!optional)
			return err_set(err, ERR_INVALID_ARGUMENT, "%.*s is missing: %s",
				(int)name.n, p, f->help);
		else if (str_eq_c(name, "content"))
			r = input_content(g->args, err);
		p += name.n + optional;
		p += *p == ' ';
	}
	if (r == 0 && i < a->n)
		r = err_set(err, ERR_INVALID_ARGUMENT, "'%.64s' is one argument too many", a->v[i]);
	return r;
}

int verb_tool(struct cli *c, const struct verb *v, int argc, char **argv, struct err *err)
{
	struct arguments a;
	struct option common[COMMON_OPTIONS + 1];
	_cleanup_(cleanup_json_decref) json_t *args = json_object();
	struct reading g = {.c = c, .tool = v->tool, .args = args};
	if (!args)
		return err_oom(err);
	common_options(c, common);
	int r = options_parse(common, argc, argv, take_option, &g, &a, err);
	if (r == 0)
		r = set_positionals(&g, v->arguments, &a, err);
	if (r < 0)
		return r;
	return cli_call(c, v->tool->name, args, v->show, err);
}
