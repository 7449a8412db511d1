/* The transitive closure of a directed graph. See closure.h. */
#include "cedar/closure.h"

#include <string.h>

enum { UNSEEN = 0 };

/* The state of Tarjan's algorithm. Indices count from 1, so that 0 is "not seen". */
struct tarjan {
	const struct ced_graph *g;
	struct ced_arena *arena;
	const uint64_t **rows;
	uint32_t *index, *low; /* per node; a finished node has low UINT32_MAX */
	uint32_t *stack;       /* nodes whose component is not known yet */
	uint32_t *call, *edge; /* the explicit call stack: node, and the next of its edges */
	uint32_t n_stack, n_call, next_index, cycle;
};

static bool has_self_edge(const struct ced_graph *g, uint32_t v)
{
	for (uint32_t e = g->first[v]; e < g->first[v + 1]; e++)
		if (g->to[e] == v)
			return true;
	return false;
}

static void add_row(uint64_t *row, const uint64_t *other, size_t n_words)
{
	for (size_t i = 0; other && i < n_words; i++)
		row[i] |= other[i];
}

/* The members of a component are the top `n` of the stack; all they lead to is finished. */
static int finish_component(struct tarjan *t, uint32_t n)
{
	const uint32_t *members = t->stack + t->n_stack - n;
	size_t n_words = ((size_t)t->g->n + 63) / 64;
	bool cyclic = n > 1 || has_self_edge(t->g, members[0]);
	uint64_t *row = NULL;

	for (uint32_t m = 0; m < n; m++)
		for (uint32_t e = t->g->first[members[m]]; e < t->g->first[members[m] + 1]; e++) {
			uint32_t to = t->g->to[e];

			if (!row)
				row = ced_arena_alloc(t->arena, n_words * sizeof(*row));
			if (!row)
				return -1;
			row[to / 64] |= (uint64_t)1 << (to % 64);
			add_row(row, t->rows[to], n_words);
		}
	if (cyclic)
		t->cycle = members[0];
	for (uint32_t m = 0; m < n; m++) {
		t->rows[members[m]] = row;
		t->low[members[m]] = UINT32_MAX;
	}
	t->n_stack -= n;
	return 0;
}

static void enter(struct tarjan *t, uint32_t v)
{
	t->index[v] = t->low[v] = ++t->next_index;
	t->stack[t->n_stack++] = v;
	t->call[t->n_call] = v;
	t->edge[t->n_call++] = t->g->first[v];
}

/* Leave the node on top of the call stack: close its component if it is the root of one. */
static int leave(struct tarjan *t)
{
	uint32_t v = t->call[--t->n_call], low = t->low[v];

	if (low == t->index[v]) {
		uint32_t n = 1;

		while (t->stack[t->n_stack - n] != v)
			n++;
		if (finish_component(t, n) < 0)
			return -1;
	} else if (low < t->low[t->call[t->n_call - 1]]) {
		t->low[t->call[t->n_call - 1]] = low;
	}
	return 0;
}

static int visit(struct tarjan *t, uint32_t root)
{
	enter(t, root);
	while (t->n_call > 0) {
		uint32_t v = t->call[t->n_call - 1], e = t->edge[t->n_call - 1];

		if (e == t->g->first[v + 1]) {
			if (leave(t) < 0)
				return -1;
			continue;
		}
		t->edge[t->n_call - 1] = e + 1;

		uint32_t to = t->g->to[e];

		if (t->index[to] == UNSEEN)
			enter(t, to);
		else if (t->low[to] != UINT32_MAX && t->index[to] < t->low[v])
			t->low[v] = t->index[to];
	}
	return 0;
}

int ced_closure_compute(const struct ced_graph *g, struct ced_arena *arena, const uint64_t **rows,
	uint32_t *ret_cycle)
{
	struct tarjan t = {.g = g, .arena = arena, .rows = rows, .cycle = UINT32_MAX};
	uint32_t *words = ced_arena_alloc(arena, ((size_t)g->n * 5 + 1) * sizeof(*words));

	if (!words)
		return -1;
	t.index = words;
	t.low = words + g->n;
	t.stack = words + 2 * (size_t)g->n;
	t.call = words + 3 * (size_t)g->n;
	t.edge = words + 4 * (size_t)g->n;
	for (uint32_t i = 0; i < g->n; i++)
		rows[i] = NULL;
	for (uint32_t i = 0; i < g->n; i++)
		if (t.index[i] == UNSEEN && visit(&t, i) < 0)
			return -1;
	*ret_cycle = t.cycle;
	return 0;
}
