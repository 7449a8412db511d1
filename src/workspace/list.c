/* Listing a directory of a view: see list.h. */
#include "workspace/list.h"

struct name {
	uint32_t at, len; /* in the level's text */
	uint8_t kind;
};

/* One open directory with its sorted names. Levels form the explicit stack of the walk. */
struct level {
	struct view_dir *dir;
	struct buf text; /* all names, one after another */
	struct name *names;
	uint32_t n, cap, next;
	size_t path_len; /* of the directory, in the walk's path */
};

struct walk {
	struct view *view;
	const struct list_query *q;
	int (*each)(void *ctx, const struct list_entry *e, struct err *err);
	void *ctx;
	struct list_result got;
	struct level levels[LIST_DEPTH_MAX];
	unsigned depth;
	struct buf path; /* below the listed directory */
	uint64_t matched;
	struct err *err;
};

enum { DIR_BYTES_MAX = 256 * 1024 * 1024, DIR_NAMES_MAX = 4 * 1000 * 1000, CHECK_EVERY = 256 };

static void level_done(struct level *l)
{
	view_closedir(l->dir);
	buf_done(&l->text);
	free(l->names);
	*l = (struct level){0};
}

/* --- reading and sorting one directory
 * ------------------------------------------------------------------ */

static int add_name(struct walk *w, struct level *l, const struct dir_entry *e)
{
	size_t len = strlen(e->name);
	if (l->n == l->cap) {
		uint32_t cap = l->cap ? l->cap * 2 : 64;
		struct name *more =
			l->n < DIR_NAMES_MAX ? reallocarray(l->names, cap, sizeof(*more)) : NULL;
		if (!more)
			return l->n < DIR_NAMES_MAX ? err_oom(w->err)
						    : err_set(w->err, ERR_LIMIT,
							      "a directory has more than %d names",
							      DIR_NAMES_MAX);
		l->names = more;
		l->cap = cap;
	}
	l->names[l->n++] = (struct name){(uint32_t)l->text.len, (uint32_t)len, (uint8_t)e->kind};
	buf_put(&l->text, e->name, len + 1);
	return buf_check(&l->text, "a directory's names", w->err);
}

static int by_bytes(const void *a, const void *b, void *text)
{
	const struct name *x = a, *y = b;
	return strcmp((const char *)text + x->at, (const char *)text + y->at);
}

static int check(struct walk *w)
{
	return w->q->check ? w->q->check(w->q->check_ctx, w->err) : 0;
}

static int read_names(struct walk *w, struct level *l)
{
	struct dir_entry e;
	int r;
	l->text = buf_init(DIR_BYTES_MAX);
	while ((r = view_readdir(l->dir, &e, w->err)) > 0) {
		if (++w->got.visited % CHECK_EVERY == 0 && (r = check(w)) < 0)
			return r;
		if (e.name[0] == '.' && !w->q->hidden)
			continue;
		if ((r = add_name(w, l, &e)) < 0)
			return r;
	}
	if (r < 0)
		return r;
	if (l->n > 1)
		qsort_r(l->names, l->n, sizeof(*l->names), by_bytes, l->text.data);
	return 0;
}

/* --- one entry
 * ------------------------------------------------------------------------------------------- */

static bool excluded(const struct walk *w)
{
	for (struct glob *const *g = w->q->exclude; g && *g; g++)
		if (glob_match(*g, (struct str){w->path.data, w->path.len}))
			return true;
	return false;
}

static void count(struct walk *w, enum node_kind kind)
{
	w->got.files += kind == NODE_FILE;
	w->got.dirs += kind == NODE_DIR;
	w->got.others += kind != NODE_FILE && kind != NODE_DIR;
}

static int tell(struct walk *w, struct level *l, struct str name, enum node_kind kind)
{
	struct stat st;
	struct list_entry e = {.path = {w->path.data, w->path.len}, .name = name, .kind = kind};
	if (w->matched++ < w->q->skip)
		return 0;
	if (w->matched - w->q->skip > w->q->max) {
		w->got.more = true;
		return 0;
	}
	if (w->q->details) {
		/* A name that has gone since it was read is simply no longer listed with details.
		 */
		if (view_dir_stat(l->dir, name.p, &st, w->err) == 0)
			e.st = &st;
	}
	return w->each(w->ctx, &e, w->err);
}

static bool goes_deeper(const struct walk *w)
{
	if (!w->q->recursive || (w->q->max_depth && w->depth >= w->q->max_depth))
		return false;
	return !w->q->pattern ||
	       glob_may_match_below(w->q->pattern, (struct str){w->path.data, w->path.len});
}

static int enter(struct walk *w, struct level *from, const char *name)
{
	if (w->depth == LIST_DEPTH_MAX || w->got.visited > LIST_VISITED_MAX) {
		w->got.truncated = true;
		return 0;
	}
	struct level *l = &w->levels[w->depth];
	int r = view_dir_enter(from->dir, name, &l->dir, w->err);
	/* Gone, unreadable, or replaced by a link meanwhile: not part of the listing. */
	if (r == -ERR_NOT_FOUND || r == -ERR_NOT_DIRECTORY || r == -ERR_LINK_REFUSED ||
		r == -ERR_DENIED || r == -ERR_PATH_ESCAPE)
		return 0;
	if (r < 0)
		return r;
	w->depth++;
	buf_putc(&w->path, '/');
	l->path_len = w->path.len;
	return read_names(w, l);
}

static int visit(struct walk *w, struct level *l)
{
	struct name *n = &l->names[l->next++];
	struct str name = {l->text.data + n->at, n->len};
	enum node_kind kind = (enum node_kind)n->kind;
	w->path.len = l->path_len;
	buf_put(&w->path, name.p, name.n);
	int r = buf_check(&w->path, "a path of the listing", w->err);
	if (r < 0 || excluded(w))
		return r;
	if (!w->q->pattern || glob_match(w->q->pattern, (struct str){w->path.data, w->path.len})) {
		count(w, kind);
		if ((r = tell(w, l, name, kind)) < 0)
			return r;
	}
	return kind == NODE_DIR && goes_deeper(w) ? enter(w, l, name.p) : 0;
}

/* --- the walk
 * -------------------------------------------------------------------------------------------- */

static int walk_all(struct walk *w)
{
	while (w->depth > 0) {
		struct level *l = &w->levels[w->depth - 1];
		if (l->next == l->n) {
			level_done(l);
			w->depth--;
			continue;
		}
		int r = visit(w, l);
		if (r < 0)
			return r;
	}
	return 0;
}

int list_directory(struct view *v, const struct node *dir, const struct list_query *q,
	int (*each)(void *ctx, const struct list_entry *e, struct err *err), void *ctx,
	struct list_result *ret, struct err *err)
{
	struct walk *w = calloc(1, sizeof(*w));
	if (!w)
		return err_oom(err);
	w->view = v, w->q = q, w->each = each, w->ctx = ctx, w->err = err;
	w->path = buf_init((size_t)LIST_DEPTH_MAX * (LIMIT_NAME_BYTES + 1));
	int r = view_opendir(v, dir, &w->levels[0].dir, err);
	if (r == 0) {
		w->depth = 1;
		r = read_names(w, &w->levels[0]);
	}
	if (r == 0)
		r = walk_all(w);
	while (w->depth > 0)
		level_done(&w->levels[--w->depth]);
	buf_done(&w->path);
	if (r == 0)
		*ret = w->got;
	free(w);
	return r;
}
