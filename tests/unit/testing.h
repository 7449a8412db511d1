/*
 * What every unit test includes first: cmocka and the headers that it forgets to include itself.
 *
 * Its TAP (of 1.1.5) says "not ok N # SKIP" of a case that was skipped, which readers of
 * TAP take for a failure. So standard output goes through a stream that puts that right.
 */
#ifndef CLOISTER_TESTS_TESTING_H
#define CLOISTER_TESTS_TESTING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <unistd.h>

/* One line at a time, since the stream is line-buffered. */
static ssize_t testing_write(void *ctx, const char *p, size_t n)
{
	static const char failed[] = "not ok ", skipped[] = " # SKIP ";
	bool is_skip = n > sizeof(failed) && memcmp(p, failed, sizeof(failed) - 1) == 0 &&
		       memmem(p, n, skipped, sizeof(skipped) - 1);
	size_t from = is_skip ? strlen("not ") : 0;
	(void)ctx;
	while (from < n) {
		ssize_t done = write(STDOUT_FILENO, p + from, n - from);
		if (done <= 0)
			return 0;
		from += (size_t)done;
	}
	return (ssize_t)n;
}

__attribute__((constructor)) static void testing_correct_skips(void)
{
	static char line[8192];
	const char *form = getenv("CMOCKA_MESSAGE_OUTPUT");
	FILE *f = form && strcmp(form, "TAP") == 0
			  ? fopencookie(NULL, "w", (cookie_io_functions_t){.write = testing_write})
			  : NULL;
	if (!f)
		return;
	(void)setvbuf(f, line, _IOLBF, sizeof(line));
	stdout = f;
}

#endif
