/* Parsing options by table: see options.h. */
#include "cli/options.h"

#include <errno.h>
#include <string.h>

int option_int(const char *name, const char *text, int64_t *ret, struct err *err)
{
	char *end = NULL;
	errno = 0;
	long long v = strtoll(text, &end, 10);
	if (errno || end == text || *end)
		return err_set(err, ERR_INVALID_ARGUMENT, "--%.64s takes an integer, not '%.64s'",
			name, text);
	*ret = v;
	return 0;
}

bool option_split(const char *word, char ret_name[OPTION_NAME_MAX], const char **ret_value)
{
	const char *equals = strchr(word, '=');
	size_t n = equals ? (size_t)(equals - word) : strlen(word);
	if (strncmp(word, "--", 2) != 0 || n - 2 >= OPTION_NAME_MAX)
		return false;
	memcpy(ret_name, word + 2, n - 2);
	ret_name[n - 2] = '\0';
	*ret_value = equals ? equals + 1 : NULL;
	return true;
}

static int store(const struct option *o, const char *value, struct err *err)
{
	switch (o->type) {
	case OPTION_FLAG: *(bool *)o->to = true; return 0;
	case OPTION_TEXT: *(const char **)o->to = value; return 0;
	case OPTION_INT: return option_int(o->name, value, o->to, err);
	}
	return 0;
}

static const struct option *find(const struct option *table, const char *name)
{
	for (const struct option *o = table; o->name; o++)
		if (strcmp(o->name, name) == 0)
			return o;
	return NULL;
}

static int known(const struct option *o, const char *value, const char *next, unsigned *ret_taken,
	struct err *err)
{
	bool took = o->type != OPTION_FLAG && !value;
	if (o->type == OPTION_FLAG && value)
		return err_set(err, ERR_INVALID_ARGUMENT, "--%s takes no value", o->name);
	if (took && !next)
		return err_set(
			err, ERR_INVALID_ARGUMENT, "--%s needs a value: %s", o->name, o->value);
	*ret_taken = 1 + took;
	return store(o, value ? value : next, err);
}

static int one_option(const struct option *table, const char *const *args, option_other_fn other,
	void *ctx, unsigned *ret_taken, struct err *err)
{
	char name[OPTION_NAME_MAX];
	const char *value;
	int r = 0;
	*ret_taken = 0;
	if (option_split(args[0], name, &value)) {
		const struct option *o = find(table, name);
		if (o)
			return known(o, value, args[1], ret_taken, err);
		r = other ? other(ctx, args, ret_taken, err) : 0;
	}
	if (r < 0 || *ret_taken > 0)
		return r;
	(void)err_set(err, ERR_INVALID_ARGUMENT, "no option is called '%.64s'", args[0]);
	return err_hint(err, "the command's options: cloister help COMMAND");
}

static int argument(struct arguments *ret, const char *word, struct err *err)
{
	if (ret->n == ARGUMENTS_MAX)
		return err_set(err, ERR_LIMIT, "at most %d arguments are taken", ARGUMENTS_MAX);
	ret->v[ret->n++] = word;
	return 0;
}

int options_parse(const struct option *table, int argc, char **argv, option_other_fn other,
	void *ctx, struct arguments *ret, struct err *err)
{
	bool only_arguments = false;
	ret->n = 0;
	for (unsigned i = 0, taken = 1; i < (unsigned)argc; i += taken) {
		int r;
		taken = 1;
		if (!only_arguments && strcmp(argv[i], "--") == 0) {
			only_arguments = true;
			continue;
		}
		if (!only_arguments && strncmp(argv[i], "--", 2) == 0)
			r = one_option(
				table, (const char *const *)argv + i, other, ctx, &taken, err);
		else
			r = argument(ret, argv[i], err);
		if (r < 0)
			return r;
	}
	return 0;
}
