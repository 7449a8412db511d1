/* What several tools share: the fields that mean the same everywhere, and small steps over nodes.
 */
#ifndef CLOISTER_TOOLS_COMMON_H
#define CLOISTER_TOOLS_COMMON_H

#include "call/call.h"
#include "codec/json_write.h"

/* --- arguments ----------------------------------------------------------------------------------
 */

#define ARG_PATH(what)                                                                             \
	{                                                                                          \
		.name = "path", .type = FIELD_STRING, .required = true, .min = 1,                  \
		.max = LIMIT_PATH_BYTES, .help = what                                              \
	}

#define ARG_PATH_OR_ROOT(what)                                                                     \
	{                                                                                          \
		.name = "path", .type = FIELD_STRING, .min = 1, .max = LIMIT_PATH_BYTES,           \
		.dflt_str = ".", .help = what                                                      \
	}

#define ARG_EXPECTED_HASH                                                                          \
	{                                                                                          \
		.name = "expected_hash", .type = FIELD_STRING, .min = SHA256_HEX,                  \
		.max = SHA256_HEX,                                                                 \
		.help = "SHA-256 (hexadecimal) that the file must have now; otherwise nothing is " \
			"changed and the code is conflict."                                        \
	}

#define ARG_DRY_RUN                                                                                \
	{                                                                                          \
		.name = "dry_run", .type = FIELD_BOOL, .has_default = true,                        \
		.help = "Show the change set and its unified diff without changing anything."      \
	}

#define ARG_ENCODING(what)                                                                         \
	{                                                                                          \
		.name = "encoding", .type = FIELD_ENUM, .words = encoding_words,                   \
		.dflt_str = "utf-8", .help = what                                                  \
	}

/* An element of a list of patterns. */
extern const struct field glob_item;

extern const char *const encoding_words[]; /* utf-8, ascii, latin-1, base64 */

/* --- results ------------------------------------------------------------------------------------
 */

extern const struct field error_fields[], undo_fields[];

/* Ends every result table. Only these two are always there, so that a refusal conforms to the
 * schema too. */
#define RESULT_COMMON                                                                              \
	{.name = "executed",                                                                       \
		.type = FIELD_BOOL,                                                                \
		.required = true,                                                                  \
		.help = "Whether the call was carried out."},                                      \
		{.name = "call_id",                                                                \
			.type = FIELD_STRING,                                                      \
			.required = true,                                                          \
			.help = "Id of this call."},                                               \
		{.name = "error",                                                                  \
			.type = FIELD_OBJECT,                                                      \
			.items = error_fields,                                                     \
			.help = "Why the call was not carried out."},                              \
		{.name = "weaker",                                                                 \
			.type = FIELD_STRING,                                                      \
			.help = "What this machine cannot enforce, when it was started in spite "  \
				"of that."},                                                       \
		FIELD_END

/* Ends the result table of a tool that writes. */
#define RESULT_CHANGES                                                                             \
	{.name = "undo",                                                                           \
		.type = FIELD_OBJECT,                                                              \
		.items = undo_fields,                                                              \
		.help = "How to take this change back."},                                          \
		{.name = "changed_in_place",                                                       \
			.type = FIELD_INT,                                                         \
			.help = "Files that were changed in place, since a replacement could not " \
				"keep owner or attributes."},                                      \
		{.name = "attributes_lost",                                                        \
			.type = FIELD_INT,                                                         \
			.help = "Files and directories that could not be given the group, owner "  \
				"or access control list that belongs to them."},                   \
		{.name = "dry_run", .type = FIELD_BOOL, .help = "True when nothing was changed."}, \
		{.name = "diff", .type = FIELD_STRING, .help = "Unified diff of a dry run."},      \
		{.name = "diff_truncated",                                                         \
			.type = FIELD_BOOL,                                                        \
			.help = "True when the diff was cut."},                                    \
		RESULT_COMMON

/* --- steps --------------------------------------------------------------------------------------
 */

/* The node is a file that can be read: ERR_NOT_FOUND, ERR_IS_DIRECTORY or ERR_NOT_REGULAR naming
 * its path otherwise. */
int need_file(const struct node *n, struct err *err) _must_check_;

/* The node exists. */
int need_present(const struct node *n, struct err *err) _must_check_;

/* The node is a directory. */
int need_directory(const struct node *n, struct err *err) _must_check_;

/* Make the missing directories above a node in the call's view. */
int make_parents(struct tool_call *tc, const struct node *n, struct err *err) _must_check_;

/* The hash of argument expected_hash: *ret is NULL when it was not given, else `store`. */
int expected_hash(const struct tool_call *tc, struct sha256 *store, const struct sha256 **ret,
	struct err *err) _must_check_;

/* Append all of an open file; the buffer has room for 64 KiB more than the file. */
int read_whole(int fd, struct buf *ret, struct err *err) _must_check_;

/* file, directory, link or other. */
const char *node_kind_word(enum node_kind k);

/* SHA-256 of an open file from its start, in pieces; stops when the call is cancelled or out of
 * time. */
int hash_fd(struct tool_call *tc, int fd, struct sha256 *ret, struct err *err) _must_check_;

/* Stage text that came as a JSON string in one of encoding_words. */
int stage_text(
	struct staged *s, struct str text, const char *encoding, struct err *err) _must_check_;

/* Write one change of a change set as an element:
 * {"change","path","from"?,"size_before"?,"size_after"?}. */
void put_change(struct buf *b, const struct change *c);
extern const struct field change_fields[];

/* A report() that lists every change as `changes`. */
int report_changes(struct tool_call *tc, const struct changeset *cs, struct err *err);

/* Text from a file as a JSON string: what is not UTF-8 in it becomes U+FFFD. */
void jw_text(struct buf *b, struct str text);

/* Time as RFC 3339 in UTC with milliseconds. */
void jw_time_ms(struct buf *b, const char *key, int64_t unix_ms);

#endif
