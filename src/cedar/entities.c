/*
 * Entity sets: reading them, merging what is said twice, and closing the hierarchy.
 *
 * Every uid that appears as an entity or as a parent gets a node. Ancestors are then computed once,
 * parents before children, without recursion.
 */
#include "cedar/data.h"
#include "cedar/parse.h"

#include <stdlib.h>

const struct ced_entity *ced_entities_find(
	const struct cedar_entities *entities, const struct ced_uid *uid)
{
	if (!entities || !entities->count)
		return NULL;
	for (uint32_t at = uid->hash & entities->mask; entities->table[at];
		at = (at + 1) & entities->mask) {
		const struct ced_entity *e = &entities->entities[entities->table[at] - 1];
		if (ced_uid_eq(&e->uid, uid))
			return e;
	}
	return NULL;
}

bool ced_entity_has_ancestor(const struct ced_entity *e, const struct ced_uid *uid)
{
	uint32_t low = 0, high = e->ancestor_count;
	while (high - low > 8) {
		uint32_t middle = low + (high - low) / 2;
		if (e->ancestors[middle]->hash < uid->hash)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < e->ancestor_count && e->ancestors[low]->hash <= uid->hash; low++)
		if (ced_uid_eq(e->ancestors[low], uid))
			return true;
	return false;
}

/* -- Nodes ---------------------------------------------------------------------------------- */

enum state { UNVISITED, OPEN, CLOSED };

struct node {
	const struct ced_uid *uid;
	uint32_t entity; /* index + 1; 0: only a parent of others */
	enum state state;
	uint32_t next_parent; /* while OPEN */
	uint32_t mark;        /* the entity that last counted this as its ancestor */
};

/* The hierarchy in terms of nodes. */
struct links {
	const uint32_t *parents; /* ascending, each once */
	const uint32_t *ancestors;
};

struct ced_entities_builder {
	struct ced_reader r;
	struct cedar_entities *set;
	struct node *nodes;
	uint32_t node_count, node_capacity;
	uint32_t *table; /* by uid hash: node index + 1 */
	uint32_t table_size;
	struct ced_entity *entities;
	uint32_t count, capacity;
	struct links *links; /* per entity */
	uint32_t *ancestors; /* nodes of the entity at hand */
	uint32_t ancestor_count, ancestor_capacity;
	struct ced_arena work; /* for what `links` point to */
	uint64_t ancestor_total;
};

static int grow(void **p, uint32_t *capacity, uint32_t need, size_t size, struct cedar_error *err)
{
	if (need <= *capacity)
		return 0;
	uint32_t n = *capacity ? *capacity * 2 : 64;
	void *more = realloc(*p, n * size);
	if (!more)
		return ced_fail_memory(err);
	*p = more;
	*capacity = n;
	return 0;
}

static int grow_table(struct ced_entities_builder *b)
{
	uint32_t size = b->table_size ? b->table_size * 2 : 128;
	uint32_t *table = calloc(size, sizeof(*table));
	if (!table)
		return ced_fail_memory(b->r.err);
	for (uint32_t i = 0; i < b->node_count; i++) {
		uint32_t at = b->nodes[i].uid->hash & (size - 1);
		while (table[at])
			at = (at + 1) & (size - 1);
		table[at] = i + 1;
	}
	free(b->table);
	b->table = table;
	b->table_size = size;
	return 0;
}

static int node_of(struct ced_entities_builder *b, const struct ced_uid *uid, uint32_t *ret)
{
	if (b->node_count >= b->table_size / 2 && grow_table(b) < 0)
		return CEDAR_E_MEMORY;
	uint32_t at = uid->hash & (b->table_size - 1);
	for (; b->table[at]; at = (at + 1) & (b->table_size - 1))
		if (ced_uid_eq(b->nodes[b->table[at] - 1].uid, uid)) {
			*ret = b->table[at] - 1;
			return 0;
		}
	int code = grow((void **)&b->nodes, &b->node_capacity, b->node_count + 1, sizeof(*b->nodes),
		b->r.err);
	if (code < 0)
		return code;
	b->nodes[b->node_count] = (struct node){.uid = uid};
	b->table[at] = ++b->node_count;
	*ret = b->node_count - 1;
	return 0;
}

