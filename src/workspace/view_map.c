/* The map and the list of a view: see view_impl.h. No I/O here. */
#include "workspace/view_impl.h"

#include <stdio.h>

enum { BUCKETS_MIN = 64 };

bool path_is_below(const char *path, const char *dir)
{
	size_t n = strlen(dir);
	if (n == 0)
		return *path != '\0';
	return strncmp(path, dir, n) == 0 && path[n] == '/';
}

/* FNV-1a over the bytes, started by the address of the view, which an agent cannot know. */
static uint64_t hash_of(const struct view *v, unsigned mount, const char *path, size_t n)
{
	uint64_t h = 0xcbf29ce484222325u ^ ((uintptr_t)v << 8) ^ mount;
	for (size_t i = 0; i < n; i++)
		h = (h ^ (unsigned char)path[i]) * 0x100000001b3u;
	return h ^ h >> 32;
}

struct entry *view_entry(const struct view *v, unsigned mount, const char *path, size_t n)
{
	if (v->n_entries == 0)
		return NULL;
	uint64_t h = hash_of(v, mount, path, n);
	for (struct entry *e = v->buckets[h % v->n_buckets]; e; e = e->next)
		if (e->hash == h && e->mount == mount && strncmp(e->path, path, n) == 0 &&
			e->path[n] == '\0')
			return e;
	return NULL;
}

static void entry_free(struct entry *e)
{
	cleanup_close(&e->merged_fd);
	base_done(&e->real);
	free(e->path);
	free(e);
}

static void put_in(struct entry **buckets, size_t n, struct entry *e)
{
	e->next = buckets[e->hash % n];
	buckets[e->hash % n] = e;
}

static int grow(struct view *v, struct err *err)
{
	if (v->n_entries < v->n_buckets)
		return 0;
	size_t n = MAX(v->n_buckets * 2, (size_t)BUCKETS_MIN);
	struct entry **b = calloc(n, sizeof(struct entry *));
	if (!b)
		return err_oom(err);
	for (size_t i = 0; i < v->n_buckets; i++)
		for (struct entry *e = v->buckets[i], *next; e; e = next) {
			next = e->next;
			put_in(b, n, e);
		}
	free(v->buckets);
	v->buckets = b, v->n_buckets = n;
	return 0;
}

int view_entry_make(
	struct view *v, unsigned mount, const char *path, struct entry **ret, struct err *err)
{
	int r;
	struct entry *e = view_entry(v, mount, path, strlen(path));
	if (e) {
		*ret = e;
		return 0;
	}
	if (v->n_entries >= 2 * LIMIT_CHANGES)
		return err_set(
			err, ERR_LIMIT, "one call can touch at most %d names", 2 * LIMIT_CHANGES);
	if ((r = grow(v, err)) < 0)
		return r;
	e = calloc(1, sizeof(*e));
	if (!e || !(e->path = strdup(path))) {
		free(e);
		return err_oom(err);
	}
	e->mount = mount;
	e->merged_fd = -1;
	e->hash = hash_of(v, mount, path, strlen(path));
	put_in(v->buckets, v->n_buckets, e);
	v->n_entries++;
	*ret = e;
	return 0;
}

static void unhook(struct view *v, struct entry *e)
{
	struct entry **at = &v->buckets[e->hash % v->n_buckets];
	while (*at != e)
		at = &(*at)->next;
	*at = e->next;
	v->n_entries--;
}

/* Call fn for every entry below a path; it may unhook that entry. */
static int each_below(struct view *v, unsigned mount, const char *path,
	int (*fn)(struct view *v, struct entry *e, void *ctx), void *ctx)
{
	int r = 0;
	for (size_t i = 0; i < v->n_buckets && r == 0; i++)
		for (struct entry *e = v->buckets[i], *next; e && r == 0; e = next) {
			next = e->next;
			if (e->mount == mount && path_is_below(e->path, path))
				r = fn(v, e, ctx);
		}
	return r;
}

static int forget(struct view *v, struct entry *e, void *ctx)
{
	(void)ctx;
	unhook(v, e);
	entry_free(e);
	return 0;
}

void view_entry_forget(struct view *v, struct entry *e)
{
	(void)forget(v, e, NULL);
}

