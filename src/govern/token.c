/* Bearer tokens: see token.h. */
#include "govern/token.h"
#include "sys/clock.h"
#include "sys/fs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/random.h>

enum { LOCK_WAIT_MS = 2000, FIELDS = 7 };

struct token_table {
	int state_fd;
	struct token *tokens; /* sorted by digest */
	unsigned n;
	int64_t looked_ms; /* -1: never */
	struct stat seen;  /* of the file that was read; st_ino 0: there was none */
};

/* --- the text --------------------------------------------------------------------------------- */

/* Names and tenants: visible ASCII without blanks, so a line has one reading. */
static bool word(struct str s, size_t max)
{
	if (s.n == 0 || s.n > max)
		return false;
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] <= ' ' || s.p[i] > '~')
			return false;
	return true;
}

static bool read_word(struct str s, char *out, size_t max)
{
	if (!word(s, max))
		return false;
	memcpy(out, s.p, s.n);
	out[s.n] = '\0';
	return true;
}

static bool read_time(struct str s, int64_t *ret)
{
	int64_t v = 0;
	if (s.n == 0 || s.n > 15)
		return false;
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] < '0' || s.p[i] > '9')
			return false;
		v = v * 10 + (s.p[i] - '0');
	}
	*ret = v;
	return true;
}

static bool read_role(struct str s, enum role *ret)
{
	char text[32];
	struct err ignored;
	return read_word(s, text, sizeof(text) - 1) && role_parse(text, ret, &ignored) == 0;
}

static bool read_kind(struct str s, bool *ret_admin)
{
	*ret_admin = str_eq_c(s, "admin");
	return *ret_admin || str_eq_c(s, "user");
}

static bool split(struct str line, struct str f[FIELDS])
{
	for (unsigned i = 0; i < FIELDS; i++) {
		const char *tab = line.n ? memchr(line.p, '\t', line.n) : NULL;
		if ((tab == NULL) != (i == FIELDS - 1))
			return false;
		size_t n = tab ? (size_t)(tab - line.p) : line.n;
		f[i] = (struct str){line.p, n};
		if (tab)
			line = (struct str){tab + 1, line.n - n - 1};
	}
	return true;
}

static bool read_line(struct str line, struct token *t)
{
	struct str f[FIELDS];
	return split(line, f) && sha256_parse(f[0].p, f[0].n, &t->digest) == 0 &&
	       read_word(f[1], t->name, TOKEN_NAME_MAX) &&
	       read_word(f[2], t->tenant, LIMIT_SESSION_ID) && read_role(f[3], &t->role) &&
	       read_kind(f[4], &t->admin) && read_time(f[5], &t->created) &&
	       read_time(f[6], &t->expires);
}

int token_read(struct str text, struct token *ret, unsigned max, unsigned *ret_n, struct err *err)
{
	unsigned n = 0, at = 0;
	while (text.n) {
		const char *end = memchr(text.p, '\n', text.n);
		size_t len = end ? (size_t)(end - text.p) : text.n;
		struct str line = {text.p, len};
		len += end != NULL;
		text = (struct str){text.p + len, text.n - len};
		at++;
		if (n == max)
			return err_set(err, ERR_LIMIT, "there are more than %u tokens", max);
		if (!read_line(line, &ret[n++]))
			return err_set(err, ERR_CORRUPT,
				"line %u of the file of tokens does not read", at);
	}
	*ret_n = n;
	return 0;
}

static void put_line(struct buf *b, const struct token *t)
{
	char hex[SHA256_HEX + 1];
	sha256_hex(&t->digest, hex);
	buf_printf(b, "%s\t%s\t%s\t%s\t%s\t%lld\t%lld\n", hex, t->name, t->tenant,
		role_word(t->role), t->admin ? "admin" : "user", (long long)t->created,
		(long long)t->expires);
}

/* --- the table -------------------------------------------------------------------------------- */

int token_table_new(int state_fd, struct token_table **ret, struct err *err)
{
	struct token_table *t = calloc(1, sizeof(*t));
	if (!t) {
		(void)err_oom(err);
		return -ERR_NO_MEMORY;
	}
	t->state_fd = state_fd;
	t->looked_ms = -1;
	*ret = t;
	return 0;
}

void token_table_free(struct token_table *t)
{
	if (!t)
		return;
	free(t->tokens);
	free(t);
}

