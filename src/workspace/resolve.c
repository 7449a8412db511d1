/*
 * From what an agent spells to what is there.
 *
 * A path is first cut into components; nothing but openat2() beneath a mount's root ever decides
 * where they lead. The short way asks the kernel once for the whole path and refuses links; only
 * when there is a link, a "..", something missing, or anything in the view does the long way walk
 * component by component, reading links itself, since a link may lead into another mount or into
 * what the view has changed. Every look of the long way starts at the mount's root again with links
 * refused, so a directory that is swapped for a link meanwhile cannot lead out.
 */
#include "workspace/view_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

enum { REST_MAX = 256 * 1024 }; /* a path with the texts of links spliced in */

void node_done(struct node *n)
{
	cleanup_close(&n->fd);
	free(n->memory);
	*n = (struct node){.fd = -1};
}

/* --- looking ------------------------------------------------------------------------------ */

void view_locate(const struct view *v, unsigned mount, const char *path, struct place *ret)
{
	size_t real_n = 0, i = 0;
	bool made = false;
	*ret = (struct place){.kind = PLACE_REAL};
	if (v->n_entries == 0) {
		(void)snprintf(ret->real, sizeof(ret->real), "%s", path);
		return;
	}
	while (path[i]) {
		size_t n = strcspn(path + i, "/"), end = i + n;
		struct entry *e = view_entry(v, mount, path, end);
		ret->entry = path[end] ? NULL : e;
		if (e && e->now == NOW_REAL) {
			real_n = strlen(e->real.path);
			memcpy(ret->real, e->real.path, real_n + 1);
			made = false;
		} else if (e) {
			made = e->now == NOW_DIR || (!path[end] && e->now != NOW_NONE);
			if (!made) {
				ret->kind = PLACE_GONE;
				ret->entry = path[end] ? NULL : e;
				return;
			}
		} else if (made || real_n + n + 2 > sizeof(ret->real)) {
			ret->kind = PLACE_GONE;
			return;
		} else {
			real_n += (size_t)snprintf(ret->real + real_n, sizeof(ret->real) - real_n,
				"%s%.*s", real_n ? "/" : "", (int)n, path + i);
		}
		i = end + (path[end] == '/');
	}
	ret->kind = made ? PLACE_MADE : PLACE_REAL;
}

static int stat_made(const struct entry *e, struct found *f, struct err *err)
{
	int r;
	BUG_ON(!e); /* nothing is made but by an entry */
	memset(&f->st, 0, sizeof(f->st));
	f->st.st_nlink = 1;
	f->st.st_uid = geteuid();
	f->st.st_gid = getegid();
	(void)clock_gettime(CLOCK_REALTIME, &f->st.st_mtim);
	switch (e->now) {
	case NOW_DIR:
		f->kind = NODE_DIR;
		f->st.st_mode = S_IFDIR | e->op->mode;
		return 0;
	case NOW_LINK:
		f->kind = NODE_LINK;
		f->st.st_mode = S_IFLNK | 0777;
		f->st.st_size = (off_t)strlen(e->op->target);
		return 0;
	case NOW_FILE: break;
	case NOW_NONE:
	case NOW_REAL: BUG_ON(true);
	}
	if ((r = staged_reopen(e->op->content, err)) < 0)
		return r;
	if (fstat(e->op->content->fd, &f->st) < 0)
		return err_sys(err, errno, "looking at a staged file");
	staged_rest(e->op->content);
	f->st.st_size = e->op->content->size;
	f->kind = NODE_FILE;
	f->st.st_mode = S_IFREG | e->op->mode;
	f->st.st_nlink = 1;
	return 0;
}

/* What an entry of a real object changes about it: its mode, a tail. */
static void apply_entry(const struct entry *e, struct stat *st)
{
	if (!e || e->now != NOW_REAL)
		return;
	if (e->mode_op)
		st->st_mode = (st->st_mode & S_IFMT) | e->mode_op->mode;
	if (e->op)
		st->st_size += e->op->content->size;
}