void view_forget_below(struct view *v, unsigned mount, const char *path)
{
	(void)each_below(v, mount, path, forget, NULL);
}

struct rekey {
	const char *from, *to;
	struct entry *moved; /* unhooked, waiting for their new place */
	bool oom;
};

static int rekey_one(struct view *v, struct entry *e, void *ctx)
{
	struct rekey *k = ctx;
	char *path = NULL;
	if (asprintf(&path, "%s%s", k->to, e->path + strlen(k->from)) < 0) {
		k->oom = true;
		return -1;
	}
	unhook(v, e);
	free(e->path);
	e->path = path;
	e->next = k->moved;
	k->moved = e;
	return 0;
}

int view_rekey(struct view *v, unsigned mount, const char *from, const char *to, struct err *err)
{
	struct rekey k = {.from = from, .to = to};
	(void)each_below(v, mount, from, rekey_one, &k);
	while (k.moved) {
		struct entry *e = k.moved;
		k.moved = e->next;
		e->hash = hash_of(v, mount, e->path, strlen(e->path));
		put_in(v->buckets, v->n_buckets, e);
		v->n_entries++;
	}
	return k.oom ? err_oom(err) : 0;
}

void view_clear_entries(struct view *v)
{
	for (size_t i = 0; i < v->n_buckets; i++)
		for (struct entry *e = v->buckets[i], *next; e; e = next) {
			next = e->next;
			entry_free(e);
		}
	free(v->buckets);
	v->buckets = NULL;
	v->n_buckets = v->n_entries = 0;
}

int base_set(struct base *b, const char *path, const struct stat *st, struct err *err)
{
	char *copy = strdup(path);
	if (!copy)
		return err_oom(err);
	free(b->path);
	b->path = copy;
	b->st = *st;
	return 0;
}

void base_done(struct base *b)
{
	free(b->path);
	b->path = NULL;
}

int op_new(struct view *v, enum change_kind kind, unsigned mount, const char *path, struct op **ret,
	struct err *err)
{
	if (v->n_ops >= LIMIT_CHANGES)
		return err_set(
			err, ERR_LIMIT, "one call can make at most %d changes", LIMIT_CHANGES);
	struct op *op = calloc(1, sizeof(*op));
	if (!op || !(op->path = strdup(path))) {
		free(op);
		return err_oom(err);
	}
	op->kind = kind;
	op->mount = mount;
	*ret = op;
	return 0;
}

void op_append(struct view *v, struct op *op)
{
	op->prev = v->last;
	op->next = NULL;
	if (v->last)
		v->last->next = op;
	else
		v->first = op;
	v->last = op;
	v->n_ops++;
}

void op_unlink(struct view *v, struct op *op)
{
	if (op->prev)
		op->prev->next = op->next;
	else
		v->first = op->next;
	if (op->next)
		op->next->prev = op->prev;
	else
		v->last = op->prev;
	op->prev = op->next = NULL;
	v->n_ops--;
}

void op_free(struct op *op)
{
	if (!op)
		return;
	free(op->path);
	free(op->from);
	free(op->target);
	free(op->like);
	base_done(&op->base);
	staged_free(op->content);
	free(op);
}

int op_like(struct op *op, const char *kept, struct err *err)
{
	free(op->like);
	op->like = NULL;
	op->unlike = strlen(kept) >= LIMIT_PATH_BYTES;
	if (op->unlike)
		return 0;
	return (op->like = strdup(kept)) ? 0 : err_oom(err);
}

struct delta op_delta(const struct op *op)
{
	switch (op->kind) {
	case CHANGE_CREATE: return (struct delta){op->content->size, 1};
	case CHANGE_REPLACE: return (struct delta){op->content->size - op->base.st.st_size, 0};
	case CHANGE_APPEND: return (struct delta){op->content->size, 0};
	case CHANGE_DELETE: return (struct delta){-op->bytes, -op->entries};
	case CHANGE_MKDIR:
	case CHANGE_LINK: return (struct delta){0, 1};
	case CHANGE_RENAME:
	case CHANGE_MODE: return (struct delta){0, 0};
	case CHANGE_KIND_MAX_: break;
	}
	BUG_ON(true);
}
