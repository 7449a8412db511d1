/* Encoding and decoding of what is said around a fence: see protocol.h. */
#include "sandbox/protocol.h"

#include <string.h>

enum { REQUEST_MAGIC = 0x46433101 };

struct request_head {
	uint32_t magic, n_argv, n_envp, reserved;
	struct fence_limits limits;
};

static unsigned put_words(struct buf *out, const char *const *words)
{
	unsigned n = 0;
	for (; words[n]; n++)
		buf_put(out, words[n], strlen(words[n]) + 1);
	return n;
}

static unsigned count(const char *const *words)
{
	unsigned n = 0;
	while (words[n])
		n++;
	return n;
}

int fence_request_put(const struct fence_request *q, struct buf *out, struct err *err)
{
	struct request_head head = {.magic = REQUEST_MAGIC,
		.n_argv = count(q->argv),
		.n_envp = count(q->envp),
		.limits = q->limits};
	if (head.n_argv == 0 || head.n_argv + head.n_envp > FENCE_WORDS_MAX)
		return err_set(err, ERR_LIMIT, "a command has 1 to %d arguments and variables",
			FENCE_WORDS_MAX);
	buf_put(out, &head, sizeof(head));
	buf_put(out, q->cwd, strlen(q->cwd) + 1);
	(void)put_words(out, q->argv);
	(void)put_words(out, q->envp);
	if (out->failed || out->len > FENCE_PACKET_MAX)
		return err_set(err, ERR_TOO_LARGE,
			"a command with its arguments and variables has at most %d bytes",
			FENCE_PACKET_MAX);
	return 0;
}

/* The next NUL-terminated word of a text that ends in NUL. */
static const char *next_word(const char **p, const char *end)
{
	if (*p >= end)
		return NULL;
	const char *word = *p;
	*p += strlen(word) + 1;
	return word;
}

static bool take_words(const char **p, const char *end, const char **to, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		if (!(to[i] = next_word(p, end)))
			return false;
	to[n] = NULL;
	return true;
}

int fence_request_get(
	const char *p, size_t n, struct fence_request *ret, const char **words, struct err *err)
{
	struct request_head head;
	const char *end = p + n;
	if (n <= sizeof(head) || end[-1] != '\0')
		return err_set(err, ERR_PARSE, "a request is cut");
	memcpy(&head, p, sizeof(head));
	p += sizeof(head);
	if (head.magic != REQUEST_MAGIC || head.n_argv == 0 || head.n_argv > FENCE_WORDS_MAX ||
		head.n_envp > FENCE_WORDS_MAX - head.n_argv)
		return err_set(err, ERR_PARSE, "a request is malformed");
	ret->limits = head.limits;
	ret->cwd = next_word(&p, end);
	ret->argv = words;
	ret->envp = words + head.n_argv + 1;
	if (!ret->cwd || !take_words(&p, end, words, head.n_argv) ||
		!take_words(&p, end, words + head.n_argv + 1, head.n_envp) || p != end)
		return err_set(err, ERR_PARSE, "a request has too few or too many words");
	return 0;
}

/* --- reports ---------------------------------------------------------------------------------- */

enum fence_report_type fence_report_type_of(const char *p, size_t n)
{
	uint32_t type = 0;
	if (n >= sizeof(type))
		memcpy(&type, p, sizeof(type));
	return type < FENCE_REPORT_MAX_ ? (enum fence_report_type)type : (enum fence_report_type)0;
}

int fence_report_get(const char *p, size_t n, struct fence_report *ret, struct err *err)
{
	if (n != sizeof(*ret))
		return err_set(err, ERR_PARSE, "a report of the fence has a wrong size");
	memcpy(ret, p, sizeof(*ret));
	if (ret->type == 0 || ret->type >= FENCE_REPORT_MAX_ || ret->type == FENCE_ENTRIES ||
		ret->code < 0 || ret->code > ERR_INTERNAL ||
		!memchr(ret->text, '\0', sizeof(ret->text)))
		return err_set(err, ERR_PARSE, "a report of the fence is malformed");
	return 0;
}

/* --- entries ---------------------------------------------------------------------------------- */

struct entry_head {
	uint8_t kind, opaque;
	uint16_t mode;
	uint16_t path, target; /* bytes that follow */
};

void fence_entries_begin(struct buf *out)
{
	const uint32_t type = FENCE_ENTRIES;
	buf_clear(out);
	buf_put(out, &type, sizeof(type));
}

bool fence_entry_put(struct buf *out, const struct fence_entry *e)
{
	struct entry_head head = {.kind = (uint8_t)e->kind,
		.opaque = e->opaque,
		.mode = (uint16_t)(e->mode & 07777),
		.path = (uint16_t)e->path.n,
		.target = (uint16_t)e->target.n};
	BUG_ON(e->path.n >= LIMIT_PATH_BYTES || e->target.n >= LIMIT_PATH_BYTES);
	if (FENCE_PACKET_MAX - out->len < sizeof(head) + e->path.n + e->target.n)
		return false;
	buf_put(out, &head, sizeof(head));
	buf_put(out, e->path.p, e->path.n);
	buf_put(out, e->target.p, e->target.n);
	return !out->failed;
}

int fence_entries_open(const char *p, size_t n, struct fence_entries *ret, struct err *err)
{
	if (fence_report_type_of(p, n) != FENCE_ENTRIES)
		return err_set(err, ERR_PARSE, "a packet of the fence holds no entries");
	*ret = (struct fence_entries){p + sizeof(uint32_t), n - sizeof(uint32_t)};
	return 0;
}

/* "a/b": no empty component, no `.`, no `..`, no NUL. */
static bool plain_path(struct str path)
{
	const char *end = path.p + path.n;
	if (path.n == 0 || path.n >= LIMIT_PATH_BYTES || memchr(path.p, '\0', path.n))
		return false;
	for (const char *p = path.p; p <= end;) {
		const char *slash = memchr(p, '/', (size_t)(end - p));
		size_t n = (size_t)((slash ? slash : end) - p);
		if (n == 0 || n > LIMIT_NAME_BYTES || (n == 1 && p[0] == '.') ||
			(n == 2 && p[0] == '.' && p[1] == '.'))
			return false;
		p += n + 1;
	}
	return true;
}

static bool take(struct fence_entries *in, size_t n, struct str *ret)
{
	if (in->left < n)
		return false;
	*ret = (struct str){in->p, n};
	in->p += n;
	in->left -= n;
	return true;
}

int fence_entry_get(struct fence_entries *in, struct fence_entry *ret, struct err *err)
{
	struct entry_head head;
	struct str raw;
	if (in->left == 0)
		return 0;
	if (!take(in, sizeof(head), &raw))
		return err_set(err, ERR_PARSE, "an entry of the fence is cut");
	memcpy(&head, raw.p, sizeof(head));
	*ret = (struct fence_entry){.kind = (enum fence_entry_kind)head.kind,
		.opaque = head.opaque != 0,
		.mode = head.mode};
	if (head.kind == 0 || head.kind >= FENCE_ENTRY_MAX_ || head.mode > 07777 ||
		head.target >= LIMIT_PATH_BYTES || !take(in, head.path, &ret->path) ||
		!take(in, head.target, &ret->target) || !plain_path(ret->path) ||
		memchr(ret->target.p, '\0', ret->target.n))
		return err_set(err, ERR_PARSE, "an entry of the fence is malformed");
	return 1;
}
