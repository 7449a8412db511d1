/*
 * The history as a stream for `git fast-import` (git-fast-import(1)).
 *
 * The states are walked from the newest to the oldest, in a view that is never committed; git wants
 * them the other way round. So contents are written at once, as marked blobs, and the commits,
 * which are short, wait in a file until the oldest state is reached.
 */
#include "workspace/history_impl.h"
#include "workspace/treediff.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <strings.h>

enum {
	PIECE = 65536,
	NAMES_MAX = 256 * 1024 * 1024,  /* bytes of paths still to be visited */
	COMMIT_MAX = 512 * 1024 * 1024, /* bytes of one commit's lines */
};

struct export
{
	struct workspace *ws;
	struct store *s;
	struct view *v;
	int out;
	uint64_t mark;
	int64_t left_out;
	struct buf commit; /* the commit that is being made */
	int commits_fd;    /* finished ones, newest first */
	off_t commits_end;
	struct buf ends; /* off_t each: where they end */
	char *piece;
};

static void export_done(struct export *x)
{
	view_free(x->v);
	buf_done(&x->commit);
	buf_done(&x->ends);
	cleanup_close(&x->commits_fd);
	free(x->piece);
}

static int put_out(const struct export *x, const void *p, size_t n, struct err *err)
{
	const char *at = p;
	while (n > 0) {
		ssize_t w = write(x->out, at, n);
		if (w < 0 && errno == EINTR)
			continue;
		if (w < 0)
			return err_sys(err, errno, "writing the export");
		at += w, n -= (size_t)w;
	}
	return 0;
}

/* --- blobs --------------------------------------------------------------------------------------
 */

static int put_blob_head(struct export *x, int64_t size, struct err *err)
{
	char head[96];
	int n = snprintf(
		head, sizeof(head), "blob\nmark :%" PRIu64 "\ndata %" PRId64 "\n", ++x->mark, size);
	return put_out(x, head, (size_t)n, err);
}

static int put_blob(struct export *x, int fd, int64_t size, struct err *err)
{
	int r = put_blob_head(x, size, err);
	for (int64_t at = 0; at < size && r == 0;) {
		ssize_t n = fs_read(fd, x->piece, (size_t)MIN((int64_t)PIECE, size - at), at);
		if (n < 0)
			return err_sys(err, errno, "reading a file to export");
		if (n == 0)
			return err_set(
				err, ERR_CONFLICT, "a file became shorter during the export");
		r = put_out(x, x->piece, (size_t)n, err);
		at += n;
	}
	return r < 0 ? r : put_out(x, "\n", 1, err);
}

/* --- lines of a commit --------------------------------------------------------------------------
 */

static void put_delete(struct export *x, const char *path)
{
	buf_puts(&x->commit, "D ");
	git_quote(&x->commit, "", "", path);
	buf_putc(&x->commit, '\n');
}

static void put_modify(struct export *x, unsigned mode, const char *path)
{
	buf_printf(&x->commit, "M %o :%" PRIu64 " ", mode, x->mark);
	git_quote(&x->commit, "", "", path);
	buf_putc(&x->commit, '\n');
}

/* git refuses such a name anywhere in a tree, in any case of its letters. */
static bool has_dot_git(const char *path)
{
	for (const char *p = path; *p;) {
		size_t n = strcspn(p, "/");
		if (n == 4 && strncasecmp(p, ".git", 4) == 0)
			return true;
		p += n + (p[n] == '/');
	}
	return false;
}

static int put_file(struct export *x, const struct node *n, struct err *err)
{
	int r;
	_cleanup_close_ int fd = -1;
	const struct entry *e = view_entry(x->v, n->mount, n->path, strlen(n->path));
	struct staged *s = e && e->now == NOW_FILE ? e->op->content : NULL;
	unsigned mode = n->st.st_mode & 0100 ? 0100755 : 0100644;
	if (s) {
		if ((r = staged_reopen(s, err)) < 0)
			return r;
		r = put_blob(x, s->fd, s->size, err);
		staged_rest(s);
	} else {
		if ((r = view_open(x->v, n, &fd, err)) < 0)
			return r;
		r = put_blob(x, fd, n->st.st_size, err);
	}
	if (r == 0)
		put_modify(x, mode, n->path);
	return r;
}

