/* file_search: find text in files. The worker reads and matches; this asks, and writes down what it
 * says. */
#include "tools/common.h"
#include "tools/tools.h"

static const struct field args[] = {
	{.name = "query",
		.type = FIELD_STRING,
		.required = true,
		.min = 1,
		.max = LIMIT_PATTERN_BYTES,
		.help = "Text to find, or a regular expression (RE2 syntax) with regex."},
	ARG_PATH_OR_ROOT("Directory or file to search in."),
	{.name = "regex",
		.type = FIELD_BOOL,
		.has_default = true,
		.help = "The query is a regular expression; its time is linear in the text."},
	{.name = "ignore_case",
		.type = FIELD_BOOL,
		.has_default = true,
		.help = "Upper and lower case are the same."},
	{.name = "whole_word",
		.type = FIELD_BOOL,
		.has_default = true,
		.help = "Match only at word boundaries."},
	{.name = "include",
		.type = FIELD_ARRAY,
		.items = &glob_item,
		.max = SEARCH_GLOBS_MAX,
		.help = "Search only files that match one of these patterns."},
	{.name = "exclude",
		.type = FIELD_ARRAY,
		.items = &glob_item,
		.max = SEARCH_GLOBS_MAX,
		.help = "Leave out files and directories that match one of these patterns."},
	{.name = "default_exclusions",
		.type = FIELD_BOOL,
		.dflt = 1,
		.has_default = true,
		.help = "Leave out .git, node_modules and build folders (see workspace_info)."},
	{.name = "include_hidden",
		.type = FIELD_BOOL,
		.has_default = true,
		.help = "Search names with a leading dot too."},
	{.name = "context_lines",
		.type = FIELD_INT,
		.min = 0,
		.max = SEARCH_CONTEXT_MAX,
		.has_default = true,
		.help = "Lines before and after each match."},
	{.name = "max_results",
		.type = FIELD_INT,
		.min = 1,
		.max = SEARCH_RESULTS_MAX,
		.dflt = 100,
		.has_default = true,
		.help = "Most matching lines."},
	{.name = "max_ms",
		.type = FIELD_INT,
		.min = 1,
		.max = 600000,
		.help = "Time budget in milliseconds."},
	FIELD_END,
};

static const struct field line_item = {.type = FIELD_STRING};

static const struct field match_fields[] = {
	{.name = "path",
		.type = FIELD_STRING,
		.required = true,
		.help = "File that holds the match."},
	{.name = "line", .type = FIELD_INT, .required = true, .help = "Line number, from 1."},
	{.name = "column",
		.type = FIELD_INT,
		.required = true,
		.help = "Byte column of the match, from 1."},
	{.name = "text",
		.type = FIELD_STRING,
		.required = true,
		.help = "The line; a long one is cut around the match."},
	{.name = "before", .type = FIELD_ARRAY, .items = &line_item, .help = "Lines before it."},
	{.name = "after", .type = FIELD_ARRAY, .items = &line_item, .help = "Lines after it."},
	FIELD_END,
};

static const struct field skipped_fields[] = {
	{.name = "binary", .type = FIELD_INT, .help = "Binary files."},
	{.name = "too_large", .type = FIELD_INT, .help = "Files over the size limit."},
	{.name = "special", .type = FIELD_INT, .help = "FIFOs, sockets and devices."},
	{.name = "links", .type = FIELD_INT, .help = "Symbolic links, which are not followed."},
	{.name = "unreadable", .type = FIELD_INT, .help = "Files that could not be read."},
	FIELD_END,
};

static const struct field result[] = {
	{.name = "matches",
		.type = FIELD_ARRAY,
		.items = &(const struct field){.type = FIELD_OBJECT, .items = match_fields},
		.help = "The files of a directory before its subdirectories, each in byte order."},
	{.name = "matches_found", .type = FIELD_INT, .help = "How many matching lines are listed."},
	{.name = "files_scanned", .type = FIELD_INT, .help = "Files that were read."},
	{.name = "files_matched", .type = FIELD_INT, .help = "Files with a match."},
	{.name = "bytes_scanned", .type = FIELD_INT, .help = "Bytes that were read."},
	{.name = "truncated", .type = FIELD_BOOL, .help = "Whether there may be more."},
	{.name = "stopped_by", .type = FIELD_STRING, .help = "Which limit ended the search early."},
	{.name = "skipped",
		.type = FIELD_OBJECT,
		.items = skipped_fields,
		.help = "What was left out and why, where not zero."},
	RESULT_COMMON,
};

static int prepare(struct tool_call *tc, struct err *err)
{
	return tool_target(tc, tool_arg_str(tc, "path"), ACCESS_READ, 0, err);
}

/* The strings of an array argument, NULL-terminated; borrowed from the arguments. */
static void list_of(
	const struct tool_call *tc, const char *name, const char *ret[SEARCH_GLOBS_MAX + 1])
{
	const json_t *list = arg_get(tool_args(tc), name);
	size_t n = json_array_size(list);
	for (size_t i = 0; i < n && i < SEARCH_GLOBS_MAX; i++)
		ret[i] = json_string_value(json_array_get(list, i));
	ret[MIN(n, (size_t)SEARCH_GLOBS_MAX)] = NULL;
}

/* What the worker must not enter below its mounts: what another mount covers. Returns how many. */
static unsigned covered_places(const struct workspace *ws, struct search_place ret[LIMIT_MOUNTS])
{
	unsigned n = 0;
	const char *root = workspace_mount_path(ws, 0);
	size_t len = strlen(root);
	for (unsigned i = 1; i < workspace_mounts(ws) && n < LIMIT_MOUNTS; i++) {
		const char *path = workspace_mount_path(ws, i);
		if (strncmp(path, root, len) == 0 && path[len] == '/')
			ret[n++] =
				(struct search_place){.mount = 0, .path = str_of(path + len + 1)};
	}
	return n;
}

