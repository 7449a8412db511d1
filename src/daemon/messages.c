/* Messages between the processes: see messages.h. Everything here follows from messages.def. */
#include "daemon/messages.h"

#include <string.h>

struct header {
	uint16_t type, zero;
	uint32_t len;
};

static const struct {
	const char *name;
	enum msg_role to;
	unsigned fds;
} rows[MSG_TYPE_MAX_] = {
#define F(type, name, limit)
#define MESSAGE(NAME, name, from, to, fds, fields) [MSG_T_##NAME] = {#name, MSG_##to, fds},
#include "daemon/messages.def"
#undef MESSAGE
#undef F
};

unsigned msg_fds_max(enum msg_type type)
{
	return rows[type].fds;
}

const char *msg_name(enum msg_type type)
{
	return rows[type].name;
}

/* --- writing --- */

static void put_bytes(struct msg_out *o, const void *p, size_t n)
{
	if (n > sizeof(o->data) - o->len) {
		o->full = true;
		return;
	}
	if (n)
		memcpy(o->data + o->len, p, n);
	o->len += n;
}

#define DEFINE_PUT_NUMBER(type, ctype)                                                             \
	static void put_##type(struct msg_out *o, const ctype *v, uint64_t limit)                  \
	{                                                                                          \
		BUG_ON((uint64_t)*v > limit);                                                      \
		put_bytes(o, v, sizeof(*v));                                                       \
	}
DEFINE_PUT_NUMBER(u8, uint8_t)
DEFINE_PUT_NUMBER(u32, uint32_t)
DEFINE_PUT_NUMBER(u64, uint64_t)
DEFINE_PUT_NUMBER(i64, int64_t)

static void put_str(struct msg_out *o, const struct str *s, uint64_t limit)
{
	BUG_ON(s->n > limit);
	uint32_t n = (uint32_t)s->n;
	put_bytes(o, &n, sizeof(n));
	put_bytes(o, s->p, s->n);
}

static void put_strs(struct msg_out *o, const msg_strs *s, uint64_t limit)
{
	BUG_ON(s->n > limit || s->n > MSG_STRS_MAX);
	uint32_t n = s->n;
	put_bytes(o, &n, sizeof(n));
	for (unsigned i = 0; i < s->n; i++)
		put_str(o, &s->v[i], MSG_ITEM_BYTES);
}

static void put_places(struct msg_out *o, const msg_places *s, uint64_t limit)
{
	BUG_ON(s->n > limit || s->n > MSG_PLACES_MAX);
	uint32_t n = s->n;
	put_bytes(o, &n, sizeof(n));
	for (unsigned i = 0; i < s->n; i++) {
		uint32_t mount = s->v[i].mount;
		put_u32(o, &mount, LIMIT_MOUNTS - 1);
		put_str(o, &s->v[i].path, MSG_ITEM_BYTES);
	}
}

static void put_u64s(struct msg_out *o, const msg_u64s *s, uint64_t limit)
{
	BUG_ON(s->n > limit || s->n > WORKER_LINES_MAX);
	uint32_t n = s->n;
	put_bytes(o, &n, sizeof(n));
	put_bytes(o, s->v, n * sizeof(s->v[0]));
}

static size_t begin(struct msg_out *o)
{
	struct header h = {0};
	size_t at = o->len;
	o->full = false;
	put_bytes(o, &h, sizeof(h));
	return at;
}

static bool finish(struct msg_out *o, size_t at, enum msg_type type)
{
	if (o->full) {
		o->len = at;
		o->full = false;
		return false;
	}
	struct header h = {.type = (uint16_t)type, .len = (uint32_t)(o->len - at - sizeof(h))};
	memcpy(o->data + at, &h, sizeof(h));
	return true;
}