static int by_digest(const void *a, const void *b)
{
	const struct token *x = a, *y = b;
	return memcmp(x->digest.b, y->digest.b, SHA256_LEN);
}

static int read_file(int fd, const struct stat *st, struct buf *text, struct err *err)
{
	if (!S_ISREG(st->st_mode) || st->st_uid != geteuid() || (st->st_mode & 077))
		return err_set(
			err, ERR_DENIED, "the file of tokens is open to others or not this user's");
	if (st->st_size > TOKEN_FILE_MAX)
		return err_set(err, ERR_LIMIT, "the file of tokens is larger than %d bytes",
			TOKEN_FILE_MAX);
	char *p = buf_room(text, (size_t)st->st_size);
	if (st->st_size && !p)
		return err_oom(err);
	ssize_t n = st->st_size ? fs_read(fd, p, (size_t)st->st_size, 0) : 0;
	if (n < 0)
		return err_sys(err, errno, "reading the file of tokens");
	buf_grew(text, (size_t)n);
	return 0;
}

/* Parsed into memory of its size: a line has at least one byte. */
static int parse(struct token_table *t, struct str text, struct err *err)
{
	unsigned lines = 1, n = 0;
	for (size_t i = 0; i < text.n; i++)
		lines += text.p[i] == '\n';
	lines = MIN(lines, (unsigned)TOKENS_MAX);
	struct token *list = calloc(lines, sizeof(*list));
	if (!list)
		return err_oom(err);
	int r = token_read(text, list, lines, &n, err);
	if (r < 0) {
		free(list);
		return r;
	}
	qsort(list, n, sizeof(*list), by_digest);
	free(t->tokens);
	t->tokens = list;
	t->n = n;
	return 0;
}

