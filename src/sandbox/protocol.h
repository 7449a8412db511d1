/*
 * What core, the launcher and the first process of a fence say to each other, in packets of a
 * SOCK_SEQPACKET socket, in the machine's byte order: all three are programs of one tree.
 *
 *   core -> launcher   one request a command, with the descriptors of enum fence_request_fd
 *   init -> core       FENCE_STARTED or FENCE_FAILED, FENCE_EXITED, then FENCE_ENTRIES...,
 *                      FENCE_END
 *   core -> init       one byte: FENCE_KILL any time; FENCE_EXPORT after FENCE_EXITED and after
 *                      each FENCE_ENTRIES (so that few descriptors are under way)
 *
 * The init lives next to a hostile command, so core believes nothing that it says: every field is
 * checked here and every descriptor where it is used.
 */
#ifndef CLOISTER_SANDBOX_PROTOCOL_H
#define CLOISTER_SANDBOX_PROTOCOL_H

#include "base/text.h"
#include "sandbox/plan.h"

#include <sys/stat.h>

enum {
	FENCE_PACKET_MAX = 128 * 1024,
	FENCE_WORDS_MAX = 4096, /* arguments and variables of one command */
	FENCE_ENTRIES_FDS_MAX = 48,
	FENCE_TEXT_MAX = ERR_TEXT_MAX,
};

enum fence_request_fd {
	FENCE_FD_WORKSPACE, /* the directory below the overlay */
	FENCE_FD_STDIN,
	FENCE_FD_STDOUT,
	FENCE_FD_STDERR,
	FENCE_FD_CONTROL, /* the init's end */
	FENCE_FDS,
};

enum fence_order { FENCE_KILL = 'k', FENCE_EXPORT = 'e' };

struct fence_request {
	struct fence_limits limits;
	const char *cwd;         /* relative to the workspace; "" is its root */
	const char *const *argv; /* NULL-terminated, argv[0] is looked up in PATH */
	const char *const *envp; /* NULL-terminated, besides what every command gets */
};

/* Encode; ERR_TOO_LARGE when it does not fit into a packet. */
int fence_request_put(const struct fence_request *q, struct buf *out, struct err *err) _must_check_;

/* Decode; what *ret points to is in `p` and in `words`, which has room for FENCE_WORDS_MAX + 2
 * pointers. `p` must end in NUL when it is not empty. ERR_PARSE. */
int fence_request_get(const char *p, size_t n, struct fence_request *ret, const char **words,
	struct err *err) _must_check_;

enum fence_report_type {
	FENCE_STARTED = 1,
	FENCE_FAILED, /* the fence could not be built, or the program not be executed */
	FENCE_EXITED,
	FENCE_ENTRIES,
	FENCE_END,
	FENCE_REPORT_MAX_,
};

/* Everything but entries. */
struct fence_report {
	uint32_t type;
	int32_t code;               /* FAILED: enum err_code */
	int32_t status;             /* EXITED: as of wait(2) */
	uint32_t exec_failed;       /* FAILED: the fence was there, the program was not */
	uint32_t limited, reserved; /* STARTED: a cgroup limits all processes together */
	int64_t user_us, system_us, max_rss_kb;
	char text[FENCE_TEXT_MAX]; /* FAILED; NUL-terminated */
};

/* The type of a packet, 0 when it is none. */
enum fence_report_type fence_report_type_of(const char *p, size_t n);
int fence_report_get(
	const char *p, size_t n, struct fence_report *ret, struct err *err) _must_check_;

/* One object of the upper layer. */
enum fence_entry_kind {
	FENCE_WHITEOUT = 1, /* what was there is gone */
	FENCE_DIR,          /* `opaque`: nothing of what was below shows */
	FENCE_FILE,         /* comes with a descriptor for reading */
	FENCE_LINK,
	FENCE_SPECIAL, /* FIFO, socket: named, not published */
	FENCE_REFUSED, /* what no change set may hold; `target` says why */
	FENCE_ENTRY_MAX_,
};

struct fence_entry {
	enum fence_entry_kind kind;
	bool opaque;
	mode_t mode;       /* permission bits */
	struct str path;   /* relative to the workspace's root; bytes */
	struct str target; /* of a link */
};

/* Append to a FENCE_ENTRIES packet (begun by fence_entries_begin()). False: no room. */
void fence_entries_begin(struct buf *out);
bool fence_entry_put(struct buf *out, const struct fence_entry *e);

/* The next entry: 1, 0 at the end, ERR_PARSE: also for paths that are not plain relative ones. */
struct fence_entries {
	const char *p;
	size_t left;
};
int fence_entries_open(
	const char *p, size_t n, struct fence_entries *ret, struct err *err) _must_check_;
int fence_entry_get(struct fence_entries *in, struct fence_entry *ret, struct err *err);

#endif
