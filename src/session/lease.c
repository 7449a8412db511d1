/* The lease of a session: see lease.h. A file of zeros, or a shorter one, is a valid,
 * fresh lease. */
#include "session/lease.h"

#include "sys/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>

#define FIELD(name) (off_t) offsetof(struct lease_page, name)

int lease_open(int dir_fd, const char *name, bool make, struct lease *ret, struct err *err)
{
	struct stat st;
	_cleanup_close_ int fd =
		fs_open(dir_fd, name, O_RDWR | (make ? O_CREAT : 0) | O_NOFOLLOW, make ? 0600 : 0);
	if (fd < 0 && errno == ENOENT && !make)
		return 0;
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(err, errno, "opening the lease of a session");
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid())
		return err_set(
			err, ERR_DENIED, "the lease of a session is not a file of this user");
	*ret = (struct lease){.fd = take_fd(fd)};
	return 1;
}

bool lease_peek(int dir_fd, const char *name, struct lease *ret)
{
	int fd = fs_open(dir_fd, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK, 0);
	if (fd < 0)
		return false;
	*ret = (struct lease){.fd = fd};
	return true;
}

int lease_map(struct lease *l, struct err *err)
{
	if (l->page)
		return 0;
	/* Allocated, not only extended: touching a hole on a full disk would be a signal. */
	int e = posix_fallocate(l->fd, 0, sizeof(struct lease_page));
	if (e != 0)
		return err_sys(err, e, "making the lease of a session");
	void *p =
		mmap(NULL, sizeof(struct lease_page), PROT_READ | PROT_WRITE, MAP_SHARED, l->fd, 0);
	if (p == MAP_FAILED)
		return err_sys(err, errno, "mapping the lease of a session");
	l->page = p;
	cleanup_close(&l->fd);
	l->fd = -1;
	return 0;
}

void lease_done(struct lease *l)
{
	cleanup_close(&l->fd);
	if (l->page)
		(void)munmap(l->page, sizeof(*l->page));
	*l = LEASE_NONE;
}

/* --- by file -------------------------------------------------------------------------------- */

static int64_t get64(const struct lease *l, off_t at)
{
	int64_t v;
	return fs_read(l->fd, &v, sizeof(v), at) == sizeof(v) ? v : 0;
}

/* Between two processes the smaller of two values that differ by microseconds may win. */
static void raise64(const struct lease *l, off_t at, int64_t v)
{
	if (get64(l, at) < v)
		(void)fs_write(l->fd, &v, sizeof(v), at);
}

bool lease_dead(const struct lease *l)
{
	uint32_t dead = 0; /* what a file says that is still empty */
	if (l->page)
		return atomic_load(&l->page->dead) != 0;
	return fs_read(l->fd, &dead, sizeof(dead), FIELD(dead)) < 0 || dead != 0;
}

int64_t lease_last_use(const struct lease *l)
{
	return l->page ? atomic_load(&l->page->used_ms) : get64(l, FIELD(used_ms));
}

uint64_t lease_turns(const struct lease *l)
{
	return l->page ? atomic_load(&l->page->turns) : (uint64_t)get64(l, FIELD(turns));
}

void lease_use(struct lease *l, int64_t now_ms)
{
	if (!l->page) {
		raise64(l, FIELD(used_ms), now_ms);
		return;
	}
	int64_t old = atomic_load(&l->page->used_ms);
	while (old < now_ms && !atomic_compare_exchange_weak(&l->page->used_ms, &old, now_ms))
		;
}

void lease_raise_turns(struct lease *l, uint64_t at_least)
{
	if (!l->page) {
		raise64(l, FIELD(turns), (int64_t)at_least);
		return;
	}
	uint64_t old = atomic_load(&l->page->turns);
	while (old < at_least && !atomic_compare_exchange_weak(&l->page->turns, &old, at_least))
		;
}

void lease_mark(struct lease *l, bool dead)
{
	uint32_t v = dead;
	if (l->page)
		atomic_store(&l->page->dead, v);
	else
		(void)fs_write(l->fd, &v, sizeof(v), FIELD(dead));
}

int lease_next_turn(struct lease *l, uint64_t *ret, struct err *err)
{
	int r = lease_map(l, err);
	if (r == 0)
		*ret = atomic_fetch_add(&l->page->turns, 1) + 1;
	return r;
}
