/* What a worker does with a packet: see worker_jobs.h. */
#include "daemon/worker_jobs.h"
#include "codec/canonical.h"
#include "codec/json.h"
#include "codec/yaml.h"
#include "daemon/worker_replace.h"
#include "sys/process.h"

#include <errno.h>
#include <string.h>

enum { FLUSH_AT = 32 * 1024 };

void worker_warm_up(void)
{
	json_object_seed(0); /* jansson reads its hash seed from a device file */
}

int worker_flush(struct worker_host *h, struct err *err)
{
	if (h->out->len == 0)
		return 0;
	int r = packet_send(h->sock, h->out->data, h->out->len, NULL, 0, true, err);
	msg_out_clear(h->out);
	return r;
}

static int answer_failed(struct worker_host *h, uint64_t id, const struct err *why, struct err *err)
{
	const struct msg_failed m = {
		.id = id,
		.code = (uint32_t)why->code,
		.text = str_of(why->text),
		.hint = str_of(why->hint),
	};
	msg_out_clear(h->out);
	BUG_ON(!msg_failed_put(h->out, &m));
	return worker_flush(h, err);
}

/* --- search --- */

struct search_job {
	struct worker_host *host;
	uint64_t id;
	bool peer_gone;
};

static void copy_strs(msg_strs *to, const struct str *from, unsigned n)
{
	to->n = n;
	for (unsigned i = 0; i < n; i++)
		to->v[i] = from[i];
}

static int send_hit(void *ctx, const struct search_hit *hit, struct err *err)
{
	struct search_job *job = ctx;
	struct worker_host *h = job->host;
	struct msg_hit m = {
		.id = job->id,
		.root = hit->root,
		.path = hit->path,
		.line = hit->line,
		.column = hit->column,
		.match_len = hit->match_len,
		.text_skip = hit->text_skip,
		.text_cut = hit->text_cut,
		.text = hit->text,
	};
	copy_strs(&m.before, hit->before, hit->n_before);
	copy_strs(&m.after, hit->after, hit->n_after);
	int r = 0;
	if (h->out->len > FLUSH_AT || !msg_hit_put(h->out, &m)) {
		r = worker_flush(h, err);
		BUG_ON(r == 0 && !msg_hit_put(h->out, &m));
	}
	job->peer_gone = r < 0;
	return r;
}

/* Globs as C strings, in one block that the caller frees. */
struct glob_strings {
	const char *v[SEARCH_GLOBS_MAX + 1];
	char *memory;
};

static int c_strings(const msg_strs *from, struct glob_strings *ret, struct err *err)
{
	size_t bytes = 1;
	for (unsigned i = 0; i < from->n; i++)
		bytes += from->v[i].n + 1;
	char *p = ret->memory = malloc(bytes);
	if (!p)
		return err_oom(err);
	for (unsigned i = 0; i < from->n; i++) {
		memcpy(p, from->v[i].p, from->v[i].n);
		p[from->v[i].n] = '\0';
		ret->v[i] = p;
		p += from->v[i].n + 1;
	}
	ret->v[from->n] = NULL;
	return 0;
}

static void glob_strings_done(struct glob_strings *g)
{
	free(g->memory);
}

static int do_search(struct worker_host *h, const struct msg_search *m, struct search_stats *ret,
	struct search_job *job, struct err *err)
{
	_cleanup_(glob_strings_done) struct glob_strings include = {0}, exclude = {0},
							 defaults = {0};
	int r = c_strings(&m->include, &include, err);
	if (r == 0)
		r = c_strings(&m->exclude, &exclude, err);
	if (r == 0)
		r = c_strings(&m->default_exclude, &defaults, err);
	if (r < 0)
		return r;
	const struct search_query q = {
		.roots = m->roots.v,
		.n_roots = m->roots.n,
		.hidden_places = m->hidden.v,
		.n_hidden_places = m->hidden.n,
		.pattern = m->pattern,
		.regex = m->regex,
		.ignore_case = m->ignore_case,
		.whole_word = m->whole_word,
		.include = include.v,
		.exclude = exclude.v,
		.default_exclude = defaults.v,
		.with_hidden = m->with_hidden,
		.strict_links = m->strict_links,
		.before = m->before,
		.after = m->after,
		.max_results = m->max_results,
		.max_ms = m->max_ms,
		.max_bytes = m->max_bytes,
		.max_file_bytes = m->max_file_bytes,
	};
	return search_run(h->pool, &q, h->mount_fds, h->n_mounts, send_hit, job, ret, err);
}

static int answer_searched(
	struct worker_host *h, uint64_t id, const struct search_stats *st, struct err *err)
{
	const struct msg_searched m = {
		.id = id,
		.stop = (uint8_t)st->stop,
		.hits = st->hits,
		.files_scanned = st->files_scanned,
		.files_matched = st->files_matched,
		.bytes_scanned = st->bytes_scanned,
		.dirs_read = st->dirs_read,
		.skipped_binary = st->skipped_binary,
		.skipped_large = st->skipped_large,
		.skipped_special = st->skipped_special,
		.skipped_links = st->skipped_links,
		.skipped_unreadable = st->skipped_unreadable,
	};
	if (!msg_searched_put(h->out, &m)) {
		int r = worker_flush(h, err);
		if (r < 0)
			return r;
		BUG_ON(!msg_searched_put(h->out, &m));
	}
	return worker_flush(h, err);
}

