/*
 * The port between a door (HTTP, MCP over HTTP, later gRPC) and core.
 *
 * A door knows protocols and nothing else. What a client wants becomes one struct door_request,
 * handed over with door_submit(); the answer comes later through a callback. Nothing here blocks.
 * Behind the port is either core in the same process (tests) or the socket between the processes
 * front and core (daemon/door_client.h); a door cannot tell.
 *
 * Who the client is gets decided in core: a door forwards the bearer token as it was sent and never
 * learns what it may do, so a door that was taken over can use the tokens that pass through it and
 * no others. For the same reason there is no "this peer is local": it would have to be believed.
 *
 * All of a door is used from one thread, the one that runs the loop; callbacks come from there,
 * never from inside door_submit(). What was submitted in one turn of the loop reaches core as one
 * packet, so submit as requests come and do not gather them.
 */
#ifndef CLOISTER_TRANSPORT_DOOR_H
#define CLOISTER_TRANSPORT_DOOR_H

#include "base/limits.h"
#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	DOOR_IN_FLIGHT_MAX =
		16384,        /* requests of one door that wait for their answer; then ERR_LIMIT */
	DOOR_TOKEN_MAX = 512, /* bytes of a bearer token */
	DOOR_TOOL_MAX = 64,
	DOOR_TURN_MAX = 128,
	DOOR_ID_MAX = 64,
	DOOR_ROLE_MAX = 64,
	DOOR_WAIT_MS_MAX = 50000,
	DOOR_ANSWER_MAX = 256 * 1024 * 1024, /* bytes of JSON of an answer */
	DOOR_ETAG_LEN = 32,
};

/* What an operation needs, for door.def. */
enum {
	DOOR_AUTH = 1,
	DOOR_SESSION = 2,
	DOOR_TOOL = 4,
	DOOR_ID = 8,
	DOOR_BODY = 16,
	DOOR_ADMIN = 32
};

enum door_op {
#define DOOR_OP(NAME, name, needs, help) DOOR_##NAME,
#include "transport/door.def"
#undef DOOR_OP
	DOOR_OP_MAX_,
};

/*
 * One request. All of it is borrowed and copied by door_submit(); fields an operation has no use
 * for are left zero.
 *
 * For each operation: its arguments (a JSON object as text; {} when empty) -> the answer's JSON
 * (code ERR_OK).
 *
 *   CALL            the tool's arguments -> the call's result, conforming to the tool's schema
 *   CALL_RESULT     none; waits up to wait_ms while it runs -> the call's result, or
 *                   {"call_id","status"}
 *   CALL_CANCEL     none -> {"call_id","cancelled":bool}
 *   UPLOAD          path, create_parents?, expected_hash?, overwrite? -> as file_write
 *   DOWNLOAD        path -> {"path","size","modified"} and the descriptor
 *   SESSION_CREATE  id?, owner?, role?, ttl_seconds?, idle_seconds?, quota_bytes?,
 *                   quota_entries? -> the session
 *   SESSION_SHOW    none -> the session
 *   SESSION_LIST    after?, limit? -> {"sessions":[..],"more":bool}
 *   SESSION_EXTEND  ttl_seconds -> the session
 *   SESSION_DELETE  none -> {"id","deleted":true}
 *   EVENTS          after? (an event's id), limit?; with a session only that session's; waits up
 *                   to wait_ms -> {"events":[{"id",..}],"last":ID}, empty when wait_ms passed,
 *                   with "gap":true when older ones were lost
 *   WHOAMI          none -> {"tenant","subject","role","admin"}
 *   TOOLS           none -> {"tools":[{"name","title","description","group","destructive",
 *                   "idempotent","inputSchema","outputSchema"}]}
 *   HEALTH          none -> {"ready":bool,..}
 *   METRICS         none -> not JSON: Prometheus text format 0.0.4
 *   RELOAD          none -> what was read anew
 *
 * A session of another tenant and one that does not exist are ERR_SESSION_NOT_FOUND in the same
 * words.
 */
