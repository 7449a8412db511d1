/* What core says of itself: who a token is, its tools, whether it is well, what it has done. */
#include "daemon/core_impl.h"

#include "sys/clock.h"

void core_whoami(struct ask *a)
{
	_cleanup_buf_ struct buf b = buf_init(2048);
	jw_open(&b, '{');
	jw_cstr(&b, "tenant", a->tenant);
	jw_cstr(&b, "subject", a->subject);
	jw_cstr(&b, "role", role_word(a->principal.role));
	jw_bool(&b, "admin", a->admin);
	jw_close(&b, '}');
	ask_json(a, &b);
}

static void put_tool(struct buf *b, const struct tool *t)
{
	jw_open(b, '{');
	jw_cstr(b, "name", t->name);
	jw_cstr(b, "title", t->title);
	jw_cstr(b, "description", t->description);
	jw_cstr(b, "group", action_group_word(t->group));
	jw_bool(b, "destructive", t->destructive);
	jw_bool(b, "idempotent", t->idempotent || t->group == GROUP_READ);
	jw_key(b, "inputSchema");
	fields_schema(t->args, false, b);
	jw_key(b, "outputSchema");
	fields_schema(t->result, true, b);
	jw_close(b, '}');
}

void core_tools(struct ask *a)
{
	_cleanup_buf_ struct buf b = buf_init(1024 * 1024);
	jw_open(&b, '{');
	jw_key(&b, "tools");
	jw_open(&b, '[');
	for (unsigned i = 0; a->core->env.tools[i]; i++)
		put_tool(&b, a->core->env.tools[i]);
	jw_close(&b, ']');
	jw_close(&b, '}');
	ask_json(a, &b);
}

void core_health(struct ask *a)
{
	struct core *c = a->core;
	struct err err = {.code = ERR_OK};
	_cleanup_buf_ struct buf b = buf_init(4096);
	bool tokens = token_table_load(c->tokens, &err) == 0;
	jw_open(&b, '{');
	jw_bool(&b, "ready", tokens);
	jw_cstr(&b, "version", c->opt.version);
	jw_int(&b, "uptime_seconds", (loop_now_ms() - c->started_ms) / 1000);
	if (!tokens)
		jw_cstr(&b, "tokens", err.text);
	if (c->env.gaps)
		jw_cstr(&b, "weaker", c->env.gaps);
	jw_close(&b, '}');
	ask_json(a, &b);
}

void core_reload(struct ask *a)
{
	struct err err;
	struct core *c = a->core;
	_cleanup_buf_ struct buf b = buf_init(256);
	if (token_table_load(c->tokens, &err) < 0) {
		ask_error(a, &err);
		return;
	}
	jw_open(&b, '{');
	jw_int(&b, "tokens", token_table_count(c->tokens));
	jw_close(&b, '}');
	ask_json(a, &b);
}

/* --- counters --------------------------------------------------------------------------------- */

static unsigned tenant_row(struct counts *n, const char *tenant)
{
	for (unsigned i = 0; i < n->n_tenants; i++)
		if (strcmp(n->tenants[i].name, tenant) == 0)
			return i;
	if (n->n_tenants == CORE_TENANTS_COUNTED)
		return CORE_TENANTS_COUNTED - 1; /* "other" */
	unsigned row = n->n_tenants++;
	bool other = row == CORE_TENANTS_COUNTED - 1;
	(void)snprintf(
		n->tenants[row].name, sizeof(n->tenants[row].name), "%s", other ? "other" : tenant);
	return row;
}

void count_call(struct core *c, const struct ask *a, enum err_code code)
{
	struct counts *n = &c->counts;
	unsigned row = tenant_row(n, a->tenant);
	n->calls++;
	n->changes += a->called && a->called->group != GROUP_READ && code == ERR_OK;
	n->call_ns += (uint64_t)(clock_mono_ns() - a->started_ns);
	n->tenants[row].calls++;
	n->tenants[row].refused += code != ERR_OK;
}

static void metric(struct buf *b, const char *name, const char *type, const char *help)
{
	buf_printf(b, "# HELP cloister_%s %s\n# TYPE cloister_%s %s\n", name, help, name, type);
}

static void single(struct buf *b, const char *name, const char *type, const char *help, uint64_t v)
{
	metric(b, name, type, help);
	buf_printf(b, "cloister_%s %llu\n", name, (unsigned long long)v);
}

/* Tenants are visible ASCII (govern/token.h); two characters need care in a label. */
static void put_label(struct buf *b, const char *text)
{
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			buf_putc(b, '\\');
		buf_putc(b, *text);
	}
}

static void put_by_row(struct buf *b, const struct counts *n)
{
	metric(b, "requests_total", "counter", "Requests that reached core, by operation.");
	for (unsigned i = 0; i < DOOR_OP_MAX_; i++)
		buf_printf(b, "cloister_requests_total{op=\"%s\"} %llu\n",
			door_op_info((enum door_op)i)->name, (unsigned long long)n->asks[i]);
	metric(b, "refused_total", "counter", "Answers that are refusals, by code.");
	for (unsigned i = 1; i < ERR_CODE_MAX_; i++)
		if (n->refused[i])
			buf_printf(b, "cloister_refused_total{code=\"%s\"} %llu\n",
				err_info((enum err_code)i)->name,
				(unsigned long long)n->refused[i]);
	metric(b, "tenant_calls_total", "counter", "Calls by tenant.");
	for (unsigned i = 0; i < n->n_tenants; i++) {
		buf_puts(b, "cloister_tenant_calls_total{tenant=\"");
		put_label(b, n->tenants[i].name);
		buf_printf(b, "\"} %llu\n", (unsigned long long)n->tenants[i].calls);
	}
	metric(b, "tenant_refused_total", "counter", "Refused calls by tenant.");
	for (unsigned i = 0; i < n->n_tenants; i++) {
		buf_puts(b, "cloister_tenant_refused_total{tenant=\"");
		put_label(b, n->tenants[i].name);
		buf_printf(b, "\"} %llu\n", (unsigned long long)n->tenants[i].refused);
	}
}

void core_metrics(struct ask *a)
{
	struct core *c = a->core;
	const struct counts *n = &c->counts;
	_cleanup_buf_ struct buf b = buf_init(256 * 1024);
	put_by_row(&b, n);
	single(&b, "calls_total", "counter", "Calls that have ended.", n->calls);
	single(&b, "changes_total", "counter", "Calls that changed something.", n->changes);
	metric(&b, "call_seconds_total", "counter", "Time from the start to the end of calls.");
	buf_printf(&b, "cloister_call_seconds_total %.6f\n", (double)n->call_ns / 1e9);
	single(&b, "waiting", "gauge", "Requests that wait for something.", c->n_waiting);
	single(&b, "workers", "gauge", "Sessions with a worker.", c->n_actives);
	single(&b, "workers_started_total", "counter", "Workers made.", n->workers_started);
	single(&b, "flush_failed_total", "counter", "Times the registry could not be saved.",
		n->flush_failed);
	single(&b, "results", "gauge", "Results kept by call id.", c->n_results);
	single(&b, "result_bytes", "gauge", "Bytes of these.", c->result_bytes);
	single(&b, "tokens", "gauge", "Tokens known.", token_table_count(c->tokens));
	single(&b, "uptime_seconds", "gauge", "Since this core was started.",
		(uint64_t)(loop_now_ms() - c->started_ms) / 1000);
	ask_json(a, &b);
}
