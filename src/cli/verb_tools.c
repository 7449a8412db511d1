/* cloister tools [TOOL]: the tool table, as a list or with every argument of one tool. */
#include "cli/cli.h"
#include "codec/json_write.h"
#include "tools/tools.h"

#include <stdio.h>
#include <string.h>

static void print_json(const struct tool *t)
{
	_cleanup_buf_ struct buf b = buf_init(1024 * 1024);
	buf_putc(&b, '{');
	jw_cstr(&b, "name", t->name);
	jw_cstr(&b, "title", t->title);
	jw_cstr(&b, "description", t->description);
	jw_cstr(&b, "group", action_group_word(t->group));
	jw_key(&b, "arguments");
	fields_schema(t->args, false, &b);
	jw_key(&b, "result");
	fields_schema(t->result, true, &b);
	buf_putc(&b, '}');
	printf("%s\n", buf_str(&b));
}

static void print_fields(const struct field *fields)
{
	for (const struct field *f = fields; f->name; f++)
		printf("    %-20s %s%s\n", f->name, f->help ? f->help : "",
			f->required ? " (needed)" : "");
}

static void print_tool(const struct tool *t)
{
	printf("%s: %s\n%s\n\narguments\n", t->name, t->title, t->description);
	print_fields(t->args);
	printf("\nresult\n");
	print_fields(t->result);
}

int verb_tools(struct cli *c, const struct verb *v _unused_, int argc, char **argv, struct err *err)
{
	struct arguments a;
	unsigned shown = 0;
	int r = cli_parse(c, NULL, argc, argv, &a, err);
	if (r < 0)
		return r;
	for (unsigned i = 0; tools_all[i]; i++) {
		const struct tool *t = tools_all[i];
		if (a.n > 0 && strcmp(a.v[0], t->name) != 0)
			continue;
		shown++;
		if (c->json)
			print_json(t);
		else if (a.n > 0)
			print_tool(t);
		else
			printf("%-20s %-8s %s\n", t->name, action_group_word(t->group), t->title);
	}
	if (shown == 0) {
		(void)err_set(err, ERR_UNKNOWN_TOOL, "no tool is called '%.64s'", a.v[0]);
		return err_hint(err, "the tools: cloister tools");
	}
	return 0;
}
