/*
 * The sweep: expired sessions out of the registry, and what is in the trash off the disk.
 *
 * Both halves keep no state of their own. What is due is the beginning of an index; what is to be
 * removed is what is in the trash directories. So a sweep that was killed anywhere is continued by
 * any later one, of any process, and two at once do no harm.
 */
#include "session/registry_impl.h"

#include "session/crash.h"
#include "session/remove_tree.h"
#include "sys/clock.h"
#include "sys/fs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

struct sweeping {
	struct registry *reg;
	struct session_store *st;
	struct sweep_result *result;
	struct remove_budget removal;
	int64_t now_ms, deadline_ns;
	unsigned sessions_left;
};

/* --- expired sessions ----------------------------------------------------------------------- */

struct batch {
	unsigned n, buried;
	struct session_row rows[SWEEP_BATCH];
};

static bool collect_row(void *ctx, const struct session_row *row)
{
	struct batch *b = ctx;
	b->rows[b->n++] = *row;
	return b->n < SWEEP_BATCH;
}

/* One due row: buried, or found to be in use still. */
static int take_out(struct sweeping *sw, struct batch *b, struct session_row *row, struct err *err)
{
	struct registry *reg = sw->reg;
	struct session *open = session_open_find(reg, row->info.tenant, row->info.id);
	int r;
	if (open && open->refs > 0)
		return 0;
	if (!session_is_over(reg, row, sw->now_ms)) {
		struct session_use use = {.used_ms = row->info.used_ms,
			.turns = row->info.turns,
			.usage_bytes = -1,
			.usage_entries = -1};
		memcpy(use.incarnation, row->info.incarnation, sizeof(use.incarnation));
		return sw->st->ops->use(sw->st, &use, err);
	}
	if (open)
		session_unlist(open);
	if ((r = place_bury(&reg->places, row, err)) < 0)
		return r;
	b->rows[b->buried++] = *row; /* never behind the row that is being looked at */
	return sw->st->ops->drop(sw->st, row, err);
}

static int take_out_batch(struct sweeping *sw, struct batch *b, struct err *err)
{
	int r = 0;
	for (unsigned i = 0; r == 0 && i < b->n; i++) {
		struct session_row row = b->rows[i];
		r = take_out(sw, b, &row, err);
	}
	CRASH_POINT(BURY_DROPPED);
	return r;
}

/*
 * One transaction. *ret_full: there may be more. When the disk is full the rows cannot go, but the
 * files can: they stay in the trash, and removing them makes the room for a later try.
 */
static int expire_batch(struct sweeping *sw, struct batch *b, int64_t *due, char *incarnation,
	unsigned max, bool *ret_full, struct err *err)
{
	struct session_store *st = sw->st;
	*b = (struct batch){.n = 0};
	int r = st->ops->due(st, sw->now_ms, *due, incarnation, max, collect_row, b, err);
	if (r < 0 || b->n == 0) {
		*ret_full = false;
		return r;
	}
	*ret_full = b->n == max;
	*due = session_due_ms(&b->rows[b->n - 1].info);
	memcpy(incarnation, b->rows[b->n - 1].info.incarnation, INCARNATION_LEN + 1);
	if ((r = st->ops->begin(st, err)) < 0)
		return r;
	r = take_out_batch(sw, b, err);
	if (r == 0)
		r = st->ops->commit(st, err);
	if (r < 0) {
		for (unsigned i = 0; i < b->buried && r != -ERR_NO_SPACE; i++)
			place_exhume(&sw->reg->places, &b->rows[i]);
		st->ops->rollback(st);
		return r;
	}
	CRASH_POINT(BURY_COMMITTED);
	sw->result->expired += b->buried;
	sw->sessions_left -= b->buried;
	return 0;
}

static bool out_of_time(const struct sweeping *sw)
{
	return sw->deadline_ns && clock_mono_ns() >= sw->deadline_ns;
}

static int expire_due(struct sweeping *sw, struct err *err)
{
	_cleanup_free_ struct batch *b = malloc(sizeof(*b));
	char incarnation[INCARNATION_LEN + 1] = "";
	int64_t due = INT64_MIN;
	bool full = true;
	int r = b ? 0 : err_oom(err);
	while (r == 0 && full && sw->sessions_left > 0 && !out_of_time(sw))
		r = expire_batch(sw, b, &due, incarnation,
			MIN(sw->sessions_left, (unsigned)SWEEP_BATCH), &full, err);
	if (r == 0 && full)
		sw->result->more = true;
	return r;
}

/* --- the trash ------------------------------------------------------------------------------ */

/*
 * Is the row of what lies in the trash gone? When it is not, its deletion was interrupted, or is
 * going on in another process: the write lock tells which. 1: gone; 0: it was exhumed meanwhile.
 */
