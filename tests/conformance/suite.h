/* Walking the files of a conformance suite and printing one TAP result per file. */
#ifndef CLOISTER_TESTS_SUITE_H
#define CLOISTER_TESTS_SUITE_H

#include "base/text.h"

#include <dirent.h>
#include <stdio.h>

/* Read a whole file; exits when it cannot be read, since then the suite is broken. */
static inline char *suite_read(const char *path, size_t *ret_n)
{
	struct buf b = buf_init(64 * 1024 * 1024);
	FILE *f = fopen(path, "re");
	size_t n;
	char *to;
	if (!f) {
		printf("Bail out! cannot read %s\n", path);
		exit(1);
	}
	while ((to = buf_room(&b, 65536)) && (n = fread(to, 1, 65536, f)) > 0)
		buf_grew(&b, n);
	(void)fclose(f);
	return buf_take(&b, ret_n);
}

static inline int suite_result(unsigned *number, bool ok, const char *name, const char *why)
{
	printf("%sok %u - %s\n", ok ? "" : "not ", ++*number, name);
	if (!ok)
		printf("# %s\n", why);
	return ok ? 0 : 1;
}

/* Call `each` for the files of a folder, sorted. Returns the sum of what it returned. */
static inline int suite_each(
	const char *folder, int (*each)(void *ctx, const char *path, const char *name), void *ctx)
{
	struct dirent **list;
	int sum = 0, n = scandir(folder, &list, NULL, alphasort);
	if (n < 0) {
		printf("Bail out! cannot read %s\n", folder);
		exit(1);
	}
	for (int i = 0; i < n; i++) {
		char path[4096];
		(void)snprintf(path, sizeof(path), "%s/%s", folder, list[i]->d_name);
		if (list[i]->d_name[0] != '.')
			sum += each(ctx, path, list[i]->d_name);
		free(list[i]);
	}
	free(list);
	return sum;
}

#endif
