/* The store of a workspace: see store.h. */
#include "workspace/store.h"

#include "sys/fs.h"
#include "workspace/attributes.h"
#include "workspace/workspace.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* "CLOISTER" in the byte order of the machine: a page from another byte order is not ours. */
static const uint64_t STATE_MAGIC = 0x434c4f4953544552;
static const uint32_t STATE_VERSION = 1;

static int check_owner(int fd, mode_t type, const char *what, struct err *err)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return err_sys(err, errno, "looking at the store");
	if ((st.st_mode & S_IFMT) != type || st.st_uid != geteuid() || (st.st_mode & 077) != 0) {
		(void)err_set(err, ERR_CORRUPT, "the store's %s was not made by Cloister", what);
		return err_hint(err, "remove '%s' from the workspace, or name another store",
			WORKSPACE_STORE_NAME);
	}
	return 0;
}

int store_subdir(int dir_fd, const char *name, int *ret_fd, struct err *err)
{
	int r;
	bool made = mkdirat(dir_fd, name, 0700) == 0;
	if (!made && errno != EEXIST)
		return err_sys(err, errno, "making the store");
	_cleanup_close_ int fd = fs_open(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (fd < 0)
		return err_sys(err, errno, "opening the store");
	if (made)
		attributes_strip(fd);
	if ((r = check_owner(fd, S_IFDIR, "directory", err)) < 0)
		return r;
	*ret_fd = take_fd(fd);
	return 0;
}

static int open_file(int dir_fd, const char *name, int *ret_fd, struct err *err)
{
	int r;
	_cleanup_close_ int fd = fs_open(dir_fd, name, O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
	if (fd < 0)
		return err_sys(err, errno, "opening the store's %s", name);
	if ((r = check_owner(fd, S_IFREG, name, err)) < 0)
		return r;
	*ret_fd = take_fd(fd);
	return 0;
}

/*
 * Read once: it cannot change while this process lives, and core can no longer open it after
 * core_restrict(). Without it every open counts as a new boot: slower, never wrong.
 */
static char boot_id[STORE_BOOT_ID + 4];
static pthread_once_t boot_id_once = PTHREAD_ONCE_INIT;

static void read_boot_id(void)
{
	_cleanup_close_ int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fs_read(fd, boot_id, STORE_BOOT_ID, 0) != STORE_BOOT_ID)
		memset(boot_id, 0, sizeof(boot_id));
}

bool store_same_boot(const struct store *s)
{
	(void)pthread_once(&boot_id_once, read_boot_id);
	return boot_id[0] && memcmp(boot_id, s->st->boot, sizeof(boot_id)) == 0;
}

void store_set_boot(struct store *s)
{
	(void)pthread_once(&boot_id_once, read_boot_id);
	memcpy(s->st->boot, boot_id, sizeof(boot_id));
}

/* Under the lock: a new page gets its first content, the magic last. It says nothing of a boot:
 * where a power cut took the page and left the log, that has to be played. */
static int init_state(struct store *s, struct err *err)
{
	if (s->st->magic == STATE_MAGIC && s->st->version == STATE_VERSION)
		return 0;
	if (s->st->magic != 0)
		return err_set(err, ERR_CORRUPT, "the store's state has an unknown format");
	s->st->version = STATE_VERSION;
	atomic_store(&s->st->log_generation, 1);
	atomic_thread_fence(memory_order_seq_cst);
	s->st->magic = STATE_MAGIC;
	return 0;
}

static int map_state(struct store *s, struct err *err)
{
	struct stat st;
	if (fstat(s->state_fd, &st) < 0)
		return err_sys(err, errno, "looking at the store's state");
	if (st.st_size < STORE_PAGE) {
		/* Blocks now, so that a full disk is an error here and no SIGBUS later. */
		int e = posix_fallocate(s->state_fd, 0, STORE_PAGE);
		if (e != 0)
			return err_sys(err, e, "making the store's state");
	}
	void *p = mmap(NULL, STORE_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, s->state_fd, 0);
	if (p == MAP_FAILED)
		return err_sys(err, errno, "mapping the store's state");
	s->st = p;
	return 0;
}

int store_open(struct store *s, int dir_fd, struct err *err)
{
	int r;
	*s = (struct store){
		.dir_fd = -1, .lock_fd = -1, .state_fd = -1, .log_fd = -1, .history_fd = -1};
	(void)pthread_mutex_init(&s->mutex, NULL);
	s->dir_fd = fcntl(dir_fd, F_DUPFD_CLOEXEC, 0);
	if (s->dir_fd < 0)
		return err_sys(err, errno, "opening the store");
	if ((r = check_owner(s->dir_fd, S_IFDIR, "directory", err)) < 0 ||
		(r = open_file(s->dir_fd, "lock", &s->lock_fd, err)) < 0 ||
		(r = open_file(s->dir_fd, "state", &s->state_fd, err)) < 0 ||
		(r = open_file(s->dir_fd, "redo", &s->log_fd, err)) < 0 ||
		(r = open_file(s->dir_fd, "history", &s->history_fd, err)) < 0)
		return r;
	/* Byte 2 orders openings and closings, so that one of them is first and one is last. */
	if (fs_lock_wait(s->lock_fd, 2, F_WRLCK, 1000) < 0)
		return err_set(err, ERR_BUSY, "another process is opening or closing the store");
	s->first = fs_lock(s->lock_fd, 1, F_WRLCK) == 0;
	if ((r = map_state(s, err)) == 0)
		r = init_state(s, err);
	if (fs_lock(s->lock_fd, 1, F_RDLCK) < 0 && r == 0)
		r = err_sys(err, errno, "opening the store");
	(void)fs_lock(s->lock_fd, 2, F_UNLCK);
	return r;
}

void store_done(struct store *s)
{
	if (s->st)
		(void)munmap(s->st, STORE_PAGE);
	s->st = NULL;
	int *fds[] = {&s->dir_fd, &s->lock_fd, &s->state_fd, &s->log_fd, &s->history_fd};
	for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
		cleanup_close(fds[i]);
		*fds[i] = -1;
	}
	(void)pthread_mutex_destroy(&s->mutex);
}

static int busy(struct err *err)
{
	(void)err_set(err, ERR_BUSY, "another call is changing the workspace");
	return err_hint(err, "try again in a moment");
}

int store_lock(struct store *s, unsigned wait_ms, struct err *err)
{
	struct timespec until;
	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += wait_ms / 1000;
	until.tv_nsec += (long)(wait_ms % 1000) * 1000000;
	if (until.tv_nsec >= 1000000000)
		until.tv_sec++, until.tv_nsec -= 1000000000;
	if (pthread_mutex_clocklock(&s->mutex, CLOCK_MONOTONIC, &until) != 0)
		return busy(err);
	if (fs_lock_wait(s->lock_fd, 0, F_WRLCK, wait_ms) < 0) {
		int e = errno;
		(void)pthread_mutex_unlock(&s->mutex);
		return e == EAGAIN ? busy(err) : err_sys(err, e, "locking the workspace");
	}
	return 0;
}

void store_unlock(struct store *s)
{
	(void)fs_lock(s->lock_fd, 0, F_UNLCK);
	(void)pthread_mutex_unlock(&s->mutex);
}
