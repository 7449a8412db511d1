/*
 * What a change set changes, as text: of one that is to be committed (a dry run), and of one that
 * leads back to an earlier state and is never committed (the difference between then and now).
 */
#include "workspace/history_impl.h"
#include "workspace/netchange.h"
#include "workspace/textdiff.h"
#include "workspace/treediff.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

/* An object before and after a change set. */
struct pair {
	const struct net_change *c;
	struct diff_side before, after;
	int fd; /* of the real object */
	char target[LIMIT_PATH_BYTES];
};

static void pair_done(struct pair *p)
{
	cleanup_close(&p->fd);
	if (p->c->content)
		staged_rest(p->c->content);
}

/* "" for the workspace itself, else "tmp/" for a mount at "/tmp". */
static void prefix_of(const struct workspace *ws, unsigned mount, struct buf *out)
{
	if (mount > 0)
		buf_printf(out, "%s/", ws->mounts[mount].agent + 1);
}

/* A link has no mode of its own; git writes 120000. */
static mode_t shown_mode(mode_t mode)
{
	return S_ISLNK(mode) ? S_IFLNK : mode;
}

static int side_before(const struct workspace *ws, struct pair *p, struct err *err)
{
	const struct mount *m = &ws->mounts[p->c->mount];
	const struct base *base = p->c->before;
	p->before = DIFF_SIDE_ABSENT;
	if (!base)
		return 0;
	p->before.path = base->path;
	p->before.mode = shown_mode(base->st.st_mode);
	if (S_ISLNK(base->st.st_mode)) {
		_cleanup_close_ int fd = fs_look(m->root_fd, base->path);
		ssize_t n = fd < 0 ? -1 : readlinkat(fd, "", p->target, sizeof(p->target) - 1);
		if (n < 0)
			return mount_err(m, base->path, errno, err);
		p->target[n] = '\0';
		p->before.target = p->target;
	} else if (S_ISREG(base->st.st_mode)) {
		p->fd = fs_open(
			m->root_fd, base->path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY, 0);
		if (p->fd < 0)
			return mount_err(m, base->path, errno, err);
		p->before.fd = p->fd;
		p->before.size = base->st.st_size;
	}
	return 0;
}

static int side_after(struct pair *p, struct err *err)
{
	int r;
	const struct net_change *c = p->c;
	if (!c->path) {
		p->after = DIFF_SIDE_ABSENT;
		return 0;
	}
	p->after = p->before;
	p->after.path = c->path;
	p->after.mode = shown_mode(c->mode);
	if (c->target)
		p->after.target = c->target;
	if (c->content) {
		if ((r = staged_reopen(c->content, err)) < 0)
			return r;
		p->after.target = NULL;
		p->after.fd = c->content->fd;
		p->after.size = c->content->size;
	}
	if (c->tail) {
		if ((r = staged_reopen(c->tail, err)) < 0)
			return r;
		p->after.tail_fd = c->tail->fd;
		p->after.tail_size = c->tail->size;
	}
	return 0;
}

/* Directories and special files have no content to compare; they are told in a line. */
static void diff_other(
	struct tree_diff *d, const char *prefix, const struct net_change *c, bool back)
{
	const char *what = S_ISDIR(c->mode) ? "directory" : "special file";
	bool made = !c->before, gone = !c->path;
	const char *verb = made == gone ? "Changed" : made != back ? "Created" : "Deleted";
	_cleanup_buf_ struct buf line = buf_init(8 * LIMIT_PATH_BYTES);
	if (!made && !gone && strcmp(c->before->path, c->path) != 0) {
		buf_printf(&line, "Renamed %s ", what);
		git_quote(&line, "", prefix, back ? c->path : c->before->path);
		buf_puts(&line, " to");
		treediff_note(d, buf_str(&line), prefix, back ? c->before->path : c->path);
		return;
	}
	buf_printf(&line, "%s %s", verb, what);
	treediff_note(d, buf_str(&line), prefix, gone ? c->before->path : c->path);
}

static bool never_was(const struct net_change *c)
{
	return !c->before && !c->path;
}

static bool is_other(const struct net_change *c)
{
	return !S_ISREG(c->mode) && !S_ISLNK(c->mode);
}

/* Nothing but the operations themselves: an object of which nothing differs in the end. */
static bool is_unmoved(const struct net_change *c)
{
	return c->before && c->path && strcmp(c->before->path, c->path) == 0 &&
	       c->before->st.st_mode == c->mode;
}

