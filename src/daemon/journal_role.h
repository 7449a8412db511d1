/*
 * The life of a journal process: drop rights, say where the log ends, take records.
 *
 * Records are collected while nobody waits for one, at most JOURNAL_LINGER_MS, and then written as
 * one group with one seal; a record that core waits for ends the collecting, and everything that
 * came until then shares its group and its sync. When core is gone what has been collected is
 * written, and the process ends.
 */
#ifndef CLOISTER_DAEMON_JOURNAL_ROLE_H
#define CLOISTER_DAEMON_JOURNAL_ROLE_H

#include "daemon/messages.h"

enum {
	JOURNAL_LINGER_MS = 50,
	JOURNAL_RETRY_MS = 500, /* after a group that could not be written */
	JOURNAL_PENDING_MAX = 2 * 1024 * 1024,
	JOURNAL_PENDING_HIGH = 256 * 1024, /* write now, whoever waits */
};

/* argv: LANDLOCK-ABI. Does not return. */
_noreturn_ void journal_role(int argc, char **argv);

#endif
