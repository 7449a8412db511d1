/* The lease of a session: see lease.h. A file of zeros is a valid, fresh lease. */
#include "session/lease.h"

#include "sys/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

static struct lease_page *map(int fd)
{
	void *p = mmap(NULL, sizeof(struct lease_page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return p == MAP_FAILED ? NULL : p;
}

int lease_open(int dir_fd, const char *incarnation, struct lease_page **ret, struct err *err)
{
	struct stat st;
	_cleanup_close_ int fd = fs_open(dir_fd, incarnation, O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(err, errno, "opening the lease of a session");
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid())
		return err_set(
			err, ERR_DENIED, "the lease of a session is not a file of this user");
	/* Allocated, not only extended: touching a hole on a full disk would be a signal. */
	if (st.st_size < (off_t)sizeof(struct lease_page)) {
		int e = posix_fallocate(fd, 0, sizeof(struct lease_page));
		if (e != 0)
			return err_sys(err, e, "making the lease of a session");
	}
	struct lease_page *page = map(fd);
	if (!page)
		return err_sys(err, errno, "mapping the lease of a session");
	*ret = page;
	return 0;
}

struct lease_page *lease_peek(int dir_fd, const char *incarnation)
{
	struct stat st;
	_cleanup_close_ int fd = fs_open(dir_fd, incarnation, O_RDWR | O_NOFOLLOW, 0);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
		st.st_size < (off_t)sizeof(struct lease_page))
		return NULL;
	return map(fd);
}

void lease_close(struct lease_page *page)
{
	if (page)
		(void)munmap(page, sizeof(*page));
}

void lease_used(struct lease_page *page, int64_t now_ms)
{
	int64_t old = atomic_load(&page->used_ms);
	while (old < now_ms && !atomic_compare_exchange_weak(&page->used_ms, &old, now_ms))
		;
}

void lease_turns(struct lease_page *page, uint64_t at_least)
{
	uint64_t old = atomic_load(&page->turns);
	while (old < at_least && !atomic_compare_exchange_weak(&page->turns, &old, at_least))
		;
}