#define F(type, name, limit) put_##type(o, &m->name, limit);
#define MESSAGE(NAME, name, from, to, fds, fields)                                                 \
	bool msg_##name##_put(struct msg_out *o, const struct msg_##name *m)                       \
	{                                                                                          \
		size_t at = begin(o);                                                              \
		fields return finish(o, at, MSG_T_##NAME);                                         \
	}
#include "daemon/messages.def"
#undef MESSAGE
#undef F

/* --- reading --- */

static bool get_bytes(struct msg_in *in, void *ret, size_t n)
{
	if (n > in->left)
		return false;
	memcpy(ret, in->p, n);
	in->p += n;
	in->left -= n;
	return true;
}

#define DEFINE_GET_NUMBER(type, ctype)                                                             \
	static bool get_##type(struct msg_in *in, ctype *ret, uint64_t limit)                      \
	{                                                                                          \
		return get_bytes(in, ret, sizeof(*ret)) && (uint64_t)*ret <= limit;                \
	}
DEFINE_GET_NUMBER(u8, uint8_t)
DEFINE_GET_NUMBER(u32, uint32_t)
DEFINE_GET_NUMBER(u64, uint64_t)
DEFINE_GET_NUMBER(i64, int64_t) /* a negative number is above every limit */

static bool get_str(struct msg_in *in, struct str *ret, uint64_t limit)
{
	uint32_t n;
	if (!get_u32(in, &n, limit) || n > in->left)
		return false;
	*ret = (struct str){in->p, n};
	in->p += n;
	in->left -= n;
	return true;
}

static bool get_strs(struct msg_in *in, msg_strs *ret, uint64_t limit)
{
	uint32_t n;
	if (!get_u32(in, &n, MIN(limit, (uint64_t)MSG_STRS_MAX)))
		return false;
	ret->n = n;
	for (unsigned i = 0; i < n; i++)
		if (!get_str(in, &ret->v[i], MSG_ITEM_BYTES))
			return false;
	return true;
}

static bool get_places(struct msg_in *in, msg_places *ret, uint64_t limit)
{
	uint32_t n, mount;
	if (!get_u32(in, &n, MIN(limit, (uint64_t)MSG_PLACES_MAX)))
		return false;
	ret->n = n;
	for (unsigned i = 0; i < n; i++) {
		if (!get_u32(in, &mount, LIMIT_MOUNTS - 1) ||
			!get_str(in, &ret->v[i].path, MSG_ITEM_BYTES))
			return false;
		ret->v[i].mount = mount;
	}
	return true;
}

static bool get_u64s(struct msg_in *in, msg_u64s *ret, uint64_t limit)
{
	uint32_t n;
	if (!get_u32(in, &n, MIN(limit, (uint64_t)WORKER_LINES_MAX)))
		return false;
	ret->n = n;
	return get_bytes(in, ret->v, n * sizeof(ret->v[0]));
}

int msg_next(struct msg_in *packet, enum msg_role role, enum msg_type *ret_type,
	struct msg_in *ret_body, struct err *err)
{
	struct header h;
	if (packet->left == 0)
		return 0;
	if (!get_bytes(packet, &h, sizeof(h)) || h.zero || h.len > packet->left)
		return err_set(err, ERR_PARSE, "a message between processes is malformed");
	if (h.type == MSG_NONE_ || h.type >= MSG_TYPE_MAX_ || rows[h.type].to != role)
		return err_set(err, ERR_PARSE, "a message of type %u is not expected here", h.type);
	*ret_type = (enum msg_type)h.type;
	*ret_body = (struct msg_in){packet->p, h.len};
	packet->p += h.len;
	packet->left -= h.len;
	return 1;
}

static int bad_field(struct err *err, const char *message, const char *field)
{
	return err_set(err, ERR_PARSE, "field '%s' of message '%s' is malformed or over its limit",
		field, message);
}

static int leftover(struct err *err, const char *message, size_t n)
{
	return err_set(err, ERR_PARSE, "message '%s' is %zu bytes too long", message, n);
}

#define F(type, name, limit)                                                                       \
	if (!get_##type(&body, &ret->name, limit))                                                 \
		return bad_field(err, message, #name);
#define MESSAGE(NAME, lower, from, to, fds, fields)                                                \
	int msg_##lower##_get(struct msg_in body, struct msg_##lower *ret, struct err *err)        \
	{                                                                                          \
		const char *message = #lower;                                                      \
		fields return body.left ? leftover(err, message, body.left) : 0;                   \
	}
#include "daemon/messages.def"
#undef MESSAGE
#undef F
