/*
 * file_edit: change parts of files. Several edits, also of several files, are one change set: all
 * of them or none.
 *
 * The edits run in order on texts held in memory; a regular expression is the worker's business, so
 * an edit that has one hands the text over and goes on when the answer is there.
 */
#include "tools/common.h"
#include "tools/tools.h"

#include "workspace/edit.h"

#include <errno.h>
#include <sys/mman.h>

static const char *const operations[] = {
	"replace_text", "replace_lines", "insert_lines", "delete_lines", "replace_regex", NULL};

enum { TEXT_MAX = LIMIT_READ_MAX_MB * 1024 * 1024 };

#define EDIT_FIELDS                                                                                \
	{.name = "operation",                                                                      \
		.type = FIELD_ENUM,                                                                \
		.words = operations,                                                               \
		.dflt_str = "replace_text",                                                        \
		.help = "replace_text needs old_text and new_text; the line operations count "     \
			"from 1; replace_regex needs pattern and new_text."},                      \
		{.name = "old_text",                                                               \
			.type = FIELD_STRING,                                                      \
			.nul_ok = true,                                                            \
			.min = 1,                                                                  \
			.max = TEXT_MAX,                                                           \
			.help = "Exact text to replace; must occur once unless replace_all is "    \
				"set."},                                                           \
		{.name = "new_text",                                                               \
			.type = FIELD_STRING,                                                      \
			.nul_ok = true,                                                            \
			.max = TEXT_MAX,                                                           \
			.help = "What to put there. In replace_regex \\\\1 stands for the first "  \
				"group."},                                                         \
		{.name = "replace_all",                                                            \
			.type = FIELD_BOOL,                                                        \
			.has_default = true,                                                       \
			.help = "Replace every occurrence."},                                      \
		{.name = "pattern",                                                                \
			.type = FIELD_STRING,                                                      \
			.min = 1,                                                                  \
			.max = LIMIT_PATTERN_BYTES,                                                \
			.help = "Regular expression (RE2 syntax) for replace_regex."},             \
		{.name = "flags",                                                                  \
			.type = FIELD_STRING,                                                      \
			.max = 3,                                                                  \
			.help = "For replace_regex: i ignore case, m ^ and $ at every line, s "    \
				"dot matches line ends."},                                         \
		{.name = "start_line",                                                             \
			.type = FIELD_INT,                                                         \
			.min = 0,                                                                  \
			.max = INT64_MAX,                                                          \
			.help = "First line; for insert_lines the line to insert behind, 0 for "   \
				"the top."},                                                       \
	{                                                                                          \
		.name = "end_line", .type = FIELD_INT, .min = 0, .max = INT64_MAX,                 \
		.help = "Last line, inclusive; default start_line."                                \
	}

static const struct field edit_fields[] = {
	{.name = "path",
		.type = FIELD_STRING,
		.min = 1,
		.max = LIMIT_PATH_BYTES,
		.help = "File of this edit; default the call's path."},
	EDIT_FIELDS,
	FIELD_END,
};

static const struct field args[] = {
	{.name = "path",
		.type = FIELD_STRING,
		.min = 1,
		.max = LIMIT_PATH_BYTES,
		.help = "File to edit, relative to the workspace."},
	EDIT_FIELDS,
	{.name = "edits",
		.type = FIELD_ARRAY,
		.min = 1,
		.max = LIMIT_EDITS,
		.items = &(const struct field){.type = FIELD_OBJECT, .items = edit_fields},
		.help = "Several edits in order instead of one; all are made or none."},
	ARG_EXPECTED_HASH,
	ARG_DRY_RUN,
	FIELD_END,
};

static const struct field done_fields[] = {
	{.name = "path", .type = FIELD_STRING, .required = true, .help = "File of the edit."},
	{.name = "replacements",
		.type = FIELD_INT,
		.required = true,
		.help = "How many places changed."},
	{.name = "line", .type = FIELD_INT, .help = "Line of the first of them."},
	FIELD_END,
};

static const struct field result[] = {
	{.name = "edits",
		.type = FIELD_ARRAY,
		.items = &(const struct field){.type = FIELD_OBJECT, .items = done_fields},
		.help = "What each edit did."},
	{.name = "replacements", .type = FIELD_INT, .help = "Places changed by all edits."},
	{.name = "changes",
		.type = FIELD_ARRAY,
		.items = &(const struct field){.type = FIELD_OBJECT, .items = change_fields},
		.help = "The files that changed."},
	RESULT_CHANGES,
};

