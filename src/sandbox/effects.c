/* Upper layer to view: see effects.h. */
#include "sandbox/effects.h"

#include "sandbox/gitguard.h"
#include "sys/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

enum { COMPARE_CHUNK = 64 * 1024 };

/* What is done when everything has been taken: a directory gets a mode that its owner could not
 * work in; a path is looked at again with what is around it (`mode` is then a length). */
struct late_mode {
	struct late_mode *next;
	mode_t mode;
	char path[];
};

struct effects {
	struct view *view;
	struct timespec since;
	struct late_mode *late; /* the newest first, so inner directories before outer ones */
	struct late_mode *bare; /* paths that must not come into a repository without a `.git` */
	unsigned left_out, n_late, held_back;
	char first_left_out[256], first_held_back[256];
	char *a, *b; /* COMPARE_CHUNK bytes each; owned */
};

int effects_new(struct view *v, const struct timespec *since, struct effects **ret, struct err *err)
{
	_cleanup_(cleanup_effects_free) struct effects *e = calloc(1, sizeof(*e));
	if (!e)
		return err_oom(err);
	e->view = v;
	e->since = *since;
	e->a = malloc(COMPARE_CHUNK);
	e->b = malloc(COMPARE_CHUNK);
	if (!e->a || !e->b)
		return err_oom(err);
	*ret = take_ptr(e);
	return 0;
}

static void free_list(struct late_mode *l)
{
	while (l) {
		struct late_mode *next = l->next;
		free(l);
		l = next;
	}
}

void effects_free(struct effects *e)
{
	if (!e)
		return;
	free_list(e->late);
	free_list(e->bare);
	free(e->a);
	free(e->b);
	free(e);
}

/* --- what is there now ------------------------------------------------------------------------ */

/* The object at an entry's path. Directories above it have been made by entries before it, so a
 * path that leads elsewhere is a lie. */
static int find(struct effects *e, struct str path, struct node *ret, struct err *err)
{
	int r = view_resolve(e->view, path, RESOLVE_NOFOLLOW, ret, err);
	if (r < 0)
		return r;
	if (ret->mount == 0 && str_eq_c(path, ret->path) && !ret->lacks_parent)
		return 0;
	if (ret->mount != 0)
		r = err_set(err, ERR_UNSUPPORTED,
			"%s: commands cannot change what is mounted there", ret->resolved);
	else
		r = err_set(err, ERR_CORRUPT, "%s: the fence named another place", ret->resolved);
	node_done(ret);
	return r;
}

static bool later(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec : a->tv_nsec > b->tv_nsec;
}

/* Nobody else has touched what is about to go since the command began. */
static int unchanged(const struct effects *e, const struct node *n, struct err *err)
{
	if (n->kind == NODE_ABSENT || n->staged || n->fd < 0 || !later(&n->id.ctime, &e->since))
		return 0;
	return err_set(err, ERR_CONFLICT, "%s was changed while the command ran", n->resolved);
}

/* Remove what is there, so that something of another kind can be made; `n` is then absent. */
static int clear(struct effects *e, struct str path, struct node *n, struct err *err)
{
	int r = unchanged(e, n, err);
	if (r < 0 || n->kind == NODE_ABSENT)
		return r;
	if ((r = view_remove(e->view, n, true, NULL, err)) < 0)
		return r;
	node_done(n);
	*n = (struct node){.fd = -1};
	return find(e, path, n, err);
}

/* --- modes ------------------------------------------------------------------------------------ */

static int set_mode(struct effects *e, struct str path, mode_t mode, struct err *err)
{
	_cleanup_node_ struct node n = {.fd = -1};
	int r = find(e, path, &n, err);
	if (r < 0 || (n.st.st_mode & 0777) == mode)
		return r;
	return view_chmod(e->view, &n, mode, err);
}

static int remember(
	struct effects *e, struct late_mode **list, struct str path, mode_t mode, struct err *err)
{
	if (e->n_late == LIMIT_CHANGES)
		return err_set(err, ERR_LIMIT, "more than %d changes", LIMIT_CHANGES);
	struct late_mode *l = malloc(sizeof(*l) + path.n + 1);
	if (!l)
		return err_oom(err);
	l->mode = mode;
	memcpy(l->path, path.p, path.n);
	l->path[path.n] = '\0';
	l->next = *list;
	*list = l;
	e->n_late++;
	return 0;
}