static int serve_search(
	struct worker_host *h, struct msg_in body, const int *fds, unsigned n_fds, struct err *err)
{
	struct msg_search m;
	(void)fds;
	int r = msg_search_get(body, &m, err);
	if (r < 0 || n_fds != 0)
		return r < 0 ? r : err_set(err, ERR_PARSE, "a search came with descriptors");
	struct search_job job = {.host = h, .id = m.id};
	struct search_stats st;
	struct err why;
	r = do_search(h, &m, &st, &job, &why);
	if (job.peer_gone) {
		*err = why;
		return r;
	}
	return r < 0 ? answer_failed(h, m.id, &why, err) : answer_searched(h, m.id, &st, err);
}

/* --- contents --- */

struct content {
	char *p;
	size_t n;
};

static void content_done(struct content *c)
{
	free(c->p);
}

/* The whole file, from its beginning whatever the descriptor's offset is. */
static int read_content(int fd, struct content *ret, struct err *err)
{
	struct buf b = buf_init(WORKER_CONTENT_MAX);
	for (;;) {
		char *to = buf_room(&b, MIN((size_t)256 * 1024, b.max - b.len));
		if (!to || b.len == b.max)
			break;
		ssize_t n = pread(fd, to, MIN((size_t)256 * 1024, b.max - b.len), (off_t)b.len);
		if (n < 0) {
			int r = err_sys(err, errno, "reading the content");
			buf_done(&b);
			return r;
		}
		if (n == 0) {
			ret->p = buf_take(&b, &ret->n);
			return 0;
		}
		buf_grew(&b, (size_t)n);
	}
	bool oom = b.failed;
	buf_done(&b);
	if (oom)
		return err_oom(err);
	return err_set(err, ERR_TOO_LARGE, "the content is larger than %lld bytes",
		(long long)WORKER_CONTENT_MAX);
}

static int64_t output_limit(int64_t asked)
{
	return asked > 0 ? asked : WORKER_OUTPUT_MAX;
}

static int serve_replace(
	struct worker_host *h, struct msg_in body, const int *fds, unsigned n_fds, struct err *err)
{
	static struct output out;
	struct msg_replace m;
	struct msg_replaced done;
	struct err why;
	_cleanup_(content_done) struct content c = {0};
	int r = msg_replace_get(body, &m, err);
	if (r < 0 || n_fds != 2)
		return r < 0 ? r : err_set(err, ERR_PARSE, "a replace came without descriptors");
	out = (struct output){.fd = fds[1], .max = output_limit(m.max_output)};
	r = read_content(fds[0], &c, &why);
	if (r == 0)
		r = replace_all(&m, c.p, c.n, &out, &done, &why);
	if (r < 0)
		return answer_failed(h, m.id, &why, err);
	done.id = m.id;
	BUG_ON(!msg_replaced_put(h->out, &done));
	return worker_flush(h, err);
}

static int yaml_to_json(
	struct str text, struct output *out, unsigned *ret_documents, struct err *err)
{
	_cleanup_(cleanup_json_decref) json_t *value = NULL;
	_cleanup_buf_ struct buf json = buf_init((size_t)out->max);
	int r = yaml_parse(text, WORKER_CONTENT_MAX, &value, ret_documents, err);
	if (r == 0)
		r = json_canonical(value, &json, err);
	if (r == 0)
		r = output_put(out, buf_str(&json), json.len, err);
	return r < 0 ? r : output_end(out, err);
}

static int serve_yaml(
	struct worker_host *h, struct msg_in body, const int *fds, unsigned n_fds, struct err *err)
{
	static struct output out;
	struct msg_yaml m;
	struct err why;
	unsigned documents = 0;
	_cleanup_(content_done) struct content c = {0};
	int r = msg_yaml_get(body, &m, err);
	if (r < 0 || n_fds != (m.inline_content ? 1 : 2))
		return r < 0 ? r : err_set(err, ERR_PARSE, "YAML came without descriptors");
	out = (struct output){.fd = fds[0], .max = output_limit(m.max_output)};
	r = m.inline_content ? 0 : read_content(fds[1], &c, &why);
	if (r == 0)
		r = yaml_to_json(m.inline_content ? m.bytes : (struct str){c.p, c.n}, &out,
			&documents, &why);
	if (r < 0)
		return answer_failed(h, m.id, &why, err);
	const struct msg_yaml_done done = {.id = m.id, .size = out.size, .documents = documents};
	BUG_ON(!msg_yaml_done_put(h->out, &done));
	return worker_flush(h, err);
}

/* --- dispatch --- */

int worker_serve(struct worker_host *h, struct msg_in packet, const int *fds, unsigned n_fds,
	struct err *err)
{
	enum msg_type type;
	struct msg_in body;
	int r = msg_next(&packet, MSG_WORKER, &type, &body, err);
	if (r < 0)
		return r;
	if (r == 0 || packet.left)
		return err_set(err, ERR_PARSE, "a packet of core is not one message");
	msg_out_clear(h->out);
	if (type == MSG_T_SEARCH)
		return serve_search(h, body, fds, n_fds, err);
	if (type == MSG_T_REPLACE)
		return serve_replace(h, body, fds, n_fds, err);
	if (type == MSG_T_YAML)
		return serve_yaml(h, body, fds, n_fds, err);
	return err_set(err, ERR_PARSE, "a job of an unknown kind");
}
