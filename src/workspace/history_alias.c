/*
 * What stands for what after undoing.
 *
 * Taking a change back makes new inodes with old content. So a file can be just as an older record
 * left it and yet be another inode than that record names. A record N that has taken back S says
 * so: what N made at a path stands for what was there before S. Going back from the newest record,
 * N is met before S; then the two are put together.
 */
#include "workspace/history_impl.h"

#include <stdio.h>

struct alias {
	struct identity made;  /* by N */
	struct identity means; /* before S; ino 0: not known */
	uint64_t undoes;       /* S */
	unsigned mount;
	char *path; /* owned */
};

void aliases_done(struct aliases *a)
{
	for (size_t i = 0; i < a->n; i++)
		free(a->all[i].path);
	free(a->all);
}

static int add(struct aliases *a, unsigned mount, uint64_t undoes, const struct identity *made,
	const char *at, struct err *err)
{
	if (a->n == a->cap) {
		size_t cap = a->cap ? a->cap * 2 : 32;
		struct alias *more = realloc(a->all, cap * sizeof(*more));
		if (!more)
			return err_oom(err);
		a->all = more;
		a->cap = cap;
	}
	char *path = strdup(at);
	if (!path)
		return err_oom(err);
	a->all[a->n++] =
		(struct alias){.made = *made, .undoes = undoes, .mount = mount, .path = path};
	return 0;
}

static bool makes_inode(const struct record_change *c)
{
	return c->kind == CHANGE_CREATE || c->kind == CHANGE_REPLACE || c->kind == CHANGE_MKDIR ||
	       c->kind == CHANGE_LINK;
}

static int by_path(const void *x, const void *y)
{
	const struct alias *a = x, *b = y;
	if (a->undoes != b->undoes)
		return a->undoes < b->undoes ? -1 : 1;
	if (a->mount != b->mount)
		return a->mount < b->mount ? -1 : 1;
	return strcmp(a->path, b->path);
}

static int by_inode(const void *x, const void *y)
{
	const struct alias *a = x, *b = y;
	return a->made.ino < b->made.ino ? -1 : a->made.ino > b->made.ino;
}

/* --- renames of a record ------------------------------------------------------------------------
 */

struct moved {
	unsigned index;
	int mount;
	const char *from, *to; /* borrowed from the record */
};

struct moves {
	const struct workspace *ws;
	struct moved *all;
	size_t n;
};

static void moves_done(struct moves *m)
{
	free(m->all);
}

static int collect_moves(
	const struct workspace *ws, struct record_reader r, struct moves *m, struct err *err)
{
	struct record_change c;
	int e;
	m->ws = ws;
	for (unsigned i = 0; (e = record_next(&r, &c, err)) == 1; i++) {
		if (c.kind != CHANGE_RENAME)
			continue;
		if ((m->n & (m->n + 1)) == 0) { /* full at 0, 1, 3, 7, ... */
			struct moved *more = realloc(m->all, 2 * (m->n + 1) * sizeof(*more));
			if (!more)
				return err_oom(err);
			m->all = more;
		}
		m->all[m->n++] = (struct moved){.index = i,
			.mount = history_mount(ws, &r.head, c.mount),
			.from = c.from,
			.to = c.path};
	}
	return e;
}

enum { PATH_ROOM = LIMIT_PATH_BYTES * 2, FOLLOW_MAX = 50 * 1000 * 1000 };

static void follow(char path[PATH_ROOM], const char *from, const char *to)
{
	char moved[PATH_ROOM];
	if (strcmp(path, from) != 0 && !path_is_below(path, from))
		return;
	(void)snprintf(moved, sizeof(moved), "%s%s", to, path + strlen(from));
	memcpy(path, moved, sizeof(moved));
}

/* Where what change `index` speaks of is when the record is over. */
static void path_at_end(const struct moves *m, int mount, unsigned index, char path[PATH_ROOM])
{
	for (size_t i = 0; i < m->n; i++)
		if (m->all[i].index > index && m->all[i].mount == mount)
			follow(path, m->all[i].from, m->all[i].to);
}

/* Where an object of before the record is at the moment of change `index`. */
static void path_at(const struct moves *m, int mount, unsigned index, char path[PATH_ROOM])
{
	for (size_t i = 0; i < m->n; i++)
		if (m->all[i].index < index && m->all[i].mount == mount)
			follow(path, m->all[i].from, m->all[i].to);
}

/* --- N and S ------------------------------------------------------------------------------------
 */

/* What record N has made. */
static int note_made(
	const struct workspace *ws, struct aliases *a, struct record_reader r, struct err *err)
{
	char path[PATH_ROOM];
	struct record_change c;
	_cleanup_(moves_done) struct moves moves = {0};
	int e = collect_moves(ws, r, &moves, err);
	for (unsigned i = 0; e >= 0 && (e = record_next(&r, &c, err)) == 1; i++) {
		int m = history_mount(ws, &r.head, c.mount);
		if (m < 0 || !makes_inode(&c) || c.after.ino == 0)
			continue;
		(void)snprintf(path, sizeof(path), "%s", c.path);
		path_at_end(&moves, m, i, path);
		if ((e = add(a, (unsigned)m, r.head.undoes, &c.after, path, err)) < 0)
			return e;
	}
	if (a->n > 0)
		qsort(a->all, a->n, sizeof(*a->all), by_path);
	return e;
}