/* --- what git would execute ------------------------------------------------------------------- */

enum { GIT_FILE_MAX = 256 * 1024 };

/* A small file whole; false when it is larger or cannot be read. */
static bool read_small(int fd, struct buf *out)
{
	char *to = buf_room(out, GIT_FILE_MAX + 1);
	ssize_t n = to ? fs_read(fd, to, GIT_FILE_MAX + 1, 0) : -1;
	if (n < 0 || n > GIT_FILE_MAX)
		return false;
	buf_grew(out, (size_t)n);
	return true;
}

static struct str str_of_buf(const struct buf *b)
{
	return (struct str){buf_str(b), b->len};
}

/* What a configuration is now against what it was. */
static bool config_passes(struct effects *e, struct str path, int fd)
{
	struct err err;
	_cleanup_buf_ struct buf now = buf_init(2 * GIT_FILE_MAX), was = buf_init(2 * GIT_FILE_MAX);
	_cleanup_node_ struct node n = {.fd = -1};
	_cleanup_close_ int old = -1;
	if (find(e, path, &n, &err) == 0 && n.kind == NODE_FILE &&
		(view_open(e->view, &n, &old, &err) < 0 || !read_small(old, &was)))
		return false;
	return read_small(fd, &now) && git_config_harmless(str_of_buf(&was), str_of_buf(&now));
}

static bool pointer_passes(struct str path, int fd)
{
	_cleanup_buf_ struct buf now = buf_init(2 * GIT_FILE_MAX);
	return read_small(fd, &now) && git_pointer_inside(path, str_of_buf(&now));
}

/* Is there something of this name in the directory that is the first `n` bytes of a path? */
static bool has_name(struct effects *e, const char *path, size_t n, const char *name)
{
	struct err err;
	char full[LIMIT_PATH_BYTES + 16];
	_cleanup_node_ struct node found = {.fd = -1};
	(void)snprintf(full, sizeof(full), "%.*s%s%s", (int)n, path, n ? "/" : "", name);
	return find(e, str_of(full), &found, &err) == 0 && found.kind != NODE_ABSENT;
}

static int open_below(struct effects *e, const char *path, size_t n, const char *name, int *ret)
{
	struct err err;
	char full[LIMIT_PATH_BYTES + 16];
	_cleanup_node_ struct node found = {.fd = -1};
	(void)snprintf(full, sizeof(full), "%.*s%s%s", (int)n, path, n ? "/" : "", name);
	if (find(e, str_of(full), &found, &err) < 0)
		return -1;
	if (found.kind == NODE_ABSENT)
		return 0;
	return found.kind == NODE_FILE && view_open(e->view, &found, ret, &err) == 0 ? 1 : -1;
}

static bool whole_config_passes(struct effects *e, const char *path, size_t n, const char *name)
{
	_cleanup_close_ int fd = -1;
	_cleanup_buf_ struct buf now = buf_init(2 * GIT_FILE_MAX);
	int r = open_below(e, path, n, name, &fd);
	return r == 0 || (r == 1 && read_small(fd, &now) &&
				 git_config_harmless((struct str){"", 0}, str_of_buf(&now)));
}

static bool hooks_pass(struct effects *e, const char *path, size_t n)
{
	struct err err;
	struct dir_entry entry;
	char full[LIMIT_PATH_BYTES + 16];
	_cleanup_node_ struct node dir = {.fd = -1};
	_cleanup_(cleanup_view_closedir) struct view_dir *d = NULL;
	(void)snprintf(full, sizeof(full), "%.*s%shooks", (int)n, path, n ? "/" : "");
	if (find(e, str_of(full), &dir, &err) < 0)
		return false;
	if (dir.kind == NODE_ABSENT)
		return true;
	if (dir.kind != NODE_DIR || view_opendir(e->view, &dir, &d, &err) < 0)
		return false;
	int r;
	while ((r = view_readdir(d, &entry, &err)) == 1)
		if (!git_hook_sample(str_of(entry.name)))
			return false;
	return r == 0;
}

/* A directory that has just become a repository must hold nothing that git would execute, also not
 * what lay there before. */
