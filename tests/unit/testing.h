/* What every unit test includes first: cmocka and the headers that it forgets to include itself. */
#ifndef CLOISTER_TESTS_TESTING_H
#define CLOISTER_TESTS_TESTING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#endif
