/*
 * The transitive closure of a directed graph, as bit rows.
 *
 * Strongly connected components first (Tarjan, with an explicit stack), then one row a component
 * in the order in which they come out, which is successors first: O(edges * nodes / 64).
 */
#ifndef CEDAR_CLOSURE_H
#define CEDAR_CLOSURE_H

#include "cedar/arena.h"

struct ced_graph {
	uint32_t n;
	const uint32_t
		*first; /* n + 1 entries: the edges of node i are to[first[i]..first[i + 1]) */
	const uint32_t *to;
};

/* rows[i] gets the set of nodes that can be reached from i by at least one edge; NULL when there is
 * none. *ret_cycle is a node on a cycle, or UINT32_MAX. Rows live in `arena`. 0, or -1 without
 * memory. */
int ced_closure_compute(const struct ced_graph *g, struct ced_arena *arena, const uint64_t **rows,
	uint32_t *ret_cycle);

static inline bool ced_closure_has(const uint64_t *row, uint32_t i)
{
	return row && (row[i / 64] >> (i % 64) & 1);
}

#endif
