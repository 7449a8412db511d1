/*
 * Core's side of a worker: the port of call/worker.h over a channel.
 *
 * One job runs at a time, so whatever comes in belongs to it or is a lie. The worker interprets
 * hostile input and may have been taken over: every packet goes through the typed cursor, hits are
 * bounded in number and bytes and checked against the question, new content is sealed before it is
 * believed, and any lie ends the process. Nothing a worker says becomes a host path or an action.
 */
#include "daemon/tree_internal.h"
#include "sys/loop.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

enum {
	DEADLINE_DEFAULT_MS = 60000,
	DEATH_WAIT_MS = 1000, /* for the supervisor to say how a worker ended */
	HELD_BYTES_MAX = SEARCH_ANSWER_BYTES + 2 * MSG_PACKET_MAX,
};

#ifndef MFD_NOEXEC_SEAL
#	define MFD_NOEXEC_SEAL 0x0008U
#endif

enum job_state { JOB_QUEUED, JOB_SENT, JOB_ANSWERED, JOB_FAILED };

struct job {
	struct job *next;
	uint64_t id;
	enum work_kind kind;
	enum job_state state;
	int64_t deadline_ms;
	/* the question */
	char *packet;
	size_t packet_len;
	int fds[2];
	unsigned n_fds;
	unsigned n_roots, before, after, max_results; /* bounds of an honest answer */
	/* the answer */
	int out_fd; /* core's copy of the output, -1: none */
	int64_t max_output;
	struct buf hits; /* bodies of HIT messages, each after its 32-bit length */
	uint64_t n_hits, n_context;
	struct worker_answer *answer;
	struct err err;
};

struct client {
	struct worker base;
	struct tree *tree; /* NULL: the channel is somebody else's (client_over) */
	int mount_fds[LIMIT_MOUNTS];
	unsigned n_mounts;
	int landlock_abi;
	uint64_t lease, last_id;
	int channel; /* -1: no process */
	bool greeted;
	unsigned n_jobs;
	struct job *jobs; /* in order of submission; at most one is SENT */
};

/* --- jobs --- */

static void job_free(struct job *j)
{
	if (!j)
		return;
	for (unsigned i = 0; i < j->n_fds; i++)
		cleanup_close(&j->fds[i]);
	cleanup_close(&j->out_fd);
	buf_done(&j->hits);
	worker_answer_free(j->answer);
	free(j->packet);
	free(j);
}
DEFINE_CLEANUP(struct job *, job_free)

static struct job *job_with(const struct client *c, enum job_state state)
{
	for (struct job *j = c->jobs; j; j = j->next)
		if (j->state == state)
			return j;
	return NULL;
}

static struct job *job_by_id(const struct client *c, uint64_t id)
{
	for (struct job *j = c->jobs; j; j = j->next)
		if (j->id == id)
			return j;
	return NULL;
}

static void job_remove(struct client *c, struct job *j)
{
	struct job **at = &c->jobs;
	while (*at != j)
		at = &(*at)->next;
	*at = j->next;
	c->n_jobs--;
	job_free(j);
}

/* What only the question needs is let go when the answer is there. */
static void job_close_question(struct job *j)
{
	for (unsigned i = 0; i < j->n_fds; i++)
		cleanup_close(&j->fds[i]);
	j->n_fds = 0;
	free(j->packet);
	j->packet = NULL;
}

static void job_fail(struct job *j, const struct err *err)
{
	j->state = JOB_FAILED;
	j->err = *err;
	job_close_question(j);
}

/* --- the process --- */

static void drop_process(struct client *c)
{
	if (c->channel < 0)
		return;
	(void)close(c->channel);
	c->channel = -1;
	c->greeted = false;
	if (c->tree) {
		tree_kill(c->tree, c->lease);
		tree_forget(c->tree, c->lease);
	}
}

static void describe_end(const struct lease_end *end, struct err *err)
{
	char how[96] = "ended";
	if (end->known && end->error)
		(void)err_set(err, ERR_UNAVAILABLE, "the session's worker could not be started: %s",
			strerrordesc_np(end->error) ? strerrordesc_np(end->error)
						    : "unknown error");
	else {
		if (end->known)
			process_describe(end->status, how, sizeof(how));
		(void)err_set(err, ERR_UNAVAILABLE, "the session's worker %s during this job", how);
	}
}

