/*
 * Arguments and results of tools, declared once as data.
 *
 * One table of `struct field` per tool yields: the check of a call's arguments (an unknown one is
 * an error; 5.0 is the integer 5, "5" is not), their defaults, the JSON Schema in tool listings and
 * OpenAPI, --help and the manual.
 */
#ifndef CLOISTER_CALL_SCHEMA_H
#define CLOISTER_CALL_SCHEMA_H

#include "base/buf.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum field_type {
	FIELD_STRING,
	FIELD_INT,
	FIELD_BOOL,
	FIELD_ENUM,
	FIELD_ARRAY,
	FIELD_OBJECT,
	FIELD_ANY
};

struct field {
	const char *name;
	enum field_type type;
	const char *help; /* one sentence */
	bool required;
	bool nul_ok; /* STRING: U+0000 is allowed; read it with json_string_length() */
	int64_t min,
		max; /* INT: value; STRING: characters; ARRAY: items. max 0: the type's own limit */
	int64_t dflt; /* INT, BOOL */
	bool has_default;
	const char *dflt_str;      /* STRING, ENUM; NULL: none */
	const char *const *words;  /* ENUM, NULL-terminated */
	const struct field *items; /* ARRAY: the element (one field); OBJECT: members, ended by a
				      field without name */
};

#define FIELD_END                                                                                  \
	{                                                                                          \
		.name = NULL                                                                       \
	}

/* Check `args` against a table ended by FIELD_END. ERR_INVALID_ARGUMENT names the argument, what is
 * wrong and what is right. */
int fields_check(const struct field *fields, const json_t *args, struct err *err) _must_check_;

/* Append the JSON Schema (2020-12) of an object with these members. `open`: additional properties
 * are allowed. */
void fields_schema(const struct field *fields, bool open, struct buf *out);

/* Typed access to checked arguments: the default when absent. Borrowed from `args`. */
const char *arg_str(const json_t *args, const struct field *fields, const char *name);
int64_t arg_int(const json_t *args, const struct field *fields, const char *name);
bool arg_bool(const json_t *args, const struct field *fields, const char *name);
const json_t *arg_get(const json_t *args, const char *name); /* NULL: absent */

#endif
