/*
 * A view's changes: see view.h for what they promise and view_impl.h for how they are kept.
 *
 * Every function here first finds what is there now, then makes everything that can fail, and only
 * then changes the map and the list, so that a failure leaves the view as it was.
 */
#include "workspace/view_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

int view_new(struct workspace *ws, struct view **ret, struct err *err)
{
	int r = workspace_settle(ws, err);
	if (r < 0)
		return r;
	struct view *v = calloc(1, sizeof(*v));
	if (!v)
		return err_oom(err);
	v->ws = ws;
	for (unsigned i = 0; i < ws->n_stores; i++)
		v->seqs[i] = atomic_load(&ws->stores[i]->st->done);
	*ret = v;
	return 0;
}

void view_free(struct view *v)
{
	if (!v)
		return;
	view_clear_entries(v);
	for (struct op *op = v->first, *next; op; op = next) {
		next = op->next;
		op_free(op);
	}
	free(v);
}

/* --- reading ------------------------------------------------------------------------------ */

/* Another descriptor of the same file, with an offset of its own. */
static int open_again(int fd, int *ret_fd, struct err *err)
{
	char path[32];
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	int again = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (again < 0)
		return err_sys(err, errno, "opening a file again");
	*ret_fd = again;
	return 0;
}

static int open_real(
	const struct mount *m, const char *real, const struct node *n, int *ret_fd, struct err *err)
{
	struct stat st;
	_cleanup_close_ int fd =
		fs_open(m->root_fd, real, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY, 0);
	if (fd < 0)
		return mount_err(m, n->path, errno, err);
	if (fstat(fd, &st) < 0)
		return err_sys(err, errno, "'%s'", n->resolved);
	if (st.st_ino != n->st.st_ino || st.st_dev != n->st.st_dev || !S_ISREG(st.st_mode))
		return err_set(err, ERR_CONFLICT, "'%s' was replaced meanwhile", n->resolved);
	*ret_fd = take_fd(fd);
	return 0;
}

/* A file with a tail: both together in a file of our own. */
static int open_merged(
	struct view *v, struct entry *e, const struct node *n, int *ret_fd, struct err *err)
{
	int r;
	const struct mount *m = &v->ws->mounts[e->mount];
	if (e->merged_fd < 0) {
		_cleanup_close_ int base = -1;
		_cleanup_(cleanup_staged_free) struct staged *s = NULL;
		if ((r = open_real(m, e->real.path, n, &base, err)) < 0 ||
			(r = staged_new(v, e->mount, &s, err)) < 0 ||
			(r = staged_copy(s, base, 0, e->real.st.st_size, err)) < 0 ||
			(r = staged_reopen(e->op->content, err)) < 0 ||
			(r = staged_copy(s, e->op->content->fd, 0, -1, err)) < 0)
			return r;
		e->merged_fd = fcntl(s->fd, F_DUPFD_CLOEXEC, 0);
		if (e->merged_fd < 0)
			return err_sys(err, errno, "opening a file again");
	}
	return open_again(e->merged_fd, ret_fd, err);
}

static int not_a_file(const struct node *n, struct err *err)
{
	switch (n->kind) {
	case NODE_ABSENT: return err_set(err, ERR_NOT_FOUND, "no file '%s'", n->resolved);
	case NODE_DIR: return err_set(err, ERR_IS_DIRECTORY, "'%s' is a directory", n->resolved);
	case NODE_LINK:
		return err_set(err, ERR_LINK_REFUSED, "'%s' is a symbolic link", n->resolved);
	case NODE_OTHER:
		return err_set(err, ERR_NOT_REGULAR, "'%s' is no regular file", n->resolved);
	case NODE_FILE: break;
	}
	BUG_ON(true);
}

int view_open(struct view *v, const struct node *n, int *ret_fd, struct err *err)
{
	struct place pl;
	int r;
	const struct mount *m = &v->ws->mounts[n->mount];
	if (n->kind != NODE_FILE)
		return not_a_file(n, err);
	if (v->n_entries == 0)
		return open_real(m, n->path, n, ret_fd, err);
	view_locate(v, n->mount, n->path, &pl);
	struct entry *e = pl.entry;
	if (pl.kind == PLACE_MADE && e->now == NOW_FILE) {
		if ((r = staged_reopen(e->op->content, err)) < 0)
			return r;
		return open_again(e->op->content->fd, ret_fd, err);
	}
	if (pl.kind != PLACE_REAL)
		return err_set(err, ERR_CONFLICT, "'%s' was replaced meanwhile", n->resolved);
	if (e && e->op)
		return open_merged(v, e, n, ret_fd, err);
	return open_real(m, pl.real, n, ret_fd, err);
}

