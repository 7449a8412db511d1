/*
 * The inside of entity sets and requests, and how they are made.
 */
#ifndef CEDAR_ENTITIES_H
#define CEDAR_ENTITIES_H

#include "cedar/json.h"
#include "cedar/value.h"

struct ced_entity {
	struct ced_uid uid;
	const struct ced_record *attrs;
	const struct ced_record *tags;
	const struct ced_uid *const *parents; /* as given, without repetitions */
	uint32_t parent_count;
	/* The transitive closure of the parents over the entities of the set, sorted by hash. */
	const struct ced_uid *const *ancestors;
	uint32_t ancestor_count;
};

struct cedar_entities {
	struct ced_arena arena;
	const struct ced_entity *entities;
	uint32_t count;
	const uint32_t *table; /* open addressing by uid hash: index + 1 */
	uint32_t mask;
};

struct cedar_request {
	struct ced_arena arena;
	const struct ced_uid *principal, *action, *resource;
	const struct ced_record *context;
};

/* NULL: no such entity. */
const struct ced_entity *ced_entities_find(
	const struct cedar_entities *entities, const struct ced_uid *uid);
/* An ancestor proper; equality is the caller's. */
bool ced_entity_has_ancestor(const struct ced_entity *e, const struct ced_uid *uid);

/* -- Reading values from JSON. ------------------------------------------------------------- */

/* What readers of data work in. */
struct ced_reader {
	struct ced_arena *arena; /* where the values go */
	struct ced_names *names;
	const struct cedar_limits *limits;
	struct cedar_error *err;
};

/* An ordinary value: escapes `__entity` and `__extn`, everything else as it is. */
int ced_value_from_json(
	const struct ced_reader *r, const struct ced_json *j, struct ced_value *ret);
/* {"type","id"} or {"__entity":{"type","id"}}. */
int ced_uid_from_json(
	const struct ced_reader *r, const struct ced_json *j, const struct ced_uid **ret);
/* `Type::"id"` in text, as policies write it. */
int ced_uid_from_text(
	const struct ced_reader *r, const char *text, size_t n, const struct ced_uid **ret);

/*
 * A schema's part in reading. Each hook may be NULL. `value` reads one attribute or tag (or, for
 * the context, one attribute of it, `owner` then NULL); `entity` judges a whole entity, before the
 * closure is known; `add` adds entities of its own (actions) before the set is closed.
 */
struct ced_entities_builder;

struct ced_guide {
	void *ctx;
	int (*value)(void *ctx, const struct ced_reader *r, const struct ced_uid *owner, bool tag,
		const struct ced_name *key, const struct ced_json *j, struct ced_value *ret);
	int (*entity)(void *ctx, const struct ced_reader *r, const struct ced_entity *e,
		struct ced_pos pos);
	int (*add)(void *ctx, const struct ced_reader *r, struct ced_entities_builder *b);
	/* Requests: principal, action and resource are known, the context is not yet read. */
	int (*request)(void *ctx, const cedar_request *request, struct cedar_error *err);
	/* After the closure: ancestors are known. */
	int (*closed)(void *ctx, const struct cedar_entities *entities, struct cedar_error *err);
};

/* An entity made by a program: all pointers must live in the reader's arena. A second one with the
 * same uid is merged when it is equal and CEDAR_E_DUPLICATE otherwise. */
int ced_entities_add(
	struct ced_entities_builder *b, const struct ced_entity *e, struct ced_pos pos);

int ced_entities_read(const char *json, size_t n, const struct cedar_limits *limits,
	const struct ced_guide *guide, cedar_entities **ret, struct cedar_error *err);

/* `guide->value` reads the attributes of the context; `check` (may be NULL) judges the request. */
int ced_request_read(const char *json, size_t n, const struct cedar_limits *limits,
	const struct ced_guide *guide,
	int (*check)(void *ctx, const cedar_request *request, struct cedar_error *err), void *ctx,
	cedar_request **ret, struct cedar_error *err);

#endif
