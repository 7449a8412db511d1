/* Running a command from a terminal: its output as it comes, its exit status as ours. */
#ifndef CLOISTER_CLI_STREAM_H
#define CLOISTER_CLI_STREAM_H

#include "cli/cli.h"

/* For struct call_input: write to our own standard output or error. */
void stream_put(void *ctx, int stream, const char *p, size_t n);

/* Run a call of shell_run; with --json its result is printed, else `show` (may be NULL) gets it.
 * Returns the exit status. */
int stream_run(struct cli *c, struct call_input *in, show_fn show, struct err *err) _must_check_;

#endif
