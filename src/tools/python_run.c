/*
 * python_run: Python code or a file of the workspace, with the system's CPython and its packages,
 * in a fence on a copy-on-write view of the workspace. What it changed is committed as one step.
 */
#include "tools/fenced.h"
#include "tools/tools.h"

#include <stdio.h>

enum { ARGS_MAX = 200, MEMORY_MB_MIN = 32, MEMORY_MB_MAX = 1024 * 1024 };

static const struct field word = {.type = FIELD_STRING, .max = FENCED_WORD_BYTES};

static const struct field args[] = {
	{.name = "code",
		.type = FIELD_STRING,
		.min = 1,
		.max = FENCED_WORD_BYTES,
		.help = "Python code."},
	{.name = "path",
		.type = FIELD_STRING,
		.min = 1,
		.max = LIMIT_PATH_BYTES,
		.help = "Instead of code: a file of the workspace to run."},
	{.name = "args",
		.type = FIELD_ARRAY,
		.items = &word,
		.max = ARGS_MAX,
		.help = "What the program finds behind its name in sys.argv."},
	{.name = "memory_mb",
		.type = FIELD_INT,
		.min = MEMORY_MB_MIN,
		.max = MEMORY_MB_MAX,
		.help = "Memory that it and what it starts may use together, at most what the "
			"configuration allows."},
	ARGS_FENCED,
	FIELD_END,
};

static const struct field result[] = {RESULT_FENCED};

/* The file is the second target, behind the working directory. */
static int prepare(struct tool_call *tc, struct err *err)
{
	const char *path = tool_arg_str(tc, "path");
	if (!path == !arg_get(tool_args(tc), "code"))
		return err_set(
			err, ERR_INVALID_ARGUMENT, "give either code or path, a file to run");
	int r = fenced_prepare(tc, err);
	return r < 0 || !path ? r : tool_target(tc, path, ACCESS_READ, 0, err);
}

/* A file is named as it is called inside, whatever directory the program runs in. */
static int put_file(
	struct tool_call *tc, const char *words[], unsigned *n, struct buf *name, struct err *err)
{
	const struct node *file = tool_node(tc, 1);
	int r = need_file(file, err);
	if (r < 0)
		return r;
	if (file->mount != 0)
		return err_set(err, ERR_UNSUPPORTED, "programs run in the session's own tree only");
	buf_printf(name, "/workspace/%s", file->path);
	words[(*n)++] = buf_str(name);
	return buf_check(name, "the path of the program", err);
}

static int run(struct tool_call *tc, struct err *err)
{
	/* No __pycache__ in the workspace, which nobody has asked for. */
	static const char *const variables[] = {"PYTHONDONTWRITEBYTECODE=1", NULL};
	const char *words[ARGS_MAX + 4] = {"python3"};
	const json_t *list = arg_get(tool_args(tc), "args"), *w;
	unsigned n = 1;
	size_t i;
	int r;
	_cleanup_buf_ struct buf name = buf_init(LIMIT_PATH_BYTES + 16);
	if (arg_get(tool_args(tc), "path")) {
		if ((r = put_file(tc, words, &n, &name, err)) < 0)
			return r;
	} else {
		words[n++] = "-c";
		words[n++] = tool_arg_str(tc, "code");
	}
	json_array_foreach(list, i, w) words[n++] = json_string_value(w);
	words[n] = NULL;
	return fenced_start(tc,
		&(struct fenced_program){.words = words,
			.variables = variables,
			.memory_bytes = tool_arg_int(tc, "memory_mb") * 1024 * 1024},
		err);
}

const struct tool tool_python_run = {
	.name = "python_run",
	.title = "Run Python",
	.description = "Run Python code, or a Python file of the workspace, with the system's "
		       "interpreter and packages in a fence: no network, and what it changes is "
		       "committed as one step when it ends. Every change can be undone.",
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
