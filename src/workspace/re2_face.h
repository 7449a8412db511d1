/*
 * RE2 as C sees it: linear-time regular expressions with a memory limit. Linked only into the
 * worker.
 *
 * This header takes nothing from base/, so that the one file in C++ needs none of our C headers.
 * Text is UTF-8; a byte that is not part of a character is matched by nothing, and is no error. An
 * object may be used by several threads at once.
 */
#ifndef CLOISTER_WORKSPACE_RE2_FACE_H
#define CLOISTER_WORKSPACE_RE2_FACE_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { RE2_FACE_MEMORY = 8 * 1024 * 1024, RE2_FACE_GROUPS = 10 };

struct re2_face;

struct re2_options {
	bool ignore_case;
	bool literal;    /* the pattern is text, not an expression */
	bool whole_word; /* a word boundary at both ends */
	bool multi_line; /* ^ and $ match at lines */
	bool dot_all;    /* . matches a newline */
	bool in_lines;   /* nothing in the pattern matches a newline */
};

struct re2_span {
	size_t from, to; /* SIZE_MAX, SIZE_MAX: the group took no part */
};

/* NULL with the reason in `why` when the pattern does not parse or takes more than the memory. */
struct re2_face *re2_face_new(
	const char *pattern, size_t n, const struct re2_options *opt, char *why, size_t why_cap);
void re2_face_free(struct re2_face *re);

/* The leftmost match in text[from..n); what stands before `from` counts for ^, $ and \b. */
bool re2_face_find(const struct re2_face *re, const char *text, size_t n, size_t from,
	struct re2_span *ret, unsigned n_spans);

unsigned re2_face_groups(const struct re2_face *re);

#ifdef __cplusplus
}
#endif

#endif
