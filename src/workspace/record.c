/* The encoding of change sets in the store: see record.h. */
#include "workspace/record.h"

static const uint32_t MAGIC = 0x31524c43; /* "CLR1" */
enum { VERSION = 1, CHECKSUM = 8, AT_TYPE = 4, AT_LENGTH = 8, AT_CHECKSUM = 12 };

/* --- writing ------------------------------------------------------------------------------------
 */

static void put_uint(struct buf *b, uint64_t v, unsigned n)
{
	uint8_t bytes[8];
	for (unsigned i = 0; i < n; i++)
		bytes[i] = (uint8_t)(v >> (8 * i));
	buf_put(b, bytes, n);
}

static void put_text(struct buf *b, const char *s, size_t max)
{
	size_t n = s ? strlen(s) : 0;
	BUG_ON(n > max);
	put_uint(b, n, 4);
	buf_put(b, s ? s : "", n + 1);
}

static void put_identity(struct buf *b, const struct identity *id)
{
	put_uint(b, id->dev, 8);
	put_uint(b, id->ino, 8);
	put_uint(b, (uint64_t)id->size, 8);
	put_uint(b, (uint64_t)id->mtime.tv_sec, 8);
	put_uint(b, (uint64_t)id->mtime.tv_nsec, 4);
	put_uint(b, (uint64_t)id->ctime.tv_sec, 8);
	put_uint(b, (uint64_t)id->ctime.tv_nsec, 4);
}

/* Over the frame without the checksum's own place. */
static void checksum(const uint8_t *frame, size_t n, uint8_t ret[CHECKSUM])
{
	struct sha256 h;
	sha256_of_two(frame, AT_CHECKSUM, frame + RECORD_HEAD, n - RECORD_HEAD, &h);
	memcpy(ret, h.b, CHECKSUM);
}

void record_begin(struct record_writer *w, struct buf *out, const struct record *r)
{
	static const uint8_t later[CHECKSUM];
	BUG_ON(r->n_mounts > LIMIT_MOUNTS || r->n_changes > LIMIT_CHANGES);
	*w = (struct record_writer){.out = out, .start = out->len, .left = r->n_changes};
	put_uint(out, MAGIC, 4);
	put_uint(out, r->type, 1);
	put_uint(out, VERSION, 1);
	put_uint(out, 0, 2);
	put_uint(out, 0, 4);
	buf_put(out, later, CHECKSUM);
	put_uint(out, r->seq, 8);
	put_uint(out, r->undoes, 8);
	put_uint(out, (uint64_t)r->time_ms, 8);
	put_uint(out, r->undoable, 1);
	put_text(out, r->why_not, RECORD_WHY_MAX);
	put_text(out, r->call_id, RECORD_TEXT_MAX);
	put_text(out, r->tool, RECORD_TEXT_MAX);
	put_text(out, r->turn, RECORD_TEXT_MAX);
	put_text(out, r->label, RECORD_TEXT_MAX);
	put_uint(out, r->n_mounts, 1);
	for (unsigned i = 0; i < r->n_mounts; i++)
		put_text(out, r->mounts[i], LIMIT_PATH_BYTES);
	put_uint(out, r->n_changes, 4);
}

void record_put(struct record_writer *w, const struct record_change *c)
{
	struct buf *out = w->out;
	BUG_ON(w->left == 0);
	BUG_ON((unsigned)c->kind >= CHANGE_KIND_MAX_ || (c->flags & ~RECORD_FLAGS_ALL) != 0);
	w->left--;
	put_uint(out, c->kind, 1);
	put_uint(out, c->mount, 1);
	put_uint(out, c->flags, 2);
	put_uint(out, c->mode_before, 4);
	put_uint(out, c->mode_after, 4);
	put_uint(out, (uint64_t)c->size_before, 8);
	put_uint(out, (uint64_t)c->size_after, 8);
	put_uint(out, (uint64_t)c->bytes_delta, 8);
	put_uint(out, (uint64_t)c->entries_delta, 8);
	put_identity(out, &c->before);
	put_identity(out, &c->after);
	put_text(out, c->path, LIMIT_PATH_BYTES);
	put_text(out, c->from, LIMIT_PATH_BYTES);
	put_text(out, c->saved, LIMIT_NAME_BYTES);
	put_text(out, c->staged, LIMIT_NAME_BYTES);
	put_text(out, c->target, LIMIT_PATH_BYTES);
}

