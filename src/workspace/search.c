/*
 * The search engine's walk: see search.h.
 *
 * Work is an ordered list of tasks: a directory to read, or a run of files of one. Reading a
 * directory puts its subdirectories behind it in the list, so the list's order is the order of the
 * answer whichever thread does what; the caller's thread hands out the hits of finished tasks from
 * the front. A task opens its directory by one path from the mount's root and then makes sure that
 * it is the very directory that its parent listed (a component swapped for a link meanwhile would
 * lead elsewhere); if it is not, or that cannot be told, it goes component by component.
 */
#include "workspace/search.h"
#include "workspace/search_names.h"
#include "workspace/search_scan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>

enum {
	RUN_FILES = 128,  /* files of one task */
	CLOSE_BATCH = 32, /* descriptors closed by one call */
	TASKS_MAX = 500000,
	HELD_MAX = 2 * SEARCH_ANSWER_BYTES, /* found bytes that wait for their turn */
	DIR_BUFFER = 32 * 1024,
	OPEN_FLAGS = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
};

enum task_state { TASK_TODO, TASK_RUNNING, TASK_DONE };

struct task {
	struct task *next;
	enum task_state state;
	unsigned root, depth;
	uint64_t ino;    /* what the parent's listing said; 0: a root */
	bool whole_root; /* the root is one file */
	char *names;     /* NUL-separated names of files to scan; NULL: read the directory */
	unsigned n_names;
	struct found_list found;
	size_t n_path;
	char path[]; /* of the directory, relative to the mount, NUL-terminated */
};

struct search {
	const struct search_query *q;
	const int *mount_fds;
	dev_t devs[SEARCH_ROOTS_MAX];
	struct matcher *matcher;
	struct name_filter *filter;
	int64_t deadline_ms; /* 0: none */
	unsigned max_results;

	pthread_mutex_t lock; /* guards what follows */
	pthread_cond_t changed;
	struct task *first;
	unsigned n_tasks, n_running;
	size_t held;
	struct search_stats stats;
	atomic_bool out_of_memory, too_deep;
	atomic_int stop; /* enum search_stop; anything but COMPLETE ends all work */
	atomic_uint_least64_t bytes;
};

/* What one thread works with. */
struct hand {
	struct search *s;
	struct scanner scanner;
	struct search_stats stats; /* of the task at hand */
	unsigned ticks;
	int batch_from, batch_to; /* descriptors to close, [from..to]; -1: none */
	char *buffer;
	char dir_buffer[DIR_BUFFER];
};

struct search_pool {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	int (*enter)(void *ctx, struct err *err);
	void *enter_ctx;
	struct err *enter_err;
	int entered;         /* 0: not yet, 1: ready, < 0: failed */
	struct search *work; /* set by search_run(), cleared by the thread when done */
	bool quit;
	struct hand *hand;
};

struct dirent64_raw {
	uint64_t ino;
	int64_t off;
	uint16_t len;
	uint8_t type;
	char name[];
};

/* --- stopping --- */

static void stop_with(struct search *s, enum search_stop why)
{
	int none = SEARCH_COMPLETE;
	(void)atomic_compare_exchange_strong(&s->stop, &none, (int)why);
}

static bool stopped(const struct search *s)
{
	return atomic_load_explicit(&s->stop, memory_order_relaxed) != SEARCH_COMPLETE;
}

static int64_t now_ms(void)
{
	struct timespec ts;
	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * INT64_C(1000) + ts.tv_nsec / 1000000;
}

static bool check_time(void *ctx)
{
	struct search *s = ctx;
	if (s->deadline_ms && now_ms() >= s->deadline_ms)
		stop_with(s, SEARCH_TIME);
	return stopped(s);
}

/* --- tasks --- */

static struct task *task_new(
	unsigned root, const char *path, size_t n_path, const char *name, size_t n_name)
{
	size_t n = n_path + (n_path && n_name) + n_name;
	struct task *t = calloc(1, sizeof(*t) + n + 1);
	if (!t)
		return NULL;
	t->root = root;
	t->found.last = &t->found.first;
	t->n_path = n;
	memcpy(t->path, path, n_path);
	if (n_path && n_name)
		t->path[n_path] = '/';
	memcpy(t->path + n - n_name, name, n_name);
	return t;
}

