/* The schema printers: a tree in, one of the two notations out. */
#ifndef CEDAR_SCHEMA_PRINT_H
#define CEDAR_SCHEMA_PRINT_H

#include "cedar/out.h"
#include "cedar/schema_tree.h"

/* Both append to `out`, which remembers running out of memory. */

/* The text notation. Fails where the tree holds what text cannot say: an entity type whose
 * shape is a common type, or a reference that must be an entity type while a common type has its
 * name. */
int ced_sch_print_text(
	const struct ced_sch_tree *tree, struct ced_out *out, struct cedar_error *err);

/* The JSON notation, on one line. */
void ced_sch_print_json(const struct ced_sch_tree *tree, struct ced_out *out);

#endif