static int find_real(const struct view *v, unsigned mount, const char *path, const char *real,
	struct found *f, struct err *err)
{
	const struct mount *m = &v->ws->mounts[mount];
	f->fd = fs_look(m->root_fd, real);
	if (f->fd >= 0) {
		if (fstat(f->fd, &f->st) < 0)
			return mount_err(m, path, errno, err);
		f->kind = node_kind_of(f->st.st_mode);
		f->real = true;
		apply_entry(f->entry, &f->st);
		return 0;
	}
	if (errno == ENOTDIR || errno == ENOENT) {
		_cleanup_close_ int parent = -1;
		const char *name;
		struct err ignored;
		bool not_dir = errno == ENOTDIR;
		f->no_parent = mount_open_parent(m, real, &parent, &name, &ignored) < 0;
		f->bad_parent = not_dir && f->no_parent;
		return 0;
	}
	return mount_err(m, path, errno, err);
}

/* Nothing is at a path: is there a directory that could hold it? */
static int judge_parent(
	const struct view *v, unsigned mount, const char *path, struct found *f, struct err *err)
{
	char dir[LIMIT_PATH_BYTES];
	struct place up;
	struct found in = {.fd = -1};
	const char *slash = strrchr(path, '/');
	if (!slash || f->entry)
		return 0;
	(void)snprintf(dir, sizeof(dir), "%.*s", (int)(slash - path), path);
	view_locate(v, mount, dir, &up);
	int r = 0;
	if (up.kind == PLACE_MADE)
		r = stat_made(up.entry, &in, err);
	else if (up.kind == PLACE_REAL)
		r = find_real(v, mount, dir, up.real, &in, err);
	else
		in.kind = NODE_ABSENT;
	cleanup_close(&in.fd);
	f->no_parent = in.kind != NODE_DIR;
	f->bad_parent = f->no_parent && in.kind != NODE_ABSENT;
	return r;
}

int view_find(
	const struct view *v, unsigned mount, const char *path, struct found *ret, struct err *err)
{
	struct place pl;
	*ret = (struct found){.kind = NODE_ABSENT, .fd = -1};
	view_locate(v, mount, path, &pl);
	ret->entry = pl.entry;
	if (pl.kind == PLACE_MADE)
		return stat_made(pl.entry, ret, err);
	if (pl.kind == PLACE_REAL)
		return find_real(v, mount, path, pl.real, ret, err);
	return judge_parent(v, mount, path, ret, err);
}

/* --- walking ------------------------------------------------------------------------------ */

struct walk {
	const struct view *v;
	unsigned flags, mount, hops, depth;
	char path[LIMIT_PATH_BYTES]; /* in the mount; no links */
	size_t n;
	struct buf rest; /* what is still to be walked, from `at` */
	size_t at;
	const char *shown; /* for messages */
	bool must_be_dir, lacking;
	struct found found; /* what `path` is */
};

static void walk_done(struct walk *w)
{
	buf_done(&w->rest);
	cleanup_close(&w->found.fd);
}

static void show(struct str path, char out[ERR_HINT_MAX])
{
	_cleanup_buf_ struct buf b = buf_init(4 * LIMIT_PATH_BYTES + 64);
	text_show(&b, path, false);
	const char *text = buf_str(&b);
	size_t n = MIN(strlen(text), (size_t)ERR_HINT_MAX - 1);
	n = utf8_floor(text, n);
	memcpy(out, text, n);
	out[n] = '\0';
}

static int escape(const char *shown, struct err *err)
{
	(void)err_set(err, ERR_PATH_ESCAPE, "'%s' leads outside the workspace", shown);
	return err_hint(err, "use a path below /workspace");
}

/* ".." at the root of a mount leads to the mount that covers the directory above. */
static int leave_mount(struct walk *w, struct err *err)
{
	const struct workspace *ws = w->v->ws;
	const struct mount *m = &ws->mounts[w->mount];
	const char *end = memrchr(m->agent, '/', m->agent_len);
	for (size_t n = (size_t)(end - m->agent); n > 0;) {
		int i = workspace_mount_at(ws, m->agent, n);
		if (i >= 0) {
			size_t len = (size_t)(end - m->agent);
			w->mount = (unsigned)i;
			w->n = len > n ? len - n - 1 : 0;
			memcpy(w->path, m->agent + len - w->n, w->n);
			w->path[w->n] = '\0';
			return 0;
		}
		n = (size_t)((const char *)memrchr(m->agent, '/', n) - m->agent);
	}
	return escape(w->shown, err);
}

