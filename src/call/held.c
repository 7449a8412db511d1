/*
 * Held calls: what waits for approval, one small file per call in a private directory, so that any
 * process of the owner can read it by id until it expires. A file is written whole under another
 * name and then renamed, so a reader never sees half of it.
 */
#include "call/stages.h"

#include "codec/json_write.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

enum { HELD_BYTES_MAX = 1024 * 1024 };

static int64_t now_s(void)
{
	return (int64_t)time(NULL);
}

static void describe(struct buf *b, const struct tool_call *tc, const struct decision *d,
	struct str contract, const struct sha256 *hash, int64_t expires)
{
	char hex[SHA256_HEX + 1];
	sha256_hex(hash, hex);
	jw_open(b, '{');
	jw_cstr(b, "call_id", tc->id);
	jw_cstr(b, "tool", tc->tool->name);
	jw_cstr(b, "session", session_id(tc->session));
	jw_cstr(b, "principal", tc->principal->id);
	jw_cstr(b, "tenant", tc->principal->tenant);
	jw_cstr(b, "reason", d->reason);
	jw_int(b, "expires", expires);
	jw_cstr(b, "contract_sha256", hex);
	jw_raw(b, "contract", contract);
	jw_close(b, '}');
}

static int write_file(int dir, const char *id, const struct buf *b, struct err *err)
{
	char tmp[CALL_ID_CHARS + 8];
	(void)snprintf(tmp, sizeof(tmp), "%s.new", id);
	_cleanup_close_ int fd =
		openat(dir, tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_sys(err, errno, "keeping the held call");
	ssize_t n = write(fd, b->data, b->len);
	if (n != (ssize_t)b->len || renameat(dir, tmp, dir, id) < 0) {
		int why = n < 0 || n == (ssize_t)b->len ? errno : ENOSPC;
		(void)unlinkat(dir, tmp, 0);
		return err_sys(err, why, "keeping the held call");
	}
	return 0;
}

int held_store(
	struct tool_call *tc, const struct decision *d, int64_t *ret_expires, struct err *err)
{
	struct sha256 hash;
	_cleanup_buf_ struct buf contract = buf_init(HELD_BYTES_MAX),
				 b = buf_init(2 * HELD_BYTES_MAX);
	int64_t expires = now_s() + tc->env->held_seconds;
	if (tc->env->held_fd < 0)
		return err_set(err, ERR_UNAVAILABLE,
			"calls cannot wait for approval here: there is no place to keep them");
	int r = contract_of(tc, &contract, &hash, err);
	if (r < 0)
		return r;
	describe(&b, tc, d, (struct str){contract.data, contract.len}, &hash, expires);
	if ((r = buf_check(&b, "the held call", err)) < 0 ||
		(r = write_file(tc->env->held_fd, tc->id, &b, err)) < 0)
		return r;
	*ret_expires = expires;
	return 0;
}

static bool id_valid(const char *id)
{
	return strlen(id) == CALL_ID_CHARS &&
	       strspn(id, "abcdefghijklmnopqrstuvwxyz234567") == CALL_ID_CHARS;
}

static int unknown(const char *id, struct err *err)
{
	return err_set(err, ERR_NOT_FOUND, "no held call has the id '%.40s'", id);
}

static int read_file(int dir, const char *id, struct buf *b, struct err *err)
{
	ssize_t n;
	char *to;
	_cleanup_close_ int fd = openat(dir, id, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? unknown(id, err)
				       : err_sys(err, errno, "reading a held call");
	while ((to = buf_room(b, 65536)) && (n = read(fd, to, 65536)) > 0)
		buf_grew(b, (size_t)n);
	return buf_check(b, "the held call", err);
}

/* An expired call is forgotten when it is next asked for; until the answer is given it is still
 * named. */
int call_held(const struct tool_env *env, const char *id, const struct principal *who,
	struct buf *out, struct err *err)
{
	_cleanup_buf_ struct buf b = buf_init(4 * HELD_BYTES_MAX);
	if (env->held_fd < 0 || !id_valid(id))
		return unknown(id, err);
	int r = read_file(env->held_fd, id, &b, err);
	if (r < 0)
		return r;
	json_t *held = json_loadb(buf_str(&b), b.len, JSON_REJECT_DUPLICATES, NULL);
	const char *tenant = json_string_value(json_object_get(held, "tenant"));
	bool theirs = tenant && strcmp(tenant, who->tenant) == 0;
	int64_t expires = json_integer_value(json_object_get(held, "expires"));
	json_decref(held);
	if (!held)
		return err_set(err, ERR_CORRUPT, "the held call '%s' is damaged", id);
	if (!theirs)
		return unknown(id, err);
	bool expired = now_s() >= expires;
	if (expired)
		(void)unlinkat(env->held_fd, id, 0);
	buf_puts(out, expired ? "{\"status\":\"expired\"," : "{\"status\":\"held\",");
	buf_put(out, b.data + 1, b.len - 1);
	return buf_check(out, "the held call", err);
}
