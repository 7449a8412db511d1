/*
 * From the configuration to a core that can run calls: state directory, process tree, registry,
 * session, rights.
 *
 * Order: the other processes are started while nothing of the state is open; then the state is
 * opened; then core gives up every right that calls do not need (core_restrict()). After
 * SETUP_CALLS the process can open files only below its state, its base of sessions and the
 * workspace.
 */
#ifndef CLOISTER_CLI_SETUP_H
#define CLOISTER_CLI_SETUP_H

#include "cli/cli.h"

enum setup_for {
	SETUP_REGISTRY, /* only sessions: no tree, no session, no restriction */
	SETUP_CALLS,    /* calls in the session that --session or --workspace names */
	SETUP_COMMANDS, /* the same, and real commands among them */
};

struct setup;

/* Read file and environment into the configuration; options were put there by cli_parse(). */
int setup_config(struct cli *c, struct err *err) _must_check_;

/* Errors name the setting or option that is wrong; those of state_open(), tree_start(),
 * registry_open(), registry_attach() and core_restrict(). */
int setup_new(struct cli *c, enum setup_for what, struct setup **ret, struct err *err) _must_check_;
void setup_free(struct setup *s); /* accepts NULL */
DEFINE_CLEANUP(struct setup *, setup_free)

/* The journal's directories, made when missing. */
int setup_journal_dirs(
	const struct config *set, int *ret_log_fd, int *ret_key_fd, struct err *err) _must_check_;

struct registry *setup_registry(struct setup *s);
int setup_base_fd(const struct setup *s); /* borrowed: below which managed workspaces are */
const struct tool_env *setup_env(const struct setup *s);
const char *setup_session(const struct setup *s); /* SETUP_CALLS */
const struct principal *setup_principal(const struct setup *s);
const char *setup_turn(const struct setup *s);

#endif
