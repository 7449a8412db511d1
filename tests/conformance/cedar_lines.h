/* Reading the Cedar conformance data: files of JSON lines, joined by their "id". */
#ifndef CLOISTER_TESTS_CEDAR_LINES_H
#define CLOISTER_TESTS_CEDAR_LINES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cedar/cedar.h"
#include "cedar/json.h"

struct lines {
	FILE *f;
	char *line;
	size_t room;
	unsigned number;
	struct ced_arena arena; /* of the tree of the current line */
};

static inline void lines_open(struct lines *l, const char *path)
{
	*l = (struct lines){.f = fopen(path, "re")};
	if (!l->f) {
		printf("Bail out! cannot read %s\n", path);
		exit(1);
	}
	ced_arena_init(&l->arena, (size_t)1 << 30, "memory_bytes");
}

/* The next line as a tree that lives until the next call; false at the end. */
static inline bool lines_next(struct lines *l, struct ced_json *ret)
{
	ssize_t n = getline(&l->line, &l->room, l->f);

	ced_arena_reset(&l->arena);
	if (n <= 0)
		return false;
	l->number++;
	if (ced_json_read(&l->arena, l->line, (size_t)n, 1000, "depth", ret, NULL) == 0)
		return true;
	printf("Bail out! line %u is not JSON\n", l->number);
	exit(1);
}

static inline void lines_close(struct lines *l)
{
	ced_arena_done(&l->arena);
	free(l->line);
	(void)fclose(l->f);
}

/* A string member; the data always have it. */
static inline struct ced_slice text_of(const struct ced_json *j, const char *key)
{
	const struct ced_json *m = ced_json_get(j, key);

	if (m && m->kind == CED_JSON_STRING)
		return m->u.text;
	printf("Bail out! no string \"%s\"\n", key);
	exit(1);
}

static inline bool true_of(const struct ced_json *j, const char *key)
{
	const struct ced_json *m = ced_json_get(j, key);

	return m && m->kind == CED_JSON_BOOL && m->boolean;
}

/* The text of a value as it stands in its line. */
static inline struct ced_slice source_of(const struct lines *l, const struct ced_json *j)
{
	return (struct ced_slice){l->line + j->pos.offset, j->pos.length};
}

/* One TAP result for a whole file; the first failures are named. */
struct tally {
	unsigned number, done, failed;
};

static inline void tally_fail(struct tally *t, struct ced_slice id, const char *why)
{
	if (t->failed++ < 20)
		printf("# %.*s: %s\n", (int)id.n, id.p, why);
}

static inline void tally_end(struct tally *t, const char *what)
{
	printf("%sok %u - %s: %u of %u\n", t->failed || !t->done ? "not " : "", ++t->number, what,
		t->done - t->failed, t->done);
}

#endif
