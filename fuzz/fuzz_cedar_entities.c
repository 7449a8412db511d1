/* Cedar entities in JSON: every ancestor is reachable, nobody is their own. The same bytes as a
 * request. */
#include "cedar/entities.h"

#include <stdlib.h>

static void check(const cedar_entities *set)
{
	for (uint32_t i = 0; i < set->count; i++) {
		const struct ced_entity *e = &set->entities[i];
		if (ced_entities_find(set, &e->uid) != e || ced_entity_has_ancestor(e, &e->uid))
			abort();
		for (uint32_t k = 0; k < e->parent_count; k++) {
			const struct ced_entity *up = ced_entities_find(set, e->parents[k]);
			if (!ced_entity_has_ancestor(e, e->parents[k]))
				abort();
			for (uint32_t a = 0; up && a < up->ancestor_count; a++)
				if (!ced_entity_has_ancestor(e, up->ancestors[a]))
					abort();
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cedar_entities *set;
	cedar_request *request;
	struct cedar_error err;
	if (cedar_entities_from_json((const char *)data, size, NULL, &set, &err) == 0) {
		check(set);
		cedar_entities_free(set);
	} else if (err.line > size + 1) {
		abort();
	}
	if (cedar_request_from_json((const char *)data, size, NULL, &request, &err) == 0)
		cedar_request_free(request);
	else if (err.line > size + 1)
		abort();
	return 0;
}
