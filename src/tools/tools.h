/* The table of all tools, made from tools.def. */
#ifndef CLOISTER_TOOLS_TOOLS_H
#define CLOISTER_TOOLS_TOOLS_H

#include "call/tool.h"

#define TOOL(name) extern const struct tool tool_##name;
#include "tools/tools.def"
#undef TOOL

/* NULL-terminated, in the order of listings. */
extern const struct tool *const tools_all[];

#endif
