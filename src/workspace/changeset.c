/* A finished change set: see changeset.h. */
#include "workspace/changeset_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

static const char *const kind_words[] = {
#define CHANGE(name, word) [CHANGE_##name] = word,
	CHANGE_KINDS(CHANGE)
#undef CHANGE
};

const char *change_kind_word(enum change_kind k)
{
	BUG_ON((unsigned)k >= CHANGE_KIND_MAX_);
	return kind_words[k];
}

void changeset_free(struct changeset *cs)
{
	if (!cs)
		return;
	for (unsigned i = 0; i < cs->n; i++) {
		op_free(cs->ops[i]);
		free((char *)(uintptr_t)cs->changes[i].agent_path);
	}
	free(cs->ops);
	free(cs->changes);
	free(cs);
}

static int describe(struct changeset *cs, unsigned i, struct err *err)
{
	const struct op *op = cs->ops[i];
	struct change *c = &cs->changes[i];
	struct delta d = op_delta(op);
	_cleanup_buf_ struct buf agent = buf_init(16 * LIMIT_PATH_BYTES);
	mount_agent_path(&cs->ws->mounts[op->mount], op->path, &agent);
	*c = (struct change){.kind = op->kind,
		.mount = op->mount,
		.path = op->path,
		.from_path = op->from,
		.agent_path = buf_take(&agent, NULL),
		.size_before = -1,
		.size_after = -1,
		.bytes_delta = d.bytes,
		.entries_delta = d.entries,
		.mode_before = op->base.path ? op->base.st.st_mode & 07777 : 0,
		.mode_after = op->kind == CHANGE_DELETE ? 0 : op->mode,
		.is_dir = op->is_dir};
	if (op->base.path && S_ISREG(op->base.st.st_mode))
		c->size_before = op->base.st.st_size;
	if (op->kind == CHANGE_APPEND)
		c->size_after = c->size_before + op->content->size;
	else if (op->content)
		c->size_after = op->content->size;
	else if (op->kind == CHANGE_RENAME || op->kind == CHANGE_MODE)
		c->size_after = c->size_before;
	return c->agent_path ? 0 : err_oom(err);
}

static void take_ops(struct view *v, struct changeset *cs)
{
	for (struct op *op = v->first, *next; op; op = next) {
		next = op->next;
		op->prev = op->next = NULL;
		if (op->content)
			op->content->view = NULL;
		cs->ops[cs->n++] = op;
	}
	v->first = v->last = NULL;
	v->n_ops = 0;
	v->staged_bytes = 0;
	v->staged_open = 0;
	view_clear_entries(v);
}

int view_finish(struct view *v, struct changeset **ret, struct err *err)
{
	_cleanup_(cleanup_changeset_free) struct changeset *cs = calloc(1, sizeof(*cs));
	if (!cs)
		return err_oom(err);
	cs->ws = v->ws;
	cs->undoes = v->undoes;
	memcpy(cs->seqs, v->seqs, sizeof(cs->seqs));
	cs->ops = calloc((size_t)v->n_ops + 1, sizeof(struct op *));
	cs->changes = calloc((size_t)v->n_ops + 1, sizeof(struct change));
	if (!cs->ops || !cs->changes)
		return err_oom(err);
	take_ops(v, cs);
	v->undoes = 0;
	for (unsigned i = 0; i < cs->n; i++) {
		int r = describe(cs, i, err);
		if (r < 0)
			return r;
	}
	*ret = take_ptr(cs);
	return 0;
}

unsigned changeset_count(const struct changeset *cs)
{
	return cs->n;
}

const struct change *changeset_get(const struct changeset *cs, unsigned i)
{
	BUG_ON(i >= cs->n);
	return &cs->changes[i];
}

