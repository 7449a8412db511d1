/*
 * cedar-c: what its commands share.
 *
 * A command is one function over the options; it returns an exit status of those below, which are
 * those of the official command line.
 */
#ifndef CEDAR_TOOL_H
#define CEDAR_TOOL_H

#include "cedar/cedar.h"

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_DENY = 2, EXIT_INVALID = 3 };

struct options {
	const char *policies, *policy_format, *links;
	const char *schema, *schema_format;
	const char *entities;
	const char *principal, *action, *resource, *context, *request;
	const char *direction, *level;
	bool verbose, timing, deny_warnings, deny_on_forbid_error, write, check;
};

int run_authorize(const struct options *o);
int run_batch(const struct options *o);
int run_check_parse(const struct options *o);
int run_explain(const struct options *o);
int run_format(const struct options *o);
int run_translate_policy(const struct options *o);
int run_translate_schema(const struct options *o);
int run_validate(const struct options *o);

/* -- input.c -------------------------------------------------------------------------------- */

/* A file in memory; the name is for errors. */
struct file {
	const char *name;
	char *data;
	size_t n;
};

/* NULL or "-": the standard input. false: told. */
bool file_read(const char *name, struct file *ret);
void file_done(struct file *f);

/* What a question needs, loaded as the options say. Every pointer may be NULL. */
struct question {
	struct file policies_file, schema_file, entities_file, request_file;
	cedar_policies *policies;
	cedar_schema *schema;
	cedar_entities *entities;
	cedar_request *request;
};

/* Policies with @id as their ids, links filled; false: told. */
bool load_policies(const struct options *o, struct question *q);
bool load_schema(const struct options *o, struct question *q);
/* All of it: schema if given, policies, entities, request. */
bool load_question(const struct options *o, struct question *q);
void question_done(struct question *q);

/* -- tell.c --------------------------------------------------------------------------------- */

/* An error or warning with its place in the file, pointed at. */
void tell(const char *severity, const struct file *f, const struct cedar_error *err);
/* One about something that has no text. */
void tell_plain(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
