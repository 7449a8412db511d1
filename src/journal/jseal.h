/*
 * Seals: an Ed25519 signature (RFC 8032) over the head of the chain behind every group of records.
 *
 *   = SEQ HEAD TIME RUN UPTO OPEN SIGNATURE
 *
 * is one line. SEQ is the number of the last record before it, HEAD the head of the chain behind
 * that record, TIME Unix milliseconds, RUN 16 hexadecimal digits that name the process that wrote
 * the group, UPTO how many records that process had been given by then, OPEN the number of the
 * oldest intent without an outcome (0: none). SIGNATURE is base64 (RFC 4648) and signs the line
 * before it, without the blank. The chain goes on over the seal like over any line.
 *
 * The private key never leaves the journal process. It is made by the first one; the public key is
 * published beside the log.
 */
#ifndef CLOISTER_JOURNAL_JSEAL_H
#define CLOISTER_JOURNAL_JSEAL_H

#include "journal/jchain.h"

enum { JSEAL_LINE_MAX = 320 };
#define JSEAL_KEY_FILE "ed25519.pem"       /* 0600, PKCS #8 (RFC 8410) */
#define JSEAL_PUBLIC_FILE "public-key.pem" /* SubjectPublicKeyInfo */

struct jseal {
	uint64_t seq, time_ms, run, upto, open;
	struct str head;      /* 64 digits, borrowed */
	struct str text;      /* what is signed, borrowed */
	struct str signature; /* base64, borrowed */
};

/* Read a line without its newline; its form only. ERR_CORRUPT. */
int jseal_read(struct str line, struct jseal *ret, struct err *err) _must_check_;

struct jkey;

/*
 * The key in the directory `key_fd`, made when there is none; its public half is written into
 * `public_fd` when it is not there. Processes that come at the same time agree on one. Errors:
 * ERR_CORRUPT (no Ed25519 key), ERR_DENIED (the file is open to others), ERR_IO.
 */
int jkey_open(int key_fd, int public_fd, struct jkey **ret, struct err *err) _must_check_;
/* A public key, for verifying: PEM. ERR_NOT_FOUND, ERR_CORRUPT. */
int jkey_public(struct str pem, struct jkey **ret, struct err *err) _must_check_;
/* The one beside the log. */
int jkey_published(int dir_fd, struct jkey **ret, struct err *err) _must_check_;
void jkey_free(struct jkey *k); /* accepts NULL */
DEFINE_CLEANUP(struct jkey *, jkey_free)

/* SHA-256 over the 32 bytes of the public key: what a person compares. */
void jkey_fingerprint(const struct jkey *k, struct sha256 *ret);

/* Append the seal of a group with its newline: `seal` says all but head (which is the chain's) and
 * signature. */
int jseal_write(const struct jkey *k, const struct jchain *chain, const struct jseal *seal,
	struct buf *out, struct err *err) _must_check_;

/* Has this key made this signature? */
bool jseal_check(const struct jkey *k, const struct jseal *seal);

#endif
