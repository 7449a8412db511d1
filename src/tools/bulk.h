/*
 * Reading and writing files as descriptors instead of as text in JSON, for doors that stream.
 *
 * These are file_read and file_write to policy and journal (the same names, the same targets), with
 * other handlers: what a client may do must not depend on how the bytes travel. They are in no
 * listing.
 */
#ifndef CLOISTER_TOOLS_BULK_H
#define CLOISTER_TOOLS_BULK_H

#include "call/call.h"

/* For a tool_env of their own; NULL-terminated. */
extern const struct tool *const tools_bulk[];

#endif
