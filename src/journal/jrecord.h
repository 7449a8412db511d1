/*
 * One record of the journal: what was asked, by whom, and what became of it, as one line of
 * canonical JSON (RFC 8785).
 *
 *   call     a read, a refusal, a call that changed nothing: one record says all
 *   intent   a change that was decided and is about to be published
 *   outcome  what became of the intent with the same `call`
 *   note     the journal's own: a torn tail that was cut, records that were lost
 *
 * The members stand in jrecord.def; the struct, the writer, the reader and the filters follow from
 * it. A record has exactly one spelling, so the reader refuses everything else: unknown or
 * unordered members, white space, other escapes, numbers with a leading zero. Lines are bounded
 * from birth.
 */
#ifndef CLOISTER_JOURNAL_JRECORD_H
#define CLOISTER_JOURNAL_JRECORD_H

#include "base/text.h"

enum {
	JRECORD_LIST_MAX = 64,        /* items of a list */
	JRECORD_TEXT_MAX = 1024,      /* bytes of a text, of an item */
	JRECORD_BYTES_MAX = 8 * 1024, /* of all texts and items together */
	JRECORD_LINE_MAX = 64 * 1024, /* of a line; every byte may need an escape of six */
};
/* Numbers that every reader of JSON holds exactly (RFC 8785 §3.2.2.3). */
#define JRECORD_NUMBER_MAX 9007199254740991ULL

#define JRECORD_KIND_CALL "call"
#define JRECORD_KIND_INTENT "intent"
#define JRECORD_KIND_OUTCOME "outcome"
#define JRECORD_KIND_NOTE "note"

typedef struct str jrecord_text; /* borrowed */
typedef uint64_t jrecord_number;
typedef struct {
	unsigned n;
	struct str v[JRECORD_LIST_MAX]; /* borrowed */
} jrecord_texts;

struct jrecord {
#define MEMBER(type, name, max) jrecord_##type name;
#include "journal/jrecord.def"
#undef MEMBER
};

/* Append the line, with its newline. A text over its limit or that is not UTF-8, an unknown kind:
 * ERR_INVALID_ARGUMENT. The sum of all texts over JRECORD_BYTES_MAX: ERR_LIMIT. */
int jrecord_write(const struct jrecord *r, struct buf *out, struct err *err) _must_check_;

/* Where unescaped texts of a record that was read are kept. */
struct jrecord_memory {
	size_t used;
	char bytes[JRECORD_LINE_MAX];
};

/* Read a line without its newline. Texts are borrowed from the line and from `memory`. ERR_CORRUPT
 * says what is wrong. */
int jrecord_read(struct str line, struct jrecord_memory *memory, struct jrecord *ret,
	struct err *err) _must_check_;

/* The number of a record without reading the rest of it; 0: there is none. */
uint64_t jrecord_seq(struct str line);

#endif