static int put_link(struct export *x, const struct node *n, struct err *err)
{
	_cleanup_free_ char *target = NULL;
	int r = view_readlink(x->v, n, &target, err);
	if (r < 0 || (r = put_blob_head(x, (int64_t)strlen(target), err)) < 0 ||
		(r = put_out(x, target, strlen(target), err)) < 0 ||
		(r = put_out(x, "\n", 1, err)) < 0)
		return r;
	put_modify(x, 0120000, n->path);
	return 0;
}

static int list_dir(struct export *x, const struct node *n, struct buf *todo, struct err *err)
{
	struct dir_entry e;
	_cleanup_(cleanup_view_closedir) struct view_dir *d = NULL;
	int r = view_opendir(x->v, n, &d, err);
	while (r >= 0 && (r = view_readdir(d, &e, err)) == 1) {
		buf_putc(todo, '\0');
		buf_printf(todo, "%s%s%s", n->path, *n->path ? "/" : "", e.name);
	}
	return r < 0 ? r : buf_check(todo, "the list of files to export", err);
}

static int put_one(struct export *x, const char *path, struct buf *todo, struct err *err)
{
	_cleanup_node_ struct node n = {.fd = -1};
	int r = view_node_at(x->v, 0, path, &n, err);
	if (r < 0)
		return r;
	if (n.kind != NODE_ABSENT && (n.kind == NODE_OTHER || has_dot_git(path))) {
		x->left_out++;
		return 0;
	}
	switch (n.kind) {
	case NODE_FILE: return put_file(x, &n, err);
	case NODE_LINK: return put_link(x, &n, err);
	case NODE_DIR: return list_dir(x, &n, todo, err);
	case NODE_OTHER:
	case NODE_ABSENT: break;
	}
	return 0;
}

/* Everything at and below a path of the state that the view shows. */
static int put_tree(struct export *x, const char *path, struct err *err)
{
	int r = 0;
	_cleanup_buf_ struct buf todo = buf_init(NAMES_MAX);
	buf_putc(&todo, '\0');
	buf_puts(&todo, path);
	while (todo.len > 0 && r == 0) {
		const char *last = memrchr(todo.data, '\0', todo.len);
		_cleanup_free_ char *one = strdup(last + 1);
		if (!one)
			return err_oom(err);
		todo.len = (size_t)(last - todo.data);
		todo.data[todo.len] = '\0';
		r = put_one(x, one, &todo, err);
	}
	return r;
}

/* --- commits ------------------------------------------------------------------------------------
 */

static void begin_commit(struct export *x, int64_t time_ms, const char *message)
{
	buf_clear(&x->commit);
	buf_printf(&x->commit,
		"commit refs/heads/cloister\ncommitter Cloister <cloister@localhost> %" PRId64
		" +0000\n",
		time_ms / 1000);
	buf_printf(&x->commit, "data %zu\n%s\n", strlen(message), message);
}

static int end_commit(struct export *x, struct err *err)
{
	int r = buf_check(&x->commit, "a commit of the export", err);
	if (r < 0)
		return r;
	if (fs_write(x->commits_fd, x->commit.data, x->commit.len, x->commits_end) < 0)
		return err_sys(err, errno, "keeping a commit of the export");
	x->commits_end += (off_t)x->commit.len;
	buf_put(&x->ends, &x->commits_end, sizeof(x->commits_end));
	return buf_check(&x->ends, "the list of commits of the export", err);
}

/* Is this change about something that a git tree shows? */
static bool is_shown(
	const struct export *x, const struct record *head, const struct record_change *c)
{
	if (history_mount(x->ws, head, c->mount) != 0)
		return false;
	bool is_dir = (c->flags & RECORD_IS_DIR) != 0;
	return c->kind != CHANGE_MKDIR && !(c->kind == CHANGE_MODE && is_dir);
}

/* Names first vanish, then what the state has at them comes: so the order of a record's own changes
 * does not matter. */
static int put_changes(struct export *x, struct record_reader r, bool deletes, struct err *err)
{
	struct record_change c;
	int e;
	while ((e = record_next(&r, &c, err)) == 1) {
		if (!is_shown(x, &r.head, &c))
			continue;
		if (deletes) {
			if (!has_dot_git(c.path))
				put_delete(x, c.path);
			if (c.from[0] && !has_dot_git(c.from))
				put_delete(x, c.from);
		} else if (c.kind != CHANGE_DELETE && (e = put_tree(x, c.path, err)) < 0) {
			return e;
		}
	}
	return e;
}

