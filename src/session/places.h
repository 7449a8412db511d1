/*
 * The directories of sessions: making, recognising and burying them. All by descriptor.
 *
 * Burying renames a session's directories into the trash of their own mount, so it costs the same
 * for any size; exhuming is its reverse for a transaction that fails.
 */
#ifndef CLOISTER_SESSION_PLACES_H
#define CLOISTER_SESSION_PLACES_H

#include "session/store.h"

struct places {
	int state_fd, base_fd;
	int base_trash_fd, state_trash_fd, store_fd, lease_fd;
	bool one_mount; /* base and stores are on the same */
};

/* Open (and make) the directories; duplicates the two descriptors. */
int places_open(struct places *p, int state_fd, int base_fd, struct err *err) _must_check_;
void places_done(struct places *p);

/* A fresh incarnation: later ones sort behind earlier ones. */
void incarnation_new(int64_t now_ms, char ret[INCARNATION_LEN + 1]);

int dir_identify(int fd, struct dir_identity *ret, struct err *err) _must_check_;

/* Are both on the same mount, so that rename(2) works between them? */
bool same_mount(int a_fd, int b_fd);

/*
 * The empty directory of a new session. One that is there already and empty is left over from a
 * creation that was killed; one that is not empty belongs to something else: ERR_EXISTS.
 */
int place_make(const struct places *p, const struct session_info *i, int *ret_fd,
	struct err *err) _must_check_;
void place_unmake(const struct places *p, const struct session_info *i); /* when it is empty */

/*
 * The directory of a managed session, which has to be the one that was made: 1 with the descriptor;
 * 0 when nothing is there; ERR_CONFLICT when something else is, or a link.
 */
int place_open(const struct places *p, const struct session_row *row, int *ret_fd,
	struct err *err) _must_check_;

/* The directory of an attached session, found again by its path. As place_open(). */
int place_reattach(const struct session_row *row, int *ret_fd, struct err *err) _must_check_;

/*
 * Whatever directory is at the session's place now, for place_open() to recognise: what a back-up
 * was restored into. ERR_NOT_FOUND; ERR_CONFLICT when it is a link, a file, a mount or another
 * user's.
 */
int place_adopt(const struct places *p, const struct session_row *row, struct dir_identity *ret,
	struct err *err) _must_check_;

/* The store, made when missing; *ret_fd is -1 when it is inside the workspace. */
int place_store(const struct places *p, const struct session_row *row, int *ret_fd,
	struct err *err) _must_check_;

/* Out of the way, into the trash; repeatable. Something else at the session's place stays there. */
int place_bury(const struct places *p, const struct session_row *row, struct err *err) _must_check_;
void place_exhume(const struct places *p, const struct session_row *row);
void place_revive(const struct places *p, const struct session_row *row); /* nobody deleted it */
bool place_buried(const struct places *p, const struct session_row *row);

/*
 * The lease of a session that is being made is announced in the trash, "INCARNATION.new", until its
 * row is committed. An announcement that is met under the registry's write lock is of a creation
 * that has ended: without a row, its lease goes with it.
 */
int place_announce(const struct places *p, const char *incarnation, struct err *err) _must_check_;
void place_announced(const struct places *p, const char *incarnation, bool keep_lease);
bool place_is_announcement(const char *trash_name);

/* A lease in the trash whose session is not deleted after all: back, or away when there is a newer
 * one. */
void place_exhume_lease(const struct places *p, const struct session_row *row);

#endif
