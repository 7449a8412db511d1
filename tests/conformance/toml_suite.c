/*
 * The public TOML suite, list files-toml-1.0.0: every valid file gives its tagged JSON, every
 * invalid one is refused.
 */
#include "suite.h"

#include "codec/json.h"
#include "codec/toml.h"

#include <math.h>

static const char *const tags[TOML_TYPE_MAX_] = {
	[TOML_STRING] = "string",
	[TOML_INTEGER] = "integer",
	[TOML_FLOAT] = "float",
	[TOML_BOOL] = "bool",
	[TOML_DATETIME] = "datetime",
	[TOML_DATETIME_LOCAL] = "datetime-local",
	[TOML_DATE_LOCAL] = "date-local",
	[TOML_TIME_LOCAL] = "time-local",
};

/* A date or time as the suite spells it, without zeros at the end of the fraction. */
static void put_time(struct buf *b, const struct toml *t)
{
	const struct toml_time *w = &t->time;
	bool date = t->type != TOML_TIME_LOCAL, time = t->type != TOML_DATE_LOCAL;
	if (date)
		buf_printf(b, "%04d-%02d-%02d", w->year, w->month, w->day);
	if (date && time)
		buf_putc(b, 'T');
	if (time)
		buf_printf(b, "%02d:%02d:%02d", w->hour, w->minute, w->second);
	if (w->nanosecond) {
		buf_printf(b, ".%09d", w->nanosecond);
		while (b->data[b->len - 1] == '0')
			b->data[--b->len] = '\0';
	}
	if (t->type == TOML_DATETIME && w->offset_minutes == 0)
		buf_putc(b, 'Z');
	else if (t->type == TOML_DATETIME)
		buf_printf(b, "%c%02d:%02d", w->offset_minutes < 0 ? '-' : '+',
			abs(w->offset_minutes) / 60, abs(w->offset_minutes) % 60);
}

/* The suite's spelling, with its fraction cut the same way. */
static void put_without_zeros(struct buf *b, const char *s)
{
	const char *point = strchr(s, '.');
	size_t n = point ? strspn(point + 1, "0123456789") : 0, keep = n;
	if (!point) {
		buf_puts(b, s);
		return;
	}
	while (keep && point[keep] == '0')
		keep--;
	buf_put(b, s, (size_t)(point - s) + (keep ? keep + 1 : 0));
	buf_puts(b, point + 1 + n);
}

static bool float_is(double d, const char *want)
{
	double w = strtod(want, NULL);
	return isnan(w) ? isnan(d) : d == w;
}

static bool time_is(const struct toml *t, const char *want)
{
	_cleanup_buf_ struct buf a = buf_init(256), b = buf_init(256);
	put_time(&a, t);
	put_without_zeros(&b, want);
	return strcmp(buf_str(&a), buf_str(&b)) == 0;
}

static bool scalar_is(const struct toml *t, const json_t *want)
{
	const json_t *v = json_object_get(want, "value");
	const char *type = json_string_value(json_object_get(want, "type"));
	const char *value = json_string_value(v);
	if (!tags[t->type] || !type || !value || strcmp(type, tags[t->type]) != 0)
		return false;
	switch (t->type) {
	case TOML_STRING: return str_eq(t->string, (struct str){value, json_string_length(v)});
	case TOML_INTEGER: return t->integer == strtoll(value, NULL, 10);
	case TOML_FLOAT: return float_is(t->real, value);
	case TOML_BOOL: return strcmp(value, t->boolean ? "true" : "false") == 0;
	case TOML_DATETIME:
	case TOML_DATETIME_LOCAL:
	case TOML_DATE_LOCAL:
	case TOML_TIME_LOCAL: return time_is(t, value);
	case TOML_TABLE:
	case TOML_ARRAY:
	case TOML_TYPE_MAX_: break;
	}
	return false;
}

static bool is(const struct toml *t, const json_t *want);

static bool members_are(const struct toml *t, const json_t *want)
{
	if (t->list.n != json_object_size(want))
		return false;
	for (const struct toml *c = t->list.first; c; c = c->next) {
		const json_t *v = json_object_getn(want, c->key.p, c->key.n);
		if (!v || !is(c, v) || toml_get(t, c->key) != c)
			return false;
	}
	return true;
}

static bool is(const struct toml *t, const json_t *want)
{
	size_t i = 0;
	if (t->type == TOML_TABLE)
		return json_is_object(want) && members_are(t, want);
	if (t->type != TOML_ARRAY)
		return json_is_object(want) && scalar_is(t, want);
	if (!json_is_array(want) || json_array_size(want) != t->list.n)
		return false;
	for (const struct toml *c = t->list.first; c; c = c->next)
		if (!is(c, json_array_get(want, i++)))
			return false;
	return true;
}

static bool gives_json(const struct toml *t, const char *path, struct err *err)
{
	json_t *want = NULL;
	size_t n;
	char *text = suite_read(path, &n);
	int r = json_parse((struct str){text, n}, SIZE_MAX / 2, &want, err);
	free(text);
	if (r < 0)
		return false;
	bool same = is(t, want);
	json_decref(want);
	if (!same)
		(void)err_set(err, ERR_INTERNAL, "the value is another one");
	return same;
}

static int one(unsigned *number, const char *folder, const char *name)
{
	struct err err;
	char path[4096];
	size_t n;
	struct toml *root = NULL;
	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	char *text = suite_read(path, &n);
	int r = toml_parse((struct str){text, n}, SIZE_MAX / 2, &root, &err);
	free(text);
	if (strncmp(name, "invalid/", 8) == 0) {
		toml_free(root);
		return suite_result(number, r == -ERR_PARSE, name, "it was accepted");
	}
	memcpy(path + strlen(path) - 5, ".json", 6);
	bool ok = r == 0 && gives_json(root, path, &err);
	toml_free(root);
	return suite_result(number, ok, name, err.text);
}

int main(int argc, char **argv)
{
	unsigned number = 0;
	int failed = 0;
	char path[4096], name[1024];
	if (argc != 2)
		return 1;
	(void)snprintf(path, sizeof(path), "%s/files-toml-1.0.0", argv[1]);
	FILE *list = fopen(path, "re");
	if (!list)
		return 1;
	while (fgets(name, sizeof(name), list)) {
		name[strcspn(name, "\n")] = '\0';
		size_t n = strlen(name);
		if (n > 5 && strcmp(name + n - 5, ".toml") == 0)
			failed += one(&number, argv[1], name);
	}
	(void)fclose(list);
	printf("1..%u\n", number);
	return failed || number == 0;
}