static void task_free(struct task *t)
{
	free(t->names);
	arena_done(&t->found.arena);
	free(t);
}

/* Put a chain of tasks behind `t`. */
static void insert_behind(struct search *s, struct task *t, struct task *chain, unsigned n)
{
	struct task *last = chain;
	while (last->next)
		last = last->next;
	(void)pthread_mutex_lock(&s->lock);
	last->next = t->next;
	t->next = chain;
	s->n_tasks += n;
	(void)pthread_cond_broadcast(&s->changed);
	(void)pthread_mutex_unlock(&s->lock);
}

/* --- opening --- */

/* On overlayfs the number in a listing need not be that of the object. */
static bool on_overlay(int fd)
{
	struct statfs fs;
	return syscall(SYS_fstatfs, fd, &fs) == 0 && fs.f_type == OVERLAYFS_SUPER_MAGIC;
}

/* A directory of the mount itself. One with another number than its parent's listing said is
 * something that was swapped in, or what is mounted there: neither is entered. */
static bool is_dir_of_mount(const struct search *s, const struct task *t, int fd, uint64_t ino)
{
	struct stat st;
	return syscall(SYS_fstat, fd, &st) == 0 && S_ISDIR(st.st_mode) &&
	       st.st_dev == s->devs[t->root] && (!ino || st.st_ino == ino || on_overlay(fd));
}

/* One component at a time, following nothing. */
static int open_by_component(struct search *s, const struct task *t, int mount_fd)
{
	char path[LIMIT_PATH_BYTES + LIMIT_NAME_BYTES + 2];
	if (t->n_path >= sizeof(path))
		return -1;
	memcpy(path, t->path, t->n_path + 1);
	int fd = openat(mount_fd, ".", OPEN_FLAGS | O_DIRECTORY);
	for (char *p = path; fd >= 0 && *p;) {
		char *end = strchrnul(p, '/');
		bool more = *end == '/';
		*end = '\0';
		int next = openat(fd, p, OPEN_FLAGS | O_DIRECTORY);
		(void)close(fd);
		fd = next;
		if (fd >= 0 && !is_dir_of_mount(s, t, fd, more ? 0 : t->ino)) {
			(void)close(fd);
			fd = -1;
		}
		p = end + (more ? 1 : 0);
	}
	return fd;
}

static int open_task_dir(struct search *s, const struct task *t)
{
	int mount_fd = s->mount_fds[s->q->roots[t->root].mount];
	if (t->ino) {
		int fd = openat(mount_fd, t->path, OPEN_FLAGS | O_DIRECTORY);
		if (fd >= 0 && is_dir_of_mount(s, t, fd, t->ino))
			return fd;
		if (fd >= 0)
			(void)close(fd);
	}
	return open_by_component(s, t, mount_fd);
}

static void close_batch(struct hand *h)
{
	if (h->batch_from >= 0)
		(void)syscall(SYS_close_range, h->batch_from, h->batch_to, 0);
	h->batch_from = -1;
}

/* Closing one by one is a fifth of the time of searching small files. Numbers are given out lowest
 * first, so a batch is one range; a hole in it ends the batch. */
static void close_later(struct hand *h, int fd)
{
	if (h->batch_from >= 0 && fd != h->batch_to + 1)
		close_batch(h);
	if (h->batch_from < 0)
		h->batch_from = fd;
	h->batch_to = fd;
	if (fd - h->batch_from + 1 >= CLOSE_BATCH)
		close_batch(h);
}

/* --- files --- */

static void count_result(struct hand *h, enum scan_result r, unsigned new_hits, uint64_t bytes)
{
	switch (r) {
	case SCAN_TEXT:
		h->stats.files_scanned++;
		h->stats.bytes_scanned += bytes;
		h->stats.files_matched += new_hits > 0;
		break;
	case SCAN_BINARY: h->stats.skipped_binary++; break;
	case SCAN_LARGE: h->stats.skipped_large++; break;
	case SCAN_UNREADABLE: h->stats.skipped_unreadable++; break;
	}
	struct search *s = h->s;
	if (s->q->max_bytes &&
		atomic_fetch_add(&s->bytes, bytes) + bytes >= (uint64_t)s->q->max_bytes)
		stop_with(s, SEARCH_BYTES);
}

