/* What both schema targets demand of a schema that was accepted. */
#ifndef CLOISTER_FUZZ_CEDAR_SCHEMA_H
#define CLOISTER_FUZZ_CEDAR_SCHEMA_H

#include <stdlib.h>
#include <string.h>

#include "cedar/cedar.h"

static inline void demand(bool ok)
{
	if (!ok)
		abort();
}

/* The JSON of a schema reads back and prints the same; so does its text, if it has one. */
static inline void check_schema(const cedar_schema *s)
{
	struct cedar_text json, text, again;
	struct cedar_error err;
	cedar_schema *other;

	demand(cedar_schema_to_json(s, &json, &err) == 0);
	demand(cedar_schema_from_json(json.data, json.length, NULL, &other, &err) == 0);
	demand(cedar_schema_to_json(other, &again, &err) == 0);
	demand(strcmp(json.data, again.data) == 0);
	cedar_text_free(&again);
	cedar_schema_free(other);
	cedar_text_free(&json);
	if (cedar_schema_to_text(s, &text, &err) < 0)
		return;
	demand(cedar_schema_from_text(text.data, text.length, NULL, &other, &err) == 0);
	demand(cedar_schema_to_text(other, &again, &err) == 0);
	demand(strcmp(text.data, again.data) == 0);
	cedar_text_free(&again);
	cedar_schema_free(other);
	cedar_text_free(&text);
}

#endif