/* The process has ended by itself: the running job learns how. */
static void process_died(struct client *c)
{
	struct err err;
	struct lease_end end = {0};
	if (c->tree)
		end = tree_lease_end(c->tree, c->lease, DEATH_WAIT_MS);
	describe_end(&end, &err);
	drop_process(c);
	struct job *j = job_with(c, JOB_SENT);
	if (j)
		job_fail(j, &err);
}

static void process_lied(struct client *c, const struct err *why)
{
	struct err err;
	(void)err_set(&err, ERR_UNAVAILABLE,
		"the session's worker was ended for a wrong answer: %.200s", why->text);
	drop_process(c);
	struct job *j = job_with(c, JOB_SENT);
	if (j)
		job_fail(j, &err);
}

static int ensure_process(struct client *c, struct err *err)
{
	if (c->channel >= 0)
		return 0;
	if (!c->tree)
		return err_set(err, ERR_UNAVAILABLE, "the worker's channel is closed");
	int r = tree_spawn(c->tree, c->mount_fds, c->n_mounts, &c->lease, &c->channel, err);
	return r < 0 ? err_wrap(err, "starting the session's worker") : 0;
}

/* Send the next queued job when none is running. A worker that ended while idle is replaced once.
 */
static void pump(struct client *c)
{
	struct err err;
	while (!job_with(c, JOB_SENT)) {
		struct job *j = job_with(c, JOB_QUEUED);
		if (!j)
			return;
		for (int attempt = 0; attempt < 2 && j->state == JOB_QUEUED; attempt++) {
			if (ensure_process(c, &err) < 0)
				break;
			if (packet_send(c->channel, j->packet, j->packet_len, j->fds, j->n_fds,
				    false, &err) == 0)
				j->state = JOB_SENT;
			else
				drop_process(c);
		}
		if (j->state == JOB_QUEUED)
			job_fail(j, &err);
	}
}

/* --- answers --- */

static int lie(struct err *err, const char *what)
{
	return err_set(err, ERR_PARSE, "%s", what);
}

static int take_hello(struct client *c, struct msg_in body, struct err *err)
{
	struct msg_hello m;
	int r = msg_hello_get(body, &m, err);
	if (r < 0)
		return r;
	if (c->greeted || m.landlock_abi != (uint32_t)c->landlock_abi)
		return lie(err, "it does not have the rights that it was given");
	c->greeted = true;
	return 0;
}

static int take_hit(struct job *j, struct msg_in body, struct err *err)
{
	struct msg_hit m;
	uint32_t len = (uint32_t)body.left;
	int r = msg_hit_get(body, &m, err);
	if (r < 0)
		return r;
	if (j->kind != WORK_SEARCH || m.id != j->id || m.root >= j->n_roots || m.line == 0 ||
		m.column == 0 || m.before.n > j->before || m.after.n > j->after ||
		memchr(m.path.p, '\0', m.path.n))
		return lie(err, "a hit that was not asked for");
	if (j->n_hits == j->max_results)
		return lie(err, "more hits than were asked for");
	j->n_hits++;
	j->n_context += m.before.n + m.after.n;
	buf_put(&j->hits, &len, sizeof(len));
	buf_put(&j->hits, body.p, body.left);
	return buf_check(&j->hits, "an answer of a worker", err);
}

/* Point a hit and its context at the answer's own memory. Every body was decoded once before. */
static void place_hit(struct msg_in body, struct search_hit *hit, struct str **context)
{
	struct msg_hit m;
	struct err err;
	BUG_ON(msg_hit_get(body, &m, &err) < 0);
	*hit = (struct search_hit){
		.root = m.root,
		.path = m.path,
		.line = m.line,
		.column = m.column,
		.match_len = m.match_len,
		.text_skip = m.text_skip,
		.text_cut = m.text_cut,
		.text = m.text,
		.before = *context,
		.n_before = m.before.n,
		.after = *context + m.before.n,
		.n_after = m.after.n,
	};
	memcpy(*context, m.before.v, m.before.n * sizeof(struct str));
	memcpy(*context + m.before.n, m.after.v, m.after.n * sizeof(struct str));
	*context += m.before.n + m.after.n;
}

