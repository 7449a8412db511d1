/* cloister version */
#include "cli/cli.h"

#include <stdio.h>

int verb_version(
	struct cli *c, const struct verb *v _unused_, int argc, char **argv, struct err *err)
{
	struct arguments a;
	int r = cli_parse(c, NULL, argc, argv, &a, err);
	if (r == 0)
		printf(c->json ? "{\"version\":\"%s\"}\n" : "cloister %s\n", CLOISTER_VERSION);
	return r;
}