static bool new_repository_passes(struct effects *e, const char *path, size_t n)
{
	return whole_config_passes(e, path, n, "config") &&
	       whole_config_passes(e, path, n, "config.worktree") && hooks_pass(e, path, n);
}

/* Everything has been taken: now it shows whether a directory has become a repository. */
static int check_bare(struct effects *e, const struct late_mode *l, struct err *err)
{
	size_t n = (size_t)l->mode;
	if (!has_name(e, l->path, n, "HEAD") ||
		!(has_name(e, l->path, n, "objects") || has_name(e, l->path, n, "commondir")))
		return 0;
	size_t unused;
	if (git_part_of(str_of(l->path), &unused) == GIT_BARE_MARK &&
		new_repository_passes(e, l->path, n))
		return 0;
	_cleanup_buf_ struct buf name = buf_init(4 * LIMIT_PATH_BYTES);
	name_escape(&name, str_of(l->path));
	return err_set(err, ERR_DENIED,
		"/workspace/%.200s would be executed by git in a repository without a .git",
		buf_str(&name));
}

static bool is_new(struct effects *e, struct str path)
{
	struct err err;
	_cleanup_node_ struct node n = {.fd = -1};
	return find(e, path, &n, &err) < 0 || n.kind == NODE_ABSENT || n.kind == NODE_LINK;
}

/* 1: may be taken; 0: is held back. */
static int judge(struct effects *e, const struct fence_entry *entry, int fd, struct err *err)
{
	size_t repository;
	bool file = entry->kind == FENCE_FILE;
	if (entry->kind == FENCE_WHITEOUT || entry->kind == FENCE_REFUSED)
		return 1;
	switch (git_part_of(entry->path, &repository)) {
	case GIT_NOTHING: return 1;
	case GIT_NEVER: return entry->kind == FENCE_DIR;
	case GIT_CONFIG:
		return entry->kind == FENCE_DIR || (file && config_passes(e, entry->path, fd));
	case GIT_POINTER:
		return entry->kind == FENCE_DIR || (file && pointer_passes(entry->path, fd));
	case GIT_DIR: return entry->kind == FENCE_DIR || (file && pointer_passes(entry->path, fd));
	case GIT_BARE_CONFIG:
		if (file && config_passes(e, entry->path, fd))
			return 1;
		break;
	case GIT_BARE_MARK:
		if (!is_new(e, entry->path))
			return 1;
		break;
	case GIT_BARE_HOOK:
		if (entry->kind == FENCE_DIR)
			return 1;
		break;
	}
	int r = remember(e, &e->bare, entry->path, (mode_t)repository, err);
	return r < 0 ? r : 1;
}

static void hold_back(struct effects *e, struct str path)
{
	_cleanup_buf_ struct buf name = buf_init(4 * LIMIT_PATH_BYTES);
	name_escape(&name, path);
	if (e->held_back++ == 0)
		(void)snprintf(e->first_held_back, sizeof(e->first_held_back), "/workspace/%.200s",
			buf_str(&name));
}

unsigned effects_held_back(const struct effects *e, const char **ret_first)
{
	*ret_first = e->first_held_back;
	return e->held_back;
}

int effects_finish(struct effects *e, struct err *err)
{
	int r = 0;
	for (const struct late_mode *l = e->bare; l && r == 0; l = l->next)
		r = check_bare(e, l, err);
	for (const struct late_mode *l = e->late; l && r == 0; l = l->next)
		r = set_mode(e, str_of(l->path), l->mode, err);
	return r;
}

/* --- files ------------------------------------------------------------------------------------ */

enum sameness { DIFFERENT, SAME, GREW };

/* How `new_size` bytes of a descriptor follow from `old_size` bytes of another. */
static int compare(const struct effects *e, int old, int64_t old_size, int new, int64_t new_size,
	enum sameness *ret, struct err *err)
{
	*ret = DIFFERENT;
	if (new_size < old_size)
		return 0;
	for (int64_t at = 0; at < old_size;) {
		size_t n = (size_t)MIN((int64_t)COMPARE_CHUNK, old_size - at);
		ssize_t a = fs_read(old, e->a, n, at), b = fs_read(new, e->b, n, at);
		if (a < 0 || b < 0)
			return err_sys(err, errno, "comparing a changed file");
		if (a != (ssize_t)n || a != b || memcmp(e->a, e->b, n) != 0)
			return 0;
		at += a;
	}
	*ret = old_size == new_size ? SAME : old_size > 0 ? GREW : DIFFERENT;
	return 0;
}

