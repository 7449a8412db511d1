/*
 * Calls that take long as tasks (the extension io.modelcontextprotocol/tasks of 2026-07-28).
 *
 * A task is a call whose result is kept by its id, so nothing is kept here. The id of a task is the
 * call's, which is unguessable and known to its tenant only, and the time at which it became a
 * task; the time is only told back.
 */
#include "codec/json.h"
#include "codec/json_write.h"
#include "sys/clock.h"
#include "transport/mcp/mcp_impl.h"

#include <time.h>

enum { CALL_ID_LEN = 26, TASK_TTL_MS = 3600000, TASK_POLL_MS = 1000 };

bool mcp_wants_tasks(const struct mcp *m, const struct rpc_message *msg)
{
	const json_t *meta = json_object_get(msg->params, "_meta"),
		     *client = json_object_get(meta, MCP_META_CAPABILITIES),
		     *extensions = json_object_get(client, "extensions");
	return m->era == MCP_MODERN && m->opt.remote &&
	       json_is_object(json_object_get(extensions, MCP_TASKS));
}

static void put_time(struct buf *b, const char *key, int64_t ms)
{
	char text[64];
	time_t t = (time_t)(ms / 1000);
	struct tm tm;
	if (!gmtime_r(&t, &tm) || strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
		return;
	jw_cstr(b, key, text);
}

static void put_task(struct buf *b, const char *id, const char *status)
{
	int64_t created = strtoll(id + CALL_ID_LEN + 1, NULL, 10), now = clock_unix_ms();
	jw_open(b, '{');
	jw_cstr(b, "taskId", id);
	jw_cstr(b, "status", status);
	put_time(b, "createdAt", MIN(created, now));
	put_time(b, "lastUpdatedAt", strcmp(status, "working") == 0 ? MIN(created, now) : now);
	jw_int(b, "ttlMs", TASK_TTL_MS);
	jw_int(b, "pollIntervalMs", TASK_POLL_MS);
}

void mcp_answer_running(struct flight *f, const char *call_id)
{
	struct mcp *m = f->m;
	size_t from = m->out.len;
	char id[CALL_ID_LEN + 24];
	(void)snprintf(
		id, sizeof(id), "%.*s.%lld", CALL_ID_LEN, call_id, (long long)clock_unix_ms());
	rpc_result_open(&m->out, f->id);
	put_task(&m->out, f->note ? f->note : id, "working");
	mcp_end_result_as(m, f->id, from, f->note ? "complete" : "task");
}

/* An answer about a call that nobody knows has no call_id. */
static bool unknown(struct flight *f, const json_t *answer)
{
	struct rpc_message msg = {.id = f->id};
	const char *id = json_string_value(json_object_get(answer, "call_id"));
	if (id && strncmp(id, f->note, CALL_ID_LEN) == 0)
		return false;
	mcp_invalid_params(f->m, &msg, "Invalid params: there is no task of this id");
	return true;
}

static bool finish_get(struct flight *f, struct str json, bool failed)
{
	_cleanup_(cleanup_json_decref) json_t *v = NULL;
	struct mcp *m = f->m;
	struct err err;
	size_t from = m->out.len;
	if (json_parse(json, json.n, &v, &err) < 0 || unknown(f, v))
		return true;
	const json_t *code = json_object_get(json_object_get(v, "error"), "code");
	bool cancelled = failed && json_is_string(code) &&
			 strcmp(json_string_value(code), err_info(ERR_CANCELLED)->name) == 0;
	rpc_result_open(&m->out, f->id);
	put_task(&m->out, f->note, cancelled ? "cancelled" : "completed");
	if (!cancelled) {
		jw_key(&m->out, "result");
		mcp_put_call_result(&m->out, json, failed);
		jw_cstr(&m->out, "resultType", "complete");
		jw_close(&m->out, '}');
	}
	mcp_end_result(m, f->id, from);
	return true;
}

static bool finish_acknowledged(struct flight *f, struct str json, bool failed _unused_)
{
	_cleanup_(cleanup_json_decref) json_t *v = NULL;
	struct err err;
	size_t from = f->m->out.len;
	if (json_parse(json, json.n, &v, &err) < 0 || unknown(f, v))
		return true;
	rpc_result_open(&f->m->out, f->id);
	buf_putc(&f->m->out, '{');
	mcp_end_result(f->m, f->id, from);
	return true;
}

/* The id of the task that a request is about; NULL: answered that it cannot be. */
static const char *task_of(struct mcp *m, const struct rpc_message *msg)
{
	const json_t *v = json_object_get(msg->params, "taskId");
	const char *id = json_string_value(v);
	if (!mcp_wants_tasks(m, msg)) {
		mcp_put_error(m, msg->id, RPC_MISSING_CAPABILITY,
			"Missing required client capability: " MCP_TASKS,
			"{\"requiredCapabilities\":{\"extensions\":{\"" MCP_TASKS "\":{}}}}");
		return NULL;
	}
	if (id && strlen(id) == json_string_length(v) && strlen(id) < CALL_ID_LEN + 24 &&
		strspn(id, "abcdefghijklmnopqrstuvwxyz234567") == CALL_ID_LEN &&
		id[CALL_ID_LEN] == '.' &&
		strspn(id + CALL_ID_LEN + 1, "0123456789") == strlen(id + CALL_ID_LEN + 1))
		return id;
	mcp_invalid_params(m, msg, "Invalid params: there is no task of this id");
	return NULL;
}

static void about(
	struct mcp *m, const struct rpc_message *msg, bool cancel, flight_finish_fn finish)
{
	char call_id[CALL_ID_LEN + 1];
	const char *id = task_of(m, msg);
	if (!id)
		return;
	(void)snprintf(call_id, sizeof(call_id), "%.*s", CALL_ID_LEN, id);
	mcp_call_about(m, msg, call_id, cancel, finish, strdup(id));
}

void mcp_tasks_get(struct mcp *m, const struct rpc_message *msg)
{
	about(m, msg, false, finish_get);
}

void mcp_tasks_cancel(struct mcp *m, const struct rpc_message *msg)
{
	about(m, msg, true, finish_acknowledged);
}

/* No task of ours asks for input, so there is nothing to take; the task must exist all the same. */
void mcp_tasks_update(struct mcp *m, const struct rpc_message *msg)
{
	about(m, msg, false, finish_acknowledged);
}
