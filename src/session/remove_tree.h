/*
 * Removing a tree by descriptor.
 *
 * No path, no recursion, no stack: a directory found inside is moved up into the top of the tree
 * and emptied there, so two descriptors and constant memory do for any depth and any width, and the
 * tree itself records how far the work is: removing may stop or be killed anywhere and goes on from
 * what is left. Links are removed, never followed; what is mounted inside stays, and so do the
 * directories above it. Directories without permissions are opened by giving them to the owner.
 */
#ifndef CLOISTER_SESSION_REMOVE_TREE_H
#define CLOISTER_SESSION_REMOVE_TREE_H

#include "base/err.h"

#include <stdint.h>

struct remove_budget {
	int64_t entries;     /* names that may still be removed; counts down; < 0: no limit */
	int64_t deadline_ns; /* CLOCK_MONOTONIC; 0: none */
	int64_t removed;     /* counts up */
};

/*
 * Remove `name` (a file, link or whole tree) from a directory; a missing one is removed already.
 * 0: gone. 1: the budget is used up. Negative: the rest is gone, but something resists, and `err`
 * has the first reason (ERR_BUSY for a mount).
 */
int remove_tree(
	int dir_fd, const char *name, struct remove_budget *budget, struct err *err) _must_check_;

/* The same for what is in the directory, which stays. */
int remove_content(
	int dir_fd, const char *name, struct remove_budget *budget, struct err *err) _must_check_;

#endif
