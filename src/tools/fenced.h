/*
 * What the tools share that run a program in a fence on a copy-on-write view of the workspace: the
 * arguments and results that mean the same, starting it, its output, and taking what it has changed
 * when it ends.
 */
#ifndef CLOISTER_TOOLS_FENCED_H
#define CLOISTER_TOOLS_FENCED_H

#include "tools/common.h"

#include "sandbox/plan.h"

enum {
	FENCED_WORDS_MAX = 1000,
	FENCED_WORD_BYTES = 96 * 1024,
	FENCED_TIMEOUT_MS = 30 * 1000,
	FENCED_TIMEOUT_MAX_MS = 600 * 1000,
	FENCED_OUTPUT = 30000,
	FENCED_OUTPUT_MAX = 16 * 1024 * 1024,
};

/* Arguments. The working directory is the first target of the call: fenced_prepare(). */
#define ARGS_FENCED                                                                                \
	{.name = "working_directory",                                                              \
		.type = FIELD_STRING,                                                              \
		.min = 1,                                                                          \
		.max = LIMIT_PATH_BYTES,                                                           \
		.dflt_str = ".",                                                                   \
		.help = "Directory to run in, relative to the workspace."},                        \
		{.name = "stdin",                                                                  \
			.type = FIELD_STRING,                                                      \
			.nul_ok = true,                                                            \
			.max = LIMIT_REQUEST_BYTES,                                                \
			.help = "Standard input; without it there is none."},                      \
		{.name = "timeout_ms",                                                             \
			.type = FIELD_INT,                                                         \
			.min = 1,                                                                  \
			.max = FENCED_TIMEOUT_MAX_MS,                                              \
			.dflt = FENCED_TIMEOUT_MS,                                                 \
			.has_default = true,                                                       \
			.help = "When to end the command with everything that it has started; "    \
				"then it "                                                         \
				"changes nothing."},                                               \
		{.name = "max_output",                                                             \
			.type = FIELD_INT,                                                         \
			.min = 0,                                                                  \
			.max = FENCED_OUTPUT_MAX,                                                  \
			.dflt = FENCED_OUTPUT,                                                     \
			.has_default = true,                                                       \
			.help = "Bytes of each stream that the answer brings, from its beginning " \
				"and its "                                                         \
				"end."},                                                           \
		ARG_DRY_RUN

extern const struct field fenced_change;

/* Begins the result table. */
#define RESULT_FENCED                                                                              \
	{.name = "exit_code",                                                                      \
		.type = FIELD_INT,                                                                 \
		.help = "Exit status; 128 and the number of the signal that ended it."},           \
		{.name = "timed_out",                                                              \
			.type = FIELD_BOOL,                                                        \
			.help = "True when it was ended for its time."},                           \
		{.name = "stdout", .type = FIELD_STRING, .help = "What it printed."},              \
		{.name = "stderr", .type = FIELD_STRING, .help = "What it printed as errors."},    \
		{.name = "stdout_omitted",                                                         \
			.type = FIELD_INT,                                                         \
			.help = "Bytes of stdout that are left out."},                             \
		{.name = "stderr_omitted",                                                         \
			.type = FIELD_INT,                                                         \
			.help = "Bytes of stderr that are left out."},                             \
		{.name = "duration_ms", .type = FIELD_INT, .help = "How long it ran."},            \
		{.name = "changes_dropped",                                                        \
			.type = FIELD_BOOL,                                                        \
			.help = "True when it was ended by a signal or for its time: then "        \
				"nothing is "                                                      \
				"changed."},                                                       \
		{.name = "left_out",                                                               \
			.type = FIELD_INT,                                                         \
			.help = "Sockets, FIFOs and links to places outside that it made; they "   \
				"are not "                                                         \
				"kept."},                                                          \
		{.name = "not_limited",                                                            \
			.type = FIELD_STRING,                                                      \
			.help = "What this machine could not limit for the command."},             \
		{.name = "held_back",                                                              \
			.type = FIELD_INT,                                                         \
			.help = "Hooks, configuration and the like that git would execute later "  \
				"outside of "                                                      \
				"the fence: they stay as they were."},                             \
		{.name = "held_back_first",                                                        \
			.type = FIELD_STRING,                                                      \
			.help = "Path of the first of these."},                                    \
		{.name = "changes",                                                                \
			.type = FIELD_ARRAY,                                                       \
			.items = &fenced_change,                                                   \
			.help = "What it changed."},                                               \
		RESULT_CHANGES

/* Judge the working directory. */
int fenced_prepare(struct tool_call *tc, struct err *err) _must_check_;

/* What is run: words and variables are borrowed during the call, both end with NULL. */
struct fenced_program {
	const char *const *words, *const *variables;
	int64_t memory_bytes; /* 0: as the configuration says */
};

/* TOOL_PENDING, then fenced_resume() and, in any case, fenced_done(). ERR_UNAVAILABLE where nothing
 * starts commands; what command_start() says. */
int fenced_start(
	struct tool_call *tc, const struct fenced_program *p, struct err *err) _must_check_;
int fenced_resume(struct tool_call *tc, struct worker_answer *answer, struct err *err) _must_check_;
void fenced_done(struct tool_call *tc);

#endif
