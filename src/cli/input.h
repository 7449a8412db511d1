/* Arguments from files and standard input. */
#ifndef CLOISTER_CLI_INPUT_H
#define CLOISTER_CLI_INPUT_H

#include "base/text.h"

#include <jansson.h>

/* The text of an argument: JSON as it stands, @FILE or - for standard input. ERR_INVALID_ARGUMENT,
 * ERR_NOT_FOUND, ERR_LIMIT (LIMIT_REQUEST_BYTES). */
int input_text(const char *spec, struct buf *out, struct err *err) _must_check_;

/* Standard input as a tool's `content`: as text when it is UTF-8, else as base64 with `encoding`
 * set to say so. */
int input_content(json_t *args, struct err *err) _must_check_;

#endif
