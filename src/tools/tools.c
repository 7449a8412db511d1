/* The table of all tools: see tools.h. */
#include "tools/tools.h"

const struct tool *const tools_all[] = {
#define TOOL(name) &tool_##name,
#include "tools/tools.def"
#undef TOOL
	NULL,
};
