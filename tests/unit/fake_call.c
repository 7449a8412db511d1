/* See fake_call.h. */
#include "fake_call.h"

#include "codec/json_write.h"

struct call {
	struct buf result;
	struct err err;
	struct call_input in;
	bool pending, cancelled;
};

struct fake_seen fake_seen;
size_t fake_big_bytes = 100;
int64_t fake_reports[8];
static bool finishing;
static int64_t reporting;

static const struct field text_args[] = {
	{.name = "text", .type = FIELD_STRING, .required = true, .help = "What to say."},
	FIELD_END};
static const struct field no_args[] = {FIELD_END};
static const struct field result[] = {
	{.name = "text", .type = FIELD_STRING, .help = "What was said."}, FIELD_END};

#define FAKE(tool_name, g, d, i, a)                                                                \
	static const struct tool fake_tool_##tool_name = {.name = #tool_name,                      \
		.title = "Title of " #tool_name,                                                   \
		.description = "Says \"" #tool_name "\".",                                         \
		.group = GROUP_##g,                                                                \
		.destructive = d,                                                                  \
		.idempotent = i,                                                                   \
		.args = a,                                                                         \
		.result = result}
FAKE(echo, READ, false, true, text_args);
FAKE(refuse, WRITE, true, false, no_args);
FAKE(wait, READ, false, false, no_args);
FAKE(report, WRITE, false, true, no_args);
FAKE(big, READ, false, false, no_args);

const struct tool *const fake_tools[] = {&fake_tool_echo, &fake_tool_refuse, &fake_tool_wait,
	&fake_tool_report, &fake_tool_big, NULL};

void fake_reset(void)
{
	fake_seen = (struct fake_seen){.started = 0};
	finishing = false;
	reporting = 0;
	memset(fake_reports, 0, sizeof(fake_reports));
}

void fake_finish(void)
{
	finishing = true;
}

void fake_report(int64_t done)
{
	reporting = done;
}

const struct tool *tool_find(const struct tool_env *env, const char *name)
{
	for (unsigned i = 0; env->tools[i]; i++)
		if (strcmp(env->tools[i]->name, name) == 0)
			return env->tools[i];
	return NULL;
}

static void say(struct call *c, const char *tool, const json_t *args)
{
	struct buf *b = &c->result;
	buf_putc(b, '{');
	if (strcmp(tool, "refuse") == 0) {
		(void)err_set(&c->err, ERR_DENIED, "no");
		jw_bool(b, "executed", false);
	} else if (strcmp(tool, "big") == 0) {
		jw_key(b, "text");
		buf_putc(b, '"');
		for (size_t i = 0; i < fake_big_bytes; i++)
			buf_putc(b, 'x');
		buf_putc(b, '"');
	} else {
		const json_t *t = json_object_get(args, "text");
		jw_str(b, "text", (struct str){json_string_value(t), json_string_length(t)});
	}
	buf_putc(b, '}');
}

static void copy(char to[64], const char *from)
{
	(void)snprintf(to, 64, "%s", from ? from : "");
}

int call_start(const struct tool_env *env _unused_, const struct call_input *in, struct call **ret,
	struct err *err)
{
	struct call *c = calloc(1, sizeof(*c));
	if (!c)
		return err_oom(err);
	fake_seen.started++;
	copy(fake_seen.session, in->session_id);
	copy(fake_seen.principal, in->principal->id);
	copy(fake_seen.turn, in->turn);
	c->in = *in;
	c->result = buf_init(64 * 1024 * 1024);
	c->pending = strcmp(in->tool, "wait") == 0;
	if (strcmp(in->tool, "report") == 0 && in->progress)
		for (unsigned i = 0; fake_reports[i]; i++)
			in->progress(in->progress_ctx, fake_reports[i], 100);
	say(c, in->tool, in->arguments);
	*ret = c;
	return 0;
}

bool call_pending(const struct call *c)
{
	return c->pending;
}

int call_poll_fd(const struct call *c _unused_)
{
	return -1;
}

int64_t call_deadline_ms(const struct call *c _unused_)
{
	return INT64_MAX / 2;
}

void call_proceed(struct call *c)
{
	if (reporting && c->in.progress)
		c->in.progress(c->in.progress_ctx, reporting, 100);
	if (finishing)
		c->pending = false;
}

void call_cancel(struct call *c)
{
	fake_seen.cancelled++;
	c->cancelled = true;
	c->pending = false;
}

enum err_code call_code(const struct call *c)
{
	return c->err.code;
}

struct str call_result(const struct call *c)
{
	return (struct str){buf_str(&c->result), c->result.len};
}

void call_free(struct call *c)
{
	if (!c)
		return;
	fake_seen.freed++;
	buf_done(&c->result);
	free(c);
}
