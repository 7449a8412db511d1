/* Sessions through a door: those of the token's tenant, and no others. */
#include "daemon/core_impl.h"

#include "session/session_json.h"

static const struct field create_fields[] = {
	{.name = "id",
		.type = FIELD_STRING,
		.min = 1,
		.max = LIMIT_SESSION_ID,
		.help = "A random one without it."},
	{.name = "owner",
		.type = FIELD_STRING,
		.min = 1,
		.max = SESSION_WORD_MAX,
		.help = "Whom it is for."},
	{.name = "role",
		.type = FIELD_STRING,
		.min = 1,
		.max = SESSION_WORD_MAX,
		.help = "What may be done in it at most; the token's role without it."},
	{.name = "ttl_seconds",
		.type = FIELD_INT,
		.min = 0,
		.max = 315360000,
		.help = "How long it lives; 0: without end."},
	{.name = "idle_seconds",
		.type = FIELD_INT,
		.min = 0,
		.max = 315360000,
		.help = "How long it lives unused; 0: without end."},
	{.name = "quota_bytes",
		.type = FIELD_INT,
		.min = 1,
		.max = 1LL << 50,
		.help = "Bytes of its files."},
	{.name = "quota_entries",
		.type = FIELD_INT,
		.min = 1,
		.max = 1000000000,
		.help = "Its files and directories."},
	FIELD_END,
};

static const struct field list_fields[] = {
	{.name = "after",
		.type = FIELD_STRING,
		.max = LIMIT_SESSION_ID,
		.help = "The last id of the page before."},
	{.name = "limit",
		.type = FIELD_INT,
		.min = 1,
		.max = REGISTRY_PAGE_MAX,
		.dflt = 100,
		.has_default = true,
		.help = "Most sessions."},
	FIELD_END,
};

static const struct field extend_fields[] = {
	{.name = "ttl_seconds",
		.type = FIELD_INT,
		.required = true,
		.min = 0,
		.max = 315360000,
		.help = "From now; 0: without end."},
	FIELD_END,
};

static void answer_info(struct ask *a, const struct session_info *info)
{
	_cleanup_buf_ struct buf b = buf_init(16 * 1024);
	session_put_json(&b, info);
	ask_json(a, &b);
}

/* 0 in a request is "without end", 0 in the registry "the default". */
static int64_t seconds(const json_t *args, const char *name)
{
	if (!arg_get(args, name))
		return 0;
	int64_t v = arg_int(args, create_fields, name);
	return v == 0 ? -1 : v;
}

/* Nobody hands out more than he has: the role of a new session is bounded by the creator's. */
static int role_of(const struct ask *a, const json_t *args, const char **ret, struct err *err)
{
	enum role asked = a->principal.role;
	const char *word = arg_str(args, create_fields, "role");
	int r = arg_get(args, "role") ? role_parse(word, &asked, err) : 0;
	if (r == 0)
		*ret = role_word(role_lesser(asked, a->principal.role));
	return r;
}

static int create(
	struct ask *a, const struct door_request *q, struct session_info *info, struct err *err)
{
	_cleanup_(cleanup_json_decref) json_t *args = NULL;
	struct session *s;
	struct session_spec spec = {.tenant = a->tenant};
	int r = ask_arguments(q, create_fields, &args, err);
	if (r == 0)
		r = role_of(a, args, &spec.role, err);
	if (r < 0)
		return r;
	spec.id = arg_get(args, "id") ? arg_str(args, create_fields, "id") : NULL;
	spec.owner = arg_get(args, "owner") ? arg_str(args, create_fields, "owner") : a->subject;
	spec.ttl_s = seconds(args, "ttl_seconds");
	spec.idle_s = seconds(args, "idle_seconds");
	spec.quota_bytes = arg_int(args, create_fields, "quota_bytes");
	spec.quota_entries = arg_int(args, create_fields, "quota_entries");
	r = registry_create(a->core->env.registry, &spec, &s, err);
	if (r < 0)
		return r;
	session_info(s, info);
	session_release(s);
	return 0;
}

void core_session_create(struct ask *a, const struct door_request *q)
{
	struct err err;
	struct session_info info;
	if (create(a, q, &info, &err) < 0) {
		ask_error(a, &err);
		return;
	}
	memcpy(a->session, info.id, sizeof(a->session));
	event_add(a->core, "session.created", a, "", ERR_OK);
	answer_info(a, &info);
}

void core_session_show(struct ask *a)
{
	struct err err;
	struct session_info info;
	if (registry_show(a->core->env.registry, a->tenant, a->session, &info, &err) < 0)
		ask_error(a, &err);
	else
		answer_info(a, &info);
}

static bool list_one(void *ctx, const struct session_info *info)
{
	session_put_json(ctx, info);
	return true;
}

static int list(struct ask *a, const struct door_request *q, struct buf *out, struct err *err)
{
	_cleanup_(cleanup_json_decref) json_t *args = NULL;
	bool more = false;
	int r = ask_arguments(q, list_fields, &args, err);
	if (r < 0)
		return r;
	const char *after = arg_get(args, "after") ? arg_str(args, list_fields, "after") : NULL;
	jw_open(out, '{');
	jw_key(out, "sessions");
	jw_open(out, '[');
	r = registry_page(a->core->env.registry, a->tenant, after,
		(unsigned)arg_int(args, list_fields, "limit"), list_one, out, &more, err);
	jw_close(out, ']');
	jw_bool(out, "more", more);
	jw_close(out, '}');
	return r;
}

void core_session_list(struct ask *a, const struct door_request *q)
{
	struct err err;
	_cleanup_buf_ struct buf b = buf_init((size_t)REGISTRY_PAGE_MAX * 4096);
	if (list(a, q, &b, &err) < 0)
		ask_error(a, &err);
	else
		ask_json(a, &b);
}

static int extend(
	struct ask *a, const struct door_request *q, struct session_info *info, struct err *err)
{
	_cleanup_(cleanup_json_decref) json_t *args = NULL;
	int r = ask_arguments(q, extend_fields, &args, err);
	if (r == 0)
		r = registry_extend(a->core->env.registry, a->tenant, a->session,
			arg_int(args, extend_fields, "ttl_seconds"), info, err);
	return r;
}

void core_session_extend(struct ask *a, const struct door_request *q)
{
	struct err err;
	struct session_info info;
	if (extend(a, q, &info, &err) < 0) {
		ask_error(a, &err);
		return;
	}
	event_add(a->core, "session.extended", a, "", ERR_OK);
	answer_info(a, &info);
}

void core_session_delete(struct ask *a)
{
	struct err err;
	struct session_info info;
	_cleanup_buf_ struct buf b = buf_init(1024);
	struct registry *reg = a->core->env.registry;
	int r = registry_show(reg, a->tenant, a->session, &info, &err);
	if (r == 0)
		r = registry_delete(reg, a->tenant, a->session, &err);
	if (r < 0) {
		ask_error(a, &err);
		return;
	}
	actives_end(a->core, info.incarnation);
	event_add(a->core, "session.deleted", a, "", ERR_OK);
	jw_open(&b, '{');
	jw_cstr(&b, "id", a->session);
	jw_bool(&b, "deleted", true);
	jw_close(&b, '}');
	ask_json(a, &b);
}
