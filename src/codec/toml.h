/*
 * TOML 1.0 (https://toml.io/en/v1.0.0) into a tree that knows where each value stands, so that
 * who reads a configuration can name file, line and key.
 *
 * Strict: text is UTF-8 (a byte order mark may lead it); duplicate keys, integers beyond 64 bits
 * and floats beyond a double are refused. Line ends in multi-line strings become "\n". Fractions
 * of a second beyond nanoseconds are cut off.
 *
 * Limits: the caller's on the text, LIMIT_JSON_DEPTH on nesting (keys with dots and headers
 * count), TOML_KEYS_MAX on the keys of one table. The tree is one owner's: toml_free() of the root
 * frees everything in it; it borrows nothing from the text.
 */
#ifndef CLOISTER_CODEC_TOML_H
#define CLOISTER_CODEC_TOML_H

#include "base/text.h"

/* Keys of a table are looked for one after the other. */
#define TOML_KEYS_MAX 2000

enum toml_type {
	TOML_TABLE,
	TOML_ARRAY,
	TOML_STRING,
	TOML_INTEGER,
	TOML_FLOAT,
	TOML_BOOL,
	TOML_DATETIME,       /* with an offset */
	TOML_DATETIME_LOCAL, /* without one */
	TOML_DATE_LOCAL,
	TOML_TIME_LOCAL,
	TOML_TYPE_MAX_,
};

struct toml_time {
	int year, month, day;                 /* 0 in a TOML_TIME_LOCAL */
	int hour, minute, second, nanosecond; /* 0 in a TOML_DATE_LOCAL */
	int offset_minutes;                   /* of a TOML_DATETIME */
};

struct toml {
	enum toml_type type;
	unsigned line, column; /* where its key or header begins (of an element: the value); from 1,
				  columns in bytes */
	struct str key;    /* its name in the table around it; in an array and the root {NULL, 0} */
	struct toml *next; /* the next in the same table or array, in the order of the text */
	union {
		struct {
			struct toml *first, *last;
			size_t n;
		} list;            /* TOML_TABLE, TOML_ARRAY */
		struct str string; /* NUL-terminated, may hold NUL */
		int64_t integer;
		double real;
		bool boolean;
		struct toml_time time;
	};
	/* The reader's own: how a table came to be decides what may still be added to it. */
	uint32_t hash;
	unsigned dotted_in;
	unsigned char depth;
	bool defined, closed;
};

/* Read a text; *ret is its root table. ERR_PARSE, ERR_LIMIT (size), ERR_NO_MEMORY. */
int toml_parse(struct str text, size_t max_bytes, struct toml **ret, struct err *err) _must_check_;

/* Free a tree by its root. Accepts NULL. */
void toml_free(struct toml *root);
DEFINE_CLEANUP(struct toml *, toml_free)

/* The value of a key, or NULL. `table` is a TOML_TABLE. */
const struct toml *toml_get(const struct toml *table, struct str key);

/* "table", "array", "string", "integer", ... for messages. */
const char *toml_type_name(enum toml_type type);

#endif
