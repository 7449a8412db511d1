/* What several tools share: see common.h. */
#include "tools/common.h"

#include <errno.h>
#include <time.h>

const char *const encoding_words[] = {"utf-8", "ascii", "latin-1", "base64", NULL};

const struct field glob_item = {.type = FIELD_STRING, .min = 1, .max = LIMIT_GLOB_BYTES};

const struct field error_fields[] = {
	{.name = "code",
		.type = FIELD_STRING,
		.required = true,
		.help = "Stable code of the error."},
	{.name = "message", .type = FIELD_STRING, .required = true, .help = "What was wrong."},
	{.name = "hint", .type = FIELD_STRING, .help = "What would be right or allowed instead."},
	{.name = "policies",
		.type = FIELD_ARRAY,
		.items = &(const struct field){.type = FIELD_STRING},
		.help = "Policies that decided."},
	{.name = "expires",
		.type = FIELD_INT,
		.help = "When a held call expires, Unix time in seconds."},
	FIELD_END,
};

const struct field undo_fields[] = {
	{.name = "seq",
		.type = FIELD_INT,
		.required = true,
		.help = "Number of the change; history_undo takes it back."},
	{.name = "possible",
		.type = FIELD_BOOL,
		.required = true,
		.help = "Whether the history holds what undoing needs."},
	{.name = "why_not", .type = FIELD_STRING, .help = "Why it cannot be undone."},
	FIELD_END,
};

const struct field change_fields[] = {
	{.name = "change",
		.type = FIELD_STRING,
		.required = true,
		.help = "created, replaced, appended, deleted, renamed, directory_created, "
			"mode_changed or link_created."},
	{.name = "path", .type = FIELD_STRING, .required = true, .help = "Path in the workspace."},
	{.name = "from", .type = FIELD_STRING, .help = "Old path of a renamed file."},
	{.name = "size_before", .type = FIELD_INT, .help = "Bytes before."},
	{.name = "size_after", .type = FIELD_INT, .help = "Bytes after."},
	FIELD_END,
};

int need_present(const struct node *n, struct err *err)
{
	if (n->kind != NODE_ABSENT)
		return 0;
	return err_set(err, ERR_NOT_FOUND, "there is no '%s'", n->spelled);
}

int need_file(const struct node *n, struct err *err)
{
	switch (n->kind) {
	case NODE_FILE: return 0;
	case NODE_ABSENT: return err_set(err, ERR_NOT_FOUND, "there is no file '%s'", n->spelled);
	case NODE_DIR:
		return err_set(
			err, ERR_IS_DIRECTORY, "'%s' is a directory, not a file", n->spelled);
	case NODE_LINK:
		return err_set(err, ERR_LINK_REFUSED, "'%s' is a symbolic link", n->spelled);
	case NODE_OTHER: break;
	}
	return err_set(err, ERR_NOT_REGULAR,
		"'%s' is a FIFO, socket or device, which file tools never open", n->spelled);
}

int need_directory(const struct node *n, struct err *err)
{
	int r = need_present(n, err);
	if (r < 0 || n->kind == NODE_DIR)
		return r;
	return err_set(err, ERR_NOT_DIRECTORY, "'%s' is not a directory", n->spelled);
}

int make_parents(struct tool_call *tc, const struct node *n, struct err *err)
{
	_cleanup_node_ struct node parent = {.fd = -1};
	const char *slash = strrchr(n->path, '/');
	if (!slash || n->kind != NODE_ABSENT)
		return 0;
	/* n->path is below its mount; the agent path of the mount in front makes it absolute again.
	 */
	_cleanup_buf_ struct buf path = buf_init(2 * LIMIT_PATH_BYTES);
	buf_printf(&path, "%s/%.*s", workspace_mount_path(tool_workspace(tc), n->mount),
		(int)(slash - n->path), n->path);
	int r = buf_check(&path, "the path of the parent directory", err);
	if (r == 0)
		r = view_resolve(tool_view(tc), (struct str){buf_str(&path), path.len},
			RESOLVE_PARENTS_MAY_LACK, &parent, err);
	return r < 0 ? r : view_mkdir(tool_view(tc), &parent, 0755, true, err);
}

int expected_hash(const struct tool_call *tc, struct sha256 *store, const struct sha256 **ret,
	struct err *err)
{
	const char *text = tool_arg_str(tc, "expected_hash");
	*ret = NULL;
	if (!text)
		return 0;
	if (sha256_parse(text, strlen(text), store) < 0)
		return err_set(err, ERR_INVALID_ARGUMENT,
			"argument 'expected_hash' must be 64 hexadecimal digits");
	*ret = store;
	return 0;
}

int read_whole(int fd, struct buf *ret, struct err *err)
{
	char *to;
	ssize_t n = 0;
	while ((to = buf_room(ret, 65536)) && (n = pread(fd, to, 65536, (off_t)ret->len)) > 0)
		buf_grew(ret, (size_t)n);
	if (n < 0)
		return err_sys(err, errno, "reading the file");
	return buf_check(ret, "the file", err);
}

const char *node_kind_word(enum node_kind k)
{
	switch (k) {
	case NODE_FILE: return "file";
	case NODE_DIR: return "directory";
	case NODE_LINK: return "link";
	case NODE_OTHER:
	case NODE_ABSENT: break;
	}
	return "other";
}