static int look(struct walk *w, struct err *err)
{
	cleanup_close(&w->found.fd);
	w->found.fd = -1;
	return view_find(w->v, w->mount, w->path, &w->found, err);
}

static int step_up(struct walk *w, struct err *err)
{
	int r = 0;
	if (w->lacking)
		return err_set(err, ERR_NOT_FOUND, "'%s': a directory is missing", w->shown);
	if (w->n == 0) {
		r = leave_mount(w, err);
	} else {
		const char *slash = memrchr(w->path, '/', w->n);
		w->n = slash ? (size_t)(slash - w->path) : 0;
		w->path[w->n] = '\0';
	}
	return r < 0 ? r : look(w, err);
}

/* Put a link's text in front of what is still to be walked. */
static int insert_target(struct walk *w, struct str target, struct err *err)
{
	if (w->v->ws->opt.strict_links)
		return err_set(err, ERR_LINK_REFUSED, "'%s' goes through a link", w->shown);
	if (++w->hops > LIMIT_LINK_HOPS)
		return err_set(err, ERR_LINK_REFUSED, "'%s' goes through more than %d links",
			w->shown, LIMIT_LINK_HOPS);
	if (target.n == 0 || target.p[0] == '/')
		return escape(w->shown, err);
	struct buf next = buf_init(REST_MAX);
	buf_put(&next, target.p, target.n);
	buf_putc(&next, '/');
	buf_puts(&next, buf_str(&w->rest) + w->at);
	buf_done(&w->rest);
	w->rest = next;
	w->at = 0;
	/* The link's text counts from the directory that holds the link. */
	const char *slash = memrchr(w->path, '/', w->n);
	w->n = slash ? (size_t)(slash - w->path) : 0;
	w->path[w->n] = '\0';
	int r = buf_check(&w->rest, "the path with its links", err);
	return r < 0 ? r : look(w, err);
}

static int follow(struct walk *w, struct err *err)
{
	char target[LIMIT_PATH_BYTES];
	if (w->found.entry && w->found.entry->now == NOW_LINK) {
		(void)snprintf(target, sizeof(target), "%s", w->found.entry->op->target);
		return insert_target(w, str_of(target), err);
	}
	ssize_t n = readlinkat(w->found.fd, "", target, sizeof(target));
	if (n < 0)
		return err_sys(err, errno, "'%s'", w->shown);
	if (n == (ssize_t)sizeof(target))
		return err_set(err, ERR_PATH_INVALID, "'%s': a link is too long", w->shown);
	return insert_target(w, (struct str){target, (size_t)n}, err);
}

/* Add one component to the path; switch to another mount when one is there. */
static int descend(struct walk *w, const char *name, size_t n, struct err *err)
{
	const struct workspace *ws = w->v->ws;
	const struct mount *m = &ws->mounts[w->mount];
	if (n > LIMIT_NAME_BYTES || w->n + n + 2 > sizeof(w->path))
		return err_set(err, ERR_PATH_INVALID, "a name or the path is too long");
	if (++w->depth > LIMIT_PATH_DEPTH * 4)
		return err_set(err, ERR_PATH_INVALID, "'%s' is too deep", w->shown);
	w->n += (size_t)snprintf(
		w->path + w->n, sizeof(w->path) - w->n, "%s%.*s", w->n ? "/" : "", (int)n, name);
	if (ws->n_mounts > 1) {
		char agent[LIMIT_PATH_BYTES * 2];
		int len = snprintf(agent, sizeof(agent), "%s/%s", m->agent, w->path);
		int i = workspace_mount_at(ws, agent, (size_t)len);
		if (i >= 0) {
			w->mount = (unsigned)i;
			w->n = 0;
			w->path[0] = '\0';
		}
	}
	if (mount_hides(&ws->mounts[w->mount], w->path))
		return err_set(err, ERR_PATH_INVALID, "the name '%s' is reserved for Cloister",
			WORKSPACE_STORE_NAME);
	return w->lacking ? 0 : look(w, err);
}

