/*
 * Taking changes back: each change of a record, from the last to the first, is reversed in a view.
 *
 * Whether something is still as the record left it is judged by inode, size and time of the
 * content; the time of the inode itself (ctime) would also change by renaming.
 */
#include "workspace/history_impl.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

enum {
	OPEN_MAX = 256,               /* descriptors for beginnings of files */
	NAMES_MAX = 64 * 1024 * 1024, /* bytes of paths of a deleted directory */
};

/* One change that is being reversed. */
struct step_back {
	struct reversal *rv;
	uint64_t seq;
	unsigned mount;
	const struct record_change *c;
	struct node n; /* what is at its path in the view */
};

static int conflict(const struct step_back *b, const char *path, const char *what, struct err *err)
{
	_cleanup_buf_ struct buf t = buf_init(ERR_TEXT_MAX);
	mount_agent_path(&b->rv->ws->mounts[b->mount], path, &t);
	return err_set(
		err, ERR_CONFLICT, "'%s' %s since change %" PRIu64, buf_str(&t), what, b->seq);
}

static int lost(const struct step_back *b, const char *path, const char *what, struct err *err)
{
	_cleanup_buf_ struct buf t = buf_init(ERR_TEXT_MAX);
	mount_agent_path(&b->rv->ws->mounts[b->mount], path, &t);
	return err_set(err, ERR_NO_UNDO, "change %" PRIu64 " cannot be taken back: %s of '%s' %s",
		b->seq, "what it needs", buf_str(&t), what);
}

/* --- is it as the record left it? ---------------------------------------------------------------
 */

