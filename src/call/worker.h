/*
 * The port to a session's worker: who interprets patterns and YAML.
 *
 * Tools see this port only; what stands behind it (daemon/worker_client.h, a process with nothing
 * but read-only descriptors) is bound through `ops`. No function but worker_wait() blocks. All
 * workers of a tree are used from one thread.
 *
 * A job is copied when it is submitted (texts copied, descriptors duplicated), runs alone, and has
 * one answer, taken once. A worker that dies, hangs past the job's deadline or answers nonsense is
 * an error of the job that it was running (ERR_UNAVAILABLE, ERR_TIMEOUT) and the next job gets a
 * fresh worker. What a worker says is checked against the contract below before it is handed on;
 * texts in it are still bytes from files.
 */
#ifndef CLOISTER_CALL_WORKER_H
#define CLOISTER_CALL_WORKER_H

#include "workspace/search.h"

#include <poll.h>
#include <time.h>

enum {
	WORKER_QUEUE_MAX = 16,           /* jobs waiting for one worker */
	WORKER_DEADLINE_MS_MAX = 600000, /* of one job */
	WORKER_YAML_INLINE_MAX = 65536 / 2,
	WORKER_LINES_MAX = 64, /* line numbers in a replace answer */
};
#define WORKER_OUTPUT_MAX (256LL * 1024 * 1024)

enum work_kind { WORK_SEARCH = 1, WORK_REGEX_REPLACE, WORK_YAML };

struct worker_job {
	enum work_kind kind;
	int64_t deadline_ms; /* from now; 0: 60,000. The worker is killed when it passes */
	union {
		/* WORK_SEARCH: roots name the worker's mounts in the order given at its start. */
		struct search_query search;

		/* WORK_REGEX_REPLACE */
		struct {
			int content_fd;         /* regular file or memfd, read from 0 to its end */
			struct str pattern;     /* RE2 */
			struct str replacement; /* \0..\9 are groups, \\ a backslash */
			uint64_t max_count;     /* replace the first N; 0: all */
			bool ignore_case, multi_line /* ^ $ at lines */, dot_all /* . takes \n */;
			int64_t max_output; /* bytes; 0: WORKER_OUTPUT_MAX. More: ERR_TOO_LARGE */
		} replace;

		/* WORK_YAML */
		struct {
			int content_fd;     /* -1: `bytes` */
			struct str bytes;   /* at most WORKER_YAML_INLINE_MAX */
			int64_t max_output; /* as above */
		} yaml;
	};
};

struct worker_answer {
	enum work_kind kind;
	union {
		struct {
			struct search_stats stats;
			struct search_hit *hits; /* stats.hits of them */
		} search;
		struct {
			int content_fd; /* new content: sealed memfd, offset 0 */
			int64_t size;
			uint64_t replacements;
			uint64_t lines_changed; /* lines of the old content that held a match */
			uint32_t n_lines;       /* the first of their numbers, from 1 */
			uint64_t lines[WORKER_LINES_MAX];
		} replace;
		struct {
			int json_fd; /* JSON text: sealed memfd, offset 0 */
			int64_t size;
			uint32_t documents;
		} yaml;
	};
	void *memory; /* what the pointers above point into */
};

/* Frees memory and closes descriptors (take_fd() one to keep it). Accepts NULL. */
static inline void worker_answer_free(struct worker_answer *a)
{
	if (!a)
		return;
	if (a->kind == WORK_REGEX_REPLACE)
		cleanup_close(&a->replace.content_fd);
	if (a->kind == WORK_YAML)
		cleanup_close(&a->yaml.json_fd);
	free(a->memory);
	free(a);
}
DEFINE_CLEANUP(struct worker_answer *, worker_answer_free)

struct worker;

struct worker_ops {
	int (*submit)(
		struct worker *w, const struct worker_job *job, uint64_t *ret_id, struct err *err);
	int (*poll_fd)(const struct worker *w);
	int64_t (*deadline_ms)(const struct worker *w, uint64_t id);
	int (*take)(struct worker *w, uint64_t id, struct worker_answer **ret, struct err *err);
	void (*cancel)(struct worker *w, uint64_t id);
	void (*free)(struct worker *w);
};

/* The first member of every implementation. */
struct worker {
	const struct worker_ops *ops;
};

/* Queue a job; starts the process when there is none. Errors: ERR_INVALID_ARGUMENT (a job outside
 * its limits), ERR_LIMIT (WORKER_QUEUE_MAX), ERR_UNAVAILABLE (cannot be started), ERR_NO_MEMORY. */
static inline int _must_check_ worker_submit(
	struct worker *w, const struct worker_job *job, uint64_t *ret_id, struct err *err)
{
	return w->ops->submit(w, job, ret_id, err);
}

/* Readable when worker_take() may get on; -1 while no process runs. It changes when the process
 * does, so ask before every wait. */
static inline int worker_poll_fd(const struct worker *w)
{
	return w->ops->poll_fd(w);
}

/* CLOCK_MONOTONIC ms at which worker_take() must be called at the latest; -1: unknown job. */
static inline int64_t worker_deadline_ms(const struct worker *w, uint64_t id)
{
	return w->ops->deadline_ms(w, id);
}

/*
 * 1: *ret is the answer (owned by the caller), 0: not yet, < 0: the job failed. After 1 or < 0 the
 * id is forgotten. Errors are the job's (ERR_INVALID_ARGUMENT "invalid pattern: ...", ERR_PARSE
 * "line 3, column 5: ...", ERR_TOO_LARGE, ERR_NOT_FOUND, ...), ERR_TIMEOUT (killed at its
 * deadline), ERR_UNAVAILABLE (the worker died or misbehaved; the text says how), ERR_CANCELLED.
 */
static inline int _must_check_ worker_take(
	struct worker *w, uint64_t id, struct worker_answer **ret, struct err *err)
{
	return w->ops->take(w, id, ret, err);
}

/* Forget a job: a queued one is dropped, a running one is stopped with its process. Unknown ids are
 * ignored. */
static inline void worker_cancel(struct worker *w, uint64_t id)
{
	w->ops->cancel(w, id);
}

/* Stop the process and forget its jobs. Accepts NULL. */
static inline void worker_free(struct worker *w)
{
	if (w)
		w->ops->free(w);
}
DEFINE_CLEANUP(struct worker *, worker_free)

/* Block until the job is answered or failed (its deadline bounds the wait). Never 0. For tests and
 * the command line; the pipeline polls. */
static inline int _must_check_ worker_wait(
	struct worker *w, uint64_t id, struct worker_answer **ret, struct err *err)
{
	for (;;) {
		int r = worker_take(w, id, ret, err);
		if (r)
			return r;
		struct timespec now;
		(void)clock_gettime(CLOCK_MONOTONIC, &now);
		int64_t left = worker_deadline_ms(w, id) -
			       (now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000);
		struct pollfd p = {.fd = worker_poll_fd(w), .events = POLLIN};
		(void)poll(&p, 1, left < 0 ? 0 : left > 60000 ? 60000 : (int)left + 1);
	}
}

#endif
