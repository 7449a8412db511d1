/* cloister help [COMMAND]: made from the tables, so it cannot say anything else than they do. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

static void print_options(const struct option *table)
{
	for (const struct option *o = table; o->name; o++)
		printf("  --%s %s\n        %s\n", o->name, o->value ? o->value : "", o->help);
}

static void print_all(void)
{
	printf("cloister COMMAND ...\n\n");
	for (const struct verb *v = verbs; v->word; v++)
		printf("  %-11s %s\n", v->word, v->help);
	printf("\nThe options of a command: cloister help COMMAND. Exit status: 0 done, 2 usage, "
	       "3 refused,\n4 not found, 5 conflict or busy, 6 limit, 7 input/output, 8 something "
	       "is missing, 70 internal.\n");
}

static bool is_positional(const struct verb *v, const struct field *f)
{
	size_t n = strlen(f->name);
	for (const char *p = strstr(v->arguments, f->name); p; p = strstr(p + 1, f->name))
		if ((p == v->arguments || p[-1] == ' ') && strchr(" ?", p[n]))
			return true;
	return false;
}

static void print_tool_options(const struct verb *v)
{
	char name[OPTION_NAME_MAX];
	for (const struct field *f = v->tool->args; f->name; f++) {
		bool on = f->type == FIELD_BOOL && f->dflt;
		if (is_positional(v, f))
			continue;
		option_name_of(f, name);
		printf("  --%s%s%s\n        %s%s\n", on ? "no-" : "", name,
			f->type == FIELD_BOOL ? "" : " VALUE", on ? "Not: " : "", f->help);
	}
}

/* The keys of the configuration, each also an option and a variable. */
static void print_settings(void)
{
	printf("\nconfiguration (cloister.toml, environment, option)\n");
	for (unsigned i = 0; i < CONFIG_ID_MAX_; i++) {
		const struct config_key *k = &config_keys[i];
		printf("  --%s VALUE  (%s, %s)\n        %s.\n", k->flag, k->key, k->environment,
			k->sentence);
	}
}

int verb_help(struct cli *c, const struct verb *v _unused_, int argc, char **argv, struct err *err)
{
	struct arguments a;
	struct option common[COMMON_OPTIONS + 1];
	int r = cli_parse(c, NULL, argc, argv, &a, err);
	if (r < 0)
		return r;
	if (a.n == 0) {
		print_all();
		return 0;
	}
	const struct verb *about = verb_find(a.v[0]);
	if (!about)
		return err_set(err, ERR_INVALID_ARGUMENT, "no command is called '%.64s'", a.v[0]);
	printf("cloister %s %s\n%s.\n\n", about->word, about->arguments, about->help);
	if (about->tool)
		print_tool_options(about);
	common_options(c, common);
	print_options(common);
	print_settings();
	return 0;
}