/* The path of a file below its root, kept in the arena only once it is needed. */
static struct str path_below_root(
	const struct search *s, const struct task *t, const char *name, struct arena *a)
{
	if (t->whole_root)
		return STR("");
	size_t skip = s->q->roots[t->root].path.n;
	if (skip && t->n_path > skip)
		skip++;
	size_t dir = t->n_path - skip, n_name = strlen(name);
	char *p = arena_alloc(a, dir + 1 + n_name);
	if (!p)
		return STR("");
	memcpy(p, t->path + skip, dir);
	if (dir)
		p[dir++] = '/';
	memcpy(p + dir, name, n_name);
	return (struct str){p, dir + n_name};
}

static void give_path(const struct search *s, const struct task *t, const char *name,
	struct found **first, struct arena *a)
{
	if (!*first)
		return;
	struct str path = path_below_root(s, t, name, a);
	for (struct found *f = *first; f; f = f->next)
		f->hit.path = path;
}

static bool has_many_names(int fd)
{
	struct stat st;
	return syscall(SYS_fstat, fd, &st) < 0 || st.st_nlink > 1;
}

static void scan_one(struct hand *h, struct task *t, int dir_fd, const char *name)
{
	struct search *s = h->s;
	int fd = openat(dir_fd, name, OPEN_FLAGS);
	if (fd < 0) {
		if (errno == ELOOP)
			h->stats.skipped_links++;
		else
			h->stats.skipped_unreadable++;
		return;
	}
	if (s->q->strict_links && has_many_names(fd)) {
		h->stats.skipped_links++;
	} else {
		const struct search_hit where = {.root = t->root};
		struct found **first = t->found.last;
		unsigned before = t->found.n;
		uint64_t bytes = 0;
		enum scan_result r = scan_file(&h->scanner, fd, &where, &t->found, &bytes);
		count_result(h, r, t->found.n - before, bytes);
		give_path(s, t, name, first, &t->found.arena);
	}
	close_later(h, fd);
	if ((++h->ticks & 15) == 0)
		(void)check_time(s);
}

static void scan_names(struct hand *h, struct task *t, int dir_fd, const char *names, unsigned n)
{
	for (unsigned i = 0; i < n && !stopped(h->s) && t->found.n < h->scanner.max_hits; i++) {
		scan_one(h, t, dir_fd, names);
		names += strlen(names) + 1;
	}
	close_batch(h);
}

/* --- directories --- */

struct entry {
	const char *name;
	size_t n;
	uint64_t ino;
	bool is_dir;
};

struct listing {
	struct arena arena;
	struct entry *v;
	size_t n, cap;
};

static void listing_done(struct listing *l)
{
	arena_done(&l->arena);
	free(l->v);
}

static bool listing_add(struct listing *l, const struct dirent64_raw *d, bool is_dir)
{
	if (l->n == l->cap) {
		size_t cap = l->cap ? 2 * l->cap : 64;
		struct entry *v = realloc(l->v, cap * sizeof(*v));
		if (!v)
			return false;
		l->v = v;
		l->cap = cap;
	}
	size_t n = strlen(d->name);
	char *name = arena_alloc(&l->arena, n + 1);
	if (!name)
		return false;
	memcpy(name, d->name, n + 1);
	l->v[l->n++] = (struct entry){name, n, d->ino, is_dir};
	return true;
}

/* A file system that does not say what its entries are. */
static unsigned char type_of(int dir_fd, const char *name)
{
	struct stat st;
	_cleanup_close_ int fd = openat(dir_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || syscall(SYS_fstat, fd, &st) < 0)
		return DT_UNKNOWN;
	return S_ISREG(st.st_mode)   ? DT_REG
	       : S_ISDIR(st.st_mode) ? DT_DIR
	       : S_ISLNK(st.st_mode) ? DT_LNK
				     : DT_FIFO;
}

