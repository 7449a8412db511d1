/*
 * Failing the n-th system call on files. The program that links fail_io.c has its file calls
 * wrapped (those of the libraries that it links statically too); each can be told to fail once,
 * without being made.
 */
#ifndef CLOISTER_TESTS_FAIL_IO_H
#define CLOISTER_TESTS_FAIL_IO_H

#include <stdbool.h>

/* Let the n-th call from now fail with `errnum`; 0: none. */
void fail_io_arm(unsigned long n, int errnum);

/* End that; says whether it came, and names the call (NULL when it did not). */
bool fail_io_disarm(const char **ret_name);

#endif
