/*
 * shell_run: a command line for bash, or one program with its arguments, in a fence on
 * a copy-on-write view of the workspace. What it changed is committed as one step when it ends.
 */
#include "tools/common.h"
#include "tools/tools.h"

#include "sandbox/command.h"
#include "sandbox/effects.h"

#include <signal.h>
#include <sys/wait.h>

enum {
	LINE_MAX_BYTES = 96 * 1024,
	TIMEOUT_DEFAULT_MS = 30 * 1000,
	TIMEOUT_MAX_MS = 600 * 1000,
	OUTPUT_DEFAULT = 30000,
	OUTPUT_MAX = 16 * 1024 * 1024,
	WORDS_MAX = 1000,
};

static const struct field word = {.type = FIELD_STRING, .max = LINE_MAX_BYTES};

static const struct field args[] = {
	{.name = "command",
		.type = FIELD_STRING,
		.min = 1,
		.max = LINE_MAX_BYTES,
		.help = "Command line for bash."},
	{.name = "argv",
		.type = FIELD_ARRAY,
		.items = &word,
		.min = 1,
		.max = WORDS_MAX,
		.help = "Instead of a line: one program and its arguments, as they stand, without "
			"a shell."},
	{.name = "working_directory",
		.type = FIELD_STRING,
		.min = 1,
		.max = LIMIT_PATH_BYTES,
		.dflt_str = ".",
		.help = "Directory to run in, relative to the workspace."},
	{.name = "stdin",
		.type = FIELD_STRING,
		.nul_ok = true,
		.max = LIMIT_REQUEST_BYTES,
		.help = "Standard input; without it there is none."},
	{.name = "timeout_ms",
		.type = FIELD_INT,
		.min = 1,
		.max = TIMEOUT_MAX_MS,
		.dflt = TIMEOUT_DEFAULT_MS,
		.has_default = true,
		.help = "When to end the command with everything that it has started; then it "
			"changes nothing."},
	{.name = "max_output",
		.type = FIELD_INT,
		.min = 0,
		.max = OUTPUT_MAX,
		.dflt = OUTPUT_DEFAULT,
		.has_default = true,
		.help = "Bytes of each stream that the answer brings, from its beginning and its "
			"end."},
	ARG_DRY_RUN,
	FIELD_END,
};

static const struct field result[] = {
	{.name = "exit_code",
		.type = FIELD_INT,
		.help = "Exit status; 128 and the number of the signal that ended it."},
	{.name = "timed_out", .type = FIELD_BOOL, .help = "True when it was ended for its time."},
	{.name = "stdout", .type = FIELD_STRING, .help = "What it printed."},
	{.name = "stderr", .type = FIELD_STRING, .help = "What it printed as errors."},
	{.name = "stdout_omitted", .type = FIELD_INT, .help = "Bytes of stdout that are left out."},
	{.name = "stderr_omitted", .type = FIELD_INT, .help = "Bytes of stderr that are left out."},
	{.name = "duration_ms", .type = FIELD_INT, .help = "How long it ran."},
	{.name = "changes_dropped",
		.type = FIELD_BOOL,
		.help = "True when it was ended by a signal or for its time: then nothing is "
			"changed."},
	{.name = "left_out",
		.type = FIELD_INT,
		.help = "Sockets, FIFOs and links to places outside that it made; they are not "
			"kept."},
	{.name = "not_limited",
		.type = FIELD_STRING,
		.help = "What this machine could not limit for the command."},
	{.name = "held_back",
		.type = FIELD_INT,
		.help = "Hooks, configuration and the like that git would execute later outside of "
			"the fence: they stay as they were."},
	{.name = "held_back_first", .type = FIELD_STRING, .help = "Path of the first of these."},
	{.name = "changes",
		.type = FIELD_ARRAY,
		.items = &(const struct field){.type = FIELD_OBJECT, .items = change_fields},
		.help = "What it changed."},
	RESULT_CHANGES,
};

struct shell_run {
	struct command *command;
	struct effects *effects; /* set while changes are taken */
};

static int prepare(struct tool_call *tc, struct err *err)
{
	bool line = arg_get(tool_args(tc), "command"), argv = arg_get(tool_args(tc), "argv");
	if (line == argv)
		return err_set(err, ERR_INVALID_ARGUMENT,
			"give either command, a line for bash, or argv, a program with arguments");
	return tool_target(tc, tool_arg_str(tc, "working_directory"), ACCESS_READ, 0, err);
}

static void on_output(void *ctx, enum command_stream s, const char *p, size_t n)
{
	tool_output(ctx, s == COMMAND_STDOUT ? 1 : 2, p, n);
}

