/* cedar-c: options, and which command they go to. */
#include <getopt.h>
#include <string.h>

#include "tool.h"

/* The options that a command takes, as their short letters (upper case: no short form outside). */
static const struct command {
	const char *name;
	command_fn *run;
	const char *takes;
	const char *help;
} commands[] = {
	{"authorize", cmd_authorize, "pksePfFlarcqvtRX", "decide one request"},
	{"explain", cmd_explain, "pksePfFlarcqRX",
		"decide one request and say why, policy by policy"},
	{"validate", cmd_validate, "pksPfFDLMO", "check policies against a schema"},
	{"check-parse", cmd_check_parse, "pksePfF", "parse policies, a schema, entities"},
	{"translate-policy", cmd_translate_policy, "pd", "policies from text to JSON or back"},
	{"translate-schema", cmd_translate_schema, "sd", "a schema from text to JSON or back"},
	{"format", cmd_format, "pWIwC", "print policies in one style, comments kept"},
	{"batch", cmd_batch, "", "answer JSON lines from standard input"},
};

static const struct option_row {
	const char *name;
	char letter; /* by which the rest of the program knows it */
	char short_form;
	bool has_value;
	const char *help;
} rows[] = {
	{"policies", 'p', 'p', true, "FILE  policies (default: standard input)"},
	{"policy-format", 'f', 0, true, "cedar|json"},
	{"template-linked", 'k', 'k', true, "FILE  links of templates, JSON"},
	{"schema", 's', 's', true, "FILE  schema"},
	{"schema-format", 'F', 0, true, "cedar|json"},
	{"entities", 'e', 0, true, "FILE  entities, JSON"},
	{"principal", 'l', 'l', true, "ENTITY  e.g. User::\"alice\""},
	{"action", 'a', 'a', true, "ENTITY"},
	{"resource", 'r', 'r', true, "ENTITY"},
	{"context", 'c', 'c', true, "FILE  context, JSON"},
	{"request-json", 'q', 0, true, "FILE  all of the request in one object"},
	{"request-validation", 'R', 0, true, "true|false  check the request against the schema"},
	{"deny-on-forbid-error", 'X', 0, false, "a forbid that fails denies"},
	{"verbose", 'v', 'v', false, "name the policies that decided"},
	{"timing", 't', 't', false, "tell how long the decision took"},
	{"deny-warnings", 'D', 0, false, "warnings fail"},
	{"validation-mode", 'M', 0, true, "strict  (the only one)"},
	{"level", 'L', 0, true, "N  look-ups that policies may need"},
	{"inapplicable-is-error", 'O', 0, false, "as up to 4.12"},
	{"line-width", 'W', 'l', true, "N  columns of a line, 80"},
	{"indent-width", 'I', 'i', true, "N  spaces of an indentation, 2"},
	{"write", 'w', 'w', false, "change the file"},
	{"check", 'C', 'c', false, "exit status 1 when it is not formatted"},
	{"direction", 'd', 0, true, "cedar-to-json|json-to-cedar"},
};

enum { ROWS = sizeof(rows) / sizeof(rows[0]), COMMANDS = sizeof(commands) / sizeof(commands[0]) };

static void usage(FILE *to)
{
	(void)fputs("usage: cedar-c COMMAND [OPTION...]\n\n", to);
	for (int i = 0; i < COMMANDS; i++)
		(void)fprintf(to, "  %-18s %s\n", commands[i].name, commands[i].help);
	(void)fputs("\ncedar-c COMMAND --help tells the options.\n", to);
}

static void command_usage(const struct command *c)
{
	(void)printf("usage: cedar-c %s [OPTION...]\n\n", c->name);
	for (int i = 0; i < ROWS; i++) {
		if (!strchr(c->takes, rows[i].letter))
			continue;
		if (rows[i].short_form)
			(void)printf(
				"  -%c, --%s %s\n", rows[i].short_form, rows[i].name, rows[i].help);
		else
			(void)printf("      --%s %s\n", rows[i].name, rows[i].help);
	}
}

/* A word that must be one of two. */
static int one_of(const char *name, const char *value, const char *a, const char *b)
{
	if (strcmp(value, a) == 0 || strcmp(value, b) == 0)
		return 0;
	diag_say("error", "--%s is %s or %s, not `%s`", name, a, b, value);
	return TOOL_FAILURE;
}

