/*
 * A pipeline of a few tools that do nothing, behind the functions of call/call.h: what the door is
 * tested against, so that a test can hold a call back, finish it, and see what became of it.
 */
#ifndef CLOISTER_TESTS_FAKE_CALL_H
#define CLOISTER_TESTS_FAKE_CALL_H

#include "call/call.h"

extern const struct tool *const fake_tools[]; /* echo, refuse, wait, report, big */

/* What has happened since fake_reset(). */
extern struct fake_seen {
	unsigned started, cancelled, freed;
	char session[64], principal[64], turn[64];
} fake_seen;

void fake_reset(void);
void fake_finish(void);         /* let every waiting call get done at its next proceed */
void fake_report(int64_t done); /* waiting calls report this at their next proceed */
extern size_t fake_big_bytes;   /* size of the result of `big` */
extern int64_t fake_reports[8]; /* what `report` says while it runs, up to a 0 */

#endif