/* The words to execute, borrowed from the arguments. */
static void words_of(const struct tool_call *tc, const char *ret[WORDS_MAX + 1])
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
	const char *words[WORDS_MAX + 1];
	static const char *const variables[] = {NULL};
	const struct node *dir = tool_node(tc, 0);
	struct shell_run *s = tool_state(tc, sizeof(*s));
	struct fence *fence = tool_env(tc)->fence;
	const json_t *input = arg_get(tool_args(tc), "stdin");
	int r = need_directory(dir, err);
	if (r < 0)
		return r;
	if (!s)
		return err_oom(err);
	if (!fence)
		return err_set(err, ERR_UNAVAILABLE, "no process that starts commands runs here");
	if (dir->mount != 0)
		return err_set(err, ERR_UNSUPPORTED, "commands run in the session's own tree only");
	words_of(tc, words);
	const struct command_options o = {
		.request = {.cwd = dir->path,
			.argv = words,
			.envp = variables,
			.limits = {.time_ms = tool_arg_int(tc, "timeout_ms")}},
		.workspace_fd = workspace_mount_fd(tool_workspace(tc), 0),
		.input = {json_string_value(input), json_string_length(input)},
		.input_fd = input ? -1 : tool_input_fd(tc),
		.keep = (size_t)tool_arg_int(tc, "max_output"),
		.output = on_output,
		.output_ctx = tc,
	};
	tool_allow_time(tc, o.request.limits.time_ms);
	if ((r = command_start(fence, &o, &s->command, err)) < 0)
		return r;
	tool_follow(tc, command_poll_fd(s->command));
	return TOOL_PENDING;
}

/* --- the answer ------------------------------------------------------------------------------- */

static int put_stream(struct tool_call *tc, const struct output *o, const char *key,
	const char *omitted_key, struct err *err)
{
	_cleanup_buf_ struct buf text = buf_init(OUTPUT_MAX + 4096);
	int64_t omitted = output_text(o, &text);
	int r = buf_check(&text, key, err);
	if (r < 0)
		return r;
	jw_key(tool_result(tc), key);
	jw_text(tool_result(tc), (struct str){buf_str(&text), text.len});
	if (omitted > 0)
		jw_int(tool_result(tc), omitted_key, omitted);
	return 0;
}

static bool was_ended(const struct command_result *r)
{
	return r->timed_out || WIFSIGNALED(r->status);
}

static int put_result(struct tool_call *tc, const struct command_result *done, struct err *err)
{
	struct buf *out = tool_result(tc);
	int status = WIFSIGNALED(done->status) ? 128 + WTERMSIG(done->status)
					       : WEXITSTATUS(done->status);
	jw_int(out, "exit_code", status);
	jw_int(out, "duration_ms", done->duration_ms);
	if (done->timed_out)
		jw_bool(out, "timed_out", true);
	if (was_ended(done))
		jw_bool(out, "changes_dropped", true);
	if (!done->limited)
		jw_cstr(out, "not_limited",
			"memory of all processes together: no cgroup can be used here");
	int r = put_stream(tc, &done->streams[COMMAND_STDOUT], "stdout", "stdout_omitted", err);
	return r < 0 ? r
		     : put_stream(
			       tc, &done->streams[COMMAND_STDERR], "stderr", "stderr_omitted", err);
}

/* --- its end ---------------------------------------------------------------------------------- */

static int take_changes(struct tool_call *tc, struct shell_run *s, struct err *err)
{
	const char *first;
	int r = command_take(s->command, effects_take, s->effects, err);
	if (r == 1)
		return TOOL_PENDING;
	if (r == 0)
		r = effects_finish(s->effects, err);
	if (r == 0 && effects_left_out(s->effects, &first) > 0)
		jw_int(tool_result(tc), "left_out", effects_left_out(s->effects, &first));
	if (r == 0 && effects_held_back(s->effects, &first) > 0) {
		jw_int(tool_result(tc), "held_back", effects_held_back(s->effects, &first));
		jw_cstr(tool_result(tc), "held_back_first", first);
	}
	tool_follow(tc, -1);
	return r < 0 ? r : TOOL_DONE;
}

static int resume(struct tool_call *tc, struct worker_answer *answer _unused_, struct err *err)
{
	struct shell_run *s = tool_state(tc, sizeof(*s));
	if (s->effects)
		return take_changes(tc, s, err);
	int r = command_proceed(s->command, err);
	if (r != 0)
		return r < 0 ? r : TOOL_PENDING;
	const struct command_result *done = command_result(s->command);
	if ((r = put_result(tc, done, err)) < 0)
		return r;
	if (was_ended(done)) {
		tool_follow(tc, -1);
		return TOOL_DONE;
	}
	if ((r = effects_new(tool_view(tc), &done->started, &s->effects, err)) < 0)
		return r;
	return take_changes(tc, s, err);
}

static void done(struct tool_call *tc)
{
	struct shell_run *s = tool_state(tc, sizeof(*s));
	if (!s)
		return;
	effects_free(take_ptr(s->effects));
	command_free(take_ptr(s->command));
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
	.resume = resume,
	.report = report_changes,
	.done = done,
};