/* One block: the hits, their context lines, the bytes of both. */
static int place_hits(struct job *j, struct worker_answer *a, struct err *err)
{
	size_t hits = (size_t)j->n_hits * sizeof(struct search_hit);
	size_t lines = (size_t)j->n_context * sizeof(struct str);
	char *memory = malloc(hits + lines + j->hits.len + 1);
	if (!memory)
		return err_oom(err);
	char *bytes = memory + hits + lines;
	struct str *context = (struct str *)(void *)(memory + hits);
	a->memory = memory;
	a->search.hits = (struct search_hit *)(void *)memory;
	if (j->hits.len)
		memcpy(bytes, j->hits.data, j->hits.len);
	for (uint64_t i = 0; i < j->n_hits; i++) {
		uint32_t len;
		memcpy(&len, bytes, sizeof(len));
		place_hit((struct msg_in){bytes + sizeof(len), len}, &a->search.hits[i], &context);
		bytes += sizeof(len) + len;
	}
	return 0;
}

static int answer_new(const struct job *j, struct worker_answer **ret, struct err *err)
{
	struct worker_answer *a = calloc(1, sizeof(*a));
	if (!a)
		return err_oom(err);
	a->kind = j->kind;
	if (j->kind == WORK_REGEX_REPLACE)
		a->replace.content_fd = -1;
	if (j->kind == WORK_YAML)
		a->yaml.json_fd = -1;
	*ret = a;
	return 0;
}

static void job_answered(struct job *j, struct worker_answer *a)
{
	j->answer = a;
	j->state = JOB_ANSWERED;
	job_close_question(j);
	buf_done(&j->hits);
}

static int take_searched(struct job *j, struct msg_in body, struct err *err)
{
	struct msg_searched m;
	_cleanup_(cleanup_worker_answer_free) struct worker_answer *a = NULL;
	int r = msg_searched_get(body, &m, err);
	if (r < 0)
		return r;
	if (j->kind != WORK_SEARCH || m.id != j->id || m.hits != j->n_hits)
		return lie(err, "the end of a search that does not fit it");
	if ((r = answer_new(j, &a, err)) < 0 || (r = place_hits(j, a, err)) < 0)
		return r;
	a->search.stats = (struct search_stats){
		.stop = (enum search_stop)m.stop,
		.hits = m.hits,
		.files_scanned = m.files_scanned,
		.files_matched = m.files_matched,
		.bytes_scanned = m.bytes_scanned,
		.dirs_read = m.dirs_read,
		.skipped_binary = m.skipped_binary,
		.skipped_large = m.skipped_large,
		.skipped_special = m.skipped_special,
		.skipped_links = m.skipped_links,
		.skipped_unreadable = m.skipped_unreadable,
	};
	job_answered(j, take_ptr(a));
	return 0;
}

/* From here on nobody can change the output, not even who still holds a descriptor of it; then its
 * size is what was said, or that was a lie. */
