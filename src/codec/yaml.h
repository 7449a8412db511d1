/*
 * YAML to JSON values, for configuration files and data that agents read. The events are libyaml's,
 * the values are made here, so that everything that makes YAML dangerous or ambiguous has one
 * answer:
 *
 *   - no anchors, no aliases (so no text grows when it is read), no tags but those of the core
 *     schema (`!!str`, `!!int`, ...);
 *   - duplicate keys are refused, and keys that are not scalars; a key is the text as it is
 *     written (`1: x` has the name "1");
 *   - plain scalars follow the core schema of YAML 1.2.2 §10.3.2: `true`, `null`, `0x1F`, `0o17`,
 *     `1e3`; `yes`, `no`, `on` and `12:30` are strings, `010` is ten;
 *   - what JSON cannot hold stays the string that is written: `.inf`, `.nan`, numbers beyond 64
 *     bits or a double;
 *   - nesting is at most LIMIT_JSON_DEPTH with the list of documents, the text at most the caller's
 * limit, `%TAG` may occur YAML_TAGS_MAX times.
 *
 * No document gives null, one gives its value, several give an array of their values. Text is UTF-8
 * (a byte order mark may lead it). Errors name line and column (in characters, from 1).
 */
#ifndef CLOISTER_CODEC_YAML_H
#define CLOISTER_CODEC_YAML_H

#include "base/text.h"

#include <jansson.h>

/* libyaml compares each such directive with all before it. */
enum { YAML_TAGS_MAX = 64 };

/* *ret is owned by the caller (json_decref). ERR_PARSE, ERR_LIMIT (size), ERR_NO_MEMORY. */
int yaml_parse(struct str text, size_t max_bytes, json_t **ret, unsigned *ret_documents,
	struct err *err) _must_check_;

#endif
