/* file_list: the names in a directory, with patterns, depth, sizes and pages. */
#include "tools/common.h"
#include "tools/tools.h"

#include "workspace/list.h"

enum { EXCLUDE_MAX = 128 };

static const struct field args[] = {
	ARG_PATH_OR_ROOT("Directory to list."),
	{.name = "pattern",
		.type = FIELD_STRING,
		.min = 1,
		.max = LIMIT_GLOB_BYTES,
		.help = "List only what matches (*, ?, [..], **, {a,b}); without a slash it is "
			"compared with names at any depth."},
	{.name = "recursive",
		.type = FIELD_BOOL,
		.has_default = true,
		.help = "Also list what is in the directories below."},
	{.name = "max_depth",
		.type = FIELD_INT,
		.min = 1,
		.max = LIST_DEPTH_MAX,
		.help = "How deep to go; 1 is the directory itself."},
	{.name = "include_hidden",
		.type = FIELD_BOOL,
		.has_default = true,
		.help = "List names with a leading dot too."},
	{.name = "details",
		.type = FIELD_BOOL,
		.has_default = true,
		.help = "Give size and time of each entry too."},
	{.name = "exclude",
		.type = FIELD_ARRAY,
		.items = &glob_item,
		.max = 64,
		.help = "Leave out what matches one of these patterns."},
	{.name = "default_exclusions",
		.type = FIELD_BOOL,
		.has_default = true,
		.dflt = 1,
		.help = "In a recursive listing leave out .git, node_modules and build folders "
			"(see workspace_info)."},
	{.name = "limit",
		.type = FIELD_INT,
		.min = 1,
		.max = LIMIT_LIST_PAGE,
		.dflt = 1000,
		.has_default = true,
		.help = "Most entries of one answer."},
	{.name = "offset",
		.type = FIELD_INT,
		.min = 0,
		.max = INT64_MAX,
		.has_default = true,
		.help = "Entries to skip: next_offset of the answer before."},
	FIELD_END,
};

static const struct field entry_fields[] = {
	{.name = "name", .type = FIELD_STRING, .required = true, .help = "Last component."},
	{.name = "path",
		.type = FIELD_STRING,
		.required = true,
		.help = "Path below the listed directory."},
	{.name = "type",
		.type = FIELD_STRING,
		.required = true,
		.help = "file, directory, link or other."},
	{.name = "size", .type = FIELD_INT, .help = "Bytes, for files."},
	{.name = "modified", .type = FIELD_STRING, .help = "Time of the last change, RFC 3339."},
	FIELD_END,
};

static const struct field result[] = {
	{.name = "path", .type = FIELD_STRING, .help = "The listed directory."},
	{.name = "entries",
		.type = FIELD_ARRAY,
		.items = &(const struct field){.type = FIELD_OBJECT, .items = entry_fields},
		.help = "Sorted by bytes."},
	{.name = "file_count", .type = FIELD_INT, .help = "Files that match, on all pages."},
	{.name = "dir_count", .type = FIELD_INT, .help = "Directories that match, on all pages."},
	{.name = "next_offset",
		.type = FIELD_INT,
		.help = "Give this as offset for the next page; absent at the end."},
	{.name = "truncated",
		.type = FIELD_BOOL,
		.help = "Whether the walk ended early at a limit."},
	RESULT_COMMON,
};

static int prepare(struct tool_call *tc, struct err *err)
{
	return tool_target(tc, tool_arg_str(tc, "path"), ACCESS_LIST, 0, err);
}

struct globs {
	struct glob *pattern, *exclude[EXCLUDE_MAX + 1];
	unsigned n_exclude;
};

static void globs_done(struct globs *g)
{
	glob_free(g->pattern);
	for (unsigned i = 0; i < g->n_exclude; i++)
		glob_free(g->exclude[i]);
}