static int finish_row(struct sweeping *sw, const char *incarnation, struct err *err)
{
	_cleanup_free_ struct session_row *row = malloc(sizeof(*row));
	struct session_store *st = sw->st;
	if (!row)
		return err_oom(err);
	int r = st->ops->find_incarnation(st, incarnation, row, err);
	if (r <= 0)
		return r < 0 ? r : 1;
	if ((r = st->ops->begin(st, err)) < 0)
		return r;
	r = st->ops->find_incarnation(st, incarnation, row, err);
	if (r == 1 && !place_buried(&sw->reg->places, row)) {
		place_exhume_lease(&sw->reg->places, row);
		st->ops->rollback(st);
		return 0;
	}
	if (r == 1) {
		r = place_bury(&sw->reg->places, row, err);
		if (r == 0)
			r = st->ops->drop(st, row, err);
	}
	if (r == 0)
		r = st->ops->commit(st, err);
	if (r < 0)
		st->ops->rollback(st);
	return r < 0 ? r : 1;
}

static void note_stuck(struct sweeping *sw, const struct err *why)
{
	if (sw->result->stuck++ == 0)
		(void)snprintf(sw->result->stuck_why, sizeof(sw->result->stuck_why), "%.*s",
			(int)utf8_floor(why->text,
				MIN(strlen(why->text), sizeof(sw->result->stuck_why) - 1)),
			why->text);
}

/* The lease of a session that was being made, or is: the write lock tells which. */
static int end_announcement(struct sweeping *sw, const char *incarnation, struct err *err)
{
	_cleanup_free_ struct session_row *row = malloc(sizeof(*row));
	struct session_store *st = sw->st;
	if (!row)
		return err_oom(err);
	int r = st->ops->begin(st, err);
	if (r < 0)
		return r;
	r = st->ops->find_incarnation(st, incarnation, row, err);
	if (r >= 0)
		place_announced(&sw->reg->places, incarnation, r == 1);
	st->ops->rollback(st);
	return MIN(r, 0);
}

/* One tree of the trash. 1: the budget is used up. */
static int remove_buried(struct sweeping *sw, int trash_fd, const char *name, struct err *err)
{
	char incarnation[INCARNATION_LEN + 1];
	CRASH_POINT(SWEEP_FOUND);
	(void)snprintf(incarnation, sizeof(incarnation), "%.*s", INCARNATION_LEN, name);
	if (place_is_announcement(name))
		return end_announcement(sw, incarnation, err);
	int row = finish_row(sw, incarnation, err);
	if (row == 0)
		return 0;
	/* On a full disk the content goes first; its top stays as the mark of what is to do. */
	if (row == -ERR_NO_SPACE) {
		int r = remove_content(trash_fd, name, &sw->removal, err);
		if (r != 0)
			return r;
		row = finish_row(sw, incarnation, err);
	}
	if (row < 0)
		return row;
	int r = remove_tree(trash_fd, name, &sw->removal, err);
	CRASH_POINT(SWEEP_REMOVED);
	return r;
}

static int empty_trash(struct sweeping *sw, int trash_fd, struct err *err)
{
	int fd = fs_open(trash_fd, "", O_RDONLY | O_DIRECTORY, 0);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;
	int r = 0;
	if (!d) {
		cleanup_close(&fd);
		return err_sys(err, errno, "opening the trash");
	}
	while (r == 0 && (e = readdir(d))) {
		struct err why;
		if (e->d_name[0] == '.')
			continue;
		r = remove_buried(sw, trash_fd, e->d_name, &why);
		if (r < 0) {
			note_stuck(sw, &why);
			r = 0;
		}
	}
	(void)closedir(d);
	sw->result->more |= r == 1;
	return r;
}

/* --- both ----------------------------------------------------------------------------------- */

int registry_sweep(struct registry *reg, const struct sweep_budget *budget,
	struct sweep_result *ret, struct err *err)
{
	struct sweep_result result = {0};
	struct sweeping sw = {.reg = reg,
		.result = &result,
		.now_ms = registry_now(reg),
		.sessions_left = budget->sessions ? budget->sessions : UINT32_MAX,
		.deadline_ns = budget->ms ? clock_mono_ns() + budget->ms * 1000000 : 0};
	sw.removal = (struct remove_budget){
		.entries = budget->entries ? budget->entries : -1, .deadline_ns = sw.deadline_ns};
	int r = registry_store(reg, &sw.st, err);
	if (r < 0)
		return r;
	int expired = expire_due(&sw, err);
	if (expired < 0 && expired != -ERR_NO_SPACE)
		return expired;
	struct err ignored;
	r = empty_trash(&sw, reg->places.base_trash_fd, expired < 0 ? &ignored : err);
	if (r >= 0)
		r = empty_trash(&sw, reg->places.state_trash_fd, expired < 0 ? &ignored : err);
	result.entries = sw.removal.removed;
	if (expired < 0 || r < 0)
		return expired < 0 ? expired : r;
	*ret = result;
	return 0;
}
