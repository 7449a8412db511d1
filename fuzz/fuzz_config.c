/*
 * The configuration: whatever a file, an environment and a command line say, every number ends
 * within its bounds, every path is absolute, every list ends.
 */
#include "codec/config.h"

static void check(const struct config *c)
{
	for (const struct config_key *k = config_keys; k < config_keys + CONFIG_ID_MAX_; k++) {
		const void *field = (const char *)c + k->offset;
		unsigned n = 0;
		switch (k->type) {
		case CONFIG_SIZE:
		case CONFIG_NUMBER:
			BUG_ON(*(const int64_t *)field < k->min);
			BUG_ON(*(const int64_t *)field > k->max);
			break;
		case CONFIG_PATH: {
			const char *path = *(const char *const *)field;
			BUG_ON(path && path[0] != '/');
			break;
		}
		case CONFIG_CHOICE:
			BUG_ON(!config_choice(k, (unsigned)*(const int *)field).p);
			break;
		case CONFIG_GLOBS:
		case CONFIG_WORDS:
			for (const char *const *g = *(const char *const *const *)field; *g; g++)
				n++;
			BUG_ON(n > k->max);
			break;
		case CONFIG_BOOL: break;
		}
	}
}

/* The text up to the first NUL is the file, up to the next a variable, then an argument. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err err;
	struct config c;
	unsigned taken;
	BUG_ON(config_init(&c, &err) < 0);
	_cleanup_buf_ struct buf b = buf_init(size + 1);
	buf_put(&b, data, size);
	const char *file = buf_str(&b), *end = file + b.len;
	const char *variable = file + strlen(file) + (file + strlen(file) < end);
	const char *argument = variable + strlen(variable) + (variable + strlen(variable) < end);
	int r = config_read(&c, "f", str_of(file), &err);
	BUG_ON(r < 0 && err.code != ERR_CONFIG);
	check(&c);
	const char *const environment[] = {variable, NULL}, *const args[] = {argument, "1", NULL};
	r = config_environment(&c, environment, &err);
	BUG_ON(r < 0 && err.code != ERR_CONFIG);
	r = config_argument(&c, args, &taken, &err);
	BUG_ON(r < 0 && err.code != ERR_CONFIG);
	check(&c);
	config_done(&c);
	return 0;
}
