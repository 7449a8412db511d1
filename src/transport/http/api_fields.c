/* Queries and bodies of routes as data: they are checked against this, and described by it in
 * /openapi.json. */
#include "transport/http/api_impl.h"

const struct field api_query_none[] = {FIELD_END};
const struct field api_body_none[] = {FIELD_END};

#define WAIT                                                                                       \
	{                                                                                          \
		.name = "wait_ms", .type = FIELD_INT, .max = DOOR_WAIT_MS_MAX,                     \
		.help = "Answer after so many milliseconds at the latest; a call that still runs " \
			"is answered with 202 and its id."                                         \
	}

const struct field api_query_wait[] = {WAIT, FIELD_END};

const struct field api_query_page[] = {
	{.name = "after",
		.type = FIELD_STRING,
		.max = LIMIT_SESSION_ID,
		.help = "Ids behind this one; the last id of the page before."},
	{.name = "limit",
		.type = FIELD_INT,
		.min = 1,
		.max = 1000,
		.help = "Sessions of one page."},
	FIELD_END,
};

const struct field api_query_events[] = {
	{.name = "after",
		.type = FIELD_INT,
		.help = "Events behind this id; the header Last-Event-ID comes first."},
	FIELD_END,
};

const struct field api_query_upload[] = {
	{.name = "create_parents",
		.type = FIELD_BOOL,
		.help = "Make missing directories above the file."},
	{.name = "overwrite", .type = FIELD_BOOL, .help = "Replace a file that is there."},
	{.name = "expected_hash",
		.type = FIELD_STRING,
		.max = 80,
		.help = "SHA-256 that the file must have now, in hexadecimal; If-Match may say it "
			"too."},
	FIELD_END,
};

const struct field api_query_remove[] = {
	{.name = "recursive", .type = FIELD_BOOL, .help = "A directory with all that is in it."},
	FIELD_END,
};

const struct field api_body_session[] = {
	{.name = "id",
		.type = FIELD_STRING,
		.max = LIMIT_SESSION_ID,
		.help = "Letters, digits, '-', '_' and '.'; a random one when absent."},
	{.name = "owner", .type = FIELD_STRING, .max = 128, .help = "Who it is for."},
	{.name = "role",
		.type = FIELD_STRING,
		.max = DOOR_ROLE_MAX,
		.help = "The most that calls in it may do."},
	{.name = "ttl_seconds", .type = FIELD_INT, .help = "How long it lives."},
	{.name = "idle_seconds", .type = FIELD_INT, .help = "How long it lives unused."},
	{.name = "quota_bytes", .type = FIELD_INT, .help = "Bytes that its files may have."},
	{.name = "quota_entries", .type = FIELD_INT, .help = "Files and directories it may have."},
	FIELD_END,
};

const struct field api_body_extend[] = {
	{.name = "ttl_seconds",
		.type = FIELD_INT,
		.required = true,
		.help = "From now on; 0: without end."},
	FIELD_END,
};

const struct field api_body_tool[] = {FIELD_END};
const struct field api_body_mcp[] = {FIELD_END};
