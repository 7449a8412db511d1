/* Values and identities from JSON, for entities, contexts and policies alike. */
#ifndef CEDAR_DATA_H
#define CEDAR_DATA_H

#include "cedar/entities.h"
#include "cedar/ext.h"

/* The escapes that JSON values have. An object is one only when it has no other member and holds
 * what the escape needs; otherwise it is an ordinary record. */
enum ced_escape { CED_ESCAPE_NONE, CED_ESCAPE_ENTITY, CED_ESCAPE_EXTENSION };

/* Which escape `j` is, with what it holds; `__expr` is refused. */
int ced_escape_of(const struct ced_reader *r, const struct ced_json *j, enum ced_escape *ret,
	const struct ced_json **ret_inner);

/* The function and the arguments of what `__extn` holds. */
int ced_extension_of(const struct ced_reader *r, const struct ced_json *inner, enum ced_fn *ret_fn,
	const struct ced_json **ret_args, uint32_t *ret_count);

/* The text of a JSON string as a name. */
const struct ced_name *ced_json_name(const struct ced_reader *r, const struct ced_json *j);
/* The same, which must be a type name in its normal form. */
const struct ced_name *ced_json_type(const struct ced_reader *r, const struct ced_json *j);

#endif