static bool same_time(struct timespec a, struct timespec b)
{
	return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

static bool identity_fits(const struct identity *left, const struct identity *now, bool is_file)
{
	if (left->ino != 0 && left->ino != now->ino)
		return false;
	if (!is_file)
		return true;
	if (left->size >= 0 && left->size != now->size)
		return false;
	return left->mtime.tv_sec == 0 || now->mtime.tv_sec == 0 ||
	       same_time(left->mtime, now->mtime);
}

/* Is it what the record left, or what an undoing has made to stand for that? */
static bool object_fits(
	const struct reversal *rv, const struct identity *left, const struct stat *st)
{
	struct identity id = identity_of(st);
	bool is_file = S_ISREG(st->st_mode), fits = identity_fits(left, &id, is_file);
	for (size_t i = 0; !fits && rv->aliases && i < rv->aliases->n; i++) {
		if (!aliases_resolve(rv->aliases, is_file, &id))
			break;
		fits = identity_fits(left, &id, is_file);
	}
	return fits;
}

/* A moved object may have been changed since; it must only be the same. */
static bool same_inode(const struct reversal *rv, uint64_t ino, const struct stat *st)
{
	struct identity id = identity_of(st);
	for (size_t i = 0; id.ino != ino && rv->aliases && i < rv->aliases->n; i++)
		if (!aliases_resolve(rv->aliases, false, &id))
			break;
	return ino == 0 || id.ino == ino;
}

/* Content that a newer change has replaced: what is kept of it is what must fit. */
static bool kept_fits(const struct identity *left, struct staged *s)
{
	struct stat st;
	struct err ignored;
	if (left->size >= 0 && left->size != s->size)
		return false;
	if (!s->borrowed || s->is_copy || staged_reopen(s, &ignored) < 0)
		return true;
	bool fits = fstat(s->fd, &st) == 0 && (left->ino == 0 || left->ino == st.st_ino) &&
		    (st.st_size != s->size || left->mtime.tv_sec == 0 ||
			    same_time(left->mtime, st.st_mtim));
	staged_rest(s);
	return fits;
}

static struct staged *content_at(const struct view *v, unsigned mount, const char *path)
{
	const struct entry *e = view_entry(v, mount, path, strlen(path));
	return e && e->now == NOW_FILE ? e->op->content : NULL;
}

/* 1: go on, 0: leave this change alone, <0: conflict. */
static int check_left(const struct step_back *b, enum node_kind kind, struct err *err)
{
	const struct record_change *c = b->c;
	if (b->n.kind == NODE_ABSENT)
		return b->rv->strict ? conflict(b, c->path, "has gone", err) : 0;
	if (b->n.kind != kind)
		return b->rv->strict ? conflict(b, c->path, "has been replaced", err) : 0;
	if (!b->rv->strict)
		return 1;
	struct staged *s = content_at(b->rv->v, b->mount, c->path);
	const struct entry *e = view_entry(b->rv->v, b->mount, c->path, strlen(c->path));
	bool made = e && (e->now == NOW_DIR || e->now == NOW_LINK);
	bool fits = s ? kept_fits(&c->after, s) : made || object_fits(b->rv, &c->after, &b->n.st);
	return fits ? 1 : conflict(b, c->path, "has been changed", err);
}

/* A refusal of the view in the course of undoing means that the tree is not as it was. */
static int as_conflict(const struct step_back *b, const char *path, int r, struct err *err)
{
	switch (-r) {
	case ERR_NOT_FOUND: return conflict(b, path, "or a directory above it has gone", err);
	case ERR_EXISTS: return conflict(b, path, "has been made", err);
	case ERR_NOT_EMPTY: return conflict(b, path, "has been filled", err);
	case ERR_NOT_DIRECTORY:
	case ERR_IS_DIRECTORY: return conflict(b, path, "has been replaced", err);
	default: return r;
	}
}

static enum node_kind kind_of_change(const struct record_change *c)
{
	if (c->flags & RECORD_IS_DIR)
		return NODE_DIR;
	return c->kind == CHANGE_LINK ? NODE_LINK : NODE_FILE;
}

/* --- one kind each ------------------------------------------------------------------------------
 */

static int remove_made(struct step_back *b, struct err *err)
{
	int r = check_left(b, kind_of_change(b->c), err);
	if (r <= 0)
		return r;
	r = view_remove(b->rv->v, &b->n, false, NULL, err);
	if (r == -ERR_NOT_EMPTY && !b->rv->strict)
		return 0;
	return r < 0 ? as_conflict(b, b->c->path, r, err) : 0;
}

/* Borrow what is kept below `saved/` at a path. */
static int borrow(struct step_back *b, const char *kept, const struct stat *st, struct staged **ret,
	struct err *err)
{
	int r = staged_borrow(b->rv->v, b->mount, kept, -1, st->st_size, ret, err);
	if (r == 0)
		(*ret)->is_copy = (b->c->flags & (RECORD_IN_PLACE | RECORD_COPIED)) != 0;
	return r;
}

static int look_at_kept(const struct step_back *b, struct stat *ret, struct err *err)
{
	const struct record_change *c = b->c;
	if (!c->saved[0])
		return lost(b, c->path, "was not kept", err);
	if (fs_lstat(b->rv->ws->mounts[b->mount].saved_fd, c->saved, ret) < 0)
		return lost(b, c->path, "is no longer kept", err);
	return 0;
}

static int put_kept(struct step_back *b, const struct node *n, const char *kept,
	const struct stat *st, struct err *err)
{
	struct staged *s = NULL;
	int r = borrow(b, kept, st, &s, err);
	if (r < 0)
		return r;
	unsigned how = b->rv->strict ? PUT_EITHER : PUT_EITHER | PUT_PARENTS;
	return view_put(b->rv->v, n, s, (enum put_how)how, st->st_mode & 0777, NULL, err);
}

/* New content with another mode is one change; a replacement alone keeps the mode that is there. */
static int put_mode_back(struct step_back *b, struct err *err)
{
	const struct record_change *c = b->c;
	_cleanup_node_ struct node n = {.fd = -1};
	if (((c->mode_before ^ c->mode_after) & 0777) == 0)
		return 0;
	int r = view_node_at(b->rv->v, b->mount, c->path, &n, err);
	return r < 0 ? r : view_chmod(b->rv->v, &n, c->mode_before & 0777, err);
}

static int put_back(struct step_back *b, struct err *err)
{
	struct stat st;
	int r = check_left(b, NODE_FILE, err);
	if (r <= 0)
		return r;
	if ((r = look_at_kept(b, &st, err)) < 0)
		return r;
	if (!S_ISREG(st.st_mode))
		return lost(b, b->c->path, "is no file", err);
	r = put_kept(b, &b->n, b->c->saved, &st, err);
	return r < 0 ? as_conflict(b, b->c->path, r, err) : put_mode_back(b, err);
}

/* The beginning of a real file: borrowed as long as descriptors are few, else copied. */
static int beginning(struct step_back *b, struct staged **ret, struct err *err)
{
	int r;
	_cleanup_close_ int fd = -1;
	struct view *v = b->rv->v;
	struct staged *s = content_at(v, b->mount, b->c->path);
	if (s && s->kept) {
		r = staged_borrow(v, b->mount, s->kept, -1, b->c->size_before, ret, err);
		if (r == 0)
			(*ret)->is_copy = s->is_copy;
		return r;
	}
	if ((r = view_open(v, &b->n, &fd, err)) < 0)
		return r;
	if (b->rv->open < OPEN_MAX) {
		b->rv->open++;
		return staged_borrow(v, b->mount, NULL, take_fd(fd), b->c->size_before, ret, err);
	}
	if ((r = staged_new(v, b->mount, &s, err)) < 0)
		return r;
	if ((r = staged_copy(s, fd, 0, b->c->size_before, err)) < 0) {
		staged_free(s);
		return r;
	}
	*ret = s;
	return 0;
}

static int cut_tail(struct step_back *b, struct err *err)
{
	struct staged *s = NULL;
	int r = check_left(b, NODE_FILE, err);
	if (r <= 0)
		return r;
	/* Without knowing that nobody has cut it, a shorter file keeps what it has. */
	if (b->n.st.st_size < b->c->size_before)
		return b->rv->strict ? conflict(b, b->c->path, "has been changed", err) : 0;
	if ((r = beginning(b, &s, err)) < 0)
		return r;
	return view_put(b->rv->v, &b->n, s, PUT_REPLACE, 0, NULL, err);
}

/* Make a link as it was, also one that an agent could not make. */
static int put_link(struct step_back *b, const struct node *n, const char *target, struct err *err)
{
	struct view *v = b->rv->v;
	int r = view_symlink(v, n, target, err);
	if (r != -ERR_PATH_ESCAPE)
		return r;
	if ((r = view_symlink(v, n, ".", err)) < 0)
		return r;
	struct entry *e = view_entry(v, n->mount, n->path, strlen(n->path));
	char *copy = strdup(target);
	if (!copy)
		return err_oom(err);
	free(e->op->target);
	e->op->target = copy;
	return 0;
}

static int put_kept_link(
	struct step_back *b, const struct node *n, const char *kept, struct err *err)
{
	char target[LIMIT_PATH_BYTES];
	_cleanup_close_ int fd = fs_look(b->rv->ws->mounts[b->mount].saved_fd, kept);
	ssize_t len = fd < 0 ? -1 : readlinkat(fd, "", target, sizeof(target) - 1);
	if (len < 0)
		return err_sys(err, errno, "reading a link that is kept");
	target[len] = '\0';
	return put_link(b, n, target, err);
}

static int put_dir(struct step_back *b, const struct node *n, const char *kept,
	const struct stat *st, struct err *err)
{
	struct view *v = b->rv->v;
	int r = view_mkdir(v, n, st->st_mode & 0777, !b->rv->strict, err);
	const struct entry *e = view_entry(v, n->mount, n->path, strlen(n->path));
	return r < 0 || !e || !e->op ? r : op_like(e->op, kept, err);
}

/* Put one object back at a path (below the change's own when it was a directory). */
static int put_object(struct step_back *b, const char *path, const char *kept,
	const struct stat *st, struct err *err)
{
	int r;
	struct view *v = b->rv->v;
	_cleanup_node_ struct node n = {.fd = -1};
	if ((r = view_node_at(v, b->mount, path, &n, err)) < 0)
		return r;
	if (n.kind != NODE_ABSENT && b->rv->strict)
		return conflict(b, path, "has been made", err);
	if (S_ISDIR(st->st_mode))
		r = n.kind == NODE_ABSENT ? put_dir(b, &n, kept, st, err) : 0;
	else if (S_ISREG(st->st_mode))
		r = n.kind == NODE_ABSENT || n.kind == NODE_FILE ? put_kept(b, &n, kept, st, err)
								 : 0;
	else if (S_ISLNK(st->st_mode))
		r = n.kind == NODE_ABSENT ? put_kept_link(b, &n, kept, err) : 0;
	else
		return b->rv->strict ? lost(b, path, "is a special file", err) : 0;
	return r < 0 ? as_conflict(b, path, r, err) : 0;
}

/* Append the names of a kept directory to the list of what is still to be put back. */
static int list_kept(const struct step_back *b, const char *rel, const char *kept, struct buf *todo,
	struct err *err)
{
	int saved = b->rv->ws->mounts[b->mount].saved_fd;
	int fd = fs_open(saved, kept, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	if (!d) {
		int e = errno;
		cleanup_close(&fd);
		return err_sys(err, e, "listing a directory that is kept");
	}
	for (const struct dirent *e; (e = readdir(d));)
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) {
			buf_putc(todo, '\0');
			buf_printf(todo, "%s/%s", rel, e->d_name);
		}
	(void)closedir(d);
	return buf_check(todo, "the list of names of a deleted directory", err);
}

static int put_one_of_tree(struct step_back *b, const char *rel, struct buf *todo, struct err *err)
{
	int r;
	struct stat st;
	char path[LIMIT_PATH_BYTES * 2], kept[LIMIT_PATH_BYTES * 2];
	(void)snprintf(path, sizeof(path), "%s%s", b->c->path, rel);
	(void)snprintf(kept, sizeof(kept), "%s%s", b->c->saved, rel);
	_cleanup_close_ int fd = fs_look(b->rv->ws->mounts[b->mount].saved_fd, kept);
	if (fd < 0 || fstat(fd, &st) < 0)
		return lost(b, path, "is no longer kept", err);
	if ((r = put_object(b, path, kept, &st, err)) < 0)
		return r;
	return S_ISDIR(st.st_mode) ? list_kept(b, rel, kept, todo, err) : 0;
}

/* Everything below a deleted directory, the directory itself first. */
static int put_tree(struct step_back *b, struct err *err)
{
	int r = 0;
	_cleanup_buf_ struct buf todo = buf_init(NAMES_MAX);
	buf_putc(&todo, '\0'); /* one name, "": the directory itself */
	while (todo.len > 0 && r == 0) {
		const char *last = memrchr(todo.data, '\0', todo.len);
		_cleanup_free_ char *rel = strdup(last + 1);
		if (!rel)
			return err_oom(err);
		todo.len = (size_t)(last - todo.data);
		todo.data[todo.len] = '\0';
		r = put_one_of_tree(b, rel, &todo, err);
	}
	return r;
}

static int put_deleted(struct step_back *b, struct err *err)
{
	struct stat st;
	if (b->n.kind != NODE_ABSENT && b->rv->strict)
		return conflict(b, b->c->path, "has been made", err);
	int r = look_at_kept(b, &st, err);
	return r < 0 ? r : put_tree(b, err);
}

static int move_back(struct step_back *b, struct err *err)
{
	int r;
	_cleanup_node_ struct node from = {.fd = -1};
	bool strict = b->rv->strict;
	if (b->n.kind == NODE_ABSENT)
		return strict ? conflict(b, b->c->path, "has gone", err) : 0;
	if (strict && !view_entry(b->rv->v, b->mount, b->c->path, strlen(b->c->path)) &&
		!same_inode(b->rv, b->c->after.ino, &b->n.st))
		return conflict(b, b->c->path, "has been replaced", err);
	if ((r = view_node_at(b->rv->v, b->mount, b->c->from, &from, err)) < 0)
		return r;
	if (from.kind != NODE_ABSENT || from.lacks_parent)
		return strict ? conflict(b, b->c->from,
					from.kind == NODE_ABSENT ? "has no directory any more"
								 : "has been made",
					err)
			      : 0;
	r = view_rename(b->rv->v, &b->n, &from, false, err);
	return r < 0 ? as_conflict(b, b->c->path, r, err) : 0;
}

static int change_mode_back(struct step_back *b, struct err *err)
{
	if (b->n.kind == NODE_ABSENT || b->n.kind == NODE_LINK)
		return b->rv->strict ? conflict(b, b->c->path, "has gone", err) : 0;
	if (b->rv->strict && (b->n.st.st_mode & 07777) != (b->c->mode_after & 07777))
		return conflict(b, b->c->path, "has another mode", err);
	return view_chmod(b->rv->v, &b->n, b->c->mode_before & 0777, err);
}

static int unlink_made(struct step_back *b, struct err *err)
{
	_cleanup_free_ char *target = NULL;
	int r = check_left(b, NODE_LINK, err);
	if (r <= 0)
		return r;
	if ((r = view_readlink(b->rv->v, &b->n, &target, err)) < 0)
		return r;
	if (strcmp(target, b->c->target) != 0)
		return b->rv->strict ? conflict(b, b->c->path, "has been replaced", err) : 0;
	return view_remove(b->rv->v, &b->n, false, NULL, err);
}

static int reverse_change(struct step_back *b, struct err *err)
{
	switch (b->c->kind) {
	case CHANGE_CREATE:
	case CHANGE_MKDIR: return remove_made(b, err);
	case CHANGE_REPLACE: return put_back(b, err);
	case CHANGE_APPEND: return cut_tail(b, err);
	case CHANGE_DELETE: return put_deleted(b, err);
	case CHANGE_RENAME: return move_back(b, err);
	case CHANGE_MODE: return change_mode_back(b, err);
	case CHANGE_LINK: return unlink_made(b, err);
	case CHANGE_KIND_MAX_: break;
	}
	BUG_ON(true);
}

/* --- records ------------------------------------------------------------------------------------
 */

static int reverse_one(struct reversal *rv, const struct record *head,
	const struct record_change *c, struct err *err)
{
	int m = history_mount(rv->ws, head, c->mount);
	if (m < 0)
		return err_set(err, ERR_NO_UNDO,
			"change %" PRIu64 " was made in '%s', which is not there now", head->seq,
			head->mounts[c->mount]);
	struct step_back b = {
		.rv = rv, .seq = head->seq, .mount = (unsigned)m, .c = c, .n = {.fd = -1}};
	int r = view_node_at(rv->v, b.mount, c->path, &b.n, err);
	if (r == 0)
		r = reverse_change(&b, err);
	node_done(&b.n);
	return r;
}

/* The inodes of a record mean nothing when its files have been copied since. */
static bool is_of_copy(const struct reversal *rv, const struct record *head)
{
	const struct store *s = rv->ws->stores[0];
	return s && head->seq <= atomic_load(&s->st->copied_upto);
}

int reverse_record(struct reversal *rv, struct record_reader *r, struct err *err)
{
	int e;
	bool copied = is_of_copy(rv, &r->head);
	size_t n = 0;
	if (rv->strict && !r->head.undoable)
		return err_set(err, ERR_NO_UNDO, "change %" PRIu64 " cannot be taken back: %s",
			r->head.seq, r->head.why_not);
	_cleanup_free_ struct record_change *all =
		calloc((size_t)r->head.n_changes + 1, sizeof(*all));
	if (!all)
		return err_oom(err);
	for (; (e = record_next(r, &all[n], err)) == 1; n++)
		if (copied)
			all[n].after.ino = 0;
	while (e == 0 && n > 0)
		e = reverse_one(rv, &r->head, &all[--n], err);
	return e;
}

int reverse_since(struct reversal *rv, uint64_t since, struct err *err)
{
	struct store *s;
	struct record_reader rec;
	int r = history_store(rv->ws, &s, err);
	if (r < 0)
		return r;
	uint64_t next = atomic_load(&s->st->done);
	if (since > next)
		return err_set(err, ERR_NOT_FOUND, "there is no change %" PRIu64 " yet", since);
	_cleanup_history_place_ struct history_place p;
	history_at_end(&p, s);
	while (next > since) {
		if ((r = history_back(&p, &rec, err)) < 0)
			return r;
		if (r == 1 && rec.head.seq > next)
			continue; /* committed while we look */
		if (r == 0 || rec.head.seq != next)
			return err_set(err, ERR_NO_UNDO,
				"the history does not reach back to change %" PRIu64, since);
		if ((r = reverse_record(rv, &rec, err)) < 0)
			return r;
		next--;
	}
	return 0;
}

int reverse_known(struct reversal *rv, struct err *err)
{
	struct store *s;
	struct record_reader rec;
	int r = history_store(rv->ws, &s, err);
	if (r < 0)
		return r;
	uint64_t next = 0;
	_cleanup_history_place_ struct history_place p;
	history_at_end(&p, s);
	/* A change that cannot be taken back, or a gap, is where the known states begin. */
	while ((r = history_back(&p, &rec, err)) == 1 && rec.head.undoable &&
		(next == 0 || rec.head.seq == next)) {
		next = rec.head.seq - 1;
		if ((r = reverse_record(rv, &rec, err)) < 0)
			return r;
		if (next == 0)
			return 0;
	}
	return r < 0 ? r : 0;
}

/* --- owning -------------------------------------------------------------------------------------
 */

static int own(struct view *v, struct op *op, struct err *err)
{
	int r;
	struct staged *from = op->content;
	_cleanup_(cleanup_staged_free) struct staged *s = NULL;
	if ((r = staged_reopen(from, err)) < 0)
		return err_wrap(err, "what history keeps");
	if ((r = staged_new(v, op->mount, &s, err)) < 0 ||
		(r = staged_copy(s, from->fd, 0, from->size, err)) < 0)
		return r;
	if (s->size != from->size)
		return err_set(err, ERR_CONFLICT, "a file became shorter meanwhile");
	if (s->name[0]) {
		cleanup_close(&s->fd);
		s->fd = -1;
		v->staged_open--;
	}
	/* What is made anew gets the attributes, too; a replacement keeps those that are there. */
	if (op->kind == CHANGE_CREATE && from->kept && (r = op_like(op, from->kept, err)) < 0)
		return r;
	staged_free(from);
	op->content = take_ptr(s);
	return 0;
}

int history_own(struct view *v, struct err *err)
{
	int r = 0;
	for (struct op *op = v->first; op && r == 0; op = op->next)
		if (op->content && op->content->borrowed)
			r = own(v, op, err);
	return r;
}

/* --- undo ---------------------------------------------------------------------------------------
 */

/* The record to take back: the one with this number, or the newest that is neither undone nor
 * itself an undoing. */
static bool is_wanted(const struct record *r, uint64_t seq, bool undone)
{
	if (r->type != RECORD_COMMIT)
		return false;
	return seq ? r->seq == seq : !undone && r->undoes == 0;
}

static int find_record(const struct workspace *ws, struct history_place *p, uint64_t seq,
	struct aliases *aliases, struct record_reader *ret, struct err *err)
{
	int r;
	bool undone = false;
	_cleanup_(undone_done) struct undone u = {0};
	while ((r = history_back(p, ret, err)) == 1) {
		if ((r = undone_meet(&u, &ret->head, &undone, err)) < 0)
			return r;
		if (!is_wanted(&ret->head, seq, undone)) {
			if ((r = aliases_meet(ws, aliases, *ret, err)) < 0)
				return r;
			continue;
		}
		if (undone)
			return err_set(
				err, ERR_CONFLICT, "change %" PRIu64 " is undone already", seq);
		return 0;
	}
	if (r < 0)
		return r;
	if (seq == 0)
		return err_set(err, ERR_NO_UNDO, "there is no change to undo");
	return err_set(err, ERR_NO_UNDO, "the history does not hold change %" PRIu64, seq);
}

int history_undo(
	struct workspace *ws, struct view *v, uint64_t seq, uint64_t *ret_seq, struct err *err)
{
	int r;
	struct store *s;
	struct record_reader rec;
	_cleanup_(aliases_done) struct aliases aliases = {0};
	struct reversal rv = {.ws = ws, .aliases = &aliases, .v = v, .strict = true};
	_cleanup_history_place_ struct history_place p = {0};
	if ((r = history_store(ws, &s, err)) < 0)
		return r;
	history_at_end(&p, s);
	if ((r = find_record(ws, &p, seq, &aliases, &rec, err)) < 0)
		return r;
	aliases_finish(&aliases);
	uint64_t found = rec.head.seq;
	if ((r = reverse_record(&rv, &rec, err)) < 0 || (r = history_own(v, err)) < 0)
		return r;
	v->undoes = found;
	*ret_seq = found;
	return 0;
}
