/* The one error type: see err.h. Pure: no I/O, no globals, no allocation. */
#define ERR_IMPLEMENTED_HERE
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const struct err_info infos[ERR_CODE_MAX_] = {
	[ERR_OK] = {"ok", "success", 200, 0, 0, 0},
#define ERR(name, code, text, http, grpc, rpc, exit)                                               \
	[ERR_##name] = {code, text, http, grpc, rpc, exit},
#include "base/err.def"
#undef ERR
};

void bug_found(const char *file, int line, const char *cond)
{
	fprintf(stderr, "cloister: broken invariant at %s:%d: %s\n", file, line, cond);
	abort();
}

const struct err_info *err_info(enum err_code code)
{
	BUG_ON((unsigned)code >= ERR_CODE_MAX_);
	return &infos[code];
}

enum err_code err_from_name(const char *name)
{
	for (unsigned i = 1; i < ERR_CODE_MAX_; i++)
		if (strcmp(infos[i].name, name) == 0)
			return (enum err_code)i;
	return ERR_OK;
}

/* Drop a character that the end of the buffer has cut in half. */
static void trim_partial_utf8(char *s, size_t len)
{
	size_t i = len;
	while (i > 0 && len - i < 4 && ((unsigned char)s[i - 1] & 0xC0) == 0x80)
		i--;
	if (i == 0 || (unsigned char)s[i - 1] < 0xC0)
		return;
	unsigned char lead = (unsigned char)s[i - 1];
	size_t want = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
	if (len - (i - 1) < want)
		s[i - 1] = '\0';
}

static _printf_(3, 0) void format_into(char *out, size_t cap, const char *fmt, va_list ap)
{
	int n = vsnprintf(out, cap, fmt, ap);
	if (n < 0)
		out[0] = '\0';
	else if ((size_t)n >= cap)
		trim_partial_utf8(out, cap - 1);
}

int err_set(struct err *err, enum err_code code, const char *fmt, ...)
{
	va_list ap;
	err->code = code;
	err->sys = 0;
	err->hint[0] = '\0';
	va_start(ap, fmt);
	format_into(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	return -(int)code;
}

enum err_code err_code_of_errno(int errnum)
{
	switch (errnum) {
	case ENOENT: return ERR_NOT_FOUND;
	case EEXIST: return ERR_EXISTS;
	case ENOTDIR: return ERR_NOT_DIRECTORY;
	case EISDIR: return ERR_IS_DIRECTORY;
	case ENOTEMPTY: return ERR_NOT_EMPTY;
	case EXDEV: return ERR_PATH_ESCAPE;
	case ELOOP: return ERR_LINK_REFUSED;
	case ENAMETOOLONG: return ERR_PATH_INVALID;
	case EROFS: return ERR_READ_ONLY;
	case EACCES:
	case EPERM: return ERR_DENIED;
	case ENOSPC:
	case EDQUOT: return ERR_NO_SPACE;
	case ENOMEM: return ERR_NO_MEMORY;
	case EMFILE:
	case ENFILE: return ERR_LIMIT;
	case ENOSYS:
	case EOPNOTSUPP: return ERR_UNAVAILABLE;
	case ETIMEDOUT: return ERR_TIMEOUT;
	case EAGAIN:
	case EBUSY: return ERR_BUSY;
	case EINTR:
	case ECANCELED: return ERR_CANCELLED;
	default: return ERR_IO;
	}
}

int err_sys(struct err *err, int errnum, const char *fmt, ...)
{
	va_list ap;
	char what[ERR_TEXT_MAX];
	va_start(ap, fmt);
	format_into(what, sizeof(what), fmt, ap);
	va_end(ap);
	int r = err_set(err, err_code_of_errno(errnum), "%.*s: %s", ERR_TEXT_MAX - 64, what,
		strerrordesc_np(errnum) ? strerrordesc_np(errnum) : "unknown error");
	err->sys = errnum;
	return r;
}

int err_wrap(struct err *err, const char *fmt, ...)
{
	va_list ap;
	char old[ERR_TEXT_MAX];
	size_t n;
	memcpy(old, err->text, sizeof(old));
	va_start(ap, fmt);
	format_into(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	n = strlen(err->text);
	if (n + 2 < sizeof(err->text))
		(void)snprintf(err->text + n, sizeof(err->text) - n, ": %.*s",
			(int)(sizeof(err->text) - n - 3), old);
	trim_partial_utf8(err->text, strlen(err->text));
	return -(int)err->code;
}

int err_hint(struct err *err, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	format_into(err->hint, sizeof(err->hint), fmt, ap);
	va_end(ap);
	return -(int)err->code;
}

int err_oom(struct err *err)
{
	return err_set(err, ERR_NO_MEMORY, "out of memory");
}

void err_clear(struct err *err)
{
	err->code = ERR_OK;
	err->sys = 0;
	err->text[0] = err->hint[0] = '\0';
}
