/* A map from strings to numbers. See map.h. */
#include "cedar/map.h"

#include "cedar/slice.h"

enum { FIRST_SLOTS = 16 };

static struct ced_map_slot *find(const struct ced_map *m, struct ced_slice key, uint32_t hash)
{
	size_t at = hash & (m->n_slots - 1);

	while (m->slots[at].used &&
		!(m->slots[at].hash == hash && ced_slice_eq(m->slots[at].key, key)))
		at = (at + 1) & (m->n_slots - 1);
	return &m->slots[at];
}

uint32_t ced_map_get(const struct ced_map *m, struct ced_slice key)
{
	const struct ced_map_slot *slot;

	if (m->n == 0)
		return CED_MAP_NONE;
	slot = find(m, key, ced_hash(key.p, key.n));
	return slot->used ? slot->value : CED_MAP_NONE;
}

static int grow(struct ced_map *m, struct ced_arena *arena)
{
	size_t n_slots = m->n_slots ? m->n_slots * 2 : FIRST_SLOTS;
	struct ced_map bigger = {.n_slots = n_slots, .n = m->n};

	bigger.slots = ced_arena_alloc(arena, n_slots * sizeof(*bigger.slots));
	if (!bigger.slots)
		return -1;
	for (size_t i = 0; i < m->n_slots; i++)
		if (m->slots[i].used)
			*find(&bigger, m->slots[i].key, m->slots[i].hash) = m->slots[i];
	*m = bigger;
	return 0;
}

int ced_map_set(struct ced_map *m, struct ced_arena *arena, struct ced_slice key, uint32_t value)
{
	uint32_t hash = ced_hash(key.p, key.n);
	struct ced_map_slot *slot;

	if (m->n * 2 >= m->n_slots && grow(m, arena) < 0)
		return -1;
	slot = find(m, key, hash);
	m->n += !slot->used;
	*slot = (struct ced_map_slot){.key = key, .hash = hash, .value = value, .used = true};
	return 0;
}