int changeset_content(const struct changeset *cs, unsigned i, int *ret_fd, struct err *err)
{
	BUG_ON(i >= cs->n);
	struct staged *s = cs->ops[i]->content;
	int r;
	if (!s)
		return err_set(err, ERR_INVALID_ARGUMENT, "this change has no content");
	if ((r = staged_reopen(s, err)) < 0)
		return r;
	int fd = fcntl(s->fd, F_DUPFD_CLOEXEC, 0);
	if (s->name[0]) {
		(void)close(s->fd);
		s->fd = -1;
	}
	if (fd < 0)
		return err_sys(err, errno, "opening a staged file");
	*ret_fd = fd;
	return 0;
}

int64_t changeset_bytes_delta(const struct changeset *cs)
{
	int64_t sum = 0;
	for (unsigned i = 0; i < cs->n; i++)
		sum += cs->changes[i].bytes_delta;
	return sum;
}

int64_t changeset_entries_delta(const struct changeset *cs)
{
	int64_t sum = 0;
	for (unsigned i = 0; i < cs->n; i++)
		sum += cs->changes[i].entries_delta;
	return sum;
}

/* --- hash ------------------------------------------------------------------------------------ */

static int add_content(struct changeset *cs, unsigned i, struct sha256_ctx *c, struct err *err)
{
	int r;
	_cleanup_close_ int fd = -1;
	_cleanup_free_ char *chunk = malloc(65536);
	struct sha256_ctx *inner = sha256_start();
	struct sha256 h;
	off_t at = 0;
	ssize_t n = 0;
	if (!chunk || !inner) {
		r = err_oom(err);
	} else if ((r = changeset_content(cs, i, &fd, err)) == 0) {
		while ((n = fs_read(fd, chunk, 65536, at)) > 0) {
			sha256_add(inner, chunk, (size_t)n);
			at += n;
		}
		if (n < 0)
			r = err_sys(err, errno, "reading a staged file");
	}
	if (!inner)
		return r;
	sha256_finish(inner, &h);
	sha256_add(c, &h, sizeof(h));
	return r;
}

/* One line a field, each behind its name and length, so that no two change sets read the same. */
static void add_fields(const struct op *op, const struct change *c, struct buf *b)
{
	buf_printf(b, "%s %zu:%s", kind_words[op->kind], strlen(c->agent_path), c->agent_path);
	buf_printf(b, " from %zu:%s", op->from ? strlen(op->from) : 0, op->from ? op->from : "");
	buf_printf(b, " target %zu:%s", op->target ? strlen(op->target) : 0,
		op->target ? op->target : "");
	buf_printf(b, " like %zu:%s", op->like ? strlen(op->like) : 0, op->like ? op->like : "");
	buf_printf(b, " mode %o", (unsigned)c->mode_after);
	if (op->base.path)
		buf_printf(b, " base %llu:%llu %lld %lld.%09ld",
			(unsigned long long)op->base.st.st_dev,
			(unsigned long long)op->base.st.st_ino, (long long)op->base.st.st_size,
			(long long)op->base.st.st_mtim.tv_sec, op->base.st.st_mtim.tv_nsec);
	buf_putc(b, '\n');
}

int changeset_hash(struct changeset *cs, struct sha256 *ret, struct err *err)
{
	int r = 0;
	if (cs->hashed) {
		*ret = cs->hash;
		return 0;
	}
	struct sha256_ctx *c = sha256_start();
	if (!c)
		return err_oom(err);
	for (unsigned i = 0; i < cs->n && r == 0; i++) {
		_cleanup_buf_ struct buf b = buf_init(32 * LIMIT_PATH_BYTES);
		add_fields(cs->ops[i], &cs->changes[i], &b);
		if ((r = buf_check(&b, "a change's description", err)) < 0)
			break;
		sha256_add(c, buf_str(&b), b.len);
		if (cs->ops[i]->content)
			r = add_content(cs, i, c, err);
	}
	sha256_finish(c, &cs->hash);
	if (r < 0)
		return r;
	cs->hashed = true;
	*ret = cs->hash;
	return 0;
}
