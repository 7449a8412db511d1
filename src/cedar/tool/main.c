/* cedar-c COMMAND [OPTION...]: commands and their options. */
#include "tool.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

static const struct command {
	const char *name;
	int (*run)(const struct options *o);
	const char *says;
} commands[] = {
	{"authorize", run_authorize, "decide one request: exit status 0 allow, 2 deny"},
	{"validate", run_validate, "check policies against a schema: exit status 3 when invalid"},
	{"check-parse", run_check_parse, "check that policies, and a schema, parse"},
	{"format", run_format, "print policies in one style"},
	{"translate-policy", run_translate_policy, "policies from text to JSON or back"},
	{"translate-schema", run_translate_schema, "a schema from text to JSON or back"},
	{"explain", run_explain, "authorize, and say what decided about each policy"},
	{"batch", run_batch, "JSON lines in, JSON lines out"},
};

enum { COMMANDS = sizeof(commands) / sizeof(commands[0]) };

static const char options_help[] =
	"  -p, --policies FILE          policies (default: the standard input)\n"
	"      --policy-format FORMAT   cedar (default) or json\n"
	"  -k, --template-linked FILE   links of templates, JSON\n"
	"  -s, --schema FILE            schema\n"
	"      --schema-format FORMAT   cedar (default) or json\n"
	"      --entities FILE          entities, JSON\n"
	"  -l, --principal ENTITY       as in Type::\"id\"\n"
	"  -a, --action ENTITY\n"
	"  -r, --resource ENTITY\n"
	"  -c, --context FILE           context, JSON\n"
	"      --request-json FILE      the four as one object\n"
	"      --deny-on-forbid-error   deny when a forbid cannot be evaluated\n"
	"  -v, --verbose                print the determining policies\n"
	"  -t, --timing                 print how long the decision took\n"
	"      --direction DIRECTION    cedar-to-json or json-to-cedar\n"
	"      --level N                validate: at most N dereferences\n"
	"      --deny-warnings          validate: warnings count as errors\n"
	"  -w, --write                  format: change the file\n"
	"      --check                  format: exit status 1 when it would change\n";

static int usage(FILE *to, int status)
{
	fputs("usage: cedar-c COMMAND [OPTION...]\n\n", to);
	for (int i = 0; i < COMMANDS; i++)
		fprintf(to, "  %-17s %s\n", commands[i].name, commands[i].says);
	fprintf(to, "\n%s", options_help);
	return status;
}

/* Long options by number, beyond those that have a letter. */
enum {
	POLICY_FORMAT = 256,
	SCHEMA_FORMAT,
	ENTITIES,
	REQUEST,
	DENY_ON_FORBID_ERROR,
	DIRECTION,
	LEVEL,
	DENY_WARNINGS,
	CHECK,
};

static const struct option long_options[] = {
	{"policies", required_argument, NULL, 'p'},
	{"policy-format", required_argument, NULL, POLICY_FORMAT},
	{"template-linked", required_argument, NULL, 'k'},
	{"schema", required_argument, NULL, 's'},
	{"schema-format", required_argument, NULL, SCHEMA_FORMAT},
	{"entities", required_argument, NULL, ENTITIES},
	{"principal", required_argument, NULL, 'l'},
	{"action", required_argument, NULL, 'a'},
	{"resource", required_argument, NULL, 'r'},
	{"context", required_argument, NULL, 'c'},
	{"request-json", required_argument, NULL, REQUEST},
	{"deny-on-forbid-error", no_argument, NULL, DENY_ON_FORBID_ERROR},
	{"verbose", no_argument, NULL, 'v'},
	{"timing", no_argument, NULL, 't'},
	{"direction", required_argument, NULL, DIRECTION},
	{"level", required_argument, NULL, LEVEL},
	{"deny-warnings", no_argument, NULL, DENY_WARNINGS},
	{"write", no_argument, NULL, 'w'},
	{"check", no_argument, NULL, CHECK},
	{"help", no_argument, NULL, 'h'},
	{0},
};

static bool set_flag(struct options *o, int option)
{
	switch (option) {
	case 'v': o->verbose = true; break;
	case 't': o->timing = true; break;
	case 'w': o->write = true; break;
	case DENY_ON_FORBID_ERROR: o->deny_on_forbid_error = true; break;
	case DENY_WARNINGS: o->deny_warnings = true; break;
	case CHECK: o->check = true; break;
	default: return false;
	}
	return true;
}

static bool set_text(struct options *o, int option, const char *text)
{
	switch (option) {
	case 'p': o->policies = text; break;
	case POLICY_FORMAT: o->policy_format = text; break;
	case 'k': o->links = text; break;
	case 's': o->schema = text; break;
	case SCHEMA_FORMAT: o->schema_format = text; break;
	case ENTITIES: o->entities = text; break;
	case 'l': o->principal = text; break;
	case 'a': o->action = text; break;
	case 'r': o->resource = text; break;
	case 'c': o->context = text; break;
	case REQUEST: o->request = text; break;
	case DIRECTION: o->direction = text; break;
	case LEVEL: o->level = text; break;
	default: return false;
	}
	return true;
}

static bool known_format(const char *format)
{
	if (!format || strcmp(format, "cedar") == 0 || strcmp(format, "json") == 0)
		return true;
	tell_plain("a format is cedar or json, not %s", format);
	return false;
}

static int run(const struct command *c, int argc, char **argv)
{
	struct options o = {.policies = NULL};
	int option;
	while ((option = getopt_long(argc, argv, "p:k:s:l:a:r:c:vtwh", long_options, NULL)) != -1) {
		if (option == 'h')
			return usage(stdout, EXIT_DONE);
		if (!set_flag(&o, option) && !set_text(&o, option, optarg))
			return EXIT_FAILED;
	}
	if (optind < argc) {
		tell_plain("%s takes no argument `%s`", c->name, argv[optind]);
		return EXIT_FAILED;
	}
	if (!known_format(o.policy_format) || !known_format(o.schema_format))
		return EXIT_FAILED;
	return c->run(&o);
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "";
	for (int i = 0; i < COMMANDS; i++)
		if (strcmp(name, commands[i].name) == 0)
			return run(&commands[i], argc - 1, argv + 1);
	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0)
		return usage(stdout, EXIT_DONE);
	if (strcmp(name, "--version") == 0) {
		printf("cedar-c (Cedar language " CEDAR_LANGUAGE_VERSION ")\n");
		return EXIT_DONE;
	}
	return usage(stderr, EXIT_FAILED);
}
