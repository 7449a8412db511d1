/*
 * Commit: one change set becomes the workspace.
 *
 * The order is in commit.h. Everything up to the intent can fail without a trace; from the intent
 * on, a failure takes the published steps back, and a death leaves a record by which the next
 * writer finishes or takes back.
 */
#include "workspace/attributes.h"
#include "workspace/changeset_impl.h"
#include "workspace/crash.h"
#include "workspace/recover.h"

#include "sys/clock.h"
#include "sys/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

struct commit {
	struct workspace *ws;
	struct changeset *cs;
	struct store *store;
	uint64_t seq;
	struct step *steps; /* owned; texts borrowed from the change set */
	unsigned n;
	int64_t bytes, entries;
	bool checkpoint;      /* the log cannot repeat this: make it durable before the answer */
	struct intent intent; /* its steps and texts are borrowed from here */
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
	if (r == -ERR_NOT_FOUND || r == -ERR_NOT_DIRECTORY || r == -ERR_CONFLICT)
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

static bool is_at_or_below(const char *path, const char *dir)
{
	return strcmp(path, dir) == 0 || path_is_below(path, dir);
}

/* Does an operation before this one take away what is at its path now? */
static bool is_vacated(const struct changeset *cs, unsigned i)
{
	const struct op *op = cs->ops[i];
	while (i-- > 0) {
		const struct op *o = cs->ops[i];
		const char *gone = o->kind == CHANGE_RENAME   ? o->from
				   : o->kind == CHANGE_DELETE ? o->path
							      : NULL;
		if (gone && o->mount == op->mount && is_at_or_below(op->path, gone))
			return true;
	}
	return false;
}

/* A parent that somebody else has made meanwhile is as good as one that we make. */
static bool is_made_already(const struct commit *c, unsigned i)
{
	struct stat st;
	_cleanup_close_ int fd = -1;
	const struct op *op = c->cs->ops[i];
	if (!op->optional)
		return false;
	fd = fs_look(c->ws->mounts[op->mount].root_fd, op->path);
	return fd >= 0 && fstat(fd, &st) == 0 && S_ISDIR(st.st_mode) && !is_vacated(c->cs, i);
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
		.flags = (op->is_dir ? STEP_DIR : 0) | (op->base.path ? STEP_BASE : 0) |
			 (op->umasked ? STEP_UMASKED : 0) | (op->unlike ? STEP_LOST : 0),
		.path = op->path,
		.from = op->from,
		.target = op->target,
		.like = op->like,
		.mode_before = ch->mode_before,
		.mode_after = op->mode,
		.base_type = op->base.path ? op->base.st.st_mode & S_IFMT : 0,
		.base_ino = op->base.path ? op->base.st.st_ino : 0,
		.base_dev = op->base.path ? op->base.st.st_dev : 0,
		.base_mtime = op->base.st.st_mtim,
		.base_ctime = op->base.st.st_ctim,
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
		if (!is_made_already(c, i))
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

static int copy_old(const struct commit *c, const struct step *s, int old, const struct stat *st,
	const char *name, struct err *err)
{
	int saved = c->ws->mounts[s->mount].saved_fd;
	(void)unlinkat(saved, name, 0); /* of a commit that died before its intent */
	_cleanup_close_ int fd =
		openat(saved, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0 || fs_copy(old, 0, fd, 0, -1) < 0)
		return err_sys(err, errno, "keeping the old content");
	/* As far as it goes: the copy is what taking back looks at. */
	(void)attributes_copy(old, st, fd, s->mode_before);
	const struct timespec times[2] = {st->st_atim, st->st_mtim};
	(void)futimens(fd, times);
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
	int staged = c->ws->mounts[s->mount].staged_fd;
	int r = content->name[0] ? fs_rename_new(staged, content->name, saved, name)
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
	bool keep = c->intent.flags & REDO_KEEP;
	_cleanup_close_ int old =
		fs_open(m->root_fd, op->base.path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW, 0);
	if (old < 0 && errno != EACCES)
		return mount_err(m, op->base.path, errno, err);
	if (old < 0 || !attributes_copy(old, &op->base.st, content->fd, s->mode_after)) {
		if (op->base.st.st_nlink > 1 || old < 0)
			return mount_err(m, op->base.path, EPERM, err);
		s->flags |= STEP_IN_PLACE;
		c->result.in_place++;
		step_saved_name(c->seq, s, name);
		return copy_old(c, s, old, &op->base.st, name, err);
	}
	if (keep && may_change_later(old, &op->base.st)) {
		step_copy_name(c->seq, s, name);
		if ((r = copy_old(c, s, old, &op->base.st, name, err)) < 0)
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
	if (s->like && !attributes_restore(c->ws->mounts[s->mount].saved_fd, s->like, content->fd,
			       s->mode_after))
		s->flags |= STEP_LOST;
	if (fstat(content->fd, &st) < 0)
		return err_sys(err, errno, "looking at a staged file");
	s->content_ino = st.st_ino;
	s->content_mtime = st.st_mtim;
	s->content_fd = content->fd;
	if (s->kind == CHANGE_REPLACE)
		return prepare_replace(c, s, content, err);
	if (s->kind == CHANGE_CREATE && !s->like && fchmod(content->fd, s->mode_after) < 0)
		return err_sys(err, errno, "setting a mode");
	/* A power cut takes files without a name with it. */
	bool name = content->name[0] ||
		    (c->ws->opt.durability == DURABLE_POWER && s->size_after > REDO_INLINE_MAX);
	return s->kind == CHANGE_CREATE && name ? name_content(c, s, content, err) : 0;
}

static int prepare_delete(struct commit *c, struct step *s, struct err *err)
{
	int r;
	char name[STEP_NAME];
	const struct op *op = op_of(c, s);
	const struct mount *m = &c->ws->mounts[s->mount];
	if (!op->base.path || !S_ISREG(op->base.st.st_mode) || !(c->intent.flags & REDO_KEEP))
		return 0;
	_cleanup_close_ int old =
		fs_open(m->root_fd, op->base.path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW, 0);
	if (old < 0 || !may_change_later(old, &op->base.st))
		return 0;
	step_copy_name(c->seq, s, name);
	if ((r = copy_old(c, s, old, &op->base.st, name, err)) < 0)
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

/* What history will keep of this change set, and whether it may. */
static int plan_history(struct commit *c, struct err *err)
{
	bool keep = false;
	int r;
	if (c->store != c->ws->mounts[0].store) {
		/* The history of a session is of its own workspace; what several share nobody
		 * takes back alone. */
		c->result.undo_why_not = "changes of a shared volume are not kept as history";
		return c->ws->opt.history_required
			       ? err_set(err, ERR_NO_UNDO, "this change could not be undone: %s",
					 c->result.undo_why_not)
			       : 0;
	}
	r = history_would_keep(c->ws, c->steps, c->n, &keep, &c->result.undo_why_not, err);
	c->intent.flags |= keep ? REDO_KEEP : 0;
	c->result.undo = keep;
	return r;
}

static void fill_intent(struct commit *c, const struct commit_info *info)
{
	const struct store_state *st = c->store->st;
	struct intent *in = &c->intent;
	if (c->ws->opt.durability == DURABLE_POWER)
		in->flags |= REDO_POWER;
	in->seq = c->seq;
	in->steps = c->steps;
	in->n_steps = c->n;
	in->bytes_after = MAX(atomic_load(&st->bytes) + c->bytes, (int64_t)0);
	in->entries_after = MAX(atomic_load(&st->entries) + c->entries, (int64_t)0);
	in->history_bytes = atomic_load(&st->history_bytes);
	in->history_at = atomic_load(&st->history_end);
	in->head = (struct record){.undoes = c->cs->undoes,
		.time_ms = clock_unix_ms(),
		.undoable = c->result.undo,
		.why_not = c->result.undo_why_not,
		.call_id = info->call_id,
		.tool = info->tool,
		.turn = info->turn};
}

/* An upper bound of the intent's length. */
static uint64_t intent_bound(const struct commit *c)
{
	uint64_t n = 4096 + LIMIT_MOUNTS * LIMIT_PATH_BYTES;
	for (unsigned i = 0; i < c->n; i++) {
		const struct step *s = &c->steps[i];
		n += 512 + strlen(s->path) + (s->from ? strlen(s->from) : 0) +
		     (s->target ? strlen(s->target) : 0);
		if (s->content_fd >= 0 && s->size_after <= REDO_INLINE_MAX)
			n += (uint64_t)s->size_after;
		else if (s->kind == CHANGE_APPEND)
			n += REDO_INLINE_MAX;
	}
	return n;
}

static int sync_saved(const struct commit *c, const struct step *s, struct err *err)
{
	char name[STEP_NAME];
	step_saved_name(c->seq, s, name);
	_cleanup_close_ int fd =
		fs_open(c->ws->mounts[s->mount].saved_fd, name, O_WRONLY | O_NOFOLLOW, 0);
	return fd < 0 || fsync(fd) < 0 ? err_sys(err, errno, "syncing content") : 0;
}

/*
 * Content that is too large for the log is synced under its name instead. A large tail has no name,
 * and of a file that was overwritten in place nobody could tell later how much of it the disk has:
 * then what is overwritten is synced, and the whole commit is made durable by a checkpoint before
 * the answer, so that the log never has to repeat it.
 */
static int sync_content(struct commit *c, struct err *err)
{
	int r = 0;
	for (unsigned i = 0; i < c->n && r == 0; i++) {
		const struct step *s = &c->steps[i];
		bool in_place = s->flags & STEP_IN_PLACE;
		if (s->content_fd < 0 || (!in_place && step_fits_inline(s)))
			continue;
		c->checkpoint |= in_place || s->kind == CHANGE_APPEND;
		if (s->kind != CHANGE_APPEND)
			r = sync_saved(c, s, err);
	}
	return r;
}

static int write_intent(struct commit *c, struct err *err)
{
	int r;
	bool power = c->intent.flags & REDO_POWER;
	struct store_state *st = c->store->st;
	_cleanup_buf_ struct buf b = buf_init(REDO_INTENT_MAX);
	if (power && ((r = redo_room(c->store, intent_bound(c), err)) < 0 ||
			     (r = sync_content(c, err)) < 0))
		return r;
	c->intent.generation = atomic_load(&st->log_generation);
	if ((r = intent_encode(c->ws, &c->intent, &b, err)) < 0 ||
		(r = redo_write(c->store, &b, power, err)) < 0)
		return r;
	atomic_store(&st->log_start, atomic_load(&st->log_end));
	atomic_store(&st->progress, 0);
	atomic_store(&st->direction, STORE_FORWARD);
	atomic_store_explicit(&st->intent, c->seq, memory_order_release);
	CRASH_HERE(intent_set);
	return 0;
}

static int publish(struct commit *c, struct err *err)
{
	int r = 0;
	struct store_state *st = c->store->st;
	for (unsigned i = 0; i < c->n && r == 0; i++) {
		if ((r = step_forward(c->ws, c->seq, &c->steps[i], err)) < 0)
			break;
		CRASH_HERE(step_done);
		atomic_store(&st->progress, i + 1);
		CRASH_HERE(step_counted);
	}
	CRASH_HERE(published);
	return r;
}

static int commit_locked(struct commit *c, const struct commit_info *info, struct err *err)
{
	int r;
	struct store_state *st = c->store->st;
	CRASH_HERE(locked);
	recover_unprepared(c->ws, c->store);
	history_settle(c->store);
	if (!store_at_rest(c->store) && (r = recover(c->ws, c->store, err)) < 0)
		return r;
	if (atomic_load(&st->clean)) {
		/* Written before anything else is: a clean page is believed after a reboot. */
		atomic_store(&st->clean, 0);
		if (fdatasync(c->store->state_fd) < 0)
			return err_sys(err, errno, "syncing the store's state");
	}
	c->seq = atomic_load(&st->done) + 1;
	if ((r = quota_know(c->ws, c->store, err)) < 0 || (r = check(c, err)) < 0 ||
		(r = plan_history(c, err)) < 0)
		return r;
	atomic_store(&st->preparing_steps, c->n);
	atomic_store(&st->preparing, c->seq);
	r = prepare(c, err);
	CRASH_HERE(prepared);
	fill_intent(c, info);
	if (r < 0 || (r = write_intent(c, err)) < 0) {
		drop_prepared(c);
		atomic_store(&st->preparing, 0);
		return r;
	}
	atomic_store(&st->preparing, 0);
	if ((r = publish(c, err)) < 0 ||
		(r = recover_outcome(c->ws, c->store, &c->intent, err)) < 0) {
		struct err why = *err;
		r = recover_back(c->ws, c->store, &c->intent, false, err);
		if (r == 0)
			*err = why;
		return r < 0 ? r : -(int)why.code;
	}
	for (unsigned i = 0; i < c->n; i++)
		c->result.attributes_lost += (c->steps[i].flags & STEP_LOST) != 0;
	if (c->checkpoint && (r = redo_checkpoint(c->store, err)) < 0)
		return err_wrap(err, "the change is made, but not certain to survive a power cut");
	/* The change is made, whatever becomes of old history; the next commit tries again. */
	struct err ignored;
	(void)(history_evict(c->ws, c->store, &ignored) < 0);
	return 0;
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
	struct commit c = {.ws = ws, .cs = cs};
	if ((r = find_store(&c, err)) < 0)
		return r;
	if (cs->n > 0) {
		if ((r = store_lock(c.store, ws->opt.lock_wait_ms, err)) < 0)
			return r;
		r = commit_locked(&c, info, err);
		store_unlock(c.store);
	}
	free(c.steps);
	if (r == 0)
		fill_result(&c, ret);
	return r;
}