int view_readlink(struct view *v, const struct node *n, char **ret, struct err *err)
{
	char text[LIMIT_PATH_BYTES];
	if (n->kind != NODE_LINK)
		return err_set(err, ERR_INVALID_ARGUMENT, "'%s' is no link", n->resolved);
	const struct entry *e = view_entry(v, n->mount, n->path, strlen(n->path));
	if (e && e->now == NOW_LINK) {
		(void)snprintf(text, sizeof(text), "%s", e->op->target);
	} else {
		ssize_t len = readlinkat(n->fd, "", text, sizeof(text) - 1);
		if (len < 0)
			return err_sys(err, errno, "'%s'", n->resolved);
		text[len] = '\0';
	}
	if (!(*ret = strdup(text)))
		return err_oom(err);
	return 0;
}

/* --- what is there now ---------------------------------------------------------------------- */

/* Where a change is to happen: what is there, and where that is in the real tree. */
struct spot {
	struct found f;
	struct place pl;
	const struct node *n;
};

static void spot_done(struct spot *s)
{
	cleanup_close(&s->f.fd);
}

static int find_spot(struct view *v, const struct node *n, struct spot *ret, struct err *err)
{
	int r;
	ret->n = n;
	ret->f.fd = -1;
	if (v->ws->mounts[n->mount].read_only)
		return err_set(err, ERR_READ_ONLY, "'%s' is read-only", n->resolved);
	if (mount_hides(&v->ws->mounts[n->mount], n->path))
		return err_set(err, ERR_PATH_INVALID, "'%s' is reserved", n->resolved);
	if ((r = view_find(v, n->mount, n->path, &ret->f, err)) < 0)
		return r;
	view_locate(v, n->mount, n->path, &ret->pl);
	/* What the caller saw must still be there: its content may follow from it. */
	struct identity now = identity_of(&ret->f.st);
	bool same = ret->f.kind == n->kind;
	if (same && ret->f.real && !ret->f.entry)
		same = identity_eq(&now, &n->id) || (n->kind == NODE_DIR && now.ino == n->id.ino);
	if (!same)
		return err_set(err, ERR_CONFLICT, "'%s' has changed meanwhile", n->resolved);
	return 0;
}

/* The real object at a spot, as the base of an operation. */
static int spot_base(const struct spot *s, struct base *ret, struct err *err)
{
	const struct entry *e = s->f.entry;
	if (e && e->now == NOW_REAL)
		return base_set(ret, e->real.path, &e->real.st, err);
	return base_set(ret, s->pl.real, &s->f.st, err);
}

static int check_hash(
	struct view *v, const struct node *n, const struct sha256 *must, struct err *err)
{
	int r;
	_cleanup_close_ int fd = -1;
	_cleanup_free_ char *chunk = malloc(65536);
	struct sha256 is;
	off_t at = 0;
	ssize_t got;
	if (!chunk)
		return err_oom(err);
	if (n->kind != NODE_FILE)
		return err_set(err, ERR_CONFLICT, "'%s' is not there any more", n->resolved);
	if ((r = view_open(v, n, &fd, err)) < 0)
		return r;
	struct sha256_ctx *c = sha256_start();
	if (!c)
		return err_oom(err);
	while ((got = fs_read(fd, chunk, 65536, at)) > 0) {
		sha256_add(c, chunk, (size_t)got);
		at += got;
	}
	int e = errno;
	sha256_finish(c, &is);
	if (got < 0)
		return err_sys(err, e, "reading '%s'", n->resolved);
	if (memcmp(&is, must, sizeof(is)) != 0)
		return err_set(
			err, ERR_CONFLICT, "'%s' does not have the expected content", n->resolved);
	return 0;
}

/* --- dropping --------------------------------------------------------------------------------- */

static void drop_op(struct view *v, struct op **op)
{
	if (!*op)
		return;
	op_unlink(v, *op);
	op_free(*op);
	*op = NULL;
}

static void drop_merged(struct entry *e)
{
	cleanup_close(&e->merged_fd);
	e->merged_fd = -1;
}

/* Take back what an entry's own operations make, as far as nothing relies on them; what it takes
 * from usage is added up. Afterwards the entry is a whiteout, a real object, or a pinned
 * directory. */
