/*
 * Reading records out of a log: by session, turn, tool, code and number. It checks their form and
 * order, not their seals: that is jverify.h.
 */
#ifndef CLOISTER_JOURNAL_JSHOW_H
#define CLOISTER_JOURNAL_JSHOW_H

#include "journal/jlog.h"

/* NULL, 0: not asked for. */
struct jfilter {
	const char *session, *turn, *tool, *code, *call;
	uint64_t since; /* records behind this number */
};

/* Every record that fits, oldest first, with its line (without newline); both borrowed. `each`
 * returns false to stop. Segments that end before `since` are not read. ERR_NOT_FOUND: no log.
 * ERR_CORRUPT, ERR_IO. */
int jshow(int dir_fd, const struct jfilter *f,
	bool (*each)(void *ctx, const struct jrecord *r, struct str line), void *ctx,
	struct err *err) _must_check_;

#endif