/* The content from an offset, with the time at which the command wrote it. */
static int stage(struct effects *e, int fd, int64_t from, const struct stat *st,
	struct staged **ret, struct err *err)
{
	const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, st->st_mtim};
	_cleanup_(cleanup_staged_free) struct staged *s = NULL;
	int r = staged_new(e->view, 0, &s, err);
	if (r == 0)
		r = staged_copy(s, fd, from, st->st_size - from, err);
	if (r < 0)
		return r;
	if (futimens(staged_fd(s), times) < 0)
		return err_sys(err, errno, "keeping a file's time");
	*ret = take_ptr(s);
	return 0;
}

static int create_file(struct effects *e, const struct fence_entry *entry, struct node *n, int fd,
	const struct stat *st, struct err *err)
{
	struct staged *s;
	int r = clear(e, entry->path, n, err);
	if (r == 0)
		r = stage(e, fd, 0, st, &s, err);
	return r < 0 ? r : view_put(e->view, n, s, PUT_CREATE, entry->mode & 0777, NULL, err);
}

static int change_file(struct effects *e, const struct fence_entry *entry, const struct node *n,
	int fd, const struct stat *st, struct err *err)
{
	enum sameness how;
	struct staged *s;
	_cleanup_close_ int old = -1;
	int r = unchanged(e, n, err);
	if (r < 0 || (r = view_open(e->view, n, &old, err)) < 0 ||
		(r = compare(e, old, n->st.st_size, fd, st->st_size, &how, err)) < 0)
		return r;
	if (how != SAME) {
		r = stage(e, fd, how == GREW ? n->st.st_size : 0, st, &s, err);
		if (r == 0)
			r = how == GREW ? view_append(e->view, n, s, NULL, err)
					: view_put(e->view, n, s, PUT_REPLACE, 0, NULL, err);
	}
	return r < 0 ? r : set_mode(e, entry->path, entry->mode & 0777, err);
}

static int take_file(struct effects *e, const struct fence_entry *entry, int fd, struct err *err)
{
	struct stat st;
	_cleanup_node_ struct node n = {.fd = -1};
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return err_set(err, ERR_CORRUPT, "the fence sent something else than a file");
	int r = find(e, entry->path, &n, err);
	if (r < 0)
		return r;
	return n.kind == NODE_FILE ? change_file(e, entry, &n, fd, &st, err)
				   : create_file(e, entry, &n, fd, &st, err);
}

/* --- the others ------------------------------------------------------------------------------- */

static int take_whiteout(struct effects *e, const struct fence_entry *entry, struct err *err)
{
	_cleanup_node_ struct node n = {.fd = -1};
	int r = find(e, entry->path, &n, err);
	return r < 0 ? r : clear(e, entry->path, &n, err);
}

/* A new directory keeps its owner's rights to work in it, since what is in it is made after it. */
static int take_dir(struct effects *e, const struct fence_entry *entry, struct err *err)
{
	_cleanup_node_ struct node n = {.fd = -1};
	mode_t mode = entry->mode & 0777;
	int r = find(e, entry->path, &n, err);
	if (r == 0 && n.kind != NODE_ABSENT && (n.kind != NODE_DIR || entry->opaque))
		r = clear(e, entry->path, &n, err);
	if (r == 0 && n.kind == NODE_ABSENT)
		return view_mkdir(e->view, &n, mode | S_IRWXU, false, err);
	if (r < 0)
		return r;
	bool workable = (mode & S_IRWXU) == S_IRWXU;
	return workable ? set_mode(e, entry->path, mode, err)
			: remember(e, &e->late, entry->path, mode, err);
}

/* Below a tree that every command sees, without a way out of it. */
static bool of_the_system(const char *target)
{
	size_t len = strlen(target);
	if (strstr(target, "/../") || (len >= 3 && strcmp(target + len - 3, "/..") == 0))
		return false;
	for (unsigned i = 0; i < fence_trees_n; i++) {
		size_t n = strlen(fence_trees[i].path);
		if (strncmp(target, fence_trees[i].path, n) == 0 &&
			(target[n] == '/' || target[n] == '\0'))
			return true;
	}
	return false;
}

