/*
 * Failing the n-th allocation. The program that links fail_alloc.c has an allocator (for the
 * libraries too) that can be told to fail once; it also counts blocks that were not freed.
 */
#ifndef CLOISTER_TESTS_FAIL_ALLOC_H
#define CLOISTER_TESTS_FAIL_ALLOC_H

#include "base/err.h"

#include <stdbool.h>

/*
 * Call `run` once as it is, then with its first, second, ... allocation failing, until it needs no
 * more. It frees what it made and returns 0 or the error. Exits the test when another error than
 * ERR_NO_MEMORY comes out or when a block is left behind. Returns how many allocations were failed.
 */
unsigned long fail_alloc_sweep(int (*run)(void *ctx, struct err *err), void *ctx);

/* The same by hand: let the n-th allocation from now fail; end that, and say whether it came. */
void fail_alloc_arm(unsigned long n);
bool fail_alloc_disarm(void);

/* Blocks that are not freed. */
long fail_alloc_live(void);

#endif