static void drop_made(struct view *v, struct entry *e, struct delta *ret)
{
	struct delta d = {0};
	if (e->op)
		d = op_delta(e->op);
	drop_merged(e);
	switch (e->now) {
	case NOW_NONE: return;
	case NOW_REAL: break;
	case NOW_DIR:
		if (e->pinned)
			return;
		e->now = NOW_NONE;
		break;
	case NOW_LINK: e->now = NOW_NONE; break;
	case NOW_FILE:
		e->now = NOW_NONE;
		if (e->op->kind == CHANGE_REPLACE) {
			base_done(&e->real);
			e->real = e->op->base;
			e->op->base.path = NULL;
			e->now = NOW_REAL;
		}
		break;
	}
	ret->bytes += d.bytes, ret->entries += d.entries;
	drop_op(v, &e->op);
	drop_op(v, &e->mode_op);
}

/* A RENAME into or of `path` relies on every made directory on the way. */
static void pin_above(struct view *v, unsigned mount, const char *path)
{
	for (const char *p = path; (p = strchr(p, '/')); p++) {
		struct entry *e = view_entry(v, mount, path, (size_t)(p - path));
		if (e)
			e->pinned = true;
	}
}

/* --- making ------------------------------------------------------------------------------------
 */

static int make_dir(struct view *v, unsigned mount, const char *path, mode_t mode, bool optional,
	struct err *err)
{
	struct op *op = NULL;
	struct entry *e = NULL;
	int r;
	if ((r = op_new(v, CHANGE_MKDIR, mount, path, &op, err)) < 0)
		return r;
	op->mode = mode & 0777;
	op->is_dir = true;
	op->optional = optional;
	op->umasked = true;
	if ((r = view_entry_make(v, mount, path, &e, err)) < 0) {
		op_free(op);
		return r;
	}
	op_append(v, op);
	e->now = NOW_DIR;
	e->op = op;
	e->removal = NULL;
	e->pinned = false;
	return 0;
}

