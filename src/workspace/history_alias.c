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
	bool anew;  /* N made it where nothing was, so S has removed something there */
	char *path; /* owned */
};

void aliases_done(struct aliases *a)
{
	for (size_t i = 0; i < a->n; i++)
		free(a->all[i].path);
	free(a->all);
}

static int add(struct aliases *a, unsigned mount, uint64_t undoes, const struct record_change *c,
	struct err *err)
{
	if (a->n == a->cap) {
		size_t cap = a->cap ? a->cap * 2 : 32;
		struct alias *more = realloc(a->all, cap * sizeof(*more));
		if (!more)
			return err_oom(err);
		a->all = more;
		a->cap = cap;
	}
	char *path = strdup(c->path);
	if (!path)
		return err_oom(err);
	a->all[a->n++] = (struct alias){.made = c->after,
		.undoes = undoes,
		.mount = mount,
		.anew = c->kind != CHANGE_REPLACE,
		.path = path};
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

/* What record N has made. */
static int note_made(
	const struct workspace *ws, struct aliases *a, struct record_reader r, struct err *err)
{
	struct record_change c;
	int e;
	while ((e = record_next(&r, &c, err)) == 1) {
		int m = history_mount(ws, &r.head, c.mount);
		if (m < 0 || !makes_inode(&c) || c.after.ino == 0)
			continue;
		if ((e = add(a, (unsigned)m, r.head.undoes, &c, err)) < 0)
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

/* Put what record S replaced or deleted together with what has been made in its place. */
static void note_meant(const struct workspace *ws, struct aliases *a, uint64_t seq, unsigned m,
	const struct record_change *c)
{
	if (c->kind != CHANGE_REPLACE && c->kind != CHANGE_DELETE && c->kind != CHANGE_APPEND)
		return;
	char path[LIMIT_PATH_BYTES + 1];
	(void)snprintf(path, sizeof(path), "%s", c->path);
	struct alias key = {.undoes = seq, .mount = m, .path = path};
	size_t n = strlen(path);
	for (size_t i = lower(a, &key); i < a->n; i++) {
		struct alias *x = &a->all[i];
		if (x->undoes != seq || x->mount != m || strncmp(x->path, path, n) != 0)
			break;
		const char *rest = x->path + n;
		bool removed = c->kind == CHANGE_DELETE, below = *rest == '/' && removed;
		if ((*rest == '\0' || below) && x->anew == removed && x->means.ino == 0)
			x->means = kept_identity(ws, m, c, rest);
	}
}

static bool has(const struct aliases *a, uint64_t seq)
{
	for (size_t i = 0; i < a->n; i++)
		if (a->all[i].undoes == seq)
			return true;
	return false;
}

int aliases_meet(
	const struct workspace *ws, struct aliases *a, struct record_reader r, struct err *err)
{
	struct record_change c;
	int e = 0;
	struct record_reader made = r;
	if (has(a, r.head.seq)) {
		while ((e = record_next(&r, &c, err)) == 1) {
			int m = history_mount(ws, &r.head, c.mount);
			if (m >= 0)
				note_meant(ws, a, r.head.seq, (unsigned)m, &c);
		}
	}
	if (e == 0 && r.head.undoes != 0)
		e = note_made(ws, a, made, err);
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