static int index_order(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (x > y) - (x < y);
}

/* The parents as nodes, ascending, each once. */
static int parent_nodes(struct ced_entities_builder *b, struct ced_entity *e, const uint32_t **ret)
{
	uint32_t *nodes = ced_new_array(&b->work, e->parent_count, uint32_t), unique = 0;
	int code = nodes ? 0 : ced_arena_fail(&b->work, b->r.err, (struct ced_pos){0});
	for (uint32_t i = 0; i < e->parent_count && code == 0; i++)
		code = node_of(b, e->parents[i], &nodes[i]);
	if (code < 0)
		return code;
	if (e->parent_count)
		qsort(nodes, e->parent_count, sizeof(*nodes), index_order);
	for (uint32_t i = 0; i < e->parent_count; i++)
		if (!i || nodes[i] != nodes[unique - 1])
			nodes[unique++] = nodes[i];
	const struct ced_uid **uids = ced_new_array(b->r.arena, unique, const struct ced_uid *);
	if (!uids)
		return ced_arena_fail(b->r.arena, b->r.err, (struct ced_pos){0});
	for (uint32_t i = 0; i < unique; i++)
		uids[i] = b->nodes[nodes[i]].uid;
	e->parents = uids;
	e->parent_count = unique;
	*ret = nodes;
	return 0;
}

static bool record_eq(const struct ced_record *a, const struct ced_record *b)
{
	return ced_value_eq((struct ced_value){.kind = CED_RECORD, .u.record = a},
		(struct ced_value){.kind = CED_RECORD, .u.record = b});
}

static bool same_entity(const struct ced_entity *a, const uint32_t *a_parents,
	const struct ced_entity *b, const uint32_t *b_parents)
{
	return record_eq(a->attrs, b->attrs) && record_eq(a->tags, b->tags) &&
	       a->parent_count == b->parent_count &&
	       memcmp(a_parents, b_parents, a->parent_count * sizeof(*a_parents)) == 0;
}

static int append(struct ced_entities_builder *b, const struct ced_entity *e,
	const uint32_t *parents, struct ced_pos pos)
{
	uint32_t capacity = b->capacity;
	if (b->count >= b->r.limits->entities)
		return ced_fail_limit(b->r.err, pos, "entities", b->r.limits->entities);
	int code = grow(
		(void **)&b->entities, &b->capacity, b->count + 1, sizeof(*b->entities), b->r.err);
	if (code == 0)
		code = grow(
			(void **)&b->links, &capacity, b->count + 1, sizeof(*b->links), b->r.err);
	if (code < 0)
		return code;
	b->entities[b->count] = *e;
	b->links[b->count++] = (struct links){.parents = parents};
	return 0;
}

int ced_entities_add(
	struct ced_entities_builder *b, const struct ced_entity *given, struct ced_pos pos)
{
	struct ced_entity e = *given;
	uint32_t node;
	const uint32_t *parents = NULL;
	const struct ced_uid *uid = ced_uid_make(b->r.arena, e.uid.type, e.uid.id);
	int code = uid ? node_of(b, uid, &node) : ced_arena_fail(b->r.arena, b->r.err, pos);
	if (code == 0)
		code = parent_nodes(b, &e, &parents);
	if (code < 0)
		return code;
	uint32_t twice = b->nodes[node].entity;
	if (twice && same_entity(&b->entities[twice - 1], b->links[twice - 1].parents, &e, parents))
		return 0;
	if (twice)
		return ced_fail(b->r.err, CEDAR_E_DUPLICATE, pos,
			"the entity %.100s::\"%.100s\" appears twice, with different contents",
			e.uid.type->text, e.uid.id->text);
	code = append(b, &e, parents, pos);
	if (code == 0)
		b->nodes[node].entity = b->count;
	return code;
}

/* -- Closure -------------------------------------------------------------------------------- */

