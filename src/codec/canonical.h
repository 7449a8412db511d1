/*
 * Canonical JSON: RFC 8785 (JSON Canonicalization Scheme). Two values that are equal have the same
 * bytes, so the bytes can be hashed and signed.
 *
 * Names are sorted by UTF-16 code units (RFC 8785 §3.2.3), numbers are written as ECMAScript's
 * Number::toString does (§3.2.2.3). Integers beyond ±(2^53 − 1): our own records write
 * them as strings; for text that others canonicalise too they are refused unless they are how a
 * double is written.
 */
#ifndef CLOISTER_CODEC_CANONICAL_H
#define CLOISTER_CODEC_CANONICAL_H

#include "base/text.h"

#include <jansson.h>

/* Append the canonical form of a value; integers beyond ±(2^53 − 1) as strings. ERR_NO_MEMORY,
 * ERR_LIMIT (buffer, depth). */
int json_canonical(const json_t *v, struct buf *out, struct err *err) _must_check_;

/* The same, but such integers are ERR_INVALID_ARGUMENT: for text that others canonicalise too. */
int json_canonical_exact(const json_t *v, struct buf *out, struct err *err) _must_check_;

/* Append a finite number as ECMAScript writes it: the shortest digits that read back as the same
 * double. */
void canonical_number(struct buf *out, double d);

#endif
