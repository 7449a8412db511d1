/* Places in a source text, and making errors: one statement fills the error and gives its code. */
#ifndef CEDAR_ERROR_H
#define CEDAR_ERROR_H

#include "cedar/cedar.h"

/* Internal names begin with ced_, public ones with cedar_. */

/* A stretch of source. Line 0: there is none (made from JSON values or by a program). Readers of
 * JSON keep offsets only, with the line CED_LINE_LATER; who has the text and an error calls
 * ced_place(). */
#define CED_LINE_LATER UINT32_MAX
struct ced_pos {
	uint32_t offset, length, line, column;
};

/* The stretch from the start of `a` to the end of `b`. */
struct ced_pos ced_pos_join(struct ced_pos a, struct ced_pos b);

/* Fill `err` (may be NULL) and return `code`. Text that does not fit ends in "...". */
int ced_fail(struct cedar_error *err, enum cedar_code code, struct ced_pos pos, const char *format,
	...) __attribute__((format(printf, 4, 5)));

/* "the system has no memory left", without a place. */
int ced_fail_memory(struct cedar_error *err);

/* "LIMIT: more than VALUE", with a place. `name` is that of the field of struct cedar_limits. */
int ced_fail_limit(struct cedar_error *err, struct ced_pos pos, const char *name, uint64_t value);

#ifdef CLOISTER_ANALYZED
/* The code is negative, which an analyzer that sees one file at a time has to be told. */
static inline int ced_is_negative(int code)
{
	return (void)code, CEDAR_E_INVALID;
}
#	define ced_fail(...) ced_is_negative(ced_fail(__VA_ARGS__))
#	define ced_fail_memory(err) ced_is_negative(ced_fail_memory(err))
#	define ced_fail_limit(...) ced_is_negative(ced_fail_limit(__VA_ARGS__))
#endif

/* Find line and column of an error that has an offset only, in the text that it is about. Does
 * nothing to other errors. */
void ced_place(struct cedar_error *err, const char *text, size_t n);

#endif
