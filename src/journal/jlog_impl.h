/* What appending (jlog.c) and opening (jlog_open.c) share. */
#ifndef CLOISTER_JOURNAL_JLOG_IMPL_H
#define CLOISTER_JOURNAL_JLOG_IMPL_H

#include "journal/jlog.h"

struct jlog {
	struct jlog_options opt;
	int dir_fd, lock_fd, fd; /* fd: the segment at the end; -1: there is none yet */
	int64_t end;             /* of what this process knows in it: always behind a seal */
	struct jwalk walk;       /* at `end` */
	struct jposition sealed;
	struct jopen *open,
		*open_before; /* JLOG_OPEN_MAX each; the second is from before the group */
	unsigned n_open, n_open_before;
	struct jopen *abandoned;
	char first_seal[JSEAL_LINE_MAX]; /* not yet checked against the key; "": it is */
	struct err broken;
	/* the group under construction */
	bool in_group, rotates;
	struct jwalk before;
	struct buf group;
	uint64_t time_ms;
};

/* Go to a segment; the walk expects its header. */
int jlog_open_segment(struct jlog *l, uint32_t number, int flags, struct err *err) _must_check_;
int jlog_size(int fd, int64_t *ret, struct err *err) _must_check_;
/* Walk over the whole groups from `end` up to `size`. */
int jlog_read_groups(struct jlog *l, int64_t size, struct err *err) _must_check_;
void jlog_note_outcome(struct jlog *l, struct str call);
/* The byte of the lock file that says that a writer lives. */
off_t jlog_byte_of(uint64_t run);

#endif
