/* The system calls of a command in the fence. */
#ifndef CLOISTER_SANDBOX_CALLS_H
#define CLOISTER_SANDBOX_CALLS_H

#include "sys/seccomp.h"

extern const struct seccomp_row fence_calls[];
extern const unsigned fence_calls_n;

#endif
