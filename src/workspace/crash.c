/* Dying at a named point: see crash.h. Compiled only into the tests. */
#include "workspace/crash.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const names[] = {
#define CRASH_POINT(name, what) #name,
#include "workspace/crash_points.def"
#undef CRASH_POINT
};

void crash_point(enum crash_point p)
{
	static _Atomic int hits;
	const char *at = getenv("CLOISTER_CRASH_AT");
	if (!at)
		return;
	size_t n = strcspn(at, ":");
	if (strlen(names[p]) != n || memcmp(names[p], at, n) != 0)
		return;
	long want = at[n] == ':' ? strtol(at + n + 1, NULL, 10) : 1;
	if (atomic_fetch_add(&hits, 1) + 1 == want)
		(void)kill(getpid(), SIGKILL);
}
