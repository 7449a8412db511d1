/*
 * The configuration: what cloister.toml, the environment and the command line say, checked.
 *
 * Everything follows from the table base/config.def. A flag wins over the environment, which wins
 * over the file, which wins over the default, in whatever order they are given to this module.
 * Unknown keys and bad values are refused (ERR_CONFIG): the text names file and line, variable or
 * option, and the key; the hint says what would be right. Unknown variables are not ours to judge;
 * an empty variable counts as none.
 *
 *     struct config c;
 *     if ((r = config_init(&c, err)) < 0 || (r = config_load(&c, NULL, err)) < 0 ||
 *             (r = config_environment(&c, environ, err)) < 0) ...
 *
 * No I/O here; codec/config_file.h reads the file.
 */
#ifndef CLOISTER_CODEC_CONFIG_H
#define CLOISTER_CODEC_CONFIG_H

#include "base/limits.h"
#include "base/text.h"

enum {
	CONFIG_FILE_BYTES_MAX = 256 * 1024,
	CONFIG_LIST_MAX = 64, /* patterns or words of a list */
};

enum config_type {
	CONFIG_PATH,
	CONFIG_SIZE,
	CONFIG_NUMBER,
	CONFIG_BOOL,
	CONFIG_CHOICE,
	CONFIG_GLOBS,
	CONFIG_WORDS,
};

enum config_source { CONFIG_DEFAULT, CONFIG_FILE, CONFIG_ENVIRONMENT, CONFIG_FLAG };

enum config_id {
#define CONFIG(id, ...) CONFIG_ID_##id,
#include "base/config.def"
#undef CONFIG
	CONFIG_ID_MAX_,
};

/* The words of the choices, in the table's order. */
enum { CONFIG_DURABILITY_PROCESS, CONFIG_DURABILITY_POWER };
enum { CONFIG_LOG_TEXT, CONFIG_LOG_JSON };
enum { CONFIG_PROFILE_WORKSPACE, CONFIG_PROFILE_DENY_ALL, CONFIG_PROFILE_HOLD_ALL };

#define CONFIG_FIELD_PATH(id) const char *id; /* absolute; NULL: not given */
#define CONFIG_FIELD_SIZE(id) int64_t id;
#define CONFIG_FIELD_NUMBER(id) int64_t id;
#define CONFIG_FIELD_BOOL(id) bool id;
#define CONFIG_FIELD_CHOICE(id) int id;
#define CONFIG_FIELD_GLOBS(id) const char *const *id; /* NULL-terminated */
#define CONFIG_FIELD_WORDS(id) const char *const *id; /* NULL-terminated */

struct config {
#define CONFIG(id, type, ...) CONFIG_FIELD_##type(id)
#include "base/config.def"
#undef CONFIG
	enum config_source source[CONFIG_ID_MAX_]; /* where each value is from */
	void *memory[CONFIG_ID_MAX_];              /* what paths and lists point into; owned */
};

/* One row of the table. */
struct config_key {
	const char *key, *fallback, *choices, *environment, *flag, *sentence;
	enum config_type type;
	int64_t min, max; /* of lists: of their number */
	size_t offset;    /* of the field */
};
extern const struct config_key config_keys[CONFIG_ID_MAX_];

/* All defaults. ERR_NO_MEMORY. */
int config_init(struct config *c, struct err *err) _must_check_;
void config_done(struct config *c);

/* The text of a configuration file; `name` is how messages call it. */
int config_read(struct config *c, const char *name, struct str text, struct err *err) _must_check_;

/* The variables of an environment (NULL-terminated "NAME=value"). */
int config_environment(
	struct config *c, const char *const *environment, struct err *err) _must_check_;

/*
 * One argument of a command line, with the next one where that is its value: `--quota-bytes 5M`,
 * `--quota-bytes=5M`, `--strict-links` (true), `--strict-links=false`. *ret_taken is the number of
 * arguments used, 0 when args[0] is no option of the table.
 */
int config_argument(struct config *c, const char *const *args, unsigned *ret_taken,
	struct err *err) _must_check_;

/* Append what a value of this key looks like: "a whole number from 1 to 100". */
void config_expected(const struct config_key *k, struct buf *b);

/* The name in older systems' environment, or NULL; *ret_factor is what its number is times. */
const char *config_alias(enum config_id id, int64_t *ret_factor);

/* The n-th word of choices, or {NULL, 0}. */
struct str config_choice(const struct config_key *k, unsigned n);

#endif
