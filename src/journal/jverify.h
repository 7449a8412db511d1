/*
 * Verifying a log: every line's form, the numbers, the chain from the first segment to the last,
 * the seals, and that a position which somebody has kept is still in it.
 *
 * The chain covers every line, so one signature that is right proves all that is before it: by
 * default the last seal of each segment is checked against the key, and all others by the chain.
 * What has been cut off at a seal is a log that was right once: only a position from after the cut
 * finds it.
 */
#ifndef CLOISTER_JOURNAL_JVERIFY_H
#define CLOISTER_JOURNAL_JVERIFY_H

#include "journal/jlog.h"

struct jverify_options {
	int dir_fd;                     /* borrowed */
	struct jkey *key;               /* borrowed */
	const struct jposition *expect; /* NULL: nothing is expected */
	bool every_seal;                /* check every signature */
};

struct jverify_result {
	struct jposition last; /* behind the last seal */
	uint64_t records, groups, checked_seals, bytes, last_ms;
	uint32_t segments;
};

/* ERR_CORRUPT: damaged, the message says where; what was right before it is in *ret. ERR_CONFLICT:
 * all is right, but the expected position is not in it. ERR_NOT_FOUND: no log. ERR_IO. */
int jverify(const struct jverify_options *opt, struct jverify_result *ret,
	struct err *err) _must_check_;

/* "SEQ:HASH" */
int jposition_parse(const char *text, struct jposition *ret, struct err *err) _must_check_;

#endif