int hash_fd(struct tool_call *tc, int fd, struct sha256 *ret, struct err *err)
{
	char piece[64 * 1024];
	int64_t at = 0;
	ssize_t n;
	int r = 0;
	struct sha256_ctx *c = sha256_start();
	if (!c)
		return err_oom(err);
	while ((n = pread(fd, piece, sizeof(piece), at)) > 0 &&
		(r = tool_progress(tc, at, 0, err)) == 0) {
		sha256_add(c, piece, (size_t)n);
		at += n;
	}
	if (n < 0)
		r = err_sys(err, errno, "reading the file");
	if (r < 0)
		sha256_abandon(c);
	else
		sha256_finish(c, ret);
	return r;
}

/* --- encodings of content that comes in
 * ----------------------------------------------------------- */

enum { PIECE = 64 * 1024 };

static int stage_ascii(struct staged *s, struct str text, struct err *err)
{
	for (size_t i = 0; i < text.n; i++)
		if ((unsigned char)text.p[i] >= 0x80)
			return err_set(err, ERR_ENCODING,
				"the content has a character outside ASCII at byte %zu", i);
	return staged_write(s, text.p, text.n, err);
}

static int stage_latin1(struct staged *s, struct str text, struct err *err)
{
	char piece[PIECE];
	size_t fill = 0, i = 0;
	int r = 0;
	while (r == 0 && i < text.n) {
		uint32_t c = 0;
		i += utf8_decode(text.p + i, text.n - i, &c);
		if (c > 0xFF)
			return err_set(err, ERR_ENCODING,
				"the character U+%04X does not exist in latin-1", c);
		piece[fill++] = (char)c;
		if (fill == sizeof(piece) || i >= text.n) {
			r = staged_write(s, piece, fill, err);
			fill = 0;
		}
	}
	return r;
}

/* RFC 4648 §4: the value of a base64 character, or -1. */
static int base64_value(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

static int bad_base64(struct err *err, size_t at)
{
	return err_set(
		err, ERR_ENCODING, "the content is not base64 (RFC 4648) at character %zu", at);
}

/* Four characters to up to three bytes; padding only at the very end, and its unused bits are zero.
 */
static int base64_group(const char *p, bool last, char out[3], unsigned *ret_n)
{
	unsigned pad = last && p[3] == '=' ? (p[2] == '=' ? 2 : 1) : 0;
	uint32_t bits = 0;
	for (unsigned i = 0; i < 4; i++) {
		int v = i >= 4 - pad ? 0 : base64_value(p[i]);
		if (v < 0)
			return -1;
		bits = bits << 6 | (uint32_t)v;
	}
	if (bits & ((1u << (8 * pad)) - 1))
		return -1;
	out[0] = (char)(bits >> 16), out[1] = (char)(bits >> 8), out[2] = (char)bits;
	*ret_n = 3 - pad;
	return 0;
}

static int stage_base64(struct staged *s, struct str text, struct err *err)
{
	char piece[3 * 16384];
	size_t fill = 0;
	if (text.n % 4 != 0)
		return bad_base64(err, text.n);
	for (size_t i = 0; i < text.n; i += 4) {
		unsigned n;
		if (base64_group(text.p + i, i + 4 == text.n, piece + fill, &n) < 0)
			return bad_base64(err, i);
		fill += n;
		if (fill > sizeof(piece) - 3 || i + 4 == text.n) {
			int r = staged_write(s, piece, fill, err);
			if (r < 0)
				return r;
			fill = 0;
		}
	}
	return 0;
}

int stage_text(struct staged *s, struct str text, const char *encoding, struct err *err)
{
	if (strcmp(encoding, "ascii") == 0)
		return stage_ascii(s, text, err);
	if (strcmp(encoding, "latin-1") == 0)
		return stage_latin1(s, text, err);
	if (strcmp(encoding, "base64") == 0)
		return stage_base64(s, text, err);
	return staged_write(s, text.p, text.n, err);
}

/* --- results ------------------------------------------------------------------------------------
 */

void put_change(struct buf *b, const struct change *c)
{
	jw_open(b, '{');
	jw_cstr(b, "change", change_kind_word(c->kind));
	jw_cstr(b, "path", c->agent_path);
	if (c->from_path)
		jw_name(b, "from", str_of(c->from_path));
	if (c->size_before >= 0)
		jw_int(b, "size_before", c->size_before);
	if (c->size_after >= 0)
		jw_int(b, "size_after", c->size_after);
	jw_close(b, '}');
}

int report_changes(struct tool_call *tc, const struct changeset *cs, struct err *err _unused_)
{
	struct buf *out = tool_result(tc);
	jw_key(out, "changes");
	jw_open(out, '[');
	for (unsigned i = 0; i < changeset_count(cs); i++)
		put_change(out, changeset_get(cs, i));
	jw_close(out, ']');
	return 0;
}

void jw_text(struct buf *b, struct str text)
{
	buf_putc(b, '"');
	while (text.n > 0) {
		size_t good = utf8_error_at(text.p, text.n);
		jw_escaped(b, (struct str){text.p, good});
		if (good == text.n)
			break;
		buf_puts(b, "\xef\xbf\xbd");
		text = (struct str){text.p + good + 1, text.n - good - 1};
	}
	buf_putc(b, '"');
}

void jw_time_ms(struct buf *b, const char *key, int64_t unix_ms)
{
	char text[48];
	struct tm tm;
	time_t s = (time_t)(unix_ms / 1000);
	if (!gmtime_r(&s, &tm)) {
		jw_null(b, key);
		return;
	}
	size_t n = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	(void)snprintf(text + n, sizeof(text) - n, ".%03dZ", (int)(unix_ms % 1000));
	jw_cstr(b, key, text);
}
