/*
 * Bearer tokens: who may come in through a network door.
 *
 * A token is 260 random bits in base 32 behind a prefix that scanners for leaked secrets can look
 * for. Only its SHA-256 is kept, in `tokens` below the state directory (0600), one line a token:
 *
 *     DIGEST \t NAME \t TENANT \t ROLE \t admin|user \t CREATED \t EXPIRES
 *
 * A fast hash is right here: what is hashed is random, not a password. Times are Unix seconds, 0:
 * never. The file is replaced as a whole, by rename, under a lock, so a reader always has all of
 * one version. A file with a line that does not read is refused whole: a token that silently counts
 * for nothing, or for something else, is worse than an error.
 */
#ifndef CLOISTER_GOVERN_TOKEN_H
#define CLOISTER_GOVERN_TOKEN_H

#include "base/limits.h"
#include "base/text.h"
#include "govern/decide.h"

#define TOKEN_FILE "tokens"
#define TOKEN_PREFIX "cloister_"

enum {
	TOKEN_LEN = 9 + 52,
	TOKEN_NAME_MAX = 64,
	TOKENS_MAX = 10000,
	TOKEN_FILE_MAX = 4 * 1024 * 1024,
	TOKEN_LOOK_MS = 1000, /* how old a table may be before the file is looked at again */
};

struct token {
	struct sha256 digest;
	char name[TOKEN_NAME_MAX + 1]; /* unique; what the journal and decisions call the client */
	char tenant[LIMIT_SESSION_ID + 1];
	enum role role;
	bool admin;
	int64_t created, expires;
};

struct token_table;

/* An empty table over a state directory (borrowed). */
int token_table_new(int state_fd, struct token_table **ret, struct err *err) _must_check_;
void token_table_free(struct token_table *t); /* accepts NULL */
DEFINE_CLEANUP(struct token_table *, token_table_free)

/* Read the file anew when it is another one than the last time; no file is an empty table. On an
 * error the table stays as it was. ERR_CORRUPT (line), ERR_DENIED (open to others, or not ours),
 * ERR_LIMIT, ERR_IO. */
int token_table_load(struct token_table *t, struct err *err) _must_check_;
/* The same, but at most every TOKEN_LOOK_MS of `now_ms` (CLOCK_MONOTONIC). */
int token_table_refresh(struct token_table *t, int64_t now_ms, struct err *err) _must_check_;

/* Who has this token; NULL: nobody, or it has expired. Borrowed until the next load. */
const struct token *token_table_find(const struct token_table *t, struct str token, int64_t now_s);
unsigned token_table_count(const struct token_table *t);
const struct token *token_table_at(const struct token_table *t, unsigned i); /* sorted by digest */

/* Make a token: its text is in `ret_text` and nowhere else. Of `spec` the digest and creation are
 * filled in. ERR_INVALID_ARGUMENT (name, tenant), ERR_EXISTS (name), ERR_LIMIT, ERR_BUSY (another
 * is writing), ERR_IO. */
int token_add(int state_fd, struct token *spec, char ret_text[TOKEN_LEN + 1],
	struct err *err) _must_check_;
/* ERR_NOT_FOUND. It stops counting at the next look, within TOKEN_LOOK_MS. */
int token_remove(int state_fd, const char *name, struct err *err) _must_check_;

/* Read the text of a token file; for the table, tests and the fuzzer. */
int token_read(struct str text, struct token *ret, unsigned max, unsigned *ret_n,
	struct err *err) _must_check_;

#endif