/* Keep, count or leave out one entry; false when out of memory. */
static bool take_entry(struct hand *h, const struct task *t, int dir_fd,
	const struct dirent64_raw *d, struct listing *l)
{
	struct search *s = h->s;
	if (d->name[0] == '.' &&
		(!s->q->with_hidden || !d->name[1] || (d->name[1] == '.' && !d->name[2])))
		return true;
	unsigned char type = d->type == DT_UNKNOWN ? type_of(dir_fd, d->name) : d->type;
	size_t skip = s->q->roots[t->root].path.n;
	skip += skip && t->n_path > skip;
	struct str below = {t->path + skip, t->n_path - skip};
	if (type != DT_REG && type != DT_DIR) {
		h->stats.skipped_links += type == DT_LNK;
		h->stats.skipped_special += type != DT_LNK;
		return true;
	}
	if (!name_filter_takes(s->filter, below, str_of(d->name), type == DT_DIR))
		return true;
	if (s->q->n_hidden_places && name_filter_hides(s->q, s->q->roots[t->root].mount,
					     (struct str){t->path, t->n_path}, str_of(d->name)))
		return true;
	return listing_add(l, d, type == DT_DIR);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct entry *)a)->name, ((const struct entry *)b)->name);
}

/* Read and sort; false when out of memory. Unreadable directories are counted. */
static bool read_listing(struct hand *h, const struct task *t, int dir_fd, struct listing *l)
{
	long n;
	while ((n = syscall(SYS_getdents64, dir_fd, h->dir_buffer, sizeof(h->dir_buffer))) > 0)
		for (long at = 0; at < n;) {
			const struct dirent64_raw *d = (const void *)(h->dir_buffer + at);
			at += d->len;
			if (!take_entry(h, t, dir_fd, d, l))
				return false;
		}
	if (n < 0)
		h->stats.skipped_unreadable++;
	h->stats.dirs_read++;
	if (l->n)
		qsort(l->v, l->n, sizeof(l->v[0]), by_name);
	return true;
}

/* Up to RUN_FILES names of files from *at on, NUL-separated. */
static char *run_of_names(const struct listing *l, size_t *at, unsigned *ret_n)
{
	size_t bytes = 0, i = *at;
	unsigned n = 0;
	for (; i < l->n && n < RUN_FILES; i++)
		if (!l->v[i].is_dir) {
			bytes += l->v[i].n + 1;
			n++;
		}
	char *names = malloc(bytes + 1), *p = names;
	for (size_t k = *at; names && k < i; k++)
		if (!l->v[k].is_dir) {
			memcpy(p, l->v[k].name, l->v[k].n + 1);
			p += l->v[k].n + 1;
		}
	*at = i;
	*ret_n = n;
	return names;
}

struct chain {
	struct task *first, **last;
	unsigned n;
};

static bool chain_add(struct chain *c, struct task *t)
{
	if (!t)
		return false;
	*c->last = t;
	c->last = &t->next;
	c->n++;
	return true;
}

/* Tasks for the files beyond the first run and for the subdirectories; false: out of memory. */
static bool split(const struct task *t, const struct listing *l, size_t at, struct chain *c)
{
	while (at < l->n) {
		unsigned n;
		char *names = run_of_names(l, &at, &n);
		if (!names)
			return false;
		if (n == 0) {
			free(names);
			break;
		}
		struct task *run = task_new(t->root, t->path, t->n_path, "", 0);
		if (!chain_add(c, run)) {
			free(names);
			return false;
		}
		run->names = names;
		run->n_names = n;
		run->ino = t->ino;
		run->depth = t->depth;
	}
	for (size_t i = 0; i < l->n; i++) {
		if (!l->v[i].is_dir)
			continue;
		struct task *dir = task_new(t->root, t->path, t->n_path, l->v[i].name, l->v[i].n);
		if (!chain_add(c, dir))
			return false;
		dir->ino = l->v[i].ino;
		dir->depth = t->depth + 1;
	}
	return true;
}

static void plan_and_scan(struct hand *h, struct task *t, int dir_fd, struct listing *l)
{
	struct search *s = h->s;
	struct chain c = {.last = &c.first};
	size_t at = 0;
	bool ok = read_listing(h, t, dir_fd, l);
	t->names = ok ? run_of_names(l, &at, &t->n_names) : NULL;
	ok = t->names && split(t, l, at, &c);
	if (c.first)
		insert_behind(s, t, c.first, c.n);
	if (!ok) {
		atomic_store(&s->out_of_memory, true);
		stop_with(s, SEARCH_RESULTS);
		return;
	}
	scan_names(h, t, dir_fd, t->names, t->n_names);
}