/* --- the list of edits
 * ---------------------------------------------------------------------------------- */

static size_t count_edits(const struct tool_call *tc)
{
	const json_t *list = arg_get(tool_args(tc), "edits");
	return list ? json_array_size(list) : 1;
}

/* The i-th edit: an element of `edits`, or the call's own arguments. */
static const json_t *edit_at(const struct tool_call *tc, size_t i)
{
	const json_t *list = arg_get(tool_args(tc), "edits");
	return list ? json_array_get(list, i) : tool_args(tc);
}

static const char *path_of(const struct tool_call *tc, const json_t *edit)
{
	const char *own = json_string_value(json_object_get(edit, "path"));
	return own ? own : tool_arg_str(tc, "path");
}

struct file {
	const char *path; /* as asked; borrowed from the arguments */
	struct buf text;
	bool loaded, changed;
};

struct editing {
	struct file *files; /* one per target, in the same order */
	unsigned *file_of;  /* per edit */
	size_t n_edits, next;
	uint64_t replacements;
};

static bool has_single_edit(const json_t *args_given)
{
	return json_object_get(args_given, "old_text") || json_object_get(args_given, "pattern") ||
	       json_object_get(args_given, "start_line") ||
	       json_object_get(args_given, "operation");
}

static int find_or_add_file(
	struct tool_call *tc, struct editing *ed, const char *path, unsigned *ret, struct err *err)
{
	for (unsigned i = 0; i < tool_targets(tc); i++)
		if (strcmp(ed->files[i].path, path) == 0) {
			*ret = i;
			return 0;
		}
	*ret = tool_targets(tc);
	ed->files[*ret] = (struct file){.path = path, .text = buf_init(TEXT_MAX)};
	return tool_target(tc, path, ACCESS_WRITE, 0, err);
}

static int prepare(struct tool_call *tc, struct err *err)
{
	struct editing *ed = tool_state(tc, sizeof(*ed));
	if (!ed)
		return err_oom(err);
	if (arg_get(tool_args(tc), "edits") && has_single_edit(tool_args(tc)))
		return err_set(err, ERR_INVALID_ARGUMENT,
			"give either one edit or a list of edits, not both");
	ed->n_edits = count_edits(tc);
	ed->files = calloc(ed->n_edits, sizeof(*ed->files));
	ed->file_of = calloc(ed->n_edits, sizeof(*ed->file_of));
	if (!ed->files || !ed->file_of)
		return err_oom(err);
	for (size_t i = 0; i < ed->n_edits; i++) {
		const char *path = path_of(tc, edit_at(tc, i));
		if (!path)
			return err_set(err, ERR_INVALID_ARGUMENT,
				"edit %zu names no path, and neither does the call", i + 1);
		int r = find_or_add_file(tc, ed, path, &ed->file_of[i], err);
		if (r < 0)
			return r;
	}
	if (tool_targets(tc) > 1 && arg_get(tool_args(tc), "expected_hash"))
		return err_set(err, ERR_INVALID_ARGUMENT,
			"expected_hash names the content of one file, but several are edited");
	return 0;
}

/* --- texts
 * ---------------------------------------------------------------------------------------------- */

static int load(struct tool_call *tc, struct file *f, const struct node *n, struct err *err)
{
	_cleanup_close_ int fd = -1;
	int r = need_file(n, err);
	if (r < 0 || f->loaded)
		return r;
	if (n->st.st_size > tool_env(tc)->read_limit_bytes)
		return err_set(err, ERR_TOO_LARGE,
			"'%s' has %lld bytes; at most %lld can be edited", n->spelled,
			(long long)n->st.st_size, (long long)tool_env(tc)->read_limit_bytes);
	if ((r = view_open(tool_view(tc), n, &fd, err)) < 0)
		return r;
	if ((r = read_whole(fd, &f->text, err)) < 0)
		return err_wrap(err, "'%s'", n->spelled);
	f->loaded = true;
	return 0;
}

static struct str text_arg(const json_t *edit, const char *name)
{
	const json_t *v = json_object_get(edit, name);
	return v ? (struct str){json_string_value(v), json_string_length(v)} : (struct str){"", 0};
}

static const char *operation_of(const json_t *edit)
{
	const char *op = json_string_value(json_object_get(edit, "operation"));
	return op ? op : json_object_get(edit, "pattern") ? "replace_regex" : "replace_text";
}

