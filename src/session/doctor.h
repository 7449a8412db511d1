/*
 * What this machine can do, found out by doing it.
 *
 * Every probe uses the facility once, the way the product does, and cleans up behind itself; a
 * version number or a configuration file is never taken as an answer. The outcome is data: the
 * command line prints it as text or JSON.
 */
#ifndef CLOISTER_SESSION_DOCTOR_H
#define CLOISTER_SESSION_DOCTOR_H

#include "session/state.h"

#include <stdbool.h>

enum { DOCTOR_CHECKS_MAX = 32, DOCTOR_DETAIL_MAX = 200 };

enum doctor_outcome {
	DOCTOR_OK,
	DOCTOR_MISSING, /* something works less well, or is not offered: `needed_by` */
	DOCTOR_FAILED,  /* and nothing works without it */
	DOCTOR_SKIPPED, /* could not be tried; `detail` says why */
};

struct doctor_check {
	const char *name;      /* stable, lower-case */
	const char *needed_by; /* what stands on it */
	const char *advice;    /* what to do when it is not ok */
	bool required;         /* its absence is DOCTOR_FAILED */
	enum doctor_outcome outcome;
	char detail[DOCTOR_DETAIL_MAX]; /* what was found; may name host paths: for the operator */
};

/* "ok", "missing", "failed", "skipped". */
const char *doctor_word(enum doctor_outcome outcome);

/*
 * Run every probe; takes about a second at most. `paths` as for state_open(): the directories are
 * made as usual, scratch directories in them are removed. Forks, so call it while there is one
 * thread. Returns the number of checks; never fails as a whole.
 */
unsigned doctor_run(const struct state_paths *paths, struct doctor_check ret[DOCTOR_CHECKS_MAX]);

/* Did nothing required fail? */
bool doctor_healthy(const struct doctor_check *checks, unsigned n);

#endif
