/* Running a command from a terminal: see stream.h. */
#include "cli/stream.h"
#include "codec/json.h"

#include <stdio.h>

/* A reader that has gone away does not end the command: what it changes may matter. */
void stream_put(void *ctx _unused_, int stream, const char *p, size_t n)
{
	int fd = stream == 1 ? STDOUT_FILENO : STDERR_FILENO;
	while (n > 0) {
		ssize_t done = write(fd, p, n);
		if (done <= 0)
			return;
		p += done;
		n -= (size_t)done;
	}
}

static void say_held_back(const json_t *result)
{
	json_int_t n = json_integer_value(json_object_get(result, "held_back"));
	const char *first = json_string_value(json_object_get(result, "held_back_first"));
	_cleanup_buf_ struct buf shown = buf_init(4096);
	if (n == 0)
		return;
	text_show(&shown, str_of(first ? first : ""), false);
	(void)fprintf(stderr,
		"cloister: held back, since git would execute it outside of the fence: %s%s\n",
		buf_str(&shown), n > 1 ? " and others" : "");
}

int stream_run(struct cli *c, struct call_input *in, show_fn show, struct err *err)
{
	_cleanup_(cleanup_json_decref) json_t *result = NULL;
	if (c->json)
		in->output = NULL;
	int r = cli_command(c, in, &result, err);
	if (r < 0)
		return r;
	if (c->json) {
		(void)json_dumpf(result, stdout, JSON_COMPACT);
		(void)putchar('\n');
	} else if (show) {
		show(result);
	}
	if (json_is_true(json_object_get(result, "timed_out")))
		(void)fprintf(stderr, "cloister: the command was ended for its time; nothing is "
				      "changed\n");
	say_held_back(result);
	return (int)json_integer_value(json_object_get(result, "exit_code")) & 255;
}
