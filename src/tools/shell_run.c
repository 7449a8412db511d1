/*
 * shell_run: a command line for bash, or one program with its arguments, in a fence on
 * a copy-on-write view of the workspace. What it changed is committed as one step when it ends.
 */
#include "tools/fenced.h"
#include "tools/tools.h"

static const struct field word = {.type = FIELD_STRING, .max = FENCED_WORD_BYTES};

static const struct field args[] = {
	{.name = "command",
		.type = FIELD_STRING,
		.min = 1,
		.max = FENCED_WORD_BYTES,
		.help = "Command line for bash."},
	{.name = "argv",
		.type = FIELD_ARRAY,
		.items = &word,
		.min = 1,
		.max = FENCED_WORDS_MAX,
		.help = "Instead of a line: one program and its arguments, as they stand, without "
			"a shell."},
	ARGS_FENCED,
	FIELD_END,
};

static const struct field result[] = {RESULT_FENCED};

static int prepare(struct tool_call *tc, struct err *err)
{
	bool line = arg_get(tool_args(tc), "command"), argv = arg_get(tool_args(tc), "argv");
	if (line == argv)
		return err_set(err, ERR_INVALID_ARGUMENT,
			"give either command, a line for bash, or argv, a program with arguments");
	return fenced_prepare(tc, err);
}

/* The words to execute, borrowed from the arguments. */
static void words_of(const struct tool_call *tc, const char *ret[FENCED_WORDS_MAX + 1])
{
	size_t i;
	const json_t *list = arg_get(tool_args(tc), "argv"), *w;
	if (!list) {
		ret[0] = "bash";
		ret[1] = "-c";
		ret[2] = tool_arg_str(tc, "command");
		ret[3] = NULL;
		return;
	}
	json_array_foreach(list, i, w) ret[i] = json_string_value(w);
	ret[json_array_size(list)] = NULL;
}

static int run(struct tool_call *tc, struct err *err)
{
	const char *words[FENCED_WORDS_MAX + 1];
	static const char *const variables[] = {NULL};
	words_of(tc, words);
	return fenced_start(
		tc, &(struct fenced_program){.words = words, .variables = variables}, err);
}

const struct tool tool_shell_run = {
	.name = "shell_run",
	.title = "Run a command",
	.description = "Run a command line with bash in a fence: it sees the workspace and the "
		       "system's programs, has no network, and what it changes is committed as "
		       "one step when it ends. Every change can be undone.",
	.group = GROUP_EXECUTE,
	.destructive = true,
	.idempotent = false,
	.args = args,
	.result = result,
	.prepare = prepare,
	.run = run,
	.resume = fenced_resume,
	.report = report_changes,
	.done = fenced_done,
};
