/* Putting the operations of a change set together by the object that they are about: see
 * netchange.h. */
#include "workspace/netchange.h"

#include <stdio.h>

struct build {
	struct net_changes *out;
	struct net_change **buckets;
	size_t n_buckets;
};

static uint64_t hash_path(unsigned mount, const char *path)
{
	uint64_t h = 0xcbf29ce484222325 ^ mount;
	for (; *path; path++)
		h = (h ^ (unsigned char)*path) * 0x100000001b3;
	return h ^ (h >> 31);
}

static void hook(struct build *b, struct net_change *c)
{
	c->hash = hash_path(c->mount, c->path);
	struct net_change **at = &b->buckets[c->hash % b->n_buckets];
	c->next = *at;
	*at = c;
}

static void unhook(struct build *b, struct net_change *c)
{
	struct net_change **at = &b->buckets[c->hash % b->n_buckets];
	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	c->next = NULL;
}

static struct net_change *find(const struct build *b, unsigned mount, const char *path)
{
	uint64_t h = hash_path(mount, path);
	for (struct net_change *c = b->buckets[h % b->n_buckets]; c; c = c->next)
		if (c->hash == h && c->mount == mount && strcmp(c->path, path) == 0)
			return c;
	return NULL;
}

void net_changes_done(struct net_changes *n)
{
	for (size_t i = 0; i < n->n; i++) {
		free(n->all[i]->path);
		free(n->all[i]);
	}
	free(n->all);
}

/* The object that is at a path at this point of the list; a new one when it was not met before.
 * NULL: out of memory. */
static struct net_change *object_at(struct build *b, const struct op *op, const char *path)
{
	struct net_change *c = op->kind == CHANGE_CREATE ? NULL : find(b, op->mount, path);
	if (c)
		return c;
	c = calloc(1, sizeof(*c));
	if (!c || !(c->path = strdup(path))) {
		free(c);
		return NULL;
	}
	c->mount = op->mount;
	c->before = op->base.path ? &op->base : NULL;
	c->mode = c->before ? op->base.st.st_mode : (op->is_dir ? S_IFDIR : S_IFREG) | op->mode;
	b->out->all[b->out->n++] = c;
	hook(b, c);
	return c;
}

static int move_to(struct build *b, struct net_change *c, const char *path, struct err *err)
{
	char *copy = strdup(path);
	if (!copy)
		return err_oom(err);
	unhook(b, c);
	free(c->path);
	c->path = copy;
	hook(b, c);
	return 0;
}

/* A directory has moved with everything that is known below it. */
static int move_below(struct build *b, const struct op *op, struct err *err)
{
	char path[LIMIT_PATH_BYTES * 2];
	for (size_t i = 0; i < b->out->n; i++) {
		struct net_change *c = b->out->all[i];
		if (!c->path || c->mount != op->mount || !path_is_below(c->path, op->from) ||
			strcmp(c->path, op->from) == 0)
			continue;
		(void)snprintf(path, sizeof(path), "%s%s", op->path, c->path + strlen(op->from));
		int r = move_to(b, c, path, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int apply_rename(struct build *b, const struct op *op, struct net_change *c, struct err *err)
{
	int r = move_to(b, c, op->path, err);
	return r == 0 && op->is_dir ? move_below(b, op, err) : r;
}

static int apply(struct build *b, const struct op *op, struct err *err)
{
	struct net_change *c = object_at(b, op, op->kind == CHANGE_RENAME ? op->from : op->path);
	if (!c)
		return err_oom(err);
	struct delta d = op_delta(op);
	c->bytes += d.bytes, c->entries += d.entries;
	switch (op->kind) {
	case CHANGE_CREATE:
	case CHANGE_REPLACE:
		c->content = op->content;
		c->tail = NULL;
		c->mode = S_IFREG | (op->mode & 07777);
		return 0;
	case CHANGE_APPEND: c->tail = op->content; return 0;
	case CHANGE_MODE: c->mode = (c->mode & S_IFMT) | (op->mode & 07777); return 0;
	case CHANGE_MKDIR: c->mode = S_IFDIR | (op->mode & 07777); return 0;
	case CHANGE_LINK:
		c->target = op->target;
		c->mode = S_IFLNK | 0777;
		return 0;
	case CHANGE_RENAME: return apply_rename(b, op, c, err);
	case CHANGE_DELETE:
		unhook(b, c);
		free(c->path);
		c->path = NULL;
		return 0;
	case CHANGE_KIND_MAX_: break;
	}
	BUG_ON(true);
}

int net_changes_of(const struct changeset *cs, struct net_changes *ret, struct err *err)
{
	int r = 0;
	*ret = (struct net_changes){0};
	struct build b = {.out = ret, .n_buckets = (size_t)cs->n * 2 + 1};
	_cleanup_free_ struct net_change **buckets = calloc(b.n_buckets, sizeof(*buckets));
	ret->all = calloc((size_t)cs->n + 1, sizeof(struct net_change *));
	if (!buckets || !ret->all)
		return err_oom(err);
	b.buckets = buckets;
	for (unsigned i = 0; i < cs->n && r == 0; i++)
		r = apply(&b, cs->ops[i], err);
	return r;
}