static int count_ancestor(struct ced_entities_builder *b, uint32_t node, uint32_t mark)
{
	if (b->nodes[node].mark == mark)
		return 0;
	b->nodes[node].mark = mark;
	int code = grow((void **)&b->ancestors, &b->ancestor_capacity, b->ancestor_count + 1,
		sizeof(*b->ancestors), b->r.err);
	if (code == 0)
		b->ancestors[b->ancestor_count++] = node;
	return code;
}

static int hash_order(const void *a, const void *b)
{
	uint32_t x = (*(const struct ced_uid *const *)a)->hash,
		 y = (*(const struct ced_uid *const *)b)->hash;
	return (x > y) - (x < y);
}

static int keep_ancestors(struct ced_entities_builder *b, struct ced_entity *e, struct links *links)
{
	uint32_t n = b->ancestor_count;
	b->ancestor_total += n;
	if (b->ancestor_total > b->r.limits->ancestors)
		return ced_fail_limit(
			b->r.err, (struct ced_pos){0}, "ancestors", b->r.limits->ancestors);
	const struct ced_uid **uids = ced_new_array(b->r.arena, n, const struct ced_uid *);
	links->ancestors = ced_arena_copy(&b->work, b->ancestors, n * sizeof(*b->ancestors));
	if (!uids || !links->ancestors)
		return ced_arena_fail(uids ? &b->work : b->r.arena, b->r.err, (struct ced_pos){0});
	for (uint32_t i = 0; i < n; i++)
		uids[i] = b->nodes[b->ancestors[i]].uid;
	qsort(uids, n, sizeof(*uids), hash_order);
	e->ancestors = uids;
	e->ancestor_count = n;
	return 0;
}

/* The parents and their ancestors, which are known by now. */
static int close_entity(struct ced_entities_builder *b, uint32_t entity)
{
	struct ced_entity *e = &b->entities[entity];
	struct links *links = &b->links[entity];
	int code = 0;
	b->ancestor_count = 0;
	for (uint32_t i = 0; i < e->parent_count && code == 0; i++) {
		uint32_t up = b->nodes[links->parents[i]].entity;
		code = count_ancestor(b, links->parents[i], entity + 1);
		for (uint32_t k = 0; up && k < b->entities[up - 1].ancestor_count && code == 0; k++)
			code = count_ancestor(b, b->links[up - 1].ancestors[k], entity + 1);
	}
	return code == 0 && e->parent_count ? keep_ancestors(b, e, links) : code;
}

static int cycle(struct ced_entities_builder *b, const struct ced_uid *uid)
{
	return ced_fail(b->r.err, CEDAR_E_CYCLE, (struct ced_pos){0},
		"the entity %.100s::\"%.100s\" is its own ancestor", uid->type->text,
		uid->id->text);
}

/* Depth first from one entity; `stack` has room for every node. */
static int close_from(struct ced_entities_builder *b, uint32_t start, uint32_t *stack)
{
	uint32_t depth = 0;
	stack[depth++] = start;
	b->nodes[start].state = OPEN;
	while (depth) {
		struct node *n = &b->nodes[stack[depth - 1]];
		uint32_t entity = n->entity;
		if (entity && n->next_parent < b->entities[entity - 1].parent_count) {
			uint32_t parent = b->links[entity - 1].parents[n->next_parent++];
			if (b->nodes[parent].state == OPEN)
				return cycle(b, b->nodes[parent].uid);
			if (b->nodes[parent].state == UNVISITED) {
				b->nodes[parent].state = OPEN;
				stack[depth++] = parent;
			}
			continue;
		}
		int code = entity ? close_entity(b, entity - 1) : 0;
		if (code < 0)
			return code;
		n->state = CLOSED;
		depth--;
	}
	return 0;
}

static int close_all(struct ced_entities_builder *b)
{
	uint32_t *stack = calloc(b->node_count ? b->node_count : 1, sizeof(*stack));
	int code = stack ? 0 : ced_fail_memory(b->r.err);
	for (uint32_t i = 0; i < b->node_count && code == 0; i++)
		if (b->nodes[i].state == UNVISITED)
			code = close_from(b, i, stack);
	free(stack);
	return code;
}