static enum edit_kind kind_of(const char *op)
{
	if (strcmp(op, "replace_lines") == 0)
		return EDIT_REPLACE_LINES;
	if (strcmp(op, "insert_lines") == 0)
		return EDIT_INSERT_LINES;
	return strcmp(op, "delete_lines") == 0 ? EDIT_DELETE_LINES : EDIT_REPLACE_TEXT;
}

/* Arguments that an operation needs and that are not there, before anything is done. */
static int check_edit(const json_t *edit, const char *op, size_t number, struct err *err)
{
	const char *lacks = NULL;
	bool lines = strstr(op, "_lines") != NULL;
	if (strcmp(op, "replace_text") == 0 && !json_object_get(edit, "old_text"))
		lacks = "old_text";
	else if (strcmp(op, "replace_regex") == 0 && !json_object_get(edit, "pattern"))
		lacks = "pattern";
	else if (lines && !json_object_get(edit, "start_line"))
		lacks = "start_line";
	else if (strcmp(op, "delete_lines") != 0 && !json_object_get(edit, "new_text"))
		lacks = "new_text";
	if (!lacks)
		return 0;
	return err_set(err, ERR_INVALID_ARGUMENT, "edit %zu (%s) has no %s", number, op, lacks);
}

static void put_done(struct tool_call *tc, struct editing *ed, unsigned file, uint64_t replacements,
	uint64_t line)
{
	struct buf *out = tool_result(tc);
	jw_open(out, '{');
	jw_cstr(out, "path", tool_node(tc, file)->resolved);
	jw_int(out, "replacements", (int64_t)replacements);
	if (line > 0)
		jw_int(out, "line", (int64_t)line);
	jw_close(out, '}');
	ed->replacements += replacements;
	ed->next++;
}

static void take_text(struct file *f, struct buf *edited)
{
	f->changed |= !str_eq((struct str){buf_str(&f->text), f->text.len},
		(struct str){buf_str(edited), edited->len});
	buf_done(&f->text);
	f->text = *edited;
	*edited = buf_init(TEXT_MAX);
}

static int apply(struct tool_call *tc, struct editing *ed, const json_t *edit, struct file *f,
	struct err *err)
{
	struct edit_result got;
	_cleanup_buf_ struct buf edited = buf_init(TEXT_MAX);
	const json_t *start = json_object_get(edit, "start_line"),
		     *end = json_object_get(edit, "end_line");
	struct edit e = {.kind = kind_of(operation_of(edit)),
		.old_text = text_arg(edit, "old_text"),
		.new_text = text_arg(edit, "new_text"),
		.all = json_is_true(json_object_get(edit, "replace_all")),
		.start = (uint64_t)json_number_value(start),
		.end = (uint64_t)json_number_value(end ? end : start)};
	int r = edit_apply((struct str){buf_str(&f->text), f->text.len}, &e, &edited, &got, err);
	if (r < 0)
		return err_wrap(err, "edit %zu of '%s'", ed->next + 1, f->path);
	take_text(f, &edited);
	put_done(tc, ed, ed->file_of[ed->next], got.replacements, got.first_line);
	return 0;
}

/* --- regular expressions
 * -------------------------------------------------------------------------------- */

static int as_memfd(const struct buf *text, int *ret, struct err *err)
{
	_cleanup_close_ int fd = memfd_create("edit", MFD_CLOEXEC);
	if (fd < 0)
		return err_sys(err, errno, "making memory for the worker");
	for (size_t at = 0; at < text->len;) {
		ssize_t n = pwrite(fd, text->data + at, text->len - at, (off_t)at);
		if (n < 0)
			return err_sys(err, errno, "writing memory for the worker");
		at += (size_t)n;
	}
	*ret = take_fd(fd);
	return 0;
}

static int submit_regex(struct tool_call *tc, const struct editing *ed, const json_t *edit,
	const struct file *f, struct err *err)
{
	_cleanup_close_ int fd = -1;
	const char *flags = json_string_value(json_object_get(edit, "flags"));
	if (flags && strspn(flags, "ims") != strlen(flags))
		return err_set(err, ERR_INVALID_ARGUMENT, "edit %zu: the flags are i, m and s",
			ed->next + 1);
	int r = as_memfd(&f->text, &fd, err);
	if (r < 0)
		return r;
	struct worker_job job = {.kind = WORK_REGEX_REPLACE,
		.replace = {.content_fd = fd,
			.pattern = text_arg(edit, "pattern"),
			.replacement = text_arg(edit, "new_text"),
			.max_count = json_is_true(json_object_get(edit, "replace_all")) ? 0 : 1,
			.ignore_case = flags && strchr(flags, 'i'),
			.multi_line = flags && strchr(flags, 'm'),
			.dot_all = flags && strchr(flags, 's'),
			.max_output = TEXT_MAX}};
	r = tool_submit(tc, &job, err);
	return r < 0 ? r : TOOL_PENDING;
}