static void run_directory(struct hand *h, struct task *t)
{
	_cleanup_(listing_done) struct listing l = {0};
	if (t->depth > LIMIT_PATH_DEPTH || t->n_path > LIMIT_PATH_BYTES) {
		atomic_store(&h->s->too_deep, true);
		return;
	}
	int fd = open_task_dir(h->s, t);
	if (fd < 0) {
		h->stats.skipped_unreadable++;
		return;
	}
	plan_and_scan(h, t, fd, &l);
	(void)close(fd);
}

static void run_files(struct hand *h, struct task *t)
{
	int fd = open_task_dir(h->s, t);
	if (fd < 0) {
		h->stats.skipped_unreadable += t->n_names;
		return;
	}
	scan_names(h, t, fd, t->names, t->n_names);
	(void)close(fd);
}

static void run_task(struct hand *h, struct task *t)
{
	h->stats = (struct search_stats){0};
	if (t->names)
		run_files(h, t);
	else
		run_directory(h, t);
}

/* --- the two threads --- */

static void add_stats(struct search_stats *to, const struct search_stats *from)
{
	to->files_scanned += from->files_scanned;
	to->files_matched += from->files_matched;
	to->bytes_scanned += from->bytes_scanned;
	to->dirs_read += from->dirs_read;
	to->skipped_binary += from->skipped_binary;
	to->skipped_large += from->skipped_large;
	to->skipped_special += from->skipped_special;
	to->skipped_links += from->skipped_links;
	to->skipped_unreadable += from->skipped_unreadable;
}

static struct task *next_todo(struct search *s)
{
	if (stopped(s) || (s->held > HELD_MAX && s->n_running))
		return NULL;
	for (struct task *t = s->first; t; t = t->next)
		if (t->state == TASK_TODO)
			return t;
	return NULL;
}

/* With the lock held: do one task, the lock released meanwhile. */
static void do_task(struct hand *h, struct task *t)
{
	struct search *s = h->s;
	t->state = TASK_RUNNING;
	s->n_running++;
	if (s->n_tasks > TASKS_MAX)
		stop_with(s, SEARCH_DEPTH);
	(void)pthread_mutex_unlock(&s->lock);
	run_task(h, t);
	(void)pthread_mutex_lock(&s->lock);
	add_stats(&s->stats, &h->stats);
	if (t->found.arena.failed)
		atomic_store(&s->out_of_memory, true);
	s->held += t->found.arena.total;
	t->state = TASK_DONE;
	s->n_running--;
	(void)pthread_cond_broadcast(&s->changed);
}

/* The second thread's part of one search: until nothing is left or running. */
static void help(struct hand *h, struct search *s)
{
	(void)pthread_mutex_lock(&s->lock);
	for (;;) {
		struct task *t = next_todo(s);
		if (t)
			do_task(h, t);
		else if (stopped(s) || (!s->n_running && !s->first))
			break;
		else
			(void)pthread_cond_wait(&s->changed, &s->lock);
	}
	(void)pthread_mutex_unlock(&s->lock);
}

static size_t answer_bytes(const struct search_hit *hit)
{
	size_t n = sizeof(*hit) + hit->path.n + hit->text.n;
	for (unsigned i = 0; i < hit->n_before; i++)
		n += sizeof(struct str) + hit->before[i].n;
	for (unsigned i = 0; i < hit->n_after; i++)
		n += sizeof(struct str) + hit->after[i].n;
	return n;
}

struct emitter {
	search_hit_fn fn;
	void *ctx;
	size_t bytes;
	uint64_t n;
	int failed;
	struct err *err;
};

static void emit(struct search *s, struct task *t, struct emitter *e)
{
	for (struct found *f = t->found.first; f && !e->failed; f = f->next) {
		e->bytes += answer_bytes(&f->hit);
		if (e->n == s->max_results)
			stop_with(s, SEARCH_RESULTS);
		else if (e->bytes > SEARCH_ANSWER_BYTES)
			stop_with(s, SEARCH_ANSWER);
		if (e->n == s->max_results || e->bytes > SEARCH_ANSWER_BYTES)
			return;
		e->failed = MIN(e->fn(e->ctx, &f->hit, e->err), 0);
		e->n++;
	}
	if (e->failed)
		stop_with(s, SEARCH_RESULTS);
}

