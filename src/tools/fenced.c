/* Programs in fences: see fenced.h. */
#include "tools/fenced.h"

#include "sandbox/command.h"
#include "sandbox/effects.h"

#include <signal.h>
#include <sys/wait.h>

const struct field fenced_change = {.type = FIELD_OBJECT, .items = change_fields};

struct fenced {
	struct command *command;
	struct effects *effects; /* set while changes are taken */
};

int fenced_prepare(struct tool_call *tc, struct err *err)
{
	return tool_target(tc, tool_arg_str(tc, "working_directory"), ACCESS_READ, 0, err);
}

static void on_output(void *ctx, enum command_stream s, const char *p, size_t n)
{
	tool_output(ctx, s == COMMAND_STDOUT ? 1 : 2, p, n);
}

int fenced_start(struct tool_call *tc, const struct fenced_program *p, struct err *err)
{
	const struct node *dir = tool_node(tc, 0);
	struct fenced *s = tool_state(tc, sizeof(*s));
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
	const struct command_options o = {
		.request = {.cwd = dir->path,
			.argv = p->words,
			.envp = p->variables,
			.limits = {.time_ms = tool_arg_int(tc, "timeout_ms"),
				.memory_bytes = p->memory_bytes}},
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
	_cleanup_buf_ struct buf text = buf_init(FENCED_OUTPUT_MAX + 4096);
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

static int take_changes(struct tool_call *tc, struct fenced *s, struct err *err)
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

int fenced_resume(struct tool_call *tc, struct worker_answer *answer _unused_, struct err *err)
{
	struct fenced *s = tool_state(tc, sizeof(*s));
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

void fenced_done(struct tool_call *tc)
{
	struct fenced *s = tool_state(tc, sizeof(*s));
	if (!s)
		return;
	effects_free(take_ptr(s->effects));
	command_free(take_ptr(s->command));
}
