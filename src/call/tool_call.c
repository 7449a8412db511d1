/* What a handler may ask of its call: see tool.h. */
#include "call/stages.h"

#include <time.h>

const json_t *tool_args(const struct tool_call *tc)
{
	return tc->args;
}

const char *tool_arg_str(const struct tool_call *tc, const char *name)
{
	return arg_str(tc->args, tc->tool->args, name);
}

int64_t tool_arg_int(const struct tool_call *tc, const char *name)
{
	return arg_int(tc->args, tc->tool->args, name);
}

bool tool_arg_bool(const struct tool_call *tc, const char *name)
{
	return arg_bool(tc->args, tc->tool->args, name);
}

struct view *tool_view(struct tool_call *tc)
{
	return tc->view;
}

struct workspace *tool_workspace(struct tool_call *tc)
{
	return tc->ws;
}

struct session *tool_session(struct tool_call *tc)
{
	return tc->session;
}

const struct principal *tool_principal(const struct tool_call *tc)
{
	return tc->principal;
}

const struct tool_env *tool_env(const struct tool_call *tc)
{
	return tc->env;
}

struct buf *tool_result(struct tool_call *tc)
{
	return &tc->result;
}

struct node *tool_node(struct tool_call *tc, unsigned index)
{
	BUG_ON(index >= tc->n_targets);
	return &tc->targets[index]->node;
}

unsigned tool_targets(const struct tool_call *tc)
{
	return tc->n_targets;
}

void *tool_state(struct tool_call *tc, size_t size)
{
	if (!tc->state)
		tc->state = calloc(1, size);
	return tc->state;
}

static int targets_grow(struct tool_call *tc, struct err *err)
{
	if (tc->n_targets < tc->cap_targets)
		return 0;
	if (tc->n_targets >= CALL_TARGETS_MAX)
		return err_set(
			err, ERR_LIMIT, "a call may name at most %d paths", CALL_TARGETS_MAX);
	unsigned cap = tc->cap_targets ? tc->cap_targets * 2 : 4;
	struct target **more = reallocarray(tc->targets, cap, sizeof(*more));
	if (!more)
		return err_oom(err);
	tc->targets = more;
	tc->cap_targets = cap;
	return 0;
}

/* A path that cannot even be spelled is refused at once; everything else waits for the decision. */
static bool tell_at_once(int failed)
{
	return failed == -ERR_PATH_INVALID || failed == -ERR_NO_MEMORY;
}

/* Paths travel as text in which bytes that are not UTF-8 are \\xHH; the workspace knows bytes. */
static int path_bytes(const char *text, struct buf *ret, struct err *err)
{
	if (name_unescape(ret, str_of(text)))
		return 0;
	if (ret->no_memory)
		return err_oom(err);
	if (ret->failed)
		return err_set(err, ERR_PATH_INVALID, "the path is longer than %d bytes",
			LIMIT_PATH_BYTES);
	(void)err_set(err, ERR_PATH_INVALID, "the path has an escape that is not known");
	return err_hint(err, "write a backslash as \\\\ and a byte that is not UTF-8 as \\xHH");
}

int tool_target(struct tool_call *tc, const char *path, enum access access, unsigned resolve_flags,
	struct err *err)
{
	_cleanup_buf_ struct buf bytes = buf_init(LIMIT_PATH_BYTES);
	int r = targets_grow(tc, err);
	if (r == 0)
		r = path_bytes(path, &bytes, err);
	if (r < 0)
		return r;
	struct target *t = calloc(1, sizeof(*t));
	if (!t)
		return err_oom(err);
	t->node.fd = -1;
	t->failed = view_resolve(tc->view, (struct str){buf_str(&bytes), bytes.len}, resolve_flags,
		&t->node, &t->why);
	if (tell_at_once(t->failed)) {
		*err = t->why;
		r = t->failed;
		free(t);
		return r;
	}
	t->asked = (struct decide_target){.spelled = t->failed < 0 ? path : t->node.spelled,
		.resolved = t->failed < 0 ? NULL : t->node.resolved,
		.access = access};
	tc->targets[tc->n_targets++] = t;
	return 0;
}

struct worker *tool_worker(struct tool_call *tc, struct err *err)
{
	if (!tc->worker && tc->env->worker_of)
		tc->worker = tc->env->worker_of(tc->env->worker_ctx, tc->session, err);
	else if (!tc->worker)
		(void)err_set(err, ERR_UNAVAILABLE, "no worker process can be started here");
	return tc->worker;
}

int tool_submit(struct tool_call *tc, const struct worker_job *job, struct err *err)
{
	BUG_ON(tc->job_running);
	struct worker *w = tool_worker(tc, err);
	if (!w)
		return -(int)err->code;
	int r = worker_submit(w, job, &tc->job, err);
	tc->job_running = r == 0;
	return r;
}

void tool_follow(struct tool_call *tc, int fd)
{
	tc->follow_fd = fd;
}

/* Time to end the command and to tell its changes comes on top. */
enum { AFTER_TIMEOUT_MS = 60 * 1000 };

void tool_allow_time(struct tool_call *tc, int64_t ms)
{
	tc->deadline_ms = MAX(tc->deadline_ms, call_clock_ms() + ms + AFTER_TIMEOUT_MS);
}

void tool_output(struct tool_call *tc, int stream, const char *p, size_t n)
{
	if (tc->output)
		tc->output(tc->output_ctx, stream, p, n);
}

int tool_input_fd(const struct tool_call *tc)
{
	return tc->input_fd;
}

int64_t call_clock_ms(void)
{
	struct timespec now;
	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int tool_content(const struct tool_call *tc, int64_t *ret_size)
{
	*ret_size = tc->content_size;
	return tc->content_fd;
}

void tool_give_file(struct tool_call *tc, int fd)
{
	cleanup_close(&tc->file_fd);
	tc->file_fd = fd;
}

int tool_progress(struct tool_call *tc, int64_t done, int64_t total, struct err *err)
{
	if (tc->progress)
		tc->progress(tc->progress_ctx, done, total);
	if (tc->cancelled)
		return err_set(err, ERR_CANCELLED, "the caller cancelled this call");
	if (call_clock_ms() >= tc->deadline_ms)
		return err_set(err, ERR_TIMEOUT, "the call ran out of time");
	return 0;
}
