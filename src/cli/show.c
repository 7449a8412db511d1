/*
 * Results for people. Everything that came from a workspace or a client is shown with control
 * characters made visible; only a file's content goes out as it is, when the output is no terminal.
 */
#include "base/text.h"
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void put(struct str s, bool keep_lines)
{
	_cleanup_buf_ struct buf b = buf_init(s.n * 8 + 64);
	text_show(&b, s, keep_lines);
	(void)fwrite(buf_str(&b), 1, b.len, stdout);
}

static struct str text_of(const json_t *v)
{
	return (struct str){json_string_value(v), json_string_length(v)};
}

static void put_value(const json_t *v)
{
	if (json_is_string(v)) {
		put(text_of(v), false);
		return;
	}
	char *text = json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT);
	if (text)
		put(str_of(text), false);
	free(text);
}

static int64_t number(const json_t *o, const char *key)
{
	return json_integer_value(json_object_get(o, key));
}

static void put_member(const json_t *o, const char *key)
{
	put_value(json_object_get(o, key));
}

/* name: value, one a line. */
void show_members(const json_t *result)
{
	const char *key;
	json_t *v;
	json_object_foreach((json_t *)(uintptr_t)result, key, v)
	{
		if (strcmp(key, "executed") == 0 || strcmp(key, "call_id") == 0)
			continue;
		printf("%s: ", key);
		put_value(v);
		(void)putchar('\n');
	}
}

void show_content(const json_t *result)
{
	struct str s = text_of(json_object_get(result, "content"));
	if (isatty(STDOUT_FILENO))
		put(s, true);
	else
		(void)fwrite(s.p, 1, s.n, stdout);
	if (isatty(STDOUT_FILENO) && s.n > 0 && s.p[s.n - 1] != '\n')
		(void)putchar('\n');
}

void show_entries(const json_t *result)
{
	size_t i;
	json_t *e;
	json_array_foreach(json_object_get(result, "entries"), i, e)
	{
		bool dir = strcmp(json_string_value(json_object_get(e, "type")), "directory") == 0;
		if (json_object_get(e, "size"))
			printf("%12lld  ", (long long)number(e, "size"));
		else
			printf("%12s  ", dir ? "-" : "");
		put_member(e, "path");
		printf("%s\n", dir ? "/" : "");
	}
	printf("%lld files, %lld directories\n", (long long)number(result, "file_count"),
		(long long)number(result, "dir_count"));
	if (json_object_get(result, "next_offset"))
		printf("more: --offset %lld\n", (long long)number(result, "next_offset"));
}

static void put_context(const json_t *m, const char *key, int64_t first)
{
	size_t i;
	json_t *line;
	json_array_foreach(json_object_get(m, key), i, line)
	{
		put_member(m, "path");
		printf("-%lld-", (long long)(first + (int64_t)i));
		put_value(line);
		(void)putchar('\n');
	}
}

void show_matches(const json_t *result)
{
	size_t i;
	json_t *m;
	json_array_foreach(json_object_get(result, "matches"), i, m)
	{
		int64_t line = number(m, "line");
		put_context(
			m, "before", line - (int64_t)json_array_size(json_object_get(m, "before")));
		put_member(m, "path");
		printf(":%lld:", (long long)line);
		put_member(m, "text");
		(void)putchar('\n');
		put_context(m, "after", line + 1);
	}
	if (json_is_true(json_object_get(result, "truncated"))) {
		printf("there may be more; stopped by ");
		put_member(result, "stopped_by");
		(void)putchar('\n');
	}
}

static void put_changes(const json_t *changes)
{
	size_t i;
	json_t *c;
	json_array_foreach(changes, i, c)
	{
		put_member(c, "change");
		(void)putchar(' ');
		if (json_object_get(c, "from")) {
			put_member(c, "from");
			printf(" -> ");
		}
		put_member(c, "path");
		(void)putchar('\n');
	}
}

static void put_undo(const json_t *undo)
{
	if (!undo)
		return;
	printf("change %lld", (long long)number(undo, "seq"));
	if (json_is_true(json_object_get(undo, "possible"))) {
		printf("; take it back with: undo %lld\n", (long long)number(undo, "seq"));
		return;
	}
	printf("; cannot be undone: ");
	put_member(undo, "why_not");
	(void)putchar('\n');
}

/* What a writing tool did: what is particular to it, the changes, how to take them back. */
void show_change(const json_t *result)
{
	static const char *const members[] = {"path", "from", "to", "bytes_written", "size",
		"replacements", "deleted", "undone", "restored", "label"};
	for (unsigned i = 0; i < ARRAY_LEN(members); i++) {
		if (!json_object_get(result, members[i]))
			continue;
		printf("%s: ", members[i]);
		put_member(result, members[i]);
		(void)putchar('\n');
	}
	put_changes(json_object_get(result, "changes"));
	put(text_of(json_object_get(result, "diff")), true);
	if (json_is_true(json_object_get(result, "dry_run")))
		printf("nothing was changed (dry run)\n");
	put_undo(json_object_get(result, "undo"));
}

void show_history(const json_t *result)
{
	size_t i;
	json_t *e;
	json_array_foreach(json_object_get(result, "entries"), i, e)
	{
		printf("%6lld  ", (long long)number(e, "seq"));
		put_member(e, "time");
		printf("  ");
		put_member(e, "tool");
		printf("  %lld %s%s%s", (long long)number(e, "count"),
			number(e, "count") == 1 ? "change" : "changes",
			json_is_true(json_object_get(e, "undone")) ? ", undone" : "",
			json_is_true(json_object_get(e, "undoable")) ? "" : ", cannot be undone");
		if (json_object_get(e, "checkpoint")) {
			printf("  checkpoint ");
			put_member(e, "checkpoint");
		}
		(void)putchar('\n');
		put_changes(json_object_get(e, "changes"));
	}
	if (json_object_get(result, "next_before"))
		printf("more: --before %lld\n", (long long)number(result, "next_before"));
}

void show_diff(const json_t *result)
{
	put(text_of(json_object_get(result, "diff")), true);
	if (json_is_true(json_object_get(result, "diff_truncated")))
		printf("(the difference is longer; --max-bytes shows more)\n");
}