/* With the lock held: hand out what is finished at the front (once all has stopped: everywhere). */
static void emit_finished(struct search *s, struct emitter *e)
{
	while (s->first &&
		(s->first->state == TASK_DONE || (stopped(s) && s->first->state == TASK_TODO))) {
		struct task *t = s->first;
		s->first = t->next;
		s->n_tasks--;
		s->held -= t->found.arena.total;
		(void)pthread_mutex_unlock(&s->lock);
		emit(s, t, e);
		task_free(t);
		(void)pthread_mutex_lock(&s->lock);
	}
	if (!s->first)
		(void)pthread_cond_broadcast(&s->changed);
}

static void work(struct hand *h, struct search *s, struct emitter *e)
{
	(void)pthread_mutex_lock(&s->lock);
	while (s->first) {
		emit_finished(s, e);
		struct task *t = next_todo(s);
		if (t)
			do_task(h, t);
		else if (s->first && s->n_running)
			(void)pthread_cond_wait(&s->changed, &s->lock);
	}
	(void)pthread_mutex_unlock(&s->lock);
}

/* --- the pool --- */

static struct hand *hand_new(void)
{
	struct hand *h = calloc(1, sizeof(*h));
	if (!h)
		return NULL;
	h->batch_from = h->batch_to = -1;
	h->buffer = malloc(SCAN_BUFFER);
	if (h->buffer)
		return h;
	free(h);
	return NULL;
}

static void hand_free(struct hand *h)
{
	if (!h)
		return;
	free(h->buffer);
	free(h);
}
DEFINE_CLEANUP(struct hand *, hand_free)

static void hand_take(struct hand *h, struct search *s)
{
	h->s = s;
	h->scanner = (struct scanner){
		.q = s->q,
		.matcher = s->matcher,
		.max_hits = s->max_results + 1,
		.stop = check_time,
		.stop_ctx = s,
		.buffer = h->buffer,
	};
}

static void *pool_main(void *arg)
{
	struct search_pool *p = arg;
	struct err err;
	int r = unshare(CLONE_FILES) < 0 ? err_sys(&err, errno, "taking a descriptor table") : 0;
	if (r == 0 && p->enter)
		r = p->enter(p->enter_ctx, &err);
	(void)pthread_mutex_lock(&p->lock);
	if (r < 0)
		*p->enter_err = err;
	p->entered = r < 0 ? r : 1;
	(void)pthread_cond_broadcast(&p->changed);
	while (r >= 0) {
		while (!p->work && !p->quit)
			(void)pthread_cond_wait(&p->changed, &p->lock);
		if (p->quit)
			break;
		struct search *s = p->work;
		(void)pthread_mutex_unlock(&p->lock);
		hand_take(p->hand, s);
		help(p->hand, s);
		(void)pthread_mutex_lock(&p->lock);
		p->work = NULL;
		(void)pthread_cond_broadcast(&p->changed);
	}
	(void)pthread_mutex_unlock(&p->lock);
	return NULL;
}

static int pool_start(struct search_pool *p, struct err *err)
{
	pthread_attr_t attr;
	(void)pthread_attr_init(&attr);
	(void)pthread_attr_setstacksize(&attr, 512 * 1024);
	int r = pthread_create(&p->thread, &attr, pool_main, p);
	(void)pthread_attr_destroy(&attr);
	if (r)
		return err_sys(err, r, "starting a second thread");
	(void)pthread_mutex_lock(&p->lock);
	while (!p->entered)
		(void)pthread_cond_wait(&p->changed, &p->lock);
	r = p->entered;
	(void)pthread_mutex_unlock(&p->lock);
	if (r < 0)
		(void)pthread_join(p->thread, NULL);
	return MIN(r, 0);
}

static void pool_release(struct search_pool *p)
{
	(void)pthread_mutex_destroy(&p->lock);
	(void)pthread_cond_destroy(&p->changed);
	hand_free(p->hand);
	free(p);
}