/* Make what is missing above a path. */
static int make_parents(struct view *v, const struct node *n, struct err *err)
{
	char dir[LIMIT_PATH_BYTES];
	for (const char *p = n->path; (p = strchr(p, '/')); p++) {
		struct found f;
		int r;
		(void)snprintf(dir, sizeof(dir), "%.*s", (int)(p - n->path), n->path);
		if ((r = view_find(v, n->mount, dir, &f, err)) < 0)
			return r;
		cleanup_close(&f.fd);
		if (f.kind == NODE_ABSENT)
			r = make_dir(v, n->mount, dir, 0755, true, err);
		else if (f.kind != NODE_DIR)
			r = err_set(
				err, ERR_NOT_DIRECTORY, "'%s' goes through a file", n->resolved);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Content is finished: a named staged file needs no descriptor until the commit. */
static void settle_content(struct staged *s)
{
	if (!s->name[0] || s->fd < 0)
		return;
	(void)close(s->fd);
	s->fd = -1;
	s->view->staged_open--;
}

/* New content for a file that is real (or was, before a removal), or for a new name. */
static int put_content(struct view *v, const struct spot *s, struct staged **take, mode_t mode,
	bool umasked, struct err *err)
{
	int r;
	const struct node *n = s->n;
	struct entry *e = s->f.entry;
	_cleanup_(cleanup_op_free) struct op *op = NULL;
	struct op *removal = e && e->now == NOW_NONE ? e->removal : NULL;
	bool replace = s->f.kind == NODE_FILE || removal;
	if ((r = op_new(v, replace ? CHANGE_REPLACE : CHANGE_CREATE, n->mount, n->path, &op, err)) <
		0)
		return r;
	if (s->f.kind == NODE_FILE && (r = spot_base(s, &op->base, err)) < 0)
		return r;
	if ((r = view_entry_make(v, n->mount, n->path, &e, err)) < 0)
		return r;
	if (removal) {
		op->base = removal->base;
		removal->base.path = NULL;
		drop_op(v, &e->removal);
	}
	op->mode = s->f.kind == NODE_FILE ? s->f.st.st_mode & 07777 : mode & 0777;
	op->umasked = umasked;
	op->content = take_ptr(*take);
	drop_merged(e);
	drop_op(v, &e->op);
	drop_op(v, &e->mode_op);
	e->now = NOW_FILE;
	e->op = op;
	op_append(v, take_ptr(op));
	return 0;
}

static int check_put(const struct spot *s, enum put_how how, struct err *err)
{
	const struct node *n = s->n;
	if (n->kind == NODE_ABSENT) {
		if (!(how & PUT_CREATE))
			return not_a_file(n, err);
		if (s->f.no_parent && !(how & PUT_PARENTS))
			return err_set(
				err, ERR_NOT_FOUND, "'%s': a directory is missing", n->resolved);
		return 0;
	}
	if (n->kind != NODE_FILE)
		return not_a_file(n, err);
	if (!(how & PUT_REPLACE))
		return err_set(err, ERR_EXISTS, "'%s' is there already", n->resolved);
	return 0;
}

int view_put(struct view *v, const struct node *n, struct staged *take, enum put_how how,
	mode_t mode, const struct sha256 *must_hash, struct err *err)
{
	int r;
	_cleanup_(cleanup_staged_free) struct staged *content = take;
	_cleanup_(spot_done) struct spot s = {.f.fd = -1};
	BUG_ON(content->mount != n->mount);
	if ((r = find_spot(v, n, &s, err)) < 0 || (r = check_put(&s, how, err)) < 0 ||
		(must_hash && (r = check_hash(v, n, must_hash, err)) < 0))
		return r;
	settle_content(content);
	struct entry *e = s.f.entry;
	if (e && e->now == NOW_FILE) {
		staged_free(e->op->content);
		e->op->content = take_ptr(content);
		return 0;
	}
	if (s.f.no_parent && (r = make_parents(v, n, err)) < 0)
		return r;
	return put_content(v, &s, &content, mode, (how & PUT_UMASKED) != 0, err);
}

/* A tail for a real file that has no other name. */
static int put_tail(struct view *v, const struct spot *s, struct staged **take, struct err *err)
{
	int r;
	const struct node *n = s->n;
	struct entry *e;
	_cleanup_(cleanup_op_free) struct op *op = NULL;
	struct base real = {0};
	if ((r = op_new(v, CHANGE_APPEND, n->mount, n->path, &op, err)) < 0 ||
		(r = spot_base(s, &op->base, err)) < 0 || (r = spot_base(s, &real, err)) < 0)
		return r;
	if ((r = view_entry_make(v, n->mount, n->path, &e, err)) < 0) {
		base_done(&real);
		return r;
	}
	op->content = take_ptr(*take);
	op->mode = op->base.st.st_mode & 07777;
	base_done(&e->real);
	e->real = real;
	e->now = NOW_REAL;
	e->op = op;
	op_append(v, take_ptr(op));
	return 0;
}

/* The whole file with its tail as new content. */
static int put_appended_copy(
	struct view *v, const struct spot *s, struct staged *tail, struct err *err)
{
	int r;
	_cleanup_close_ int base = -1;
	_cleanup_(cleanup_staged_free) struct staged *all = NULL;
	if ((r = view_open(v, s->n, &base, err)) < 0 ||
		(r = staged_new(v, s->n->mount, &all, err)) < 0 ||
		(r = staged_copy(all, base, 0, -1, err)) < 0 ||
		(r = staged_reopen(tail, err)) < 0 ||
		(r = staged_copy(all, tail->fd, 0, -1, err)) < 0)
		return r;
	settle_content(all);
	return put_content(v, s, &all, 0, false, err);
}

int view_append(struct view *v, const struct node *n, struct staged *take,
	const struct sha256 *must_hash, struct err *err)
{
	int r;
	_cleanup_(cleanup_staged_free) struct staged *tail = take;
	_cleanup_(spot_done) struct spot s = {.f.fd = -1};
	if (n->kind != NODE_FILE)
		return not_a_file(n, err);
	if ((r = find_spot(v, n, &s, err)) < 0 ||
		(must_hash && (r = check_hash(v, n, must_hash, err)) < 0) ||
		(r = staged_reopen(tail, err)) < 0)
		return r;
	struct entry *e = s.f.entry;
	if (e && e->op) {
		drop_merged(e);
		return staged_copy(e->op->content, tail->fd, 0, -1, err);
	}
	/* Writing in place would write through every other name, also those outside. */
	if (s.f.st.st_nlink > 1)
		return put_appended_copy(v, &s, tail, err);
	return put_tail(v, &s, &tail, err);
}

int view_mkdir(struct view *v, const struct node *n, mode_t mode, bool parents, struct err *err)
{
	int r;
	_cleanup_(spot_done) struct spot s = {.f.fd = -1};
	if (n->kind == NODE_DIR && parents)
		return 0;
	if ((r = find_spot(v, n, &s, err)) < 0)
		return r;
	if (n->kind != NODE_ABSENT)
		return err_set(err, ERR_EXISTS, "'%s' is there already", n->resolved);
	if (s.f.no_parent && !parents)
		return err_set(err, ERR_NOT_FOUND, "'%s': a directory is missing", n->resolved);
	if (mode & ~0777u)
		return err_set(err, ERR_INVALID_ARGUMENT,
			"set-user-id, set-group-id and sticky bits are refused");
	if (s.f.no_parent && (r = make_parents(v, n, err)) < 0)
		return r;
	return make_dir(v, n->mount, n->path, mode, parents, err);
}

int view_chmod(struct view *v, const struct node *n, mode_t mode, struct err *err)
{
	int r;
	_cleanup_(spot_done) struct spot s = {.f.fd = -1};
	if (mode & ~0777u)
		return err_set(err, ERR_INVALID_ARGUMENT,
			"set-user-id, set-group-id and sticky bits are refused");
	if (n->kind != NODE_FILE && n->kind != NODE_DIR)
		return not_a_file(n, err);
	if ((r = find_spot(v, n, &s, err)) < 0)
		return r;
	struct entry *e = s.f.entry;
	if (e && (e->now == NOW_FILE || e->now == NOW_DIR)) {
		e->op->mode = mode;
		e->op->umasked = false;
		return 0;
	}
	if (e && e->mode_op) {
		e->mode_op->mode = mode;
		return 0;
	}
	if (!*n->path)
		return err_set(err, ERR_DENIED, "'%s' itself keeps its mode", n->resolved);
	_cleanup_(cleanup_op_free) struct op *op = NULL;
	struct base real = {0};
	if ((r = op_new(v, CHANGE_MODE, n->mount, n->path, &op, err)) < 0 ||
		(r = spot_base(&s, &op->base, err)) < 0 || (r = spot_base(&s, &real, err)) < 0)
		return r;
	if ((r = view_entry_make(v, n->mount, n->path, &e, err)) < 0) {
		base_done(&real);
		return r;
	}
	op->mode = mode;
	op->is_dir = n->kind == NODE_DIR;
	base_done(&e->real);
	e->real = real;
	e->now = NOW_REAL;
	e->mode_op = op;
	op_append(v, take_ptr(op));
	return 0;
}

/* Would this link, read from the directory that holds `path`, climb above the mount's root? */
static bool target_climbs(const char *path, const char *target)
{
	int depth = 0;
	for (const char *p = path; (p = strchr(p, '/')); p++)
		depth++;
	for (const char *p = target; *p; p += strspn(p, "/")) {
		size_t n = strcspn(p, "/");
		if (n == 2 && p[0] == '.' && p[1] == '.')
			depth--;
		else if (!(n == 1 && p[0] == '.'))
			depth++;
		if (depth < 0)
			return true;
		p += n;
	}
	return false;
}

static int make_link(struct view *v, const struct node *n, const char *target, struct err *err)
{
	int r;
	struct entry *e;
	_cleanup_(spot_done) struct spot s = {.f.fd = -1};
	_cleanup_(cleanup_op_free) struct op *op = NULL;
	if (v->ws->opt.strict_links)
		return err_set(err, ERR_LINK_REFUSED, "links are refused here");
	if (!*target || strlen(target) >= LIMIT_PATH_BYTES)
		return err_set(err, ERR_PATH_INVALID, "a link's target has 1 to %d bytes",
			LIMIT_PATH_BYTES - 1);
	if ((r = find_spot(v, n, &s, err)) < 0)
		return r;
	if (n->kind != NODE_ABSENT)
		return err_set(err, ERR_EXISTS, "'%s' is there already", n->resolved);
	if (s.f.no_parent)
		return err_set(err, ERR_NOT_FOUND, "'%s': a directory is missing", n->resolved);
	if ((r = op_new(v, CHANGE_LINK, n->mount, n->path, &op, err)) < 0)
		return r;
	if (!(op->target = strdup(target)))
		return err_oom(err);
	if ((r = view_entry_make(v, n->mount, n->path, &e, err)) < 0)
		return r;
	e->now = NOW_LINK;
	e->op = op;
	e->removal = NULL;
	op_append(v, take_ptr(op));
	return 0;
}

int view_symlink(struct view *v, const struct node *n, const char *target, struct err *err)
{
	if (*target == '/' || target_climbs(n->path, target))
		return err_set(err, ERR_PATH_ESCAPE, "the link would lead outside the workspace");
	return make_link(v, n, target, err);
}

int view_symlink_out(struct view *v, const struct node *n, const char *target, struct err *err)
{
	BUG_ON(*target != '/');
	return make_link(v, n, target, err);
}

/* --- removing ------------------------------------------------------------------------------ */

static int check_not_mount(struct view *v, const struct node *n, struct err *err)
{
	const struct mount *m = &v->ws->mounts[n->mount];
	char agent[LIMIT_PATH_BYTES * 2];
	int len = snprintf(agent, sizeof(agent), "%s/%s", m->agent, n->path);
	if (!*n->path || workspace_mount_below(v->ws, agent, (size_t)len))
		return err_set(err, ERR_DENIED, "'%s' is or holds a volume and stays", n->resolved);
	return 0;
}

static int check_empty(struct view *v, const struct node *n, struct err *err)
{
	_cleanup_(cleanup_view_closedir) struct view_dir *d = NULL;
	struct dir_entry e;
	int r = view_opendir(v, n, &d, err);
	if (r == 0)
		r = view_readdir(d, &e, err);
	if (r > 0)
		return err_set(err, ERR_NOT_EMPTY, "'%s' is not empty", n->resolved);
	return r;
}

/* A DELETE operation of what is at a spot, not yet in the list. Its base stays empty when only the
 * view knows the object. */
static int delete_op(
	struct view *v, const struct spot *s, bool recursive, struct op **ret, struct err *err)
{
	int r;
	const struct node *n = s->n;
	const struct entry *e = s->f.entry;
	struct delta sum = {0};
	_cleanup_(cleanup_op_free) struct op *op = NULL;
	if (n->kind == NODE_DIR && ((r = check_not_mount(v, n, err)) < 0 ||
					   (!recursive && (r = check_empty(v, n, err)) < 0)))
		return r;
	if (n->kind == NODE_DIR && (r = view_sum(v, n->mount, n->path, &sum, err)) < 0)
		return r;
	if ((r = op_new(v, CHANGE_DELETE, n->mount, n->path, &op, err)) < 0)
		return r;
	if ((!e || e->now == NOW_REAL) && (r = spot_base(s, &op->base, err)) < 0)
		return r;
	if (e && e->now == NOW_FILE && e->op->base.path &&
		(r = base_set(&op->base, e->op->base.path, &e->op->base.st, err)) < 0)
		return r;
	if (n->kind == NODE_LINK && (r = view_readlink(v, n, &op->target, err)) < 0)
		return r;
	op->is_dir = n->kind == NODE_DIR;
	op->bytes = n->kind == NODE_FILE ? s->f.st.st_size : sum.bytes;
	op->entries = sum.entries + 1;
	*ret = take_ptr(op);
	return 0;
}

/* Take back the operations of everything below a directory that is being removed. */
static void drop_below(struct view *v, unsigned mount, const char *path, struct delta *d)
{
	for (size_t i = 0; i < v->n_buckets; i++)
		for (struct entry *e = v->buckets[i]; e; e = e->next)
			if (e->mount == mount && path_is_below(e->path, path))
				drop_made(v, e, d);
	view_forget_below(v, mount, path);
}

int view_remove(
	struct view *v, const struct node *n, bool recursive, int64_t *ret_removed, struct err *err)
{
	int r;
	struct entry *e;
	struct delta dropped = {0};
	_cleanup_(spot_done) struct spot s = {.f.fd = -1};
	_cleanup_(cleanup_op_free) struct op *op = NULL;
	if (n->kind == NODE_ABSENT)
		return not_a_file(n, err);
	if ((r = find_spot(v, n, &s, err)) < 0 || (r = delete_op(v, &s, recursive, &op, err)) < 0 ||
		(r = view_entry_make(v, n->mount, n->path, &e, err)) < 0)
		return r;
	if (ret_removed)
		*ret_removed = op->entries;
	if (op->is_dir)
		drop_below(v, n->mount, n->path, &dropped);
	bool made = e->now != NOW_NONE && e->now != NOW_REAL && !op->base.path && !e->pinned;
	drop_made(v, e, &dropped);
	op->bytes -= dropped.bytes, op->entries -= dropped.entries;
	base_done(&e->real);
	e->now = NOW_NONE;
	e->op = e->removal = NULL;
	e->pinned = false;
	if (made)
		return 0; /* nothing of it will ever be in the real tree */
	if (S_ISREG(s.f.st.st_mode))
		e->removal = op;
	op_append(v, take_ptr(op));
	return 0;
}

/* --- renaming ------------------------------------------------------------------------------ */

static int check_target(struct view *v, const struct node *from, const struct node *to,
	bool replace, struct err *err)
{
	if (to->lacks_parent)
		return err_set(err, ERR_NOT_FOUND, "'%s': a directory is missing", to->resolved);
	if (from->mount == to->mount && path_is_below(to->path, from->path))
		return err_set(
			err, ERR_INVALID_ARGUMENT, "'%s' cannot move into itself", from->resolved);
	if (to->kind == NODE_ABSENT)
		return 0;
	if (!replace)
		return err_set(err, ERR_EXISTS, "'%s' is there already", to->resolved);
	if (from->kind == NODE_DIR && to->kind != NODE_DIR)
		return err_set(err, ERR_NOT_DIRECTORY, "'%s' is not a directory", to->resolved);
	if (from->kind != NODE_DIR && to->kind == NODE_DIR)
		return err_set(err, ERR_IS_DIRECTORY, "'%s' is a directory", to->resolved);
	return to->kind == NODE_DIR ? check_empty(v, to, err) : 0;
}

/* The entry of the new name takes over what the old one is. */
static void move_entry(struct entry *from, struct entry *to)
{
	base_done(&to->real);
	drop_merged(to);
	to->now = from->now;
	to->op = from->op, to->mode_op = from->mode_op;
	to->real = from->real;
	to->merged_fd = from->merged_fd;
	to->removal = NULL;
	to->pinned = true;
	from->now = NOW_NONE;
	from->op = from->mode_op = from->removal = NULL;
	from->real.path = NULL;
	from->merged_fd = -1;
	from->pinned = false;
}

/* Content or a link that only the view knows: it is simply made under the other name. */
static int rename_made(struct view *v, struct entry *from, struct entry *to, struct err *err)
{
	struct op *op = from->op;
	char *path = strdup(to->path);
	if (!path)
		return err_oom(err);
	free(op->path);
	op->path = path;
	if (op->kind == CHANGE_CREATE && to->removal) {
		op->kind = CHANGE_REPLACE;
		op->base = to->removal->base;
		to->removal->base.path = NULL;
		drop_op(v, &to->removal);
	}
	op_unlink(v, op);
	op_append(v, op);
	move_entry(from, to);
	to->pinned = false;
	return 0;
}

static int rename_op(struct view *v, const struct spot *s, const struct node *to, struct op **ret,
	struct err *err)
{
	int r;
	_cleanup_(cleanup_op_free) struct op *op = NULL;
	const struct entry *e = s->f.entry;
	if ((r = op_new(v, CHANGE_RENAME, to->mount, to->path, &op, err)) < 0)
		return r;
	if (!(op->from = strdup(s->n->path)))
		return err_oom(err);
	if ((!e || e->now == NOW_REAL) && (r = spot_base(s, &op->base, err)) < 0)
		return r;
	op->is_dir = s->n->kind == NODE_DIR;
	op->mode = s->f.st.st_mode & 07777;
	*ret = take_ptr(op);
	return 0;
}

static int rename_here(struct view *v, const struct spot *s, const struct node *to, struct err *err)
{
	int r;
	struct entry *from, *at;
	const struct node *n = s->n;
	_cleanup_(cleanup_op_free) struct op *op = NULL;
	struct base real = {0};
	bool plain = !s->f.entry;
	if ((r = rename_op(v, s, to, &op, err)) < 0)
		return r;
	if (plain && (r = spot_base(s, &real, err)) < 0)
		return r;
	if ((r = view_entry_make(v, to->mount, to->path, &at, err)) < 0) {
		base_done(&real);
		return r;
	}
	if ((r = view_entry_make(v, n->mount, n->path, &from, err)) < 0) {
		base_done(&real);
		if (to->kind == NODE_ABSENT)
			view_entry_forget(v, at); /* alone it would say that something is gone */
		return r;
	}
	if ((from->now == NOW_FILE && from->op->kind == CHANGE_CREATE) || from->now == NOW_LINK)
		return rename_made(v, from, at, err);
	if (plain) {
		from->now = NOW_REAL;
		from->real = real;
	}
	move_entry(from, at);
	pin_above(v, to->mount, to->path);
	pin_above(v, n->mount, n->path);
	if (op->is_dir && (r = view_rekey(v, n->mount, n->path, to->path, err)) < 0)
		return r;
	op_append(v, take_ptr(op));
	return 0;
}

/* --- between mounts: a copy and a removal --------------------------------------------------------
 */

static int copy_list(
	struct view *v, const struct node *from, const char *rel, struct buf *todo, struct err *err)
{
	_cleanup_(cleanup_view_closedir) struct view_dir *d = NULL;
	struct dir_entry e;
	int r = view_opendir(v, from, &d, err);
	while (r == 0 && (r = view_readdir(d, &e, err)) > 0) {
		/* Last in, first out: names lie in the buffer behind a NUL each. */
		buf_putc(todo, '\0');
		buf_printf(todo, "%s/%s", rel, e.name);
		r = buf_check(todo, "the list of files to move", err);
	}
	return r;
}

static int copy_one(struct view *v, const struct node *from, const struct node *to, const char *rel,
	struct buf *todo, struct err *err)
{
	int r;
	_cleanup_close_ int fd = -1;
	_cleanup_free_ char *target = NULL;
	struct staged *s = NULL;
	switch (from->kind) {
	case NODE_DIR:
		r = view_mkdir(v, to, from->st.st_mode & 0777, false, err);
		return r < 0 ? r : copy_list(v, from, rel, todo, err);
	case NODE_LINK:
		r = view_readlink(v, from, &target, err);
		return r < 0 ? r : view_symlink(v, to, target, err);
	case NODE_FILE:
		if ((r = view_open(v, from, &fd, err)) < 0 ||
			(r = staged_new(v, to->mount, &s, err)) < 0)
			return r;
		if ((r = staged_copy(s, fd, 0, -1, err)) < 0) {
			staged_free(s);
			return r;
		}
		return view_put(v, to, s, PUT_CREATE, from->st.st_mode & 0777, NULL, err);
	case NODE_OTHER:
	case NODE_ABSENT: break;
	}
	return not_a_file(from, err);
}

static int move_across(
	struct view *v, const struct node *from, const struct node *to, struct err *err)
{
	int r = 0;
	char path[LIMIT_PATH_BYTES * 2];
	_cleanup_buf_ struct buf todo = buf_init(64 * 1024 * 1024);
	buf_putc(&todo, '\0'); /* one name, "": the object itself */
	while (todo.len > 0 && r == 0) {
		_cleanup_node_ struct node f = {.fd = -1}, t = {.fd = -1};
		const char *last = memrchr(todo.data, '\0', todo.len);
		_cleanup_free_ char *rel = strdup(last + 1);
		if (!rel)
			return err_oom(err);
		todo.len = (size_t)(last - todo.data);
		(void)snprintf(path, sizeof(path), "%s%s", from->path, rel);
		if ((r = view_node_at(v, from->mount, path, &f, err)) < 0)
			break;
		(void)snprintf(path, sizeof(path), "%s%s", to->path, rel);
		if ((r = view_node_at(v, to->mount, path, &t, err)) < 0)
			break;
		r = copy_one(v, &f, &t, rel, &todo, err);
	}
	return r < 0 ? r : view_remove(v, from, true, NULL, err);
}

int view_rename(struct view *v, const struct node *from, const struct node *to, bool replace,
	struct err *err)
{
	int r;
	_cleanup_(spot_done) struct spot s = {.f.fd = -1}, t = {.f.fd = -1};
	if (from->kind == NODE_ABSENT)
		return not_a_file(from, err);
	if ((r = find_spot(v, from, &s, err)) < 0 || (r = find_spot(v, to, &t, err)) < 0)
		return r;
	if (from->mount == to->mount && strcmp(from->path, to->path) == 0)
		return 0;
	if ((from->kind == NODE_DIR && (r = check_not_mount(v, from, err)) < 0) ||
		(r = check_target(v, from, to, replace, err)) < 0)
		return r;
	if (to->kind != NODE_ABSENT && (r = view_remove(v, to, false, NULL, err)) < 0)
		return r;
	if (from->mount != to->mount)
		return move_across(v, from, to, err);
	if (to->kind != NODE_ABSENT) {
		/* The removal has made an entry; look again. */
		spot_done(&s);
		if ((r = find_spot(v, from, &s, err)) < 0)
			return r;
	}
	return rename_here(v, &s, to, err);
}