/* What is absolute inside the fence means something else outside, so a link into the workspace
 * becomes a relative one. */
static bool made_relative(struct str link, const char *target, char out[LIMIT_PATH_BYTES])
{
	static const char root[] = "/workspace";
	size_t n = 0;
	if (strncmp(target, root, sizeof(root) - 1) != 0)
		return false;
	const char *rest = target + sizeof(root) - 1;
	if (*rest != '/' && *rest != '\0')
		return false;
	out[0] = '\0';
	for (size_t i = 0; i < link.n; i++)
		if (link.p[i] == '/')
			n += (size_t)snprintf(out + n, LIMIT_PATH_BYTES - n, "../");
	rest += strspn(rest, "/");
	int len = snprintf(out + n, LIMIT_PATH_BYTES - n, "%s", *rest ? rest : ".");
	return len > 0 && n + (size_t)len < LIMIT_PATH_BYTES;
}

static int left_out(struct effects *e, const struct node *n)
{
	if (e->left_out++ == 0)
		(void)snprintf(e->first_left_out, sizeof(e->first_left_out), "%s", n->resolved);
	return 0;
}

static int put_link(struct effects *e, const struct fence_entry *entry, const struct node *n,
	const char *target, struct err *err)
{
	char relative[LIMIT_PATH_BYTES];
	if (of_the_system(target))
		return view_symlink_out(e->view, n, target, err);
	if (made_relative(entry->path, target, relative))
		target = relative;
	int r = view_symlink(e->view, n, target, err);
	return r == -ERR_PATH_ESCAPE ? left_out(e, n) : r;
}

static int take_link(struct effects *e, const struct fence_entry *entry, struct err *err)
{
	_cleanup_node_ struct node n = {.fd = -1};
	char target[LIMIT_PATH_BYTES];
	memcpy(target, entry->target.p, entry->target.n);
	target[entry->target.n] = '\0';
	int r = find(e, entry->path, &n, err);
	if (r == 0 && n.kind == NODE_LINK) {
		_cleanup_free_ char *now = NULL;
		r = view_readlink(e->view, &n, &now, err);
		if (r < 0 || strcmp(now, target) == 0)
			return r;
	}
	if (r == 0)
		r = clear(e, entry->path, &n, err);
	return r < 0 ? r : put_link(e, entry, &n, target, err);
}

static int leave_out(struct effects *e, const struct fence_entry *entry, struct err *err)
{
	_cleanup_node_ struct node n = {.fd = -1};
	int r = find(e, entry->path, &n, err);
	if (r == 0)
		r = clear(e, entry->path, &n, err);
	return r < 0 ? r : left_out(e, &n);
}

static int refused(const struct fence_entry *entry, struct err *err)
{
	_cleanup_buf_ struct buf name = buf_init(4 * LIMIT_PATH_BYTES);
	name_escape(&name, entry->path);
	return err_set(err, ERR_DENIED, "/workspace/%.200s is %.*s, which cannot be published",
		buf_str(&name), (int)MIN(entry->target.n, (size_t)80), entry->target.p);
}

int effects_take(void *ctx, const struct fence_entry *entry, int fd, struct err *err)
{
	struct effects *e = ctx;
	int r = judge(e, entry, fd, err);
	if (r <= 0) {
		if (r == 0)
			hold_back(e, entry->path);
		return r;
	}
	switch (entry->kind) {
	case FENCE_WHITEOUT: return take_whiteout(e, entry, err);
	case FENCE_DIR: return take_dir(e, entry, err);
	case FENCE_FILE: return take_file(e, entry, fd, err);
	case FENCE_LINK: return take_link(e, entry, err);
	case FENCE_SPECIAL: return leave_out(e, entry, err);
	case FENCE_REFUSED: return refused(entry, err);
	case FENCE_ENTRY_MAX_: break;
	}
	return err_set(err, ERR_CORRUPT, "the fence named something unknown");
}

unsigned effects_left_out(const struct effects *e, const char **ret_first)
{
	*ret_first = e->first_left_out;
	return e->left_out;
}
