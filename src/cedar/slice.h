/* Small things over slices that the schema half needs often. */
#ifndef CEDAR_SLICE_H
#define CEDAR_SLICE_H

#include <string.h>

#include "cedar/intern.h"
#include "cedar/json.h"

static inline struct ced_slice ced_slice_of(const char *text)
{
	return (struct ced_slice){text, strlen(text)};
}

static inline struct ced_slice ced_name_slice(const struct ced_name *name)
{
	return (struct ced_slice){name->text, name->length};
}

static inline bool ced_slice_eq(struct ced_slice a, struct ced_slice b)
{
	return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

/* By bytes, the order in which everything is printed. */
static inline int ced_slice_cmp(struct ced_slice a, struct ced_slice b)
{
	size_t n = a.n < b.n ? a.n : b.n;
	int c = n > 0 ? memcmp(a.p, b.p, n) : 0;

	if (c != 0)
		return c;
	return a.n < b.n ? -1 : a.n > b.n;
}

/* For "%.*s": how much of a name a message shows; never a part of a character. */
static inline int ced_shown(struct ced_slice s)
{
	size_t n = s.n;

	if (n > 100)
		for (n = 100; n > 0 && ((unsigned char)s.p[n] & 0xc0) == 0x80; n--)
			;
	return (int)n;
}

#endif
