/*
 * Every limit of the product, in one place. A limit that a person may change is a key of the
 * configuration with this value as its default or its maximum; the others are fixed.
 */
#ifndef CLOISTER_BASE_LIMITS_H
#define CLOISTER_BASE_LIMITS_H

enum {
	LIMIT_PATH_BYTES = 4096, /* a path as an agent spells it */
	LIMIT_NAME_BYTES = 255,  /* one component */
	LIMIT_PATH_DEPTH = 256,  /* components of a path, after links */
	LIMIT_LINK_HOPS = 40,    /* symbolic links followed in one resolution, as the kernel does */
	LIMIT_SESSION_ID = 128,
	LIMIT_MOUNTS = 16,
	LIMIT_REQUEST_BYTES = 64 * 1024 * 1024, /* one message from a client */
	LIMIT_JSON_DEPTH = 128,
	LIMIT_CHANGES = 100000,   /* entries of one change set */
	LIMIT_STAGED_OPEN = 1000, /* staged files kept as open O_TMPFILE; named beyond */
	LIMIT_GLOB_BYTES = 1024,
	LIMIT_PATTERN_BYTES = 1000,
	LIMIT_LIST_PAGE = 10000, /* entries of one answer */
	LIMIT_EDITS = 1000,      /* edits of one call */
};

#define LIMIT_READ_MIN_MB 1
#define LIMIT_READ_DEFAULT_MB 10
#define LIMIT_READ_MAX_MB 100
#define QUOTA_BYTES_DEFAULT (100LL * 1024 * 1024)
#define QUOTA_ENTRIES_DEFAULT 100000LL

#endif