/* The commit of a record; the view shows the state after it. */
static int put_record(struct export *x, const struct record_reader *r, struct err *err)
{
	int e;
	char message[512];
	const struct record *h = &r->head;
	(void)snprintf(message, sizeof(message), "%s %s\n\nchange: %" PRIu64 "%s%s", h->tool,
		h->call_id, h->seq, h->turn[0] ? "\nturn: " : "", h->turn);
	begin_commit(x, h->time_ms, message);
	if ((e = put_changes(x, *r, true, err)) < 0 || (e = put_changes(x, *r, false, err)) < 0)
		return e;
	return end_commit(x, err);
}

static int put_oldest(struct export *x, uint64_t next, int64_t time_ms, struct err *err)
{
	char message[64];
	(void)snprintf(message, sizeof(message), "State after change %" PRIu64, next);
	begin_commit(x, time_ms, message);
	int r = put_tree(x, "", err);
	return r < 0 ? r : end_commit(x, err);
}

/* Walk back as far as everything is known. */
static int put_states(struct export *x, struct err *err)
{
	int r;
	struct record_reader rec;
	struct reversal rv = {.ws = x->ws, .v = x->v};
	uint64_t next = atomic_load(&x->s->st->done);
	int64_t time_ms = 0;
	_cleanup_history_place_ struct history_place p;
	history_at_end(&p, x->s);
	while (next > 0 && (r = history_back(&p, &rec, err)) != 0) {
		if (r < 0)
			return r;
		time_ms = rec.head.time_ms;
		if (!rec.head.undoable || rec.head.seq != next)
			break;
		if ((r = put_record(x, &rec, err)) < 0 || (r = reverse_record(&rv, &rec, err)) < 0)
			return r;
		next--;
	}
	return put_oldest(x, next, time_ms, err);
}

/* The kept commits, oldest (the last one kept) first. */
static int put_commits(struct export *x, struct err *err)
{
	size_t n = x->ends.len / sizeof(off_t);
	while (n-- > 0) {
		off_t at = 0, end;
		if (n > 0)
			memcpy(&at, x->ends.data + (n - 1) * sizeof(off_t), sizeof(at));
		memcpy(&end, x->ends.data + n * sizeof(off_t), sizeof(end));
		while (at < end) {
			ssize_t got = fs_read(
				x->commits_fd, x->piece, (size_t)MIN((off_t)PIECE, end - at), at);
			if (got <= 0)
				return err_sys(
					err, got < 0 ? errno : EIO, "reading a commit again");
			int r = put_out(x, x->piece, (size_t)got, err);
			if (r < 0)
				return r;
			at += got;
		}
	}
	return 0;
}

static int put_end(struct export *x, struct err *err)
{
	char line[128];
	int n = snprintf(line, sizeof(line),
		"progress %" PRId64 " names left out (special files, .git)\ndone\n", x->left_out);
	return put_out(x, x->left_out ? line : "done\n", x->left_out ? (size_t)n : 5, err);
}

static int export_held(struct export *x, struct err *err)
{
	static const char HEAD[] = "feature done\n";
	int r = put_out(x, HEAD, sizeof(HEAD) - 1, err);
	if (r < 0 || (r = put_states(x, err)) < 0 || (r = put_commits(x, err)) < 0)
		return r;
	return put_end(x, err);
}

int history_export(struct workspace *ws, int out_fd, struct err *err)
{
	int r;
	_cleanup_(export_done) struct export x = {.ws = ws,
		.out = out_fd,
		.commit = buf_init(COMMIT_MAX),
		.commits_fd = -1,
		.ends = buf_init(64 * 1024 * 1024),
		.piece = malloc(PIECE)};
	if (!x.piece)
		return err_oom(err);
	if ((r = history_store(ws, &x.s, err)) < 0 || (r = view_new(ws, &x.v, err)) < 0)
		return r;
	if ((x.commits_fd = fs_tmpfile(ws->mounts[0].saved_fd)) < 0)
		return err_sys(err, errno, "keeping the commits of the export");
	if ((r = history_hold(ws, x.s, err)) < 0)
		return r;
	r = export_held(&x, err);
	store_unlock(x.s);
	return r;
}
