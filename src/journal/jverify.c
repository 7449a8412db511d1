/* Verifying a log: see jverify.h. It believes nothing that is in the directory but the key it was
 * given. */
#include "journal/jverify.h"

#include "sys/fs.h"

#include <errno.h>
#include <fcntl.h>

struct verifier {
	const struct jverify_options *opt;
	struct jverify_result *ret;
	struct jwalk walk;
	struct jseal seal; /* the last one; its texts are in `seal_line` */
	char seal_line[JSEAL_LINE_MAX];
	bool seal_checked, expected_seen;
	uint64_t time_ms;
	struct jrecord_memory memory;
	struct jrecord record;
};

static int check_record(struct verifier *v, struct str line, struct err *err)
{
	int r = jrecord_read((struct str){line.p, line.n - 1}, &v->memory, &v->record, err);
	if (r < 0)
		return r;
	if (v->record.time < v->time_ms)
		return err_set(err, ERR_CORRUPT,
			"record %llu of the journal is from before the one before it",
			(unsigned long long)v->record.seq);
	v->time_ms = v->record.time;
	v->ret->records++;
	if (v->opt->expect && v->opt->expect->seq == v->walk.seq)
		v->expected_seen = strcmp(v->opt->expect->head, v->walk.chain.head) == 0;
	return 0;
}

static int check_seal(struct verifier *v, struct err *err)
{
	if (v->seal_checked)
		return 0;
	if (!jseal_check(v->opt->key, &v->seal))
		return err_set(err, ERR_CORRUPT,
			"the seal behind record %llu of the journal is not of this key",
			(unsigned long long)v->seal.seq);
	v->seal_checked = true;
	v->ret->checked_seals++;
	return 0;
}

/* The line goes with the next read, so the seal is read again from a copy. */
static int note_seal(struct verifier *v, struct str line, struct err *err)
{
	memcpy(v->seal_line, line.p, line.n);
	int r = jseal_read((struct str){v->seal_line, line.n - 1}, &v->seal, err);
	if (r < 0)
		return r;
	v->seal_checked = false;
	v->ret->groups++;
	v->ret->last.seq = v->seal.seq;
	memcpy(v->ret->last.head, v->seal.head.p, SHA256_HEX);
	v->ret->last_ms = v->seal.time_ms;
	return v->opt->every_seal ? check_seal(v, err) : 0;
}

static int check_line(struct verifier *v, struct str line, struct err *err)
{
	struct jwalk_line w;
	int r = jwalk_line(&v->walk, line, &w, err);
	if (r < 0 || w.kind == JWALK_HEADER)
		return r;
	return w.kind == JWALK_RECORD ? check_record(v, line, err) : note_seal(v, line, err);
}

/* A group without a seal is what a writer that died has left, or what somebody has cut. */
static int check_end(struct verifier *v, struct str rest, struct err *err)
{
	if (rest.n || v->walk.unsealed || v->walk.at_header)
		return err_set(err, ERR_CORRUPT,
			"the journal ends in a group that is not whole, behind record %llu",
			(unsigned long long)v->ret->last.seq);
	return check_seal(v, err);
}

static int check_segment(struct verifier *v, uint32_t number, int fd, int64_t size, struct err *err)
{
	struct jlines lines;
	struct str line;
	int r = jlines_open(&lines, fd, 0, size, err);
	if (r < 0)
		return r;
	jwalk_segment(&v->walk, number);
	while ((r = jlines_next(&lines, &line, err)) == 1 && (r = check_line(v, line, err)) == 0)
		;
	if (r == 0)
		r = check_end(v, line, err);
	if (r < 0 && err->code == ERR_CORRUPT)
		r = err_wrap(err, "segment %u, byte %lld", number, (long long)lines.line_at);
	jlines_done(&lines);
	v->ret->bytes += (uint64_t)size;
	v->ret->segments++;
	return r;
}

/* Where the log ends now, between two groups of whoever is writing. */
static int end_of_log(int dir_fd, uint32_t *ret_last, int64_t *ret_size, struct err *err)
{
	struct stat st;
	uint32_t first;
	int fd;
	_cleanup_close_ int lock = openat(dir_fd, "lock", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (lock >= 0 && fs_lock_wait(lock, 0, F_RDLCK, JLOG_LOCK_MS) < 0)
		return err_sys(err, errno, "waiting for a writer of the journal");
	int r = jwalk_segments(dir_fd, &first, ret_last, err);
	if (r < 0)
		return r;
	if (!*ret_last)
		return err_set(err, ERR_NOT_FOUND, "there is no journal yet");
	if (first != 1)
		return err_set(err, ERR_CORRUPT, "the first segment of the journal is missing");
	if ((r = jwalk_open(dir_fd, *ret_last, O_RDONLY, &fd, err)) < 0)
		return r;
	if (fstat(fd, &st) < 0)
		r = err_sys(err, errno, "looking at the journal");
	*ret_size = st.st_size;
	(void)close(fd);
	return r;
}

static int check_all(struct verifier *v, struct err *err)
{
	uint32_t last = 0;
	int64_t end = 0;
	int r = end_of_log(v->opt->dir_fd, &last, &end, err);
	for (uint32_t s = 1; r == 0 && s <= last; s++) {
		struct stat st;
		_cleanup_close_ int fd = -1;
		r = jwalk_open(v->opt->dir_fd, s, O_RDONLY, &fd, err);
		if (r == -ERR_NOT_FOUND)
			return err_set(err, ERR_CORRUPT, "segment %u of the journal is missing", s);
		if (r == 0 && fstat(fd, &st) < 0)
			r = err_sys(err, errno, "looking at the journal");
		if (r == 0)
			r = check_segment(v, s, fd, s == last ? end : st.st_size, err);
	}
	return r;
}

int jverify(const struct jverify_options *opt, struct jverify_result *ret, struct err *err)
{
	_cleanup_free_ struct verifier *v = calloc(1, sizeof(*v));
	if (!v)
		return err_oom(err);
	v->opt = opt;
	v->ret = ret;
	*ret = (struct jverify_result){.records = 0};
	jchain_init(&v->walk.chain);
	memcpy(ret->last.head, v->walk.chain.head, sizeof(ret->last.head));
	v->walk.started = true;
	/* The result of a read may be older than the first record. */
	v->expected_seen = opt->expect && opt->expect->seq == 0 &&
			   strcmp(opt->expect->head, v->walk.chain.head) == 0;
	int r = check_all(v, err);
	if (r < 0 || !opt->expect || v->expected_seen)
		return r;
	if (opt->expect->seq > ret->last.seq)
		return err_set(err, ERR_CONFLICT,
			"the journal ends at record %llu, before record %llu",
			(unsigned long long)ret->last.seq, (unsigned long long)opt->expect->seq);
	return err_set(err, ERR_CONFLICT,
		"record %llu of the journal is not the one that was expected",
		(unsigned long long)opt->expect->seq);
}

int jposition_parse(const char *text, struct jposition *ret, struct err *err)
{
	struct jchain c;
	const char *p = text;
	uint64_t n = 0;
	while (*p >= '0' && *p <= '9' && p - text < 16)
		n = n * 10 + (uint64_t)(*p++ - '0');
	if (p == text || *p != ':' || jchain_set(&c, str_of(p + 1)) < 0) {
		(void)err_set(
			err, ERR_INVALID_ARGUMENT, "'%.100s' is no position of a journal", text);
		return err_hint(err, "SEQ:HASH, as every result has them in its member `journal`");
	}
	ret->seq = n;
	memcpy(ret->head, c.head, sizeof(ret->head));
	return 0;
}
