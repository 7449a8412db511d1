/* The schemas of the official Cedar corpus: from text to JSON as the official tool prints it, and
 * from there to JSON and to text and back without a change. */
#include "cedar_lines.h"

/* ---- JSON against JSON ---- */

static bool same_slice(struct ced_slice a, struct ced_slice b)
{
	return a.n == b.n && memcmp(a.p, b.p, a.n) == 0;
}

static const struct ced_json *member(const struct ced_json *j, struct ced_slice key)
{
	for (uint32_t i = 0; i < j->count; i++)
		if (same_slice(j->u.members[i].key, key))
			return &j->u.members[i].value;
	return NULL;
}

static bool same_json(const struct ced_json *a, const struct ced_json *b)
{
	if (a->kind != b->kind || a->count != b->count)
		return false;
	switch (a->kind) {
	case CED_JSON_NULL: return true;
	case CED_JSON_BOOL: return a->boolean == b->boolean;
	case CED_JSON_NUMBER:
	case CED_JSON_STRING: return same_slice(a->u.text, b->u.text);
	case CED_JSON_ARRAY:
		for (uint32_t i = 0; i < a->count; i++)
			if (!same_json(&a->u.items[i], &b->u.items[i]))
				return false;
		return true;
	case CED_JSON_OBJECT:
		for (uint32_t i = 0; i < a->count; i++) {
			const struct ced_json *other = member(b, a->u.members[i].key);

			if (!other || !same_json(&a->u.members[i].value, other))
				return false;
		}
		return true;
	}
	return false;
}

static bool text_is_json(const struct cedar_text *text, const struct ced_json *want)
{
	struct ced_arena arena;
	struct ced_json j;
	bool same;

	ced_arena_init(&arena, (size_t)1 << 30, "memory_bytes");
	same = ced_json_read(&arena, text->data, text->length, 1000, "depth", &j, NULL) == 0 &&
	       same_json(&j, want);
	ced_arena_done(&arena);
	return same;
}

/* ---- schemas ---- */

typedef int from_fn(
	const char *, size_t, const struct cedar_limits *, cedar_schema **, struct cedar_error *);
typedef int to_fn(const cedar_schema *, struct cedar_text *, struct cedar_error *);

/* Read with `from`, print with `to`; NULL when both worked. */
static const char *through(
	from_fn *from, to_fn *to, const char *text, size_t n, struct cedar_text *ret)
{
	static struct cedar_error err;
	cedar_schema *s = NULL;
	int r = from(text, n, NULL, &s, &err);

	if (r == 0)
		r = to(s, ret, &err);
	cedar_schema_free(s);
	return r == 0 ? NULL : err.text;
}

static const char *try_schema(struct ced_slice text, const struct ced_json *want)
{
	struct cedar_text json = {0}, again = {0}, back = {0}, last = {0};
	const char *why =
		through(cedar_schema_from_text, cedar_schema_to_json, text.p, text.n, &json);

	if (!why && !text_is_json(&json, want))
		why = "the JSON is not the official one";
	if (!why)
		why = through(cedar_schema_from_json, cedar_schema_to_json, json.data, json.length,
			&again);
	if (!why && strcmp(json.data, again.data) != 0)
		why = "JSON to JSON changes it";
	if (!why)
		why = through(cedar_schema_from_json, cedar_schema_to_text, json.data, json.length,
			&back);
	if (!why)
		why = through(cedar_schema_from_text, cedar_schema_to_json, back.data, back.length,
			&last);
	if (!why && strcmp(json.data, last.data) != 0)
		why = "JSON to text to JSON changes it";
	cedar_text_free(&json);
	cedar_text_free(&again);
	cedar_text_free(&back);
	cedar_text_free(&last);
	return why;
}

/* Both files have the same ids in the same order. */
static void schemas(struct tally *t, const char *corpus, const char *expected)
{
	struct lines a, b;
	struct ced_json x, y;

	lines_open(&a, corpus);
	lines_open(&b, expected);
	while (lines_next(&a, &x) && lines_next(&b, &y)) {
		struct ced_slice id = text_of(&x, "id");
		const char *why =
			same_slice(id, text_of(&y, "id"))
				? try_schema(text_of(&x, "schema"), ced_json_get(&y, "schema"))
				: "the files do not go together";

		t->done++;
		if (why)
			tally_fail(t, id, why);
	}
	lines_close(&a);
	lines_close(&b);
	tally_end(t, "schemas, text to JSON to text");
}

int main(int argc, char **argv)
{
	struct tally t = {0};

	if (argc != 3)
		return 1;
	schemas(&t, argv[1], argv[2]);
	printf("1..1\n");
	return t.failed || !t.done ? 1 : 0;
}