/* The first alias of S at or behind a path. */
static size_t lower(const struct aliases *a, const struct alias *key)
{
	size_t lo = 0, hi = a->n;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (by_path(&a->all[mid], key) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* What is kept of an old object, when it is the inode itself. */
static struct identity kept_identity(
	const struct workspace *ws, unsigned mount, const struct record_change *c, const char *rest)
{
	struct stat st;
	char kept[LIMIT_PATH_BYTES * 2];
	struct identity id = {
		.ino = *rest ? 0 : c->before.ino, .size = *rest ? -1 : c->size_before};
	if (!c->saved[0] || (c->flags & (RECORD_IN_PLACE | RECORD_COPIED)) != 0)
		return id;
	(void)snprintf(kept, sizeof(kept), "%s%s", c->saved, rest);
	_cleanup_close_ int fd = fs_look(ws->mounts[mount].saved_fd, kept);
	if (fd < 0 || fstat(fd, &st) < 0 || (id.ino != 0 && id.ino != st.st_ino))
		return id;
	return identity_of(&st);
}

/* Does an object at `path` have old content in what this change keeps? Then *ret_rest is the rest
 * of the path below the change's own. */
static bool is_kept_by(const struct record_change *c, const char *path, const char **ret_rest)
{
	size_t n = strlen(c->path);
	if (strncmp(path, c->path, n) != 0)
		return false;
	*ret_rest = path + n;
	return path[n] == '\0' || (path[n] == '/' && c->kind == CHANGE_DELETE);
}

static bool keeps_content(const struct record_change *c)
{
	return c->kind == CHANGE_REPLACE || c->kind == CHANGE_DELETE || c->kind == CHANGE_APPEND;
}

/* Put what record S replaced or deleted together with what has been made in its place. Without
 * renames in S the candidates lie side by side. */
static void note_meant(const struct workspace *ws, struct aliases *a, uint64_t seq, int m,
	const struct record_change *c)
{
	struct alias key = {
		.undoes = seq, .mount = (unsigned)m, .path = (char *)(uintptr_t)c->path};
	const char *rest;
	size_t n = strlen(c->path);
	for (size_t i = lower(a, &key); i < a->n; i++) {
		struct alias *x = &a->all[i];
		if (x->undoes != seq || x->mount != (unsigned)m ||
			strncmp(x->path, c->path, n) != 0)
			break;
		if (x->means.ino == 0 && is_kept_by(c, x->path, &rest))
			x->means = kept_identity(ws, (unsigned)m, c, rest);
	}
}

/* With renames in S each path has to be followed to the moment of each change. */
static void note_meant_moved(const struct workspace *ws, struct aliases *a, uint64_t seq, int m,
	const struct record_change *c, const struct moves *moves, unsigned index)
{
	char path[PATH_ROOM];
	const char *rest;
	for (size_t i = 0; i < a->n; i++) {
		struct alias *x = &a->all[i];
		if (x->undoes != seq || x->mount != (unsigned)m || x->means.ino != 0)
			continue;
		(void)snprintf(path, sizeof(path), "%s", x->path);
		path_at(moves, m, index, path);
		if (is_kept_by(c, path, &rest))
			x->means = kept_identity(ws, (unsigned)m, c, rest);
	}
}

static bool has(const struct aliases *a, uint64_t seq)
{
	for (size_t i = 0; i < a->n; i++)
		if (a->all[i].undoes == seq)
			return true;
	return false;
}

static int meet_meant(
	const struct workspace *ws, struct aliases *a, struct record_reader r, struct err *err)
{
	struct record_change c;
	_cleanup_(moves_done) struct moves moves = {0};
	int e = collect_moves(ws, r, &moves, err);
	/* Beyond this, what was not put together is a conflict: safe, and bounded. */
	bool follow_moves = moves.n > 0 && a->n * moves.n * r.head.n_changes <= FOLLOW_MAX;
	for (unsigned i = 0; e >= 0 && (e = record_next(&r, &c, err)) == 1; i++) {
		int m = history_mount(ws, &r.head, c.mount);
		if (m < 0 || !keeps_content(&c))
			continue;
		if (follow_moves)
			note_meant_moved(ws, a, r.head.seq, m, &c, &moves, i);
		else
			note_meant(ws, a, r.head.seq, m, &c);
	}
	return e;
}

int aliases_meet(
	const struct workspace *ws, struct aliases *a, struct record_reader r, struct err *err)
{
	int e = has(a, r.head.seq) ? meet_meant(ws, a, r, err) : 0;
	if (e == 0 && r.head.undoes != 0)
		e = note_made(ws, a, r, err);
	return e;
}

void aliases_finish(struct aliases *a)
{
	if (a->n > 0)
		qsort(a->all, a->n, sizeof(*a->all), by_inode);
}

static bool is_made(const struct alias *a, const struct identity *id)
{
	return a->made.size == id->size && a->made.mtime.tv_sec == id->mtime.tv_sec &&
	       a->made.mtime.tv_nsec == id->mtime.tv_nsec;
}

bool aliases_resolve(const struct aliases *a, bool content, struct identity *id)
{
	struct alias key = {.made = {.ino = id->ino}};
	const struct alias *x =
		a->n ? bsearch(&key, a->all, a->n, sizeof(*a->all), by_inode) : NULL;
	/* A number that was used again: look at all of the same number. */
	while (x && x > a->all && x[-1].made.ino == id->ino)
		x--;
	for (; x && x < a->all + a->n && x->made.ino == id->ino; x++)
		if (x->means.ino != 0 && (!content || is_made(x, id))) {
			*id = x->means;
			return true;
		}
	return false;
}
