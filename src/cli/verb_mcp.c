/* cloister mcp: one client of the Model Context Protocol on standard input and output. */
#include "cli/cli.h"
#include "cli/setup.h"
#include "transport/mcp/mcp_stdio.h"

static const char instructions[] =
	"Files of one workspace. Paths are relative to its root. Every change is atomic, counts to "
	"a "
	"quota and can be taken back with history_undo. A refused call says why and what would be "
	"allowed instead, and has changed nothing.";

int verb_mcp(struct cli *c, const struct verb *v _unused_, int argc, char **argv, struct err *err)
{
	struct arguments a;
	struct mcp_output_fd out;
	_cleanup_(cleanup_setup_free) struct setup *s = NULL;
	int r = cli_parse(c, NULL, argc, argv, &a, err);
	if (r < 0)
		return r;
	if (a.n > 0)
		return err_set(
			err, ERR_INVALID_ARGUMENT, "mcp takes no argument like '%.64s'", a.v[0]);
	if ((r = mcp_output_open(STDOUT_FILENO, &out, err)) < 0)
		return r;
	r = setup_new(c, SETUP_COMMANDS, &s, err);
	if (r == 0) {
		struct mcp_options o = {.env = setup_env(s),
			.session_id = setup_session(s),
			.principal = setup_principal(s),
			.turn = setup_turn(s),
			.version = CLOISTER_VERSION,
			.instructions = instructions};
		r = mcp_stdio_serve(&o, STDIN_FILENO, &out, err);
	}
	mcp_output_close(&out);
	return r;
}
