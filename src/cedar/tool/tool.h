/*
 * cedar-c: the commands over the library.
 *
 * Each command is one function from parsed options to an exit status; everything that it prints
 * about a mistake goes through diag.c, so that all errors look the same.
 */
#ifndef CEDAR_TOOL_H
#define CEDAR_TOOL_H

#include <stdio.h>

#include "cedar/cedar.h"

/* Exit statuses, those of the official command line. */
enum tool_exit {
	TOOL_OK = 0,      /* allowed; valid; parsed; translated */
	TOOL_FAILURE = 1, /* wrong usage; input that cannot be read or parsed; not formatted */
	TOOL_DENY = 2,    /* authorize: the decision is deny */
	TOOL_INVALID = 3, /* validate: the policies are not valid */
};

struct options {
	const char *policies, *links, *schema, *entities;
	const char *principal, *action, *resource, *context, *request;
	const char *policy_format, *schema_format; /* "cedar" (default) or "json" */
	const char *direction;
	const char *level, *line_width, *indent_width;
	bool verbose, deny_warnings, no_request_validation, deny_on_forbid_error, compat_412;
	bool write, check, timing;
};

typedef int command_fn(const struct options *o);
command_fn cmd_authorize, cmd_explain, cmd_validate, cmd_check_parse, cmd_translate_policy,
	cmd_translate_schema, cmd_format, cmd_batch;

/* ---- input ---- */

/* The number that an option has, at most `max`; `text` may be NULL and `ret` is then left alone. 0,
 * or TOOL_FAILURE with the reason printed. */
int read_number(const char *option, const char *text, uint32_t max, uint32_t *ret);

/* A whole file, or standard input for "-" and NULL. */
struct file {
	const char *name;
	char *data;
	size_t n;
};

/* 0, or TOOL_FAILURE with the reason printed. */
int file_read(const char *path, struct file *ret);
void file_done(struct file *f);

/* Objects from files; each returns 0 or TOOL_FAILURE with the reason printed. */
int load_policies(const struct options *o, cedar_policies **ret);
int load_schema(const struct options *o, cedar_schema **ret); /* *ret NULL when none is named */
int load_entities(const struct options *o, const cedar_schema *schema, cedar_entities **ret);
int load_request(const struct options *o, const cedar_schema *schema, cedar_request **ret);

/* ---- messages ---- */

/* "error: FILE:LINE:COLUMN: text", and the line with a mark under the place. `f` may be NULL. */
void diag_error(const char *what, const struct file *f, const struct cedar_error *err);
void diag_say(const char *what, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Print text that the library made, and free it. */
int print_text(struct cedar_text *text);

#endif