/* The set proper: entities by index, and the table to find them. */
static int build_table(struct ced_entities_builder *b)
{
	struct cedar_entities *set = b->set;
	uint32_t size = 8;
	while (size < b->count * 2)
		size *= 2;
	uint32_t *table = ced_new_array(&set->arena, size, uint32_t);
	set->entities = ced_arena_copy(&set->arena, b->entities, b->count * sizeof(*b->entities));
	if (!table || !set->entities)
		return ced_arena_fail(&set->arena, b->r.err, (struct ced_pos){0});
	for (uint32_t i = 0; i < b->count; i++) {
		uint32_t at = b->entities[i].uid.hash & (size - 1);
		while (table[at])
			at = (at + 1) & (size - 1);
		table[at] = i + 1;
	}
	set->table = table;
	set->mask = size - 1;
	set->count = b->count;
	return 0;
}

/* -- Reading -------------------------------------------------------------------------------- */

static int read_fields(struct ced_entities_builder *b, const struct ced_guide *guide,
	const struct ced_uid *uid, bool tag, const struct ced_json *j,
	const struct ced_record **ret)
{
	const struct ced_reader *r = &b->r;
	if (j && j->kind != CED_JSON_OBJECT)
		return ced_fail(r->err, CEDAR_E_SYNTAX, j->pos, "%s are an object, found %s",
			tag ? "tags" : "attrs", ced_json_kind_name(j->kind));
	uint32_t n = j ? j->count : 0;
	struct ced_field *fields = calloc(n ? n : 1, sizeof(*fields));
	int code = 0;
	if (!fields)
		return ced_fail_memory(r->err);
	for (uint32_t i = 0; i < n && code == 0; i++) {
		const struct ced_member *m = &j->u.members[i];
		fields[i].key = ced_intern(r->names, m->key.p, m->key.n);
		if (!fields[i].key)
			code = ced_arena_fail(r->arena, r->err, m->pos);
		else if (guide && guide->value)
			code = guide->value(guide->ctx, r, uid, tag, fields[i].key, &m->value,
				&fields[i].value);
		else
			code = ced_value_from_json(r, &m->value, &fields[i].value);
	}
	if (code == 0) {
		*ret = ced_record_make(r->arena, fields, n, NULL);
		if (!*ret)
			code = ced_arena_fail(r->arena, r->err, (struct ced_pos){0});
	}
	free(fields);
	return code;
}

static int read_parents(
	struct ced_entities_builder *b, const struct ced_json *j, struct ced_entity *e)
{
	if (j->kind != CED_JSON_ARRAY)
		return ced_fail(b->r.err, CEDAR_E_SYNTAX, j->pos, "parents are an array, found %s",
			ced_json_kind_name(j->kind));
	const struct ced_uid **parents =
		ced_new_array(b->r.arena, j->count, const struct ced_uid *);
	if (!parents)
		return ced_arena_fail(b->r.arena, b->r.err, j->pos);
	for (uint32_t i = 0; i < j->count; i++) {
		int code = ced_uid_from_json(&b->r, &j->u.items[i], &parents[i]);
		if (code < 0)
			return code;
	}
	e->parents = parents;
	e->parent_count = j->count;
	return 0;
}

/* Actions descend from actions only. */
static int check_action_parents(
	const struct ced_entities_builder *b, const struct ced_entity *e, struct ced_pos pos)
{
	if (!ced_is_action_type(e->uid.type))
		return 0;
	for (uint32_t i = 0; i < e->parent_count; i++)
		if (!ced_is_action_type(e->parents[i]->type))
			return ced_fail(b->r.err, CEDAR_E_SYNTAX, pos,
				"the action %.100s::\"%.100s\" has a parent that is no action",
				e->uid.type->text, e->uid.id->text);
	return 0;
}

