/* file_delete: remove a file, a directory, or what matches a pattern in a directory. */
#include "base/glob.h"
#include "tools/common.h"
#include "tools/tools.h"

static const struct field args[] = {
	ARG_PATH("File or directory to delete, relative to the workspace."),
	{.name = "recursive",
		.type = FIELD_BOOL,
		.has_default = true,
		.help = "Delete a directory with everything below it; with a pattern: also in the "
			"directories below."},
	{.name = "pattern",
		.type = FIELD_STRING,
		.min = 1,
		.max = LIMIT_GLOB_BYTES,
		.help = "Delete only what matches this pattern (*, ?, [..], **, {a,b}) inside the "
			"directory."},
	ARG_DRY_RUN,
	FIELD_END,
};

static const struct field result[] = {
	{.name = "deleted",
		.type = FIELD_INT,
		.help = "Names that were removed, counting those inside directories."},
	{.name = "paths",
		.type = FIELD_ARRAY,
		.items = &(const struct field){.type = FIELD_STRING},
		.help = "What was named or matched, at most 1,000."},
	RESULT_CHANGES,
};

enum { PATHS_TOLD = 1000, DEPTH_MAX = LIMIT_PATH_DEPTH };

struct deletion {
	int64_t removed;
	unsigned told;
};

static int prepare(struct tool_call *tc, struct err *err)
{
	return tool_target(tc, tool_arg_str(tc, "path"), ACCESS_DELETE, RESOLVE_NOFOLLOW, err);
}

static int remove_one(struct tool_call *tc, const struct node *n, bool recursive,
	struct deletion *d, struct err *err)
{
	int64_t removed = 0;
	int r = view_remove(tool_view(tc), n, recursive, &removed, err);
	if (r < 0)
		return r;
	d->removed += removed;
	if (d->told++ < PATHS_TOLD)
		jw_elem_str(tool_result(tc), str_of(n->resolved));
	return 0;
}

/* Names below a directory, relative to where the pattern starts, gathered first: a directory is not
 * changed while it is read. */
struct names {
	char **list;
	unsigned n, cap;
};

static void names_done(struct names *names)
{
	for (unsigned i = 0; i < names->n; i++)
		free(names->list[i]);
	free(names->list);
}

static int names_add(struct names *names, const char *below, const char *name, struct err *err)
{
	if (names->n >= LIMIT_CHANGES)
		return err_set(err, ERR_LIMIT,
			"more than %d names match; delete the directory instead", LIMIT_CHANGES);
	if (names->n == names->cap) {
		unsigned cap = names->cap ? names->cap * 2 : 64;
		char **more = reallocarray(names->list, cap, sizeof(*more));
		if (!more)
			return err_oom(err);
		names->list = more;
		names->cap = cap;
	}
	if (asprintf(&names->list[names->n], "%s%s%s", below, below[0] ? "/" : "", name) < 0)
		return err_oom(err);
	names->n++;
	return 0;
}

static int gather(struct tool_call *tc, struct view_dir *dir, const char *below,
	const struct glob *g, unsigned depth, struct names *found, struct err *err);

static int gather_below(struct tool_call *tc, struct view_dir *dir, const char *below,
	const char *name, const struct glob *g, unsigned depth, struct names *found,
	struct err *err)
{
	_cleanup_(cleanup_view_closedir) struct view_dir *sub = NULL;
	_cleanup_free_ char *path = NULL;
	if (depth >= DEPTH_MAX)
		return err_set(err, ERR_LIMIT,
			"the directories are more than %d deep; delete '%s' as a whole", DEPTH_MAX,
			below);
	if (asprintf(&path, "%s%s%s", below, below[0] ? "/" : "", name) < 0)
		return err_oom(err);
	if (!glob_may_match_below(g, str_of(path)))
		return 0;
	int r = view_dir_enter(dir, name, &sub, err);
	return r < 0 ? r : gather(tc, sub, path, g, depth + 1, found, err);
}

static int gather(struct tool_call *tc, struct view_dir *dir, const char *below,
	const struct glob *g, unsigned depth, struct names *found, struct err *err)
{
	struct dir_entry e;
	int r;
	while ((r = view_readdir(dir, &e, err)) > 0) {
		_cleanup_free_ char *path = NULL;
		if ((r = tool_progress(tc, found->n, 0, err)) < 0)
			return r;
		if (asprintf(&path, "%s%s%s", below, below[0] ? "/" : "", e.name) < 0)
			return err_oom(err);
		if (glob_match(g, str_of(path)))
			r = names_add(found, below, e.name, err);
		else if (e.kind == NODE_DIR && tool_arg_bool(tc, "recursive"))
			r = gather_below(tc, dir, below, e.name, g, depth, found, err);
		if (r < 0)
			return r;
	}
	return r;
}

static int remove_found(struct tool_call *tc, const struct node *root, const struct names *found,
	struct deletion *d, struct err *err)
{
	bool recursive = tool_arg_bool(tc, "recursive");
	int r = 0;
	for (unsigned i = 0; r == 0 && i < found->n; i++) {
		_cleanup_node_ struct node n = {.fd = -1};
		_cleanup_buf_ struct buf path = buf_init(2 * LIMIT_PATH_BYTES);
		buf_printf(&path, "%s/%s%s%s",
			workspace_mount_path(tool_workspace(tc), root->mount), root->path,
			root->path[0] ? "/" : "", found->list[i]);
		if ((r = buf_check(&path, "a path that matches", err)) == 0)
			r = view_resolve(tool_view(tc), (struct str){buf_str(&path), path.len},
				RESOLVE_NOFOLLOW, &n, err);
		if (r == 0)
			r = remove_one(tc, &n, recursive, d, err);
	}
	return r;
}

static int remove_matching(struct tool_call *tc, const struct node *root, const char *pattern,
	struct deletion *d, struct err *err)
{
	_cleanup_(cleanup_glob_free) struct glob *g = NULL;
	_cleanup_(cleanup_view_closedir) struct view_dir *dir = NULL;
	_cleanup_(names_done) struct names found = {0};
	int r = need_directory(root, err);
	if (r == 0)
		r = glob_compile(str_of(pattern), GLOB_BASENAME, &g, err);
	if (r == 0)
		r = view_opendir(tool_view(tc), root, &dir, err);
	if (r == 0)
		r = gather(tc, dir, "", g, 0, &found, err);
	return r < 0 ? r : remove_found(tc, root, &found, d, err);
}

static int run(struct tool_call *tc, struct err *err)
{
	const struct node *n = tool_node(tc, 0);
	const char *pattern = tool_arg_str(tc, "pattern");
	struct deletion d = {0};
	struct buf *out = tool_result(tc);
	int r = need_present(n, err);
	if (r < 0)
		return r;
	jw_key(out, "paths");
	jw_open(out, '[');
	if (pattern)
		r = remove_matching(tc, n, pattern, &d, err);
	else
		r = remove_one(tc, n, tool_arg_bool(tc, "recursive"), &d, err);
	jw_close(out, ']');
	jw_int(out, "deleted", d.removed);
	return r;
}

const struct tool tool_file_delete = {
	.name = "file_delete",
	.title = "Delete files",
	.description = "Delete a file or directory, or what matches a pattern in a directory. What "
		       "is deleted can be brought back with history_undo.",
	.group = GROUP_WRITE,
	.destructive = true,
	.idempotent = false,
	.args = args,
	.result = result,
	.prepare = prepare,
	.run = run,
};
