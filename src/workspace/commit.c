/*
 * Commit: one change set becomes the workspace.
 *
 * The order is in commit.h. Everything up to the intent can fail without a trace; from the intent
 * on, a failure takes the published steps back, and a death leaves a record by which the next
 * writer finishes or takes back.
 */
#include "workspace/changeset_impl.h"
#include "workspace/history_log.h"

#include "sys/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/xattr.h>

struct commit {
	struct workspace *ws;
	struct changeset *cs;
	struct store *store;
	uint64_t seq;
	struct step *steps; /* owned; texts borrowed from the change set */
	unsigned n;
	int64_t bytes, entries;
	const struct commit_info *info;
	bool keep; /* what is replaced and deleted goes into the history */
	struct commit_result result;
};

/* --- which store ------------------------------------------------------------------------------ */

static int find_store(struct commit *c, struct err *err)
{
	for (unsigned i = 0; i < c->cs->n; i++) {
		struct store *s = c->ws->mounts[c->cs->ops[i]->mount].store;
		if (c->store && s != c->store)
			return err_set(err, ERR_UNSUPPORTED,
				"one call cannot change a shared volume and the workspace");
		c->store = s;
	}
	return 0;
}

/* --- checks ----------------------------------------------------------------------------------- */

static int changed(const struct commit *c, const struct op *op, struct err *err)
{
	_cleanup_buf_ struct buf b = buf_init(ERR_TEXT_MAX);
	mount_agent_path(&c->ws->mounts[op->mount], op->base.path, &b);
	return err_set(
		err, ERR_CONFLICT, "'%s' was changed by somebody else meanwhile", buf_str(&b));
}

