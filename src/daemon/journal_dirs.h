/* Where the journal's log and key are; for everybody who starts or reads it. */
#ifndef CLOISTER_DAEMON_JOURNAL_DIRS_H
#define CLOISTER_DAEMON_JOURNAL_DIRS_H

#include "codec/config.h"

/* Open both, making them when missing. Errors: of state_open_beside() and state_subdir(). */
int journal_dirs_open(
	const struct config *set, int *ret_log_fd, int *ret_key_fd, struct err *err) _must_check_;

#endif
