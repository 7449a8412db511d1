/*
 * The directories that core works in, and the registry over them: opened from the configuration,
 * the same for `cloister mcp|call` and for the core of `cloister serve`.
 */
#ifndef CLOISTER_DAEMON_CORE_FILES_H
#define CLOISTER_DAEMON_CORE_FILES_H

#include "call/call.h"
#include "codec/config.h"

struct core_files {
	int state_fd, base_fd, held_fd, shared_fd; /* -1: none */
	struct workspace_options workspace;
	struct registry *registry;
	char profile[32];
};

struct core_files_options {
	const struct config *config;
	const char *client_root; /* see struct workspace_options; borrowed, NULL: none */
	unsigned open_sessions;  /* 0: the registry's default */
	bool no_create;          /* sessions are not made by their first use */
};

/* What was opened before a failure is closed. Errors: of state_open() and registry_open(). */
int core_files_open(
	const struct core_files_options *opt, struct core_files *ret, struct err *err) _must_check_;
void core_files_done(struct core_files *f);

/* Descriptors below which core may write, for core_restrict(). */
unsigned core_files_fds(const struct core_files *f, int ret[4]);

/* What calls run with; `env` borrows from the files and the configuration. Workers are the
 * caller's. */
void core_files_env(const struct core_files *f, const struct config *config, struct tool_env *ret);

#endif