/* Missing or of the wrong kind in the middle of the path? */
static int check_middle(struct walk *w, struct err *err)
{
	if (w->lacking || w->found.kind == NODE_DIR)
		return 0;
	if (w->found.kind == NODE_ABSENT) {
		if (!(w->flags & RESOLVE_PARENTS_MAY_LACK))
			return err_set(
				err, ERR_NOT_FOUND, "'%s': a directory is missing", w->shown);
		w->lacking = true;
		return 0;
	}
	return err_set(err, ERR_NOT_DIRECTORY, "'%s': not a directory in the middle", w->shown);
}

static int walk_on(struct walk *w, struct err *err)
{
	int r = look(w, err);
	while (r == 0) {
		const char *all = buf_str(&w->rest);
		w->at += strspn(all + w->at, "/");
		const char *name = all + w->at;
		size_t n = strcspn(name, "/");
		bool is_dot = n == 1 && name[0] == '.';
		bool is_up = n == 2 && name[0] == '.' && name[1] == '.';
		bool last = n == 0;
		if (w->found.kind == NODE_LINK &&
			(!last || w->must_be_dir || !(w->flags & RESOLVE_NOFOLLOW))) {
			r = follow(w, err);
			continue;
		}
		if (last)
			break;
		w->at += n;
		if ((r = check_middle(w, err)) < 0)
			break;
		if (is_up)
			r = step_up(w, err);
		else if (!is_dot)
			r = descend(w, name, n, err);
	}
	return r;
}

/* --- spelling ----------------------------------------------------------------------------- */

/* What an agent wrote, cut up. */
struct spelling {
	char agent[LIMIT_PATH_BYTES * 2]; /* absolute, "." and ".." taken out by text */
	size_t n;
	char rest[LIMIT_PATH_BYTES + 1]; /* below the mount's root, as written */
	unsigned mount;
	bool ups, must_be_dir;
};

static bool ends_as_dir(struct str path)
{
	return str_ends(path, STR("/")) || str_ends(path, STR("/.")) ||
	       str_ends(path, STR("/..")) || str_eq(path, STR(".")) || str_eq(path, STR(".."));
}

/* Append the components of `text` to the agent path, resolving dots by text alone. False when it
 * climbs above "/". */
static bool add_spelled(struct spelling *s, struct str text)
{
	for (size_t i = 0; i < text.n;) {
		const char *p = text.p + i;
		const char *slash = memchr(p, '/', text.n - i);
		size_t n = slash ? (size_t)(slash - p) : text.n - i;
		i += n + 1;
		if (n == 0 || (n == 1 && p[0] == '.'))
			continue;
		if (n == 2 && p[0] == '.' && p[1] == '.') {
			s->ups = true;
			const char *cut = memrchr(s->agent, '/', s->n);
			if (!cut)
				return false;
			s->n = (size_t)(cut - s->agent);
			continue;
		}
		s->agent[s->n++] = '/';
		memcpy(s->agent + s->n, p, n);
		s->n += n;
	}
	s->agent[s->n] = '\0';
	return true;
}

/* Does the absolute `path` lie at or below `prefix`, component by component and before any dots?
 * Then *ret_rest is what follows. */
static bool below_prefix(struct str path, const char *prefix, struct str *ret_rest)
{
	size_t i = 0;
	while (*prefix) {
		size_t want = strcspn(++prefix, "/");
		while (i < path.n && path.p[i] == '/')
			i++;
		while (path.n - i >= 2 && path.p[i] == '.' && path.p[i + 1] == '/')
			for (i++; i < path.n && path.p[i] == '/'; i++)
				;
		if (path.n - i < want || memcmp(path.p + i, prefix, want) != 0)
			return false;
		i += want;
		if (i < path.n && path.p[i] != '/')
			return false;
		prefix += want;
	}
	*ret_rest = (struct str){path.p + i, path.n - i};
	return true;
}

/* Find the mount of an absolute path: the most specific one; else below the client's root. */
static bool find_mount(const struct workspace *ws, struct spelling *s, struct str path)
{
	struct str rest, best = {0};
	size_t best_len = 0;
	for (unsigned i = 0; i < ws->n_mounts; i++)
		if (ws->mounts[i].agent_len > best_len &&
			below_prefix(path, ws->mounts[i].agent, &rest)) {
			best = rest, best_len = ws->mounts[i].agent_len;
			s->mount = i;
		}
	if (best_len == 0 && ws->client_root && below_prefix(path, ws->client_root, &rest))
		best = rest, best_len = 1;
	if (best_len == 0)
		return false;
	memcpy(s->rest, best.p, best.n);
	s->rest[best.n] = '\0';
	return true;
}

