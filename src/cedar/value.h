/*
 * Values: what expressions evaluate to and what entities and contexts hold.
 *
 * A value is two words, passed by value; what it points to is immutable and lives in an arena. Sets
 * are canonical (sorted by ced_value_cmp(), without duplicates), records are sorted by key: so
 * equality is element by element, whatever the order that they were written in.
 */
#ifndef CEDAR_VALUE_H
#define CEDAR_VALUE_H

#include "cedar/intern.h"

/* ORDER KIND: ced_kind_name() in value.c. */
enum ced_kind {
	CED_BOOL,
	CED_LONG,
	CED_STRING,
	CED_ENTITY,
	CED_SET,
	CED_RECORD,
	CED_DECIMAL,
	CED_IPADDR,
	CED_DATETIME,
	CED_DURATION,
	CED_KINDS,
};

/* The identity of an entity. Make it with ced_uid_make(), which hashes. */
struct ced_uid {
	const struct ced_name *type, *id;
	uint32_t hash;
};

/* Addresses are 16 bytes; IPv4 uses the first four. Host bits below the prefix are kept. */
struct ced_ip {
	uint8_t bytes[16];
	uint8_t prefix;
	bool v6;
};

struct ced_value {
	enum ced_kind kind;
	union {
		bool boolean;
		int64_t number; /* Long; decimal in units of 1/10000; datetime, duration in ms */
		const struct ced_name *string;
		const struct ced_uid *uid;
		const struct ced_set *set;
		const struct ced_record *record;
		const struct ced_ip *ip;
	} u;
};

struct ced_set {
	uint32_t count;
	struct ced_value items[];
};

struct ced_field {
	const struct ced_name *key;
	struct ced_value value;
};

struct ced_record {
	uint32_t count;
	struct ced_field fields[];
};

/* "Bool", "Long", "String", "Entity", "Set", "Record", "decimal", ... */
const char *ced_kind_name(enum ced_kind kind);

static inline struct ced_value ced_bool(bool b)
{
	return (struct ced_value){.kind = CED_BOOL, .u.boolean = b};
}
static inline struct ced_value ced_number(enum ced_kind kind, int64_t n)
{
	return (struct ced_value){.kind = kind, .u.number = n};
}
static inline struct ced_value ced_string(const struct ced_name *s)
{
	return (struct ced_value){.kind = CED_STRING, .u.string = s};
}
static inline struct ced_value ced_entity(const struct ced_uid *uid)
{
	return (struct ced_value){.kind = CED_ENTITY, .u.uid = uid};
}

struct ced_uid ced_uid_of(const struct ced_name *type, const struct ced_name *id);
/* NULL: as ced_arena_alloc(). */
const struct ced_uid *ced_uid_make(
	struct ced_arena *arena, const struct ced_name *type, const struct ced_name *id);

static inline bool ced_uid_eq(const struct ced_uid *a, const struct ced_uid *b)
{
	return a == b ||
	       (a->hash == b->hash && ced_name_eq(a->id, b->id) && ced_name_eq(a->type, b->type));
}

/* Language equality (different kinds: false), and a total order that agrees with it. */
bool ced_value_eq(struct ced_value a, struct ced_value b);
int ced_value_cmp(struct ced_value a, struct ced_value b);

/* Sort and deduplicate `items` in place and copy them; NULL: as ced_arena_alloc(). */
const struct ced_set *ced_set_make(struct ced_arena *arena, struct ced_value *items, uint32_t n);
bool ced_set_contains(const struct ced_set *set, struct ced_value v);
/* Every item of `b` is in `a`; one of them is. */
bool ced_set_contains_all(const struct ced_set *a, const struct ced_set *b);
bool ced_set_contains_any(const struct ced_set *a, const struct ced_set *b);

/* Sort `fields` in place and copy them. Of equal keys `ret_twice` (may be NULL) names one, and the
 * result is NULL; NULL without it: as ced_arena_alloc(). */
const struct ced_record *ced_record_make(struct ced_arena *arena, struct ced_field *fields,
	uint32_t n, const struct ced_name **ret_twice);
/* NULL: no such key. */
const struct ced_value *ced_record_get(const struct ced_record *r, const struct ced_name *key);

#endif
