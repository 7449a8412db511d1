/*
 * Core's side of commands: start one in a fence, follow it, take its changes.
 *
 * Nothing here blocks. A command is followed by polling command_poll_fd() and calling
 * command_proceed(); when it has ended, command_take() hands its changes over, a few at a time.
 * Freeing a command ends everything that it has started, at any time.
 */
#ifndef CLOISTER_SANDBOX_COMMAND_H
#define CLOISTER_SANDBOX_COMMAND_H

#include "sandbox/output.h"
#include "sandbox/upper.h"

#include <time.h>

/* The way to a launcher. */
struct fence;

/* Takes the socket, also on failure. `limits` are what commands of this core get at most. */
int fence_new(int take, struct fence **ret, struct err *err) _must_check_;
void fence_free(struct fence *f); /* accepts NULL; commands are freed before */
DEFINE_CLEANUP(struct fence *, fence_free)

enum command_stream { COMMAND_STDOUT, COMMAND_STDERR, COMMAND_STREAMS };

struct command_options {
	struct fence_request request; /* borrowed during command_start() */
	int workspace_fd;             /* borrowed during command_start() */
	struct str input;             /* standard input; borrowed until the command is freed */
	int input_fd; /* ... or what comes from here, -1: nothing; borrowed until then */
	size_t keep;  /* bytes of each stream that are kept */
	void (*output)(void *ctx, enum command_stream s, const char *p, size_t n); /* or NULL */
	void *output_ctx;
};

struct command_result {
	int status;     /* as of wait(2) */
	bool timed_out; /* and was ended for that */
	bool limited;   /* memory and number of its processes together had limits */
	int64_t duration_ms, cpu_us, max_rss_kb;
	struct timespec started;      /* CLOCK_REALTIME */
	const struct output *streams; /* COMMAND_STREAMS of them */
};

struct command;

/* ERR_UNAVAILABLE when the launcher is gone, ERR_LIMIT, ERR_TOO_LARGE. */
int command_start(struct fence *f, const struct command_options *o, struct command **ret,
	struct err *err) _must_check_;
void command_free(struct command *c); /* accepts NULL */
DEFINE_CLEANUP(struct command *, command_free)

int command_poll_fd(const struct command *c);

/* 1: runs on; 0: it has ended, no process of it is left and its streams are read to the end. < 0:
 * the fence could not be built (ERR_UNAVAILABLE), the program not be executed (as the kernel says),
 * the fence has failed. */
int command_proceed(struct command *c, struct err *err) _must_check_;

/* End the command as a time-out does; it is then followed as before. */
void command_kill(struct command *c);

const struct command_result *command_result(const struct command *c);

/* After command_proceed() has said 0: hand over changes that have come. 1: more will come, poll;
 * 0: that was all; < 0: failed, or what `fn` said. */
int command_take(struct command *c, upper_fn fn, void *ctx, struct err *err) _must_check_;

#endif
