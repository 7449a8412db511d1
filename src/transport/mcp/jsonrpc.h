/*
 * JSON-RPC 2.0 messages as MCP narrows them: one object per message (no batches), ids are strings
 * or integers and never null.
 *
 * Bytes to a typed message and back; no I/O. The text is read once. A message that cannot be read
 * yields a fault: exactly the error that the peer is due, with the id of its request when that
 * could be told. Without an id the member is left out, as MCP's schema has it (JSON-RPC's null is
 * no MCP id).
 */
#ifndef CLOISTER_TRANSPORT_MCP_JSONRPC_H
#define CLOISTER_TRANSPORT_MCP_JSONRPC_H

#include "codec/json.h"

enum { RPC_ID_BYTES_MAX = 256 };

/* Error codes of JSON-RPC and of MCP. RPC(NAME, code) */
#define RPC_CODES(RPC)                                                                             \
	RPC(PARSE_ERROR, -32700)                                                                   \
	RPC(INVALID_REQUEST, -32600)                                                               \
	RPC(METHOD_NOT_FOUND, -32601)                                                              \
	RPC(INVALID_PARAMS, -32602)                                                                \
	RPC(INTERNAL_ERROR, -32603)                                                                \
	RPC(RESOURCE_NOT_FOUND, -32002) /* legacy only */                                          \
	RPC(HEADER_MISMATCH, -32020)                                                               \
	RPC(MISSING_CAPABILITY, -32021)                                                            \
	RPC(UNSUPPORTED_VERSION, -32022)

enum rpc_code {
#define RPC(name, code) RPC_##name = code,
	RPC_CODES(RPC)
#undef RPC
};

enum rpc_kind { RPC_REQUEST, RPC_NOTIFICATION, RPC_RESPONSE };

struct rpc_message {
	enum rpc_kind kind;
	json_t *root;         /* owned; everything below points into it */
	const char *method;   /* NULL for a response */
	const json_t *id;     /* NULL for a notification */
	const json_t *params; /* an object, or NULL when there is none */
};

struct rpc_fault {
	enum rpc_code code;
	json_t *id; /* owned; NULL when it is not known */
	char message[256];
};

/* Read one message. 0: *ret is filled (rpc_message_done() it); -1: *ret_fault is
 * (rpc_fault_done()). */
int rpc_read(struct str text, struct rpc_message *ret, struct rpc_fault *ret_fault) _must_check_;
void rpc_message_done(struct rpc_message *m);
void rpc_fault_done(struct rpc_fault *f);

/* Append a string or an integer as JSON text: ids and progress tokens. */
void rpc_put_id(struct buf *out, const json_t *id);
bool rpc_is_id(const json_t *v);

/* A response, one line: rpc_result_open(), the result's JSON, rpc_result_close(). */
void rpc_result_open(struct buf *out, const json_t *id);
void rpc_result_close(struct buf *out);

/* An error response, one line. `id` may be NULL; `data` is JSON text or NULL. */
void rpc_error(struct buf *out, const json_t *id, enum rpc_code code, const char *message,
	const char *data);

#endif
