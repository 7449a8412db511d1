/* An allocator that fails when told to: see fail_alloc.h. */
#include "testing.h"

#include "fail_alloc.h"

#include <errno.h>

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void __libc_free(void *p);

static unsigned long calls, fail_at; /* fail_at 0: never */
static long live;

static bool fails(void)
{
	calls++;
	if (calls != fail_at)
		return false;
	errno = ENOMEM;
	return true;
}

static void *counted(void *p)
{
	live += p != NULL;
	return p;
}

_public_ void *malloc(size_t n)
{
	return fails() ? NULL : counted(__libc_malloc(n));
}

_public_ void *calloc(size_t n, size_t size)
{
	return fails() ? NULL : counted(__libc_calloc(n, size));
}

_public_ void *realloc(void *p, size_t n)
{
	if (!p)
		return malloc(n);
	return fails() ? NULL : __libc_realloc(p, n);
}

_public_ void free(void *p)
{
	live -= p != NULL;
	__libc_free(p);
}

void fail_alloc_arm(unsigned long n)
{
	calls = 0;
	fail_at = n;
}

bool fail_alloc_disarm(void)
{
	bool came = fail_at && calls >= fail_at;
	fail_at = 0;
	return came;
}

long fail_alloc_live(void)
{
	return live;
}

/* One run; says whether the failure came. */
static bool run_failing(
	unsigned long at, int (*run)(void *ctx, struct err *err), void *ctx, int *ret)
{
	struct err err;
	err_clear(&err);
	long before = live;
	fail_alloc_arm(at);
	*ret = run(ctx, &err);
	bool came = fail_alloc_disarm();
	if (live != before)
		fail_msg("allocation %lu failing leaves %ld blocks", at, live - before);
	if (*ret < 0 && *ret != -ERR_NO_MEMORY)
		fail_msg("allocation %lu failing gives '%s'", at, err.text);
	return came;
}

unsigned long fail_alloc_sweep(int (*run)(void *ctx, struct err *err), void *ctx)
{
	int r;
	unsigned long at = 1;
	(void)run_failing(0, run, ctx, &r);
	assert_int_equal(r, 0);
	while (run_failing(at, run, ctx, &r))
		at++;
	assert_int_equal(r, 0);
	return at - 1;
}