int search_pool_new(int (*enter)(void *ctx, struct err *err), void *ctx, struct search_pool **ret,
	struct err *err)
{
	struct search_pool *p = calloc(1, sizeof(*p));
	if (!p)
		return err_oom(err);
	(void)pthread_mutex_init(&p->lock, NULL);
	(void)pthread_cond_init(&p->changed, NULL);
	p->enter = enter;
	p->enter_ctx = ctx;
	p->enter_err = err;
	p->hand = hand_new();
	int r = p->hand ? pool_start(p, err) : err_oom(err);
	if (r < 0)
		pool_release(p);
	else
		*ret = p;
	return r;
}

void search_pool_free(struct search_pool *p)
{
	if (!p)
		return;
	(void)pthread_mutex_lock(&p->lock);
	p->quit = true;
	(void)pthread_cond_broadcast(&p->changed);
	(void)pthread_mutex_unlock(&p->lock);
	(void)pthread_join(p->thread, NULL);
	pool_release(p);
}

static void pool_give(struct search_pool *p, struct search *s)
{
	(void)pthread_mutex_lock(&p->lock);
	p->work = s;
	(void)pthread_cond_broadcast(&p->changed);
	(void)pthread_mutex_unlock(&p->lock);
}

static void pool_wait(struct search_pool *p)
{
	(void)pthread_mutex_lock(&p->lock);
	while (p->work)
		(void)pthread_cond_wait(&p->changed, &p->lock);
	(void)pthread_mutex_unlock(&p->lock);
}

/* --- one search --- */

/* The path of a root's last component's parent, and that component. */
static void split_path(struct str path, struct str *dir, struct str *name)
{
	const char *slash = memrchr(path.p, '/', path.n);
	*dir = slash ? (struct str){path.p, (size_t)(slash - path.p)} : STR("");
	*name = slash ? (struct str){slash + 1, path.n - dir->n - 1} : path;
}

static bool plain_path(struct str path)
{
	while (path.n) {
		const char *slash = memchr(path.p, '/', path.n);
		size_t n = slash ? (size_t)(slash - path.p) : path.n;
		if (n == 0 || n > LIMIT_NAME_BYTES || memchr(path.p, '\0', n) ||
			(n == 1 && path.p[0] == '.') ||
			(n == 2 && path.p[0] == '.' && path.p[1] == '.') ||
			(slash && n + 1 == path.n))
			return false;
		path.p += n + (slash ? 1 : 0);
		path.n -= n + (slash ? 1 : 0);
	}
	return true;
}

static int stat_root(struct search *s, unsigned i, struct task *dir, struct str name,
	struct stat *ret, struct err *err)
{
	_cleanup_close_ int parent = open_by_component(s, dir, s->mount_fds[s->q->roots[i].mount]);
	if (parent < 0)
		return err_set(err, ERR_NOT_FOUND, "the place to search is gone");
	char base[LIMIT_NAME_BYTES + 1] = ".";
	if (name.n) {
		memcpy(base, name.p, name.n);
		base[name.n] = '\0';
	}
	_cleanup_close_ int fd = openat(parent, base, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || syscall(SYS_fstat, fd, ret) < 0)
		return err_sys(err, errno, "opening the place to search");
	if (S_ISLNK(ret->st_mode))
		return err_set(err, ERR_LINK_REFUSED, "the place to search is a symbolic link");
	if (!S_ISDIR(ret->st_mode) && !S_ISREG(ret->st_mode))
		return err_set(err, ERR_NOT_REGULAR,
			"the place to search is neither a file nor a directory");
	return 0;
}

/* The task of a root: its directory, or the one file of its parent. */
static int root_task(struct search *s, unsigned i, struct chain *c, struct err *err)
{
	const struct search_place *place = &s->q->roots[i];
	struct stat st;
	struct str dir, name;
	if (!plain_path(place->path) || place->path.n > LIMIT_PATH_BYTES)
		return err_set(err, ERR_PATH_INVALID, "the place to search is not a plain path");
	if (syscall(SYS_fstat, s->mount_fds[place->mount], &st) < 0)
		return err_sys(err, errno, "looking at a mount");
	s->devs[i] = st.st_dev;
	split_path(place->path, &dir, &name);
	struct task *parent = task_new(i, dir.p, dir.n, "", 0);
	if (!chain_add(c, parent))
		return err_oom(err);
	int r = stat_root(s, i, parent, name, &st, err);
	if (r < 0)
		return r;
	if (S_ISREG(st.st_mode)) {
		parent->whole_root = true;
		parent->n_names = 1;
		parent->names = strndup(name.p, name.n);
		return parent->names ? 0 : err_oom(err);
	}
	struct task *t = task_new(i, place->path.p, place->path.n, "", 0);
	if (!t)
		return err_oom(err);
	/* in place of the parent, which was only needed to look */
	struct task **at = &c->first;
	while (*at != parent)
		at = &(*at)->next;
	*at = t;
	c->last = &t->next;
	task_free(parent);
	return 0;
}

