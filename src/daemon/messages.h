/*
 * Messages between the processes: a typed writer and a typed cursor, both derived from
 * messages.def.
 *
 * On the wire a packet (one SOCK_SEQPACKET datagram) is a sequence of messages, each a 16-bit type,
 * 16 zero bits, a 32-bit length and that many bytes, in the machine's byte order: both ends are
 * processes of one tree. The peer is never trusted: bounds are checked by subtraction before
 * anything is read, counts before anything is stored, and bytes left over are an error.
 */
#ifndef CLOISTER_DAEMON_MESSAGES_H
#define CLOISTER_DAEMON_MESSAGES_H

#include "call/worker.h"
#include "journal/journal.h"
#include "transport/door.h"

enum {
	MSG_PACKET_MAX = 128 * 1024,
	MSG_STRS_MAX = 64,
	MSG_PLACES_MAX = 64,
	MSG_REPLACEMENT_MAX = 32 * 1024,
	MSG_ITEM_BYTES = LIMIT_PATH_BYTES,
	DOOR_INLINE_MAX =
		64 * 1024, /* JSON of a question or answer in the packet; beyond: a memfd */
};

enum msg_role { MSG_CORE, MSG_SUPERVISOR, MSG_WORKER, MSG_FRONT, MSG_JOURNAL };

enum msg_type {
	MSG_NONE_,
#define MESSAGE(NAME, name, from, to, fds, fields) MSG_T_##NAME,
#define F(type, name, limit)
#include "daemon/messages.def"
#undef MESSAGE
#undef F
	MSG_TYPE_MAX_,
};

typedef uint8_t msg_u8;
typedef uint32_t msg_u32;
typedef uint64_t msg_u64;
typedef int64_t msg_i64;
typedef struct str msg_str; /* borrowed from the packet */
typedef struct {
	unsigned n;
	struct str v[MSG_STRS_MAX];
} msg_strs;
typedef struct {
	unsigned n;
	struct search_place v[MSG_PLACES_MAX];
} msg_places;
typedef struct {
	unsigned n;
	uint64_t v[WORKER_LINES_MAX];
} msg_u64s;

/* struct msg_NAME for every row. */
#define F(type, name, limit) msg_##type name;
#define MESSAGE(NAME, name, from, to, fds, fields)                                                 \
	struct msg_##name {                                                                        \
		fields                                                                             \
	};
#include "daemon/messages.def"
#undef MESSAGE
#undef F

/* --- writing ---
 * Our own values, so a value over its limit is a BUG, but room is not: msg_fits() tells. */

struct msg_out {
	size_t len;
	bool full;
	char data[MSG_PACKET_MAX];
};

static inline void msg_out_clear(struct msg_out *o)
{
	o->len = 0;
	o->full = false;
}

/* Append; false when the packet has no room for it (then nothing was appended). */
#define F(type, name, limit)
#define MESSAGE(NAME, name, from, to, fds, fields)                                                 \
	bool msg_##name##_put(struct msg_out *o, const struct msg_##name *m);
#include "daemon/messages.def"
#undef MESSAGE
#undef F

/* --- reading --- */

struct msg_in {
	const char *p;
	size_t left;
};

/* The next message of a packet: 1 with its type and body, 0 at the end, ERR_PARSE when malformed or
 * not for `role`. */
int msg_next(struct msg_in *packet, enum msg_role role, enum msg_type *ret_type,
	struct msg_in *ret_body, struct err *err) _must_check_;

/* Decode a whole body; ERR_PARSE names the message and field. *ret is undefined on failure. */
#define F(type, name, limit)
#define MESSAGE(NAME, name, from, to, fds, fields)                                                 \
	int msg_##name##_get(struct msg_in body, struct msg_##name *ret, struct err *err)          \
		_must_check_;
#include "daemon/messages.def"
#undef MESSAGE
#undef F

/* How many descriptors may come with a message of this type. */
unsigned msg_fds_max(enum msg_type type);
const char *msg_name(enum msg_type type);

#endif
