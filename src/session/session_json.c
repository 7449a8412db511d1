/* A session as every door shows it: see session_json.h. */
#include "session/session_json.h"

#include "codec/json_write.h"

void session_put_json(struct buf *b, const struct session_info *i)
{
	jw_open(b, '{');
	jw_cstr(b, "id", i->id);
	jw_cstr(b, "tenant", i->tenant);
	jw_cstr(b, "owner", i->owner);
	jw_cstr(b, "role", i->role);
	jw_cstr(b, "kind", i->kind == SESSION_ATTACHED ? "attached" : "managed");
	jw_bool(b, "expired", i->expired);
	jw_int(b, "created", i->created_ms / 1000);
	jw_int(b, "used", i->used_ms / 1000);
	jw_int(b, "expires", i->expires_ms / 1000);
	jw_int(b, "idle_seconds", i->idle_ms / 1000);
	jw_int(b, "quota_bytes", i->quota_bytes);
	jw_int(b, "quota_entries", i->quota_entries);
	jw_int(b, "bytes", i->usage_bytes);
	jw_int(b, "entries", i->usage_entries);
	jw_int(b, "turns", (int64_t)i->turns);
	jw_close(b, '}');
}