static int set_option(struct options *o, char letter, const char *value)
{
	switch (letter) {
	case 'p': o->policies = value; break;
	case 'k': o->links = value; break;
	case 's': o->schema = value; break;
	case 'e': o->entities = value; break;
	case 'l': o->principal = value; break;
	case 'a': o->action = value; break;
	case 'r': o->resource = value; break;
	case 'c': o->context = value; break;
	case 'q': o->request = value; break;
	case 'd': o->direction = value; break;
	case 'L': o->level = value; break;
	case 'w': o->write = true; break;
	case 'W': o->line_width = value; break;
	case 'I': o->indent_width = value; break;
	case 't': o->timing = true; break;
	case 'C': o->check = true; break;
	case 'v': o->verbose = true; break;
	case 'D': o->deny_warnings = true; break;
	case 'X': o->deny_on_forbid_error = true; break;
	case 'O': o->compat_412 = true; break;
	case 'f': o->policy_format = value; return one_of("policy-format", value, "cedar", "json");
	case 'F': o->schema_format = value; return one_of("schema-format", value, "cedar", "json");
	case 'R':
		o->no_request_validation = strcmp(value, "false") == 0;
		return one_of("request-validation", value, "true", "false");
	case 'M':
		if (strcmp(value, "strict") == 0)
			return 0;
		diag_say("error", "--validation-mode is strict, not `%s`", value);
		return TOOL_FAILURE;
	default: break;
	}
	return 0;
}

/* The row of an option of the command by its short form. */
static const struct option_row *by_short_form(const struct command *c, int letter)
{
	for (int i = 0; i < ROWS; i++)
		if (rows[i].short_form == letter && strchr(c->takes, rows[i].letter))
			return &rows[i];
	return NULL;
}

/* getopt gets only the options that the command takes: every other is unknown to it. */
static int parse(const struct command *c, int argc, char **argv, struct options *o)
{
	enum { LONG = 256 }; /* what getopt gives for a long option: this and its row */
	struct option longs[ROWS + 2] = {0};
	char shorts[2 * ROWS + 2] = "h";
	size_t n = 0, s = 1;
	int got;

	longs[n++] = (struct option){"help", no_argument, NULL, 'h'};
	for (int i = 0; i < ROWS; i++) {
		if (!strchr(c->takes, rows[i].letter))
			continue;
		longs[n++] = (struct option){rows[i].name,
			rows[i].has_value ? required_argument : no_argument, NULL, LONG + i};
		if (rows[i].short_form)
			shorts[s++] = rows[i].short_form;
		if (rows[i].short_form && rows[i].has_value)
			shorts[s++] = ':';
	}
	while ((got = getopt_long(argc, argv, shorts, longs, NULL)) != -1) {
		const struct option_row *row =
			got >= LONG ? &rows[got - LONG] : by_short_form(c, got);

		if (got == 'h') {
			command_usage(c);
			return -1;
		}
		if (!row || set_option(o, row->letter, optarg) != 0)
			return TOOL_FAILURE;
	}
	if (optind == argc)
		return 0;
	diag_say("error", "`%s` is not an option", argv[optind]);
	return TOOL_FAILURE;
}

static const struct command *find_command(const char *name)
{
	for (int i = 0; i < COMMANDS; i++)
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	return NULL;
}

int main(int argc, char **argv)
{
	const struct command *c = argc > 1 ? find_command(argv[1]) : NULL;
	struct options o = {0};
	int r;

	if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
		usage(stdout);
		return TOOL_OK;
	}
	if (argc > 1 && (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0)) {
		(void)puts("cedar-c, Cedar language " CEDAR_LANGUAGE_VERSION);
		return TOOL_OK;
	}
	if (!c) {
		if (argc > 1)
			diag_say("error", "there is no command `%s`", argv[1]);
		usage(stderr);
		return TOOL_FAILURE;
	}
	r = parse(c, argc - 1, argv + 1, &o);
	if (r != 0)
		return r < 0 ? TOOL_OK : r;
	r = c->run(&o);
	if (fflush(stdout) != 0) {
		diag_say("error", "cannot write");
		return TOOL_FAILURE;
	}
	return r;
}