static int exclude_one(struct globs *g, const char *pattern, struct err *err)
{
	if (g->n_exclude == EXCLUDE_MAX)
		return err_set(err, ERR_LIMIT, "more than %d exclusions", EXCLUDE_MAX);
	int r = glob_compile(str_of(pattern), GLOB_BASENAME, &g->exclude[g->n_exclude], err);
	if (r == 0)
		g->n_exclude++;
	return r;
}

static int compile_all(const struct tool_call *tc, struct globs *g, struct err *err)
{
	const char *pattern = tool_arg_str(tc, "pattern");
	const json_t *exclude = arg_get(tool_args(tc), "exclude");
	bool defaults = tool_arg_bool(tc, "recursive") && tool_arg_bool(tc, "default_exclusions");
	const char *const *names = defaults ? tool_env(tc)->exclude : NULL;
	int r = pattern ? glob_compile(str_of(pattern), GLOB_BASENAME, &g->pattern, err) : 0;
	for (size_t i = 0; r == 0 && i < json_array_size(exclude); i++)
		r = exclude_one(g, json_string_value(json_array_get(exclude, i)), err);
	for (; r == 0 && names && *names; names++)
		r = exclude_one(g, *names, err);
	return r;
}

static int put_entry(void *ctx, const struct list_entry *e, struct err *err)
{
	struct buf *out = tool_result(ctx);
	jw_open(out, '{');
	jw_name(out, "name", e->name);
	jw_name(out, "path", e->path);
	jw_cstr(out, "type", node_kind_word(e->kind));
	if (e->st && e->kind == NODE_FILE)
		jw_int(out, "size", e->st->st_size);
	if (e->st)
		jw_time_ms(out, "modified",
			(int64_t)e->st->st_mtim.tv_sec * 1000 + e->st->st_mtim.tv_nsec / 1000000);
	jw_close(out, '}');
	return buf_check(out, "the listing", err);
}

static int keep_going(void *ctx, struct err *err)
{
	return tool_progress(ctx, 0, 0, err);
}

static void put_summary(struct buf *out, const struct list_query *q, const struct list_result *got)
{
	jw_int(out, "file_count", (int64_t)got->files);
	jw_int(out, "dir_count", (int64_t)got->dirs);
	if (got->more)
		jw_int(out, "next_offset", (int64_t)(q->skip + q->max));
	jw_bool(out, "truncated", got->truncated);
}

static int run(struct tool_call *tc, struct err *err)
{
	const struct node *n = tool_node(tc, 0);
	struct buf *out = tool_result(tc);
	struct list_result got;
	_cleanup_(globs_done) struct globs g = {0};
	int r = need_directory(n, err);
	if (r == 0)
		r = compile_all(tc, &g, err);
	if (r < 0)
		return r;
	struct list_query q = {.pattern = g.pattern,
		.exclude = g.exclude,
		.recursive = tool_arg_bool(tc, "recursive"),
		.hidden = tool_arg_bool(tc, "include_hidden"),
		.details = tool_arg_bool(tc, "details"),
		.max_depth = (unsigned)tool_arg_int(tc, "max_depth"),
		.skip = (uint64_t)tool_arg_int(tc, "offset"),
		.max = (unsigned)tool_arg_int(tc, "limit"),
		.check = keep_going,
		.check_ctx = tc};
	jw_cstr(out, "path", n->resolved);
	jw_key(out, "entries");
	jw_open(out, '[');
	if ((r = list_directory(tool_view(tc), n, &q, put_entry, tc, &got, err)) < 0)
		return r;
	jw_close(out, ']');
	put_summary(out, &q, &got);
	return 0;
}

const struct tool tool_file_list = {
	.name = "file_list",
	.title = "List a directory",
	.description = "List a directory of the workspace, sorted, with patterns, depth and pages.",
	.group = GROUP_READ,
	.idempotent = true,
	.args = args,
	.result = result,
	.prepare = prepare,
	.run = run,
};
