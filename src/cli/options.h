/*
 * Options of the command line, declared as data: the parser, the help and the test of the manual
 * work from the same tables.
 *
 *     --name VALUE    --name=VALUE    --flag    --    (everything after it is an argument)
 *
 * An option that no table knows is an error that names it. Options and arguments may be mixed.
 */
#ifndef CLOISTER_CLI_OPTIONS_H
#define CLOISTER_CLI_OPTIONS_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

enum option_type { OPTION_FLAG, OPTION_TEXT, OPTION_INT };

struct option {
	const char *name; /* without the dashes */
	enum option_type type;
	const char *value; /* what to call the value in help: "ID"; NULL for a flag */
	const char *help;  /* one sentence */
	void *to;          /* bool *, const char ** or int64_t * */
};

#define OPTION_END                                                                                 \
	{                                                                                          \
		.name = NULL                                                                       \
	}

enum { ARGUMENTS_MAX = 64, OPTION_NAME_MAX = 80 };

struct arguments {
	const char *v[ARGUMENTS_MAX];
	unsigned n;
};

/*
 * Takes an option that the table does not know, args[0] with what follows it (NULL-terminated).
 * *ret_taken is how many words it used, 0: it does not know it either.
 */
typedef int (*option_other_fn)(
	void *ctx, const char *const *args, unsigned *ret_taken, struct err *err);

/* Parse argv[0..argc), argv[argc] being NULL. `other` may be NULL. Strings are borrowed from argv.
 * ERR_INVALID_ARGUMENT. */
int options_parse(const struct option *table, int argc, char **argv, option_other_fn other,
	void *ctx, struct arguments *ret, struct err *err) _must_check_;

/* "--name=value" into its parts; *ret_value is NULL without `=`. False: no option's name. */
bool option_split(const char *word, char ret_name[OPTION_NAME_MAX], const char **ret_value);

/* A decimal integer, whole text. */
int option_int(const char *name, const char *text, int64_t *ret, struct err *err) _must_check_;

#endif
