/*
 * The command line: one table of verbs (verbs.def), one function a verb.
 *
 * A verb returns 0 or an error, or the exit status of a command that it ran; main() says errors on
 * standard error, what was wrong and what would be right, and turns them into the exit status of
 * err.def. Results go to standard output and nothing else does.
 */
#ifndef CLOISTER_CLI_CLI_H
#define CLOISTER_CLI_CLI_H

#include "call/call.h"
#include "cli/options.h"
#include "codec/config.h"

/* What every verb may be told. */
struct cli {
	struct config config;
	const char *config_file; /* --config; NULL: the usual places */
	const char *session;     /* --session */
	const char *workspace;   /* --workspace */
	const char *role;        /* --role; NULL: developer */
	const char *tenant;      /* --tenant; NULL: the default one */
	bool single_user;        /* --single-user: start in spite of missing kernel features */
	bool json;               /* --json: results as JSON objects */
};

typedef void (*show_fn)(const json_t *result);

struct verb {
	const char *word, *arguments, *help;
	int (*run)(struct cli *c, const struct verb *v, int argc, char **argv, struct err *err);
	/* of a readable form; else NULL */
	const struct tool *tool;
	show_fn show;
};

extern const struct verb verbs[]; /* ended by one without a word */
const struct verb *verb_find(const char *word);

/* The options that every verb takes beside those of the configuration: they store into `c`. */
enum { COMMON_OPTIONS = 7 };
void common_options(struct cli *c, struct option ret[COMMON_OPTIONS + 1]);

/* Parse a verb's words: the common options, the configuration's flags, and those of `own` (ended by
 * OPTION_END; NULL: none). */
int cli_parse(struct cli *c, const struct option *own, int argc, char **argv, struct arguments *ret,
	struct err *err) _must_check_;

/*
 * Run one call from start to end and show its result: with --json the object, else by `show`. A
 * refusal is returned as the call's error; with --json its object has been printed before.
 */
int cli_call(struct cli *c, const char *tool, const json_t *arguments, show_fn show,
	struct err *err) _must_check_;

/* The same for real commands: `in` brings the tool, its arguments and the callbacks; the rest is
 * filled in. *ret_result is owned by the caller. */
struct call_input;
int cli_command(
	struct cli *c, struct call_input *in, json_t **ret_result, struct err *err) _must_check_;

/* Options of the configuration table, for option_other_fn; ctx is the struct cli. */
int take_setting(void *ctx, const char *const *args, unsigned *ret_taken, struct err *err);

/* How a tool's argument is spelled as an option: dashes for underscores. */
void option_name_of(const struct field *f, char ret[OPTION_NAME_MAX]);

#define VERB(word, function, arguments, help)                                                      \
	int function(struct cli *c, const struct verb *v, int argc, char **argv, struct err *err);
#define TOOL_VERB(word, tool, arguments, show, help) void show(const json_t *result);
#include "cli/verbs.def"
#undef VERB
#undef TOOL_VERB
int verb_tool(struct cli *c, const struct verb *v, int argc, char **argv, struct err *err);

#endif
