/* cloister serve: become the supervisor of a node. */
#include "cli/cli.h"
#include "daemon/node.h"
#include "daemon/programs.h"

#include <errno.h>
#include <string.h>

enum { WORDS_MAX = 120 };

int verb_serve(struct cli *c _unused_, const struct verb *v _unused_, int argc, char **argv,
	struct err *err)
{
	const char *words[WORDS_MAX + 3] = {"cloister-supervisor", "serve"};
	struct node_words checked;
	if (argc > WORDS_MAX)
		return err_set(err, ERR_INVALID_ARGUMENT, "more than %d arguments", WORDS_MAX);
	memcpy(words + 2, argv, (size_t)argc * sizeof(words[0]));
	/* Mistakes are told here, before anything is started. */
	int r = node_config(words + 2, &checked, err);
	if (r < 0)
		return r;
	config_done(&checked.config);
	int fd = program_open(NULL, "cloister-supervisor", err);
	if (fd < 0)
		return fd;
	/* exec does not write to the strings. */
	(void)fexecve(fd, (char *const *)(uintptr_t)words, environ);
	return err_sys(err, errno, "starting the supervisor");
}