/* --- the run
 * -------------------------------------------------------------------------------------------- */

static int write_back(struct tool_call *tc, struct editing *ed, struct err *err)
{
	struct sha256 store;
	const struct sha256 *must;
	int r = expected_hash(tc, &store, &must, err);
	for (unsigned i = 0; r == 0 && i < tool_targets(tc); i++) {
		_cleanup_(cleanup_staged_free) struct staged *s = NULL;
		if (!ed->files[i].changed)
			continue;
		r = staged_new(tool_view(tc), tool_node(tc, i)->mount, &s, err);
		if (r == 0)
			r = staged_write(
				s, buf_str(&ed->files[i].text), ed->files[i].text.len, err);
		if (r == 0)
			r = view_put(tool_view(tc), tool_node(tc, i), take_ptr(s), PUT_REPLACE,
				0644, must, err);
	}
	return r;
}

static int go_on(struct tool_call *tc, struct editing *ed, struct err *err)
{
	while (ed->next < ed->n_edits) {
		const json_t *edit = edit_at(tc, ed->next);
		const char *op = operation_of(edit);
		struct file *f = &ed->files[ed->file_of[ed->next]];
		int r = tool_progress(tc, (int64_t)ed->next, (int64_t)ed->n_edits, err);
		if (r == 0)
			r = check_edit(edit, op, ed->next + 1, err);
		if (r == 0)
			r = load(tc, f, tool_node(tc, ed->file_of[ed->next]), err);
		if (r < 0)
			return r;
		if (strcmp(op, "replace_regex") == 0)
			return submit_regex(tc, ed, edit, f, err);
		if ((r = apply(tc, ed, edit, f, err)) < 0)
			return r;
	}
	jw_close(tool_result(tc), ']');
	jw_int(tool_result(tc), "replacements", (int64_t)ed->replacements);
	return write_back(tc, ed, err);
}

static int run(struct tool_call *tc, struct err *err)
{
	struct editing *ed = tool_state(tc, sizeof(*ed));
	jw_key(tool_result(tc), "edits");
	jw_open(tool_result(tc), '[');
	return go_on(tc, ed, err);
}

static int resume(struct tool_call *tc, struct worker_answer *answer, struct err *err)
{
	struct editing *ed = tool_state(tc, sizeof(*ed));
	struct file *f = &ed->files[ed->file_of[ed->next]];
	_cleanup_buf_ struct buf edited = buf_init(TEXT_MAX);
	if (!answer)
		return err_wrap(err, "edit %zu of '%s'", ed->next + 1, f->path);
	if (answer->replace.replacements == 0)
		return err_set(err, ERR_NO_MATCH, "edit %zu of '%s': the pattern matches nothing",
			ed->next + 1, f->path);
	int r = read_whole(answer->replace.content_fd, &edited, err);
	if (r < 0)
		return r;
	take_text(f, &edited);
	put_done(tc, ed, ed->file_of[ed->next], answer->replace.replacements,
		answer->replace.n_lines ? answer->replace.lines[0] : 0);
	return go_on(tc, ed, err);
}

static void done(struct tool_call *tc)
{
	struct editing *ed = tool_state(tc, sizeof(*ed));
	for (size_t i = 0; ed->files && i < ed->n_edits; i++)
		buf_done(&ed->files[i].text);
	free(ed->files);
	free(ed->file_of);
}

const struct tool tool_file_edit = {
	.name = "file_edit",
	.title = "Edit files",
	.description = "Change exact text, lines or matches of a regular expression in one or "
		       "several files, all or nothing. When the text is not found the answer names "
		       "the closest lines.",
	.group = GROUP_WRITE,
	.destructive = true,
	.idempotent = false,
	.args = args,
	.result = result,
	.prepare = prepare,
	.run = run,
	.resume = resume,
	.report = report_changes,
	.done = done,
};