static int seal_output(struct job *j, int64_t size, struct err *err)
{
	struct stat st;
	if (fcntl(j->out_fd, F_ADD_SEALS,
		    F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0)
		return lie(err, "an output that cannot be sealed");
	if (fstat(j->out_fd, &st) < 0 || st.st_size != size || size > j->max_output)
		return lie(err, "an output of another size than said");
	(void)lseek(j->out_fd, 0, SEEK_SET);
	return 0;
}

static int take_replaced(struct job *j, struct msg_in body, struct err *err)
{
	struct msg_replaced m;
	struct worker_answer *a;
	int r = msg_replaced_get(body, &m, err);
	if (r < 0)
		return r;
	if (j->kind != WORK_REGEX_REPLACE || m.id != j->id || m.lines.n > m.lines_changed)
		return lie(err, "the end of a replace that does not fit it");
	if ((r = seal_output(j, m.size, err)) < 0 || (r = answer_new(j, &a, err)) < 0)
		return r;
	a->replace.content_fd = take_fd(j->out_fd);
	a->replace.size = m.size;
	a->replace.replacements = m.replacements;
	a->replace.lines_changed = m.lines_changed;
	a->replace.n_lines = m.lines.n;
	memcpy(a->replace.lines, m.lines.v, m.lines.n * sizeof(m.lines.v[0]));
	job_answered(j, a);
	return 0;
}

static int take_yaml_done(struct job *j, struct msg_in body, struct err *err)
{
	struct msg_yaml_done m;
	struct worker_answer *a;
	int r = msg_yaml_done_get(body, &m, err);
	if (r < 0)
		return r;
	if (j->kind != WORK_YAML || m.id != j->id)
		return lie(err, "the end of a reading of YAML that does not fit the job");
	if ((r = seal_output(j, m.size, err)) < 0 || (r = answer_new(j, &a, err)) < 0)
		return r;
	a->yaml.json_fd = take_fd(j->out_fd);
	a->yaml.size = m.size;
	a->yaml.documents = m.documents;
	job_answered(j, a);
	return 0;
}

/* Text of a worker, made harmless. */
static void copy_text(struct str from, char *to, size_t cap)
{
	_cleanup_buf_ struct buf b = buf_init(8 * ERR_TEXT_MAX);
	text_show(&b, from, false);
	size_t n = utf8_floor(buf_str(&b), MIN(b.len, cap - 1));
	memcpy(to, buf_str(&b), n);
	to[n] = '\0';
}

static int take_failed(struct job *j, struct msg_in body, struct err *err)
{
	struct msg_failed m;
	struct err why = {0};
	int r = msg_failed_get(body, &m, err);
	if (r < 0)
		return r;
	if (m.id != j->id || m.code == ERR_OK)
		return lie(err, "a failure that does not fit the job");
	why.code = (enum err_code)m.code;
	copy_text(m.text, why.text, sizeof(why.text));
	copy_text(m.hint, why.hint, sizeof(why.hint));
	job_fail(j, &why);
	return 0;
}

static int take_message(struct client *c, enum msg_type type, struct msg_in body, struct err *err)
{
	if (type == MSG_T_HELLO)
		return take_hello(c, body, err);
	struct job *j = job_with(c, JOB_SENT);
	if (!c->greeted || !j)
		return lie(err, "an answer that nobody asked for");
	if (type == MSG_T_HIT)
		return take_hit(j, body, err);
	if (type == MSG_T_SEARCHED)
		return take_searched(j, body, err);
	if (type == MSG_T_REPLACED)
		return take_replaced(j, body, err);
	if (type == MSG_T_YAML_DONE)
		return take_yaml_done(j, body, err);
	if (type == MSG_T_FAILED)
		return take_failed(j, body, err);
	return lie(err, "a message that is not a worker's");
}

static int take_packet(struct client *c, struct msg_in in, struct err *err)
{
	enum msg_type type;
	struct msg_in body;
	int r;
	while ((r = msg_next(&in, MSG_CORE, &type, &body, err)) > 0)
		if ((r = take_message(c, type, body, err)) < 0)
			return r;
	return r;
}

/* Handle what has arrived, up to what one answer may hold; then the next job may go out. */
static void drain(struct client *c)
{
	static char packet[MSG_PACKET_MAX];
	struct err err;
	while (c->channel >= 0) {
		int n = packet_recv(c->channel, packet, sizeof(packet), NULL, NULL, false, &err);
		if (n < 0 && err.code == ERR_BUSY)
			break;
		if (n == 0)
			process_died(c);
		else if (n < 0 || take_packet(c, (struct msg_in){packet, (size_t)n}, &err) < 0)
			process_lied(c, &err);
		if (!job_with(c, JOB_SENT))
			break;
	}
	pump(c);
}

/* --- questions --- */

/* A copy that can only be read: what a worker gets must not be a way to write a staged file. */
static int read_only_copy(int fd, int *ret, struct err *err)
{
	char path[40];
	int flags = fcntl(fd, F_GETFL);
	if (flags < 0 || (flags & O_PATH))
		return err_set(
			err, ERR_INVALID_ARGUMENT, "the content's descriptor cannot be read");
	if ((flags & O_ACCMODE) == O_RDONLY) {
		*ret = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	} else {
		(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		*ret = open(path, O_RDONLY | O_CLOEXEC);
	}
	return *ret < 0 ? err_sys(err, errno, "passing the content to the worker") : 0;
}

static int new_output(struct job *j, int64_t max, struct err *err)
{
	j->max_output = max > 0 ? max : WORKER_OUTPUT_MAX;
	j->out_fd = memfd_create("output", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);
	if (j->out_fd < 0 && errno == EINVAL) /* before Linux 6.3 */
		j->out_fd = memfd_create("output", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (j->out_fd < 0)
		return err_sys(err, errno, "making room for the output");
	int fd = fcntl(j->out_fd, F_DUPFD_CLOEXEC, 3);
	if (fd < 0)
		return err_sys(err, errno, "passing the output to the worker");
	j->fds[j->n_fds++] = fd;
	return 0;
}

static int outside(struct err *err, const char *what)
{
	return err_set(err, ERR_INVALID_ARGUMENT, "%s", what);
}

static int put_globs(const char *const *globs, msg_strs *to, struct err *err)
{
	for (; globs && *globs; globs++) {
		if (to->n == SEARCH_GLOBS_MAX || strlen(*globs) > LIMIT_GLOB_BYTES)
			return err_set(err, ERR_INVALID_ARGUMENT,
				"at most %d patterns of %d bytes each can be given",
				SEARCH_GLOBS_MAX, LIMIT_GLOB_BYTES);
		to->v[to->n++] = str_of(*globs);
	}
	return 0;
}

static int put_places(
	const struct search_place *from, unsigned n, unsigned max, msg_places *to, struct err *err)
{
	if (n > max)
		return err_set(err, ERR_LIMIT, "at most %u places", max);
	for (unsigned i = 0; i < n; i++) {
		if (from[i].mount >= LIMIT_MOUNTS || from[i].path.n > LIMIT_PATH_BYTES)
			return outside(err, "a place to search is outside the workspace's mounts");
		to->v[i] = from[i];
	}
	to->n = n;
	return 0;
}

static int check_search(const struct search_query *q, struct err *err)
{
	if (q->pattern.n == 0 || q->pattern.n > LIMIT_PATTERN_BYTES)
		return err_set(err, ERR_INVALID_ARGUMENT, "a pattern has 1 to %d bytes",
			LIMIT_PATTERN_BYTES);
	if (q->n_roots == 0)
		return outside(err, "there is no place to search");
	if (q->before > SEARCH_CONTEXT_MAX || q->after > SEARCH_CONTEXT_MAX)
		return err_set(err, ERR_INVALID_ARGUMENT, "at most %d lines of context",
			SEARCH_CONTEXT_MAX);
	if (q->max_results > SEARCH_RESULTS_MAX)
		return err_set(err, ERR_INVALID_ARGUMENT, "at most %d results", SEARCH_RESULTS_MAX);
	if (q->max_ms < 0 || q->max_ms > WORKER_DEADLINE_MS_MAX || q->max_bytes < 0 ||
		q->max_file_bytes < 0)
		return outside(err, "a budget of the search is out of range");
	return 0;
}

static int ask_search(
	struct job *j, const struct search_query *q, struct msg_out *out, struct err *err)
{
	struct msg_search m = {
		.id = j->id,
		.pattern = q->pattern,
		.regex = q->regex,
		.ignore_case = q->ignore_case,
		.whole_word = q->whole_word,
		.with_hidden = q->with_hidden,
		.strict_links = q->strict_links,
		.before = q->before,
		.after = q->after,
		.max_results = q->max_results,
		.max_ms = q->max_ms,
		.max_bytes = q->max_bytes,
		.max_file_bytes = q->max_file_bytes,
	};
	int r = check_search(q, err);
	if (r == 0)
		r = put_places(q->roots, q->n_roots, SEARCH_ROOTS_MAX, &m.roots, err);
	if (r == 0)
		r = put_places(
			q->hidden_places, q->n_hidden_places, MSG_PLACES_MAX, &m.hidden, err);
	if (r == 0)
		r = put_globs(q->include, &m.include, err);
	if (r == 0)
		r = put_globs(q->exclude, &m.exclude, err);
	if (r == 0)
		r = put_globs(q->default_exclude, &m.default_exclude, err);
	if (r < 0)
		return r;
	j->n_roots = q->n_roots;
	j->before = q->before;
	j->after = q->after;
	j->max_results = q->max_results ? q->max_results : SEARCH_RESULTS_MAX;
	return msg_search_put(out, &m) ? 0 : outside(err, "the search's arguments are too long");
}

static int ask_replace(
	struct job *j, const struct worker_job *w, struct msg_out *out, struct err *err)
{
	const struct msg_replace m = {
		.id = j->id,
		.pattern = w->replace.pattern,
		.replacement = w->replace.replacement,
		.max_count = w->replace.max_count,
		.ignore_case = w->replace.ignore_case,
		.multi_line = w->replace.multi_line,
		.dot_all = w->replace.dot_all,
		.max_output = w->replace.max_output,
	};
	if (m.pattern.n == 0 || m.pattern.n > LIMIT_PATTERN_BYTES)
		return err_set(err, ERR_INVALID_ARGUMENT, "a pattern has 1 to %d bytes",
			LIMIT_PATTERN_BYTES);
	if (m.replacement.n > MSG_REPLACEMENT_MAX)
		return err_set(err, ERR_INVALID_ARGUMENT, "a replacement has at most %d bytes",
			MSG_REPLACEMENT_MAX);
	if (m.max_output < 0 || m.max_output > WORKER_OUTPUT_MAX)
		return outside(err, "the output's limit is out of range");
	int fd = -1, r = read_only_copy(w->replace.content_fd, &fd, err);
	if (r < 0)
		return r;
	j->fds[j->n_fds++] = fd;
	if ((r = new_output(j, m.max_output, err)) < 0)
		return r;
	BUG_ON(!msg_replace_put(out, &m));
	return 0;
}

static int ask_yaml(struct job *j, const struct worker_job *w, struct msg_out *out, struct err *err)
{
	const struct msg_yaml m = {
		.id = j->id,
		.inline_content = w->yaml.content_fd < 0,
		.bytes = w->yaml.content_fd < 0 ? w->yaml.bytes : STR(""),
		.max_output = w->yaml.max_output,
	};
	if (m.bytes.n > WORKER_YAML_INLINE_MAX)
		return err_set(err, ERR_INVALID_ARGUMENT, "at most %d bytes without a descriptor",
			WORKER_YAML_INLINE_MAX);
	if (m.max_output < 0 || m.max_output > WORKER_OUTPUT_MAX)
		return outside(err, "the output's limit is out of range");
	int fd = -1, r = new_output(j, m.max_output, err);
	if (r < 0)
		return r;
	if (!m.inline_content) {
		if ((r = read_only_copy(w->yaml.content_fd, &fd, err)) < 0)
			return r;
		j->fds[j->n_fds++] = fd;
	}
	BUG_ON(!msg_yaml_put(out, &m));
	return 0;
}

static int ask(struct job *j, const struct worker_job *w, struct msg_out *out, struct err *err)
{
	if (w->kind == WORK_SEARCH)
		return ask_search(j, &w->search, out, err);
	if (w->kind == WORK_REGEX_REPLACE)
		return ask_replace(j, w, out, err);
	if (w->kind == WORK_YAML)
		return ask_yaml(j, w, out, err);
	return outside(err, "a job of an unknown kind");
}

static int job_new(struct client *c, const struct worker_job *w, struct job **ret, struct err *err)
{
	static struct msg_out out;
	_cleanup_(cleanup_job_free) struct job *j = calloc(1, sizeof(*j));
	if (!j)
		return err_oom(err);
	j->out_fd = -1;
	j->hits = buf_init(HELD_BYTES_MAX);
	j->kind = w->kind;
	j->id = c->last_id + 1;
	j->deadline_ms = loop_now_ms() + (w->deadline_ms ? w->deadline_ms : DEADLINE_DEFAULT_MS);
	msg_out_clear(&out);
	int r = ask(j, w, &out, err);
	if (r < 0)
		return r;
	j->packet = malloc(out.len);
	if (!j->packet)
		return err_oom(err);
	memcpy(j->packet, out.data, out.len);
	j->packet_len = out.len;
	*ret = take_ptr(j);
	return 0;
}

/* --- the port --- */

static int client_submit(
	struct worker *w, const struct worker_job *job, uint64_t *ret_id, struct err *err)
{
	struct client *c = (struct client *)w;
	struct job *j = NULL, **last = &c->jobs;
	if (c->n_jobs == WORKER_QUEUE_MAX)
		return err_set(
			err, ERR_LIMIT, "at most %d jobs wait for one worker", WORKER_QUEUE_MAX);
	if (job->deadline_ms < 0 || job->deadline_ms > WORKER_DEADLINE_MS_MAX)
		return outside(err, "the job's deadline is out of range");
	int r = job_new(c, job, &j, err);
	if (r < 0)
		return r;
	while (*last)
		last = &(*last)->next;
	*last = j;
	c->n_jobs++;
	*ret_id = c->last_id = j->id;
	pump(c);
	return 0;
}

static int client_poll_fd(const struct worker *w)
{
	return ((const struct client *)w)->channel;
}

static int64_t client_deadline_ms(const struct worker *w, uint64_t id)
{
	const struct job *j = job_by_id((const struct client *)w, id);
	return j ? j->deadline_ms : -1;
}

static void fail_late(struct client *c, struct job *j)
{
	struct err err;
	(void)err_set(&err, ERR_TIMEOUT, "the job was not done in its time");
	if (j->state == JOB_SENT)
		drop_process(c);
	job_fail(j, &err);
	pump(c);
}

static int client_take(struct worker *w, uint64_t id, struct worker_answer **ret, struct err *err)
{
	struct client *c = (struct client *)w;
	struct job *j = job_by_id(c, id);
	if (!j)
		return err_set(
			err, ERR_INVALID_ARGUMENT, "there is no job %llu", (unsigned long long)id);
	if (j->state < JOB_ANSWERED)
		drain(c);
	if (j->state < JOB_ANSWERED && loop_now_ms() >= j->deadline_ms)
		fail_late(c, j);
	if (j->state < JOB_ANSWERED)
		return 0;
	int r = 1;
	if (j->state == JOB_ANSWERED) {
		*ret = take_ptr(j->answer);
	} else {
		*err = j->err;
		r = -(int)err->code;
	}
	job_remove(c, j);
	return r;
}

static void client_cancel(struct worker *w, uint64_t id)
{
	struct client *c = (struct client *)w;
	struct job *j = job_by_id(c, id);
	if (!j)
		return;
	if (j->state == JOB_SENT)
		drop_process(c);
	job_remove(c, j);
	pump(c);
}

static void client_free(struct worker *w)
{
	struct client *c = (struct client *)w;
	drop_process(c);
	while (c->jobs)
		job_remove(c, c->jobs);
	for (unsigned i = 0; i < c->n_mounts; i++)
		cleanup_close(&c->mount_fds[i]);
	free(c);
}

static const struct worker_ops client_ops = {
	.submit = client_submit,
	.poll_fd = client_poll_fd,
	.deadline_ms = client_deadline_ms,
	.take = client_take,
	.cancel = client_cancel,
	.free = client_free,
};

int client_new(struct tree *t, const int *mount_fds, unsigned n_mounts, struct worker **ret,
	struct err *err)
{
	if (n_mounts > LIMIT_MOUNTS)
		return err_set(err, ERR_LIMIT, "at most %d mounts", LIMIT_MOUNTS);
	struct client *c = calloc(1, sizeof(*c));
	if (!c)
		return err_oom(err);
	c->base.ops = &client_ops;
	c->tree = t;
	c->channel = -1;
	c->landlock_abi = tree_landlock_abi(t);
	for (; c->n_mounts < n_mounts; c->n_mounts++) {
		int fd = fcntl(mount_fds[c->n_mounts], F_DUPFD_CLOEXEC, 3);
		if (fd < 0) {
			int r = err_sys(err, errno, "keeping a mount of the session's worker");
			client_free(&c->base);
			return r;
		}
		c->mount_fds[c->n_mounts] = fd;
	}
	*ret = &c->base;
	return 0;
}

int client_over(int channel, int landlock_abi, struct worker **ret, struct err *err)
{
	struct client *c = calloc(1, sizeof(*c));
	if (!c)
		return err_oom(err);
	c->base.ops = &client_ops;
	c->channel = channel;
	c->landlock_abi = landlock_abi;
	*ret = &c->base;
	return 0;
}
