/*
 * Strict JSON (RFC 8259) into jansson's values, with what a general reader leaves open decided:
 *
 *   - duplicate names are refused (so are the two y_object_duplicated_key* cases of the public test
 * suite, on purpose);
 *   - nesting is at most LIMIT_JSON_DEPTH, text at most the caller's limit, nothing may follow the
 * value but white space;
 *   - U+0000 is accepted in strings and names (read them with their lengths); unpaired surrogates
 * are refused;
 *   - integers outside 64 bits and reals outside a double are refused, never rounded to something
 * else.
 *
 * The reader is ours since jansson's cannot hold U+0000 in names and gives no exact answer for the
 * other points. Errors name line and column (in bytes, from 1).
 */
#ifndef CLOISTER_CODEC_JSON_H
#define CLOISTER_CODEC_JSON_H

#include "base/text.h"

#include <jansson.h>

DEFINE_CLEANUP(json_t *, json_decref)

/* Read one value of any type. *ret is owned by the caller (json_decref). ERR_PARSE, ERR_LIMIT
 * (size), ERR_NO_MEMORY. */
int json_parse(struct str text, size_t max_bytes, json_t **ret, struct err *err) _must_check_;

#endif