static bool is_inside(const struct workspace *ws, const struct spelling *s)
{
	struct str rest;
	for (unsigned i = 0; i < ws->n_mounts; i++)
		if (below_prefix((struct str){s->agent, s->n}, ws->mounts[i].agent, &rest))
			return true;
	return false;
}

static int spell(const struct workspace *ws, struct str path, struct spelling *s, struct err *err)
{
	char shown[ERR_HINT_MAX];
	if (path.n == 0)
		return err_set(err, ERR_PATH_INVALID, "the path is empty");
	if (path.n >= LIMIT_PATH_BYTES)
		return err_set(err, ERR_PATH_INVALID, "the path is longer than %d bytes",
			LIMIT_PATH_BYTES - 1);
	if (memchr(path.p, '\0', path.n))
		return err_set(err, ERR_PATH_INVALID, "the path holds a NUL byte");
	s->n = 0, s->mount = 0, s->ups = false;
	s->must_be_dir = ends_as_dir(path);
	if (path.p[0] != '/') {
		memcpy(s->rest, path.p, path.n);
		s->rest[path.n] = '\0';
	} else if (!find_mount(ws, s, path)) {
		show(path, shown);
		return escape(shown, err);
	}
	s->n = ws->mounts[s->mount].agent_len;
	memcpy(s->agent, ws->mounts[s->mount].agent, s->n + 1);
	/* What leaves every mount by its text alone is refused, wherever links in it may lead:
	 * policy judges the text, too. */
	if (add_spelled(s, str_of(s->rest)) && (!s->ups || is_inside(ws, s)))
		return 0;
	show(path, shown);
	return escape(shown, err);
}

/* --- together ----------------------------------------------------------------------------- */

/* Put the texts of a node into one block of memory. */
static int node_texts(const struct workspace *ws, const struct spelling *s, unsigned mount,
	const char *path, struct node *n, struct err *err)
{
	_cleanup_buf_ struct buf b = buf_init(16 * LIMIT_PATH_BYTES);
	size_t n_path = strlen(path) + 1;
	buf_put(&b, path, n_path);
	name_escape(&b, (struct str){s->agent, s->n});
	buf_putc(&b, '\0');
	size_t at = b.len;
	mount_agent_path(&ws->mounts[mount], path, &b);
	char *memory = buf_take(&b, NULL);
	if (!memory)
		return err_oom(err);
	const char *slash = memrchr(memory, '/', n_path);
	n->memory = memory;
	n->path = memory;
	n->name = slash ? slash + 1 : memory;
	n->spelled = memory + n_path;
	n->resolved = memory + at;
	return 0;
}

static int node_from(const struct workspace *ws, const struct spelling *s, unsigned mount,
	const char *path, struct found *f, struct node *ret, struct err *err)
{
	int r;
	struct node n = {.kind = f->kind,
		.mount = mount,
		.read_only = ws->mounts[mount].read_only,
		.staged = f->entry && f->entry->now == NOW_FILE,
		.lacks_parent = f->kind == NODE_ABSENT && f->no_parent,
		.fd = -1,
		.st = f->st};
	if (ws->opt.strict_links &&
		(f->kind == NODE_LINK || (f->kind == NODE_FILE && f->st.st_nlink > 1)))
		return err_set(err, ERR_LINK_REFUSED, "'%s' is a link or has more than one name",
			s->agent);
	if ((r = node_texts(ws, s, mount, path, &n, err)) < 0)
		return r;
	if (f->real)
		n.id = identity_of(&f->st);
	n.fd = take_fd(f->fd);
	*ret = n;
	return 0;
}

/* Does a more specific mount cover this path? */
static bool is_covered(const struct workspace *ws, const struct spelling *s)
{
	for (unsigned i = 0; i < ws->n_mounts && ws->n_mounts > 1; i++) {
		const struct mount *m = &ws->mounts[i];
		bool below = s->n >= m->agent_len &&
			     memcmp(s->agent, m->agent, m->agent_len) == 0 &&
			     (s->n == m->agent_len || s->agent[m->agent_len] == '/');
		if (below && m->agent_len > ws->mounts[s->mount].agent_len)
			return true;
	}
	return false;
}

