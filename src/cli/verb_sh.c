/* cloister sh -c LINE: what bash would print and return, with the changes kept. */
#include "cli/cli.h"
#include "cli/stream.h"
#include "codec/json.h"

#include <stdio.h>
#include <string.h>

/* `-c` is the only word with one dash, as with every shell. */
static const char *line_of(const struct arguments *a)
{
	return a->n == 2 && strcmp(a->v[0], "-c") == 0 ? a->v[1] : NULL;
}

int verb_sh(struct cli *c, const struct verb *v _unused_, int argc, char **argv, struct err *err)
{
	struct arguments a;
	int64_t timeout = 0;
	const struct option own[] = {
		{"timeout-ms", OPTION_INT, "MS", "When to end the line.", &timeout},
		OPTION_END,
	};
	_cleanup_(cleanup_json_decref) json_t *args = NULL;
	int r = cli_parse(c, own, argc, argv, &a, err);
	if (r < 0)
		return r;
	if (!line_of(&a))
		return err_set(err, ERR_INVALID_ARGUMENT, "sh takes -c and one command line");
	args = json_pack("{s:s}", "command", line_of(&a));
	if (!args)
		return err_set(err, ERR_INVALID_ARGUMENT, "the command line is not UTF-8");
	if (timeout != 0)
		(void)json_object_set_new(args, "timeout_ms", json_integer(timeout));
	struct call_input in = {.tool = "shell_run",
		.arguments = args,
		.output = stream_put,
		.has_input = true,
		.input_fd = STDIN_FILENO};
	return stream_run(c, &in, NULL, err);
}
