/* Types in messages. */
#ifndef CEDAR_TYPE_PRINT_H
#define CEDAR_TYPE_PRINT_H

#include "cedar/schema.h"

/* Types are graphs that share their parts, so that written out they can be as long as one likes:
 * what does not fit ends in "...". */
enum { CED_TY_TEXT_MAX = 160 };

/* Writes the type to `text`, which has CED_TY_TEXT_MAX bytes, and returns it. */
const char *ced_type_text(const struct cedar_schema *s, const struct ced_type *type, char *text);

#endif