void record_end(struct record_writer *w)
{
	BUG_ON(w->left != 0);
	put_uint(w->out, w->out->len + RECORD_TAIL - w->start, RECORD_TAIL);
	if (w->out->failed)
		return;
	uint8_t *frame = (uint8_t *)w->out->data + w->start;
	size_t n = w->out->len - w->start;
	size_t body = n - RECORD_HEAD - RECORD_TAIL;
	for (unsigned i = 0; i < 4; i++)
		frame[AT_LENGTH + i] = (uint8_t)(body >> (8 * i));
	checksum(frame, n, frame + AT_CHECKSUM);
}

/* --- reading ------------------------------------------------------------------------------------
 */

static int corrupt(struct err *err, const char *what)
{
	return err_set(err, ERR_CORRUPT, "a record of the store is damaged: %s", what);
}

static uint64_t load(const uint8_t *p, unsigned n)
{
	uint64_t v = 0;
	for (unsigned i = 0; i < n; i++)
		v |= (uint64_t)p[i] << (8 * i);
	return v;
}

/* A cursor over untrusted bytes. After the first fault every read gives zero and `bad` stays. */
struct cursor {
	const uint8_t *p, *end;
	const char *bad;
};

static uint64_t get_uint(struct cursor *c, unsigned n)
{
	if (c->bad || (size_t)(c->end - c->p) < n) {
		c->bad = c->bad ? c->bad : "it ends too early";
		return 0;
	}
	uint64_t v = load(c->p, n);
	c->p += n;
	return v;
}

static const char *get_text(struct cursor *c, size_t max)
{
	size_t n = get_uint(c, 4);
	if (!c->bad && (n > max || (size_t)(c->end - c->p) < n + 1))
		c->bad = "a text is too long";
	if (!c->bad && (c->p[n] != 0 || memchr(c->p, 0, n)))
		c->bad = "a text does not end where it should";
	if (c->bad)
		return "";
	const char *s = (const char *)c->p;
	c->p += n + 1;
	return s;
}

/* Relative, no empty component, no "." or "..": such a path cannot lead anywhere else. */
static bool path_is_plain(const char *path)
{
	if (path[0] == '\0')
		return true;
	for (const char *p = path;; p++) {
		size_t n = strcspn(p, "/");
		if (n == 0 || n > LIMIT_NAME_BYTES || (n == 1 && p[0] == '.') ||
			(n == 2 && p[0] == '.' && p[1] == '.'))
			return false;
		p += n;
		if (!*p)
			return true;
	}
}

static const char *get_path(struct cursor *c)
{
	const char *s = get_text(c, LIMIT_PATH_BYTES);
	if (!c->bad && !path_is_plain(s))
		c->bad = "a path leads elsewhere";
	return s;
}

/* One component, or nothing. */
static const char *get_name(struct cursor *c)
{
	const char *s = get_text(c, LIMIT_NAME_BYTES);
	if (!c->bad && (strchr(s, '/') || strcmp(s, ".") == 0 || strcmp(s, "..") == 0))
		c->bad = "a name is none";
	return s;
}

static struct timespec get_time(struct cursor *c)
{
	struct timespec t;
	t.tv_sec = (time_t)get_uint(c, 8);
	t.tv_nsec = (long)get_uint(c, 4);
	return t;
}

static struct identity get_identity(struct cursor *c)
{
	struct identity id;
	id.dev = get_uint(c, 8);
	id.ino = get_uint(c, 8);
	id.size = (int64_t)get_uint(c, 8);
	id.mtime = get_time(c);
	id.ctime = get_time(c);
	return id;
}

int record_length(const void *head, size_t n, size_t *ret_len, struct err *err)
{
	const uint8_t *p = head;
	if (n < RECORD_HEAD || load(p, 4) != MAGIC)
		return corrupt(err, "it does not start as one");
	size_t len = load(p + AT_LENGTH, 4);
	if (len > RECORD_MAX - RECORD_HEAD - RECORD_TAIL)
		return corrupt(err, "it is too long");
	*ret_len = len + RECORD_HEAD + RECORD_TAIL;
	return 0;
}

int record_length_back(const void *tail, size_t n, size_t *ret_len, struct err *err)
{
	if (n < RECORD_TAIL)
		return corrupt(err, "it ends too early");
	size_t len = load(tail, RECORD_TAIL);
	if (len < RECORD_HEAD + RECORD_TAIL || len > RECORD_MAX)
		return corrupt(err, "its length cannot be");
	*ret_len = len;
	return 0;
}