struct door_request {
	enum door_op op;
	struct str token;     /* of `Authorization: Bearer`, without the word; {NULL, 0}: none */
	struct str session;   /* id */
	struct str tool;      /* its name */
	struct str arguments; /* at most LIMIT_REQUEST_BYTES; need not be valid, core reads it
				 strictly */
	struct str turn;      /* by which the journal groups calls; empty: none */
	struct str id;        /* a call's id */
	struct str role; /* the role that is asked for; the lesser of it and the token's counts.
			    Empty: the token's */
	int64_t wait_ms; /* answer at the latest after so long, 0..DOOR_WAIT_MS_MAX. CALL: 0 waits
			    to the end */
	/*
	 * UPLOAD: where the content is read from: a sealed memfd from offset 0, or the read end of
	 * a pipe that the door writes and closes. Owned by the door_submit() that succeeds.
	 * `body_size` is what was announced; fewer or more bytes refuse the upload, so
	 * a client that went away half-way (close the pipe) changes nothing.
	 */
	int body_fd;
	int64_t body_size;
};

struct door_answer {
	enum err_code code; /* ERR_OK, or what err.def has a status for */
	/*
	 * The whole answer as JSON text, borrowed during the callback. Also of a refusal:
	 * {"executed":false,"error":{"code","message","hint"?,..},"call_id"?}.
	 */
	struct str json;
	bool running; /* CALL, CALL_RESULT: wait_ms passed first; json is
			 {"call_id","status":"running"} */
	int fd; /* DOWNLOAD: open for reading; take_fd() it to keep it, else it is closed. -1: none
		 */
	int64_t size;        /* DOWNLOAD: bytes at the time of the answer */
	int64_t modified_ms; /* DOWNLOAD: Unix time */
	char etag[DOOR_ETAG_LEN +
		  1]; /* DOWNLOAD: changes whenever the content may have changed; no hash of it */
};

typedef void (*door_done_fn)(void *ctx, struct door_answer *answer);
/* At most every 200 ms; total 0: unknown. */
typedef void (*door_progress_fn)(void *ctx, int64_t done, int64_t total);

struct door;

struct door_ops {
	int (*submit)(struct door *d, const struct door_request *q, door_done_fn done,
		door_progress_fn progress, void *ctx, uint64_t *ret_id, struct err *err);
	void (*cancel)(struct door *d, uint64_t id);
	void (*abandon)(struct door *d, uint64_t id);
};

/* The first member of every implementation. */
struct door {
	const struct door_ops *ops;
};

/*
 * Hand a request over. On success `done` is called exactly once, unless door_abandon() comes first;
 * core being restarted is an answer too (ERR_UNAVAILABLE: whether a change was made is not known).
 * `progress` may be NULL. Errors (then `done` is never called and body_fd stays the caller's):
 * ERR_INVALID_ARGUMENT (a field over its limit or missing), ERR_UNAUTHENTICATED (an operation needs
 * a token and there is none), ERR_TOO_LARGE, ERR_LIMIT, ERR_UNAVAILABLE (core is being restarted),
 * ERR_NO_MEMORY.
 */
static inline int _must_check_ door_submit(struct door *d, const struct door_request *q,
	door_done_fn done, door_progress_fn progress, void *ctx, uint64_t *ret_id, struct err *err)
{
	return d->ops->submit(d, q, done, progress, ctx, ret_id, err);
}

/* Ask core to stop; `done` still comes, with ERR_CANCELLED or with what had happened before.
 * Unknown ids are ignored. */
static inline void door_cancel(struct door *d, uint64_t id)
{
	d->ops->cancel(d, id);
}

/* Forget a request whose client has gone: no callback after this. A call goes on and its result can
 * be read by id. */
static inline void door_abandon(struct door *d, uint64_t id)
{
	d->ops->abandon(d, id);
}

/* Check a request against door.def and the limits above; every implementation calls it first. */
int door_check(const struct door_request *q, struct err *err) _must_check_;

struct door_op_info {
	const char *name, *help;
	unsigned needs;
};
const struct door_op_info *door_op_info(enum door_op op);

#endif
