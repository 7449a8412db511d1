/* Files of JSON lines, read with the library's own reader, and one TAP result per line. */
#ifndef CLOISTER_TESTS_LINES_H
#define CLOISTER_TESTS_LINES_H

#include "cedar/json.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct lines {
	FILE *f;
	char *text;
	size_t room, n;
	struct ced_arena arena; /* of `json`, for one line */
	struct ced_json json;
};

static inline struct lines lines_open(const char *path)
{
	struct lines l = {.f = fopen(path, "re")};
	if (!l.f) {
		printf("Bail out! cannot read %s\n", path);
		exit(1);
	}
	ced_arena_init(&l.arena, SIZE_MAX / 2, "memory_bytes");
	return l;
}

/* false: no line is left. */
static inline bool lines_next(struct lines *l)
{
	struct cedar_error err;
	ssize_t n = getline(&l->text, &l->room, l->f);
	if (n <= 0)
		return false;
	l->n = (size_t)n;
	ced_arena_reset(&l->arena);
	if (ced_json_read(&l->arena, l->text, l->n, 4096, "depth", &l->json, &err) < 0) {
		printf("Bail out! a line is not JSON: %s\n", err.text);
		exit(1);
	}
	return true;
}

static inline void lines_close(struct lines *l)
{
	ced_arena_done(&l->arena);
	free(l->text);
	(void)fclose(l->f);
}

/* A member's text as it stands in the line. */
static inline struct ced_slice lines_raw(const struct lines *l, const struct ced_json *j)
{
	return (struct ced_slice){l->text + j->pos.offset, j->pos.length};
}

static inline struct ced_slice lines_string(const struct ced_json *object, const char *key)
{
	const struct ced_json *j = ced_json_get(object, key);
	if (!j || j->kind != CED_JSON_STRING) {
		printf("Bail out! a line has no string \"%s\"\n", key);
		exit(1);
	}
	return j->u.text;
}

/* Failures of the line at hand; the first one is told. */
struct verdict {
	unsigned number, failed;
	bool bad;
	char why[512];
};

static inline __attribute__((format(printf, 2, 3))) void verdict_bad(
	struct verdict *v, const char *format, ...)
{
	if (v->bad)
		return;
	va_list ap;
	va_start(ap, format);
	(void)vsnprintf(v->why, sizeof(v->why), format, ap);
	va_end(ap);
	v->bad = true;
}

static inline void verdict_tell(struct verdict *v, struct ced_slice name)
{
	printf("%sok %u - %.*s\n", v->bad ? "not " : "", ++v->number, (int)name.n, name.p);
	if (v->bad)
		printf("# %s\n", v->why);
	v->failed += v->bad;
	v->bad = false;
}

#endif