static int submit(struct tool_call *tc, const struct node *n, struct err *err)
{
	const char *include[SEARCH_GLOBS_MAX + 1], *exclude[SEARCH_GLOBS_MAX + 1];
	struct search_place covered[LIMIT_MOUNTS + 1];
	struct search_place root = {.mount = n->mount, .path = str_of(n->path)};
	const struct tool_env *env = tool_env(tc);
	unsigned n_covered = covered_places(tool_workspace(tc), covered);
	int64_t ms = tool_arg_int(tc, "max_ms");
	list_of(tc, "include", include);
	list_of(tc, "exclude", exclude);
	covered[n_covered++] =
		(struct search_place){.mount = n->mount, .path = STR(WORKSPACE_STORE_NAME)};
	struct worker_job job = {.kind = WORK_SEARCH,
		.search = {.roots = &root,
			.n_roots = 1,
			.hidden_places = covered,
			.n_hidden_places = n_covered,
			.pattern = str_of(tool_arg_str(tc, "query")),
			.regex = tool_arg_bool(tc, "regex"),
			.ignore_case = tool_arg_bool(tc, "ignore_case"),
			.whole_word = tool_arg_bool(tc, "whole_word"),
			.include = include,
			.exclude = exclude,
			.default_exclude =
				tool_arg_bool(tc, "default_exclusions") ? env->exclude : NULL,
			.with_hidden = tool_arg_bool(tc, "include_hidden"),
			.strict_links = env->workspace->strict_links,
			.before = (unsigned)tool_arg_int(tc, "context_lines"),
			.after = (unsigned)tool_arg_int(tc, "context_lines"),
			.max_results = (unsigned)tool_arg_int(tc, "max_results"),
			.max_ms = ms ? ms : env->search_ms,
			.max_bytes = env->search_bytes,
			.max_file_bytes = env->read_limit_bytes}};
	int r = tool_submit(tc, &job, err);
	return r < 0 ? r : TOOL_PENDING;
}

static int run(struct tool_call *tc, struct err *err)
{
	const struct node *n = tool_node(tc, 0);
	int r = n->kind == NODE_DIR ? 0 : need_file(n, err);
	return r < 0 ? r : submit(tc, n, err);
}

static void put_lines(struct buf *out, const char *key, const struct str *lines, unsigned n)
{
	jw_key(out, key);
	jw_open(out, '[');
	for (unsigned i = 0; i < n; i++) {
		jw_comma(out);
		jw_text(out, lines[i]);
	}
	jw_close(out, ']');
}

static void put_hit(
	struct buf *out, const struct node *root, const struct search_hit *hit, bool context)
{
	_cleanup_buf_ struct buf path = buf_init(8 * LIMIT_PATH_BYTES);
	buf_puts(&path, root->resolved);
	if (hit->path.n) {
		buf_putc(&path, '/');
		name_escape(&path, hit->path);
	}
	jw_open(out, '{');
	jw_str(out, "path", (struct str){buf_str(&path), path.len});
	jw_int(out, "line", (int64_t)hit->line);
	jw_int(out, "column", (int64_t)hit->column);
	jw_key(out, "text");
	jw_text(out, hit->text);
	if (context) {
		put_lines(out, "before", hit->before, hit->n_before);
		put_lines(out, "after", hit->after, hit->n_after);
	}
	jw_close(out, '}');
}

static void put_count(struct buf *out, const char *key, uint64_t n)
{
	if (n > 0)
		jw_int(out, key, (int64_t)n);
}

static void put_stats(struct buf *out, const struct search_stats *s)
{
	jw_int(out, "matches_found", (int64_t)s->hits);
	jw_int(out, "files_scanned", (int64_t)s->files_scanned);
	jw_int(out, "files_matched", (int64_t)s->files_matched);
	jw_int(out, "bytes_scanned", (int64_t)s->bytes_scanned);
	jw_bool(out, "truncated", s->stop != SEARCH_COMPLETE);
	if (s->stop != SEARCH_COMPLETE)
		jw_cstr(out, "stopped_by", search_stop_word(s->stop));
	jw_key(out, "skipped");
	jw_open(out, '{');
	put_count(out, "binary", s->skipped_binary);
	put_count(out, "too_large", s->skipped_large);
	put_count(out, "special", s->skipped_special);
	put_count(out, "links", s->skipped_links);
	put_count(out, "unreadable", s->skipped_unreadable);
	jw_close(out, '}');
}

static int resume(struct tool_call *tc, struct worker_answer *answer, struct err *err)
{
	if (!answer)
		return -(int)err->code;
	struct buf *out = tool_result(tc);
	bool context = tool_arg_int(tc, "context_lines") > 0;
	jw_key(out, "matches");
	jw_open(out, '[');
	for (uint64_t i = 0; i < answer->search.stats.hits; i++)
		put_hit(out, tool_node(tc, 0), &answer->search.hits[i], context);
	jw_close(out, ']');
	put_stats(out, &answer->search.stats);
	return TOOL_DONE;
}

const struct tool tool_file_search = {
	.name = "file_search",
	.title = "Search in files",
	.description = "Find text or a regular expression in the files below a directory. Answers "
		       "within its budget and says when there may be more.",
	.group = GROUP_READ,
	.idempotent = true,
	.args = args,
	.result = result,
	.prepare = prepare,
	.run = run,
	.resume = resume,
};
