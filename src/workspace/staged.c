/* Staged files: content that has no name in the workspace yet. */
#include "workspace/view_impl.h"

#include <errno.h>
#include <fcntl.h>

int staged_new(struct view *v, unsigned mount, struct staged **ret, struct err *err)
{
	BUG_ON(mount >= v->ws->n_mounts);
	const struct mount *m = &v->ws->mounts[mount];
	if (m->read_only)
		return err_set(err, ERR_READ_ONLY, "'%s' is read-only", m->agent);
	struct staged *s = calloc(1, sizeof(*s));
	if (!s)
		return err_oom(err);
	*s = (struct staged){.ws = v->ws, .view = v, .mount = mount, .fd = -1};
	errno = EMFILE;
	if (v->staged_open < LIMIT_STAGED_OPEN)
		s->fd = fs_tmpfile(m->staged_fd);
	/* Without O_TMPFILE, or with too many descriptors open: under a name, closed when it is
	 * put into the view. */
	if (s->fd < 0 && (errno == EMFILE || errno == EOPNOTSUPP))
		s->fd = fs_temp(m->staged_fd, "new-", s->name);
	if (s->fd < 0) {
		int e = errno;
		free(s);
		return err_sys(err, e, "making a staged file");
	}
	v->staged_open++;
	*ret = s;
	return 0;
}

void staged_free(struct staged *s)
{
	if (!s)
		return;
	if (s->view) {
		s->view->staged_bytes -= s->size;
		s->view->staged_open -= s->fd >= 0;
	}
	if (s->name[0])
		(void)unlinkat(s->ws->mounts[s->mount].staged_fd, s->name, 0);
	cleanup_close(&s->fd);
	free(s->kept);
	free(s);
}

int staged_reopen(struct staged *s, struct err *err)
{
	if (s->fd >= 0)
		return 0;
	const struct mount *m = &s->ws->mounts[s->mount];
	s->fd = s->borrowed ? fs_open(m->saved_fd, s->kept, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0)
			    : fs_open(m->staged_fd, s->name, O_RDWR | O_NOFOLLOW, 0);
	if (s->fd < 0)
		return err_sys(err, errno, "opening a staged file again");
	if (s->view)
		s->view->staged_open++;
	return 0;
}

int staged_borrow(struct view *v, unsigned mount, const char *kept, int take, int64_t size,
	struct staged **ret, struct err *err)
{
	_cleanup_close_ int fd = take;
	BUG_ON(!kept && take < 0);
	struct staged *s = calloc(1, sizeof(*s));
	if (!s || (kept && !(s->kept = strdup(kept)))) {
		free(s);
		return err_oom(err);
	}
	s->ws = v->ws;
	s->mount = mount;
	s->fd = take_fd(fd);
	s->size = size;
	s->borrowed = true;
	*ret = s;
	return 0;
}

void staged_rest(struct staged *s)
{
	if (!s->kept)
		return;
	cleanup_close(&s->fd);
	s->fd = -1;
}

/* Room for n more bytes? */
static int reserve(struct staged *s, int64_t n, struct err *err)
{
	return quota_check_staged(s->ws, s->mount, s->view->staged_bytes + n, err);
}

static void grew(struct staged *s, int64_t n)
{
	s->size += n;
	s->view->staged_bytes += n;
}

int staged_write(struct staged *s, const void *p, size_t n, struct err *err)
{
	int r;
	if (n > INT64_MAX / 2)
		return err_set(err, ERR_TOO_LARGE, "too much to write");
	if ((r = reserve(s, (int64_t)n, err)) < 0 || (r = staged_reopen(s, err)) < 0)
		return r;
	if (fs_write(s->fd, p, n, s->size) < 0)
		return err_sys(err, errno, "writing a staged file");
	grew(s, (int64_t)n);
	return 0;
}

int staged_copy(struct staged *s, int from_fd, int64_t offset, int64_t len, struct err *err)
{
	int r;
	struct stat st;
	if (fstat(from_fd, &st) < 0)
		return err_sys(err, errno, "looking at what is to be copied");
	int64_t there = S_ISREG(st.st_mode) ? MAX(st.st_size - offset, (int64_t)0) : 0;
	int64_t want = len < 0 ? there : MIN(len, there);
	if ((r = reserve(s, want, err)) < 0 || (r = staged_reopen(s, err)) < 0)
		return r;
	int64_t n = want == 0 ? 0 : fs_copy(from_fd, offset, s->fd, s->size, want);
	if (n < 0)
		return err_sys(err, errno, "copying into a staged file");
	grew(s, n);
	return 0;
}

int staged_fd(const struct staged *s)
{
	return s->fd;
}

int64_t staged_size(const struct staged *s)
{
	return s->size;
}