/* `back`: the change set leads from now to then, and the difference is asked from then to now. */
static int diff_one(struct tree_diff *d, const struct workspace *ws, const struct net_change *c,
	bool back, bool *ret_same, struct err *err)
{
	int r;
	_cleanup_buf_ struct buf prefix = buf_init(2 * LIMIT_PATH_BYTES);
	_cleanup_(pair_done) struct pair p = {.c = c, .fd = -1};
	*ret_same = never_was(c) || (is_other(c) && is_unmoved(c));
	if (*ret_same)
		return 0;
	prefix_of(ws, c->mount, &prefix);
	if (is_other(c)) {
		diff_other(d, buf_str(&prefix), c, back);
		return 0;
	}
	if ((r = side_before(ws, &p, err)) < 0 || (r = side_after(&p, err)) < 0)
		return r;
	return back ? treediff_file(d, buf_str(&prefix), &p.after, &p.before, ret_same, err)
		    : treediff_file(d, buf_str(&prefix), &p.before, &p.after, ret_same, err);
}

int changeset_diff(
	struct changeset *cs, struct buf *out, size_t max, bool *ret_truncated, struct err *err)
{
	bool same;
	_cleanup_(net_changes_done) struct net_changes net = {0};
	struct tree_diff d = treediff_to(out, max, TEXTDIFF_CONTEXT);
	int r = net_changes_of(cs, &net, err);
	for (size_t i = 0; i < net.n && r == 0 && !d.truncated; i++)
		r = diff_one(&d, cs->ws, net.all[i], false, &same, err);
	if (r < 0)
		return r;
	*ret_truncated = d.truncated;
	return buf_check(out, "the diff", err);
}

/* --- then and now -------------------------------------------------------------------------------
 */

static int64_t size_of(const struct net_change *c, bool then)
{
	if (!then)
		return c->before && S_ISREG(c->before->st.st_mode) ? c->before->st.st_size : -1;
	if (!c->path || !S_ISREG(c->mode))
		return -1;
	return c->content ? c->content->size : size_of(c, false);
}

static enum change_kind kind_now(const struct net_change *c)
{
	if (!c->path)
		return S_ISDIR(c->mode)   ? CHANGE_MKDIR
		       : S_ISLNK(c->mode) ? CHANGE_LINK
					  : CHANGE_CREATE;
	if (!c->before)
		return CHANGE_DELETE;
	if (strcmp(c->path, c->before->path) != 0)
		return CHANGE_RENAME;
	return c->content ? CHANGE_REPLACE : CHANGE_MODE;
}

/* The row of one object, from then to now. */
static bool show_row(const struct workspace *ws, const struct net_change *c,
	bool (*each)(void *ctx, const struct change *c), void *ctx)
{
	_cleanup_buf_ struct buf agent = buf_init(16 * LIMIT_PATH_BYTES);
	const char *path = c->before ? c->before->path : c->path;
	enum change_kind kind = kind_now(c);
	mount_agent_path(&ws->mounts[c->mount], path, &agent);
	struct change row = {.kind = kind,
		.mount = c->mount,
		.path = path,
		.from_path = kind == CHANGE_RENAME ? c->path : NULL,
		.agent_path = buf_str(&agent),
		.size_before = size_of(c, true),
		.size_after = size_of(c, false),
		.bytes_delta = -c->bytes,
		.entries_delta = -c->entries,
		.mode_before = c->path ? c->mode & 07777 : 0,
		.mode_after = c->before ? c->before->st.st_mode & 07777 : 0,
		.is_dir = S_ISDIR(c->mode)};
	return each(ctx, &row);
}

static int diff_back(struct changeset *cs, const struct diff_options *opt, struct buf *out,
	bool *ret_truncated, bool (*each)(void *ctx, const struct change *c), void *ctx,
	struct err *err)
{
	bool same, more = true;
	_cleanup_(net_changes_done) struct net_changes net = {0};
	struct tree_diff d = treediff_to(out, opt->max_bytes, opt->context);
	int r = net_changes_of(cs, &net, err);
	for (size_t i = net.n; i-- > 0 && r == 0 && more;)
		if ((r = diff_one(&d, cs->ws, net.all[i], true, &same, err)) == 0 && !same && each)
			more = show_row(cs->ws, net.all[i], each, ctx);
	if (r < 0)
		return r;
	*ret_truncated = d.truncated;
	return buf_check(out, "the diff", err);
}

int workspace_diff(struct workspace *ws, const struct diff_options *opt, struct buf *out,
	bool *ret_truncated, bool (*each)(void *ctx, const struct change *c), void *ctx,
	struct err *err)
{
	int r;
	struct store *s;
	uint64_t since = opt->since_seq;
	_cleanup_(cleanup_view_free) struct view *v = NULL;
	_cleanup_(cleanup_changeset_free) struct changeset *cs = NULL;
	if ((r = history_store(ws, &s, err)) < 0 || (r = view_new(ws, &v, err)) < 0)
		return r;
	if (opt->since_label && (r = checkpoint_find(s, opt->since_label, &since, err)) < 0)
		return r;
	struct reversal rv = {.ws = ws, .v = v};
	bool oldest = since == 0 && !opt->since_label;
	r = oldest ? reverse_known(&rv, err) : reverse_since(&rv, since, err);
	if (r < 0 || (r = view_finish(v, &cs, err)) < 0)
		return r;
	return diff_back(cs, opt, out, ret_truncated, each, ctx, err);
}
