/*
 * A JSON reader that hides nothing: raw number text, duplicate keys refused, places kept.
 *
 * The tree lives in the caller's arena. Strings without an escape, and numbers, point into the
 * text, which must live as long as the tree.
 */
#ifndef CEDAR_JSON_H
#define CEDAR_JSON_H

#include "cedar/arena.h"

/* ORDER JSON: ced_json_kind_name() in json.c. */
enum ced_json_kind {
	CED_JSON_NULL,
	CED_JSON_BOOL,
	CED_JSON_NUMBER,
	CED_JSON_STRING,
	CED_JSON_ARRAY,
	CED_JSON_OBJECT,
};

struct ced_slice {
	const char *p;
	size_t n;
};

struct ced_json {
	enum ced_json_kind kind;
	bool boolean;
	uint32_t count; /* of items or members */
	struct ced_pos pos;
	union {
		struct ced_slice text; /* a string without escapes; a number as it was written */
		const struct ced_json *items;
		const struct ced_member *members; /* in source order */
	} u;
};

struct ced_member {
	struct ced_slice key;
	struct ced_pos pos; /* of the key */
	struct ced_json value;
};

/* Read one document. `depth_name` is the limit that `depth` is, for its error. Errors:
 * CEDAR_E_SYNTAX, CEDAR_E_DUPLICATE (a key twice), CEDAR_E_LIMIT, CEDAR_E_MEMORY. */
int ced_json_read(struct ced_arena *arena, const char *text, size_t n, uint32_t depth,
	const char *depth_name, struct ced_json *ret, struct cedar_error *err);

/* "null", "a boolean", "a number", ... */
const char *ced_json_kind_name(enum ced_json_kind kind);

bool ced_slice_is(struct ced_slice s, const char *text);
/* NULL: no such member, or no object at all. */
const struct ced_json *ced_json_get(const struct ced_json *object, const char *key);

/* An integer of 64 bits in its one spelling: no fraction, no exponent, no -0. */
int ced_json_long(const struct ced_json *j, int64_t *ret, struct cedar_error *err);

/* What the members of an object must be: every one of `required` and none but those and
 * `optional` (both NULL-terminated; `what` is the object's name in errors). */
int ced_json_members(const struct ced_json *j, const char *what, const char *const *required,
	const char *const *optional, struct cedar_error *err);

#endif
