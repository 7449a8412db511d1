/*
 * Writing JSON text (RFC 8259) straight into a buffer, without a tree.
 *
 * Commas follow from what the buffer ends with, so members and elements are simply appended:
 *
 *     jw_open(b, '{'); jw_str(b, "name", s); jw_key(b, "list"); jw_open(b, '['); jw_elem_int(b, 1);
 * jw_close(b, ']'); jw_close(b, '}');
 *
 * Text must be UTF-8: checking it is the caller's duty, since who read the bytes knows what to
 * answer when they are not. Failures (limit, memory) stay in the buffer until buf_check().
 */
#ifndef CLOISTER_CODEC_JSON_WRITE_H
#define CLOISTER_CODEC_JSON_WRITE_H

#include "base/text.h"

void jw_open(struct buf *b, char bracket);  /* '{' or '['; a comma first where one is due */
void jw_close(struct buf *b, char bracket); /* '}' or ']' */
void jw_key(struct buf *b,
	const char *key); /* comma where due, key (a C identifier: written as it is), colon */

/* Members: key and value. */
void jw_str(struct buf *b, const char *key, struct str value);
void jw_cstr(struct buf *b, const char *key, const char *value);
void jw_int(struct buf *b, const char *key, int64_t value);
void jw_bool(struct buf *b, const char *key, bool value);
void jw_null(struct buf *b, const char *key);
void jw_raw(
	struct buf *b, const char *key, struct str json); /* a value that is JSON text already */
void jw_name(struct buf *b, const char *key,
	struct str name); /* a file name: name_escape()d, then a JSON string */

/* Elements of an array. */
void jw_elem_str(struct buf *b, struct str value);
void jw_elem_int(struct buf *b, int64_t value);

/* The value alone: a quoted, escaped string; no comma. */
void jw_string(struct buf *b, struct str value);

/* The inside of a string: escaped, without quotes. For content that comes in pieces (cut at
 * character boundaries). */
void jw_escaped(struct buf *b, struct str piece);

/* A comma where the next element needs one. */
void jw_comma(struct buf *b);

#endif