/* The short way. 1: done, 0: take the long way. */
static int resolve_fast(const struct view *v, const struct spelling *s, unsigned flags,
	struct node *ret, struct err *err)
{
	const struct mount *m = &v->ws->mounts[s->mount];
	if (s->ups || v->n_entries > 0 || is_covered(v->ws, s))
		return 0;
	const char *path = s->agent + m->agent_len + (s->n > m->agent_len);
	if (mount_hides(m, path) || s->n - m->agent_len >= LIMIT_PATH_BYTES)
		return 0;
	struct found f = {.fd = fs_look(m->root_fd, path), .real = true};
	if (f.fd < 0)
		return 0;
	int r = fstat(f.fd, &f.st) < 0 ? mount_err(m, path, errno, err) : 0;
	f.kind = node_kind_of(f.st.st_mode);
	if (r == 0 && f.kind == NODE_LINK && !(flags & RESOLVE_NOFOLLOW)) {
		(void)close(f.fd);
		return 0;
	}
	if (r == 0 && s->must_be_dir && f.kind != NODE_DIR) {
		(void)close(f.fd);
		return 0;
	}
	if (r == 0)
		r = node_from(v->ws, s, s->mount, path, &f, ret, err);
	cleanup_close(&f.fd);
	return r < 0 ? r : 1;
}

static int finish_walk(struct walk *w, struct err *err)
{
	const struct found *f = &w->found;
	if (w->lacking) {
		w->found = (struct found){.kind = NODE_ABSENT, .no_parent = true, .fd = -1};
		return 0;
	}
	if (f->kind == NODE_ABSENT && f->bad_parent)
		return err_set(
			err, ERR_NOT_DIRECTORY, "'%s': not a directory in the middle", w->shown);
	if (f->kind == NODE_ABSENT && f->no_parent && !(w->flags & RESOLVE_PARENTS_MAY_LACK))
		return err_set(err, ERR_NOT_FOUND, "'%s': a directory is missing", w->shown);
	if (w->must_be_dir && f->kind != NODE_DIR && f->kind != NODE_ABSENT)
		return err_set(err, ERR_NOT_DIRECTORY, "'%s' is not a directory", w->shown);
	return 0;
}

/* The long way. */
static int resolve_walk(const struct view *v, struct str path, const struct spelling *s,
	unsigned flags, struct node *ret, struct err *err)
{
	int r;
	char shown[ERR_HINT_MAX];
	show(path, shown);
	_cleanup_(walk_done) struct walk w = {.v = v,
		.flags = flags,
		.mount = s->mount,
		.rest = buf_init(REST_MAX),
		.shown = shown,
		.must_be_dir = s->must_be_dir,
		.found.fd = -1};
	buf_puts(&w.rest, s->rest);
	if ((r = buf_check(&w.rest, "the path", err)) < 0 || (r = walk_on(&w, err)) < 0 ||
		(r = finish_walk(&w, err)) < 0)
		return r;
	return node_from(v->ws, s, w.mount, w.path, &w.found, ret, err);
}

int view_resolve(struct view *v, struct str path, unsigned flags, struct node *ret, struct err *err)
{
	int r;
	struct spelling s _uninitialized_;
	if ((r = spell(v->ws, path, &s, err)) < 0)
		return r;
	if ((r = resolve_fast(v, &s, flags, ret, err)) != 0)
		return r < 0 ? r : 0;
	return resolve_walk(v, path, &s, flags, ret, err);
}

int view_node_at(
	struct view *v, unsigned mount, const char *path, struct node *ret, struct err *err)
{
	int r;
	struct found f;
	struct spelling s _uninitialized_;
	const struct mount *m = &v->ws->mounts[mount];
	if (strlen(path) >= LIMIT_PATH_BYTES)
		return err_set(err, ERR_PATH_INVALID, "the path is too long");
	s.n = (size_t)snprintf(
		s.agent, sizeof(s.agent), "%s%s%s", m->agent, *path ? "/" : "", path);
	if ((r = view_find(v, mount, path, &f, err)) < 0)
		return r;
	r = node_from(v->ws, &s, mount, path, &f, ret, err);
	cleanup_close(&f.fd);
	return r;
}