/* The tree below a directory that is to be deleted, counted again when others have committed. */
static int recount(
	const struct commit *c, struct op *op, int dir, const char *leaf, struct err *err)
{
	struct tree_sum sum;
	_cleanup_close_ int fd = fs_open(dir, leaf, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (fd < 0 || tree_count(fd, NULL, &sum) < 0)
		return mount_err(&c->ws->mounts[op->mount], op->base.path, errno, err);
	if (sum.entries + 1 != op->entries || sum.bytes != op->bytes)
		return changed(c, op, err);
	return 0;
}

static bool others_committed(const struct commit *c)
{
	for (unsigned i = 0; i < c->ws->n_stores; i++)
		if (c->ws->stores[i] == c->store)
			return atomic_load(&c->store->st->done) != c->cs->seqs[i];
	return true;
}

/* Is what an operation relies on still what the view saw? */
static int check_base(const struct commit *c, struct op *op, struct err *err)
{
	int r;
	struct stat st;
	const char *leaf;
	_cleanup_close_ int dir = -1;
	const struct mount *m = &c->ws->mounts[op->mount];
	r = mount_open_parent(m, op->base.path, &dir, &leaf, err);
	if (r == -ERR_NOT_FOUND || r == -ERR_NOT_DIRECTORY || r == -ERR_LINK_REFUSED)
		return changed(c, op, err);
	if (r < 0)
		return r;
	if (fs_lstat(dir, leaf, &st) < 0)
		return errno == ENOENT ? changed(c, op, err)
				       : mount_err(m, op->base.path, errno, err);
	struct identity now = identity_of(&st), then = identity_of(&op->base.st);
	if (!S_ISDIR(st.st_mode))
		return identity_eq(&now, &then) ? 0 : changed(c, op, err);
	if (now.ino != then.ino || now.dev != then.dev)
		return changed(c, op, err);
	if (op->kind == CHANGE_DELETE && others_committed(c))
		return recount(c, op, dir, leaf, err);
	return 0;
}

/* A parent that somebody else has made meanwhile is as good as one that we make. */
static bool is_made_already(const struct commit *c, const struct op *op)
{
	struct stat st;
	_cleanup_close_ int fd = -1;
	if (!op->optional)
		return false;
	fd = fs_look(c->ws->mounts[op->mount].root_fd, op->path);
	return fd >= 0 && fstat(fd, &st) == 0 && S_ISDIR(st.st_mode);
}

static void make_step(struct commit *c, unsigned i)
{
	const struct op *op = c->cs->ops[i];
	const struct change *ch = &c->cs->changes[i];
	struct delta d = op_delta(op);
	c->steps[c->n] = (struct step){
		.kind = op->kind,
		.mount = op->mount,
		.index = c->n,
		.flags = (op->is_dir ? STEP_DIR : 0) | (op->base.path ? STEP_BASE : 0),
		.path = op->path,
		.from = op->from,
		.target = op->target,
		.mode_before = ch->mode_before,
		.mode_after = op->mode,
		.base_ino = op->base.path ? op->base.st.st_ino : 0,
		.size_before = ch->size_before,
		.size_after = ch->size_after,
		.bytes = d.bytes,
		.entries = d.entries,
		.content_fd = -1,
	};
	c->n++;
	c->bytes += d.bytes, c->entries += d.entries;
}

static int check(struct commit *c, struct err *err)
{
	int r;
	c->steps = calloc(c->cs->n, sizeof(*c->steps));
	if (!c->steps)
		return err_oom(err);
	for (unsigned i = 0; i < c->cs->n; i++) {
		struct op *op = c->cs->ops[i];
		if (op->base.path && (r = check_base(c, op, err)) < 0)
			return r;
		if (!is_made_already(c, op))
			make_step(c, i);
	}
	return quota_check(c->ws, c->store, c->bytes, c->entries, err);
}

/* --- preparing content -------------------------------------------------------------------------
 */

static const struct op *op_of(const struct commit *c, const struct step *s)
{
	/* Steps leave out operations that are not needed, and keep the order. */
	for (unsigned i = s->index; i < c->cs->n; i++)
		if (c->cs->ops[i]->path == s->path)
			return c->cs->ops[i];
	BUG_ON(true);
}

/* Copy one extended attribute (an ACL is one, too). False when it cannot be kept. */
static bool copy_xattr(int from, int to, const char *name)
{
	char value[65536 / 4];
	ssize_t n = fgetxattr(from, name, value, sizeof(value));
	if (n < 0)
		return errno == ENODATA;
	return fsetxattr(to, name, value, (size_t)n, 0) == 0;
}

static bool copy_xattrs(int from, int to)
{
	char names[16384];
	ssize_t n = flistxattr(from, names, sizeof(names));
	if (n < 0)
		return errno == EOPNOTSUPP;
	for (ssize_t i = 0; i < n; i += (ssize_t)strlen(names + i) + 1)
		if (!copy_xattr(from, to, names + i))
			return false;
	return true;
}

/* Give the new inode what the old one has: owner, mode, ACL, attributes. */
static bool copy_attributes(int from, const struct stat *old, int to, mode_t mode)
{
	struct stat now;
	if (fstat(to, &now) < 0)
		return false;
	if ((now.st_uid != old->st_uid || now.st_gid != old->st_gid) &&
		fchown(to, old->st_uid, old->st_gid) < 0)
		return false;
	return copy_xattrs(from, to) && fchmod(to, mode) == 0;
}

/* Does somebody have this file open for writing, or could have by another name? Then what is saved
 * of it could still change, and history needs a copy. */
static bool may_change_later(int fd, const struct stat *st)
{
	if (st->st_nlink > 1)
		return true;
	/* A read lease is granted only while nobody has the file open for writing (fcntl(2)). */
	if (fcntl(fd, F_SETLEASE, F_RDLCK) == 0) {
		(void)fcntl(fd, F_SETLEASE, F_UNLCK);
		return false;
	}
	return errno == EAGAIN;
}

static int copy_old(
	const struct commit *c, struct step *s, int old, const char *name, struct err *err)
{
	int saved = c->ws->mounts[s->mount].saved_fd;
	(void)unlinkat(saved, name, 0); /* of a commit that died before its intent */
	_cleanup_close_ int fd =
		openat(saved, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || fs_copy(old, 0, fd, 0, -1) < 0)
		return err_sys(err, errno, "keeping the old content");
	(void)fchmod(fd, s->mode_before);
	return 0;
}

/* Put the content under its saved name, from where it is swapped in. */
static int name_content(
	const struct commit *c, struct step *s, struct staged *content, struct err *err)
{
	char name[STEP_NAME];
	int saved = c->ws->mounts[s->mount].saved_fd;
	step_saved_name(c->seq, s, name);
	(void)unlinkat(saved, name, 0);
	int r = content->name[0] ? fs_rename_new(saved, content->name, saved, name)
				 : fs_link(content->fd, saved, name);
	if (r < 0)
		return err_sys(err, errno, "naming a staged file");
	content->name[0] = '\0';
	s->flags |= STEP_NAMED;
	return 0;
}

static int prepare_replace(
	struct commit *c, struct step *s, struct staged *content, struct err *err)
{
	int r;
	char name[STEP_NAME];
	const struct op *op = op_of(c, s);
	const struct mount *m = &c->ws->mounts[s->mount];
	_cleanup_close_ int old =
		fs_open(m->root_fd, op->base.path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW, 0);
	if (old < 0 && errno != EACCES)
		return mount_err(m, op->base.path, errno, err);
	if (old < 0 || !copy_attributes(old, &op->base.st, content->fd, s->mode_after)) {
		if (op->base.st.st_nlink > 1 || old < 0)
			return mount_err(m, op->base.path, EPERM, err);
		s->flags |= STEP_IN_PLACE;
		c->result.in_place++;
		step_saved_name(c->seq, s, name);
		return copy_old(c, s, old, name, err);
	}
	if (c->keep && may_change_later(old, &op->base.st)) {
		step_copy_name(c->seq, s, name);
		if ((r = copy_old(c, s, old, name, err)) < 0)
			return r;
		s->flags |= STEP_COPIED;
	}
	return name_content(c, s, content, err);
}

static int prepare_content(
	struct commit *c, struct step *s, struct staged *content, struct err *err)
{
	int r;
	struct stat st;
	if ((r = staged_reopen(content, err)) < 0)
		return r;
	if (fstat(content->fd, &st) < 0)
		return err_sys(err, errno, "looking at a staged file");
	s->content_ino = st.st_ino;
	s->content_fd = content->fd;
	if (s->kind == CHANGE_REPLACE)
		return prepare_replace(c, s, content, err);
	if (s->kind == CHANGE_CREATE && fchmod(content->fd, s->mode_after) < 0)
		return err_sys(err, errno, "setting a mode");
	return content->name[0] && s->kind == CHANGE_CREATE ? name_content(c, s, content, err) : 0;
}

static int prepare_delete(struct commit *c, struct step *s, struct err *err)
{
	int r;
	char name[STEP_NAME];
	const struct op *op = op_of(c, s);
	const struct mount *m = &c->ws->mounts[s->mount];
	if (!op->base.path || !S_ISREG(op->base.st.st_mode) || !c->keep)
		return 0;
	_cleanup_close_ int old =
		fs_open(m->root_fd, op->base.path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW, 0);
	if (old < 0 || !may_change_later(old, &op->base.st))
		return 0;
	step_copy_name(c->seq, s, name);
	if ((r = copy_old(c, s, old, name, err)) < 0)
		return r;
	s->flags |= STEP_COPIED;
	return 0;
}

static int prepare(struct commit *c, struct err *err)
{
	int r = 0;
	for (unsigned i = 0; i < c->n && r == 0; i++) {
		struct step *s = &c->steps[i];
		struct staged *content = op_of(c, s)->content;
		if (content)
			r = prepare_content(c, s, content, err);
		else if (s->kind == CHANGE_DELETE)
			r = prepare_delete(c, s, err);
	}
	return r;
}

static void drop_prepared(const struct commit *c)
{
	for (unsigned i = 0; i < c->n; i++)
		step_drop(c->ws, c->seq, &c->steps[i]);
}

/* --- publishing ---------------------------------------------------------------------------------
 */

static int take_back(struct commit *c, unsigned done, struct err *why)
{
	struct err ignored;
	int r = -(int)why->code;
	for (unsigned i = done; i-- > 0;)
		if (step_back(c->ws, c->seq, &c->steps[i], &ignored) < 0)
			r = err_wrap(why, "some changes could not be taken back");
	return r;
}

static int publish(struct commit *c, struct err *err)
{
	for (unsigned i = 0; i < c->n; i++)
		if (step_forward(c->ws, c->seq, &c->steps[i], err) < 0)
			return take_back(c, i, err);
	return 0;
}

static int outcome(struct commit *c, struct err *err)
{
	int r;
	struct store_state *st = c->store->st;
	for (unsigned i = 0; i < c->n; i++)
		if ((r = step_keep(c->ws, c->seq, &c->steps[i], c->keep, err)) < 0)
			return r;
	struct history_head head = {.seq = c->seq,
		.undoes = c->cs->undoes,
		.info = c->info,
		.keep = c->keep,
		.why_not = c->result.undo_why_not};
	if ((r = history_add(c->ws, c->store, &head, c->steps, c->n, err)) < 0)
		return r;
	int64_t bytes = atomic_load(&st->bytes) + c->bytes;
	int64_t entries = atomic_load(&st->entries) + c->entries;
	atomic_store(&st->bytes, MAX(bytes, (int64_t)0));
	atomic_store(&st->entries, MAX(entries, (int64_t)0));
	atomic_store(&st->intent, c->seq);
	atomic_store(&st->done, c->seq);
	return 0;
}

static int commit_locked(struct commit *c, struct err *err)
{
	int r;
	c->seq = atomic_load(&c->store->st->done) + 1;
	if ((r = quota_know(c->ws, c->store, err)) < 0 || (r = check(c, err)) < 0 ||
		(r = history_would_keep(
			 c->ws, c->steps, c->n, &c->keep, &c->result.undo_why_not, err)) < 0)
		return r;
	c->result.undo = c->keep;
	if ((r = prepare(c, err)) < 0 || (r = publish(c, err)) < 0) {
		drop_prepared(c);
		return r;
	}
	return outcome(c, err);
}

static void fill_result(const struct commit *c, struct commit_result *ret)
{
	const struct store_state *st = c->store ? c->store->st : NULL;
	*ret = c->result;
	if (!st)
		st = c->ws->mounts[0].read_only ? NULL : c->ws->stores[0]->st;
	if (!st)
		return;
	ret->seq = atomic_load(&st->done);
	ret->usage_bytes = atomic_load(&st->bytes);
	ret->usage_entries = atomic_load(&st->entries);
}

int changeset_commit(struct workspace *ws, struct changeset *take, const struct commit_info *info,
	struct commit_result *ret, struct err *err)
{
	int r;
	_cleanup_(cleanup_changeset_free) struct changeset *cs = take;
	struct commit c = {.ws = ws, .cs = cs, .info = info};
	if ((r = find_store(&c, err)) < 0)
		return r;
	if (cs->n > 0) {
		if ((r = store_lock(c.store, ws->opt.lock_wait_ms, err)) < 0)
			return r;
		r = commit_locked(&c, err);
		store_unlock(c.store);
	}
	free(c.steps);
	if (r == 0)
		fill_result(&c, ret);
	return r;
}
