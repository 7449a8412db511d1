/*
 * A map from strings to numbers, in an arena.
 *
 * Open addressing, at most half full. Keys are borrowed: they live at least as long as the map.
 */
#ifndef CEDAR_MAP_H
#define CEDAR_MAP_H

#include "cedar/json.h"

struct ced_map_slot {
	struct ced_slice key;
	uint32_t hash;
	uint32_t value;
	bool used;
};

struct ced_map {
	struct ced_map_slot *slots;
	size_t n_slots, n;
};

#define CED_MAP_NONE UINT32_MAX

/* The value, or CED_MAP_NONE. */
uint32_t ced_map_get(const struct ced_map *m, struct ced_slice key);

/* Set the value of a key. 0, or -1 without memory. A zeroed map is empty and may be used. */
int ced_map_set(struct ced_map *m, struct ced_arena *arena, struct ced_slice key, uint32_t value);

#endif