static int read_entity(
	struct ced_entities_builder *b, const struct ced_guide *guide, const struct ced_json *j)
{
	const struct ced_json *uid = ced_json_get(j, "uid"), *attrs = ced_json_get(j, "attrs");
	const struct ced_json *parents = ced_json_get(j, "parents");
	const struct ced_uid *id;
	struct ced_entity e = {0};
	if (!uid || !attrs || !parents)
		return ced_fail(b->r.err, CEDAR_E_SYNTAX, j->pos,
			"an entity is an object with uid, attrs and parents");
	int code = ced_uid_from_json(&b->r, uid, &id);
	if (code < 0)
		return code;
	e.uid = *id;
	code = read_fields(b, guide, id, false, attrs, &e.attrs);
	if (code == 0)
		code = read_fields(b, guide, id, true, ced_json_get(j, "tags"), &e.tags);
	if (code == 0)
		code = read_parents(b, parents, &e);
	if (code == 0)
		code = check_action_parents(b, &e, parents->pos);
	if (code == 0 && guide && guide->entity)
		code = guide->entity(guide->ctx, &b->r, &e, j->pos);
	return code < 0 ? code : ced_entities_add(b, &e, j->pos);
}

static int read_all(
	struct ced_entities_builder *b, const struct ced_guide *guide, const struct ced_json *j)
{
	int code = 0;
	if (j->kind != CED_JSON_ARRAY)
		return ced_fail(b->r.err, CEDAR_E_SYNTAX, j->pos, "entities are an array, found %s",
			ced_json_kind_name(j->kind));
	for (uint32_t i = 0; i < j->count && code == 0; i++)
		code = read_entity(b, guide, &j->u.items[i]);
	if (code == 0 && guide && guide->add)
		code = guide->add(guide->ctx, &b->r, b);
	if (code == 0)
		code = close_all(b);
	if (code == 0)
		code = build_table(b);
	if (code == 0 && guide && guide->closed)
		code = guide->closed(guide->ctx, b->set, b->r.err);
	return code;
}

static void builder_done(struct ced_entities_builder *b)
{
	free(b->nodes);
	free(b->table);
	free(b->entities);
	free(b->links);
	free(b->ancestors);
	ced_arena_done(&b->work);
}

static int read_set(struct cedar_entities *set, const char *json, size_t n,
	const struct cedar_limits *limits, const struct ced_guide *guide, struct cedar_error *err)
{
	struct ced_names names;
	struct ced_arena tree;
	struct ced_json j;
	ced_names_init(&names, &set->arena);
	ced_arena_init(&tree, limits->memory_bytes, "memory_bytes");
	int code = ced_json_read(&tree, json, n, limits->json_depth, "json_depth", &j, err);
	if (code == 0) {
		struct ced_entities_builder b = {
			.r = {&set->arena, &names, limits, err}, .set = set};
		ced_arena_init(&b.work, limits->memory_bytes, "memory_bytes");
		code = read_all(&b, guide, &j);
		builder_done(&b);
	}
	ced_arena_done(&tree);
	ced_names_done(&names);
	return code;
}

int ced_entities_read(const char *json, size_t n, const struct cedar_limits *limits,
	const struct ced_guide *guide, cedar_entities **ret, struct cedar_error *err)
{
	struct cedar_limits defaults = cedar_limits_default();
	struct cedar_error local;
	limits = limits ? limits : &defaults;
	err = err ? err : &local;
	if (n > limits->text_bytes)
		return ced_fail_limit(err, (struct ced_pos){0}, "text_bytes", limits->text_bytes);
	struct cedar_entities *set = calloc(1, sizeof(*set));
	if (!set)
		return ced_fail_memory(err);
	ced_arena_init(&set->arena, limits->memory_bytes, "memory_bytes");
	int code = read_set(set, json, n, limits, guide, err);
	if (code < 0) {
		ced_place(err, json, n);
		cedar_entities_free(set);
		return code;
	}
	*ret = set;
	return 0;
}

int cedar_entities_from_json(const char *json, size_t n, const struct cedar_limits *limits,
	cedar_entities **ret, struct cedar_error *err)
{
	return ced_entities_read(json, n, limits, NULL, ret, err);
}

void cedar_entities_free(cedar_entities *entities)
{
	if (!entities)
		return;
	ced_arena_done(&entities->arena);
	free(entities);
}

size_t cedar_entities_count(const cedar_entities *entities)
{
	return entities->count;
}
