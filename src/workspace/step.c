/* Publishing one operation, and taking it back: see step.h. */
#include "workspace/step.h"

#include "sys/fs.h"
#include "sys/tree.h"
#include "workspace/attributes.h"
#include "workspace/view_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

void step_saved_name(uint64_t seq, const struct step *s, char out[STEP_NAME])
{
	(void)snprintf(out, STEP_NAME, "%016" PRIx64 ".%u", seq, s->index);
}

void step_copy_name(uint64_t seq, const struct step *s, char out[STEP_NAME])
{
	(void)snprintf(out, STEP_NAME, "%016" PRIx64 ".%u.c", seq, s->index);
}

struct later later_of(struct step *steps, unsigned n)
{
	enum { FOLLOW_MAX = 100 * 1000 * 1000 };
	uint64_t movers = 0;
	unsigned next = n;
	for (unsigned i = n; i-- > 0;) {
		steps[i].next_mover = next;
		if (steps[i].kind == CHANGE_RENAME || steps[i].kind == CHANGE_DELETE) {
			next = i;
			movers++;
		}
	}
	return (struct later){steps, n, movers * n > FOLLOW_MAX};
}

static bool is_at_or_below(const char *path, const char *dir)
{
	return strcmp(path, dir) == 0 || path_is_below(path, dir);
}

bool later_path(const struct later *l, const struct step *s, char path[STEP_PATH_ROOM])
{
	char moved[STEP_PATH_ROOM];
	(void)snprintf(path, STEP_PATH_ROOM, "%s", s->path);
	for (unsigned i = s->next_mover; !l->lost && i < l->n; i = l->steps[i].next_mover) {
		const struct step *t = &l->steps[i];
		const char *at = t->kind == CHANGE_RENAME ? t->from : t->path;
		if (t->mount != s->mount || !is_at_or_below(path, at))
			continue;
		if (t->kind == CHANGE_DELETE)
			return false;
		(void)snprintf(moved, sizeof(moved), "%s%s", t->path, path + strlen(t->from));
		memcpy(path, moved, sizeof(moved));
	}
	return true;
}

/* Everything one step needs: the open parent of its path, its saved name, what is at both. */
struct site {
	const struct mount *m;
	const struct step *s;
	int dir; /* -1: the parent is not there */
	const char *leaf;
	char saved[STEP_NAME];
	bool there, is_saved;
	bool lost; /* something that belongs to the object could not be given to it */
	struct stat st, saved_st;
};

static void site_done(struct site *t)
{
	cleanup_close(&t->dir);
}

static int site_look(struct site *t, struct err *err)
{
	t->there = t->dir >= 0 && fs_lstat(t->dir, t->leaf, &t->st) == 0;
	if (t->dir >= 0 && !t->there && errno != ENOENT)
		return mount_err(t->m, t->s->path, errno, err);
	t->is_saved = fs_lstat(t->m->saved_fd, t->saved, &t->saved_st) == 0;
	return 0;
}

static int site_open(const struct workspace *ws, uint64_t seq, const struct step *s, struct site *t,
	struct err *err)
{
	*t = (struct site){.m = &ws->mounts[s->mount], .s = s, .dir = -1};
	step_saved_name(seq, s, t->saved);
	int r = mount_open_parent(t->m, s->path, &t->dir, &t->leaf, err);
	/* A parent that is gone, or is no directory any more, is no parent. */
	if (r == -ERR_NOT_FOUND || r == -ERR_NOT_DIRECTORY || r == -ERR_CONFLICT)
		return 0;
	return r;
}

static int conflict(const struct site *t, const char *what, struct err *err)
{
	_cleanup_buf_ struct buf b = buf_init(ERR_TEXT_MAX);
	mount_agent_path(t->m, t->s->path, &b);
	return err_set(err, ERR_CONFLICT, "'%s' %s", buf_str(&b), what);
}