static int check_frame(const uint8_t *p, size_t n, struct err *err)
{
	size_t len = 0;
	uint8_t sum[CHECKSUM];
	int r = record_length(p, n, &len, err);
	if (r < 0)
		return r;
	if (len != n || load(p + n - RECORD_TAIL, RECORD_TAIL) != n)
		return corrupt(err, "its length is wrong");
	checksum(p, n, sum);
	if (memcmp(sum, p + AT_CHECKSUM, CHECKSUM) != 0)
		return corrupt(err, "its checksum is wrong");
	if (p[AT_TYPE + 1] != VERSION || p[AT_TYPE + 2] != 0 || p[AT_TYPE + 3] != 0)
		return err_set(err, ERR_UNSUPPORTED, "a record of the store has another version");
	return 0;
}

static void get_head(struct cursor *c, struct record *h)
{
	h->seq = get_uint(c, 8);
	h->undoes = get_uint(c, 8);
	h->time_ms = (int64_t)get_uint(c, 8);
	h->undoable = get_uint(c, 1) != 0;
	h->why_not = get_text(c, RECORD_WHY_MAX);
	h->call_id = get_text(c, RECORD_TEXT_MAX);
	h->tool = get_text(c, RECORD_TEXT_MAX);
	h->turn = get_text(c, RECORD_TEXT_MAX);
	h->label = get_text(c, RECORD_TEXT_MAX);
	h->n_mounts = (unsigned)get_uint(c, 1);
	if (h->n_mounts > LIMIT_MOUNTS && !c->bad)
		c->bad = "too many mounts";
	for (unsigned i = 0; i < h->n_mounts && !c->bad; i++)
		h->mounts[i] = get_text(c, LIMIT_PATH_BYTES);
	h->n_changes = (uint32_t)get_uint(c, 4);
	if (h->n_changes > LIMIT_CHANGES && !c->bad)
		c->bad = "too many changes";
}

int record_open(struct record_reader *r, const void *frame, size_t n, struct err *err)
{
	const uint8_t *p = frame;
	struct record head = {0};
	int e = check_frame(p, n, err);
	if (e < 0)
		return e;
	struct cursor c = {.p = p + RECORD_HEAD, .end = p + n - RECORD_TAIL};
	head.type = p[AT_TYPE];
	if (head.type != RECORD_COMMIT && head.type != RECORD_CHECKPOINT)
		return corrupt(err, "its type is unknown");
	get_head(&c, &head);
	if (c.bad)
		return corrupt(err, c.bad);
	*r = (struct record_reader){.head = head, .p = c.p, .end = c.end, .left = head.n_changes};
	return 0;
}

static void get_change(struct cursor *c, unsigned n_mounts, struct record_change *ch)
{
	unsigned kind = (unsigned)get_uint(c, 1);
	ch->mount = (unsigned)get_uint(c, 1);
	ch->flags = (unsigned)get_uint(c, 2);
	if (!c->bad && (kind >= CHANGE_KIND_MAX_ || (ch->flags & ~RECORD_FLAGS_ALL) != 0))
		c->bad = "a kind of change is unknown";
	if (!c->bad && ch->mount >= n_mounts)
		c->bad = "a mount is unknown";
	ch->kind = c->bad ? CHANGE_CREATE : (enum change_kind)kind;
	ch->mode_before = (mode_t)get_uint(c, 4);
	ch->mode_after = (mode_t)get_uint(c, 4);
	ch->size_before = (int64_t)get_uint(c, 8);
	ch->size_after = (int64_t)get_uint(c, 8);
	ch->bytes_delta = (int64_t)get_uint(c, 8);
	ch->entries_delta = (int64_t)get_uint(c, 8);
	ch->before = get_identity(c);
	ch->after = get_identity(c);
	ch->path = get_path(c);
	ch->from = get_path(c);
	ch->saved = get_name(c);
	ch->staged = get_name(c);
	ch->target = get_text(c, LIMIT_PATH_BYTES);
}

int record_next(struct record_reader *r, struct record_change *ret, struct err *err)
{
	struct cursor c = {.p = r->p, .end = r->end};
	struct record_change ch = {0};
	if (r->left == 0)
		return r->p == r->end ? 0 : corrupt(err, "something is left over");
	get_change(&c, r->head.n_mounts, &ch);
	if (c.bad)
		return corrupt(err, c.bad);
	r->p = c.p;
	r->left--;
	*ret = ch;
	return 1;
}