static bool same_file(const struct stat *a, const struct stat *b)
{
	return a->st_ino == b->st_ino && a->st_dev == b->st_dev && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec &&
	       a->st_ctim.tv_sec == b->st_ctim.tv_sec && a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

int token_table_load(struct token_table *t, struct err *err)
{
	struct stat st;
	_cleanup_buf_ struct buf text = buf_init(TOKEN_FILE_MAX);
	_cleanup_close_ int fd = fs_open(t->state_fd, TOKEN_FILE, O_RDONLY | O_NOFOLLOW, 0);
	if (fd < 0 && errno == ENOENT) {
		t->n = 0;
		t->seen = (struct stat){0};
		return 0;
	}
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_sys(err, errno, "opening the file of tokens");
	if (same_file(&st, &t->seen))
		return 0;
	int r = read_file(fd, &st, &text, err);
	if (r == 0)
		r = parse(t, (struct str){buf_str(&text), text.len}, err);
	if (r == 0)
		t->seen = st;
	return r;
}

int token_table_refresh(struct token_table *t, int64_t now_ms, struct err *err)
{
	if (t->looked_ms >= 0 && now_ms - t->looked_ms < TOKEN_LOOK_MS)
		return 0;
	t->looked_ms = now_ms;
	return token_table_load(t, err);
}

const struct token *token_table_find(const struct token_table *t, struct str token, int64_t now_s)
{
	struct token key;
	if (t->n == 0)
		return NULL;
	sha256_of(token.p, token.n, &key.digest);
	const struct token *found = bsearch(&key, t->tokens, t->n, sizeof(key), by_digest);
	return found && (found->expires == 0 || now_s < found->expires) ? found : NULL;
}

unsigned token_table_count(const struct token_table *t)
{
	return t->n;
}

const struct token *token_table_at(const struct token_table *t, unsigned i)
{
	return &t->tokens[i];
}

/* --- changing the file ------------------------------------------------------------------------ */

/* One writer at a time; the lock is a file of its own, since the other is replaced. */
static int lock(int state_fd, int *ret_fd, struct err *err)
{
	_cleanup_close_ int fd =
		fs_open(state_fd, TOKEN_FILE ".lock", O_RDWR | O_CREAT | O_NOFOLLOW, 0600);
	if (fd < 0)
		return err_sys(err, errno, "opening the lock of the tokens");
	if (fs_lock_wait(fd, 0, F_WRLCK, LOCK_WAIT_MS) < 0)
		return err_set(err, ERR_BUSY, "another process is changing the tokens");
	*ret_fd = take_fd(fd);
	return 0;
}

static int replace_file(int state_fd, const struct buf *text, struct err *err)
{
	char name[FS_TEMP_NAME];
	_cleanup_close_ int fd = fs_temp(state_fd, "tokens.", name);
	if (fd < 0)
		return err_sys(err, errno, "making the new file of tokens");
	if (fs_write(fd, buf_str(text), text->len, 0) < 0 || fsync(fd) < 0 ||
		renameat(state_fd, name, state_fd, TOKEN_FILE) < 0 || fsync(state_fd) < 0) {
		int e = errno;
		(void)unlinkat(state_fd, name, 0);
		return err_sys(err, e, "writing the file of tokens");
	}
	return 0;
}

/* Write all but `without`, and `also`. Each may be NULL. */
static int rewrite(
	const struct token_table *t, const char *without, const struct token *also, struct err *err)
{
	_cleanup_buf_ struct buf text = buf_init(TOKEN_FILE_MAX);
	for (unsigned i = 0; i < t->n; i++)
		if (!without || strcmp(t->tokens[i].name, without) != 0)
			put_line(&text, &t->tokens[i]);
	if (also)
		put_line(&text, also);
	int r = buf_check(&text, "the file of tokens", err);
	return r < 0 ? r : replace_file(t->state_fd, &text, err);
}

static bool has_name(const struct token_table *t, const char *name)
{
	for (unsigned i = 0; i < t->n; i++)
		if (strcmp(t->tokens[i].name, name) == 0)
			return true;
	return false;
}

static int draw(struct token *spec, char text[TOKEN_LEN + 1], struct err *err)
{
	unsigned char random[TOKEN_LEN - (sizeof(TOKEN_PREFIX) - 1)];
	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return err_sys(err, errno, "drawing a token");
	memcpy(text, TOKEN_PREFIX, sizeof(TOKEN_PREFIX) - 1);
	for (unsigned i = 0; i < sizeof(random); i++)
		text[sizeof(TOKEN_PREFIX) - 1 + i] =
			"abcdefghijklmnopqrstuvwxyz234567"[random[i] & 31];
	text[TOKEN_LEN] = '\0';
	sha256_of(text, TOKEN_LEN, &spec->digest);
	spec->created = clock_unix_ms() / 1000;
	return 0;
}

static int check_words(const struct token *spec, struct err *err)
{
	if (!word(str_of(spec->name), TOKEN_NAME_MAX))
		return err_set(err, ERR_INVALID_ARGUMENT,
			"a token's name is 1 to %d visible ASCII characters without blanks",
			TOKEN_NAME_MAX);
	if (!word(str_of(spec->tenant), LIMIT_SESSION_ID))
		return err_set(err, ERR_INVALID_ARGUMENT,
			"a tenant is 1 to %d letters, digits, '-', '_' or '.'", LIMIT_SESSION_ID);
	return 0;
}

int token_add(int state_fd, struct token *spec, char ret_text[TOKEN_LEN + 1], struct err *err)
{
	_cleanup_close_ int held = -1;
	_cleanup_(cleanup_token_table_free) struct token_table *t = NULL;
	int r = check_words(spec, err);
	if (r < 0 || (r = lock(state_fd, &held, err)) < 0 ||
		(r = token_table_new(state_fd, &t, err)) < 0 || (r = token_table_load(t, err)) < 0)
		return r;
	if (has_name(t, spec->name))
		return err_set(err, ERR_EXISTS, "there is a token called '%s' already", spec->name);
	if (t->n == TOKENS_MAX)
		return err_set(
			err, ERR_LIMIT, "there are %d tokens, which is the limit", TOKENS_MAX);
	if ((r = draw(spec, ret_text, err)) < 0)
		return r;
	return rewrite(t, NULL, spec, err);
}

int token_remove(int state_fd, const char *name, struct err *err)
{
	_cleanup_close_ int held = -1;
	_cleanup_(cleanup_token_table_free) struct token_table *t = NULL;
	int r = lock(state_fd, &held, err);
	if (r < 0 || (r = token_table_new(state_fd, &t, err)) < 0 ||
		(r = token_table_load(t, err)) < 0)
		return r;
	if (!has_name(t, name))
		return err_set(err, ERR_NOT_FOUND, "no token is called '%.64s'", name);
	return rewrite(t, name, NULL, err);
}