static int refuse(const struct site *t, int errnum, struct err *err)
{
	if (errnum == EEXIST || errnum == ENOTEMPTY)
		return conflict(t, "has been made by somebody else meanwhile", err);
	if (errnum == ENOENT || errnum == ENOTDIR || errnum == ELOOP)
		return conflict(t, "or a directory above it has gone meanwhile", err);
	return mount_err(t->m, t->s->path, errnum, err);
}

/* Open the file of a change in place, which must be the very inode. */
static int open_old(const struct site *t, int *ret_fd, struct err *err)
{
	struct stat st;
	_cleanup_close_ int fd = fs_open(t->dir, t->leaf, O_WRONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	if (fd < 0)
		return refuse(t, errno, err);
	if (fstat(fd, &st) < 0)
		return refuse(t, errno, err);
	if (st.st_ino != t->s->base_ino || !S_ISREG(st.st_mode))
		return conflict(t, "was replaced by somebody else meanwhile", err);
	*ret_fd = take_fd(fd);
	return 0;
}

/* The content of a step: its descriptor, or what the record or the store keeps. */
static int put_content(const struct site *t, int to, int64_t at, struct err *err)
{
	const struct step *s = t->s;
	if (s->content_fd >= 0) {
		if (fs_copy(s->content_fd, 0, to, at, -1) < 0)
			return refuse(t, errno, err);
		return 0;
	}
	if (!(s->flags & STEP_INLINE))
		return conflict(t, "has lost its new content", err);
	return fs_write(to, s->data.p, s->data.n, at) < 0 ? refuse(t, errno, err) : 0;
}

/* --- one kind each: forward and back ------------------------------------------------------------
 */

/* What a new file gets from its directory; content that was staged long before is there now. */
static int inherit(struct site *t, struct err *err)
{
	const struct step *s = t->s;
	_cleanup_close_ int opened = -1;
	mode_t mode =
		s->flags & STEP_UMASKED ? attributes_before_umask(s->mode_after) : s->mode_after;
	if (t->is_saved)
		opened = fs_open(t->m->saved_fd, t->saved, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	int fd = t->is_saved ? opened : s->content_fd;
	int r = fd < 0 ? 1 : attributes_inherit(t->dir, fd, mode);
	if (r < 0)
		return refuse(t, errno, err);
	t->lost |= r > 0;
	return 0;
}

static int create_forward(struct site *t, struct err *err)
{
	const struct step *s = t->s;
	if (t->there && t->st.st_ino == s->content_ino)
		return 0;
	if (t->there)
		return refuse(t, EEXIST, err);
	int r = s->like ? 0 : inherit(t, err);
	if (r < 0)
		return r;
	r = t->is_saved ? fs_rename_new(t->m->saved_fd, t->saved, t->dir, t->leaf)
			: fs_link(s->content_fd, t->dir, t->leaf);
	return r < 0 ? refuse(t, errno, err) : 0;
}

static int create_back(struct site *t, struct err *err)
{
	if (!t->there)
		return 0;
	if (t->st.st_ino != t->s->content_ino)
		return conflict(t, "was changed by somebody else meanwhile", err);
	return unlinkat(t->dir, t->leaf, 0) < 0 ? refuse(t, errno, err) : 0;
}

static int replace_forward(struct site *t, struct err *err)
{
	const struct step *s = t->s;
	if (t->there && t->st.st_ino == s->content_ino)
		return 0;
	if (!t->there || t->st.st_ino != s->base_ino)
		return conflict(t, "was replaced by somebody else meanwhile", err);
	if (!t->is_saved)
		return conflict(t, "has lost its new content", err);
	if (fs_rename_swap(t->m->saved_fd, t->saved, t->dir, t->leaf) < 0)
		return refuse(t, errno, err);
	/* Only now is it certain what was swapped out. */
	struct stat out;
	if (fs_lstat(t->m->saved_fd, t->saved, &out) == 0 && out.st_ino == s->base_ino)
		return 0;
	(void)fs_rename_swap(t->m->saved_fd, t->saved, t->dir, t->leaf);
	return conflict(t, "was replaced by somebody else meanwhile", err);
}

static int replace_back(struct site *t, struct err *err)
{
	const struct step *s = t->s;
	if (t->there && t->st.st_ino == s->base_ino)
		return 0;
	if (!t->there || t->st.st_ino != s->content_ino || !t->is_saved)
		return conflict(t, "was changed by somebody else meanwhile", err);
	return fs_rename_swap(t->m->saved_fd, t->saved, t->dir, t->leaf) < 0 ? refuse(t, errno, err)
									     : 0;
}

static int in_place_forward(struct site *t, struct err *err)
{
	int r;
	_cleanup_close_ int fd = -1;
	if ((r = open_old(t, &fd, err)) < 0 || (r = put_content(t, fd, 0, err)) < 0)
		return r;
	return ftruncate(fd, t->s->size_after) < 0 ? refuse(t, errno, err) : 0;
}

static int in_place_back(struct site *t, struct err *err)
{
	int r;
	_cleanup_close_ int fd = -1, old = -1;
	if ((r = open_old(t, &fd, err)) < 0)
		return r;
	old = fs_open(t->m->saved_fd, t->saved, O_RDONLY | O_NOFOLLOW, 0);
	if (old < 0 || fs_copy(old, 0, fd, 0, -1) < 0 || ftruncate(fd, t->s->size_before) < 0)
		return refuse(t, errno, err);
	return 0;
}

static int append_forward(struct site *t, struct err *err)
{
	int r;
	_cleanup_close_ int fd = -1;
	if ((r = open_old(t, &fd, err)) < 0)
		return r;
	return put_content(t, fd, t->s->size_before, err);
}

static int append_back(struct site *t, struct err *err)
{
	int r;
	_cleanup_close_ int fd = -1;
	if ((r = open_old(t, &fd, err)) < 0)
		return r;
	/* Longer than we ever made it: somebody else has written behind us. */
	if (t->st.st_size > t->s->size_after)
		return conflict(t, "was changed by somebody else meanwhile", err);
	if (t->st.st_size <= t->s->size_before)
		return 0;
	return ftruncate(fd, t->s->size_before) < 0 ? refuse(t, errno, err) : 0;
}

static bool is_base(const struct step *s, const struct stat *st)
{
	return !(s->flags & STEP_BASE) || st->st_ino == s->base_ino;
}

static int delete_forward(struct site *t, struct err *err)
{
	struct stat out;
	if (t->is_saved)
		return 0;
	if (!t->there || !is_base(t->s, &t->st))
		return conflict(t, "was changed by somebody else meanwhile", err);
	if (fs_rename_new(t->dir, t->leaf, t->m->saved_fd, t->saved) < 0)
		return refuse(t, errno, err);
	if (fs_lstat(t->m->saved_fd, t->saved, &out) == 0 && is_base(t->s, &out))
		return 0;
	(void)fs_rename_new(t->m->saved_fd, t->saved, t->dir, t->leaf);
	return conflict(t, "was replaced by somebody else meanwhile", err);
}

static int delete_back(struct site *t, struct err *err)
{
	if (!t->is_saved)
		return 0;
	return fs_rename_new(t->m->saved_fd, t->saved, t->dir, t->leaf) < 0 ? refuse(t, errno, err)
									    : 0;
}

static int mkdir_forward(struct site *t, struct err *err)
{
	const struct step *s = t->s;
	bool free = (s->flags & STEP_UMASKED) && attributes_has_default(t->dir);
	mode_t mode = s->like ? 0700
		      : free  ? attributes_before_umask(s->mode_after)
			      : s->mode_after;
	return mkdirat(t->dir, t->leaf, mode) < 0 ? refuse(t, errno, err) : 0;
}

static int mkdir_back(struct site *t, struct err *err)
{
	if (t->there && unlinkat(t->dir, t->leaf, AT_REMOVEDIR) < 0)
		return refuse(t, errno, err);
	return 0;
}

static bool is_our_link(const struct site *t)
{
	char text[LIMIT_PATH_BYTES];
	ssize_t n = t->there ? readlinkat(t->dir, t->leaf, text, sizeof(text)) : -1;
	return n >= 0 && str_eq_c((struct str){text, (size_t)n}, t->s->target);
}

static int link_forward(struct site *t, struct err *err)
{
	return symlinkat(t->s->target, t->dir, t->leaf) < 0 ? refuse(t, errno, err) : 0;
}

static int link_back(struct site *t, struct err *err)
{
	if (!t->there)
		return 0;
	if (!is_our_link(t))
		return conflict(t, "was changed by somebody else meanwhile", err);
	return unlinkat(t->dir, t->leaf, 0) < 0 ? refuse(t, errno, err) : 0;
}

/* Move between the two names of a RENAME. */
static int move(struct site *t, bool back, struct err *err)
{
	int r;
	const char *leaf;
	_cleanup_close_ int dir = -1;
	struct stat st;
	if ((r = mount_open_parent(t->m, t->s->from, &dir, &leaf, err)) < 0)
		return r;
	int a_dir = back ? t->dir : dir, b_dir = back ? dir : t->dir;
	const char *a = back ? t->leaf : leaf, *b = back ? leaf : t->leaf;
	if (fs_lstat(a_dir, a, &st) < 0 || !is_base(t->s, &st))
		return conflict(t, "was moved by somebody else meanwhile", err);
	return fs_rename_new(a_dir, a, b_dir, b) < 0 ? refuse(t, errno, err) : 0;
}

/* Is the object at its new name (and not at the old)? */
static bool is_moved(const struct site *t)
{
	const char *leaf;
	struct stat st;
	struct err ignored;
	_cleanup_close_ int dir = -1;
	if (!t->there || !is_base(t->s, &t->st))
		return false;
	if (t->s->flags & STEP_BASE)
		return true;
	return mount_open_parent(t->m, t->s->from, &dir, &leaf, &ignored) < 0 ||
	       fs_lstat(dir, leaf, &st) < 0;
}

static int set_mode(struct site *t, mode_t mode, struct err *err)
{
	struct stat st;
	_cleanup_close_ int fd = fs_look(t->dir, t->leaf);
	if (fd < 0 || fstat(fd, &st) < 0)
		return refuse(t, errno, err);
	if (!is_base(t->s, &st) || S_ISLNK(st.st_mode))
		return conflict(t, "was replaced by somebody else meanwhile", err);
	/* As chmod(1) does: a directory's set-group-ID and sticky bits are not part of what is
	 * asked. */
	if (S_ISDIR(st.st_mode))
		mode |= st.st_mode & 07000;
	return fs_chmod(fd, mode) < 0 ? refuse(t, errno, err) : 0;
}

/* --- all kinds ----------------------------------------------------------------------------------
 */

static int is_done(const struct site *t)
{
	const struct step *s = t->s;
	switch (s->kind) {
	case CHANGE_CREATE: return t->there && t->st.st_ino == s->content_ino;
	case CHANGE_REPLACE:
		if (s->flags & STEP_IN_PLACE)
			return 0; /* can be repeated */
		return t->there && t->st.st_ino == s->content_ino;
	case CHANGE_APPEND:
	case CHANGE_MODE: return 0;
	case CHANGE_DELETE: return t->is_saved;
	case CHANGE_RENAME: return is_moved(t);
	case CHANGE_MKDIR: return t->there && S_ISDIR(t->st.st_mode);
	case CHANGE_LINK: return is_our_link(t);
	case CHANGE_KIND_MAX_: break;
	}
	BUG_ON(true);
}

int step_is_done(const struct workspace *ws, uint64_t seq, const struct step *s, struct err *err)
{
	int r;
	_cleanup_(site_done) struct site t = {.dir = -1};
	if ((r = site_open(ws, seq, s, &t, err)) < 0 || (r = site_look(&t, err)) < 0)
		return r;
	return is_done(&t);
}

static int forward(struct site *t, struct err *err)
{
	const struct step *s = t->s;
	switch (s->kind) {
	case CHANGE_CREATE: return create_forward(t, err);
	case CHANGE_REPLACE:
		return s->flags & STEP_IN_PLACE ? in_place_forward(t, err)
						: replace_forward(t, err);
	case CHANGE_APPEND: return append_forward(t, err);
	case CHANGE_DELETE: return delete_forward(t, err);
	case CHANGE_RENAME: return is_moved(t) ? 0 : move(t, false, err);
	case CHANGE_MKDIR: return mkdir_forward(t, err);
	case CHANGE_MODE: return set_mode(t, s->mode_after, err);
	case CHANGE_LINK: return link_forward(t, err);
	case CHANGE_KIND_MAX_: break;
	}
	BUG_ON(true);
}

int step_forward(const struct workspace *ws, uint64_t seq, struct step *s, struct err *err)
{
	int r;
	_cleanup_(site_done) struct site t = {.dir = -1};
	if ((r = site_open(ws, seq, s, &t, err)) < 0)
		return r;
	if (t.dir < 0)
		return refuse(&t, ENOENT, err);
	if ((r = site_look(&t, err)) < 0)
		return r;
	r = forward(&t, err);
	s->flags |= t.lost ? STEP_LOST : 0;
	return r;
}

static int back(struct site *t, struct err *err)
{
	const struct step *s = t->s;
	switch (s->kind) {
	case CHANGE_CREATE: return create_back(t, err);
	case CHANGE_REPLACE:
		return s->flags & STEP_IN_PLACE ? in_place_back(t, err) : replace_back(t, err);
	case CHANGE_APPEND: return append_back(t, err);
	case CHANGE_DELETE: return delete_back(t, err);
	case CHANGE_RENAME: return is_moved(t) ? move(t, true, err) : 0;
	case CHANGE_MKDIR: return mkdir_back(t, err);
	case CHANGE_MODE: return set_mode(t, s->mode_before, err);
	case CHANGE_LINK: return link_back(t, err);
	case CHANGE_KIND_MAX_: break;
	}
	BUG_ON(true);
}

int step_back(const struct workspace *ws, uint64_t seq, const struct step *s, struct err *err)
{
	int r;
	_cleanup_(site_done) struct site t = {.dir = -1};
	if ((r = site_open(ws, seq, s, &t, err)) < 0)
		return r;
	if (t.dir < 0)
		return refuse(&t, ENOENT, err);
	if ((r = site_look(&t, err)) < 0)
		return r;
	return back(&t, err);
}

bool step_is_possible(const struct workspace *ws, uint64_t seq, const struct step *s)
{
	char name[STEP_NAME];
	struct stat st;
	bool in_place = s->kind == CHANGE_APPEND || (s->flags & STEP_IN_PLACE);
	bool needs = in_place || s->kind == CHANGE_CREATE || s->kind == CHANGE_REPLACE;
	if (!needs || s->content_fd >= 0)
		return true;
	if (in_place)
		return s->flags & STEP_INLINE;
	step_saved_name(seq, s, name);
	return fs_lstat(ws->mounts[s->mount].saved_fd, name, &st) == 0 &&
	       st.st_ino == s->content_ino;
}

/* --- from the record alone -------------------------------------------------------------------- */

static int remake(struct site *t, int fd, uint64_t *ret_ino, struct err *err)
{
	int r;
	struct stat st;
	_cleanup_close_ int old = -1;
	if ((r = put_content(t, fd, 0, err)) < 0)
		return r;
	if (t->there && S_ISREG(t->st.st_mode))
		old = fs_open(t->dir, t->leaf, O_RDONLY | O_NONBLOCK | O_NOFOLLOW, 0);
	/* The first time the attributes could be kept, else the change were one in place. */
	if (t->s->like)
		(void)attributes_restore(t->m->saved_fd, t->s->like, fd, t->s->mode_after);
	else if (old >= 0)
		(void)attributes_copy(old, &t->st, fd, t->s->mode_after);
	if (!t->s->like && fchmod(fd, t->s->mode_after) < 0)
		return refuse(t, errno, err);
	if (fstat(fd, &st) < 0)
		return refuse(t, errno, err);
	*ret_ino = st.st_ino;
	return 0;
}

int step_remake(const struct workspace *ws, uint64_t seq, struct step *s, struct err *err)
{
	int r;
	_cleanup_(site_done) struct site t = {.dir = -1};
	if ((r = site_open(ws, seq, s, &t, err)) < 0 || (r = site_look(&t, err)) < 0)
		return r;
	(void)unlinkat(t.m->saved_fd, t.saved, 0);
	_cleanup_close_ int fd = openat(
		t.m->saved_fd, t.saved, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return refuse(&t, errno, err);
	return remake(&t, fd, &s->content_ino, err);
}

enum step_content step_compare(const struct workspace *ws, const struct step *s)
{
	struct stat st;
	_cleanup_free_ char *is = malloc(s->data.n + 1);
	_cleanup_close_ int fd = fs_open(
		ws->mounts[s->mount].root_fd, s->path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW, 0);
	if (fd < 0 || !is || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return STEP_CONTENT_OTHER;
	if (st.st_size < s->size_after)
		return STEP_CONTENT_SHORT;
	off_t at = s->kind == CHANGE_APPEND ? s->size_before : 0;
	if (fs_read(fd, is, s->data.n, at) != (ssize_t)s->data.n)
		return STEP_CONTENT_SHORT;
	if (memcmp(is, s->data.p, s->data.n) == 0)
		return STEP_CONTENT_SAME;
	/* In a block that the disk had already, the size may be newer than the bytes: they are
	 * zeros then. */
	for (size_t i = 0; i < s->data.n; i++)
		if (is[i] != s->data.p[i] && is[i] != 0)
			return STEP_CONTENT_OTHER;
	return STEP_CONTENT_SHORT;
}

int step_rewrite(
	const struct workspace *ws, const struct step *s, uint64_t ino, int64_t at, struct err *err)
{
	struct stat st;
	const struct mount *m = &ws->mounts[s->mount];
	_cleanup_close_ int fd =
		fs_open(m->root_fd, s->path, O_WRONLY | O_NONBLOCK | O_NOFOLLOW, 0);
	if (fd < 0 || fstat(fd, &st) < 0)
		return mount_err(m, s->path, errno, err);
	if (st.st_ino != ino || !S_ISREG(st.st_mode))
		return err_set(err, ERR_CONFLICT, "a file was replaced meanwhile");
	return fs_write(fd, s->data.p, s->data.n, at) < 0 ? mount_err(m, s->path, errno, err) : 0;
}

void step_settle(const struct workspace *ws, const struct later *l, struct step *s)
{
	char path[STEP_PATH_ROOM];
	const struct mount *m = &ws->mounts[s->mount];
	if (s->kind != CHANGE_MKDIR || !s->like)
		return;
	if (!later_path(l, s, path))
		return;
	_cleanup_close_ int fd = fs_open(m->root_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (fd < 0 || l->lost || !attributes_restore(m->saved_fd, s->like, fd, s->mode_after))
		s->flags |= STEP_LOST;
}

void step_keep(const struct workspace *ws, uint64_t seq, const struct step *s, bool keep)
{
	char name[STEP_NAME], copy[STEP_NAME];
	int fd = ws->mounts[s->mount].saved_fd;
	bool saves = s->kind == CHANGE_DELETE || s->kind == CHANGE_REPLACE;
	if (!saves)
		return;
	step_saved_name(seq, s, name);
	step_copy_name(seq, s, copy);
	if (keep && (s->flags & STEP_COPIED))
		(void)renameat(fd, copy, fd, name);
	if (keep)
		return;
	if (s->flags & STEP_COPIED)
		(void)unlinkat(fd, copy, 0);
	(void)tree_remove(fd, name);
}

void step_drop(const struct workspace *ws, uint64_t seq, const struct step *s)
{
	char name[STEP_NAME];
	int fd = ws->mounts[s->mount].saved_fd;
	if (s->flags & (STEP_NAMED | STEP_IN_PLACE)) {
		step_saved_name(seq, s, name);
		(void)unlinkat(fd, name, 0);
	}
	if (s->flags & STEP_COPIED) {
		step_copy_name(seq, s, name);
		(void)unlinkat(fd, name, 0);
	}
}