static void free_tasks(struct search *s)
{
	while (s->first) {
		struct task *next = s->first->next;
		task_free(s->first);
		s->first = next;
	}
}

static void search_done(struct search *s)
{
	free_tasks(s);
	matcher_free(s->matcher);
	name_filter_free(s->filter);
	(void)pthread_mutex_destroy(&s->lock);
	(void)pthread_cond_destroy(&s->changed);
}

static int check_query(const struct search_query *q, unsigned n_mounts, struct err *err)
{
	if (q->n_roots == 0 || q->n_roots > SEARCH_ROOTS_MAX)
		return err_set(err, ERR_INVALID_ARGUMENT, "1 to %d places can be searched",
			SEARCH_ROOTS_MAX);
	for (unsigned i = 0; i < q->n_roots; i++)
		if (q->roots[i].mount >= n_mounts)
			return err_set(err, ERR_INVALID_ARGUMENT, "there is no mount %u",
				q->roots[i].mount);
	if (q->before > SEARCH_CONTEXT_MAX || q->after > SEARCH_CONTEXT_MAX)
		return err_set(err, ERR_INVALID_ARGUMENT, "at most %d lines of context",
			SEARCH_CONTEXT_MAX);
	return 0;
}

static int prepare(struct search *s, unsigned n_mounts, struct err *err)
{
	const struct search_query *q = s->q;
	struct chain c = {.last = &c.first};
	int r = check_query(q, n_mounts, err);
	if (r < 0 || (r = matcher_new(q, &s->matcher, err)) < 0 ||
		(r = name_filter_new(q, &s->filter, err)) < 0)
		return r;
	s->max_results = q->max_results && q->max_results < SEARCH_RESULTS_MAX ? q->max_results
									       : SEARCH_RESULTS_MAX;
	s->deadline_ms = q->max_ms > 0 ? now_ms() + q->max_ms : 0;
	for (unsigned i = 0; i < q->n_roots && r == 0; i++)
		r = root_task(s, i, &c, err);
	s->first = c.first;
	s->n_tasks = c.n;
	return r;
}

static int conclude(
	struct search *s, const struct emitter *e, struct search_stats *ret, struct err *err)
{
	if (e->failed)
		return e->failed;
	if (atomic_load(&s->out_of_memory))
		return err_oom(err);
	s->stats.stop = (enum search_stop)atomic_load(&s->stop);
	if (s->stats.stop == SEARCH_COMPLETE && atomic_load(&s->too_deep))
		s->stats.stop = SEARCH_DEPTH;
	s->stats.hits = e->n;
	*ret = s->stats;
	return 0;
}

int search_run(struct search_pool *pool, const struct search_query *q, const int *mount_fds,
	unsigned n_mounts, search_hit_fn hit, void *ctx, struct search_stats *ret, struct err *err)
{
	struct search s = {.q = q, .mount_fds = mount_fds};
	struct emitter e = {.fn = hit, .ctx = ctx, .err = err};
	(void)pthread_mutex_init(&s.lock, NULL);
	(void)pthread_cond_init(&s.changed, NULL);
	_cleanup_(cleanup_hand_free) struct hand *h = hand_new();
	int r = h ? prepare(&s, n_mounts, err) : err_oom(err);
	if (r == 0) {
		hand_take(h, &s);
		if (pool)
			pool_give(pool, &s);
		work(h, &s, &e);
		if (pool)
			pool_wait(pool);
		r = conclude(&s, &e, ret, err);
	}
	search_done(&s);
	return r;
}
