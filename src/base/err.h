/*
 * The one error type.
 *
 * A function that can fail returns 0 on success and a negative `enum err_code` on failure, and
 * takes `struct err *err` last (never NULL). An error is made and returned in one statement, and
 * context is added on the way up:
 *
 *     return err_set(err, ERR_NOT_FOUND, "no file '%s'", name);
 *     if ((r = journal_append(j, rec, err)) < 0)
 *             return err_wrap(err, "sealing group %u", n);
 *
 * Invariants: `text` is valid UTF-8, NUL-terminated, at most ERR_TEXT_MAX bytes (longer text is cut
 * at a character boundary); a libc errno never reaches the text of a refusal, only `sys`; libraries
 * do not log, the caller that decides does. The text must not hold host paths: it is shown to
 * agents.
 */
#ifndef CLOISTER_BASE_ERR_H
#define CLOISTER_BASE_ERR_H

#include "base/attr.h"

enum { ERR_TEXT_MAX = 480, ERR_HINT_MAX = 240 };

enum err_code {
	ERR_OK = 0,
#define ERR(name, code, text, http, grpc, rpc, exit) ERR_##name,
#include "base/err.def"
#undef ERR
	ERR_CODE_MAX_,
};

struct err {
	enum err_code code;
	int sys;                 /* errno where the kernel said no, else 0 */
	char text[ERR_TEXT_MAX]; /* what was wrong */
	char hint[ERR_HINT_MAX]; /* what would be right; may be empty */
};

/* Make an error. Returns -code, so that it can be returned in the same statement. */
int err_set(struct err *err, enum err_code code, const char *fmt, ...) _printf_(3, 4);

/* Make an error from an errno value; the code follows from it (ENOENT -> NOT_FOUND, EXDEV/ELOOP ->
 * PATH_ESCAPE/LINK_REFUSED, ENOSPC -> NO_SPACE, ...), the text ends in its description. */
int err_sys(struct err *err, int errnum, const char *fmt, ...) _printf_(3, 4);

/* Prefix context ("while ...: "). Returns -err->code. */
int err_wrap(struct err *err, const char *fmt, ...) _printf_(2, 3);

/* Say what would be right instead. Returns -err->code. */
int err_hint(struct err *err, const char *fmt, ...) _printf_(2, 3);

/* Out of memory, in one word, since it is said in many places. */
int err_oom(struct err *err);

void err_clear(struct err *err);

/* What an error returns is always negative. A static analyzer sees one file at a time, and would
 * follow the path on which it is not: the runs that analyze say so to it. */
#if defined(CLOISTER_ANALYZED) && !defined(ERR_IMPLEMENTED_HERE)
static inline int err_is_negative(int r)
{
	return r < 0 ? r : -ERR_INTERNAL;
}
#	define err_set(...) err_is_negative(err_set(__VA_ARGS__))
#	define err_sys(...) err_is_negative(err_sys(__VA_ARGS__))
#	define err_wrap(...) err_is_negative(err_wrap(__VA_ARGS__))
#	define err_hint(...) err_is_negative(err_hint(__VA_ARGS__))
#	define err_oom(err) err_is_negative(err_oom(err))
#endif

/* The row of err.def for a code. */
struct err_info {
	const char *name; /* stable code */
	const char *text;
	int http, grpc, rpc, exit;
};
const struct err_info *err_info(enum err_code code);

/* The code with this stable name, or ERR_OK when there is none. */
enum err_code err_from_name(const char *name);

/* The code that err_sys() gives an errno value. */
enum err_code err_code_of_errno(int errnum);

#endif
