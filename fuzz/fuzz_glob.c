/* Patterns: the first line is the pattern, the second the path. A match below a directory means the
 * directory was not left out. */
#include "base/glob.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err err;
	struct glob *g = NULL;
	const char *text = (const char *)data, *line = memchr(text, '\n', size);
	if (!line)
		return 0;
	struct str pattern = {text, (size_t)(line - text)}, path = {line + 1, size - pattern.n - 1};
	for (unsigned flags = 0; flags < 4; flags++) {
		if (glob_compile(pattern, flags, &g, &err) < 0)
			continue;
		bool match = glob_match(g, path);
		const char *slash = path.n ? memrchr(path.p, '/', path.n) : NULL;
		if (match && slash)
			BUG_ON(!glob_may_match_below(
				g, (struct str){path.p, (size_t)(slash - path.p)}));
		glob_free(g);
	}
	return 0;
}
